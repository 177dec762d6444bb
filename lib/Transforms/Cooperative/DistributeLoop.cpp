//===- DistributeLoop.cpp - the loops of one thread, by many threads ------===//
//
// distribute-loop[kernel]{threads=256}: what one thread did becomes the work of a group of threads. The group is a
// block, or a warp with `threads=32,rows=8` (several in a block), or 4, 8 or 16 lanes of a warp with
// `threads=8,rows=32`. The group shares out the iterations of the thread's loops. Shuffles combine the scalars that the
// loops fold values into, and shared memory does so across the warps of a block. It pays where a thread works on a row:
// neighbouring threads then read neighbouring elements, and a few thousand rows fill the GPU. Of a loop that follows a
// sum (a scan of a row), a thread takes `items` neighbouring iterations at a time, 1 if nothing is said. Of loops in
// one another that only fold values, the one along which neighbouring elements lie is shared out by the lanes of a
// warp, and the one around it by the warps of a block. `filter=1`: the values of a loop that keeps the k best are
// looked at twice, first for a bound, so that few are then inserted. `each=4`: a group of at most a warp has four
// neighbouring rows, which share what they read alike.
//
// Example:
//   int row = blockIdx.x * blockDim.x + threadIdx.x;    int row = blockIdx.x * 8 + threadIdx.y;
//   if (row < rows) {                                   if (row < rows) {
//     float s = 0;                                        float s = 0;
//     for (int j = 0; j < n; ++j)                         for (int j = threadIdx.x; j < n; j += 32) {
//       s += a[row * n + j] * x[j];                         s += a[row * n + j] * x[j];
//     y[row] = s;                                         }
//   }                                                     for (int offset = 16; offset > 0; offset /= 2) {
//                                                           s += __shfl_xor_sync(0xffffffff, s, offset);
//                                                         }
//                                                         __syncwarp();
//                                                         if (threadIdx.x == 0) {
//                                                           y[row] = s;
//                                                         }
//                                                       }
//   // plan: gemv_optiml<<<(ceildiv(grid.x * block.x, 8), 1, 1), (32, 8, 1), shared>>>
//
// Legal: the kernel uses x through its global index, does not synchronize, and reads nothing volatile. All threads of a
// group then compute the same outside the shared loops. A counted loop is shared out when
//  - it folds values into scalars only as sums, products, extremes (`fmaxf`, `max`, `if (x > m) m = x`) or bits, and
//    uses each scalar for nothing else; or into elements of private arrays, which groups within a warp combine;
//  - its iterations write different elements, of arrays that overlap nothing else the loop accesses (a condition), or
//    of private arrays: those of which each loop's iteration i accesses element i alone, one for each thread;
//  - nothing leaves it early.
//
// The first thread writes what is written elsewhere, and barriers stand where accesses on both sides may meet.
// Floating-point sums change their order, which `--optiml-fp=strict` forbids.
//
// With `each`, the number of rows is a multiple of it (a condition), where the kernel compares rows with it.
//
// Refuses: loops with fewer iterations than the group, or a warp of it, has lanes; recurrences other than running sums.
// With `each`, it refuses whatever needs shared memory.
//
//===----------------------------------------------------------------------===//
#include "ArrayFolds.h"
#include "CarriedValues.h"
#include "JointUpdates.h"
#include "LocalLists.h"
#include "Matches.h"
#include "OwnElements.h"
#include "OwnState.h"
#include "RunAgain.h"
#include "RunningSum.h"
#include "SeveralRows.h"
#include "SharedNest.h"
#include "SortedFold.h"
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/IterationCases.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/FirstIteration.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Canonicalize/LoopBounds.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/Transform.h"
#include <cmath>

using namespace optiml;

namespace {

/// Shares the work of one thread out to a group.
class Sharing {
public:
  /// `entries`: elements of sorted arrays that are kept; 0: as many as there are.
  /// `forOneThread`: statements that only the first thread of a group runs. `items`: iterations of a running sum that a
  /// thread takes at a time. `filters`: values that cannot be among the best are left out of sorted arrays.
  Sharing(KernelState &state, Kernel &kernel, const KernelModel &model, ThreadGroup group, bool filters,
          int64_t entries, int64_t items, std::set<const Stmt *> forOneThread, RunsAgain again)
      : state(state), kernel(kernel), model(model), group(group), filters(filters), entries(entries), items(items),
        forOneThread(std::move(forOneThread)), again(std::move(again)), taken(allNames(kernel)), combiner(group, taken),
        own(kernel, group.threads, state.hints.strictFloat) {}

