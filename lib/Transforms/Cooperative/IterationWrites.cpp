//===- IterationWrites.cpp - what a loop's iterations write ---------------===//
#include "IterationWrites.h"
#include "MemoryOrder.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"

using namespace optiml;

bool optiml::isSharedByAll(const KernelModel &model, const Access &access) {
  if (access.space != Space::Global || access.root->kind != ExprKind::Var)
    return false;
  const Param *p = model.param(access.root->text);
  return p ? p->type.isPointer() : !model.declaration(access.root->text);
}

llvm::Error optiml::requireOwnWrites(KernelState &state, const KernelModel &model, const CountedLoop &counted,
                                     const std::set<std::string> &explained) {
  using Arrays = std::set<std::string>;
  const Stmt &loop = *counted.stmt;
  std::set<std::string> inside = namesDeclaredIn(loop);
  inside.insert(counted.var);
  inside.insert(explained.begin(), explained.end());
  std::map<std::string, const Access *> written;
  Arrays all, atomic;
  for (const Access &access : model.accesses()) {
    if (!insideOf(access, &loop) && access.stmt != &loop)
      continue;
    if (access.space == Space::Local && access.write && !inside.count(access.array))
      return notApplicable("iterations share the array '{0}' (line {1})", access.array, access.stmt->line);
    if (access.space != Space::Global)
      continue;
    all.insert(access.array);
    if (access.atomic)
      atomic.insert(access.array);
    else if (access.write)
      written.emplace(access.array, &access);
  }
  for (const Access &access : model.accesses())
    if (insideOf(access, &loop) && access.write && access.space == Space::Global)
      for (const std::string &name : namesIn(access.root))
        if (inside.count(name))
          return notApplicable("what '{0}' points to differs between iterations (line {1})", name, access.stmt->line);
  for (const auto &[array, first] : written) {
    if (atomic.count(array))
      return notApplicable("'{0}' is written in two ways", array);
    if (!isSharedByAll(model, *first))
      return notApplicable("whose memory line {0} writes is not known", first->stmt->line);
    if (first->subscripts.size() != 1)
      return notApplicable("'{0}' has several dimensions (line {1})", array, first->stmt->line);
    const Poly &index = first->subscripts[0];
    auto factor = index.coefficient(counted.var);
    if (!factor || factor->terms.empty() || !model.stable(index))
      return notApplicable("iterations may write the same element of '{0}' (line {1})", array, first->stmt->line);
    Poly rest = index - *factor * Poly::atom(counted.var);
    for (const Poly *part : {&rest, &*factor})
      if (model.dependsOn(*part, inside))
        return notApplicable("iterations may write the same element of '{0}' (line {1})", array, first->stmt->line);
    if (!factor->constant()) {
      auto text = planText(model, *factor);
      if (!text)
        return notApplicable("iterations may write the same element of '{0}' (line {1})", array, first->stmt->line);
      state.require(*text + " != 0", "iterations write different elements");
    }
    for (const Access &access : model.accesses())
      if (insideOf(access, &loop) && access.array == array && !(access.subscripts == first->subscripts))
        return notApplicable("iterations may meet in '{0}' (line {1})", array, access.stmt->line);
    for (const std::string &other : all)
      if (other != array)
        if (llvm::Error e = requireDisjoint(state, model, array, other))
          return e;
  }
  for (const std::string &array : atomic) // "+=" by several threads is what it is for; reading in between is not
    for (const Access &access : model.accesses())
      if (insideOf(access, &loop) && access.space == Space::Global && !access.atomic &&
          mayMeet(model, access.array, array))
        return notApplicable("the loop reads '{0}' beside updating '{1}' atomically", access.array, array);
  return llvm::Error::success();
}

llvm::Error optiml::requireFixedHead(KernelState &state, const KernelModel &model, const Stmt &loop,
                                     const std::set<std::string> &headReads, const std::set<std::string> &headWrites,
                                     const std::set<std::string> &bodyWrites) {
  for (const std::string &written : bodyWrites)
    for (const std::string &read : headReads) {
      if (written == read)
        return notApplicable("line {0}: the loop's bounds may change in it", loop.line);
      if (llvm::Error e = requireDisjoint(state, model, written, read))
        return e;
    }
  if (!headWrites.empty())
    return notApplicable("line {0}: the loop's bounds may change in it", loop.line);
  return llvm::Error::success();
}
