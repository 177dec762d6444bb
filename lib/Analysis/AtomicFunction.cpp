//===- AtomicFunction.cpp - loops around atomicCAS ------------------------===//
#include "optiml/Analysis/AtomicFunction.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/Expr.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/StmtCXX.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <map>
#include <set>
#include <vector>

using namespace optiml;
using namespace clang;

// Values are texts: "p" is the place, "v" the value, "#3" what the fourth read of the place gave; "" is not understood.
// Reinterpreted bits have the text of what they are made from, so that whoever computes with them asks for their type.

namespace {

/// l op r, which held or did not.
struct Decision {
  std::string op, left, right;
  bool holds;
};

/// One way through the function.
struct Path {
  std::vector<Decision> decisions; ///< since the last read, those that name no read before
  std::string written;             ///< empty: nothing
};

enum class Flow { On, Break, Continue, Return };

/// Runs the function once. Where it has a choice, it does as it is told, and then what comes first.
class Run {
public:
  Run(const FunctionDecl &f, std::vector<bool> choices) : ast(f.getASTContext()), choices(std::move(choices)) {
    type = f.getParamDecl(0)->getType()->getPointeeType().getCanonicalType().getUnqualifiedType();
    values[f.getParamDecl(0)] = "p";
    values[f.getParamDecl(1)] = "v";
    execute(f.getBody());
  }
  bool isUnderstood() const { return understood; }
  const Path &result() const { return path; }
  const std::vector<bool> &chosen() const { return choices; }

private:
  using State = std::map<const ValueDecl *, std::string>;
  static constexpr unsigned mostSteps = 500, mostFailures = 2;

  const ASTContext &ast;
  QualType type;
  std::vector<bool> choices;
  size_t nextChoice = 0;
  unsigned steps = 0, reads = 0, failures = 0;
  bool understood = true, succeeded = false;
  State values;
  std::vector<State> atExchange; ///< what the locals had, with reads counted from the last
  std::set<std::pair<std::string, std::string>> different;
  Path path;

  std::string giveUp() {
    understood = false;
    return "";
  }
  bool goesOn() { return understood = understood && ++steps < mostSteps; }
  bool choose() {
    if (nextChoice == choices.size())
      choices.push_back(true);
    return choices[nextChoice++];
  }

  std::string lastRead() const { return "#" + std::to_string(reads - 1); }
  std::string read() {
    path.decisions.clear();
    return "#" + std::to_string(reads++);
  }
  bool hasType(const Expr *e) const { return e->getType().getCanonicalType().getUnqualifiedType() == type; }
  bool hasSize(QualType other) const { return ast.getTypeSize(other) == ast.getTypeSize(type); }
  bool isOperand(const std::string &text) const { return text == "v" || (reads && text == lastRead()); }

  Flow execute(const Stmt *s);
  Flow loop(const Expr *condition, const Stmt *body, const Expr *step, bool testsFirst);
  std::string evaluate(const Expr *e);
  std::string call(const CallExpr *e);
  std::string exchange(const CallExpr *e);
  std::string binary(const BinaryOperator *e);
  std::string conversion(const CastExpr *e);
  bool test(const Expr *e);
  bool compare(const BinaryOperator *e);
  const ValueDecl *variable(const Expr *e) const {
    auto *ref = dyn_cast<DeclRefExpr>(e->IgnoreParens());
    return ref && values.count(ref->getDecl()) ? ref->getDecl() : nullptr;
  }
};

} // namespace

Flow Run::execute(const Stmt *s) {
  if (!s || !goesOn())
    return Flow::On;
  if (auto *list = dyn_cast<CompoundStmt>(s)) {
    for (const Stmt *child : list->body())
      if (Flow flow = execute(child); flow != Flow::On || !understood)
        return flow;
    return Flow::On;
  }
  if (auto *declared = dyn_cast<DeclStmt>(s)) {
    for (const Decl *d : declared->decls())
      if (auto *v = dyn_cast<VarDecl>(d); v && v->hasLocalStorage() && !v->getType()->isReferenceType())
        values[v] = v->getInit() ? evaluate(v->getInit()) : "";
      else if (!isa<TypedefNameDecl>(d))
        giveUp();
    return Flow::On;
  }
  if (auto *branch = dyn_cast<IfStmt>(s)) {
    if (branch->getInit() || branch->getConditionVariable())
      giveUp();
    return execute(test(branch->getCond()) ? branch->getThen() : branch->getElse());
  }
  if (auto *w = dyn_cast<WhileStmt>(s); w && !w->getConditionVariable())
    return loop(w->getCond(), w->getBody(), nullptr, true);
  if (auto *d = dyn_cast<DoStmt>(s))
    return loop(d->getCond(), d->getBody(), nullptr, false);
  if (auto *f = dyn_cast<ForStmt>(s); f && !f->getConditionVariable()) {
    execute(f->getInit());
    return loop(f->getCond(), f->getBody(), f->getInc(), true);
  }
  if (isa<BreakStmt>(s))
    return Flow::Break;
  if (isa<ContinueStmt>(s))
    return Flow::Continue;
  if (auto *r = dyn_cast<ReturnStmt>(s)) {
    if (r->getRetValue() && r->getRetValue()->HasSideEffects(ast)) // what it is does not matter
      evaluate(r->getRetValue());
    return Flow::Return;
  }
  if (auto *e = dyn_cast<Expr>(s))
    evaluate(e);
  else if (!isa<NullStmt>(s))
    giveUp();
  return Flow::On;
}