  llvm::Error run() {
    if (llvm::Error e = list(*kernel.body))
      return e;
    if (llvm::Error e = own.rewrite())
      return e;
    if (distributed && entries && done.empty())
      return notApplicable("it keeps no sorted array whose entries could be bounded");
    if (distributed && filters && !filtered)
      return notApplicable("it keeps no single sorted array whose values could be filtered");
    if (distributed && items > 1 && !scans)
      return notApplicable("no loop follows a sum, of which a thread could take several elements");
    if (distributed)
      return llvm::Error::success();
    return notApplicable("none of its loops can be shared out among threads{0}",
                         firstReason.empty() ? "" : ": " + firstReason);
  }

private:
  using Arrays = std::set<std::string>;
  /// Accesses since the last barrier: by any thread of the group, and by its first thread alone.
  struct Pending {
    Arrays reads, writes, ownReads, ownWrites;
    void add(const Pending &o) {
      reads.insert(o.reads.begin(), o.reads.end());
      writes.insert(o.writes.begin(), o.writes.end());
      ownReads.insert(o.ownReads.begin(), o.ownReads.end());
      ownWrites.insert(o.ownWrites.begin(), o.ownWrites.end());
    }
  };

  /// Loops that run less often than the group, or a warp of it, has lanes gain nothing.
  int64_t fewestTrips() const { return std::min<int64_t>(group.threads, 32); }

  bool mayMeet(const std::string &a, const std::string &b) const {
    const Param *pa = model.param(a), *pb = model.param(b);
    return a == b || !pa || !pb || !pa->type.isRestrict || !pb->type.isRestrict;
  }
  bool mayMeet(const Arrays &a, const Arrays &b) const {
    for (const std::string &x : a)
      for (const std::string &y : b)
        if (mayMeet(x, y))
          return true;
    return false;
  }

  /// Global arrays that `s` reads and writes, its children included or only its own expressions.
  void accessed(const Stmt &s, bool children, Arrays &reads, Arrays &writes) const {
    for (const Access &access : model.accesses())
      if (access.space == Space::Global &&
          (access.stmt == &s || (s.init && access.stmt == s.init.get()) || (children && insideOf(access, &s)))) {
        if (access.read)
          reads.insert(access.array);
        if (access.write)
          writes.insert(access.array);
      }
  }

  /// Orders what follows (reads and writes by any thread, or by the first alone) after what is pending.
  void order(const Arrays &reads, const Arrays &writes, bool own, std::vector<StmtRef> &out) {
    bool meets = mayMeet(reads, pending.writes) || mayMeet(writes, pending.writes) || mayMeet(writes, pending.reads);
    if (!own)
      meets |=
          mayMeet(reads, pending.ownWrites) || mayMeet(writes, pending.ownWrites) || mayMeet(writes, pending.ownReads);
    if (meets) {
      out.push_back(groupBarrier(group));
      pending = {};
    }
    (own ? pending.ownReads : pending.reads).insert(reads.begin(), reads.end());
    (own ? pending.ownWrites : pending.writes).insert(writes.begin(), writes.end());
  }

  llvm::Error list(Stmt &blockStmt) {
    std::vector<StmtRef> out;
    for (const StmtRef &s : blockStmt.body)
      if (llvm::Error e = statement(s, out))
        return e;
    blockStmt.body = std::move(out);
    return llvm::Error::success();
  }

  llvm::Error statement(const StmtRef &s, std::vector<StmtRef> &out) {
    Arrays reads, writes;
    if (forOneThread.count(s.get())) {
      accessed(*s, true, reads, writes);
      order(reads, writes, true, out);
      out.push_back(ifStmt(isFirst(), s));
      return llvm::Error::success();
    }
    if (again.asTheyWere.count(s.get())) { // by every thread, with the same result
      accessed(*s, true, reads, writes);
      order(reads, writes, false, out);
      out.push_back(s);
      return llvm::Error::success();
    }
    accessed(*s, false, reads, writes);
    switch (s->kind) {
    case StmtKind::Decl:
    case StmtKind::Expr:
      if (!writes.empty())
        return writing(s, reads, writes, out);
      order(reads, {}, false, out);
      out.push_back(s);
      return llvm::Error::success();
    case StmtKind::Block: out.push_back(s); return list(*s);
    case StmtKind::If: {
      if (!writes.empty())
        return notApplicable("line {0} writes memory in a condition", s->line);
      order(reads, {}, false, out);
      Pending before = pending, after;
      for (StmtRef &branch : s->body) {
        pending = before;
        if (llvm::Error e = list(*branch))
          return e;
        after.add(pending);
      }
      if (s->body.size() == 1)
        after.add(before);
      pending = after;
      out.push_back(s);
      return llvm::Error::success();
    }
    case StmtKind::For:
    case StmtKind::While:
    case StmtKind::Do: return loop(s, out);
    case StmtKind::Break:
    case StmtKind::Continue: out.push_back(s); return llvm::Error::success();
    case StmtKind::Opaque:
      if (!s->mayBarrier) {
        out.push_back(s);
        return llvm::Error::success();
      }
      return notApplicable("line {0} is not understood", s->line);
    case StmtKind::Return:
    case StmtKind::Barrier: return notApplicable("line {0} cannot be shared out among threads", s->line);
    }
    return llvm::Error::success();
  }

