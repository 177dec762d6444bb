//===- Tree.cpp - making, walking and rewriting kernel trees --------------===//
#include "optiml/Analysis/Tree.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Core/KernelName.h"
#include <algorithm>
#include <cassert>
#include <climits>
#include <map>

namespace optiml {

// Types and expressions

static Type makeType(Type::Class cls, const char *text, unsigned bytes, bool isSigned) {
  Type type;
  type.cls = cls;
  type.text = text;
  type.bytes = bytes;
  type.isSigned = isSigned;
  return type;
}
Type Type::makeInt() { return makeType(Class::Int, "int", 4, true); }
Type Type::makeVoid() { return makeType(Class::Void, "void", 0, true); }
Type Type::makeUnsigned() { return makeType(Class::Int, "unsigned int", 4, false); }
Type Type::makeLong() { return makeType(Class::Int, "long long", 8, true); }
Type Type::makeBool() { return makeType(Class::Bool, "bool", 1, false); }
Type Type::makeFloat(unsigned bytes) { return makeType(Class::Float, bytes == 4 ? "float" : "double", bytes, true); }
Type Type::makePointer(const Type &pointee) {
  Type type = makeType(Class::Pointer, "", 8, true);
  type.text = (pointee.isConst ? "const " : "") + pointee.text + " *";
  type.pointee = std::make_shared<Type>(pointee);
  return type;
}
Type Type::withConst(bool constant) const {
  Type type = *this;
  type.isConst = constant;
  return type;
}
Type Type::unqualified() const {
  Type type = withConst(false);
  type.isVolatile = false;
  return type;
}
bool Type::sameNumber(const Type &other) const {
  return cls == other.cls && bytes == other.bytes && isSigned == other.isSigned;
}

static std::shared_ptr<Expr> node(ExprKind kind, Type type, std::string text, std::vector<ExprRef> args) {
  auto e = std::make_shared<Expr>();
  e->kind = kind;
  e->type = std::move(type);
  e->text = std::move(text);
  e->args = std::move(args);
  return e;
}

ExprRef intLit(int64_t value, Type type) {
  auto e = node(ExprKind::IntLit, std::move(type), "", {});
  e->value = value;
  return e;
}
ExprRef var(const std::string &name, Type type) { return node(ExprKind::Var, std::move(type), name, {}); }
ExprRef builtin(const std::string &name) { return node(ExprKind::Builtin, Type::makeUnsigned(), name, {}); }
ExprRef unary(const std::string &op, ExprRef a, Type type) {
  return node(ExprKind::Unary, std::move(type), op, {std::move(a)});
}

ExprRef castTo(Type type, ExprRef e) {
  std::string text = type.text;
  return node(ExprKind::Cast, std::move(type), text, {std::move(e)});
}

ExprRef callOf(const std::string &name, std::vector<ExprRef> args, Type type, bool pure) {
  auto e = node(ExprKind::Call, std::move(type), name, std::move(args));
  e->pure = pure;
  e->isLibrary = true;
  e->isAtomic = name.starts_with("atomic");
  e->folds = foldOfAtomic(name);
  return e;
}

std::string foldOfAtomic(const std::string &name) {
  static const std::map<std::string, std::string> folds = {
      {"atomicAdd", "+"}, {"atomicSub", "-"},   {"atomicAnd", "&"},  {"atomicOr", "|"},
      {"atomicXor", "^"}, {"atomicMin", "min"}, {"atomicMax", "max"}};
  auto it = folds.find(name);
  return it == folds.end() ? "" : it->second;
}

ExprRef addressOf(const ExprRef &element) {
  Type pointer;
  pointer.cls = Type::Class::Pointer;
  pointer.pointee = std::make_shared<Type>(element->type);
  return unary("&", element, pointer);
}

ExprRef memberExpr(ExprRef object, const std::string &name, Type type, int64_t offset) {
  auto e = node(ExprKind::Member, std::move(type), name, {std::move(object)});
  e->value = offset;
  return e;
}
ExprRef floatLit(const std::string &text, Type type) { return node(ExprKind::FloatLit, std::move(type), text, {}); }
ExprRef listExpr(std::vector<ExprRef> items, Type type) {
  return node(ExprKind::InitList, std::move(type), "", std::move(items));
}

std::optional<int64_t> constantValue(const ExprRef &e) {
  switch (e->kind) {
  case ExprKind::IntLit: return e->value;
  case ExprKind::Cast:
    if (e->type.isInt())
      return constantValue(e->args[0]);
    return std::nullopt;
  case ExprKind::Unary: {
    auto a = constantValue(e->args[0]);
    if (!a)
      return std::nullopt;
    if (e->text == "-")
      return -*a;
    if (e->text == "+")
      return a;
    if (e->text == "!")
      return !*a;
    return std::nullopt;
  }
  case ExprKind::Binary: {
    auto a = constantValue(e->args[0]), b = constantValue(e->args[1]);
    if (!a || !b)
      return std::nullopt;
    int64_t r;
    if (e->text == "+")
      return __builtin_add_overflow(*a, *b, &r) ? std::nullopt : std::optional(r);
    if (e->text == "-")
      return __builtin_sub_overflow(*a, *b, &r) ? std::nullopt : std::optional(r);
    if (e->text == "*")
      return __builtin_mul_overflow(*a, *b, &r) ? std::nullopt : std::optional(r);
    if (e->text == "/" && *b > 0 && *a >= 0)
      return *a / *b;
    if (e->text == "%" && *b > 0 && *a >= 0)
      return *a % *b;
    if (e->text == "<<" && *b >= 0 && *b < 31 && *a >= 0 && *a < (1 << 20))
      return *a << *b;
    if (e->text == ">>" && *b >= 0 && *b < 63 && *a >= 0)
      return *a >> *b;
    return std::nullopt;
  }
  default: return std::nullopt;
  }
}

ExprRef binary(const std::string &op, ExprRef a, ExprRef b, std::optional<Type> type) {
  static const std::set<std::string> boolean = {"<", ">", "<=", ">=", "==", "!=", "&&", "||"};
  Type t = type ? *type : boolean.count(op) ? Type::makeBool() : op == "," ? b->type : commonType(a->type, b->type);
  return node(ExprKind::Binary, std::move(t), op, {std::move(a), std::move(b)});
}

static ExprRef foldedLiteral(const ExprRef &a, const ExprRef &b, const char *op) {
  if (a->kind != ExprKind::IntLit || b->kind != ExprKind::IntLit)
    return nullptr;
  ExprRef whole = binary(op, a, b);
  auto value = constantValue(whole);
  return value && *value >= INT_MIN && *value <= INT_MAX ? intLit(*value, whole->type) : nullptr;
}
ExprRef add(ExprRef a, ExprRef b) {
  if (ExprRef folded = foldedLiteral(a, b, "+"))
    return folded;
  if (a->kind == ExprKind::IntLit && a->value == 0)
    return b;
  if (b->kind == ExprKind::IntLit && b->value == 0)
    return a;
  if (b->kind == ExprKind::IntLit && b->value < 0)
    return sub(a, intLit(-b->value, b->type));
  return binary("+", std::move(a), std::move(b));
}
ExprRef sub(ExprRef a, ExprRef b) {
  if (ExprRef folded = foldedLiteral(a, b, "-"))
    return folded;
  if (b->kind == ExprKind::IntLit && b->value == 0)
    return a;
  return binary("-", std::move(a), std::move(b));
}
ExprRef mul(ExprRef a, ExprRef b) {
  if (ExprRef folded = foldedLiteral(a, b, "*"))
    return folded;
  if (a->kind == ExprKind::IntLit && a->value == 1)
    return b;
  if (b->kind == ExprKind::IntLit && b->value == 1)
    return a;
  if ((a->kind == ExprKind::IntLit && a->value == 0) || (b->kind == ExprKind::IntLit && b->value == 0))
    return intLit(0);
  return binary("*", std::move(a), std::move(b));
}
ExprRef lessThan(ExprRef a, ExprRef b) { return binary("<", std::move(a), std::move(b)); }
ExprRef logicalAnd(ExprRef a, ExprRef b) {
  if (!a)
    return b;
  if (!b)
    return a;
  return binary("&&", std::move(a), std::move(b));
}
std::string inverseComparison(const std::string &op) {
  static const std::map<std::string, std::string> inverse = {{"<", ">="}, {">=", "<"},  {">", "<="},
                                                             {"<=", ">"}, {"==", "!="}, {"!=", "=="}};
  auto it = inverse.find(op);
  return it == inverse.end() ? "" : it->second;
}

bool comparisonHolds(const std::string &op, int order) {
  return op == "<"    ? order < 0
         : op == "<=" ? order <= 0
         : op == ">"  ? order > 0
         : op == ">=" ? order >= 0
         : op == "==" ? order == 0
                      : order != 0;
}
ExprRef logicalNot(ExprRef a) {
  if (a->kind == ExprKind::Binary && a->args[0]->type.isInt() && a->args[1]->type.isInt())
    if (std::string inverse = inverseComparison(a->text); !inverse.empty())
      return binary(inverse, a->args[0], a->args[1]);
  if (a->kind == ExprKind::Binary && (a->text == "||" || a->text == "&&"))
    return binary(a->text == "||" ? "&&" : "||", logicalNot(a->args[0]), logicalNot(a->args[1]));
  if (a->kind == ExprKind::Unary && a->text == "!" && a->args[0]->type.cls == Type::Class::Bool)
    return a->args[0];
  return unary("!", std::move(a), Type::makeBool());
}
ExprRef assign(const std::string &op, ExprRef target, ExprRef value) {
  Type type = target->type;
  return node(ExprKind::Assign, std::move(type), op, {std::move(target), std::move(value)});
}
ExprRef subscript(ExprRef base, ExprRef index, Type element) {
  return node(ExprKind::Subscript, std::move(element), "", {std::move(base), std::move(index)});
}
ExprRef conditional(ExprRef c, ExprRef a, ExprRef b) {
  Type type = commonType(a->type, b->type);
  return node(ExprKind::Cond, std::move(type), "", {std::move(c), std::move(a), std::move(b)});
}

// Statements

static StmtRef stmt(StmtKind kind) {
  auto s = std::make_shared<Stmt>();
  s->kind = kind;
  return s;
}
StmtRef block(std::vector<StmtRef> stmts, std::string comment) {
  StmtRef s = stmt(StmtKind::Block);
  s->body = std::move(stmts);
  s->text = std::move(comment);
  return s;
}
StmtRef exprStmt(ExprRef e) {
  StmtRef s = stmt(StmtKind::Expr);
  s->line = e->line;
  s->expr = std::move(e);
  return s;
}
StmtRef declStmt(const std::string &name, Type type, ExprRef init, std::vector<ExprRef> dims) {
  StmtRef s = stmt(StmtKind::Decl);
  s->text = name;
  s->type = std::move(type);
  s->expr = std::move(init);
  s->dims = std::move(dims);
  return s;
}
static StmtRef asBlock(StmtRef s) { return s->kind == StmtKind::Block ? s : block({s}); }
StmtRef ifStmt(ExprRef cond, StmtRef then, StmtRef otherwise) {
  StmtRef s = stmt(StmtKind::If);
  s->expr = std::move(cond);
  s->body = {asBlock(std::move(then))};
  if (otherwise)
    s->body.push_back(asBlock(std::move(otherwise)));
  return s;
}
StmtRef countedFor(const std::string &name, Type type, ExprRef lower, ExprRef upper, int64_t step, StmtRef body,
                   int unroll) {
  StmtRef s = stmt(StmtKind::For);
  ExprRef v = var(name, type);
  s->init = declStmt(name, type, std::move(lower));
  s->expr = lessThan(v, std::move(upper));
  s->step = step == 1 ? ExprRef(node(ExprKind::IncDec, type, "++x", {v})) : assign("+=", v, intLit(step));
  s->body = {asBlock(std::move(body))};
  s->unroll = unroll;
  return s;
}
StmtRef barrierStmt() { return stmt(StmtKind::Barrier); }
StmtRef sharedArray(const std::string &name, Type type, std::vector<ExprRef> dims, unsigned align) {
  StmtRef s = declStmt(name, std::move(type), nullptr, std::move(dims));
  s->isShared = true;
  s->align = align;
  return s;
}
StmtRef atLine(unsigned line, StmtRef s) {
  s->line = line;
  return s;
}

StmtRef clone(const StmtRef &s) {
  if (!s)
    return nullptr;
  auto copy = std::make_shared<Stmt>(*s);
  for (StmtRef &child : copy->body)
    child = clone(child);
  copy->init = clone(copy->init);
  return copy;
}

std::shared_ptr<Kernel> Kernel::clone() const {
  auto copy = std::make_shared<Kernel>(*this);
  copy->body = optiml::clone(body);
  return copy;
}

// Walking

ExprRef mapOperands(const ExprRef &e, const std::function<ExprRef(const ExprRef &)> &f) {
  std::vector<ExprRef> args;
  for (const ExprRef &arg : e->args)
    args.push_back(f(arg));
  if (args == e->args)
    return e;
  auto copy = std::make_shared<Expr>(*e);
  copy->args = std::move(args);
  return copy;
}

ExprRef rewrite(const ExprRef &e, const std::function<ExprRef(const ExprRef &)> &f) {
  if (!e)
    return e;
  ExprRef current = mapOperands(e, [&](const ExprRef &operand) { return rewrite(operand, f); });
  ExprRef replaced = f(current);
  return replaced ? replaced : current;
}

void ownExprs(Stmt &s, const std::function<void(ExprRef &)> &f) {
  if (s.expr)
    f(s.expr);
  if (s.step)
    f(s.step);
  for (ExprRef &d : s.dims)
    if (d) // null: extern __shared__ x[]
      f(d);
}

void walk(Stmt &s, const std::function<void(Stmt &)> &f) {
  f(s);
  if (s.init)
    walk(*s.init, f);
  for (StmtRef &child : s.body)
    walk(*child, f);
}

void walk(const ExprRef &e, const std::function<void(const ExprRef &)> &f) {
  f(e);
  for (const ExprRef &arg : e->args)
    walk(arg, f);
}

void walkExprs(Stmt &s, const std::function<void(const ExprRef &)> &f) {
  walk(s, [&](Stmt &t) { ownExprs(t, [&](ExprRef &e) { walk(e, f); }); });
}

void rewriteExprs(Stmt &s, const std::function<ExprRef(const ExprRef &)> &f) {
  walk(s, [&](Stmt &t) { ownExprs(t, [&](ExprRef &e) { e = rewrite(e, f); }); });
}

ExprRef substitute(const ExprRef &e, const std::map<std::string, ExprRef> &names) {
  return rewrite(e, [&](const ExprRef &n) -> ExprRef {
    if (n->kind != ExprKind::Var && n->kind != ExprKind::Builtin)
      return nullptr;
    auto it = names.find(n->text);
    return it == names.end() ? nullptr : it->second;
  });
}

void substitute(Stmt &s, const std::map<std::string, ExprRef> &names) {
  walk(s, [&](Stmt &t) { ownExprs(t, [&](ExprRef &e) { e = substitute(e, names); }); });
}

std::set<std::string> namesIn(const ExprRef &e) {
  std::set<std::string> result;
  if (e)
    walk(e, [&](const ExprRef &n) {
      if (n->kind == ExprKind::Var || n->kind == ExprKind::Builtin)
        result.insert(n->text);
      result.insert(n->names.begin(), n->names.end());
    });
  return result;
}

std::set<std::string> allNames(const Kernel &kernel) {
  std::set<std::string> result = kernel.macros;
  result.insert(kernel.name);
  for (const Param &param : kernel.params)
    result.insert(param.name);
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl)
      result.insert(s.text);
    result.insert(s.names.begin(), s.names.end());
  });
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (e->kind == ExprKind::Var || e->kind == ExprKind::Call)
      result.insert(e->text);
    result.insert(e->names.begin(), e->names.end());
  });
  return result;
}