Flow Run::loop(const Expr *condition, const Stmt *body, const Expr *step, bool testsFirst) {
  for (bool tests = testsFirst; goesOn(); tests = true) {
    if (tests && condition && !test(condition))
      return Flow::On;
    Flow flow = execute(body);
    if (flow == Flow::Break)
      return Flow::On;
    if (flow == Flow::Return)
      return flow;
    if (step)
      evaluate(step);
  }
  return Flow::On;
}

std::string Run::evaluate(const Expr *e) {
  e = e->IgnoreParens();
  if (!goesOn())
    return "";
  if (auto *cleanups = dyn_cast<ExprWithCleanups>(e))
    return evaluate(cleanups->getSubExpr());
  if (auto *temporary = dyn_cast<MaterializeTemporaryExpr>(e))
    return evaluate(temporary->getSubExpr());
  if (auto *cast = dyn_cast<CastExpr>(e))
    return conversion(cast);
  if (auto *ref = dyn_cast<DeclRefExpr>(e)) {
    auto known = values.find(ref->getDecl());
    return known == values.end() || known->second.empty() ? giveUp() : known->second;
  }
  if (auto *op = dyn_cast<BinaryOperator>(e))
    return binary(op);
  if (auto *choice = dyn_cast<ConditionalOperator>(e))
    return evaluate(test(choice->getCond()) ? choice->getTrueExpr() : choice->getFalseExpr());
  if (auto *c = dyn_cast<CallExpr>(e))
    return call(c);
  return giveUp();
}

std::string Run::conversion(const CastExpr *e) {
  const Expr *from = e->getSubExpr()->IgnoreParens();
  auto *star = dyn_cast<UnaryOperator>(from);
  auto *element = dyn_cast<ArraySubscriptExpr>(from);
  auto index = element ? element->getIdx()->getIntegerConstantExpr(ast) : std::nullopt;
  if (e->getCastKind() == CK_LValueToRValue && ((star && star->getOpcode() == UO_Deref) || (index && *index == 0))) {
    const bool isPlace = evaluate(star ? star->getSubExpr() : element->getBase()) == "p";
    return isPlace && hasSize(from->getType()) && !succeeded ? read() : giveUp();
  }
  switch (e->getCastKind()) {
  case CK_LValueToRValue:
  case CK_NoOp: return evaluate(from);
  case CK_BitCast: return e->getType()->isPointerType() ? evaluate(from) : giveUp();
  case CK_IntegralCast: return hasSize(e->getType()) && hasSize(from->getType()) ? evaluate(from) : giveUp();
  case CK_ToVoid: evaluate(from); return "void";
  default: return giveUp();
  }
}

std::string Run::binary(const BinaryOperator *e) {
  if (e->isAssignmentOp()) {
    const ValueDecl *target = e->getOpcode() == BO_Assign ? variable(e->getLHS()) : nullptr;
    if (!target)
      return giveUp();
    return values[target] = evaluate(e->getRHS());
  }
  if (e->getOpcode() != BO_Add || !hasType(e))
    return giveUp();
  const std::string left = evaluate(e->getLHS()), right = evaluate(e->getRHS());
  return isOperand(left) && isOperand(right) && left != right ? "sum of v and " + lastRead() : giveUp();
}

std::string Run::call(const CallExpr *e) {
  static const llvm::StringSet<> bits = {"__float_as_int",  "__float_as_uint",      "__int_as_float",
                                         "__uint_as_float", "__double_as_longlong", "__longlong_as_double"};
  static const llvm::StringSet<> least = {"min", "fmin", "fminf"}, most = {"max", "fmax", "fmaxf"};
  const FunctionDecl *f = e->getDirectCallee();
  const SourceManager &sm = ast.getSourceManager();
  const llvm::StringRef name = f && f->getIdentifier() ? f->getName() : "";
  if (name == "__nv_atomic_load_n")
    return evaluate(e->getArg(0)) == "p" && hasSize(e->getType()) && !succeeded ? read() : giveUp();
  if (name.empty() || !sm.isInSystemHeader(sm.getExpansionLoc(f->getLocation())))
    return giveUp();
  if (name == "atomicCAS" && e->getNumArgs() == 3)
    return exchange(e);
  if (bits.contains(name) && e->getNumArgs() == 1)
    return hasSize(e->getType()) ? evaluate(e->getArg(0)) : giveUp();
  if ((!least.contains(name) && !most.contains(name)) || e->getNumArgs() != 2 || !hasType(e))
    return giveUp();
  const std::string left = evaluate(e->getArg(0)), right = evaluate(e->getArg(1));
  if (!isOperand(left) || !isOperand(right) || left == right)
    return giveUp();
  return (least.contains(name) ? "least of v and " : "most of v and ") + lastRead();
}

