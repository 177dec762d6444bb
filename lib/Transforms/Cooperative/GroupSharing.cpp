//===- GroupSharing.cpp - the work of one thread, by a group --------------===//
//
// Goes through a kernel's statements in order. Loops whose iterations can be told apart are shared out; what writes
// memory otherwise is done by the first thread, and all else by every thread, with the same result. Barriers stand
// where accesses on both sides may meet.
//
//===----------------------------------------------------------------------===//
#include "GroupSharing.h"
#include "ArrayFolds.h"
#include "IterationWrites.h"
#include "JointUpdates.h"
#include "LoopStride.h"
#include "MemoryOrder.h"
#include "OwnElements.h"
#include "RunningSum.h"
#include "SharedNest.h"
#include "SortedFold.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/IterationCases.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include <cmath>

using namespace optiml;

namespace {

/// Shares the work of one thread out to a group.
class Sharing {
public:
  Sharing(KernelState &state, Kernel &kernel, const KernelModel &model, GroupSharing sharing)
      : state(state), kernel(kernel), model(model), wanted(std::move(sharing)), group(wanted.group),
        taken(allNames(kernel)), combiner(group, taken), own(kernel, group.threads, state.hints.strictFloat),
        memory(model, group), strides(state, kernel, model, taken) {}

  llvm::Error run() {
    if (llvm::Error e = list(*kernel.body))
      return e;
    if (llvm::Error e = own.rewrite())
      return e;
    if (distributed && wanted.entries && done.empty())
      return notApplicable("it keeps no sorted array whose entries could be bounded");
    if (distributed && wanted.filters && !filtered)
      return notApplicable("it keeps no single sorted array whose values could be filtered");
    if (distributed && wanted.items > 1 && !scans)
      return notApplicable("no loop follows a sum, of which a thread could take several elements");
    if (distributed)
      return llvm::Error::success();
    return notApplicable("none of its loops can be shared out among threads{0}",
                         firstReason.empty() ? "" : ": " + firstReason);
  }

private:
  using Arrays = MemoryOrder::Arrays;

