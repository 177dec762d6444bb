//===- TreeToShuffle.cpp - folds of shared memory by shuffles -------------===//
//
// tree-to-shuffle[kernel]: where a block folds an array in shared memory step by step, with a barrier after each, its
// threads exchange their values by shuffles instead, and meet once.
//
// Legal: after the statements that go nothing but element 0 of the array is looked at, before every thread has put a new
// value into its own. Threads reach them together (there is no way round them, and they synchronize). The number of
// threads is the one that the statements were understood for, and that there is shared memory for the warps' values:
// recorded conditions. The order of a sum changes.
//
//===----------------------------------------------------------------------===//
#include "SharedTree.h"
#include "Transforms.h"

using namespace optiml;

namespace {
/// Who may access the elements of the arrays that are folded.
class TreeArrays {
public:
  TreeArrays(Kernel &kernel, const KernelModel &model, const std::vector<TreeRegion> &regions, int64_t threads)
      : kernel(kernel), model(model), regions(regions), threads(threads) {}

  llvm::Error check();

private:
  llvm::Error findStores(const TreeRegion &region, const std::string &array);
  bool storesOwn(Stmt &s, const std::string &array) const;
  bool isOwn(const ExprRef &index) const;
  llvm::Error checkUses(const std::string &array);

  Kernel &kernel;
  const KernelModel &model;
  const std::vector<TreeRegion> &regions;
  int64_t threads;
  /// Statements of folds, and those right before them that give each thread's element its value.
  std::set<const Stmt *> within, stores;
};

class TreeToShuffle : public Transform {
public:
  llvm::StringRef name() const override { return "tree-to-shuffle"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override { return kernelSite(*this, state, {{}}); }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &) const override;

private:
  static std::vector<StmtRef> byShuffles(const TreeRegion &region, const ThreadGroup &group, std::set<std::string> &taken);
};
} // namespace

static bool mentionsName(Stmt &s, const std::string &name) {
  bool found = false;
  walkExprs(s, [&](const ExprRef &e) { found |= (e->kind == ExprKind::Var && e->text == name) || e->names.count(name); });
  walk(s, [&](Stmt &t) { found |= t.names.count(name) != 0; });
  return found;
}

bool TreeArrays::isOwn(const ExprRef &index) const {
  for (int64_t t = 0; t < threads; ++t)
    if (valueInThread(model, index, t, threads) != t)
      return false;
  return true;
}

/// Every thread gives its own element a value, and nothing else is done with the array.
bool TreeArrays::storesOwn(Stmt &s, const std::string &array) const {
  if (s.kind == StmtKind::Block) {
    unsigned storing = 0;
    for (const StmtRef &child : s.body) {
      if (!mentionsName(*child, array))
        continue;
      if (!storesOwn(*child, array))
        return false;
      ++storing;
    }
    return storing == 1;
  }
  if (s.kind == StmtKind::If)
    return s.body.size() == 2 && !mentions(s.expr, array) && storesOwn(*s.body[0], array) && storesOwn(*s.body[1], array);
  if (s.kind != StmtKind::Expr || s.expr->kind != ExprKind::Assign || s.expr->text != "=")
    return false;
  const ExprRef &target = s.expr->args[0];
  return target->kind == ExprKind::Subscript && target->args[0]->kind == ExprKind::Var && target->args[0]->text == array &&
         !mentions(target->args[1], array) && !mentions(s.expr->args[1], array) && isOwn(target->args[1]);
}

/// "if (…) a[t] = x;" after a store of its own: still the own element.
static bool overwrites(Stmt &s) { return s.kind == StmtKind::If && s.body.size() == 1; }

llvm::Error TreeArrays::findStores(const TreeRegion &region, const std::string &array) {
  for (size_t i = region.first; i-- > 0;) {
    Stmt &s = *region.list->body[i];
    if (!mentionsName(s, array))
      continue;
    walk(s, [&](Stmt &t) { stores.insert(&t); });
    if (storesOwn(s, array))
      return llvm::Error::success();
    if (!overwrites(s) || mentions(s.expr, array) || !storesOwn(*s.body[0], array))
      break;
  }
  return notApplicable("not every thread has just stored its own element of '{0}' (line {1})", array,
                       region.list->body[region.first]->line);
}

