//===- Emit.cpp - the optimized program as CUDA source --------------------===//
#include "optiml/Driver/Emit.h"
#include "DeducingLauncher.h"
#include "FuseText.h"
#include "LoopText.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <set>

using namespace optiml;

namespace {
/// Text to insert or to put in place of a range of the original.
struct Edit {
  unsigned begin, end;
  std::string text;
};

constexpr llvm::StringLiteral lineMark = " // OptiML";
constexpr llvm::StringLiteral supportMark = "// Written by OptiML: whether an optimized kernel may run, and how often it did.\n";

/// The class that counts paths, in a text that OptiML has written; empty in others.
std::string supportClassIn(llvm::StringRef text) {
  llvm::StringRef rest = text.split(supportMark).second.split("\nclass ").second;
  return rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; }).str();
}

class Emitter {
public:
  Emitter(const Variant &variant, const Program &host, const std::string &fileName,
          const std::map<std::string, std::string> &summaries, const std::vector<LoopRewrite> &loops,
          const std::vector<Fusion> &fusions = {})
      : variant(variant), host(host), fileName(fileName), summaries(summaries), loops(loops), fusions(fusions) {}
  llvm::Expected<EmittedProgram> run();

private:
  const Variant &variant;
  const Program &host;
  const std::string &fileName;
  const std::map<std::string, std::string> &summaries;
  const std::vector<LoopRewrite> &loops;
  const std::vector<Fusion> &fusions;
  std::vector<Edit> edits;
  EmittedProgram result;
  std::string helper;

  std::string freshIdentifier(const std::string &wish) const {
    std::string name = wish;
    for (unsigned i = 2; variant.original.find(name) != std::string::npos; ++i)
      name = wish + std::to_string(i);
    return name;
  }
  static unsigned parameterCount(const KernelRewrite &rewrite) {
    return rewrite.plan.steps.empty() ? 0 : unsigned(parameterNames(rewrite).size());
  }
  static std::vector<std::string> parameterNames(const KernelRewrite &rewrite);
  static std::string nameThere(const KernelRewrite &rewrite);
  std::string signature(const KernelRewrite &rewrite, const std::string &name, const std::map<std::string, std::string> &names) const;
  std::string dispatcher(const KernelRewrite &rewrite, const std::string &name);
  unsigned symbolsAt(const LaunchSite &site) const {
    std::set<std::string> symbols;
    for (const LaunchSite &other : host.launches())
      if (other.begin == site.begin && !other.symbol.empty())
        symbols.insert(other.symbol);
    return unsigned(symbols.size());
  }
  std::string chooser(const std::string &name, const std::vector<std::pair<const KernelRewrite *, std::string>> &dispatchers) const;
  std::string deducing(const KernelRewrite &rewrite, const std::string &name, const std::string &chooser) const;
  std::string support() const;
  std::string lineDirective(unsigned offset) const;
  unsigned afterIncludes() const;
  std::string recipeOf(const KernelRewrite &rewrite) const;
  bool inLoop(const LaunchSite &site) const;
  void emitLoops(const LoopRewrite &rewrite, std::map<std::string, std::string> &dispatchers);
  void emitFusion(const Fusion &fusion);
  static std::map<std::string, std::string> launchNames(const KernelRewrite &rewrite);
};
} // namespace

/// Names in "const float *a, int n": the last identifier of each item outside of brackets.
std::vector<std::string> Emitter::parameterNames(const KernelRewrite &rewrite) {
  std::vector<std::string> names;
  int depth = 0;
  std::string item;
  auto finish = [&] {
    llvm::StringRef text = llvm::StringRef(item).rtrim();
    size_t start = text.size();
    while (start > 0 && (llvm::isAlnum(text[start - 1]) || text[start - 1] == '_'))
      --start;
    if (!text.empty())
      names.push_back(text.substr(start).str());
    item.clear();
  };
  for (char c : rewrite.originalParameters) {
    depth += c == '<' || c == '(' || c == '[' ? 1 : c == '>' || c == ')' || c == ']' ? -1 : 0;
    if (c == ',' && depth == 0)
      finish();
    else
      item += c;
  }
  finish();
  return names;
}

