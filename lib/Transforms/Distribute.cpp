//===- Distribute.cpp - from one output a thread to several ---------------===//
#include "Distribute.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

void optiml::forEachList(Stmt &root, const std::function<void(std::vector<StmtRef> &)> &f) {
  if (root.kind == StmtKind::Block)
    f(root.body);
  for (StmtRef &child : root.body)
    forEachList(*child, f);
}

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

static std::string globalName(unsigned axis) { return std::string("globalIdx.") + char('x' + axis); }

/// Integer locals that are functions of the indices and parameters alone are recomputed for every copy.
void Distributor::classifyLocals() {
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::Decl || !model.singleAssignment(s.text) || !model.stable(s.expr) ||
        !(s.type.isInt() && (s.type.bytes >= 4 || s.type.cls == Type::Class::Bool)))
      return;
    if (!(model.varies(s.expr) & allCopies))
      return;
    ExprRef self = var(s.text, s.type);
    Poly p = model.poly(s.expr);
    ExprRef value = self;
    bool affine = s.type.cls != Type::Class::Bool;
    for (const CopyAxis &c : copies) {
      auto coefficient = p.coefficient(globalName(c.axis));
      auto constant = coefficient ? coefficient->constant() : std::nullopt;
      affine &= constant.has_value();
      for (const std::string &atom : p.atoms())
        affine &= atom == globalName(c.axis) || !(model.variesAtom(atom) & copyMask(c));
      if (affine && *constant != 0)
        value = add(value, mul(var(c.var, Type::makeInt()), intLit(*constant * c.distance)));
    }
    indexAtCopy[s.text] = affine ? value : nullptr; // null: recomputed in place
  });
  // Recomputed ones may build on others: resolve in declaration order.
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::Decl || !indexAtCopy.count(s.text) || indexAtCopy[s.text])
      return;
    // What is made of another value of the copy is a value of the copy, too.
    bool ofIndices = llvm::all_of(namesIn(s.expr), [&](const std::string &name) {
      return indexAtCopy.count(name) || !model.declaration(name) || !(model.variesName(name) & allCopies);
    });
    if (ofIndices)
      indexAtCopy[s.text] = atCopy(s.expr);
    else
      indexAtCopy.erase(s.text);
  });
}

unsigned Distributor::widenedMask(const std::string &name) const {
  auto it = widened.find(name);
  return it == widened.end() ? 0 : it->second;
}

unsigned Distributor::varies(const ExprRef &e) const {
  unsigned mask = model.varies(e);
  for (const std::string &name : namesIn(e))
    mask |= widenedMask(name);
  return mask;
}

/// A loop that is entered and that all copies share.
bool Distributor::isSharedLoop(Stmt &s) const {
  if (s.kind != StmtKind::For || !open(s))
    return false;
  auto loop = asCountedLoop(s);
  bool leaves = false;
  walk(*s.body[0], [&](Stmt &t) { leaves |= t.kind == StmtKind::Break || t.kind == StmtKind::Continue; });
  return loop && !leaves && !((varies(loop->lower) | varies(loop->upper)) & (allCopies | uniformAlong));
}

/// A loop whose trips may be counted where its guard does not hold: under a guard others stay leaves.
bool Distributor::hasStableHeader(Stmt &s) const {
  auto loop = asCountedLoop(s);
  return loop && model.stable(loop->lower) && model.stable(loop->upper);
}

/// Locals that `s` changes and does not declare; of opaque text, whatever it mentions.
static std::set<std::string> changedNames(Stmt &s) {
  std::set<std::string> changed;
  walkExprs(s, [&](const ExprRef &e) {
    if (e->kind == ExprKind::Opaque)
      changed.insert(e->names.begin(), e->names.end());
    bool changes = e->kind == ExprKind::Assign || e->kind == ExprKind::IncDec || (e->kind == ExprKind::Unary && e->text == "&");
    if (!changes)
      return;
    const Expr *target = e->args[0].get();
    while (target->kind == ExprKind::Subscript || target->kind == ExprKind::Member || target->kind == ExprKind::Cast)
      target = target->args[0].get();
    if (target->kind == ExprKind::Var)
      changed.insert(target->text);
  });
  walk(s, [&](Stmt &t) {
    if (t.kind == StmtKind::Opaque)
      changed.insert(t.names.begin(), t.names.end());
  });
  walk(s, [&](Stmt &t) {
    if (t.kind == StmtKind::Decl)
      changed.erase(t.text);
  });
  return changed;
}

/// A local that is alike in all threads needs one value, until a leaf that runs once for each copy changes it ("for (; i < n;
/// ++i) out[…] += …" with a counter from outside): then each copy needs its own.
void Distributor::widenWritten() {
  if (!allCopies)
    return;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl && !s.isShared)
      localNames.insert(s.text);
  });
  while (widenWritten(kernel.body->body))
    ;
}

