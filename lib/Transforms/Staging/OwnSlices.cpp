//===- OwnSlices.cpp - each thread's own part of an array -----------------===//
#include "OwnSlices.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace optiml;

/// The element of an array of numbers or records that the access reaches, or a part of; null: it is of another kind.
static ExprRef elementOf(const KernelModel &model, const Access &access) {
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

std::string optiml::arrayOf(const KernelModel &model, const Access &access) {
  const ExprRef element = elementOf(model, access);
  return element && element != access.node ? rootName(element) : access.array;
}

/// Nothing but parameters and indices of blocks.
static bool isOfBlock(const KernelModel &model, const std::string &atom) {
  return isParameter(model, atom) || isLaunchExtent(atom) || llvm::StringRef(atom).starts_with("blockIdx.");
}

std::optional<ThreadIndex> optiml::splitByThread(const KernelModel &model, const Poly &index) {
  ThreadIndex result;
  for (const auto &[monomial, c] : index.terms) {
    Poly term(c);
    bool isX = false, isY = false, ofBlock = true;
    for (const std::string &atom : monomial) {
      const bool x = atom == "threadIdx.x", y = atom == "threadIdx.y";
      if ((x || y) && (isX || isY))
        return std::nullopt;
      isX |= x;
      isY |= y;
      ofBlock &= x || y || isOfBlock(model, atom);
      if (!x && !y)
        term = term * Poly::atom(atom);
    }
    if ((isX || isY) && !ofBlock)
      return std::nullopt;
    Poly &part = isX                            ? result.perThread
                 : isY                          ? result.perRow
                 : ofBlock && !monomial.empty() ? result.ofBlock
                                                : result.rest;
    part = part + term;
  }
  return result;
}

std::optional<std::vector<Poly>> optiml::factsOfBlock(const KernelModel &model, const Guard &guard) {
  std::vector<Poly> facts;
  const bool good = saysJust(model, guard.first, guard.second, facts) && llvm::all_of(facts, [&](const Poly &fact) {
                      return llvm::all_of(fact.atoms(), [&](const std::string &atom) {
                        return isOfBlock(model, atom) || atom == "threadIdx.x" || atom == "threadIdx.y";
                      });
                    });
  return good ? std::optional(facts) : std::nullopt;
}

llvm::Expected<ExprRef> optiml::holdsForBlock(const KernelModel &model, const std::vector<Poly> &facts, bool next) {
  ExprRef result;
  for (const Poly &fact : facts) {
    Poly worst = fact, left, right;
    for (unsigned axis : {0, 1}) {
      const std::string index = axisName("threadIdx", axis);
      const auto factor = fact.coefficient(index);
      if (!factor || !factor->constant())
        return notApplicable("a guard is no bound on the index of threads");
      const int64_t last = model.blockExtent(axis) - (axis == 0 && next ? 0 : 1);
      worst = worst.substitute(index, Poly(*factor->constant() < 0 ? last : 0));
    }
    for (const auto &[monomial, c] : worst.terms) {
      Poly term(std::abs(c));
      for (const std::string &atom : monomial)
        term = term * Poly::atom(atom);
      (c < 0 ? left : right) = (c < 0 ? left : right) + term;
    }
    auto wide = [&](const Poly &p) {
      return rewrite(polyExpr(model, p), [](const ExprRef &e) -> ExprRef {
        const bool isName = e->kind == ExprKind::Builtin || e->kind == ExprKind::Var || e->kind == ExprKind::Member;
        return isName && e->type.isInt() ? castTo(Type::makeLong(), e) : nullptr;
      });
    };
    result = logicalAnd(result, binary("<=", wide(left), wide(right)));
  }
  return result;
}

llvm::Error optiml::requireStagedApart(KernelState &state, const KernelModel &model, const Stmt *within,
                                       const std::map<std::string, bool> &staged) {
  std::map<std::string, bool> arrays; // whether they are written
  for (const Access &access : model.accesses())
    if (access.space == Space::Global && (!within || insideOf(access, within)) && !isConstantOfFile(model, access))
      arrays[arrayOf(model, access)] |= access.write;
  for (const auto &[array, isWritten] : staged)
    for (const auto &[other, isOtherWritten] : arrays)
      if (other != array && (isWritten || isOtherWritten))
        if (llvm::Error e = requireDisjoint(state, model, array, other))
          return e;
  return llvm::Error::success();
}

std::string optiml::stagedName(std::set<std::string> &taken, std::string array, llvm::StringRef suffix) {
  llvm::replace(array, '.', '_');
  return freshName(taken, array + suffix.str());
}

ExprRef optiml::indexInRow(const KernelModel &model, const Poly &along, const Poly &perThread, const Poly &perRow,
                           const std::string &row) {
  const int64_t width = model.blockExtent(0);
  if (model.blockExtent(1) == 1)
    return polyExpr(model, along + perThread * Poly::atom(row));
  const ExprRef r = var(row, Type::makeInt());
  const ExprRef x = binary("%", r, intLit(width)), y = binary("/", r, intLit(width));
  return add(add(polyExpr(model, along), mul(x, polyExpr(model, perThread))), mul(polyExpr(model, perRow), y));
}

StmtRef optiml::takeTurns(const KernelModel &model, std::set<std::string> &taken, const std::string &tid,
                          int64_t columns, int unroll,
                          llvm::function_ref<StmtRef(const std::string &row, const std::string &column)> move) {
  const Type integer = Type::makeInt();
  const std::string counter = freshName(taken, "i"), element = freshName(taken, "e"), row = freshName(taken, "r"),
                    column = freshName(taken, "c");
  taken.erase(counter); // sibling loops share it
  const ExprRef e = var(element, integer), threads = intLit(model.blockExtent(0) * model.blockExtent(1));
  std::vector<StmtRef> body = {
      declStmt(element, integer.withConst(true), add(var(tid, integer), mul(var(counter, integer), threads)))};
  StmtRef step = move(row, column);
  if (columns == 1) {
    substitute(*step, {{row, e}, {column, intLit(0)}});
  } else {
    body.push_back(declStmt(row, integer.withConst(true), binary("/", e, intLit(columns))));
    body.push_back(declStmt(column, integer.withConst(true), binary("%", e, intLit(columns))));
  }
  body.push_back(step);
  return countedFor(counter, integer, intLit(0), intLit(columns), 1, block(std::move(body)), unroll);
}

namespace {

/// Elements that an access reaches for certain, under conditions that stand around it, outermost first.
struct CertainPlaces {
  std::vector<Guard> conditions;
  std::set<int64_t> places;
};

class SliceFinder {
public:
  explicit SliceFinder(const KernelModel &model) : model(model) {}

  llvm::Expected<OwnSlices> run(llvm::ArrayRef<llvm::StringRef> arrays) {
    for (llvm::StringRef array : arrays)
      if (llvm::Error e = addArray(array.str()))
        return std::move(e);
    findGate();
    for (Slices &slices : all)
      if (llvm::Error e = checkWhole(slices))
        return std::move(e);
    return OwnSlices{std::move(all), std::move(gateFacts)};
  }

private:
  /// The largest number that the kernel accesses in records of this type: they are aligned for it.
  Type wordOf(const Type &record) const {
    int64_t bytes = 0;
    walk(*model.kernel().body, [&](Stmt &s) {
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
    const auto index = splitByThread(model, isDirect ? access.subscripts[0] : model.poly(element->args[1]));
    const auto factor = index ? index->perThread.constant() : std::nullopt;
    if (!factor)
      return notApplicable("the slices of {0} have no constant size (line {1})", slices.array, line);
    const int64_t stride = *factor;
    const Poly &base = index->ofBlock, &within = index->rest, &rowStride = index->perRow;
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
    for (const Guard &condition : common)
      if (auto facts = factsOfBlock(model, condition)) {
        gate.push_back(condition);
        llvm::append_range(gateFacts, *facts);
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
    for (const Guard &guard : conjunctsOf(access.guards))
      if (!holds(gate, guard) && !(guard.second && isLoopHeader(access, guard.first)))
        result.conditions.push_back(guard);
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
                                 findPlace(*model.kernel().body, &s)))
          return notApplicable("{0} is written within an expression (line {1})", slices.array, s.line);
      }
    return llvm::Error::success();
  }

  const KernelModel &model;
  std::vector<Slices> all;
  std::vector<Guard> gate; ///< of the guards
  std::vector<Poly> gateFacts;
};

} // namespace

llvm::Expected<OwnSlices> optiml::findOwnSlices(const KernelModel &model, llvm::ArrayRef<llvm::StringRef> arrays) {
  return SliceFinder(model).run(arrays);
}
