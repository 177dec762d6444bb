//===- KernelModel.cpp - what transforms ask of a kernel ------------------===//
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/TreeQueries.h"
#include <algorithm>

using namespace optiml;

KernelModel::KernelModel(const Kernel &kernel, std::array<int64_t, 3> block) : theKernel(kernel), block(block) {
  collectDeclarations();
  collectAccesses();
  collectVariance();
}

// Declarations

void KernelModel::collectDeclarations() {
  auto noteUnknown = [this](unsigned line, bool goesOutside = true, bool touchesMemory = true) {
    line = std::max(1u, line);
    unknownEffects = unknownEffects ? unknownEffects : line;
    if (goesOutside && !unknownOutside)
      unknownOutside = line;
    if (goesOutside && touchesMemory && !unknownMemory)
      unknownMemory = line;
  };
  for (const Param &p : theKernel.params)
    for (const Param::Field &field : p.fields)
      if (field.type.isPointer() && field.type.pointee)
        memberPointers[p.name + "." + field.name] = {p.name + "." + field.name, field.type, {}};
  walk(*theKernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl)
      decls[s.text] = &s;
    if (auto loop = asCountedLoop(s))
      loops[loop->var] = *loop;
    if (s.kind == StmtKind::Opaque && s.mayBarrier)
      noteUnknown(s.line);
    if (s.kind == StmtKind::Opaque)
      for (const std::string &name : s.names)
        ++assignments[name];
  });
  walkExprs(*theKernel.body, [&](const ExprRef &e) {
    bool writes = isChange(e);
    if (writes) {
      const Expr *target = e->args[0].get();
      while (target->kind == ExprKind::Member && !target->args[0]->type.isPointer())
        target = target->args[0].get();
      if (target->kind == ExprKind::Var) {
        ++assignments[target->text];
        if (!decls.count(target->text) && !param(target->text)) // a variable of the file: memory
          noteUnknown(e->line);
      }
    }
    if (e->kind == ExprKind::Call && e->isAtomic && !e->args.empty()) {
      const ExprRef &place = e->args[0];
      if (isUnary(place, "&") && place->args[0]->kind == ExprKind::Var && !decls.count(place->args[0]->text))
        noteUnknown(e->line);
    }
    if (isUnary(e, "&") && e->args[0]->kind == ExprKind::Var)
      addressTaken.insert(e->args[0]->text);
    if ((e->kind == ExprKind::Call || e->kind == ExprKind::Opaque) && !e->pure) {
      if (!(e->kind == ExprKind::Call && e->isAtomic))
        noteUnknown(e->line, !e->isConfined, !onlyExchangesRegisters(*e));
      for (const std::string &name : changedWithin(*e))
        ++assignments[name];
    }
  });
  for (const std::string &name : addressTaken)
    ++assignments[name];
  walk(*theKernel.body, [&](Stmt &s) {
    if (auto loop = asStridedLoop(s); loop && takesTurns(*loop))
      turns.insert(loop->var);
  });
}

bool KernelModel::takesTurns(const StridedLoop &loop) const {
  Poly step = poly(loop.step);
  bool positive = !step.terms.empty();
  for (const auto &[monomial, coefficient] : step.terms) {
    positive &= coefficient > 0;
    for (const std::string &atom : monomial)
      positive &= atom.starts_with("blockDim.") || atom.starts_with("gridDim.");
  }
  return positive;
}

const Stmt *KernelModel::declaration(const std::string &name) const {
  auto it = decls.find(name);
  return it == decls.end() ? nullptr : it->second;
}

const Param *KernelModel::param(const std::string &name) const {
  for (const Param &p : theKernel.params)
    if (p.name == name)
      return &p;
  auto it = memberPointers.find(name);
  return it == memberPointers.end() ? nullptr : &it->second;
}

std::optional<CountedLoop> KernelModel::loopOf(const std::string &name) const {
  auto it = loops.find(name);
  return it == loops.end() ? std::nullopt : std::optional(it->second);
}

