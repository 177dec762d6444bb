//===- SortedFold.cpp - the k best values, over threads -------------------===//
//
// Why the result is the same: with the array sorted and full before, an insertion leaves the k best of the array and the
// value. So at the end the array holds the k best of what it was filled with, k times, and all values, wherever they came
// in; values that are not comparable (NaN) never come in. Threads that each begin with a filled array and get some of
// the values hold the k best of theirs among them, and the k best of all arrays together are the k best of all. Keeping
// more than k values changes nothing about the first k of them. Equal values are alike, except zeros of different signs.
//
//===----------------------------------------------------------------------===//
#include "SortedFold.h"
#include <algorithm>

using namespace optiml;

//===----------------------------------------------------------------------===//
// Recognizing
//===----------------------------------------------------------------------===//

static bool isVar(const ExprRef &e, const std::string &name) { return e->kind == ExprKind::Var && e->text == name; }

/// "array[index]"; null otherwise.
static ExprRef indexOf(const ExprRef &e, const std::string &array) {
  return e->kind == ExprKind::Subscript && isVar(e->args[0], array) ? e->args[1] : nullptr;
}

/// The comparison with its sides exchanged.
static ExprRef mirrored(const ExprRef &e) {
  static const std::map<std::string, std::string> other = {{"<", ">"}, {">", "<"}, {"<=", ">="}, {">=", "<="}};
  if (e->kind != ExprKind::Binary)
    return nullptr;
  auto it = other.find(e->text);
  return it == other.end() ? nullptr : binary(it->second, e->args[1], e->args[0], Type::makeBool());
}

/// i + 1 for an index i, also where it is "k - 1" and k unsigned.
static Poly countUpTo(const KernelModel &model, const ExprRef &index) {
  if (index->kind == ExprKind::Binary && index->text == "-" && constantValue(index->args[1]) == std::optional<int64_t>(1))
    return model.poly(index->args[0]);
  return model.poly(index) + Poly(1);
}

/// Whether `e` is place - 1.
static bool isPrevious(const ExprRef &e, const std::string &place) {
  return e && e->kind == ExprKind::Binary && e->text == "-" && isVar(e->args[0], place) &&
         constantValue(e->args[1]) == std::optional<int64_t>(1);
}

static bool stepsBack(const ExprRef &e, const std::string &place) {
  if (e->kind == ExprKind::IncDec)
    return (e->text == "--x" || e->text == "x--") && isVar(e->args[0], place);
  if (e->kind != ExprKind::Assign || !isVar(e->args[0], place))
    return false;
  return e->text == "-=" ? constantValue(e->args[1]) == std::optional<int64_t>(1) : e->text == "=" && isPrevious(e->args[1], place);
}

/// place > 0
static bool isPositive(const ExprRef &e, const std::string &place) {
  if (e->kind != ExprKind::Binary)
    return false;
  ExprRef m = mirrored(e), test = isVar(e->args[0], place) || !m ? e : m;
  auto bound = constantValue(test->args[1]);
  return isVar(test->args[0], place) && bound && ((test->text == ">" && *bound == 0) || (test->text == ">=" && *bound == 1));
}

static bool isAssignment(const Stmt &s) { return s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign && s.expr->text == "="; }

/// Evaluating it again, or once more, changes nothing.
static bool isPlainValue(const ExprRef &e) {
  bool plain = true;
  walk(e, [&](const ExprRef &n) { plain &= n->pure && n->kind != ExprKind::Assign && n->kind != ExprKind::IncDec && n->kind != ExprKind::Opaque; });
  return plain;
}

namespace {
/// Matches: if (value > array[k - 1]) { place = k - 1; while (place > 0 && array[place - 1] < value) { array[place] =
/// array[place - 1]; place--; } array[place] = value; }
class InsertionMatch {
public:
  InsertionMatch(const KernelModel &model, Stmt &s) : model(model), s(s) {}

