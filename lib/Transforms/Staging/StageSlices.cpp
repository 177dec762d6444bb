//===- StageSlices.cpp - each thread's own part of an array in shared memory ===//
//
// stage-slices[kernel:A+B]: every thread works on its own slice of A: a small matrix, the numbers of a cell. Threads of
// a warp that each walk through a slice touch as many lines as there are threads. So the block's threads copy all of
// its slices into shared memory together, neighbours next to each other, and each works on its own there.
//
// Example:
//   if (i < n) {                     __shared__ float a_slices[64][17];
//     float s = 0;                   if (blockIdx.x * 64 + 64 < n) {
//     for (k = 0; k < 16; k++)         for (int j = 0; j < 16; ++j) {
//       s += a[i * 16 + k];              const int e = threadIdx.x + j * 64;
//     out[i] = s;                        a_slices[e / 16][e % 16] = a[blockIdx.x * 1024 + e];
//   }                                  }
//                                      __syncthreads();
//                                      … s += a_slices[threadIdx.x][k]; …
//                                    } else {
//                                      … s += a[i * 16 + k]; …
//                                    }
//
// Elements that every thread writes go back in the same way, and what it writes before it reads is not copied in. Where
// it depends on data which ones are written, each goes to both places at once.
//
// Legal: the block shape is fixed. Threads neither meet nor share memory. In every access to A, the index is a constant
// times threadIdx.x, what a whole block has alike, and what stays within the slice, as bounds of loops prove. A
// does not overlap other arrays of which one is written (proved, or a condition). Each thread that passes the guards
// around all accesses is certain to access its slice's first element. A block copies slices only where all of its
// threads, and the next one, pass these guards: then all that lies between is part of the array. Other blocks run the
// kernel as it was.
//
// Refuses: slices whose size is not constant (`specialize-scalar` may give them one); elements of other sizes than 4
// and 8 bytes; indices that depend on data; atomic operations on A; slices of which no access is certain. With what the
// kernel has already, shared memory is limited to 48 KiB.
//
//===----------------------------------------------------------------------===//
#include "Scalar/VectorPieces.h"
#include "SharedTile.h"
#include "ThreadMapping.h"
#include "TileReads.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/PolyTrees.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace optiml;

namespace {

/// An access to an array of slices.
struct SliceAccess {
  const Access *access;
  ExprRef element; ///< what it accesses, or a part of: the number, or the record
  Poly within;     ///< where in the slice
  bool isWhole() const { return access->place == element; }
};

/// The slices of one array. They are copied by words: its numbers, or what its records are made of.
struct Slices {
  std::string array, name; ///< `name`: in shared memory
  ExprRef root;
  Type element, word;
  int64_t words = 1;  ///< of an element
  int64_t stride = 0; ///< from one thread's slice to the next one's, in elements
  Poly base, rowStride;
  int64_t low = INT64_MAX, high = INT64_MIN; ///< what is accessed of a slice
  bool wideIndex = false, isWritten = false;
  bool isDense = false;   ///< every thread writes all of it
  bool isSet = false;     ///< and before it reads any
  bool needsNext = false; ///< only the next thread's first access shows that all of a slice is part of the array
  std::vector<SliceAccess> accesses;
  bool isOfRecords() const { return element.cls == Type::Class::Record; }
  int64_t length() const { return high - low + 1; }
  int64_t copied() const { return length() * words; }
  /// Threads of a warp in banks of their own, as far as the alignment of records allows.
  int64_t padded() const {
    const int64_t bytes = copied() * word.bytes;
    return isOfRecords() && bytes % 16 == 0 ? copied() + 16 / word.bytes : copied() | 1;
  }
};

/// Elements that an access reaches for certain, under conditions that stand around it, outermost first.
struct CertainPlaces {
  std::vector<Guard> conditions;
  std::set<int64_t> places;
};

/// The element of an array of numbers or records that the access reaches, or a part of; null: it is of another kind.
ExprRef elementOf(const KernelModel &model, const Access &access) {
  ExprRef e = access.node;
  if (model.param(access.array))
    return e;
  while (e->kind == ExprKind::Member || (e->kind == ExprKind::Subscript && e->args[0]->kind != ExprKind::Var)) {
    if (e->args[0]->type.isPointer() && !isArray(e->args[0]->type))
      return nullptr;
    e = e->args[0];
  }
  return e->kind == ExprKind::Subscript && model.param(rootName(e)) ? e : nullptr;
}

/// The parameter whose elements the access reaches, or what the model calls its array.
std::string arrayOf(const KernelModel &model, const Access &access) {
  const ExprRef element = elementOf(model, access);
  return element && element != access.node ? rootName(element) : access.array;
}

class SliceStager {
public:
  SliceStager(KernelState &state, Kernel &kernel)
      : state(state), kernel(kernel), shape(state.pinnedBlock()), model(kernel, shape), taken(allNames(kernel)) {}

