//===- Emit.cpp - the optimized program as CUDA source --------------------===//
#include "Emitter.h"
#include "optiml/Frontend/LineMarks.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <set>

using namespace optiml;

namespace {

constexpr llvm::StringLiteral supportMark =
    "// Written by OptiML: whether an optimized kernel may stand in for a launch, and how often it did.\n";

/// The class that counts paths, in a text that OptiML has written; empty in others.
std::string supportClassIn(llvm::StringRef text) {
  llvm::StringRef rest = text.split(supportMark).second.split("\nclass ").second;
  return rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; }).str();
}

} // namespace

/// The text, in which no macro of the user's replaces a name.
std::string Emitter::shielded(const std::string &text) const {
  std::set<std::string> hidden;
  std::string word;
  for (char c : text + " ") {
    if (llvm::isAlnum(c) || c == '_') {
      word += c;
      continue;
    }
    if (host.macros().count(word))
      hidden.insert(word);
    word.clear();
  }
  if (hidden.empty())
    return text;
  std::string before = "\n", after = "\n";
  for (const std::string &name : hidden) {
    before += "#pragma push_macro(\"" + name + "\")\n#undef " + name + "\n";
    after += "#pragma pop_macro(\"" + name + "\")\n";
  }
  return before + text + after;
}

/// Where the support class goes: after the last #include of the file's head, outside of conditional sections.
unsigned Emitter::afterIncludes() const {
  llvm::StringRef text = variant.original;
  unsigned point = 0, depth = 0, offset = 0;
  bool comment = false;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    unsigned next = offset + unsigned(line.size()) + 1;
    llvm::StringRef trimmed = line.trim();
    if (comment) {
      comment = !trimmed.contains("*/");
    } else if (trimmed.starts_with("/*")) {
      comment = !trimmed.contains("*/");
    } else if (trimmed.consume_front("#")) {
      trimmed = trimmed.ltrim();
      if (trimmed.starts_with("if"))
        ++depth;
      else if (trimmed.starts_with("endif"))
        depth -= depth > 0;
      else if (trimmed.starts_with("include") && depth == 0)
        point = next;
    } else if (!trimmed.empty() && !trimmed.starts_with("//")) {
      break; // the first declaration
    }
    text = rest;
    offset = next;
  }
  return std::min<unsigned>(point, unsigned(variant.original.size()));
}

std::string Emitter::support() const {
  const bool hasLists = llvm::any_of(fusions, [](const Fusion &fusion) { return !fusion.loops.empty(); });
  std::string vector = loops.empty() && !hasLists ? "" : "#include <vector>\n";
  if (variant.original.find(supportMark) != std::string::npos)
    return vector;
  const bool hasArch = llvm::any_of(variant.rewrites, [](const KernelRewrite &r) { return r.arch != 0; });
  return "\n" + supportMark.str() +
         filledText(
             "support.txt",
             {{"HELPER", helper},
              {"VECTOR", vector},
              {"FOLLOW", mayFollow ? filledText("follow.txt", {}) : ""},
              {"ENABLED", loops.empty() && fusions.empty() ? "" : "  bool enabled() const { return allowed; }\n"},
              {"COMPILED", hasArch ? filledText("compiled.txt", {}) : ""},
              {"KNOWN", hasArch ? "  signed char compiled[64] = {};\n" : ""}});
}

/// What follows is the user's own text from `offset` on.
std::string Emitter::lineDirective(unsigned offset) const { return lineMarkAt(variant.original, offset, fileName); }

/// How many template arguments the name ends with.
static unsigned templateArguments(llvm::StringRef name) {
  unsigned count = 0;
  int depth = 0;
  for (char c : unqualified(name)) {
    if (c == '<' || c == '(')
      count += depth++ == 0 && c == '<';
    else if (c == '>' || c == ')')
      --depth;
    else if (c == ',' && depth == 1)
      ++count;
  }
  return count;
}

/// Whether a launch in a template says which instantiation of the kernel it wants.
static bool namesInstantiation(const LaunchSite &site, const KernelRewrite &rewrite) {
  return llvm::StringRef(site.callee).rtrim().ends_with(">") &&
         templateArguments(site.callee) == templateArguments(rewrite.original);
}

