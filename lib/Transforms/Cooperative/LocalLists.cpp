//===- LocalLists.cpp - lists of the k best, moved into local arrays ------===//
//
// Without a count, the list is filled before the loop, and the array is filled alike: the values of both are the k best
// of what they were filled with and of what came in. With a count, the array is filled with the least number. A value
// that is above it is never taken for an entry that is not there; when another one comes (-infinity, or no number), the
// loop runs again as it was written. The number of entries at the end is that of values that came, up to k.
//
//===----------------------------------------------------------------------===//
#include "LocalLists.h"
#include "PrivateTable.h"
#include "SortedFold.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/IterationCases.h"
#include "optiml/Analysis/KeptList.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

/// A value that is worse than all others of its type, or as bad as the worst.
ExprRef worstOf(const Type &type, bool descending) {
  if (type.isFloat())
    return neutral(descending ? "max" : "min", type);
  int64_t least = type.isSigned ? (type.bytes == 4 ? INT32_MIN : INT64_MIN) : 0;
  int64_t most = type.isSigned ? (type.bytes == 4 ? INT32_MAX : INT64_MAX) : type.bytes == 4 ? UINT32_MAX : -1;
  if (descending && least)
    return sub(intLit(-(most), type), intLit(1, type)); // the least number has no literal
  return intLit(descending ? least : most, type);
}

class Mover {
public:
  Mover(KernelState &state, Kernel &kernel, const KernelModel &model, int64_t entries)
      : state(state), kernel(kernel), model(model), entries(entries), taken(allNames(kernel)) {}

  /// Moves one list; false where there is none. Statements of `done` are left alone, as are those of what is moved.
  bool run(std::set<const Stmt *> &done, std::set<const Stmt *> &forOneThread) {
    for (const auto &[path, loop] : countedLoops(kernel)) {
      if (llvm::any_of(done, [&, own = loop](const Stmt *s) { return holdsStmt(*s, own); }))
        continue;
      for (const KeptList &list : findKeptLists(model, *loop, entries ? entries : 1))
        if (move(*loop, list)) {
          done.insert(loop);
          if (again)
            done.insert(again.get());
          if (again && !isLocal)
            forOneThread.insert(again.get());
          return true;
        }
    }
    return false;
  }

private:
  bool move(Stmt &loop, const KeptList &list);
  bool filledByDeclaration(const KeptList::Array &array);
  bool isMovable(Stmt &loop, const KeptList &list, const std::vector<StmtRef> &before);
  std::vector<StmtRef> watch(const KeptList &list, const ExprRef &value) const;
  StmtRef runAgain(const KeptList &list, const StmtRef &loop);
  bool standsAlone(Stmt &loop, const KeptList &list) const;
  bool findFills(const std::vector<StmtRef> &before, const KeptList &list);
  bool startsEmpty(const std::vector<StmtRef> &before, const KeptList &list) const;
  bool requireApart(const KeptList &list, Stmt &stores);
  std::vector<StmtRef> declareArrays(const KeptList &list);
  StmtRef insertion(const KeptList &list);
  StmtRef stores(const KeptList &list, const ExprRef &there);
  ExprRef own(const KeptList::Array &array, const ExprRef &index) const {
    return subscript(var(array.name == valuesOf ? ownValues : ownPlaces, array.type), index, array.type);
  }
  std::vector<const KeptList::Array *> arraysOf(const KeptList &list) const {
    return list.places ? std::vector{&list.values, &*list.places} : std::vector{&list.values};
  }

  KernelState &state;
  Kernel &kernel;
  const KernelModel &model;
  int64_t entries;
  std::set<std::string> taken;
  // Of the list at hand:
  int64_t size = 0;
  bool isLocal = false, mayRunAgain = false;
  StmtRef again; ///< the loop as it was, if it may have to run again
  ExprRef odd, seen;
  std::string valuesOf, ownValues, ownPlaces;
  std::map<std::string, ExprRef> fill; ///< by array
};

} // namespace