  llvm::Error run(llvm::ArrayRef<llvm::StringRef> arrays) {
    if (llvm::Error e = requireApart(kernel, Kept::Order))
      return e;
    if (unsigned line = model.unknownOutsideLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    for (llvm::StringRef array : arrays)
      if (llvm::Error e = addArray(array.str()))
        return e;
    findGate();
    for (Slices &slices : all)
      if (llvm::Error e = checkWhole(slices))
        return e;
    if (llvm::Error e = requireDisjointArrays())
      return e;
    int64_t bytes = sharedBytes(kernel);
    for (const Slices &slices : all)
      bytes += threads() * slices.padded() * slices.word.bytes;
    if (bytes > int64_t(state.hints.maxSharedBytes))
      return notApplicable("{0} bytes of shared memory are too many", bytes);
    return rewrite();
  }

private:
  int64_t threads() const { return shape[0] * shape[1]; }

  /// Nothing but parameters and indices of blocks.
  bool isOfBlock(const std::string &atom) const {
    return isParameter(model, atom) || isLaunchExtent(atom) || llvm::StringRef(atom).starts_with("blockIdx.");
  }

  /// The largest number that the kernel accesses in records of this type: they are aligned for it.
  Type wordOf(const Type &record) const {
    int64_t bytes = 0;
    walk(*kernel.body, [&](Stmt &s) {
      ownExprs(s, [&](ExprRef &own) {
        walk(own, [&](const ExprRef &e) {
          if ((!e->type.isInt() && !e->type.isFloat()) || e->type.isHalf)
            return;
          for (const Expr *part = e.get(); part->kind == ExprKind::Member || part->kind == ExprKind::Subscript;) {
            part = part->args[0].get();
            if (part->type.isPointer() && !isArray(part->type))
              return;
            if (part->type.unqualified().text == record.text)
              bytes = std::max<int64_t>(bytes, e->type.bytes);
          }
        });
      });
    });
    return bytes == 8 ? Type::makeLong() : bytes == 4 ? Type::makeUnsigned() : Type();
  }

  llvm::Error addArray(const std::string &array) {
    Slices slices;
    slices.array = array;
    for (const Access &access : model.accesses())
      if (arrayOf(model, access) == array)
        if (llvm::Error e = addAccess(slices, access, elementOf(model, access)))
          return e;
    if (slices.accesses.empty())
      return notApplicable("{0} is not accessed", array);
    if (slices.isOfRecords()) {
      slices.word = wordOf(slices.element);
      constexpr int64_t vector = 16; // bytes, which a thread accesses at once
      if (!slices.word.bytes || slices.element.bytes % slices.word.bytes || slices.element.bytes == vector / 2 ||
          slices.element.bytes == vector)
        return notApplicable("the records of {0} are not made of words, or are a vector", array);
      slices.words = slices.element.bytes / slices.word.bytes;
    }
    if (slices.length() > slices.stride || slices.copied() < 2)
      return notApplicable("the threads' parts of {0} are no slices apart from one another", array);
    all.push_back(std::move(slices));
    return llvm::Error::success();
  }

  llvm::Error addAccess(Slices &slices, const Access &access, const ExprRef &element) {
    const unsigned line = access.stmt->line;
    if (!element)
      return notApplicable("{0} is accessed in other ways than by index (line {1})", slices.array, line);
    const bool isDirect = element == access.node;
    const Type type = element->type.unqualified(), part = access.place->type;
    const bool isRecord = type.cls == Type::Class::Record, isWhole = access.place == element;
    const bool isNumber = (part.isInt() || part.isFloat()) && !part.isHalf && (part.bytes == 4 || part.bytes == 8);
    if (access.space != Space::Global || element->kind != ExprKind::Subscript ||
        (isDirect && access.subscripts.size() != 1) || part.isVolatile ||
        (isWhole ? !isRecord && !isNumber : !isRecord))
      return notApplicable("{0} is no array of numbers of 4 or 8 bytes, or records of these (line {1})", slices.array,
                           line);
    if (access.atomic)
      return notApplicable("{0} is updated by atomic operations (line {1})", slices.array, line);
    Poly base, within, rowStride;
    int64_t stride = 0;
    for (const auto &[monomial, c] : (isDirect ? access.subscripts[0] : model.poly(element->args[1])).terms) {
      Poly term(c);
      bool isX = false, isY = false, ofBlock = true;
      for (const std::string &atom : monomial) {
        const bool x = atom == "threadIdx.x", y = atom == "threadIdx.y";
        isX |= x;
        isY |= y;
        ofBlock &= x || y || isOfBlock(atom);
        if (!x && !y)
          term = term * Poly::atom(atom);
      }
      if ((isX && monomial.size() > 1) || (isY && !ofBlock))
        return notApplicable("the slices of {0} have no constant size (line {1})", slices.array, line);
      if (isX)
        stride = c;
      else if (isY)
        rowStride = rowStride + term;
      else if (ofBlock && !monomial.empty())
        base = base + term;
      else
        within = within + term;
    }
    const std::vector<Poly> facts = model.facts(access);
    const auto least = lowerBound(model, within, facts), most = upperBound(model, within, facts);
    if (!least || !most || !least->constant() || !most->constant())
      return notApplicable("it is not known which part of {0} a thread accesses (line {1})", slices.array, line);
    if (stride < (isRecord ? 1 : 2))
      return notApplicable("neighbouring threads access no slices of {0} (line {1})", slices.array, line);
    if (!slices.accesses.empty() && (stride != slices.stride || !(base == slices.base) ||
                                     !(rowStride == slices.rowStride) || type.text != slices.element.text))
      return notApplicable("threads access more of {0} than slices of their own (line {1})", slices.array, line);
    slices.root = isDirect ? access.root : element->args[0];
    slices.element = type;
    if (isWhole && !isRecord)
      slices.word = type;
    slices.stride = stride;
    slices.base = base;
    slices.rowStride = rowStride;
    slices.low = std::min(slices.low, *least->constant());
    slices.high = std::max(slices.high, *most->constant());
    slices.wideIndex |= isDirect ? access.wideIndex : element->args[1]->type.bytes == 8;
    slices.isWritten |= access.write;
    slices.accesses.push_back({&access, element, within});
    return llvm::Error::success();
  }

  /// What the guards say that stand around all accesses, as far as they tell which threads have slices.
  void findGate() {
    std::vector<Guard> common;
    for (const Slices &slices : all)
      for (const SliceAccess &a : slices.accesses) {
        const std::vector<Guard> own = conjunctsOf(a.access->guards);
        if (&slices == &all.front() && &a == &slices.accesses.front())
          common = own;
        llvm::erase_if(common, [&](const Guard &c) { return !holds(own, c); });
      }
    for (const Guard &condition : common) {
      std::vector<Poly> facts;
      if (saysJust(model, condition.first, condition.second, facts) && llvm::all_of(facts, [&](const Poly &fact) {
            return llvm::all_of(fact.atoms(), [&](const std::string &atom) {
              return isOfBlock(atom) || atom == "threadIdx.x" || atom == "threadIdx.y";
            });
          })) {
        gate.push_back(condition);
        llvm::append_range(gateFacts, facts);
      }
    }
  }

  static bool holds(const std::vector<Guard> &conditions, const Guard &wanted) {
    return llvm::any_of(conditions,
                        [&](const Guard &c) { return c.second == wanted.second && equal(c.first, wanted.first); });
  }

  /// Where in the slice the access goes for certain, once a thread has passed the gate and the conditions.
  CertainPlaces certainPlaces(const SliceAccess &a) const {
    const Access &access = *a.access;
    const Stmt *outermost = nullptr;
    bool leaves = false;
    std::vector<CountedLoop> loops;
    for (Stmt *s : access.path) {
      if (!isLoop(*s))
        continue;
      auto counted = asCountedLoop(*s);
      if (!counted || !constantValue(counted->lower) || counted->tripCount().value_or(0) < 1)
        return {};
      loops.push_back(*counted);
      leaves |= holdsKind(*s, {StmtKind::Break, StmtKind::Continue, StmtKind::Return});
      outermost = outermost ? outermost : s;
    }
    const bool isStatement =
        access.stmt->kind == StmtKind::Expr || access.stmt->kind == StmtKind::Decl || access.stmt->kind == StmtKind::If;
    CertainPlaces result;
    for (const Guard &guard : conjunctsOf(access.guards)) {
      const bool ofLoop =
          llvm::any_of(loops, [&](const CountedLoop &loop) { return equal(loop.stmt->expr, guard.first); });
      if (!holds(gate, guard) && !(guard.second && ofLoop))
        result.conditions.push_back(guard);
    }
    if (!loops.empty() && !result.conditions.empty() && holdsGuard(*loops.front().stmt, result.conditions))
      return {}; // another one in each iteration
    if (!isStatement || (leaves && jumpsBefore(*outermost, access.stmt)))
      return {};
    // Of a loop that may be left early, only the first iteration is certain.
    constexpr size_t most = 1 << 14;
    std::vector<Poly> places = {a.within};
    for (const CountedLoop &loop : loops) {
      std::vector<Poly> next;
      const int64_t trips = a.within.mentions(loop.var) && !leaves ? *loop.tripCount() : 1;
      if (int64_t(places.size()) * trips > int64_t(most))
        return {};
      for (const Poly &place : places)
        for (int64_t trip : llvm::seq<int64_t>(0, trips))
          next.push_back(place.substitute(loop.var, Poly(*constantValue(loop.lower) + trip * loop.step)));
      places = std::move(next);
    }
    for (const Poly &place : places) {
      if (!place.constant())
        return {};
      result.places.insert(*place.constant());
    }
    return result;
  }

  /// One of the conditions belongs to an `if` or an expression in the loop.
  static bool holdsGuard(const Stmt &loop, const std::vector<Guard> &conditions) {
    return anyExpr(loop, [&](const ExprRef &e) {
      return llvm::any_of(conditions, [&](const Guard &guard) { return e == guard.first; });
    });
  }

  /// The elements that every thread reaches that has passed the gate: what it does on both sides of a condition counts.
  static std::set<int64_t> together(std::vector<CertainPlaces> parts) {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t a = 0; a < parts.size() && !changed; ++a)
        for (size_t b = a + 1; b < parts.size() && !changed; ++b)
          changed = join(parts, a, b);
    }
    return parts.empty() || !parts.front().conditions.empty() ? std::set<int64_t>() : parts.front().places;
  }
  static bool join(std::vector<CertainPlaces> &parts, size_t a, size_t b) {
    std::vector<Guard> &x = parts[a].conditions, &y = parts[b].conditions;
    auto same = [](const Guard &p, const Guard &q) { return p.first == q.first; }; // evaluated once
    if (x.size() != y.size() || !std::equal(x.begin(), x.end(), y.begin(), same))
      return false;
    const size_t different = llvm::count_if(
        llvm::zip(x, y), [](const auto &pair) { return std::get<0>(pair).second != std::get<1>(pair).second; });
    if (different == 0) {
      parts[a].places.insert(parts[b].places.begin(), parts[b].places.end());
    } else if (different == 1 && x.back().second != y.back().second) {
      std::erase_if(parts[a].places, [&](int64_t place) { return !parts[b].places.count(place); });
      x.pop_back();
    } else {
      return false;
    }
    parts.erase(parts.begin() + long(b));
    // Without conditions first, so that the others join it.
    llvm::stable_sort(parts, [](const auto &p, const auto &q) { return p.conditions.size() < q.conditions.size(); });
    return true;
  }

