//===- Jobs.h - work that may outlast a call --------------------*- C++ -*-===//
//
// Clients give a call up after a minute. So each piece of work is a job with a handle: the call waits for some seconds,
// and answers with what there is.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_AGENT_JOBS_H
#define OPTIML_LIB_AGENT_JOBS_H

#include "optiml/Agent/McpServer.h"
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace optiml::agent {

class Job : public std::enable_shared_from_this<Job> {
public:
  /// What is known so far, for who waits.
  void tell(const std::string &stage, nlohmann::json more = nlohmann::json::object());
  const std::atomic<bool> &cancelled() const { return isCancelled; }

private:
  friend class Jobs;
  std::string name;
  std::atomic<bool> isCancelled{false};
  std::mutex mutex; ///< of what follows
  std::condition_variable changed;
  nlohmann::json soFar = nlohmann::json::object();
  std::string stage;
  std::optional<ToolAnswer> answer;
  std::thread thread;
};

class Jobs {
public:
  using Work = std::function<ToolAnswer(Job &)>;
  ~Jobs(); ///< cancels all of them, and waits
  /// Starts the work and waits for at most `seconds`: its answer, or its handle with what is known so far.
  ToolAnswer run(const std::string &name, double seconds, ToolCall &call, Work work);
  /// Goes on waiting.
  ToolAnswer wait(const std::string &handle, double seconds, ToolCall &call);
  ToolAnswer cancel(const std::string &handle);
  /// Not ended yet.
  size_t running();

private:
  static constexpr size_t mostKept = 64; ///< jobs whose answers nobody has fetched
  std::shared_ptr<Job> find(const std::string &handle);
  static ToolAnswer waitFor(Job &job, const std::string &handle, double seconds, ToolCall &call);
  std::mutex mutex; ///< of what follows
  std::map<std::string, std::shared_ptr<Job>> jobs;
  unsigned counter = 0;
};

} // namespace optiml::agent

#endif
