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
#include "KernelTimes.h"
#include "RecipeFile.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Driver/CompileLog.h"
#include "optiml/Frontend/Program.h"
#include "optiml/Support/Error.h"
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

struct TuneOptions {
  std::string buildFolder, recipesFile = "optiml.recipes";
  double seconds = 600;
  unsigned evaluations = 200;
  bool rebuild = false;
  std::vector<std::string> recordings;
  std::vector<std::string> ownFlags; ///< of optiml-clang
};

constexpr const char *help = R"(usage: optiml tune -p BUILD [options] WORKLOAD...

Searches the recorded kernels of a project, and writes recipes that its builds apply.

  -p BUILD           folder of the project's compile_commands.json, or the one
                     that OPTIML_COMPILE_LOG named when it was built
  --recipes=FILE     file of recipes to write (optiml.recipes)
  --seconds=N        of all searches together (600)
  --evaluations=N    of one search at most; 0: no limit (200)
  --rebuild          remove the objects that must be made again
  --optiml-...       is passed to each search (optiml-clang --optiml-help)
  --help             this text
)";

struct RecordedKernel {
  std::string name;
  uint64_t launches = 0;                      ///< in all recordings
  double work = 0;                            ///< of these: seconds on the GPU where they were timed, else threads
  bool isDefined = false, isLaunched = false; ///< in sources of this build, so that a launch can be redirected
};

struct Unit {
  std::string folder, path, output;
  std::vector<std::string> arguments;         ///< of nvcc, withoutOutputs
  std::map<std::string, std::string> kernels; ///< names that Clang gives those that are searched with it, by symbol
  std::set<std::string> instantiates;         ///< ... of templates that are searched with another one
  std::set<std::string> launches;             ///< ... that others define
  double work = 0;                            ///< of their launches
  std::string outcome;                        ///< of its search, where it failed
  std::set<std::string> symbols() const {
    std::set<std::string> result;
    for (const auto &[symbol, name] : kernels)
      result.insert(symbol);
    return result;
  }
};

class Tuning {
public:
  Tuning(std::string self, TuneOptions options) : self(std::move(self)), options(std::move(options)) {}
  llvm::Error run();

private:
  llvm::Error readRecordings();
  double secondsOf(llvm::StringRef symbol) const;
  llvm::Error findUnits(const Toolchain &toolchain);
  llvm::Error addLaunches(Unit &unit, const Program &device, const CompileOptions &compile, const Toolchain &toolchain);
  void search(Unit &unit, double seconds) const;
  llvm::Error nameOtherFiles() const;
  void report(const RecipeFile &recipes) const;

  std::string self; ///< this program
  TuneOptions options;
  std::map<std::string, RecordedKernel> kernels; ///< by symbol
  KernelTimes times;                             ///< of all recordings that were timed
  std::vector<Unit> units;
};

} // namespace

/// `path` as seen from `folder`.
static std::string pathFrom(llvm::StringRef folder, llvm::StringRef path) {
  llvm::SmallString<256> result(path);
  llvm::sys::path::make_absolute(folder, result);
  llvm::sys::path::remove_dots(result, /*remove_dot_dot=*/true);
  return result.str().str();
}

llvm::Error Tuning::readRecordings() {
  for (const std::string &folder : options.recordings) {
    Workload workload;
    std::string error;
    if (!Workload::read(folder, workload, error))
      return makeError("{0}", error);
    for (const LaunchImage &launch : workload.launches) {
      RecordedKernel &kernel = kernels[launch.kernel];
      kernel.name = launch.name;
      kernel.launches += uint64_t(launch.weight);
      kernel.work += launch.weight * double(threadsOf(launch));
    }
    if (const std::string file = folder + "/times.json"; llvm::sys::fs::exists(file)) {
      auto own = KernelTimes::read(file);
      if (!own)
        return own.takeError();
      times.add(*own);
    }
  }
  if (!times.kernels.empty())
    for (auto &[symbol, kernel] : kernels)
      kernel.work = secondsOf(symbol);
  return llvm::Error::success();
}

double Tuning::secondsOf(llvm::StringRef symbol) const {
  double seconds = 0;
  for (const KernelTime &k : times.kernels)
    if (sameFunction(k.symbol, symbol.str()))
      seconds += k.seconds;
  return seconds;
}