const Stmt *KernelModel::singleAssignment(const std::string &name) const {
  const Stmt *d = declaration(name);
  auto it = assignments.find(name);
  if (!d || !d->expr || !d->dims.empty() || (it != assignments.end() && it->second > 0))
    return nullptr;
  return d;
}

// Normal form

/// blockIdx.a * blockDim.a + threadIdx.a, whatever it is multiplied by, is the global index.
static Poly joinGlobalIndex(Poly p, const std::array<int64_t, 3> &block) {
  for (unsigned axis = 0; axis < 3; ++axis) {
    if (block[axis])
      continue;
    std::string suffix(1, char('x' + axis));
    auto perBlock = p.coefficient("blockIdx." + suffix), perThread = p.coefficient("threadIdx." + suffix);
    if (!perBlock || !perThread || perThread->terms.empty() ||
        !(*perBlock == *perThread * Poly::atom("blockDim." + suffix)))
      continue;
    p = p - *perBlock * Poly::atom("blockIdx." + suffix) - *perThread * Poly::atom("threadIdx." + suffix) +
        *perThread * Poly::atom("globalIdx." + suffix);
  }
  return p;
}

/// The operands are integers of the result's size, or shorter ones that are converted to its 64 bits.
static bool hasIntegersAlike(const ExprRef &e) {
  return e->type.isInt() && llvm::all_of(e->args, [&](const ExprRef &x) {
           return x->type.cls == Type::Class::Int && (x->type.bytes == e->type.bytes || e->type.bytes == 8);
         });
}

/// Sums, differences and products of unsigned numbers by the rules of integers: right but for multiples of 2^32, or of
/// 2^64.
Poly KernelModel::withWrapping(const ExprRef &e) const {
  if ((e->kind != ExprKind::Cast && e->kind != ExprKind::Binary) || !hasIntegersAlike(e))
    return poly(e);
  auto operand = [&](const ExprRef &x) { return x->type.bytes == e->type.bytes ? withWrapping(x) : poly(x); };
  const Poly a = operand(e->args[0]);
  if (e->kind == ExprKind::Cast)
    return a;
  const Poly b = operand(e->args[1]);
  return e->text == "+" ? joinGlobalIndex(a + b, block) : e->text == "-" ? a - b : e->text == "*" ? a * b : poly(e);
}

Poly KernelModel::poly(const ExprRef &e) const {
  auto opaque = [&] {
    std::string name = "{" + str(e) + "}";
    opaqueAtoms[name] = e;
    return Poly::atom(name);
  };
  if (auto value = constantValue(e))
    return Poly(*value);
  switch (e->kind) {
  case ExprKind::Builtin: {
    const std::string &b = e->text;
    unsigned axis = unsigned(b.back() - 'x');
    if (b.starts_with("blockDim.") && block[axis])
      return Poly(block[axis]);
    if (b.starts_with("threadIdx.") && block[axis] == 1)
      return Poly(0);
    return Poly::atom(b);
  }
  case ExprKind::Var:
    if (const Stmt *d = singleAssignment(e->text);
        d && d->type.isInt() && d->type.cls != Type::Class::Bool && !loops.count(e->text)) {
      // A load's value is known by the variable's name.
      bool loads = anyNode(d->expr, [&](const ExprRef &n) { return n->kind == ExprKind::Subscript || !n->pure; });
      if (!loads && d->type.bytes >= 4)
        return poly(d->expr);
    }
    return Poly::atom(e->text);
  case ExprKind::Member:
    if (e->args[0]->kind == ExprKind::Var && !e->args[0]->type.isPointer()) {
      std::string name = str(e);
      opaqueAtoms[name] = e;
      return Poly::atom(name);
    }
    return opaque();
  case ExprKind::Cast:
    if (e->type.isInt() && e->type.bytes >= 4 && e->args[0]->type.isInt() && e->type.bytes >= e->args[0]->type.bytes)
      return poly(e->args[0]);
    if (e->type.isInt() && e->type.bytes >= 4 && e->args[0]->type.isInt())
      return poly(e->args[0]); // a 64-bit index cast to int: the program relies on it fitting
    return opaque();
  case ExprKind::Unary:
    if (e->text == "-" && e->type.isSigned && e->type.isInt())
      return Poly(0) - poly(e->args[0]);
    if (e->text == "+")
      return poly(e->args[0]);
    return opaque();
  case ExprKind::Binary: {
    if (!e->type.isInt() || e->type.cls == Type::Class::Bool)
      return opaque();
    // What wraps around on the way may be back in the end: i - first + 12, where i >= first - 12.
    if (!e->type.isSigned && e->text == "+" && hasIntegersAlike(e) &&
        anyNode(e, [](const ExprRef &n) { return isBinary(n, "-"); }))
      if (Poly whole = withWrapping(e); cannotWrap(whole))
        return whole;
    if (e->text == "+")
      return joinGlobalIndex(poly(e->args[0]) + poly(e->args[1]), block);
    if (e->text == "*")
      return poly(e->args[0]) * poly(e->args[1]);
    if (e->text == "-") {
      Poly d = poly(e->args[0]) - poly(e->args[1]);
      if (e->type.isSigned || cannotWrap(d))
        return d;
      return opaque();
    }
    if (e->text == "<<")
      if (auto shift = constantValue(e->args[1]); shift && *shift >= 0 && *shift < 31)
        return poly(e->args[0]) * Poly(int64_t(1) << *shift);
    return opaque();
  }
  default: return opaque();
  }
}

