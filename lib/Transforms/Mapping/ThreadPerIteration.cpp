//===- ThreadPerIteration.cpp - a thread for each turn of a thread --------===//
//
// thread-per-iteration[kernel]: a kernel whose threads take turns at a loop gets a thread for each iteration. The grid
// of the source, which may be too small, no longer matters. Transforms that map threads to work start from here:
// `block-shape` and what builds on it, `grid-stride` with another grid, `distribute-loop` and `split-reduction`.
//
// Example:
//   for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;     int i = blockIdx.x * blockDim.x + threadIdx.x;
//        i += blockDim.x * gridDim.x)                              if (i >= n)
//     y[i] = a * x[i] + y[i];                                        return;
//                                                                  y[i] = a * x[i] + y[i];
//   // plan: saxpy_optiml<<<(max(1, ceildiv(n, block.x)), grid.y, grid.z), (block.x, block.y, block.z), shared>>>
//   // when disjoint(x, 4 * n, y, 4 * n)
//
// Legal: the loops are the last thing that the kernel does. Where a comparison of arguments decides between two of
// them, the new kernel has the one that the launches take, under that condition. They begin at the global index and
// advance by the number of threads, up to a bound that is known at the launch. The thread's place has no other use.
// Iterations share no variables, and none leaves the loop. One of two things then holds:
//  - Iterations do not meet in memory. What one writes is an element, or a row, that no other touches, in an array that
//    does not overlap the others (proved, or a condition). Or it is updated by atomics of one kind whose old values
//    nobody uses, except for floating-point sums under `--optiml-fp=strict`. The launch gets as many threads as there
//    are iterations.
//  - That cannot be shown, and `n <= grid.x * block.x` becomes a condition. Each thread then had one iteration at most,
//    and the launch stays as it is.
//
// Refuses: kernels that synchronize or use shared memory; other values that a thread carries from one iteration to the
// next; a bound that is read from memory.
//
//===----------------------------------------------------------------------===//
#include "Cooperative/Reduction.h"
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

namespace {

/// The loop that is being taken apart.
struct Turns {
  unsigned axis = 0;
  StridedLoop loop;
  Poly upper;
  std::string upperText;
};

/// Whether iterations of the loop may be done by different threads.
class Independence {
public:
  Independence(KernelState &state, const KernelModel &model, const Stmt &loop, const std::string &variable)
      : state(state), model(model), loop(loop), variable(variable) {
    inside.insert(variable);
    inside.merge(namesDeclaredIn(loop));
  }

