//===- ApplyCommand.cpp - the program optiml-apply ------------------------===//
#include "optiml/Driver/ApplyCommand.h"
#include "SourceRecipes.h"
#include "optiml/Frontend/LineMarks.h"
#include "optiml/Report/TextDiff.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "clang/Format/Format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace optiml;

static constexpr const char *help = R"(usage: optiml apply --recipes=FILE [options] [nvcc flags] file.cu

Writes the new kernels of a file of recipes (optiml-clang --optiml-save-recipes) into the source, as a person would:
without dispatchers that count and can be switched off, and formatted by the project's .clang-format.

  --recipes=FILE        the recipes
  --in-place            change file.cu; otherwise the new source goes to standard output
  -o FILE               or to FILE
  --diff                a unified diff in its place
  --accept-conditions   the conditions of the new kernels are taken for true, and a new kernel takes the original's
                        place; otherwise the original stays, and runs where they do not hold, unless the file is
                        compiled with -DACCEPT_LAUNCH_CONDITIONS

Exit code 0: applied; 1: no recipe applies; 2: something is wrong. Check the result: optiml verify old.cu new.cu
)";

namespace {
struct Options {
  std::string recipes, output = "-", path;
  std::vector<std::string> nvcc; ///< the source among them
  bool inPlace = false, accept = false, diff = false, showHelp = false;
};
} // namespace

static llvm::Expected<Options> parse(llvm::ArrayRef<char *> arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    llvm::StringRef argument = arguments[i];
    if (argument == "--help" || argument == "-h")
      options.showHelp = true;
    else if (argument == "--in-place")
      options.inPlace = true;
    else if (argument == "--accept-conditions")
      options.accept = true;
    else if (argument == "--diff")
      options.diff = true;
    else if (argument.consume_front("--recipes="))
      options.recipes = argument.str();
    else if (argument == "-o" && i + 1 < arguments.size())
      options.output = arguments[++i];
    else
      options.nvcc.push_back(argument.str());
  }
  if (options.showHelp)
    return options;
  const CompileOptions compile = CompileOptions::parse(options.nvcc);
  if (!compile.tooHard.empty())
    return makeError("{0}", compile.tooHard);
  if (compile.inputs.size() != 1)
    return makeError("name one CUDA source; optiml apply --help tells how");
  if (options.recipes.empty())
    return makeError("--recipes=FILE is missing; optiml-clang -O-search --optiml-save-recipes=FILE writes one");
  if (options.inPlace && options.output != "-")
    return makeError("--in-place and -o exclude each other");
  options.path = compile.inputs.front();
  return options;
}

/// The new lines, laid out as the project has it. Where it has no .clang-format, they stay as they are.
static llvm::Expected<std::string> formatted(const std::string &path, const std::string &before,
                                             const std::string &after) {
  auto style = clang::format::getStyle("file", path, "none", after);
  auto pairs = sideBySide(before, after);
  if (!style || !pairs)
    return llvm::joinErrors(style.takeError(), pairs.takeError());
  std::vector<unsigned> begins = {0}; // of lines
  for (size_t at = 0; (at = after.find('\n', at)) != std::string::npos;)
    begins.push_back(unsigned(++at));
  begins.push_back(unsigned(after.size()));
  std::vector<clang::tooling::Range> changed;
  for (const LinePair &pair : *pairs)
    if (!pair.same && pair.after >= 0)
      changed.emplace_back(begins[size_t(pair.after)], begins[size_t(pair.after) + 1] - begins[size_t(pair.after)]);
  return clang::tooling::applyAllReplacements(after, clang::format::reformat(*style, after, changed, path));
}

/// That of the records, where the command line names none.
static llvm::Expected<CompileOptions> compileOptions(const Options &options,
                                                     const std::vector<const KernelRecipe *> &records) {
  CompileOptions compile = CompileOptions::parse(options.nvcc);
  std::set<unsigned> known;
  for (const KernelRecipe *record : records)
    known.insert(record->arch);
  if (compile.archs.size() == 1)
    return compile;
  if (!compile.archs.empty() || known.size() != 1) {
    std::string names;
    for (unsigned arch : known)
      names += " -arch=sm_" + std::to_string(arch);
    return makeError("the new source is written for one GPU; name it. There are recipes for:{0}", names);
  }
  std::vector<std::string> named = options.nvcc;
  named.push_back("-arch=sm_" + std::to_string(*known.begin()));
  return CompileOptions::parse(named);
}

static llvm::Error write(const Options &options, const std::string &before, const std::string &after) {
  const std::string target = options.inPlace ? options.path : options.output;
  if (!options.diff && target != "-")
    return writeFileAtomically(target, after);
  if (!options.diff) {
    llvm::outs() << after;
    return llvm::Error::success();
  }
  auto diff = unifiedDiff(before, after, "a/" + options.path, "b/" + options.path);
  if (!diff)
    return diff.takeError();
  if (options.output != "-")
    return writeFileAtomically(options.output, *diff);
  llvm::outs() << *diff;
  return llvm::Error::success();
}

/// Whether a recipe was applied.
static llvm::Expected<bool> apply(const Options &options, const Toolchain &toolchain) {
  auto file = RecipeFile::read(options.recipes);
  auto before = readFile(options.path);
  if (!file || !before)
    return llvm::joinErrors(file.takeError(), before.takeError());
  const std::vector<const KernelRecipe *> records = file->of(absolutePath(options.path));
  if (records.empty())
    return makeError("'{0}' holds no recipe for {1}", options.recipes, options.path);
  auto compile = compileOptions(options, records);
  if (!compile)
    return compile.takeError();
  std::map<std::pair<std::string, unsigned>, unsigned> classes;
  for (const KernelRecipe *record : records)
    if (++classes[{record->symbol, record->arch}] > 1 && options.accept)
      return makeError("there are recipes for several classes of launches of {0}, which conditions tell apart; leave "
                       "--accept-conditions out",
                       record->kernel);
  FloatRule floats;
  std::string problem;
  if (!FloatRule::parse(records.front()->fp, floats, problem))
    return makeError("'{0}': {1}", options.recipes, problem);
  SourceRecipes source(*file, *compile, toolchain, floats, options.path);
  source.setStyle(options.accept ? EmitStyle::Accepted : EmitStyle::Plain);
  auto text = source.run();
  for (const std::string &why : source.stale())
    llvm::errs() << "optiml-apply: warning: " << why << "\n";
  for (const std::string &remark : source.remarks())
    llvm::errs() << remark << "\n";
  if (!text)
    return text.takeError();
  if (!*text)
    return false;
  auto after = formatted(options.path, *before, withoutLineMarks(**text));
  if (!after)
    return after.takeError();
  if (llvm::Error error = write(options, *before, *after))
    return std::move(error);
  return true;
}

int optiml::runApplyCommand(int argc, char **argv) {
  auto options = parse({argv + 1, argv + argc});
  if (options && options->showHelp) {
    llvm::outs() << help;
    return 0;
  }
  auto toolchain = Toolchain::find(argv[0]);
  llvm::Error error = llvm::joinErrors(options.takeError(), toolchain.takeError());
  if (!error) {
    auto applied = apply(*options, *toolchain);
    if (applied)
      return *applied ? 0 : 1;
    error = applied.takeError();
  }
  llvm::errs() << "optiml-apply: error: " << llvm::toString(std::move(error)) << "\n";
  return 2;
}