  std::optional<SortedFold> match() {
    if (s.kind != StmtKind::If || s.body.size() != 1 || s.body[0]->body.size() != 3)
      return std::nullopt;
    const std::vector<StmtRef> &list = s.body[0]->body;
    const Stmt &start = *list[0], &last = *list[2];
    if (!guard() || start.kind != StmtKind::Decl || !start.type.isInt() || start.type.bytes < 4 || !start.expr || !start.dims.empty() ||
        start.isShared || !(countUpTo(model, start.expr) == fold.count))
      return std::nullopt;
    place = start.text;
    if (!shifts(*list[1]) || !isAssignment(last))
      return std::nullopt;
    ExprRef index = indexOf(last.expr->args[0], fold.array);
    if (!index || !isVar(index, place) || !equal(last.expr->args[1], value) || mentions(value, place))
      return std::nullopt;
    fold.insertions.push_back({&s, value});
    return fold;
  }

private:
  /// value > array[k - 1]
  bool guard() {
    ExprRef flipped = mirrored(s.expr);
    if (!flipped)
      return false;
    for (const ExprRef &test : {s.expr, flipped}) {
      const ExprRef &element = test->args[1];
      if (element->kind != ExprKind::Subscript || element->args[0]->kind != ExprKind::Var || !model.declaration(element->args[0]->text))
        continue;
      fold.array = element->args[0]->text;
      fold.descending = test->text[0] == '>';
      fold.count = countUpTo(model, element->args[1]);
      value = test->args[0];
      fold.type = element->type;
      fold.type.isConst = fold.type.isVolatile = false;
      if (!mentions(value, fold.array) && isPlainValue(value))
        return true;
    }
    return false;
  }

  /// The loop that moves what is worse than the value back by one place.
  bool shifts(const Stmt &loop) {
    if ((loop.kind != StmtKind::While && loop.kind != StmtKind::For) || loop.init || !loop.expr)
      return false;
    std::vector<StmtRef> body = loop.body[0]->body;
    ExprRef step = loop.step;
    if (!step && body.size() == 2 && body[1]->kind == StmtKind::Expr) {
      step = body[1]->expr;
      body.pop_back();
    }
    if (!step || !stepsBack(step, place) || body.size() != 1 || !isAssignment(*body[0]))
      return false;
    ExprRef to = indexOf(body[0]->expr->args[0], fold.array), from = indexOf(body[0]->expr->args[1], fold.array);
    if (!to || !isVar(to, place) || !isPrevious(from, place))
      return false;
    const ExprRef &condition = loop.expr;
    if (condition->kind != ExprKind::Binary || condition->text != "&&" || !isPositive(condition->args[0], place))
      return false;
    ExprRef flipped = mirrored(condition->args[1]);
    if (!flipped)
      return false;
    for (const ExprRef &test : {condition->args[1], flipped}) {
      ExprRef index = indexOf(test->args[1], fold.array);
      if (index && isPrevious(index, place) && equal(test->args[0], value) && (test->text[0] == '>') == fold.descending)
        return true;
    }
    return false;
  }

  const KernelModel &model;
  Stmt &s;
  SortedFold fold;
  ExprRef value;
  std::string place;
};
} // namespace

static unsigned mentionsUnder(Stmt &s, const std::string &name) {
  unsigned count = 0;
  walkExprs(s, [&](const ExprRef &e) { count += e->kind == ExprKind::Var && e->text == name; });
  return count;
}