  llvm::Error prove() {
    if (model.unknownEffectLine())
      return notApplicable("line {0} may access memory in ways that are not understood", model.unknownEffectLine());
    const std::vector<Access> accesses = model.accessesOfWholeRecords();
    std::map<std::string, std::vector<const Access *>> written;
    std::set<std::string> all;
    for (const Access &access : accesses) {
      if (!insideOf(access, &loop) || access.space != Space::Global)
        continue;
      all.insert(access.array);
      if (access.write)
        written[access.array];
    }
    for (const Access &access : accesses)
      if (insideOf(access, &loop) && written.count(access.array))
        written[access.array].push_back(&access);
    for (const Access &access : accesses) {
      if (access.space != Space::Global || insideOf(access, &loop))
        continue;
      if (access.write || written.count(access.array))
        return notApplicable("line {0} stands outside of the loop, and there will be more threads that do it",
                             access.stmt->line);
      all.insert(access.array);
    }
    for (const auto &[array, accesses] : written) {
      if (!model.param(array))
        return notApplicable("whose memory line {0} writes is not known", accesses.front()->stmt->line);
      if (llvm::Error e = apart(array, accesses))
        return e;
      for (const std::string &other : all)
        if (other != array)
          if (llvm::Error e = requireDisjoint(state, model, array, other))
            return e;
    }
    return llvm::Error::success();
  }

private:
  /// What the iterations access of one array are different elements, or updates that commute.
  llvm::Error apart(const std::string &array, const std::vector<const Access *> &accesses) {
    auto updates = [&](const Access *a) {
      return a->atomic && isAtomicUpdate(*a->stmt) && a->stmt->expr->text == accesses[0]->stmt->expr->text;
    };
    if (std::all_of(accesses.begin(), accesses.end(), updates)) {
      if (state.hints.strictFloat && accesses[0]->node->type.isFloat())
        return notApplicable("the order of the sum in '{0}' may not change (--optiml-fp=strict)", array);
      return llvm::Error::success();
    }
    std::optional<Poly> factor;
    for (const Access *access : accesses) {
      auto meet = [&] { return notApplicable("iterations may meet in '{0}' (line {1})", array, access->stmt->line); };
      if (access->atomic || access->subscripts.size() != 1 || !model.stable(access->subscripts[0]))
        return meet();
      auto ours = access->subscripts[0].coefficient(variable);
      if (!ours || ours->terms.empty() || (factor && !(*factor == *ours)) || !planText(model, *ours))
        return meet();
      factor = ours;
    }
    auto same = [&](const Access *a) { return a->subscripts == accesses[0]->subscripts; };
    bool oneElement = std::all_of(accesses.begin(), accesses.end(), same) &&
                      !model.dependsOn(accesses[0]->subscripts[0] - *factor * Poly::atom(variable), inside);
    if (oneElement) {
      if (!factor->constant())
        state.require(*planText(model, *factor) + " != 0", "iterations write different elements");
      return llvm::Error::success();
    }
    // Each iteration has a row of `factor` elements to itself.
    for (const Access *access : accesses) {
      Poly place = access->subscripts[0] - *factor * Poly::atom(variable);
      std::vector<Poly> facts = model.facts(*access);
      auto low = lowerBound(model, place, facts), high = upperBound(model, place, facts);
      auto text = high ? planText(model, *factor - *high) : std::nullopt;
      if (!low || !low->constant() || *low->constant() < 0 || !text)
        return notApplicable("iterations may meet in '{0}' (line {1})", array, access->stmt->line);
      if (auto known = (*factor - *high).constant(); !known || *known < 1)
        state.require(*text + " >= 1", "iterations write different rows of " + array);
    }
    return llvm::Error::success();
  }

  KernelState &state;
  const KernelModel &model;
  const Stmt &loop;
  std::string variable;
  std::set<std::string> inside;
};

class ThreadPerIteration : public Transform {
public:
  llvm::StringRef name() const override { return "thread-per-iteration"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override { return kernelSite(*this, state, {{}}); }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &) const override {
    if (state.isPinned())
      return notApplicable("{0}", shapeIsFixed);
    KernelState result = state;
    auto kernel = state.tree->clone();
    if (llvm::Error e = requireConstantParameters(*kernel))
      return std::move(e);
    if (llvm::Error e = requireApart(*kernel))
      return std::move(e);
    sinkUpdates(*kernel, state.hints.strictFloat);
    useBlockExtents(result, *kernel);
    adoptPlainIndices(result, *kernel);
    normalizeGlobalIndex(*kernel, {0, 0, 0});
    std::vector<Turns> done;
    // The same list takes in the body of each loop, and that of an if around what is left.
    std::vector<StmtRef> *list = &kernel->body->body;
    while (!list->empty()) {
      for (size_t i = 0; i + 1 < list->size(); ++i)
        if ((*list)[i]->kind != StmtKind::Decl && !isExit(*(*list)[i]))
          return end(result, kernel, done, (*list)[i]->line);
      StmtRef last = list->back();
      if (done.empty() && last->kind == StmtKind::If && last->body.size() == 2) // within a loop it may stay
        if (llvm::Error e = decide(result, *kernel, *last))
          return std::move(e);
      if (last->kind == StmtKind::If && last->body.size() == 1 && !isExit(*last)) {
        list = &last->body[0]->body;
        continue;
      }
      if (last->kind != StmtKind::For)
        break;
      auto turns = open(result, *kernel, *last);
      if (!turns) {
        if (done.empty())
          return turns.takeError();
        llvm::consumeError(turns.takeError());
        break;
      }
      done.push_back(*turns);
      dropOwnExit(*list, *last);
      list->pop_back();
      forEachExit(*last->body[0],
                  [](Stmt &s) { s.kind = StmtKind::Return; }); // what ends an iteration ends a thread now
      Type type = turns->loop.type.withConst(false);
      StmtRef index = declStmt(turns->loop.var, type, turns->loop.lower);
      list->push_back(index);
      list->push_back(ifStmt(logicalNot(last->expr), block({std::make_shared<Stmt>(Stmt{StmtKind::Return})})));
      list->insert(list->end(), last->body[0]->body.begin(), last->body[0]->body.end());
    }
    return end(result, kernel, done, 0);
  }

private:
  static bool isExit(const Stmt &s) {
    return s.kind == StmtKind::If && s.body.size() == 1 && s.body[0]->body.size() == 1 &&
           s.body[0]->body[0]->kind == StmtKind::Return;
  }

