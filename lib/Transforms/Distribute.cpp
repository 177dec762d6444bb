//===- Distribute.cpp - from one output a thread to several ---------------===//
#include "Distribute.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

Distributor::Distributor(const Kernel &kernel, const KernelModel &model, std::vector<CopyAxis> copiesIn,
                         unsigned uniformAlong, std::function<bool(Stmt &)> open)
    : kernel(kernel), model(model), copies(std::move(copiesIn)), uniformAlong(uniformAlong), open(std::move(open)) {
  for (const CopyAxis &c : copies)
    allCopies |= copyMask(c);
}

std::vector<const CopyAxis *> Distributor::axesIn(unsigned mask) const {
  std::vector<const CopyAxis *> result;
  for (const CopyAxis &c : copies)
    if (mask & copyMask(c))
      result.push_back(&c);
  return result;
}

/// Along these axes the guard holds for the first copy if it does for any: index < bound, and so on.
bool Distributor::holdsForFirst(const ExprRef &guard, unsigned along) const {
  return llvm::all_of(operandsOf(guard, "&&"), [&](const ExprRef &condition) {
    if (!(varies(condition) & along))
      return true;
    std::vector<Poly> facts;
    model.addFacts(condition, true, facts);
    if (facts.size() != 1 || !(isBinary(condition, "<") || isBinary(condition, "<=") || isBinary(condition, ">") ||
                               isBinary(condition, ">=")))
      return false;
    return llvm::all_of(axesIn(along), [&](const CopyAxis *c) {
      auto step = stepOf(facts[0], *c);
      return step && *step <= 0;
    });
  });
}

/// Whether all copies leave the loop around `s` together, if one does: its `break` stands under conditions that do not
/// differ between them.
bool Distributor::breaksTogether(const Stmt &s) const {
  if (!leavesIteration(s, {StmtKind::Break}))
    return true;
  if (!sharesBreaks || uniformAlong || s.kind == StmtKind::Break)
    return sharesBreaks && !uniformAlong;
  if (s.kind == StmtKind::If && (!open(const_cast<Stmt &>(s)) || varies(s.expr) & allCopies))
    return false;
  return llvm::all_of(s.body, [&](const StmtRef &child) { return breaksTogether(*child); });
}

/// A loop that is entered and that all copies share.
bool Distributor::isSharedLoop(Stmt &s) const {
  if (!isLoop(s) || !open(s) || holdsKind(*s.body[0], {StmtKind::Continue}) || !breaksTogether(*s.body[0]))
    return false;
  if (auto loop = asCountedLoop(s))
    return !((varies(loop->lower) | varies(loop->upper)) & (allCopies | uniformAlong));
  if (!allCopies || uniformAlong || !s.expr)
    return false;
  // Its header is evaluated once for all copies: they have the same variables there, and see the same memory.
  unsigned mask = varies(s.expr);
  for (const ExprRef &e : {s.step, s.init ? s.init->expr : nullptr})
    mask |= e ? varies(e) : 0;
  if (s.init && s.init->kind == StmtKind::Decl)
    mask |= wholeCopies(model.variesName(s.init->text)) | widenedMask(s.init->text);
  return !(mask & (allCopies | FromMemory));
}

/// A loop whose trips may be counted where its guard does not hold: under a guard others stay leaves.
bool Distributor::hasStableHeader(Stmt &s) const {
  auto loop = asCountedLoop(s);
  return loop && model.stable(loop->lower) && model.stable(loop->upper);
}

ExprRef Distributor::atCopy(const ExprRef &e) const {
  return rewrite(e, [&](const ExprRef &n) -> ExprRef {
    if (n->kind == ExprKind::Subscript && isInterleaved(n->args[0])) {
      ExprRef place = atCopy(n->args[1]);
      for (const CopyAxis *c : axesIn(interleaved.at(n->args[0]->text)))
        place = add(mul(place, intLit(c->factor)), var(c->var, Type::makeInt()));
      return subscript(n->args[0], place, n->type);
    }
    if (n->kind == ExprKind::Builtin) {
      ExprRef index = n;
      for (const CopyAxis &c : copies)
        if (n->text == globalName(c.axis))
          index = add(index, mul(var(c.var, Type::makeInt()), intLit(c.distance)));
      return index == n ? nullptr : index;
    }
    if (n->kind != ExprKind::Var)
      return nullptr;
    if (auto it = indexAtCopy.find(n->text); it != indexAtCopy.end() && it->second)
      return it->second;
    auto it = expanded.find(n->text);
    if (it == expanded.end())
      return nullptr;
    ExprRef element = n;
    for (const CopyAxis *c : axesIn(it->second))
      element = subscript(element, var(c->var, Type::makeInt()), n->type);
    return element;
  });
}

