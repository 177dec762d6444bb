//===- optiml-opt.cpp - apply a recipe to a CUDA file ---------------------===//
//
// As `opt` is for LLVM: reads a file, applies the actions given, prints the result. The work-horse of the transforms'
// tests.
//
//===----------------------------------------------------------------------===//
#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/ActionSpace/ProgramRewrites.h"
#include "optiml/Analysis/Read.h"
#include "optiml/Frontend/DeviceText.h"
#include "optiml/Frontend/LineMarks.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/FloatRule.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Transforms/TimeSteps.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <nlohmann/json.hpp>
#include <random>

using namespace optiml;
namespace cl = llvm::cl;

static cl::OptionCategory category("optiml-opt options");
static cl::opt<std::string> passes("passes", cl::desc("actions: transform[site]{name=value};…"), cl::cat(category));
static cl::opt<bool> listSites("list-sites", cl::desc("list the legal actions after the recipe"), cl::cat(category));
static cl::opt<bool> plan("print-plan", cl::desc("print launch plans and conditions as comments"), cl::cat(category));
static cl::opt<bool> kernelsOnly("kernels-only", cl::desc("print only the new kernels"), cl::cat(category));
static cl::opt<bool> deviceText("device-text",
                                cl::desc("print the kernels alone, as NVRTC compiles them: the new ones where the "
                                         "recipe makes some"),
                                cl::cat(category));
static cl::opt<bool> emit("emit", cl::desc("print the whole program with dispatchers, as optiml-clang compiles it"),
                          cl::cat(category));
static cl::opt<unsigned> randomSeed("random",
                                    cl::desc("after the recipe, one to eight legal actions drawn with this seed"),
                                    cl::cat(category));
static cl::opt<std::string> stepsFolder("steps",
                                        cl::desc("write what --emit would print after every action to 1.cu, 2.cu, ... "
                                                 "in this folder; list the files with their actions"),
                                        cl::value_desc("folder"), cl::cat(category));
static cl::opt<unsigned>
    launchLoopTile("launch-loop-tile",
                   cl::desc("with --launch-loops: which of the tiles for a stencil's steps, from 0"), cl::init(0),
                   cl::cat(category));
static cl::opt<bool> launchLoops("launch-loops",
                                 cl::desc("with --emit: replace loops of launches on the host; tell why others stay"),
                                 cl::cat(category));
static cl::opt<bool>
    fuseLaunches("fuse-launches",
                 cl::desc("fuse launches that follow one another, before anything else; tell why others stay apart"),
                 cl::cat(category));
static cl::opt<bool>
    reread("reread",
           cl::desc("after every action, print, parse and read the program again and check that the tree is the same"),
           cl::cat(category));
static cl::opt<std::string> blockHint("block", cl::desc("block shape of the launches, e.g. 16x16x1"),
                                      cl::cat(category));
static cl::opt<std::string> gridHint("grid", cl::desc("blocks of the launches, e.g. 16x32x1"), cl::cat(category));
static cl::opt<std::string>
    floats("fp", cl::desc("what may change in floating point: strict, reassoc (default), fast or tf32"),
           cl::cat(category));
static cl::list<std::string> scalarHints("scalar", cl::desc("an integer argument of the launches, e.g. n=24"),
                                         cl::cat(category));
static cl::opt<std::string> texts("texts", cl::desc("JSON file of kernel texts for replace-body actions"),
                                  cl::cat(category));
static cl::opt<bool> textAssembly("text-assembly", cl::desc("kernel texts may hold inline assembly"),
                                  cl::cat(category));
static cl::list<std::string> inputAndFlags(cl::Positional, cl::desc("file.cu [-- nvcc flags]"), cl::cat(category));

static int fail(llvm::Error error) {
  llvm::errs() << "optiml-opt: error: " << llvm::toString(std::move(error)) << "\n";
  return 1;
}