/// for (i = 0; i < count; ++i) array[i] = constant
static bool isFill(const KernelModel &model, Stmt &s, const SortedFold &fold) {
  auto counted = asCountedLoop(s);
  if (!counted || counted->step != 1 || constantValue(counted->lower) != std::optional<int64_t>(0) ||
      !(model.poly(counted->upper) == fold.count) || s.body[0]->body.size() != 1 || !isAssignment(*s.body[0]->body[0]))
    return false;
  const ExprRef &assigned = s.body[0]->body[0]->expr, &value = assigned->args[1];
  ExprRef index = indexOf(assigned->args[0], fold.array);
  if (!index || !isVar(index, counted->var) || mentions(value, counted->var) || mentions(value, fold.array) || !isPlainValue(value))
    return false;
  bool loads = false; // what would not be evaluated for no elements at all
  walk(value, [&](const ExprRef &e) {
    loads |= e->kind == ExprKind::Subscript || (e->kind == ExprKind::Unary && e->text == "*") ||
             (e->kind == ExprKind::Member && e->args[0]->type.isPointer()) ||
             (e->kind == ExprKind::Binary && (e->text == "/" || e->text == "%") && e->type.isInt());
  });
  return !loads;
}

/// Besides the fill and the insertions, elements are only read.
static bool isOnlyRead(Kernel &kernel, const SortedFold &fold) {
  if (opaqueMentions(*kernel.body, {fold.array}))
    return false;
  std::set<const Stmt *> known = {fold.fill};
  for (const SortedFold::Insertion &i : fold.insertions)
    known.insert(i.stmt);
  bool good = true;
  std::function<void(Stmt &)> visit = [&](Stmt &s) {
    if (known.count(&s))
      return;
    std::function<void(const ExprRef &, bool)> look = [&](const ExprRef &e, bool element) {
      good &= element || !isVar(e, fold.array);
      bool changes = e->kind == ExprKind::Assign || e->kind == ExprKind::IncDec || (e->kind == ExprKind::Unary && e->text == "&");
      good &= !changes || !indexOf(e->args[0], fold.array);
      for (size_t i = 0; i < e->args.size(); ++i)
        look(e->args[i], e->kind == ExprKind::Subscript && i == 0);
    };
    ownExprs(s, [&](ExprRef &e) {
      if (e)
        look(e, false);
    });
    if (s.init)
      visit(*s.init);
    for (const StmtRef &child : s.body)
      visit(*child);
  };
  visit(*kernel.body);
  return good;
}

std::vector<SortedFold> optiml::findSortedFolds(Kernel &kernel, const KernelModel &model, Stmt &loop, const std::vector<StmtRef> &before) {
  std::map<std::string, std::optional<SortedFold>> found; // nothing: used in ways that do not fit together
  walk(loop, [&](Stmt &s) {
    auto fold = InsertionMatch(model, s).match();
    if (!fold)
      return;
    auto [it, added] = found.emplace(fold->array, fold);
    if (added || !it->second)
      return;
    if (it->second->descending == fold->descending && it->second->count == fold->count)
      it->second->insertions.push_back(fold->insertions[0]);
    else
      it->second.reset();
  });
  std::vector<SortedFold> result;
  for (auto &[array, fold] : found) {
    if (!fold)
      continue;
    unsigned explained = 0;
    bool sameType = true;
    for (const SortedFold::Insertion &i : fold->insertions) {
      explained += mentionsUnder(*i.stmt, array);
      const Type &t = i.value->type;
      sameType &= t.cls == fold->type.cls && t.bytes == fold->type.bytes && t.isSigned == fold->type.isSigned;
    }
    walk(*kernel.body, [&](Stmt &s) {
      if (s.kind == StmtKind::Decl && s.text == array)
        fold->declaration = &s;
    });
    for (const StmtRef &s : before)
      if (mentionsUnder(*s, array))
        fold->fill = s.get();
    const Stmt *d = fold->declaration;
    auto extent = d && d->dims.size() == 1 && d->dims[0] ? constantValue(d->dims[0]) : std::nullopt;
    bool exchangeable = (fold->type.cls == Type::Class::Int || fold->type.isFloat()) && (fold->type.bytes == 4 || fold->type.bytes == 8);
    if (explained != mentionsUnder(loop, array) || !sameType || !exchangeable || !extent || d->isShared || d->expr || !model.stable(fold->count) ||
        !fold->fill || !isFill(model, *fold->fill, *fold) || !isOnlyRead(kernel, *fold))
      continue;
    result.push_back(std::move(*fold));
  }
  return result;
}