void Distributor::atCopy(Stmt &s) const {
  walk(s, [&](Stmt &t) { ownExprs(t, [&](ExprRef &e) { e = atCopy(e); }); });
}

bool Distributor::hasEffects(Stmt &s) const {
  auto acts = [](const ExprRef &e) { return !e->pure || (e->type.isVolatile && e->kind != ExprKind::Var); };
  bool effects = holdsKind(s, {StmtKind::Opaque}) || anyExpr(s, acts);
  std::set<const Stmt *> inside;
  walk(s, [&](Stmt &t) { inside.insert(&t); });
  for (const Access &access : model.accesses())
    effects |= access.write && access.space == Space::Global && inside.count(access.stmt);
  return effects;
}

unsigned Distributor::maskOf(Stmt &s) const {
  if (hasEffects(s))
    return allCopies;
  unsigned mask = 0;
  walk(s, [&](Stmt &t) {
    if (t.kind == StmtKind::Decl)
      mask |= valueVaries(t.text) | widenedMask(t.text);
    ownExprs(t, [&](ExprRef &e) { mask |= valueVaries(e) | widenedMask(e); });
  });
  walkExprs(s, [&](const ExprRef &e) {
    if (e->kind == ExprKind::Var)
      mask |= valueVaries(e->text);
  });
  return mask & allCopies;
}

/// An integer division that cannot fault: by a constant other than 0, and than -1, by which the least number has no
/// quotient.
static bool dividesWell(const ExprRef &division) {
  const auto divisor = constantValue(division->args[1]);
  return divisor && *divisor != 0 && *divisor != -1;
}

/// May run although its guard is false: it computes private values that only code under the same guard looks at, and
/// cannot fault. A variable from outside of the guard must keep its value there.
bool Distributor::speculatable(Stmt &s, const ExprRef &guard) const {
  ExprRef target, value;
  if (s.kind == StmtKind::Decl && s.dims.empty()) {
    if (!s.expr)
      return true;
    value = s.expr;
  } else if (s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign && s.expr->args[0]->kind == ExprKind::Var) {
    auto local = guardOf.find(s.expr->args[0]->text);
    if (local == guardOf.end() || local->second != guard)
      return false;
    value = s.expr->args[1];
  } else {
    return s.kind == StmtKind::Decl && !s.expr;
  }
  return !anyNode(value, [](const ExprRef &e) {
    return !e->pure || isLoad(e) || isChange(e) || (isIntDivision(e) && !dividesWell(e));
  });
}

/// A declaration that stands between runs of leaves, not in one of them.
bool Distributor::keepsItsPlace(Stmt &s, const ExprRef &guard) const {
  if (s.kind != StmtKind::Decl || s.isShared)
    return false;
  return indexAtCopy.count(s.text) ||
         (copies.empty() && s.expr && model.singleAssignment(s.text) && model.stable(s.expr) && speculatable(s, guard));
}

/// Made of parameters, indices and what is made of them: it may stand before the leaves that it follows.
bool Distributor::isOfIndicesAlone(const Stmt &s) const {
  return indexAtCopy.count(s.text) && llvm::all_of(namesIn(s.expr), [&](const std::string &name) {
           return indexAtCopy.count(name) || !model.declaration(name);
         });
}

/// With 0 for the variable of a loop over copies.
static ExprRef atFirst(const ExprRef &e, const std::string &copy) {
  auto isZero = [](const ExprRef &n) { return constantValue(n) == 0; };
  return rewrite(substitute(e, {{copy, intLit(0)}}), [&](const ExprRef &n) -> ExprRef {
    if (isBinary(n, "*") && isZero(n->args[0]))
      return intLit(0);
    return isBinary(n, "+") && isZero(n->args[1]) ? n->args[0] : nullptr;
  });
}

