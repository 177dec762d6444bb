//===- Bounds.cpp - ranges of indices, and arrays that do not overlap -----===//
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

bool optiml::isParameter(const KernelModel &model, const std::string &atom) {
  if (const Param *p = model.param(atom))
    return p->type.isInt() && model.stable(Poly::atom(atom));
  size_t dot = atom.find('.');
  if (dot == std::string::npos)
    return false;
  const Param *p = model.param(atom.substr(0, dot));
  return p && p->type.cls == Type::Class::Record && model.stable(var(p->name, p->type));
}

/// "p.n", an integer that conditions can name.
static bool isIntegerField(const KernelModel &model, llvm::StringRef atom) {
  auto [base, member] = atom.split('.');
  const Param *param = model.param(base.str());
  return param && llvm::any_of(param->fields, [&, name = member](const Param::Field &field) {
           return field.name == name && field.type.cls == Type::Class::Int;
         });
}

std::optional<std::string> optiml::planText(const KernelModel &model, const Poly &p) {
  for (const std::string &atom : p.atoms())
    if (!isParameter(model, atom) || !(model.param(atom) || isIntegerField(model, atom)))
      return std::nullopt;
  return p.str();
}

static bool isLaunchExtent(llvm::StringRef atom) {
  return atom.starts_with("gridDim.") || atom.starts_with("blockDim.");
}

std::optional<std::vector<Dimension>> optiml::delinearize(const KernelModel &model, const Poly &index, bool launch) {
  std::map<Poly::Monomial, Poly> parts;
  for (const auto &[monomial, coefficient] : index.terms) {
    Poly::Monomial stride, varying;
    for (const std::string &atom : monomial)
      (isParameter(model, atom) || (launch && isLaunchExtent(atom)) ? stride : varying).push_back(atom);
    if (varying.size() > 1)
      return std::nullopt;
    // A lone parameter is an offset, not a stride, when nothing varies with it.
    Poly value = varying.empty() ? Poly(coefficient) : Poly(coefficient) * Poly::atom(varying[0]);
    parts[stride] = parts[stride] + value;
  }
  // Offsets by parameters that are no stride of anything varying belong to the unit dimension.
  std::vector<Dimension> result;
  Poly unit = parts.count({}) ? parts[{}] : Poly();
  for (auto &[stride, value] : parts) {
    if (stride.empty())
      continue;
    if (value.constant()) {
      Poly offset = value;
      for (const std::string &atom : stride)
        offset = offset * Poly::atom(atom);
      unit = unit + offset;
      continue;
    }
    result.push_back({stride, value});
  }
  if (!unit.terms.empty() || result.empty())
    result.push_back({{}, unit});
  return result;
}

/// A quotient of such values, as an atom: its text for IntExpr. A divisor that is 0 has no result, whatever this says.
static bool isQuotient(const std::string &atom) { return atom.starts_with("(("); }
static Poly quotientAtom(const std::string &value, const std::string &by) {
  return Poly::atom("((" + value + ") / max(" + by + ", 1))");
}

/// The same for a whole launch: parameters, and how many blocks and threads there are.
static bool isLaunchConstant(const KernelModel &model, const std::string &atom) {
  return isParameter(model, atom) || isLaunchExtent(atom) || isQuotient(atom);
}

static bool onlyLaunchConstants(const KernelModel &model, const Poly &p) {
  std::set<std::string> atoms = p.atoms();
  return std::all_of(atoms.begin(), atoms.end(), [&](const std::string &a) { return isLaunchConstant(model, a); });
}

/// planText for a polynomial over the original kernel, whose gridDim and blockDim are those of the original launch.
static std::optional<std::string> originalPlanText(const KernelModel &original, Poly p) {
  for (std::string axis : {"x", "y", "z"})
    p = p.substitute("gridDim." + axis, Poly::atom("grid." + axis))
            .substitute("blockDim." + axis, Poly::atom("block." + axis));
  for (const std::string &atom : p.atoms())
    if (!atom.starts_with("grid.") && !atom.starts_with("block.") && !isQuotient(atom) &&
        !planText(original, Poly::atom(atom)))
      return std::nullopt;
  return p.str();
}

