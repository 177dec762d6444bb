//===- TuneCommand.cpp - searches a project's recorded kernels ------------===//
//
// Finds the sources of the recorded kernels by the project's compile_commands.json, and searches each of them on the
// recording, one after the other, by optiml-clang -O-search -c. What is found goes into a file of recipes.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/TuneCommand.h"
#include "BuildCommands.h"
#include "FinalCompile.h"
#include "GpuProgram.h"
#include "LaunchClasses.h"
#include "Tuning.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Driver/CompileLog.h"
#include "optiml/Driver/Flags.h"
#include "optiml/Frontend/Program.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Interrupt.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/Signature.h"
#include "optiml/Workload/Workload.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace optiml;

namespace {

constexpr const char *help = R"(usage: optiml tune -p BUILD [options] WORKLOAD...
       optiml tune -p BUILD [options] --run='COMMAND ARGUMENTS...'
       optiml tune -p BUILD --check [options] [WORKLOAD...]

Searches the recorded kernels of a project, and writes recipes that its builds apply.

  -p BUILD           folder of the project's compile_commands.json, or the one
                     that OPTIML_COMPILE_LOG named when it was built
  --recipes=FILE     file of recipes to write (optiml.recipes)
  --seconds=N        of all searches together (600)
  --evaluations=N    of one search at most; 0: no limit (200)
  --check            search nothing: tell which recipes still apply, and with
                     recordings measure these again
  --run=COMMAND      record this first, into app.workload
  --rebuild          remove the objects that must be made again
  --optiml-...       is passed to each search (optiml-clang --optiml-help)
  --help             this text
)";

class TuneRun {
public:
  TuneRun(std::string self, TuneOptions options) : self(std::move(self)), options(std::move(options)) {}
  llvm::Error run();

private:
  std::string programBeside(llvm::StringRef name) const;
  llvm::Error record();
  llvm::Error readRecordings();
  double secondsOf(llvm::StringRef symbol) const;
  llvm::Error findUnits(const Toolchain &toolchain);
  llvm::Error addLaunches(TunedUnit &unit, const Program &device, const CompileOptions &compile,
                          const Toolchain &toolchain);
  llvm::Error searchAll();
  llvm::Error nameOtherFiles(RecipeFile &recipes) const;

  std::string self; ///< this program
  TuneOptions options;
  Tuning tuning;
};

} // namespace

/// The path of another of OptiML's programs.
std::string TuneRun::programBeside(llvm::StringRef name) const {
  return (llvm::sys::path::parent_path(self) + "/" + name).str();
}

llvm::Error TuneRun::readRecordings() {
  for (const std::string &folder : options.recordings) {
    Workload workload;
    std::string error;
    if (!Workload::read(folder, workload, error))
      return makeError("{0}", error);
    for (const LaunchImage &launch : workload.launches) {
      RecordedKernel &kernel = tuning.kernels[launch.kernel];
      const uint64_t threads = threadsOf(launch);
      kernel.name = launch.name;
      kernel.launches += launch.weight;
      kernel.launchesOf[threads] += launch.weight;
      kernel.costs[threads] += launchCost(launch.weight, threads);
      kernel.work += launchCost(launch.weight, threads);
    }
    if (const std::string file = folder + "/times.json"; llvm::sys::fs::exists(file)) {
      auto own = KernelTimes::read(file);
      if (!own)
        return own.takeError();
      tuning.times.add(*own);
    }
  }
  if (!tuning.times.kernels.empty())
    for (auto &[symbol, kernel] : tuning.kernels)
      kernel.work = secondsOf(symbol);
  return llvm::Error::success();
}

double TuneRun::secondsOf(llvm::StringRef symbol) const {
  double seconds = 0;
  for (const KernelTime &k : tuning.times.kernels)
    if (sameFunction(k.symbol, symbol.str()))
      seconds += k.seconds;
  return seconds;
}

