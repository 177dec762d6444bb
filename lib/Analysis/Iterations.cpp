//===- Iterations.cpp - what iterations of a loop share -------------------===//
#include "optiml/Analysis/Iterations.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/IntegerSet.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// More pairs of accesses than this are not looked at.
static constexpr size_t mostPairs = 2000;

Iterations::Iterations(const KernelModel &model, const Stmt &loop, const CountedLoop &counted, const Stmt &outermost)
    : model(model), loop(loop), counted(counted) {
  inside.insert(counted.var);
  inside.merge(namesDeclaredIn(loop));
  turns = inside;
  if (&outermost == &loop)
    return;
  turns.merge(namesDeclaredIn(outermost));
  for (const auto &[name, changes] : countChanges(outermost))
    turns.insert(name);
}

bool Iterations::isOfIteration(const std::string &atom) const {
  std::set<std::string> names = model.atomNames(atom);
  names.insert(atom);
  return llvm::any_of(names, [&](const std::string &name) { return turns.count(name); });
}

Poly Iterations::primed(Poly p) const {
  for (const std::string &atom : p.atoms())
    if (isOfIteration(atom))
      p = p.substitute(atom, Poly::atom(atom + "'"));
  return p;
}

bool Iterations::isLaunchConstant(const std::string &atom) const {
  return isParameter(model, atom) || atom.starts_with("gridDim.") || atom.starts_with("blockDim.");
}

/// The product of `atoms` is never 0: each is a number of threads or blocks, or a condition says so.
static bool requireNonZero(KernelState &state, const KernelModel &model, const Poly::Monomial &atoms) {
  std::string product;
  for (const std::string &atom : atoms) {
    if (atom.starts_with("gridDim.") || atom.starts_with("blockDim."))
      continue;
    auto text = planText(model, Poly::atom(atom));
    if (!text)
      return false;
    product += (product.empty() ? "" : " * ") + *text;
  }
  if (!product.empty())
    state.require(product + " != 0", "different iterations access different elements");
  return true;
}

/// p >= 0, always or as a condition.
static bool requireNotNegative(KernelState &state, const KernelModel &model, const Poly &p) {
  if (auto constant = p.constant())
    return *constant >= 0;
  auto text = planText(model, p);
  bool hopeless = llvm::all_of(p.terms, [](const auto &term) { return term.second < 0; });
  if (!text || hopeless)
    return false;
  state.require(*text + " >= 0", "rows do not overlap");
  return true;
}

/// Finds for which values of the parameters no integers make all of `facts` >= 0, and records it when the launch that
/// is known has such values: "m <= 256" for the rows of a matrix that are 256 elements wide.
static bool requireEmpty(KernelState &state, const KernelModel &model, const std::vector<Poly> &facts) {
  std::set<std::string> parameters, hidden;
  std::vector<Poly> affine;
  for (const Poly &fact : facts) {
    if (!fact.isAffine())
      continue;
    affine.push_back(fact);
    for (const std::string &atom : fact.atoms())
      (planText(model, Poly::atom(atom)) ? parameters : hidden).insert(atom);
  }
  std::vector<std::string> names(parameters.begin(), parameters.end());
  SetPiece piece{{}, affine};
  for (const std::string &name : names)
    piece.values.push_back(Poly::atom(name));
  auto sets = names.empty() ? std::nullopt : projectSets(names, {hidden.begin(), hidden.end()}, {piece}, {}, 4);
  if (!sets)
    return false;
  std::string condition;
  for (const std::vector<Poly> &set : *sets) {
    std::string outside;
    for (const Poly &p : set)
      outside += (outside.empty() ? "" : " || ") + (Poly(-1) - p).str() + " >= 0";
    if (outside.empty())
      return false;
    condition += (condition.empty() ? "(" : " && (") + outside + ")";
  }
  if (state.hints.evaluate(IntExpr::of(condition)).value_or(0) == 0)
    return false;
  state.require(condition, "iterations access different elements");
  return true;
}

/// Whether `difference` is never 0 where `facts` hold.
bool Iterations::differ(KernelState &state, const Poly &difference, std::vector<Poly> facts) const {
  if (differByDigits(state, difference, facts))
    return true;
  facts.push_back(difference);
  facts.push_back(Poly(0) - difference);
  return difference.isAffine() && requireEmpty(state, model, facts);
}

bool Iterations::differByDigits(KernelState &state, const Poly &difference, const std::vector<Poly> &facts) const {
  auto withZero = [&](const std::vector<Poly> &zeros) {
    std::vector<Poly> all = facts;
    for (const Poly &zero : zeros) {
      all.push_back(zero);
      all.push_back(Poly(0) - zero);
    }
    return isEmptySet(all);
  };
  if (withZero({difference}))
    return true;
  // A sum of multiples of strides that are products of parameters, each a multiple of the one before.
  std::map<Poly::Monomial, Poly> parts;
  for (const auto &[monomial, coefficient] : difference.terms) {
    Poly::Monomial stride, rest;
    for (const std::string &atom : monomial)
      (isLaunchConstant(atom) ? stride : rest).push_back(atom);
    if (rest.size() > 1)
      return false;
    parts[stride] = parts[stride] + (rest.empty() ? Poly(coefficient) : Poly(coefficient) * Poly::atom(rest[0]));
  }
  std::erase_if(parts, [](const auto &part) { return part.second.terms.empty(); });
  std::vector<std::pair<Poly::Monomial, Poly>> digits(parts.begin(), parts.end());
  llvm::stable_sort(digits, [](const auto &a, const auto &b) { return a.first.size() < b.first.size(); });
  std::vector<Poly> zeros;
  KernelState trial = state;
  for (size_t i = 0; i < digits.size(); ++i) {
    const auto &[stride, value] = digits[i];
    if (i == 0 && !requireNonZero(trial, model, stride))
      return false;
    if (i + 1 < digits.size()) {
      const Poly::Monomial &next = digits[i + 1].first;
      if (next.size() <= stride.size() || !std::includes(next.begin(), next.end(), stride.begin(), stride.end()))
        return false;
      Poly::Monomial ratio;
      std::set_difference(next.begin(), next.end(), stride.begin(), stride.end(), std::back_inserter(ratio));
      Poly extent(1);
      for (const std::string &atom : ratio)
        extent = extent * Poly::atom(atom);
      auto high = upperBound(model, value, facts), low = lowerBound(model, value, facts);
      if (!high || !low || !requireNotNegative(trial, model, extent - Poly(1) - *high) ||
          !requireNotNegative(trial, model, extent - Poly(1) + *low))
        return false;
    }
    zeros.push_back(value);
  }
  if (!withZero(zeros))
    return false;
  state = std::move(trial);
  return true;
}

