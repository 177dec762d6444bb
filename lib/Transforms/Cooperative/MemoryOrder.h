//===- MemoryOrder.h - where a group's threads have to meet -----*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_MEMORYORDER_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_MEMORYORDER_H

#include "Reduction.h"
#include "optiml/Analysis/KernelModel.h"

namespace optiml {

/// The global arrays that a group's threads have accessed since its last barrier, while its statements are written one
/// after the other, and the barriers that keep accesses in order.
class MemoryOrder {
public:
  using Arrays = std::set<std::string>;
  /// Accesses by any thread of the group, and by its first thread alone.
  struct Pending {
    Arrays reads, writes, ownReads, ownWrites;
    void add(const Pending &o);
  };

  MemoryOrder(const KernelModel &model, const ThreadGroup &group) : model(model), group(group) {}

  /// Global arrays that `s` reads and writes, its children included or only its own expressions.
  void accessed(const Stmt &s, bool children, Arrays &reads, Arrays &writes) const;
  /// Orders what follows (reads and writes by any thread, or by the first alone) after what is pending: `out` ends with
  /// a barrier where they may meet.
  void order(const Arrays &reads, const Arrays &writes, bool own, std::vector<StmtRef> &out);

  Pending pending;

private:
  bool mayMeet(const Arrays &a, const Arrays &b) const;

  const KernelModel &model;
  ThreadGroup group;
};

/// Whether two parameters may lead to the same memory.
bool mayMeet(const KernelModel &model, const std::string &a, const std::string &b);

} // namespace optiml

#endif
