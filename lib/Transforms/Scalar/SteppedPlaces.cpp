//===- SteppedPlaces.cpp - loops from place to place of an array ----------===//
#include "SteppedPlaces.h"
#include "optiml/Analysis/Advances.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

/// Copies of the body that are unrolled around such a loop, at most.
static constexpr int64_t mostUnrolled = 4096;

namespace {

/// The loop, and the counter that it moves on by one.
struct SteppedLoop {
  ExprRef counter;
  int64_t step = 1;
  int64_t first = 0, last = 0; ///< least and greatest value of the counter in an iteration
};

class Visitor {
public:
  Visitor(const Kernel &kernel, const Stmt &declaration) : array(declaration.text), taken(allNames(kernel)) {
    for (const ExprRef &extent : declaration.dims)
      extents.push_back(*constantValue(extent));
  }
  /// `copies`: iterations of loops around that may be unrolled; nothing: these are not known, or too many.
  void visit(std::vector<StmtRef> &list, std::optional<int64_t> copies, std::vector<Stmt *> around);

private:
  std::optional<SteppedLoop> stepped(Stmt &loop) const;
  bool findRange(const Stmt &loop, SteppedLoop &found) const;
  StmtRef overAllPlaces(const StmtRef &loop, const SteppedLoop &found);

  const std::string array;
  std::vector<int64_t> extents;
  std::set<std::string> taken;
};

} // namespace

/// e = v + offset.
static std::optional<int64_t> offsetFrom(const ExprRef &e, const std::string &v) {
  if (isVar(e, v))
    return 0;
  if (e->kind == ExprKind::Cast && e->type.isInt() && e->type.bytes >= 4)
    return offsetFrom(e->args[0], v);
  if (e->kind != ExprKind::Binary || (e->text != "+" && e->text != "-"))
    return std::nullopt;
  const auto left = offsetFrom(e->args[0], v), right = constantValue(e->args[1]);
  if (left && right)
    return e->text == "+" ? *left + *right : *left - *right;
  const auto first = constantValue(e->args[0]), second = offsetFrom(e->args[1], v);
  return e->text == "+" && first && second ? std::optional(*first + *second) : std::nullopt;
}

/// Which values the counter may have where an iteration runs: the places that it always accesses are there.
bool Visitor::findRange(const Stmt &loop, SteppedLoop &found) const {
  struct Use {
    int64_t offset, extent;
    bool isCertain; ///< evaluated in every iteration
  };
  std::vector<Use> uses;
  bool isPlain = true;
  auto look = [&](const ExprRef &e, bool isCertain, auto &&self) -> void {
    const std::vector<ExprRef> indices =
        e->kind == ExprKind::Subscript && rootName(e) == array ? indicesOf(e) : std::vector<ExprRef>();
    for (size_t i = 0; i < indices.size() && indices.size() == extents.size(); ++i)
      if (mentions(indices[i], found.counter->text)) {
        const auto offset = offsetFrom(indices[i], found.counter->text);
        isPlain &= offset.has_value();
        uses.push_back({offset.value_or(0), extents[i], isCertain});
      }
    // Where a conjunction holds, all of its parts were evaluated.
    const bool skips = e->kind == ExprKind::Cond || isBinary(e, "||");
    for (size_t i = 0; i < e->args.size(); ++i)
      self(e->args[i], isCertain && (!skips || i == 0), self);
  };
  look(loop.expr, true, look);
  for (const StmtRef &s : loop.body[0]->body) {
    ownExprs(*s, [&](ExprRef &e) { look(e, /*isCertain=*/!isLoop(*s), look); });
    for (const StmtRef &child : s->body)
      walk(*child, [&](Stmt &t) { ownExprs(t, [&](ExprRef &e) { look(e, false, look); }); });
  }
  found.first = INT32_MIN;
  found.last = INT32_MAX;
  for (const Use &use : uses)
    if (use.isCertain) {
      found.first = std::max(found.first, -use.offset);
      found.last = std::min(found.last, use.extent - 1 - use.offset);
    }
  // What other uses access for these values is inside of the array, too, whatever decides about them.
  return isPlain && found.first != INT32_MIN && found.first <= found.last && llvm::all_of(uses, [&](const Use &use) {
           return found.first + use.offset >= 0 && found.last + use.offset < use.extent;
         });
}

