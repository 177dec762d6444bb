//===- Flow.h - evaluations that nobody waits for ---------------*- C++ -*-===//
//
// Where answers may come in any order, a search goes on with those that are there: a variant that takes nvcc four
// seconds holds no other up. Threads walk and evaluate; the thread that searches folds in what has finished.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_SEARCH_FLOW_H
#define OPTIML_LIB_SEARCH_FLOW_H

#include "Session.h"
#include <condition_variable>
#include <deque>
#include <set>
#include <thread>

namespace optiml::search {

class Flow {
public:
  explicit Flow(Session &session);
  /// What was not begun is dropped.
  ~Flow();

  void add(Job job);
  /// Waits until at most so many jobs are under way, and folds in all that have finished.
  void settle(size_t most);
  size_t size() const { return underWay; }
  size_t capacity() const;

private:
  /// What a thread needs of a job, and what it finds out.
  struct Task {
    Job job;
    SearchState start;
    Recipe recipe; ///< to where the walk begins; then to its end
    std::optional<Measurement> measurement;
    LegalActions onwards; ///< from the walk's end
    bool recalled = false;
    bool isDropped = false, isBegunElsewhere = false;
  };
  using TaskPtr = std::unique_ptr<Task>;

  void work();
  void perform(Task &task);
  void fold(Task &task);

  Session &session;
  std::mutex mutex;
  std::condition_variable given, finished;
  std::deque<TaskPtr> waiting, done;
  std::set<std::string> begun; ///< keys of what is evaluated or was
  size_t underWay = 0;         ///< of the thread that searches
  bool ending = false;
  std::vector<std::thread> threads;
};

} // namespace optiml::search

#endif