bool KernelModel::neverNegative(const std::string &atom) const {
  llvm::StringRef name = atom;
  for (llvm::StringRef index : {"threadIdx.", "blockIdx.", "globalIdx.", "blockDim.", "gridDim."})
    if (name.starts_with(index))
      return true;
  if (auto loop = loopOf(atom))
    return constantValue(loop->lower).value_or(-1) >= 0;
  auto [base, member] = name.split('.');
  const Param *p = param(base.str());
  auto isUnsigned = [](const Type &type) { return type.cls == Type::Class::Int && !type.isSigned; };
  return p && stable(Poly::atom(atom)) &&
         (member.empty()
              ? isUnsigned(p->type)
              : std::any_of(p->fields.begin(), p->fields.end(), [&, name = member](const Param::Field &field) {
                  return field.name == name && isUnsigned(field.type);
                }));
}

bool KernelModel::cannotWrap(const Poly &difference) const {
  if (theKernel.notNegative.count(difference.str()))
    return true;
  int64_t least = 0;
  for (const auto &[monomial, coefficient] : difference.terms) {
    auto known = monomial.size() == 1 ? theKernel.least.find(monomial[0]) : theKernel.least.end();
    if (monomial.empty() || (coefficient > 0 && known != theKernel.least.end()))
      least += monomial.empty() ? coefficient : coefficient * known->second;
    else if (coefficient < 0 ||
             !std::all_of(
                 monomial.begin(), monomial.end(), [&](const std::string &atom) { return neverNegative(atom); }))
      return false;
  }
  return least >= 0;
}

void KernelModel::resolveDifferences(Access &access) const {
  std::vector<Poly> known;
  for (Poly &index : access.subscripts)
    for (const std::string &atom : index.atoms()) {
      ExprRef e = atomExpr(atom);
      if (!e || !isBinary(e, "-") || !e->type.isInt() || e->type.isSigned)
        continue;
      if (known.empty())
        known = facts(access);
      Poly difference = poly(e->args[0]) - poly(e->args[1]);
      if (stable(difference) &&
          std::any_of(known.begin(), known.end(), [&](const Poly &fact) { return cannotWrap(difference - fact); }))
        index = index.substitute(atom, difference);
    }
  resolveWrapping(access);
}

bool KernelModel::dependsOn(const Poly &p, const std::set<std::string> &names) const {
  auto isOne = [&](const std::string &name) { return names.count(name) != 0; };
  return llvm::any_of(p.atoms(),
                      [&](const std::string &atom) { return isOne(atom) || llvm::any_of(atomNames(atom), isOne); });
}

ExprRef KernelModel::atomExpr(const std::string &atom) const {
  auto it = opaqueAtoms.find(atom);
  return it == opaqueAtoms.end() ? nullptr : it->second;
}

