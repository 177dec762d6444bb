//===- GpuProgram.cpp - the user's program on a GPU -----------------------===//
#include "GpuProgram.h"
#include "FinalCompile.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Support/Words.h"
#include "optiml/Workload/Recorder.h"
#include "optiml/Workload/RuntimeSettings.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Regex.h"
#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <sstream>
#include <unistd.h>

using namespace optiml;

/// Of the injected library (lib/Gpu/Capture/Capture.h).
static constexpr const char *pauseVariable = "OPTIML_PAUSE_AFTER", *copiesVariable = "OPTIML_COPIES";
// A program that runs longer on the GPU than this part of the search's time is not observed to its end, if it has
// launched all its kernels; else more.
static constexpr double observedShare = 0.12, leastObservedSeconds = 1.2, mostObservedShare = 0.25;

std::vector<std::string> optiml::executableArguments(const std::vector<std::string> &arguments,
                                                     const std::string &executable) {
  static const std::set<llvm::StringRef> dropped =
      words("-c --compile -dw --device-w -shared --shared -lib --lib -nodlink --no-device-link");
  std::vector<std::string> result;
  for (const std::string &a : withoutOutputs(arguments))
    if (a == "-dc" || a == "--device-c")
      result.push_back("-rdc=true");
    else if (!dropped.count(a))
      result.push_back(a);
  result.insert(result.end(), {"-o", executable});
  return result;
}

static llvm::Expected<std::string> builtBy(llvm::Expected<int> code, const std::string &executable,
                                           const NvccOutput &output) {
  if (!code)
    return code.takeError();
  if (*code)
    return makeError("nvcc makes no program of this file alone, so its kernels cannot be observed: {0}",
                     llvm::StringRef(output.err + output.out).trim().take_front(1500));
  if (const std::string said = output.out + output.err; !said.empty())
    if (llvm::Error e = writeFileAtomically(messagesOf(executable), said))
      return std::move(e);
  return executable;
}

llvm::Expected<std::string> optiml::buildOriginalProgram(const Toolchain &toolchain,
                                                         const std::vector<std::string> &arguments,
                                                         const std::string &executable,
                                                         const std::atomic<bool> *cancel) {
  NvccOutput output;
  auto code = compileOriginal(toolchain, executableArguments(arguments, executable), &output, cancel);
  return builtBy(std::move(code), executable, output);
}

llvm::Expected<std::string> optiml::buildGpuProgram(const SearchTask &task, const std::string *text,
                                                    const std::string &name, const std::atomic<bool> *cancel) {
  std::string executable = task.folder + "/" + name;
  NvccOutput output;
  if (!cancel)
    cancel = task.cancel();
  if (!text)
    return buildOriginalProgram(task.toolchain, task.arguments, executable, cancel);
  auto code = compileReplaced(task.toolchain, executableArguments(task.arguments, executable),
                              {{task.options.inputs.front(), *text}}, &output, cancel);
  return builtBy(std::move(code), executable, output);
}

/// How a user would call the program after this compilation.
static std::string usualName(const SearchTask &task) {
  const std::string &output = task.options.output;
  std::string name = output.empty() || llvm::StringRef(output).ends_with(".o") ? "a.out" : output;
  return llvm::StringRef(name).contains('/') ? name : "./" + name;
}

/// Of a run with OptiML's library injected.
static ProcessOptions injectedOptions(const SearchTask &task, const std::map<std::string, std::string> &env) {
  ProcessOptions options;
  options.limits.outputBytes = 16 << 20;
  options.endsDescendants = true;
  options.shownName = usualName(task); // programs print it and look for files beside it
  options.env = env;
  options.env["CUDA_PATH"] = task.toolchain.cudaPath;
  options.env["CUDA_INJECTION64_PATH"] = task.toolchain.libDir + "/liboptiml-capture.so";
  return options;
}

static llvm::StringRef lastWords(const ProcessResult &result) {
  llvm::StringRef text = llvm::StringRef(result.err).trim();
  return (text.empty() ? llvm::StringRef(result.out).trim() : text).take_back(600);
}

llvm::Expected<std::unique_ptr<ObservedProgram>>
ObservedProgram::start(const SearchTask &task, const std::string &executable, std::map<std::string, std::string> env) {
  std::unique_ptr<ObservedProgram> program(new ObservedProgram(task.cancel()));
  program->times = executable + ".times.json";
  program->limit = task.flags.time;
  llvm::sys::fs::remove(program->times);
  const bool mayPause = env.count(pauseVariable);
  env["OPTIML_KERNEL_TIMES"] = patternOfPath(program->times);
  ProcessOptions options = injectedOptions(task, env);
  options.cancel = program->unwanted.flag();
  options.limits.seconds = task.flags.time + (mayPause ? task.flags.budget.seconds : 0);
  std::vector<std::string> argv = {executable};
  argv.insert(argv.end(), task.flags.programArgs.begin(), task.flags.programArgs.end());
  program->result = std::async(std::launch::async, [argv, options] { return runProcess(argv, options); });
  return std::move(program);
}

ObservedProgram::~ObservedProgram() {
  if (!result.valid())
    return;
  unwanted.raise();
  if (auto last = result.get(); !last)
    llvm::consumeError(last.takeError());
}