/// The template arguments that a launch gives, "<16>"; the rest is deduced.
static std::string givenArguments(const LaunchSite &site) {
  llvm::StringRef callee = unqualified(site.callee);
  return callee.substr(std::min(callee.find('<'), callee.size())).str();
}

std::string Emitter::deducing(const KernelRewrite &rewrite, const std::string &name, const std::string &chooser) const {
  const KernelDecl *kernel = host.findKernel(rewrite.originalSymbol);
  return kernel && kernel->decl ? deducingLauncher(*kernel->decl, name, chooser) : "";
}

/// What a dispatcher is called with in place of a launch: its configuration, and its arguments.
static std::string launchArguments(const LaunchSite &site) {
  std::string text = site.configAt(0) + ", " + site.configAt(1) + ", " + site.configAt(2) + ", " + site.configAt(3);
  for (const std::string &argument : site.arguments)
    text += ", " + argument;
  return text;
}

/// Its launches belong to a loop that is replaced as a whole.
bool Emitter::inLoop(const LaunchSite &site) const {
  for (const LoopRewrite &rewrite : loops)
    for (const LaunchLoop &loop : rewrite.loops)
      if (llvm::is_contained(loop.launches, site.begin))
        return true;
  return false;
}

/// The class that takes a loop's launches, beside the kernel, and an object of it around each loop.
void Emitter::emitLoops(const LoopRewrite &rewrite) {
  const KernelRewrite &kernel = rewrite.kernel;
  LoopTextNames names;
  names.prefix = freshIdentifier(kernel.twin + "_loop");
  names.loop = names.prefix + "_launches";
  names.helper = helper;
  names.kernel = kernel.original;
  names.launch = dispatchers[kernel.originalSymbol];
  names.callee = nameThere(kernel);
  names.parameters = kernel.originalParameters;
  unsigned at = kernel.insertAt;
  LoopCopyNames copy;
  if (rewrite.copyBack) {
    const KernelRewrite &second = rewrite.copyBack->kernel;
    copy = {rewrite.copyBack->step, dispatchers[second.originalSymbol], nameThere(second), second.originalParameters};
    at = std::max(at, second.insertAt);
  }
  edits.push_back({at, at, shielded("\n" + loopText(rewrite.idiom, names, copy))});
  for (const LaunchLoop &loop : rewrite.loops) {
    std::string object = freshIdentifier("optiml_launches"), qualifier;
    for (const LaunchSite &site : host.launches())
      if (llvm::is_contained(loop.launches, site.begin)) {
        qualifier = qualifierOf(kernel, site);
        const char *add =
            rewrite.copyBack && site.symbol == rewrite.copyBack->kernel.originalSymbol ? ".addCopy(" : ".add(";
        edits.push_back({site.begin, site.end, object + add + launchArguments(site) + ")"});
        ++result.dispatched;
      }
    std::string used;
    bool inPlace = rewrite.idiom.in == rewrite.idiom.out;
    if (!inPlace && loop.pointersKnown && !rewrite.copyBack) {
      for (const std::string &pointer : loop.living)
        used += (used.empty() ? "" : ", ") + pointer;
      used = "\n" + object + ".used({" + used + "});";
    }
    edits.push_back(
        {loop.begin, loop.begin,
         "{ // OptiML: its launches take place at the end\n" + qualifier + names.loop + " " + object + ";\n"});
    edits.push_back({loop.end, loop.end, used + "\n}"});
  }
}

