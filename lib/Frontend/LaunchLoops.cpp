//===- LaunchLoops.cpp - host loops that launch kernels -------------------===//
#include "optiml/Frontend/LaunchLoops.h"
#include "BetweenLaunches.h"
#include "clang/AST/DynamicRecursiveASTVisitor.h"
#include "clang/AST/ParentMapContext.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>

using namespace optiml;
using namespace clang;

namespace {
/// What becomes of the pointers that a loop deals with: every use of a variable is one of a few that keep no copy of
/// its value, or the loop's own.
class PointerUses : public DynamicRecursiveASTVisitor {
public:
  PointerUses(const FunctionDecl &fn, const Stmt &loop, ASTContext &ast)
      : ast(ast), sm(ast.getSourceManager()), loop(loop) {
    collect(&loop);
    known = !variables.empty();
    TraverseStmt(fn.getBody());
  }
  bool known = true;
  std::set<std::string> living;

  bool VisitStmt(Stmt *s) override {
    known &= !isa<LambdaExpr, GotoStmt, LabelStmt>(s); // no way back to what stands before the loop
    return true;
  }
  bool VisitVarDecl(VarDecl *v) override { // whoever made the pointer may have kept it
    if (variables.count(v) && v->getInit() && sm.isBeforeInTranslationUnit(v->getLocation(), loop.getBeginLoc()))
      known &= v->getInit()->isNullPointerConstant(ast, Expr::NPC_ValueDependentIsNotNull) != Expr::NPCK_NotNull;
    return true;
  }
  bool VisitDeclRefExpr(DeclRefExpr *ref) override {
    auto *v = dyn_cast<VarDecl>(ref->getDecl());
    if (!v || !variables.count(v) || within(ref))
      return true;
    bool after =
        sm.isBeforeInTranslationUnit(sm.getExpansionLoc(loop.getEndLoc()), sm.getExpansionLoc(ref->getBeginLoc()));
    const llvm::StringRef taker = useOfPointer(ast, *ref);
    known &= !taker.empty();
    if (after && !taker.starts_with("cudaFree"))
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

class LoopFinder : public DynamicRecursiveASTVisitor {
public:
  LoopFinder(const Program &host, std::vector<LaunchLoop> &loops)
      : host(host), ast(host.ast()), sm(ast.getSourceManager()), loops(loops) {}

  bool TraverseFunctionDecl(FunctionDecl *fn) override {
    if (fn->isDependentContext())
      return true;
    const FunctionDecl *before = function;
    function = fn;
    bool result = DynamicRecursiveASTVisitor::TraverseFunctionDecl(fn);
    function = before;
    return result;
  }
  bool VisitForStmt(ForStmt *s) override { return look(s, s->getBody()); }
  bool VisitWhileStmt(WhileStmt *s) override { return look(s, s->getBody()); }
  bool VisitDoStmt(DoStmt *s) override { return look(s, s->getBody()); }

private:
  /// A launch in the loop itself; the do { } while (0) of a macro is no loop.
  static bool launches(const Stmt *s) {
    if (!s || isa<ForStmt, WhileStmt, CXXForRangeStmt, LambdaExpr>(s))
      return false;
    if (auto *loop = dyn_cast<DoStmt>(s); loop && !runsOnce(*loop))
      return false;
    return isa<CUDAKernelCallExpr>(s) || llvm::any_of(s->children(), launches);
  }

  bool look(Stmt *s, const Stmt *body) {
    if (auto *loop = dyn_cast<DoStmt>(s); loop && runsOnce(*loop))
      return true;
    if (!launches(body) || s->getBeginLoc().isMacroID() || !sm.isInMainFile(s->getBeginLoc()))
      return true;
    LaunchLoop loop;
    loop.line = sm.getPresumedLoc(s->getBeginLoc()).getLine();
    loop.begin = sm.getFileOffset(s->getBeginLoc());
    std::vector<const CUDAKernelCallExpr *> found;
    if (BetweenLaunches(sm, loop.refused, found).stmt(s) && function && function->doesThisDeclarationHaveABody() &&
        !isInLoop(ast, s)) {
      PointerUses uses(*function, *s, ast);
      loop.pointersKnown = uses.known && !uses.escaped;
      loop.living.assign(uses.living.begin(), uses.living.end());
    }
    if (auto end = endOfLoop(*s, sm, ast.getLangOpts()))
      loop.end = *end;
    else if (loop.refused.empty())
      loop.refused = llvm::formatv("line {0}: the loop's end is written by a macro", loop.line);
    for (const CUDAKernelCallExpr *launch : found) {
      const LaunchSite *site = nullptr;
      if (!launch->getBeginLoc().isMacroID())
        for (const LaunchSite &candidate : host.launches())
          if (!candidate.inMacro && candidate.begin == sm.getFileOffset(launch->getBeginLoc()))
            site = &candidate;
      if (!site || site->symbol.empty()) {
        if (loop.refused.empty())
          loop.refused = llvm::formatv(
              "line {0}: a launch that is written by a macro or depends on template parameters", loop.line);
        continue;
      }
      loop.launches.push_back(site->begin);
      loop.symbols.push_back(site->symbol);
    }
    loops.push_back(std::move(loop));
    return true;
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
  for (Decl *decl : host.ast().getTranslationUnitDecl()->noload_decls())
    if (!sm.isInSystemHeader(decl->getLocation()))
      finder.TraverseDecl(decl);
  llvm::sort(loops, [](const LaunchLoop &a, const LaunchLoop &b) { return a.begin < b.begin; });
  return loops;
}
