//===- Settling.cpp - what a GPU search verifies beside itself ------------===//
//
// The workers are set up twice: at once with the captured inputs, and again when the emulator, the results in double
// precision and the made-up inputs are ready. What was measured before that is provisional.
//
//===----------------------------------------------------------------------===//
#include "GpuEvaluatorImpl.h"
#include "Suspects.h"
#include "Verify/GpuCases.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Processors.h"
#include "llvm/ADT/STLExtras.h"
#include <future>

using namespace optiml;
using namespace optiml::gpu;

// Once the search has ended, or while others are verified, what is faster by less than this is not worth the time that
// verifying takes. What is faster by the latter is worth some time more in the end.
static constexpr double worthVerifying = 0.97, worthWaiting = 0.9;
// While the search goes on, compute-sanitizer looks at a leader that takes this part of the time of the last one it
// saw. It holds everything up: not while gains of this size still come, one after the other.
static constexpr double worthSanitizing = 0.95, sanitizerSeconds = 20;
// Where nothing is verified at the latest time, something else may be for so long.
static constexpr std::chrono::seconds lastChance{5};
static constexpr std::chrono::seconds quiet{2};

static std::string textOf(const StopWatch &watch) {
  std::string text;
  for (const auto &[step, seconds] : watch.steps)
    text += llvm::formatv(" {0} {1:f1} s", step, seconds).str();
  return text;
}

GpuEvaluator::Impl::~Impl() { stopPreparing(); }

void GpuEvaluator::Impl::stopPreparing() {
  stopping.raise();
  enough.raise();
  if (preparing.joinable())
    preparing.join();
}

llvm::Expected<WorkerPool::Evaluated> GpuEvaluator::Impl::evaluate(EvaluateRequest request, double seconds,
                                                                   WorkerPool::Clock::time_point beginBy, bool ahead) {
  Visit visit(*this, ahead, beginBy);
  if (!visit)
    return makeError("no GPU came free in time");
  if (request.hopeless > 0) { // far from the best already, or from the original: a rough figure will do
    std::lock_guard lock(mutex);
    request.hopeless = 0.5 * (best > 0 ? std::max(1.0, baselineMeasurement.time.seconds / best) : 1.0);
    request.aims = aimsOf(request.candidates.front());
  }
  return pool.evaluate(request, seconds, beginBy);
}

void GpuEvaluator::Impl::preparePredictions() {
  PredictorOptions o = options.common;
  o.verify.cancel = enough.flag();
  auto made = Predictor::create(std::move(o), *originalText);
  if (!made)
    return note("nothing is predicted: " + llvm::toString(made.takeError()));
  predictor = std::move(*made);
  canPredict = true;
}

void GpuEvaluator::Impl::prepareThoroughly(std::future<bool> isMeasured) {
  const CpuEvaluatorOptions &o = options.common;
  VerifyOptions verify = o.verify;
  verify.cancel = enough.flag();
  verify.replayProgram = replayProgramOf(o.toolchain);
  StopWatch watch;
  std::unique_ptr<Verifier> emulated;
  if (auto made = Verifier::create(o.toolchain, o.path, o.text, o.compile, o.verification, verify))
    emulated = std::move(*made);
  else
    note("the emulator does not run this program, so variants are compared on the GPU alone, with a general "
         "tolerance: " +
         llvm::toString(made.takeError()));
  watch.lap("modules");
  auto derived = std::async(std::launch::async, [&] {
    if (!emulated)
      return;
    if (llvm::Error e = emulated->addDerivedSizes(o.performance, o.sizedKernels, dir.path(), o.derivingSeconds))
      note("no smaller sizes are checked on the emulator: " + llvm::toString(std::move(e)));
    emulated->addLarge(o.performance);
  });
  GpuCases cases(o.performance, verify, emulated ? emulated->shadowModule() : "", dir.path(), options.sampleSeconds);
  auto make = [&](bool careful) {
    return requestOf(cases, careful, careful ? FreshIntegers::Keep : FreshIntegers::Shuffle);
  };
  llvm::Expected<PrepareRequest> first = make(/*careful=*/false);
  watch.lap("cases");
  derived.wait();
  watch.lap("sizes");
  if (!isMeasured.get() || stopping.passed()) {
    broken = "the search was stopped";
    return llvm::consumeError(first.takeError());
  }
  watch.lap("original");
  auto predictions = std::async(std::launch::async, [this] { preparePredictions(); });
  {
    std::unique_lock alone(workers);
    watch.lap("waiting");
    llvm::Expected<PrepareReply> prepared = first
                                                ? setUp({[&] { return std::move(first); }, [&] { return make(true); }})
                                                : llvm::Expected<PrepareReply>(first.takeError());
    if (!prepared) {
      broken = llvm::toString(prepared.takeError());
      return;
    }
    verifier = std::move(emulated);
    isThorough = true;
  }
  watch.lap("workers");
  note("ready to verify after" + textOf(watch));
  for (const std::string &text : cases.notes())
    note(text);
  settleFastest();
}