  /// A statement that writes memory: by the first thread alone.
  llvm::Error writing(const StmtRef &s, const Arrays &reads, const Arrays &writes, std::vector<StmtRef> &out) {
    bool mixed = s->kind != StmtKind::Expr;
    if (!mixed)
      walk(s->expr, [&](const ExprRef &e) {
        if (isChange(e))
          mixed |= e->args[0]->kind == ExprKind::Var || e != s->expr;
      });
    if (mixed)
      return notApplicable("line {0} writes memory and a variable at once", s->line);
    for (const Access &access : model.accesses())
      if (access.stmt == s.get() && access.write && !isSharedByAll(access))
        return notApplicable("whose memory line {0} writes is not known", s->line);
    order(reads, writes, true, out);
    if (!out.empty() && out.back() == lastOwn) {
      lastOwn->body[0]->body.push_back(s);
      return llvm::Error::success();
    }
    lastOwn = ifStmt(isFirst(), block({s}));
    out.push_back(lastOwn);
    return llvm::Error::success();
  }

  static ExprRef isFirst() { return binary("==", builtin("threadIdx.x"), intLit(0), Type::makeBool()); }

  llvm::Error loop(const StmtRef &s, std::vector<StmtRef> &out) {
    llvm::Error shared = distribute(s, out);
    if (!shared)
      return llvm::Error::success();
    std::string reason;
    llvm::Error rest = llvm::handleErrors(std::move(shared), [&](const NotApplicable &n) { reason = n.reason; });
    if (rest)
      return rest;
    auto counted = asCountedLoop(*s);
    bool isShort = counted && counted->tripCount().value_or(fewestTrips()) < fewestTrips();
    if (firstReason.empty() || (firstIsShort && !isShort)) {
      firstReason = reason;
      firstIsShort = isShort;
    }
    Arrays reads, writes;
    accessed(*s, false, reads, writes);
    if (!writes.empty())
      return notApplicable("line {0} writes memory in the head of a loop", s->line);
    order(reads, {}, false, out);
    Pending before = pending;
    bool combinedBefore = combined;
    combined = false;
    if (llvm::Error e = list(*s->body[0]))
      return e;
    // The next iteration must not meet this one's accesses, nor its use of shared memory.
    Arrays bodyReads, bodyWrites;
    accessed(*s, true, bodyReads, bodyWrites);
    if (!bodyWrites.empty() || (combined && !group.isWithinWarp())) {
      if (holdsKind(*s->body[0], {StmtKind::Continue}))
        return notApplicable("line {0}: a loop around shared work has a continue", s->line);
      s->body[0]->body.push_back(groupBarrier(group));
      pending = {};
    }
    if (leavesEarly(*s->body[0])) { // without having met that barrier
      pending.reads.insert(bodyReads.begin(), bodyReads.end());
      for (Arrays *arrays : {&pending.writes, &pending.ownWrites})
        arrays->insert(bodyWrites.begin(), bodyWrites.end());
      pending.ownReads.insert(bodyReads.begin(), bodyReads.end());
    }
    pending.add(before);
    combined |= combinedBefore;
    out.push_back(s);
    return llvm::Error::success();
  }

  /// What a pointer parameter leads to, or a variable of the file: the same memory for all threads.
  bool isSharedByAll(const Access &access) const {
    if (access.space != Space::Global || access.root->kind != ExprKind::Var)
      return false;
    const Param *p = model.param(access.root->text);
    return p ? p->type.isPointer() : !model.declaration(access.root->text);
  }

  /// That every iteration writes other elements than the others access.
  llvm::Error independent(Stmt &loop, const CountedLoop &counted, const Arrays &sorted) {
    std::set<std::string> inside = namesDeclaredIn(loop);
    inside.insert(counted.var);
    inside.insert(sorted.begin(), sorted.end());
    std::map<std::string, const Access *> written;
    Arrays all, atomic;
    for (const Access &access : model.accesses()) {
      if (!insideOf(access, &loop) && access.stmt != &loop)
        continue;
      if (access.space == Space::Local && access.write && !inside.count(access.array))
        return notApplicable("iterations share the array '{0}' (line {1})", access.array, access.stmt->line);
      if (access.space != Space::Global)
        continue;
      all.insert(access.array);
      if (access.atomic)
        atomic.insert(access.array);
      else if (access.write)
        written.emplace(access.array, &access);
    }
    for (const Access &access : model.accesses())
      if (insideOf(access, &loop) && access.write && access.space == Space::Global)
        for (const std::string &name : namesIn(access.root))
          if (inside.count(name))
            return notApplicable("what '{0}' points to differs between iterations (line {1})", name, access.stmt->line);
    for (const auto &[array, first] : written) {
      if (atomic.count(array))
        return notApplicable("'{0}' is written in two ways", array);
      if (!isSharedByAll(*first))
        return notApplicable("whose memory line {0} writes is not known", first->stmt->line);
      if (first->subscripts.size() != 1)
        return notApplicable("'{0}' has several dimensions (line {1})", array, first->stmt->line);
      const Poly &index = first->subscripts[0];
      auto factor = index.coefficient(counted.var);
      if (!factor || factor->terms.empty() || !model.stable(index))
        return notApplicable("iterations may write the same element of '{0}' (line {1})", array, first->stmt->line);
      Poly rest = index - *factor * Poly::atom(counted.var);
      for (const Poly *part : {&rest, &*factor})
        if (model.dependsOn(*part, inside))
          return notApplicable("iterations may write the same element of '{0}' (line {1})", array, first->stmt->line);
      if (!factor->constant()) {
        auto text = planText(model, *factor);
        if (!text)
          return notApplicable("iterations may write the same element of '{0}' (line {1})", array, first->stmt->line);
        state.require(*text + " != 0", "iterations write different elements");
      }
      for (const Access &access : model.accesses())
        if (insideOf(access, &loop) && access.array == array && !(access.subscripts == first->subscripts))
          return notApplicable("iterations may meet in '{0}' (line {1})", array, access.stmt->line);
      for (const std::string &other : all)
        if (other != array)
          if (llvm::Error e = requireDisjoint(state, model, array, other))
            return e;
    }
    for (const std::string &array : atomic) // "+=" by several threads is what it is for; reading in between is not
      for (const Access &access : model.accesses())
        if (insideOf(access, &loop) && access.space == Space::Global && !access.atomic && mayMeet(access.array, array))
          return notApplicable("the loop reads '{0}' beside updating '{1}' atomically", access.array, array);
    return llvm::Error::success();
  }

