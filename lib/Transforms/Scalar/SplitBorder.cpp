//===- SplitBorder.cpp - loops that are clipped at a border ---------------===//
//
// split-border[kernel/loop]: a loop over a window that is clipped at the borders of an array gets a twin for where
// nothing is clipped, with a constant number of iterations, which the compiler unrolls.
//
// Example:
//   for (int k = max(0, i - 7); k <= min(n - 1, i + 7); ++k)    if (i - 7 >= 0 && i + 7 + 1 <= n - 1 + 1) {
//     s += x[k];                                                  #pragma unroll
//                                                                 for (int k1 = 0; k1 < 15; ++k1) {
//                                                                   s += x[i - 7 + k1];
//                                                                 }
//                                                               } else {
//                                                                 for (int k = max(0, i - 7); …; ++k) …
//                                                               }
//
// Or, where the body is clipped by a condition:
//   for (int d = -7; d <= 7; ++d)                               if (i + -7 >= 0 && i + 7 < n) {
//     if (i + d >= 0 && i + d < n)                                #pragma unroll
//       s += x[i + d];                                            for (int d = -7; d <= 7; ++d) s += x[i + d];
//                                                               } else …
//
// Legal: always; which of the two runs is decided at run time. Of bounds made by `min`, `max` or a condition in their
// place, one below and one above are a constant number of iterations apart, and the twin runs where these are the
// bounds. Conditions are comparisons that are linear in the counter: they hold in all iterations where they hold in the
// first and in the last one.
//
// Refuses: bounds that no constant distance lies between (`specialize-scalar` may give them one), more than 64
// iterations, and what may be left early.
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/Transform.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

constexpr int64_t mostTrips = 64, mostTripsAround = 15; ///< the latter around other loops

/// Where nothing is clipped: the condition, and the loop.
struct Inside {
  ExprRef condition;
  StmtRef loop;
};

class SplitBorder : public Transform {
public:
  llvm::StringRef name() const override { return "split-border"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    for (const auto &[path, stmt] : countedLoops(*state.tree))
      offer(result, state, path, {{}});
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site, const Params &) const override {
    auto kernel = state.tree->clone();
    Stmt *loop = findLoop(*kernel, site);
    auto counted = loop ? asCountedLoop(*loop) : std::nullopt;
    if (!counted)
      return notApplicable("there is no counted loop '{0}'", site);
    if (loop->body[0]->kind != StmtKind::Block || leavesEarly(*loop->body[0]) || hasBarrier(*loop) ||
        holdsKind(*loop, {StmtKind::Opaque}) || counted->step != 1)
      return notApplicable("line {0}: the loop may be left early, or does more than to count", loop->line);
    KernelModel model(*kernel, state.pinnedBlock());
    auto inside = clippedBounds(model, *counted);
    if (!inside)
      inside = clippedBody(model, *counted);
    if (!inside)
      return notApplicable("line {0}: nothing clips a constant number of iterations", loop->line);
    int64_t trips = *asCountedLoop(*inside->loop)->tripCount();
    if (holdsKind(*inside->loop->body[0], {StmtKind::For, StmtKind::While, StmtKind::Do})) {
      if (trips > mostTripsAround)
        return notApplicable("line {0}: {1} iterations around other loops", loop->line, trips);
      inside->loop->unroll = NoUnroll; // the loops within it come first
    }
    auto place = findPlace(*kernel->body, loop);
    std::vector<StmtRef> &list = place->block->body;
    std::set<std::string> taken = allNames(*kernel);
    renameDeclarations(*inside->loop->body[0], taken);
    StmtRef asItWas = list[place->index];
    list[place->index] = atLine(loop->line, ifStmt(inside->condition, block({inside->loop}), block({asItWas})));
    return state.withTree(kernel);
  }

private:
  static std::optional<Inside> clippedBounds(const KernelModel &model, const CountedLoop &loop);
  static std::optional<Inside> clippedBody(const KernelModel &model, const CountedLoop &loop);
};
} // namespace

/// The parts of which `e` is the greatest (least) one.
static std::vector<ExprRef> partsOf(const KernelModel &model, const ExprRef &e, bool greatest) {
  auto extreme = asExtreme(model, e);
  if (extreme && extreme->greatest == greatest) {
    std::vector<ExprRef> result = partsOf(model, extreme->a, greatest);
    llvm::append_range(result, partsOf(model, extreme->b, greatest));
    return result;
  }
  if (e->kind == ExprKind::Var)
    if (const Stmt *d = model.singleAssignment(e->text);
        d && d->expr && model.stable(d->expr) && d->type.sameNumber(d->expr->type))
      if (auto parts = partsOf(model, d->expr, greatest); parts.size() > 1)
        return parts;
  if ((isBinary(e, "+") || isBinary(e, "-")) && constantValue(e->args[1])) {
    std::vector<ExprRef> parts = partsOf(model, e->args[0], greatest);
    if (parts.size() > 1)
      for (ExprRef &part : parts)
        part = isBinary(e, "+") ? add(part, e->args[1]) : sub(part, e->args[1]);
    return parts.size() > 1 ? parts : std::vector<ExprRef>{e};
  }
  return {e};
}