std::optional<SteppedLoop> Visitor::stepped(Stmt &loop) const {
  if (!isLoop(loop) || loop.kind == StmtKind::Do || !loop.expr || !onlyComputes(loop.expr) || asCountedLoop(loop) ||
      loop.body[0]->kind != StmtKind::Block ||
      holdsKind(*loop.body[0],
                {StmtKind::Break, StmtKind::Continue, StmtKind::Return, StmtKind::Barrier, StmtKind::Opaque}))
    return std::nullopt;
  std::vector<StmtRef> &body = loop.body[0]->body;
  const bool ownStep = !loop.step && !body.empty() && body.back()->kind == StmtKind::Expr;
  const ExprRef moved = loop.step ? loop.step : ownStep ? body.back()->expr : nullptr;
  const auto step = stepByOne(moved);
  if (!step)
    return std::nullopt;
  SteppedLoop found{moved->args[0], *step};
  bool isOnlyChange = true;
  walkExprs(*loop.body[0], [&](const ExprRef &e) {
    isOnlyChange &= e == moved || !mayChange(e) || rootName(e->args[0]) != found.counter->text;
  });
  const bool isInText = opaqueMentions(loop, {found.counter->text});
  if (!isOnlyChange || isInText || !mentions(loop.expr, found.counter->text) || !findRange(loop, found))
    return std::nullopt;
  return found;
}

/// for (step = 0; step < places; ++step) { const int at = last - step; if (k == at && condition) { body; k = at - 1; }
/// }
StmtRef Visitor::overAllPlaces(const StmtRef &loop, const SteppedLoop &found) {
  const ExprRef &k = found.counter;
  // What is computed with the counter is computed in its type, unless that has no values below 0 and needs them.
  const Type type = k->type.bytes >= 4 && found.first >= 0 ? k->type.unqualified() : Type::makeInt();
  const ExprRef step = var(freshName(taken, "step"), Type::makeInt()), at = var(freshName(taken, "at"), type);
  std::vector<StmtRef> body = loop->body[0]->body;
  if (!loop->step)
    body.pop_back();
  StmtRef made = block(body);
  substitute(*made, {{k->text, at}});
  made->body.push_back(exprStmt(assign("=", k, found.step > 0 ? add(at, intLit(1)) : sub(at, intLit(1)))));
  const ExprRef isHere = binary("==", k, at, Type::makeBool());
  const ExprRef place = found.step > 0 ? add(intLit(found.first), step) : sub(intLit(found.last), step);
  StmtRef loopBody = block({declStmt(at->text, type.withConst(true), place),
                            ifStmt(logicalAnd(isHere, substitute(loop->expr, {{k->text, at}})), made)});
  StmtRef all = atLine(loop->line, countedFor(step->text, step->type, intLit(0), intLit(found.last - found.first + 1),
                                              1, loopBody, FullUnroll));
  return all;
}

void Visitor::visit(std::vector<StmtRef> &list, std::optional<int64_t> copies, std::vector<Stmt *> around) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (const auto found = stepped(*list[i])) {
      StmtRef init = list[i]->init, all = overAllPlaces(list[i], *found);
      list[i] = all;
      if (init && init->kind == StmtKind::Decl && list.size() > 1) { // others may have the name
        const std::string name = freshName(taken, init->text);
        substitute(*all, {{init->text, var(name, init->type)}});
        init = clone(init);
        init->text = name;
      }
      if (init)
        list.insert(list.begin() + long(i++), init);
      if (copies && *copies * (found->last - found->first + 1) <= mostUnrolled)
        for (Stmt *loop : around)
          loop->unroll = FullUnroll;
      continue;
    }
    const StmtRef s = list[i];
    const auto counted = isLoop(*s) ? asCountedLoop(*s) : std::nullopt;
    const auto trips = counted ? counted->tripCount() : std::nullopt;
    std::vector<Stmt *> inside = around;
    if (trips)
      inside.push_back(s.get());
    const auto within = !isLoop(*s) ? copies : copies && trips ? std::optional(*copies * *trips) : std::nullopt;
    for (const StmtRef &child : s->body)
      if (child->kind == StmtKind::Block)
        visit(child->body, within, inside);
  }
}

void optiml::visitEveryPlace(Kernel &kernel, const Stmt &declaration) {
  Visitor(kernel, declaration).visit(kernel.body->body, 1, {});
}
