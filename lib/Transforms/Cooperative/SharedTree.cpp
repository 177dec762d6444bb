//===- SharedTree.cpp - folds of shared memory by a block -----------------===//
#include "SharedScan.h"
#include "optiml/Analysis/BlockRunner.h"
#include <bitset>

using namespace optiml;

namespace {
/// Runs statements on the sets of elements that each element of an array stands for.
class TreeRunner : public BlockRunner {
public:
  using BlockRunner::BlockRunner;

  /// Every array that was touched is folded into its first element, completely.
  bool complete() const;
  std::vector<SharedTree> trees() const;

private:
  using Elements = std::bitset<mostThreads>;
  struct Array {
    SharedTree tree;
    std::vector<Elements> holds;
    SharedTouches touches;
  };

  bool declare(const Stmt &s, const ActiveThreads &active) override {
    return s.expr && s.dims.empty() && !s.isShared && !s.type.isVolatile && s.type.isInt() &&
           value.set(s.text, s.type, s.expr, active);
  }
  bool execute(const Stmt &s, const ActiveThreads &active) override;
  void meet() override {
    for (auto &[name, array] : arrays)
      array.touches.meet();
  }
  bool foldElement(Array &array, int64_t to, int64_t from, int64_t thread);

  std::map<std::string, Array> arrays;
};
} // namespace

// Statements

/// An element of a shared array that is used as a whole, or null.
static const Expr *elementOf(const KernelModel &model, const ExprRef &e) {
  if (e->kind != ExprKind::Subscript || e->args[0]->kind != ExprKind::Var)
    return nullptr;
  const Stmt *declaration = model.declaration(e->args[0]->text);
  return declaration && declaration->isShared && !declaration->type.isVolatile && declaration->dims.size() <= 1
             ? e.get()
             : nullptr;
}

/// The element that a fold changes: of an assignment, or of one under a comparison.
static ExprRef changedBy(const Stmt &s) {
  if (s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign)
    return s.expr->args[0];
  if (s.kind == StmtKind::If && s.body.size() == 1 && s.body[0]->body.size() == 1)
    return changedBy(*s.body[0]->body[0]);
  return nullptr;
}

bool TreeRunner::foldElement(Array &array, int64_t to, int64_t from, int64_t thread) {
  if (to < 0 || from < 0 || to >= threads || from >= threads || !array.touches.touch(from, thread, false) ||
      !array.touches.touch(to, thread, true))
    return false;
  Elements &into = array.holds[size_t(to)], &what = array.holds[size_t(from)];
  if (!array.tree.fold.isIdempotent() && (into & what).any())
    return false;
  into |= what;
  return true;
}

/// Only folds.
bool TreeRunner::execute(const Stmt &s, const ActiveThreads &active) {
  ExprRef changed = changedBy(s);
  const Expr *to = changed ? elementOf(model, changed) : nullptr;
  if (!to)
    return false;
  // With the element as a variable it is a fold like any other.
  ExprRef stand = var("element", changed->type);
  StmtRef copy = clone(std::make_shared<Stmt>(s));
  rewriteExprs(*copy, [&](const ExprRef &n) { return equal(n, changed) ? stand : nullptr; });
  auto folded = asFold(*copy);
  const Expr *from = folded ? elementOf(model, folded->value) : nullptr;
  const std::string &name = to->args[0]->text;
  if (!from || from->args[0]->text != name)
    return false;
  auto [it, added] = arrays.try_emplace(name);
  Array &array = it->second;
  if (added) {
    array.tree = {name, folded->type.withConst(false), folded->fold};
    array.holds.resize(size_t(threads));
    for (size_t i = 0; i < size_t(threads); ++i)
      array.holds[i].set(i);
    array.touches = SharedTouches(size_t(threads));
  } else if (!(array.tree.fold == folded->fold)) {
    return false;
  }
  for (int64_t t = 0; t < threads; ++t)
    if (active[size_t(t)]) {
      auto i = value(to->args[1], t), k = value(from->args[1], t);
      if (!i || !k || !foldElement(array, *i, *k, t))
        return false;
    }
  return true;
}

bool TreeRunner::complete() const {
  for (const auto &[name, array] : arrays)
    if (array.holds[0].count() != size_t(threads))
      return false;
  return !arrays.empty();
}

std::vector<SharedTree> TreeRunner::trees() const {
  std::vector<SharedTree> result;
  for (const auto &[name, array] : arrays)
    result.push_back(array.tree);
  return result;
}

/// The longest run of statements from `first` on that is a complete fold.
static std::optional<TreeRegion> regionAt(const KernelModel &model, Stmt &list, size_t first, int64_t threads) {
  std::optional<TreeRegion> best;
  TreeRunner runner(model, threads);
  // What it declares may be used later.
  for (size_t i = first; i < list.body.size() && list.body[i]->kind != StmtKind::Decl && runner.run(*list.body[i]); ++i)
    if (runner.complete() && runner.synchronizes())
      best = TreeRegion{{&list, first, i + 1}, runner.trees()};
  return best;
}

std::vector<TreeRegion> optiml::findTrees(Kernel &kernel, const KernelModel &model, int64_t threads) {
  std::vector<TreeRegion> result;
  if (threads < 2 || threads > mostThreads)
    return result;
  walk(*kernel.body, [&](Stmt &list) {
    if (list.kind != StmtKind::Block)
      return;
    for (size_t i = 0; i < list.body.size(); ++i)
      if (mayStart(*list.body[i]))
        if (auto region = regionAt(model, list, i, threads)) {
          result.push_back(*region);
          i = region->end - 1;
        }
  });
  return result;
}
