//===- CpuBackend.cpp - emulator and performance model --------------------===//
#include "Backend.h"
#include "Workloads.h"
#include "optiml/Evaluate/Predict/CpuEvaluator.h"
#include "optiml/Support/Error.h"

using namespace optiml;

Backend::~Backend() = default;

VerifyOptions optiml::verifyOptions(const SearchTask &task) {
  VerifyOptions verify;
  verify.floats = task.flags.fp;
  verify.seed = task.flags.seed;
  verify.cancel = task.cancel();
  return verify;
}

// Of the time that is left: at most so much for a run of the program, and for all its runs with other sizes.
// A launch of so many threads takes the emulator seconds.
static constexpr double mostTestedThreads = 1 << 22;
static constexpr double ownShare = 0.5, otherShare = 0.15, mostDerivedSeconds = 20;

namespace {

class CpuBackend : public Backend {
public:
  explicit CpuBackend(unsigned arch) : gpu(GpuSpec::forArch(arch)) {}
  std::string gpuName() const override { return gpu.name; }
  std::string storeName() const override { return "model"; }
  bool measures() const override { return false; }
  const Workload &performance() const override { return runs.performance; }
  std::vector<const Workload *> exercised() const override {
    std::vector<const Workload *> result;
    for (const Workload &workload : runs.otherSizes)
      result.push_back(&workload);
    if (verifiesPerformance() || testsOnPerformance())
      result.push_back(&runs.performance);
    return result;
  }
  std::vector<std::string> otherSizes() const override { return runs.arguments; }

  std::optional<KernelUse> timeOf(const std::string &) const override { return std::nullopt; } // before any prediction
  double roofline() const override { return own ? rooflineOf(own->baseline()) : 0; }

  llvm::Error observe(const SearchTask &task) override {
    this->own.reset(); // of another text, and of another deadline
    testsTexts = task.testsTexts;
    if (task.isRecorded()) {
      if (llvm::Error e =
              recordedRuns(task.flags.workloads, task.flags.threads, *task.device, task.folder).moveInto(runs))
        return e;
      return addDerivedSizes(task, std::min(mostDerivedSeconds, otherShare * task.deadline->remaining()), runs);
    }
    // The search needs time too.
    double own = std::min(task.flags.time, ownShare * task.deadline->remaining());
    double others = task.readsArguments ? otherShare * task.deadline->remaining() : 0;
    auto captured = captureRuns(task.options, task.toolchain, task.changed(), task.flags.programArgs, task.folder, own,
                                others, task.cancel());
    if (!captured)
      return captured.takeError();
    runs = std::move(*captured);
    if (llvm::Error e = nameElements(runs.performance, *task.device))
      return e;
    for (Workload &other : runs.otherSizes)
      if (llvm::Error e = nameElements(other, *task.device))
        return e;
    return llvm::Error::success();
  }

  llvm::Expected<Evaluator *> evaluator(const SearchTask &task) override {
    CpuEvaluatorOptions options;
    options.toolchain = task.toolchain;
    options.compile = task.options;
    options.path = task.path;
    options.text = task.text;
    options.device = DeviceText::of(*task.device);
    options.performance = runs.performance;
    options.verification = runs.otherSizes;
    options.verify = verifyOptions(task);
    options.verify.textsOnLarge = testsOnPerformance();
    if (verifiesPerformance())
      options.verification.push_back(runs.performance);
    if (!task.isRecorded()) // these have been made of what was recorded
      options.sizedKernels = sizedKernels(*task.device, runs.performance, runs.otherSizes);
    options.derivingSeconds = std::min(mostDerivedSeconds, otherShare * task.deadline->remaining());
    auto made = CpuEvaluator::create(std::move(options));
    if (!made)
      return made.takeError();
    own = std::move(*made);
    if (!original)
      original = own->baseline().time.seconds;
    return own.get();
  }

  Measurement examine(const Variant &variant) override { return own->evaluate(variant, Fidelity::Verified); }

  void configure(SearchSettings &settings) const override {
    settings.verifyWithin = 1; // predictions rank here: what is predicted slower than the best cannot win
  }

  void settle(const SearchTask &task, SearchResult &result, nlohmann::json &summary) override {
    const std::map<std::string, double> &counters = result.best.measurement.counters;
    auto counted = [&](const char *name) { return counters.count(name) ? unsigned(counters.at(name)) : 0; };
    if (!result.improved)
      return;
    std::string verified = llvm::formatv("{0} launches compared with the original in {1} runs on the CPU emulator",
                                         counted("verify.launches"), counted("verify.runs"));
    if (counted("verify.long"))
      verified += llvm::formatv(" ({0} long: races and double precision on some blocks)", counted("verify.long"));
    if (const FloatRule &rule = task.flags.fp; rule.isFast() && counters.count("verify.error"))
      verified += llvm::formatv(", floating-point errors of at most {0:e1} ({1:e1} allowed)",
                                counters.at("verify.error"), rule.error);
    summary["verified"] = verified;
  }

  llvm::Expected<ProgramTimes> timeProgram(const SearchTask &task, const std::string &emitted,
                                           const std::string &) override {
    if (!original) {
      auto before = predict(task, task.text, runs.performance);
      if (!before)
        return before.takeError();
      original = *before;
    }
    auto launches =
        captureChanged(task.options, task.toolchain, {{task.options.inputs.front(), emitted}}, task.flags.programArgs,
                       task.folder, task.flags.time, task.testsTexts, task.cancel());
    if (!launches)
      return launches.takeError();
    auto after = predict(task, emitted, std::move(*launches));
    if (!after)
      return after.takeError();
    return ProgramTimes{*original, *after};
  }

  llvm::Error checkProgram(const SearchTask &, const std::string &, const std::string &, nlohmann::json &) override {
    return llvm::Error::success(); // there is nothing here that it could run on
  }

  double concludingSeconds(bool compared) const override {
    // Compilers take some seconds. What is compared runs half a dozen times, with small sizes where the program takes
    // sizes.
    double run = runs.seconds + 5;
    return compared ? run + 10 + 6 * (runs.otherSizes.empty() ? runs.seconds : 1) : run;
  }

  std::vector<std::string> notes() const override { return own ? own->notes() : std::vector<std::string>(); }
  std::vector<std::string> originalFaults() const override {
    return own ? own->originalFaults() : std::vector<std::string>();
  }

private:
  /// Seconds of a program's launches.
  llvm::Expected<double> predict(const SearchTask &task, const std::string &text, Workload launches) const {
    PredictorOptions options;
    options.toolchain = task.toolchain;
    options.compile = task.options;
    options.path = task.path;
    options.text = text;
    options.performance = std::move(launches);
    options.verify = verifyOptions(task);
    return predictOriginal(std::move(options));
  }

  /// The program's own run is compared too where that is affordable, and always when there is nothing smaller.
  bool verifiesPerformance() const { return runs.otherSizes.empty() || isSmall(runs.performance); }
  bool testsOnPerformance() const { return testsTexts && capturedThreads(runs.performance) <= mostTestedThreads; }

  const GpuSpec &gpu;
  std::optional<double> original; ///< seconds of the original's launches
  CapturedRuns runs;
  bool testsTexts = false; ///< SearchTask::testsTexts
  std::unique_ptr<CpuEvaluator> own;
};

} // namespace

std::unique_ptr<Backend> optiml::makeCpuBackend(unsigned arch) { return std::make_unique<CpuBackend>(arch); }