/// Depth-first: eliminate the varying atoms of p one by one with facts that bound them from above.
static std::optional<Poly> eliminate(const KernelModel &model, const Poly &p, const std::vector<Poly> &facts,
                                     unsigned depth) {
  if (onlyLaunchConstants(model, p))
    return p;
  if (depth == 0)
    return std::nullopt;
  std::string target;
  for (const std::string &atom : p.atoms())
    if (!isLaunchConstant(model, atom)) {
      target = atom;
      break;
    }
  auto c = p.coefficient(target);
  auto coefficient = c ? c->constant() : std::nullopt;
  if (!coefficient)
    return std::nullopt;
  // Facts that leave less to eliminate come first, then those that cancel more than they add; the launch's size, which
  // is rounded up, last.
  std::vector<std::pair<std::tuple<bool, size_t, size_t>, Poly>> candidates;
  auto left = [&](const Poly &p) {
    return size_t(llvm::count_if(p.atoms(), [&](const std::string &atom) { return !isLaunchConstant(model, atom); }));
  };
  auto ofLaunch = [](const Poly &p) {
    return llvm::any_of(p.atoms(), [](llvm::StringRef atom) { return atom.starts_with("gridDim."); });
  };
  for (const Poly &fact : facts) {
    auto f = fact.coefficient(target);
    auto fc = f ? f->constant() : std::nullopt;
    if (!fc || *fc == 0 || (*fc > 0) == (*coefficient > 0) || *coefficient % *fc != 0)
      continue;
    Poly next = p + Poly(-*coefficient / *fc) * fact;
    candidates.emplace_back(std::tuple(ofLaunch(fact), left(next), next.terms.size()), next);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto &a, const auto &b) { return a.first < b.first; });
  for (const auto &[order, next] : candidates)
    if (auto result = eliminate(model, next, facts, depth - 1))
      return result;
  return std::nullopt;
}

/// Without facts that others imply: of "x >= 0" and "x - 1 >= 0" the second.
static std::vector<Poly> tightest(const std::vector<Poly> &facts) {
  std::vector<Poly> result;
  for (size_t i = 0; i < facts.size(); ++i) {
    bool implied = false;
    for (size_t k = 0; k < facts.size() && !implied; ++k)
      if (auto slack = (facts[i] - facts[k]).constant(); slack && k != i)
        implied = *slack > 0 || (*slack == 0 && k < i);
    if (!implied)
      result.push_back(facts[i]);
  }
  return result;
}

