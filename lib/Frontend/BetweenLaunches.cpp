//===- BetweenLaunches.cpp - what may stand between launches --------------===//
//
// What may stand between two launches is a list of what cannot see device memory, nor tell when a kernel runs:
// variables of the function itself, arithmetic, calls of a few functions that are known by name, and of functions in
// this file made of the same. Memory behind a pointer, which may be managed memory, is read only where the host has not
// waited for the kernels, and where no loop may wait for what they write. What is not on the list refuses.
//
//===----------------------------------------------------------------------===//
#include "BetweenLaunches.h"
#include "optiml/Support/Words.h"
#include "clang/AST/Attr.h"
#include "clang/AST/ParentMapContext.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace optiml;
using namespace clang;

namespace {

/// Calls that neither see nor change what kernels work on. Waiting changes nothing but time.
bool isHarmless(const FunctionDecl &fn) {
  static const std::set<llvm::StringRef> names =
      words("cudaGetLastError cudaPeekAtLastError cudaGetErrorString cudaGetErrorName "
            "cudaDeviceSynchronize cudaThreadSynchronize cudaStreamSynchronize std::swap "
            "std::exchange std::min std::max std::move");
  return names.count(fn.getQualifiedNameAsString());
}

bool isWait(const FunctionDecl &fn) { return llvm::StringRef(fn.getQualifiedNameAsString()).ends_with("Synchronize"); }

bool takesValuesOnly(const FunctionDecl &fn) {
  return llvm::none_of(fn.parameters(), [](const ParmVarDecl *p) {
    return p->getType()->isAnyPointerType() || p->getType()->isReferenceType();
  });
}

/// A method of the standard library that looks at an object and changes nothing.
bool isGlance(const CXXMethodDecl &method) {
  static const std::set<llvm::StringRef> names = words("data size at get front back operator[] operator* operator->");
  return method.getParent()->isInStdNamespace() && names.count(method.getNameAsString());
}

/// Something in it waits for the GPU; in functions that are defined in this file, too.
bool waits(const Stmt *s, unsigned depth = 0) {
  if (!s)
    return false;
  if (auto *call = dyn_cast<CallExpr>(s))
    if (const FunctionDecl *fn = call->getDirectCallee(), *definition = nullptr;
        fn && (isWait(*fn) || (depth < 3 && fn->hasBody(definition) && waits(definition->getBody(), depth + 1))))
      return true;
  return llvm::any_of(s->children(), [&](const Stmt *child) { return waits(child, depth); });
}

void addVariables(const Stmt *s, std::set<const ValueDecl *> &into) {
  if (!s)
    return;
  if (auto *ref = dyn_cast<DeclRefExpr>(s))
    into.insert(ref->getDecl());
  for (const Stmt *child : s->children())
    addVariables(child, into);
}

/// It may change one of the variables, or leave the loop around it.
bool decidesOverTurns(const Stmt *s, const std::set<const ValueDecl *> &variables, bool inInnerLoop = false) {
  if (!s)
    return false;
  auto isOne = [&](const Expr *e) {
    const VarDecl *v = holder(e);
    return v && variables.count(v);
  };
  if (isa<BreakStmt>(s) && !inInnerLoop)
    return true;
  if (isa<ReturnStmt, GotoStmt>(s))
    return true;
  if (auto *u = dyn_cast<UnaryOperator>(s); u && u->getOpcode() == UO_AddrOf && isOne(u->getSubExpr()))
    return true;
  if (llvm::any_of(changedPlaces(s), isOne))
    return true;
  inInnerLoop |= isa<ForStmt, WhileStmt, DoStmt, CXXForRangeStmt, SwitchStmt>(s);
  return llvm::any_of(s->children(),
                      [&](const Stmt *child) { return decidesOverTurns(child, variables, inInnerLoop); });
}

/// The loop ends whether kernels run meanwhile or not: one variable goes on until it comes to a bound. Nothing else
/// ends it, and nothing in it waits for the GPU.
bool isCounted(const ForStmt &loop) {
  const auto *test = loop.getCond() ? dyn_cast<BinaryOperator>(loop.getCond()->IgnoreParenImpCasts()) : nullptr;
  if (!test || loop.getConditionVariable() || !(test->isRelationalOp() || test->getOpcode() == BO_NE) || !loop.getInc())
    return false;
  auto variable = [](const Expr *e) -> const VarDecl * {
    auto *ref = dyn_cast<DeclRefExpr>(e->IgnoreParenImpCasts());
    auto *v = ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
    return v && v->hasLocalStorage() && !v->getType()->isReferenceType() ? v : nullptr;
  };
  const Expr *inc = loop.getInc()->IgnoreParenImpCasts();
  const VarDecl *counter = nullptr;
  if (auto *u = dyn_cast<UnaryOperator>(inc); u && u->isIncrementDecrementOp())
    counter = variable(u->getSubExpr());
  else if (auto *b = dyn_cast<BinaryOperator>(inc); b && b->isAssignmentOp())
    counter = variable(b->getLHS());
  std::set<const ValueDecl *> deciding;
  addVariables(test, deciding);
  return counter && (counter == variable(test->getLHS()) || counter == variable(test->getRHS())) &&
         !decidesOverTurns(loop.getBody(), deciding) && !waits(&loop);
}

/// std::vector and the like, or an array.
bool isInStandardLibrary(QualType type) {
  const auto *record = type.getNonReferenceType()->getAsCXXRecordDecl();
  return record ? record->isInStdNamespace() : type.getNonReferenceType()->isConstantArrayType();
}

bool isErrorCode(QualType type) {
  type = type.getCanonicalType().getUnqualifiedType();
  return type.getAsString() == "cudaError" || type.getAsString() == "enum cudaError";
}

bool hasLaunch(const Stmt *s) {
  if (!s)
    return false;
  if (isa<CUDAKernelCallExpr>(s))
    return true;
  return llvm::any_of(s->children(), hasLaunch);
}

} // namespace