  llvm::Error distribute(const StmtRef &s, std::vector<StmtRef> &out) {
    auto counted = asCountedLoop(*s);
    if (!counted)
      return notApplicable("line {0}: the loop does not count", s->line);
    std::vector<SharedLoop> nest = loopsOfNeighbours(model, state, *counted, group.threads);
    auto tooShort = [&]() -> llvm::Error {
      auto trips = counted->tripCount();
      if (!nest.empty() || !trips || *trips >= fewestTrips() || !readsSorted(*s).empty())
        return llvm::Error::success();
      return notApplicable("line {0}: the loop has only {1} iterations", s->line, *trips);
    };
    if (llvm::Error e = tooShort())
      return e;
    if (leavesEarly(*s->body[0]))
      return notApplicable("line {0}: the loop may be left early", s->line);
    if (holdsKind(*s, {StmtKind::Opaque}))
      return notApplicable("line {0}: the loop holds text that is not understood", s->line);
    std::vector<SortedFold> folds = findSortedFolds(kernel, model, *s, out, entries ? entries : mostSorted);
    if (!folds.empty() && group.threads < 32)
      return notApplicable("line {0}: sorted arrays are combined by whole warps", s->line);
    Arrays sorted;
    for (const SortedFold &fold : folds)
      for (const std::string &array : fold.arrays())
        sorted.insert(array);
    Arrays explained = sorted;
    const std::vector<ArrayFold> arrayFolds = findArrayFolds(kernel, s, state.hints.strictFloat);
    for (const ArrayFold &fold : arrayFolds)
      explained.insert(fold.array);
    explained.merge(own.in(*s));
    if (!arrayFolds.empty() && !group.isWithinWarp())
      return notApplicable("line {0}: sums in arrays are combined within a warp", s->line);
    auto reductions = findReductions(*s, state.hints.strictFloat, explained, again.loops.count(s.get()) != 0);
    std::optional<RunningSum> scan;
    if (!reductions) {
      auto found = findRunningSum(*s, *counted, state.hints.strictFloat);
      if (!found || !arrayFolds.empty() || !own.in(*s).empty()) {
        llvm::consumeError(found.takeError());
        return reductions.takeError();
      }
      llvm::consumeError(reductions.takeError());
      scan = std::move(*found);
      explained.insert(scan->folded.variable);
      reductions = findReductions(*s, state.hints.strictFloat, explained);
      if (!reductions)
        return reductions.takeError();
    }
    for (const Reduction &r : *reductions) {
      if (r.startsUnset && !startsAtNumber(r.flag, out, [](double n) { return n == 0; }))
        return notApplicable("line {0}: '{1}' may be set before the loop", s->line, r.flag);
      bool changes = mentions(counted->lower, r.variable) || mentions(counted->upper, r.variable);
      for (const auto &[name, type] : r.kept)
        changes |= mentions(counted->lower, name) || mentions(counted->upper, name);
      for (const SharedLoop &inner : nest)
        changes |= mentions(inner.loop.lower, r.variable) || mentions(inner.loop.upper, r.variable);
      if (changes)
        return notApplicable("line {0}: the loop changes its own bounds", s->line);
    }
    KernelState saved = state;
    std::vector<int64_t> sizes;
    for (const SortedFold &fold : folds) {
      auto size = sizeOf(fold);
      if (!size) {
        state = saved;
        return size.takeError();
      }
      sizes.push_back(*size);
    }
    if (llvm::Error e = independent(*s, *counted, explained)) {
      state = saved;
      return e;
    }
    Arrays reads, writes, headReads, headWrites;
    accessed(*s, true, reads, writes);
    accessed(*s, false, headReads, headWrites);
    reads.insert(headReads.begin(), headReads.end());
    if (!headWrites.empty() || (!headReads.empty() && !writes.empty())) {
      state = saved;
      return notApplicable("line {0}: the loop's bounds may change in it", s->line);
    }

    if (scan || !folds.empty() || !arrayFolds.empty() || !own.in(*s).empty() || !writes.empty() ||
        !readsSorted(*s).empty() || !llvm::all_of(*reductions, isUnordered))
      nest.clear();
    if (llvm::Error e = tooShort()) {
      state = saved;
      return e;
    }

    order(reads, writes, false, out);
    readOwnElements(*s, *counted, out);
    ExprRef thread = builtin("threadIdx.x");
    std::vector<StmtRef> resets;
    for (const Reduction &r : *reductions)
      if (!r.fold.isIdempotent() && !(!out.empty() && startsAtIdentity(*out.back(), r)))
        resets.push_back(exprStmt(assign("=", var(r.variable, r.type), r.fold.identity(r.type))));
    for (const Reduction &r : *reductions)
      for (const auto &[name, type] : r.keepsSums() ? r.kept : decltype(r.kept)()) {
        Reduction sum{name, type, {Fold::Kind::Operator, "+"}};
        if (out.empty() || !startsAtIdentity(*out.back(), sum))
          resets.push_back(exprStmt(assign("=", var(name, type), sum.fold.identity(type))));
      }
    std::vector<StmtRef> restores = startRescaled(*reductions, resets, out);
    auto byOthers = [&](std::vector<StmtRef> body) {
      if (!body.empty())
        out.push_back(ifStmt(binary("!=", thread, intLit(0), Type::makeBool()), block(std::move(body))));
    };
    byOthers(resets);
    std::vector<StmtRef> ofArrays;
    for (const ArrayFold &fold : arrayFolds)
      foldIntoOwn(fold, *s, combiner, taken, out, ofArrays);
    if (scan) {
      std::vector<StmtRef> statements = scanByGroup(*scan, *counted, group, items, taken);
      out.insert(out.end(), statements.begin(), statements.end());
      combined = true; // it uses shared memory
      ++scans;
    } else {
      if (nest.empty())
        stride(*counted, thread, group.threads);
      for (const SharedLoop &inner : nest)
        stride(inner.loop,
               inner.byWarps                    ? binary("/", thread, intLit(32))
               : inner.threads == group.threads ? thread
                                                : binary("%", thread, intLit(32)),
               inner.threads);
      out.push_back(s);
    }
    byOthers(restores);
    out.insert(out.end(), ofArrays.begin(), ofArrays.end());
    for (const Reduction &r : *reductions) {
      std::vector<StmtRef> combination = combiner.combine(r);
      out.insert(out.end(), combination.begin(), combination.end());
      if (!group.isWithinWarp())
        pending = {}; // there is a barrier in it
    }
    for (size_t i = 0; i < folds.size(); ++i) {
      SortedCombiner merger(folds[i], sizes[i], group, taken);
      if (filters && folds.size() == 1 && folds[i].insertions.size() == 1 && reductions->empty() && !scan &&
          writes.empty()) {
        std::vector<StmtRef> pass = merger.filter(s);
        out.insert(llvm::find(out, s), pass.begin(), pass.end());
        ++filtered;
      }
      merger.rewriteThread(kernel, retired);
      std::vector<StmtRef> combination = merger.combine();
      out.insert(out.end(), combination.begin(), combination.end());
      if (!group.isWithinWarp())
        pending = {};
      done.push_back({folds[i], std::move(merger)});
    }
    combined |= !reductions->empty() || !folds.empty();
    own.share(*s);
    ++distributed;
    return llvm::Error::success();
  }

