//===- LaunchLoops.cpp - host loops that launch kernels -------------------===//
//
// What may stand between two launches is a list of what cannot see device memory, nor tell when a kernel runs: variables
// of the function itself, arithmetic, calls of a few functions that are known by name, and of functions in this file made
// of the same. No memory behind a pointer is read, for it may be managed memory. What is not on the list refuses.
//
//===----------------------------------------------------------------------===//
#include "optiml/Frontend/LaunchLoops.h"
#include "clang/AST/ParentMapContext.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>

using namespace optiml;
using namespace clang;

namespace {

/// Calls that neither see nor change what kernels work on. Waiting changes nothing but time.
bool isHarmless(const FunctionDecl &fn) {
  static const llvm::StringSet<> names = {
      "cudaGetLastError",   "cudaPeekAtLastError",  "cudaGetErrorString", "cudaGetErrorName", "cudaDeviceSynchronize",
      "cudaThreadSynchronize", "cudaStreamSynchronize", "std::swap",      "std::exchange",    "std::min",
      "std::max",           "std::move"};
  return names.contains(fn.getQualifiedNameAsString());
}

bool isErrorCode(QualType type) {
  type = type.getCanonicalType().getUnqualifiedType();
  return type.getAsString() == "cudaError" || type.getAsString() == "enum cudaError";
}

/// Compares an error code with cudaSuccess: what hangs on it only runs after an error.
bool asksForError(const Expr *condition) {
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

bool hasLaunch(const Stmt *s) {
  if (!s)
    return false;
  if (isa<CUDAKernelCallExpr>(s))
    return true;
  return llvm::any_of(s->children(), hasLaunch);
}

/// Whether a statement of a loop may stand between its launches.
class Body {
public:
  Body(const SourceManager &sm, LaunchLoop &loop, std::vector<const CUDAKernelCallExpr *> &launches)
      : sm(sm), loop(loop), launches(launches) {}

  bool stmt(const Stmt *s);
  bool expr(const Expr *e);

private:
  const SourceManager &sm;
  LaunchLoop &loop;
  std::vector<const CUDAKernelCallExpr *> &launches;
  unsigned depth = 0; ///< of calls

  bool refuse(const Stmt *s, const std::string &why) {
    if (loop.refused.empty())
      loop.refused = llvm::formatv("line {0}: {1}", sm.getPresumedLoc(sm.getExpansionLoc(s->getBeginLoc())).getLine(), why);
    return false;
  }
  bool all(const Stmt *parent) {
    return llvm::all_of(parent->children(), [&](const Stmt *s) { return !s || stmt(s); });
  }
  bool variable(const DeclRefExpr *ref);
  bool call(const CallExpr *e);
};

} // namespace

bool Body::stmt(const Stmt *s) {
  if (auto *e = dyn_cast<Expr>(s))
    return expr(e);
  if (isa<CompoundStmt, NullStmt, BreakStmt, ContinueStmt, ForStmt, WhileStmt>(s))
    return all(s);
  if (isa<ReturnStmt>(s) && depth)
    return all(s);
  if (auto *loop = dyn_cast<DoStmt>(s))
    return all(loop);
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
    for (const Decl *d : decls->decls()) {
      auto *v = dyn_cast<VarDecl>(d);
      if (!v || !v->hasLocalStorage() || v->getType()->isReferenceType())
        return refuse(s, "a declaration that is no local variable");
      if (!v->getType().isTriviallyCopyableType(v->getASTContext()))
        return refuse(s, "'" + v->getNameAsString() + "' is an object with a destructor");
      if (v->getInit() && !expr(v->getInit()))
        return false;
    }
    return true;
  }
  return refuse(s, llvm::StringRef(s->getStmtClassName()).str() + " between launches");
}

bool Body::variable(const DeclRefExpr *ref) {
  const ValueDecl *decl = ref->getDecl();
  if (isa<EnumConstantDecl, FunctionDecl>(decl))
    return true;
  auto *v = dyn_cast<VarDecl>(decl);
  if (!v || v->hasAttr<CUDADeviceAttr>() || v->hasAttr<HIPManagedAttr>() || v->getType().isVolatileQualified())
    return refuse(ref, "'" + decl->getNameAsString() + "' may be seen by kernels");
  // What a reference stands for may lie in managed memory; within a called function it is what the loop passed.
  if (v->getType()->isReferenceType() && !(depth && isa<ParmVarDecl>(v)))
    return refuse(ref, "'" + decl->getNameAsString() + "' is a reference");
  return true;
}

