//===- SharePrefix.cpp - prefixes that threads have in common -------------===//
//
// share-prefix[kernel/loop]: of a kernel in which every thread folds all elements up to its own, a block's threads fold
// together what is before the first thread's own element, and scan their own elements. What took n steps a thread takes
// n / blockDim.x.
//
// Example:
//   int s = 0;                           int s_before = 0;   // alike in all threads of a block, 256
//   for (int j = 0; j <= i; ++j)         for (long long k = threadIdx.x; k < first; k += 256)
//     s += a[j];                           s_before += a[k];
//   out[i] = s;                          … s_before of all threads, by shuffles …
//                                        int s_own = 0;
//                                        if (i < n) s_own += a[first + threadIdx.x];
//                                        … s_own of the threads up to each, by shuffles …
//                                        int s = 0;
//                                        s += s_before; s += s_own;
//                                        out[i] = s;
//
// Legal: the block shape is fixed, with all its threads along x. From one thread to the next the loop ends one later,
// and begins at the same place; what an iteration folds depends on its counter alone. Around the loop there are only
// branches whose condition, once it fails for a thread, fails for those after it: what the others read then is read by
// a thread of the original, too. What the kernel writes does not overlap what the loop reads (proved, or a condition).
// Floating-point sums change their order: not with --optiml-fp=strict.
//
// Refuses: a block shape that is not fixed; a loop within loops; an iteration that does more than to fold into
// variables from outside; extremes that do not start at a constant, and those that keep a place; volatile memory.
//
//===----------------------------------------------------------------------===//
#include "../ThreadMapping.h"
#include "../Transforms.h"
#include "SharedScan.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

/// The loop, and the block that runs it together.
class Prefix {
public:
  Prefix(KernelState &state, Kernel &kernel, Stmt &loop, int64_t threads)
      : state(state), kernel(kernel), model(kernel, {threads, 1, 1}), loop(loop), threads(threads),
        taken(allNames(kernel)) {}
  llvm::Error share();

private:
  /// A variable from outside of the loop, and what stands for it before the branches around the loop.
  struct Total {
    Reduction reduction;
    ExprRef nothing; ///< where nothing is folded
    std::string before, own;
  };
  llvm::Error findGuards();
  llvm::Error findBounds();
  llvm::Error findTotals();
  llvm::Error requireSameIterations() const;
  bool isTotal(const ExprRef &e) const {
    return e->kind == ExprKind::Var &&
           llvm::any_of(totals, [&](const Total &total) { return total.reduction.variable == e->text; });
  }
  ExprRef startOf(const Reduction &r) const;
  bool failsFromThere(const ExprRef &condition, bool taken) const;
  /// By threadIdx.x where all else is the block's.
  Poly inBlock(const Poly &p) const;
  bool isUniform(const Poly &p) const;
  std::vector<StmtRef> iteration(const ExprRef &counter, std::string Total::*into);

  KernelState &state;
  Kernel &kernel;
  const KernelModel model;
  Stmt &loop;
  const int64_t threads;
  std::set<std::string> taken;
  CountedLoop counted;
  std::vector<Total> totals;
  std::vector<std::pair<ExprRef, bool>> guards;
  size_t anchor = 0;    ///< in the kernel's body: what holds the loop
  ExprRef lower, first; ///< of the block: where the loop begins, and the last iteration of its first thread
};

class SharePrefix : public Transform {
public:
  llvm::StringRef name() const override { return "share-prefix"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    if (!threadsOf(state))
      return result;
    const KernelModel model(*state.tree, state.pinnedBlock());
    for (const auto &[path, stmt] : countedLoops(*state.tree))
      if ((model.varies(asCountedLoop(*stmt)->upper) & AnyThread) == ThreadX)
        offer(result, state, path, {{}});
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site, const Params &) const override {
    if (!state.pinnedBlock()[0])
      return notApplicable("{0}", shapeIsOpen);
    const int64_t threads = threadsOf(state);
    if (!threads)
      return notApplicable("the block has threads along y or z, or parts of a warp");
    auto kernel = state.tree->clone();
    if (llvm::Error e = removeReturns(*kernel))
      return std::move(e);
    Stmt *loop = findLoop(*kernel, site);
    if (!loop)
      return notApplicable("there is no counted loop '{0}'", site);
    removeContinues(*loop);
    KernelState result = state.withTree(kernel);
    if (llvm::Error e = Prefix(result, *kernel, *loop, threads).share())
      return std::move(e);
    return result;
  }

private:
  static int64_t threadsOf(const KernelState &state) {
    const auto shape = state.pinnedBlock();
    return shape[1] == 1 && shape[2] == 1 && shape[0] % 32 == 0 ? shape[0] : 0;
  }
};
} // namespace

