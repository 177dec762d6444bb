//===- Advances.cpp - loops by one counter --------------------------------===//
#include "optiml/Analysis/Advances.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

/// v += by, once in an iteration
struct Advance {
  std::string name;
  Type type;
  ExprRef by;
};

class OneCounter {
public:
  OneCounter(Kernel &kernel, std::set<std::string> &taken) : kernel(kernel), taken(taken) {}
  void run();

private:
  void eachBlock(const std::function<void(Stmt &)> &f) { // innermost first: what is in a loop is settled before it
    std::vector<Stmt *> blocks;
    walk(*kernel.body, [&](Stmt &s) {
      if (s.kind == StmtKind::Block)
        blocks.push_back(&s);
    });
    for (Stmt *s : llvm::reverse(blocks))
      f(*s);
  }
  void ownCounters(Stmt &list);
  void splitIncrements(Stmt &list);
  void stepsIntoBody(Stmt &list);
  void walkPointers(Stmt &list);
  bool walkPointer(Stmt &list, size_t at);
  void followCounter(Stmt &list);
  void follow(Stmt &list, size_t at, const Advance &advance, size_t where, const CountedLoop &counted);
  void renameAdvanced(Stmt &list);
  void shortenDifferences();
  void replace(Stmt &loop, size_t where, const Advance &advance, const ExprRef &before);
  bool endsWith(const Stmt &list, size_t at, const std::string &name) const;
  bool staysSame(const ExprRef &e, const Stmt &loop) const;
  std::pair<std::string, ExprRef> placeOf(const ExprRef &pointer, unsigned depth = 0) const;

  Kernel &kernel;
  std::set<std::string> &taken;
  std::vector<StmtRef> walks; ///< loops whose bounds are differences of pointers
};

} // namespace

static std::optional<Advance> advanceOf(const Stmt &s) {
  if (s.kind != StmtKind::Expr || !isChange(s.expr) || s.expr->args[0]->kind != ExprKind::Var)
    return std::nullopt;
  const ExprRef &v = s.expr->args[0];
  if (!(v->type.cls == Type::Class::Int || v->type.isPointer()) || v->type.isVolatile)
    return std::nullopt;
  const std::string &op = s.expr->text;
  Advance result{v->text, v->type.unqualified(), nullptr};
  if (s.expr->kind == ExprKind::IncDec) {
    result.by = intLit(op.find('+') != std::string::npos ? 1 : -1);
    return result;
  }
  ExprRef value = s.expr->args[1];
  if (op == "=" && (isBinary(value, "+") || isBinary(value, "-")) && isVar(value->args[0], v->text))
    result.by = isBinary(value, "+") ? value->args[1] : unary("-", value->args[1], value->args[1]->type);
  else if (op == "+=")
    result.by = value;
  else if (op == "-=")
    result.by = constantValue(value) ? intLit(-*constantValue(value)) : unary("-", value, value->type);
  if (!result.by || !result.by->type.isInt() || mentions(result.by, v->text) || hasEffects(result.by))
    return std::nullopt;
  return result;
}

std::optional<int64_t> optiml::stepByOne(const ExprRef &change) {
  const auto advance = change ? advanceOf(*exprStmt(change)) : std::nullopt;
  const auto by = advance && advance->type.isInt() ? constantValue(advance->by) : std::nullopt;
  return by == 1 || by == -1 ? by : std::nullopt;
}

static bool mentionedUnder(const Stmt &s, const std::string &name) {
  return anyStmt(s, [&](const Stmt &t) { return t.names.count(name) != 0; }) ||
         anyExpr(s, [&](const ExprRef &e) { return isVar(e, name) || e->names.count(name) != 0; });
}

static unsigned changesUnder(const Stmt &s, const std::string &name) {
  auto changes = countChanges(s);
  auto it = changes.find(name);
  return it == changes.end() ? 0 : it->second;
}

