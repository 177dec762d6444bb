//===- WindowSums.cpp - numbers that are folded over a window -------------===//
#include "WindowSums.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"

using namespace optiml;

WindowSums::WindowSums(KernelState &state, Kernel &kernel, const KernelModel &model, Stmt &loop, unsigned axis,
                       std::set<std::string> &taken)
    : loop(loop), state(state), kernel(kernel), model(model), index(axisName("globalIdx", axis)), axis(axis),
      taken(taken) {}

std::array<CopyAxis, 3> optiml::neighbouringOutputs(unsigned axis, int64_t count) {
  std::array<CopyAxis, 3> copies;
  for (unsigned a = 0; a < 3; ++a)
    copies[a].axis = a;
  copies[axis].factor = count;
  copies[axis].distance = 1;
  copies[axis].var = "row";
  return copies;
}

WindowSums::Ends WindowSums::ends() const {
  const Type type = counted.type.unqualified();
  auto fresh = [&](const char *wish) { return var(freshName(taken, counted.var + wish), type); };
  ExprRef first = fresh("_first"), end = fresh("_end"), from = fresh("_from"), to = fresh("_to");
  return {first, end, from, to};
}

static StmtRef set(const ExprRef &v, const ExprRef &value) { return exprStmt(assign("=", v, value)); }

std::vector<StmtRef> WindowSums::Ends::declarations() const {
  return {declStmt(first->text, first->type, intLit(0)), declStmt(end->text, end->type, intLit(0))};
}

ExprRef WindowSums::Ends::startsAnew() const {
  auto either = [](const ExprRef &a, const ExprRef &b) { return binary("||", a, b, Type::makeBool()); };
  return either(either(lessThan(from, first), lessThan(to, end)), lessThan(end, from));
}

std::vector<StmtRef> WindowSums::Ends::setAnew() const { return {set(first, from), set(end, from)}; }

std::vector<StmtRef> WindowSums::Ends::moved() const {
  return {set(first, from), ifStmt(lessThan(end, to), block({set(end, to)}))};
}

std::optional<int64_t> WindowSums::width() const {
  std::optional<int64_t> least;
  for (const Poly &end : model.boundsOf(counted.upper, /*fromBelow=*/false))
    for (const Poly &begin : model.boundsOf(counted.lower, /*fromBelow=*/true))
      if (auto trips = (end - begin).constant(); trips && (!least || *trips < *least))
        least = *trips;
  return least;
}

bool WindowSums::follows(const ExprRef &e) const {
  return anyNode(e, [&](const ExprRef &x) {
    return isBuiltin(x, index) || (x->kind == ExprKind::Var && followers.count(x->text));
  });
}

/// Names that are assigned what follows the index, or assigned where it decides whether they are.
void WindowSums::findFollowers() {
  std::set<std::string> declared;
  // `decided`: what was declared before the innermost condition that follows the index.
  std::function<void(const Stmt &, const std::set<std::string> &)> visit = [&](const Stmt &s,
                                                                               const std::set<std::string> &decided) {
    if (s.kind == StmtKind::Decl) {
      declared.insert(s.text);
      if (s.expr && follows(s.expr) && s.text != counted.var)
        followers.insert(s.text);
    }
    ownExprs(const_cast<Stmt &>(s), [&](ExprRef &e) {
      walk(e, [&](const ExprRef &x) {
        const Expr *changed = mayChange(x) ? objectOf(x->args[0]) : nullptr;
        if (changed && changed->kind == ExprKind::Var && changed->text != counted.var &&
            (decided.count(changed->text) || follows(x)))
          followers.insert(changed->text);
      });
    });
    if (s.init)
      visit(*s.init, decided);
    bool decides = (s.kind == StmtKind::If || isLoop(s)) && s.expr && follows(s.expr);
    const std::set<std::string> inside = decides ? declared : decided;
    for (const StmtRef &child : s.body)
      visit(*child, inside);
  };
  for (size_t known = SIZE_MAX; known != followers.size();) {
    known = followers.size();
    declared.clear();
    visit(*kernel.body, {});
  }
}

/// The expression by the absolute counter, of the same name, where it depends on no output any more; null where it
/// does.
ExprRef WindowSums::absolute(const ExprRef &e) const {
  bool isSum = e->type.isInt() && (e->kind == ExprKind::Binary || e->kind == ExprKind::Cast) &&
               inverseComparison(e->text).empty() && (follows(e) || mentions(e, counted.var));
  if (isSum) {
    Poly p = model.poly(e).substitute(counted.var, Poly::atom(counted.var) - Poly::atom(index));
    ExprRef made = p.atoms().count(index) ? nullptr : polyExpr(model, p);
    if (made && !follows(made))
      return e->type.bytes == 8 ? wideExpr(made) : made;
  }
  if (e->kind == ExprKind::Var)
    return e->text == counted.var || followers.count(e->text) ? nullptr : e;
  if (isBuiltin(e, index))
    return nullptr;
  bool good = true;
  ExprRef result = mapOperands(e, [&](const ExprRef &operand) {
    ExprRef made = absolute(operand);
    good &= made != nullptr;
    // The counter becomes wider; which function is called stays the same.
    const bool isNarrow = e->kind == ExprKind::Call && operand->type.isInt() && operand->type.bytes < 8;
    if (made && isNarrow && mentions(made, counted.var))
      return castTo(operand->type.unqualified(), made);
    return made ? made : operand;
  });
  return good ? result : nullptr;
}

