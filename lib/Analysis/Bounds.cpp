//===- Bounds.cpp - ranges of indices -------------------------------------===//
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

bool optiml::isLaunchExtent(llvm::StringRef atom) {
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

bool optiml::isQuotient(const std::string &atom) { return atom.starts_with("(("); }

/// The same for a whole launch: parameters, and how many blocks and threads there are.
static bool isLaunchConstant(const KernelModel &model, const std::string &atom) {
  return isParameter(model, atom) || isLaunchExtent(atom) || isQuotient(atom);
}

bool optiml::onlyLaunchConstants(const KernelModel &model, const Poly &p) {
  std::set<std::string> atoms = p.atoms();
  return std::all_of(atoms.begin(), atoms.end(), [&](const std::string &a) { return isLaunchConstant(model, a); });
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

std::optional<std::string> optiml::originalPlanText(const KernelModel &original, Poly p) {
  for (std::string axis : {"x", "y", "z"})
    p = p.substitute("gridDim." + axis, Poly::atom("grid." + axis))
            .substitute("blockDim." + axis, Poly::atom("block." + axis));
  for (const std::string &atom : p.atoms())
    if (!atom.starts_with("grid.") && !atom.starts_with("block.") && !isQuotient(atom) &&
        !planText(original, Poly::atom(atom)))
      return std::nullopt;
  return p.str();
}

bool optiml::isConstantOfFile(const KernelModel &model, const Access &access) {
  ExprRef root = access.root;
  if (!root->type.isPointer() || root->type.text.find('[') == std::string::npos)
    return false;
  while (root->kind == ExprKind::Member || root->kind == ExprKind::Subscript) {
    root = root->args[0];
    if (root->type.isPointer() && !isArray(root->type)) // what a pointer leads to may be changed
      return false;
  }
  return root->kind == ExprKind::Var && !model.param(root->text) && !model.declaration(root->text) &&
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

std::optional<Poly> optiml::globalUpperBound(const KernelModel &model, unsigned axis) {
  return upperBoundOf(model, std::string("globalIdx.") + char('x' + axis));
}

/// The bounds U of parameters with index < U that the facts tell.
static std::vector<Poly> upperBoundsIn(const KernelModel &model, const std::string &index,
                                       const std::vector<Poly> &facts) {
  std::vector<Poly> bounds;
  for (const Poly &fact : facts) {
    auto c = fact.coefficient(index);
    if (!c || c->constant() != std::optional<int64_t>(-1))
      continue;
    Poly u = fact + Poly::atom(index) + Poly(1);
    std::set<std::string> atoms = u.atoms();
    if (std::all_of(atoms.begin(), atoms.end(), [&](const std::string &a) { return isParameter(model, a); }))
      bounds.push_back(u);
  }
  return bounds;
}

/// Of a kernel that does all it does under one condition, whatever that is.
static std::optional<Poly> upperBoundOfGuard(const KernelModel &model, const std::string &index) {
  const std::vector<StmtRef> &body = model.kernel().body->body;
  auto onlyComputes = [](const StmtRef &s) { return s->kind == StmtKind::Decl && (!s->expr || !hasEffects(s->expr)); };
  if (body.empty() || body.back()->kind != StmtKind::If || body.back()->body.size() != 1 ||
      hasEffects(body.back()->expr) || !llvm::all_of(llvm::drop_end(body), onlyComputes))
    return std::nullopt;
  std::vector<Poly> facts;
  model.addFacts(body.back()->expr, true, facts);
  std::vector<Poly> bounds = upperBoundsIn(model, index, facts);
  return bounds.empty() ? std::nullopt : std::optional(bounds.front());
}

std::optional<Poly> optiml::upperBoundOf(const KernelModel &model, const std::string &index, bool ofWrites) {
  if (model.unknownOutsideLine())
    return upperBoundOfGuard(model, index);
  std::optional<std::vector<Poly>> common;
  for (const Access &access : model.accesses()) {
    if (access.space == Space::Local || (ofWrites && !access.write))
      continue;
    std::vector<Poly> bounds = upperBoundsIn(model, index, model.facts(access));
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

/// The largest value of a sum of constants and counters, none of which is ever negative; nothing where it is not known.
static std::optional<int64_t> mostOfCounters(const KernelModel &model, const Poly &sum) {
  int64_t most = 0;
  for (const auto &[monomial, coefficient] : sum.terms) {
    auto loop = monomial.size() == 1 ? model.loopOf(monomial[0]) : std::nullopt;
    auto end = loop && constantValue(loop->lower).value_or(-1) >= 0 ? constantValue(loop->upper) : std::nullopt;
    if (coefficient < 0 || coefficient > UINT16_MAX || (!monomial.empty() && (!end || *end > UINT16_MAX)))
      return std::nullopt;
    most += monomial.empty() ? coefficient : coefficient * std::max<int64_t>(*end, 0);
  }
  return most;
}

/// Guards of the form scale * index < end, taken apart at "&&"; with counters and constants added, they say so besides.
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
  if (!constant || *constant < 2 || !planText(model, end))
    return;
  const Poly rest = multiple - *scale * Poly::atom(index);
  if (auto most = mostOfCounters(model, rest); most && *most <= *constant)
    into.push_back({*constant, rest.constant() == 0 ? condition : nullptr, high});
}

std::optional<ScaledBound> optiml::scaledUpperBound(const KernelModel &model, unsigned axis) {
  std::string index = std::string("globalIdx.") + char('x' + axis);
  if (model.unknownOutsideLine())
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
    std::erase_if(*common, [&](ScaledBound &b) {
      auto same = llvm::find_if(bounds, [&](const ScaledBound &other) {
        return b.scale == other.scale && model.poly(b.end) == model.poly(other.end) &&
               b.end->type.sameNumber(other.end->type);
      });
      if (same != bounds.end() && !(b.guard && same->guard && equal(b.guard, same->guard)))
        b.guard = nullptr;
      return same == bounds.end();
    });
  }
  if (!common || common->empty())
    return std::nullopt;
  return common->front();
}
