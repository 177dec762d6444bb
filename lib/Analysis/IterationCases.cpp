//===- IterationCases.cpp - what one iteration makes of variables ---------===//
#include "optiml/Analysis/IterationCases.h"
#include "optiml/Core/KernelName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace optiml;

//===----------------------------------------------------------------------===//
// A run
//===----------------------------------------------------------------------===//

bool IterationCase::changes(const std::string &variable) const {
  auto it = values.find(variable);
  return it != values.end() && it->second.old != variable;
}

FieldNumber IterationCases::before(const std::string &variable, const IterationCase &c) const {
  auto flag = c.flags.find(variable);
  if (flag != c.flags.end() && !flag->second)
    return FieldNumber::of(0);
  return FieldNumber::random(seed ^ std::hash<std::string>()(variable));
}

FieldNumber IterationCases::numberOf(const ExprRef &outside, const IterationCase &c) const {
  if (c.compared && c.order == Order::Equal && equal(outside, c.compared))
    return before(c.extreme, c);
  return FieldNumber::random(std::hash<std::string>()(str(outside)));
}

namespace {

using Value = IterationValue;

/// Runs statements on a case. Where the case does not decide what happens, it says what it asks for.
class Machine {
public:
  Machine(IterationCases &all, IterationCase &now, const std::set<std::string> &names,
          const std::map<std::string, ExprRef> &constants)
      : all(all), now(now), names(names), constants(constants) {}

  bool run() {
    for (Stmt *s : all.statements)
      if (!execute(*s))
        return false;
    return true;
  }

  // What is not decided: exactly one of these, or nothing where the statements are not understood.
  bool asksForOrder = false;
  std::map<std::string, bool> IterationCase::*asksFor = nullptr;
  std::string asked;

private:
  bool execute(const Stmt &s);
  std::optional<Value> evaluate(const ExprRef &e);
  std::optional<Value> operation(const ExprRef &e);
  std::optional<Value> call(const ExprRef &e);
  std::optional<Value> extremeOf(const ExprRef &e, bool most);
  std::optional<bool> truth(const ExprRef &e);
  std::optional<bool> compare(const std::string &op, const ExprRef &a, const ExprRef &b);
  std::optional<bool> ask(std::map<std::string, bool> IterationCase::*what, const std::string &key);
  std::optional<Order> orderOf(const Value &a, const Value &b);
  bool touches(const ExprRef &e) const {
    return anyNode(e, [&](const ExprRef &x) {
      return isChange(x) || x->kind == ExprKind::Opaque ||
             (x->kind == ExprKind::Var && (names.count(x->text) || constants.count(x->text)));
    });
  }
  /// Nothing in it is known but that it is no value of an iteration: a number all the same.
  Value computed(const FieldNumber &n) const { return {n, "", nullptr}; }

  IterationCases &all;
  IterationCase &now;
  const std::set<std::string> &names; ///< variables, and what the statements declare
  const std::map<std::string, ExprRef> &constants;
};

} // namespace

std::optional<bool> Machine::ask(std::map<std::string, bool> IterationCase::*what, const std::string &key) {
  auto it = (now.*what).find(key);
  if (it != (now.*what).end())
    return it->second;
  if (!asksForOrder && !asksFor) {
    asksFor = what;
    asked = key;
  }
  return std::nullopt;
}

bool Machine::execute(const Stmt &s) {
  switch (s.kind) {
  case StmtKind::Block: return llvm::all_of(s.body, [&](const StmtRef &child) { return execute(*child); });
  case StmtKind::Decl: {
    if (!s.dims.empty() || s.isShared || s.type.isVolatile)
      return false;
    if (!s.expr) {
      now.values.erase(s.text);
      return true;
    }
    auto v = evaluate(s.expr);
    if (!v || !(s.type.isFloat() || s.type.isInt()) || (s.type.isInt() && s.expr->type.isFloat()))
      return false;
    if (!s.type.sameNumber(s.expr->type))
      *v = computed(v->number);
    now.values[s.text] = *v;
    return true;
  }
  case StmtKind::Expr: return evaluate(s.expr).has_value();
  case StmtKind::If: {
    auto taken = truth(s.expr);
    if (!taken)
      return false;
    return *taken ? execute(*s.body[0]) : s.body.size() < 2 || execute(*s.body[1]);
  }
  default: return false;
  }
}