bool optiml::asksForError(const Expr *condition) {
  condition = condition->IgnoreParenImpCasts();
  if (auto *op = dyn_cast<BinaryOperator>(condition)) {
    if (op->getOpcode() != BO_NE)
      return false;
    const Expr *a = op->getLHS()->IgnoreParenImpCasts(), *b = op->getRHS()->IgnoreParenImpCasts();
    auto isSuccess = [](const Expr *e) {
      auto *name = dyn_cast<DeclRefExpr>(e);
      return name && name->getDecl()->getName() == "cudaSuccess";
    };
    return (isErrorCode(a->getType()) && isSuccess(b)) || (isErrorCode(b->getType()) && isSuccess(a));
  }
  return isErrorCode(condition->getType()); // if (status)
}

const VarDecl *optiml::holder(const Expr *e) {
  e = e->IgnoreParenImpCasts();
  if (auto *member = dyn_cast<MemberExpr>(e))
    return member->isArrow() ? nullptr : holder(member->getBase());
  if (auto *element = dyn_cast<ArraySubscriptExpr>(e)) {
    const Expr *array = element->getBase()->IgnoreParenImpCasts();
    return array->getType()->isConstantArrayType() ? holder(array) : nullptr;
  }
  auto *ref = dyn_cast<DeclRefExpr>(e);
  return ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
}

/// a = b of objects that are copied byte by byte.
static bool isPlainAssignment(const CallExpr &call) {
  const auto *method = dyn_cast_or_null<CXXMethodDecl>(call.getDirectCallee());
  return method && isa<CXXOperatorCallExpr>(call) && method->isTrivial() &&
         (method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator());
}

std::vector<const Expr *> optiml::changedPlaces(const Stmt *s) {
  if (auto *b = dyn_cast<BinaryOperator>(s))
    return b->isAssignmentOp() ? std::vector<const Expr *>{b->getLHS()} : std::vector<const Expr *>();
  if (auto *u = dyn_cast<UnaryOperator>(s))
    return u->isIncrementDecrementOp() ? std::vector<const Expr *>{u->getSubExpr()} : std::vector<const Expr *>();
  const auto *call = dyn_cast<CallExpr>(s);
  const FunctionDecl *fn = call ? call->getDirectCallee() : nullptr;
  if (!fn)
    return {};
  std::vector<const Expr *> places;
  const auto *method = dyn_cast<CXXMethodDecl>(fn);
  const bool changesObject = method && method->isInstance() && !method->isConst() && !isGlance(*method);
  // The object of an operator is its first argument, and no parameter.
  const unsigned first = method && method->isInstance() && isa<CXXOperatorCallExpr>(call);
  if (auto *member = dyn_cast<CXXMemberCallExpr>(call); member && changesObject)
    places.push_back(member->getImplicitObjectArgument());
  else if (first && changesObject)
    places.push_back(call->getArg(0));
  for (unsigned i = first; i < call->getNumArgs() && i - first < fn->getNumParams(); ++i)
    if (const QualType type = fn->getParamDecl(i - first)->getType();
        type->isReferenceType() && !type->getPointeeType().isConstQualified())
      places.push_back(call->getArg(i));
  return places;
}

