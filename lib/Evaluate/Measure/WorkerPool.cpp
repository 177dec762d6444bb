//===- WorkerPool.cpp - optiml-worker processes, one a GPU ----------------===//
#include "optiml/Evaluate/Measure/WorkerPool.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/LineProcess.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>

using namespace optiml;
using namespace optiml::gpu;

// A context takes about half a second; several at once on a busy machine, or ssh, take longer.
static constexpr double startSeconds = 60, setUpSeconds = 600;
static constexpr unsigned mostFailedStarts = 3; // in a row
static constexpr unsigned mostSetUps = 12;      // inputs on which the original breaks the context

namespace {

struct Slot {
  unsigned device = 0;
  std::unique_ptr<LineProcess> process; ///< null: must be started (again)
  bool busy = false;
  unsigned failedStarts = 0;
  std::atomic<unsigned> answers{0};
};

enum class Call { Answered, Died, TimedOut, Cancelled };

} // namespace

struct WorkerPool::Impl {
  WorkerPoolOptions options;
  DeviceInfo device;
  std::vector<std::unique_ptr<Slot>> slots;
  std::string load, prepare; ///< what a new worker is told first; empty before setUp
  std::string lastFailure;   ///< why a worker could not be started
  std::mutex mutex;
  std::condition_variable freed;
  std::atomic<unsigned> restarts{0};

  llvm::Expected<std::unique_ptr<LineProcess>> start(unsigned device, DeviceInfo &info);
  /// A free slot, marked busy; null when every worker is beyond repair or the search is cancelled.
  /// Null: there is none any more, or none came free by then.
  Slot *take(Clock::time_point beginBy);
  void release(Slot &slot);
  /// Makes sure that a prepared worker runs in the slot.
  llvm::Error revive(Slot &slot);
  Call call(Slot &slot, const std::string &request, double seconds, std::string &line, std::string &why);
  /// Tells a worker that has loaded nothing what to load.
  llvm::Error tellLoad(Slot &slot, const std::string &loading, double seconds, LoadReply &reply);
  /// Loads the workload, unless `loading` is empty, and prepares the original on all workers but the first.
  void prepareOthers(const std::string &loading, llvm::function_ref<double()> left, std::vector<std::string> &notes);
  /// `call` with a second try when the worker died. `read` takes the answer and says whether the worker can go on.
  /// False, and `why`: it failed twice, or (`timedOut`) gave no answer in time.
  llvm::Expected<bool> ask(const std::string &request, double seconds, Clock::time_point beginBy,
                           llvm::function_ref<bool(const std::string &)> read, std::string &why, bool &timedOut);
};

WorkerPool::WorkerPool() = default;
WorkerPool::~WorkerPool() = default;
const DeviceInfo &WorkerPool::device() const { return impl->device; }
unsigned WorkerPool::size() const { return unsigned(impl->slots.size()); }
unsigned WorkerPool::restarts() const { return impl->restarts; }

std::vector<unsigned> WorkerPool::answers() const {
  std::vector<unsigned> counts;
  for (const auto &slot : impl->slots)
    counts.push_back(slot->answers);
  return counts;
}

std::vector<std::string> WorkerPool::workerCommand(const std::string &binDir) {
  const char *given = getenv("OPTIML_WORKER");
  if (!given || !*given)
    return {binDir + "/optiml-worker"};
  llvm::SmallVector<llvm::StringRef> words;
  llvm::StringRef(given).split(words, ' ', -1, /*KeepEmpty=*/false);
  return {words.begin(), words.end()};
}

llvm::Expected<std::unique_ptr<LineProcess>> WorkerPool::Impl::start(unsigned index, DeviceInfo &info) {
  std::vector<std::string> command = options.command;
  command.push_back("--device=" + std::to_string(index));
  auto process = LineProcess::start(command);
  if (!process)
    return process.takeError();
  std::string line, why;
  switch ((*process)->receive(line, startSeconds, options.cancel)) {
  case LineProcess::Answer::Line:
    if (!decode(line, info, why))
      return makeError("'{0}' answers, but {1}", command[0], why);
    return process;
  case LineProcess::Answer::Ended: {
    // "exit code 1: optiml-worker: error: there is no …"
    std::string said = (*process)->describe();
    size_t error = said.find("error: ");
    return makeError("{0}", error == std::string::npos ? said : said.substr(error + 7));
  }
  case LineProcess::Answer::TimedOut: return makeError("'{0}' did not start within {1} s", command[0], startSeconds);
  case LineProcess::Answer::Cancelled: break;
  }
  return makeError("cancelled");
}