llvm::Error TuneRun::findUnits(const Toolchain &toolchain) {
  auto commands = commandsOf(options.buildFolder);
  if (!commands)
    return commands.takeError();
  std::set<std::string> taken, names;
  for (const auto &[symbol, kernel] : tuning.kernels)
    names.insert(plainName(demangled(symbol)));
  for (const clang::tooling::CompileCommand &command : *commands) {
    if (std::error_code e = llvm::sys::fs::set_current_path(command.Directory)) { // files of options, include folders
      llvm::errs() << "optiml-tune: warning: " << command.Directory << ": " << e.message() << "\n";
      continue;
    }
    TunedUnit unit = unitOf(command);
    auto text = readFile(unit.path);
    if (!text) {
      llvm::errs() << "optiml-tune: warning: " << llvm::toString(text.takeError()) << "\n";
      continue;
    }
    CompileOptions compile = CompileOptions::parse(unit.arguments);
    if (compile.inputs.size() != 1 || !compile.tooHard.empty() || !mentions(unit.path, *text, compile, names))
      continue;
    auto program = Program::parseWithLaunches(unit.path, unit.path, *text, compile, toolchain, View::Device);
    if (!program) {
      llvm::errs() << "optiml-tune: warning: " << unit.path << " is left out: " << llvm::toString(program.takeError())
                   << "\n";
      continue;
    }
    for (const KernelDecl &decl : (*program)->kernels())
      for (auto &[symbol, kernel] : tuning.kernels)
        if (sameFunction(decl.symbol, symbol)) {
          kernel.isDefined = true;
          if (taken.insert(symbol).second) {
            unit.kernels[symbol] = decl.name;
            unit.work += kernel.work;
          } else if (llvm::any_of(tuning.units, [&](const TunedUnit &other) {
                       return other.path == unit.path && other.kernels.count(symbol);
                     })) {
            unit.again.insert(symbol);
          } else if (decl.isTemplate) {
            unit.instantiates.insert(symbol);
          }
        }
    if (llvm::Error e = addLaunches(unit, **program, compile, toolchain))
      llvm::errs() << "optiml-tune: warning: " << unit.path << " keeps its launches: " << llvm::toString(std::move(e))
                   << "\n";
    if (!unit.kernels.empty() || !unit.instantiates.empty() || !unit.launches.empty() || !unit.again.empty())
      tuning.units.push_back(std::move(unit));
  }
  for (TunedUnit &unit : tuning.units)
    std::erase_if(unit.kernels, [&](const auto &own) {
      const RecordedKernel &kernel = tuning.kernels.at(own.first);
      if (!kernel.isLaunched)
        unit.work -= kernel.work;
      return !kernel.isLaunched;
    });
  llvm::stable_sort(tuning.units, [](const TunedUnit &a, const TunedUnit &b) {
    return std::pair(!a.kernels.empty(), a.work) > std::pair(!b.kernels.empty(), b.work);
  });
  return llvm::Error::success();
}

/// Launches of recorded kernels: those of kernels that the source does not define become the unit's.
llvm::Error TuneRun::addLaunches(TunedUnit &unit, const Program &device, const CompileOptions &compile,
                                 const Toolchain &toolchain) {
  const std::string &text = device.text();
  if (text.find("<<<") == std::string::npos && text.find("cudaLaunchKernel") == std::string::npos)
    return llvm::Error::success();
  auto host = Program::parse(unit.path, text, compile, toolchain, View::Host);
  if (!host)
    return host.takeError();
  for (const std::vector<LaunchSite> *sites : {&(*host)->launches(), &(*host)->addressLaunches()})
    for (const LaunchSite &site : *sites)
      for (auto &[symbol, kernel] : tuning.kernels) {
        // In a template the launch tells no more than the template's name.
        const bool isThis = site.symbol.empty() ? plainName(site.kernel) == plainName(demangled(symbol))
                                                : sameFunction(site.symbol, symbol);
        if (!isThis)
          continue;
        kernel.isLaunched = true;
        if (!site.symbol.empty() && !device.findKernel(site.symbol))
          unit.launches.insert(symbol);
      }
  return llvm::Error::success();
}