llvm::StringRef optiml::useOfPointer(ASTContext &ast, const DeclRefExpr &ref) {
  static const std::set<llvm::StringRef> takers =
      words("cudaMemcpy cudaMemcpyAsync cudaMemset cudaMemsetAsync cudaFree cudaFreeAsync");
  auto up = [&](const Stmt *s) {
    auto parents = ast.getParents(*s);
    return parents.size() == 1 ? parents[0].get<Stmt>() : nullptr;
  };
  const Stmt *parent = up(&ref);
  bool address = false;
  for (; parent; parent = up(parent)) {
    const auto *op = dyn_cast<UnaryOperator>(parent);
    if (op && op->getOpcode() == UO_AddrOf)
      address = true;
    else if (!isa<CastExpr, ParenExpr>(parent))
      break;
  }
  const auto *call = dyn_cast_or_null<CallExpr>(parent);
  if (!call || (isa<CUDAKernelCallExpr>(call) && !address))
    return call ? "launch" : "";
  const FunctionDecl *fn = call->getDirectCallee();
  llvm::StringRef name = fn && fn->getDeclName().isIdentifier() ? fn->getName() : "";
  const bool good = address ? name == "cudaMalloc" || name == "cudaMallocAsync" : takers.count(name) != 0;
  return good ? name : "";
}

bool optiml::isInLoop(ASTContext &ast, const Stmt *s) {
  for (auto parents = ast.getParents(*s); !parents.empty(); parents = ast.getParents(parents[0]))
    if (parents.size() != 1 || parents[0].get<ForStmt>() || parents[0].get<WhileStmt>() || parents[0].get<DoStmt>() ||
        parents[0].get<CXXForRangeStmt>() || parents[0].get<LambdaExpr>())
      return true;
  return false;
}

bool optiml::runsOnce(const DoStmt &loop) {
  const Expr *c = loop.getCond()->IgnoreParenImpCasts();
  if (auto *number = dyn_cast<IntegerLiteral>(c))
    return number->getValue().isZero();
  auto *word = dyn_cast<CXXBoolLiteralExpr>(c);
  return word && !word->getValue();
}

std::optional<unsigned> optiml::endOfLoop(const Stmt &loop, const SourceManager &sm, const LangOptions &language) {
  SourceLocation end = loop.getEndLoc();
  if (end.isMacroID())
    return std::nullopt;
  end = Lexer::getLocForEndOfToken(end, 0, sm, language);
  const Stmt *body = nullptr;
  if (auto *counted = dyn_cast<ForStmt>(&loop))
    body = counted->getBody();
  else if (auto *tested = dyn_cast<WhileStmt>(&loop))
    body = tested->getBody();
  else if (auto *range = dyn_cast<CXXForRangeStmt>(&loop))
    body = range->getBody();
  if (!body || !isa<CompoundStmt>(body)) { // the semicolon is no part of an expression statement
    auto token = Lexer::findNextToken(loop.getEndLoc(), sm, language);
    if (token && token->is(tok::semi))
      end = token->getEndLoc();
  }
  return sm.getFileOffset(end);
}

bool BetweenLaunches::refuse(SourceLocation at, const std::string &why) {
  if (refused.empty())
    refused = llvm::formatv("line {0}: {1}", sm.getPresumedLoc(sm.getExpansionLoc(at)).getLine(), why);
  return false;
}

bool BetweenLaunches::refuse(const Stmt *s, const std::string &why) { return refuse(s->getBeginLoc(), why); }

bool BetweenLaunches::all(const Stmt *parent) {
  return llvm::all_of(parent->children(), [&](const Stmt *s) { return !s || stmt(s); });
}

