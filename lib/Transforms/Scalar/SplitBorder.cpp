//===- SplitBorder.cpp - loops that are clipped at a border ---------------===//
//
// split-border[kernel/loop]: a loop over a window that is clipped at the borders of an array gets a twin for where
// nothing is clipped, with a constant number of iterations, which the compiler unrolls.
//
// split-border[kernel/loop]{style=guard}: in place of a twin, the loop gets a constant number of iterations, with a
// condition on what it does. Threads, and outputs of a thread, then run it together: a window in shared memory or
// several outputs a thread are next.
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
// Or, with style=guard:
//   for (int k = max(0, i - 7); k <= min(n - 1, i + 7); ++k)    for (int k = 0; k < 15; ++k) {
//     s += x[k];                                                  int k1 = i - 7 + k;
//                                                                 if (k1 >= 0 && k1 < n - 1 + 1) {
//                                                                   s += x[k1];
//                                                                 }
//                                                               }
//
// Legal: always; which of the two runs is decided at run time. Of bounds made by `min`, `max` or a condition in their
// place, one below and one above are a constant number of iterations apart, and the twin runs where these are the
// bounds. Conditions, in inner loops too, are comparisons that are linear in the counters: they hold in all iterations
// where they hold in the first or the last one of each counter.
//
// Refuses: bounds that no constant distance lies between (`specialize-scalar` may give them one), more than 64
// iterations, and what may be left early.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
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

constexpr int64_t mostIterations = 64;

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
    // What is unrolled already, copies of an output say, comes last.
    for (bool unrolled : {false, true})
      for (const auto &[path, stmt] : countedLoops(*state.tree))
        if ((stmt->unroll == FullUnroll) == unrolled)
          offer(result, state, path, {{}, {{"style", "guard"}}});
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override {
    auto kernel = state.tree->clone();
    Stmt *loop = findLoop(*kernel, site);
    auto counted = loop ? asCountedLoop(*loop) : std::nullopt;
    if (!counted)
      return notApplicable("there is no counted loop '{0}'", site);
    if (loop->body[0]->kind != StmtKind::Block || leavesEarly(*loop->body[0]) || hasBarrier(*loop) ||
        holdsKind(*loop, {StmtKind::Opaque}) || counted->step != 1)
      return notApplicable("line {0}: the loop may be left early, or does more than to count", loop->line);
    KernelModel model(*kernel, state.pinnedBlock());
    if (auto style = params.find("style"); style != params.end())
      return style->second == "guard" ? guarded(state, kernel, model, *counted)
                                      : notApplicable("the style can be 'guard', or none is told");
    auto inside = clippedBounds(model, *counted);
    if (!inside)
      inside = clippedBody(model, *counted);
    if (!inside)
      return notApplicable("line {0}: nothing clips a constant number of iterations", loop->line);
    if (holdsKind(*inside->loop->body[0], {StmtKind::For, StmtKind::While, StmtKind::Do}))
      inside->loop->unroll = NoUnroll; // the loops within it come first
    auto place = findPlace(*kernel->body, loop);
    std::vector<StmtRef> &list = place->block->body;
    std::set<std::string> taken = allNames(*kernel);
    renameDeclarations(*inside->loop->body[0], taken);
    StmtRef asItWas = list[place->index];
    list[place->index] = atLine(loop->line, ifStmt(inside->condition, block({inside->loop}), block({asItWas})));
    removeUnused(*kernel);
    return state.withTree(kernel);
  }

private:
  static llvm::Expected<KernelState> guarded(const KernelState &state, const std::shared_ptr<Kernel> &kernel,
                                             const KernelModel &model, const CountedLoop &loop);
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

/// `value` compared with all of the parts but one.
static ExprRef withAll(const ExprRef &value, const char *op, const std::vector<ExprRef> &parts, size_t but) {
  ExprRef result;
  for (size_t i = 0; i < parts.size(); ++i)
    if (i != but)
      result = logicalAnd(result, binary(op, value, parts[i], Type::makeBool()));
  return result;
}

namespace {
/// Bounds of which one below and one above are a constant number of iterations apart.
struct ClippedRange {
  std::vector<ExprRef> lowers, uppers;
  size_t lower = 0, upper = 0; ///< these two
  int64_t trips = 0;
};
} // namespace