std::optional<Poly> optiml::upperBound(const KernelModel &model, const Poly &p, const std::vector<Poly> &facts) {
  return eliminate(model, p, tightest(facts), 6);
}
std::optional<Poly> optiml::lowerBound(const KernelModel &model, const Poly &p, const std::vector<Poly> &facts) {
  auto bound = eliminate(model, Poly(0) - p, tightest(facts), 6);
  if (!bound)
    return std::nullopt;
  return Poly(0) - *bound;
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

/// Element indices [low, end) of an array over the whole launch, as text for IntExpr.
struct Range {
  std::vector<std::string> low, end; ///< one an access
  std::set<std::string> nonNegative; ///< strides that must be >= 0: parameters, and sums of them
  unsigned bytes = 0;
};

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
struct IndexCase {
  Poly index;
  std::vector<Poly> facts;
};
constexpr size_t mostIndexCases = 16;

/// False when there are too many.
static bool addCases(const KernelModel &model, IndexCase one, std::vector<IndexCase> &into) {
  for (const std::string &atom : one.index.atoms()) {
    ExprRef e = model.atomExpr(atom);
    bool isMin = e && e->kind == ExprKind::Call && e->isLibrary && e->text == "min",
         isMax = e && e->kind == ExprKind::Call && e->isLibrary && e->text == "max";
    if (!e || !e->type.isInt() || (e->kind != ExprKind::Cond && !isMin && !isMax))
      continue;
    bool isCond = e->kind == ExprKind::Cond;
    ExprRef first = e->args[isCond ? 1 : 0], second = e->args[isCond ? 2 : 1];
    Poly a = model.poly(first), b = model.poly(second);
    IndexCase other{one.index.substitute(atom, b), one.facts};
    one.index = one.index.substitute(atom, a);
    if (isCond) {
      model.addFacts(e->args[0], true, one.facts);
      model.addFacts(e->args[0], false, other.facts);
    } else {
      one.facts.push_back(isMin ? b - a : a - b);
      other.facts.push_back(isMin ? a - b : b - a);
    }
    return addCases(model, std::move(one), into) && addCases(model, std::move(other), into);
  }
  into.push_back(std::move(one));
  return into.size() <= mostIndexCases;
}

static llvm::Expected<Range> touchedRange(const KernelModel &model, const std::string &array) {
  Range range;
  for (const Access &access : model.accesses()) {
    if (access.array != array)
      continue;
    if (access.subscripts.size() != 1)
      return notApplicable("{0} is accessed in a way whose extent is not understood", array);
    range.bytes = std::max(range.bytes, access.bytes);
    std::vector<IndexCase> cases;
    if (!addCases(model, {access.subscripts[0], model.facts(access)}, cases))
      return notApplicable("the range of {0} that the kernel touches cannot be bounded (line {1})", array,
                           access.stmt->line);
    for (auto &[index, facts] : cases) {
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
      auto lowText = ok ? originalPlanText(model, low) : std::nullopt;
      auto endText = ok ? originalPlanText(model, high + Poly(1)) : std::nullopt;
      if (!lowText || !endText)
        return notApplicable("the range of {0} that the kernel touches cannot be bounded (line {1})", array,
                             access.stmt->line);
      auto note = [](std::vector<std::string> &list, const std::string &text) {
        if (std::find(list.begin(), list.end(), text) == list.end())
          list.push_back(text);
      };
      note(range.low, *lowText);
      note(range.end, *endText);
    }
  }
  return range;
}

static std::string folded(const char *function, const std::vector<std::string> &texts) {
  std::string result = texts[0];
  for (size_t i = 1; i < texts.size(); ++i)
    result = std::string(function) + "(" + result + ", " + texts[i] + ")";
  return result;
}

bool optiml::isConstantOfFile(const KernelModel &model, const Access &access) {
  const ExprRef &root = access.root;
  bool isArray = root->type.cls == Type::Class::Pointer && root->type.text.find('[') != std::string::npos;
  return root->kind == ExprKind::Var && isArray && !model.param(access.array) && !model.declaration(access.array) &&
         (access.node->type.isConst || root->type.isConst);
}

std::set<std::string> optiml::changedParameters(const Kernel &kernel) {
  std::set<std::string> result;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (!mayChange(e))
      return;
    const Expr *target = objectOf(e->args[0]);
    for (const Param &param : kernel.params)
      if (target->kind == ExprKind::Var && target->text == param.name)
        result.insert(param.name);
  });
  return result;
}