void GpuEvaluator::Impl::addUnsettled(const Variant &variant, const Measurement &m) {
  std::lock_guard lock(mutex);
  if (m.time.seconds < worthSanitizing * lastGain) {
    lastGain = m.time.seconds;
    gainedAt = std::chrono::steady_clock::now();
    if (sanitizerRun) // of what is overtaken; and nothing is verified beside it
      sanitizerRun->raise();
  }
  if (unsettled.try_emplace(variant.key(), Provisional{variant, m}).second && m.time.seconds < fastestTold) {
    fastestTold = m.time.seconds;
    tellGain(variant, m);
  }
}

Measurement GpuEvaluator::Impl::settle(const Variant &variant) {
  const std::string key = variant.key();
  {
    std::lock_guard lock(mutex);
    if (auto known = settled.find(key); known != settled.end())
      return known->second;
  }
  Measurement m;
  auto noTime = [&m] {
    m.verdict = Verdict::Untested;
    m.why = "no time was left to verify it";
    return m;
  };
  if (enough.passed())
    return noTime();
  m.verdict = Verdict::Correct;
  StopWatch watch;
  // Races, bounds and odd sizes are seen in the emulator only.
  if (verifier)
    verifier->verify(variant, m);
  watch.lap("emulator");
  if (enough.passed()) // it was stopped
    return noTime();
  if (m.correct() || m.verdict == Verdict::NotApplicable) {
    std::map<std::string, double> emulated = std::move(m.counters);
    m = measure(variant, watch, WorkerPool::Clock::time_point::max(), /*closely=*/false);
    m.provisional = false;
    for (const char *both : {"verify.launches", "verify.runs"})
      m.counters[both] += emulated[both];
    if (emulated["verify.launches"] > 0)
      m.counters["emulated"] = 1;
    m.counters.insert(emulated.begin(), emulated.end());
  }
  std::lock_guard lock(mutex);
  if (settled.empty())
    remarks.insert("the first verification:" + textOf(watch));
  if (!m.correct() && !stopping.passed())
    objections.try_emplace(key, m);
  return settled.try_emplace(key, m).first->second;
}

namespace {
/// Several threads verify at a time, where there are processors for them: one variant may keep the emulator for
/// seconds.
unsigned verifiersAtOnce() { return std::clamp(availableProcessors() / 5, 1u, 3u); }
} // namespace