  /// A jump stands in `loop` before the statement.
  static bool jumpsBefore(const Stmt &loop, const Stmt *wanted) {
    bool jumps = false, found = false;
    walk(const_cast<Stmt &>(loop), [&](Stmt &s) {
      found |= &s == wanted;
      jumps |= !found && (s.kind == StmtKind::Break || s.kind == StmtKind::Continue || s.kind == StmtKind::Return);
    });
    return jumps || !found;
  }

  /// It writes, and is done with it before any access reads the array.
  static bool isBeforeReads(const Slices &slices, const Access &access) {
    auto outermost = llvm::find_if(access.path, [](const Stmt *s) { return isLoop(*s); });
    bool found = false;
    for (const SliceAccess &a : slices.accesses) {
      const Access *other = a.access;
      found |= other == &access;
      if (other->read &&
          (!found || other->stmt == access.stmt || (outermost != access.path.end() && insideOf(*other, *outermost))))
        return false;
    }
    return access.write;
  }

  /// All of the block's slices are part of the array where its threads pass the gate.
  llvm::Error checkWhole(Slices &slices) {
    std::vector<CertainPlaces> parts, writes, sets;
    for (const SliceAccess &a : slices.accesses) {
      const CertainPlaces certain = certainPlaces(a);
      if (certain.places.empty())
        continue;
      parts.push_back(certain);
      if (a.access->write && a.isWhole())
        writes.push_back(certain);
      if (a.isWhole() && isBeforeReads(slices, *a.access))
        sets.push_back(certain);
    }
    const std::set<int64_t> touched = together(parts);
    slices.isDense = int64_t(together(writes).size()) == slices.length();
    slices.isSet = int64_t(together(sets).size()) == slices.length();
    if (!touched.count(slices.low))
      return notApplicable("it is not certain that each thread accesses its first element of {0}", slices.array);
    slices.needsNext = !touched.count(slices.high);
    if (slices.needsNext && gateFacts.empty())
      return notApplicable("nothing tells which threads have slices of {0}", slices.array);
    if (slices.isWritten && !slices.isDense)
      for (const SliceAccess &a : slices.accesses) {
        const Stmt &s = *a.access->stmt;
        if (a.access->write && !(s.kind == StmtKind::Expr && isChange(s.expr) && s.expr->args[0] == a.access->place &&
                                 findPlace(*kernel.body, &s)))
          return notApplicable("{0} is written within an expression (line {1})", slices.array, s.line);
      }
    return llvm::Error::success();
  }

