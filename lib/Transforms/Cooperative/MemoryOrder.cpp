//===- MemoryOrder.cpp - where a group's threads have to meet -------------===//
#include "MemoryOrder.h"
#include "optiml/Analysis/TreeQueries.h"

using namespace optiml;

bool optiml::mayMeet(const KernelModel &model, const std::string &a, const std::string &b) {
  const Param *pa = model.param(a), *pb = model.param(b);
  return a == b || !pa || !pb || !pa->type.isRestrict || !pb->type.isRestrict;
}

void MemoryOrder::Pending::add(const Pending &o) {
  reads.insert(o.reads.begin(), o.reads.end());
  writes.insert(o.writes.begin(), o.writes.end());
  ownReads.insert(o.ownReads.begin(), o.ownReads.end());
  ownWrites.insert(o.ownWrites.begin(), o.ownWrites.end());
}

bool MemoryOrder::mayMeet(const Arrays &a, const Arrays &b) const {
  for (const std::string &x : a)
    for (const std::string &y : b)
      if (optiml::mayMeet(model, x, y))
        return true;
  return false;
}

void MemoryOrder::accessed(const Stmt &s, bool children, Arrays &reads, Arrays &writes) const {
  for (const Access &access : model.accesses())
    if (access.space == Space::Global &&
        (access.stmt == &s || (s.init && access.stmt == s.init.get()) || (children && insideOf(access, &s)))) {
      if (access.read)
        reads.insert(access.array);
      if (access.write)
        writes.insert(access.array);
    }
}

void MemoryOrder::order(const Arrays &reads, const Arrays &writes, bool own, std::vector<StmtRef> &out) {
  bool meets = mayMeet(reads, pending.writes) || mayMeet(writes, pending.writes) || mayMeet(writes, pending.reads);
  if (!own)
    meets |=
        mayMeet(reads, pending.ownWrites) || mayMeet(writes, pending.ownWrites) || mayMeet(writes, pending.ownReads);
  if (meets) {
    out.push_back(groupBarrier(group));
    pending = {};
  }
  (own ? pending.ownReads : pending.reads).insert(reads.begin(), reads.end());
  (own ? pending.ownWrites : pending.writes).insert(writes.begin(), writes.end());
}
