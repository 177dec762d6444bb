//===- ShareColumns.cpp - windows of sums that a block has in common ------===//
//
// share-columns[kernel/loop]{rows=32}: of a kernel in which every thread sums integers over a rectangle of lines and
// columns, a block goes down `rows` lines of outputs. For each column that its threads need, it keeps the sum over the
// lines of the window in shared memory: what leaves it is subtracted, what enters it is added. A thread then adds the
// columns of its own window. A box filter of 15 x 15 adds 17 numbers an output in place of 225.
//
// Example:
//   int s = 0;                             … which columns the threads of the block, 128, need …
//   for (int j = max(0, y - 7);            for (int row = 0; row < 32; ++row) {
//        j < min(h, y + 8); ++j)             … y stands for y + row; j_from, j_to: the lines of its window …
//     for (int i = max(0, x - 7);            for (int c = threadIdx.x; c < 142; c += 128)
//          i < min(w, x + 8); ++i)             if (needed[c]) {
//       s += in[j * w + i];                      … columns[c] -= what leaves, columns[c] += what enters …
//   out[y * w + x] = s;                        }
//                                            __syncthreads();
//                                            int s = 0;
//                                            for (int i = max(0, x - 7); i < min(w, x + 8); ++i)
//                                              s += columns[i - (blockIdx.x * 128 - 7)];
//                                            out[y * w + x] = s;
//                                            __syncthreads();
//                                          }
//
// Legal: as for `slide-window`, with two loops, one in the other. The bounds of the outer one depend on y alone. Those
// of the inner one depend on x alone, and are at most a constant away from it (`specialize-scalar` may make it one).
// What an iteration adds depends on the two counters, and on no thread. The conditions around the loops are on x or on
// y each. A column is added where some thread of the block needs it, so that nothing else is read.
//
// Refuses: floating-point sums; a block shape that is not fixed, or with threads along y; windows that need more shared
// memory than there is; and what `slide-window` refuses.
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "WindowSums.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Transforms/Transform.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

/// The two loops, and the block that goes down the lines.
class Columns {
public:
  Columns(KernelState &state, Kernel &kernel, const KernelModel &model, Stmt &loop, int64_t threads, int64_t rows)
      : state(state), kernel(kernel), model(model), threads(threads), rows(rows), taken(allNames(kernel)),
        lines(state, kernel, model, loop, 1, taken) {}
  llvm::Error share();

private:
  llvm::Error findInner();
  llvm::Error findGuards();
  llvm::Error findSpan();
  /// Without names of locals; null where it needs what is not known before the kernel's first statement.
  ExprRef inlined(const ExprRef &e) const;
  bool dependsOn(const ExprRef &e, unsigned axis) const {
    return anyNode(e, [&](const ExprRef &x) { return isBuiltin(x, axisName("globalIdx", axis)); });
  }
  ExprRef place(const ExprRef &column) const;
  StmtRef overColumns(const ExprRef &lower, const ExprRef &upper, StmtRef body) const;
  StmtRef overBlock(const ExprRef &c, StmtRef body) const;
  std::vector<StmtRef> slide();

  KernelState &state;
  Kernel &kernel;
  const KernelModel &model;
  const int64_t threads, rows;
  std::set<std::string> taken;
  WindowSums lines;                   ///< the outer loop, along y
  StmtRef innerLoop;                  ///< taken out of the outer one
  StmtPlace ofOneColumn;              ///< where its statements stand now
  std::unique_ptr<WindowSums> across; ///< the inner one, along x
  ExprRef top, bottom, left, right;   ///< of the window; `bottom` and `right` are exclusive
  ExprRef ofLine, ofColumn;           ///< the conditions around the loops; null: none
  ExprRef base;                       ///< the first column of the block
  int64_t span = 0;                   ///< how many it has
  ExprRef needed;                     ///< the arrays in shared memory
  std::vector<ExprRef> totals;        ///< of lines.sums
};