bool Iterations::neverMeet(KernelState &state, const Access &a, const Access &b, int64_t apart) const {
  if (a.subscripts.size() != 1 || b.subscripts.size() != 1 || a.bytes != b.bytes || !model.stable(a.subscripts[0]) ||
      !model.stable(b.subscripts[0]))
    return false;
  std::vector<Poly> facts = model.facts(a);
  // Outside of the loop, a name that is declared in it is that of another variable.
  for (const Poly &fact : model.facts(b))
    facts.push_back(primed(fact));
  Poly difference = a.subscripts[0] - primed(b.subscripts[0]);
  if (!apart)
    return differ(state, difference, std::move(facts));
  Poly later = primed(Poly::atom(counted.var)) - Poly::atom(counted.var);
  for (const Poly &distance : {later, Poly(0) - later}) {
    std::vector<Poly> ordered = facts;
    ordered.push_back(distance - Poly(apart));
    if (!differ(state, difference, std::move(ordered)))
      return false;
  }
  return true;
}

/// What is written is memory behind parameters, which overlaps nothing else.
llvm::Error Iterations::requireKnownMemory(KernelState &state, const std::vector<const Access *> &accesses) const {
  std::map<std::string, const Access *> all, written;
  for (const Access *access : accesses) {
    if (isConstantOfFile(model, *access))
      continue;
    all.emplace(access->array, access);
    if (access->write)
      written.emplace(access->array, access);
  }
  if (written.empty())
    return llvm::Error::success();
  unsigned line = 0;
  std::string variable;
  walkExprs(*model.kernel().body, [&](const ExprRef &e) {
    bool number = e->type.isInt() || e->type.isFloat() || e->type.cls == Type::Class::Record;
    if (e->kind == ExprKind::Var && number && !e->type.isConst && !model.param(e->text) &&
        !model.declaration(e->text)) {
      variable = e->text;
      line = e->line;
    }
  });
  if (!variable.empty())
    return notApplicable("'{0}' may be a variable that the loop writes (line {1})", variable, line);
  for (const auto &[array, access] : written) {
    if (!model.param(array))
      return notApplicable("whose memory line {0} writes is not known", access->stmt->line);
    for (const auto &[other, unused] : all)
      if (other != array)
        if (llvm::Error e = requireDisjoint(state, model, array, other))
          return e;
  }
  return llvm::Error::success();
}

/// Updates that commute.
static bool commute(const Access &a, const Access &b) {
  auto updates = [](const Access &x) { return x.atomic && isAtomicUpdate(*x.stmt); };
  return updates(a) && updates(b) && a.stmt->expr->text == b.stmt->expr->text;
}

llvm::Error Iterations::requireIndependent(KernelState &state) const {
  const std::vector<Access> accesses = model.accessesOfWholeRecords();
  std::vector<const Access *> ours, others, all;
  for (const Access &access : accesses)
    if (access.space == Space::Local && access.write && insideOf(access, &loop) && !inside.count(access.array))
      return notApplicable("iterations share '{0}' (line {1})", access.array, access.stmt->line);
  for (const Access &access : accesses)
    if (access.space == Space::Global) {
      bool head = access.stmt == &loop || (loop.init && access.stmt == loop.init.get());
      (insideOf(access, &loop) || head ? ours : others).push_back(&access);
      all.push_back(&access);
    }
  if (llvm::Error e = requireKnownMemory(state, all))
    return e;
  size_t pairs = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const Access &a = *ours[i];
    auto meets = [&](const Access &b, bool bInLoop) -> llvm::Error {
      if (a.array != b.array || (!a.write && !b.write))
        return llvm::Error::success();
      if (++pairs > mostPairs)
        return notApplicable("there are too many accesses to look at");
      if (bInLoop && commute(a, b)) {
        if (state.hints.strictFloat && a.node->type.isFloat())
          return notApplicable("the order of the sum in '{0}' may not change (--optiml-fp=strict)", a.array);
        return llvm::Error::success();
      }
      if (!neverMeet(state, a, b, bInLoop ? counted.step : 0))
        return notApplicable("iterations may meet{0} in '{1}' (lines {2} and {3})",
                             bInLoop ? "" : " what stands outside of the loop", a.array, a.stmt->line, b.stmt->line);
      return llvm::Error::success();
    };
    for (size_t k = i; k < ours.size(); ++k)
      if (llvm::Error e = meets(*ours[k], true))
        return e;
    for (const Access *b : others)
      if (llvm::Error e = meets(*b, false))
        return e;
  }
  return llvm::Error::success();
}