static std::optional<ClippedRange> clippedRange(const KernelModel &model, const CountedLoop &loop) {
  if (hasEffects(loop.lower) || hasEffects(loop.upper) || !loop.type.isSigned)
    return std::nullopt;
  ClippedRange range{partsOf(model, loop.lower, /*greatest=*/true), partsOf(model, loop.upper, /*greatest=*/false)};
  std::map<std::string, unsigned> changes = countChanges(*loop.stmt->body[0]);
  for (const std::vector<ExprRef> *parts : {&range.lowers, &range.uppers})
    for (const ExprRef &part : *parts)
      if (part->type.cls != Type::Class::Int || !part->type.isSigned || anyNode(part, isLoad) ||
          llvm::any_of(namesIn(part), [&](const std::string &name) { return changes[name] != 0; }))
        return std::nullopt;
  for (range.lower = 0; range.lower < range.lowers.size(); ++range.lower)
    for (range.upper = 0; range.upper < range.uppers.size(); ++range.upper) {
      auto trips = (model.poly(range.uppers[range.upper]) - model.poly(range.lowers[range.lower])).constant();
      if (!trips || *trips < 2 || *trips > mostIterations || range.lowers.size() + range.uppers.size() == 2)
        continue;
      range.trips = *trips;
      return range;
    }
  return std::nullopt;
}

std::optional<Inside> SplitBorder::clippedBounds(const KernelModel &model, const CountedLoop &loop) {
  auto range = clippedRange(model, loop);
  if (!range)
    return std::nullopt;
  const ExprRef lower = range->lowers[range->lower], upper = range->uppers[range->upper];
  ExprRef condition =
      logicalAnd(withAll(lower, ">=", range->lowers, range->lower), withAll(upper, "<=", range->uppers, range->upper));
  std::string k = freshName(model.kernel(), loop.var);
  StmtRef body = clone(loop.stmt->body[0]);
  substitute(*body, {{loop.var, add(lower, var(k, loop.type.unqualified()))}});
  return Inside{condition,
                countedFor(k, loop.type.unqualified(), intLit(0), intLit(range->trips), 1, body, FullUnroll)};
}

/// All bounds but the two become a condition.
llvm::Expected<KernelState> SplitBorder::guarded(const KernelState &state, const std::shared_ptr<Kernel> &kernel,
                                                 const KernelModel &model, const CountedLoop &loop) {
  auto range = clippedRange(model, loop);
  if (!range)
    return notApplicable("line {0}: nothing clips a constant number of iterations", loop.stmt->line);
  const Type type = loop.type.unqualified();
  const std::string at = freshName(model.kernel(), loop.var); // declared, so that it needs a name of its own
  const ExprRef counter = var(at, type);
  const ExprRef condition = logicalAnd(withAll(counter, ">=", range->lowers, range->lower),
                                       withAll(counter, "<", range->uppers, range->upper));
  StmtRef body = clone(loop.stmt->body[0]);
  substitute(*body, {{loop.var, counter}});
  StmtRef value = declStmt(at, type, add(range->lowers[range->lower], var(loop.var, type)));
  StmtRef made =
      countedFor(loop.var, type, intLit(0), intLit(range->trips), 1, block({value, ifStmt(condition, body)}), NoUnroll);
  auto place = findPlace(*kernel->body, loop.stmt);
  place->block->body[place->index] = atLine(loop.stmt->line, made);
  removeUnused(*kernel);
  return state.withTree(kernel);
}

namespace {
/// Takes out of a loop what holds in all of its iterations where it holds in the first and the last ones.
class Unclipped {
public:
  Unclipped(const KernelModel &model, const CountedLoop &loop)
      : model(model), changes(countChanges(*loop.stmt)), declared(namesDeclaredIn(*loop.stmt)) {
    ends[loop.var] = {loop.lower, sub(loop.upper, intLit(1))};
  }
  /// Of a copy of the loop.
  void takeOut(std::vector<StmtRef> &body);
  ExprRef condition; ///< null: nothing was taken out

private:
  bool takeOut(const ExprRef &term);
  const KernelModel &model;
  std::map<std::string, unsigned> changes;
  std::set<std::string> declared;
  std::map<std::string, std::pair<ExprRef, ExprRef>> ends; ///< first and last values of counters
  std::map<std::string, ExprRef> locals;                   ///< of an iteration
  std::set<std::string> known;                             ///< parts of the condition
};
} // namespace