bool BetweenLaunches::stmt(const Stmt *s) {
  if (auto *e = dyn_cast<Expr>(s))
    return expr(e);
  if (isa<CompoundStmt, NullStmt, BreakStmt, ContinueStmt>(s))
    return all(s);
  if (isa<ForStmt, WhileStmt, DoStmt, CXXForRangeStmt>(s))
    return loop(s);
  if (isa<ReturnStmt>(s) && depth)
    return all(s);
  if (auto *branch = dyn_cast<IfStmt>(s)) {
    if (branch->getInit() && !stmt(branch->getInit()))
      return false;
    if (branch->getConditionVariable() && !stmt(branch->getConditionVariableDeclStmt()))
      return false;
    if (!expr(branch->getCond()))
      return false;
    if (asksForError(branch->getCond()) && !hasLaunch(branch->getThen()))
      return !branch->getElse() || stmt(branch->getElse());
    return stmt(branch->getThen()) && (!branch->getElse() || stmt(branch->getElse()));
  }
  if (auto *decls = dyn_cast<DeclStmt>(s)) {
    return llvm::all_of(decls->decls(), [&](const Decl *d) {
      auto *v = dyn_cast<VarDecl>(d);
      return v ? declaration(v, /*init=*/true) : refuse(s, "a declaration that is no variable");
    });
  }
  return refuse(s, llvm::StringRef(s->getStmtClassName()).str() + " between launches");
}

bool BetweenLaunches::declaration(const VarDecl *v, bool init) {
  if (!v->hasLocalStorage() || (v->getType()->isReferenceType() && !reads()))
    return refuse(v->getLocation(), "a declaration that is no local variable");
  if (!v->getType().getNonReferenceType().isTriviallyCopyableType(v->getASTContext()))
    return refuse(v->getLocation(), "'" + v->getNameAsString() + "' is an object with a destructor");
  return !init || !v->getInit() || expr(v->getInit());
}

bool BetweenLaunches::loop(const Stmt *s) {
  if (auto *range = dyn_cast<CXXForRangeStmt>(s)) {
    const bool counted = reads() && !range->getInit() && !decidesOverTurns(range->getBody(), {}) && !waits(range);
    if (!counted || !isInStandardLibrary(range->getRangeInit()->getType()))
      return refuse(s, "a loop over what may change");
    return expr(range->getRangeInit()) && declaration(range->getLoopVariable(), /*init=*/false) &&
           stmt(range->getBody());
  }
  const auto *counted = dyn_cast<ForStmt>(s);
  const unsigned more = counted && isCounted(*counted) ? 0 : 1;
  waiting += more;
  const bool good = all(s);
  waiting -= more;
  return good;
}

bool BetweenLaunches::variable(const DeclRefExpr *ref) {
  const ValueDecl *decl = ref->getDecl();
  if (isa<EnumConstantDecl, FunctionDecl>(decl))
    return true;
  auto *v = dyn_cast<VarDecl>(decl);
  if (!v || v->hasAttr<CUDADeviceAttr>() || v->hasAttr<HIPManagedAttr>() || v->getType().isVolatileQualified())
    return refuse(ref, "'" + decl->getNameAsString() + "' may be seen by kernels");
  // What a reference stands for may lie in managed memory; within a called function it is what the loop passed.
  if (v->getType()->isReferenceType() && !(depth && isa<ParmVarDecl>(v)) && !reads())
    return refuse(ref, "'" + decl->getNameAsString() + "' is a reference");
  return true;
}

bool BetweenLaunches::call(const CallExpr *e) {
  const FunctionDecl *fn = e->getDirectCallee();
  if (isPlainAssignment(*e))
    return written(e->getArg(0)) && expr(e->getArg(1));
  const auto *method = dyn_cast_or_null<CXXMethodDecl>(fn);
  const auto *member = dyn_cast<CXXMemberCallExpr>(e);
  const VarDecl *object = member ? holder(member->getImplicitObjectArgument()) : nullptr;
  const bool isLocal = object && object->hasLocalStorage() && !object->getType()->isReferenceType();
  if (!fn || (method && (method->isVirtual() || (!reads() && !isLocal))))
    return refuse(e, "a call through a pointer or of a member");
  if (member && !expr(member->getImplicitObjectArgument()))
    return false;
  if (method && isGlance(*method))
    return llvm::all_of(e->arguments(), [this](const Expr *argument) { return expr(argument); });
  bool known = isHarmless(*fn);
  if (!known && fn->getBuiltinID()) // pow, abs: of values only
    known = takesValuesOnly(*fn);
  const FunctionDecl *definition = nullptr;
  if (!known && (!fn->hasBody(definition) || depth == 3))
    return refuse(e, "a call of " + fn->getQualifiedNameAsString());
  for (const Expr *a : e->arguments())
    if (!expr(a))
      return false;
  waited |= isWait(*fn);
  if (known)
    return true;
  // Mathematics of the system's headers has wrappers of its own; nothing that it does concerns kernels.
  if (sm.isInSystemHeader(definition->getLocation()))
    return (takesValuesOnly(*fn) && fn->getReturnType()->isArithmeticType()) ||
           refuse(e, "a call of " + fn->getQualifiedNameAsString());
  ++depth;
  const bool before = std::exchange(thisIsLocal, isLocal);
  bool good = !hasLaunch(definition->getBody()) && stmt(definition->getBody());
  thisIsLocal = before;
  --depth;
  return good || refuse(e, "a call of " + fn->getQualifiedNameAsString());
}