  llvm::Error requireDisjointArrays() {
    std::map<std::string, bool> arrays; // whether they are written
    for (const Access &access : model.accesses())
      if (access.space == Space::Global && !isConstantOfFile(model, access))
        arrays[arrayOf(model, access)] |= access.write;
    for (const Slices &slices : all)
      for (const auto &[other, isWritten] : arrays)
        if (other != slices.array && (isWritten || slices.isWritten))
          if (llvm::Error e = requireDisjoint(state, model, slices.array, other))
            return e;
    return llvm::Error::success();
  }

  /// Whether all threads of the block, and the next one where that matters, pass the gate; null: they do.
  llvm::Expected<ExprRef> gateExpr() const {
    const bool next = llvm::any_of(all, [](const Slices &slices) { return slices.needsNext; });
    ExprRef result;
    for (const Poly &fact : gateFacts) {
      Poly worst = fact;
      for (unsigned axis : {0, 1}) {
        const std::string index = axisName("threadIdx", axis);
        const auto factor = fact.coefficient(index);
        if (!factor || !factor->constant())
          return notApplicable("a guard is no bound on the index of threads");
        const int64_t last = shape[axis] - (axis == 0 && next ? 0 : 1);
        worst = worst.substitute(index, Poly(*factor->constant() < 0 ? last : 0));
      }
      Poly left, right;
      for (const auto &[monomial, c] : worst.terms) {
        Poly term(std::abs(c));
        for (const std::string &atom : monomial)
          term = term * Poly::atom(atom);
        (c < 0 ? left : right) = (c < 0 ? left : right) + term;
      }
      auto wide = [&](const Poly &p) { return rewriteBuiltins(polyExpr(model, p)); };
      result = logicalAnd(result, binary("<=", wide(left), wide(right)));
    }
    return result;
  }
  static ExprRef rewriteBuiltins(const ExprRef &e) {
    return ::optiml::rewrite(e, [](const ExprRef &part) -> ExprRef {
      return part->kind == ExprKind::Builtin || part->kind == ExprKind::Var ? castTo(Type::makeLong(), part) : nullptr;
    });
  }