  /// "float m = -1e30f;" stands before the loop, such a number, and nothing between the two mentions m.
  static bool startsAtNumber(const std::string &m, llvm::ArrayRef<StmtRef> before, bool (*isSuch)(double)) {
    for (const StmtRef &s : llvm::reverse(before)) {
      if (s->kind == StmtKind::Decl && s->text == m) {
        auto start = s->expr ? numberOf(s->expr) : std::nullopt;
        return start && isSuch(*start);
      }
      if (anyExpr(*s, [&](const ExprRef &e) { return isVar(e, m); }))
        return false;
    }
    return false;
  }

  /// The maxima of online softmaxes start at a number, and what they were before stays in `out`; returned is what
  /// follows the loop.
  std::vector<StmtRef> startRescaled(const std::vector<Reduction> &reductions, std::vector<StmtRef> &resets,
                                     std::vector<StmtRef> &out) {
    std::vector<StmtRef> restores;
    for (const Reduction &r : reductions) {
      if (r.exponential.empty() || startsAtNumber(r.variable, out, [](double n) { return std::isfinite(n); }))
        continue;
      RescaledSum pair{r.variable, r.kept[0].first, r.type, r.exponential};
      ExprRef start = var(freshName(taken, r.variable + "_before"), r.type);
      out.push_back(declStmt(start->text, r.type.withConst(true), var(r.variable, r.type)));
      resets.push_back(startAtNumber(pair));
      restores.push_back(restoreStart(pair, start));
    }
    return restores;
  }

