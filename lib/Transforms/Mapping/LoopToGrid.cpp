//===- LoopToGrid.cpp - a loop of a thread as an axis of the grid ---------===//
//
// loop-to-grid[kernel/j]: a loop whose iterations do not depend on one another gets a thread for each iteration, along
// the first axis of the grid that the kernel does not use. "One thread a row, a loop over the columns, a sum within"
// becomes an ordinary kernel of two axes, from which `swap-thread-axes`, `block-shape`, `coarsen` and `stage-shared` go
// on.
//
// Example:
//   int row = blockIdx.x * blockDim.x + threadIdx.x;      int row = blockIdx.x * blockDim.x + threadIdx.x;
//   if (row < m) {                                        int j = blockIdx.y * blockDim.y + threadIdx.y;
//     c[row * n + row] = 1;                               if (row < m && j < n) {
//     for (int j = row + 1; j < n; ++j) {                   if (j == 0) {
//       float s = 0;                                          c[row * n + row] = 1;
//       for (int k = 0; k < l; ++k)                         }
//         s += a[row * l + k] * b[j * l + k];               if (j >= row + 1) {
//       c[row * n + j] = s;                                   float s = 0;
//     }                                                       for (int k = 0; k < l; ++k) {
//   }                                                           s += a[row * l + k] * b[j * l + k];
//                                                             }
//                                                             c[row * n + j] = s;
//                                                           }
//                                                         }
//   // plan: product_optiml<<<(grid.x, ceildiv(n, block.y), grid.z), (block.x, block.y, block.z), shared>>>
//   // when n >= 1
//   // when ceildiv(n, block.y) <= 65535
//
// Legal: two iterations of one thread never touch an element that one of them writes. The loop may be part of other
// loops of the thread, which every thread then runs: what an iteration does in any turn of those belongs to it. Nor do
// iterations meet what the thread accesses outside of the loop, or other arrays (proved, or a condition). Atomic
// updates of one kind commute, except for floating-point sums under `--optiml-fp=strict`. No variable carries a value
// from one iteration to the next, or out of the loop; a variable from outside that every iteration sets first becomes
// the iteration's own. The threads of all iterations compute what stands around the loop, and the one of index 0 writes
// what it writes to memory. That thread exists, because the loop's extent over all threads is at least 1, as a
// condition.
//
// Refuses: `break` and `return` in the loop; bounds read from memory, of a range that nothing limits, or of different
// signedness where one may be negative. It also refuses other loops of more than 16 iterations beside the loop, because
// each thread would run them again. Of kernels it refuses those that synchronize, use shared or volatile memory, hold
// text that is not understood, use all three axes, or access variables of the file beside stores.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Iterations.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/Transform.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

namespace {

/// Other loops of the thread are run again by every iteration's thread: with more iterations than this, better not.
constexpr int64_t mostRepeated = 16;

/// The variable that an assignment changes, or whose address is taken; null for memory behind a pointer.
const Expr *changedVariable(const ExprRef &e) {
  const Expr *target = mayChange(e) ? objectOf(e->args[0]) : nullptr;
  return target && target->kind == ExprKind::Var ? target : nullptr;
}

unsigned mentionsOf(Stmt &s, const std::string &name) {
  unsigned count = 0;
  walkExprs(s,
            [&](const ExprRef &e) { count += (e->kind == ExprKind::Var && e->text == name) || e->names.count(name); });
  return count;
}

/// Replaces what starts the next iteration by the end of this one.
void endAtContinue(Stmt &s) {
  for (const StmtRef &child : s.body) {
    if (child->kind == StmtKind::Continue)
      child->kind = StmtKind::Return;
    else if (!isLoop(*child))
      endAtContinue(*child);
  }
}

class Mapping {
public:
  Mapping(KernelState &state, Kernel &kernel, Stmt &loop, const CountedLoop &counted, unsigned axis)
      : state(state), kernel(kernel), loop(loop), counted(counted), axis(axis) {}