/// What a dispatcher calls its own values, out of the way of everything that it names: the kernels, their parameters and
/// types.
std::map<std::string, std::string> Emitter::launchNames(const KernelRewrite &rewrite) {
  std::set<std::string> taken;
  std::string named = rewrite.originalParameters + " " + rewrite.original + " ", word;
  for (const LaunchStep &step : rewrite.plan.steps)
    named += step.kernel + " ";
  for (const ScratchBuffer &scratch : rewrite.plan.scratch)
    named += scratch.elementType + " " + scratch.name + " ";
  for (char c : named) {
    if (llvm::isAlnum(c) || c == '_') {
      word += c;
      continue;
    }
    taken.insert(word);
    word.clear();
  }
  std::map<std::string, std::string> result;
  for (const char *name : {"grid", "block", "shared", "stream", "path", "room", "kernel"}) {
    std::string use = name;
    while (taken.count(use))
      use = "launch_" + use;
    result[name] = use;
  }
  return result;
}

std::string Emitter::signature(const KernelRewrite &rewrite, const std::string &name,
                               const std::map<std::string, std::string> &names) const {
  return "static void " + name + "(dim3 " + names.at("grid") + ", dim3 " + names.at("block") + ", size_t " +
         names.at("shared") + ", cudaStream_t " + names.at("stream") +
         (rewrite.originalParameters.empty() ? "" : ",\n    " + rewrite.originalParameters) + ")";
}

/// "ns::scale<float>" -> "scale<float>": how it is called beside its definition.
static std::string unqualified(const std::string &name) {
  size_t scope = 0;
  int depth = 0;
  for (size_t i = 0; i + 1 < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (depth == 0 && name[i] == ':' && name[i + 1] == ':')
      scope = i + 2;
  }
  return name.substr(scope);
}

/// How the original is called where the twin stands.
std::string Emitter::nameThere(const KernelRewrite &rewrite) {
  std::string own = unqualified(rewrite.original);
  if (rewrite.besideOriginal && !llvm::is_contained(parameterNames(rewrite), own)) // a parameter would hide it
    return own;
  std::string name = "::" + rewrite.original;
  static const std::string anonymous = "(anonymous namespace)::";
  for (size_t at; (at = name.find(anonymous)) != std::string::npos;)
    name.erase(at, anonymous.size());
  return name;
}

/// What a call puts before the name of something that stands beside the twin.
static std::string qualifierOf(const KernelRewrite &rewrite, const LaunchSite &site) {
  return rewrite.besideOriginal ? site.callee.substr(0, site.callee.size() - unqualified(site.callee).size()) : "";
}

