//===- SharedTree.cpp - folds of shared memory by a block -----------------===//
#include "SharedTree.h"
#include "ThreadValues.h"
#include <bitset>

using namespace optiml;

namespace {
constexpr unsigned mostRounds = 64; ///< of one loop

/// Runs statements on the sets of elements that each element of an array stands for.
class TreeRunner {
public:
  TreeRunner(const KernelModel &model, int64_t threads) : threads(threads), value(model, threads), model(model) {}

  /// For all threads; false where it does something else than folding shared arrays.
  bool run(Stmt &s) { return run(s, ActiveThreads(size_t(threads), true)); }
  /// Every array that was touched is folded into its first element, completely.
  bool complete() const;
  bool synchronizes() const { return barriers > 0; }
  std::vector<SharedTree> trees() const;

private:
  using Elements = std::bitset<mostThreads>;
  struct Array {
    SharedTree tree;
    std::vector<Elements> holds;
    std::vector<int64_t> reader, writer; ///< of an element since the last barrier: a thread, nobody, or several
  };
  static constexpr int64_t nobody = -1, several = -2;

  bool run(Stmt &s, const ActiveThreads &active);
  bool runList(Stmt &block, const ActiveThreads &active);
  bool runLoop(Stmt &s, const ActiveThreads &active);
  bool fold(const Stmt &s, const ActiveThreads &active);
  bool foldElement(Array &array, int64_t to, int64_t from, int64_t thread);
  bool touch(Array &array, int64_t element, int64_t thread, bool writes);
  void meet();
  bool everybody(const ActiveThreads &active) const { return std::find(active.begin(), active.end(), false) == active.end(); }

  int64_t threads;
  ThreadValues value;
  const KernelModel &model;
  std::map<std::string, Array> arrays;
  unsigned barriers = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void TreeRunner::meet() {
  ++barriers;
  for (auto &[name, array] : arrays) {
    array.reader.assign(size_t(threads), nobody);
    array.writer.assign(size_t(threads), nobody);
  }
}

/// An element of a shared array that is used as a whole, or null.
static const Expr *elementOf(const KernelModel &model, const ExprRef &e) {
  if (e->kind != ExprKind::Subscript || e->args[0]->kind != ExprKind::Var)
    return nullptr;
  const Stmt *declaration = model.declaration(e->args[0]->text);
  return declaration && declaration->isShared && !declaration->type.isVolatile && declaration->dims.size() <= 1 ? e.get() : nullptr;
}

/// The element that a fold changes: of an assignment, or of one under a comparison.
static ExprRef changedBy(const Stmt &s) {
  if (s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign)
    return s.expr->args[0];
  if (s.kind == StmtKind::If && s.body.size() == 1 && s.body[0]->body.size() == 1)
    return changedBy(*s.body[0]->body[0]);
  return nullptr;
}

bool TreeRunner::touch(Array &array, int64_t element, int64_t thread, bool writes) {
  int64_t &reader = array.reader[size_t(element)], &writer = array.writer[size_t(element)];
  if (writes) {
    if ((writer != nobody && writer != thread) || (reader != nobody && reader != thread))
      return false;
    writer = thread;
    return true;
  }
  if (writer != nobody && writer != thread)
    return false;
  reader = reader == nobody || reader == thread ? thread : several;
  return true;
}

bool TreeRunner::foldElement(Array &array, int64_t to, int64_t from, int64_t thread) {
  if (to < 0 || from < 0 || to >= threads || from >= threads || !touch(array, from, thread, false) ||
      !touch(array, to, thread, true))
    return false;
  Elements &into = array.holds[size_t(to)], &what = array.holds[size_t(from)];
  if (!array.tree.fold.isIdempotent() && (into & what).any())
    return false;
  into |= what;
  return true;
}

bool TreeRunner::fold(const Stmt &s, const ActiveThreads &active) {
  ExprRef changed = changedBy(s);
  const Expr *to = changed ? elementOf(model, changed) : nullptr;
  if (!to)
    return false;
  // With the element as a variable it is a fold like any other.
  ExprRef stand = var("element", changed->type);
  StmtRef copy = clone(std::make_shared<Stmt>(s));
  walk(*copy, [&](Stmt &t) {
    ownExprs(t, [&](ExprRef &e) {
      e = rewrite(e, [&](const ExprRef &n) { return equal(n, changed) ? stand : nullptr; });
    });
  });
  auto folded = asFold(*copy);
  const Expr *from = folded ? elementOf(model, folded->value) : nullptr;
  const std::string &name = to->args[0]->text;
  if (!from || from->args[0]->text != name)
    return false;
  auto [it, added] = arrays.try_emplace(name);
  Array &array = it->second;
  if (added) {
    array.tree = {name, folded->type, folded->fold};
    array.tree.type.isConst = false;
    array.holds.resize(size_t(threads));
    for (size_t i = 0; i < size_t(threads); ++i)
      array.holds[i].set(i);
    array.reader.assign(size_t(threads), nobody);
    array.writer.assign(size_t(threads), nobody);
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

bool TreeRunner::runList(Stmt &block, const ActiveThreads &active) {
  if (active == ActiveThreads(size_t(threads), false))
    return true;
  for (const StmtRef &s : block.body)
    if (!run(*s, active))
      return false;
  return true;
}

bool TreeRunner::runLoop(Stmt &s, const ActiveThreads &active) {
  if (!s.expr || (s.init && !run(*s.init, active)))
    return false;
  for (unsigned round = 0; round < mostRounds; ++round) {
    auto more = value.where(s.expr, active);
    if (!more || (*more != active && *more != ActiveThreads(size_t(threads), false)))
      return false; // a loop that ends sooner for some threads
    if (*more != active)
      return true;
    if (!runList(*s.body[0], active) || (s.step && !value.assign(s.step, active)))
      return false;
  }
  return false;
}

bool TreeRunner::run(Stmt &s, const ActiveThreads &active) {
  switch (s.kind) {
  case StmtKind::Block:
    return runList(s, active);
  case StmtKind::Decl:
    return s.expr && s.dims.empty() && !s.isShared && !s.type.isVolatile && s.type.isInt() && value.set(s.text, s.type, s.expr, active);
  case StmtKind::Barrier:
    if (!everybody(active))
      return false;
    meet();
    return true;
  case StmtKind::For:
  case StmtKind::While:
    return runLoop(s, active);
  case StmtKind::Expr:
    return value.assign(s.expr, active) || fold(s, active);
  case StmtKind::If: {
    auto taken = value.where(s.expr, active);
    if (!taken)
      return fold(s, active);
    if (!runList(*s.body[0], *taken))
      return false;
    ActiveThreads others = active;
    for (size_t t = 0; t < others.size(); ++t)
      others[t] = others[t] && !(*taken)[t];
    return s.body.size() < 2 || runList(*s.body[1], others);
  }
  default:
    return false;
  }
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

static bool mayStart(const Stmt &s) {
  return s.kind == StmtKind::For || s.kind == StmtKind::While || s.kind == StmtKind::If || s.kind == StmtKind::Expr;
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
