//===- ThreadValues.h - integers as the threads of a block see them -*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_THREADVALUES_H
#define OPTIML_ANALYSIS_THREADVALUES_H

#include "optiml/Analysis/KernelModel.h"

namespace optiml {

/// By thread of a block: whether it runs a statement.
using ActiveThreads = std::vector<bool>;
/// Of a block that can be launched.
constexpr int64_t mostThreads = 1024;

/// Values of integer expressions in the threads of a block with `threads` threads along x; locals that are assigned
/// once are looked through.
class ThreadValues {
public:
  ThreadValues(const KernelModel &model, int64_t threads) : model(model), threads(threads) {}

  /// Nothing where it depends on anything but the thread's index and `variables`.
  std::optional<int64_t> operator()(const ExprRef &e, int64_t thread) const { return valueOf(e, thread, 0); }
  /// The active threads in which `condition` holds.
  std::optional<ActiveThreads> where(const ExprRef &condition, const ActiveThreads &active) const;
  /// Gives a variable a value in the active threads, converted to its type; false where that is not known.
  bool set(const std::string &name, const Type &type, const ExprRef &e, const ActiveThreads &active);
  /// "i = …", "i += …", "++i" of one of `variables`.
  bool assign(const ExprRef &e, const ActiveThreads &active);

  /// Variables of statements that are being run, a value for each thread.
  std::map<std::string, std::vector<int64_t>> variables;

private:
  std::optional<int64_t> valueOf(const ExprRef &e, int64_t thread, unsigned depth) const;
  std::optional<int64_t> builtin(const std::string &name, int64_t thread) const;

  const KernelModel &model;
  int64_t threads;
};

} // namespace optiml

#endif
