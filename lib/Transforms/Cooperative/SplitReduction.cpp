//===- SplitReduction.cpp - one thread's loops, by many blocks ------------===//
//
// split-reduction[kernel]{x=64,parts=32}: for few threads with long loops. The iterations of each loop that folds
// values into scalars are cut into `parts` ranges, and each block of x threads becomes `parts` blocks that take a range
// each. The last of these blocks to arrive folds the partial results together, in the order of the ranges, and does the
// rest. Threads keep their neighbours, so loads that were coalesced (sums over columns) or common stay so, unlike with
// `distribute-loop`.
//
// split-reduction[kernel]{threads=256,parts=32}: for few rows that are long. Each of the `parts` blocks of a row runs
// its range by all of its threads, which read neighbouring elements and fold their results first.
//
// Example:
//   float s = 0;                       float s = 0;
//   for (int i = 0; i < n; ++i)        int part_size = (n + 31) / 32;
//     s += a[i * cols + col];          int part_begin = (int)blockIdx.y * part_size, part_end = …;
//   y[col] = s;                        for (int i = part_begin; i < part_end; ++i) {
//                                        s += a[i * cols + col];
//                                      }
//                                      s_of_parts[(blockIdx.y * gridDim.x + blockIdx.x) * 64 + threadIdx.x] = s;
//                                      // fence; thread 0: done_before = atomicAdd(&parts_done[blockIdx.x], 1)
//                                      if (done_before == 31) {
//                                        float s1 = 0;
//                                        for (unsigned int part = 0; part < 32; ++part) {
//                                          s1 += s_of_parts[(part * gridDim.x + blockIdx.x) * 64 + threadIdx.x];
//                                        }
//                                        y[col] = s1;
//                                      }
//   // plan: sums_optiml<<<(ceildiv(grid.x * block.x, 64), 32, 1), (64, 1, 1), shared>>>, with scratch memory
//
// Legal: the kernel uses x alone (with `y`, x and y alone) through its global index, and does not synchronize. A loop
// is split when it counts in steps of 1 between bounds known at the launch, writes nothing, is not left early, and
// folds into scalars as `distribute-loop` wants it. It may stand under branches, but not in other loops. Before the
// last such loop the kernel writes nothing, and no loop needs the result of another. All writes thus come after the
// loops of their own thread, as before, and in one block only.
//
// Partial results are volatile, and a fence publishes them before the block's arrival is counted. Their order is fixed,
// but differs from the original's, which `--optiml-fp=strict` forbids for floating-point sums.
//
// Refuses: loops that need the result of another (a mean before a variance), writes before a loop, and three axes.
//
//===----------------------------------------------------------------------===//
#include "Reduction.h"
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/Transform.h"
#include <algorithm>

using namespace optiml;

namespace {

/// Loops that run less often gain nothing.
constexpr int64_t fewestTrips = 32;

Type pointerTo(const Type &element) {
  Type type = Type::makePointer(element);
  if (element.isVolatile)
    type.text = "volatile " + type.text;
  return type;
}

class Splitter {
public:
  /// `y`: 0 for a kernel of one axis. `together`: a block's so many threads share one original thread's range, and x is
  /// 1; else 0.
  Splitter(KernelState &state, Kernel &kernel, const KernelModel &model, int64_t x, int64_t y, int64_t together,
           int64_t parts)
      : state(state), kernel(kernel), model(model), x(x), y(y), together(together), parts(parts),
        taken(allNames(kernel)) {
    if (together)
      combiner.emplace(group(), taken);
  }

  llvm::Error run() {
    find(*kernel.body, {});
    if (loops.empty())
      return notApplicable("none of its loops can be split{0}", firstReason.empty() ? "" : ": " + firstReason);
    std::set<std::string> partial;
    if (llvm::Error e = checkBefore(*kernel.body, partial))
      return e;
    chooseBuffers();
    for (const Loop &loop : loops)
      requireRange(loop);
    rewrite();
    return llvm::Error::success();
  }

private:
  struct Loop {
    Stmt *stmt;
    CountedLoop counted;
    std::vector<Reduction> reductions;
    std::vector<size_t> buffers;                     ///< one a reduction
    std::vector<std::pair<Stmt *, size_t>> branches; ///< the ifs around it, and which of their branches
  };
  struct Buffer {
    std::string name, variable;
    Type type;
    std::vector<size_t> users;
  };

  //===--- which loops ---===//