/// Nothing else in the kernel's loop has to do with the list, and (where it may run twice) nothing else is changed.
bool Mover::standsAlone(Stmt &loop, const KeptList &list) const {
  std::set<const Expr *> inside;
  std::vector<StmtRef> region(list.list->body.begin() + long(list.first), list.list->body.begin() + long(list.last));
  for (const StmtRef &s : region)
    walkExprs(*s, [&](const ExprRef &e) { inside.insert(e.get()); });
  for (const Access &access : model.accesses()) {
    if (!insideOf(access, &loop) && access.stmt != &loop)
      continue;
    bool ofList = access.array == list.values.name || (list.places && access.array == list.places->name);
    bool isOwn = inside.count(access.node.get());
    if (ofList && !isOwn)
      return false;
    if (mayRunAgain && access.write && !isOwn && !namesDeclaredIn(loop).count(access.array))
      return false;
  }
  std::set<std::string> declared = namesDeclaredIn(loop);
  if (loop.init)
    declared.insert(loop.init->text);
  bool alone = true;
  walkExprs(loop, [&](const ExprRef &e) {
    if (!inside.count(e.get()) && e->kind == ExprKind::Var && !list.count.empty() && e->text == list.count)
      alone = false;
    if (mayRunAgain && mayChange(e) && e->args[0]->kind == ExprKind::Var && !declared.count(e->args[0]->text) &&
        e->args[0]->text != list.count)
      alone = false;
  });
  if (holdsKind(loop, {StmtKind::Opaque, StmtKind::Return, StmtKind::Barrier}))
    return false;
  // The counter says how many came only where one comes in every iteration.
  bool comesAlways = list.list == loop.body[0] && !holdsKind(loop, {StmtKind::Continue, StmtKind::Break});
  return alone && (!list.countsIterations || comesAlways);
}

/// What all entries are filled with by loops right before.
bool Mover::findFills(const std::vector<StmtRef> &before, const KeptList &list) {
  for (const StmtRef &s : before) {
    auto counted = asCountedLoop(*s);
    for (const KeptList::Array *array : arraysOf(list)) {
      bool mentioned = false;
      for (const Access &access : model.accesses()) {
        if (access.array != array->name || !(insideOf(access, s.get()) || access.stmt == s.get()))
          continue;
        mentioned = true;
        bool fills = counted && counted->step == 1 && constantValue(counted->lower) == 0 &&
                     model.poly(counted->upper) == list.length && access.write && !access.read && !access.atomic &&
                     access.stmt->kind == StmtKind::Expr && isAssignStmt(*access.stmt) && access.path.size() >= 2 &&
                     access.path[access.path.size() - 2] == s.get() &&
                     access.stmt->expr->args[0].get() == access.node.get();
        if (!fills || access.subscripts.size() != 1)
          return false;
        Poly entry = Poly::atom(counted->var), last = list.length - Poly(1);
        auto isEntry = [&](const Poly &i) { return access.subscripts[0] == array->scale * i + array->base; };
        if (!isEntry(entry) && !isEntry(last - entry))
          return false;
        const ExprRef &value = access.stmt->expr->args[1];
        bool isConstant = !anyNode(value, [](const ExprRef &e) {
          return e->kind == ExprKind::Var || e->kind == ExprKind::Opaque || isLoad(e) || isChange(e);
        });
        if (!isConstant || !onlyComputes(value))
          return false;
        fill[array->name] = value;
      }
      if (mentioned && !fill.count(array->name))
        return false;
    }
  }
  return fill.count(list.values.name);
}

/// "int count = 0;" stands before the loop, and nothing in between changes it.
bool Mover::startsEmpty(const std::vector<StmtRef> &before, const KeptList &list) const {
  if (list.countsIterations)
    return true;
  for (const StmtRef &s : llvm::reverse(before)) {
    if (s->kind == StmtKind::Decl && s->text == list.count)
      return s->expr && constantValue(s->expr) == 0;
    if (isAssignStmt(*s) && isVar(s->expr->args[0], list.count))
      return constantValue(s->expr->args[1]) == 0;
    if (anyExpr(*s, [&](const ExprRef &e) { return isVar(e, list.count); }))
      return false;
  }
  return false;
}

/// What is stored later, or elsewhere, must not be what something else reads or writes.
bool Mover::requireApart(const KeptList &list, Stmt &stores) {
  // It touches the same memory, and tells which elements these are: entries up to the list's length.
  ExprRef upTo = std::exchange(stores.expr, lessThan(stores.expr->args[0], polyExpr(model, list.length)));
  state.original = kernel.clone();
  stores.expr = upTo;
  KernelModel made(*state.original, {0, 0, 0});
  std::set<std::string> others;
  for (const Access &access : made.accesses())
    if (access.space == Space::Global)
      others.insert(access.array);
  for (const KeptList::Array *array : arraysOf(list))
    for (const std::string &other : others)
      if (other != array->name)
        if (llvm::Error e = requireDisjoint(state, made, array->name, other)) {
          llvm::consumeError(std::move(e));
          return false;
        }
  return true;
}