std::string Emitter::dispatcher(const KernelRewrite &rewrite, const std::string &name) {
  std::map<std::string, std::string> names = launchNames(rewrite);
  auto rename = [&](const std::string &n) -> std::string {
    size_t dot = n.find('.');
    auto it = names.find(n.substr(0, dot));
    if (it != names.end() && (dot != std::string::npos || n == "shared"))
      return it->second + (dot == std::string::npos ? "" : n.substr(dot));
    return n;
  };
  std::string arguments, allocations, room, steps, frees, tests;
  for (const std::string &parameter : parameterNames(rewrite))
    arguments += (arguments.empty() ? "" : ", ") + parameter;
  // One condition a line, each with its reason.
  for (const Condition &condition : rewrite.conditions)
    tests += "      && (" + condition.expression.cxx(rename) + ") // " + condition.why + "\n";
  for (const ScratchBuffer &scratch : rewrite.plan.scratch) {
    std::string bytes = "(" + scratch.elements.cxx(rename) + ") * sizeof(" + scratch.elementType + ")";
    allocations += "    " + scratch.elementType + " *" + scratch.name + " = nullptr;\n";
    room += (room.empty() ? "" : "\n        && ") + ("cudaMallocAsync((void **)&" + scratch.name) + ", " + bytes + ", " + names["stream"] +
            ") == cudaSuccess";
    if (scratch.zeroed)
      steps += "    cudaMemsetAsync(" + scratch.name + ", 0, " + bytes + ", " + names["stream"] + ");\n";
    frees += "    if (" + scratch.name + ")\n      cudaFreeAsync(" + scratch.name + ", " + names["stream"] + ");\n";
  }
  for (const LaunchStep &step : rewrite.plan.steps) {
    auto dim = [&](const std::array<IntExpr, 3> &e, const char *own) {
      bool same = e[0].str() == std::string(own) + ".x" && e[1].str() == std::string(own) + ".y" && e[2].str() == std::string(own) + ".z";
      if (same)
        return names[own];
      return "dim3(unsigned(" + e[0].cxx(rename) + "), unsigned(" + e[1].cxx(rename) + "), unsigned(" + e[2].cxx(rename) + "))";
    };
    std::string list;
    for (const std::string &argument : step.arguments)
      list += (list.empty() ? "" : ", ") + argument;
    steps += "    " + step.kernel + "<<<" + dim(step.grid, "grid") + ",\n        " + dim(step.block, "block") + ", " +
             step.sharedBytes.cxx(rename) + ", " + names["stream"] + ">>>(" + list + ");\n";
  }
  auto summary = summaries.find(rewrite.original);
  std::string text;
  text += "// OptiML: launches " + rewrite.twin + " in place of " + rewrite.original + " where that is right" +
          (summary == summaries.end() ? "" : " (" + summary->second + ")") + ".\n";
  text += signature(rewrite, name, names) + " {\n";
  const std::string &path = names["path"];
  text += "  static " + helper + " " + path + "(\"" + rewrite.original + "\");\n";
  text += "  if (" + path + ".enabled()\n" + tests;
  text += "  ) {\n";
  if (room.empty()) {
    text += "    " + path + ".count(true);\n" + steps + "    return;\n";
  } else { // without memory for what lies between two steps the original runs
    const std::string &flag = names["room"];
    text += allocations + "    bool " + flag + " = " + room + ";\n    if (" + flag + ") {\n      " + path + ".count(true);\n" + steps + "    }\n" +
            frees + "    if (" + flag + ")\n      return;\n    (void)cudaGetLastError();\n";
  }
  text += "  }\n  " + path + ".count(false);\n";
  text += "  " + nameThere(rewrite) + "<<<" + names["grid"] + ", " + names["block"] + ", " + names["shared"] + ", " + names["stream"] +
          ">>>(" + arguments + ");\n}\n";
  return text;
}