llvm::Error optiml::requireConstantParameters(const Kernel &kernel) {
  std::set<std::string> changed = changedParameters(kernel);
  if (changed.empty())
    return llvm::Error::success();
  return notApplicable("the kernel changes its parameter '{0}'", *changed.begin());
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

llvm::Error optiml::requireDisjoint(KernelState &state, const KernelModel &model, const std::string &a,
                                    const std::string &b, bool byType, int64_t firstOfA) {
  const Param *pa = model.param(a), *pb = model.param(b);
  if (!pa || !pb || !pa->type.isPointer() || !pb->type.isPointer())
    return notApplicable("whether {0} and {1} overlap cannot be tested: they are not both plain pointer parameters", a,
                         b);
  for (const Param *p : {pa, pb})
    if (p->type.pointee && p->type.pointee->isPointer())
      return notApplicable("'{0}' points to pointers, which may lead anywhere", p->name);
  if (pa->type.isRestrict && pb->type.isRestrict)
    return llvm::Error::success();
  std::set<std::string> changed = changedParameters(*state.original);
  if (changed.count(a) || changed.count(b))
    return notApplicable("'{0}' is moved by the kernel itself", changed.count(a) ? a : b);
  // No rewrite touches more than the original does, and there the bounds are still plain.
  KernelModel before(*state.original, {0, 0, 0});
  if (!pa->type.pointee || !pb->type.pointee)
    return notApplicable("what {0} and {1} point to is not known", a, b);
  auto ra = firstOfA ? llvm::Expected<Range>(Range{{"0"}, {std::to_string(firstOfA)}, {}, pa->type.pointee->bytes})
                     : touchedRange(before, a);
  auto rb = touchedRange(before, b);
  if (!ra || !rb) {
    llvm::Error e =
        llvm::joinErrors(ra ? llvm::Error::success() : ra.takeError(), rb ? llvm::Error::success() : rb.takeError());
    // Programs that break the rule exist: it is for where no test can be made.
    if (!byType || !typesApart(before, *pa, *pb))
      return e;
    llvm::consumeError(std::move(e));
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
  std::string first = a, second = b;
  bool swap = b < a;
  IntExpr condition = IntExpr::of("disjoint(" + (swap ? text(b, *rb) : text(a, *ra)) + ", " +
                                  (swap ? text(a, *ra) : text(b, *rb)) + ")");
  condition = condition.substitute([&](const std::string &name) {
    return name.starts_with("block.") ? std::optional(state.originalExtents[size_t(name.back() - 'x')]) : std::nullopt;
  });
  state.require(condition, (swap ? b : a) + " and " + (swap ? a : b) + " must not overlap");
  return llvm::Error::success();
}

std::optional<Poly> optiml::globalUpperBound(const KernelModel &model, unsigned axis) {
  return upperBoundOf(model, std::string("globalIdx.") + char('x' + axis));
}

std::optional<Poly> optiml::upperBoundOf(const KernelModel &model, const std::string &index, bool ofWrites) {
  if (model.unknownEffectLine())
    return std::nullopt;
  std::optional<std::vector<Poly>> common;
  for (const Access &access : model.accesses()) {
    if (access.space == Space::Local || (ofWrites && !access.write))
      continue;
    std::vector<Poly> bounds; // U with globalIdx < U
    for (const Poly &fact : model.facts(access)) {
      auto c = fact.coefficient(index);
      if (!c || c->constant() != std::optional<int64_t>(-1))
        continue;
      Poly u = fact + Poly::atom(index) + Poly(1);
      std::set<std::string> atoms = u.atoms();
      if (std::all_of(atoms.begin(), atoms.end(), [&](const std::string &a) { return isParameter(model, a); }))
        bounds.push_back(u);
    }
    if (!common) {
      common = bounds;
      continue;
    }
    // Inner points may have a tighter bound than the edge: the wider one holds for both.
    auto holds = [](const std::vector<Poly> &known, const Poly &u) {
      return std::any_of(known.begin(), known.end(),
                         [&](const Poly &k) { return (u - k).constant().value_or(-1) >= 0; });
    };
    std::vector<Poly> both;
    for (const auto &[some, others] : {std::pair(&*common, &bounds), {&bounds, &*common}})
      for (const Poly &u : *some)
        if (holds(*others, u) && std::find(both.begin(), both.end(), u) == both.end())
          both.push_back(u);
    common = both;
  }
  if (!common || common->empty())
    return std::nullopt;
  return common->front();
}

/// Guards of the form scale * index < end, taken apart at "&&".
static void addScaledBounds(const KernelModel &model, const std::string &index, const ExprRef &condition,
                            std::vector<ScaledBound> &into) {
  if (condition->kind != ExprKind::Binary)
    return;
  if (condition->text == "&&") {
    for (const ExprRef &part : condition->args)
      addScaledBounds(model, index, part, into);
    return;
  }
  if (condition->text != "<" && condition->text != ">")
    return;
  const ExprRef &low = condition->args[condition->text == ">"], &high = condition->args[condition->text == "<"];
  if (!low->type.isInt() || !high->type.isInt() || high->type.bytes < 4)
    return;
  Poly multiple = model.poly(low), end = model.poly(high);
  auto scale = multiple.coefficient(index);
  auto constant = scale ? scale->constant() : std::nullopt;
  if (!constant || *constant < 2 || !(multiple == *scale * Poly::atom(index)) || !planText(model, end))
    return;
  into.push_back({*constant, condition, high});
}

std::optional<ScaledBound> optiml::scaledUpperBound(const KernelModel &model, unsigned axis) {
  std::string index = std::string("globalIdx.") + char('x' + axis);
  if (model.unknownEffectLine())
    return std::nullopt;
  std::optional<std::vector<ScaledBound>> common;
  for (const Access &access : model.accesses()) {
    if (access.space == Space::Local)
      continue;
    std::vector<ScaledBound> bounds;
    for (const auto &[condition, taken] : access.guards)
      if (taken)
        addScaledBounds(model, index, condition, bounds);
    if (!common) {
      common = bounds;
      continue;
    }
    std::erase_if(*common, [&](const ScaledBound &b) {
      return std::none_of(bounds.begin(), bounds.end(),
                          [&](const ScaledBound &other) { return equal(b.guard, other.guard); });
    });
  }
  if (!common || common->empty())
    return std::nullopt;
  return common->front();
}