  llvm::Error run() {
    if (llvm::Error e = checkStructure())
      return e;
    if (llvm::Error e = takeVariablesIn())
      return e;
    endAtContinue(*loop.body[0]);
    Kernel iteration;
    iteration.body = loop.body[0];
    if (!structureReturns(iteration.body->body, nullptr, nullptr))
      return notApplicable("a `continue` of it cannot become a condition (line {0})", loop.line);
    KernelModel model(kernel, {0, 0, 0});
    if (unsigned line = model.unknownEffectLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    if (llvm::Error e = checkAround(model))
      return e;
    const Stmt *outermost = &loop;
    for (Stmt *at = kernel.body.get(); at != &loop;) {
      auto child = llvm::find_if(at->body, [&](const StmtRef &s) { return holdsStmt(*s, &loop); });
      if (isLoop(*at) && outermost == &loop)
        outermost = at;
      if (at->kind == StmtKind::If)
        model.addFacts(at->expr, child == at->body.begin(), known);
      at = child->get();
    }
    model.addLoopFacts({}, known);
    if (llvm::Error e = chooseIndex(model))
      return e;
    if (llvm::Error e = Iterations(model, loop, counted, *outermost).requireIndependent(state))
      return e;
    if (llvm::Error e = setLaunch(model))
      return e;

    spell(model);
    rewrite();
    return llvm::Error::success();
  }

private:
  /// Nothing in the kernel is text, and nothing in the loop leaves it.
  llvm::Error checkStructure() {
    unsigned opaque = 0, volatiles = 0;
    walk(*kernel.body, [&](Stmt &s) {
      opaque = s.kind == StmtKind::Opaque ? std::max(1u, s.line) : opaque;
      volatiles = s.kind == StmtKind::Decl && (s.type.isVolatile || (s.type.pointee && s.type.pointee->isVolatile))
                      ? std::max(1u, s.line)
                      : volatiles;
    });
    for (const Param &p : kernel.params)
      if (p.type.pointee && p.type.pointee->isVolatile)
        return notApplicable("'{0}' is volatile", p.name);
    if (volatiles)
      return notApplicable("line {0} declares something volatile", volatiles);
    if (opaque)
      return notApplicable("line {0} is not understood", opaque);
    unsigned leaves = 0;
    std::function<void(Stmt &, bool)> look = [&](Stmt &s, bool nested) {
      for (const StmtRef &child : s.body) {
        if (child->kind == StmtKind::Return || (child->kind == StmtKind::Break && !nested))
          leaves = std::max(1u, child->line);
        look(*child, nested || isLoop(*child));
      }
    };
    look(*loop.body[0], false);
    return leaves ? notApplicable("line {0} leaves the loop", leaves) : llvm::Error::success();
  }

  /// A variable from outside that every iteration sets before it uses it, and that nobody needs afterwards, becomes one
  /// of the iteration. No other variable may change in the loop.
  llvm::Error takeVariablesIn() {
    std::set<std::string> own = namesDeclaredIn(loop);
    std::map<std::string, unsigned> changed;
    walkExprs(*loop.body[0], [&](const ExprRef &e) {
      if (const Expr *variable = changedVariable(e); variable && !own.count(variable->text))
        changed.emplace(variable->text, e->line);
    });
    for (const auto &[name, line] : changed) {
      auto refuse = [&, &name = name, line = line] {
        return notApplicable("'{0}' keeps its value from one iteration to the next, or after the loop (line {1})", name,
                             line);
      };
      Stmt *declaration = findDeclaration(*kernel.body, name);
      bool elsewhere = mentionsOf(*kernel.body, name) != mentionsOf(loop, name);
      if (declaration && declaration->expr) // what it begins with is given up
        elsewhere |= !onlyComputes(declaration->expr);
      if (!declaration || declaration->isShared || !declaration->dims.empty() || declaration->type.isConst ||
          elsewhere || mentions(counted.lower, name) || mentions(counted.upper, name))
        return refuse();
      std::vector<StmtRef> &body = loop.body[0]->body;
      auto first = llvm::find_if(body, [&, &name = name](const StmtRef &s) { return mentionsOf(*s, name) > 0; });
      if (first == body.end() || !isAssignStmt(**first) || !isVar((*first)->expr->args[0], name) ||
          mentions((*first)->expr->args[1], name))
        return refuse();
      *first = atLine((*first)->line, declStmt(name, declaration->type, (*first)->expr->args[1]));
      auto place = findPlace(*kernel.body, declaration);
      if (!place)
        return refuse();
      place->block->body.erase(place->block->body.begin() + long(place->index));
    }
    return llvm::Error::success();
  }

  llvm::Error checkAround(const KernelModel &model) {
    for (Stmt *at = kernel.body.get(); at != &loop;) {
      Stmt *next = nullptr;
      for (const StmtRef &child : at->body) {
        if (holdsStmt(*child, &loop)) {
          next = child.get();
          continue;
        }
        if (at->kind == StmtKind::If) { // the other branch
          for (const StmtRef &s : child->body)
            if (llvm::Error e = checkSibling(model, *s))
              return e;
        } else if (llvm::Error e = checkSibling(model, *child)) {
          return e;
        }
      }
      if (at->kind == StmtKind::If && writesMemory(model, *exprStmt(at->expr)))
        return notApplicable("line {0} writes memory in a condition", at->line);
      at = next;
    }
    // What is computed again must not see what the first thread writes.
    std::set<std::string> written;
    auto ofWriter = [&](const Access &access) {
      return llvm::any_of(writers, [&](const Stmt *s) { return holdsStmt(*s, access.stmt) || insideOf(access, s); });
    };
    for (const Access &access : model.accesses())
      if (access.space == Space::Global && !insideOf(access, &loop)) {
        if (access.write && !ofWriter(access))
          return notApplicable("line {0} writes memory in a place that is not understood", access.stmt->line);
        if (access.write)
          written.insert(model.ofWholeRecord(access).array);
      }
    for (const Access &access : model.accesses())
      if (access.space == Space::Global && access.read && !insideOf(access, &loop) && !ofWriter(access) &&
          written.count(model.ofWholeRecord(access).array))
        return notApplicable("line {0} reads '{1}', which is written outside of the loop too", access.stmt->line,
                             access.array);
    return llvm::Error::success();
  }

  /// A statement beside the loop, or beside a branch that holds it.
  llvm::Error checkSibling(const KernelModel &model, Stmt &s) {
    unsigned repeated = 0;
    walk(s, [&](Stmt &t) {
      if (!isLoop(t))
        return;
      auto other = asCountedLoop(t);
      auto trips = other ? other->tripCount() : std::nullopt;
      if (!trips || *trips > mostRepeated)
        repeated = std::max(1u, t.line);
    });
    if (repeated)
      return notApplicable("the loop at line {0} would be run again for every iteration", repeated);
    if (!writesMemory(model, s))
      return llvm::Error::success();
    if (s.kind == StmtKind::Decl)
      return notApplicable("line {0} writes memory and a variable at once", s.line);
    if (leavesIteration(s))
      return notApplicable("line {0} writes memory and leaves a loop that all threads run", s.line);
    std::set<std::string> own = namesDeclaredIn(s);
    unsigned mixed = 0;
    walkExprs(s, [&](const ExprRef &e) {
      if (const Expr *variable = changedVariable(e); variable && !own.count(variable->text))
        mixed = std::max(1u, e->line);
    });
    if (mixed)
      return notApplicable("line {0} changes a variable beside writing memory", mixed);
    writers.insert(&s);
    return llvm::Error::success();
  }

  /// What the index along the axis stands for, and its bound.
  llvm::Error chooseIndex(const KernelModel &model) {
    if (counted.type.bytes < 4)
      return notApplicable("line {0}: the loop's counter is too narrow", loop.line);
    if (!model.stable(counted.lower) || !model.stable(counted.upper))
      return notApplicable("line {0}: the loop's bounds are not known before the launch", loop.line);
    lower = model.poly(counted.lower);
    upper = model.poly(counted.upper);
    uniformLower = planText(model, lower).has_value();
    uniformUpper = planText(model, upper).has_value();
    auto least = lowerBound(model, lower, known);
    bool notNegative = least && least->constant() && *least->constant() >= 0;
    // -1 < n does not hold for an unsigned n.
    auto isSigned = [](const Type &type) { return type.isSigned || type.bytes < 4; };
    bool sameSigns = isSigned(counted.type) == isSigned(counted.upper->type) ||
                     (counted.upper->type.bytes < counted.type.bytes && isSigned(counted.type)) ||
                     (counted.type.bytes < counted.upper->type.bytes && isSigned(counted.upper->type));
    bool allSigned = sameSigns && isSigned(counted.type);
    if (!allSigned && (!notNegative || (!sameSigns && !uniformUpper)))
      return notApplicable("line {0}: the loop's bounds are of different signedness, and may be negative", loop.line);
    direct = counted.step == 1 && notNegative && (lower == Poly(0) || !uniformLower);
    Poly count = direct ? upper : upper - lower;
    auto most = planText(model, count) ? std::optional(count) : upperBound(model, count, known);
    if (!most || !planText(model, *most))
      return notApplicable("line {0}: how often the loop runs is not known before the launch", loop.line);
    extent = *most;
    return llvm::Error::success();
  }

  /// Geometry, and what makes it right.
  llvm::Error setLaunch(const KernelModel &model) {
    const std::string suffix(1, char('x' + axis)), steps = *planText(model, extent);
    requireOneCopy(state, axis);
    std::string count =
        direct || counted.step == 1 ? steps : "ceildiv(" + steps + ", " + std::to_string(counted.step) + ")";
    if (auto constant = extent.constant(); !constant || *constant < 1)
      state.require(steps + " >= 1", "the loop has a first iteration");
    IntExpr blocks = state.overOriginal("ceildiv(" + count + ", block." + suffix + ")");
    if (axis == 0)
      state.require(steps + " <= " + std::to_string(INT32_MAX - 65536 - counted.step),
                    "the index of the last thread does not overflow");
    setBlocks(state, axis, blocks);
    return llvm::Error::success();
  }

  bool writesMemory(const KernelModel &model, Stmt &s) const {
    return llvm::any_of(model.accesses(), [&](const Access &access) {
      return access.write && access.space != Space::Local &&
             (access.stmt == &s || insideOf(access, &s) || holdsStmt(s, access.stmt));
    });
  }

  /// Chooses names, and how the source's bounds are written where they are needed now.
  void spell(const KernelModel &model) {
    // The variable's own name, unless it means something else elsewhere.
    unsigned declared = 0;
    std::set<std::string> names = allNames(kernel);
    walk(*kernel.body, [&](Stmt &s) { declared += s.kind == StmtKind::Decl && s.text == counted.var; });
    condition = loop.expr->text == "!=" ? lessThan(var(counted.var, counted.type), counted.upper) : loop.expr;
    if (declared > 1) {
      ExprRef renamed = var(freshName(names, counted.var), counted.type);
      substitute(loop, {{counted.var, renamed}});
      condition = substitute(condition, {{counted.var, renamed}});
      counted.var = renamed->text;
    }
    index = isGeneral() ? freshName(names, counted.var + "_index") : counted.var;
    auto known = [&](const ExprRef &e) { // before anything is computed
      return llvm::all_of(namesIn(e), [&](const std::string &name) { return model.param(name) != nullptr; });
    };
    start = known(counted.lower) ? counted.lower : polyExpr(model, lower);
    ExprRef variable = var(index, isGeneral() ? Type::makeInt() : counted.type);
    if (isGeneral())
      bound = lessThan(mul(variable, intLit(counted.step)), polyExpr(model, extent));
    else if (uniformUpper && known(counted.upper))
      bound = condition;
    else
      bound = lessThan(variable, polyExpr(model, uniformUpper ? upper : direct ? extent : extent + lower));
  }

  void rewrite() {
    std::vector<StmtRef> &body = kernel.body->body;
    const auto head = llvm::find_if(body, [](const StmtRef &s) { return s->kind != StmtKind::Decl; }) - body.begin();
    forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
      if (llvm::any_of(list, [&](const StmtRef &s) { return writers.count(s.get()); }))
        byFirst(list);
    });
    splice(*listOf(loop));