static bool readsMemory(const ExprRef &e) {
  return anyNode(e, [](const ExprRef &x) { return isLoad(x) || isUnary(x, "*"); });
}

Poly Prefix::inBlock(const Poly &p) const {
  return p.substitute("globalIdx.x", Poly(threads) * Poly::atom("blockIdx.x") + Poly::atom("threadIdx.x"));
}

bool Prefix::isUniform(const Poly &p) const {
  return model.stable(p) &&
         llvm::none_of(p.atoms(), [&](const auto &atom) { return model.variesAtom(atom) & (AnyThread | FromMemory); });
}

/// A condition on threads that, where it does not hold for one, does not hold for the next.
bool Prefix::failsFromThere(const ExprRef &e, bool taken) const {
  if (!(model.varies(e) & (AnyThread | FromMemory)))
    return model.stable(e);
  if (isUnary(e, "!"))
    return failsFromThere(e->args[0], !taken);
  if (isBinary(e, taken ? "&&" : "||"))
    return failsFromThere(e->args[0], taken) && failsFromThere(e->args[1], taken);
  const bool isLess = isBinary(e, "<") || isBinary(e, "<="), isGreater = isBinary(e, ">") || isBinary(e, ">=");
  if ((!isLess && !isGreater) || !e->args[0]->type.isInt() || !e->args[1]->type.isInt() || !model.stable(e))
    return false;
  Poly difference = inBlock(model.poly(e->args[0]) - model.poly(e->args[1]));
  auto slope = difference.coefficient("threadIdx.x");
  auto number = slope ? slope->constant() : std::nullopt;
  if (!number || !isUniform(difference - Poly(*number) * Poly::atom("threadIdx.x")))
    return false;
  return isLess == taken ? *number >= 0 : *number <= 0;
}

/// The branches around the loop; what declares their names stands before them.
llvm::Error Prefix::findGuards() {
  std::set<std::string> later;
  Stmt *at = kernel.body.get();
  for (bool isTop = true; at != &loop; isTop = false) {
    if (at->kind != StmtKind::Block)
      return notApplicable("the loop stands in another one (line {0})", at->line);
    auto next = llvm::find_if(at->body, [&](const StmtRef &s) { return s.get() == &loop || holdsStmt(*s, &loop); });
    if (next == at->body.end())
      return notApplicable("the loop is not found");
    if (isTop)
      anchor = size_t(next - at->body.begin());
    for (auto s = at->body.begin(); !isTop && s != next; ++s)
      if ((*s)->kind == StmtKind::Decl)
        later.insert((*s)->text);
    Stmt *inside = next->get();
    if (inside != &loop && inside->kind == StmtKind::If) {
      const bool taken = inside->body[0].get() == &loop || holdsStmt(*inside->body[0], &loop);
      if (!failsFromThere(inside->expr, taken) || readsMemory(inside->expr) || hasEffects(inside->expr))
        return notApplicable(
            "the branch around the loop may be taken by some threads of a block in any order (line {0})", inside->line);
      guards.push_back({inside->expr, taken});
      inside = inside->body[taken ? 0 : 1].get();
      if (inside != &loop && inside->kind != StmtKind::Block)
        return notApplicable("the branch around the loop is not understood (line {0})", inside->line);
    }
    at = inside;
  }
  std::vector<ExprRef> moved = {loop.expr};
  for (const auto &[condition, taken] : guards)
    moved.push_back(condition);
  bool visible = llvm::none_of(moved, [&](const ExprRef &e) {
    return llvm::any_of(namesIn(e), [&](const std::string &name) { return later.count(name); });
  });
  walkExprs(loop,
            [&](const ExprRef &e) { visible &= e->kind != ExprKind::Var || !later.count(e->text) || isTotal(e); });
  if (!visible)
    return notApplicable("the loop needs what is declared beside it (line {0})", loop.line);
  return llvm::Error::success();
}