class ShareColumns : public Transform {
public:
  llvm::StringRef name() const override { return "share-columns"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    std::vector<Params> values;
    for (const char *rows : {"32", "16", "64", "128"})
      values.push_back({{"rows", rows}});
    if (threadsOf(state))
      for (const auto &[path, stmt] : outermostLoops(*state.tree))
        offer(result, state, path, values);
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override {
    if (!state.pinnedBlock()[0])
      return notApplicable("{0}", shapeIsOpen);
    const int64_t threads = threadsOf(state), rows = paramInt(params, "rows", 32);
    if (!threads)
      return notApplicable("the block has threads along y or z");
    if (rows < 2 || rows > 1024)
      return notApplicable("a block takes 2 to 1024 lines");
    auto kernel = state.tree->clone();
    Stmt *loop = findLoop(*kernel, site);
    if (!loop)
      return notApplicable("there is no counted loop '{0}'", site);
    KernelState result = state.withTree(kernel);
    auto merge = [&](KernelState &s, Kernel &k, const KernelModel &model) {
      return Columns(s, k, model, *loop, threads, rows).share();
    };
    if (llvm::Error e = remapThreads(result, *kernel, state.pinnedBlock(), neighbouringOutputs(1, rows), merge))
      return std::move(e);
    return result;
  }

private:
  static int64_t threadsOf(const KernelState &state) {
    const auto shape = state.pinnedBlock();
    return shape[1] == 1 && shape[2] == 1 ? shape[0] : 0;
  }
};
} // namespace

ExprRef Columns::inlined(const ExprRef &e) const {
  if (e->kind == ExprKind::Var) {
    const Stmt *d = model.singleAssignment(e->text);
    if (d && d->expr && d->dims.empty() && !d->isShared) {
      ExprRef value = inlined(d->expr);
      return value ? castTo(e->type.unqualified(), value) : nullptr;
    }
    return model.param(e->text) || !model.declaration(e->text) ? e : nullptr;
  }
  bool good = !isLoad(e) && !mayChange(e) && e->pure && e->kind != ExprKind::Opaque;
  ExprRef result = mapOperands(e, [&](const ExprRef &operand) {
    ExprRef made = good ? inlined(operand) : operand;
    good &= made != nullptr;
    return made ? made : operand;
  });
  return good && model.stable(result) ? result : nullptr;
}

llvm::Error Columns::findInner() {
  Stmt *found = nullptr;
  unsigned loops = 0;
  for (const StmtRef &s : lines.loop.body)
    walk(*s, [&](Stmt &inner) {
      if (isLoop(inner)) {
        ++loops;
        found = &inner;
      }
    });
  if (loops != 1 || !asCountedLoop(*found))
    return notApplicable("the loop holds no single other one (line {0})", lines.loop.line);
  across = std::make_unique<WindowSums>(state, kernel, model, *found, 0, taken);
  if (llvm::Error e = across->findInner())
    return e;
  std::map<std::string, unsigned> all = countMentions(*lines.loop.body[0]), ofInner = countMentions(*found);
  for (const WindowSums::Sum &sum : lines.sums)
    if (all[sum.name] != ofInner[sum.name])
      return notApplicable("line {0}: '{1}' is changed outside of the inner loop, too", lines.loop.line, sum.name);
  // What is added depends on the line and the column alone.
  auto at = findPlace(*lines.loop.body[0], found);
  innerLoop = at->block->body[at->index];
  std::vector<StmtRef> &list = at->block->body;
  list.erase(list.begin() + long(at->index));
  list.insert(list.begin() + long(at->index), innerLoop->body[0]->body.begin(), innerLoop->body[0]->body.end());
  ofOneColumn = *at;
  const std::set<std::string> inside = namesDeclaredIn(lines.loop);
  bool same = true;
  walkExprs(*lines.loop.body[0], [&](const ExprRef &e) {
    const bool isOwn = e->kind == ExprKind::Var &&
                       (inside.count(e->text) || e->text == lines.counted.var || e->text == across->counted.var ||
                        llvm::any_of(lines.sums, [&](const auto &sum) { return sum.name == e->text; }));
    if (!isOwn && (e->kind == ExprKind::Var || e->kind == ExprKind::Builtin))
      same &= !(model.varies(e) & AnyThread) && model.stable(e);
  });
  if (!same)
    return notApplicable("what an iteration adds depends on the output (line {0})", lines.loop.line);
  top = inlined(lines.counted.lower);
  bottom = inlined(lines.counted.upper);
  left = inlined(across->counted.lower);
  right = inlined(across->counted.upper);
  if (!top || !bottom || dependsOn(top, 0) || dependsOn(bottom, 0))
    return notApplicable("the lines of the window depend on more than y (line {0})", lines.loop.line);
  if (!left || !right || dependsOn(left, 1) || dependsOn(right, 1))
    return notApplicable("the columns of the window depend on more than x (line {0})", found->line);
  return llvm::Error::success();
}