std::vector<Poly> optiml::sortedCounts(const Kernel &kernel, const KernelModel &model) {
  std::vector<Poly> result;
  walk(*kernel.body, [&](Stmt &s) {
    if (auto fold = InsertionMatch(model, s).match())
      result.push_back(fold->count);
  });
  return result;
}

int64_t optiml::sortedSize(int64_t n) {
  int64_t size = 2;
  while (size < n)
    size *= 2;
  return size;
}

//===----------------------------------------------------------------------===//
// Inserting and merging
//===----------------------------------------------------------------------===//

ExprRef SortedCombiner::extreme(bool most, const ExprRef &a, const ExprRef &b) const {
  std::string name = most ? "max" : "min";
  if (fold.type.isFloat())
    name = std::string(most ? "fmax" : "fmin") + (fold.type.bytes == 4 ? "f" : "");
  return callOf(name, {a, b}, fold.type, true);
}

SortedCombiner::SortedCombiner(SortedFold fold, int64_t size, ThreadGroup group, std::set<std::string> &taken)
    : fold(std::move(fold)), size(size), group(group), taken(taken) {
  for (std::string *loop : {&entry, &distance, &offset, &warp})
    *loop = freshName(taken, *loop);
}

StmtRef SortedCombiner::everyElement(const std::function<StmtRef(const ExprRef &)> &make, int64_t first) const {
  StmtRef body = block({make(var(entry, Type::makeInt()))});
  return countedFor(entry, Type::makeInt(), intLit(first), intLit(size), 1, body, FullUnroll);
}

/// for (place = from; place > 0; op) body, unrolled
static StmtRef downTo(const std::string &name, int64_t from, const std::string &op, int64_t by, StmtRef body) {
  StmtRef s = countedFor(name, Type::makeInt(), intLit(from), intLit(0), 1, std::move(body), FullUnroll);
  ExprRef place = var(name, Type::makeInt());
  s->expr = binary(">", place, intLit(0), Type::makeBool());
  s->step = assign(op, place, intLit(by));
  return s;
}

/// Every element becomes the one in the middle of itself, the one before it, and the value.
StmtRef SortedCombiner::inserted(const ExprRef &value) {
  ExprRef place = var(entry, Type::makeInt());
  ExprRef moved = better(element(place), worse(element(sub(place, intLit(1))), value));
  StmtRef shift = downTo(entry, size - 1, "-=", 1, block({exprStmt(assign("=", element(place), moved))}));
  ExprRef first = element(intLit(0));
  ExprRef enters = binary(fold.descending ? ">" : "<", value, element(intLit(size - 1)), Type::makeBool());
  return ifStmt(enters, block({shift, exprStmt(assign("=", first, better(first, value)))}));
}

void SortedCombiner::rewriteThread(Kernel &kernel, std::vector<StmtRef> &retired) {
  fold.declaration->dims = {intLit(size)};
  fold.declaration->type = fold.type;
  fold.fill->expr = lessThan(var(fold.fill->init->text, fold.fill->init->type), intLit(size));
  fold.fill->unroll = FullUnroll;
  for (const SortedFold::Insertion &i : fold.insertions) {
    auto place = findPlace(*kernel.body, i.stmt);
    std::vector<StmtRef> &list = place->block->body;
    std::vector<StmtRef> with;
    ExprRef value = i.value;
    if (value->kind != ExprKind::Var) { // it is used many times
      value = var(freshName(taken, "value"), fold.type);
      with.push_back(declStmt(value->text, fold.type, i.value));
    }
    with.push_back(inserted(value));
    retired.push_back(list[place->index]);
    list.erase(list.begin() + long(place->index));
    list.insert(list.begin() + long(place->index), with.begin(), with.end());
  }
}