    Type type = isGeneral() ? Type::makeInt() : counted.type.withConst(false);
    ExprRef value =
        add(mul(axisBuiltin("blockIdx", axis), axisBuiltin("blockDim", axis)), axisBuiltin("threadIdx", axis));
    if (!direct && !isGeneral())
      value = add(mul(castTo(type, value), intLit(counted.step)), start);
    std::vector<StmtRef> work(body.begin() + head, body.end());
    body.resize(size_t(head));
    body.push_back(declStmt(index, type, value));
    if (work.size() == 1 && work[0]->kind == StmtKind::If && work[0]->body.size() == 1) {
      work[0]->expr = logicalAnd(work[0]->expr, bound);
      body.push_back(work[0]);
      if (ownTest && work[0]->body[0]->body == std::vector<StmtRef>{ownTest}) {
        work[0]->expr = logicalAnd(work[0]->expr, ownTest->expr);
        work[0]->body = ownTest->body;
      }
    } else {
      body.push_back(ifStmt(bound, block(std::move(work))));
    }
  }

  /// The list that a statement of the kernel stands in.
  std::vector<StmtRef> *listOf(const Stmt &wanted) {
    auto place = findPlace(*kernel.body, &wanted);
    return place ? &place->block->body : nullptr;
  }

  /// Puts the body in the loop's place, under the tests that are left.
  void splice(std::vector<StmtRef> &list) {
    std::vector<StmtRef> body = loop.body[0]->body;
    if (isGeneral()) {
      Type type = counted.type.withConst(false);
      ExprRef steps = mul(var(index, Type::makeInt()), intLit(counted.step));
      body = {declStmt(counted.var, type, add(counted.lower, steps)), ifStmt(condition, block(body))};
    } else {
      ExprRef test = uniformUpper ? nullptr : condition;
      if (direct && lower != Poly(0))
        test = logicalAnd(binary(">=", var(counted.var, counted.type), counted.lower, Type::makeBool()), test);
      if (test)
        body = {ownTest = ifStmt(test, block(body))};
    }
    auto at = list.erase(llvm::find_if(list, [&](const StmtRef &s) { return s.get() == &loop; }));
    list.insert(at, body.begin(), body.end());
  }