  /// How many elements of a sorted array are kept, which the array's extent or a condition bounds.
  llvm::Expected<int64_t> sizeOf(const SortedFold &fold) {
    if (state.hints.strictFloat && fold.type.isFloat() && !fold.places)
      return notApplicable("zeros of different signs in '{0}' may change places (--optiml-fp=strict)", fold.array);
    int64_t extent = fold.extent(), most = sortedSize(extent);
    int64_t size = entries && entries < most ? entries : most;
    if (size > mostSorted)
      return notApplicable("'{0}' has too many elements for registers", fold.array);
    if (size >= extent)
      return size;
    if (auto count = fold.count.constant(); count && *count <= size)
      return size;
    auto text = planText(model, fold.count);
    if (!text || fold.count.constant())
      return notApplicable("'{0}' may keep more than {1} elements", fold.array, size);
    state.require(*text + " <= " + std::to_string(size), "the sorted arrays hold all that is kept");
    return size;
  }

  /// The sorted arrays of which iteration i of a loop over them reads element i: which of `done`, and their names.
  std::vector<std::pair<size_t, std::string>> readsSorted(Stmt &loop) const {
    std::vector<std::pair<size_t, std::string>> result;
    auto counted = asCountedLoop(loop);
    if (!counted || counted->step != 1 || constantValue(counted->lower) != std::optional<int64_t>(0))
      return result;
    for (size_t k = 0; k < done.size(); ++k)
      for (const std::string &array : done[k].first.arrays()) {
        unsigned mentioned = 0, own = 0;
        walkExprs(loop, [&](const ExprRef &e) {
          mentioned += e->kind == ExprKind::Var && e->text == array;
          own += isElement(e, array, counted->var);
        });
        if (mentioned && mentioned == own && model.poly(counted->upper) == done[k].first.count)
          result.emplace_back(k, array);
      }
    return result;
  }
  static bool isElement(const ExprRef &e, const std::string &array, const std::string &index) {
    return e->kind == ExprKind::Subscript && e->args[0]->kind == ExprKind::Var && e->args[0]->text == array &&
           e->args[1]->kind == ExprKind::Var && e->args[1]->text == index;
  }

  /// A thread that takes at most one iteration reads one element: constant indices find it, and the array stays in
  /// registers.
  void readOwnElements(Stmt &loop, const CountedLoop &counted, std::vector<StmtRef> &out) {
    for (const auto &[k, array] : readsSorted(loop)) {
      const SortedFold &fold = done[k].first;
      ExprRef own = var(freshName(taken, array + "_of_thread"), array == fold.array ? fold.type : fold.places->type);
      for (StmtRef &s : done[k].second.ownElement(array, own->text))
        out.push_back(std::move(s));
      rewriteExprs(*loop.body[0], [&, name = array](const ExprRef &e) -> ExprRef {
        return isElement(e, name, counted.var) ? own : nullptr;
      });
    }
  }

  /// Every thread takes every `threads`-th iteration; `thread` is its number.
  void stride(const CountedLoop &counted, const ExprRef &thread, int64_t threads) {
    Stmt &s = *counted.stmt;
    int64_t step = counted.step * threads;
    ExprRef lower;
    auto first = mul(thread, intLit(counted.step));
    auto start = constantValue(counted.lower);
    if (start && *start == 0)
      lower = first;
    else if (start && *start > 0)
      lower = add(counted.lower, first);
    else
      lower = add(counted.lower, mul(castTo(Type::makeInt(), thread), intLit(counted.step))); // it may be negative
    // A lower bound that is not constant may be near the end of its type too: then a wider counter counts.
    int64_t most = counted.type.isSigned ? INT32_MAX : UINT32_MAX;
    std::optional<std::string> bound;
    bool safe = counted.type.bytes == 8;
    if (counted.type.bytes == 4 && start) {
      if (auto end = constantValue(counted.upper)) {
        safe = *end <= most - step && *start <= most - step;
      } else if (*start >= 0 && *start <= 1 << 30) {
        bound = planText(model, model.poly(counted.upper));
        safe = bound.has_value();
      }
    }
    if (bound)
      state.require(*bound + " <= " + std::to_string(most - step),
                    "the loop's counter does not overflow in larger steps");
    if (safe) {
      s.init = declStmt(counted.var, counted.type, lower);
      s.expr = lessThan(var(counted.var, counted.type), counted.upper); // "!=" would step over it
      s.step = assign("+=", var(counted.var, counted.type), intLit(step));
      return;
    }
    // Nothing bounds it: a wider counter cannot overflow.
    std::string wide = freshName(taken, counted.var + "_of_group");
    if (start)
      s.init = declStmt(wide, Type::makeLong(), lower);
    else
      s.init = declStmt(wide, Type::makeLong(), add(castTo(Type::makeLong(), counted.lower), first));
    s.expr = lessThan(var(wide, Type::makeLong()), counted.upper);
    s.step = assign("+=", var(wide, Type::makeLong()), intLit(step));
    std::string own = counted.var;
    // Loops one after the other may have one name, declarations may not, nor a loop and a declaration.
    bool isShared = !narrowed.insert(own).second;
    walk(*kernel.body, [&](Stmt &t) { isShared |= t.kind == StmtKind::For && t.init && t.init->text == own; });
    if (isShared) {
      own = freshName(taken, own);
      substitute(*s.body[0], {{counted.var, var(own, counted.type)}});
    }
    s.body[0]->body.insert(s.body[0]->body.begin(), declStmt(own, counted.type, var(wide, Type::makeLong())));
  }

