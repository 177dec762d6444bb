//===- Loops.cpp - counted loops, and bringing loops into that form -------===//
#include "optiml/Analysis/Tree.h"

using namespace optiml;

/// v++ / ++v / v += c / v = v + c: the step, or nothing.
static std::optional<int64_t> stepOf(const ExprRef &e, const std::string &v) {
  if (e->kind == ExprKind::IncDec && isVar(e->args[0], v))
    return e->text == "++x" || e->text == "x++" ? std::optional<int64_t>(1) : std::nullopt;
  if (e->kind != ExprKind::Assign || !isVar(e->args[0], v))
    return std::nullopt;
  if (e->text == "+=")
    return constantValue(e->args[1]);
  if (e->text == "=" && isBinary(e->args[1], "+")) {
    const auto &sum = e->args[1]->args;
    if (isVar(sum[0], v))
      return constantValue(sum[1]);
    if (isVar(sum[1], v))
      return constantValue(sum[0]);
  }
  return std::nullopt;
}

/// Whether one of these may change under `s`.
static bool assigned(const Stmt &s, const std::set<std::string> &names) {
  auto mentionsOne = [&](const std::set<std::string> &of) {
    return llvm::any_of(of, [&](const std::string &name) { return names.count(name) != 0; });
  };
  return anyExpr(s,
                 [&](const ExprRef &e) {
                   return (mayChange(e) && e->args[0]->kind == ExprKind::Var && names.count(e->args[0]->text)) ||
                          (e->kind == ExprKind::Opaque && !e->pure && mentionsOne(e->names));
                 }) ||
         anyStmt(s, [&](const Stmt &t) { return t.kind == StmtKind::Opaque && mentionsOne(t.names); });
}

static bool assigned(const Stmt &s, const std::string &name) { return assigned(s, std::set<std::string>{name}); }

/// for (T k = a; …; …) over integers.
static bool declaresCounter(const Stmt &s) {
  return s.kind == StmtKind::For && s.init && s.init->kind == StmtKind::Decl && s.init->expr && s.expr &&
         s.init->type.isInt() && s.init->dims.empty();
}

std::optional<CountedLoop> optiml::asCountedLoop(Stmt &s) {
  if (!declaresCounter(s) || !s.step)
    return std::nullopt;
  CountedLoop loop;
  loop.stmt = &s;
  loop.var = s.init->text;
  loop.type = s.init->type;
  loop.lower = s.init->expr;
  auto step = stepOf(s.step, loop.var);
  if (!step || *step <= 0)
    return std::nullopt;
  loop.step = *step;
  if (s.expr->kind != ExprKind::Binary)
    return std::nullopt;
  ExprRef left = s.expr->args[0], right = s.expr->args[1];
  std::string op = s.expr->text;
  if (isVar(right, loop.var)) {
    std::swap(left, right);
    op = op == ">" ? "<" : op == ">=" ? "<=" : op == "!=" ? "!=" : "";
  }
  if (!isVar(left, loop.var) || mentions(right, loop.var))
    return std::nullopt;
  if (op == "<" || (op == "!=" && loop.step == 1 && constantValue(loop.lower) && constantValue(right) &&
                    *constantValue(loop.lower) <= *constantValue(right)))
    loop.upper = right;
  else if (op == "<=") // up to the greatest number there is, it would never end
    loop.upper = add(right, intLit(1));
  else
    return std::nullopt;
  std::set<std::string> fixed = namesIn(right);
  fixed.insert(loop.var);
  if (assigned(*s.body[0], fixed))
    return std::nullopt;
  return loop;
}

std::optional<StridedLoop> optiml::asStridedLoop(Stmt &s) {
  if (!declaresCounter(s) || !s.step || s.expr->kind != ExprKind::Binary)
    return std::nullopt;
  StridedLoop loop;
  loop.var = s.init->text;
  loop.type = s.init->type;
  loop.lower = s.init->expr;
  if (s.step->kind != ExprKind::Assign || !isVar(s.step->args[0], loop.var))
    return std::nullopt;
  const ExprRef &value = s.step->args[1];
  if (s.step->text == "+=")
    loop.step = value;
  else if (s.step->text == "=" && isBinary(value, "+"))
    for (unsigned side = 0; side < 2; ++side)
      if (isVar(value->args[side], loop.var))
        loop.step = value->args[1 - side];
  if (!loop.step)
    return std::nullopt;
  bool less = s.expr->text == "<" && isVar(s.expr->args[0], loop.var),
       greater = s.expr->text == ">" && isVar(s.expr->args[1], loop.var);
  if (!less && !greater)
    return std::nullopt;
  loop.upper = s.expr->args[less ? 1 : 0];
  std::set<std::string> names = namesIn(loop.upper);
  names.merge(namesIn(loop.step));
  if (names.count(loop.var))
    return std::nullopt;
  names.insert(loop.var);
  if (assigned(*s.body[0], names))
    return std::nullopt;
  return loop;
}