  /// Of two branches, between which an argument decides, the one that the launches take, by a condition on the launch.
  static llvm::Error decide(KernelState &state, const Kernel &kernel, Stmt &branch) {
    const KernelModel model(kernel, {0, 0, 0});
    const ExprRef &test = branch.expr;
    auto isPlain = [&](const ExprRef &e) { return e->type.isInt() && e->type.isSigned && model.stable(e); };
    const bool compares = test->kind == ExprKind::Binary && llvm::is_contained({"<", "<=", ">", ">="}, test->text) &&
                          isPlain(test->args[0]) && isPlain(test->args[1]);
    for (bool taken : {true, false}) {
      std::vector<Poly> facts;
      if (compares)
        model.addFacts(test, taken, facts);
      const auto text = facts.size() == 1 ? planText(model, facts.front()) : std::nullopt;
      if (!text)
        return notApplicable("line {0}: which branch threads take is not known before the launch", branch.line);
      const std::string condition = *text + " >= 0";
      if (!state.hints.evaluate(IntExpr::of(condition)).value_or(taken))
        continue;
      state.require(condition, "the branch that the new kernel has is taken");
      if (!taken)
        branch.expr = logicalNot(test);
      branch.body = {branch.body[taken ? 0 : 1]};
      return llvm::Error::success();
    }
    return notApplicable("line {0}: no branch is taken", branch.line);
  }

  /// "if (tid >= n) return;" before "for (i = tid; i < n; …)" says what the loop says, where nothing between loads.
  static void dropOwnExit(std::vector<StmtRef> &list, const Stmt &loop) {
    ExprRef entered = substitute(loop.expr, {{loop.init->text, loop.init->expr}});
    for (size_t i = list.size() - 1; i-- > 0;) {
      if (isExit(*list[i])) {
        if (!equal(logicalNot(list[i]->expr), entered))
          return;
        list.erase(list.begin() + long(i));
        continue;
      }
      if (anyExpr(*list[i], [](const ExprRef &e) { return !e->pure || isLoad(e); }))
        return;
    }
  }

  static llvm::Expected<KernelState> end(KernelState &result, const std::shared_ptr<Kernel> &kernel,
                                         const std::vector<Turns> &done, unsigned otherLine) {
    if (done.empty())
      return otherLine
                 ? notApplicable("line {0} is not part of a loop whose iterations threads take in turns", otherLine)
                 : notApplicable("threads do not take turns in a loop");
    removeUnused(*kernel);
    // Where a thread is must matter through the loops alone.
    for (const Turns &turns : done) {
      unsigned uses = 0, line = 0;
      walkExprs(*kernel->body, [&](const ExprRef &e) {
        bool position = e->kind == ExprKind::Builtin && e->text.back() == char('x' + turns.axis) &&
                        !e->text.starts_with("blockDim.");
        bool opaque = e->kind == ExprKind::Opaque &&
                      (e->text.find("Idx") != std::string::npos || e->text.find("gridDim") != std::string::npos);
        uses += position + 2 * opaque;
        line = position || opaque ? e->line : line;
      });
      walk(*kernel->body,
           [&](Stmt &s) { uses += 2 * (s.kind == StmtKind::Opaque && s.text.find("Idx") != std::string::npos); });
      if (uses != 1)
        return notApplicable("line {0} uses the thread's place otherwise than for its turns", line);
    }
    lowerGlobalIndex(*kernel);
    result.tree = kernel;
    return result;
  }