static void printPlan(const Variant &variant) {
  for (const KernelRewrite &rewrite : variant.rewrites) {
    for (const LaunchStep &step : rewrite.plan.steps)
      llvm::outs() << "// plan " << rewrite.original << ": " << step.kernel << "<<<(" << step.grid[0].str() << ", "
                   << step.grid[1].str() << ", " << step.grid[2].str() << "), (" << step.block[0].str() << ", "
                   << step.block[1].str() << ", " << step.block[2].str() << "), " << step.sharedBytes.str() << ">>>\n";
    for (const Condition &condition : rewrite.conditions)
      llvm::outs() << "// when " << condition.expression.str() << "  (" << condition.why << ")\n";
  }
}

/// read(print(tree)) == tree for every kernel of the variant.
static llvm::Error checkReread(const TreeVariant &variant, const CompileOptions &options, const Toolchain &toolchain) {
  auto program = Program::parse(variant.path, variant.text, options, toolchain, View::Device);
  if (!program)
    return program.takeError();
  for (const KernelRewrite &rewrite : variant.rewrites) {
    if (!variant.kernels.at(rewrite.original).tree)
      continue;
    const KernelDecl *decl = nullptr;
    for (const KernelDecl &candidate : (*program)->kernels())
      if (llvm::StringRef(candidate.name).ends_with(rewrite.twin))
        decl = &candidate;
    if (!decl)
      return makeError("the new kernel {0} is not found in the printed program", rewrite.twin);
    auto tree = readKernel(**program, *decl);
    if (!tree)
      return tree.takeError();
    if (!equal(**tree, *variant.kernels.at(rewrite.original).tree))
      return makeError("{0} does not read back as the same tree:\n{1}--- read back as\n{2}", rewrite.twin,
                       rewrite.twinText, print(**tree));
  }
  return llvm::Error::success();
}

namespace {

/// A kernel space, the actions taken in it, and what is asked of every step.
class Walk {
public:
  Walk(KernelSpace &space, const Program &device, const CompileOptions &options, const Toolchain &toolchain)
      : space(space), device(device), options(options), toolchain(toolchain) {}
  llvm::Error begin() {
    auto root = space.root();
    if (!root)
      return root.takeError();
    current = std::move(*root);
    return llvm::Error::success();
  }
  llvm::Error step(const Action &action);
  llvm::Error randomSteps(unsigned seed);
  /// The whole program, as optiml-clang compiles it.
  llvm::Expected<std::string> emitted();
  const SearchState &state() const { return current; }
  const Program &program() const { return device; }

private:
  KernelSpace &space;
  const Program &device;
  const CompileOptions &options;
  const Toolchain &toolchain;
  std::unique_ptr<Program> host; ///< parsed when it is needed
  SearchState current;
  unsigned steps = 0;
};

} // namespace

llvm::Error Walk::step(const Action &action) {
  auto next = space.apply(current, action);
  if (!next)
    return makeError("{0}: {1}", action.str(), llvm::toString(next.takeError()));
  current = std::move(*next);
  if (reread)
    if (llvm::Error e = checkReread(static_cast<const TreeVariant &>(*current.variant), options, toolchain))
      return e;
  if (stepsFolder.empty())
    return llvm::Error::success();
  auto text = emitted();
  if (!text)
    return text.takeError();
  llvm::SmallString<256> file(stepsFolder);
  llvm::sys::path::append(file, std::to_string(++steps) + ".cu");
  llvm::outs() << file << " " << action.str() << "\n";
  return writeFileAtomically(file.str().str(), *text);
}

llvm::Error Walk::randomSteps(unsigned seed) {
  std::mt19937 random(seed);
  auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  for (size_t count = 1 + below(8); count > 0; --count) {
    std::vector<Action> actions;
    for (const ActionTemplate &site : current.legal)
      for (const Params &params : site.values)
        actions.push_back({site.transform, site.site, params});
    if (actions.empty())
      break;
    if (llvm::Error e = step(actions[below(actions.size())]))
      return e;
  }
  return llvm::Error::success();
}

