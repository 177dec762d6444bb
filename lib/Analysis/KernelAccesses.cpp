//===- KernelAccesses.cpp - the memory accesses of a kernel ---------------===//
#include "optiml/Analysis/IntegerSet.h"
#include "optiml/Analysis/KernelModel.h"
#include <algorithm>

using namespace optiml;

bool optiml::isArray(const Type &type) {
  return type.isPointer() && (llvm::StringRef(type.text).ends_with("]") || type.bytes > 8);
}

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
    if (isBinary(root, "+") && !subscripts.empty()) {
      bool left = root->args[0]->type.isPointer();
      subscripts[0] = add(root->args[left ? 1 : 0], subscripts[0]);
      root = root->args[left ? 0 : 1];
    } else if (isUnary(root, "&") && root->args[0]->kind == ExprKind::Subscript && !subscripts.empty()) {
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
    } else if (isUnary(root, "&")) {
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

void KernelModel::AccessVisitor::add(const ExprRef &e, bool read, bool write, const std::string &op, bool atomic) {
  Access access;
  access.node = access.place = e;
  access.stmt = stmt;
  std::vector<ExprRef> subscripts;
  access.root = model.resolve(e, subscripts);
  access.array = str(access.root);
  const Stmt *d = access.root->kind == ExprKind::Var ? model.declaration(access.root->text) : nullptr;
  if (d && d->isShared)
    access.space = Space::Shared;
  else if ((d && !d->dims.empty()) || model.isPrivate(access.root))
    access.space = Space::Local;
  access.read = read;
  access.write = write;
  access.atomic = atomic;
  access.op = op;
  for (const ExprRef &s : subscripts) {
    access.subscripts.push_back(model.poly(s));
    access.wideIndex |= s->type.isInt() && s->type.bytes == 8;
  }
  bool isOfPointee = e->kind == ExprKind::Member && e->args[0]->type.pointee; // p->x is a part of p[0]
  access.bytes = isOfPointee ? e->args[0]->type.pointee->bytes : e->type.bytes;
  access.path = path;
  access.guards = guards;
  model.resolveDifferences(access);
  if (write && access.space != Space::Local) {
    model.written.insert(access.array);
    model.written.insert(str(model.arrayAround(access.root)));
  }
  model.allAccesses.push_back(std::move(access));
}

void KernelModel::AccessVisitor::guarded(const ExprRef &e, const ExprRef &condition, bool taken) {
  guards.emplace_back(condition, taken);
  visit(e);
  guards.pop_back();
}

void KernelModel::AccessVisitor::element(const ExprRef &e, bool read, bool write, const std::string &op) {
  bool element = !e->type.isPointer() || e->args[0]->type.cls == Type::Class::Pointer;
  ExprRef root = e;
  std::vector<ExprRef> indices;
  while (root->kind == ExprKind::Subscript && (indices.empty() || !root->type.isPointer() || isArray(root->type))) {
    indices.push_back(root->args[1]);
    root = root->args[0];
  }
  if (element)
    add(e, read, write, op);
  for (const ExprRef &index : indices)
    visit(index);
  if (root->kind == ExprKind::Subscript) // a pointer in an array of pointers
    visit(root);
  else if (root->kind != ExprKind::Var)
    visit(e->args[0]->kind == ExprKind::Subscript ? intLit(0) : e->args[0]);
}

/// What is updated atomically; false when it is neither an element nor a member.
bool KernelModel::AccessVisitor::updated(const ExprRef &call) {
  const ExprRef &arg = call->args[0];
  ExprRef target = isUnary(arg, "&")
                       ? arg->args[0]
                       : subscript(arg, intLit(0), arg->type.pointee ? *arg->type.pointee : Type::makeInt());
  if (target->kind != ExprKind::Subscript && target->kind != ExprKind::Member) {
    model.written.insert(str(target));
    return false;
  }
  ExprRef element = target;
  while (element->kind == ExprKind::Member && !element->args[0]->type.isPointer())
    element = element->args[0];
  add(element, true, true, call->text, /*atomic=*/true);
  model.allAccesses.back().place = target;
  integersOf(element);
  return true;
}

void KernelModel::AccessVisitor::integersOf(const ExprRef &place) {
  for (const ExprRef &e : place->args)
    if (e->type.isInt())
      visit(e);
}

void KernelModel::AccessVisitor::visit(const ExprRef &e, bool read, bool write, const std::string &op) {
  switch (e->kind) {
  case ExprKind::Subscript: return element(e, read, write, op);
  case ExprKind::Member: {
    if (e->args[0]->type.isPointer()) {
      add(e, read, write, op);
      return visit(e->args[0]);
    }
    size_t first = model.allAccesses.size();
    visit(e->args[0], read, write, op);
    if (first < model.allAccesses.size() && model.allAccesses[first].place == e->args[0])
      model.allAccesses[first].place = e;
    return;
  }
  case ExprKind::Assign: visit(e->args[1]); return visit(e->args[0], e->text != "=", true, e->text);
  case ExprKind::IncDec: return visit(e->args[0], true, true, "+=");
  case ExprKind::Cond:
    visit(e->args[0]);
    guarded(e->args[1], e->args[0], true);
    return guarded(e->args[2], e->args[0], false);
  case ExprKind::Binary:
    visit(e->args[0]);
    if (e->text == "&&" || e->text == "||")
      return guarded(e->args[1], e->args[0], e->text == "&&");
    return visit(e->args[1]);
  case ExprKind::Call:
    for (size_t i = 0; i < e->args.size(); ++i)
      if (!(e->isAtomic && i == 0 && updated(e)))
        visit(e->args[i]);
    return;
  case ExprKind::Unary:
    if (e->text == "&" && e->args[0]->kind == ExprKind::Subscript) // an address, not an access
      return integersOf(e->args[0]);
    return visit(e->args[0]);
  default:
    for (const ExprRef &arg : e->args)
      visit(arg);
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

void KernelModel::AccessVisitor::visit(Stmt &s) {
  stmt = &s;
  ownExprs(s, [&](ExprRef &e) { visit(e); });
  if (s.init)
    visit(*s.init);
  path.push_back(&s);
  bool tests = s.kind == StmtKind::If || ((s.kind == StmtKind::For || s.kind == StmtKind::While) && s.expr);
  for (size_t i = 0; i < s.body.size(); ++i) {
    Stmt &child = *s.body[i];
    size_t before = guards.size();
    if (tests)
      guards.emplace_back(s.expr, i == 0);
    visit(child);
    guards.resize(before);
    // What follows `if (c) return;` runs under !c.
    if (s.kind == StmtKind::Block && child.kind == StmtKind::If && leaves(*child.body[0]))
      guards.emplace_back(child.expr, false);
  }
  path.pop_back();
}

void KernelModel::collectAccesses() { AccessVisitor{*this}.visit(*theKernel.body); }

/// X[i] for X[i].v, and p->v, which is a part of p[0], itself; null where no element of records holds the array. What
/// a pointer in a record leads to lies elsewhere.
static ExprRef recordAround(const ExprRef &array) {
  ExprRef e = array;
  while (e->kind == ExprKind::Member || e->kind == ExprKind::Subscript) {
    if (e->type.isPointer() && !isArray(e->type))
      return nullptr;
    const Type &base = e->args[0]->type;
    if (base.isPointer() && (e->kind == ExprKind::Member || !isArray(base)))
      return e == array && e->kind == ExprKind::Subscript ? nullptr : e;
    e = e->args[0];
  }
  return nullptr;
}

ExprRef KernelModel::arrayAround(const ExprRef &root) const {
  ExprRef element = recordAround(root);
  std::vector<ExprRef> subscripts;
  return element ? resolve(element, subscripts) : root;
}

Access KernelModel::ofWholeRecord(const Access &access) const {
  ExprRef element = access.space == Space::Global ? recordAround(access.root) : nullptr;
  if (!element)
    return access;
  Access whole = access;
  std::vector<ExprRef> subscripts;
  whole.node = element;
  whole.root = resolve(element, subscripts);
  whole.array = str(whole.root);
  whole.subscripts.clear();
  for (const ExprRef &s : subscripts)
    whole.subscripts.push_back(poly(s));
  const Type *pointee = element->kind == ExprKind::Member ? element->args[0]->type.pointee.get() : &element->type;
  whole.bytes = pointee ? pointee->bytes : 0;
  return whole;
}

std::vector<Access> KernelModel::accessesOfWholeRecords() const {
  std::vector<Access> result;
  for (const Access &access : allAccesses)
    result.push_back(ofWholeRecord(access));
  return result;
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
  const Access wholeRead = ofWholeRecord(read);
  for (const Access &access : allAccesses) {
    if (!access.write)
      continue;
    const Access whole = ofWholeRecord(access);
    if (whole.array == wholeRead.array) {
      if (sameMember(whole, wholeRead))
        return true;
      seen = true;
    }
  }
  return !seen && writesArray(wholeRead.array);
}

/// An index that wraps around on the way is back in the end: by what is known, (i - first + 12) * 25, or because
/// addresses have 64 bits as well, so that a[base + i - 1] is the element before a[base + i] whatever base is.
void KernelModel::resolveWrapping(Access &access) const {
  if (access.subscripts.size() != 1 || access.node->kind != ExprKind::Subscript)
    return;
  const ExprRef &e = access.node->args[1];
  Poly &index = access.subscripts[0];
  auto isDifference = [&](const std::string &atom) {
    ExprRef difference = atomExpr(atom);
    return difference && isBinary(difference, "-") && difference->type.cls == Type::Class::Int &&
           !difference->type.isSigned;
  };
  if (e->type.isSigned || e->type.cls != Type::Class::Int || llvm::none_of(index.atoms(), isDifference) ||
      !(poly(e) == index))
    return;
  const Poly whole = withWrapping(e);
  if (!stable(whole) || llvm::any_of(whole.atoms(), isDifference))
    return;
  std::vector<Poly> negative = facts(access);
  negative.push_back(Poly(-1) - whole);
  if (e->type.bytes == 8 || isEmptySet(negative))
    index = whole;
}