/// The local is declared in the list before `at`, and nothing after the loop there knows its name.
bool OneCounter::endsWith(const Stmt &list, size_t at, const std::string &name) const {
  bool declared = false;
  for (size_t i = 0; i < list.body.size(); ++i) {
    const Stmt &s = *list.body[i];
    if (i < at)
      declared |= s.kind == StmtKind::Decl && s.text == name && s.dims.empty() && !s.isShared && !s.type.isVolatile;
    else if (i > at && mentionedUnder(s, name))
      return false;
    if (opaqueMentions(*list.body[i], {name}))
      return false;
  }
  return declared;
}

/// Its value depends on variables alone, which the loop does not change.
bool OneCounter::staysSame(const ExprRef &e, const Stmt &loop) const {
  bool same = !hasEffects(e);
  walk(e, [&](const ExprRef &x) {
    same &= x->kind != ExprKind::Opaque && x->kind != ExprKind::Call && !isLoad(x);
    if (x->kind == ExprKind::Var) {
      bool isParam = llvm::any_of(kernel.params, [&](const Param &param) { return param.name == x->text; });
      const Stmt *d = findDeclaration(*kernel.body, x->text);
      same &= !changesUnder(loop, x->text) && (isParam || (d && !d->isShared && !d->type.isVolatile));
    }
  });
  return same;
}

//===----------------------------------------------------------------------===//
// One change a statement
//===----------------------------------------------------------------------===//

/// for (j = 0; …)   becomes   for (int j1 = 0; …), where nothing after the loop looks at j.
void OneCounter::ownCounters(Stmt &list) {
  for (size_t at = list.body.size(); at-- > 0;) {
    Stmt &loop = *list.body[at];
    if (loop.kind != StmtKind::For || !loop.init || !isAssignStmt(*loop.init) ||
        loop.init->expr->args[0]->kind != ExprKind::Var)
      continue;
    const ExprRef counter = loop.init->expr->args[0], start = loop.init->expr->args[1];
    if (!counter->type.isInt() || mentions(start, counter->text) || !endsWith(list, at, counter->text))
      continue;
    bool other = false; // something else than such loops, which sinkDeclaration brings to one form
    for (size_t i = 0; i < at; ++i)
      other |= list.body[i]->kind != StmtKind::Decl && !(list.body[i]->kind == StmtKind::For && list.body[i]->init) &&
               mentionedUnder(*list.body[i], counter->text);
    if (!other)
      continue;
    std::string name = freshName(taken, counter->text);
    loop.init = atLine(loop.init->line, declStmt(name, counter->type.unqualified(), start));
    substitute(loop, {{counter->text, var(name, counter->type.unqualified())}});
  }
}

/// s += *p++;   becomes   s += *p; ++p;
void OneCounter::splitIncrements(Stmt &list) {
  for (size_t i = 0; i < list.body.size(); ++i) {
    Stmt &s = *list.body[i];
    if ((s.kind != StmtKind::Expr && s.kind != StmtKind::Decl) || !s.expr || s.expr->kind == ExprKind::IncDec)
      continue;
    ExprRef found;
    std::function<void(const ExprRef &)> look = [&](const ExprRef &e) { // where it is evaluated in any case
      if (e->kind == ExprKind::IncDec && e->args[0]->kind == ExprKind::Var &&
          (e->args[0]->type.isPointer() || e->args[0]->type.cls == Type::Class::Int))
        found = e;
      bool maybe = e->kind == ExprKind::Cond || isBinary(e, "&&") || isBinary(e, "||") || isBinary(e, ",");
      for (size_t k = 0; k < e->args.size() && !(maybe && k); ++k)
        look(e->args[k]);
    };
    look(s.expr);
    if (!found || countMentions(s)[found->args[0]->text] != 1 ||
        findDeclaration(*kernel.body, found->args[0]->text) == nullptr)
      continue;
    ExprRef v = found->args[0];
    bool before = found->text[0] != 'x';
    StmtRef step = atLine(s.line, exprStmt(found));
    replaceNodes(s, {{found.get(), v}});
    list.body.insert(list.body.begin() + long(i + (before ? 0 : 1)), step);
    i += before; // the statement once more
  }
}