static Unit unitOf(const clang::tooling::CompileCommand &command) {
  const std::vector<std::string> &line = command.CommandLine;
  size_t begin = 0; // behind launchers and the compiler
  for (size_t i = 0; i < line.size() && !llvm::StringRef(line[i]).starts_with("-"); ++i)
    if (llvm::StringRef name = llvm::sys::path::filename(line[i]);
        name.starts_with("nvcc") || name.starts_with("optiml-clang") || i == 0)
      begin = i + 1;
  const std::vector<std::string> arguments(line.begin() + long(begin), line.end());
  Unit unit;
  unit.folder = command.Directory;
  unit.path = pathFrom(command.Directory, command.Filename);
  const CompileOptions whole = CompileOptions::parse(arguments);
  unit.output = pathFrom(command.Directory,
                         whole.output.empty() ? (llvm::sys::path::stem(unit.path) + ".o").str() : whole.output);
  // Of a line that compiles several sources, or links too, what makes an object of this one.
  for (const std::string &argument : withoutOutputs(arguments))
    if (argument == command.Filename || !llvm::is_contained(whole.inputs, argument))
      unit.arguments.push_back(argument);
  if (!whole.compileOnly)
    unit.arguments.push_back("-c");
  return unit;
}

llvm::Error Tuning::findUnits(const Toolchain &toolchain) {
  auto commands = commandsOf(options.buildFolder);
  if (!commands)
    return commands.takeError();
  std::set<std::string> taken, names;
  for (const auto &[symbol, kernel] : kernels)
    names.insert(plainName(demangled(symbol)));
  for (const clang::tooling::CompileCommand &command : *commands) {
    if (std::error_code e = llvm::sys::fs::set_current_path(command.Directory)) { // files of options, include folders
      llvm::errs() << "optiml-tune: warning: " << command.Directory << ": " << e.message() << "\n";
      continue;
    }
    Unit unit = unitOf(command);
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
      for (auto &[symbol, kernel] : kernels)
        if (sameFunction(decl.symbol, symbol)) {
          kernel.isDefined = true;
          if (taken.insert(symbol).second) {
            unit.kernels[symbol] = decl.name;
            unit.work += kernel.work;
          } else if (decl.isTemplate) {
            unit.instantiates.insert(symbol);
          }
        }
    if (llvm::Error e = addLaunches(unit, **program, compile, toolchain))
      llvm::errs() << "optiml-tune: warning: " << unit.path << " keeps its launches: " << llvm::toString(std::move(e))
                   << "\n";
    if (!unit.kernels.empty() || !unit.instantiates.empty() || !unit.launches.empty())
      units.push_back(std::move(unit));
  }
  for (Unit &unit : units)
    std::erase_if(unit.kernels, [&](const auto &own) {
      const RecordedKernel &kernel = kernels.at(own.first);
      if (!kernel.isLaunched)
        unit.work -= kernel.work;
      return !kernel.isLaunched;
    });
  llvm::stable_sort(units, [](const Unit &a, const Unit &b) {
    return std::pair(!a.kernels.empty(), a.work) > std::pair(!b.kernels.empty(), b.work);
  });
  return llvm::Error::success();
}