std::vector<StmtRef> Mover::declareArrays(const KeptList &list) {
  std::vector<StmtRef> result;
  std::string i = freshName(taken, "entry");
  StmtRef fills = block();
  for (const KeptList::Array *array : arraysOf(list)) {
    std::string base = llvm::StringRef(array->name).rsplit('.').second.str();
    std::string &name = array == &list.values ? ownValues : ownPlaces;
    name = freshName(taken, (base.empty() ? array->name : base) + "_of_thread");
    result.push_back(declStmt(name, array->type, nullptr, {intLit(size)}));
    ExprRef with =
        fill.count(array->name) ? fill[array->name] : worstOf(array->type, array == &list.values && list.descending);
    if (array != &list.values && !fill.count(array->name))
      with = intLit(0, array->type);
    fills->body.push_back(exprStmt(assign("=", own(*array, var(i, Type::makeInt())), with)));
  }
  result.push_back(countedFor(i, Type::makeInt(), intLit(0), intLit(size), 1, fills, NoUnroll));
  return result;
}

/// if (value > array[size - 1]) { place = size - 1; while (place > 0 && array[place - 1] < value) … }
StmtRef Mover::insertion(const KeptList &list) {
  StmtRef body = block();
  ExprRef value = list.value, place = list.place;
  auto named = [&](ExprRef &e, const char *wish, const Type &type) {
    if (e->kind == ExprKind::Var)
      return;
    std::string name = freshName(taken, wish);
    body->body.push_back(declStmt(name, type.withConst(true), e));
    e = var(name, type);
  };
  named(value, "value", list.values.type);
  if (place)
    named(place, "place", list.places->type);
  for (StmtRef &s : watch(list, value))
    body->body.push_back(std::move(s));
  const char *better = list.descending ? ">" : "<";
  auto beats = [&](const ExprRef &index) { return binary(better, value, own(list.values, index), Type::makeBool()); };
  std::string at = freshName(taken, "at");
  ExprRef here = var(at, Type::makeInt()), previous = sub(here, intLit(1));
  StmtRef shift = block();
  for (const KeptList::Array *array : arraysOf(list))
    shift->body.push_back(exprStmt(assign("=", own(*array, here), own(*array, previous))));
  StmtRef shifts = countedFor(at, Type::makeInt(), intLit(0), intLit(size), 1, shift, NoUnroll);
  shifts->init = nullptr;
  shifts->expr = logicalAnd(binary(">", here, intLit(0), Type::makeBool()), beats(previous));
  shifts->step = assign("-=", here, intLit(1));
  StmtRef enters = block(
      {declStmt(at, Type::makeInt(), intLit(size - 1)), shifts, exprStmt(assign("=", own(list.values, here), value))});
  if (place)
    enters->body.push_back(exprStmt(assign("=", own(*list.places, here), place)));
  body->body.push_back(ifStmt(beats(intLit(size - 1)), enters));
  return body;
}

/// for (i = 0; i < size; ++i) if (i < length && i < there) array[…] = own[i]; `there` may be null
StmtRef Mover::stores(const KeptList &list, const ExprRef &there) {
  std::string i = freshName(taken, "entry");
  ExprRef entry = var(i, Type::makeInt());
  StmtRef stored = block();
  for (const KeptList::Array *array : arraysOf(list)) {
    ExprRef index = polyExpr(model, array->scale * Poly::atom(i) + array->base);
    for (const Access &access : model.accesses())
      if (access.array == array->name && access.wideIndex) {
        index = wideExpr(index);
        break;
      }
    stored->body.push_back(exprStmt(assign("=", subscript(array->root, index, array->type), own(*array, entry))));
  }
  ExprRef isThere = lessThan(entry, polyExpr(model, list.length));
  if (there)
    isThere = logicalAnd(isThere, lessThan(entry, there));
  return countedFor(i, Type::makeInt(), intLit(0), intLit(size), 1, block({ifStmt(isThere, stored)}), NoUnroll);
}

/// The list is one that has to be moved, and nothing speaks against it.
bool Mover::isMovable(Stmt &loop, const KeptList &list, const std::vector<StmtRef> &before) {
  fill.clear();
  isLocal = list.values.space == Space::Local && (!list.places || list.places->space == Space::Local);
  mayRunAgain = list.isCounted() || !list.ignoresUnordered;
  bool isInitialized = isLocal && filledByDeclaration(list.values);
  if (isLocal && !mayRunAgain && !isInitialized)
    return false; // it is what is wanted
  if (isLocal != (list.values.space == Space::Local) || !list.value->type.sameNumber(list.values.type) ||
      (list.place && !list.place->type.sameNumber(list.places->type)))
    return false;
  auto constant = list.length.constant();
  size = constant ? sortedSize(*constant) : entries;
  if (!size || size > mostSorted || !model.stable(list.length) || !standsAlone(loop, list))
    return false;
  if (isInitialized && !list.isCounted()) {
    for (const KeptList::Array *array : arraysOf(list))
      if (!filledByDeclaration(*array) || llvm::any_of(before, [&](const StmtRef &s) {
            return anyExpr(*s, [&](const ExprRef &e) { return isVar(e, array->name); });
          }))
        return false;
    return true;
  }
  return list.isCounted() ? startsEmpty(before, list) : findFills(before, list);
}