void Distributor::flush(Pass &pass) {
  auto &[guard, out, group] = pass;
  size_t i = 0;
  while (i < group.size()) {
    // Leaves over the same axes share their loops, and those under the guard share its test.
    size_t end = i;
    while (end < group.size() && group[end].mask == group[i].mask && group[end].guarded == group[i].guarded)
      ++end;
    unsigned mask = group[i].mask, ofGuard = group[i].guarded ? varies(guard) & allCopies : 0;
    std::vector<StmtRef> inner;
    for (size_t k = i; k < end; ++k)
      inner.push_back(group[k].stmt);
    auto forCopies = [&](unsigned along) {
      std::vector<const CopyAxis *> axes = axesIn(along);
      for (size_t k = axes.size(); k-- > 0;)
        inner = {
            countedFor(axes[k]->var, Type::makeInt(), intLit(0), intLit(axes[k]->factor), 1, block(inner), FullUnroll)};
    };
    if (group[i].guarded) {
      forCopies(mask & ~ofGuard); // which share the guard
      ExprRef condition = atCopy(guard);
      if (const unsigned alike = ofGuard & ~mask; alive && alike) { // one copy's work serves those that are alike
        needsPlainVariance |= !holdsForFirst(guard, alike);
        for (const CopyAxis *c : axesIn(alike))
          condition = atFirst(condition, c->var);
        ofGuard &= mask;
      }
      inner = {ifStmt(condition, block(inner))};
      forCopies(ofGuard);
    } else {
      forCopies(mask);
    }
    out.insert(out.end(), inner.begin(), inner.end());
    i = end;
  }
  group.clear();
}

/// Its value is needed beyond the run of leaves that declares it: by what is entered, or behind that, or by leaves of
/// another shape.
bool Distributor::outlivesGroup(const std::vector<StmtRef> &stmts, size_t at, const ExprRef &guard) const {
  Stmt &s = *stmts[at];
  auto parts = [&](const StmtRef &m) { return isOpened(*m) || m->kind == StmtKind::Barrier; };
  for (size_t k = at + 1; k < stmts.size(); ++k) {
    if (!anyExpr(*stmts[k], [&](const ExprRef &e) { return isVar(e, s.text) || e->names.count(s.text); }))
      continue;
    llvm::ArrayRef<StmtRef> between = llvm::ArrayRef(stmts).slice(at + 1, k - at - 1);
    if (isOpened(*stmts[k]) || llvm::any_of(between, parts))
      return true;
    for (size_t m = at + 1; m <= k; ++m)
      if (maskOf(*stmts[m]) != maskOf(s) || stmts[m]->kind == StmtKind::Barrier ||
          (keepsItsPlace(*stmts[m], guard) && !isOfIndicesAlone(*stmts[m])) ||
          (guard && speculatable(*stmts[m], guard) != speculatable(s, guard)))
        return true;
  }
  return false;
}

void Distributor::addExtents(Stmt &declaration, unsigned mask) const {
  const std::vector<const CopyAxis *> axes = axesIn(mask);
  for (const CopyAxis *c : llvm::reverse(axes))
    declaration.dims.insert(declaration.dims.begin(), intLit(c->factor));
}

/// Storage for the copies of a variable that outlives its group, and its value as a leaf.
llvm::Error Distributor::store(const StmtRef &declaration, Pass &pass) {
  const Stmt &s = *declaration;
  unsigned mask = maskOf(*declaration);
  std::vector<const CopyAxis *> axes = axesIn(mask);
  if (!axes.empty())
    expanded[s.text] = mask;
  bool needsGuard = pass.guard && !speculatable(*declaration, pass.guard);
  if (axes.empty() && s.expr && !needsGuard) {
    flush(pass);
    pass.out.push_back(clone(declaration));
    return llvm::Error::success();
  }
  if (s.expr && s.expr->kind == ExprKind::InitList)
    return notApplicable("an array is initialized in place (line {0})", s.line);
  StmtRef storage = clone(declaration);
  storage->expr = nullptr;
  storage->type.isConst = false;
  addExtents(*storage, mask);
  pass.out.push_back(storage); // before the pending group: it is only storage
  if (!s.expr)
    return llvm::Error::success();
  StmtRef init = exprStmt(assign("=", var(s.text, s.type), s.expr));
  atCopy(*init);
  pass.group.push_back({init, mask, needsGuard});
  return llvm::Error::success();
}