std::set<std::string> KernelModel::atomNames(const std::string &atom) const {
  if (ExprRef e = atomExpr(atom)) {
    std::set<std::string> result;
    for (const std::string &name : namesIn(e)) {
      result.insert(name);
      if (const Stmt *d = singleAssignment(name))
        result.merge(namesIn(d->expr));
    }
    return result;
  }
  return {atom};
}

bool KernelModel::stable(const ExprRef &e) const {
  bool ok = true;
  std::set<const Expr *> places; // whose addresses are taken: nothing is read there
  walk(e, [&](const ExprRef &n) {
    if (isUnary(n, "&"))
      places.insert(n->args[0].get());
    if ((n->kind == ExprKind::Subscript && !places.count(n.get())) || !n->pure || isChange(n))
      ok = false;
    if (n->kind == ExprKind::Var) {
      auto it = assignments.find(n->text);
      bool counts = loops.count(n->text) || turns.count(n->text);
      bool mutated = it != assignments.end() && it->second > 0 && !counts;
      ok &= !mutated;
      if (const Stmt *d = declaration(n->text); d && !counts)
        ok &= d->expr != nullptr && d->dims.empty();
    }
  });
  return ok;
}

bool KernelModel::stable(const Poly &p) const {
  for (const std::string &atom : p.atoms()) {
    ExprRef e = atomExpr(atom);
    if (!e) {
      if (atom.find('.') != std::string::npos)
        continue; // builtin
      e = var(atom, Type::makeInt());
    }
    if (!stable(e))
      return false;
  }
  return true;
}

// Variance

static unsigned builtinVariance(const std::string &name, const std::array<int64_t, 3> &block) {
  unsigned axis = unsigned(name.back() - 'x');
  unsigned thread = block[axis] == 1 ? 0 : ThreadX << axis;
  if (name.starts_with("threadIdx."))
    return thread;
  if (name.starts_with("blockIdx."))
    return BlockX << axis;
  if (name.starts_with("globalIdx."))
    return thread | (BlockX << axis);
  return 0;
}

unsigned KernelModel::variesName(const std::string &name) const {
  auto it = variance.find(name);
  return it == variance.end() ? 0 : it->second;
}

unsigned KernelModel::varies(const ExprRef &e) const {
  unsigned result = 0;
  walk(e, [&](const ExprRef &n) {
    if (n->kind == ExprKind::Builtin)
      result |= builtinVariance(n->text, block);
    if (n->kind == ExprKind::Var)
      result |= variesName(n->text);
    for (const std::string &name : n->names)
      result |= variesName(name) | (name.find("Idx") != std::string::npos ? AnyThread | AnyBlock : 0);
    if (n->kind == ExprKind::Opaque && n->text.find("Idx") != std::string::npos)
      result |= AnyThread | AnyBlock;
    if (!n->pure)
      result |= AnyThread | AnyBlock | FromMemory;
    if (isLoad(n)) {
      std::vector<ExprRef> subscripts;
      ExprRef root = resolve(n, subscripts);
      const Stmt *d = root->kind == ExprKind::Var ? declaration(root->text) : nullptr;
      bool local = d && !d->isShared && !d->dims.empty();
      if (!local && (unknownOutside || (d && d->isShared) || writesArray(str(arrayAround(root)))))
        result |= FromMemory;
    }
  });
  return result;
}

unsigned KernelModel::variesAtom(const std::string &atom) const {
  if (ExprRef e = atomExpr(atom))
    return varies(e);
  if (atom.find("Idx.") != std::string::npos)
    return builtinVariance(atom, block);
  return variesName(atom);
}

