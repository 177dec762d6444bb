//===- Disjoint.cpp - arrays that do not overlap --------------------------===//
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <mutex>

using namespace optiml;

/// A divisor that is 0 has no result, whatever this says.
static Poly quotientAtom(const std::string &value, const std::string &by) {
  return Poly::atom("((" + value + ") / max(" + by + ", 1))");
}

/// (p + 1) / divisor - 1, the greatest quotient of what is at most p, where the division leaves no rest.
static std::optional<Poly> greatestQuotient(const Poly &p, const Poly::Monomial &divisor) {
  Poly result;
  for (const auto &[monomial, coefficient] : (p + Poly(1)).terms) {
    Poly::Monomial rest = monomial;
    for (const std::string &atom : divisor) {
      auto it = std::find(rest.begin(), rest.end(), atom);
      if (it == rest.end())
        return std::nullopt;
      rest.erase(it);
    }
    Poly term(coefficient);
    for (const std::string &atom : rest)
      term = term * Poly::atom(atom);
    result = result + term;
  }
  return result - Poly(1);
}

/// What an integer can be by its type, where that is narrow, and by masks and shifts.
static std::optional<std::pair<int64_t, int64_t>> rangeByType(const ExprRef &e) {
  if (e->type.cls == Type::Class::Bool)
    return {{0, 1}};
  if (!e->type.isInt())
    return std::nullopt;
  std::optional<std::pair<int64_t, int64_t>> result;
  if (e->type.bytes <= 2) {
    int64_t values = int64_t(1) << 8 * e->type.bytes;
    result = e->type.isSigned ? std::pair(-values / 2, values / 2 - 1) : std::pair(int64_t(0), values - 1);
  }
  auto constant = e->args.size() == 2 ? constantValue(e->args[1]) : std::nullopt;
  if (e->kind == ExprKind::Cast && e->type.bytes >= 4) {
    auto inner = rangeByType(e->args[0]);
    return inner && (e->type.isSigned || inner->first >= 0) ? inner : std::nullopt;
  }
  if (e->kind != ExprKind::Binary || !constant || *constant < 0)
    return result;
  auto inner = rangeByType(e->args[0]);
  bool positive = inner && inner->first >= 0, isUnsigned = !e->args[0]->type.isSigned && e->args[0]->type.bytes >= 4;
  if (e->text == "&")
    return {{0, *constant}};
  if (e->text == ">>" && positive && *constant < 63)
    return {{inner->first >> *constant, inner->second >> *constant}};
  if (e->text == ">>" && isUnsigned && *constant > 0 && *constant < 8 * e->type.bytes)
    return {{0, int64_t((e->type.bytes == 8 ? ~uint64_t(0) : uint64_t(UINT32_MAX)) >> *constant)}};
  if (e->text == "/" && positive && *constant > 0)
    return {{inner->first / *constant, inner->second / *constant}};
  if (e->text == "%" && *constant > 0 && (positive || isUnsigned))
    return {{0, *constant - 1}};
  return result;
}

static void addTypeFacts(const KernelModel &model, const Poly &p, std::vector<Poly> &facts) {
  for (const std::string &atom : p.atoms()) {
    ExprRef e = model.atomExpr(atom);
    if (const Stmt *d = model.declaration(atom); d && !e && d->dims.empty())
      e = d->expr && model.singleAssignment(atom) && rangeByType(d->expr) ? castTo(d->type, d->expr)
                                                                          : var(atom, d->type);
    auto range = e ? rangeByType(e) : std::nullopt;
    if (!range)
      continue;
    facts.push_back(Poly::atom(atom) - Poly(range->first));
    facts.push_back(Poly(range->second) - Poly::atom(atom));
  }
}