/// The end moves with the thread, the beginning does not.
llvm::Error Prefix::findBounds() {
  if (counted.step != 1)
    return notApplicable("line {0}: the loop does not count in steps of one", loop.line);
  const Poly end = inBlock(model.poly(counted.upper)), begin = inBlock(model.poly(counted.lower));
  auto slope = end.coefficient("threadIdx.x");
  if (!slope || slope->constant() != 1 || !isUniform(end - Poly::atom("threadIdx.x")))
    return notApplicable("the loop does not end one later in each thread than in the one before (line {0})", loop.line);
  if (!isUniform(begin))
    return notApplicable("the loop does not begin at the same place in all threads of a block (line {0})", loop.line);
  auto known = begin.constant();
  lower = known == 0 ? intLit(0) : known ? intLit(*known, Type::makeLong()) : wideExpr(polyExpr(model, begin));
  first = wideExpr(polyExpr(model, end - Poly::atom("threadIdx.x") - Poly(1)));
  return llvm::Error::success();
}

/// A constant that an extreme's variable starts from: folding it more often changes nothing.
ExprRef Prefix::startOf(const Reduction &r) const {
  const Stmt *declaration = model.declaration(r.variable);
  auto place = declaration ? findPlace(*kernel.body, declaration) : std::nullopt;
  auto ofLoop = findPlace(*kernel.body, &loop);
  if (!place || !ofLoop || place->block != ofLoop->block || place->index > ofLoop->index || !declaration->expr)
    return nullptr;
  for (size_t i = place->index + 1; i < ofLoop->index; ++i)
    if (countChanges(*place->block->body[i]).count(r.variable))
      return nullptr;
  const bool isConstant = onlyComputes(declaration->expr) && !anyNode(declaration->expr, [](const ExprRef &e) {
                            return e->kind == ExprKind::Var || e->kind == ExprKind::Builtin || isLoad(e);
                          });
  return isConstant ? declaration->expr : nullptr;
}

llvm::Error Prefix::findTotals() {
  auto found = findReductions(loop, state.hints.strictFloat);
  if (!found)
    return found.takeError();
  for (const Reduction &r : *found) {
    const bool isNumber = (r.type.isInt() || r.type.isFloat()) && !r.type.isHalf && r.type.bytes >= 4;
    if (r.keepsPlace() || r.isMean || r.unordered || !r.exponential.empty() || !isNumber)
      return notApplicable("line {0}: '{1}' is no plain sum or extreme", loop.line, r.variable);
    ExprRef nothing = r.fold.isIdempotent() ? startOf(r) : r.fold.identity(r.type);
    if (!nothing)
      return notApplicable("line {0}: '{1}' does not start at a constant right before the loop", loop.line, r.variable);
    totals.push_back({r, nothing, freshName(taken, r.variable + "_before"), freshName(taken, r.variable + "_own")});
  }
  if (totals.empty())
    return notApplicable("line {0}: the loop folds nothing", loop.line);
  return llvm::Error::success();
}

/// What an iteration does depends on its counter alone.
llvm::Error Prefix::requireSameIterations() const {
  std::set<std::string> inside = namesDeclaredIn(loop);
  bool same = !holdsKind(loop, {StmtKind::Opaque, StmtKind::Barrier, StmtKind::Return}) &&
              !leavesIteration(*loop.body[0], {StmtKind::Break});
  walkExprs(*loop.body[0], [&](const ExprRef &e) {
    same &= e->pure;
    if (e->kind == ExprKind::Builtin ||
        (e->kind == ExprKind::Var && !isTotal(e) && !inside.count(e->text) && e->text != counted.var))
      same &= !(model.varies(e) & AnyThread) && model.stable(e);
  });
  if (!same)
    return notApplicable("what an iteration folds does not depend on its counter alone (line {0})", loop.line);
  for (const Access &access : model.accesses())
    if (insideOf(access, &loop) && access.space != Space::Global && !inside.count(access.array))
      return notApplicable("the loop reads '{0}', which is no global memory (line {1})", access.array,
                           access.stmt->line);
  return llvm::Error::success();
}

