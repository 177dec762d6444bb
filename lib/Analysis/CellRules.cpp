//===- CellRules.cpp - neighbours across the edges of a grid --------------===//
//
// A rule for the edges (clamp, mirror, ring) is taken apart into cases, in each of which the index is a polynomial.
// Either it stays near the own cell in all of them, or it is in all of them the cell at one distance around a ring.
//
//===----------------------------------------------------------------------===//
#include "optiml/Analysis/CellRules.h"
#include "optiml/Analysis/IntegerSet.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

static constexpr size_t mostCases = 16;
static constexpr int64_t mostReach = 8, mostTurns = 2;

namespace {

using Cases = std::vector<IndexCase>;
using Facts = std::vector<Poly>;

class RuleWalker {
public:
  RuleWalker(const KernelModel &model, const BoundaryCondition &rule) : model(model), rule(rule) {}
  std::optional<Cases> value(const ExprRef &e) const;

private:
  const KernelModel &model;
  const BoundaryCondition &rule;
  std::optional<Cases> both(const ExprRef &a, const ExprRef &b,
                            const std::function<void(const Poly &, const Poly &, Facts, Cases &)> &f) const;
  std::optional<std::vector<Facts>> condition(const ExprRef &e, bool taken) const;
};

bool proved(Facts facts, const Poly &p) { // p >= 0
  facts.push_back(Poly(-1) - p);
  return isEmptySet(facts);
}

Facts joined(Facts a, const Facts &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

} // namespace

std::optional<Cases> RuleWalker::both(const ExprRef &a, const ExprRef &b,
                                      const std::function<void(const Poly &, const Poly &, Facts, Cases &)> &f) const {
  auto left = value(a), right = value(b);
  if (!left || !right)
    return std::nullopt;
  Cases result;
  for (const IndexCase &x : *left)
    for (const IndexCase &y : *right) {
      if (x.modulus || y.modulus)
        return std::nullopt;
      f(x.value, y.value, joined(x.facts, y.facts), result);
    }
  return result.size() <= mostCases ? std::optional(result) : std::nullopt;
}

std::optional<std::vector<Facts>> RuleWalker::condition(const ExprRef &e, bool taken) const {
  if (isUnary(e, "!"))
    return condition(e->args[0], !taken);
  if (e->kind != ExprKind::Binary)
    return std::nullopt;
  if (e->text == "&&" || e->text == "||") {
    auto a = condition(e->args[0], taken), b = condition(e->args[1], taken);
    if (!a || !b)
      return std::nullopt;
    std::vector<Facts> result;
    if ((e->text == "||") == taken) {
      result = *a;
      result.insert(result.end(), b->begin(), b->end());
    } else {
      for (const Facts &x : *a)
        for (const Facts &y : *b)
          result.push_back(joined(x, y));
    }
    return result;
  }
  if (inverseComparison(e->text).empty())
    return std::nullopt;
  std::string op = taken ? e->text : inverseComparison(e->text);
  std::vector<Facts> result;
  auto done = both(e->args[0], e->args[1], [&](const Poly &a, const Poly &b, const Facts &facts, Cases &) {
    Poly d = a - b, r = b - a;
    if (op == "<" || op == "!=")
      result.push_back(joined(facts, {r - Poly(1)}));
    if (op == ">" || op == "!=")
      result.push_back(joined(facts, {d - Poly(1)}));
    if (op == "<=")
      result.push_back(joined(facts, {r}));
    if (op == ">=")
      result.push_back(joined(facts, {d}));
    if (op == "==")
      result.push_back(joined(facts, {d, r}));
  });
  return done ? std::optional(result) : std::nullopt;
}

std::optional<Cases> RuleWalker::value(const ExprRef &e) const {
  if (isVar(e, BoundaryCondition::name()))
    return Cases{{rule.coordinate, {}, std::nullopt}};
  if (!mentions(e, BoundaryCondition::name()))
    return e->type.isInt() ? std::optional(Cases{{model.poly(e), {}, std::nullopt}}) : std::nullopt;
  if (e->kind == ExprKind::Cast && e->type.isInt() && e->type.bytes >= 4)
    return value(e->args[0]);
  bool call = e->kind == ExprKind::Call && e->isLibrary && e->args.size() == 2;
  llvm::StringRef name = e->text;
  name.consume_front("::");
  name.consume_front("std::");
  if (call && (name == "min" || name == "max"))
    return both(e->args[0], e->args[1], [&](const Poly &a, const Poly &b, const Facts &facts, Cases &into) {
      bool least = name == "min";
      into.push_back({a, joined(facts, {least ? b - a : a - b}), std::nullopt});
      into.push_back({b, joined(facts, {least ? a - b - Poly(1) : b - a - Poly(1)}), std::nullopt});
    });
  if (e->kind == ExprKind::Cond) {
    Cases result;
    for (unsigned side : {1u, 2u}) {
      auto when = condition(e->args[0], side == 1);
      auto then = value(e->args[side]);
      if (!when || !then)
        return std::nullopt;
      for (const Facts &facts : *when)
        for (const IndexCase &one : *then)
          result.push_back({one.value, joined(facts, one.facts), one.modulus});
    }
    return result.size() <= mostCases ? std::optional(result) : std::nullopt;
  }
  if (e->kind == ExprKind::Binary && (e->text == "+" || e->text == "-" || e->text == "*"))
    return both(e->args[0], e->args[1], [&](const Poly &a, const Poly &b, const Facts &facts, Cases &into) {
      into.push_back({e->text == "+" ? a + b : e->text == "-" ? a - b : a * b, facts, std::nullopt});
    });
  if (isBinary(e, "%") && !mentions(e->args[1], BoundaryCondition::name()))
    return both(e->args[0], e->args[1],
                [&](const Poly &a, const Poly &b, const Facts &facts, Cases &into) { into.push_back({a, facts, b}); });
  return std::nullopt;
}

std::optional<std::vector<IndexCase>> optiml::ruleCases(const KernelModel &model, const BoundaryCondition &rule) {
  return RuleWalker(model, rule).value(rule.rule);
}

/// Sets how far `p` goes below and above 0 where the facts hold; false when that is far.
static bool addReach(const Facts &facts, const Poly &p, CellDistance &one) {
  for (bool above : {false, true}) {
    int64_t &reach = above ? one.high : one.low;
    while (reach <= mostReach && !proved(facts, above ? Poly(reach) - p : p + Poly(reach)))
      ++reach;
    if (reach > mostReach)
      return false;
  }
  return true;
}

/// How far a cell around the ring may lie: as one of the cases says, up to whole rounds.
static std::vector<Poly> ringDistances(const KernelModel &model, const Poly &index, const Poly &length,
                                       const Cases &cases) {
  std::vector<Poly> result;
  for (const IndexCase &c : cases)
    for (int64_t rounds = -mostTurns; rounds <= mostTurns; ++rounds) {
      Poly distance = c.value - index - Poly(rounds) * length;
      std::set<std::string> atoms = distance.atoms();
      if (llvm::all_of(atoms, [&](const std::string &a) { return model.loopOf(a).has_value(); }) &&
          !llvm::is_contained(result, distance))
        result.push_back(distance);
    }
  return result;
}

/// The read is that of the cell at one distance around a ring.
static bool readRing(const KernelModel &model, const Facts &facts, const Poly &index, const std::optional<Poly> &cells,
                     CellDistance &one) {
  std::optional<Poly> length = cells;
  for (const IndexCase &c : one.cases)
    if (c.modulus)
      length = c.modulus;
  if (!length || length->terms.empty())
    return false;
  for (const Poly &distance : ringDistances(model, index, *length, one.cases)) {
    CellDistance there;
    bool all = addReach(facts, distance, there) && llvm::all_of(one.cases, [&](const IndexCase &c) {
                 Facts where = joined(facts, c.facts);
                 if (c.modulus && (!(*c.modulus == *length) || !proved(where, c.value)))
                   return false;
                 // So many rounds, however the remainder is written.
                 for (int64_t rounds = -mostTurns; rounds <= mostTurns; ++rounds) {
                   Poly rest = c.value - index - distance - Poly(rounds) * *length;
                   if (proved(where, rest) && proved(where, Poly(0) - rest))
                     return true;
                 }
                 return false;
               });
    if (!all)
      continue;
    there.distance = distance;
    there.ring = length;
    there.cases = {{index, {}, std::nullopt}}; // all of the ring
    one = there;
    return true;
  }
  return false;
}

llvm::Expected<std::vector<CellDistance>> optiml::cellDistances(const KernelModel &model, const GridLayout &layout,
                                                                const Poly &own, Poly index, const Facts &facts,
                                                                const std::vector<std::optional<Poly>> &cells) {
  std::vector<CellDistance> result(layout.dims.size());
  for (const std::string &atom : index.atoms()) {
    auto stride = index.coefficient(atom);
    Poly alone = Poly::atom(atom);
    std::vector<BoundaryCondition> rules =
        model.atomExpr(atom) ? takeBoundaryConditions(model, alone) : std::vector<BoundaryCondition>();
    if (!stride || rules.size() != 1)
      continue;
    for (size_t d = 0; d < layout.dims.size(); ++d) {
      bool alongThis =
          layout.dims[d].stride == *stride && rules[0].coordinate.mentions(*layout.dims[d].index().atoms().begin());
      if (!alongThis || result[d].rule)
        continue;
      result[d].rule = rules[0];
      index = index.substitute(atom, layout.dims[d].index());
      break;
    }
  }
  std::vector<Poly> distance = layout.along(index - own);
  for (size_t d = 0; d < distance.size(); ++d) {
    CellDistance &one = result[d];
    const Poly self = layout.dims[d].index();
    one.distance = distance[d];
    if (!one.rule) {
      bool known = distance[d].isAffine();
      for (const std::string &atom : distance[d].atoms())
        known &= model.loopOf(atom).has_value();
      if (auto constant = distance[d].constant()) {
        one.low = std::max<int64_t>(0, -*constant);
        one.high = std::max<int64_t>(0, *constant);
        known &= std::max(one.low, one.high) <= mostReach;
      } else {
        known = known && addReach(facts, distance[d], one);
      }
      if (!known)
        return notApplicable("not at a constant distance");
      one.cases = {{self + distance[d], {}, std::nullopt}};
      continue;
    }
    auto cases = ruleCases(model, *one.rule);
    if (!cases)
      return notApplicable("by a rule that is not understood");
    for (IndexCase &c : *cases) {
      c.value = c.value + distance[d];
      if (!isEmptySet(joined(facts, c.facts)))
        one.cases.push_back(c);
    }
    bool near = llvm::all_of(one.cases, [&](const IndexCase &c) {
      return !c.modulus && addReach(joined(facts, c.facts), c.value - self, one);
    });
    if (near)
      continue;
    if (!distance[d].terms.empty() || !readRing(model, facts, self, cells[d], one))
      return notApplicable("by a rule that leads to far cells");
  }
  return result;
}