/// Adds what is known of quotients and remainders of non-negative values by constants and by products of parameters
/// that occur in `p`. The parameters go into `divisors`: the facts hold when they are not negative (a thread that
/// divides by 0 has no result).
static void addDivisionFacts(const KernelModel &model, const Poly &p, std::vector<Poly> &facts,
                             std::set<std::string> &divisors) {
  for (const std::string &atom : p.atoms()) {
    ExprRef e = model.atomExpr(atom);
    if (!e || e->kind != ExprKind::Binary || (e->text != "/" && e->text != "%"))
      continue;
    Poly by = model.poly(e->args[1]);
    auto divisor = by.constant();
    bool product = by.terms.size() == 1 && !divisor && by.terms.begin()->second == 1;
    for (const std::string &factor : by.atoms())
      product &= planText(model, Poly::atom(factor)).has_value();
    if (divisor ? *divisor <= 0 : !product)
      continue;
    Poly value = model.poly(e->args[0]);
    addDivisionFacts(model, value, facts, divisors);
    auto low = lowerBound(model, value, facts), high = upperBound(model, value, facts);
    // An unsigned value may have wrapped around: it has a remainder all the same.
    bool remainder = e->text == "%" && !e->args[0]->type.isSigned && e->args[0]->type.bytes >= 4;
    if (!remainder && (!low || !low->constant() || *low->constant() < 0))
      continue;
    if (product)
      for (const std::string &factor : by.atoms())
        divisors.insert(factor);
    Poly self = Poly::atom(atom);
    facts.push_back(self);
    if (e->text == "%")
      facts.push_back(by - Poly(1) - self);
    else if (high && high->constant() && divisor)
      facts.push_back(Poly(*high->constant() / *divisor) - self);
    else if (high && product) {
      auto most = greatestQuotient(*high, by.terms.begin()->first);
      if (auto text = most ? std::nullopt : originalPlanText(model, *high))
        most = quotientAtom(*text, by.str());
      facts.push_back(most.value_or(*high) - self);
    }
  }
}

namespace {

/// Element indices [low, end) of an array over the whole launch, as text for IntExpr.
struct Range {
  std::vector<std::string> low, end; ///< of which the least, and the greatest, count
  std::set<std::string> nonNegative; ///< strides that must be >= 0: parameters, and sums of them
  unsigned bytes = 0;
};

} // namespace

/// Takes out of `index` what varies with a stride like `width - size + 1`, whose parts bounded one by one would say
/// little: by stride, what it multiplies.
static std::vector<std::pair<Poly, Poly>> takeCompoundStrides(const KernelModel &model, Poly &index) {
  std::vector<std::pair<Poly, Poly>> result;
  for (const std::string &atom : index.atoms()) {
    auto stride = isParameter(model, atom) ? std::nullopt : index.coefficient(atom);
    auto all = [&](auto sign) {
      return llvm::all_of(stride->terms, [&](const auto &term) { return sign(term.second); });
    };
    if (!stride || stride->terms.size() < 2 || !onlyLaunchConstants(model, *stride) ||
        all([](int64_t c) { return c > 0; }) || all([](int64_t c) { return c < 0; }))
      continue;
    index = index - *stride * Poly::atom(atom);
    auto known = std::find_if(result.begin(), result.end(), [&](const auto &d) { return d.first == *stride; });
    if (known == result.end())
      result.emplace_back(*stride, Poly::atom(atom));
    else
      known->second = known->second + Poly::atom(atom);
  }
  return result;
}

/// An index that is chosen by conditions (clamp, ?:, min, max): what it is in each case.
struct GuardedIndex {
  Poly index;
  std::vector<Poly> facts;
  std::vector<Poly> choices = {}; ///< what else holds as these were made

  void choose(const std::string &atom, const Poly &value) {
    index = index.substitute(atom, value);
    for (Poly &fact : choices) // of those around this one
      fact = fact.substitute(atom, value);
  }
};
constexpr size_t mostGuardedIndices = 16;

