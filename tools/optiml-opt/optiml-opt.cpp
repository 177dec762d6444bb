//===- optiml-opt.cpp - apply a recipe to a CUDA file ---------------------===//
//
// As `opt` is for LLVM: reads a file, applies the actions given, prints the result. The work-horse of the transforms' tests.
//
//===----------------------------------------------------------------------===//
#include "optiml/Analysis/Read.h"
#include "optiml/Driver/Emit.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Support/FloatRule.h"
#include "optiml/Transforms/KernelSpace.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <nlohmann/json.hpp>

using namespace optiml;
namespace cl = llvm::cl;

static cl::OptionCategory category("optiml-opt options");
static cl::opt<std::string> passes("passes", cl::desc("actions: transform[site]{name=value};…"), cl::cat(category));
static cl::opt<bool> listSites("list-sites", cl::desc("list the legal actions after the recipe"), cl::cat(category));
static cl::opt<bool> plan("print-plan", cl::desc("print launch plans and conditions as comments"), cl::cat(category));
static cl::opt<bool> kernelsOnly("kernels-only", cl::desc("print only the new kernels"), cl::cat(category));
static cl::opt<bool> emit("emit", cl::desc("print the whole program with dispatchers, as optiml-clang compiles it"), cl::cat(category));
static cl::opt<bool> launchLoops("launch-loops", cl::desc("with --emit: replace loops of launches on the host; tell why others stay"), cl::cat(category));
static cl::opt<bool> fuseLaunches("fuse-launches", cl::desc("fuse launches that follow one another, before anything else; tell why others stay apart"), cl::cat(category));
static cl::opt<bool> reread("reread", cl::desc("after every action, print, parse and read the program again and check that the tree is the same"), cl::cat(category));
static cl::opt<std::string> blockHint("block", cl::desc("block shape of the launches, e.g. 16x16x1"), cl::cat(category));
static cl::opt<std::string> floats("fp", cl::desc("what may change in floating point: strict, reassoc (default), fast or tf32"), cl::cat(category));
static cl::list<std::string> scalarHints("scalar", cl::desc("an integer argument of the launches, e.g. n=24"), cl::cat(category));
static cl::opt<std::string> texts("texts", cl::desc("JSON file of kernel texts for replace-body actions"), cl::cat(category));
static cl::opt<bool> textAssembly("text-assembly", cl::desc("kernel texts may hold inline assembly"), cl::cat(category));
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