  void find(Stmt &list, const std::vector<std::pair<Stmt *, size_t>> &branches) {
    for (const StmtRef &s : list.body) {
      if (s->kind == StmtKind::Block)
        find(*s, branches);
      for (size_t i = 0; s->kind == StmtKind::If && i < s->body.size(); ++i) {
        auto inner = branches;
        inner.emplace_back(s.get(), i);
        find(*s->body[i], inner);
      }
      if (s->kind == StmtKind::For)
        consider(*s, branches);
    }
  }

  void consider(Stmt &s, const std::vector<std::pair<Stmt *, size_t>> &branches) {
    Loop loop{&s, {}, {}, {}, branches};
    llvm::Error refused = check(loop);
    if (!refused) {
      loops.push_back(std::move(loop));
      return;
    }
    std::string reason = llvm::toString(std::move(refused));
    if (firstReason.empty())
      firstReason = reason;
  }

  llvm::Error check(Loop &loop) const {
    Stmt &s = *loop.stmt;
    auto counted = asCountedLoop(s);
    if (!counted || counted->step != 1)
      return notApplicable("line {0}: the loop does not count in steps of 1", s.line);
    loop.counted = *counted;
    auto lower = constantValue(counted->lower);
    if (!lower || *lower < 0 || *lower > 1 << 20 || (*lower && !counted->type.isSigned) || counted->type.bytes < 4 ||
        !planText(model, model.poly(counted->upper)))
      return notApplicable("line {0}: the loop's bounds are not known at the launch", s.line);
    if (counted->tripCount().value_or(fewestTrips) < fewestTrips)
      return notApplicable("line {0}: the loop has few iterations", s.line);
    if (holdsKind(s, {StmtKind::Opaque, StmtKind::Return}) || leavesIteration(*s.body[0], {StmtKind::Break}))
      return notApplicable("line {0}: the loop may be left early, or is not understood", s.line);
    std::set<std::string> inside = namesDeclaredIn(s);
    for (const Access &access : model.accesses())
      if (insideOf(access, &s) && access.write && (access.space == Space::Global || !inside.count(access.array)))
        return notApplicable("line {0}: the loop writes '{1}'", access.stmt->line, access.array);
    auto reductions = findReductions(s, state.hints.strictFloat);
    if (!reductions)
      return reductions.takeError();
    if (reductions->empty())
      return notApplicable("line {0}: the loop computes nothing that is used", s.line);
    for (const Reduction &r : *reductions)
      if (r.keepsPlace())
        return notApplicable("line {0}: the place of '{1}' is kept beside it", s.line, r.variable);
      else if (mentions(counted->upper, r.variable))
        return notApplicable("line {0}: the loop changes its own bounds", s.line);
    loop.reductions = *reductions;
    return llvm::Error::success();
  }

  const Loop *split(const Stmt &s) const {
    for (const Loop &loop : loops)
      if (loop.stmt == &s)
        return &loop;
    return nullptr;
  }
  bool holdsSplit(Stmt &s) const {
    return std::any_of(loops.begin(), loops.end(), [&](const Loop &loop) { return holdsStmt(s, loop.stmt); });
  }

  //===--- what all parts compute ---===//

  /// How many statements of a list come before the end of its last split loop: what all parts run.
  size_t neededOf(const Stmt &list) const {
    for (size_t i = list.body.size(); i > 0; --i)
      if (holdsSplit(*list.body[i - 1]))
        return i;
    return 0;
  }

  static bool isBranch(const Stmt &s) { return s.kind == StmtKind::If || s.kind == StmtKind::Block; }

  /// What precedes split loops writes nothing that anybody sees, and uses no variable in `partial`: those that hold a
  /// part's result.
  llvm::Error checkBefore(Stmt &list, std::set<std::string> &partial) const {
    size_t needed = neededOf(list);
    for (size_t i = 0; i < needed; ++i) {
      Stmt &s = *list.body[i];
      if (const Loop *loop = split(s)) {
        if (llvm::Error e = checkLoop(*loop, partial))
          return e;
        for (const Reduction &r : loop->reductions)
          partial.insert(r.variable);
        continue;
      }
      if (isBranch(s) && holdsSplit(s)) {
        if (s.expr)
          if (llvm::Error e = checkUses(namesIn(s.expr), partial, s.line))
            return e;
        if (i + 1 < needed && goesOn(s))
          return notApplicable("line {0}: a branch goes on behind its loop, before another loop", s.line);
        std::set<std::string> after;
        for (const StmtRef &branch : s.kind == StmtKind::If ? s.body : std::vector<StmtRef>{list.body[i]}) {
          std::set<std::string> own = partial;
          if (llvm::Error e = checkBefore(*branch, own))
            return e;
          after.insert(own.begin(), own.end());
        }
        partial.insert(after.begin(), after.end());
        continue;
      }
      if (llvm::Error e = checkPlain(s, partial))
        return e;
    }
    return llvm::Error::success();
  }