std::optional<int64_t> CountedLoop::tripCount() const {
  auto lo = constantValue(lower), hi = constantValue(upper);
  if (!lo || !hi)
    return std::nullopt;
  return *hi <= *lo ? 0 : (*hi - *lo + step - 1) / step;
}

// Declarations where the values are

static bool mentionedIn(const Stmt &s, const std::string &name) {
  return anyStmt(s, [&](const Stmt &t) { return t.names.count(name) != 0; }) || anyExpr(s, [&](const ExprRef &e) {
           return isVar(e, name) || isBuiltin(e, name) || e->names.count(name) != 0;
         });
}

/// The value that an expression statement "name = value" assigns, or null.
static ExprRef assignedValue(const Stmt &s, const std::string &name) {
  bool sets = isAssignStmt(s) && isVar(s.expr->args[0], name) && !mentions(s.expr->args[1], name);
  return sets ? s.expr->args[1] : nullptr;
}

static void makeDeclaration(Stmt &assignment, const Stmt &declaration, ExprRef value) {
  unsigned line = assignment.line;
  assignment = declaration;
  assignment.line = line;
  assignment.expr = std::move(value);
}

/// The outermost loops under `s` that set `name` to begin with; false when it is mentioned anywhere else.
static bool loopsOver(Stmt &s, const std::string &name, std::vector<Stmt *> &loops) {
  if (s.kind == StmtKind::For && s.init && assignedValue(*s.init, name)) {
    bool again = anyStmt(*s.body[0], [&](const Stmt &t) {
      return t.kind == StmtKind::For && t.init && assignedValue(*t.init, name);
    }); // an inner loop over it changes it for the outer one
    loops.push_back(&s);
    return !again;
  }
  bool good = !s.names.count(name);
  ownExprs(s, [&](ExprRef &e) { good &= !mentions(e, name); });
  if (s.init)
    good &= !mentionedIn(*s.init, name);
  for (const StmtRef &child : s.body)
    good = good && loopsOver(*child, name, loops);
  return good;
}

/// Something may lead to the variable from elsewhere: its address is taken, but for a call, or text mentions it.
static bool mayOutliveIteration(Stmt &s, const std::string &name) {
  unsigned addresses = 0, ofCalls = 0;
  walkExprs(s, [&](const ExprRef &e) {
    auto isAddress = [&](const ExprRef &x) { return isUnary(x, "&") && isVar(x->args[0], name); };
    addresses += isAddress(e);
    if (e->kind == ExprKind::Call)
      ofCalls += unsigned(llvm::count_if(e->args, isAddress));
  });
  return addresses > ofCalls || opaqueMentions(s, {name});
}

/// float t; … for (…) { … t = x; … }   becomes   for (…) { float t; … t = x; … },  where nothing else mentions t, and
/// no iteration does before it sets t. So it is with the branch of an `if`. False: the declaration stays.
static bool sinkIntoPart(Stmt &block, size_t at) {
  const StmtRef declaration = block.body[at];
  const std::string &name = declaration->text;
  Stmt *whole = nullptr, *part = nullptr;
  if (mayOutliveIteration(block, name))
    return false;
  for (size_t i = at + 1; i < block.body.size(); ++i)
    if (mentionedIn(*block.body[i], name)) {
      if (whole)
        return false;
      whole = block.body[i].get();
    }
  if (!whole || (!isLoop(*whole) && whole->kind != StmtKind::If))
    return false;
  for (const StmtRef &child : whole->body)
    if (mentionedIn(*child, name)) {
      if (part || child->kind != StmtKind::Block)
        return false;
      part = child.get();
    }
  auto mentionedBy = [&](const ExprRef &e) { return e && mentions(e, name); };
  if (!part || mentionedBy(whole->expr) || mentionedBy(whole->step) || (whole->init && mentionedIn(*whole->init, name)))
    return false;
  auto first = llvm::find_if(part->body, [&](const StmtRef &s) { return mentionedIn(*s, name); });
  if (isLoop(*whole) && (first == part->body.end() || !assignedValue(**first, name)))
    return false;
  part->body.insert(part->body.begin(), declaration);
  block.body.erase(block.body.begin() + ptrdiff_t(at));
  return true;
}