/// False when there are too many.
static bool addCases(const KernelModel &model, GuardedIndex one, std::vector<GuardedIndex> &into) {
  for (const std::string &atom : one.index.atoms()) {
    ExprRef e = model.atomExpr(atom);
    bool isMin = e && e->kind == ExprKind::Call && e->isLibrary && e->text == "min",
         isMax = e && e->kind == ExprKind::Call && e->isLibrary && e->text == "max";
    if (!e || !e->type.isInt() || (e->kind != ExprKind::Cond && !isMin && !isMax))
      continue;
    bool isCond = e->kind == ExprKind::Cond;
    ExprRef first = e->args[isCond ? 1 : 0], second = e->args[isCond ? 2 : 1];
    Poly a = model.poly(first), b = model.poly(second);
    GuardedIndex other = one;
    one.choose(atom, a);
    other.choose(atom, b);
    if (isCond) {
      model.addFacts(e->args[0], true, one.choices);
      model.addFacts(e->args[0], false, other.choices);
    } else {
      one.choices.push_back(isMin ? b - a : a - b);
      other.choices.push_back(isMin ? a - b : b - a);
    }
    return addCases(model, std::move(one), into) && addCases(model, std::move(other), into);
  }
  llvm::append_range(one.facts, one.choices);
  into.push_back(std::move(one));
  return into.size() <= mostGuardedIndices;
}

/// The launch has a thread along each axis, and `natural` are not negative.
static bool neverNegative(const Poly &p, const std::set<std::string> &natural) {
  Poly above = p; // with extents that count what they have beyond one
  for (const std::string &atom : p.atoms())
    if (isLaunchExtent(atom))
      above = above.substitute(atom, Poly::atom(atom) + Poly(1));
    else if (!natural.count(atom))
      return false;
  return llvm::all_of(above.terms, [](const auto &term) { return term.second >= 0; });
}

/// Of these, which conditions can name, the ones below (or, with `from` = -1, above) which no other always lies.
/// Nothing: there are too many.
static std::optional<std::vector<std::string>> extremes(const KernelModel &model, const std::vector<Poly> &places,
                                                        int64_t from, const std::set<std::string> &natural) {
  constexpr size_t most = 6; // each doubles the text that compares them
  std::vector<Poly> left;
  for (const Poly &place : places) {
    auto covers = [&](const Poly &a, const Poly &b) { return neverNegative(Poly(from) * (b - a), natural); };
    if (llvm::any_of(left, [&](const Poly &other) { return covers(other, place); }))
      continue;
    llvm::erase_if(left, [&](const Poly &other) { return covers(place, other); });
    left.push_back(place);
  }
  if (left.size() > most)
    return std::nullopt;
  std::vector<std::string> texts;
  for (const Poly &place : left)
    texts.push_back(*originalPlanText(model, place));
  return texts;
}

static llvm::Expected<Range> touchedRange(const KernelModel &model, const std::string &array) {
  Range range;
  std::vector<Poly> lows, ends;
  for (const Access &access : model.accesses()) {
    if (access.array != array)
      continue;
    if (access.subscripts.size() != 1)
      return notApplicable("{0} is accessed in a way whose extent is not understood", array);
    range.bytes = std::max(range.bytes, access.bytes);
    std::vector<GuardedIndex> cases;
    if (!addCases(model, {access.subscripts[0], model.facts(access)}, cases))
      return notApplicable("the range of {0} that the kernel touches cannot be bounded (line {1})", array,
                           access.stmt->line);
    for (GuardedIndex &one : cases) {
      Poly &index = one.index;
      std::vector<Poly> &facts = one.facts;
      for (std::string axis : {"x", "y", "z"})
        facts.push_back(Poly::atom("gridDim." + axis) * Poly::atom("blockDim." + axis) -
                        Poly::atom("globalIdx." + axis) - Poly(1));
      addTypeFacts(model, index, facts);
      addDivisionFacts(model, index, facts, range.nonNegative);
      std::vector<std::pair<Poly, Poly>> parts = takeCompoundStrides(model, index);
      for (const auto &[stride, value] : parts)
        if (auto text = originalPlanText(model, stride))
          range.nonNegative.insert(*text);
        else
          return notApplicable("the range of {0} that the kernel touches cannot be bounded (line {1})", array,
                               access.stmt->line);
      auto dims = delinearize(model, index, /*launch=*/true);
      for (const Dimension &d : dims.value_or(std::vector<Dimension>())) {
        Poly stride(1);
        for (const std::string &atom : d.stride) {
          stride = stride * Poly::atom(atom);
          if (!isLaunchExtent(atom))
            range.nonNegative.insert(atom);
        }
        parts.emplace_back(stride, d.value);
      }
      Poly low, high;
      bool ok = dims.has_value();
      for (size_t i = 0; ok && i < parts.size(); ++i) {
        const auto &[stride, value] = parts[i];
        auto up = upperBound(model, value, facts), down = lowerBound(model, value, facts);
        ok = up && down;
        if (!ok)
          break;
        low = low + stride * *down;
        high = high + stride * *up;
      }
      if (!ok || !originalPlanText(model, low) || !originalPlanText(model, high))
        return notApplicable("the range of {0} that the kernel touches cannot be bounded (line {1})", array,
                             access.stmt->line);
      lows.push_back(low);
      ends.push_back(high + Poly(1));
    }
  }
  auto low = extremes(model, lows, 1, range.nonNegative), end = extremes(model, ends, -1, range.nonNegative);
  if (!low || !end)
    return notApplicable("the range of {0} that the kernel touches has too many ends", array);
  range.low = *low;
  range.end = *end;
  return range;
}

