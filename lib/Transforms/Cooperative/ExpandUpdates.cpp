//===- ExpandUpdates.cpp - short loops over what is updated ---------------===//
#include "ExpandUpdates.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/TreeQueries.h"

using namespace optiml;

std::string optiml::parameterOf(const KernelModel &model, const Access &access) {
  ExprRef root = access.root;
  while (root->kind == ExprKind::Member || root->kind == ExprKind::Subscript) {
    const ExprRef &base = root->args[0];
    if (base->kind != ExprKind::Var && base->type.isPointer() && !isArray(base->type))
      return ""; // what a member points to
    root = base;
  }
  const Param *p = root->kind == ExprKind::Var ? model.param(root->text) : nullptr;
  return p && p->type.isPointer() ? root->text : "";
}

int64_t optiml::elementOfPlace(ExprRef place) {
  for (; place->kind != ExprKind::Var; place = place->args[0])
    if (place->args[0]->kind == ExprKind::Var)
      return place->kind == ExprKind::Subscript ? *constantValue(place->args[1]) : 0;
  return 0;
}

bool optiml::isFixedPlace(const ExprRef &place) {
  if (place->kind == ExprKind::Var)
    return true;
  if (place->kind == ExprKind::Member)
    return isFixedPlace(place->args[0]);
  return place->kind == ExprKind::Subscript && constantValue(place->args[1]) && isFixedPlace(place->args[0]);
}

/// How many atomic updates of elements that depend on `counter` an iteration makes, loops within it included.
static size_t updatesIn(const Stmt &s, const std::string &array, const std::set<std::string> &counters) {
  size_t result = 0;
  if (isAtomicUpdate(s) && namesIn(s.expr->args[0]).count(array))
    result += llvm::any_of(counters, [&](const std::string &c) { return mentions(s.expr->args[0], c); });
  auto counted = s.kind == StmtKind::For ? asCountedLoop(const_cast<Stmt &>(s)) : std::nullopt;
  std::set<std::string> inner = counters;
  if (counted)
    inner.insert(counted->var);
  size_t below = 0;
  for (const StmtRef &child : s.body)
    below += updatesIn(*child, array, inner);
  // An inner loop whose bounds follow the outer counter ends no later than a short one would.
  size_t trips = size_t(counted ? counted->tripCount().value_or(8) : 1);
  return result + below * trips;
}

static std::optional<bool> decided(const ExprRef &condition) {
  if (auto value = constantValue(condition))
    return *value != 0;
  if (condition->kind != ExprKind::Binary || inverseComparison(condition->text).empty())
    return std::nullopt;
  auto a = constantValue(condition->args[0]), b = constantValue(condition->args[1]);
  if (!a || !b)
    return std::nullopt;
  return comparisonHolds(condition->text, *a < *b ? -1 : *a > *b);
}

/// Without conditions that are known, and without what they leave out.
static void decide(std::vector<StmtRef> &list) {
  for (size_t i = 0; i < list.size(); ++i) {
    auto known = list[i]->kind == StmtKind::If ? decided(list[i]->expr) : std::nullopt;
    if (!known)
      continue;
    const StmtRef branch = list[i];
    list.erase(list.begin() + long(i));
    size_t taken = *known ? 0 : 1;
    if (taken < branch->body.size()) {
      const std::vector<StmtRef> &body = branch->body[taken]->body; // no other local has a name of these
      list.insert(list.begin() + long(i), body.begin(), body.end());
    }
    --i;
  }
}

static bool expand(std::vector<StmtRef> &list, size_t at, const std::string &array, size_t most,
                   std::set<std::string> &taken) {
  const StmtRef loop = list[at];
  auto counted = loop->kind == StmtKind::For ? asCountedLoop(*loop) : std::nullopt;
  auto trips = counted ? counted->tripCount() : std::nullopt;
  auto first = counted ? constantValue(counted->lower) : std::nullopt;
  if (!trips || !first || *trips > 16 || leavesIteration(*loop->body[0]) || holdsKind(*loop, {StmtKind::Opaque}))
    return false;
  size_t updates = updatesIn(*loop, array, {counted->var});
  if (!updates || updates > most)
    return false;
  std::vector<StmtRef> made;
  for (int64_t k = 0; k < *trips; ++k) {
    StmtRef body = clone(loop->body[0]);
    ExprRef counter = intLit(*first + k * counted->step, counted->type.unqualified());
    substitute(*body, {{counted->var, counter}});
    StmtRef copy = body->kind == StmtKind::Block ? body : block({body});
    forEachList(*copy, decide);
    rewriteExprs(*copy, [](const ExprRef &e) -> ExprRef {
      auto index = e->kind == ExprKind::Subscript ? constantValue(e->args[1]) : std::nullopt;
      return index ? subscript(e->args[0], intLit(*index), e->type) : nullptr;
    });
    if (k)
      renameDeclarations(*copy, taken);
    made.insert(made.end(), copy->body.begin(), copy->body.end());
  }
  list.erase(list.begin() + long(at));
  list.insert(list.begin() + long(at), made.begin(), made.end());
  return true;
}

void optiml::expandUpdates(Kernel &kernel, const std::string &array, size_t most) {
  std::set<std::string> taken = allNames(kernel);
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (size_t i = 0; i < list.size(); ++i)
      while (i < list.size() && expand(list, i, array, most, taken)) // what it has become may hold loops
        ;
  });
}
