//===- Inductions.cpp - variables that advance with a loop ----------------===//
//
// The outermost statements of a kernel are run with values over what stays the same: "v += e;" makes v's value one of
// v + e, and in iteration i of a loop that adds s to it, it is its value before the loop plus i * s.
//
//===----------------------------------------------------------------------===//
#include "optiml/Canonicalize/Inductions.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {
/// v += by
struct Advance {
  std::string name;
  ExprRef by;
};

class Inductions {
public:
  Inductions(Kernel &kernel, const std::array<int64_t, 3> &block) : kernel(kernel), model(kernel, block) {}
  /// False: something advances in a way that is not understood, and the kernel is no longer whole.
  bool run();

private:
  void findFollowed();
  bool isLoopStatement(const Stmt &s) const { return s.kind == StmtKind::For && s.step && s.body.size() == 1; }
  std::vector<Advance> advancesOf(Stmt &loop) const;
  bool plain(const ExprRef &e) const;
  ExprRef now(const std::string &name, const Type &type) const;
  bool loop(Stmt &s);
  bool mentionsAny(Stmt &s, const std::set<std::string> &names) const;

  Kernel &kernel;
  KernelModel model;
  std::set<std::string> followed;
  std::map<std::string, Type> types;
  std::map<std::string, ExprRef> values; ///< of the followed variables, where they are not what they were at first
  std::set<std::string> gone;            ///< have no value any more that is known
};
} // namespace

static std::optional<Advance> advanceOf(const ExprRef &e) {
  if (!isChange(e) || e->args[0]->kind != ExprKind::Var)
    return std::nullopt;
  std::string name = e->args[0]->text;
  if (e->kind == ExprKind::IncDec)
    return Advance{name, intLit(e->text.find("++") != std::string::npos ? 1 : -1)};
  ExprRef by;
  if (e->text == "+=")
    by = e->args[1];
  else if (e->text == "-=" && e->args[1]->type.isSigned)
    by = unary("-", e->args[1], e->args[1]->type);
  else if (e->text == "=" && isBinary(e->args[1], "+"))
    for (unsigned side = 0; side < 2; ++side)
      if (const ExprRef &v = e->args[1]->args[side]; isVar(v, name))
        by = e->args[1]->args[1 - side];
  if (!by || mentions(by, name) || !by->type.isInt())
    return std::nullopt;
  return Advance{name, by};
}

/// Every advance in the loop's step, then those among the statements of its body.
std::vector<Advance> Inductions::advancesOf(Stmt &loop) const {
  std::vector<Advance> result;
  std::vector<ExprRef> parts = operandsOf(loop.step, ",");
  for (const StmtRef &s : loop.body[0]->body)
    if (s->kind == StmtKind::Expr)
      parts.push_back(s->expr);
  for (const ExprRef &part : parts)
    if (auto advance = advanceOf(part))
      result.push_back(*advance);
  return result;
}

void Inductions::findFollowed() {
  for (const Param &p : kernel.params)
    if (p.type.isInt() || p.type.isPointer())
      types[p.name] = p.type;
  std::map<std::string, unsigned> advanced, changed = countChanges(*kernel.body);
  for (const StmtRef &s : kernel.body->body) {
    if (s->kind == StmtKind::Decl && !s->isShared && s->dims.empty() && s->expr && plain(s->expr) &&
        (s->type.isPointer() || (s->type.isInt() && s->type.bytes >= 4)))
      types[s->text] = s->type;
    if (s->kind == StmtKind::Expr)
      if (auto advance = advanceOf(s->expr))
        ++advanced[advance->name];
    if (isLoopStatement(*s))
      for (const Advance &advance : advancesOf(*s))
        ++advanced[advance.name];
  }
  for (const auto &[name, type] : types)
    if (changed[name] && advanced[name] == changed[name] && !opaqueMentions(*kernel.body, {name}))
      followed.insert(name);
}

/// Arithmetic whose operands, the followed variables aside, keep their values.
bool Inductions::plain(const ExprRef &e) const {
  bool ok = true;
  walk(e, [&](const ExprRef &n) {
    bool dereference = n->kind == ExprKind::Unary && (n->text == "*" || n->text == "&");
    ok &= n->kind == ExprKind::IntLit || n->kind == ExprKind::Builtin || n->kind == ExprKind::Binary ||
          n->kind == ExprKind::Cast || (n->kind == ExprKind::Unary && !dereference) || n->kind == ExprKind::Member ||
          n->kind == ExprKind::Var;
    if (n->kind == ExprKind::Var && !followed.count(n->text))
      ok &= model.stable(n);
    if (n->kind == ExprKind::Member)
      ok &= !n->args[0]->type.isPointer() && n->args[0]->kind == ExprKind::Var && model.stable(n->args[0]);
  });
  return ok;
}

ExprRef Inductions::now(const std::string &name, const Type &type) const {
  auto it = values.find(name);
  return it == values.end() ? var(name, type) : it->second;
}

bool Inductions::mentionsAny(Stmt &s, const std::set<std::string> &names) const {
  return anyExpr(s, [&](const ExprRef &e) { return e->kind == ExprKind::Var && names.count(e->text); });
}

