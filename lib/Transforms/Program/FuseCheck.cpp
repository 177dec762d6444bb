//===- FuseCheck.cpp - do blocks stay within their rows? ------------------===//
//
// What cannot be proven of indices is looked at before the launch: a kernel of one block runs through all that decides
// over them (loops, conditions, the variables in these), with a test in place of each access. The answer depends on
// arguments alone, so that one look at each set of them is enough. A condition that depends on memory, or on the row,
// is taken to go both ways.
//
//===----------------------------------------------------------------------===//
#include "FuseInBlocks.h"
#include "ThreadMapping.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

class CheckMaker {
public:
  CheckMaker(const KernelModel &model, const std::vector<CheckedAccess> &accesses, unsigned ofRow,
             const std::string &outside)
      : model(model), ofRow(ofRow), outside(outside) {
    for (const CheckedAccess &access : accesses)
      checks[access.row.access->stmt].push_back(&access);
  }

  llvm::Expected<std::vector<StmtRef>> run() {
    // What checks, and what decides over them, need; until nothing is added.
    for (size_t before = ~size_t(0); before != needed.size();) {
      before = needed.size();
      refused.clear();
      std::vector<StmtRef> body = listOf(model.kernel().body->body, false);
      if (!refused.empty())
        return notApplicable("{0}", refused);
      if (before == needed.size())
        return body;
    }
    return notApplicable("no index is to be looked at");
  }

private:
  const KernelModel &model;
  const unsigned ofRow;
  const std::string outside;
  std::map<const Stmt *, std::vector<const CheckedAccess *>> checks;
  std::set<std::string> needed;
  std::string refused;

  void refuse(const Stmt &s, const char *why) {
    if (refused.empty())
      refused = llvm::formatv("which elements are accessed {0} (line {1})", why, s.line);
  }

  /// An element of a list that is an argument of the kernel.
  bool isArgument(const ExprRef &e) const {
    return e->kind == ExprKind::Subscript && e->args[0]->kind == ExprKind::Member &&
           e->args[0]->args[0]->kind == ExprKind::Var && model.param(e->args[0]->args[0]->text) &&
           !e->args[0]->args[0]->type.isPointer();
  }

  /// It is the same for all rows, and known before the launch.
  bool isKnown(const ExprRef &e) const {
    return !hasEffects(e) && !(model.varies(e) & (ofRow | FromMemory)) && !anyNode(e, [&](const ExprRef &node) {
      return (isLoad(node) && !isArgument(node)) || node->kind == ExprKind::Opaque;
    });
  }

  void need(const ExprRef &e) {
    for (const std::string &name : namesIn(e))
      needed.insert(name);
  }

  bool changesNeeded(const Stmt &s) const {
    if (s.kind == StmtKind::Decl)
      return needed.count(s.text) != 0 && !s.isShared;
    return s.kind == StmtKind::Expr && isChange(s.expr) && s.expr->args[0]->kind == ExprKind::Var &&
           needed.count(s.expr->args[0]->text) != 0;
  }

  bool isKept(const Stmt &s) const {
    return anyStmt(s, [&](const Stmt &inner) { return checks.count(&inner) || changesNeeded(inner); });
  }

  /// if (offset < 0 || offset >= pitch) *outside = 1;
  void addCheck(const CheckedAccess &checked, std::vector<StmtRef> &into) {
    const Access &access = *checked.row.access;
    const ExprRef offset = polyExpr(model, checked.row.offset), pitch = polyExpr(model, checked.pitch);
    if (!isKnown(offset))
      return refuse(*access.stmt, "depends on data");
    need(offset);
    auto test = [](const char *op, ExprRef a, ExprRef b) { return binary(op, a, b, Type::makeBool()); };
    ExprRef condition = test("||", test("<", offset, intLit(0)), test(">=", offset, pitch));
    for (const auto &[guard, taken] : access.guards) { // of ?: and &&; an if stands around it anyway
      const bool stands = llvm::any_of(access.path, [&, guard = guard](const Stmt *s) { return s->expr == guard; });
      if (stands || !isKnown(guard) || !model.stable(guard))
        continue;
      need(guard);
      condition = logicalAnd(taken ? guard : logicalNot(guard), condition);
    }
    into.push_back(ifStmt(
        condition,
        exprStmt(assign("=", subscript(var(outside, Type::makePointer(Type::makeInt())), intLit(0), Type::makeInt()),
                        intLit(1)))));
  }

