//===- Choices.cpp - values chosen by conditions --------------------------===//
//
// Indices that are clamped, mirrored or wrapped step by step. As one expression the variable has one value, which index
// arithmetic can follow. Only integer arithmetic on variables takes part: it has no effects and costs next to nothing,
// so that it may be evaluated where it was not before; quotients, which may fault, stay under their conditions.
//
//===----------------------------------------------------------------------===//
#include "Choices.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

/// Ways through the conditions, and nodes of the expression that is made.
constexpr unsigned mostWays = 6, mostNodes = 80;

static unsigned nodes(const ExprRef &e) {
  unsigned count = 0;
  walk(e, [&](const ExprRef &) { ++count; });
  return count;
}

static bool isIndexArithmetic(const ExprRef &e) {
  bool good = true;
  walk(e, [&](const ExprRef &n) {
    bool number = n->type.isInt() || n->type.cls == Type::Class::Bool;
    bool member = n->kind == ExprKind::Member && !n->args[0]->type.isPointer();
    bool extreme = n->kind == ExprKind::Call && n->isLibrary && (n->text == "min" || n->text == "max");
    bool kind = n->kind == ExprKind::Var || n->kind == ExprKind::IntLit || n->kind == ExprKind::Builtin ||
                n->kind == ExprKind::Binary || n->kind == ExprKind::Unary || n->kind == ExprKind::Cast ||
                n->kind == ExprKind::Cond || member || extreme;
    good &= kind && n->pure && (number || n->type.cls == Type::Class::Record) &&
            !(n->kind == ExprKind::Unary && (n->text == "&" || n->text == "*"));
  });
  return good && e->type.cls != Type::Class::Record;
}

static bool mayFault(const ExprRef &e) {
  return anyNode(e,
                 [&](const ExprRef &n) { return n->kind == ExprKind::Binary && (n->text == "/" || n->text == "%"); });
}

/// "condition ? value : current" as min or max of them; null for anything else.
static ExprRef extreme(const ExprRef &condition, const ExprRef &value, const ExprRef &current) {
  if (condition->kind != ExprKind::Binary || !value->type.sameNumber(current->type) || mayFault(value))
    return nullptr;
  std::string op = condition->text;
  bool mirrored = !equal(condition->args[0], current);
  const ExprRef &bound = condition->args[mirrored ? 0 : 1];
  if (!equal(condition->args[mirrored ? 1 : 0], current) || (op[0] != '<' && op[0] != '>') || op.size() > 2 ||
      op == "<<" || op == ">>" || !bound->type.sameNumber(current->type))
    return nullptr;
  bool less = (op[0] == '<') != mirrored;
  // i >= n: n - 1 is i > n - 1
  auto constant = constantValue(bound), chosen = constantValue(value);
  auto isNext = [&](const ExprRef &low, const ExprRef &high) {
    return isBinary(low, "-") && equal(low->args[0], high) && constantValue(low->args[1]) == 1;
  };
  bool same = equal(value, bound) || (constant && chosen && *constant == *chosen);
  bool beside = !less && op.size() == 2 && (isNext(value, bound) || (constant && chosen && *chosen == *constant - 1));
  if (!same && !beside)
    return nullptr;
  return callOf(less ? "max" : "min", {current, value}, current->type, true);
}

namespace {
class ChoiceFolder {
public:
  explicit ChoiceFolder(const std::string &variable, const Type &type) : variable(variable), type(type) {}

  /// The variable's value after `list` from `at` on, where it is `current` before (null: it has none); null when that
  /// cannot be said.
  ExprRef valueAfter(const std::vector<StmtRef> &list, size_t at, const ExprRef &current) {
    if (at == list.size())
      return current;
    const Stmt &s = *list[at];
    if (s.kind == StmtKind::Expr) {
      ExprRef value = assigned(*s.expr, current);
      return value ? valueAfter(list, at + 1, value) : nullptr;
    }
    ExprRef condition = s.kind == StmtKind::If ? now(s.expr, current) : nullptr;
    if (!condition)
      return nullptr;
    hasChoice = true;
    if (current && s.body.size() == 1 && s.body[0]->body.size() == 1 && s.body[0]->body[0]->kind == StmtKind::Expr)
      if (ExprRef value = assigned(*s.body[0]->body[0]->expr, current))
        if (ExprRef bounded = extreme(condition, value, current))
          return valueAfter(list, at + 1, bounded);
    if (++ways > mostWays)
      return nullptr;
    ExprRef values[2];
    for (size_t branch : {0, 1}) {
      std::vector<StmtRef> way = branch < s.body.size() ? s.body[branch]->body : std::vector<StmtRef>();
      way.insert(way.end(), list.begin() + long(at) + 1, list.end());
      values[branch] = valueAfter(way, 0, current);
      if (!values[branch])
        return nullptr;
    }
    auto choice = std::make_shared<Expr>(*conditional(condition, values[0], values[1]));
    choice->type = type;
    return choice;
  }
  bool hasChoice = false;

private:
  /// `e` with the variable's value in place of it.
  ExprRef now(const ExprRef &e, const ExprRef &current) const {
    if (!isIndexArithmetic(e) || (!current && mentions(e, variable)))
      return nullptr;
    return current ? substitute(e, {{variable, current}}) : e;
  }
  ExprRef assigned(const Expr &e, const ExprRef &current) const {
    if (e.kind != ExprKind::Assign || !isVar(e.args[0], variable))
      return nullptr;
    ExprRef value = now(e.args[1], current);
    if (value && e.text == "=")
      return asNumber(type, value);
    if (!value || !current)
      return nullptr;
    bool sum = (e.text == "+=" || e.text == "-=") && value->type.sameNumber(type);
    return sum ? binary(e.text.substr(0, 1), current, value, type) : nullptr;
  }