/// The array is used for nothing but its elements, and no other lies in its place.
bool Distributor::hasPlainElements(const std::string &array) const {
  unsigned uses = 0, elements = 0, ofDynamicSize = 0;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    uses += isVar(e, array);
    elements += e->kind == ExprKind::Subscript && isVar(e->args[0], array);
  });
  walk(*kernel.body, [&](Stmt &s) { ofDynamicSize += s.kind == StmtKind::Decl && s.isExtern; });
  return uses == elements && ofDynamicSize == 1 && !opaqueMentions(*kernel.body, {array});
}

/// Shared memory, for each copy that has its own content there. How many elements an array of dynamic size has is not
/// known here: element by element, the copies follow one another.
llvm::Error Distributor::shared(const StmtRef &declaration, Pass &pass) {
  StmtRef storage = clone(declaration);
  if (const unsigned mask = (valueVaries(storage->text) | widenedMask(storage->text)) & allCopies) {
    if (storage->isExtern && !hasPlainElements(storage->text))
      return notApplicable("'{0}' has dynamic size, differs between copies, and is used for more than its elements",
                           storage->text);
    (storage->isExtern ? interleaved : expanded)[storage->text] = mask;
    if (!storage->isExtern)
      addExtents(*storage, mask);
  }
  pass.out.push_back(storage);
  return llvm::Error::success();
}

/// False: the declaration is a leaf like others.
llvm::Expected<bool> Distributor::declaration(const std::vector<StmtRef> &stmts, size_t at, Pass &pass) {
  Stmt &s = *stmts[at];
  if (s.isShared) {
    if (llvm::Error e = shared(stmts[at], pass))
      return std::move(e);
    return true;
  }
  if (keepsItsPlace(s, pass.guard)) {
    if (!isOfIndicesAlone(s))
      flush(pass); // what it is made from stands before it
    pass.out.push_back(clone(stmts[at]));
    return true;
  }
  if (!outlivesGroup(stmts, at, pass.guard)) {
    groupLocal.insert(s.text);
    return false;
  }
  if (llvm::Error e = store(stmts[at], pass))
    return std::move(e);
  return true;
}

/// False: the branch is not entered.
llvm::Expected<bool> Distributor::branch(const StmtRef &stmt, Pass &pass) {
  Stmt &s = *stmt;
  bool varying = varies(s.expr) & (allCopies | uniformAlong);
  if (!varying && !(model.varies(s.expr) & FromMemory && uniformAlong)) {
    flush(pass);
    StmtRef made = clone(stmt); // a uniform branch stays a branch
    for (size_t b = 0; b < s.body.size(); ++b) {
      made->body[b]->body.clear();
      if (llvm::Error e = list(s.body[b]->body, pass.guard, made->body[b]->body))
        return std::move(e);
    }
    pass.out.push_back(made);
    return true;
  }
  if (!uniformAlong && holdsKind(s, {StmtKind::Barrier})) // one copy's threads after the other's
    return false;
  if (model.stable(s.expr)) {
    flush(pass);
    if (llvm::Error e = list(s.body[0]->body, logicalAnd(pass.guard, s.expr), pass.out))
      return std::move(e);
    if (s.body.size() > 1)
      if (llvm::Error e = list(s.body[1]->body, logicalAnd(pass.guard, logicalNot(s.expr)), pass.out))
        return std::move(e);
    return true;
  }
  if (uniformAlong)
    return notApplicable("the condition at line {0} differs between threads and may change while it is needed", s.line);
  return false;
}

/// False: the loop is not entered.
llvm::Expected<bool> Distributor::loop(const StmtRef &stmt, Pass &pass) {
  if (isSharedLoop(*stmt) && (!pass.guard || hasStableHeader(*stmt))) {
    // Where no copy's guard holds, nothing says whether to leave.
    const bool breaks = leavesIteration(*stmt->body[0], {StmtKind::Break});
    breaksShared |= breaks;
    breaksUnderGuard |= breaks && pass.guard;
    flush(pass);
    StmtRef made = clone(stmt);
    made->body[0]->body.clear();
    if (llvm::Error e = list(stmt->body[0]->body, pass.guard, made->body[0]->body))
      return std::move(e);
    pass.out.push_back(made);
    return true;
  }
  if (uniformAlong)
    return notApplicable("the loop at line {0} may not run the same for all threads of a block", stmt->line);
  return false;
}