/// int k; … for (k = 0; …)   becomes   for (int k = 0; …),  and  int i; … i = x;  becomes  int i = x;
static void sinkDeclaration(Stmt &block, size_t at) {
  const StmtRef declaration = block.body[at];
  const std::string &name = declaration->text;
  if (declaration->kind != StmtKind::Decl || declaration->isShared || declaration->type.isConst ||
      declaration->type.isVolatile || !declaration->dims.empty())
    return;
  std::vector<Stmt *> loops;
  bool onlyLoops = !declaration->expr || constantValue(declaration->expr);
  for (size_t i = at + 1; onlyLoops && i < block.body.size(); ++i)
    onlyLoops = loopsOver(*block.body[i], name, loops);
  if (onlyLoops && !loops.empty()) {
    for (Stmt *loop : loops)
      makeDeclaration(*loop->init, *declaration, assignedValue(*loop->init, name));
    block.body.erase(block.body.begin() + ptrdiff_t(at));
    return;
  }
  if (declaration->expr || sinkIntoPart(block, at))
    return;
  for (size_t i = at + 1; i < block.body.size(); ++i) {
    Stmt &next = *block.body[i];
    if (ExprRef value = assignedValue(next, name)) {
      makeDeclaration(next, *declaration, value);
      block.body.erase(block.body.begin() + ptrdiff_t(at));
      return;
    }
    if (mentionedIn(next, name))
      return;
  }
}

/// The place in the block of "int k = a;" before statement `at`, where nothing else in the block mentions k and the
/// value is the same when it is computed at `at`. `own`: variables that nobody but the thread changes.
static std::optional<size_t> movableDeclaration(Stmt &block, size_t at, const std::string &name,
                                                const std::set<std::string> &own) {
  size_t declared = at;
  for (size_t i = 0; i < at; ++i) {
    const Stmt &s = *block.body[i];
    if (s.kind == StmtKind::Decl && s.text == name && s.expr && s.dims.empty() && s.type.isInt() && !s.isShared &&
        !s.type.isVolatile)
      declared = i;
  }
  for (size_t i = declared + 1; i < block.body.size(); ++i) // what stands before it means another variable of the name
    if (i != at && mentionedIn(*block.body[i], name))
      return std::nullopt;
  if (declared >= at)
    return std::nullopt;
  const StmtRef declaration = block.body[declared];
  std::set<std::string> needs = namesIn(declaration->expr);
  bool movable = true;
  walk(declaration->expr, [&](const ExprRef &e) {
    movable &= e->pure && e->kind != ExprKind::Subscript && !isChange(e) && e->kind != ExprKind::Member;
    movable &= !isUnary(e, "*") && (e->kind != ExprKind::Var || own.count(e->text));
  });
  for (size_t i = declared + 1; i < at; ++i)
    for (const std::string &need : needs)
      movable &= !assigned(*block.body[i], need);
  return movable ? std::optional(declared) : std::nullopt;
}

/// int k = a; … while (k < n) { …; k += c; }   becomes   for (int k = a; k < n; k += c) { … },  where nothing in
/// between or after the loop mentions k.
static void countingWhile(Stmt &block, size_t at, const std::set<std::string> &own) {
  Stmt &loop = *block.body[at];
  if (loop.kind != StmtKind::While || loop.body[0]->body.empty() ||
      leavesIteration(*loop.body[0], {StmtKind::Continue}))
    return;
  StmtRef last = loop.body[0]->body.back();
  if (last->kind != StmtKind::Expr || !isChange(last->expr) || last->expr->args[0]->kind != ExprKind::Var ||
      !mentions(loop.expr, last->expr->args[0]->text))
    return;
  const std::string name = last->expr->args[0]->text;
  auto declared = movableDeclaration(block, at, name, own);
  if (!declared)
    return;
  loop.body[0]->body.pop_back();
  if (assigned(*loop.body[0], name)) {
    loop.body[0]->body.push_back(last);
    return;
  }
  loop.kind = StmtKind::For;
  loop.init = block.body[*declared];
  loop.step = last->expr;
  block.body.erase(block.body.begin() + ptrdiff_t(*declared));
}