/// for (; c; ++j, ++p) { … }   becomes   while (c) { …; ++p; ++j; },  and with a declaration only the first step stays.
void OneCounter::stepsIntoBody(Stmt &list) {
  for (const StmtRef &s : list.body) {
    if (s->kind != StmtKind::For || !s->expr || !s->step || s->unroll != NoUnroll ||
        leavesIteration(*s->body[0], {StmtKind::Continue}))
      continue;
    std::vector<ExprRef> steps = operandsOf(s->step, ",");
    bool noCounter = !s->init;
    if ((steps.size() < 2 && !noCounter) || (s->init && s->init->kind != StmtKind::Decl))
      continue;
    // The counter's own step, which the condition looks at, is the last.
    auto counts = [&](const ExprRef &e) {
      return isChange(e) && e->args[0]->kind == ExprKind::Var &&
             (noCounter ? mentions(s->expr, e->args[0]->text) : e->args[0]->text == s->init->text);
    };
    auto own = llvm::find_if(steps, counts);
    if (own == steps.end() ||
        !llvm::all_of(steps, [](const ExprRef &e) { return advanceOf(*exprStmt(e)).has_value(); }))
      continue;
    ExprRef main = *own;
    for (const ExprRef &e : steps)
      if (e != main)
        s->body[0]->body.push_back(atLine(s->line, exprStmt(e)));
    if (!noCounter) {
      s->step = main;
      continue;
    }
    s->body[0]->body.push_back(atLine(s->line, exprStmt(main)));
    s->step = nullptr;
    s->kind = StmtKind::While;
  }
}

//===----------------------------------------------------------------------===//
// Pointers
//===----------------------------------------------------------------------===//

/// The variable's value in iterations, `before` its statement and after it.
void OneCounter::replace(Stmt &loop, size_t where, const Advance &advance, const ExprRef &before) {
  ExprRef v = var(advance.name, advance.type), after = add(before, advance.by);
  bool isPointer = advance.type.isPointer();
  std::vector<StmtRef> &body = loop.body[0]->body;
  body.erase(body.begin() + long(where));
  for (size_t i = 0; i < body.size(); ++i) {
    const ExprRef &moved = i < where ? before : after;
    rewriteExprs(*body[i], [&](const ExprRef &e) -> ExprRef {
      if (!isPointer)
        return isVar(e, advance.name) ? add(v, moved) : nullptr;
      if (isVar(e, advance.name))
        return binary("+", v, moved, advance.type);
      // (p + i)[k] is p[i + k]
      bool element = e->kind == ExprKind::Subscript || isUnary(e, "*");
      if (!element || !isBinary(e->args[0], "+") || !isVar(e->args[0]->args[0], advance.name))
        return nullptr;
      ExprRef index = e->args[0]->args[1];
      return subscript(v, e->kind == ExprKind::Subscript ? add(index, e->args[1]) : index, e->type);
    });
  }
}

/// A loop until a pointer that goes by one element has come to another.
bool OneCounter::walkPointer(Stmt &list, size_t at) {
  Stmt &loop = *list.body[at];
  if (loop.kind != StmtKind::While || loop.expr->kind != ExprKind::Binary ||
      leavesIteration(*loop.body[0], {StmtKind::Continue}))
    return false;
  for (bool second : {false, true}) {
    const ExprRef &p = loop.expr->args[second], &end = loop.expr->args[!second];
    if (p->kind != ExprKind::Var || !p->type.isPointer() || !end->type.isPointer() || mentions(end, p->text))
      continue;
    const std::vector<StmtRef> &body = loop.body[0]->body;
    for (size_t i = 0; i < body.size(); ++i) {
      auto advance = advanceOf(*body[i]);
      auto by = advance ? constantValue(advance->by) : std::nullopt;
      if (!advance || advance->name != p->text || !by || (*by != 1 && *by != -1))
        continue;
      std::string up = second ? ">" : "<", down = second ? "<" : ">";
      if ((loop.expr->text != "!=" && loop.expr->text != (*by > 0 ? up : down)) || changesUnder(loop, p->text) != 1 ||
          !endsWith(list, at, p->text) || !staysSame(end, loop))
        continue;
      std::string name = freshName(taken, "i");
      Type type = Type::makeLong();
      ExprRef counter = var(name, type), start = var(p->text, advance->type);
      ExprRef trips = *by > 0 ? binary("-", end, start, type) : binary("-", start, end, type);
      replace(loop, i, *advance, *by > 0 ? counter : unary("-", counter, type));
      StmtRef made = countedFor(name, type, intLit(0), trips, 1, loop.body[0], NoUnroll);
      made->line = loop.line;
      list.body[at] = made;
      walks.push_back(made);
      return true;
    }
  }
  return false;
}