  /// Whether a branch that other split loops follow does anything behind its own split loops.
  bool goesOn(const Stmt &s) const {
    if (s.kind == StmtKind::Block)
      return neededOf(s) != s.body.size();
    return std::any_of(s.body.begin(), s.body.end(),
                       [&](const StmtRef &branch) { return neededOf(*branch) != branch->body.size(); });
  }

  llvm::Error checkUses(const std::set<std::string> &names, const std::set<std::string> &partial, unsigned line) const {
    for (const std::string &name : names)
      if (partial.count(name))
        return notApplicable("line {0} needs the result of a loop, '{1}', before another loop", line, name);
    return llvm::Error::success();
  }

  llvm::Error checkLoop(const Loop &loop, const std::set<std::string> &partial) const {
    std::set<std::string> names;
    walkExprs(*loop.stmt, [&](const ExprRef &e) {
      if (e->kind == ExprKind::Var)
        names.insert(e->text);
    });
    for (const Reduction &r : loop.reductions)
      if (hasIdentity(r))
        names.erase(r.variable); // it starts anew in every part
    return checkUses(names, partial, loop.stmt->line);
  }

  llvm::Error checkPlain(Stmt &s, std::set<std::string> &partial) const {
    bool opaque = false;
    std::set<std::string> names;
    walk(s, [&](Stmt &t) {
      opaque |= t.kind == StmtKind::Opaque;
      names.insert(t.names.begin(), t.names.end());
      for (const Access &access : model.accesses())
        if ((access.stmt == &t || (t.init && access.stmt == t.init.get())) && access.write &&
            access.space != Space::Local)
          opaque = true;
    });
    if (opaque)
      return notApplicable("line {0} writes memory, or may, before a loop", s.line);
    // "s = 0;" starts anew.
    if (s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign && s.expr->text == "=" &&
        s.expr->args[0]->kind == ExprKind::Var && !mentions(s.expr->args[1], s.expr->args[0]->text)) {
      if (llvm::Error e = checkUses(namesIn(s.expr->args[1]), partial, s.line))
        return e;
      partial.erase(s.expr->args[0]->text);
      return llvm::Error::success();
    }
    walkExprs(s, [&](const ExprRef &e) {
      std::set<std::string> own = namesIn(e);
      names.insert(own.begin(), own.end());
    });
    return checkUses(names, partial, s.line);
  }

  //===--- rewriting ---===//

  static bool hasIdentity(const Reduction &r) { return r.fold.kind == Fold::Kind::Operator; }

  static bool exclusive(const Loop &a, const Loop &b) {
    for (size_t i = 0; i < std::min(a.branches.size(), b.branches.size()); ++i)
      if (a.branches[i].first == b.branches[i].first && a.branches[i].second != b.branches[i].second)
        return true;
    return false;
  }

  /// Loops of which a thread runs at most one share their memory.
  void chooseBuffers() {
    for (size_t i = 0; i < loops.size(); ++i)
      for (const Reduction &r : loops[i].reductions) {
        auto fits = [&](const Buffer &b) {
          return b.variable == r.variable && std::all_of(b.users.begin(), b.users.end(),
                                                         [&](size_t user) { return exclusive(loops[user], loops[i]); });
        };
        auto found = std::find_if(buffers.begin(), buffers.end(), fits);
        if (found == buffers.end())
          found = buffers.insert(buffers.end(), {freshName(taken, r.variable + "_of_parts"), r.variable, r.type, {}});
        found->users.push_back(i);
        loops[i].buffers.push_back(size_t(found - buffers.begin()));
      }
  }

  void requireRange(const Loop &loop) {
    std::string upper = *planText(model, model.poly(loop.counted.upper));
    int64_t most = loop.counted.type.bytes == 8 ? INT64_MAX / 2
                   : loop.counted.type.isSigned ? INT32_MAX
                                                : int64_t(UINT32_MAX);
    most -= parts + together;
    if (auto constant = constantValue(loop.counted.upper); constant && *constant <= most)
      return;
    state.require(upper + " <= " + std::to_string(most), "the ranges' ends do not overflow");
  }

