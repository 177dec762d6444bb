//===- DistributeLocals.cpp - which locals differ between copies ----------===//
#include "Distribute.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

std::string Distributor::globalName(unsigned axis) { return axisName("globalIdx", axis); }

/// By how much it grows from one index along the axis to the next; nothing: that is not constant.
std::optional<int64_t> Distributor::stepOf(const Poly &p, const CopyAxis &along) const {
  for (const std::string &atom : p.atoms())
    if (atom != globalName(along.axis) && model.variesAtom(atom) & copyMask(along))
      return std::nullopt;
  auto coefficient = p.coefficient(globalName(along.axis));
  return coefficient ? coefficient->constant() : std::nullopt;
}

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
      auto step = stepOf(p, c);
      affine &= step.has_value();
      if (affine && *step != 0)
        value = add(value, mul(var(c.var, Type::makeInt()), intLit(*step * c.distance)));
    }
    indexAtCopy[s.text] = affine ? value : nullptr; // null: recomputed in place
  });
  // They may build on others: resolve in declaration order.
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::Decl || !indexAtCopy.count(s.text))
      return;
    // What is made of another value of the copy is a value of the copy, too, and has its offset already.
    bool ofIndices = llvm::all_of(namesIn(s.expr), [&](const std::string &name) {
      return indexAtCopy.count(name) || !model.declaration(name) || !(model.variesName(name) & allCopies);
    });
    if (!ofIndices)
      indexAtCopy.erase(s.text);
    else if (!indexAtCopy[s.text]) // of the local's type: 2 * i - n is another number where i is unsigned
      indexAtCopy[s.text] =
          s.expr->type.sameNumber(s.type) ? atCopy(s.expr) : castTo(s.type.unqualified(), atCopy(s.expr));
  });
}

unsigned Distributor::widenedMask(const std::string &name) const {
  auto it = widened.find(name);
  return it == widened.end() ? 0 : it->second;
}

unsigned Distributor::widenedMask(const ExprRef &e) const {
  unsigned mask = 0;
  for (const std::string &name : namesIn(e))
    mask |= widenedMask(name);
  return mask;
}

/// What differs along a part of a copy's axis counts as different between copies.
unsigned Distributor::wholeCopies(unsigned mask) const {
  for (const CopyAxis &c : copies)
    if (mask & copyMask(c))
      mask |= copyMask(c);
  return mask;
}

unsigned Distributor::varies(const ExprRef &e) const { return wholeCopies(model.varies(e) | widenedMask(e)); }

/// Of values, where the local is alive.
unsigned Distributor::valueVaries(const std::string &name) const {
  return wholeCopies(alive ? alive->ofName(name) : model.variesName(name));
}

unsigned Distributor::valueVaries(const ExprRef &e) const {
  return wholeCopies(alive ? alive->of(e) : model.varies(e));
}

/// Locals that `s` changes and does not declare; of opaque text, whatever it mentions.
static std::set<std::string> changedNames(Stmt &s) {
  std::set<std::string> changed;
  walkExprs(s, [&](const ExprRef &e) {
    if (e->kind == ExprKind::Opaque || e->isConfined)
      changed.merge(changedWithin(*e));
    if (!mayChange(e))
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
  for (const std::string &name : namesDeclaredIn(s))
    changed.erase(name);
  return changed;
}

/// A local that is alike in all threads needs one value, until a leaf that runs once for each copy changes it ("for (;
/// i < n;
/// ++i) out[…] += …" with a counter from outside): then each copy needs its own.
void Distributor::widenWritten() {
  if (!allCopies)
    return;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl)
      localNames.insert(s.text);
  });
  for (const std::string &name : usedByAddress(kernel)) // what a pointer leads to, each copy may change
    widened[name] = allCopies;
  while (widenWritten(kernel.body->body, /*guarded=*/false))
    ;
}

/// `guarded`: under a condition that may hold for some copies alone.
bool Distributor::widenWritten(const std::vector<StmtRef> &stmts, bool guarded) {
  bool grew = false;
  auto widen = [&](const std::string &name, unsigned mask) {
    if (mask & ~widened[name]) {
      widened[name] |= mask;
      grew = true;
    }
  };
  auto widenChanged = [&](Stmt &s) {
    const unsigned mask = maskOf(s);
    for (const std::string &name : changedNames(s))
      if (localNames.count(name) && (mask & ~valueVaries(name)))
        widen(name, mask);
  };
  for (const StmtRef &s : stmts) {
    if (s->kind == StmtKind::Decl) {
      if (!s->expr)
        continue;
      // A copy that takes its value from one that differs, differs.
      widen(s->text, widenedMask(s->expr) & allCopies & ~valueVaries(s->expr));
      widenChanged(*s); // "int k = count++;"
    } else if ((s->kind == StmtKind::If && open(*s)) || (isSharedLoop(*s) && (!guarded || hasStableHeader(*s)))) {
      const bool divides = s->kind == StmtKind::If && varies(s->expr) & allCopies;
      if (s->kind == StmtKind::If && anyNode(s->expr, mayChange)) // each copy asks
        widenChanged(*s);
      for (const StmtRef &body : s->body)
        grew |= widenWritten(body->body, guarded || divides);
    } else {
      widenChanged(*s);
    }
  }
  return grew;
}
