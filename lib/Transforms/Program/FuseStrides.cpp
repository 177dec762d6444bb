//===- FuseStrides.cpp - grid-stride loops in fused kernels ---------------===//
//
// for (i = the thread's place; i < n; i += threads of the grid): every i belongs to one thread. Under analysis such a
// loop stands as for (i = 0; i < n; ++i), of which each thread does a part, so that bounds are seen; it is put back
// afterwards.
//
//===----------------------------------------------------------------------===//
#include "FuseKernels.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// What `e` adds to the variable: i += stride, i = i + stride.
static ExprRef addedTo(const ExprRef &e, const std::string &name) {
  if (!e || e->kind != ExprKind::Assign || !isVar(e->args[0], name))
    return nullptr;
  if (e->text == "+=")
    return e->args[1];
  const ExprRef &value = e->args[1];
  if (e->text != "=" || !isBinary(value, "+"))
    return nullptr;
  for (unsigned i = 0; i < 2; ++i)
    if (isVar(value->args[i], name))
      return value->args[1 - i];
  return nullptr;
}

/// T i = …; while (c) { …; i += s; }  becomes  for (T i = …; c; i += s) { … }
static void countWhiles(Stmt &block, const KernelModel &model) {
  for (size_t at = 0; at < block.body.size(); ++at) {
    Stmt &loop = *block.body[at];
    if (loop.kind != StmtKind::While || loop.body[0]->body.empty())
      continue;
    StmtRef last = loop.body[0]->body.back();
    if (last->kind != StmtKind::Expr || last->expr->kind != ExprKind::Assign ||
        last->expr->args[0]->kind != ExprKind::Var)
      continue;
    const std::string name = last->expr->args[0]->text;
    auto decl = llvm::find_if(
        block.body, [&](const StmtRef &s) { return s->kind == StmtKind::Decl && s->text == name && s->expr; });
    if (decl == block.body.end() || size_t(decl - block.body.begin()) > at || !model.stable((*decl)->expr) ||
        !addedTo(last->expr, name))
      continue;
    bool elsewhere = llvm::any_of(
        block.body, [&](const StmtRef &s) { return s.get() != &loop && s != *decl && countMentions(*s).count(name); });
    if (elsewhere || holdsKind(*loop.body[0], {StmtKind::Continue, StmtKind::Opaque}))
      continue;
    loop.kind = StmtKind::For;
    loop.init = *decl;
    loop.step = last->expr;
    loop.body[0]->body.pop_back();
    block.body.erase(decl);
    --at;
  }
}

void optiml::hideStrides(Kernel &kernel, StrideLoops &strides) {
  {
    KernelModel model(kernel);
    walk(*kernel.body, [&](Stmt &s) {
      if (s.kind == StmtKind::Block)
        countWhiles(s, model);
    });
  }
  KernelModel model(kernel);
  const Poly threads = Poly::atom("gridDim.x") * Poly::atom("blockDim.x");
  auto isStride = [&](const Stmt &s) {
    if (!s.init || s.init->kind != StmtKind::Decl || !s.init->expr || !s.init->type.isInt())
      return false;
    ExprRef stride = addedTo(s.step, s.init->text);
    return stride && !countChanges(*s.body[0]).count(s.init->text) &&
           model.poly(s.init->expr) == Poly::atom("globalIdx.x") && model.poly(stride) == threads;
  };
  std::vector<Stmt *> found;
  std::set<std::string> ordinary; // sibling loops may share their variable's name, by which loops are known here
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::For)
      return;
    if (isStride(s))
      found.push_back(&s);
    else if (s.init)
      ordinary.insert(s.init->text);
  });
  for (Stmt *stride : found) {
    Stmt &s = *stride;
    const std::string &name = s.init->text;
    if (ordinary.count(name))
      continue;
    StrideLoop real{s.init->expr, s.step};
    s.init->expr = intLit(0);
    s.step = assign("+=", var(name, s.init->type), intLit(1));
    if (asCountedLoop(s)) {
      strides[name] = real;
    } else {
      s.init->expr = real.first;
      s.step = real.step;
    }
  }
}

void optiml::showStrides(Kernel &kernel, const StrideLoops &strides) {
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::For || !s.init)
      return;
    if (auto real = strides.find(s.init->text); real != strides.end()) {
      s.init->expr = real->second.first;
      s.step = real->second.step;
    }
  });
}
