//===- Flow.cpp - evaluations that nobody waits for -----------------------===//
#include "Flow.h"

using namespace optiml;
using namespace optiml::search;

Flow::Flow(Session &session) : session(session) {
  for (unsigned i = 0; i < session.settings.jobs; ++i)
    threads.emplace_back([this] { work(); });
}

Flow::~Flow() {
  {
    std::lock_guard lock(mutex);
    ending = true;
    waiting.clear();
  }
  given.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

/// Half as many again as there are threads, so that none waits while the next are chosen.
size_t Flow::capacity() const {
  return std::max<size_t>(2, std::min<size_t>(session.settings.batch, session.settings.jobs * 3 / 2));
}

void Flow::add(Job job) {
  if (!session.allowance(1)) // what is under way may use up the budget
    return session.finishJob(job, nullptr, {});
  auto task = std::make_unique<Task>();
  task->start = job.walk.from->state;
  task->start.measurement = nullptr; // may change meanwhile
  task->recipe = job.walk.from->recipe;
  task->job = std::move(job);
  ++underWay;
  {
    std::lock_guard lock(mutex);
    waiting.push_back(std::move(task));
  }
  given.notify_one();
}

void Flow::work() {
  while (true) {
    TaskPtr task;
    {
      std::unique_lock lock(mutex);
      given.wait(lock, [&] { return ending || !waiting.empty(); });
      if (waiting.empty())
        return;
      task = std::move(waiting.front());
      waiting.pop_front();
    }
    perform(*task);
    const Timing *time = task->measurement && task->measurement->correct() ? &task->measurement->time : nullptr;
    const bool isFaster = time && time->seconds < time->baseline;
    const LegalActions onwards = task->onwards;
    bool isIdle = false;
    {
      std::lock_guard lock(mutex);
      done.push_back(std::move(task));
      finished.notify_one();
      isIdle = waiting.empty() && !ending;
    }
    // The search may go on from there, and would wait for it.
    for (size_t i = 0; isIdle && isFaster && i < onwards.parts() && !session.outOfTime(); ++i)
      onwards.find(i);
  }
}

void Flow::perform(Task &task) {
  Walk &walk = task.job.walk;
  session.takeSteps(walk, task.start, task.recipe.size());
  task.isDropped = session.outOfTime() || (task.job.isWanted && !task.job.isWanted(walk));
  if (task.isDropped)
    return;
  for (const auto &[action, state] : walk.steps)
    task.recipe.push_back(action);
  const SearchState &end = walk.steps.empty() ? task.start : walk.steps.back().second;
  if (end.isSketch)
    return;
  task.onwards = end.legal;
  {
    std::lock_guard lock(mutex);
    task.isBegunElsewhere = !begun.insert(end.key).second;
    if (task.isBegunElsewhere)
      return;
  }
  task.measurement = session.measure(end, task.recipe, Fidelity::Verified, task.recalled);
  if (!task.measurement) { // there was no time
    std::lock_guard lock(mutex);
    begun.erase(end.key);
  }
}

void Flow::fold(Task &task) {
  --underWay;
  if (task.isDropped)
    return session.finishJob(task.job, nullptr, {});
  Node *end = nullptr;
  Path path = session.enter(task.job.walk, end);
  if (end->state.isSketch && !end->failed && !end->measured)
    session.standIn(*end);
  if (task.measurement && !end->failed && !end->measured)
    session.fold(*end, std::move(*task.measurement), task.recalled);
  session.finishJob(task.job, end, path);
  // Another job evaluates it: until that has finished, it is not chosen again.
  end->pending = !end->measured && !end->failed && task.isBegunElsewhere;
}

void Flow::settle(size_t most) {
  while (true) {
    std::deque<TaskPtr> ready;
    {
      std::unique_lock lock(mutex);
      if (underWay > most)
        finished.wait(lock, [&] { return !done.empty(); });
      ready.swap(done);
    }
    if (ready.empty())
      break;
    for (TaskPtr &task : ready)
      fold(*task);
  }
  session.takeBack();
}
