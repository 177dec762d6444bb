//===- BlockRunner.h - statements, run for all threads at once --*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_BLOCKRUNNER_H
#define OPTIML_ANALYSIS_BLOCKRUNNER_H

#include "ThreadValues.h"

namespace optiml {

/// Which threads have come to an array's elements since the last barrier.
class SharedTouches {
public:
  explicit SharedTouches(size_t elements = 0) : reader(elements, nobody), writer(elements, nobody) {}
  size_t size() const { return reader.size(); }
  void meet();
  /// False where two threads race.
  bool touch(int64_t element, int64_t thread, bool writes);

private:
  static constexpr int64_t nobody = -1, several = -2;
  std::vector<int64_t> reader, writer; ///< a thread, nobody, or several
};

/// Runs statements for all threads of a block, whose conditions are integers that are known. What values mean is for
/// those who derive from it.
class BlockRunner {
public:
  BlockRunner(const KernelModel &model, int64_t threads) : model(model), threads(threads), value(model, threads) {}
  virtual ~BlockRunner() = default;

  /// False where a statement does something else than what is understood, or threads do not meet at a barrier.
  bool run(Stmt &s) { return run(s, ActiveThreads(size_t(threads), true)); }
  bool synchronizes() const { return barriers > 0; }

protected:
  virtual bool declare(const Stmt &s, const ActiveThreads &active) = 0;
  /// A statement that is no control flow, or an if whose condition is no known integer.
  virtual bool execute(const Stmt &s, const ActiveThreads &active) = 0;
  /// All threads are at a barrier.
  virtual void meet() = 0;

  const KernelModel &model;
  int64_t threads;
  ThreadValues value;

private:
  bool run(Stmt &s, const ActiveThreads &active);
  bool runList(Stmt &block, const ActiveThreads &active);
  bool runLoop(Stmt &s, const ActiveThreads &active);

  unsigned barriers = 0;
};

} // namespace optiml

#endif