bool Body::call(const CallExpr *e) {
  const FunctionDecl *fn = e->getDirectCallee();
  if (!fn || isa<CXXMethodDecl>(fn))
    return refuse(e, "a call through a pointer or of a member");
  bool known = isHarmless(*fn);
  if (!known && fn->getBuiltinID()) // pow, abs: of values only
    known = llvm::none_of(fn->parameters(), [](const ParmVarDecl *p) { return p->getType()->isAnyPointerType() || p->getType()->isReferenceType(); });
  const FunctionDecl *definition = nullptr;
  if (!known && (!fn->hasBody(definition) || depth == 3))
    return refuse(e, "a call of " + fn->getQualifiedNameAsString());
  for (const Expr *a : e->arguments())
    if (!expr(a))
      return false;
  if (known)
    return true;
  // Mathematics of the system's headers has wrappers of its own; nothing that it does concerns kernels.
  if (sm.isInSystemHeader(definition->getLocation()))
    return llvm::none_of(fn->parameters(), [](const ParmVarDecl *p) { return p->getType()->isAnyPointerType() || p->getType()->isReferenceType(); }) &&
                   fn->getReturnType()->isArithmeticType()
               ? true
               : refuse(e, "a call of " + fn->getQualifiedNameAsString());
  ++depth;
  bool good = !hasLaunch(definition->getBody()) && stmt(definition->getBody());
  --depth;
  return good || refuse(e, "a call of " + fn->getQualifiedNameAsString());
}