std::string Run::exchange(const CallExpr *e) {
  const std::string place = evaluate(e->getArg(0)), expected = evaluate(e->getArg(1)), other = evaluate(e->getArg(2));
  if (!understood || succeeded || place != "p" || !reads || expected != lastRead() || !hasSize(e->getType()))
    return giveUp();
  if (size_t at = other.find('#'); at != std::string::npos && other.substr(at) != expected)
    return giveUp(); // made of what was read before
  State now = values;
  for (auto &[name, text] : now)
    if (size_t at = text.find('#'); at != std::string::npos)
      text = text.substr(0, at) + "#" + std::to_string(int(reads) - std::stoi(text.substr(at + 1)));
  atExchange.push_back(std::move(now));
  // After a failure all is as after the one before it, but for what was read: so it is after any number of them.
  if (failures == mostFailures && atExchange[mostFailures] != atExchange[mostFailures - 1])
    return giveUp();
  if (failures == mostFailures || choose()) {
    succeeded = true;
    path.written = other;
    return expected;
  }
  ++failures;
  std::string found = read();
  different.emplace(found, expected);
  return found;
}

bool Run::test(const Expr *e) {
  e = e->IgnoreParenImpCasts();
  if (!goesOn())
    return false;
  bool known = false;
  if (!e->isValueDependent() && e->EvaluateAsBooleanCondition(known, ast))
    return known;
  if (auto *op = dyn_cast<UnaryOperator>(e); op && op->getOpcode() == UO_LNot)
    return !test(op->getSubExpr());
  auto *op = dyn_cast<BinaryOperator>(e);
  if (op && op->isLogicalOp()) {
    const bool first = test(op->getLHS());
    return first == (op->getOpcode() == BO_LAnd) ? test(op->getRHS()) : first;
  }
  if (op && op->isComparisonOp())
    return compare(op);
  giveUp();
  return false;
}

bool Run::compare(const BinaryOperator *e) {
  const std::string left = evaluate(e->getLHS()), right = evaluate(e->getRHS());
  if (!understood)
    return false;
  if (e->isEqualityOp()) { // of bits: numbers may be equal and have others, or the same and not be equal
    const bool same = left == right;
    const bool isKnown = same || different.count({left, right}) || different.count({right, left});
    if (!isKnown || !e->getLHS()->getType()->isIntegerType())
      giveUp();
    return same == (e->getOpcode() == BO_EQ);
  }
  if (!hasType(e->getLHS()) || !hasType(e->getRHS()) || !isOperand(left) || !isOperand(right) || left == right) {
    giveUp();
    return false;
  }
  const bool holds = choose();
  path.decisions.push_back({e->getOpcodeStr().str(), left, right, holds});
  return holds;
}

/// What a decision says of v and what was read: '>' that v is the greater one or the same, '<' the lesser.
static char saysOf(const Decision &d) {
  const bool greater = (d.op[0] == '>') == (d.left == "v");
  return greater == d.holds ? '>' : '<';
}

static bool is(const Path &path, llvm::StringRef fold) {
  if (fold == "+")
    return llvm::StringRef(path.written).starts_with("sum of ");
  if (llvm::StringRef(path.written).starts_with(fold == "min" ? "least of " : "most of "))
    return true;
  const char writes = fold == "min" ? '<' : '>', stays = fold == "min" ? '>' : '<';
  const bool keeps = path.written.empty() || path.written[0] == '#';
  return (keeps || path.written == "v") &&
         llvm::any_of(path.decisions, [&](const Decision &d) { return saysOf(d) == (keeps ? stays : writes); });
}

/// The choices of the next path: the last that was taken first is not taken.
static bool advance(std::vector<bool> &choices) {
  while (!choices.empty() && !choices.back())
    choices.pop_back();
  if (choices.empty())
    return false;
  choices.back() = false;
  return true;
}

std::string optiml::atomicFold(const FunctionDecl *f) {
  constexpr unsigned mostPaths = 200;
  const FunctionDecl *definition = nullptr;
  if (!f || !f->hasBody(definition) || definition->getNumParams() != 2 || definition->isVariadic() ||
      isa<CXXMethodDecl>(definition) || definition->isDependentContext())
    return "";
  const QualType place = definition->getParamDecl(0)->getType(), value = definition->getParamDecl(1)->getType();
  if (!place->isPointerType() || place->getPointeeType().isConstQualified() ||
      !(place->getPointeeType()->isFloatingType() || place->getPointeeType()->isIntegerType()) ||
      !definition->getASTContext().hasSameUnqualifiedType(place->getPointeeType(), value))
    return "";
  std::set<std::string> folds = {"+", "min", "max"};
  std::vector<bool> choices;
  for (unsigned paths = 0; paths < mostPaths; ++paths) {
    Run run(*definition, choices);
    if (!run.isUnderstood())
      return "";
    std::erase_if(folds, [&](const std::string &fold) { return !is(run.result(), fold); });
    choices = run.chosen();
    if (folds.empty())
      return "";
    if (!advance(choices))
      return folds.size() == 1 ? *folds.begin() : "";
  }
  return "";
}