llvm::Error TreeArrays::checkUses(const std::string &array) {
  unsigned uses = 0, elements = 0;
  bool opaque = opaqueMentions(*kernel.body, {array});
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    uses += e->kind == ExprKind::Var && e->text == array;
    elements += e->kind == ExprKind::Subscript && e->args[0]->kind == ExprKind::Var && e->args[0]->text == array;
    opaque |= e->kind == ExprKind::Unary && e->text == "&" && mentions(e, array);
  });
  if (uses != elements || opaque)
    return notApplicable("'{0}' is used in a way that hides what is accessed", array);
  for (const Access &access : model.accesses()) {
    if (access.array != array || within.count(access.stmt) || stores.count(access.stmt))
      continue;
    bool first = access.node->kind == ExprKind::Subscript && constantValue(access.node->args[1]) == 0;
    if (access.write || !first)
      return notApplicable("another element of '{0}' than the first is used after it was folded (line {1})", array, access.stmt->line);
  }
  return llvm::Error::success();
}

llvm::Error TreeArrays::check() {
  std::set<std::string> arrays;
  for (const TreeRegion &region : regions)
    for (size_t i = region.first; i < region.end; ++i)
      walk(*region.list->body[i], [&](Stmt &s) { within.insert(&s); });
  for (const TreeRegion &region : regions)
    for (const SharedTree &tree : region.trees) {
      arrays.insert(tree.array);
      if (llvm::Error e = findStores(region, tree.array))
        return e;
    }
  for (const std::string &array : arrays)
    if (llvm::Error e = checkUses(array))
      return e;
  return llvm::Error::success();
}

namespace {
/// Looks for ways by which some threads of a block pass a region by.
class Parting {
public:
  Parting(const KernelModel &model, const std::vector<TreeRegion> &regions) : model(model), regions(regions) {}

  /// Line of the statement by which they do, or 0. `varying`: what stands around `s` differs between threads. `leaves`: a
  /// break or continue in it ends an iteration of a loop that holds a region.
  unsigned line(Stmt &s, bool varying, bool leaves) const;

private:
  const TreeRegion *regionIn(Stmt &s) const {
    for (const TreeRegion &region : regions)
      if (region.list == &s)
        return &region;
    return nullptr;
  }
  bool holdsRegion(Stmt &s) const {
    bool found = false;
    walk(s, [&](Stmt &t) { found |= regionIn(t) != nullptr; });
    return found;
  }
  bool isFold(const Stmt &list, size_t i) const { // its own conditions are understood already
    return llvm::any_of(regions, [&](const TreeRegion &r) { return r.list == &list && i >= r.first && i < r.end; });
  }

  const KernelModel &model;
  const std::vector<TreeRegion> &regions;
};
} // namespace

unsigned Parting::line(Stmt &s, bool varying, bool leaves) const {
  bool parts = s.kind == StmtKind::Return || (leaves && (s.kind == StmtKind::Break || s.kind == StmtKind::Continue));
  if (varying && (parts || regionIn(s)))
    return std::max(s.line, 1u);
  bool isLoop = s.kind == StmtKind::For || s.kind == StmtKind::While || s.kind == StmtKind::Do;
  if (isLoop)
    leaves = holdsRegion(s);
  if (s.expr && (isLoop || s.kind == StmtKind::If))
    varying |= (model.varies(s.expr) & AnyThread) != 0;
  for (size_t i = 0; i < s.body.size(); ++i)
    if (!isFold(s, i))
      if (unsigned found = line(*s.body[i], varying, leaves))
        return found;
  return 0;
}