void OneCounter::walkPointers(Stmt &list) {
  for (size_t i = 0; i < list.body.size(); ++i)
    walkPointer(list, i);
}

/// The variable that the pointer was made of, and how many elements it is behind it; empty where that is not known.
std::pair<std::string, ExprRef> OneCounter::placeOf(const ExprRef &pointer, unsigned depth) const {
  if (depth > 8)
    return {};
  auto behind = [&](const ExprRef &base, const ExprRef &by) -> std::pair<std::string, ExprRef> {
    auto [name, offset] = placeOf(base, depth + 1);
    if (name.empty())
      return {};
    return {name, add(offset, by)};
  };
  if (pointer->kind == ExprKind::Var) {
    const Stmt *d = findDeclaration(*kernel.body, pointer->text);
    if (d && d->expr && d->expr->type.isPointer() && !changesUnder(*kernel.body, pointer->text) && !hasEffects(d->expr))
      return placeOf(d->expr, depth + 1);
    return {pointer->text, intLit(0)};
  }
  if (pointer->kind == ExprKind::Member && pointer->args[0]->kind == ExprKind::Var &&
      !pointer->args[0]->type.isPointer() && !changesUnder(*kernel.body, pointer->args[0]->text))
    return {str(pointer), intLit(0)};
  if (isBinary(pointer, "+") && pointer->args[0]->type.isPointer())
    return behind(pointer->args[0], pointer->args[1]);
  if (isBinary(pointer, "+") && pointer->args[1]->type.isPointer())
    return behind(pointer->args[1], pointer->args[0]);
  if (isUnary(pointer, "&") && pointer->args[0]->kind == ExprKind::Subscript &&
      pointer->args[0]->args[0]->type.isPointer())
    return behind(pointer->args[0]->args[0], pointer->args[0]->args[1]);
  return {};
}

/// (x + i + n) - (x + i)   becomes   n
void OneCounter::shortenDifferences() {
  for (const StmtRef &s : walks) {
    ExprRef difference = s->expr->args[1];
    if (!isBinary(difference, "-"))
      continue;
    auto [a, from] = placeOf(difference->args[0]);
    auto [b, to] = placeOf(difference->args[1]);
    if (a.empty() || a != b || changesUnder(*kernel.body, a))
      continue;
    std::vector<ExprRef> plus = operandsOf(from, "+"), minus = operandsOf(to, "+");
    std::erase_if(plus, [&](const ExprRef &e) {
      auto same = llvm::find_if(minus, [&](const ExprRef &m) { return equal(e, m); });
      if (same == minus.end())
        return false;
      minus.erase(same);
      return true;
    });
    ExprRef trips = intLit(0);
    for (const ExprRef &e : plus)
      trips = add(trips, e);
    for (const ExprRef &e : minus)
      trips = sub(trips, e);
    bool stays = true; // what it is made of is still what it was
    walk(trips, [&](const ExprRef &e) {
      stays &= !isLoad(e) && e->kind != ExprKind::Opaque && !(e->kind == ExprKind::Call && !e->pure) &&
               !(e->kind == ExprKind::Var && changesUnder(*kernel.body, e->text));
    });
    if (!stays)
      continue;
    if (trips->type.bytes == 8 && !trips->type.isSigned) // what a pointer moves by fits
      trips = castTo(Type::makeLong(), trips);
    Type type = trips->type.isSigned && trips->type.bytes == 4 ? Type::makeInt() : Type::makeLong();
    const std::string name = s->init->text;
    if (type.bytes == 4)
      substitute(*s->body[0], {{name, var(name, type)}});
    *s = *atLine(s->line, countedFor(name, type, intLit(0), trips, 1, s->body[0], NoUnroll));
  }
}

