//===- ArrayFolds.cpp - sums in arrays of one thread ----------------------===//
//
// float g[8];  for (j…) g[bin[j]] += w[j];  Threads that share the iterations have an array each, which are folded into
// one afterwards, element by element.
//
//===----------------------------------------------------------------------===//
#include "ArrayFolds.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

// Each element costs a reduction over the group.
static constexpr int64_t mostFolded = 64;

namespace {

/// Says how a loop folds values into the elements of one array.
class FoldFinder {
public:
  explicit FoldFinder(const std::string &array) : array(array) {}

  /// Whether that is all that is done with the array under `s`.
  bool visit(const StmtRef &stmt) {
    Stmt &s = *stmt;
    if (std::optional<Fold> found = foldOf(stmt)) {
      const bool same = !fold || *fold == *found;
      fold = found;
      return same;
    }
    bool good = !s.names.count(array);
    ownExprs(s, [&](ExprRef &e) { good &= !mentions(e, array); });
    if (s.init)
      good &= visit(s.init);
    for (const StmtRef &child : s.body)
      good &= visit(child);
    return good;
  }
  std::optional<Fold> fold;

private:
  const std::string &array;

  /// Of a statement that does nothing else with it.
  std::optional<Fold> foldOf(const StmtRef &s) const {
    const ExprRef change = changeIn(*s);
    if (!change)
      return std::nullopt;
    const ExprRef place = change->args[0];
    const Expr *root = objectOf(place);
    if (place->kind != ExprKind::Subscript || !root || root->kind != ExprKind::Var || root->text != array ||
        hasEffects(place) ||
        llvm::any_of(indicesOf(place), [&](const ExprRef &index) { return mentions(index, array); }))
      return std::nullopt;
    // As if the element were a variable. Taking away is adding, and so is counting.
    const StmtRef alike = clone(s);
    const ExprRef element = var(array + "[]", place->type.unqualified());
    rewriteExprs(*alike, [&](const ExprRef &e) -> ExprRef { return equal(e, place) ? element : nullptr; });
    rewriteExprs(*alike, [&](const ExprRef &e) -> ExprRef {
      if (e->kind == ExprKind::IncDec && isVar(e->args[0], element->text))
        return assign("+=", element, intLit(1, element->type));
      const bool takesAway = e->kind == ExprKind::Assign && e->text == "-=" && isVar(e->args[0], element->text);
      return takesAway ? assign("+=", element, e->args[1]) : nullptr;
    });
    const bool rest = anyExpr(*alike, [&](const ExprRef &e) { return isVar(e, array) || e->names.count(array); });
    const std::optional<FoldedValue> folded = rest ? std::nullopt : asFold(*alike);
    return folded && folded->variable == element->text ? std::optional(folded->fold) : std::nullopt;
  }

  /// The assignment of the statement, or of the one that it holds under a condition.
  static ExprRef changeIn(const Stmt &s) {
    const Stmt *own = s.kind == StmtKind::If && s.body.size() == 1 ? onlyStatement(*s.body[0]) : &s;
    return own && own->kind == StmtKind::Expr && isChange(own->expr) ? own->expr : nullptr;
  }
};

} // namespace

/// Arrays of numbers, of which a thread may have another one.
static std::vector<const Stmt *> smallArrays(const Kernel &kernel) {
  std::vector<const Stmt *> found;
  std::map<std::string, unsigned> declared;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::Decl)
      return;
    ++declared[s.text];
    int64_t elements = 1;
    for (const ExprRef &extent : s.dims)
      elements *= constantValue(extent).value_or(mostFolded + 1);
    if (!s.dims.empty() && elements <= mostFolded && !s.isShared && !s.type.isVolatile && s.type.bytes >= 4 &&
        (s.type.isFloat() || s.type.isInt()))
      found.push_back(&s);
  });
  std::erase_if(found, [&](const Stmt *s) { return declared[s->text] != 1; });
  return found;
}

std::vector<ArrayFold> optiml::findArrayFolds(Kernel &kernel, const StmtRef &loop, bool strictFloat) {
  std::vector<ArrayFold> folds;
  const std::set<std::string> inside = namesDeclaredIn(*loop);
  for (const Stmt *s : smallArrays(kernel)) {
    FoldFinder finder(s->text);
    if (inside.count(s->text) || !finder.visit(loop) || !finder.fold)
      continue;
    const bool changes = s->type.isFloat() && !finder.fold->isIdempotent();
    if (!(changes && strictFloat))
      folds.push_back({s->text, s->type.unqualified(), *finder.fold, s->dims});
  }
  if (!folds.empty())
    std::erase_if(folds, [addressed = usedByAddress(kernel)](const ArrayFold &f) { return addressed.count(f.array); });
  return folds;
}

void optiml::foldIntoOwn(const ArrayFold &fold, Stmt &loop, Combiner &combiner, std::set<std::string> &taken,
                         std::vector<StmtRef> &before, std::vector<StmtRef> &after) {
  const ExprRef own = var(freshName(taken, fold.array + "_of_thread"), fold.type);
  std::vector<ExprRef> counters;
  for (size_t i = 0; i < fold.extents.size(); ++i)
    counters.push_back(var(freshName(taken, "at"), Type::makeInt()));
  auto elementOf = [&](ExprRef array) {
    for (const ExprRef &counter : counters)
      array = subscript(array, counter, fold.type);
    return array;
  };
  auto forEach = [&](std::vector<StmtRef> what) {
    StmtRef result = block(std::move(what));
    for (size_t i = counters.size(); i-- > 0;)
      result =
          block({countedFor(counters[i]->text, Type::makeInt(), intLit(0), fold.extents[i], 1, result, FullUnroll)});
    return result->body.front();
  };
  const ExprRef whole = elementOf(var(fold.array, fold.type));
  const StmtRef declaration = declStmt(own->text, fold.type, nullptr);
  declaration->dims = fold.extents;
  before.push_back(declaration);
  before.push_back(forEach(
      {exprStmt(assign("=", elementOf(own), fold.fold.isIdempotent() ? whole : fold.fold.identity(fold.type)))}));
  rewriteExprs(loop, [&](const ExprRef &e) { return isVar(e, fold.array) ? own : nullptr; });
  const ExprRef total = var(freshName(taken, fold.array + "_total"), fold.type);
  std::vector<StmtRef> combination = {declStmt(total->text, fold.type, elementOf(own))};
  for (StmtRef &s : combiner.combine({total->text, fold.type, fold.fold}))
    combination.push_back(std::move(s));
  combination.push_back(fold.fold.into(whole, total));
  after.push_back(forEach(std::move(combination)));
}