bool Distributor::widenWritten(const std::vector<StmtRef> &stmts) {
  bool grew = false;
  for (const StmtRef &s : stmts) {
    if (s->kind == StmtKind::Decl) {
      // A copy that takes its value from one that differs, differs.
      if (unsigned mask = s->expr ? varies(s->expr) & allCopies & ~model.varies(s->expr) : 0; mask & ~widened[s->text]) {
        widened[s->text] |= mask;
        grew = true;
      }
    } else if ((s->kind == StmtKind::If && open(*s)) || (isSharedLoop(*s) && hasStableHeader(*s))) {
      for (const StmtRef &body : s->body)
        grew |= widenWritten(body->body);
    } else {
      unsigned mask = maskOf(*s);
      for (const std::string &name : changedNames(*s))
        if (localNames.count(name) && (mask & ~model.variesName(name) & ~widened[name])) {
          widened[name] |= mask;
          grew = true;
        }
    }
  }
  return grew;
}

ExprRef Distributor::atCopy(const ExprRef &e) const {
  return rewrite(e, [&](const ExprRef &n) -> ExprRef {
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
  bool effects = false;
  walk(s, [&](Stmt &t) { effects |= t.kind == StmtKind::Opaque; });
  walkExprs(s, [&](const ExprRef &e) { effects |= !e->pure; });
  std::set<const Stmt *> inside;
  walk(s, [&](Stmt &t) { inside.insert(&t); });
  for (const Access &access : model.accesses())
    effects |= access.write && access.space != Space::Local && inside.count(access.stmt);
  return effects;
}

unsigned Distributor::maskOf(Stmt &s) const {
  if (hasEffects(s))
    return allCopies;
  unsigned mask = 0;
  walk(s, [&](Stmt &t) {
    if (t.kind == StmtKind::Decl)
      mask |= model.variesName(t.text) | widenedMask(t.text);
    ownExprs(t, [&](ExprRef &e) { mask |= varies(e); });
  });
  walkExprs(s, [&](const ExprRef &e) {
    if (e->kind == ExprKind::Var)
      mask |= model.variesName(e->text);
  });
  return mask & allCopies;
}

/// May run although its guard is false: it computes private values that only code under the same guard looks at, and cannot
/// fault. A variable from outside of the guard must keep its value there.
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
  bool ok = true;
  walk(value, [&](const ExprRef &e) {
    ok &= e->pure && e->kind != ExprKind::Subscript && e->kind != ExprKind::Assign && e->kind != ExprKind::IncDec;
    ok &= !(e->kind == ExprKind::Member && e->args[0]->type.isPointer());
    ok &= !(e->kind == ExprKind::Binary && (e->text == "/" || e->text == "%") && e->type.isInt());
  });
  return ok;
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

void Distributor::flush(std::vector<Leaf> &group, const ExprRef &guard, std::vector<StmtRef> &out) {
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
        inner = {countedFor(axes[k]->var, Type::makeInt(), intLit(0), intLit(axes[k]->factor), 1, block(inner), FullUnroll)};
    };
    if (group[i].guarded) {
      forCopies(mask & ~ofGuard); // which share the guard
      inner = {ifStmt(atCopy(guard), block(inner))};
      forCopies(ofGuard);
    } else {
      forCopies(mask);
    }
    out.insert(out.end(), inner.begin(), inner.end());
    i = end;
  }
  group.clear();
}

