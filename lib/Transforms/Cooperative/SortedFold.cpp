//===- SortedFold.cpp - the k best values, over threads -------------------===//
//
// Why the result is the same: with the array sorted and full before, an insertion leaves the k best of the array and
// the value. So at the end the array holds the k best of what it was filled with, k times, and all values, wherever
// they came in; values that are not comparable (NaN) never come in. Threads that each begin with a filled array and get
// some of the values hold the k best of theirs among them, and the k best of all arrays together are the k best of all.
// Keeping more than k values changes nothing about the first k of them. Equal values are alike, except zeros of
// different signs.
//
// Where the place of each value is kept beside it, equal values are not alike: only what is strictly better moves
// others back, so that among them the first that came stays first. Places grow with the iterations: the lesser place
// came first.
//
//===----------------------------------------------------------------------===//
#include "SortedFold.h"
#include "optiml/Analysis/KeptList.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

//===----------------------------------------------------------------------===//
// Recognizing
//===----------------------------------------------------------------------===//

/// "array[index]"; null otherwise.
static ExprRef indexOf(const ExprRef &e, const std::string &array) {
  return e->kind == ExprKind::Subscript && isVar(e->args[0], array) ? e->args[1] : nullptr;
}

static unsigned mentionsUnder(const Stmt &s, const std::string &name) { return countMentions(s)[name]; }

static bool isConstantFor(const ExprRef &value, const SortedFold &fold, const std::string &counter) {
  if (llvm::any_of(fold.arrays(), [&](const std::string &array) { return mentions(value, array); }) ||
      mentions(value, counter) || !onlyComputes(value))
    return false;
  // What would not be evaluated for no elements at all.
  return !anyNode(value, [](const ExprRef &e) { return isLoad(e) || isUnary(e, "*") || isIntDivision(e); });
}

/// for (i = 0; i < count; ++i) array[i] = constant; the arrays that it fills go into `filled`.
static bool isFill(const KernelModel &model, Stmt &s, const SortedFold &fold, std::vector<std::string> &filled) {
  auto counted = asCountedLoop(s);
  if (!counted || counted->step != 1 || constantValue(counted->lower) != 0 ||
      !(model.poly(counted->upper) == fold.count))
    return false;
  for (const StmtRef &fill : s.body[0]->body) {
    if (!isAssignStmt(*fill) || !isConstantFor(fill->expr->args[1], fold, counted->var))
      return false;
    bool known = false;
    for (const std::string &array : fold.arrays())
      if (ExprRef index = indexOf(fill->expr->args[0], array); index && isVar(index, counted->var)) {
        filled.push_back(array);
        known = true;
      }
    if (!known)
      return false;
  }
  return true;
}

/// Places grow from each iteration of the loop to the next.
static bool placesGrow(const KernelModel &model, Stmt &loop, const SortedFold &fold) {
  auto counted = asCountedLoop(loop);
  if (!counted || counted->step <= 0 || fold.insertions.size() != 1)
    return false;
  std::set<std::string> inside = namesDeclaredIn(*loop.body[0]);
  inside.insert(counted->var);
  bool once = true; // an iteration inserts at most one value
  walk(*loop.body[0], [&](Stmt &s) { once &= !isLoop(s) || !holdsStmt(s, fold.insertions[0].stmt); });
  Poly place = model.poly(fold.insertions[0].place);
  auto factor = place.coefficient(counted->var);
  auto constant = factor ? factor->constant() : std::nullopt;
  return once && constant && *constant > 0 && model.stable(place) &&
         !model.dependsOn(place - *factor * Poly::atom(counted->var), inside);
}