//===----------------------------------------------------------------------===//
// Beside a counter
//===----------------------------------------------------------------------===//

void OneCounter::follow(Stmt &list, size_t at, const Advance &advance, size_t where, const CountedLoop &counted) {
  ExprRef counter = var(counted.var, counted.type.unqualified());
  ExprRef iteration = constantValue(counted.lower) == 0 ? counter : sub(counter, counted.lower);
  replace(*list.body[at], where, advance, mul(advance.by, iteration));
}

/// It tells where something is: a pointer, or an integer in an index. Other integers count, and may be reductions.
static bool isIndex(Stmt &loop, const Advance &advance) {
  if (advance.type.isPointer())
    return true;
  return advance.type.bytes >= 4 && anyExpr(loop, [&](const ExprRef &e) {
           bool element = e->kind == ExprKind::Subscript && mentions(e->args[1], advance.name);
           return element || (isBinary(e, "+") && e->type.isPointer() && mentions(e, advance.name));
         });
}

/// Integers and pointers that advance with a counted loop that stands beside their declarations.
void OneCounter::followCounter(Stmt &list) {
  for (size_t at = 0; at < list.body.size(); ++at) {
    for (bool again = true; again;) {
      again = false;
      auto counted = isLoop(*list.body[at]) ? asCountedLoop(*list.body[at]) : std::nullopt;
      if (!counted || counted->step != 1 || leavesIteration(*list.body[at]->body[0], {StmtKind::Continue}) ||
          !staysSame(counted->lower, *list.body[at]))
        break;
      const std::vector<StmtRef> &body = list.body[at]->body[0]->body;
      for (size_t i = 0; i < body.size() && !again; ++i) {
        auto advance = advanceOf(*body[i]);
        if (!advance || changesUnder(*list.body[at], advance->name) != 1 || !endsWith(list, at, advance->name) ||
            mentions(counted->upper, advance->name) || mentions(counted->lower, advance->name) ||
            !staysSame(advance->by, *list.body[at]) || !isIndex(*list.body[at], *advance))
          continue;
        follow(list, at, *advance, i, *counted);
        again = true;
      }
    }
  }
}

/// float first = *p; ++p; … p …   becomes   … const T *p1 = p + 1; … p1 …, where no loop or condition changes p.
void OneCounter::renameAdvanced(Stmt &list) {
  for (size_t i = 0; i < list.body.size(); ++i) {
    auto advance = advanceOf(*list.body[i]);
    if (!advance || !advance->type.isPointer() || opaqueMentions(*kernel.body, {advance->name}))
      continue;
    bool declared = false, simple = true;
    for (size_t k = 0; k < list.body.size(); ++k) {
      const Stmt &s = *list.body[k];
      declared |= k < i && s.kind == StmtKind::Decl && s.text == advance->name && s.dims.empty();
      simple &= k < i || !changesUnder(s, advance->name) || advanceOf(s).has_value();
    }
    if (!declared || !simple)
      continue;
    std::string next = freshName(taken, advance->name);
    ExprRef value = binary("+", var(advance->name, advance->type), advance->by, advance->type);
    list.body[i] = atLine(list.body[i]->line, declStmt(next, advance->type, value));
    for (size_t k = i + 1; k < list.body.size(); ++k)
      rewriteExprs(*list.body[k],
                   [&](const ExprRef &e) -> ExprRef { return isVar(e, advance->name) ? var(next, e->type) : nullptr; });
  }
}

void OneCounter::run() {
  eachBlock([&](Stmt &s) { ownCounters(s); });
  eachBlock([&](Stmt &s) { splitIncrements(s); });
  eachBlock([&](Stmt &s) { stepsIntoBody(s); });
  eachBlock([&](Stmt &s) { walkPointers(s); });
  normalize(kernel);
  eachBlock([&](Stmt &s) { followCounter(s); });
  eachBlock([&](Stmt &s) { renameAdvanced(s); });
  shortenDifferences();
}

void optiml::useOneCounter(Kernel &kernel, std::set<std::string> &taken) {
  taken.merge(allNames(kernel));
  OneCounter(kernel, taken).run();
}