  /// Statements that write memory run in the thread of index 0.
  void byFirst(std::vector<StmtRef> &list) {
    std::vector<StmtRef> result;
    StmtRef last;
    for (const StmtRef &s : list) {
      if (!writers.erase(s.get())) { // each is wrapped once
        result.push_back(s);
        last = nullptr;
        continue;
      }
      if (!last) {
        ExprRef first = direct || isGeneral() ? intLit(0) : start;
        last = ifStmt(binary("==", var(index, Type::makeInt()), first, Type::makeBool()), block());
        result.push_back(last);
      }
      last->body[0]->body.push_back(s);
    }
    list = std::move(result);
  }

  KernelState &state;
  Kernel &kernel;
  Stmt &loop;
  CountedLoop counted;
  unsigned axis;
  std::set<const Stmt *> writers; ///< statements around the loop that write memory
  std::vector<Poly> known;        ///< facts where the loop stands
  Poly lower, upper;
  bool uniformLower = false, uniformUpper = false;

  std::string index;        ///< name of the index along the axis
  Poly extent;              ///< over all threads, in values of the loop's variable
  bool direct = false;      ///< the index is the loop's variable
  ExprRef bound;            ///< every thread with work is below it
  ExprRef start, condition; ///< of the loop
  StmtRef ownTest;          ///< of the iterations that the thread of the source runs
  /// The index counts steps from a lower bound that depends on the thread. Otherwise the variable is known from the
  /// outset.
  bool isGeneral() const { return !direct && !uniformLower; }
};