/// A decimal literal as a quotient of integers.
static std::optional<FieldNumber> literal(const std::string &text) {
  FieldNumber n = FieldNumber::of(0), ten = FieldNumber::of(10);
  int64_t scale = 0;
  bool fraction = false;
  size_t i = 0;
  for (; i < text.size() && (isdigit(text[i]) || text[i] == '.'); ++i) {
    if (text[i] == '.') {
      fraction = true;
      continue;
    }
    n = n * ten + FieldNumber::of(text[i] - '0');
    scale -= fraction;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E'))
    scale += std::strtol(text.c_str() + i + 1, nullptr, 10);
  else if (i < text.size() && !llvm::StringRef("fFlL").contains(text[i]))
    return std::nullopt;
  if (std::abs(scale) > 400)
    return std::nullopt;
  auto tenth = ten.inverse();
  for (; scale > 0; --scale)
    n = n * ten;
  for (; scale < 0; ++scale)
    n = n * *tenth;
  return n;
}

std::optional<Value> Machine::evaluate(const ExprRef &e) {
  if (e->kind == ExprKind::IntLit)
    return Value{FieldNumber::of(e->value), "", e};
  if (e->kind == ExprKind::FloatLit) {
    auto n = literal(e->text);
    return n ? std::optional(Value{*n, "", e}) : std::nullopt;
  }
  if (e->kind == ExprKind::Var && constants.count(e->text))
    return evaluate(constants.at(e->text));
  if (!touches(e)) {
    if (hasEffects(e) || !(e->type.isFloat() || e->type.isInt()))
      return std::nullopt;
    if (auto n = numberOf(e); n && std::isfinite(*n) && *n == std::floor(*n) && std::abs(*n) < 1e9)
      return Value{FieldNumber::of(int64_t(*n)), "", e};
    bool known = llvm::any_of(all.outsiders, [&](const ExprRef &x) { return equal(x, e); });
    if (e->type.isFloat() && !known)
      all.outsiders.push_back(e);
    return Value{all.numberOf(e, now), "", e};
  }
  switch (e->kind) {
  case ExprKind::Var: {
    auto it = now.values.find(e->text);
    return it == now.values.end() ? std::nullopt : std::optional(it->second);
  }
  case ExprKind::Cond: {
    auto taken = truth(e->args[0]);
    if (!taken)
      return std::nullopt;
    auto v = evaluate(e->args[*taken ? 1 : 2]);
    if (v && !e->type.sameNumber(e->args[*taken ? 1 : 2]->type))
      return computed(v->number);
    return v;
  }
  case ExprKind::Cast: {
    auto v = evaluate(e->args[0]);
    if (!v || (e->type.isInt() && e->args[0]->type.isFloat()) || !(e->type.isInt() || e->type.isFloat()))
      return std::nullopt;
    return e->type.sameNumber(e->args[0]->type) ? v : std::optional(computed(v->number));
  }
  case ExprKind::Call: return call(e);
  default: return operation(e);
  }
}

std::optional<Value> Machine::operation(const ExprRef &e) {
  if (e->kind == ExprKind::Assign || e->kind == ExprKind::IncDec) {
    const ExprRef &target = e->args[0];
    if (target->kind != ExprKind::Var || !names.count(target->text))
      return std::nullopt;
    auto old = now.values.find(target->text);
    std::optional<Value> v;
    bool counts = e->kind == ExprKind::IncDec;
    if (!counts)
      v = evaluate(e->args[1]);
    if ((!counts && !v) || (!counts && target->type.isInt() && e->args[1]->type.isFloat()))
      return std::nullopt;
    if (!counts && e->text == "=") {
      if (!target->type.sameNumber(e->args[1]->type))
        *v = computed(v->number);
      return now.values[target->text] = *v;
    }
    if (old == now.values.end())
      return std::nullopt;
    FieldNumber a = old->second.number, b = counts ? FieldNumber::of(1) : v->number;
    char op = counts ? e->text[e->text[0] == 'x' ? 1 : 0] : e->text[0];
    auto inverse = op == '/' && target->type.isFloat() ? b.inverse() : std::nullopt;
    if (!llvm::StringRef("+-*").contains(op) && !inverse)
      return std::nullopt;
    FieldNumber n = op == '+' ? a + b : op == '-' ? a - b : op == '*' ? a * b : a * *inverse;
    Value before = old->second;
    now.values[target->text] = computed(n);
    return counts && e->text[0] == 'x' ? before : computed(n);
  }
  bool isTruth = isUnary(e, "!") || isBinary(e, "&&") || isBinary(e, "||") ||
                 (e->kind == ExprKind::Binary && !inverseComparison(e->text).empty());
  if (isTruth) {
    auto holds = truth(e);
    return holds ? std::optional(computed(FieldNumber::of(*holds))) : std::nullopt;
  }
  if (e->kind == ExprKind::Unary && (isUnary(e, "-") || isUnary(e, "+"))) {
    auto v = evaluate(e->args[0]);
    return v ? std::optional(computed(isUnary(e, "-") ? FieldNumber::of(0) - v->number : v->number)) : std::nullopt;
  }
  if (e->kind != ExprKind::Binary)
    return std::nullopt;
  auto a = evaluate(e->args[0]), b = evaluate(e->args[1]);
  if (!a || !b)
    return std::nullopt;
  if (isBinary(e, "+"))
    return computed(a->number + b->number);
  if (isBinary(e, "-"))
    return computed(a->number - b->number);
  if (isBinary(e, "*"))
    return computed(a->number * b->number);
  auto inverse = isBinary(e, "/") && e->type.isFloat() ? b->number.inverse() : std::nullopt;
  return inverse ? std::optional(computed(a->number * *inverse)) : std::nullopt;
}

std::optional<Value> Machine::call(const ExprRef &e) {
  if (!e->isLibrary || !e->pure)
    return std::nullopt;
  enum { None, Exp, Fma, Inverse, Quotient, Sum, Difference, Product, Most, Least };
  int what = llvm::StringSwitch<int>(unqualified(e->text))
                 .Cases("exp", "expf", "__expf", "exp2", "exp2f", Exp)
                 .Cases("exp10f", "exp10", "__exp10f", Exp)
                 .Cases("fma", "fmaf", "__fmaf_rn", "__fma_rn", Fma)
                 .Cases("__frcp_rn", "__drcp_rn", Inverse)
                 .Cases("__fdividef", "__fdiv_rn", "__ddiv_rn", "fdividef", Quotient)
                 .Cases("__fadd_rn", "__dadd_rn", Sum)
                 .Cases("__fsub_rn", "__dsub_rn", Difference)
                 .Cases("__fmul_rn", "__dmul_rn", Product)
                 .Cases("fmaxf", "fmax", "max", Most)
                 .Cases("fminf", "fmin", "min", Least)
                 .Default(None);
  if (what == Most || what == Least)
    return e->args.size() == 2 ? extremeOf(e, what == Most) : std::nullopt;
  std::vector<FieldNumber> n;
  for (const ExprRef &argument : e->args) {
    auto v = evaluate(argument);
    if (!v)
      return std::nullopt;
    n.push_back(v->number);
  }
  std::optional<FieldNumber> result;
  size_t wanted = what == Fma ? 3 : what == Exp || what == Inverse ? 1 : 2;
  if (n.size() != wanted)
    return std::nullopt;
  switch (what) {
  case Exp:
    all.functions.insert(e->text);
    result = n[0].exponential();
    break;
  case Fma: result = n[0] * n[1] + n[2]; break;
  case Inverse: result = n[0].inverse(); break;
  case Quotient:
    if (auto inverse = n[1].inverse())
      result = n[0] * *inverse;
    break;
  case Sum: result = n[0] + n[1]; break;
  case Difference: result = n[0] - n[1]; break;
  case Product: result = n[0] * n[1]; break;
  default: break;
  }
  return result ? std::optional(computed(*result)) : std::nullopt;
}

/// fmaxf, min, …: one of the operands. The number is taken where the other one is none.
std::optional<Value> Machine::extremeOf(const ExprRef &e, bool most) {
  auto a = evaluate(e->args[0]), b = evaluate(e->args[1]);
  if (!a || !b)
    return std::nullopt;
  auto order = orderOf(*a, *b);
  if (!order || !e->args[0]->type.sameNumber(e->args[1]->type))
    return std::nullopt;
  if (*order == Order::Unordered) // the variable is a number
    return e->type.isFloat() ? std::optional(a->old == now.extreme ? *a : *b) : std::nullopt;
  if (*order == Order::Equal)
    return a->old == now.extreme ? *a : *b;
  return (*order == Order::Above) == most ? *a : *b;
}

/// How a compares with b. Two values of which one is the extreme's and the other the one that comes decide the case.
std::optional<Order> Machine::orderOf(const Value &a, const Value &b) {
  if (a.outside && b.outside && equal(a.outside, b.outside))
    return now.order == Order::Unordered ? Order::Unordered : Order::Equal;
  if (!a.old.empty() && a.old == b.old)
    return Order::Equal;
  for (bool swapped : {false, true}) {
    const Value &x = swapped ? b : a, &m = swapped ? a : b;
    if (!x.outside || m.old.empty() || numberOf(x.outside))
      continue;
    if (!now.compared) {
      now.compared = x.outside;
      now.extreme = m.old;
    }
    if (m.old != now.extreme || !equal(x.outside, now.compared))
      return std::nullopt;
    if (!now.order) {
      asksForOrder = !asksFor;
      return std::nullopt;
    }
    if (*now.order == Order::Equal || *now.order == Order::Unordered)
      return now.order;
    return (*now.order == Order::Above) != swapped ? Order::Above : Order::Below;
  }
  return std::nullopt;
}

std::optional<bool> Machine::compare(const std::string &op, const ExprRef &a, const ExprRef &b) {
  auto x = evaluate(a), y = evaluate(b);
  if (!x || !y)
    return std::nullopt;
  // A variable, or a value that is kept beside an extreme.
  auto isVariable = [](const Value &v) { return !v.old.empty(); };
  auto asNumber = [](const Value &v) { return v.outside ? numberOf(v.outside) : std::nullopt; };
  bool isFloat = a->type.isFloat() && b->type.isFloat();
  for (bool swapped : {false, true}) {
    const Value &v = swapped ? *y : *x, &other = swapped ? *x : *y;
    auto number = asNumber(other);
    if (!isVariable(v) || !number)
      continue;
    bool isEnd = isFloat && (op == "==" || op == "!=") && std::abs(*number) > 1e37;
    auto holds = isEnd                                        ? ask(&IterationCase::isLeast, v.old)
                 : (op == "==" || op == "!=") && *number == 0 ? ask(&IterationCase::flags, v.old)
                                                              : std::nullopt;
    if (!holds)
      return std::nullopt;
    return isEnd ? *holds == (op == "==") : *holds == (op == "!=");
  }
  bool integers = a->type.isInt() && b->type.isInt();
  if (integers && isVariable(*x) != isVariable(*y) && (x->outside || y->outside) && now.compared &&
      x->old != now.extreme && y->old != now.extreme) {
    // "place < kept", and what follows from it: places of two values are not the same.
    const Value &kept = isVariable(*x) ? *x : *y, &place = isVariable(*x) ? *y : *x;
    auto less = ask(&IterationCase::places, str(place.outside) + " < " + kept.old);
    if (!less || op == "==" || op == "!=")
      return std::nullopt;
    bool placeFirst = !isVariable(*x);
    return (op[0] == '<') == placeFirst ? *less : !*less;
  }
  auto order = orderOf(*x, *y);
  if (!order || !a->type.sameNumber(b->type))
    return std::nullopt;
  if (*order == Order::Unordered)
    return op == "!=";
  int sign = *order == Order::Above ? 1 : *order == Order::Below ? -1 : 0;
  return comparisonHolds(op, sign);
}

std::optional<bool> Machine::truth(const ExprRef &e) {
  bool both = isBinary(e, "&&");
  if (touches(e) && (both || isBinary(e, "||"))) {
    auto first = truth(e->args[0]);
    return first && *first == both ? truth(e->args[1]) : first;
  }
  if (isUnary(e, "!")) {
    auto holds = truth(e->args[0]);
    return holds ? std::optional(!*holds) : std::nullopt;
  }
  if (!touches(e)) {
    if (auto constant = constantValue(e))
      return *constant != 0;
    // "x == x": it is a number.
    bool isSelf = (isBinary(e, "==") || isBinary(e, "!=")) && equal(e->args[0], e->args[1]);
    if (isSelf && now.order && equal(e->args[0], now.compared))
      return (*now.order != Order::Unordered) == isBinary(e, "==");
    return hasEffects(e) ? std::nullopt : ask(&IterationCase::outside, str(e));
  }
  if (e->kind == ExprKind::Binary && !inverseComparison(e->text).empty())
    return compare(e->text, e->args[0], e->args[1]);
  if (e->kind == ExprKind::Var || e->kind == ExprKind::Cast) {
    auto v = evaluate(e);
    if (v && !v->old.empty() && e->type.isInt())
      return ask(&IterationCase::flags, v->old);
    if (v && (v->number == FieldNumber::of(0) || v->number == FieldNumber::of(1)))
      return v->number == FieldNumber::of(1);
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Every case
//===----------------------------------------------------------------------===//

/// "const float one = 1;" of the loop's body.
static std::map<std::string, ExprRef> constantsIn(Stmt &loop, const std::set<std::string> &variables) {
  std::map<std::string, ExprRef> result;
  for (const StmtRef &s : loop.body[0]->body)
    if (s->kind == StmtKind::Decl && s->expr && s->dims.empty() && s->type.isConst && numberOf(s->expr) &&
        s->type.sameNumber(s->expr->type) && !variables.count(s->text))
      result.emplace(s->text, s->expr);
  return result;
}

std::optional<IterationCases> optiml::casesOf(Stmt &loop, std::set<std::string> variables, uint64_t seed) {
  IterationCases all;
  all.seed = seed;
  std::set<std::string> names = variables;
  auto statements = updateStatements(loop, names);
  if (!statements)
    return std::nullopt;
  all.statements = *statements;
  const std::map<std::string, ExprRef> constants = constantsIn(loop, variables);
  std::vector<IterationCase> open = {{}};
  while (!open.empty()) {
    IterationCase c = open.back();
    open.pop_back();
    IterationCase run = c;
    for (const std::string &v : variables)
      run.values[v] = {all.before(v, run), v, nullptr};
    Machine machine(all, run, names, constants);
    if (machine.run()) {
      all.cases.push_back(std::move(run));
      if (all.cases.size() > 64)
        return std::nullopt;
      continue;
    }
    c.compared = run.compared;
    c.extreme = run.extreme;
    if (machine.asksForOrder) {
      for (Order order : {Order::Above, Order::Below, Order::Equal, Order::Unordered}) {
        if (order == Order::Unordered && run.compared->type.isInt())
          continue;
        open.push_back(c);
        open.back().order = order;
      }
    } else if (machine.asksFor) {
      for (bool outcome : {false, true}) {
        open.push_back(c);
        (open.back().*machine.asksFor)[machine.asked] = outcome;
      }
    } else {
      return std::nullopt;
    }
    if (open.size() > 64)
      return std::nullopt;
  }
  return all;
}