  KernelState &state;
  Kernel &kernel;
  const KernelModel &model;
  ThreadGroup group;
  const bool filters;
  int64_t entries, items;
  std::set<const Stmt *> forOneThread;
  RunsAgain again;
  std::set<std::string> taken;
  std::set<std::string> narrowed; ///< counters that became locals beside wider ones
  Combiner combiner;
  OwnElements own;
  std::vector<std::pair<SortedFold, SortedCombiner>> done; ///< sorted arrays of loops that were shared out
  std::vector<StmtRef> retired;                            ///< the model still knows them
  Pending pending;
  StmtRef lastOwn; ///< the last branch of the first thread, to which the next statement may be added
  bool combined = false;
  unsigned distributed = 0, scans = 0, filtered = 0;
  std::string firstReason; ///< why a loop is not shared out; of one that would be worth it, if there is any
  bool firstIsShort = false;
};

class DistributeLoop : public Transform {
public:
  llvm::StringRef name() const override { return "distribute-loop"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    static const std::vector<Params> common = {{{"threads", "256"}},
                                               {{"threads", "32"}, {"rows", "8"}},
                                               {{"threads", "128"}},
                                               {{"threads", "512"}},
                                               {{"threads", "1024"}},
                                               {{"threads", "32"}, {"rows", "4"}},
                                               {{"threads", "64"}},
                                               {{"threads", "8"}, {"rows", "32"}},
                                               {{"threads", "16"}, {"rows", "16"}},
                                               {{"threads", "4"}, {"rows", "64"}},
                                               {{"threads", "256"}, {"items", "4"}},
                                               {{"threads", "32"}, {"rows", "8"}, {"items", "4"}},
                                               {{"threads", "128"}, {"items", "8"}}};
    if (!pays(state))
      return {};
    std::vector<Params> offers(std::begin(common), std::end(common));
    KernelState trial = state;
    if (auto kernel = remappable(trial, 1, 256, /*batches=*/true); !kernel)
      llvm::consumeError(kernel.takeError());
    else if (rowsShareReads(**kernel))
      for (const char *each : {"4", "2", "8"})
        offers.push_back({{"threads", "32"}, {"rows", "8"}, {"each", each}});
    int64_t entries = entriesOf(state);
    if (!entries)
      return hasPrivateArray(*state.tree) ? siteWithinWarps(state, offers) : kernelSite(*this, state, offers);
    std::vector<Params> withEntries = offers;
    withEntries.push_back({{"threads", "256"}, {"filter", "1"}});
    withEntries.push_back({{"threads", "32"}, {"rows", "8"}, {"filter", "1"}});
    withEntries.push_back({{"threads", "128"}, {"filter", "1"}});
    for (Params &params : withEntries)
      params["entries"] = std::to_string(entries);
    std::vector<ActionTemplate> sites = kernelSite(*this, state, withEntries);
    return sites.empty() ? kernelSite(*this, state, offers) : sites;
  }

  static bool hasPrivateArray(const Kernel &kernel) {
    return anyStmt(*kernel.body, [](const Stmt &s) { return !s.dims.empty() && !s.isShared; });
  }

  /// What a private array asks for: groups within a warp, or of as many threads as it has elements.
  std::vector<ActionTemplate> siteWithinWarps(const KernelState &state, std::vector<Params> offers) const {
    for (size_t first = 0; first < offers.size(); ++first) {
      if (first > 0 && paramInt(offers[first], "threads", 0) > 32)
        continue;
      std::rotate(offers.begin(), offers.begin() + long(first), offers.begin() + long(first) + 1);
      if (std::vector<ActionTemplate> sites = kernelSite(*this, state, offers); !sites.empty())
        return sites;
    }
    return {};
  }

  /// Threads of two axes are mostly neighbours along x already, and many: only where loops run along rows instead, or
  /// the launch has few threads, are they worth a group each.
  static bool pays(const KernelState &state) {
    KernelState trial = state;
    auto kernel = remappable(trial, 1, 32, /*batches=*/true);
    if (!kernel) {
      llvm::consumeError(kernel.takeError());
      return false;
    }
    if (!usesGlobalIndex(**kernel, 1) && !usesGlobalIndex(**kernel, 2))
      return true;
    if (fewThreads(state.hints))
      return true;
    KernelModel model(**kernel, {0, 0, 0});
    int balance = 0;
    for (const auto &[path, loop] : countedLoops(**kernel))
      for (const Access &access : model.accesses())
        if (insideOf(access, loop))
          balance += int(accessesNeighbours(access, loop->init->text)) - int(accessesNeighbours(access, "globalIdx.x"));
    return balance > 0;
  }

