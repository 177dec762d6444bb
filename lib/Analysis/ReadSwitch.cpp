//===- ReadSwitch.cpp - choices of cases as conditions --------------------===//
//
// A switch each of whose cases ends by itself is an if with as many branches: its labels are different constants, so
// that at most one comparison holds, and they are all made before a case runs.
//
//===----------------------------------------------------------------------===//
#include "KernelReader.h"

using namespace optiml;

namespace {
struct Case {
  std::vector<const cl::Expr *> labels;
  bool isDefault = false;
  std::vector<const cl::Stmt *> body;
};

/// A `break` of the switch, or one of its labels, within a statement of a case.
class Inside : public cl::DynamicRecursiveASTVisitor {
public:
  bool found = false;
  bool VisitStmt(cl::Stmt *s) override {
    found |= llvm::isa<cl::SwitchCase>(s) || (!loops && llvm::isa<cl::BreakStmt>(s));
    return true;
  }
  bool TraverseForStmt(cl::ForStmt *s) override {
    return within([&] { return cl::DynamicRecursiveASTVisitor::TraverseForStmt(s); });
  }
  bool TraverseWhileStmt(cl::WhileStmt *s) override {
    return within([&] { return cl::DynamicRecursiveASTVisitor::TraverseWhileStmt(s); });
  }
  bool TraverseDoStmt(cl::DoStmt *s) override {
    return within([&] { return cl::DynamicRecursiveASTVisitor::TraverseDoStmt(s); });
  }
  bool TraverseSwitchStmt(cl::SwitchStmt *) override { return true; } // its own
  bool TraverseLambdaExpr(cl::LambdaExpr *) override { return true; }

private:
  unsigned loops = 0;
  template <typename F> bool within(F traverse) {
    ++loops;
    bool result = traverse();
    --loops;
    return result;
  }
};
} // namespace

static void appendFlat(const cl::Stmt *s, std::vector<const cl::Stmt *> &out) {
  if (auto *compound = llvm::dyn_cast<cl::CompoundStmt>(s))
    for (const cl::Stmt *child : compound->body())
      appendFlat(child, out);
  else
    out.push_back(s);
}

/// Ends the case's body: nothing falls through. Its `break` goes.
static bool closeCase(Case &one, bool isLast) {
  std::vector<const cl::Stmt *> flat;
  for (const cl::Stmt *s : one.body)
    appendFlat(s, flat);
  one.body = flat;
  bool leaves = !flat.empty() && llvm::isa<cl::ReturnStmt, cl::ContinueStmt>(flat.back());
  if (!flat.empty() && llvm::isa<cl::BreakStmt>(flat.back()))
    one.body.pop_back();
  else if (!leaves && !isLast)
    return false;
  Inside inside;
  for (const cl::Stmt *s : one.body)
    inside.TraverseStmt(const_cast<cl::Stmt *>(s));
  return !inside.found;
}

/// The cases in their order; empty when one falls through, or is left from within.
static std::vector<Case> casesOf(const cl::SwitchStmt *source) {
  auto *list = llvm::dyn_cast<cl::CompoundStmt>(source->getBody());
  if (!list)
    return {};
  std::vector<Case> cases;
  for (const cl::Stmt *s : list->body()) {
    if (llvm::isa<cl::SwitchCase>(s)) {
      if (!cases.empty() && !closeCase(cases.back(), false))
        return {};
      cases.emplace_back();
    }
    while (auto *label = llvm::dyn_cast<cl::SwitchCase>(s)) {
      auto *value = llvm::dyn_cast<cl::CaseStmt>(label);
      if (value && value->getRHS()) // a range
        return {};
      if (value)
        cases.back().labels.push_back(value->getLHS());
      cases.back().isDefault |= !value;
      s = label->getSubStmt();
    }
    if (cases.empty())
      return {};
    cases.back().body.push_back(s);
  }
  if (cases.empty() || !closeCase(cases.back(), true))
    return {};
  return cases;
}

bool KernelReader::readSwitch(const cl::SwitchStmt *source, std::vector<StmtRef> &out) {
  if (source->getInit() || source->getConditionVariable())
    return false;
  std::vector<Case> cases = casesOf(source);
  if (cases.empty())
    return false;
  ExprRef value = hoisted(source->getCond(), out);
  bool scoped = source->getCond()->getType()->isScopedEnumeralType();
  if (scoped)
    value = castTo(value->type.bytes > 4 ? Type::makeLong() : Type::makeInt(), value); // its constants are numbers here
  ExprRef plain = value;
  while (plain->kind == ExprKind::Cast)
    plain = plain->args[0];
  bool again = plain->kind == ExprKind::Builtin || plain->kind == ExprKind::IntLit ||
               (isPlace(plain) && !placeLoads(plain) && plain->kind != ExprKind::Subscript);
  if (!again) { // compared several times
    StmtRef chosen = newStmt(StmtKind::Decl, source);
    chosen->text = uniqueName("chosen");
    chosen->type = scoped ? value->type : convert(source->getCond()->getType().getUnqualifiedType());
    chosen->expr = value;
    out.push_back(chosen);
    value = var(chosen->text, chosen->type);
  }
  const cl::CompoundStmt *outer = std::exchange(scope, llvm::cast<cl::CompoundStmt>(source->getBody()));
  std::vector<StmtRef> otherwise;
  std::vector<StmtRef> branches;
  for (const Case &one : cases) {
    StmtRef list = block();
    for (const cl::Stmt *s : one.body)
      statement(s, list->body);
    if (one.isDefault) {
      otherwise = list->body;
      continue;
    }
    StmtRef branch = newStmt(StmtKind::If, source);
    branch->line = line(one.labels[0]->getBeginLoc());
    for (const cl::Expr *label : one.labels) {
      ExprRef constant = intConstant(label);
      if (constant->kind == ExprKind::Cast && value->type.text != constant->type.text) // of a scoped enumeration
        constant = constant->args[0];
      ExprRef equals = binary("==", value, constant);
      branch->expr = branch->expr ? binary("||", branch->expr, equals) : equals;
    }
    branch->body = {list};
    branches.push_back(branch);
  }
  scope = outer;
  for (size_t i = branches.size(); i-- > 0;) {
    if (!otherwise.empty())
      branches[i]->body.push_back(block(std::move(otherwise)));
    otherwise = {branches[i]};
  }
  out.insert(out.end(), otherwise.begin(), otherwise.end());
  return true;
}
