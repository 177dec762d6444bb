//===- TuneSearch.cpp - the searches that a project needs -----------------===//
#include "FinalCompile.h"
#include "GpuProgram.h"
#include "LaunchClasses.h"
#include "Tuning.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Driver/CompileLog.h"
#include "optiml/Frontend/CompileOptions.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Interrupt.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace optiml;

/// `path` as seen from `folder`.
static std::string pathFrom(llvm::StringRef folder, llvm::StringRef path) {
  llvm::SmallString<256> result(path);
  llvm::sys::path::make_absolute(folder, result);
  llvm::sys::path::remove_dots(result, /*remove_dot_dot=*/true);
  return result.str().str();
}

TunedUnit optiml::unitOf(const clang::tooling::CompileCommand &command) {
  const std::vector<std::string> &line = command.CommandLine;
  size_t begin = 0; // behind launchers and the compiler
  for (size_t i = 0; i < line.size() && !llvm::StringRef(line[i]).starts_with("-"); ++i)
    if (llvm::StringRef name = llvm::sys::path::filename(line[i]);
        name.starts_with("nvcc") || name.starts_with("optiml-clang") || i == 0)
      begin = i + 1;
  const std::vector<std::string> arguments(line.begin() + long(begin), line.end());
  TunedUnit unit;
  unit.folder = command.Directory;
  unit.path = pathFrom(command.Directory, command.Filename);
  const CompileOptions whole = CompileOptions::parse(arguments);
  unit.output = pathFrom(command.Directory,
                         whole.output.empty() ? (llvm::sys::path::stem(unit.path) + ".o").str() : whole.output);
  // Of a line that compiles several sources, or links too, what makes an object of this one.
  for (const std::string &argument : withoutOutputs(arguments))
    if (!llvm::is_contained(whole.inputs, argument) || pathFrom(command.Directory, argument) == unit.path)
      unit.arguments.push_back(argument);
  if (!whole.compileOnly)
    unit.arguments.push_back("-c");
  return unit;
}

double RecordedKernel::shareOf(const ThreadRange &threads) const {
  double all = 0, own = 0;
  for (const auto &[count, cost] : costs) {
    all += cost;
    own += threads.contains(count) ? cost : 0;
  }
  return all > 0 ? own / all : 1;
}

double RecordedKernel::launchesWith(const ThreadRange &threads) const {
  double number = 0;
  for (const auto &[count, times] : launchesOf)
    number += threads.contains(count) ? times : 0;
  return number;
}

std::vector<TuneSearch> optiml::searchesOf(const std::vector<TunedUnit> &units,
                                           const std::map<std::string, RecordedKernel> &kernels) {
  std::vector<TuneSearch> searches;
  for (const TunedUnit &unit : units) {
    TuneSearch whole{&unit, {}, {}, 0, "", {}};
    std::vector<TuneSearch> others;
    for (const auto &[symbol, name] : unit.kernels) {
      const RecordedKernel &kernel = kernels.at(symbol);
      const std::vector<ThreadRange> classes = launchClasses(kernel.costs);
      if (classes.size() == 1) {
        whole.kernels[symbol] = name;
        whole.work += kernel.work;
        continue;
      }
      for (const ThreadRange &threads : classes)
        others.push_back({&unit, {{symbol, name}}, threads, kernel.work * kernel.shareOf(threads), "", {}});
    }
    if (!whole.kernels.empty())
      searches.push_back(std::move(whole));
    llvm::append_range(searches, others);
  }
  llvm::stable_sort(searches, [](const TuneSearch &a, const TuneSearch &b) { return a.work > b.work; });
  return searches;
}

// After Ctrl-C, for a search to compile what it has found.
static constexpr double graceSeconds = 60;

std::string optiml::runSearch(const std::string &program, const TuneOptions &options, const TuneSearch &search,
                              double seconds, const std::string &recipesFile, const std::string &recipe) {
  auto scratch = TempDir::create("optiml-tune");
  if (!scratch)
    return llvm::toString(scratch.takeError());
  std::vector<std::string> argv = {program};
  std::string limit = llvm::formatv("{0}s", std::max<long>(1, std::lround(seconds)));
  argv.push_back("-O-search=" + (options.evaluations ? std::to_string(options.evaluations) + "," : "") + limit);
  argv.push_back("--optiml-kernel=" + expressionFor(llvm::to_vector(llvm::make_second_range(search.kernels))));
  argv.insert(argv.end(), options.ownFlags.begin(), options.ownFlags.end());
  argv.insert(argv.end(), {"--optiml-strict", "--optiml-workload=" + llvm::join(options.recordings, ":"),
                           "--optiml-save-recipes=" + recipesFile});
  if (!search.threads.isAll())
    argv.push_back("--optiml-threads=" + search.threads.str());
  if (!recipe.empty()) // to be evaluated anew
    argv.insert(argv.end(), {"--optiml-recipe=" + recipe, "--optiml-store=none"});
  argv.insert(argv.end(), search.unit->arguments.begin(), search.unit->arguments.end());
  argv.insert(argv.end(), {"-o", scratch->file("output")});
  ProcessOptions process;
  process.workingDirectory = search.unit->folder;
  process.inheritOutput = true;
  process.env[envCompileLog] = ""; // a search is no part of the build
  process.cancel = &interrupted();
  process.graceSeconds = graceSeconds;
  auto result = runProcess(argv, process);
  if (!result)
    return llvm::toString(result.takeError());
  return result->exitCode || result->signal ? "the search failed: " + result->describe() : "";
}