llvm::Expected<std::string> Walk::emitted() {
  if (!host) {
    auto parsed = Program::parse(device.path(), device.text(), options, toolchain, View::Host);
    if (!parsed)
      return parsed.takeError();
    host = std::move(*parsed);
  }
  FoundLoops loops;
  if (launchLoops)
    loops = findLoopRewrites(device, *host, false);
  for (LoopRewrite &rewrite : loops.rewrites)
    if (rewrite.idiom.step) {
      std::vector<TimeTile> tiles = timeTiles(*rewrite.idiom.step);
      if (launchLoopTile >= tiles.size())
        return makeError("there are {0} tiles", tiles.size());
      rewrite.idiom.tile = tiles[launchLoopTile];
    }
  for (const std::string &note : loops.notes)
    llvm::errs() << "optiml-opt: note: " << note << "\n";
  auto text = emitProgram(*current.variant, *host, host->path(), {}, loops.rewrites);
  if (!text)
    return text.takeError();
  for (const std::string &remark : text->remarks)
    llvm::errs() << remark << "\n";
  return withoutLineMarks(text->text);
}

static llvm::Expected<LaunchHints> launchHints(const CompileOptions &options) {
  LaunchHints hints;
  hints.arch = options.leastArch;
  if (!floats.empty()) {
    FloatRule rule;
    std::string problem;
    if (!FloatRule::parse(floats, rule, problem))
      return makeError("--fp={0}: {1}", floats, problem);
    hints.strictFloat = rule.isStrict();
    hints.approximate = rule.isFast();
    hints.tensorFloat = rule.allowsTensorCores();
  }
  for (auto [text, extents] : {std::pair(&blockHint, &hints.block), std::pair(&gridHint, &hints.grid)}) {
    if (text->empty())
      continue;
    llvm::SmallVector<llvm::StringRef, 3> parts;
    llvm::StringRef(*text).split(parts, 'x');
    *extents = {1, 1, 1};
    for (size_t i = 0; i < parts.size() && i < 3; ++i)
      if (parts[i].getAsInteger(10, (*extents)[i]))
        return makeError("bad {0} '{1}'; expected e.g. 16x16x1", text->ArgStr, text->getValue());
  }
  for (const std::string &text : scalarHints) {
    auto [name, value] = llvm::StringRef(text).split('=');
    if (value.getAsInteger(10, hints.scalars[name.str()]))
      return makeError("bad argument '{0}'; expected e.g. n=24", text);
  }
  return hints;
}

/// The program with launches fused that follow one another; tells why others stay apart.
static llvm::Expected<std::string> textWithFusions(const Program &device, const CompileOptions &options,
                                                   const Toolchain &toolchain) {
  auto host = Program::parse(device.path(), device.text(), options, toolchain, View::Host);
  if (!host)
    return host.takeError();
  FoundFusions found = findFusions(
      device, **host, floats == "strict", [](const std::string &) { return true; },
      [](const LaunchSite &, const LaunchSite &) { return true; }, /*overRows=*/true);
  for (const std::string &note : found.notes)
    llvm::errs() << "optiml-opt: note: " << note << "\n";
  auto emitted = emitFusions(**host, (*host)->path(), fusionsOf(found.fusions));
  if (!emitted)
    return emitted.takeError();
  return emitted->text;
}