/// One iteration of the original loop.
std::vector<StmtRef> Prefix::iteration(const ExprRef &counter, std::string Total::*into) {
  StmtRef body = clone(loop.body[0]);
  std::map<std::string, ExprRef> names;
  for (const Total &total : totals)
    names[total.reduction.variable] = var(total.*into, total.reduction.type);
  const Type type = counted.type.withConst(true);
  ExprRef own = var(freshName(taken, counted.var), type);
  names[counted.var] = own;
  substitute(*body, names);
  renameDeclarations(*body, taken);
  std::vector<StmtRef> made = {declStmt(own->text, type, castTo(counted.type.unqualified(), counter))};
  llvm::append_range(made, body->kind == StmtKind::Block ? body->body : std::vector<StmtRef>{body});
  return made;
}

llvm::Error Prefix::share() {
  counted = *asCountedLoop(loop);
  if (llvm::Error e = findTotals())
    return e;
  if (llvm::Error e = findGuards())
    return e;
  if (llvm::Error e = findBounds())
    return e;
  if (llvm::Error e = requireSameIterations())
    return e;
  if (llvm::Error e = requireSameMemory(kernel))
    return e;
  std::set<std::string> arrays;
  for (const Access &access : model.accesses())
    if (insideOf(access, &loop) && access.space == Space::Global)
      arrays.insert(access.array);
  if (llvm::Error e = requireDisjointFromWritten(state, model, arrays))
    return e;

  const Type wide = Type::makeLong();
  auto fresh = [&](const std::string &wish, const Type &type) { return var(freshName(taken, wish), type); };
  ExprRef begin = fresh(counted.var + "_begin", wide.withConst(true)),
          last = fresh(counted.var + "_first", wide.withConst(true)), k = fresh(counted.var + "_shared", wide),
          active = fresh("active", Type::makeBool().withConst(true)),
          anyActive = fresh("any_active", Type::makeInt().withConst(true));
  const ExprRef thread = builtin("threadIdx.x");
  ExprRef condition;
  for (const auto &[guard, taken] : guards) {
    ExprRef holds = taken ? guard : unary("!", guard, Type::makeBool());
    condition = condition ? binary("&&", condition, holds, Type::makeBool()) : holds;
  }
  std::vector<StmtRef> made;
  if (condition) {
    made.push_back(declStmt(active->text, active->type, condition));
    made.push_back(
        declStmt(anyActive->text, anyActive->type, callOf("__syncthreads_or", {active}, Type::makeInt(), false)));
  }
  if (lower->kind == ExprKind::IntLit)
    begin = lower;
  else
    made.push_back(declStmt(begin->text, begin->type, lower));
  made.push_back(declStmt(last->text, last->type, first));
  for (const Total &total : totals) {
    made.push_back(declStmt(total.before, total.reduction.type.unqualified(), total.nothing));
    made.push_back(declStmt(total.own, total.reduction.type.unqualified(), total.nothing));
  }
  StmtRef common =
      countedFor(k->text, wide, add(thread, begin), last, threads, block(iteration(k, &Total::before)), NoUnroll);
  made.push_back(condition ? ifStmt(anyActive, block({common})) : common);
  ExprRef mine = add(last, thread), isOwn = binary(">=", mine, begin, Type::makeBool());
  made.push_back(
      ifStmt(condition ? binary("&&", active, isOwn, Type::makeBool()) : isOwn, block(iteration(mine, &Total::own))));
  Combiner combiner(ThreadGroup::ofBlock({threads, 1, 1}), taken);
  for (const Total &total : totals) {
    Reduction before = total.reduction;
    before.variable = total.before;
    llvm::append_range(made, combiner.combine(before));
    SharedScan scan;
    scan.fold = total.reduction.fold;
    scan.type = total.reduction.type.unqualified();
    scan.source = {total.own};
    scan.results = {{total.own}};
    llvm::append_range(made, scanByShuffles(scan, model, threads, taken));
  }
  auto place = findPlace(*kernel.body, &loop);
  std::vector<StmtRef> &list = place->block->body;
  std::vector<StmtRef> taking;
  for (const Total &total : totals) {
    const ExprRef v = var(total.reduction.variable, total.reduction.type);
    taking.push_back(total.reduction.fold.into(v, var(total.before, v->type)));
    taking.push_back(total.reduction.fold.into(v, var(total.own, v->type)));
  }
  list.erase(list.begin() + long(place->index));
  list.insert(list.begin() + long(place->index), taking.begin(), taking.end());
  kernel.body->body.insert(kernel.body->body.begin() + long(anchor), made.begin(), made.end());
  return llvm::Error::success();
}

DEFINE_TRANSFORM(SharePrefix)
