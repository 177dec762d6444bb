//===- Queue.cpp - work on streams ----------------------------------------===//
#include "Queue.h"
#include "Api.h"
#include "AroundLaunch.h"
#include "Coverage.h"
#include "Settings.h"
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <vector>

using namespace optiml::emu;

struct optiml::emu::Work {
  uint64_t number;
  std::function<cudaError_t()> todo;
  std::vector<WorkHandle> after;
  bool done = false;
  cudaError_t error = cudaSuccess;
};

namespace {
struct Queue {
  std::recursive_mutex mutex; // callbacks may call the runtime
  std::map<cudaStream_t, WorkHandle> last;
  std::vector<WorkHandle> pending; ///< in the order of their numbers
  std::atomic<uint64_t> numbers{0};
  std::atomic<bool> mayBeLate{false};
};
Queue &queue() {
  static auto *q = new Queue; // for ever
  return *q;
}
thread_local uint64_t current = 0; ///< number of the work that is being done
} // namespace

static cudaStream_t nameOf(cudaStream_t s) { return s == cudaStreamLegacy ? nullptr : s; }

static cudaError_t perform(Work &work) {
  const uint64_t outer = current;
  current = work.number;
  work.error = work.todo();
  current = outer;
  work.done = true;
  work.todo = nullptr;
  work.after.clear();
  return work.error;
}

void optiml::emu::finish(const WorkHandle &work) {
  if (!work)
    return;
  Queue &q = queue();
  std::lock_guard lock(q.mutex);
  std::set<Work *> needed;
  std::vector<WorkHandle> list = {work};
  for (size_t i = 0; i < list.size(); ++i) { // it grows
    WorkHandle w = list[i];
    if (w->done || !needed.insert(w.get()).second)
      continue;
    list.insert(list.end(), w->after.begin(), w->after.end());
  }
  std::sort(list.begin(), list.end(), [](const WorkHandle &a, const WorkHandle &b) { return a->number < b->number; });
  for (const WorkHandle &w : list)
    if (!w->done)
      perform(*w);
  std::erase_if(q.pending, [](const WorkHandle &w) { return w->done; });
}

void optiml::emu::finishAll() {
  Queue &q = queue();
  std::lock_guard lock(q.mutex);
  while (!q.pending.empty())
    finish(q.pending.front());
}

/// What work that comes into the stream now has to wait for: the work before it and, between the legacy stream and the
/// streams that it blocks, the other's.
static std::vector<WorkHandle> before(cudaStream_t stream) {
  Queue &q = queue();
  std::vector<WorkHandle> result;
  for (const auto &[other, work] : q.last) {
    const bool blocking = !other || !isNonBlocking(other);
    if (!work->done && (other == stream || (!stream && blocking) || (!other && !isNonBlocking(stream))))
      result.push_back(work);
  }
  return result;
}

static WorkHandle add(cudaStream_t stream, std::function<cudaError_t()> todo, WorkHandle alsoAfter = nullptr) {
  static std::once_flag once;
  std::call_once(once, [] {
    openCopyLog(); // what is registered first is called last
    writeCoverageAtExit();
    atexit(finishAll);
  });
  Queue &q = queue();
  std::lock_guard lock(q.mutex);
  stream = nameOf(stream);
  auto work = std::make_shared<Work>(Work{++q.numbers, std::move(todo), before(stream)});
  if (alsoAfter)
    work->after.push_back(std::move(alsoAfter));
  q.last[stream] = work;
  q.pending.push_back(work);
  return work;
}

cudaError_t optiml::emu::enqueue(cudaStream_t stream, std::function<cudaError_t()> todo) {
  if (nameOf(stream))
    noteMayBeLate();
  if (!settings().late || current) {
    Work work{current ? current : ++queue().numbers, std::move(todo), {}};
    return perform(work);
  }
  add(stream, std::move(todo));
  return cudaSuccess;
}

cudaError_t optiml::emu::enqueueAndFinish(cudaStream_t stream, std::function<cudaError_t()> todo) {
  if (!settings().late || current)
    return enqueue(stream, std::move(todo));
  WorkHandle work = add(stream, std::move(todo));
  finish(work);
  return work->error;
}

WorkHandle optiml::emu::markOf(cudaStream_t stream) {
  return settings().late ? add(stream, [] { return cudaSuccess; }) : nullptr;
}

void optiml::emu::waitFor(cudaStream_t stream, const WorkHandle &work) {
  if (settings().late)
    add(stream, [] { return cudaSuccess; }, work);
}

void optiml::emu::finishStream(cudaStream_t stream) { finish(markOf(stream)); }

void optiml::emu::forgetStream(cudaStream_t stream) {
  std::lock_guard lock(queue().mutex);
  auto it = queue().last.find(stream);
  if (it == queue().last.end())
    return;
  WorkHandle last = it->second;
  queue().last.erase(it);
  if (!isNonBlocking(stream)) // the legacy stream still waits for it
    waitFor(nullptr, last);
}

uint64_t optiml::emu::workNumber() { return current ? current : ++queue().numbers; }
bool optiml::emu::mayBeLate() { return queue().mayBeLate; }
void optiml::emu::noteMayBeLate() { queue().mayBeLate = true; }
