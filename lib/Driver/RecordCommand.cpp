//===- RecordCommand.cpp - records the launches of a command --------------===//
//
// Runs the command with OptiML's library injected into every process that uses a GPU, each of which writes a part, and
// merges these into one workload. A second run gives the time of each kernel. Programs for the emulator record by the
// same variables.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/RecordCommand.h"
#include "KernelTimes.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Frontend/Program.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Interrupt.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/Merge.h"
#include "optiml/Workload/Recorder.h"
#include "optiml/Workload/RuntimeSettings.h"
#include "optiml/Workload/Workload.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <regex>
#include <set>

using namespace optiml;
namespace fs = llvm::sys::fs;

namespace {

struct RecordOptions {
  std::string output = "app.workload", kernels;
  std::map<std::string, std::string> limits; ///< as variables
  bool once = false;
  std::vector<std::string> command;
};

constexpr const char *help = R"(usage: optiml record [options] [--] COMMAND [ARGUMENTS...]

Runs the command, and records the kernel launches of all of its processes.

  -o FOLDER          the recording (app.workload); one that is there becomes FOLDER.old
  --kernel=REGEX     only kernels whose mangled or demangled name it matches
  --skip=N           of each kernel, only count the first N launches (0)
  --launches=N       keep so many launches of a process at most (64)
  --size=BYTES       keep so many bytes of a process at most (8G)
  --once             do not run the command a second time for the times of its kernels
  --help             this text
)";

// After Ctrl-C, for the command to end by itself.
constexpr double graceSeconds = 10;

class Recording {
public:
  Recording(RecordOptions options, Toolchain toolchain)
      : options(std::move(options)), toolchain(std::move(toolchain)) {}
  llvm::Expected<int> run();

private:
  llvm::Expected<ProcessResult> runCommand(std::map<std::string, std::string> env, bool shown) const;
  /// The folders and files that the command's processes have written into `scratch`, by the end of their names.
  std::vector<std::string> parts(llvm::StringRef end) const;
  llvm::Error readTimes();
  llvm::Error put() const;
  llvm::Error report() const;

  RecordOptions options;
  Toolchain toolchain;
  std::string scratch; ///< beside the output, on its file system
  size_t processes = 0;
  KernelTimes times;
};

} // namespace

static const std::string workloadFile = "workload.json", timesFile = "times.json";
// Of a process's parts.
static const std::string launchesEnd = ".launches", emulatedEnd = ".emulated", timesEnd = ".times";

llvm::Expected<ProcessResult> Recording::runCommand(std::map<std::string, std::string> env, bool shown) const {
  ProcessOptions process;
  process.inheritInput = process.inheritOutput = shown;
  process.cancel = &interrupted();
  process.graceSeconds = graceSeconds;
  process.endsDescendants = true;
  process.env = std::move(env);
  process.env["CUDA_PATH"] = toolchain.cudaPath;
  process.env["CUDA_INJECTION64_PATH"] = toolchain.libDir + "/liboptiml-capture.so";
  return runProcess(options.command, process);
}

std::vector<std::string> Recording::parts(llvm::StringRef end) const {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(scratch, error), last; at != last && !error; at.increment(error))
    if (llvm::StringRef(at->path()).ends_with(end))
      found.push_back(at->path());
  llvm::sort(found);
  return found;
}

llvm::Error Recording::readTimes() {
  for (const std::string &part : parts(timesEnd)) {
    auto own = KernelTimes::read(part);
    if (!own)
      return own.takeError();
    times.add(*own);
  }
  return llvm::Error::success();
}

/// The finished folder, in place of what is there.
llvm::Error Recording::put() const {
  const std::string old = options.output + ".old";
  if (fs::exists(options.output)) {
    if (!fs::exists(options.output + "/" + workloadFile))
      return makeError("'{0}' is no recording; remove it, or name another folder with -o", options.output);
    if (fs::exists(old + "/" + workloadFile))
      fs::remove_directories(old);
    if (std::error_code e = fs::rename(options.output, old))
      return makeError("{0}: cannot become {1}: {2}", options.output, old, e.message());
  }
  if (std::error_code e = fs::rename(scratch + "/merged", options.output))
    return makeError("{0}: {1}", options.output, e.message());
  return llvm::Error::success();
}

static std::string bytesText(uint64_t bytes) {
  const char *unit[] = {"B", "KB", "MB", "GB", "TB"};
  double value = double(bytes);
  size_t i = 0;
  for (; value >= 1000 && i + 1 < std::size(unit); ++i)
    value /= 1000;
  return i && value < 100 ? llvm::formatv("{0:f1} {1}", value, unit[i]).str()
                          : llvm::formatv("{0:f0} {1}", value, unit[i]).str();
}

// Kernels that take less of the time, and of which nothing is kept, are told of together.
static constexpr double leastShare = 0.01;