  static ExprRef sharedWord(const Slices &slices, const ExprRef &thread, const ExprRef &place) {
    return subscript(subscript(var(slices.name, slices.word), thread, slices.word), place, slices.word);
  }
  /// What stands for the element that is accessed.
  ExprRef sharedElement(const Slices &slices, const ExprRef &thread, const Poly &within) const {
    const ExprRef word = sharedWord(slices, thread, polyExpr(model, Poly(slices.words) * (within - Poly(slices.low))));
    return slices.isOfRecords() ? reinterpreted(word, slices.element, /*isConst=*/false) : word;
  }

  /// Copies all slices of the block: into shared memory, or back.
  StmtRef copy(const Slices &slices, bool back, const std::string &tid) {
    const Type integer = Type::makeInt();
    const std::string counter = freshName(taken, "i"), element = freshName(taken, "e"), slice = freshName(taken, "r"),
                      column = freshName(taken, "c");
    taken.erase(counter); // sibling loops share it
    const int64_t copied = slices.copied();
    const ExprRef e = var(element, integer), r = var(slice, integer), c = var(column, integer);
    const Poly words(slices.words);
    Poly place = words * (slices.base + Poly(slices.low)) + Poly::atom(column);
    if (shape[1] == 1)
      place = place + words * Poly(slices.stride) * Poly::atom(slice);
    ExprRef index = polyExpr(model, place);
    if (shape[1] > 1) {
      const ExprRef x = binary("%", r, intLit(shape[0])), y = binary("/", r, intLit(shape[0]));
      index = add(add(index, mul(x, intLit(slices.words * slices.stride))),
                  mul(polyExpr(model, words * slices.rowStride), y));
    }
    const Type word = slices.isOfRecords() ? slices.word : slices.accesses.front().element->type;
    const ExprRef root =
        slices.isOfRecords() ? castTo(Type::makePointer(word.withConst(!back)), slices.root) : slices.root;
    const ExprRef global = subscript(root, slices.wideIndex ? wideExpr(index) : index, word);
    const ExprRef shared = sharedWord(slices, r, c);
    std::vector<StmtRef> body = {declStmt(element, integer.withConst(true),
                                          add(var(tid, integer), mul(var(counter, integer), intLit(threads())))),
                                 declStmt(slice, integer.withConst(true), binary("/", e, intLit(copied))),
                                 declStmt(column, integer.withConst(true), binary("%", e, intLit(copied))),
                                 exprStmt(back ? assign("=", global, shared) : assign("=", shared, global))};
    constexpr int64_t longest = 16;
    return countedFor(counter, integer, intLit(0), intLit(copied), 1, block(std::move(body)),
                      copied <= longest ? FullUnroll : 8);
  }