int main(int argc, char **argv) {
  std::vector<const char *> own;
  std::vector<std::string> nvccArgs;
  bool after = false;
  for (int i = 0; i < argc; ++i) {
    if (!after && std::string(argv[i]) == "--")
      after = true;
    else if (after)
      nvccArgs.push_back(argv[i]);
    else
      own.push_back(argv[i]);
  }
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(int(own.size()), own.data(), "optiml-opt: applies OptiML's transforms to a CUDA file\n");
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
  llvm::SmallString<256> path(inputAndFlags[0]);
  llvm::sys::fs::make_absolute(path);
  auto program = Program::parse(path.str().str(), *text, options, *toolchain, View::Device);
  if (!program)
    return fail(program.takeError());
  if (fuseLaunches) {
    auto host = Program::parse(path.str().str(), *text, options, *toolchain, View::Host);
    if (!host)
      return fail(host.takeError());
    FoundFusions found = findFusions(**program, **host, floats == "strict", [](const std::string &) { return true; }, /*overRows=*/true);
    for (const std::string &note : found.notes)
      llvm::errs() << "optiml-opt: note: " << note << "\n";
    auto emitted = emitFusions(**host, (*host)->path(), found.fusions);
    if (!emitted)
      return fail(emitted.takeError());
    *text = emitted->text;
    program = Program::parse(path.str().str(), *text, options, *toolchain, View::Device);
    if (!program)
      return fail(program.takeError());
  }
  LaunchHints hints;
  hints.arch = options.leastArch;
  if (!floats.empty()) {
    FloatRule rule;
    std::string problem;
    if (!FloatRule::parse(floats, rule, problem))
      return fail(makeError("--fp={0}: {1}", floats, problem));
    hints.strictFloat = rule.isStrict();
    hints.approximate = rule.isFast();
    hints.tensorFloat = rule.allowsTensorCores();
  }
  if (!blockHint.empty()) {
    llvm::SmallVector<llvm::StringRef, 3> parts;
    llvm::StringRef(blockHint).split(parts, 'x');
    hints.block = {1, 1, 1};
    for (size_t i = 0; i < parts.size() && i < 3; ++i)
      if (parts[i].getAsInteger(10, hints.block[i]))
        return fail(makeError("bad block shape '{0}'; expected e.g. 16x16x1", blockHint));
  }
  for (const std::string &text : scalarHints) {
    auto [name, value] = llvm::StringRef(text).split('=');
    if (value.getAsInteger(10, hints.scalars[name.str()]))
      return fail(makeError("bad argument '{0}'; expected e.g. n=24", text));
  }
  auto space = KernelSpace::create(**program, [](const KernelDecl &) { return true; },
                                   [&](const KernelDecl &) { return hints; });
  if (!space)
    return fail(space.takeError());
  for (const KernelSpace::Skipped &skipped : (*space)->skipped())
    llvm::errs() << "optiml-opt: note: kernel " << skipped.kernel << " is left alone: " << skipped.reason << "\n";
  if (!texts.empty()) {
    auto content = readFile(texts);
    if (!content)
      return fail(content.takeError());
    auto table = std::make_shared<KernelTexts>();
    if (llvm::Error e = table->addAll(nlohmann::json::parse(*content, nullptr, /*allow_exceptions=*/false)))
      return fail(makeError("{0}: {1}", texts, llvm::toString(std::move(e))));
    (*space)->acceptTexts({table,
                           [&](const std::string &whole) {
                             return Program::parse(path.str().str(), whole, options, *toolchain, View::Device);
                           },
                           textAssembly});
  }
  auto recipe = parseRecipe(passes);
  if (!recipe)
    return fail(recipe.takeError());
  auto state = (*space)->root();
  if (!state)
    return fail(state.takeError());
  for (const Action &action : *recipe) {
    auto next = (*space)->apply(*state, action);
    if (!next)
      return fail(makeError("{0}: {1}", action.str(), llvm::toString(next.takeError())));
    state = std::move(next);
    if (reread)
      if (llvm::Error e = checkReread(static_cast<const TreeVariant &>(*state->variant), options, *toolchain))
        return fail(std::move(e));
  }
  if (listSites) {
    for (const ActionTemplate &site : state->legal)
      for (const Params &params : site.values)
        llvm::outs() << Action{site.transform, site.site, params}.str() << "\n";
    return 0;
  }
  if (plan)
    printPlan(*state->variant);
  if (emit) {
    auto host = Program::parse(path.str().str(), *text, options, *toolchain, View::Host);
    if (!host)
      return fail(host.takeError());
    FoundLoops loops;
    if (launchLoops)
      loops = findLoopRewrites(**program, **host, false);
    for (const std::string &note : loops.notes)
      llvm::errs() << "optiml-opt: note: " << note << "\n";
    auto emitted = emitProgram(*state->variant, **host, (*host)->path(), {}, loops.rewrites);
    if (!emitted)
      return fail(emitted.takeError());
    for (const std::string &remark : emitted->remarks)
      llvm::errs() << remark << "\n";
    llvm::outs() << withoutLineDirectives(emitted->text);
    return 0;
  }
  if (kernelsOnly)
    for (const KernelRewrite &rewrite : state->variant->rewrites)
      llvm::outs() << rewrite.twinText;
  else
    llvm::outs() << state->variant->text;
  return 0;
}