/// The counter stands in sums and products alone: in a quotient, or in a narrower number, it has no slope that is seen.
static bool isInSums(const ExprRef &e, const std::string &counter) {
  if (isVar(e, counter) || !mentions(e, counter))
    return true;
  const bool sums = isBinary(e, "+") || isBinary(e, "-") || isBinary(e, "*") || isUnary(e, "-") ||
                    (e->kind == ExprKind::Cast && e->type.sameNumber(e->args[0]->type));
  return sums && llvm::all_of(e->args, [&](const ExprRef &part) { return isInSums(part, counter); });
}

bool Unclipped::takeOut(const ExprRef &term) {
  ExprRef c = substitute(term, locals);
  if (c->kind != ExprKind::Binary || inverseComparison(c->text).empty() || c->text == "==" || c->text == "!=" ||
      !onlyComputes(c) || anyNode(c, isLoad))
    return false;
  for (const ExprRef &side : c->args)
    if (side->type.cls != Type::Class::Int || !side->type.isSigned)
      return false;
  const Poly difference = model.poly(c->args[0]) - model.poly(c->args[1]);
  std::map<std::string, ExprRef> hardest;
  for (const std::string &name : namesIn(c)) {
    auto counter = ends.find(name);
    if (counter == ends.end() && (changes[name] || declared.count(name)))
      return false;
    if (counter == ends.end())
      continue;
    if (!isInSums(c->args[0], name) || !isInSums(c->args[1], name))
      return false;
    auto coefficient = difference.coefficient(name);
    auto slope = coefficient ? coefficient->constant() : std::nullopt;
    if (!slope)
      return false;
    const bool atLeast = c->text[0] == '>', rises = *slope > 0;
    hardest[name] = *slope == 0 || atLeast == rises ? counter->second.first : counter->second.second;
  }
  ExprRef here = substitute(c, hardest);
  if (known.insert(str(here)).second)
    condition = logicalAnd(condition, here);
  return true;
}

void Unclipped::takeOut(std::vector<StmtRef> &list) {
  for (size_t i = 0; i < list.size(); ++i) {
    Stmt &s = *list[i];
    if (s.kind == StmtKind::Decl && s.expr && s.dims.empty() && onlyComputes(s.expr) && !anyNode(s.expr, isLoad) &&
        !changes[s.text]) {
      ExprRef value = substitute(s.expr, locals);
      locals[s.text] = s.type.sameNumber(s.expr->type) ? value : castTo(s.type.unqualified(), value);
    } else if (s.kind == StmtKind::Block) {
      takeOut(s.body);
    } else if (s.kind == StmtKind::For) {
      auto inner = asCountedLoop(s);
      if (!inner || inner->step != 1 || !inner->tripCount() || *inner->tripCount() < 1)
        continue;
      ends[inner->var] = {inner->lower, sub(inner->upper, intLit(1))};
      takeOut(s.body[0]->body);
    } else if (s.kind == StmtKind::If) {
      ExprRef rest;
      for (const ExprRef &term : operandsOf(s.expr, "&&"))
        if (s.body.size() > 1 || !takeOut(term))
          rest = logicalAnd(rest, term);
      for (const StmtRef &branch : s.body)
        takeOut(branch->body);
      if (rest) {
        s.expr = rest;
        continue;
      }
      std::vector<StmtRef> inside = s.body[0]->body;
      list.erase(list.begin() + long(i));
      list.insert(list.begin() + long(i), inside.begin(), inside.end());
      i += inside.size() - 1;
    }
  }
}

std::optional<Inside> SplitBorder::clippedBody(const KernelModel &model, const CountedLoop &loop) {
  auto trips = loop.tripCount();
  if (!trips || *trips < 2 || *trips > mostIterations)
    return std::nullopt;
  StmtRef made = clone(std::make_shared<Stmt>(*loop.stmt));
  Unclipped unclipped(model, loop);
  unclipped.takeOut(made->body[0]->body);
  if (!unclipped.condition)
    return std::nullopt;
  made->unroll = FullUnroll;
  return Inside{unclipped.condition, made};
}

DEFINE_TRANSFORM(SplitBorder)