  /// Where the block's thread has its partial result of one part.
  ExprRef slot(const Buffer &buffer, const ExprRef &part) const {
    ExprRef row = y ? add(mul(part, builtin("gridDim.y")), builtin("blockIdx.y")) : part;
    ExprRef first = mul(add(mul(row, builtin("gridDim.x")), builtin("blockIdx.x")), intLit(y ? x * y : x));
    if (together)
      return subscript(var(buffer.name, buffer.type), first, buffer.type);
    ExprRef thread = y ? add(mul(builtin("threadIdx.y"), intLit(x)), builtin("threadIdx.x")) : builtin("threadIdx.x");
    return subscript(var(buffer.name, buffer.type), add(first, thread), buffer.type);
  }
  ThreadGroup group() const { return {together}; }
  ExprRef blocksPart() const { return builtin(y ? "blockIdx.z" : "blockIdx.y"); }

  /// The part's own range of the loop, and where its results go.
  std::vector<StmtRef> partOf(const Loop &loop, const Stmt *before) {
    const CountedLoop &c = loop.counted;
    Type type = c.type.withConst(false);
    std::vector<StmtRef> result;
    for (const Reduction &r : loop.reductions)
      if (hasIdentity(r) && !(before && startsAtIdentity(*before, r)))
        result.push_back(exprStmt(assign("=", var(r.variable, r.type), r.fold.identity(r.type))));
    ExprRef size = var(freshName(taken, "part_size"), type), first = var(freshName(taken, "part_begin"), type),
            end = var(freshName(taken, "part_end"), type);
    ExprRef part = type.isSigned || type.bytes == 8 ? castTo(type, blocksPart()) : blocksPart();
    ExprRef wanted =
        c.upper->type.bytes == type.bytes && c.upper->type.isSigned == type.isSigned ? c.upper : castTo(type, c.upper);
    result.push_back(
        declStmt(size->text, type, binary("/", add(sub(wanted, c.lower), intLit(parts - 1)), intLit(parts))));
    result.push_back(declStmt(first->text, type, add(mul(part, size), c.lower)));
    ExprRef beyond = add(first, size);
    result.push_back(declStmt(end->text, type, conditional(lessThan(beyond, wanted), beyond, wanted)));
    StmtRef copy = std::make_shared<Stmt>(*loop.stmt);
    copy->body = {clone(loop.stmt->body[0])};
    const ExprRef rank = builtin("threadIdx.x");
    copy->init = declStmt(c.var, c.type, together ? add(first, castTo(type, rank)) : first);
    copy->expr = lessThan(var(c.var, c.type), end);
    if (together)
      copy->step = assign("+=", var(c.var, c.type), intLit(together));
    result.push_back(copy);
    std::vector<StmtRef> stored;
    for (size_t i = 0; i < loop.reductions.size(); ++i) {
      const Reduction &r = loop.reductions[i];
      if (together)
        llvm::append_range(result, combiner->combine(r));
      stored.push_back(exprStmt(assign("=", slot(buffers[loop.buffers[i]], blocksPart()), var(r.variable, r.type))));
    }
    if (together)
      result.push_back(ifStmt(group().isFirst(), block(stored)));
    else
      llvm::append_range(result, stored);
    return result;
  }

  /// All parts' results, in place of the loop.
  std::vector<StmtRef> wholeOf(const Loop &loop, const Stmt *) {
    std::vector<StmtRef> body;
    for (size_t i = 0; i < loop.reductions.size(); ++i) {
      const Reduction &r = loop.reductions[i];
      ExprRef value = slot(buffers[loop.buffers[i]], var(partName, Type::makeUnsigned()));
      if (r.fold.kind != Fold::Kind::Operator) { // it may be needed twice
        ExprRef local = var(freshName(taken, "other"), r.type);
        body.push_back(declStmt(local->text, r.type, value));
        value = local;
      }
      body.push_back(r.fold.into(var(r.variable, r.type), value));
    }
    StmtRef over = countedFor(partName, Type::makeUnsigned(), intLit(0), intLit(parts), 1, block(body), NoUnroll);
    if (parts >= 16)
      over->unroll = 16; // loads in flight
    return {over};
  }