static ExprRef allOf(const std::vector<ExprRef> &parts, size_t chosen, const char *op) {
  ExprRef result;
  for (size_t i = 0; i < parts.size(); ++i)
    if (i != chosen)
      result = logicalAnd(result, binary(op, parts[chosen], parts[i], Type::makeBool()));
  return result;
}

std::optional<Inside> SplitBorder::clippedBounds(const KernelModel &model, const CountedLoop &loop) {
  if (hasEffects(loop.lower) || hasEffects(loop.upper) || !loop.type.isSigned)
    return std::nullopt;
  std::vector<ExprRef> lowers = partsOf(model, loop.lower, /*greatest=*/true),
                       uppers = partsOf(model, loop.upper, /*greatest=*/false);
  for (const std::vector<ExprRef> *parts : {&lowers, &uppers})
    for (const ExprRef &part : *parts)
      if (part->type.cls != Type::Class::Int || !part->type.isSigned)
        return std::nullopt;
  for (size_t l = 0; l < lowers.size(); ++l)
    for (size_t u = 0; u < uppers.size(); ++u) {
      auto trips = (model.poly(uppers[u]) - model.poly(lowers[l])).constant();
      ExprRef condition = logicalAnd(allOf(lowers, l, ">="), allOf(uppers, u, "<="));
      if (!trips || *trips < 2 || *trips > mostTrips || !condition)
        continue;
      std::string k = freshName(model.kernel(), loop.var);
      StmtRef body = clone(loop.stmt->body[0]);
      substitute(*body, {{loop.var, add(lowers[l], var(k, loop.type.unqualified()))}});
      return Inside{condition, countedFor(k, loop.type.unqualified(), intLit(0), intLit(*trips), 1, body, FullUnroll)};
    }
  return std::nullopt;
}

std::optional<Inside> SplitBorder::clippedBody(const KernelModel &model, const CountedLoop &loop) {
  auto trips = loop.tripCount();
  if (!trips || *trips < 2 || *trips > mostTrips)
    return std::nullopt;
  const std::vector<StmtRef> &body = loop.stmt->body[0]->body;
  if (body.empty() || body.back()->kind != StmtKind::If || body.back()->body.size() != 1)
    return std::nullopt;
  std::map<std::string, ExprRef> locals; // of an iteration
  for (size_t i = 0; i + 1 < body.size(); ++i) {
    if (body[i]->kind != StmtKind::Decl || !body[i]->expr || !onlyComputes(body[i]->expr) ||
        anyNode(body[i]->expr, isLoad) || countChanges(*loop.stmt)[body[i]->text])
      return std::nullopt;
    locals.emplace(body[i]->text, body[i]->type.sameNumber(body[i]->expr->type)
                                      ? substitute(body[i]->expr, locals)
                                      : castTo(body[i]->type.unqualified(), substitute(body[i]->expr, locals)));
  }
  ExprRef condition;
  std::map<std::string, unsigned> changes = countChanges(*loop.stmt);
  for (const ExprRef &term : operandsOf(body.back()->expr, "&&")) {
    ExprRef c = substitute(term, locals);
    if (c->kind != ExprKind::Binary || inverseComparison(c->text).empty() || c->text == "==" || c->text == "!=" ||
        !onlyComputes(c) || anyNode(c, isLoad))
      return std::nullopt;
    for (const ExprRef &side : c->args)
      if (side->type.cls != Type::Class::Int || !side->type.isSigned)
        return std::nullopt;
    for (const std::string &name : namesIn(c))
      if (changes[name] && name != loop.var)
        return std::nullopt;
    auto slope = (model.poly(c->args[0]) - model.poly(c->args[1])).coefficient(loop.var);
    if (!slope || !slope->constant())
      return std::nullopt;
    bool atLeast = c->text[0] == '>', rises = *slope->constant() > 0; // hardest where it is lowest, or highest
    ExprRef end = *slope->constant() == 0 || atLeast == rises ? loop.lower : sub(loop.upper, intLit(1));
    condition = logicalAnd(condition, substitute(c, {{loop.var, end}}));
  }
  StmtRef made = clone(std::make_shared<Stmt>(*loop.stmt));
  std::vector<StmtRef> &inner = made->body[0]->body;
  StmtRef guarded = inner.back()->body[0];
  inner.pop_back();
  inner.insert(inner.end(), guarded->body.begin(), guarded->body.end());
  made->unroll = FullUnroll;
  return Inside{condition, made};
}

DEFINE_TRANSFORM(SplitBorder)