  llvm::Error rewrite() {
    auto condition = gateExpr();
    if (!condition)
      return condition.takeError();
    const StmtRef plain = *condition ? clone(kernel.body) : nullptr;
    if (plain && !renameDeclarations(*plain, taken))
      return notApplicable("verbatim text names a variable of the kernel, which is needed twice");
    const std::string tid = freshName(taken, "tid");
    const ExprRef thread = linearThread(shape);
    std::vector<StmtRef> declarations, staged;
    staged.push_back(declStmt(tid, Type::makeInt().withConst(true), thread));
    std::map<const Expr *, ExprRef> replacement;
    for (Slices &slices : all) {
      slices.name = freshName(taken, slices.array + "_slices");
      llvm::replace(slices.name, '.', '_');
      declarations.push_back(sharedArray(slices.name, slices.word, {intLit(threads()), intLit(slices.padded())},
                                         slices.isOfRecords() * 16));
      if (!slices.isSet)
        staged.push_back(copy(slices, /*back=*/false, tid));
      for (const SliceAccess &a : slices.accesses)
        replacement[a.element.get()] = sharedElement(slices, thread, a.within);
    }
    if (!llvm::all_of(all, [](const Slices &slices) { return slices.isSet; }))
      staged.push_back(barrierStmt());
    // What goes to both places: the target there, and here.
    std::vector<std::pair<Stmt *, ExprRef>> both;
    for (const Slices &slices : all)
      for (const SliceAccess &a : slices.accesses)
        if (a.access->write && !slices.isDense)
          both.emplace_back(a.access->stmt, a.access->place);
    replaceNodes(*kernel.body, replacement);
    for (const auto &[stmt, target] : both) {
      auto place = findPlace(*kernel.body, stmt);
      place->block->body.insert(place->block->body.begin() + long(place->index) + 1,
                                exprStmt(assign("=", target, stmt->expr->args[0])));
    }
    llvm::append_range(staged, kernel.body->body);
    if (llvm::any_of(all, [](const Slices &slices) { return slices.isDense; }))
      staged.push_back(barrierStmt());
    for (const Slices &slices : all)
      if (slices.isDense)
        staged.push_back(copy(slices, /*back=*/true, tid));
    if (*condition)
      declarations.push_back(ifStmt(*condition, block(std::move(staged)), plain));
    else
      llvm::append_range(declarations, staged);
    kernel.body = block(std::move(declarations));
    return llvm::Error::success();
  }