bool Body::expr(const Expr *e) {
  if (auto *launch = dyn_cast<CUDAKernelCallExpr>(e)) {
    launches.push_back(launch);
    for (const Expr *a : launch->arguments())
      if (!expr(a))
        return false;
    for (const Expr *a : launch->getConfig()->arguments())
      if (!expr(a))
        return false;
    return true;
  }
  if (auto *ref = dyn_cast<DeclRefExpr>(e))
    return variable(ref);
  if (isa<CXXOperatorCallExpr>(e))
    return refuse(e, "an overloaded operator");
  if (auto *c = dyn_cast<CallExpr>(e))
    return call(c);
  if (auto *u = dyn_cast<UnaryOperator>(e)) {
    if (u->getOpcode() == UO_Deref || u->getOpcode() == UO_AddrOf)
      return refuse(e, "memory behind a pointer, which a kernel may write");
    return expr(u->getSubExpr());
  }
  if (auto *s = dyn_cast<ArraySubscriptExpr>(e)) {
    const Expr *base = s->getBase()->IgnoreParenImpCasts();
    if (!isa<DeclRefExpr>(base) || !base->getType()->isConstantArrayType())
      return refuse(e, "memory behind a pointer, which a kernel may write");
    return expr(base) && expr(s->getIdx());
  }
  if (auto *m = dyn_cast<MemberExpr>(e)) {
    if (m->isArrow() || isa<CXXMethodDecl>(m->getMemberDecl()))
      return refuse(e, "a member behind a pointer");
    return expr(m->getBase());
  }
  if (isa<UnaryExprOrTypeTraitExpr>(e))
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

namespace {
/// What becomes of the pointers that a loop deals with: every use of a variable is one of a few that keep no copy of its
/// value, or the loop's own.
class PointerUses : public RecursiveASTVisitor<PointerUses> {
public:
  PointerUses(const FunctionDecl &fn, const Stmt &loop, ASTContext &ast) : ast(ast), sm(ast.getSourceManager()), loop(loop) {
    collect(&loop);
    known = !variables.empty();
    TraverseStmt(fn.getBody());
  }
  bool known = true;
  std::set<std::string> living;

  bool VisitStmt(Stmt *s) {
    known &= !isa<LambdaExpr, GotoStmt, LabelStmt>(s); // no way back to what stands before the loop
    return true;
  }
  bool VisitVarDecl(VarDecl *v) { // whoever made the pointer may have kept it
    if (variables.count(v) && v->getInit() && sm.isBeforeInTranslationUnit(v->getLocation(), loop.getBeginLoc()))
      known &= v->getInit()->isNullPointerConstant(ast, Expr::NPC_ValueDependentIsNotNull) != Expr::NPCK_NotNull;
    return true;
  }
  bool VisitDeclRefExpr(DeclRefExpr *ref) {
    auto *v = dyn_cast<VarDecl>(ref->getDecl());
    if (!v || !variables.count(v) || within(ref))
      return true;
    bool after = sm.isBeforeInTranslationUnit(sm.getExpansionLoc(loop.getEndLoc()), sm.getExpansionLoc(ref->getBeginLoc()));
    const Stmt *use = ref, *parent = up(use);
    bool address = false;
    while (parent && (isa<CastExpr, ParenExpr>(parent) || (isa<UnaryOperator>(parent) && cast<UnaryOperator>(parent)->getOpcode() == UO_AddrOf))) {
      address |= isa<UnaryOperator>(parent);
      use = parent;
      parent = up(parent);
    }
    auto *call = dyn_cast_or_null<CallExpr>(parent);
    const FunctionDecl *fn = call ? call->getDirectCallee() : nullptr;
    llvm::StringRef name = fn && fn->getDeclName().isIdentifier() ? fn->getName() : "";
    bool good = address ? name == "cudaMalloc" || name == "cudaMallocAsync"
                        : (call && isa<CUDAKernelCallExpr>(call)) || name == "cudaMemcpy" || name == "cudaMemcpyAsync" ||
                              name == "cudaMemset" || name == "cudaMemsetAsync" || name == "cudaFree" || name == "cudaFreeAsync";
    known &= good;
    if (after && !name.starts_with("cudaFree"))
      living.insert(v->getNameAsString());
    return true;
  }

private:
  ASTContext &ast;
  const SourceManager &sm;
  const Stmt &loop;
  std::set<const VarDecl *> variables;

  const Stmt *up(const Stmt *s) const {
    auto parents = ast.getParents(*s);
    return parents.size() == 1 ? parents[0].get<Stmt>() : nullptr;
  }
  bool within(const Stmt *s) const {
    for (; s; s = up(s))
      if (s == &loop)
        return true;
      else if (auto parents = ast.getParents(*s); parents.size() == 1 && parents[0].get<VarDecl>())
        return within(ast.getParents(*parents[0].get<VarDecl>())[0].get<Stmt>());
    return false;
  }
  /// The pointer variables that the loop names. Any other place that holds a pointer is not followed.
  void collect(const Stmt *s) {
    if (!s)
      return;
    if (auto *branch = dyn_cast<IfStmt>(s); branch && asksForError(branch->getCond()))
      return collect(branch->getElse()); // stderr and the like are no buffers
    auto *e = dyn_cast<Expr>(s);
    if (e && e->isLValue() && e->getType()->isPointerType()) {
      auto *ref = dyn_cast<DeclRefExpr>(e->IgnoreParens());
      auto *v = ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
      if (v && v->hasLocalStorage() && !isa<ParmVarDecl>(v) && !v->getType()->isReferenceType())
        variables.insert(v);
      else if (ref || isa<MemberExpr, ArraySubscriptExpr, UnaryOperator>(e->IgnoreParens()))
        escaped = true; // an assignment and the like are made of what follows
    }
    for (const Stmt *child : s->children())
      collect(child);
  }

public:
  bool escaped = false;
};

class LoopFinder : public RecursiveASTVisitor<LoopFinder> {
public:
  LoopFinder(const Program &host, std::vector<LaunchLoop> &loops)
      : host(host), ast(host.ast()), sm(ast.getSourceManager()), loops(loops) {}

  bool TraverseFunctionDecl(FunctionDecl *fn) {
    if (fn->isDependentContext())
      return true;
    const FunctionDecl *before = function;
    function = fn;
    bool result = RecursiveASTVisitor::TraverseFunctionDecl(fn);
    function = before;
    return result;
  }
  bool VisitForStmt(ForStmt *s) { return look(s, s->getBody()); }
  bool VisitWhileStmt(WhileStmt *s) { return look(s, s->getBody()); }
  bool VisitDoStmt(DoStmt *s) { return look(s, s->getBody()); }

private:
  /// A launch in the loop itself; the do { } while (0) of a macro is no loop.
  static bool launches(const Stmt *s) {
    if (!s || isa<ForStmt, WhileStmt, CXXForRangeStmt, LambdaExpr>(s))
      return false;
    if (auto *loop = dyn_cast<DoStmt>(s); loop && !once(loop))
      return false;
    return isa<CUDAKernelCallExpr>(s) || llvm::any_of(s->children(), launches);
  }
  static bool once(const DoStmt *loop) {
    const Expr *c = loop->getCond()->IgnoreParenImpCasts();
    if (auto *number = dyn_cast<IntegerLiteral>(c))
      return number->getValue().isZero();
    auto *word = dyn_cast<CXXBoolLiteralExpr>(c);
    return word && !word->getValue();
  }

  bool look(Stmt *s, const Stmt *body) {
    if (auto *loop = dyn_cast<DoStmt>(s); loop && once(loop))
      return true;
    if (!launches(body) || s->getBeginLoc().isMacroID() || !sm.isInMainFile(s->getBeginLoc()))
      return true;
    LaunchLoop loop;
    loop.line = sm.getPresumedLoc(s->getBeginLoc()).getLine();
    loop.begin = sm.getFileOffset(s->getBeginLoc());
    std::vector<const CUDAKernelCallExpr *> found;
    if (Body(sm, loop, found).stmt(s) && function && function->doesThisDeclarationHaveABody() && !inLoop(s)) {
      PointerUses uses(*function, *s, ast);
      loop.pointersKnown = uses.known && !uses.escaped;
      loop.living.assign(uses.living.begin(), uses.living.end());
    }
    SourceLocation end = s->getEndLoc();
    if (end.isMacroID()) {
      if (loop.refused.empty())
        loop.refused = llvm::formatv("line {0}: the loop's end is written by a macro", loop.line);
    } else {
      end = Lexer::getLocForEndOfToken(end, 0, sm, ast.getLangOpts());
      if (!isa<CompoundStmt>(body) || isa<DoStmt>(s)) { // the semicolon is no part of an expression statement
        auto token = Lexer::findNextToken(s->getEndLoc(), sm, ast.getLangOpts());
        if (token && token->is(tok::semi))
          end = token->getEndLoc();
      }
      loop.end = sm.getFileOffset(end);
    }
    for (const CUDAKernelCallExpr *launch : found) {
      const LaunchSite *site = nullptr;
      if (!launch->getBeginLoc().isMacroID())
        for (const LaunchSite &candidate : host.launches())
          if (!candidate.inMacro && candidate.begin == sm.getFileOffset(launch->getBeginLoc()))
            site = &candidate;
      if (!site || site->symbol.empty()) {
        if (loop.refused.empty())
          loop.refused = llvm::formatv("line {0}: a launch that is written by a macro or depends on template parameters", loop.line);
        continue;
      }
      loop.launches.push_back(site->begin);
      loop.symbols.push_back(site->symbol);
    }
    loops.push_back(std::move(loop));
    return true;
  }

  /// Within another loop what comes before may come after.
  bool inLoop(const Stmt *s) const {
    for (auto parents = ast.getParents(*s); !parents.empty(); parents = ast.getParents(parents[0]))
      if (parents.size() != 1 || parents[0].get<ForStmt>() || parents[0].get<WhileStmt>() || parents[0].get<DoStmt>() ||
          parents[0].get<CXXForRangeStmt>() || parents[0].get<LambdaExpr>())
        return true;
    return false;
  }

  const Program &host;
  ASTContext &ast;
  SourceManager &sm;
  std::vector<LaunchLoop> &loops;
  const FunctionDecl *function = nullptr;
};
} // namespace

std::vector<LaunchLoop> optiml::findLaunchLoops(const Program &host) {
  std::vector<LaunchLoop> loops;
  LoopFinder finder(host, loops);
  const SourceManager &sm = host.ast().getSourceManager();
  for (Decl *decl : host.ast().getTranslationUnitDecl()->decls())
    if (!sm.isInSystemHeader(decl->getLocation()))
      finder.TraverseDecl(decl);
  llvm::sort(loops, [](const LaunchLoop &a, const LaunchLoop &b) { return a.begin < b.begin; });
  return loops;
}