/// The fused kernel and what launches it, beside the last of its parts; a launch that is put off becomes a variable.
void Emitter::emitFusion(const Fusion &fusion) {
  FuseTextNames names;
  names.name = fusion.kernel.name;
  names.helper = helper;
  unsigned at = 0;
  for (const KernelRewrite &part : fusion.parts) {
    names.parts.push_back({nameThere(part), part.original, part.originalParameters, part.originalMaxThreads});
    at = std::max(at, part.insertAt);
  }
  const bool byBlocks = fusion.kernel.blocks.has_value();
  edits.push_back({at, at, shielded("\n\n" + (byBlocks ? blockText : fuseText)(fusion.kernel, names))});
  std::string waiting;
  for (size_t i = 0; i < fusion.launches.size(); ++i) {
    const auto found = llvm::find_if(fusion.loops, [&](const LaunchRun::Loop &l) { return l.holds(i); });
    const LaunchRun::Loop *around = found == fusion.loops.end() ? nullptr : &*found;
    const size_t loop = size_t(found - fusion.loops.begin());
    const std::string object = names.name + (around ? "_turns" + std::to_string(loop) : std::to_string(i));
    for (const LaunchSite &site : host.launches()) {
      if (site.begin != fusion.launches[i] || site.inMacro)
        continue;
      const std::string qualifier = qualifierOf(fusion.parts[i], site),
                        launch = qualifier + names.launchType(i) + "(" + launchArguments(site) + ")";
      const bool isLast = i + 1 == fusion.launches.size();
      if (around)
        edits.push_back(
            {site.begin, site.end, object + ".add" + std::to_string(i) + "(" + launchArguments(site) + ")"});
      else if (!isLast)
        edits.push_back({site.begin, site.end, "const auto " + object + " = " + launch});
      else
        edits.push_back({site.begin, site.end, qualifier + names.launcher() + "(" + waiting + launch + ")"});
      if (around && i == around->first)
        edits.push_back({around->begin, around->begin, qualifier + names.loopType(loop) + " " + object + ";\n"});
      if (!around || i == around->first)
        waiting += object + ", ";
      if (around && isLast)
        edits.push_back({around->end, around->end,
                         "\n" + qualifier + names.launcher() + "(" + waiting.substr(0, waiting.size() - 2) + ");\n"});
      ++result.dispatched;
      break;
    }
  }
}

/// Why a launch of the rewritten kernel has to stay as it is; empty: it need not.
std::string Emitter::whyKept(const LaunchSite &site, const KernelRewrite &rewrite) const {
  if (site.inMacro)
    return "it is written by a macro";
  if (site.arguments.size() != (rewrite.plan.steps.empty() ? 0 : rewrite.originalParameters.size()))
    return "it relies on default arguments";
  if (!site.inTemplate)
    return "";
  bool instance = llvm::StringRef(rewrite.original).ends_with(">");
  std::set<std::string> kernels;
  for (const LaunchSite &other : host.launches())
    if (other.begin == site.begin && !other.symbol.empty())
      kernels.insert(llvm::StringRef(other.kernel).split('<').first.str());
  if (kernels.size() > 1 || (!instance && symbolsAt(site) > 1))
    return "it stands in a template that launches different kernels";
  if (instance && !namesInstantiation(site, rewrite) && (!rewrite.besideOriginal || deducing(rewrite, "", "").empty()))
    return "it stands in a template and leaves the kernel's template arguments to a deduction that cannot be repeated";
  if (instance && site.topLevelBegin < choosesFrom(rewrite))
    return "it stands in a template before the kernel";
  return "";
}

std::string optiml::twinText(const KernelRewrite &rewrite) {
  std::string text = rewrite.arch ? compiledFor(rewrite.arch, rewrite.twinText) : rewrite.twinText;
  const bool isHidden = rewrite.besideOriginal && scopeOf(rewrite.original).contains("(anonymous namespace)");
  const bool isShared = !isHidden && (!rewrite.besideOriginal || llvm::StringRef(rewrite.original).ends_with(">"));
  return isShared ? "namespace {\n" + text + "\n} // namespace" : text;
}

/// "launch_rows"
static std::string launcherName(const KernelRewrite &rewrite) {
  std::string name = "launch_" + unqualified(rewrite.original).str();
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  return name;
}