  /// Loops that run less often than the group, or a warp of it, has lanes gain nothing.
  int64_t fewestTrips() const { return std::min<int64_t>(group.threads, 32); }

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
    if (wanted.forOneThread.count(s.get())) {
      memory.accessed(*s, true, reads, writes);
      memory.order(reads, writes, true, out);
      out.push_back(ifStmt(isFirst(), s));
      return llvm::Error::success();
    }
    if (wanted.again.asTheyWere.count(s.get())) { // by every thread, with the same result
      memory.accessed(*s, true, reads, writes);
      memory.order(reads, writes, false, out);
      out.push_back(s);
      return llvm::Error::success();
    }
    memory.accessed(*s, false, reads, writes);
    switch (s->kind) {
    case StmtKind::Decl:
    case StmtKind::Expr:
      if (!writes.empty())
        return writing(s, reads, writes, out);
      memory.order(reads, {}, false, out);
      out.push_back(s);
      return llvm::Error::success();
    case StmtKind::Block: out.push_back(s); return list(*s);
    case StmtKind::If: {
      if (!writes.empty())
        return notApplicable("line {0} writes memory in a condition", s->line);
      memory.order(reads, {}, false, out);
      MemoryOrder::Pending before = memory.pending, after;
      for (StmtRef &branch : s->body) {
        memory.pending = before;
        if (llvm::Error e = list(*branch))
          return e;
        after.add(memory.pending);
      }
      if (s->body.size() == 1)
        after.add(before);
      memory.pending = after;
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
      if (access.stmt == s.get() && access.write && !isSharedByAll(model, access))
        return notApplicable("whose memory line {0} writes is not known", s->line);
    memory.order(reads, writes, true, out);
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
    memory.accessed(*s, false, reads, writes);
    if (!writes.empty())
      return notApplicable("line {0} writes memory in the head of a loop", s->line);
    memory.order(reads, {}, false, out);
    MemoryOrder::Pending before = memory.pending;
    bool combinedBefore = combined;
    combined = false;
    if (llvm::Error e = list(*s->body[0]))
      return e;
    // The next iteration must not meet this one's accesses, nor its use of shared memory.
    Arrays bodyReads, bodyWrites;
    memory.accessed(*s, true, bodyReads, bodyWrites);
    if (!bodyWrites.empty() || (combined && !group.isWithinWarp())) {
      if (holdsKind(*s->body[0], {StmtKind::Continue}))
        return notApplicable("line {0}: a loop around shared work has a continue", s->line);
      s->body[0]->body.push_back(groupBarrier(group));
      memory.pending = {};
    }
    if (leavesEarly(*s->body[0])) // without having met that barrier
      memory.pending.add({bodyReads, bodyWrites, bodyReads, bodyWrites});
    memory.pending.add(before);
    combined |= combinedBefore;
    out.push_back(s);
    return llvm::Error::success();
  }

  /// What the iterations of a loop hand to one another, and how threads can have that each for itself.
  struct Handed {
    std::vector<SortedFold> sorted;
    std::vector<int64_t> sizes; ///< of sorted arrays
    std::vector<ArrayFold> arrays;
    std::vector<Reduction> reductions;
    std::optional<RunningSum> scan;
    Arrays explained; ///< all arrays and variables of these, and arrays of which a thread has an element
    bool ownsElements = false;
    bool onlyScalars() const { return !scan && sorted.empty() && arrays.empty() && !ownsElements; }
  };

  llvm::Expected<Handed> findHanded(const StmtRef &s, const CountedLoop &counted, const std::vector<StmtRef> &out) {
    Handed handed;
    handed.sorted = findSortedFolds(kernel, model, *s, out, wanted.entries ? wanted.entries : mostSorted);
    if (!handed.sorted.empty() && group.threads < 32)
      return notApplicable("line {0}: sorted arrays are combined by whole warps", s->line);
    handed.arrays = findArrayFolds(kernel, s, state.hints.strictFloat);
    if (!handed.arrays.empty() && !group.isWithinWarp())
      return notApplicable("line {0}: sums in arrays are combined within a warp", s->line);
    for (const SortedFold &fold : handed.sorted)
      for (const std::string &array : fold.arrays())
        handed.explained.insert(array);
    for (const ArrayFold &fold : handed.arrays)
      handed.explained.insert(fold.array);
    Arrays elements = own.in(*s);
    handed.ownsElements = !elements.empty();
    handed.explained.merge(elements);
    auto reductions =
        findReductions(*s, state.hints.strictFloat, handed.explained, wanted.again.loops.count(s.get()) != 0);
    if (!reductions) {
      auto found = findRunningSum(*s, counted, state.hints.strictFloat);
      if (!found || !handed.arrays.empty() || handed.ownsElements) {
        llvm::consumeError(found.takeError());
        return reductions.takeError();
      }
      llvm::consumeError(reductions.takeError());
      handed.scan = std::move(*found);
      handed.explained.insert(handed.scan->folded.variable);
      reductions = findReductions(*s, state.hints.strictFloat, handed.explained);
      if (!reductions)
        return reductions.takeError();
    }
    handed.reductions = std::move(*reductions);
    return std::move(handed);
  }

  /// The loop and those within that are shared out run as often as before, and flags are not set before it.
  llvm::Error requireSameBounds(const Handed &handed, const CountedLoop &counted, const std::vector<SharedLoop> &nest,
                                const std::vector<StmtRef> &out) const {
    const unsigned line = counted.stmt->line;
    for (const Reduction &r : handed.reductions) {
      if (r.startsUnset && !startsAtNumber(r.flag, out, [](double n) { return n == 0; }))
        return notApplicable("line {0}: '{1}' may be set before the loop", line, r.flag);
      bool changes = mentions(counted.lower, r.variable) || mentions(counted.upper, r.variable);
      for (const auto &[name, type] : r.kept)
        changes |= mentions(counted.lower, name) || mentions(counted.upper, name);
      for (const SharedLoop &inner : nest)
        changes |= mentions(inner.loop.lower, r.variable) || mentions(inner.loop.upper, r.variable);
      if (changes)
        return notApplicable("line {0}: the loop changes its own bounds", line);
    }
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
    auto handed = findHanded(s, *counted, out);
    if (!handed)
      return handed.takeError();
    if (llvm::Error e = requireSameBounds(*handed, *counted, nest, out))
      return e;
    KernelState saved = state;
    auto restored = [&](llvm::Error e) {
      state = saved;
      return e;
    };
    for (const SortedFold &fold : handed->sorted) {
      auto size = sizeOf(fold);
      if (!size)
        return restored(size.takeError());
      handed->sizes.push_back(*size);
    }
    if (llvm::Error e = requireOwnWrites(state, model, *counted, handed->explained))
      return restored(std::move(e));
    Arrays reads, writes, headReads, headWrites;
    memory.accessed(*s, true, reads, writes);
    memory.accessed(*s, false, headReads, headWrites);
    reads.insert(headReads.begin(), headReads.end());
    if (llvm::Error e = requireFixedHead(state, model, *s, headReads, headWrites, writes))
      return restored(std::move(e));

    if (!handed->onlyScalars() || !writes.empty() || !readsSorted(*s).empty() ||
        !llvm::all_of(handed->reductions, isUnordered))
      nest.clear();
    if (llvm::Error e = tooShort())
      return restored(std::move(e));

    memory.order(reads, writes, false, out);
    readOwnElements(*s, *counted, out);
    shareOut(s, *counted, nest, *handed, out);
    combineSorted(s, *handed, !writes.empty(), out);
    combined |= !handed->reductions.empty() || !handed->sorted.empty();
    own.share(*s);
    ++distributed;
    return llvm::Error::success();
  }

  /// What threads but the first start at, so that nothing counts twice.
  std::vector<StmtRef> startsOfOthers(const std::vector<Reduction> &reductions, const std::vector<StmtRef> &out) const {
    std::vector<StmtRef> resets;
    for (const Reduction &r : reductions)
      if (!r.fold.isIdempotent() && !(!out.empty() && startsAtIdentity(*out.back(), r)))
        resets.push_back(exprStmt(assign("=", var(r.variable, r.type), r.fold.identity(r.type))));
    for (const Reduction &r : reductions)
      for (const auto &[name, type] : r.keepsSums() ? r.kept : decltype(r.kept)()) {
        Reduction sum{name, type, {Fold::Kind::Operator, "+"}};
        if (out.empty() || !startsAtIdentity(*out.back(), sum))
          resets.push_back(exprStmt(assign("=", var(name, type), sum.fold.identity(type))));
      }
    return resets;
  }

  /// The loop with each thread's iterations, and what makes one of what the threads have.
  void shareOut(const StmtRef &s, const CountedLoop &counted, const std::vector<SharedLoop> &nest, const Handed &handed,
                std::vector<StmtRef> &out) {
    const ExprRef thread = builtin("threadIdx.x");
    std::vector<StmtRef> resets = startsOfOthers(handed.reductions, out);
    std::vector<StmtRef> restores = startRescaled(handed.reductions, resets, out);
    auto byOthers = [&](std::vector<StmtRef> body) {
      if (!body.empty())
        out.push_back(ifStmt(binary("!=", thread, intLit(0), Type::makeBool()), block(std::move(body))));
    };
    byOthers(resets);
    std::vector<StmtRef> ofArrays;
    for (const ArrayFold &fold : handed.arrays)
      foldIntoOwn(fold, *s, combiner, taken, out, ofArrays);
    if (handed.scan) {
      std::vector<StmtRef> statements = scanByGroup(*handed.scan, counted, group, wanted.items, taken);
      out.insert(out.end(), statements.begin(), statements.end());
      combined = true; // it uses shared memory
      ++scans;
    } else {
      if (nest.empty())
        strides.stride(counted, thread, group.threads);
      for (const SharedLoop &inner : nest)
        strides.stride(inner.loop,
                       inner.byWarps                    ? binary("/", thread, intLit(32))
                       : inner.threads == group.threads ? thread
                                                        : binary("%", thread, intLit(32)),
                       inner.threads);
      out.push_back(s);
    }
    byOthers(restores);
    out.insert(out.end(), ofArrays.begin(), ofArrays.end());
    for (const Reduction &r : handed.reductions) {
      std::vector<StmtRef> combination = combiner.combine(r);
      out.insert(out.end(), combination.begin(), combination.end());
      if (!group.isWithinWarp())
        memory.pending = {}; // there is a barrier in it
    }
  }

  void combineSorted(const StmtRef &s, const Handed &handed, bool writes, std::vector<StmtRef> &out) {
    const std::vector<SortedFold> &folds = handed.sorted;
    for (size_t i = 0; i < folds.size(); ++i) {
      SortedCombiner merger(folds[i], handed.sizes[i], group, taken);
      if (wanted.filters && folds.size() == 1 && folds[i].insertions.size() == 1 && handed.reductions.empty() &&
          !handed.scan && !writes) {
        std::vector<StmtRef> pass = merger.filter(s);
        out.insert(llvm::find(out, s), pass.begin(), pass.end());
        ++filtered;
      }
      merger.rewriteThread(kernel, retired);
      std::vector<StmtRef> combination = merger.combine();
      out.insert(out.end(), combination.begin(), combination.end());
      if (!group.isWithinWarp())
        memory.pending = {};
      done.push_back({folds[i], std::move(merger)});
    }
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
    int64_t size = wanted.entries && wanted.entries < most ? wanted.entries : most;
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

  KernelState &state;
  Kernel &kernel;
  const KernelModel &model;
  const GroupSharing wanted;
  const ThreadGroup &group;
  std::set<std::string> taken;
  Combiner combiner;
  OwnElements own;
  MemoryOrder memory;
  LoopStride strides;
  std::vector<std::pair<SortedFold, SortedCombiner>> done; ///< sorted arrays of loops that were shared out
  std::vector<StmtRef> retired;                            ///< the model still knows them
  StmtRef lastOwn; ///< the last branch of the first thread, to which the next statement may be added
  bool combined = false;
  unsigned distributed = 0, scans = 0, filtered = 0;
  std::string firstReason; ///< why a loop is not shared out; of one that would be worth it, if there is any
  bool firstIsShort = false;
};

} // namespace

llvm::Error optiml::shareAmongGroup(KernelState &state, Kernel &kernel, const KernelModel &model, GroupSharing wanted) {
  return Sharing(state, kernel, model, std::move(wanted)).run();
}