/// What was asked for of the state at the end.
static llvm::Error printResult(Walk &walk) {
  const SearchState &state = walk.state();
  if (listSites) {
    for (const ActionTemplate &site : state.legal)
      for (const Params &params : site.values)
        llvm::outs() << Action{site.transform, site.site, params}.str() << "\n";
    return llvm::Error::success();
  }
  if (!stepsFolder.empty())
    return llvm::Error::success();
  if (plan)
    printPlan(*state.variant);
  if (deviceText) {
    std::vector<DeviceText::Insertion> twins;
    for (const KernelRewrite &rewrite : state.variant->rewrites)
      twins.push_back({rewrite.insertAt, rewrite.placed(rewrite.twinText)});
    const DeviceText device = DeviceText::of(walk.program());
    llvm::outs() << device.with(twins, [&](const std::string &) { return twins.empty(); });
    if (twins.empty())
      for (const std::string &kernel : device.instantiations())
        llvm::outs() << "// with " << kernel << "\n";
    return llvm::Error::success();
  }
  if (emit) {
    auto whole = walk.emitted();
    if (!whole)
      return whole.takeError();
    llvm::outs() << *whole;
    return llvm::Error::success();
  }
  if (kernelsOnly)
    for (const KernelRewrite &rewrite : state.variant->rewrites)
      llvm::outs() << rewrite.twinText;
  else
    llvm::outs() << state.variant->text;
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  char **end = argv + argc, **dashes = std::find(argv, end, llvm::StringRef("--"));
  std::vector<std::string> nvccArgs(dashes == end ? end : dashes + 1, end);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(int(dashes - argv), argv, "optiml-opt: applies OptiML's transforms to a CUDA file\n");
  if (inputAndFlags.size() != 1)
    return fail(makeError("give exactly one file"));
  auto toolchain = Toolchain::find(argv[0]);
  if (!toolchain)
    return fail(toolchain.takeError());
  nvccArgs.push_back(inputAndFlags[0]);
  CompileOptions options = CompileOptions::parse(nvccArgs);
  auto text = readFile(inputAndFlags[0]);
  if (!text)
    return fail(text.takeError());
  const std::string path = absolutePath(inputAndFlags[0]);
  auto program = Program::parseWithLaunches(path, inputAndFlags[0], *text, options, *toolchain, View::Device);
  if (!program)
    return fail(program.takeError());
  for (const std::string &wrong : (*program)->wrongDirectives())
    llvm::errs() << wrong << "\n";
  if (fuseLaunches) {
    auto fused = textWithFusions(**program, options, *toolchain);
    if (!fused)
      return fail(fused.takeError());
    program = Program::parse(path, *fused, options, *toolchain, View::Device);
    if (!program)
      return fail(program.takeError());
  }
  auto hints = launchHints(options);
  if (!hints)
    return fail(hints.takeError());
  auto space = KernelSpace::create(
      **program, [](const KernelDecl &) { return true; },
      [&](const KernelDecl &kernel) {
        LaunchHints own = *hints;
        auto tells = [&](const LaunchSite &site) { return site.block[0] && site.symbol == kernel.symbol; };
        if (listSites && blockHint.empty())
          if (auto site = llvm::find_if((*program)->launches(), tells); site != (*program)->launches().end())
            own.block = site->block;
        return own;
      });
  if (!space)
    return fail(space.takeError());
  for (const KernelSpace::Skipped &skipped : (*space)->skipped())
    llvm::errs() << "optiml-opt: note: kernel " << skipped.kernel << " is left alone: " << skipped.reason << "\n";
  for (const std::string &kernel : listSites &&passes.empty() ? (*space)->kernelNames() : std::vector<std::string>())
    if (std::string why = (*space)->obstacles(kernel); !why.empty())
      llvm::errs() << llvm::formatv("optiml-opt: note: {0}:{1}: {2} may only be tuned: {3}\n", inputAndFlags[0],
                                    (*space)->kernel(kernel)->tree->line, kernel, why);
  if (!texts.empty()) {
    auto content = readFile(texts);
    if (!content)
      return fail(content.takeError());
    auto table = std::make_shared<KernelTexts>();
    if (llvm::Error e = table->addAll(nlohmann::json::parse(*content, nullptr, /*allow_exceptions=*/false)))
      return fail(makeError("{0}: {1}", texts, llvm::toString(std::move(e))));
    (*space)->acceptTexts(
        {table,
         [&](const std::string &whole) { return Program::parse(path, whole, options, *toolchain, View::Device); },
         textAssembly});
  }
  auto recipe = parseRecipe(passes);
  if (!recipe)
    return fail(recipe.takeError());
  Walk walk(**space, **program, options, *toolchain);
  if (llvm::Error e = walk.begin())
    return fail(std::move(e));
  for (const Action &action : *recipe)
    if (llvm::Error e = walk.step(action))
      return fail(std::move(e));
  if (randomSeed.getNumOccurrences())
    if (llvm::Error e = walk.randomSteps(randomSeed))
      return fail(std::move(e));
  if (llvm::Error e = printResult(walk))
    return fail(std::move(e));
  return 0;
}