llvm::Expected<std::unique_ptr<WorkerPool>> WorkerPool::create(WorkerPoolOptions options) {
  std::unique_ptr<WorkerPool> pool(new WorkerPool);
  pool->impl = std::make_unique<Impl>();
  Impl &impl = *pool->impl;
  impl.options = std::move(options);
  auto first = impl.start(0, impl.device);
  if (!first)
    return first.takeError();
  auto add = [&](unsigned index, std::unique_ptr<LineProcess> process) {
    impl.slots.push_back(std::make_unique<Slot>());
    impl.slots.back()->device = index;
    impl.slots.back()->process = std::move(process);
  };
  add(0, std::move(*first));
  unsigned most = impl.options.devices ? impl.options.devices : impl.device.devices;
  for (unsigned i = 1; i < std::min(most, impl.device.devices); ++i) {
    DeviceInfo info;
    auto other = impl.start(i, info);
    if (!other)
      llvm::consumeError(other.takeError()); // the others do
    else if (info.name == impl.device.name)
      add(i, std::move(*other));
  }
  return pool;
}

Call WorkerPool::Impl::call(Slot &slot, const std::string &request, double seconds, std::string &line,
                            std::string &why) {
  LineProcess::Answer answer =
      slot.process->send(request) ? slot.process->receive(line, seconds, options.cancel) : LineProcess::Answer::Ended;
  switch (answer) {
  case LineProcess::Answer::Line: return Call::Answered;
  case LineProcess::Answer::Ended:
    slot.process->kill();
    why = "the GPU worker ended (" + slot.process->describe() + ")";
    slot.process.reset();
    return Call::Died;
  case LineProcess::Answer::TimedOut:
    why = llvm::formatv("the GPU worker did not answer within {0:f0} s", seconds).str();
    slot.process.reset();
    return Call::TimedOut;
  case LineProcess::Answer::Cancelled: break;
  }
  why = "cancelled";
  slot.process.reset();
  return Call::Cancelled;
}

llvm::Error WorkerPool::Impl::revive(Slot &slot) {
  if (slot.process)
    return llvm::Error::success();
  DeviceInfo info;
  auto process = start(slot.device, info);
  if (!process) {
    ++slot.failedStarts;
    return process.takeError();
  }
  slot.process = std::move(*process);
  std::string line, why;
  for (const std::string *request : {&load, &prepare}) {
    if (request->empty())
      continue;
    LoadReply reply; // either reply has a "why"
    if (call(slot, *request, setUpSeconds, line, why) == Call::Answered) {
      PrepareReply prepared;
      bool read = request == &load ? decode(line, reply, why) : decode(line, prepared, why);
      if (read && request == &prepare)
        why = prepared.why;
      else if (read)
        why = reply.why;
    }
    if (!why.empty()) {
      slot.process.reset();
      ++slot.failedStarts;
      return makeError("{0}", why);
    }
  }
  slot.failedStarts = 0;
  return llvm::Error::success();
}

Slot *WorkerPool::Impl::take(Clock::time_point beginBy) {
  std::unique_lock lock(mutex);
  while (Clock::now() < beginBy) {
    bool any = false;
    for (auto &slot : slots) {
      if (slot->failedStarts >= mostFailedStarts)
        continue;
      any = true;
      if (!slot->busy) {
        slot->busy = true;
        return slot.get();
      }
    }
    if (!any || (options.cancel && *options.cancel))
      return nullptr;
    freed.wait_for(lock, std::chrono::milliseconds(100));
  }
  return nullptr;
}

void WorkerPool::Impl::release(Slot &slot) {
  std::lock_guard lock(mutex);
  slot.busy = false;
  freed.notify_one();
}

llvm::Expected<bool> WorkerPool::Impl::ask(const std::string &request, double seconds, Clock::time_point beginBy,
                                           llvm::function_ref<bool(const std::string &)> read, std::string &why,
                                           bool &timedOut) {
  std::string line;
  for (unsigned tries = 0; tries < 2;) {
    Slot *slot = take(beginBy);
    if (!slot) {
      if (Clock::now() >= beginBy)
        return makeError("no GPU came free in time");
      std::lock_guard lock(mutex);
      return makeError("no GPU worker can be used: {0}", lastFailure.empty() ? "cancelled" : lastFailure);
    }
    restarts += !slot->process;
    if (llvm::Error e = revive(*slot)) {
      {
        std::lock_guard lock(mutex);
        lastFailure = llvm::toString(std::move(e));
      }
      release(*slot);
      continue;
    }
    Call outcome = call(*slot, request, seconds, line, why);
    slot->answers += outcome == Call::Answered;
    if (outcome == Call::Answered && !read(line))
      slot->process.reset(); // its context is broken; it ends by itself
    release(*slot);
    if (outcome == Call::Cancelled)
      return makeError("cancelled");
    if (outcome == Call::Answered)
      return true;
    timedOut = outcome == Call::TimedOut;
    if (timedOut)
      return false;
    ++tries;
  }
  return false;
}

llvm::Error WorkerPool::Impl::tellLoad(Slot &slot, const std::string &loading, double seconds, LoadReply &reply) {
  std::string line, why;
  if (call(slot, loading, seconds, line, why) != Call::Answered || !decode(line, reply, why))
    return makeError("{0}", why);
  if (!reply.why.empty())
    return makeError("the workload cannot be replayed on the GPU: {0}", reply.why);
  return llvm::Error::success();
}