/// Completes the file of recipes by what a search of one source does not know.
llvm::Error TuneRun::nameOtherFiles(RecipeFile &recipes) const {
  bool any = false;
  for (KernelRecipe &r : recipes.all()) {
    auto concerns = [&](auto &&symbols) {
      return llvm::any_of(symbols, [&](const std::string &symbol) { return sameFunction(r.symbol, symbol); });
    };
    if (llvm::none_of(tuning.units, [&](const TunedUnit &unit) {
          return recipes.nameOf(unit.path) == r.file && concerns(llvm::make_first_range(unit.kernels));
        }))
      continue;
    any = true;
    r.instantiatedIn.clear();
    r.launchedIn.clear();
    for (const TunedUnit &unit : tuning.units) {
      if (concerns(unit.instantiates))
        r.instantiatedIn.push_back(recipes.nameOf(unit.path));
      if (concerns(unit.launches))
        r.launchedIn.push_back(recipes.nameOf(unit.path));
    }
    llvm::sort(r.instantiatedIn);
    llvm::sort(r.launchedIn);
  }
  return any ? recipes.write() : llvm::Error::success();
}

/// By work, and none for less than half of an even share.
llvm::Error TuneRun::searchAll() {
  double all = 0;
  for (const TuneSearch &search : tuning.searches)
    all += search.work;
  const size_t number = tuning.searches.size();
  const double even = 1 / double(number);
  auto before = RecipeFile::read(options.recipesFile);
  if (!before)
    return before.takeError();
  for (size_t i = 0; i < tuning.searches.size(); ++i) {
    TuneSearch &one = tuning.searches[i];
    if (interrupted()) {
      one.failure = "not searched, as the run was interrupted";
      continue;
    }
    const double share = 0.5 * even + 0.5 * (all > 0 ? one.work / all : even);
    llvm::errs() << llvm::formatv("optiml-tune: {0} of {1}: {2}{3}, {4:f0} s\n", i + 1, number, one.unit->path,
                                  one.threads.isAll() ? "" : ", launches of " + one.threads.str() + " threads",
                                  share * options.seconds);
    one.failure = runSearch(programBeside("optiml-clang"), options, one, share * options.seconds, options.recipesFile);
    auto after = RecipeFile::read(options.recipesFile);
    if (!after)
      return after.takeError();
    for (const KernelRecipe *r : after->of(one.unit->path))
      for (const auto &[symbol, name] : one.kernels)
        if (r->threads == one.threads && sameFunction(r->symbol, symbol) && !before->holds(*r))
          one.found[symbol] = *r;
    if (llvm::Error e = nameOtherFiles(*after))
      return e;
    before = std::move(after);
  }
  if (interrupted())
    llvm::errs() << "optiml-tune: interrupted; what is finished is in the recipes and in the store, so that the same "
                    "command goes on from there\n";
  return llvm::Error::success();
}

// After Ctrl-C, for optiml-record to keep what it has.
static constexpr double recordGraceSeconds = 30;

/// Records the command that --run names.
llvm::Error TuneRun::record() {
  std::vector<std::string> argv = {programBeside("optiml-record"), "-o", options.recordings.front(), "--"}, words;
  std::string error;
  if (!splitCommandLine(options.command, words, error))
    return makeError("--run: {0}", error);
  llvm::append_range(argv, words);
  ProcessOptions process;
  process.inheritInput = process.inheritOutput = true;
  process.cancel = &interrupted();
  process.graceSeconds = recordGraceSeconds;
  auto result = runProcess(argv, process);
  if (!result)
    return result.takeError();
  if (!result->ok())
    return makeError("'{0}' could not be recorded: {1}", options.command, result->describe());
  return llvm::Error::success();
}