void KernelModel::collectVariance() {
  bool changed = true;
  auto raise = [&](const std::string &name, unsigned mask) {
    unsigned &v = variance[name];
    changed |= (v | mask) != v;
    v |= mask;
  };
  std::function<void(Stmt &, unsigned)> visit = [&](Stmt &s, unsigned control) {
    auto effects = [&](const ExprRef &e) {
      walk(e, [&](const ExprRef &n) {
        if (isChange(n)) {
          const Expr *target = n->args[0].get();
          unsigned mask = control | (n->kind == ExprKind::Assign ? varies(n->args[1]) : 0);
          while (target->kind == ExprKind::Subscript || target->kind == ExprKind::Member) {
            if (target->kind == ExprKind::Subscript)
              mask |= varies(target->args[1]);
            target = target->args[0].get();
          }
          if (target->kind == ExprKind::Var)
            raise(target->text, mask);
        }
        if (!n->pure)
          for (const std::string &name : changedWithin(*n))
            if (declaration(name))
              raise(name, AnyThread | AnyBlock | FromMemory);
      });
    };
    if (s.kind == StmtKind::Decl && s.expr)
      raise(s.text, varies(s.expr) | (s.dims.empty() ? 0 : control));
    if (s.kind == StmtKind::Opaque)
      for (const std::string &name : s.names)
        if (declaration(name))
          raise(name, AnyThread | AnyBlock | FromMemory);
    if (asCountedLoop(s)) // an iteration has its number, whoever makes it
      ownExprs(s, [&](ExprRef &e) {
        if (e != s.step)
          effects(e);
      });
    else
      ownExprs(s, effects);
    if (s.init)
      visit(*s.init, control);
    unsigned inner = control;
    if (s.kind == StmtKind::If || s.kind == StmtKind::While || s.kind == StmtKind::Do || s.kind == StmtKind::For)
      if (s.expr) {
        unsigned mask = varies(s.expr);
        inner |= mask;
        // How often a loop runs decides what its variable, and all it assigns, end as.
        if (s.kind == StmtKind::For && s.step)
          walk(s.step, [&](const ExprRef &n) {
            if (n->kind == ExprKind::Var && !asCountedLoop(s))
              raise(n->text, mask);
          });
      }
    for (StmtRef &child : s.body)
      visit(*child, inner);
  };
  for (unsigned round = 0; changed && round < 20; ++round) {
    changed = false;
    // Leaving early makes everything after it depend on the condition.
    unsigned exits = 0;
    walk(*theKernel.body, [&](Stmt &s) {
      if (s.kind != StmtKind::If || !s.expr)
        return;
      if (llvm::any_of(s.body, [](const StmtRef &b) { return holdsKind(*b, {StmtKind::Break, StmtKind::Continue}); }))
        exits |= varies(s.expr);
    });
    visit(*theKernel.body, exits);
  }
}

// Facts

void KernelModel::addFacts(const ExprRef &condition, bool taken, std::vector<Poly> &into) const {
  if (isUnary(condition, "!"))
    return addFacts(condition->args[0], !taken, into);
  if (condition->kind == ExprKind::Var)
    if (const Stmt *d = singleAssignment(condition->text); d && d->type.cls == Type::Class::Bool && stable(d->expr))
      return addFacts(d->expr, taken, into);
  if (condition->kind != ExprKind::Binary)
    return;
  if (condition->text == (taken ? "&&" : "||")) {
    addFacts(condition->args[0], taken, into);
    addFacts(condition->args[1], taken, into);
    return;
  }
  const Type &a = condition->args[0]->type, &b = condition->args[1]->type;
  if (!a.isInt() || !b.isInt())
    return;
  Poly x = poly(condition->args[0]), y = poly(condition->args[1]);
  if (!stable(x) || !stable(y))
    return;
  std::string op = condition->text;
  if (!taken) {
    op = inverseComparison(op);
    if (op.empty())
      return;
  }
  if (op == "<")
    into.push_back(y - x - Poly(1));
  else if (op == "<=")
    into.push_back(y - x);
  else if (op == ">")
    into.push_back(x - y - Poly(1));
  else if (op == ">=")
    into.push_back(x - y);
  else if (op == "==") {
    into.push_back(x - y);
    into.push_back(y - x);
  } else { // != : where one side is known not to be below the other, it is above
    for (const Poly &distance : {x - y, y - x})
      if (cannotWrap(distance) || llvm::is_contained(into, distance)) {
        into.push_back(distance - Poly(1));
        break;
      }
  }
}