class LoopToGrid : public Transform {
public:
  llvm::StringRef name() const override { return "loop-to-grid"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    for (const auto &[path, loop] : countedLoops(*state.tree))
      if (pays(state, *loop))
        offer(result, state, path, {{}});
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site, const Params &) const override {
    std::array<int64_t, 3> pinned = state.pinnedBlock();
    if (pinned[0] || pinned[1] || pinned[2])
      return notApplicable("{0}", shapeIsFixed);
    KernelState result = state;
    auto kernel = state.tree->clone();
    if (llvm::Error e = requireConstantParameters(*kernel))
      return std::move(e);
    if (llvm::Error e = requireApart(*kernel))
      return std::move(e);
    if (llvm::Error e = removeReturns(*kernel))
      return std::move(e);
    Stmt *loop = findLoop(*kernel, site);
    if (!loop)
      return notApplicable("there is no counted loop '{0}'", site);
    unsigned axis = freeAxis(*kernel);
    if (axis == 3)
      return notApplicable("the kernel looks at all axes of the grid already");
    auto counted = asCountedLoop(*loop);
    if (llvm::Error e = Mapping(result, *kernel, *loop, *counted, axis).run())
      return std::move(e);
    removeUnused(*kernel);
    result.tree = kernel;
    return result;
  }

private:
  /// The first axis that the kernel does not look at; 3 when there is none.
  static unsigned freeAxis(const Kernel &kernel) {
    auto copy = kernel.clone();
    std::array<AxisUse, 3> uses = normalizeGlobalIndex(*copy, {0, 0, 0});
    unsigned axis = 0;
    while (axis < 3 && (uses[axis].global || uses[axis].other))
      ++axis;
    return axis;
  }

  /// The launch does not fill the GPU, or neighbouring iterations access neighbours where neighbouring threads do not.
  static bool pays(const KernelState &state, Stmt &loop) {
    if (fewThreads(state.hints))
      return true;
    KernelModel model(*state.tree, {0, 0, 0});
    int balance = 0;
    for (const Access &access : model.accesses())
      if (insideOf(access, &loop))
        balance += int(accessesNeighbours(access, loop.init->text)) - int(accessesNeighbours(access, "globalIdx.x"));
    return balance > 0;
  }
};
} // namespace

DEFINE_TRANSFORM(LoopToGrid)