llvm::Error Recording::report() const {
  Workload workload;
  std::string error;
  if (!Workload::read(options.output, workload, error))
    return makeError("{0}", error);
  struct Row {
    std::string symbol, name;
    double launches = 0;
    uint64_t kept = 0, bytes = 0;
    std::set<std::string> classes;
    double seconds = 0;
    bool isTimed = false;
  };
  std::vector<Row> rows;
  for (const KernelTime &k : times.kernels)
    rows.push_back({k.symbol, k.name, double(k.launches), 0, 0, {}, k.seconds, true});
  uint64_t bytes = 0;
  for (const LaunchImage &launch : workload.launches) {
    auto row = llvm::find_if(rows, [&](const Row &r) { return r.symbol == launch.kernel; });
    if (row == rows.end())
      row = rows.insert(rows.end(), {launch.kernel, launch.name, 0, 0, 0, {}});
    if (!row->isTimed)
      row->launches += launch.weight;
    ++row->kept;
    row->classes.insert(launch.launchClass);
    row->bytes += bytesOf(launch);
    bytes += bytesOf(launch);
  }
  auto share = [&](double seconds) {
    return times.kernelSeconds > 0 ? llvm::formatv("{0:f1} %", 100 * seconds / times.kernelSeconds).str() : "-";
  };
  llvm::errs() << llvm::formatv("{0,-44} {1,9} {2,7} {3,5} {4,9} {5,7}\n", "kernel", "launches", "classes", "kept",
                                "bytes", "share");
  size_t others = 0;
  double otherSeconds = 0;
  for (const Row &row : rows) {
    const bool matters = row.kept || !(row.seconds < leastShare * times.kernelSeconds);
    if (!matters) {
      ++others;
      otherSeconds += row.seconds;
      continue;
    }
    llvm::errs() << llvm::formatv("{0,-44} {1,9} {2,7} {3,5} {4,9} {5,7}\n", titleOf(row.name).take_front(44),
                                  std::lround(row.launches), row.classes.size(), row.kept, bytesText(row.bytes),
                                  row.isTimed ? share(row.seconds) : "-");
  }
  if (others)
    llvm::errs() << llvm::formatv("{0} other kernels, each below {1:f0} % of the time{2,43}\n", others,
                                  100 * leastShare, share(otherSeconds));
  for (const std::string &message : workload.leftOut)
    llvm::errs() << "left out: " << message << "\n";
  llvm::errs() << llvm::formatv("optiml-record: {0}: {1} of {2} launches, {3} of buffers, from {4} process{5}; ",
                                options.output, workload.launches.size(), workload.totalLaunches, bytesText(bytes),
                                processes, processes == 1 ? "" : "es");
  if (times.kernels.empty())
    llvm::errs() << "kernels were not timed\n";
  else
    llvm::errs() << llvm::formatv("kernels took {0:f3} ms in {1}\n", 1e3 * times.kernelSeconds,
                                  options.once ? "the launches that were not recorded, scaled to all" : "a second run");
  return llvm::Error::success();
}