/// Computed from variables alone, of which nothing under `s` changes any.
static bool keepsItsValue(const ExprRef &e, Stmt &s) {
  bool plain = true;
  walk(e, [&](const ExprRef &part) {
    bool dereference = part->kind == ExprKind::Unary && (part->text == "*" || part->text == "&");
    plain &= part->kind == ExprKind::IntLit || part->kind == ExprKind::Var || part->kind == ExprKind::Builtin ||
             part->kind == ExprKind::Binary || part->kind == ExprKind::Cast ||
             (part->kind == ExprKind::Unary && !dereference) ||
             (part->kind == ExprKind::Member && !part->args[0]->type.isPointer());
    plain &= !part->type.isVolatile;
  });
  for (const std::string &name : namesIn(e))
    plain = plain && !assigned(s, name);
  walkExprs(s, [&](const ExprRef &x) {
    if (!mayChange(x))
      return;
    const Expr *target = x->args[0].get();
    while (target->kind == ExprKind::Member)
      target = target->args[0].get();
    plain &= target->kind != ExprKind::Var || !mentions(e, target->text);
  });
  return plain;
}

/// int k = a; … while (k-- > 0) { … }   becomes   for (int k = a; k-- > 0;) { … },  as above.
static void countingDownWhile(Stmt &block, size_t at, const std::set<std::string> &own) {
  Stmt &loop = *block.body[at];
  if (loop.kind != StmtKind::While)
    return;
  const Expr *test = loop.expr.get();
  if (test->kind == ExprKind::Binary)
    test = test->args[0].get();
  if (test->kind != ExprKind::IncDec || test->args[0]->kind != ExprKind::Var)
    return;
  auto declared = movableDeclaration(block, at, test->args[0]->text, own);
  if (!declared)
    return;
  loop.kind = StmtKind::For;
  loop.init = block.body[*declared];
  block.body.erase(block.body.begin() + ptrdiff_t(*declared));
}

namespace {
/// A loop that counts down by one from `start`: in its first iteration the counter is start - skipped, and it has
/// start + extra iterations, if that is more than none.
struct Countdown {
  std::string var;
  int64_t skipped = 0, extra = 0;
  bool mayOverflow = false; ///< from a negative start it would only end by an overflow
};
} // namespace

/// The forms of `for (T k = start; …; …)` that are understood.
static std::optional<Countdown> asCountdown(const Stmt &loop) {
  Countdown result{loop.init->text};
  auto decrement = [&](const ExprRef &e) -> std::string {
    if (e->kind == ExprKind::IncDec && isVar(e->args[0], result.var) && (e->text == "x--" || e->text == "--x"))
      return e->text;
    bool minus = e->kind == ExprKind::Assign && e->text == "-=" && isVar(e->args[0], result.var) &&
                 constantValue(e->args[1]) == 1;
    return minus ? "--x" : "";
  };
  ExprRef tested = loop.expr;
  std::string op = "!=";
  int64_t end = 0;
  if (tested->kind == ExprKind::Binary) {
    auto constant = constantValue(tested->args[1]);
    if (!constant)
      return std::nullopt;
    op = tested->text;
    end = *constant;
    tested = tested->args[0];
  }
  bool isSigned = loop.init->type.isSigned;
  if (op == ">=" && isSigned) { // k >= 1  as  k > 0
    op = ">";
    --end;
  }
  if ((op != ">" && op != "!=") || end < -1 || end > 0 || (end == -1 && (!isSigned || op == "!=")))
    return std::nullopt;
  result.mayOverflow = op == "!=" && isSigned;
  if (loop.step) { // for (k = a; k > end; --k): the values a to end + 1
    if (!isVar(tested, result.var) || decrement(loop.step).empty())
      return std::nullopt;
    result.extra = -end;
    return result;
  }
  std::string how = decrement(tested);
  result.skipped = 1;
  if (how == "x--" && end == 0) // while (k-- > 0): a - 1 to 0
    return result;
  if (how == "--x" && isSigned) { // while (--k > end): a - 1 to end + 1
    result.extra = -1 - end;
    return result;
  }
  return std::nullopt;
}