  /// How many entries of sorted arrays are enough for the launch that is known; 0: that is not known, or there are
  /// none.
  static int64_t entriesOf(const KernelState &state) {
    KernelModel model(*state.tree, state.pinnedBlock());
    int64_t most = 0;
    for (Poly count : sortedCounts(*state.tree, model)) {
      for (const auto &[name, value] : state.hints.scalars)
        count = count.substitute(name, Poly(value));
      auto value = count.constant();
      if (!value || *value < 1 || *value > mostSorted)
        return 0;
      most = std::max(most, sortedSize(*value));
    }
    return most;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    int64_t threads = paramInt(params, "threads", 256), rows = paramInt(params, "rows", 1);
    bool fills =
        threads >= 32 ? threads % 32 == 0 : threads >= 2 && !(threads & (threads - 1)) && threads * rows % 32 == 0;
    if (!fills || rows < 1 || threads * rows > state.hints.maxThreads)
      return notApplicable("a block of {0} groups of {1} threads cannot be launched", rows, threads);
    int64_t entries = paramInt(params, "entries", 0);
    if (entries && (entries < 2 || entries > mostSorted || (entries & (entries - 1))))
      return notApplicable("the number of entries must be a power of two from 2 to {0}", mostSorted);
    const int64_t items = paramInt(params, "items", 1), filters = paramInt(params, "filter", 0),
                  each = paramInt(params, "each", 1);
    if (items < 1 || items > 16)
      return notApplicable("a thread takes 1 to 16 elements of a running sum");
    if ((rows > 1 || each > 1) && threads > 32)
      return notApplicable("only groups within warps can share a block, or have several rows");
    if (each < 1 || each > 16)
      return notApplicable("a group takes 1 to 16 rows");
    if (llvm::Error e = requireSameMemory(*state.tree))
      return std::move(e);
    KernelState result = state;
    auto made = remappable(result, 1, threads * rows, /*batches=*/true);
    if (!made)
      return made.takeError();
    std::shared_ptr<Kernel> kernel = *made;
    countStridedLoops(result, *kernel);
    beginAtFirstElement(*kernel);
    boundBreakingLoops(*kernel);
    splitLocalArrays(*kernel);
    keepOneOfCopies(*kernel);
    carryElements(*kernel);
    countOwn(*kernel);
    recomputePrevious(*kernel);
    markMatches(*kernel);
    RunsAgain again = runAgainWhereUnordered(*kernel);
    std::set<const Stmt *> forOneThread = moveListsIntoArrays(result, *kernel, entries);
    KernelModel model(*kernel, {0, 0, 0});
    if (unsigned line = model.unknownEffectLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    const std::optional<Poly> end = globalUpperBound(model, 0);
    if (rows * each > 1)
      requireCover(result, model, 0, rows * each);
    if (llvm::Error e = Sharing(result, *kernel, model, {threads}, filters, entries, items, std::move(forOneThread),
                                std::move(again))
                            .run())
      return std::move(e);
    if (llvm::Error e = each > 1 ? giveSeveralRows(result, *kernel, each, end) : llvm::Error::success())
      return std::move(e);

    LaunchStep &step = result.rewrite.plan.steps[0];
    for (unsigned axis : {1, 2}) {
      bool batch = usesGlobalIndex(*kernel, axis);
      step.grid[axis] = batch ? result.overOriginal(threadsAlong(axis)) : IntExpr::literal(1);
      if (batch)
        result.require(IntExpr::of(step.grid[axis].str() + " <= 65535"), "a grid cannot be larger");
      else
        requireOneCopy(result, axis);
    }
    std::string work = threadsAlong(0);
    const int64_t ofBlock = rows * each;
    step.grid[0] = result.overOriginal(ofBlock == 1 ? work : "ceildiv(" + work + ", " + std::to_string(ofBlock) + ")");
    result.require(IntExpr::of(step.grid[0].str() + " <= 2147483647"), "a grid cannot be larger");
    step.block = {IntExpr::literal(threads), IntExpr::literal(rows), IntExpr::literal(1)};
    lowerGlobalIndex(*kernel, [&](unsigned axis) -> ExprRef {
      ExprRef block = axisBuiltin("blockIdx", axis);
      if (axis)
        return block;
      ExprRef first = mul(block, intLit(ofBlock));
      return rows == 1 ? first : add(first, mul(builtin("threadIdx.y"), intLit(each)));
    });
    kernel->maxThreads = unsigned(threads * rows);
    result.tree = kernel;
    return result;
  }
};
} // namespace

DEFINE_TRANSFORM(DistributeLoop)
