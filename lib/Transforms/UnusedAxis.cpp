//===- UnusedAxis.cpp - threads that do the same --------------------------===//
//
// A kernel that looks at x alone may be launched with blocks of 32 x 8: eight threads do each piece of work. In step,
// or one after the other, they leave what one of them leaves, provided that none reads what another may have left.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// `write` is a statement of a block that also holds `read`, further down: no path leads around it.
static bool comesBefore(const KernelModel &model, const Access &write, const Access &read) {
  if (!write.write || write.read || write.op != "=" || write.array != read.array ||
      write.subscripts != read.subscripts || write.path.empty() || write.path.back()->kind != StmtKind::Block)
    return false;
  if (write.stmt->kind != StmtKind::Expr || write.stmt->expr->kind != ExprKind::Assign ||
      write.stmt->expr->args[0] != write.node ||
      !llvm::all_of(write.subscripts, [&](const Poly &p) { return model.stable(p); }))
    return false;
  const Stmt *list = write.path.back();
  auto around = llvm::find(read.path, list);
  if (around == read.path.end())
    return false;
  const Stmt *child = std::next(around) == read.path.end() ? read.stmt : *std::next(around);
  size_t first = list->body.size(), second = 0;
  for (size_t i = 0; i < list->body.size(); ++i) {
    if (list->body[i].get() == write.stmt)
      first = i;
    if (list->body[i].get() == child)
      second = i;
  }
  return first < second;
}

/// A second thread that does the same work after the first changes nothing. Records which arrays may not overlap.
static llvm::Error requireRepeatable(KernelState &state) {
  const Kernel &kernel = *state.original;
  KernelModel model(kernel, {0, 0, 0});
  if (unsigned line = model.unknownOutsideLine())
    return notApplicable("line {0} may access memory in ways that are not understood", line);
  bool shared = threadsWorkTogether(kernel);
  for (const Param &p : kernel.params)
    shared |= p.type.pointee && p.type.pointee->isVolatile;
  if (shared)
    return notApplicable("the kernel's threads work together");
  std::set<std::string> written;
  for (const Access &access : model.accesses()) {
    if (access.atomic)
      return notApplicable("atomic operations add up (line {0})", access.stmt->line);
    if (access.write && access.space == Space::Global)
      written.insert(access.array);
  }
  for (const Access &access : model.accesses()) {
    if (!access.read || access.space != Space::Global)
      continue;
    if (written.count(access.array) &&
        llvm::none_of(model.accesses(), [&](const Access &write) { return comesBefore(model, write, access); }))
      return notApplicable("{0} is read as the thread before may have left it (line {1})", access.array,
                           access.stmt->line);
    for (const std::string &array : written)
      if (array != access.array)
        if (llvm::Error e = requireDisjoint(state, model, access.array, array))
          return e;
  }
  return llvm::Error::success();
}

void optiml::requireOneCopy(KernelState &state, unsigned axis) {
  if (state.hints.grid[axis] > 1 || state.hints.block[axis] > 1) {
    KernelState repeatable = state;
    llvm::Error e = requireRepeatable(repeatable);
    if (!e) {
      state.rewrite.conditions = std::move(repeatable.rewrite.conditions);
      return;
    }
    llvm::consumeError(std::move(e));
  }
  state.require(threadsAlong(axis) + " == 1", "the kernel does not look at this axis");
}
