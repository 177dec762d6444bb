//===- ThreadLocals.cpp - locals that depend on the thread ----------------===//
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"

using namespace optiml;

static bool isThread(const ExprRef &e) { return isBuiltin(e, "threadIdx.x"); }

std::set<std::string> optiml::inlineThreadLocals(Kernel &kernel) {
  std::set<std::string> loaded;
  for (bool changed = true; changed;) {
    changed = false;
    KernelModel model(kernel, {0, 0, 0});
    auto mayChangeLater = [&](const ExprRef &n) {
      if (n->kind == ExprKind::Var && !model.param(n->text)) {
        const Stmt *local = model.declaration(n->text);
        return !local || local->isShared || !local->dims.empty() || !model.singleAssignment(n->text);
      }
      if (!isLoad(n))
        return false;
      ExprRef root = subscriptRoot(n);
      return root->kind != ExprKind::Var || !model.param(root->text) || model.writesArray(root->text);
    };
    auto keepsItsValue = [&](const ExprRef &e) { return onlyComputes(e) && !anyNode(e, mayChangeLater); };
    const Stmt *chosen = nullptr;
    walk(*kernel.body, [&](Stmt &s) {
      if (!chosen && s.kind == StmtKind::Decl && s.expr && !s.isShared && s.dims.empty() && anyNode(s.expr, isThread) &&
          model.singleAssignment(s.text) == &s && keepsItsValue(s.expr))
        chosen = &s;
    });
    if (!chosen)
      return loaded;
    walk(chosen->expr, [&](const ExprRef &e) {
      if (isLoad(e))
        loaded.insert(subscriptRoot(e)->text);
    });
    const std::string name = chosen->text;
    ExprRef value = castTo(chosen->type.withConst(false), chosen->expr);
    forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
      changed |= std::erase_if(list, [&](const StmtRef &s) { return s.get() == chosen; }) > 0;
    });
    if (changed)
      rewriteExprs(*kernel.body, [&](const ExprRef &e) { return isVar(e, name) ? value : nullptr; });
  }
  return loaded;
}