/// Besides the fill and the insertions, elements are only read.
static bool isOnlyRead(Kernel &kernel, const SortedFold &fold, const std::string &array) {
  if (opaqueMentions(*kernel.body, {array}))
    return false;
  std::set<const Stmt *> known(fold.fills.begin(), fold.fills.end());
  for (const SortedFold::Insertion &i : fold.insertions)
    known.insert(i.stmt);
  bool good = true;
  std::function<void(Stmt &)> visit = [&](Stmt &s) {
    if (known.count(&s))
      return;
    std::function<void(const ExprRef &, bool)> look = [&](const ExprRef &e, bool element) {
      good &= element || !isVar(e, array);
      good &= !mayChange(e) || !indexOf(e->args[0], array);
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

/// The statements of an insertion as one: in a block of their own, if there are several.
static Stmt *asOneStatement(const KeptList &list) {
  std::vector<StmtRef> &body = list.list->body;
  if (list.last - list.first == 1)
    return body[list.first].get();
  auto from = body.begin() + long(list.first), to = body.begin() + long(list.last);
  StmtRef whole = block({from, to});
  body.insert(body.erase(from, to), whole);
  return whole.get();
}

/// The lists in local arrays, whose entries are their first elements, by array; nothing where they do not fit together.
static std::map<std::string, std::optional<SortedFold>> sortedIn(const KernelModel &model, Stmt &loop, int64_t most) {
  std::map<std::string, std::optional<SortedFold>> found;
  std::vector<KeptList> lists = findKeptLists(model, loop, most);
  for (const KeptList &list : llvm::reverse(lists)) { // from the end: statements before keep their places
    auto lies = [](const KeptList::Array &a) {
      return a.space == Space::Local && a.root->kind == ExprKind::Var && a.base == Poly(0) && a.scale == Poly(1);
    };
    if (!lies(list.values) || (list.places && !lies(*list.places)) || list.isCounted() || !list.ignoresUnordered)
      continue;
    SortedFold fold{list.values.name, list.values.type, std::nullopt, list.descending, list.length, nullptr, {}, {}};
    if (list.places)
      fold.places = SortedFold::Places{list.places->name, list.places->type, nullptr};
    auto [it, added] = found.emplace(fold.array, fold);
    bool fits = it->second && (added || (it->second->descending == fold.descending && it->second->count == fold.count &&
                                         !fold.places && !it->second->places));
    if (fits)
      it->second->insertions.push_back({asOneStatement(list), list.value, list.place});
    else
      it->second.reset();
  }
  return found;
}

std::vector<SortedFold> optiml::findSortedFolds(Kernel &kernel, const KernelModel &model, Stmt &loop,
                                                const std::vector<StmtRef> &before, int64_t most) {
  std::map<std::string, std::optional<SortedFold>> found = sortedIn(model, loop, most);
  std::vector<SortedFold> result;
  for (auto &[array, fold] : found) {
    if (!fold)
      continue;
    bool good = !fold->places || (found.count(fold->places->array) == 0 && placesGrow(model, loop, *fold));
    for (const SortedFold::Insertion &i : fold->insertions) {
      good &= i.value->type.sameNumber(fold->type);
    }
    std::vector<std::string> filled, wanted = fold->arrays();
    for (const StmtRef &s : before)
      if (llvm::any_of(wanted, [&](const std::string &name) { return mentionsUnder(*s, name); })) {
        good &= isFill(model, *s, *fold, filled);
        fold->fills.push_back(s.get());
      }
    llvm::sort(filled);
    llvm::sort(wanted);
    // Places of values that never came may be anything.
    good &= (filled == wanted || filled == std::vector{array}) && model.stable(fold->count);
    for (const std::string &name : wanted) {
      Stmt *d = findDeclaration(*kernel.body, name);
      unsigned explained = 0;
      for (const SortedFold::Insertion &i : fold->insertions)
        explained += mentionsUnder(*i.stmt, name);
      good &= d && d->dims.size() == 1 && d->dims[0] && constantValue(d->dims[0]) && !d->isShared && !d->expr &&
              explained == mentionsUnder(loop, name) && isOnlyRead(kernel, *fold, name);
      (name == fold->array ? fold->declaration : fold->places->declaration) = d;
    }
    auto exchangeable = [](const Type &t, bool fractions) {
      return (t.cls == Type::Class::Int || (fractions && t.isFloat())) && (t.bytes == 4 || t.bytes == 8);
    };
    if (!good || !exchangeable(fold->type, true) || (fold->places && !exchangeable(fold->places->type, false)))
      continue;
    result.push_back(std::move(*fold));
  }
  return result;
}

std::vector<Poly> optiml::sortedCounts(const Kernel &kernel, const KernelModel &model) {
  std::vector<Poly> result;
  for (const auto &[path, loop] : countedLoops(kernel))
    for (const KeptList &list : findKeptLists(model, *loop, 3))
      result.push_back(list.length);
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

/// Of values with places: a is better, or as good and came before.
ExprRef SortedCombiner::comesBefore(const Entry &a, const Entry &b) const {
  auto compare = [](const char *op, const ExprRef &x, const ExprRef &y) { return binary(op, x, y, Type::makeBool()); };
  return compare("||", compare(fold.descending ? ">" : "<", a.value, b.value),
                 compare("&&", compare("==", a.value, b.value), compare("<", a.place, b.place)));
}

StmtRef SortedCombiner::put(const ExprRef &index, const Entry &from) const {
  return block({exprStmt(assign("=", element(index), from.value)), exprStmt(assign("=", placeAt(index), from.place))});
}

/// Every element becomes the one in the middle of itself, the one before it, and the value. With places, that of what
/// an element becomes goes with it.
StmtRef SortedCombiner::inserted(const Entry &added) {
  ExprRef place = var(entry, Type::makeInt()), previous = sub(place, intLit(1)), first = intLit(0);
  const char *isBetter = fold.descending ? ">" : "<";
  auto beats = [&](const ExprRef &index) { return binary(isBetter, added.value, element(index), Type::makeBool()); };
  ExprRef enters = beats(intLit(size - 1));
  if (bound)
    enters = logicalAnd(binary(fold.descending ? ">=" : "<=", added.value, bound, Type::makeBool()), enters);
  if (fold.places) {
    StmtRef shift =
        ifStmt(beats(previous), put(place, entryAt(previous)), block({ifStmt(beats(place), put(place, added))}));
    return ifStmt(enters,
                  block({downTo(entry, size - 1, "-=", 1, block({shift})), ifStmt(beats(first), put(first, added))}));
  }
  ExprRef moved = better(element(place), worse(element(previous), added.value));
  StmtRef shift = downTo(entry, size - 1, "-=", 1, block({exprStmt(assign("=", element(place), moved))}));
  return ifStmt(enters, block({shift, exprStmt(assign("=", element(first), better(element(first), added.value)))}));
}

/// The value that the lane has whose number differs by exclusive or.
static ExprRef ofLane(const ExprRef &own, const ExprRef &apart, const Type &type) {
  return callOf("__shfl_xor_sync", {intLit(0xffffffff, Type::makeUnsigned()), own, apart}, type, false);
}

// Each of `size` groups of a warp's lanes has seen a value that is no worse than the worst of what they have seen best:
// so many values are no worse than this one, and what is worse is not among the best. Where a group has seen nothing,
// it has what the array was filled with, than which nothing worse comes in.
std::vector<StmtRef> SortedCombiner::filter(const StmtRef &loop) {
  bound = var(freshName(taken, fold.array + "_bound"), fold.type);
  auto place = findPlace(*loop, fold.insertions[0].stmt);
  StmtRef &at = place->block->body[place->index];
  const StmtRef insertion = std::exchange(at, exprStmt(assign("=", bound, better(bound, fold.insertions[0].value))));
  StmtRef pass = clone(loop);
  at = insertion;
  renameDeclarations(*pass->body[0], taken);
  std::vector<StmtRef> made = {declStmt(bound->text, fold.type, element(intLit(size - 1))), pass};
  const int64_t lanes = 32;
  for (int64_t apart = 1; apart < lanes; apart *= 2) {
    ExprRef other = ofLane(bound, intLit(apart), fold.type);
    made.push_back(exprStmt(assign("=", bound, apart < lanes / size ? better(bound, other) : worse(bound, other))));
  }
  return made;
}

void SortedCombiner::rewriteThread(Kernel &kernel, std::vector<StmtRef> &retired) {
  fold.declaration->dims = {intLit(size)};
  fold.declaration->type = fold.type;
  if (fold.places)
    fold.places->declaration->dims = {intLit(size)};
  std::string filled = fold.fills[0]->init->text;
  if (fold.places && !mentionsUnder(*fold.fills[0], fold.places->array) && fold.fills.size() == 1)
    fold.fills[0]->body[0]->body.push_back(
        exprStmt(assign("=", placeAt(var(filled, fold.fills[0]->init->type)), intLit(0))));
  for (Stmt *fill : fold.fills) {
    fill->expr = lessThan(var(fill->init->text, fill->init->type), intLit(size));
    fill->unroll = FullUnroll;
  }
  for (const SortedFold::Insertion &i : fold.insertions) {
    auto place = findPlace(*kernel.body, i.stmt);
    std::vector<StmtRef> &list = place->block->body;
    std::vector<StmtRef> with;
    auto named = [&](const ExprRef &e, const char *wish, const Type &type) { // it is used many times
      if (!e || e->kind == ExprKind::Var)
        return e;
      with.push_back(declStmt(freshName(taken, wish), type, e));
      return var(with.back()->text, type);
    };
    Entry added{named(i.value, "value", fold.type), nullptr};
    if (fold.places)
      added.place = named(i.place, "place", fold.places->type);
    with.push_back(inserted(added));
    retired.push_back(list[place->index]);
    list.erase(list.begin() + long(place->index));
    list.insert(list.begin() + long(place->index), with.begin(), with.end());
  }
}

/// Sorts elements that rise and then fall, or the other way round: a bitonic merge.
StmtRef SortedCombiner::sorted() {
  ExprRef apart = var(distance, Type::makeInt()), kept = var(freshName(taken, "kept"), fold.type);
  std::string keptPlace = fold.places ? freshName(taken, "kept_place") : "";
  StmtRef pass = everyElement([&](const ExprRef &i) {
    ExprRef up = add(i, apart), low = element(i), high = element(up);
    StmtRef exchange = block({declStmt(kept->text, fold.type, better(low, high)),
                              exprStmt(assign("=", high, worse(low, high))), exprStmt(assign("=", low, kept))});
    if (fold.places) {
      Entry first{kept, var(keptPlace, fold.places->type)};
      exchange = block({declStmt(kept->text, fold.type, low), declStmt(keptPlace, fold.places->type, placeAt(i))});
      for (const StmtRef &part : {put(i, entryAt(up)), put(up, first)})
        exchange->body.insert(exchange->body.end(), part->body.begin(), part->body.end());
      exchange = block({ifStmt(comesBefore(entryAt(up), entryAt(i)), exchange)});
    }
    return ifStmt(binary("==", binary("&", i, apart, Type::makeInt()), intLit(0), Type::makeBool()), exchange);
  });
  return downTo(distance, size / 2, "/=", 2, block({pass}));
}

/// The best of two sorted arrays: the better of one's first and the other's last, and so on; sorted.
std::vector<StmtRef> SortedCombiner::merged(const std::function<Entry(const ExprRef &)> &other) {
  return {everyElement([&](const ExprRef &i) -> StmtRef {
            if (fold.places)
              return ifStmt(comesBefore(other(i), entryAt(i)), put(i, other(i)));
            return exprStmt(assign("=", element(i), better(element(i), other(i).value)));
          }),
          sorted()};
}

std::vector<StmtRef> SortedCombiner::combine() {
  ExprRef last = intLit(size - 1), partner = var(offset, Type::makeInt());
  std::vector<std::pair<ExprRef, Type>> arrays = {{var(fold.array, fold.type), fold.type}};
  if (fold.places)
    arrays.emplace_back(var(fold.places->array, fold.places->type), fold.places->type);
  // Arrays beside those of the thread, and what is fetched into them or comes from them.
  auto beside = [&](const char *suffix) {
    std::vector<ExprRef> names;
    for (const auto &[array, type] : arrays)
      names.push_back(var(freshName(taken, array->text + suffix), type));
    return names;
  };
  auto entryOf = [&](const std::vector<ExprRef> &names, const ExprRef &i) {
    return Entry{subscript(names[0], i, arrays[0].second),
                 names.size() > 1 ? subscript(names[1], i, arrays[1].second) : nullptr};
  };
  auto copies = [&](const std::function<std::pair<ExprRef, ExprRef>(size_t)> &targetAndValue) {
    StmtRef list = block();
    for (size_t k = 0; k < arrays.size(); ++k) {
      auto [target, value] = targetAndValue(k);
      list->body.push_back(exprStmt(assign("=", target, value)));
    }
    return list;
  };
  auto each = [&](const std::function<std::pair<ExprRef, ExprRef>(size_t, const ExprRef &)> &make) {
    StmtRef loop = everyElement([&](const ExprRef &i) { return copies([&](size_t k) { return make(k, i); }); });
    loop->body[0] = loop->body[0]->body[0];
    return loop;
  };

  std::vector<ExprRef> others = beside("_of_lane");
  std::vector<StmtRef> lanes;
  for (size_t k = 0; k < arrays.size(); ++k)
    lanes.push_back(declStmt(others[k]->text, arrays[k].second, nullptr, {intLit(size)}));
  lanes.push_back(each([&](size_t k, const ExprRef &i) { // all of them, before any of one's own changes
    const auto &[array, type] = arrays[k];
    ExprRef own = subscript(array, sub(last, i), type);
    return std::pair(subscript(others[k], i, type), ofLane(own, partner, type));
  }));
  for (StmtRef &s : merged([&](const ExprRef &i) { return entryOf(others, i); }))
    lanes.push_back(std::move(s));
  StmtRef overLanes = downTo(offset, 16, "/=", 2, block(lanes));
  overLanes->unroll = NoUnroll;
  if (group.isWithinWarp())
    return {overLanes};

  int64_t warps = group.threads / 32;
  std::vector<ExprRef> all = beside("_of_warps");
  std::vector<StmtRef> result;
  for (size_t k = 0; k < arrays.size(); ++k)
    result.push_back(sharedArray(all[k]->text, arrays[k].second, {intLit(warps * size)}));
  ExprRef thread = builtin("threadIdx.x"), w = var(warp, Type::makeInt());
  StmtRef store = each([&](size_t k, const ExprRef &i) {
    ExprRef at = add(mul(binary("/", thread, intLit(32)), intLit(size)), i);
    return std::pair(subscript(all[k], at, arrays[k].second), subscript(arrays[k].first, i, arrays[k].second));
  });
  StmtRef load = each([&](size_t k, const ExprRef &i) {
    return std::pair(subscript(arrays[k].first, i, arrays[k].second), subscript(all[k], i, arrays[k].second));
  });
  StmtRef overWarps = countedFor(
      warp, Type::makeInt(), intLit(1), intLit(warps), 1,
      block(merged([&](const ExprRef &i) { return entryOf(all, sub(add(mul(w, intLit(size)), last), i)); })), NoUnroll);
  ExprRef lane0 = binary("==", binary("%", thread, intLit(32)), intLit(0), Type::makeBool());
  result.insert(result.end(), {overLanes, ifStmt(lane0, block({store})), barrierStmt(), load, overWarps});
  return result;
}

std::vector<StmtRef> SortedCombiner::ownElement(const std::string &array, const std::string &own) {
  const Type &type = array == fold.array ? fold.type : fold.places->type;
  auto elementOf = [&](const ExprRef &i) { return subscript(var(array, type), i, type); };
  return {declStmt(own, type, elementOf(intLit(0))),
          everyElement(
              [&](const ExprRef &i) {
                ExprRef isMine = binary("==", builtin("threadIdx.x"), i, Type::makeBool());
                return ifStmt(isMine, block({exprStmt(assign("=", var(own, type), elementOf(i)))}));
              },
              1)};
}