/// The branches around the loops.
llvm::Error Columns::findGuards() {
  for (Stmt *at = kernel.body.get(); at != &lines.loop;) {
    if (at->kind == StmtKind::If) {
      if (!holdsStmt(*at->body[0], &lines.loop))
        return notApplicable("the loop stands where a condition does not hold (line {0})", at->line);
      for (const ExprRef &part : operandsOf(at->expr, "&&")) {
        ExprRef condition = inlined(part);
        if (!condition || (dependsOn(condition, 0) && dependsOn(condition, 1)))
          return notApplicable("a condition around the loop is on more than x or y (line {0})", at->line);
        ExprRef &into = dependsOn(condition, 0) ? ofColumn : ofLine;
        into = logicalAnd(into, condition);
      }
      at = at->body[0].get();
      continue;
    }
    if (at->kind != StmtKind::Block)
      return notApplicable("the loop stands in another one (line {0})", at->line);
    auto next =
        llvm::find_if(at->body, [&](const StmtRef &s) { return s.get() == &lines.loop || holdsStmt(*s, &lines.loop); });
    if (next == at->body.end())
      return notApplicable("the loop is not found");
    at = next->get();
  }
  return llvm::Error::success();
}

/// How far the window reaches to the left and to the right of the output.
llvm::Error Columns::findSpan() {
  const Poly x = Poly::atom("globalIdx.x");
  std::optional<int64_t> least, most;
  for (const Poly &p : model.boundsOf(left, /*fromBelow=*/true))
    if (auto distance = (p - x).constant())
      least = least ? std::max(*least, *distance) : *distance;
  for (const Poly &p : model.boundsOf(right, /*fromBelow=*/false))
    if (auto distance = (p - x).constant())
      most = most ? std::min(*most, *distance) : *distance;
  if (!least || !most || *most <= *least || *most - *least > 1024)
    return notApplicable("the window's columns are not a constant away from the output (line {0})", across->loop.line);
  span = threads - 1 + *most - *least;
  const Type type = across->counted.type.unqualified();
  base = add(castTo(type, mul(builtin("blockIdx.x"), intLit(threads))), intLit(*least, type));
  int64_t bytes = sharedBytes(kernel) + span;
  for (const WindowSums::Sum &sum : lines.sums)
    bytes += span * sum.slid->type.bytes;
  if (bytes > int64_t(state.hints.maxSharedBytes))
    return notApplicable("{0} bytes of shared memory are too many", bytes);
  return llvm::Error::success();
}

ExprRef Columns::place(const ExprRef &column) const { return sub(column, base); }

StmtRef Columns::overColumns(const ExprRef &lower, const ExprRef &upper, StmtRef body) const {
  return countedFor(across->counted.var, across->counted.type.unqualified(), lower, upper, 1, std::move(body),
                    NoUnroll);
}

/// for (c = threadIdx.x; c < span; c += threads)
StmtRef Columns::overBlock(const ExprRef &c, StmtRef body) const {
  return countedFor(c->text, c->type, castTo(c->type, builtin("threadIdx.x")), intLit(span), threads, std::move(body),
                    NoUnroll);
}

/// For one line of outputs: the columns' sums move on.
std::vector<StmtRef> Columns::slide() {
  const Type type = lines.counted.type.withConst(true);
  const WindowSums::Ends ends = lines.ends();
  auto fresh = [&](const std::string &wish, const Type &t) { return var(freshName(taken, wish), t); };
  ExprRef anew = fresh("anew", Type::makeBool()), c = fresh("c", Type::makeInt());
  // The inner loop's body, of the one column that this thread has.
  const Type columnType = across->counted.type.withConst(true);
  StmtRef column = declStmt(across->counted.var, columnType,
                            add(base, columnType.bytes == c->type.bytes ? c : castTo(columnType.unqualified(), c)));
  ofOneColumn.block->body.insert(ofOneColumn.block->body.begin() + long(ofOneColumn.index), column);

  std::vector<StmtRef> update;
  for (size_t i = 0; i < lines.sums.size(); ++i) {
    const ExprRef &slid = lines.sums[i].slid;
    update.push_back(declStmt(slid->text, slid->type,
                              conditional(anew, intLit(0, slid->type), subscript(totals[i], c, slid->type))));
  }
  update.push_back(lines.part(/*enters=*/false, ends.first, ends.from));
  update.push_back(lines.part(/*enters=*/true, ends.end, ends.to));
  for (size_t i = 0; i < lines.sums.size(); ++i)
    update.push_back(exprStmt(assign("=", subscript(totals[i], c, lines.sums[i].slid->type), lines.sums[i].slid)));
  std::vector<StmtRef> made = {declStmt(ends.from->text, type, top), declStmt(ends.to->text, type, bottom),
                               declStmt(anew->text, anew->type.withConst(true), ends.startsAnew()),
                               ifStmt(anew, block(ends.setAnew())),
                               overBlock(c, block({ifStmt(subscript(needed, c, Type::makeBool()), block(update))}))};
  llvm::append_range(made, ends.moved());
  made.push_back(barrierStmt());
  const std::vector<StmtRef> before = ends.declarations();
  kernel.body->body.insert(kernel.body->body.begin(), before.begin(), before.end());
  return made;
}