  /// That the loop may be taken apart; the launch that it needs then is in `state`.
  static llvm::Expected<Turns> open(KernelState &state, const Kernel &kernel, Stmt &stmt) {
    auto loop = asStridedLoop(stmt);
    if (!loop)
      return notApplicable("line {0}: threads do not take turns in this loop", stmt.line);
    KernelModel model(kernel, {0, 0, 0});
    Turns turns;
    turns.loop = *loop;
    Poly lower = model.poly(loop->lower), step = model.poly(loop->step);
    while (turns.axis < 3 && !(lower == Poly::atom(indexName(turns.axis))))
      ++turns.axis;
    std::string suffix(1, char('x' + turns.axis));
    if (turns.axis == 3 || loop->type.bytes < 4 ||
        !(step == Poly::atom("blockDim." + suffix) * Poly::atom("gridDim." + suffix)))
      return notApplicable("line {0}: threads do not take turns in this loop", stmt.line);
    if (llvm::Error e = bodyAlone(stmt))
      return std::move(e);
    // The index itself in place of locals that hold it: what is left of those then uses the thread's place in another
    // way.
    for (unsigned depth = 0; depth < 8; ++depth)
      turns.loop.lower = rewrite(turns.loop.lower, [&](const ExprRef &e) -> ExprRef {
        const Stmt *local = e->kind == ExprKind::Var ? model.singleAssignment(e->text) : nullptr;
        return local ? castTo(local->type, local->expr) : nullptr;
      });
    turns.upper = model.poly(loop->upper);
    auto text = planText(model, turns.upper);
    if (!text)
      return notApplicable("line {0}: how often the loop runs is not known before the launch", stmt.line);
    turns.upperText = *text;
    if (!turns.upper.constant())
      state.require(*text + " >= 0", "an empty range stays empty, whatever the signs of the types");
    bool wide =
        anyNode(turns.loop.lower, [&](const ExprRef &e) { return e->kind == ExprKind::Builtin && e->type.bytes == 8; });
    if (!wide || loop->type.bytes == 4)
      state.require(*text + " <= " + std::to_string(INT32_MAX - 1024),
                    "the index of the last thread does not overflow");
    KernelState trial = state;
    llvm::Error dependent = Independence(trial, model, stmt, loop->var).prove();
    if (!dependent) {
      state = trial;
      IntExpr blocks = state.overOriginal("max(1, ceildiv(" + *text + ", block." + suffix + "))");
      setBlocks(state, turns.axis, blocks);
      return turns;
    }
    llvm::consumeError(std::move(dependent));
    state.require(*text + " <= grid." + suffix + " * block." + suffix, "the launch has a thread for every iteration");
    return turns;
  }

  static std::string indexName(unsigned axis) { return axisName("globalIdx", axis); }

  /// Iterations share no variables, and none of them ends the loop.
  static llvm::Error bodyAlone(Stmt &loop) {
    std::set<std::string> own;
    unsigned opaque = 0, outer = 0;
    walk(loop, [&](Stmt &s) {
      if (s.kind == StmtKind::Decl)
        own.insert(s.text);
      if (s.kind == StmtKind::Opaque && s.mayBarrier)
        opaque = std::max(1u, s.line);
    });
    if (opaque)
      return notApplicable("line {0} is not understood", opaque);
    walkExprs(*loop.body[0], [&](const ExprRef &e) {
      const Expr *target = mayChange(e) ? objectOf(e->args[0]) : nullptr;
      if (target && target->kind == ExprKind::Var && !own.count(target->text))
        outer = std::max(1u, e->line);
    });
    if (outer)
      return notApplicable("line {0} changes what the next iteration of the same thread uses", outer);
    unsigned leaves = 0;
    forEachExit(*loop.body[0], [&](Stmt &s) { leaves = s.kind == StmtKind::Continue ? leaves : std::max(1u, s.line); });
    return leaves ? notApplicable("line {0} leaves the loop", leaves) : llvm::Error::success();
  }

  /// Returns, and what ends the loop around `s` or its iteration.
  static void forEachExit(Stmt &s, const std::function<void(Stmt &)> &f, bool nested = false) {
    for (const StmtRef &child : s.body) {
      if (child->kind == StmtKind::Return ||
          (!nested && (child->kind == StmtKind::Break || child->kind == StmtKind::Continue)))
        f(*child);
      bool loop = isLoop(*child);
      forEachExit(*child, f, nested || loop);
    }
  }
};
} // namespace

DEFINE_TRANSFORM(ThreadPerIteration)