llvm::Expected<int> Recording::run() {
  options.output = llvm::StringRef(absolutePath(options.output)).rtrim('/').str();
  if (fs::exists(options.output) && !fs::exists(options.output + "/" + workloadFile))
    return makeError("'{0}' is there and is no recording; name another folder with -o", options.output);
  if (const std::string old = options.output + ".old"; fs::exists(old) && !fs::exists(old + "/" + workloadFile))
    return makeError("'{0}' is there and is no recording, so '{1}' cannot become it; name another folder with -o", old,
                     options.output);
  llvm::SmallString<256> folder;
  if (std::error_code e = fs::createUniqueDirectory(options.output + ".part", folder))
    return makeError("{0}: {1}", options.output, e.message());
  auto cleanup = llvm::scope_exit([&] { fs::remove_directories(scratch); });
  scratch = folder.str().str();
  if (std::error_code e = fs::create_directory(scratch + "/merged"))
    return makeError("{0}: {1}", scratch, e.message());

  std::map<std::string, std::string> env = options.limits;
  const std::string own = patternOfPath(scratch) + "/%h.%r.%p";
  env["OPTIML_CAPTURE_DIR"] = own + launchesEnd;
  env[emu::envCapture] = own + emulatedEnd;
  if (!options.kernels.empty())
    env[emu::envCaptureKernels] = options.kernels;
  if (options.once)
    env["OPTIML_KERNEL_TIMES"] = own + timesEnd;
  auto result = runCommand(env, /*shown=*/true);
  if (!result)
    return result.takeError();
  const int code = result->signal ? 128 + result->signal : result->exitCode;
  if (!result->ok())
    llvm::errs() << "optiml-record: warning: the command "
                 << (result->cancelled ? "was interrupted" : "ended with " + result->describe())
                 << "; what it had recorded stays\n";

  std::vector<std::string> folders, all = parts(launchesEnd);
  const bool onGpu = !all.empty();
  llvm::append_range(all, parts(emulatedEnd));
  for (const std::string &part : all) {
    Workload workload;
    if (!fs::exists(part + "/" + workloadFile)) // a process that was killed before its first launch
      continue;
    std::string error;
    if (!Workload::read(part, workload, error)) { // of a process that was killed while it wrote
      llvm::errs() << "optiml-record: warning: the part of one process is left out: " << error << "\n";
      continue;
    }
    processes += workload.totalLaunches > 0;
    folders.push_back(part);
  }
  if (!processes)
    return makeError("no process of the command launched a kernel on a GPU, so nothing is recorded; without a GPU, "
                     "optiml-run --capture=FOLDER builds a program for the CPU emulator and records it");
  std::string error;
  if (!mergeWorkloads(folders, scratch + "/merged", environmentLimits({}).perClass, error))
    return makeError("{0}", error);
  if (onGpu && !options.once && result->ok()) {
    llvm::errs() << "optiml-record: the command runs again, for the times of its kernels\n";
    auto timed = runCommand({{"OPTIML_KERNEL_TIMES", own + timesEnd}}, /*shown=*/false);
    if (!timed)
      return timed.takeError();
    if (!timed->ok())
      llvm::errs() << "optiml-record: warning: the second run ended with " << timed->describe() << "\n";
  }
  if (llvm::Error e = readTimes())
    llvm::errs() << "optiml-record: warning: " << llvm::toString(std::move(e)) << "\n";
  if (!times.kernels.empty())
    if (llvm::Error e = times.write(scratch + "/merged/" + timesFile))
      return std::move(e);
  if (llvm::Error e = put())
    return std::move(e);
  if (llvm::Error e = report())
    return std::move(e);
  return code;
}

/// Empty: the options are good.
static std::string parse(llvm::ArrayRef<const char *> arguments, RecordOptions &options, bool &wantsHelp) {
  const std::pair<llvm::StringRef, const char *> limits[] = {
      {"--skip", emu::envCaptureSkip}, {"--launches", emu::envCaptureMaxLaunches}, {"--size", emu::envCaptureMaxBytes}};
  size_t i = 0;
  for (; i < arguments.size() && llvm::StringRef(arguments[i]).starts_with("-"); ++i) {
    const llvm::StringRef argument = arguments[i];
    const auto [name, value] = argument.split('=');
    if (argument == "--") {
      ++i;
      break;
    }
    const auto *limit = llvm::find_if(limits, [&, name = name](const auto &l) { return l.first == name; });
    if (limit != std::end(limits)) {
      if (value.empty() || value.find_first_not_of("0123456789") < value.size() - 1 || !isdigit(value[0]) ||
          !(isdigit(value.back()) || llvm::StringRef("KMG").contains(value.back())))
        return (name + "= needs a number, such as 16 or 4G").str();
      options.limits[limit->second] = value.str();
    } else if (argument == "-o" && i + 1 < arguments.size()) {
      options.output = arguments[++i];
    } else if (name == "-o" && !value.empty()) {
      options.output = value.str();
    } else if (name == "--kernel" && !value.empty()) {
      options.kernels = value.str();
      try {
        std::regex(options.kernels, std::regex::extended);
      } catch (const std::regex_error &e) {
        return "--kernel=" + options.kernels + " is no POSIX extended regular expression: " + e.what();
      }
    } else if (argument == "--once") {
      options.once = true;
    } else if (argument == "--help") {
      wantsHelp = true;
    } else {
      return "unknown option '" + argument.str() + "'";
    }
  }
  options.command.assign(arguments.begin() + long(i), arguments.end());
  return options.command.empty() ? "name the command to record" : "";
}

int optiml::runRecordCommand(int argc, char **argv) {
  RecordOptions options;
  bool wantsHelp = false;
  const std::string wrong = parse(llvm::ArrayRef<const char *>(argv + 1, argv + argc), options, wantsHelp);
  if (wantsHelp) {
    llvm::outs() << help;
    return 0;
  }
  auto fail = [](const std::string &why) {
    llvm::errs() << "optiml-record: error: " << why << "\n";
    return 1;
  };
  if (!wrong.empty())
    return fail(wrong + " (optiml record --help)");
  const std::string self = fs::getMainExecutable(argv[0], reinterpret_cast<void *>(&runRecordCommand));
  auto toolchain = Toolchain::find(self.c_str());
  if (!toolchain)
    return fail(llvm::toString(toolchain.takeError()));
  auto code = Recording(std::move(options), std::move(*toolchain)).run();
  return code ? *code : fail(llvm::toString(code.takeError()));
}