llvm::Error TuneRun::run() {
  auto toolchain = Toolchain::find(self.c_str());
  if (!toolchain)
    return toolchain.takeError();
  // The folder changes with each source.
  options.recipesFile = absolutePath(options.recipesFile);
  options.buildFolder = absolutePath(options.buildFolder);
  for (std::string &folder : options.recordings)
    folder = absolutePath(folder);
  if (auto before = RecipeFile::read(options.recipesFile); !before)
    return before.takeError();
  if (options.check)
    return checkRecipes(programBeside("optiml-clang"), *toolchain, options);
  if (!options.command.empty())
    if (llvm::Error e = record())
      return e;
  if (llvm::Error e = readRecordings())
    return e;
  if (llvm::Error e = findUnits(*toolchain))
    return e;
  tuning.searches = searchesOf(tuning.units, tuning.kernels);
  if (tuning.searches.empty()) {
    const auto first = tuning.kernels.begin();
    return makeError(
        "there is nothing to search: {0}{1}",
        tuning.kernels.empty() ? "no kernel is recorded" : first->second.name + ": " + whyLeft(first->second),
        tuning.kernels.size() > 1 ? llvm::formatv(", and {0} others", tuning.kernels.size() - 1).str() : "");
  }
  if (llvm::Error e = searchAll())
    return e;
  auto recipes = RecipeFile::read(options.recipesFile);
  if (!recipes)
    return recipes.takeError();
  if (!llvm::sys::fs::exists(options.recipesFile)) // builds name it, also when there is nothing in it
    if (llvm::Error e = recipes->write())
      return e;
  printTuning(tuning, *recipes, options);
  return llvm::Error::success();
}

/// False: `error` says what is wrong.
static bool parse(llvm::ArrayRef<const char *> arguments, TuneOptions &options, bool &wantsHelp, std::string &error) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    llvm::StringRef argument = arguments[i];
    auto [name, value] = argument.split('=');
    if (argument == "--help") {
      wantsHelp = true;
    } else if (argument == "-p" && i + 1 < arguments.size()) {
      options.buildFolder = arguments[++i];
    } else if (name == "-p") {
      options.buildFolder = value;
    } else if (name == "--recipes" && !value.empty()) {
      options.recipesFile = value;
    } else if (name == "--seconds" && !value.getAsDouble(options.seconds) && options.seconds > 0) {
    } else if (name == "--evaluations" && !value.getAsInteger(10, options.evaluations)) {
    } else if (name == "--run" && !value.empty()) {
      options.command = value;
    } else if (argument == "--check") {
      options.check = true;
    } else if (argument == "--rebuild") {
      options.rebuild = true;
    } else if (argument.starts_with("--optiml-")) {
      options.ownFlags.push_back(argument.str());
    } else if (argument.starts_with("-")) {
      error = "unknown option or wrong value: '" + argument.str() + "'";
    } else {
      options.recordings.push_back(argument.str());
    }
  }
  if (error.empty() && options.buildFolder.empty())
    error = "name the folder of compile_commands.json with -p";
  if (!options.command.empty() && options.recordings.empty())
    options.recordings.push_back("app.workload");
  else if (error.empty() && !options.command.empty())
    error = "give either recordings or --run";
  if (error.empty() && options.recordings.empty() && !options.check)
    error = "name a workload, a folder that optiml record -o FOLDER writes";
  return error.empty();
}

int optiml::runTuneCommand(int argc, char **argv) {
  TuneOptions options;
  bool wantsHelp = false;
  std::string error;
  const bool good = parse(llvm::ArrayRef<const char *>(argv + 1, argv + argc), options, wantsHelp, error);
  if (wantsHelp) {
    llvm::outs() << help;
    return 0;
  }
  if (!good) {
    llvm::errs() << "optiml-tune: error: " << error << " (optiml tune --help)\n";
    return 1;
  }
  const std::string self = llvm::sys::fs::getMainExecutable(argv[0], reinterpret_cast<void *>(&runTuneCommand));
  if (llvm::Error e = TuneRun(self, std::move(options)).run()) {
    llvm::errs() << "optiml-tune: error: " << llvm::toString(std::move(e)) << "\n";
    return 1;
  }
  return 0;
}