/// "for (d = -r; …) in[y + d]" as "for (d = y - r; …) in[d]", where iterations depend on the output otherwise.
llvm::Error WindowSums::makeAbsolute() {
  for (const Sum &sum : sums)
    followers.erase(sum.name); // they do, and are no part of what is added
  if (!anyExpr(*loop.body[0], [&](const ExprRef &e) {
        return isBuiltin(e, index) || (e->kind == ExprKind::Var && followers.count(e->text));
      }))
    return llvm::Error::success();
  bool good = true;
  StmtRef body = clone(loop.body[0]);
  walk(*body, [&](Stmt &s) {
    ownExprs(s, [&](ExprRef &e) {
      if (!e || (isAssignStmt(s, "+=") && s.expr == e))
        return;
      ExprRef made = absolute(e);
      good &= made != nullptr;
      e = made ? made : e;
    });
    if (s.kind == StmtKind::Decl && good && model.singleAssignment(s.text))
      followers.erase(s.text); // it no longer does
    if (isAssignStmt(s, "+=")) {
      ExprRef made = absolute(s.expr->args[1]);
      good &= made != nullptr;
      if (made)
        s.expr = assign("+=", s.expr->args[0], made);
    }
  });
  if (!good)
    return notApplicable("what an iteration adds depends on the output (line {0})", loop.line);
  original = std::exchange(loop.body[0], body);
  ExprRef output = axisBuiltin("globalIdx", axis);
  Type type = Type::makeLong(); // the output's index may be anywhere
  counted.lower = add(castTo(type, counted.lower), output);
  counted.upper = add(castTo(type, counted.upper), output);
  substitute(*loop.body[0], {{counted.var, var(counted.var, type)}});
  counted.type = type;
  return llvm::Error::success();
}

/// "best = min(best, v)", "if (v > best) best = v" of a variable that begins with a constant, and that nothing else
/// changes.
std::optional<WindowSums::Sum> WindowSums::extremeIn(const Stmt &s) const {
  const auto folded = takesExtremes ? asFold(s) : std::nullopt;
  if (!folded || folded->fold.kind == Fold::Kind::Operator || (folded->type.isFloat() && !takesFloats) ||
      folded->type.isVolatile || !(folded->type.isFloat() || folded->type.cls == Type::Class::Int))
    return std::nullopt;
  const Stmt *declaration = model.declaration(folded->variable);
  const bool isConstant = declaration && declaration->expr && declaration->dims.empty() && !declaration->isShared &&
                          onlyComputes(declaration->expr) && namesIn(declaration->expr).empty() &&
                          !anyNode(declaration->expr, [](const ExprRef &e) { return e->kind == ExprKind::Builtin; });
  if (!isConstant || countChanges(*kernel.body)[folded->variable] != countChanges(loop)[folded->variable])
    return std::nullopt;
  const Type type = folded->type.unqualified();
  return Sum{folded->variable, type, var(freshName(taken, folded->variable + "_of_window"), type), folded->fold,
             declaration->expr->type.sameNumber(type) ? declaration->expr : castTo(type, declaration->expr)};
}