static std::string folded(const char *function, const std::vector<std::string> &texts) {
  std::string result = texts[0];
  for (size_t i = 1; i < texts.size(); ++i)
    result = std::string(function) + "(" + result + ", " + texts[i] + ")";
  return result;
}

/// Both arrays are accessed as numbers only (or as members of records that are numbers), of types of which C++ lets
/// none access an object of the other: int and float, not int and unsigned, nor bytes.
static bool typesApart(const KernelModel &model, const Param &a, const Param &b) {
  std::vector<const Type *> ofA, ofB;
  for (const Access &access : model.accesses())
    if (access.array == a.name || access.array == b.name)
      (access.array == a.name ? ofA : ofB).push_back(&access.place->type);
  auto number = [](const Type *t) { return (t->cls == Type::Class::Int || t->isFloat()) && t->bytes > 1; };
  return !ofA.empty() && !ofB.empty() && llvm::all_of(ofA, number) && llvm::all_of(ofB, number) &&
         llvm::none_of(ofA, [&](const Type *x) {
           return llvm::any_of(ofB, [&](const Type *y) { return x->cls == y->cls && x->bytes == y->bytes; });
         });
}

/// All states that come from one original ask the same of it, again and again, from several threads.
class optiml::TouchedRanges {
public:
  explicit TouchedRanges(std::shared_ptr<const Kernel> kernel) : kernel(std::move(kernel)) {}

  const KernelModel &model() {
    analyze();
    return *made;
  }
  /// Parameters that the kernel changes.
  const std::set<std::string> &changed() {
    analyze();
    return changes;
  }

  llvm::Expected<Range> of(const std::string &array) {
    std::lock_guard<std::mutex> guard(lock);
    auto [it, isNew] = found.try_emplace(array);
    if (isNew) {
      if (llvm::Expected<Range> range = touchedRange(model(), array))
        it->second.range = std::move(*range);
      else
        it->second.refusal = llvm::toString(range.takeError());
    }
    if (!it->second.refusal.empty())
      return notApplicable("{0}", it->second.refusal);
    return it->second.range;
  }

  const std::shared_ptr<const Kernel> kernel;

private:
  void analyze() {
    std::call_once(once, [&] {
      made.emplace(*kernel, std::array<int64_t, 3>{0, 0, 0});
      changes = changedParameters(*kernel);
    });
  }
  struct Found {
    Range range;
    std::string refusal; ///< why there is none
  };
  std::once_flag once;
  std::optional<KernelModel> made;
  std::set<std::string> changes;
  std::mutex lock;
  std::map<std::string, Found> found;
};

/// The first access of the array; null: there is none.
static const Access *accessOf(const KernelModel &model, const std::string &array) {
  auto access = llvm::find_if(model.accesses(), [&](const Access &a) { return a.array == array; });
  return access == model.accesses().end() ? nullptr : &*access;
}

/// The array of records whose members' elements these are, or the array itself.
static std::string arrayAround(const KernelModel &model, const std::string &array) {
  const Access *access = model.param(array) ? nullptr : accessOf(model, array);
  return access ? model.ofWholeRecord(*access).array : array;
}

