//===- SharedPlaces.cpp - elements of shared arrays, by thread ------------===//
#include "optiml/Analysis/SharedPlaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

bool optiml::mentionsName(Stmt &s, const std::string &name) {
  return anyExpr(s, [&](const ExprRef &e) { return isVar(e, name) || e->names.count(name); }) ||
         anyStmt(s, [&](const Stmt &t) { return t.names.count(name) != 0; });
}

const Expr *optiml::subscriptedArray(const ExprRef &e) {
  ExprRef root = subscriptRoot(e);
  return root != e && root->kind == ExprKind::Var ? root.get() : nullptr;
}

std::optional<SharedPlace> optiml::sharedPlace(const KernelModel &model, const ThreadValues &value, const ExprRef &e,
                                               int64_t thread) {
  const Expr *array = subscriptedArray(e);
  const Stmt *declaration = array ? model.declaration(array->text) : nullptr;
  if (!declaration || !declaration->isShared || declaration->type.isVolatile)
    return std::nullopt;
  std::vector<ExprRef> subscripts = indicesOf(e);
  if (subscripts.size() != declaration->dims.size())
    return std::nullopt;
  int64_t element = 0;
  for (size_t i = 0; i < subscripts.size(); ++i) {
    auto index = value(subscripts[i], thread);
    auto extent = declaration->dims[i] ? constantValue(declaration->dims[i]) : std::nullopt; // of dynamic size
    if (!index || *index < 0 || (extent ? *index >= *extent : i > 0))
      return std::nullopt;
    element = element * extent.value_or(1) + *index;
  }
  return SharedPlace{declaration, element};
}

namespace {
/// Stores of every thread into its own element.
class OwnStores {
public:
  OwnStores(const KernelModel &model, const ThreadValues &value, int64_t threads, const std::string &array)
      : model(model), value(value), threads(threads), array(array) {}

  /// Every thread gives its own element a value, and nothing else is done with the array.
  bool storedBy(Stmt &s) {
    if (s.kind == StmtKind::Block) {
      unsigned storing = 0;
      for (const StmtRef &child : s.body) {
        if (!mentionsName(*child, array))
          continue;
        if (!storedBy(*child))
          return false;
        ++storing;
      }
      return storing == 1;
    }
    if (s.kind == StmtKind::If)
      return s.body.size() == 2 && !mentions(s.expr, array) && storedBy(*s.body[0]) && storedBy(*s.body[1]);
    if (!isAssignStmt(s))
      return false;
    const ExprRef &target = s.expr->args[0];
    const Expr *root = subscriptedArray(target);
    if (!root || root->text != array || mentions(s.expr->args[1], array))
      return false;
    return llvm::none_of(indicesOf(target), [&](const ExprRef &i) { return mentions(i, array); }) && isOwn(target);
  }

  std::optional<int64_t> first; ///< element of thread 0

private:
  bool isOwn(const ExprRef &target) {
    for (int64_t t = 0; t < threads; ++t) {
      auto place = sharedPlace(model, value, target, t);
      if (!place || (first && place->element != *first + t))
        return false;
      if (!first)
        first = place->element;
    }
    return true;
  }

  const KernelModel &model;
  const ThreadValues &value;
  int64_t threads;
  const std::string &array;
};
} // namespace

std::optional<int64_t> optiml::findOwnStores(const KernelModel &model, const ThreadValues &value, int64_t threads,
                                             const Stmt &list, size_t first, const std::string &array,
                                             std::set<const Stmt *> &stores) {
  OwnStores own(model, value, threads, array);
  for (size_t i = first; i-- > 0;) {
    Stmt &s = *list.body[i];
    if (!mentionsName(s, array))
      continue;
    walk(s, [&](Stmt &t) { stores.insert(&t); });
    if (own.storedBy(s))
      return own.first;
    // "if (…) a[t] = x;" after a store of its own: still the own element.
    if (s.kind != StmtKind::If || s.body.size() != 1 || mentions(s.expr, array) || !own.storedBy(*s.body[0]))
      break;
  }
  return std::nullopt;
}

bool optiml::isOpenlyUsed(Kernel &kernel, const KernelModel &model, const std::string &array) {
  unsigned uses = 0;
  bool hidden = opaqueMentions(*kernel.body, {array});
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    uses += isVar(e, array);
    hidden |= isUnary(e, "&") && mentions(e, array);
  });
  return !hidden &&
         uses == llvm::count_if(model.accesses(), [&](const Access &access) { return access.array == array; });
}

namespace {
/// Looks for ways by which some threads of a block pass a range by.
class Parting {
public:
  Parting(const KernelModel &model, const std::vector<StatementRange> &ranges) : model(model), ranges(ranges) {}

  /// `varying`: what stands around `s` differs between threads. `leaves`: a break or continue in it ends an iteration
  /// of a loop that holds a range.
  unsigned line(Stmt &s, bool varying, bool leaves) const {
    bool parts = s.kind == StmtKind::Return || (leaves && (s.kind == StmtKind::Break || s.kind == StmtKind::Continue));
    if (varying && (parts || hasRange(s)))
      return std::max(s.line, 1u);
    bool loop = isLoop(s);
    if (loop)
      leaves = holdsRange(s);
    if (s.expr && (loop || s.kind == StmtKind::If))
      varying |= (model.varies(s.expr) & AnyThread) != 0;
    for (size_t i = 0; i < s.body.size(); ++i)
      if (!isInside(s, i))
        if (unsigned found = line(*s.body[i], varying, leaves))
          return found;
    return 0;
  }

private:
  bool hasRange(const Stmt &list) const {
    return llvm::any_of(ranges, [&](const StatementRange &range) { return range.list == &list; });
  }
  bool holdsRange(Stmt &s) const {
    return anyStmt(s, [&](const Stmt &t) { return hasRange(t); });
  }
  bool isInside(const Stmt &list, size_t i) const { // its own conditions are understood already
    return llvm::any_of(ranges, [&](const StatementRange &r) { return r.list == &list && i >= r.first && i < r.end; });
  }

  const KernelModel &model;
  const std::vector<StatementRange> &ranges;
};
} // namespace

unsigned optiml::partingLine(Kernel &kernel, const KernelModel &model, const std::vector<StatementRange> &ranges) {
  return Parting(model, ranges).line(*kernel.body, false, false);
}