/// Sorts elements that rise and then fall, or the other way round: a bitonic merge.
StmtRef SortedCombiner::sorted() {
  ExprRef apart = var(distance, Type::makeInt()), kept = var(freshName(taken, "kept"), fold.type);
  StmtRef pass = everyElement([&](const ExprRef &i) {
    ExprRef low = element(i), high = element(add(i, apart));
    StmtRef exchange = block({declStmt(kept->text, fold.type, better(low, high)), exprStmt(assign("=", high, worse(low, high))),
                              exprStmt(assign("=", low, kept))});
    return ifStmt(binary("==", binary("&", i, apart, Type::makeInt()), intLit(0), Type::makeBool()), exchange);
  });
  return downTo(distance, size / 2, "/=", 2, block({pass}));
}

/// The best of two sorted arrays: the better of one's first and the other's last, and so on; sorted.
std::vector<StmtRef> SortedCombiner::merged(const std::function<ExprRef(const ExprRef &)> &other) {
  return {everyElement([&](const ExprRef &i) { return exprStmt(assign("=", element(i), better(element(i), other(i)))); }), sorted()};
}

std::vector<StmtRef> SortedCombiner::combine() {
  ExprRef last = intLit(size - 1), mask = intLit(0xffffffff, Type::makeUnsigned());
  ExprRef others = var(freshName(taken, fold.array + "_of_lane"), fold.type);
  auto ofLane = [&](const ExprRef &i) { return subscript(others, i, fold.type); };
  StmtRef fetch = everyElement([&](const ExprRef &i) { // all of them, before any of one's own changes
    ExprRef partner = var(offset, Type::makeInt());
    return exprStmt(assign("=", ofLane(i), callOf("__shfl_xor_sync", {mask, element(sub(last, i)), partner}, fold.type, false)));
  });
  std::vector<StmtRef> lanes = {declStmt(others->text, fold.type, nullptr, {intLit(size)}), fetch};
  for (StmtRef &s : merged(ofLane))
    lanes.push_back(std::move(s));
  StmtRef overLanes = downTo(offset, 16, "/=", 2, block(lanes));
  overLanes->unroll = NoUnroll;
  if (group.isWithinWarp())
    return {overLanes};

  int64_t warps = group.threads / 32;
  std::string all = freshName(taken, fold.array + "_of_warps");
  StmtRef shared = declStmt(all, fold.type, nullptr, {intLit(warps * size)});
  shared->isShared = true;
  ExprRef thread = builtin("threadIdx.x"), w = var(warp, Type::makeInt());
  auto ofWarps = [&](const ExprRef &index) { return subscript(var(all, fold.type), index, fold.type); };
  StmtRef store = everyElement([&](const ExprRef &i) {
    return exprStmt(assign("=", ofWarps(add(mul(binary("/", thread, intLit(32)), intLit(size)), i)), element(i)));
  });
  StmtRef load = everyElement([&](const ExprRef &i) { return exprStmt(assign("=", element(i), ofWarps(i))); });
  StmtRef overWarps = countedFor(warp, Type::makeInt(), intLit(1), intLit(warps), 1, block(merged([&](const ExprRef &i) {
                                   return ofWarps(sub(add(mul(w, intLit(size)), last), i));
                                 })), NoUnroll);
  ExprRef lane0 = binary("==", binary("%", thread, intLit(32)), intLit(0), Type::makeBool());
  return {shared, overLanes, ifStmt(lane0, block({store})), barrierStmt(), load, overWarps};
}

std::vector<StmtRef> SortedCombiner::ownElement(const std::string &own) {
  return {declStmt(own, fold.type, element(intLit(0))), everyElement([&](const ExprRef &i) {
            ExprRef isMine = binary("==", builtin("threadIdx.x"), i, Type::makeBool());
            return ifStmt(isMine, block({exprStmt(assign("=", var(own, fold.type), element(i)))}));
          }, 1)};
}