/// What a launch within a template calls, with the instantiation it names: choose(kernel<T>)(grid, block, shared, stream,
/// arguments…). Which instantiation that is shows only at run time, where several have the same parameters.
std::string Emitter::chooser(const std::string &name,
                             const std::vector<std::pair<const KernelRewrite *, std::string>> &dispatchers) const {
  std::string text = "\n\n// OptiML: launches within templates choose by the instantiation of the kernel.\n"
                     "namespace {\ntemplate <typename... Parameters> struct " + name + "_any {\n"
                     "  void (*kernel)(Parameters...);\n"
                     "  void operator()(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, Parameters... arguments) const {\n"
                     "    kernel<<<grid, block, shared, stream>>>(arguments...);\n  }\n};\n"
                     "template <typename... Parameters> " + name + "_any<Parameters...> " + name +
                     "(void (*kernel)(Parameters...)) { return {kernel}; }\n";
  std::vector<std::string> done;
  for (const auto &[rewrite, unused] : dispatchers) {
    if (llvm::is_contained(done, rewrite->originalParameters))
      continue;
    done.push_back(rewrite->originalParameters);
    std::map<std::string, std::string> names = launchNames(*rewrite);
    std::vector<std::string> parameters = parameterNames(*rewrite);
    std::string type = name + "_" + std::to_string(done.size()), kernel = names["kernel"];
    std::string launch = names["grid"] + ", " + names["block"] + ", " + names["shared"] + ", " + names["stream"], arguments;
    for (const std::string &parameter : parameters)
      arguments += (arguments.empty() ? "" : ", ") + parameter;
    std::string pointer = "void (*" + kernel + ")(" + rewrite->originalParameters + ")";
    text += "struct " + type + " {\n  " + pointer + ";\n  void operator()(dim3 " + names["grid"] + ", dim3 " + names["block"] +
            ", size_t " + names["shared"] + ", cudaStream_t " + names["stream"] +
            (parameters.empty() ? "" : ", " + rewrite->originalParameters) + ") const {\n";
    for (const auto &[other, dispatcher] : dispatchers)
      if (other->originalParameters == rewrite->originalParameters)
        text += "    if (" + kernel + " == " + nameThere(*other) + ")\n      return " + dispatcher + "(" + launch +
                (arguments.empty() ? "" : ", " + arguments) + ");\n";
    text += "    " + kernel + "<<<" + launch + ">>>(" + arguments + ");\n  }\n};\n";
    text += "inline " + type + " " + name + "(" + pointer + ") { return {" + kernel + "}; }\n";
  }
  return text + "} // namespace\n";
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
  std::string vector = loops.empty() ? "" : "#include <vector>\n";
  if (variant.original.find(supportMark) != std::string::npos)
    return vector;
  return "\n" + supportMark.str() + R"(// OPTIML_DISABLE=<kernel>|all restores the original; OPTIML_TRACE=1 prints the counts at exit.
#include <cstdio>
#include <cstdlib>
#include <cstring>
)" + vector + R"(namespace {
class )" + helper + R"( {
public:
  explicit )" + helper + R"((const char *kernel) : kernel(kernel) {
    const char *disabled = std::getenv("OPTIML_DISABLE");
    allowed = !disabled || (std::strcmp(disabled, "all") != 0 && std::strcmp(disabled, kernel) != 0);
    const char *trace = std::getenv("OPTIML_TRACE");
    tracing = trace && *trace && std::strcmp(trace, "0") != 0;
  }
  ~)" + helper + R"(() {
    if (tracing)
      std::fprintf(stderr, "OptiML: %s: %llu optimized, %llu original launches\n", kernel, optimized, original);
  }
  bool enabled() const { return allowed; }
  void count(bool fast) { ++(fast ? optimized : original); }

private:
  const char *kernel;
  bool allowed, tracing;
  unsigned long long optimized = 0, original = 0;
};
} // namespace
)";
}

/// What follows is the user's own text from `offset` on, as compilers and __LINE__ shall call it.
std::string Emitter::lineDirective(unsigned offset) const {
  std::string quoted;
  for (char c : fileName)
    quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  // The text may have been emitted before: then lines count from its last mark.
  llvm::StringRef before = llvm::StringRef(variant.original).take_front(offset);
  size_t line = 1, mark = before.rfind(lineMark.str() + "\n");
  if (mark != llvm::StringRef::npos) {
    llvm::StringRef number = before.take_front(mark).rsplit("\n#line ").second;
    if (number.empty())
      number = before.drop_front(6); // the first line
    number.consumeInteger(10, line);
    before = before.drop_front(mark + lineMark.size() + 1);
  }
  line += before.count('\n');
  return "#line " + std::to_string(line) + " \"" + quoted + "\"" + lineMark.str() + "\n";
}

