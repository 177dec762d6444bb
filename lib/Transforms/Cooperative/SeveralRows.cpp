//===- SeveralRows.cpp - several rows for a group of lanes ----------------===//
#include "SeveralRows.h"
#include "Distribute.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"

using namespace optiml;

/// Where the rows fill whole groups, one test of "row < end" stands for all rows of a group. These tests get names in
/// place of the row, which do not differ between rows; the answer is what they stand for.
static std::map<std::string, ExprRef> testFirstRows(KernelState &state, Kernel &kernel, int64_t each,
                                                    const std::optional<Poly> &end) {
  std::map<std::string, ExprRef> rows;
  const KernelModel model(kernel, {0, 0, 0});
  const auto text = end ? planText(model, *end) : std::nullopt;
  if (!text)
    return rows;
  std::set<std::string> taken = allNames(kernel);
  const Poly inside = *end - Poly::atom(axisName("globalIdx", 0)) - Poly(1);
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::If || s.expr->kind != ExprKind::Binary || s.expr->text == "&&" || s.expr->text == "||")
      return;
    std::vector<Poly> facts;
    model.addFacts(s.expr, true, facts);
    if (facts.size() != 1 || !(facts.front() == inside))
      return;
    s.expr = rewrite(s.expr, [&](const ExprRef &e) -> ExprRef {
      if (!(model.poly(e) == Poly::atom(axisName("globalIdx", 0))))
        return nullptr;
      const std::string name = freshName(taken, "first_row");
      rows[name] = e;
      return var(name, e->type);
    });
  });
  if (!rows.empty())
    state.require("(" + *text + ") % " + std::to_string(each) + " == 0", "groups have all of their rows");
  return rows;
}

llvm::Error optiml::giveSeveralRows(KernelState &state, Kernel &kernel, int64_t each, const std::optional<Poly> &end) {
  if (anyStmt(*kernel.body, [](const Stmt &s) { return s.isShared || s.kind == StmtKind::Barrier; }))
    return notApplicable("groups that use shared memory have one row each");
  const std::string row = axisName("globalIdx", 0), copied = axisName("globalIdx", 2);
  if (anyExpr(*kernel.body, [&](const ExprRef &e) { return isBuiltin(e, copied); }))
    return notApplicable("a kernel of three axes has one row a group");
  const auto firstRows = testFirstRows(state, kernel, each, end);
  // An axis of its own: lanes are threads along x, and all of a group have the same rows.
  renameIndex(kernel, row, copied);
  inlinePointerLocals(kernel);
  KernelModel model(kernel, {0, 0, 0});
  CopyAxis axis;
  axis.axis = 2;
  axis.factor = each;
  axis.var = freshName(kernel, "row");
  auto body = Distributor(kernel, model, {axis}, 0, [](Stmt &) { return true; }).run();
  if (!body)
    return body.takeError();
  kernel.body = *body;
  for (const auto &[name, was] : firstRows)
    rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef { return isVar(e, name) ? was : ExprRef(); });
  renameIndex(kernel, copied, row);
  return llvm::Error::success();
}

bool optiml::rowsShareReads(const Kernel &kernel) {
  const KernelModel model(kernel, {0, 0, 0});
  const std::set<std::string> rows = {axisName("globalIdx", 0)};
  for (const auto &[path, loop] : countedLoops(kernel))
    for (const Access &access : model.accesses()) {
      if (access.space != Space::Global || !access.read || access.write || !insideOf(access, loop))
        continue;
      bool ofCounter = false, ofRow = false;
      for (const Poly &p : access.subscripts) {
        ofCounter |= model.dependsOn(p, {loop->init->text});
        ofRow |= model.dependsOn(p, rows);
      }
      if (ofCounter && !ofRow)
        return true;
    }
  return false;
}