  KernelState &state;
  Kernel &kernel;
  const std::array<int64_t, 3> shape;
  const KernelModel model;
  std::set<std::string> taken;
  std::vector<Slices> all;
  std::vector<Guard> gate;     ///< of the guards
  std::vector<Poly> gateFacts; ///< the same, each >= 0
};

class StageSlices : public Transform {
public:
  llvm::StringRef name() const override { return "stage-slices"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    if (!state.isPinned())
      return {};
    const KernelModel model(*state.tree, state.pinnedBlock());
    std::vector<std::string> arrays;
    for (const Access &access : model.accesses())
      if (access.space == Space::Global) {
        const std::string name = arrayOf(model, access);
        if (model.param(name) && !llvm::is_contained(arrays, name))
          arrays.push_back(name);
      }
    std::vector<ActionTemplate> result;
    std::string joint;
    for (const std::string &array : arrays)
      if (offer(result, state, ":" + array, {{}}))
        joint += (joint.empty() ? "" : "+") + array;
    if (result.size() > 1 && offer(result, state, ":" + joint, {{}})) // all of them together first
      std::rotate(result.begin(), result.end() - 1, result.end());
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site, const Params &) const override {
    const std::array<int64_t, 3> shape = state.pinnedBlock();
    if (!shape[0] || !shape[1] || shape[2] != 1)
      return notApplicable("{0}", shapeIsOpen);
    llvm::SmallVector<llvm::StringRef, 4> arrays;
    site.ltrim(':').split(arrays, '+', -1, /*KeepEmpty=*/false);
    if (arrays.empty())
      return notApplicable("no array is named");
    auto kernel = state.tree->clone();
    if (llvm::Error e = requireConstantParameters(*kernel))
      return std::move(e);
    if (llvm::Error e = removeReturns(*kernel))
      return std::move(e);
    KernelState result = state.withTree(kernel);
    if (llvm::Error e = SliceStager(result, *kernel).run(arrays))
      return std::move(e);
    return result;
  }
};

} // namespace

DEFINE_TRANSFORM(StageSlices)