bool renameDeclarations(Stmt &s, std::set<std::string> &taken) {
  std::set<std::string> loopVariables, names;
  walk(s, [&](Stmt &t) {
    if (t.kind == StmtKind::For && t.init && t.init->kind == StmtKind::Decl)
      loopVariables.insert(t.init->text);
    if (t.kind == StmtKind::Decl)
      names.insert(t.text);
  });
  for (const std::string &name : loopVariables)
    names.erase(name);
  if (opaqueMentions(s, names))
    return false;
  std::map<std::string, std::string> renamed;
  for (const std::string &name : names)
    renamed[name] = freshName(taken, name);
  walk(s, [&](Stmt &t) {
    if (auto it = renamed.find(t.text); t.kind == StmtKind::Decl && it != renamed.end())
      t.text = it->second;
  });
  rewriteExprs(s, [&](const ExprRef &e) -> ExprRef {
    auto it = e->kind == ExprKind::Var ? renamed.find(e->text) : renamed.end();
    return it == renamed.end() ? nullptr : var(it->second, e->type);
  });
  return true;
}

std::string freshName(std::set<std::string> &taken, const std::string &wish) {
  std::string stem = unqualified(wish).str();       // of a variable of a namespace
  std::replace(stem.begin(), stem.end(), '.', '_'); // of a pointer in a parameter
  std::string name = stem;
  for (unsigned i = 1; !taken.insert(name).second; ++i)
    name = stem + std::to_string(i);
  return name;
}

std::string freshName(const Kernel &kernel, const std::string &wish) {
  std::set<std::string> taken = allNames(kernel);
  return freshName(taken, wish);
}

} // namespace optiml
