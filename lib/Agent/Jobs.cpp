//===- Jobs.cpp - work that may outlast a call ----------------------------===//
#include "Jobs.h"
#include <algorithm>
#include <chrono>

using namespace optiml::agent;
using Clock = std::chrono::steady_clock;

void Job::tell(const std::string &now, nlohmann::json more) {
  std::lock_guard lock(mutex);
  stage = now;
  soFar.update(more);
  changed.notify_all();
}

Jobs::~Jobs() {
  for (auto &[handle, job] : jobs)
    job->isCancelled = true;
  for (auto &[handle, job] : jobs)
    if (job->thread.joinable())
      job->thread.join();
}

ToolAnswer Jobs::run(const std::string &name, double seconds, ToolCall &call, Work work) {
  auto job = std::make_shared<Job>();
  job->name = name;
  std::string handle;
  {
    std::lock_guard lock(mutex);
    if (jobs.size() >= mostKept) {
      auto done = std::find_if(jobs.begin(), jobs.end(), [](const auto &known) {
        std::lock_guard own(known.second->mutex);
        return known.second->answer.has_value();
      });
      if (done == jobs.end())
        return refusal("too many jobs are running; wait for one, or cancel it");
      done->second->thread.join();
      jobs.erase(done);
    }
    handle = name + "-" + std::to_string(++counter);
    jobs[handle] = job;
    job->thread = std::thread([job, work = std::move(work)] {
      ToolAnswer answer = work(*job);
      std::lock_guard own(job->mutex);
      job->answer = std::move(answer);
      job->changed.notify_all();
    });
  }
  return waitFor(*job, handle, seconds, call);
}

ToolAnswer Jobs::waitFor(Job &job, const std::string &handle, double seconds, ToolCall &call) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::string told;
  std::unique_lock lock(job.mutex);
  while (!job.answer && Clock::now() < end && !call.cancelled()) {
    if (job.stage != told) {
      told = job.stage;
      lock.unlock();
      call.progress(told);
      lock.lock();
      continue;
    }
    job.changed.wait_until(lock, std::min(end, Clock::now() + std::chrono::milliseconds(100)));
  }
  if (call.cancelled() && !job.answer)
    job.isCancelled = true;
  if (job.answer)
    return *job.answer;
  nlohmann::json answer = job.soFar;
  answer.update({{"handle", handle}, {"status", "running"}, {"stage", job.stage}});
  return {answer, false};
}

std::shared_ptr<Job> Jobs::find(const std::string &handle) {
  std::lock_guard lock(mutex);
  auto job = jobs.find(handle);
  return job == jobs.end() ? nullptr : job->second;
}

static std::string unknown(const std::string &handle) {
  return "there is no job '" + handle.substr(0, 100) + "'; handles come from calls that were still running";
}

ToolAnswer Jobs::wait(const std::string &handle, double seconds, ToolCall &call) {
  std::shared_ptr<Job> job = find(handle);
  return job ? waitFor(*job, handle, seconds, call) : refusal(unknown(handle));
}

ToolAnswer Jobs::cancel(const std::string &handle) {
  std::shared_ptr<Job> job = find(handle);
  if (!job)
    return refusal(unknown(handle));
  std::lock_guard lock(job->mutex);
  if (!job->answer)
    job->isCancelled = true;
  if (job->answer)
    return {{{"handle", handle}, {"status", "ended before"}}, false};
  return {{{"handle", handle}, {"status", "cancelled"}}, false};
}

size_t Jobs::running() {
  std::lock_guard lock(mutex);
  return size_t(std::count_if(jobs.begin(), jobs.end(), [](const auto &known) {
    std::lock_guard own(known.second->mutex);
    return !known.second->answer;
  }));
}