/// "uint64_t keys[16] = {0};": what all entries are then.
bool Mover::filledByDeclaration(const KeptList::Array &array) {
  const Stmt *d = model.declaration(array.name);
  if (!d || d->isShared || !d->expr || d->expr->kind != ExprKind::InitList)
    return false;
  for (const ExprRef &e : d->expr->args)
    if (numberOf(e) != 0.0)
      return false;
  fill[array.name] = intLit(0, array.type.isInt() ? array.type : Type::makeInt());
  return true;
}

/// The values that come are counted, and whether one of them is like an entry that is not there.
std::vector<StmtRef> Mover::watch(const KeptList &list, const ExprRef &value) const {
  std::vector<StmtRef> result;
  if (list.isCounted())
    result.push_back(exprStmt(assign("+=", seen, intLit(1))));
  if (mayRunAgain) {
    const char *better = list.descending ? ">" : "<";
    ExprRef isOrdered = list.isCounted() ? binary(better, value, worstOf(list.values.type, list.descending))
                                         : binary("==", value, value, Type::makeBool());
    result.push_back(exprStmt(assign("|=", odd, conditional(isOrdered, intLit(0), intLit(1)))));
  }
  return result;
}

/// The loop as it was, with a count of its own.
StmtRef Mover::runAgain(const KeptList &list, const StmtRef &loop) {
  StmtRef result = block({loop}, "A value that is none, or the least one: as it was.");
  renameDeclarations(*result, taken);
  if (!list.count.empty()) {
    const Type type = model.declaration(list.count)->type.unqualified();
    std::string name = freshName(taken, list.count + "_again");
    substitute(*loop, {{list.count, var(name, type)}});
    result->body.insert(result->body.begin(), declStmt(name, type, intLit(0)));
  }
  return result;
}

bool Mover::move(Stmt &loop, const KeptList &list) {
  auto place = findPlace(*kernel.body, &loop);
  if (!place)
    return false;
  std::vector<StmtRef> &statements = place->block->body, &body = list.list->body;
  auto constant = list.length.constant();
  auto length = planText(model, list.length);
  if ((!constant && !length) || !isMovable(loop, list, {statements.begin(), statements.begin() + long(place->index)}))
    return false;
  KernelState saved = state;
  const std::vector<StmtRef> oldStatements = statements, oldBody = body;
  StmtRef asItWas = clone(statements[place->index]);
  if (!constant) {
    state.require("1 <= " + *length, "the list has entries");
    state.require(*length + " <= " + std::to_string(size), "the sorted arrays hold all that is kept");
  }

  valuesOf = list.values.name;
  std::vector<StmtRef> made = declareArrays(list), after;
  odd = var(freshName(taken, "unordered"), Type::makeInt());
  seen = var(freshName(taken, "seen"), Type::makeInt());
  if (mayRunAgain)
    made.push_back(declStmt(odd->text, odd->type, intLit(0)));
  ExprRef there;
  if (list.isCounted()) {
    made.push_back(declStmt(seen->text, seen->type, intLit(0)));
    there = var(freshName(taken, "entries"), Type::makeInt());
    ExprRef most = castTo(Type::makeInt(), polyExpr(model, list.length));
    after.push_back(
        declStmt(there->text, there->type.withConst(true), callOf("min", {seen, most}, Type::makeInt(), true)));
    if (!list.count.empty())
      after.push_back(exprStmt(assign("=", var(list.count, model.declaration(list.count)->type), there)));
  }
  StmtRef insert = insertion(list);
  body.erase(body.begin() + long(list.first), body.begin() + long(list.last));
  body.insert(body.begin() + long(list.first), insert->body.begin(), insert->body.end());
  StmtRef storeAll = stores(list, there), result = storeAll;
  if (mayRunAgain)
    result = ifStmt(binary("==", odd, intLit(0), Type::makeBool()), block({result}));
  after.push_back(result);
  statements.insert(statements.begin() + long(place->index) + 1, after.begin(), after.end());
  statements.insert(statements.begin() + long(place->index), made.begin(), made.end());
  if (!isLocal && !requireApart(list, *storeAll)) {
    statements = oldStatements;
    body = oldBody;
    state = saved;
    return false;
  }
  if (mayRunAgain) {
    again = runAgain(list, asItWas);
    result->body.push_back(block({again}));
  }
  return true;
}

std::set<const Stmt *> optiml::moveListsIntoArrays(KernelState &state, Kernel &kernel, int64_t entries) {
  std::set<const Stmt *> done, forOneThread;
  for (bool more = true; more;) {
    KernelModel model(kernel, {0, 0, 0});
    more = Mover(state, kernel, model, entries).run(done, forOneThread);
  }
  return forOneThread;
}
