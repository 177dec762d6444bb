//===- ListCases.cpp - statements on a sorted list, run case by case ------===//
#include "ListCases.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Core/KernelName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <algorithm>

using namespace optiml;
using Value = ListMachine::Value;
using Kind = ListMachine::Value::Kind;

/// The number as its type keeps it.
static int64_t wrapped(int64_t n, const Type &type) {
  if (type.cls == Type::Class::Bool)
    return n != 0;
  if (type.bytes >= 8 || !type.bytes)
    return n;
  unsigned bits = type.bytes * 8;
  int64_t low = n & ((int64_t(1) << bits) - 1);
  return type.isSigned && low >> (bits - 1) ? low - (int64_t(1) << bits) : low;
}

ListMachine::ListMachine(const KernelModel &model, const KeptList &list, std::set<std::string> changed,
                         std::string counter)
    : model(model), list(list), changed(std::move(changed)), counter(std::move(counter)) {
  for (const Access &access : model.accesses())
    accesses.emplace(access.node.get(), &access);
}

Value ListMachine::fail() {
  failed = true;
  return {};
}

Value ListMachine::of(const std::string &variable) const {
  auto it = variables.find(variable);
  return it == variables.end() ? Value{} : it->second;
}

bool ListMachine::run(const std::vector<StmtRef> &statements, const ListCase &start) {
  now = start;
  failed = false;
  steps = 0;
  variables.clear();
  values.assign(size_t(now.length), {});
  places.assign(size_t(now.length), {});
  for (int64_t i = 0; i < now.count; ++i) {
    values[size_t(i)] = {Kind::Entry, i, nullptr};
    places[size_t(i)] = {Kind::Place, i, nullptr};
  }
  if (!list.count.empty())
    variables[list.count] = {Kind::Integer, now.count, nullptr};
  for (const StmtRef &s : statements) {
    auto flow = execute(*s);
    if (!flow || failed || flow == Flow::Break)
      return false;
    if (flow == Flow::Continue)
      return true;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

std::optional<ListMachine::Flow> ListMachine::execute(const Stmt &s) {
  if (failed || ++steps > 64 + 64 * now.length)
    return std::nullopt;
  switch (s.kind) {
  case StmtKind::Block:
    for (const StmtRef &child : s.body) {
      auto flow = execute(*child);
      if (flow != Flow::Next)
        return flow;
    }
    return Flow::Next;
  case StmtKind::Decl: return declare(s) ? std::optional(Flow::Next) : std::nullopt;
  case StmtKind::Expr: evaluate(s.expr); return failed ? std::nullopt : std::optional(Flow::Next);
  case StmtKind::If: {
    auto taken = truth(s.expr);
    if (!taken)
      return std::nullopt;
    if (*taken)
      return execute(*s.body[0]);
    return s.body.size() > 1 ? execute(*s.body[1]) : Flow::Next;
  }
  case StmtKind::For:
  case StmtKind::While:
  case StmtKind::Do: return executeLoop(s);
  case StmtKind::Break: return Flow::Break;
  case StmtKind::Continue: return Flow::Continue;
  default: return std::nullopt;
  }
}

std::optional<ListMachine::Flow> ListMachine::executeLoop(const Stmt &s) {
  if (s.init && execute(*s.init) != Flow::Next)
    return std::nullopt;
  for (bool first = true;; first = false) {
    if (s.expr && !(first && s.kind == StmtKind::Do)) {
      auto again = truth(s.expr);
      if (!again)
        return std::nullopt;
      if (!*again)
        return Flow::Next;
    }
    auto flow = execute(*s.body[0]);
    if (!flow)
      return std::nullopt;
    if (flow == Flow::Break)
      return Flow::Next;
    if (s.step)
      evaluate(s.step);
    if (failed)
      return std::nullopt;
  }
}

bool ListMachine::declare(const Stmt &s) {
  if (!s.dims.empty() || s.isShared || s.isExtern || s.type.isVolatile)
    return false;
  Value v = s.expr ? evaluate(s.expr) : Value{};
  if (v.kind == Kind::Integer)
    v.number = wrapped(v.number, s.type);
  variables[s.text] = v;
  return !failed && fits(s.type, v);
}

/// A variable of the type holds the value as it is.
bool ListMachine::fits(const Type &type, const Value &v) const {
  switch (v.kind) {
  case Kind::Unknown: return true;
  case Kind::Integer: return type.isInt();
  case Kind::Entry: return type.sameNumber(list.values.type);
  case Kind::Place: return list.places && type.sameNumber(list.places->type);
  case Kind::Outside: return type.sameNumber(v.outside->type);
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

/// It depends on what the statements do.
bool ListMachine::touches(const ExprRef &e) {
  auto it = touching.find(e.get());
  if (it != touching.end())
    return it->second;
  bool touched = e->kind == ExprKind::Opaque || isChange(e) || (e->kind == ExprKind::Var && changed.count(e->text));
  if (auto access = accesses.find(e.get()); access != accesses.end())
    touched |= access->second->array == list.values.name || (list.places && access->second->array == list.places->name);
  for (const ExprRef &part : e->args)
    touched |= touches(part);
  touching[e.get()] = touched;
  return touched;
}

/// Looks through a variable that only names something.
ExprRef ListMachine::resolved(const ExprRef &e) const {
  if (e->kind == ExprKind::Cast && e->type.sameNumber(e->args[0]->type))
    return resolved(e->args[0]);
  const Stmt *d = e->kind == ExprKind::Var ? model.singleAssignment(e->text) : nullptr;
  return d && d->expr && d->type.sameNumber(d->expr->type) && onlyComputes(d->expr) ? resolved(d->expr) : e;
}

std::optional<int64_t> ListMachine::outsideInteger(const Poly &p) {
  if (auto constant = p.constant())
    return constant;
  Poly free = p - Poly(p.constantTerm());
  if (!counter.empty() && free == Poly::atom(counter)) {
    askedForCounter = true;
    return now.iterations + p.constantTerm();
  }
  if (!deciding && model.stable(free) && !model.dependsOn(free, changed))
    deciding = free;
  if (deciding && free == *deciding)
    return now.length - lengthOffset + p.constantTerm();
  return std::nullopt;
}

std::optional<int64_t> ListMachine::integer(const Value &v) {
  if (v.kind == Kind::Integer)
    return v.number;
  if (v.kind != Kind::Outside || !v.outside->type.isInt())
    return std::nullopt;
  auto [it, added] = polys.try_emplace(v.outside.get());
  if (added)
    it->second = model.poly(v.outside);
  return outsideInteger(it->second);
}

bool ListMachine::admit(Value &v, ExprRef &known, Kind kind) {
  if (v.kind == kind)
    return true;
  if (v.kind != Kind::Outside || hasEffects(v.outside))
    return false;
  if (known && !equal(resolved(known), resolved(v.outside)))
    return false;
  if (!known)
    known = v.outside;
  v = {kind, theNewOne, nullptr};
  return true;
}

std::optional<int64_t> ListMachine::computeEntry(const ExprRef &element, const Access &access,
                                                 const KeptList::Array &array) {
  auto [known, added] = entries.try_emplace(element.get());
  if (added) // what the pointer adds to the index
    known->second = access.subscripts[0] - model.poly(element->args[1]) - array.base;
  // The index with the integers of this case in it.
  std::function<std::optional<Poly>(const ExprRef &)> index = [&](const ExprRef &e) -> std::optional<Poly> {
    if (!touches(e)) {
      auto [p, fresh] = polys.try_emplace(e.get());
      if (fresh)
        p->second = model.poly(e);
      return p->second;
    }
    bool exact = e->type.isSigned || e->type.bytes == 8;
    if (e->kind == ExprKind::Cast && e->type.isInt() && exact)
      return index(e->args[0]);
    if (e->kind == ExprKind::Binary && (isBinary(e, "+") || isBinary(e, "*") || (isBinary(e, "-") && exact))) {
      auto a = index(e->args[0]), b = index(e->args[1]);
      if (!a || !b)
        return std::nullopt;
      return isBinary(e, "+") ? *a + *b : isBinary(e, "*") ? *a * *b : *a - *b;
    }
    auto n = integer(evaluate(e));
    return n ? std::optional(Poly(*n)) : std::nullopt;
  };
  auto at = index(element->args[1]);
  auto entry = at ? quotientOf(*at + known->second, array.scale) : std::nullopt;
  auto n = entry ? outsideInteger(*entry) : std::nullopt;
  return n && *n >= 0 && *n < now.length ? n : std::nullopt;
}

std::optional<int64_t> ListMachine::entryAt(const ExprRef &element, bool &isValue) {
  auto it = accesses.find(element.get());
  if (it == accesses.end() || it->second->subscripts.size() != 1 || element->kind != ExprKind::Subscript)
    return std::nullopt;
  isValue = it->second->array == list.values.name;
  if (!isValue && (!list.places || it->second->array != list.places->name))
    return std::nullopt;
  const KeptList::Array &array = isValue ? list.values : *list.places;
  auto [index, added] = indices.try_emplace(element.get());
  if (added)
    walk(element->args[1], [&, to = index](const ExprRef &e) {
      to->second.isPlain &= !isChange(e) && e->kind != ExprKind::Subscript && e->kind != ExprKind::Call;
      if (e->kind == ExprKind::Var && (changed.count(e->text) || e->text == counter))
        to->second.variables.push_back(e->text);
    });
  std::vector<int64_t> key = {now.length, lengthOffset, now.iterations, int64_t(deciding.has_value())};
  for (const std::string &name : index->second.variables) {
    auto value = name == counter ? std::optional(now.iterations) : integer(of(name));
    index->second.isPlain &= value.has_value();
    key.push_back(value.value_or(0));
  }
  if (!index->second.isPlain)
    return computeEntry(element, *it->second, array);
  auto [known, fresh] = index->second.known.try_emplace(key);
  if (fresh)
    known->second = computeEntry(element, *it->second, array);
  return known->second;
}

/// Where a variable or an entry is kept, and its type.
Value *ListMachine::placeOf(const ExprRef &target, const Type *&type) {
  type = &target->type;
  if (target->kind == ExprKind::Var && changed.count(target->text))
    return &variables[target->text];
  bool isValue = false;
  auto entry = entryAt(target, isValue);
  if (!entry)
    return nullptr;
  return &(isValue ? values : places)[size_t(*entry)];
}

Value ListMachine::change(const ExprRef &e) {
  Value v;
  bool counts = e->kind == ExprKind::IncDec;
  if (!counts)
    v = evaluate(e->args[1]);
  const Type *type = nullptr;
  Value *target = failed ? nullptr : placeOf(e->args[0], type);
  if (!target)
    return fail();
  bool inList = e->args[0]->kind == ExprKind::Subscript;
  if (counts || e->text != "=") {
    auto old = inList ? std::nullopt : integer(*target);
    auto by = counts ? std::optional<int64_t>(1) : integer(v);
    char op = counts ? e->text[e->text[0] == 'x' ? 1 : 0] : e->text[0];
    if (!old || !by || (op != '+' && op != '-') || (!counts && e->text.size() != 2))
      return fail();
    int64_t now = wrapped(op == '+' ? *old + *by : *old - *by, *type);
    *target = {Kind::Integer, now, nullptr};
    return {Kind::Integer, counts && e->text[0] == 'x' ? *old : now, nullptr};
  }
  if (inList) {
    bool isValue = accesses.at(e->args[0].get())->array == list.values.name;
    if (!type->sameNumber(v.kind == Kind::Outside ? v.outside->type : *type) ||
        !(isValue ? admit(v, value, Kind::Entry) : admit(v, place, Kind::Place)))
      return fail();
  }
  if (v.kind == Kind::Integer)
    v.number = wrapped(v.number, *type);
  if (!fits(*type, v))
    return fail();
  return *target = v;
}

Value ListMachine::evaluate(const ExprRef &e) {
  if (failed)
    return {};
  if (!touches(e)) {
    if (auto constant = e->type.isInt() ? constantValue(e) : std::nullopt)
      return {Kind::Integer, *constant, nullptr};
    return {Kind::Outside, 0, e};
  }
  switch (e->kind) {
  case ExprKind::Var: {
    auto it = variables.find(e->text);
    return it == variables.end() ? fail() : it->second;
  }
  case ExprKind::Subscript: {
    const Type *type = nullptr;
    Value *v = placeOf(e, type);
    return v ? *v : fail();
  }
  case ExprKind::Assign:
  case ExprKind::IncDec: return change(e);
  case ExprKind::Cond: {
    auto taken = truth(e->args[0]);
    if (!taken)
      return fail();
    Value v = evaluate(e->args[*taken ? 1 : 2]);
    if (v.kind == Kind::Integer)
      v.number = wrapped(v.number, e->type);
    return fits(e->type, v) ? v : fail();
  }
  case ExprKind::Cast: {
    Value v = evaluate(e->args[0]);
    if (v.kind == Kind::Integer && e->type.isInt())
      return {Kind::Integer, wrapped(v.number, e->type), nullptr};
    return fits(e->type, v) ? v : fail();
  }
  case ExprKind::Unary: {
    if (isUnary(e, "!")) {
      auto holds = truth(e->args[0]);
      return holds ? Value{Kind::Integer, !*holds, nullptr} : fail();
    }
    auto n = integer(evaluate(e->args[0]));
    if (!n || (!isUnary(e, "-") && !isUnary(e, "+") && !isUnary(e, "~")))
      return fail();
    return {Kind::Integer, wrapped(isUnary(e, "-") ? -*n : isUnary(e, "~") ? ~*n : *n, e->type), nullptr};
  }
  case ExprKind::Binary: return evaluateBinary(e);
  case ExprKind::Call: return evaluateCall(e);
  default: return fail();
  }
}

Value ListMachine::evaluateBinary(const ExprRef &e) {
  bool isLogic = isBinary(e, "&&") || isBinary(e, "||");
  if (isLogic || !inverseComparison(e->text).empty()) {
    auto holds = truth(e);
    return holds ? Value{Kind::Integer, *holds, nullptr} : fail();
  }
  auto a = integer(evaluate(e->args[0])), b = integer(evaluate(e->args[1]));
  if (failed || !a || !b)
    return fail();
  Type common = commonType(e->args[0]->type, e->args[1]->type);
  int64_t x = wrapped(*a, common), y = wrapped(*b, common);
  bool divides = isBinary(e, "/") || isBinary(e, "%");
  if (divides && (y <= 0 || x < 0))
    return fail();
  auto n = llvm::StringSwitch<std::optional<int64_t>>(e->text)
               .Case("+", x + y)
               .Case("-", x - y)
               .Case("*", x * y)
               .Case("/", divides ? x / y : 0)
               .Case("%", divides ? x % y : 0)
               .Case("&", x & y)
               .Case("|", x | y)
               .Default(std::nullopt);
  return n ? Value{Kind::Integer, wrapped(*n, e->type), nullptr} : fail();
}

Value ListMachine::evaluateCall(const ExprRef &e) {
  llvm::StringRef function = unqualified(e->text);
  bool most = function == "max" || function == "fmaxf" || function == "fmax";
  bool least = function == "min" || function == "fminf" || function == "fmin";
  if (!e->isLibrary || !e->pure || e->args.size() != 2 || !(most || least))
    return fail();
  Value a = evaluate(e->args[0]), b = evaluate(e->args[1]);
  auto x = integer(a), y = integer(b);
  if (!failed && x && y)
    return {Kind::Integer, wrapped(most ? std::max(*x, *y) : std::min(*x, *y), e->type), nullptr};
  auto isAbove = compare(">", e->args[0], e->args[1]);
  if (!isAbove || now.isUnordered || !e->type.sameNumber(list.values.type))
    return fail();
  Value chosen = *isAbove == most ? a : b;
  return admit(chosen, value, Kind::Entry) ? chosen : fail();
}

std::optional<bool> ListMachine::truth(const ExprRef &e) {
  if (failed)
    return std::nullopt;
  bool both = isBinary(e, "&&");
  if (both || isBinary(e, "||")) {
    auto first = truth(e->args[0]);
    return first && *first == both ? truth(e->args[1]) : first;
  }
  if (isUnary(e, "!")) {
    auto holds = truth(e->args[0]);
    return holds ? std::optional(!*holds) : std::nullopt;
  }
  if (e->kind == ExprKind::Binary && !inverseComparison(e->text).empty())
    return compare(e->text, e->args[0], e->args[1]);
  auto n = integer(evaluate(e));
  return n ? std::optional(*n != 0) : std::nullopt;
}

std::optional<bool> ListMachine::compare(const std::string &op, const ExprRef &a, const ExprRef &b) {
  Value x = evaluate(a), y = evaluate(b);
  if (failed)
    return std::nullopt;
  auto holds = [&](int order) { return comparisonHolds(op, order); };
  if (x.kind == Kind::Place || y.kind == Kind::Place) { // places grow: the new one is the greatest, as its user sees to
    if (!list.places || !admit(x, place, Kind::Place) || !admit(y, place, Kind::Place) || !a->type.sameNumber(b->type))
      return std::nullopt;
    auto isEqual = [&](int64_t entry) { return entry >= now.better && entry < now.better + now.equal; };
    bool known = x.number == y.number || x.number == theNewOne || y.number == theNewOne ||
                 (isEqual(x.number) && isEqual(y.number));
    if (!known)
      return std::nullopt;
    auto time = [](int64_t entry) { return entry == theNewOne ? INT64_MAX : entry; };
    return holds(time(x.number) < time(y.number) ? -1 : time(x.number) > time(y.number));
  }
  bool ofList = x.kind == Kind::Entry || y.kind == Kind::Entry;
  if (!ofList) {
    auto p = integer(x), q = integer(y);
    if (!p || !q)
      return std::nullopt;
    Type common = commonType(a->type, b->type);
    int64_t m = wrapped(*p, common), n = wrapped(*q, common);
    return holds(m < n ? -1 : m > n);
  }
  if (!admit(x, value, Kind::Entry) || !admit(y, value, Kind::Entry) || !a->type.sameNumber(b->type))
    return std::nullopt;
  if (now.isUnordered && (x.number == theNewOne || y.number == theNewOne))
    return op == "!=";
  auto rank = [&](int64_t entry) { // the better, the greater
    return entry == theNewOne ? 1 : entry < now.better ? 2 : entry < now.better + now.equal ? 1 : 0;
  };
  int order = rank(x.number) - rank(y.number);
  if (!order && x.number != y.number && rank(x.number) != 1) {
    // Of two entries the earlier one is better, or as good.
    bool isBehind = x.number > y.number, asksGreater = op[0] == '>', asksLess = op[0] == '<';
    if (op.size() > 2 || (!asksGreater && !asksLess) || op == "==" || op == "!=")
      return std::nullopt;
    bool asksBetter = asksGreater == list.descending, isStrict = op.size() == 1;
    // "the later one is strictly better" is wrong, "the earlier one is at least as good" is right
    if (asksBetter ? isBehind == isStrict : isBehind != isStrict)
      return asksBetter ? !isBehind : isBehind;
    return std::nullopt;
  }
  return holds(list.descending ? order : -order);
}