bool BetweenLaunches::written(const Expr *place) {
  const bool before = std::exchange(mayRead, false);
  const bool good = expr(place);
  mayRead = before;
  return good;
}

bool BetweenLaunches::expr(const Expr *e) {
  if (auto *launch = dyn_cast<CUDAKernelCallExpr>(e)) {
    launches.push_back(launch);
    auto good = [this](const Expr *argument) { return expr(argument); };
    return llvm::all_of(launch->arguments(), good) && llvm::all_of(launch->getConfig()->arguments(), good);
  }
  if (auto *ref = dyn_cast<DeclRefExpr>(e))
    return variable(ref);
  if (auto *c = dyn_cast<CallExpr>(e))
    return call(c);
  if (e->getType().isVolatileQualified())
    return refuse(e, "a volatile object");
  if (auto *b = dyn_cast<BinaryOperator>(e); b && b->isAssignmentOp())
    return written(b->getLHS()) && expr(b->getRHS());
  if (auto *u = dyn_cast<UnaryOperator>(e); u && u->isIncrementDecrementOp())
    return written(u->getSubExpr());
  if (auto *u = dyn_cast<UnaryOperator>(e)) {
    if (u->getOpcode() == UO_AddrOf || (u->getOpcode() == UO_Deref && !reads()))
      return refuse(e, "memory behind a pointer, which a kernel may write");
    return expr(u->getSubExpr());
  }
  if (auto *s = dyn_cast<ArraySubscriptExpr>(e)) {
    const Expr *base = s->getBase()->IgnoreParenImpCasts();
    if ((!isa<DeclRefExpr>(base) || !base->getType()->isConstantArrayType()) && !reads())
      return refuse(e, "memory behind a pointer, which a kernel may write");
    return expr(base) && expr(s->getIdx());
  }
  if (auto *m = dyn_cast<MemberExpr>(e)) {
    const bool isOwn = thisIsLocal && isa<CXXThisExpr>(m->getBase()->IgnoreParenImpCasts());
    if (m->getType().isVolatileQualified() || (m->isArrow() && !isOwn && !reads()) ||
        isa<CXXMethodDecl>(m->getMemberDecl()))
      return refuse(e, "a member behind a pointer");
    return expr(m->getBase());
  }
  if (isa<UnaryExprOrTypeTraitExpr, CXXThisExpr>(e))
    return true;
  if (auto *d = dyn_cast<CXXDefaultArgExpr>(e))
    return expr(d->getExpr());
  if (auto *c = dyn_cast<CXXConstructExpr>(e))
    if (!c->getConstructor()->isTrivial() && c->getConstructor()->getParent()->getName() != "dim3")
      return refuse(e, "an object is made");
  if (isa<IntegerLiteral, FloatingLiteral, CharacterLiteral, StringLiteral, CXXBoolLiteralExpr, CXXNullPtrLiteralExpr,
          ParenExpr, CastExpr, BinaryOperator, AbstractConditionalOperator, CXXConstructExpr, MaterializeTemporaryExpr,
          CXXBindTemporaryExpr, ExprWithCleanups, PredefinedExpr, InitListExpr, ImplicitValueInitExpr, ConstantExpr,
          SubstNonTypeTemplateParmExpr>(e))
    return llvm::all_of(e->children(), [&](const Stmt *s) { return !s || stmt(s); });
  return refuse(e, llvm::StringRef(e->getStmtClassName()).str() + " between launches");
}