static bool isConstantArray(const KernelModel &model, const std::string &array) {
  const Access *access = accessOf(model, array);
  return access && isConstantOfFile(model, *access);
}

llvm::Error optiml::requireDisjoint(KernelState &state, const KernelModel &model, const std::string &first,
                                    const std::string &second, bool byType, int64_t firstOfA) {
  if (isConstantArray(model, first) || isConstantArray(model, second)) // the other one is changed
    return llvm::Error::success();
  const std::string a = arrayAround(model, first), b = arrayAround(model, second);
  if (a == b && first != second)
    return notApplicable("{0} and {1} lie in one array", first, second);
  const Param *pa = model.param(a), *pb = model.param(b);
  if (!pa || !pb || !pa->type.isPointer() || !pb->type.isPointer())
    return notApplicable("whether {0} and {1} overlap cannot be tested: they are not both plain pointer parameters", a,
                         b);
  for (const Param *p : {pa, pb})
    if (p->type.pointee && p->type.pointee->isPointer())
      return notApplicable("'{0}' points to pointers, which may lead anywhere", p->name);
  if (pa->type.isRestrict && pb->type.isRestrict)
    return llvm::Error::success();
  // No rewrite touches more than the original does, and there the bounds are still plain.
  if (!state.touched || state.touched->kernel != state.original)
    state.touched = touchedRanges(state.original);
  TouchedRanges &touched = *state.touched;
  for (const std::string &array : {a, b})
    if (touched.changed().count(array))
      return notApplicable("'{0}' is moved by the kernel itself", array);
  if (!pa->type.pointee || !pb->type.pointee)
    return notApplicable("what {0} and {1} point to is not known", a, b);
  auto ra = firstOfA ? llvm::Expected<Range>(Range{{"0"}, {std::to_string(firstOfA)}, {}, pa->type.pointee->bytes})
                     : touched.of(a);
  auto rb = touched.of(b);
  if (!ra || !rb) {
    llvm::Error e =
        llvm::joinErrors(ra ? llvm::Error::success() : ra.takeError(), rb ? llvm::Error::success() : rb.takeError());
    llvm::consumeError(std::move(e));
    // Programs that break the rule exist: it is for where no range is known.
    if (byType && typesApart(touched.model(), *pa, *pb))
      return llvm::Error::success();
    // No index leads out of the allocation that its pointer leads into.
    state.require(IntExpr::of("apart(" + std::min(a, b) + ", " + std::max(a, b) + ")"),
                  std::min(a, b) + " and " + std::max(a, b) + " must lie in different allocations");
    return llvm::Error::success();
  }
  if (ra->low.empty() || rb->low.empty())
    return llvm::Error::success();
  for (const Range *r : {&*ra, &*rb})
    for (const std::string &name : r->nonNegative)
      if (const Param *p = model.param(name); !p || p->type.isSigned)
        state.require(name + " >= 0", "index arithmetic assumes it");
  auto text = [](const std::string &name, const Range &r) {
    std::string low = folded("min", r.low), end = folded("max", r.end), size = std::to_string(r.bytes);
    std::string start = low == "0" ? name : name + " + " + size + " * (" + low + ")";
    std::string bytes = size + " * (" + end + (low == "0" ? "" : " - (" + low + ")") + ")";
    return start + ", " + bytes;
  };
  bool swap = b < a;
  IntExpr condition = IntExpr::of("disjoint(" + (swap ? text(b, *rb) : text(a, *ra)) + ", " +
                                  (swap ? text(a, *ra) : text(b, *rb)) + ")");
  condition = condition.substitute([&](const std::string &name) {
    return name.starts_with("block.") ? std::optional(state.originalExtents[size_t(name.back() - 'x')]) : std::nullopt;
  });
  state.require(condition, (swap ? b : a) + " and " + (swap ? a : b) + " must not overlap");
  return llvm::Error::success();
}

std::shared_ptr<TouchedRanges> optiml::touchedRanges(std::shared_ptr<const Kernel> original) {
  return std::make_shared<TouchedRanges>(std::move(original));
}