  std::string variable;
  Type type;
  unsigned ways = 0;
};
} // namespace

static bool assignsOnly(const Stmt &s, const std::string &name) {
  if (s.kind == StmtKind::Expr)
    return s.expr->kind == ExprKind::Assign && isVar(s.expr->args[0], name);
  return s.kind == StmtKind::If && llvm::all_of(s.body, [&](const StmtRef &branch) {
           return llvm::all_of(branch->body, [&](const StmtRef &t) { return assignsOnly(*t, name); });
         });
}

/// How often the statements change a variable, or let others change it.
static std::map<std::string, unsigned> changesIn(const std::vector<StmtRef> &list) {
  std::map<std::string, unsigned> result;
  for (const StmtRef &s : list) {
    for (const auto &[name, count] : countChanges(*s))
      result[name] += count;
    walkExprs(*s, [&](const ExprRef &e) {
      for (const std::string &name : e->names)
        ++result[name];
    });
    walk(*s, [&](Stmt &t) {
      for (const std::string &name : t.names)
        ++result[name];
    });
  }
  return result;
}

/// `changes`: of all statements that see the variables.
static void foldList(std::vector<StmtRef> &list, std::map<std::string, unsigned> &changes,
                     const std::set<std::string> *wanted) {
  for (size_t i = 0; i < list.size(); ++i) {
    Stmt &d = *list[i];
    bool candidate = d.kind == StmtKind::Decl && d.dims.empty() && !d.isShared && d.type.cls == Type::Class::Int &&
                     d.type.bytes >= 4 && !d.type.isVolatile && (!wanted || wanted->count(d.text)) &&
                     (!d.expr || isIndexArithmetic(d.expr));
    size_t end = i + 1;
    while (candidate && end < list.size() && assignsOnly(*list[end], d.text))
      ++end;
    if (end == i + 1)
      continue;
    std::vector<StmtRef> run(list.begin() + long(i) + 1, list.begin() + long(end));
    if (changesIn(run)[d.text] != changes[d.text])
      continue;
    ChoiceFolder folder(d.text, d.type);
    ExprRef first = d.expr && !d.expr->type.sameNumber(d.type) ? castTo(d.type, d.expr) : d.expr;
    ExprRef value = folder.valueAfter(run, 0, first);
    if (!value || !folder.hasChoice || mentions(value, d.text) || nodes(value) > mostNodes)
      continue;
    d.expr = value;
    changes[d.text] = 0;
    list.erase(list.begin() + long(i) + 1, list.begin() + long(end));
  }
}

/// Locals that indices and places in arrays are made of.
static std::set<std::string> usedInIndices(Kernel &kernel) {
  std::set<std::string> result;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    bool place = e->kind == ExprKind::Subscript || (e->kind == ExprKind::Binary && e->type.isPointer());
    for (size_t i = 0; place && i < e->args.size(); ++i)
      if (!e->args[i]->type.isPointer())
        for (const std::string &name : namesIn(e->args[i]))
          result.insert(name);
  });
  for (size_t before = 0; before != result.size();) {
    before = result.size();
    walk(*kernel.body, [&](Stmt &s) {
      if (s.kind == StmtKind::Decl && s.expr && s.type.isInt() && result.count(s.text))
        for (const std::string &name : namesIn(s.expr))
          result.insert(name);
    });
  }
  return result;
}

void optiml::foldChoices(Kernel &kernel) {
  std::map<std::string, unsigned> changes = changesIn(kernel.body->body);
  std::set<std::string> wanted = usedInIndices(kernel);
  walk(*kernel.body, [&](Stmt &s) { foldList(s.body, changes, &wanted); });
}

bool optiml::foldChoices(std::vector<StmtRef> &list) {
  std::map<std::string, unsigned> changes = changesIn(list);
  foldList(list, changes, nullptr);
  return llvm::all_of(list, [](const StmtRef &s) { return s->kind == StmtKind::Decl && s->dims.empty() && s->expr; });
}