llvm::Expected<GpuRun> ObservedProgram::ended() {
  auto process = result.get();
  if (!process)
    return process.takeError();
  if (process->timedOut)
    return makeError("the program ran longer than {0:f1} s on the GPU; --optiml-time=SECONDS allows more, "
                     "--optiml-args=ARGS gives it less to do",
                     limit);
  if (process->cancelled)
    return makeError("the program was stopped before it ended");
  GpuRun run;
  run.exitCode = process->signal ? 128 + process->signal : process->exitCode;
  run.seconds = process->seconds;
  run.out = process->out;
  run.err = process->err;
  if (llvm::Error e = KernelTimes::read(times).moveInto(run.times))
    return makeError("the program {0} and its kernels could not be observed: {1}{2}", process->describe(),
                     llvm::toString(std::move(e)), lastWords(*process).empty() ? "" : "; " + lastWords(*process).str());
  return run;
}

llvm::Expected<GpuRun> ObservedProgram::wait() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  while (result.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
    if (!llvm::sys::fs::exists(times))
      continue;
    auto soFar = KernelTimes::read(times);
    if (!soFar || !soFar->paused) { // it is about to end
      llvm::consumeError(soFar.takeError());
      continue;
    }
    pausedProcess = std::exchange(soFar->paused, 0);
    GpuRun run;
    run.times = std::move(*soFar);
    run.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    return run;
  }
  return ended();
}

llvm::Expected<std::optional<GpuRun>> ObservedProgram::wait(double seconds) {
  if (result.wait_for(std::chrono::duration<double>(seconds)) != std::future_status::ready)
    return std::nullopt;
  auto run = ended();
  if (!run)
    return run.takeError();
  return std::optional<GpuRun>(std::move(*run));
}

llvm::Expected<std::optional<GpuRun>> ObservedProgram::finish(double seconds) {
  if (const pid_t group = getpgid(pausedProcess); group > 0)
    kill(-group, SIGCONT);
  return wait(seconds);
}

static llvm::Expected<GpuRun> observe(const SearchTask &task, const std::string &executable,
                                      std::map<std::string, std::string> env) {
  auto program = ObservedProgram::start(task, executable, std::move(env));
  if (!program)
    return program.takeError();
  return (*program)->wait();
}

llvm::Expected<GpuRun> optiml::timeGpuProgram(const SearchTask &task, const std::string &executable,
                                              const std::string &copies) {
  std::map<std::string, std::string> env;
  if (!copies.empty())
    env[copiesVariable] = patternOfPath(copies);
  return observe(task, executable, std::move(env));
}

std::string optiml::expressionFor(llvm::ArrayRef<std::string> names) {
  std::string expression;
  for (const std::string &name : names)
    expression += (expression.empty() ? "^(" : "|") + llvm::Regex::escape(name);
  return expression + ")$";
}

llvm::Expected<GpuRun> optiml::captureGpuProgram(const SearchTask &task, const std::string &executable,
                                                 const std::string &kernels, const std::string &folder,
                                                 Workload &workload, std::unique_ptr<ObservedProgram> &paused,
                                                 const std::string &copies) {
  std::map<std::string, std::string> env = {{"OPTIML_CAPTURE_DIR", patternOfPath(folder)},
                                            {emu::envCaptureKernels, kernels}};
  if (!copies.empty())
    env[copiesVariable] = patternOfPath(copies);
  if (task.mayPause && task.flags.budget.seconds > 0)
    env[pauseVariable] =
        llvm::formatv("{0:f3},{1:f3},{2}", std::max(leastObservedSeconds, task.share(observedShare)),
                      std::max(leastObservedSeconds, task.share(mostObservedShare)), task.device->kernels().size());
  auto program = ObservedProgram::start(task, executable, env);
  if (!program)
    return program.takeError();
  auto run = (*program)->wait();
  if (!run)
    return run.takeError();
  std::string error;
  if (!Workload::read(folder, workload, error))
    return makeError(
        "the launches of the program could not be captured: {0}{1}", error,
        llvm::StringRef(run->err).trim().empty() ? "" : "; " + llvm::StringRef(run->err).trim().take_back(600).str());
  paused.reset();
  if ((*program)->isPaused())
    paused = std::move(*program);
  return run;
}

void optiml::weighAll(Workload &workload, const std::vector<KernelTime> &kernels) {
  for (const KernelTime &kernel : kernels) {
    double weight = 0;
    for (const LaunchImage &launch : workload.launches)
      if (launch.kernel == kernel.symbol)
        weight += launch.weight;
    for (LaunchImage &launch : workload.launches)
      if (launch.kernel == kernel.symbol && weight < double(kernel.launches))
        launch.weight *= double(kernel.launches) / weight;
  }
}

static bool isNumber(const std::string &word) {
  // With units and punctuation: "12.5ms", "(3", "0.01,".
  size_t first = word.find_first_not_of("([{\"'=<>~+-$.,;:"), last = 0;
  if (first == std::string::npos || !isdigit(static_cast<unsigned char>(word[first])))
    return word == "nan" || word == "inf" || word == "-nan" || word == "-inf";
  for (char c : word.substr(first))
    last += isalpha(static_cast<unsigned char>(c)) != 0;
  return last <= 8;
}

static std::vector<std::string> wordsOf(const std::string &text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;)
    words.push_back(word);
  return words;
}

OutputDifference optiml::compareOutputs(const std::string &original, const std::string &again,
                                        const std::string &changed) {
  OutputDifference result;
  std::vector<std::string> a = wordsOf(original), b = wordsOf(again), c = wordsOf(changed);
  if (a.size() != b.size())
    return result; // its output varies anyhow
  if (c.size() != a.size()) {
    result.word = std::to_string(c.size()) + " words instead of " + std::to_string(a.size());
    return result;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] || a[i] == c[i])
      continue;
    bool numbers = isNumber(a[i]) && isNumber(c[i]);
    std::string &into = numbers ? result.number : result.word;
    if (into.empty())
      into = "'" + c[i] + "' instead of '" + a[i] + "'";
  }
  return result;
}