void WorkerPool::Impl::prepareOthers(const std::string &loading, llvm::function_ref<double()> left,
                                     std::vector<std::string> &notes) {
  std::vector<std::future<std::string>> others; // why it is not used
  for (size_t i = 1; i < slots.size(); ++i)
    others.push_back(std::async(std::launch::async, [&, i]() -> std::string {
      // A worker that was there already has nothing loaded; one that starts is told both.
      Slot &slot = *slots[i];
      if (!slot.process) {
        llvm::Error e = revive(slot);
        return e ? llvm::toString(std::move(e)) : "";
      }
      LoadReply reply;
      if (llvm::Error e = loading.empty() ? llvm::Error::success() : tellLoad(slot, loading, left(), reply))
        return llvm::toString(std::move(e));
      std::string line, why;
      return call(slot, prepare, left(), line, why) == Call::Answered ? "" : why;
    }));
  for (size_t i = 0; i < others.size(); ++i)
    if (std::string unused = others[i].get(); !unused.empty()) {
      slots[i + 1]->failedStarts = mostFailedStarts;
      notes.push_back("GPU " + std::to_string(slots[i + 1]->device) + " is not used: " + unused);
    }
}

llvm::Expected<PrepareReply> WorkerPool::setUp(const LoadRequest &load, const std::vector<MakeRequest> &alternatives,
                                               std::vector<std::string> &notes, double seconds) {
  Impl &p = *impl;
  Clock::time_point begin = Clock::now();
  auto left = [&] {
    double spent = std::chrono::duration<double>(Clock::now() - begin).count();
    return std::clamp(seconds - spent, 1e-3, setUpSeconds);
  };
  const std::string wanted = encode(load);
  const bool isLoaded = p.load == wanted;
  p.prepare.clear();
  Slot &first = *p.slots.front();
  if (!isLoaded) {
    if (!p.load.empty()) // a worker loads once
      for (auto &slot : p.slots)
        slot->process.reset();
    p.load.clear();
    LoadReply loaded;
    if (llvm::Error e = p.revive(first))
      return std::move(e);
    if (llvm::Error e = p.tellLoad(first, wanted, left(), loaded))
      return std::move(e);
    p.load = wanted;
    notes.insert(notes.end(), loaded.notes.begin(), loaded.notes.end());
  }
  std::string line, why;
  PrepareReply prepared;
  std::deque<MakeRequest> untried(alternatives.begin(), alternatives.end());
  for (unsigned tries = 0; !untried.empty() && tries < mostSetUps; ++tries) {
    llvm::Expected<PrepareRequest> made = untried.front()();
    untried.pop_front();
    if (!made)
      return made.takeError();
    PrepareRequest request = std::move(*made);
    p.prepare.clear();
    if (llvm::Error e = p.revive(first)) // loads again
      return std::move(e);
    p.prepare = encode(request);
    why.clear();
    prepared = {};
    if (p.call(first, p.prepare, left(), line, why) == Call::Answered && decode(line, prepared, why))
      why = prepared.why;
    if (why.empty())
      break;
    first.process.reset(); // the context is broken
    // Where there is nothing more careful left, go on without the case that broke it.
    size_t broken = prepared.unusable.size();
    if (untried.empty() && broken < request.cases.size()) {
      const CaseRequest culprit = request.cases[broken];
      notes.push_back("nothing is compared on " + culprit.name + ": " + why);
      std::erase_if(request.cases, [&](const CaseRequest &c) {
        return c.launch == culprit.launch && (culprit.inputs.empty() || c.inputs == culprit.inputs);
      });
      if (!request.cases.empty())
        untried.push_back([request = std::move(request)] { return request; });
    }
  }
  if (!why.empty())
    return makeError("the original cannot be run again on the GPU: {0}", why);
  p.prepareOthers(isLoaded ? "" : wanted, left, notes);
  return prepared;
}

template <typename Reply> static bool readReply(const std::string &line, Reply &reply) {
  std::string error;
  if (!decode(line, reply, error))
    reply.why = "the GPU worker's answer makes no sense: " + error;
  return error.empty();
}

llvm::Expected<WorkerPool::Evaluated> WorkerPool::evaluate(const EvaluateRequest &request, double seconds,
                                                           Clock::time_point beginBy) {
  Evaluated result;
  std::string why;
  auto answered = impl->ask(
      encode(request), seconds, beginBy,
      [&](const std::string &line) { return readReply(line, result.reply) && !result.reply.lost; }, why,
      result.timedOut);
  if (!answered)
    return answered.takeError();
  if (!*answered)
    result.reply.why = why;
  return result;
}

llvm::Expected<ProfileReply> WorkerPool::profile(const ProfileRequest &request, double seconds) {
  ProfileReply reply;
  std::string why;
  bool timedOut = false;
  auto answered = impl->ask(
      encode(request), seconds, Clock::time_point::max(),
      [&](const std::string &line) { return readReply(line, reply); }, why, timedOut);
  if (!answered)
    return answered.takeError();
  if (!*answered)
    reply.why = why;
  return reply;
}