/// The twin and its dispatcher, and the calls of the dispatcher in place of launches.
void Emitter::emitRewrite(const KernelRewrite &rewrite) {
  std::string name = freshIdentifier(style == EmitStyle::Guarded ? rewrite.twin + "_launch" : launcherName(rewrite));
  if (style != EmitStyle::Guarded && mayFollow &&
      llvm::any_of(rewrite.plan.steps, [](const LaunchStep &step) { return step.sharedBytes.str() != "0"; }))
    return tell(llvm::formatv("{0}: {1} stays as it is: the program sets attributes of kernels, which a new one with "
                              "dynamic shared memory may need, too",
                              variant.path, rewrite.original));
  unsigned sites = 0;
  std::vector<const LaunchSite *> calls;
  std::set<unsigned> replaced; // each instantiation of a function has the launches at the same places
  for (const LaunchSite &site : host.launches()) {
    if (site.symbol != rewrite.originalSymbol && !(site.symbol.empty() && site.kernel == rewrite.original))
      continue;
    if (inLoop(site)) { // the loop's launches that are not replaced go through the dispatcher
      ++sites;
      continue;
    }
    if (replaced.count(site.begin))
      continue;
    if (std::string why = whyKept(site, rewrite); !why.empty()) {
      keeps(site, rewrite.original, why);
      continue;
    }
    replaced.insert(site.begin);
    ++sites;
    if (site.inTemplate && llvm::StringRef(rewrite.original).ends_with(">")) {
      // Those beside the definition, and those elsewhere, stand at one place each.
      Family &family = families[rewrite.original.substr(0, rewrite.original.find('<')) +
                                (rewrite.besideOriginal ? "" : "@" + std::to_string(rewrite.insertAt))];
      if (family.dispatchers.empty() || family.dispatchers.back().first != &rewrite)
        family.dispatchers.push_back({&rewrite, name});
      family.sites[site.begin] = &site;
      continue;
    }
    edits.push_back({site.begin, site.end, qualifierOf(rewrite, site) + name + "(" + launchArguments(site) + ")"});
    calls.push_back(&site);
  }
  const std::string entry = style == EmitStyle::Guarded ? emitEntry(rewrite, name) : "";
  if (!sites && entry.empty())
    return;
  result.dispatched += sites;
  dispatchers[rewrite.originalSymbol] = name;
  declareBefore(calls, rewrite, dispatcherSignature(rewrite, name));
  tellTaken(rewrite.originalSymbol, rewrite.original);
  if (style != EmitStyle::Guarded)
    return emitPlain(rewrite, name, calls.size());
  auto summary = summaries.find(rewrite.original);
  edits.push_back(
      {rewrite.insertAt, rewrite.insertAt,
       "\n\n// OptiML: " + rewrite.original + ", rewritten by " + recipeOf(rewrite) + "\n" +
           rewrite.placed(twinText(rewrite) + "\n" +
                          shielded(dispatcherText(rewrite, name, helper,
                                                  summary == summaries.end() ? "" : summary->second, mayFollow) +
                                   entry))});
}

void Emitter::tell(std::string remark) {
  if (!llvm::is_contained(result.remarks, remark))
    result.remarks.push_back(std::move(remark));
}

void Emitter::keeps(const LaunchSite &site, const std::string &kernel, const std::string &why) {
  tell(llvm::formatv("{0}:{1}: this launch of {2} keeps the original kernel: {3}", variant.path, site.line, kernel,
                     why));
}

/// What chooses among the instantiations of a kernel, and its calls.
void Emitter::emitFamily(const std::string &kernel, const Family &family) {
  std::string name = freshIdentifier(unqualified(llvm::StringRef(kernel).split('@').first).str() + "_optiml_choose");
  const KernelRewrite &one = *family.dispatchers.front().first;
  std::string text = chooserText(name), deduced;
  for (const auto &[begin, site] : family.sites) {
    bool named = namesInstantiation(*site, one);
    if (!named && deduced.empty()) {
      deduced = freshIdentifier(name + "_deduced");
      text += deducing(one, deduced, name);
    }
    std::string call = named ? name + "(" + site->callee + ")" : deduced + givenArguments(*site);
    edits.push_back({site->begin, site->end, qualifierOf(one, *site) + call + "(" + launchArguments(*site) + ")"});
  }
  // Before the choices, and behind none of the launches.
  const unsigned at = choosesFrom(one);
  edits.insert(llvm::find_if(edits, [&](const Edit &edit) { return edit.begin == at; }), {at, at, shielded(text)});
  std::vector<std::vector<Parameter>> done;
  for (const auto &[rewrite, unused] : family.dispatchers) {
    if (llvm::is_contained(done, rewrite->originalParameters))
      continue;
    done.push_back(rewrite->originalParameters);
    std::vector<Dispatcher> alike;
    const KernelRewrite *last = rewrite;
    for (const Dispatcher &dispatcher : family.dispatchers)
      if (dispatcher.first->originalParameters == rewrite->originalParameters) {
        alike.push_back(dispatcher);
        if (dispatcher.first->insertAt > last->insertAt)
          last = dispatcher.first;
      }
    edits.push_back({last->insertAt, last->insertAt, last->placed(shielded(choiceText(name, alike)))});
  }
}