/// A statement that is kept whole, for each copy.
llvm::Error Distributor::leaf(const StmtRef &stmt, Pass &pass) {
  Stmt &s = *stmt;
  const bool meets = uniformAlong ? hasBarrier(s) : holdsKind(s, {StmtKind::Barrier});
  if (meets && pass.guard)
    return notApplicable("something that may synchronize stands under a condition (line {0})", s.line);
  std::set<std::string> names;
  for (const auto &[name, value] : indexAtCopy)
    names.insert(name);
  for (const auto *changed : {&expanded, &interleaved})
    for (const auto &[name, value] : *changed)
      names.insert(name);
  if (opaqueMentions(s, names))
    return notApplicable("a construct that is kept verbatim uses a variable that would change (line {0})", s.line);
  if (uniformAlong && open(s))
    return notApplicable("line {0} may not run the same for all threads of a block", s.line);
  StmtRef made = clone(stmt);
  // What is declared inside has the copy's value: it is made of the copy's indices there.
  std::map<std::string, ExprRef> all = indexAtCopy;
  for (const std::string &name : namesDeclaredIn(s))
    indexAtCopy.erase(name);
  atCopy(*made);
  indexAtCopy = std::move(all);
  pass.group.push_back({made, maskOf(s), pass.guard && !speculatable(s, pass.guard)});
  return llvm::Error::success();
}

static bool isWarpBarrier(const Stmt &s) {
  return s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Call && s.expr->text == "__syncwarp";
}

llvm::Expected<bool> Distributor::enter(const std::vector<StmtRef> &stmts, size_t at, Pass &pass) {
  Stmt &s = *stmts[at];
  if (s.kind == StmtKind::Return)
    return notApplicable("it returns early in a way that is not understood (line {0})", s.line);
  if (s.kind == StmtKind::Barrier) {
    if (pass.guard)
      return notApplicable("a barrier stands under a condition (line {0})", s.line);
    flush(pass);
    pass.out.push_back(clone(stmts[at]));
    return true;
  }
  if (isWarpBarrier(s) && !uniformAlong) { // its lanes have their copies in common, and so the guards on them
    flush(pass);
    pass.out.push_back(clone(stmts[at]));
    return true;
  }
  if (s.kind == StmtKind::Decl)
    return declaration(stmts, at, pass);
  if (isLoop(s) && open(s))
    return loop(stmts[at], pass);
  if (s.kind == StmtKind::If && open(s))
    return branch(stmts[at], pass);
  return false;
}

llvm::Error Distributor::list(const std::vector<StmtRef> &stmts, const ExprRef &guard, std::vector<StmtRef> &out) {
  Pass pass{guard, out, {}};
  for (const StmtRef &s : stmts) // also for statements in front of a declaration, which ask who shares their run
    if (s->kind == StmtKind::Decl)
      guardOf[s->text] = guard;
  for (size_t i = 0; i < stmts.size(); ++i) {
    auto entered = enter(stmts, i, pass);
    if (!entered)
      return entered.takeError();
    if (!*entered)
      if (llvm::Error e = leaf(stmts[i], pass))
        return e;
  }
  flush(pass);
  return llvm::Error::success();
}

llvm::Expected<StmtRef> Distributor::run() {
  const bool leaves = holdsKind(*kernel.body, {StmtKind::Break, StmtKind::Continue});
  if (allCopies && !uniformAlong && !leaves)
    alive.emplace(kernel, model);
  for (sharesBreaks = true;; sharesBreaks = false) {
    for (auto *names : {&widened, &expanded, &interleaved})
      names->clear();
    indexAtCopy.clear();
    guardOf.clear();
    groupLocal.clear();
    breaksShared = breaksUnderGuard = false;
    classifyLocals();
    widenWritten();
    StmtRef body = block();
    llvm::Error e = list(kernel.body->body, nullptr, body->body);
    if (needsPlainVariance) {
      llvm::consumeError(std::move(e));
      needsPlainVariance = false;
      alive.reset();
      continue; // there are no breaks to share
    }
    if (!e && !breaksUnderGuard)
      return body;
    if (!breaksShared)
      return std::move(e);
    llvm::consumeError(std::move(e));
  }
}