/// Verifies the provisional variants that promise most, and then those that are faster than what is verified.
class GpuEvaluator::Impl::Settler {
public:
  explicit Settler(Impl &impl)
      : impl(impl), bestVerified(impl.baselineMeasurement.time.seconds), lastSanitized(bestVerified) {}
  void run() {
    std::vector<std::thread> others;
    for (unsigned i = 1; i < verifiersAtOnce(); ++i)
      others.emplace_back([this] { settleNext(); });
    settleNext();
    for (std::thread &other : others)
      other.join();
  }

private:
  void settleNext();
  /// The one that promises most, and that nobody verifies; null: there is none that takes less than `limit`.
  const Provisional *choose(double limit);
  /// Lets compute-sanitizer look at the leader, where no gains have come for some time. False: it need not.
  bool sanitizeLeader();
  /// There is time for more, or what is left promises enough. With the evaluator's mutex.
  bool mayGoOn() const;
  /// What became of it. False: there is no time for more.
  bool tell(const Provisional &variant, const Measurement &m, double seconds);

  Impl &impl;
  // All of this with the evaluator's mutex.
  Suspects suspects;
  std::set<const Provisional *> underWay;
  double bestVerified, lastSanitized;
  const Variant *leader = nullptr; ///< of those that are verified
  bool sanitizes = false;          ///< compute-sanitizer is at work, beside which nothing is verified
};

const GpuEvaluator::Impl::Provisional *GpuEvaluator::Impl::Settler::choose(double limit) {
  const Provisional *next = nullptr;
  double most = 0;
  if (sanitizes)
    return nullptr;
  for (const auto &[key, p] : impl.unsettled) {
    if (impl.settled.count(key) || underWay.count(&p) || !p.measurement.guardrails.empty() ||
        !(p.measurement.time.seconds < limit))
      continue;
    const double expected = std::log2(limit / p.measurement.time.seconds) * suspects.chance(p.variant.recipe);
    if (expected > most) {
      most = expected;
      next = &p;
    }
  }
  if (next)
    underWay.insert(next);
  return next;
}

bool GpuEvaluator::Impl::Settler::sanitizeLeader() {
  const Variant *looked = nullptr;
  std::optional<Deadline> run;
  double before = 0;
  {
    std::lock_guard lock(impl.mutex);
    const bool isQuiet = std::chrono::steady_clock::now() - impl.gainedAt > quiet;
    if (sanitizes || !isQuiet || !leader || !underWay.empty() || !(bestVerified < worthSanitizing * lastSanitized))
      return false;
    before = std::exchange(lastSanitized, bestVerified);
    looked = leader;
    sanitizes = true;
    impl.sanitizerRun = &run.emplace(0, impl.enough.flag());
  }
  // What it says counts when the search has ended.
  impl.sanitize(*looked, sanitizerSeconds, *run);
  if (!run->passed())
    impl.describe(*looked);
  std::lock_guard lock(impl.mutex);
  impl.sanitizerRun = nullptr;
  if (run->passed())
    lastSanitized = before;
  sanitizes = false;
  return true;
}

bool GpuEvaluator::Impl::Settler::mayGoOn() const {
  const auto now = std::chrono::steady_clock::now();
  const auto late = impl.lateBy.load();
  const bool hasLastChance = late > WorkerPool::Clock::time_point::max() - lastChance || now <= late + lastChance;
  return now <= impl.closeBy.load() || (!impl.hasVerified() && hasLastChance) ||
         (now <= late && impl.promises(worthWaiting));
}

bool GpuEvaluator::Impl::Settler::tell(const Provisional &variant, const Measurement &m, double seconds) {
  std::lock_guard lock(impl.mutex);
  impl.verifications.push_back({variant.variant.recipe, m.verdict, m.why, seconds});
  underWay.erase(&variant);
  if (!impl.enough.passed()) // else it was stopped
    suspects.add(variant.variant.recipe, m.correct());
  if (m.correct() && m.guardrails.empty()) {
    if (m.time.seconds < bestVerified) {
      bestVerified = m.time.seconds;
      leader = &variant.variant;
    }
    impl.tellGain(variant.variant, m);
  }
  if (mayGoOn())
    return true;
  impl.enough.raise(); // for those beside this one, too
  return false;
}

