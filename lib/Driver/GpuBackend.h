//===- GpuBackend.h - measuring on a GPU ------------------------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_GPUBACKEND_H
#define OPTIML_LIB_DRIVER_GPUBACKEND_H

#include "Backend.h"
#include "EarlyBuild.h"
#include "GpuProgram.h"
#include "Workloads.h"
#include "optiml/Evaluate/Measure/GpuEvaluator.h"
#include <future>
#include <mutex>

namespace optiml {

/// What is prepared beside the search takes so much of its time at most, each.
constexpr double preparingShare = 0.1;
constexpr double otherSizesSeconds = 60; ///< of running and of making up launches with other sizes, at most

class GpuBackend : public Backend {
public:
  GpuBackend(std::unique_ptr<WorkerPool> pool, const GpuSpec &gpu, std::unique_ptr<EarlyBuild> early)
      : pool(std::move(pool)), gpu(gpu), early(std::move(early)) {}
  std::string gpuName() const override { return pool->device().name; }
  unsigned gpuCount() const override { return pool->size(); }
  std::string storeName() const override {
    return llvm::formatv("gpu {0} driver {1}", pool->device().name, pool->device().driver);
  }
  bool measures() const override { return true; }
  bool sawWholeProgram() const override { return !paused; }
  const Workload &performance() const override { return captured; }
  std::vector<const Workload *> exercised() const override { return {&captured}; } // what the GPU compares
  std::vector<std::string> otherSizes() const override { return emulated.arguments; }

  llvm::Error observe(const SearchTask &task) override;
  void compileAhead(const SearchTask &task, const std::string &text) override;
  llvm::Expected<Evaluator *> evaluator(const SearchTask &task) override;
  std::optional<KernelUse> timeOf(const std::string &symbol) const override;
  double roofline() const override { return own ? rooflineOf(own->baseline()) : 0; }
  void configure(SearchSettings &settings) const override;
  void searchUntil(const std::atomic<bool> *ended) override {
    if (own)
      own->compileUntil(ended);
  }
  Measurement examine(const Variant &variant) override {
    own->confirm(variant);
    own->describe(variant);
    return own->confirm(variant);
  }
  void settle(const SearchTask &task, SearchResult &result, nlohmann::json &summary) override;
  llvm::Expected<ProgramTimes> timeProgram(const SearchTask &task, const std::string &emitted,
                                           const std::string &executable) override;
  llvm::Expected<ProgramTimes> watchProgram(const SearchTask &task, const std::string &emitted,
                                            const std::string &executable) override;
  llvm::Error checkProgram(const SearchTask &task, const std::string &emitted, const std::string &executable,
                           nlohmann::json &summary) override;
  llvm::Expected<std::string> compareCopies(const SearchTask &task, const std::string &executable,
                                            std::optional<unsigned> floatBytes) override {
    return compareGpuCopies(task, copiesOf(original), copiesOf(executable), elements, floatBytes);
  }
  llvm::Expected<std::string> buildProgram(const SearchTask &task, const std::string &emitted, const std::string &name,
                                           const std::atomic<bool> *cancel) const override {
    return buildGpuProgram(task, &emitted, name, cancel);
  }
  void whenVerified(std::function<void(const Variant &)> call) override {
    std::lock_guard lock(mutex);
    verified = std::move(call);
  }
  double concludingSeconds(bool) const override;
  double buildSeconds() const override { return early ? early->seconds : 0; }
  std::vector<std::string> notes() const override;
  std::vector<std::string> originalFaults() const override {
    return own ? own->originalFaults() : std::vector<std::string>();
  }

private:
  std::vector<std::string> worthSearching(const SearchTask &task) const;
  bool isCaptured(const std::string &symbol) const {
    return llvm::any_of(captured.launches, [&](const LaunchImage &launch) { return launch.kernel == symbol; });
  }
  bool isClean(const Candidate &candidate, double seconds);
  /// Of the GPU and the program, for the summary.
  void addFacts(nlohmann::json &summary) const;
  /// Seconds for running the rewritten program, which is built beside the search, and the original once more where that
  /// is needed.
  double checkingSeconds() const { return 0.5 + 1.25 * run.seconds; }
  /// A run whose launches and copies were recorded.
  struct Watched {
    GpuRun run;
    Workload launches;
    std::string copies; ///< the file; empty: not recorded
  };
  /// Runs a program so. The original may pause.
  llvm::Expected<Watched> watch(const SearchTask &task, const std::string &executable, const std::string &folder,
                                std::unique_ptr<ObservedProgram> &stopped) const;
  CopyingProgram copiesOf(const std::string &executable) const;
  llvm::Error readRecorded(const SearchTask &task);
  void compileOriginal(const SearchTask &task);
  /// Tells of the first gain that was measured, and of the first that was verified.
  void tellGain(double seconds, const Variant &variant, double speedup, bool isVerified);
  /// Whoever builds programs beside the search hears of those that race.
  void tellFinalists(const std::vector<Candidate> &best);

  std::unique_ptr<WorkerPool> pool;
  const GpuSpec &gpu;
  std::unique_ptr<EarlyBuild> early;
  std::string original;                    ///< its executable
  GpuRun run;                              ///< of the original
  ElementsByAddress elements;              ///< of that run's memory
  std::unique_ptr<ObservedProgram> paused; ///< the original, where it has not run to its end
  std::map<std::string, Watched> watched;  ///< by the executable
  double originalSeconds = 0;              ///< of the original's kernels, beside the last program that was watched
  GpuRun searched;                         ///< of the program whose kernels are searched
  Workload captured;
  CapturedRuns emulated; ///< runs with other sizes, on the emulator
  std::vector<std::string> remarks;
  std::mutex mutex; ///< of what follows
  std::function<void(const Variant &)> verified;
  bool told[2] = {false, false}; ///< a measured gain, a verified one
  struct Compiled {
    std::unique_ptr<TextCompiler> compiler;
    std::shared_ptr<const CompiledText> text;
  };
  static std::future<llvm::Expected<Compiled>> compiling(const SearchTask &task, const std::string &text);
  std::future<llvm::Expected<Compiled>> compiled;                     ///< the kernels of what is observed
  std::map<std::string, std::future<llvm::Expected<Compiled>>> ahead; ///< by text, of what may be observed next
  std::unique_ptr<GpuEvaluator> own;
};

} // namespace optiml

#endif