  /// A copy of a list's first `count` statements, with what `make` makes in place of split loops.
  std::vector<StmtRef> copied(const Stmt &list, size_t count, bool truncate,
                              const std::function<std::vector<StmtRef>(const Loop &, const Stmt *before)> &make) {
    std::vector<StmtRef> result;
    for (size_t i = 0; i < count; ++i) {
      const StmtRef &s = list.body[i];
      if (const Loop *loop = split(*s)) {
        for (StmtRef &t : make(*loop, i ? list.body[i - 1].get() : nullptr))
          result.push_back(std::move(t));
        continue;
      }
      if (!isBranch(*s) || !holdsSplit(*s)) {
        result.push_back(clone(s));
        continue;
      }
      auto inner = [&](const Stmt &part) {
        return copied(part, truncate ? neededOf(part) : part.body.size(), truncate, make);
      };
      StmtRef copy = std::make_shared<Stmt>(*s);
      if (s->kind == StmtKind::Block) {
        copy->body = inner(*s);
      } else {
        for (StmtRef &branch : copy->body)
          branch = block(inner(*branch));
        if (copy->body.size() == 2 && copy->body[1]->body.empty())
          copy->body.pop_back();
      }
      result.push_back(copy);
    }
    return result;
  }

  void rewrite() {
    Stmt &body = *kernel.body;
    // Leading declarations are there for both.
    size_t shared = 0;
    while (shared < body.body.size() && body.body[shared]->kind == StmtKind::Decl &&
           model.singleAssignment(body.body[shared]->text))
      ++shared;
    std::vector<StmtRef> common(body.body.begin(), body.body.begin() + long(shared));
    Stmt rest = body;
    rest.body.erase(rest.body.begin(), rest.body.begin() + long(shared));

    partName = freshName(taken, "part");
    StmtRef before = block(
        copied(rest, neededOf(rest), true, [&](const Loop &loop, const Stmt *before) { return partOf(loop, before); }));
    StmtRef after = block(copied(rest, rest.body.size(), false,
                                 [&](const Loop &loop, const Stmt *before) { return wholeOf(loop, before); }));
    renameDeclarations(*after, taken);

    std::string counter = freshName(taken, "parts_done"), ticket = freshName(taken, "done_before");
    Type number = Type::makeUnsigned();
    StmtRef last = sharedArray(ticket, number, {});
    ExprRef thread0 = binary("==", builtin("threadIdx.x"), intLit(0), Type::makeBool());
    ExprRef among = builtin("blockIdx.x");
    if (y) {
      thread0 = logicalAnd(thread0, binary("==", builtin("threadIdx.y"), intLit(0), Type::makeBool()));
      among = add(mul(builtin("blockIdx.y"), builtin("gridDim.x")), among);
    }
    ExprRef arrival = callOf(
        "atomicAdd", {addressOf(subscript(var(counter, number), among, number)), intLit(1, number)}, number, false);
    auto fence = [] { return exprStmt(callOf("__threadfence", {}, Type::makeVoid(), false)); };
    after->body.insert(after->body.begin(), fence());
    std::vector<StmtRef> all = std::move(common);
    all.insert(all.end(), before->body.begin(), before->body.end());
    ExprRef mayGoOn = binary("==", var(ticket, number), intLit(parts - 1), Type::makeBool());
    if (together)
      mayGoOn = logicalAnd(mayGoOn, group().isFirst());
    all.insert(all.end(), {fence(), barrierStmt(), last,
                           ifStmt(thread0, block({exprStmt(assign("=", var(ticket, number), arrival))})), barrierStmt(),
                           ifStmt(mayGoOn, after)});
    kernel.body = block(std::move(all));

    LaunchStep &step = state.rewrite.plan.steps[0];
    auto blocksAlong = [&](unsigned axis, int64_t extent) {
      return state.overOriginal("ceildiv(" + threadsAlong(axis) + ", " + std::to_string(extent) + ")").str();
    };
    std::string columns = blocksAlong(0, x), rows = y ? blocksAlong(1, y) : "1",
                blocks = y ? columns + " * " + rows : columns;
    auto scratch = [&](const std::string &name, Type element, const std::string &elements, bool zeroed) {
      state.rewrite.plan.scratch.push_back({name, element.text, IntExpr::of(elements), zeroed, element.bytes});
      element.isVolatile = !zeroed;
      kernel.params.push_back({name, pointerTo(element)});
      step.arguments.push_back(name);
    };
    std::string elements = std::to_string(x * std::max<int64_t>(y, 1) * parts) + " * " + blocks;
    for (const Buffer &buffer : buffers)
      scratch(buffer.name, buffer.type, elements, false);
    scratch(counter, number, blocks, true);
    state.require(IntExpr::of(elements + " <= 268435456"), "scratch memory for the parts' results stays small");
    if (y)
      state.require(IntExpr::of(rows + " <= 65535"), "a grid cannot be larger");
    step.grid = {IntExpr::of(columns), y ? IntExpr::of(rows) : IntExpr::literal(parts),
                 IntExpr::literal(y ? parts : 1)};
    step.block = {IntExpr::literal(together ? together : x), IntExpr::literal(std::max<int64_t>(y, 1)),
                  IntExpr::literal(1)};
  }