llvm::Error WindowSums::findSums() {
  std::set<std::string> inside = namesDeclaredIn(loop);
  std::map<std::string, unsigned> explained;
  std::set<const Expr *> known; // changes of extremes
  bool good = !leavesIteration(*loop.body[0], {StmtKind::Break}) &&
              !holdsKind(loop, {StmtKind::Opaque, StmtKind::Barrier, StmtKind::Return}) &&
              !leavesIteration(*loop.body[0], {StmtKind::Continue});
  auto add = [&](Sum sum) {
    auto other = llvm::find_if(sums, [&](const Sum &s) { return s.name == sum.name; });
    if (other == sums.end())
      sums.push_back(std::move(sum));
    else
      good &= other->fold == sum.fold;
  };
  walk(*loop.body[0], [&](Stmt &s) {
    if (std::optional<Sum> extreme = good ? extremeIn(s) : std::nullopt; extreme && !inside.count(extreme->name)) {
      walkExprs(s, [&](const ExprRef &e) {
        explained[extreme->name] += isVar(e, extreme->name);
        if (isChange(e))
          known.insert(e.get());
      });
      return add(std::move(*extreme));
    }
    if (s.kind != StmtKind::Expr || !isChange(s.expr) || s.expr->args[0]->kind != ExprKind::Var ||
        inside.count(s.expr->args[0]->text) || known.count(s.expr.get()))
      return;
    const ExprRef &v = s.expr->args[0];
    bool adds = (s.expr->kind == ExprKind::Assign && (s.expr->text == "+=" || s.expr->text == "-=")) ||
                s.expr->kind == ExprKind::IncDec;
    const Type *value = s.expr->kind == ExprKind::IncDec ? nullptr : &s.expr->args[1]->type;
    const bool isInteger = v->type.cls == Type::Class::Int && (!value || value->isInt());
    const bool isFloat = takesFloats && v->type.isFloat() && (!value || value->isInt() || value->isFloat());
    const bool isNumber = (isInteger || isFloat) && !v->type.isVolatile && v->type.bytes >= 4;
    good &= adds && isNumber;
    ++explained[v->text];
    if (!good)
      return;
    Type type = v->type.unqualified();
    Type slid = type.isFloat() ? type : type.bytes == 8 ? Type::makeLong() : Type::makeUnsigned();
    add({v->text, type, var(freshName(taken, v->text + "_of_window"), slid), {Fold::Kind::Operator, "+"}, nullptr});
  });
  walkExprs(*loop.body[0], [&](const ExprRef &e) {
    good &= e->pure;
    if (mayChange(e) && (e->args[0]->kind != ExprKind::Var || !inside.count(e->args[0]->text)))
      good &= e->args[0]->kind == ExprKind::Var && explained.count(e->args[0]->text);
  });
  std::map<std::string, unsigned> mentioned = countMentions(*loop.body[0]);
  for (const auto &[name, count] : explained)
    good &= mentioned[name] == count;
  if (!good || sums.empty())
    return notApplicable("the loop does more than to add {0}{1} (line {2})", takesFloats ? "numbers" : "integers",
                         takesExtremes ? ", or to take extremes" : "", loop.line);
  return llvm::Error::success();
}

/// for (counter = from; counter < to; ++counter) what enters or leaves
StmtRef WindowSums::part(bool enters, const ExprRef &from, const ExprRef &to) {
  StmtRef body = clone(loop.body[0]);
  std::map<std::string, ExprRef> extremes;
  for (const Sum &sum : sums)
    if (sum.start)
      extremes[sum.name] = sum.slid;
  substitute(*body, extremes);
  walk(*body, [&](Stmt &s) {
    if (s.kind != StmtKind::Expr || !isChange(s.expr) || s.expr->args[0]->kind != ExprKind::Var)
      return;
    for (const Sum &sum : sums)
      if (sum.name == s.expr->args[0]->text) {
        bool counts = s.expr->kind == ExprKind::IncDec;
        bool plus = (s.expr->text.find('+') != std::string::npos) == enters;
        ExprRef value = counts ? intLit(1) : s.expr->args[1];
        const bool isOwn = counts || sum.type.isFloat();
        s.expr = assign(plus ? "+=" : "-=", sum.slid, isOwn ? value : castTo(sum.slid->type, value));
        return;
      }
  });
  StmtRef made = countedFor(counted.var, counted.type.unqualified(), from, to, 1, body, NoUnroll);
  renameDeclarations(*made->body[0], taken);
  return atLine(loop.line, made);
}

llvm::Error WindowSums::findInner() {
  auto found = asCountedLoop(loop);
  if (!found || found->step != 1 || loop.body[0]->kind != StmtKind::Block)
    return notApplicable("line {0}: the loop does not count in steps of one", loop.line);
  counted = *found;
  removeContinues(loop);
  findFollowers();
  if (!follows(counted.lower) && !follows(counted.upper) && !anyExpr(*loop.body[0], [&](const ExprRef &e) {
        return isBuiltin(e, index) || (e->kind == ExprKind::Var && followers.count(e->text));
      }))
    return notApplicable("the window does not move along {0}", char('x' + axis));
  if (hasEffects(counted.lower) || hasEffects(counted.upper))
    return notApplicable("line {0}: the loop's bounds have effects", loop.line);
  if (llvm::Error e = findSums())
    return e;
  if (llvm::Error e = makeAbsolute())
    return e;
  return llvm::Error::success();
}

llvm::Error WindowSums::find() {
  for (const Access &access : model.accesses())
    if (insideOf(access, &loop))
      for (const Stmt *s : access.path)
        if (s != &loop && isLoop(*s) && holdsStmt(*s, &loop))
          return notApplicable("the loop stands in another one (line {0})", s->line);
  if (llvm::Error e = findInner())
    return e;
  std::set<std::string> arrays;
  for (const Access &access : model.accesses())
    if (insideOf(access, &loop) && access.space == Space::Global)
      arrays.insert(access.array);
    else if (insideOf(access, &loop) && !namesDeclaredIn(loop).count(access.array))
      return notApplicable("the loop reads '{0}', which is a thread's own (line {1})", access.array, access.stmt->line);
  if (llvm::Error e = requireDisjointFromWritten(state, model, arrays))
    return e;
  return llvm::Error::success();
}
