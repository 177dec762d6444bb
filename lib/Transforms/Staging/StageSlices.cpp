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

/// The slices of one array.
struct Slices {
  std::string array, name; ///< `name`: in shared memory
  ExprRef root;
  Type type;
  int64_t stride = 0; ///< from one thread's slice to the next one's, in elements
  Poly base, rowStride;
  int64_t low = INT64_MAX, high = INT64_MIN; ///< what is accessed of a slice
  bool wideIndex = false, isWritten = false;
  bool isDense = false;   ///< every thread writes all of it
  bool isSet = false;     ///< and before it reads any
  bool needsNext = false; ///< only the next thread's first access shows that all of a slice is part of the array
  std::vector<std::pair<const Access *, Poly>> accesses; ///< and where in the slice
  int64_t length() const { return high - low + 1; }
  int64_t padded() const { return length() | 1; } // threads of a warp in banks of their own
};

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
      bytes += threads() * slices.padded() * slices.type.bytes;
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

  llvm::Error addArray(const std::string &array) {
    Slices slices;
    slices.array = array;
    for (const Access &access : model.accesses())
      if (access.array == array)
        if (llvm::Error e = addAccess(slices, access))
          return e;
    if (slices.accesses.empty())
      return notApplicable("{0} is not accessed", array);
    if (slices.length() > std::abs(slices.stride) || slices.length() < 2)
      return notApplicable("the threads' parts of {0} are no slices apart from one another", array);
    all.push_back(std::move(slices));
    return llvm::Error::success();
  }

  llvm::Error addAccess(Slices &slices, const Access &access) {
    const unsigned line = access.stmt->line;
    const Type type = access.node->type.unqualified();
    if (access.space != Space::Global || !model.param(access.array) || access.subscripts.size() != 1 ||
        access.place != access.node || access.node->type.isVolatile || (!type.isInt() && !type.isFloat()) ||
        type.isHalf || (type.bytes != 4 && type.bytes != 8))
      return notApplicable("{0} is no array of numbers of 4 or 8 bytes (line {1})", access.array, line);
    if (access.atomic)
      return notApplicable("{0} is updated by atomic operations (line {1})", access.array, line);
    Poly base, within, rowStride;
    int64_t stride = 0;
    for (const auto &[monomial, c] : access.subscripts[0].terms) {
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
        return notApplicable("the slices of {0} have no constant size (line {1})", access.array, line);
      if (isX)
        stride = c;
      else if (isY)
        rowStride = rowStride + term;
      else
        (ofBlock && !monomial.empty() ? base : within) = (ofBlock && !monomial.empty() ? base : within) + term;
    }
    const std::vector<Poly> facts = model.facts(access);
    const auto least = lowerBound(model, within, facts), most = upperBound(model, within, facts);
    if (!least || !most || !least->constant() || !most->constant())
      return notApplicable("it is not known which part of {0} a thread accesses (line {1})", access.array, line);
    if (stride < 2)
      return notApplicable("neighbouring threads access no slices of {0} (line {1})", access.array, line);
    if (!slices.accesses.empty() &&
        (stride != slices.stride || !(base == slices.base) || !(rowStride == slices.rowStride)))
      return notApplicable("threads access more of {0} than slices of their own (line {1})", access.array, line);
    slices.root = access.root;
    slices.type = type;
    slices.stride = stride;
    slices.base = base;
    slices.rowStride = rowStride;
    slices.low = std::min(slices.low, *least->constant());
    slices.high = std::max(slices.high, *most->constant());
    slices.wideIndex |= access.wideIndex;
    slices.isWritten |= access.write;
    slices.accesses.emplace_back(&access, within);
    return llvm::Error::success();
  }

  /// What the guards say that stand around all accesses, as far as they tell which threads have slices.
  void findGate() {
    std::vector<Guard> common;
    for (const Slices &slices : all)
      for (const auto &[access, within] : slices.accesses) {
        const std::vector<Guard> own = conjunctsOf(access->guards);
        if (&slices == &all.front() && access == slices.accesses.front().first)
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

  /// Where in the slice the access goes for certain, once a thread has passed the gate.
  std::set<int64_t> certainPlaces(const Access &access, const Poly &within) const {
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
    for (const Guard &guard : conjunctsOf(access.guards)) {
      const bool ofLoop =
          llvm::any_of(loops, [&](const CountedLoop &loop) { return equal(loop.stmt->expr, guard.first); });
      if (!holds(gate, guard) && !(guard.second && ofLoop))
        return {};
    }
    if (!isStatement || (leaves && jumpsBefore(*outermost, access.stmt)))
      return {};
    // Of a loop that may be left early, only the first iteration is certain.
    constexpr size_t most = 1 << 14;
    std::vector<Poly> places = {within};
    for (const CountedLoop &loop : loops) {
      std::vector<Poly> next;
      const int64_t trips = within.mentions(loop.var) && !leaves ? *loop.tripCount() : 1;
      if (int64_t(places.size()) * trips > int64_t(most))
        return {};
      for (const Poly &place : places)
        for (int64_t trip : llvm::seq<int64_t>(0, trips))
          next.push_back(place.substitute(loop.var, Poly(*constantValue(loop.lower) + trip * loop.step)));
      places = std::move(next);
    }
    std::set<int64_t> result;
    for (const Poly &place : places) {
      if (!place.constant())
        return {};
      result.insert(*place.constant());
    }
    return result;
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
    for (const auto &[other, within] : slices.accesses) {
      found |= other == &access;
      if (other->read &&
          (!found || other->stmt == access.stmt || (outermost != access.path.end() && insideOf(*other, *outermost))))
        return false;
    }
    return access.write;
  }

  /// All of the block's slices are part of the array where its threads pass the gate.
  llvm::Error checkWhole(Slices &slices) {
    std::set<int64_t> touched, written, set;
    for (const auto &[access, within] : slices.accesses) {
      const std::set<int64_t> places = certainPlaces(*access, within);
      touched.insert(places.begin(), places.end());
      if (access->write)
        written.insert(places.begin(), places.end());
      if (isBeforeReads(slices, *access))
        set.insert(places.begin(), places.end());
    }
    slices.isDense = int64_t(written.size()) == slices.length();
    slices.isSet = int64_t(set.size()) == slices.length();
    if (!touched.count(slices.low))
      return notApplicable("it is not certain that each thread accesses its first element of {0}", slices.array);
    slices.needsNext = !touched.count(slices.high);
    if (slices.needsNext && gateFacts.empty())
      return notApplicable("nothing tells which threads have slices of {0}", slices.array);
    if (slices.isWritten && !slices.isDense)
      for (const auto &[access, within] : slices.accesses)
        if (access->write && !(access->stmt->kind == StmtKind::Expr && isChange(access->stmt->expr) &&
                               access->stmt->expr->args[0] == access->place && findPlace(*kernel.body, access->stmt)))
          return notApplicable("{0} is written within an expression (line {1})", slices.array, access->stmt->line);
    return llvm::Error::success();
  }

  llvm::Error requireDisjointArrays() {
    std::map<std::string, bool> arrays; // whether they are written
    for (const Access &access : model.accesses())
      if (access.space == Space::Global && model.param(access.array))
        arrays[access.array] |= access.write;
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

  ExprRef sharedElement(const Slices &slices, const ExprRef &thread, const ExprRef &place) const {
    return subscript(subscript(var(slices.name, slices.type), thread, slices.type), place, slices.type);
  }

  /// Copies all slices of the block: into shared memory, or back.
  StmtRef copy(const Slices &slices, bool back, const std::string &tid) {
    const Type integer = Type::makeInt();
    const std::string counter = freshName(taken, "i"), element = freshName(taken, "e"), slice = freshName(taken, "r"),
                      column = freshName(taken, "c");
    taken.erase(counter); // sibling loops share it
    const int64_t length = slices.length();
    const ExprRef e = var(element, integer), r = var(slice, integer), c = var(column, integer);
    Poly place = slices.base + Poly(slices.low) + Poly::atom(column);
    if (shape[1] == 1)
      place = place + Poly(slices.stride) * Poly::atom(slice);
    ExprRef index = polyExpr(model, place);
    if (shape[1] > 1) {
      const ExprRef x = binary("%", r, intLit(shape[0])), y = binary("/", r, intLit(shape[0]));
      index = add(add(index, mul(x, intLit(slices.stride))), mul(polyExpr(model, slices.rowStride), y));
    }
    const ExprRef global =
        subscript(slices.root, slices.wideIndex ? wideExpr(index) : index, slices.accesses.front().first->node->type);
    const ExprRef shared = sharedElement(slices, r, c);
    std::vector<StmtRef> body = {declStmt(element, integer.withConst(true),
                                          add(var(tid, integer), mul(var(counter, integer), intLit(threads())))),
                                 declStmt(slice, integer.withConst(true), binary("/", e, intLit(length))),
                                 declStmt(column, integer.withConst(true), binary("%", e, intLit(length))),
                                 exprStmt(back ? assign("=", global, shared) : assign("=", shared, global))};
    constexpr int64_t longest = 16;
    return countedFor(counter, integer, intLit(0), intLit(length), 1, block(std::move(body)),
                      length <= longest ? FullUnroll : 8);
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
      declarations.push_back(sharedArray(slices.name, slices.type, {intLit(threads()), intLit(slices.padded())}));
      if (!slices.isSet)
        staged.push_back(copy(slices, /*back=*/false, tid));
      for (const auto &[access, within] : slices.accesses)
        replacement[access->place.get()] = sharedElement(slices, thread, polyExpr(model, within - Poly(slices.low)));
    }
    if (!llvm::all_of(all, [](const Slices &slices) { return slices.isSet; }))
      staged.push_back(barrierStmt());
    replaceNodes(*kernel.body, replacement);
    for (const Slices &slices : all)
      for (const auto &[access, within] : slices.accesses)
        if (access->write && !slices.isDense) {
          auto place = findPlace(*kernel.body, access->stmt);
          place->block->body.insert(place->block->body.begin() + long(place->index) + 1,
                                    exprStmt(assign("=", access->place, replacement.at(access->place.get()))));
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
      if (access.space == Space::Global && !llvm::is_contained(arrays, access.array))
        arrays.push_back(access.array);
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