/// for (int k = a; k > 0; --k) { … k … }   becomes   for (int k = 0; k < a; ++k) { … a - k … }. A loop with an unroll
/// pragma stays: it is one over registers.
static void countUpwards(Stmt &loop, const std::set<std::string> &own) {
  if (!declaresCounter(loop) || loop.unroll != NoUnroll || loop.init->type.bytes < 4)
    return;
  auto countdown = asCountdown(loop);
  Stmt &body = *loop.body[0];
  const Type &type = loop.init->type;
  ExprRef start = loop.init->expr;
  if (!countdown || assigned(body, countdown->var) || opaqueMentions(body, {countdown->var}) || !start->type.isInt() ||
      !keepsItsValue(start, body))
    return;
  bool leaves = holdsKind(body, {StmtKind::Break, StmtKind::Return, StmtKind::Opaque});
  if (countdown->mayOverflow && leaves)
    return;
  // A start that others change is computed once.
  if (anyNode(start, [&](const ExprRef &e) { return e->kind == ExprKind::Var && !own.count(e->text); }))
    return;
  if (start->type.text != type.text && !(start->kind == ExprKind::IntLit && type.text == "int"))
    start = castTo(type, start);
  // n - 1 + 1 is n
  auto plus = [&](int64_t constant) {
    int64_t sum = constant;
    ExprRef base = start;
    if (start->kind == ExprKind::Binary && (start->text == "-" || start->text == "+"))
      if (auto c = constantValue(start->args[1])) {
        sum += start->text == "-" ? -*c : *c;
        base = start->args[0];
      }
    return sum < 0 ? sub(base, intLit(-sum)) : add(base, intLit(sum));
  };
  Type plain = type.withConst(false);
  substitute(body, {{countdown->var, sub(plus(-countdown->skipped), var(countdown->var, plain))}});
  ExprRef upper = plus(countdown->extra);
  StmtRef upwards = countedFor(countdown->var, plain, intLit(0), upper, 1, loop.body[0], loop.unroll);
  upwards->line = loop.line;
  upwards->text = loop.text;
  upwards->init->line = loop.init->line;
  loop = *upwards;
}

/// for (int k = a; k != n; ++k)   becomes   for (int k = a; k < n; ++k):  where k starts beyond n it would have to
/// overflow before it ends, which a signed one must not and one from zero cannot.
static void untilEqual(Stmt &loop) {
  if (!declaresCounter(loop) || !loop.step || loop.init->type.bytes < 4 || !isBinary(loop.expr, "!=") ||
      stepOf(loop.step, loop.init->text) != 1)
    return;
  const std::string &name = loop.init->text;
  bool second = isVar(loop.expr->args[1], name);
  ExprRef counter = loop.expr->args[second ? 1 : 0], end = loop.expr->args[second ? 0 : 1];
  if (!isVar(counter, name) || mentions(end, name) || !end->type.isInt() || assigned(*loop.body[0], name) ||
      !keepsItsValue(end, *loop.body[0]))
    return;
  // Then it may well start beyond the end.
  bool leaves = holdsKind(*loop.body[0], {StmtKind::Break, StmtKind::Return, StmtKind::Opaque});
  auto start = constantValue(loop.init->expr);
  bool overflows = loop.init->type.isSigned && end->type.isSigned && !leaves;
  if (overflows || (start && *start == 0 && (!end->type.isSigned || !leaves)))
    loop.expr = binary("<", counter, end, loop.expr->type);
}

void optiml::normalize(Kernel &kernel) {
  std::set<std::string> own, shared;
  for (const Param &param : kernel.params)
    own.insert(param.name);
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl)
      (s.isShared ? shared : own).insert(s.text);
  });
  for (const std::string &name : shared)
    own.erase(name);
  walk(*kernel.body, [&own](Stmt &s) {
    untilEqual(s);
    if (s.kind != StmtKind::Block)
      return;
    for (size_t i = s.body.size(); i-- > 0;)
      sinkDeclaration(s, i);
    for (size_t i = s.body.size(); i-- > 0;)
      if (i < s.body.size())
        countingWhile(s, i, own);
    for (size_t i = s.body.size(); i-- > 0;)
      if (i < s.body.size())
        countingDownWhile(s, i, own);
    for (const StmtRef &child : s.body)
      countUpwards(*child, own);
  });
}