llvm::Error Distributor::list(const std::vector<StmtRef> &stmts, const ExprRef &guard, std::vector<StmtRef> &out) {
  std::vector<Leaf> group;
  // Names used by anything but the run of leaves that declares them must outlive the group.
  auto opened = [&](Stmt &s) { return isSharedLoop(s) || (s.kind == StmtKind::If && open(s)); };
  for (size_t i = 0; i < stmts.size(); ++i) {
    Stmt &s = *stmts[i];
    if (s.kind == StmtKind::Return)
      return notApplicable("it returns early in a way that is not understood (line {0})", s.line);
    if (s.kind == StmtKind::Barrier) {
      if (guard)
        return notApplicable("a barrier stands under a condition (line {0})", s.line);
      flush(group, guard, out);
      out.push_back(clone(stmts[i]));
      continue;
    }
    if (s.kind == StmtKind::Decl) {
      guardOf[s.text] = guard;
      if (s.isShared) {
        out.push_back(clone(stmts[i]));
        continue;
      }
      if (keepsItsPlace(s, guard)) {
        if (!isOfIndicesAlone(s))
          flush(group, guard, out); // what it is made from stands before it
        StmtRef base = clone(stmts[i]);
        out.push_back(base);
        continue;
      }
      bool usedLater = false;
      for (size_t k = i + 1; k < stmts.size(); ++k) {
        bool uses = false;
        walkExprs(*stmts[k], [&](const ExprRef &e) { uses |= (e->kind == ExprKind::Var && e->text == s.text) || e->names.count(s.text); });
        if (uses && (opened(*stmts[k]) || std::any_of(stmts.begin() + long(i) + 1, stmts.begin() + long(k), [&](const StmtRef &m) { return opened(*m) || m->kind == StmtKind::Barrier; }))) 
          usedLater = true;
      }
      unsigned mask = maskOf(s);
      // Within one run of leaves of one shape it can stay where it is.
      bool sameShape = !usedLater;
      for (size_t k = i + 1; sameShape && k < stmts.size(); ++k) {
        bool uses = false;
        walkExprs(*stmts[k], [&](const ExprRef &e) { uses |= (e->kind == ExprKind::Var && e->text == s.text) || e->names.count(s.text); });
        if (uses)
          for (size_t m = i + 1; m <= k; ++m)
            sameShape &= maskOf(*stmts[m]) == mask && stmts[m]->kind != StmtKind::Barrier && (!keepsItsPlace(*stmts[m], guard) || isOfIndicesAlone(*stmts[m])) &&
                         !(guard && speculatable(*stmts[m], guard) != speculatable(s, guard));
      }
      if (sameShape) {
        groupLocal.insert(s.text);
      } else {
        std::vector<const CopyAxis *> axes = axesIn(mask);
        StmtRef storage = clone(stmts[i]);
        storage->expr = nullptr;
        storage->type.isConst = storage->expr ? storage->type.isConst : false;
        std::vector<ExprRef> dims;
        for (const CopyAxis *c : axes)
          dims.push_back(intLit(c->factor));
        storage->dims.insert(storage->dims.begin(), dims.begin(), dims.end());
        if (!axes.empty())
          expanded[s.text] = mask;
        if (axes.empty() && s.expr && (!guard || speculatable(s, guard))) {
          flush(group, guard, out);
          storage = clone(stmts[i]);
          out.push_back(storage);
          continue;
        }
        if (s.expr && s.expr->kind == ExprKind::InitList)
          return notApplicable("an array is initialized in place (line {0})", s.line);
        out.push_back(storage); // before the pending group: it is only storage
        if (!s.expr)
          continue;
        StmtRef init = exprStmt(assign("=", var(s.text, s.type), s.expr));
        bool needsGuard = guard && !speculatable(s, guard);
        atCopy(*init);
        group.push_back({init, mask, needsGuard});
        continue;
      }
    }
    if (s.kind == StmtKind::For && open(s)) {
      if (isSharedLoop(s) && (!guard || hasStableHeader(s))) {
        flush(group, guard, out);
        StmtRef loopStmt = clone(stmts[i]);
        loopStmt->body[0]->body.clear();
        if (llvm::Error e = list(s.body[0]->body, guard, loopStmt->body[0]->body))
          return e;
        out.push_back(loopStmt);
        continue;
      }
      if (uniformAlong)
        return notApplicable("the loop at line {0} does not run the same for all threads of a block", s.line);
    }
    if (opened(s) && s.kind == StmtKind::If) {
      bool varying = varies(s.expr) & (allCopies | uniformAlong);
      if (!varying && !(model.varies(s.expr) & FromMemory && uniformAlong)) {
        flush(group, guard, out);
        StmtRef branch = clone(stmts[i]);
        ExprRef test = guard; // a uniform branch stays a branch
        for (size_t b = 0; b < s.body.size(); ++b) {
          branch->body[b]->body.clear();
          if (llvm::Error e = list(s.body[b]->body, test, branch->body[b]->body))
            return e;
        }
        out.push_back(branch);
        continue;
      }
      if (model.stable(s.expr)) {
        flush(group, guard, out);
        if (llvm::Error e = list(s.body[0]->body, logicalAnd(guard, s.expr), out))
          return e;
        if (s.body.size() > 1)
          if (llvm::Error e = list(s.body[1]->body, logicalAnd(guard, logicalNot(s.expr)), out))
            return e;
        continue;
      }
      if (uniformAlong)
        return notApplicable("the condition at line {0} differs between threads and may change while it is needed", s.line);
    }
    if (uniformAlong && hasBarrier(s) && guard)
      return notApplicable("something that may synchronize stands under a condition (line {0})", s.line);
    std::set<std::string> names;
    for (const auto &[name, value] : indexAtCopy)
      names.insert(name);
    for (const auto &[name, value] : expanded)
      names.insert(name);
    if (opaqueMentions(s, names))
      return notApplicable("a construct that is kept verbatim uses a variable that would change (line {0})", s.line);
    if (uniformAlong && open(s))
      return notApplicable("the loop at line {0} may not run the same for all threads of a block", s.line);
    StmtRef leaf = clone(stmts[i]);
    bool needsGuard = guard && !speculatable(s, guard);
    unsigned mask = maskOf(s);
    atCopy(*leaf);
    group.push_back({leaf, mask, needsGuard});
  }
  flush(group, guard, out);
  return llvm::Error::success();
}

llvm::Expected<StmtRef> Distributor::run() {
  classifyLocals();
  widenWritten();
  StmtRef body = block();
  if (llvm::Error e = list(kernel.body->body, nullptr, body->body))
    return e;
  return body;
}
