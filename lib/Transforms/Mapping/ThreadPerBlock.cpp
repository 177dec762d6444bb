//===- ThreadPerBlock.cpp - the work of a block, by one thread ------------===//
//
// thread-per-block[kernel]: a block whose threads share a row or a range (each takes every 256th element, and a tree in
// shared memory sums up what they found) becomes one thread that does it alone. Alone it makes a kernel slower. What is
// left is the kernel as one writes it first, which `distribute-loop` shares out again, among a warp or a block, several
// rows a block; `split-reduction` among many blocks; and `loop-to-grid` over a whole grid.
//
// Example:
//   __shared__ float part[256];                           int row = blockIdx.x * blockDim.x + threadIdx.x;
//   float s = 0;                                          float part_of_block;
//   for (int i = threadIdx.x; i < n; i += blockDim.x)     float s = 0;
//     s += x[blockIdx.x * n + i];                         for (int i = 0; i < n; ++i) {
//   part[threadIdx.x] = s;                                  s += x[row * n + i];
//   __syncthreads();                                      }
//   for (int d = blockDim.x / 2; d; d /= 2) {             part_of_block = s;
//     if (threadIdx.x < d)                                y[row] = part_of_block;
//       part[threadIdx.x] += part[threadIdx.x + d];       // plan: <<<(grid.x, grid.y, grid.z), (1, 1, 1), shared>>>
//     __syncthreads();                                    // when block.x == 256, block.y == 1, block.z == 1
//   }
//   if (threadIdx.x == 0)
//     y[blockIdx.x] = part[0];
//
// Legal: between two barriers the threads of a program without data races may run in any order, and so one after the
// other. What a thread keeps in a local variable beyond that is a partial sum (product, extreme), begun with nothing,
// which it does nothing with but put it into its element of a shared array that is folded next. Of the array only the
// first element is used afterwards. All else is alike in all threads, or done by the first alone. The block shape is a
// condition.
//
// Refuses: other uses of shared memory than folds and single variables; variables that differ between threads and are
// used after a barrier; threads that leave early. It also refuses shuffles, and whatever else lets the threads of a
// warp meet, and floating-point sums under `--optiml-fp=strict`.
//
//===----------------------------------------------------------------------===//
#include "../Cooperative/SharedScan.h"
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/SharedPlaces.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {
bool isThread(const ExprRef &e) { return isBuiltin(e, "threadIdx.x"); }

bool isImpureCall(const ExprRef &e) { return e->kind == ExprKind::Call && !e->pure; }

/// "threadIdx.x == 0", "!threadIdx.x".
bool asksForFirst(ExprRef e) {
  auto withoutCasts = [](ExprRef x) {
    while (x->kind == ExprKind::Cast && ((x->type.isInt() && x->type.bytes >= 4) || x->type.cls == Type::Class::Bool))
      x = x->args[0];
    return x;
  };
  e = withoutCasts(e);
  if (isUnary(e, "!"))
    return isThread(withoutCasts(e->args[0]));
  return isBinary(e, "==") && isThread(withoutCasts(e->args[0])) &&
         constantValue(e->args[1]) == std::optional<int64_t>(0);
}

/// Writes a block's work as that of one thread.
class Serializer {
public:
  Serializer(Kernel &kernel, const KernelModel &model, int64_t threads, bool strictFloat)
      : kernel(kernel), model(model), threads(threads), strictFloat(strictFloat), taken(allNames(kernel)) {}

  llvm::Error run() {
    if (llvm::Error e = findFolds())
      return e;
    auto made = list(*kernel.body);
    if (!made)
      return made.takeError();
    if (!found)
      return notApplicable("the threads of a block share no loop");
    kernel.body = block(std::move(*made));
    return llvm::Error::success();
  }

private:
  using Statements = std::vector<StmtRef>;

  /// The folds, and the stores before them.
  llvm::Error findFolds() {
    regions = findTrees(kernel, model, threads);
    std::set<const Stmt *> within, stores;
    for (const TreeRegion &region : regions)
      for (size_t i = region.first; i < region.end; ++i)
        walk(*region.list->body[i], [&](Stmt &s) { within.insert(&s); });
    for (const TreeRegion &region : regions)
      for (const SharedTree &tree : region.trees) {
        if (strictFloat && tree.type.isFloat())
          return notApplicable("the order in which '{0}' is folded may not change (--optiml-fp=strict)", tree.array);
        if (tree.fold.kind == Fold::Kind::Compare && tree.type.isFloat())
          return notApplicable("which elements of '{0}' a NaN hides may not change", tree.array);
        std::set<const Stmt *> own;
        if (findOwnStores(model, ThreadValues(model, threads), threads, *region.list, region.first, tree.array, own) !=
            0)
          return notApplicable("not every thread has just stored its own element of '{0}' (line {1})", tree.array,
                               region.list->body[region.first]->line);
        for (size_t i = 0; i < region.first; ++i)
          if (const Stmt *s = region.list->body[i].get(); own.count(s))
            stored[s] = {&region, &tree};
        totals.try_emplace(tree.array, var(freshName(taken, tree.array + "_of_block"), tree.type));
        stores.insert(own.begin(), own.end());
      }
    for (const auto &[array, total] : totals)
      for (const Access &access : model.accesses())
        if (access.array == array && !within.count(access.stmt) && !stores.count(access.stmt) &&
            (access.atomic || access.node->kind != ExprKind::Subscript || constantValue(access.node->args[1]) != 0))
          return notApplicable("another element of '{0}' than the first is used (line {1})", array, access.stmt->line);
    return llvm::Error::success();
  }

  llvm::Expected<Statements> list(Stmt &from) {
    Statements out;
    for (size_t i = 0; i < from.body.size(); ++i) {
      const TreeRegion *region = nullptr;
      for (const TreeRegion &r : regions)
        if (r.list == &from && r.first == i)
          region = &r;
      if (region) { // its outcome is there since the store
        i = region->end - 1;
        continue;
      }
      if (llvm::Error e = statement(from, i, out))
        return std::move(e);
    }
    return out;
  }

  llvm::Error statement(Stmt &from, size_t i, Statements &out) {
    const StmtRef &s = from.body[i];
    if (auto own = stored.find(s.get()); own != stored.end())
      return ownStore(from, i, *own->second.first, *own->second.second, out);
    if (s->kind == StmtKind::Barrier) {
      found = true;
      return llvm::Error::success();
    }
    if (s->kind == StmtKind::Decl && s->isShared)
      return sharedDeclaration(*s, &from == kernel.body.get(), out);
    if (s->kind == StmtKind::If && asksForFirst(s->expr) && s->body.size() == 1)
      return byFirst(*s, out);
    if (s->kind == StmtKind::For && anyExpr(*s, isThread) && !hasBarrier(*s))
      if (auto loop = asCountedLoop(*s); loop && anyNode(loop->lower, isThread))
        return sharedLoop(s, *loop, out);
    const bool hasHead = s->kind == StmtKind::If || isLoop(*s);
    const bool isAlike = hasHead ? !headDepends(*s) : !anyExpr(*s, isThread);
    if (!isAlike)
      return byEachThread(s, out);
    if (hasHead || s->kind == StmtKind::Block)
      return inside(s, out);
    if (anyExpr(*s, isImpureCall)) // an update that every thread makes is made as often
      return byEachThread(s, out);
    if (llvm::Error e = requireWhole(*s))
      return e;
    if (isAssignStmt(*s) && s->expr->text == "=" && s->expr->args[0]->kind == ExprKind::Var)
      partial.erase(s->expr->args[0]->text);
    out.push_back(made(*s));
    return llvm::Error::success();
  }

  /// What decides how often the statement runs differs between threads.
  static bool headDepends(const Stmt &s) {
    return (s.expr && anyNode(s.expr, isThread)) || (s.step && anyNode(s.step, isThread)) ||
           (s.init && s.init->expr && anyNode(s.init->expr, isThread));
  }

  /// A copy that uses the folds' outcomes in place of first elements.
  StmtRef made(const Stmt &s) const {
    StmtRef copy = clone(std::make_shared<Stmt>(s));
    rewriteExprs(*copy, [&](const ExprRef &e) -> ExprRef {
      if (e->kind != ExprKind::Subscript || e->args[0]->kind != ExprKind::Var || constantValue(e->args[1]) != 0)
        return nullptr;
      auto total = totals.find(e->args[0]->text);
      return total == totals.end() ? nullptr : total->second;
    });
    return copy;
  }

  /// Partial sums are not used for what needs whole ones.
  llvm::Error requireWhole(Stmt &s) const {
    const bool resets = isAssignStmt(s) && s.expr->text == "=" && s.expr->args[0]->kind == ExprKind::Var;
    for (const auto &[name, reduction] : partial) {
      bool used = resets ? mentions(s.expr->args[1], name) : mentionsName(s, name);
      if (used)
        return notApplicable("line {0} uses '{1}', of which every thread has a part", s.line, name);
    }
    return llvm::Error::success();
  }

  llvm::Error sharedDeclaration(const Stmt &s, bool isOutermost, Statements &out) {
    if (auto total = totals.find(s.text); total != totals.end()) {
      out.push_back(declStmt(total->second->text, total->second->type.withConst(false), nullptr));
      return llvm::Error::success();
    }
    bool isUpdated = llvm::any_of(model.accesses(), [&](const Access &a) { return a.atomic && a.array == s.text; }) ||
                     anyExpr(*kernel.body, [&](const ExprRef &e) { return isUnary(e, "&") && mentions(e, s.text); });
    if (!s.dims.empty() || s.isExtern || s.type.isVolatile || !isOutermost || isUpdated)
      return notApplicable("shared memory is used for more than folds ('{0}', line {1})", s.text, s.line);
    StmtRef local = clone(std::make_shared<Stmt>(s));
    local->isShared = false;
    out.push_back(local);
    alikeVariables.insert(s.text);
    return llvm::Error::success();
  }

  /// Locals from outside that `s` changes.
  std::set<std::string> changedBy(Stmt &s) const {
    std::set<std::string> own = namesDeclaredIn(s), changed;
    walkExprs(s, [&](const ExprRef &e) {
      if (!mayChange(e))
        return;
      const Expr *target = objectOf(e->args[0]);
      const Stmt *declared = target->kind == ExprKind::Var ? model.declaration(target->text) : nullptr;
      if (declared && !own.count(target->text) && !(declared->isShared && !declared->dims.empty()))
        changed.insert(target->text);
    });
    return changed;
  }

  /// "if (threadIdx.x == 0) …": done once, by the thread that there is.
  llvm::Error byFirst(Stmt &s, Statements &out) {
    if (hasBarrier(*s.body[0]))
      return notApplicable("line {0}: threads wait for each other within a condition", s.line);
    if (jumpsOut(*s.body[0]))
      return notApplicable("line {0}: the first thread goes another way than the others", s.line);
    for (const std::string &name : changedBy(*s.body[0]))
      if (!alikeVariables.count(name))
        return notApplicable("line {0}: the first thread changes its own '{1}'", s.line, name);
    for (const StmtRef &child : s.body[0]->body) {
      if (llvm::Error e = requireWhole(*child))
        return e;
      StmtRef copy = made(*child);
      substitute(*copy, {{"threadIdx.x", intLit(0, Type::makeUnsigned())}});
      out.push_back(copy);
    }
    return llvm::Error::success();
  }

  /// A condition or a loop that is alike for all threads.
  llvm::Error inside(const StmtRef &s, Statements &out) {
    const auto before = partial;
    Stmt head = *s;
    head.body.clear();
    if (llvm::Error e = requireWhole(head))
      return e;
    if (anyExpr(head, isImpureCall))
      return notApplicable("line {0}: a condition that each thread asks has effects", s->line);
    if (isLoop(*s) && llvm::any_of(before, [&](const auto &p) { return mentionsName(*s, p.first); }))
      return notApplicable("line {0}: partial results cross the iterations of a loop", s->line);
    StmtRef copy = made(head);
    for (const StmtRef &child : s->body) {
      auto statements = list(*child);
      if (!statements)
        return statements.takeError();
      copy->body.push_back(block(std::move(*statements)));
      const std::set<std::string> own = namesDeclaredIn(*s);
      std::erase_if(partial, [&](const auto &p) { return own.count(p.first) != 0; });
      if (!std::equal(partial.begin(), partial.end(), before.begin(), before.end(), [](const auto &a, const auto &b) {
            return a.first == b.first && a.second.fold == b.second.fold;
          }))
        return notApplicable("line {0}: partial results leave a condition or a loop", s->line);
    }
    if (s->kind == StmtKind::Block) {
      llvm::append_range(out, copy->body[0]->body);
      return llvm::Error::success();
    }
    out.push_back(copy);
    return llvm::Error::success();
  }

  /// for (i = threadIdx.x; i < n; i += threads): all iterations by one thread.
  llvm::Error sharedLoop(const StmtRef &s, const CountedLoop &loop, Statements &out) {
    if (leavesEarly(*s->body[0]))
      return notApplicable("line {0}: a thread may leave the loop early", s->line);
    auto reductions = findReductions(*s, strictFloat);
    if (!reductions)
      return reductions.takeError();
    std::set<std::string> folded;
    for (const Reduction &r : *reductions) {
      folded.insert(r.variable);
      if (r.keepsPlace() || r.keepsSums())
        return notApplicable("line {0}: '{1}' is kept with others", s->line, r.variable);
      auto known = partial.find(r.variable);
      bool goesOn = known != partial.end() && known->second.fold == r.fold;
      if (!goesOn && (known != partial.end() || !(r.fold.isIdempotent() || startsAtNothing(r, out))))
        return notApplicable("line {0}: '{1}' does not start with what changes nothing", s->line, r.variable);
      partial[r.variable] = r;
    }
    for (const std::string &name : changedBy(*s))
      if (!folded.count(name))
        return notApplicable("line {0}: each thread has its own '{1}'", s->line, name);
    for (const auto &[name, reduction] : partial)
      if (!folded.count(name) && mentionsName(*s, name))
        return notApplicable("line {0} uses '{1}', of which every thread has a part", s->line, name);
    if (anyExpr(*s->body[0], isThread))
      return notApplicable("line {0}: the loop depends on the thread otherwise than by its counter", s->line);
    Poly lower = model.poly(loop.lower);
    auto factor = lower.coefficient("threadIdx.x");
    auto stride = factor ? factor->constant() : std::nullopt;
    if (stride && llvm::any_of((lower - *factor * Poly::atom("threadIdx.x")).atoms(),
                               [&](const std::string &atom) { return (model.variesAtom(atom) & AnyThread) != 0; }))
      stride.reset(); // it starts somewhere else in each thread
    found = true;
    StmtRef copy = made(*s);
    if (stride && *stride > 0 && loop.step == *stride * threads) {
      ExprRef first = substitute(copy->init->expr, {{"threadIdx.x", intLit(0, Type::makeUnsigned())}});
      if (constantValue(first) == std::optional<int64_t>(0))
        first = intLit(0, loop.type.withConst(false));
      StmtRef whole = countedFor(loop.var, loop.type, first, loop.upper, *stride, copy->body[0], copy->unroll);
      whole->expr = copy->expr;
      out.push_back(whole);
      return llvm::Error::success();
    }
    out.push_back(overThreads({copy}));
    return llvm::Error::success();
  }

  static bool sameValues(const Type &a, const Type &b) {
    return a.cls == b.cls && a.bytes == b.bytes && a.isSigned == b.isSigned;
  }

  /// The last statement before that mentions the variable begins it with what changes nothing.
  static bool startsAtNothing(const Reduction &r, const Statements &before) {
    for (const StmtRef &s : llvm::reverse(before))
      if (s->text == r.variable || mentionsName(*s, r.variable))
        return startsAtIdentity(*s, r);
    return false;
  }

  /// Each thread's value goes into the fold at once.
  llvm::Error ownStore(Stmt &from, size_t i, const TreeRegion &region, const SharedTree &tree, Statements &out) {
    found = true;
    Statements all;
    bool isLast = true;
    for (size_t k = 0; k < region.first; ++k) {
      auto known = stored.find(from.body[k].get());
      bool own = known != stored.end() && known->second.first == &region;
      if (own && known->second.second == &tree) {
        all.push_back(from.body[k]);
        isLast &= k <= i;
      } else if (!all.empty() && k < i && !own && from.body[k]->kind != StmtKind::Barrier) {
        return notApplicable("line {0} stands between stores into '{1}'", from.body[k]->line, tree.array);
      }
    }
    if (!isLast) // it is one with the next
      return llvm::Error::success();
    ExprRef total = totals.at(tree.array);
    if (all.size() == 1 && isAssignStmt(*all[0]) && all[0]->expr->args[1]->kind == ExprKind::Var)
      if (auto part = partial.find(all[0]->expr->args[1]->text); part != partial.end()) {
        if (!(part->second.fold == tree.fold) || !sameValues(part->second.type, tree.type))
          return notApplicable("line {0}: '{1}' is folded in another way than the block does", all[0]->line,
                               part->first);
        out.push_back(exprStmt(assign("=", total, all[0]->expr->args[1])));
        return llvm::Error::success();
      }
    if (tree.fold.isIdempotent())
      return notApplicable("the fold of '{0}' begins with nothing that could be written down", tree.array);
    ExprRef value = var(freshName(taken, tree.array + "_of_thread"), tree.type.withConst(false));
    Statements body = {declStmt(value->text, value->type, nullptr)};
    for (const StmtRef &s : all) {
      if (llvm::Error e = requireWhole(*s))
        return e;
      if (hasBarrier(*s) || !changedBy(*s).empty())
        return notApplicable("line {0} does more than storing an element", s->line);
      StmtRef copy = made(*s);
      rewriteExprs(*copy, [&](const ExprRef &e) -> ExprRef {
        const Expr *array = subscriptedArray(e);
        return array && array->text == tree.array ? value : nullptr;
      });
      body.push_back(copy);
    }
    body.push_back(tree.fold.into(total, value));
    out.push_back(exprStmt(assign("=", total, tree.fold.identity(tree.type))));
    out.push_back(overThreads(std::move(body)));
    return llvm::Error::success();
  }

  /// What every thread does for itself, by one thread for all of them.
  llvm::Error byEachThread(const StmtRef &s, Statements &out) {
    if (hasBarrier(*s) || s->kind == StmtKind::Decl || s->kind == StmtKind::Opaque || jumpsOut(*s))
      return notApplicable("line {0} differs between the threads of a block", s->line);
    if (std::set<std::string> changed = changedBy(*s); !changed.empty())
      return notApplicable("line {0}: each thread has its own '{1}'", s->line, *changed.begin());
    if (llvm::Error e = requireWhole(*s))
      return e;
    out.push_back(overThreads({made(*s)}));
    return llvm::Error::success();
  }

  StmtRef overThreads(Statements body) {
    std::string thread = freshName(taken, "thread");
    StmtRef loop = countedFor(thread, Type::makeInt(), intLit(0), intLit(threads), 1, block(std::move(body)), NoUnroll);
    rewriteExprs(*loop->body[0], [&](const ExprRef &e) -> ExprRef {
      return isThread(e) ? castTo(e->type, var(thread, Type::makeInt())) : nullptr;
    });
    return loop;
  }

  Kernel &kernel;
  const KernelModel &model;
  int64_t threads;
  bool strictFloat;
  std::set<std::string> taken;
  std::vector<TreeRegion> regions;
  std::map<const Stmt *, std::pair<const TreeRegion *, const SharedTree *>> stored; ///< of each thread's own element
  std::map<std::string, ExprRef> totals;    ///< by array: what its first element is after a fold
  std::map<std::string, Reduction> partial; ///< variables of which every thread has a part
  std::set<std::string> alikeVariables;     ///< that were shared
  bool found = false;                       ///< something for which the threads work together
};

class ThreadPerBlock : public Transform {
public:
  llvm::StringRef name() const override { return "thread-per-block"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override { return kernelSite(*this, state, {{}}); }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &) const override {
    const std::array<int64_t, 3> shape = state.hints.block;
    if (state.isPinned())
      return notApplicable("{0}", shapeIsFixed);
    if (!shape[0])
      return notApplicable("the shape of the block is not known");
    if (shape[1] != 1 || shape[2] != 1 || shape[0] < 2 || shape[0] > 1024)
      return notApplicable("the block is not one row of threads");
    KernelState result = state;
    auto kernel = state.tree->clone();
    if (llvm::Error e = requireConstantParameters(*kernel))
      return std::move(e);
    if (holdsKind(*kernel->body, {StmtKind::Opaque}) ||
        anyExpr(*kernel->body, [](const ExprRef &e) { return e->kind == ExprKind::Opaque; }))
      return notApplicable("the kernel contains a construct that is kept verbatim");
    if (llvm::Error e = requireSameMemory(*kernel))
      return std::move(e);
    rewriteExprs(*kernel->body, [&](const ExprRef &e) -> ExprRef {
      if (e->kind != ExprKind::Builtin)
        return nullptr;
      if (e->text.starts_with("blockDim."))
        return intLit(shape[size_t(e->text.back() - 'x')], e->type);
      return e->text == "threadIdx.y" || e->text == "threadIdx.z" ? intLit(0, e->type) : nullptr;
    });
    inlinePointerLocals(*kernel);
    if (usesAddressesOfLocals(*kernel))
      return notApplicable("a pointer may lead to what each thread has for itself");
    std::set<std::string> loaded = inlineThreadLocals(*kernel);
    result.requireBlock(shape, "the kernel is written for this block shape");
    {
      KernelModel model(*kernel, {shape[0], 1, 1});
      if (unsigned line = model.unknownEffectLine())
        return notApplicable("line {0} may access memory in ways that are not understood", line);
      if (llvm::Error e = Serializer(*kernel, model, shape[0], state.hints.strictFloat).run())
        return std::move(e);
    }
    if (anyExpr(*kernel->body, isThread) || threadsWorkTogether(*kernel))
      return notApplicable("its threads work together in other ways");
    bool hasPlace = anyExpr(*kernel->body, [](const ExprRef &e) {
      return e->kind == ExprKind::Builtin && e->text.starts_with("blockIdx.");
    });
    if (!hasPlace)
      result.require("grid.x * grid.y * grid.z == 1", "the kernel is written for one block");
    rewriteExprs(*kernel->body,
                 [&](const ExprRef &e) { return isBuiltin(e, "blockIdx.x") ? axisBuiltin("globalIdx", 0) : nullptr; });
    lowerGlobalIndex(*kernel);
    normalize(*kernel);
    kernel->maxThreads = 0;
    for (unsigned axis = 0; axis < 3; ++axis) {
      // One thread, written so that other transforms may still choose.
      result.rewrite.plan.steps[0].block[axis] = IntExpr::of(std::string("min(1, block.") + char('x' + axis) + ")");
      result.extents[axis] = IntExpr::literal(1);
      result.hints.block[axis] = 1;
    }
    result.originalExtents = result.extents;
    result.tree = result.original = kernel;
    // What was loaded before a barrier is loaded after it now.
    KernelModel model(*kernel, {0, 0, 0});
    if (llvm::Error e = requireDisjointFromWritten(result, model, loaded))
      return std::move(e);
    return result;
  }
};
} // namespace

DEFINE_TRANSFORM(ThreadPerBlock)