/// Where the chooser of a kernel's launches in templates stands: directly after the kernel's definition, if it can.
unsigned Emitter::choosesFrom(const KernelRewrite &rewrite) const {
  const KernelDecl *kernel = host.findKernel(rewrite.originalSymbol);
  return rewrite.besideOriginal && kernel ? kernel->endOffset : rewrite.insertAt;
}

/// The original with all edits.
llvm::Error Emitter::assemble() {
  const std::string &text = variant.original;
  std::stable_sort(edits.begin(), edits.end(), [](const Edit &a, const Edit &b) { return a.begin < b.begin; });
  unsigned at = 0;
  result.text = lineDirective(0);
  for (const Edit &edit : edits) {
    if (edit.begin < at)
      return makeError("{0}: two launches overlap in the source and cannot both be rewritten", variant.path);
    result.text += text.substr(at, edit.begin - at) + edit.text;
    at = edit.end;
    if (edit.begin == edit.end)
      result.text += (edit.text.ends_with("\n") ? "" : "\n") + lineDirective(at);
  }
  result.text += text.substr(at);
  return llvm::Error::success();
}

llvm::Expected<EmittedProgram> Emitter::run() {
  helper = supportClassIn(variant.original);
  if (helper.empty())
    helper = freshIdentifier("OptimlPath");
  for (const KernelRewrite &rewrite : variant.rewrites)
    emitRewrite(rewrite);
  for (const LoopRewrite &rewrite : loops)
    emitLoops(rewrite);
  for (const Fusion &fusion : fusions)
    emitFusion(fusion);
  for (const auto &[kernel, family] : families)
    emitFamily(kernel, family);
  if (style == EmitStyle::Guarded && (result.dispatched || result.entries)) {
    unsigned head = afterIncludes();
    edits.insert(edits.begin(), {head, head, shielded(support())}); // before all that stands at the same place
  }
  if (!far.empty())
    emitFarLaunches();
  if (unsigned head = afterIncludes(); !configured.empty())
    edits.insert(edits.begin(), {head, head, shielded(filledText("configured.txt", {{"NAME", configured}}))});
  for (const auto &[call, guard, text] : {std::tuple("optimlApart(", "OPTIML_APART", "apart.txt"),
                                          std::tuple("optimlHolds(", "OPTIML_HOLDS", "holds.txt"),
                                          std::tuple("optimlWithin(", "OPTIML_WITHIN", "within.txt"),
                                          std::tuple("optimlRange(", "OPTIML_RANGE", "range.txt")}) // for the others
    if (unsigned head = afterIncludes();
        llvm::any_of(edits, [&](const Edit &edit) { return edit.text.find(call) != std::string::npos; }))
      // A file that is emitted twice, or a header of it, has it already.
      edits.insert(edits.begin(), {head, head,
                                   std::string("#ifndef ") + guard + "\n#define " + guard + "\n" +
                                       shielded(filledText(text, {})) + "#endif\n"});
  if (llvm::Error e = assemble())
    return std::move(e);
  return std::move(result);
}

/// The actions of the recipe that concern this kernel.
std::string Emitter::recipeOf(const KernelRewrite &rewrite) const {
  std::string text;
  for (const Action &action : variant.recipe)
    if (siteKernel(action.site) == rewrite.original)
      text += (text.empty() ? "" : "; ") + action.str();
  return text;
}

llvm::Expected<EmittedProgram> optiml::emitProgram(const Variant &variant, const Program &host,
                                                   const std::string &fileName,
                                                   const std::map<std::string, std::string> &summaries,
                                                   const std::vector<LoopRewrite> &loops,
                                                   const std::set<std::string> &launchedElsewhere, EmitStyle style) {
  return Emitter(variant, host, fileName, summaries, loops, {}, launchedElsewhere, {}, style).run();
}

/// Of the file as it is.
static Variant originalOf(const Program &host) {
  Variant variant;
  variant.path = host.path();
  variant.original = variant.text = host.text();
  return variant;
}

llvm::Expected<EmittedProgram> optiml::emitFusions(const Program &host, const std::string &fileName,
                                                   llvm::ArrayRef<Fusion> fusions) {
  return Emitter(originalOf(host), host, fileName, {}, {}, fusions).run();
}

llvm::Expected<EmittedProgram> optiml::emitFarLaunches(const Program &host, const std::string &fileName,
                                                       const std::set<std::string> &symbols) {
  return Emitter(originalOf(host), host, fileName, {}, {}, {}, {}, symbols).run();
}