/// Launches of recorded kernels: those of kernels that the source does not define become the unit's.
llvm::Error Tuning::addLaunches(Unit &unit, const Program &device, const CompileOptions &compile,
                                const Toolchain &toolchain) {
  const std::string &text = device.text();
  if (text.find("<<<") == std::string::npos && text.find("cudaLaunchKernel") == std::string::npos)
    return llvm::Error::success();
  auto host = Program::parse(unit.path, text, compile, toolchain, View::Host);
  if (!host)
    return host.takeError();
  for (const std::vector<LaunchSite> *sites : {&(*host)->launches(), &(*host)->addressLaunches()})
    for (const LaunchSite &site : *sites)
      for (auto &[symbol, kernel] : kernels) {
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
llvm::Error Tuning::nameOtherFiles() const {
  auto recipes = RecipeFile::read(options.recipesFile);
  if (!recipes)
    return recipes.takeError();
  bool any = false;
  for (KernelRecipe &r : recipes->all()) {
    auto concerns = [&](const std::set<std::string> &symbols) {
      return llvm::any_of(symbols, [&](const std::string &symbol) { return sameFunction(r.symbol, symbol); });
    };
    if (llvm::none_of(
            units, [&](const Unit &unit) { return recipes->nameOf(unit.path) == r.file && concerns(unit.symbols()); }))
      continue;
    any = true;
    r.instantiatedIn.clear();
    r.launchedIn.clear();
    for (const Unit &unit : units) {
      if (concerns(unit.instantiates))
        r.instantiatedIn.push_back(recipes->nameOf(unit.path));
      if (concerns(unit.launches))
        r.launchedIn.push_back(recipes->nameOf(unit.path));
    }
    llvm::sort(r.instantiatedIn);
    llvm::sort(r.launchedIn);
  }
  return any ? recipes->write() : llvm::Error::success();
}

void Tuning::search(Unit &unit, double seconds) const {
  auto scratch = TempDir::create("optiml-tune");
  if (!scratch) {
    unit.outcome = llvm::toString(scratch.takeError());
    return;
  }
  std::vector<std::string> argv = {llvm::sys::path::parent_path(self).str() + "/optiml-clang"};
  std::string limit = llvm::formatv("{0}s", std::max<long>(1, std::lround(seconds)));
  argv.push_back("-O-search=" + (options.evaluations ? std::to_string(options.evaluations) + "," : "") + limit);
  argv.push_back("--optiml-kernel=" + expressionFor(llvm::to_vector(llvm::make_second_range(unit.kernels))));
  argv.insert(argv.end(), options.ownFlags.begin(), options.ownFlags.end());
  argv.insert(argv.end(), {"--optiml-strict", "--optiml-workload=" + llvm::join(options.recordings, ":"),
                           "--optiml-save-recipes=" + options.recipesFile});
  argv.insert(argv.end(), unit.arguments.begin(), unit.arguments.end());
  argv.insert(argv.end(), {"-o", scratch->file("output")});
  ProcessOptions process;
  process.workingDirectory = unit.folder;
  process.inheritOutput = true;
  process.env[envCompileLog] = ""; // a search is no part of the build
  auto result = runProcess(argv, process);
  if (!result)
    unit.outcome = llvm::toString(result.takeError());
  else if (!result->ok())
    unit.outcome = "the search failed: " + result->describe();
}

/// Why a recorded kernel is not searched.
static std::string whyLeft(const RecordedKernel &kernel) {
  return kernel.isDefined ? "no source of this build launches it where that can be redirected"
                          : "no source of this build defines it";
}

void Tuning::report(const RecipeFile &recipes) const {
  llvm::outs() << llvm::formatv("{0,-32} {1,9}  {2}\n", "kernel", "launches", "outcome");
  std::set<std::string> left;
  for (const auto &[symbol, kernel] : kernels)
    left.insert(symbol);
  std::set<std::string> changed; // symbols
  for (const Unit &unit : units) {
    for (const auto &[symbol, name] : unit.kernels) {
      std::string outcome = unit.outcome.empty() ? "the original stays" : unit.outcome;
      for (const KernelRecipe *r : recipes.of(unit.path))
        if (sameFunction(r->symbol, symbol)) {
          outcome = llvm::formatv("{0:f2} times faster with this file's others, {1} {2}: {3}", r->speedup,
                                  r->isMeasured ? "measured on" : "predicted for", r->gpu, recipeText(r->recipe));
          changed.insert(symbol);
        }
      llvm::outs() << llvm::formatv("{0,-32} {1,9}  {2}: {3}\n", titleOf(kernels.at(symbol).name).take_front(32),
                                    kernels.at(symbol).launches, recipes.nameOf(unit.path), outcome);
      left.erase(symbol);
    }
  }
  for (const std::string &symbol : left)
    llvm::outs() << llvm::formatv("{0,-32} {1,9}  {2}\n", titleOf(kernels.at(symbol).name).take_front(32),
                                  kernels.at(symbol).launches, whyLeft(kernels.at(symbol)));
  auto hasChanged = [&](const std::string &symbol) { return changed.count(symbol); };
  std::set<std::string> objects;
  for (const Unit &unit : units)
    if (!unit.output.empty() &&
        (llvm::any_of(unit.symbols(), hasChanged) || llvm::any_of(unit.instantiates, hasChanged) ||
         llvm::any_of(unit.launches, hasChanged)))
      objects.insert(unit.output);
  for (const std::string &object : objects)
    llvm::outs() << (options.rebuild && !llvm::sys::fs::remove(object) ? "removed: " : "to be made again: ") << object
                 << "\n";
}

llvm::Error Tuning::run() {
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
  if (llvm::Error e = readRecordings())
    return e;
  if (llvm::Error e = findUnits(*toolchain))
    return e;
  const auto searched = size_t(llvm::count_if(units, [](const Unit &unit) { return !unit.kernels.empty(); }));
  if (!searched) // they come first
    return makeError("there is nothing to search: {0}{1}",
                     kernels.empty() ? "no kernel is recorded"
                                     : kernels.begin()->second.name + ": " + whyLeft(kernels.begin()->second),
                     kernels.size() > 1 ? llvm::formatv(", and {0} others", kernels.size() - 1).str() : "");
  // By work, and none less than half of an even share.
  double all = 0;
  for (const Unit &unit : units)
    all += unit.work;
  for (size_t i = 0; i < searched; ++i) {
    Unit &unit = units[i];
    const double even = 1 / double(searched), share = 0.5 * even + 0.5 * (all > 0 ? unit.work / all : even);
    llvm::errs() << llvm::formatv("optiml-tune: {0} of {1}: {2}, {3:f0} s\n", i + 1, searched, unit.path,
                                  share * options.seconds);
    search(unit, share * options.seconds);
    if (llvm::Error e = nameOtherFiles())
      return e;
  }
  auto recipes = RecipeFile::read(options.recipesFile);
  if (!recipes)
    return recipes.takeError();
  report(*recipes);
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
  if (error.empty() && options.recordings.empty())
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
  if (llvm::Error e = Tuning(self, std::move(options)).run()) {
    llvm::errs() << "optiml-tune: error: " << llvm::toString(std::move(e)) << "\n";
    return 1;
  }
  return 0;
}