  /// `maybe`: whether it runs is not known.
  std::vector<StmtRef> listOf(const std::vector<StmtRef> &list, bool maybe) {
    std::vector<StmtRef> result;
    for (const StmtRef &s : list)
      if (isKept(*s) || s->kind == StmtKind::Break || s->kind == StmtKind::Continue)
        addStmt(*s, maybe, result);
    return result;
  }

  void addStmt(Stmt &s, bool maybe, std::vector<StmtRef> &into) {
    if (auto it = checks.find(&s); it != checks.end()) {
      if (isLoop(s))
        return refuse(s, "is said by a loop's own condition");
      for (const CheckedAccess *access : it->second)
        addCheck(*access, into);
    }
    switch (s.kind) {
    case StmtKind::Block: into.push_back(block(listOf(s.body, maybe))); return;
    case StmtKind::Decl:
    case StmtKind::Expr: return addChange(s, maybe, into);
    case StmtKind::If: return addBranch(s, maybe, into);
    case StmtKind::For: return addLoop(s, maybe, into);
    case StmtKind::Break:
    case StmtKind::Continue:
      if (!maybe)
        into.push_back(clone(std::make_shared<Stmt>(s)));
      return;
    default: return refuse(s, "depends on text that is kept as it is, or on a loop that is not counted");
    }
  }

  void addChange(Stmt &s, bool maybe, std::vector<StmtRef> &into) {
    if (!changesNeeded(s))
      return;
    const ExprRef value = s.kind == StmtKind::Decl ? s.expr : s.expr->args.back();
    if (maybe && s.kind != StmtKind::Decl)
      return refuse(s, "depends on data");
    if (s.type.isPointer() && s.kind == StmtKind::Decl)
      return; // a place in an array: the index has all of it
    if ((value && !isKnown(value)) || !s.dims.empty())
      return refuse(s, "depends on data");
    if (value)
      need(value);
    into.push_back(clone(std::make_shared<Stmt>(s)));
  }

  void addBranch(Stmt &s, bool maybe, std::vector<StmtRef> &into) {
    const bool known = isKnown(s.expr);
    if (!known) {
      for (const StmtRef &branch : s.body)
        into.push_back(block(listOf(branch->body, true)));
      return;
    }
    need(s.expr);
    into.push_back(ifStmt(s.expr, block(listOf(s.body[0]->body, maybe)),
                          s.body.size() > 1 ? block(listOf(s.body[1]->body, maybe)) : nullptr));
  }

  void addLoop(Stmt &s, bool maybe, std::vector<StmtRef> &into) {
    const bool known = s.init && s.init->kind == StmtKind::Decl && s.init->expr && s.expr && s.step &&
                       isKnown(s.init->expr) && isKnown(s.expr) && isChange(s.step) &&
                       llvm::all_of(llvm::drop_begin(s.step->args), [&](const ExprRef &e) { return isKnown(e); });
    if (!known)
      return refuse(s, "depends on a loop over data");
    need(s.init->expr);
    need(s.expr);
    need(s.step);
    StmtRef loop = std::make_shared<Stmt>(s);
    loop->body = {block(listOf(s.body[0]->body, maybe))};
    into.push_back(loop);
  }
};

} // namespace

llvm::Expected<std::shared_ptr<Kernel>> optiml::checkOfRows(const Kernel &kernel, const KernelModel &model,
                                                            const std::vector<CheckedAccess> &accesses, unsigned ofRow,
                                                            std::set<std::string> &taken) {
  const std::string outside = freshName(taken, "outside");
  auto body = CheckMaker(model, accesses, ofRow, outside).run();
  if (!body)
    return body.takeError();
  auto check = std::make_shared<Kernel>(kernel);
  check->name = kernel.name + "_check";
  check->params.push_back({outside, Type::makePointer(Type::makeInt()), {}});
  check->body = block(std::move(*body));
  return check;
}