  KernelState &state;
  Kernel &kernel;
  const KernelModel &model;
  int64_t x, y, together, parts;
  std::set<std::string> taken;
  std::optional<Combiner> combiner;
  std::vector<Loop> loops;
  std::vector<Buffer> buffers;
  std::string partName, firstReason;
};

class SplitReduction : public Transform {
public:
  llvm::StringRef name() const override { return "split-reduction"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    const LaunchHints &hints = state.hints;
    int64_t alongX = hints.grid[0] * hints.block[0], enough = 1024 * int64_t(hints.multiprocessors);
    auto partsFor = [&](int64_t threads) { // 0: there is work for all multiprocessors already
      int64_t parts = threads > enough / 2 ? 0 : threads > 0 ? 2 : 32;
      while (threads > 0 && parts && parts < 512 && parts * threads < enough)
        parts *= 2;
      return parts;
    };
    std::vector<Params> offers;
    auto offer = [&](int64_t x, int64_t y, int64_t parts) {
      Params params{{"x", std::to_string(x)}, {"parts", std::to_string(parts)}};
      if (y)
        params["y"] = std::to_string(y);
      if (parts >= 2 && parts <= 1024)
        offers.push_back(std::move(params));
    };
    int64_t parts = partsFor(alongX);
    for (int64_t threads : {256, 512, 128})
      for (int64_t p : {std::max<int64_t>(parts * 2 / threads, parts > 0 ? 4 : 0), parts * 8 / threads})
        if (p >= 2)
          offers.push_back({{"threads", std::to_string(threads)}, {"parts", std::to_string(p)}});
    for (auto [x, p] : {std::pair<int64_t, int64_t>{64, parts},
                        {128, parts},
                        {256, parts},
                        {64, parts / 4},
                        {64, parts * 2},
                        {32, parts}})
      offer(x, 0, p);
    parts = partsFor(alongX * hints.grid[1] * hints.block[1]);
    for (auto [x, y] : {std::pair<int64_t, int64_t>{16, 16}, {32, 8}, {8, 8}})
      for (int64_t p : {parts, parts / 4, parts * 2})
        offer(x, y, p);
    return kernelSite(*this, state, offers);
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    const int64_t together = paramInt(params, "threads", 0);
    int64_t x = together ? 1 : paramInt(params, "x", 64), y = paramInt(params, "y", 0),
            parts = paramInt(params, "parts", 32);
    int64_t threads = together ? together : y ? x * y : x;
    if (together && (params.count("x") || y))
      return notApplicable("threads that share a loop have one axis");
    if (x < 1 || y < 0 || x > 1024 || y > 1024 || threads < 32 || threads % 32 || threads > state.hints.maxThreads)
      return notApplicable("a block of {0} threads is no row of whole warps", threads);
    if (parts < 2 || parts > 4096)
      return notApplicable("the number of parts must be 2 to 4096");
    if (llvm::Error e = requireSameMemory(*state.tree))
      return std::move(e);
    KernelState result = state;
    auto made = remappable(result, y ? 2 : 1, threads);
    if (!made)
      return made.takeError();
    std::shared_ptr<Kernel> kernel = *made;
    KernelModel model(*kernel, {0, 0, 0});
    if (unsigned line = model.unknownEffectLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    requireCover(result, model, 0, x);
    if (y)
      requireCover(result, model, 1, y);
    if (llvm::Error e = Splitter(result, *kernel, model, x, y, together, parts).run())
      return std::move(e);
    for (unsigned axis = y ? 2 : 1; axis < 3; ++axis)
      requireOneCopy(result, axis);
    lowerGlobalIndex(*kernel, [&](unsigned axis) {
      return together && axis == 0 ? axisBuiltin("blockIdx", 0) : globalIndexExpr(axis, axis ? y : x);
    });
    removeUnused(*kernel); // what only the loops needed
    kernel->maxThreads = unsigned(threads);
    result.tree = kernel;
    return result;
  }
};
} // namespace

DEFINE_TRANSFORM(SplitReduction)