/// e + offset, of the type of e.
static ExprRef moved(const ExprRef &e, const ExprRef &offset) {
  return e->type.isPointer() ? binary("+", e, offset, e->type) : add(e, offset);
}

/// p / by, when that is exact.
static std::optional<Poly> quotient(const Poly &p, int64_t by) {
  Poly result = p;
  for (auto &[monomial, coefficient] : result.terms) {
    if (coefficient % by)
      return std::nullopt;
    coefficient /= by;
  }
  return result;
}

bool Inductions::loop(Stmt &s) {
  std::map<std::string, ExprRef> step;
  for (const Advance &advance : advancesOf(s))
    if (!step.emplace(advance.name, substitute(advance.by, values)).second)
      return false;
  bool own = s.init && s.init->kind == StmtKind::Decl, any = false;
  for (const auto &[name, by] : step)
    any |= followed.count(name) != 0;
  if (!any) {
    substitute(s, values);
    return true;
  }
  // The variable that ends the loop: v < end, or v <= end.
  bool compares = s.expr && s.expr->kind == ExprKind::Binary && (s.expr->text == "<" || s.expr->text == "<=");
  if ((s.init && !own) || !compares || s.expr->args[0]->kind != ExprKind::Var ||
      leavesIteration(*s.body[0], {StmtKind::Continue}))
    return false;
  std::string counter = s.expr->args[0]->text;
  if (!step.count(counter) || !(own ? s.init->text == counter : followed.count(counter) != 0))
    return false;
  Type type = own ? s.init->type : types[counter];
  ExprRef first = own ? substitute(s.init->expr, values) : now(counter, type),
          end = substitute(s.expr->args[1], values);
  auto by = model.poly(step[counter]).constant();
  for (const auto &[name, e] : step)
    if (mentions(end, name) || !plain(e) ||
        llvm::any_of(step, [&, &e = e](const auto &other) { return mentions(e, other.first); }))
      return false;
  if (!by || *by <= 0 || !type.isInt() || type.bytes < 4 || !plain(first) || !plain(end))
    return false;
  Poly span = model.poly(end) - model.poly(first) + Poly(s.expr->text == "<=" ? 1 : 0);
  type.isConst = false;
  ExprRef self = var(counter, type), length = polyExpr(model, span);
  if (constantValue(first) == 0 && s.expr->text == "<")
    length = end;
  else if (!type.isSigned || !length->type.isSigned) // where the loop does not run, this would wrap around
    return false;
  // The counter grows by what its variable does, unless others have no share in that.
  int64_t stride = *by;
  for (const auto &[name, e] : step)
    if (!quotient(model.poly(e), stride))
      stride = 1;
  if (stride != *by)
    length = binary("/", add(length, intLit(*by - 1)), intLit(*by));
  // What each variable is at the beginning of an iteration, and after it has advanced.
  std::map<std::string, ExprRef> begin, after;
  for (const auto &[name, e] : step) {
    if (name != counter && !followed.count(name))
      return false;
    Poly each = stride == *by ? *quotient(model.poly(e), stride) : model.poly(e);
    ExprRef offset = mul(polyExpr(model, each), self);
    begin[name] = name == counter ? add(first, offset) : moved(now(name, types[name]), offset);
    gone.insert(name);
  }
  for (const auto &[name, value] : values)
    begin.emplace(name, value);
  after = begin;
  std::vector<StmtRef> body;
  for (const StmtRef &child : s.body[0]->body) {
    auto advance = child->kind == StmtKind::Expr ? advanceOf(child->expr) : std::nullopt;
    if (advance && step.count(advance->name)) {
      after[advance->name] = moved(after[advance->name], step[advance->name]);
      continue;
    }
    substitute(*child, after);
    body.push_back(child);
  }
  StmtRef counted = countedFor(counter, type, intLit(0), length, stride, block(body), s.unroll);
  counted->line = s.line;
  counted->text = s.text;
  s = *counted;
  return true;
}

bool Inductions::run() {
  findFollowed();
  if (followed.empty())
    return true;
  std::vector<StmtRef> list;
  for (const StmtRef &s : kernel.body->body) {
    if (mentionsAny(*s, gone) && !(s->kind == StmtKind::For && s->init && s->init->kind == StmtKind::Decl &&
                                   gone.count(s->init->text) && !followed.count(s->init->text)))
      return false;
    if (s->kind == StmtKind::Decl && followed.count(s->text)) {
      values[s->text] = substitute(s->expr, values);
      continue;
    }
    if (auto advance = s->kind == StmtKind::Expr ? advanceOf(s->expr) : std::nullopt;
        advance && followed.count(advance->name)) {
      if (!plain(advance->by))
        return false;
      values[advance->name] = moved(now(advance->name, types[advance->name]), substitute(advance->by, values));
      continue;
    }
    if (isLoopStatement(*s)) {
      if (!loop(*s))
        return false;
    } else {
      substitute(*s, values);
    }
    list.push_back(s);
  }
  kernel.body->body = list;
  return true;
}

void optiml::replaceInductions(Kernel &kernel, const std::array<int64_t, 3> &block) {
  auto changed = kernel.clone();
  if (!Inductions(*changed, block).run())
    return;
  rewriteExprs(*changed->body, withoutPointerSum);
  kernel.body = changed->body;
}