void GpuEvaluator::Impl::Settler::settleNext() {
  while (!impl.enough.passed()) {
    // Before looking: what is added later is not measured any more.
    const bool isLast = impl.closeBy.load() != std::chrono::steady_clock::time_point::max();
    const Provisional *next;
    {
      std::lock_guard lock(impl.mutex);
      next = choose((isLast || !underWay.empty() ? worthVerifying : 1) * bestVerified);
    }
    if (next) {
      const auto begin = std::chrono::steady_clock::now();
      const Measurement m = impl.settle(next->variant);
      if (!tell(*next, m, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()))
        return;
    } else if (isLast) {
      return;
    } else if (!sanitizeLeader()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

void GpuEvaluator::Impl::settleFastest() { Settler(*this).run(); }

void GpuEvaluator::Impl::tellGain(const Variant &variant, const Measurement &m) {
  double speedup = m.time.seconds > 0 ? baselineMeasurement.time.seconds / m.time.seconds : 0;
  if (!options.gained || !(speedup > 1) || !m.guardrails.empty())
    return;
  options.gained(variant, speedup, !m.provisional);
}

std::map<std::string, Measurement> GpuEvaluator::withdrawn() {
  std::lock_guard lock(impl->mutex);
  return std::exchange(impl->objections, {});
}

bool GpuEvaluator::Impl::hasVerified() const {
  return llvm::any_of(settled, [&](const auto &known) {
    const Measurement &m = known.second;
    return m.correct() && m.guardrails.empty() && m.time.seconds < baselineMeasurement.time.seconds;
  });
}

bool GpuEvaluator::Impl::promises(double part) const {
  double verified = baselineMeasurement.time.seconds, promised = verified;
  for (const auto &[key, p] : unsettled) {
    auto known = settled.find(key);
    const Measurement &m = known == settled.end() ? p.measurement : known->second;
    double &least = known == settled.end() ? promised : verified;
    if (m.correct() && m.guardrails.empty())
      least = std::min(least, m.time.seconds);
  }
  return promised < part * verified;
}

void GpuEvaluator::close(std::chrono::steady_clock::time_point by, std::chrono::steady_clock::time_point late) {
  impl->lateBy = late;
  impl->closeBy = by;
  if (!impl->preparing.joinable())
    return;
  {
    std::unique_lock lock(impl->mutex);
    auto hasEnded = [this] { return impl->hasEnded; };
    bool inTime = impl->ended.wait_until(lock, by, hasEnded);
    if (!inTime && impl->promises(worthWaiting))
      inTime = impl->ended.wait_until(lock, late, hasEnded);
    // It is told when the last one has ended alone.
    for (const auto end = late + lastChance; !inTime && !impl->hasVerified() && std::chrono::steady_clock::now() < end;)
      inTime = impl->ended.wait_for(lock, std::chrono::milliseconds(50), hasEnded);
    if (!inTime)
      impl->enough.raise();
  }
  impl->preparing.join();
}

void GpuEvaluator::abandon() { impl->stopPreparing(); }

void GpuEvaluator::compileUntil(const std::atomic<bool> *ended) { impl->compiler->stopWith(ended); }

bool GpuEvaluator::isVerified(const Variant &variant) const {
  std::lock_guard lock(impl->mutex);
  auto known = impl->settled.find(variant.key());
  return known != impl->settled.end() && known->second.correct();
}

std::vector<Verification> GpuEvaluator::verifications() const {
  std::lock_guard lock(impl->mutex);
  return impl->verifications;
}

void GpuEvaluator::describe(const Variant &variant) { impl->describe(variant); }

Measurement GpuEvaluator::confirm(const Variant &variant) {
  if (impl->broken.empty())
    return impl->settle(variant);
  Measurement m;
  m.verdict = Verdict::Untested;
  m.why = "nothing could be verified: " + impl->broken;
  return m;
}
