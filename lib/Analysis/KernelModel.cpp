//===- KernelModel.cpp - what transforms ask of a kernel ------------------===//
#include "optiml/Analysis/KernelModel.h"
#include <algorithm>

using namespace optiml;

KernelModel::KernelModel(const Kernel &kernel, std::array<int64_t, 3> block) : theKernel(kernel), block(block) {
  collectDeclarations();
  collectAccesses();
  collectVariance();
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

void KernelModel::collectDeclarations() {
  for (const Param &p : theKernel.params)
    for (const Param::Field &field : p.fields)
      if (field.type.isPointer() && field.type.pointee)
        memberPointers[p.name + "." + field.name] = {p.name + "." + field.name, field.type, {}};
  walk(*theKernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl)
      decls[s.text] = &s;
    if (auto loop = asCountedLoop(s))
      loops[loop->var] = *loop;
    if (s.kind == StmtKind::Opaque && s.mayBarrier && !unknownEffects)
      unknownEffects = std::max(1u, s.line);
    if (s.kind == StmtKind::Opaque)
      for (const std::string &name : s.names)
        ++assignments[name];
  });
  walkExprs(*theKernel.body, [&](const ExprRef &e) {
    bool writes = e->kind == ExprKind::Assign || e->kind == ExprKind::IncDec;
    if (writes) {
      const Expr *target = e->args[0].get();
      while (target->kind == ExprKind::Member && !target->args[0]->type.isPointer())
        target = target->args[0].get();
      if (target->kind == ExprKind::Var) {
        ++assignments[target->text];
        if (!decls.count(target->text) && !param(target->text) && !unknownEffects) // a variable of the file: memory
          unknownEffects = std::max(1u, e->line);
      }
    }
    if (e->kind == ExprKind::Call && e->isAtomic && !unknownEffects && !e->args.empty()) {
      const ExprRef &place = e->args[0];
      if (place->kind == ExprKind::Unary && place->text == "&" && place->args[0]->kind == ExprKind::Var &&
          !decls.count(place->args[0]->text))
        unknownEffects = std::max(1u, e->line);
    }
    if (e->kind == ExprKind::Unary && e->text == "&" && e->args[0]->kind == ExprKind::Var)
      addressTaken.insert(e->args[0]->text);
    if ((e->kind == ExprKind::Call || e->kind == ExprKind::Opaque) && !e->pure) {
      if (!unknownEffects && !(e->kind == ExprKind::Call && e->isAtomic))
        unknownEffects = std::max(1u, e->line);
      for (const std::string &name : e->names)
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

//===----------------------------------------------------------------------===//
// Normal form
//===----------------------------------------------------------------------===//

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
    if (b.rfind("blockDim.", 0) == 0 && block[axis])
      return Poly(block[axis]);
    if (b.rfind("threadIdx.", 0) == 0 && block[axis] == 1)
      return Poly(0);
    return Poly::atom(b);
  }
  case ExprKind::Var:
    if (const Stmt *d = singleAssignment(e->text); d && d->type.isInt() && d->type.cls != Type::Class::Bool && !loops.count(e->text)) {
      // A load's value is known by the variable's name.
      bool loads = false;
      walk(d->expr, [&](const ExprRef &n) { loads |= n->kind == ExprKind::Subscript || !n->pure; });
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
  default:
    return opaque();
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
         (member.empty() ? isUnsigned(p->type) : std::any_of(p->fields.begin(), p->fields.end(), [&, name = member](const Param::Field &field) {
           return field.name == name && isUnsigned(field.type);
         }));
}

bool KernelModel::cannotWrap(const Poly &difference) const {
  int64_t least = 0;
  for (const auto &[monomial, coefficient] : difference.terms) {
    auto known = monomial.size() == 1 ? theKernel.least.find(monomial[0]) : theKernel.least.end();
    if (monomial.empty() || (coefficient > 0 && known != theKernel.least.end()))
      least += monomial.empty() ? coefficient : coefficient * known->second;
    else if (coefficient < 0 || !std::all_of(monomial.begin(), monomial.end(), [&](const std::string &atom) { return neverNegative(atom); }))
      return false;
  }
  return least >= 0;
}

void KernelModel::resolveDifferences(Access &access) const {
  std::vector<Poly> known;
  for (Poly &index : access.subscripts)
    for (const std::string &atom : index.atoms()) {
      ExprRef e = atomExpr(atom);
      if (!e || e->kind != ExprKind::Binary || e->text != "-" || !e->type.isInt() || e->type.isSigned)
        continue;
      if (known.empty())
        known = facts(access);
      Poly difference = poly(e->args[0]) - poly(e->args[1]);
      if (stable(difference) && std::any_of(known.begin(), known.end(), [&](const Poly &fact) { return cannotWrap(difference - fact); }))
        index = index.substitute(atom, difference);
    }
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
  walk(e, [&](const ExprRef &n) {
    if (n->kind == ExprKind::Subscript || !n->pure || n->kind == ExprKind::Assign || n->kind == ExprKind::IncDec)
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

//===----------------------------------------------------------------------===//
// Variance
//===----------------------------------------------------------------------===//

static unsigned builtinVariance(const std::string &name, const std::array<int64_t, 3> &block) {
  unsigned axis = unsigned(name.back() - 'x');
  unsigned thread = block[axis] == 1 ? 0 : ThreadX << axis;
  if (name.rfind("threadIdx.", 0) == 0)
    return thread;
  if (name.rfind("blockIdx.", 0) == 0)
    return BlockX << axis;
  if (name.rfind("globalIdx.", 0) == 0)
    return thread | (BlockX << axis);
  return 0;
}

unsigned KernelModel::variesName(const std::string &name) const {
  auto it = variance.find(name);
  return it == variance.end() ? 0 : it->second;
}

/// An array itself, where `isPointer` tells of arrays and pointers alike.
static bool isArray(const Type &type) { return type.isPointer() && (llvm::StringRef(type.text).ends_with("]") || type.bytes > 8); }

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
    if (n->kind == ExprKind::Subscript || (n->kind == ExprKind::Member && n->args[0]->type.isPointer())) {
      std::vector<ExprRef> subscripts;
      ExprRef root = resolve(n, subscripts);
      const Stmt *d = root->kind == ExprKind::Var ? declaration(root->text) : nullptr;
      bool local = d && !d->isShared && !d->dims.empty();
      if (!local && (unknownEffects || (d && d->isShared) || writesArray(str(root))))
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
        if (n->kind == ExprKind::Assign || n->kind == ExprKind::IncDec) {
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
          for (const std::string &name : n->names)
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
      bool leaves = false;
      for (StmtRef &branch : s.body)
        walk(*branch, [&](Stmt &t) { leaves |= t.kind == StmtKind::Break || t.kind == StmtKind::Continue; });
      if (leaves)
        exits |= varies(s.expr);
    });
    visit(*theKernel.body, exits);
  }
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

ExprRef KernelModel::resolve(const ExprRef &e, std::vector<ExprRef> &subscripts) const {
  ExprRef root = e;
  // What the pointers in an array lead to is not the array.
  while (root->kind == ExprKind::Subscript && (subscripts.empty() || !root->type.isPointer() || isArray(root->type))) {
    subscripts.insert(subscripts.begin(), root->args[1]);
    root = root->args[0];
  }
  if (root->kind == ExprKind::Member && root->args[0]->type.isPointer() && subscripts.empty()) {
    subscripts.push_back(intLit(0)); // p->x
    root = root->args[0];
  }
  for (unsigned depth = 0; depth < 8; ++depth) {
    if (root->kind == ExprKind::Binary && root->text == "+" && !subscripts.empty()) {
      bool left = root->args[0]->type.isPointer();
      subscripts[0] = add(root->args[left ? 1 : 0], subscripts[0]);
      root = root->args[left ? 0 : 1];
    } else if (root->kind == ExprKind::Unary && root->text == "&" && root->args[0]->kind == ExprKind::Subscript &&
               !subscripts.empty()) {
      subscripts[0] = add(root->args[0]->args[1], subscripts[0]);
      root = root->args[0]->args[0];
      for (; root->kind == ExprKind::Subscript; root = root->args[0]) // &a[i][j]
        subscripts.insert(subscripts.begin(), root->args[1]);
    } else if (root->kind == ExprKind::Var && root->type.isPointer()) {
      const Stmt *d = singleAssignment(root->text);
      if (!d || !stable(d->expr) || subscripts.empty())
        break;
      root = d->expr;
    } else if (root->kind == ExprKind::Cast && root->type.isPointer() && root->args[0]->type.isPointer()) {
      // Another element type: the index is in other units. Keep the array, forget the place.
      bool same = root->type.pointee && root->args[0]->type.pointee &&
                  root->type.pointee->text == root->args[0]->type.pointee->text;
      if (!same && !subscripts.empty()) {
        auto unknown = std::make_shared<Expr>(*root);
        unknown->kind = ExprKind::Opaque;
        unknown->text = "(recast " + str(subscripts[0]) + ")";
        unknown->names = namesIn(subscripts[0]);
        subscripts = {unknown};
      }
      root = root->args[0];
    } else {
      break;
    }
  }
  return root;
}

/// A member of a local or of a parameter by value, or the address of a local: a thread's own memory.
bool KernelModel::isPrivate(ExprRef root) const {
  bool own = false;
  while (true) {
    if (root->kind == ExprKind::Member && !root->args[0]->type.isPointer() &&
        (!root->type.isPointer() || isArray(root->type))) {
      own = true;
      root = root->args[0];
    } else if (root->kind == ExprKind::Unary && root->text == "&") {
      own = true;
      root = root->args[0];
    } else if (root->kind == ExprKind::Subscript && !root->args[0]->type.isPointer()) {
      root = root->args[0];
    } else {
      break;
    }
  }
  if (!own || root->kind != ExprKind::Var)
    return false;
  const Stmt *d = declaration(root->text);
  return d ? !d->isShared : param(root->text) != nullptr;
}

void KernelModel::addAccess(const ExprRef &e, Stmt *stmt, const std::vector<Stmt *> &path,
                            const std::vector<std::pair<ExprRef, bool>> &guards, bool read, bool write, bool atomic,
                            const std::string &op) {
  Access access;
  access.node = access.place = e;
  access.stmt = stmt;
  std::vector<ExprRef> subscripts;
  access.root = resolve(e, subscripts);
  access.array = str(access.root);
  const Stmt *d = access.root->kind == ExprKind::Var ? declaration(access.root->text) : nullptr;
  if (d && d->isShared)
    access.space = Space::Shared;
  else if ((d && !d->dims.empty()) || isPrivate(access.root))
    access.space = Space::Local;
  access.read = read;
  access.write = write;
  access.atomic = atomic;
  access.op = op;
  for (const ExprRef &s : subscripts) {
    access.subscripts.push_back(poly(s));
    access.wideIndex |= s->type.isInt() && s->type.bytes == 8;
  }
  access.bytes = e->type.bytes;
  access.path = path;
  access.guards = guards;
  resolveDifferences(access);
  if (write && access.space != Space::Local)
    written.insert(access.array);
  allAccesses.push_back(std::move(access));
}

void KernelModel::visitExpr(const ExprRef &e, Stmt *stmt, const std::vector<Stmt *> &path,
                            std::vector<std::pair<ExprRef, bool>> &guards, bool read, bool write,
                            const std::string &op) {
  auto sub = [&](const ExprRef &x) { visitExpr(x, stmt, path, guards, true, false, ""); };
  auto guarded = [&](const ExprRef &x, const ExprRef &condition, bool taken) {
    guards.emplace_back(condition, taken);
    sub(x);
    guards.pop_back();
  };
  switch (e->kind) {
  case ExprKind::Subscript: {
    bool element = !e->type.isPointer() || e->args[0]->type.cls == Type::Class::Pointer;
    ExprRef root = e;
    std::vector<ExprRef> indices;
    while (root->kind == ExprKind::Subscript && (indices.empty() || !root->type.isPointer() || isArray(root->type))) {
      indices.push_back(root->args[1]);
      root = root->args[0];
    }
    if (element)
      addAccess(e, stmt, path, guards, read, write, false, op);
    for (const ExprRef &index : indices)
      sub(index);
    if (root->kind == ExprKind::Subscript) // a pointer in an array of pointers
      sub(root);
    else if (root->kind != ExprKind::Var)
      sub(e->args[0]->kind == ExprKind::Subscript ? intLit(0) : e->args[0]);
    return;
  }
  case ExprKind::Member:
    if (e->args[0]->type.isPointer()) {
      addAccess(e, stmt, path, guards, read, write, false, op);
      return sub(e->args[0]);
    }
    {
      size_t first = allAccesses.size();
      visitExpr(e->args[0], stmt, path, guards, read, write, op);
      if (first < allAccesses.size() && allAccesses[first].place == e->args[0])
        allAccesses[first].place = e;
    }
    return;
  case ExprKind::Assign:
    sub(e->args[1]);
    return visitExpr(e->args[0], stmt, path, guards, e->text != "=", true, e->text);
  case ExprKind::IncDec:
    return visitExpr(e->args[0], stmt, path, guards, true, true, "+=");
  case ExprKind::Cond:
    sub(e->args[0]);
    guarded(e->args[1], e->args[0], true);
    guarded(e->args[2], e->args[0], false);
    return;
  case ExprKind::Binary:
    sub(e->args[0]);
    if (e->text == "&&" || e->text == "||")
      guarded(e->args[1], e->args[0], e->text == "&&");
    else
      sub(e->args[1]);
    return;
  case ExprKind::Call: {
    bool atomic = e->isAtomic;
    for (size_t i = 0; i < e->args.size(); ++i) {
      const ExprRef &arg = e->args[i];
      if (atomic && i == 0) {
        ExprRef target = arg->kind == ExprKind::Unary && arg->text == "&" ? arg->args[0] : subscript(arg, intLit(0), arg->type.pointee ? *arg->type.pointee : Type::makeInt());
        if (target->kind == ExprKind::Subscript || target->kind == ExprKind::Member) {
          ExprRef element = target;
          while (element->kind == ExprKind::Member && !element->args[0]->type.isPointer())
            element = element->args[0];
          addAccess(element, stmt, path, guards, true, true, true, e->text);
          allAccesses.back().place = target;
          for (const ExprRef &x : element->args)
            if (x->type.isInt())
              sub(x);
          continue;
        }
        written.insert(str(target));
      }
      sub(arg);
    }
    return;
  }
  case ExprKind::Unary:
    if (e->text == "&" && e->args[0]->kind == ExprKind::Subscript) { // an address, not an access
      for (const ExprRef &x : e->args[0]->args)
        if (x->type.isInt())
          sub(x);
      return;
    }
    return sub(e->args[0]);
  default:
    for (const ExprRef &arg : e->args)
      sub(arg);
  }
}

/// Whether control never falls out of the end of `s`.
static bool leaves(const Stmt &s) {
  if (s.kind == StmtKind::Return || s.kind == StmtKind::Break || s.kind == StmtKind::Continue)
    return true;
  if (s.kind == StmtKind::Block)
    return !s.body.empty() && leaves(*s.body.back());
  return s.kind == StmtKind::If && s.body.size() == 2 && leaves(*s.body[0]) && leaves(*s.body[1]);
}

void KernelModel::visitAccesses(Stmt &s, std::vector<Stmt *> &path, std::vector<std::pair<ExprRef, bool>> &guards) {
  ownExprs(s, [&](ExprRef &e) { visitExpr(e, &s, path, guards, true, false, ""); });
  if (s.init)
    visitAccesses(*s.init, path, guards);
  path.push_back(&s);
  for (size_t i = 0; i < s.body.size(); ++i) {
    bool conditional = s.kind == StmtKind::If;
    bool loop = s.kind == StmtKind::For || s.kind == StmtKind::While;
    if (conditional || (loop && s.expr))
      guards.emplace_back(s.expr, i == 0);
    size_t before = guards.size();
    Stmt &child = *s.body[i];
    visitAccesses(child, path, guards);
    guards.resize(before);
    if (conditional || (loop && s.expr))
      guards.pop_back();
    // What follows `if (c) return;` runs under !c.
    if (s.kind == StmtKind::Block && child.kind == StmtKind::If && leaves(*child.body[0]))
      guards.emplace_back(child.expr, false);
  }
  path.pop_back();
}

void KernelModel::collectAccesses() {
  std::vector<Stmt *> path;
  std::vector<std::pair<ExprRef, bool>> guards;
  visitAccesses(*theKernel.body, path, guards);
}

bool KernelModel::writesArray(const std::string &array) const { return written.count(array) != 0; }

std::vector<ExprRef> Access::members() const {
  std::vector<ExprRef> result;
  for (ExprRef e = place; e != node; e = e->args[0])
    result.insert(result.begin(), e);
  return result;
}

bool optiml::sameMember(const Access &a, const Access &b) {
  std::vector<ExprRef> x = a.members(), y = b.members();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (x[i]->text != y[i]->text)
      return false;
  return true;
}

bool KernelModel::writesWhatIsRead(const Access &read) const {
  bool seen = false;
  for (const Access &access : allAccesses)
    if (access.write && access.array == read.array) {
      if (sameMember(access, read))
        return true;
      seen = true;
    }
  return !seen && writesArray(read.array);
}

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

void KernelModel::addFacts(const ExprRef &condition, bool taken, std::vector<Poly> &into) const {
  if (condition->kind == ExprKind::Unary && condition->text == "!")
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
    static const std::map<std::string, std::string> inverse = {{"<", ">="}, {">=", "<"}, {">", "<="},
                                                               {"<=", ">"}, {"==", "!="}, {"!=", "=="}};
    auto it = inverse.find(op);
    if (it == inverse.end())
      return;
    op = it->second;
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

void KernelModel::addLoopFacts(const std::vector<Stmt *> &statements, std::vector<Poly> &into) const {
  for (Stmt *s : statements)
    if (auto loop = asCountedLoop(*s)) {
      Poly v = Poly::atom(loop->var), lower = poly(loop->lower), upper = poly(loop->upper);
      if (stable(lower))
        into.push_back(v - lower);
      if (stable(upper))
        into.push_back(upper - v - Poly(1));
    } else if (auto strided = asStridedLoop(*s); strided && turns.count(strided->var)) {
      if (Poly lower = poly(strided->lower); stable(lower)) // the end is the loop's condition
        into.push_back(Poly::atom(strided->var) - lower);
    }
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::string suffix(1, char('x' + axis));
    into.push_back(Poly::atom("blockIdx." + suffix));
    if (!block[axis])
      into.push_back(Poly::atom("globalIdx." + suffix));
    into.push_back(Poly::atom("gridDim." + suffix) - Poly::atom("blockIdx." + suffix) - Poly(1));
    if (block[axis] == 1)
      continue;
    Poly t = Poly::atom("threadIdx." + suffix);
    into.push_back(t);
    into.push_back((block[axis] ? Poly(block[axis]) : Poly::atom("blockDim." + suffix)) - t - Poly(1));
  }
}

std::vector<Poly> KernelModel::facts(const Access &access) const {
  std::vector<Poly> result;
  for (const auto &[condition, taken] : access.guards)
    addFacts(condition, taken, result);
  addLoopFacts(access.path, result);
  return result;
}