std::string optiml::withoutLineDirectives(const std::string &emitted) {
  std::string result;
  llvm::StringRef rest = emitted;
  while (!rest.empty()) {
    auto [line, next] = rest.split('\n');
    if (!line.starts_with("#line ") || !line.ends_with(lineMark))
      result += rest.take_front(rest.size() - next.size()).str();
    rest = next;
  }
  return result;
}

/// How many template arguments the name ends with.
static unsigned templateArguments(llvm::StringRef name) {
  unsigned count = 0;
  int depth = 0;
  for (char c : unqualified(name.str())) {
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
  return llvm::StringRef(site.callee).rtrim().ends_with(">") && templateArguments(site.callee) == templateArguments(rewrite.original);
}

/// The template arguments that a launch gives, "<16>"; the rest is deduced.
static std::string givenArguments(const LaunchSite &site) {
  std::string callee = unqualified(site.callee);
  size_t at = callee.find('<');
  return at == std::string::npos ? "" : callee.substr(at);
}

std::string Emitter::deducing(const KernelRewrite &rewrite, const std::string &name, const std::string &chooser) const {
  const KernelDecl *kernel = host.findKernel(rewrite.originalSymbol);
  return kernel && kernel->decl ? deducingLauncher(*kernel->decl, name, chooser) : "";
}

/// What a dispatcher is called with in place of a launch: its configuration, and its arguments.
static std::string launchArguments(const LaunchSite &site) {
  std::string text = site.config[0] + ", " + site.config[1] + ", " + (site.config.size() > 2 ? site.config[2] : "0") + ", " +
                     (site.config.size() > 3 ? site.config[3] : "0");
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
void Emitter::emitLoops(const LoopRewrite &rewrite, std::map<std::string, std::string> &dispatchers) {
  const KernelRewrite &kernel = rewrite.kernel;
  LoopTextNames names;
  names.prefix = freshIdentifier(kernel.twin + "_loop");
  names.loop = names.prefix + "_launches";
  names.helper = helper;
  names.kernel = kernel.original;
  names.launch = dispatchers[kernel.originalSymbol];
  names.callee = nameThere(kernel);
  names.parameters = kernel.originalParameters;
  names.names = parameterNames(kernel);
  unsigned at = kernel.insertAt;
  LoopCopyNames copy;
  if (rewrite.copyBack) {
    const KernelRewrite &second = rewrite.copyBack->kernel;
    copy = {rewrite.copyBack->step, dispatchers[second.originalSymbol], nameThere(second), second.originalParameters, parameterNames(second)};
    at = std::max(at, second.insertAt);
  }
  edits.push_back({at, at, "\n" + loopText(rewrite.idiom, names, copy)});
  for (const LaunchLoop &loop : rewrite.loops) {
    std::string object = freshIdentifier("optiml_launches"), qualifier;
    for (const LaunchSite &site : host.launches())
      if (llvm::is_contained(loop.launches, site.begin)) {
        qualifier = qualifierOf(kernel, site);
        const char *add = rewrite.copyBack && site.symbol == rewrite.copyBack->kernel.originalSymbol ? ".addCopy(" : ".add(";
        edits.push_back({site.begin, site.end, object + add + launchArguments(site) + ")"});
        ++result.dispatched;
      }
    std::string used;
    if (rewrite.idiom.kind != LaunchIdiom::Kind::ExchangeStep && loop.pointersKnown && !rewrite.copyBack) {
      for (const std::string &pointer : loop.living)
        used += (used.empty() ? "" : ", ") + pointer;
      used = "\n" + object + ".used({" + used + "});";
    }
    edits.push_back({loop.begin, loop.begin, "{ // OptiML: its launches take place at the end\n" + qualifier + names.loop + " " + object + ";\n"});
    edits.push_back({loop.end, loop.end, used + "\n}"});
  }
}

/// The fused kernel and what launches it, beside the last of its parts; a launch that is put off becomes a variable.
void Emitter::emitFusion(const Fusion &fusion) {
  FuseTextNames names;
  names.name = fusion.kernel.state.rewrite.original;
  names.helper = helper;
  unsigned at = 0;
  for (const KernelState &state : fusion.parts) {
    const KernelRewrite &part = state.rewrite;
    names.parts.push_back({nameThere(part), part.original, part.originalParameters, parameterNames(part)});
    at = std::max(at, part.insertAt);
  }
  edits.push_back({at, at, "\n\n" + fuseText(fusion.kernel, names)});
  std::string waiting;
  for (size_t i = 0; i < fusion.launches.size(); ++i)
    for (const LaunchSite &site : host.launches()) {
      if (site.begin != fusion.launches[i] || site.inMacro)
        continue;
      std::string launch = qualifierOf(fusion.parts[i].rewrite, site) + names.launchType(i) + "(" + launchArguments(site) + ")";
      if (i + 1 < fusion.launches.size()) {
        std::string object = names.name + std::to_string(i);
        waiting += object + ", ";
        edits.push_back({site.begin, site.end, "const auto " + object + " = " + launch});
      } else {
        edits.push_back({site.begin, site.end, qualifierOf(fusion.parts[i].rewrite, site) + names.launcher() + "(" + waiting + launch + ")"});
      }
      ++result.dispatched;
      break;
    }
}

llvm::Expected<EmittedProgram> Emitter::run() {
  helper = supportClassIn(variant.original);
  if (helper.empty())
    helper = freshIdentifier("OptimlPath");
  const std::string &text = variant.original;
  std::string file = variant.path;
  // Launches of template kernels within templates, by the kernel's template: its rewritten instantiations and the places.
  struct Family {
    std::vector<std::pair<const KernelRewrite *, std::string>> dispatchers;
    std::map<unsigned, const LaunchSite *> sites;
  };
  std::map<std::string, Family> families;
  std::map<std::string, std::string> dispatchers; ///< by the kernel's symbol
  for (const KernelRewrite &rewrite : variant.rewrites) {
    std::string name = freshIdentifier(rewrite.twin + "_launch");
    unsigned count = parameterCount(rewrite);
    unsigned firstSite = unsigned(text.size());
    unsigned sites = 0;
    std::set<unsigned> replaced; // each instantiation of a function has the launches at the same places
    std::set<std::string> kept;
    for (const LaunchSite &site : host.launches()) {
      if (site.symbol != rewrite.originalSymbol && !(site.symbol.empty() && site.kernel == rewrite.original))
        continue;
      if (inLoop(site)) { // the loop's launches that are not replaced go through the dispatcher
        ++sites;
        continue;
      }
      auto keep = [&](const std::string &why) {
        if (!kept.insert(std::to_string(site.line) + ":" + std::to_string(site.begin) + why).second)
          return;
        result.remarks.push_back(llvm::formatv("{0}:{1}: this launch of {2} keeps the original kernel: {3}", file,
                                               site.line, rewrite.original, why));
      };
      if (site.inMacro) {
        keep("it is written by a macro");
        continue;
      }
      if (site.arguments.size() != count) {
        keep("it relies on default arguments");
        continue;
      }
      if (site.inTemplate) {
        std::set<std::string> kernels;
        for (const LaunchSite &other : host.launches())
          if (other.begin == site.begin && !other.symbol.empty())
            kernels.insert(llvm::StringRef(other.kernel).split('<').first.str());
        if (kernels.size() > 1 || (!llvm::StringRef(rewrite.original).ends_with(">") && symbolsAt(site) > 1)) {
          keep("it stands in a template that launches different kernels");
          continue;
        }
      }
      if (!replaced.insert(site.begin).second)
        continue;
      if (site.inTemplate && llvm::StringRef(rewrite.original).ends_with(">")) {
        if (!namesInstantiation(site, rewrite) && (!rewrite.besideOriginal || deducing(rewrite, "", "").empty())) {
          keep("it stands in a template and leaves the kernel's template arguments to a deduction that cannot be repeated");
          continue;
        }
        if (site.topLevelBegin < rewrite.insertAt) {
          keep("it stands in a template before the kernel");
          continue;
        }
        // Those beside the definition, and those elsewhere, stand at one place each.
        Family &family = families[rewrite.original.substr(0, rewrite.original.find('<')) + (rewrite.besideOriginal ? "" : "@" + std::to_string(rewrite.insertAt))];
        if (family.dispatchers.empty() || family.dispatchers.back().first != &rewrite)
          family.dispatchers.push_back({&rewrite, name});
        family.sites[site.begin] = &site;
        ++sites;
        continue;
      }
      edits.push_back({site.begin, site.end, qualifierOf(rewrite, site) + name + "(" + launchArguments(site) + ")"});
      firstSite = std::min(firstSite, rewrite.original.find("::") == std::string::npos ? site.outermostBegin : site.topLevelBegin);
      ++sites;
    }
    if (!sites)
      continue;
    result.dispatched += sites;
    dispatchers[rewrite.originalSymbol] = name;
    if (firstSite < rewrite.insertAt)
      edits.push_back({firstSite, firstSite, signature(rewrite, name, launchNames(rewrite)) + ";\n\n"});
    edits.push_back({rewrite.insertAt, rewrite.insertAt,
                     "\n\n// OptiML: " + rewrite.original + ", rewritten by " + recipeOf(rewrite) + "\n" +
                         rewrite.twinText + "\n" + dispatcher(rewrite, name)});
  }
  for (const LoopRewrite &rewrite : loops)
    emitLoops(rewrite, dispatchers);
  for (const Fusion &fusion : fusions)
    emitFusion(fusion);
  for (const auto &[kernel, family] : families) {
    std::string name = freshIdentifier(unqualified(kernel.substr(0, kernel.find('@'))) + "_optiml_choose");
    unsigned at = 0;
    for (const auto &[rewrite, dispatcher] : family.dispatchers)
      at = std::max(at, rewrite->insertAt);
    const KernelRewrite &one = *family.dispatchers.front().first;
    std::string text = chooser(name, family.dispatchers), deduced;
    for (const auto &[begin, site] : family.sites) {
      bool named = namesInstantiation(*site, one);
      if (!named && deduced.empty()) {
        deduced = freshIdentifier(name + "_deduced");
        text += deducing(one, deduced, name);
      }
      std::string call = named ? name + "(" + site->callee + ")" : deduced + givenArguments(*site);
      edits.push_back({site->begin, site->end, qualifierOf(one, *site) + call + "(" + launchArguments(*site) + ")"});
    }
    edits.push_back({at, at, text});
  }
  if (result.dispatched) {
    unsigned head = afterIncludes();
    edits.push_back({head, head, support()});
  }
  std::stable_sort(edits.begin(), edits.end(), [](const Edit &a, const Edit &b) { return a.begin < b.begin; });
  unsigned at = 0;
  result.text = lineDirective(0);
  for (const Edit &edit : edits) {
    if (edit.begin < at)
      return makeError("{0}: two launches overlap in the source and cannot both be rewritten", file);
    result.text += text.substr(at, edit.begin - at) + edit.text;
    at = edit.end;
    if (edit.begin == edit.end)
      result.text += (edit.text.ends_with("\n") ? "" : "\n") + lineDirective(at);
  }
  result.text += text.substr(at);
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
                                                   const std::vector<LoopRewrite> &loops) {
  return Emitter(variant, host, fileName, summaries, loops).run();
}

llvm::Expected<EmittedProgram> optiml::emitFusions(const Program &host, const std::string &fileName, const std::vector<Fusion> &fusions) {
  Variant variant;
  variant.path = host.path();
  variant.original = variant.text = host.text();
  return Emitter(variant, host, fileName, {}, {}, fusions).run();
}