std::vector<StmtRef> TreeToShuffle::byShuffles(const TreeRegion &region, const ThreadGroup &group, std::set<std::string> &taken) {
  ExprRef thread = builtin("threadIdx.x");
  std::vector<StmtRef> made;
  for (const SharedTree &tree : region.trees) {
    Reduction reduction{freshName(taken, tree.array + "_of_thread"), tree.type, tree.fold};
    ExprRef array = var(tree.array, tree.type), value = var(reduction.variable, tree.type);
    made.push_back(declStmt(reduction.variable, tree.type, subscript(array, thread, tree.type)));
    for (StmtRef &s : Combiner(group, taken).combine(reduction))
      made.push_back(std::move(s));
    made.push_back(ifStmt(binary("==", thread, intLit(0), Type::makeBool()),
                          block({exprStmt(assign("=", subscript(array, intLit(0), tree.type), value))})));
  }
  const std::vector<StmtRef> &list = region.list->body;
  if (region.end >= list.size() || list[region.end]->kind != StmtKind::Barrier)
    made.push_back(barrierStmt());
  return made;
}

llvm::Expected<KernelState> TreeToShuffle::apply(const KernelState &state, llvm::StringRef, const Params &) const {
  auto kernel = state.tree->clone();
  std::array<int64_t, 3> pinned = state.pinnedBlock(), shape = pinned[0] ? pinned : state.hints.block;
  if (!shape[0])
    return notApplicable("the number of threads of a block is not known");
  if (shape[1] != 1 || shape[2] != 1 || shape[0] % 32 || shape[0] > 1024)
    return notApplicable("the block is not a number of warps along x");
  KernelModel model(*kernel, {shape[0], 1, 1});
  std::vector<TreeRegion> regions = findTrees(*kernel, model, shape[0]);
  if (regions.empty())
    return notApplicable("no array in shared memory is folded by a block of {0} threads", shape[0]);
  TreeArrays arrays(*kernel, model, regions, shape[0]);
  if (llvm::Error e = arrays.check())
    return e;
  for (const TreeRegion &region : regions)
    for (const SharedTree &tree : region.trees) {
      bool exchanged = (tree.type.cls == Type::Class::Int || tree.type.isFloat()) && (tree.type.bytes == 4 || tree.type.bytes == 8);
      if (!exchanged)
        return notApplicable("'{0}' has elements of a type that threads cannot exchange", tree.array);
      if (tree.fold.kind == Fold::Kind::Compare && tree.type.isFloat()) // "if (a[i] > a[j]) …" keeps one that is in the way
        return notApplicable("which elements of '{0}' a NaN hides may not change; fmaxf and fminf pass it over", tree.array);
      if (state.hints.strictFloat && tree.type.isFloat())
        return notApplicable("the order in which '{0}' is folded may not change (--optiml-fp=strict)", tree.array);
    }
  if (unsigned line = Parting(model, regions).line(*kernel->body, false, false))
    return notApplicable("not all threads of a block go the same way (line {0})", line);
  KernelState result = state;
  if (!pinned[0]) {
    result.require("block.x == " + std::to_string(shape[0]), "the block is folded by its number of threads");
    result.require("block.y * block.z == 1", "the block is folded by its number of threads");
  }
  std::set<std::string> taken = allNames(*kernel);
  ThreadGroup group;
  group.threads = shape[0];
  std::vector<std::vector<StmtRef>> made;
  for (const TreeRegion &region : regions)
    made.push_back(byShuffles(region, group, taken));
  for (size_t i = regions.size(); i-- > 0;) { // from the back, so that places stay where they are
    std::vector<StmtRef> &list = regions[i].list->body;
    list.erase(list.begin() + long(regions[i].first), list.begin() + long(regions[i].end));
    list.insert(list.begin() + long(regions[i].first), made[i].begin(), made[i].end());
  }
  int64_t bytes = sharedBytes(*kernel);
  if (bytes > int64_t(state.hints.maxSharedBytes))
    return notApplicable("the arrays of a block would be {0} bytes", bytes);
  result.require("shared + " + std::to_string(bytes) + " <= " + std::to_string(state.hints.maxSharedBytes),
                 "the warps' values and the launch's own shared memory fit");
  result.tree = kernel;
  return result;
}

const Transform *optiml::makeTreeToShuffle() {
  static const TreeToShuffle transform;
  return &transform;
}