llvm::Error Columns::share() {
  if (llvm::Error e = lines.find())
    return e;
  if (llvm::Error e = findInner())
    return e;
  if (llvm::Error e = findGuards())
    return e;
  if (llvm::Error e = findSpan())
    return e;
  if (llvm::Error e = requireSameMemory(kernel))
    return e;

  auto shared = [&](const std::string &wish, const Type &type) {
    const std::string name = freshName(taken, wish);
    return std::make_pair(var(name, type), sharedArray(name, type, {intLit(span)}));
  };
  std::vector<StmtRef> start;
  ExprRef c = var(freshName(taken, "c"), Type::makeInt());
  StmtRef clear = block();
  auto [flags, flagArray] = shared("needed", Type::makeBool());
  needed = flags;
  start.push_back(flagArray);
  clear->body.push_back(exprStmt(assign("=", subscript(needed, c, Type::makeBool()), intLit(0, Type::makeBool()))));
  for (const WindowSums::Sum &sum : lines.sums) {
    auto [total, array] = shared(sum.name + "_of_column", sum.slid->type);
    totals.push_back(total);
    start.push_back(array);
    clear->body.push_back(exprStmt(assign("=", subscript(total, c, sum.slid->type), intLit(0, sum.slid->type))));
  }
  const ExprRef i = var(across->counted.var, across->counted.type.unqualified());
  StmtRef marks = overColumns(
      left, right,
      block({exprStmt(assign("=", subscript(needed, place(i), Type::makeBool()), intLit(1, Type::makeBool())))}));
  start.push_back(overBlock(c, clear));
  start.push_back(barrierStmt());
  start.push_back(ofColumn ? ifStmt(ofColumn, block({marks})) : marks);
  start.push_back(barrierStmt());

  // In the loop's place: the sums of the thread's own columns.
  StmtRef own = block(), adds = block();
  std::vector<StmtRef> taking;
  for (size_t n = 0; n < lines.sums.size(); ++n) {
    const WindowSums::Sum &sum = lines.sums[n];
    const Type &type = sum.slid->type;
    const ExprRef of = var(freshName(taken, sum.name + "_of_columns"), type);
    own->body.push_back(declStmt(of->text, type, intLit(0)));
    adds->body.push_back(exprStmt(assign("+=", of, subscript(totals[n], place(i), type))));
    taking.push_back(exprStmt(assign("+=", var(sum.name, sum.type), castTo(sum.type, of))));
  }
  own->body.push_back(atLine(lines.loop.line, overColumns(left, right, adds)));
  llvm::append_range(own->body, taking);
  auto at = findPlace(*kernel.body, &lines.loop);
  if (!at)
    return notApplicable("the loop is not found");
  std::vector<StmtRef> &list = at->block->body;
  const StmtRef outerLoop = list[at->index]; // which slide() still needs
  list.erase(list.begin() + long(at->index));
  list.insert(list.begin() + long(at->index), own->body.begin(), own->body.end());

  StmtRef body = kernel.body;
  kernel.body = block(start);
  std::vector<StmtRef> ofRow = slide();
  llvm::append_range(ofRow, body->body);
  ofRow.push_back(barrierStmt());
  StmtRef whole = block(ofRow);
  if (ofLine)
    whole = block({ifStmt(ofLine, whole)});
  const std::string row = freshName(taken, "row");
  ExprRef output = add(axisBuiltin("globalIdx", 1), var(row, Type::makeInt()));
  rewriteExprs(*whole,
               [&](const ExprRef &e) -> ExprRef { return isBuiltin(e, axisName("globalIdx", 1)) ? output : nullptr; });
  kernel.body->body.push_back(countedFor(row, Type::makeInt(), intLit(0), intLit(rows), 1, whole, NoUnroll));
  return llvm::Error::success();
}

DEFINE_TRANSFORM(ShareColumns)
