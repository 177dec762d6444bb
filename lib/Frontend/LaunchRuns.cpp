//===- LaunchRuns.cpp - launches that follow one another ------------------===//
#include "BetweenLaunches.h"
#include "optiml/Frontend/LaunchLoops.h"
#include "clang/AST/DynamicRecursiveASTVisitor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <set>

using namespace optiml;
using namespace clang;

namespace {

/// Of a class: a field or a base for whose type `is` holds.
bool anyPart(QualType type, bool (*is)(QualType)) {
  const auto *record = type->getAsCXXRecordDecl();
  record = record ? record->getDefinition() : nullptr;
  return record && (llvm::any_of(record->fields(), [&](const FieldDecl *f) { return is(f->getType()); }) ||
                    llvm::any_of(record->bases(), [&](const CXXBaseSpecifier &b) { return is(b.getType()); }));
}

bool holdsPointers(QualType type) {
  type = type.getCanonicalType();
  if (const auto *array = dyn_cast<ArrayType>(type))
    return holdsPointers(array->getElementType());
  return type->isPointerType() || anyPart(type, holdsPointers);
}

/// Through an argument of the type a kernel may store a pointer that it was given.
bool mayKeepPointers(QualType type) {
  type = type.getCanonicalType();
  if (type->isPointerType())
    return !type->getPointeeType().isConstQualified() && holdsPointers(type->getPointeeType());
  return anyPart(type, mayKeepPointers);
}

/// Where the local variables of a function that hold memory of their own are used last (LaunchRun::lastUses).
class LastUses : public DynamicRecursiveASTVisitor {
public:
  LastUses(const FunctionDecl &fn, ASTContext &ast) : ast(ast), sm(ast.getSourceManager()) {
    TraverseStmt(fn.getBody());
  }
  std::map<std::string, unsigned> known() const {
    std::map<std::string, unsigned> result;
    std::map<std::string, unsigned> named;
    for (const auto &[v, use] : uses)
      ++named[v->getNameAsString()];
    for (const auto &[v, use] : uses)
      if (use.known && use.allocated && named[v->getNameAsString()] == 1)
        result[v->getNameAsString()] = use.last;
    return result;
  }

  bool VisitVarDecl(VarDecl *v) override { // whoever made the pointer may have kept it
    if (v->getInit() && v->getType()->isPointerType())
      uses[v].known &=
          v->getInit()->isNullPointerConstant(ast, Expr::NPC_ValueDependentIsNotNull) != Expr::NPCK_NotNull;
    return true;
  }
  bool VisitDeclRefExpr(DeclRefExpr *ref) override {
    auto *v = dyn_cast<VarDecl>(ref->getDecl());
    if (!v || !v->getType()->isPointerType())
      return true;
    Use &use = uses[v];
    const llvm::StringRef taker = useOfPointer(ast, *ref);
    use.known &= !taker.empty() && v->hasLocalStorage() && !isa<ParmVarDecl>(v);
    use.allocated |= taker.starts_with("cudaMalloc");
    if (!taker.starts_with("cudaFree"))
      use.last = std::max(use.last, sm.getFileOffset(sm.getExpansionRange(ref->getLocation()).getEnd()));
    return true;
  }
  bool VisitCUDAKernelCallExpr(CUDAKernelCallExpr *launch) override {
    const FunctionDecl *kernel = launch->getDirectCallee();
    if (kernel &&
        llvm::none_of(kernel->parameters(), [](const ParmVarDecl *p) { return mayKeepPointers(p->getType()); }))
      return true;
    for (const Expr *argument : launch->arguments())
      if (const auto *ref = dyn_cast<DeclRefExpr>(argument->IgnoreParenImpCasts()))
        if (const auto *v = dyn_cast<VarDecl>(ref->getDecl()))
          uses[v].known = false;
    return true;
  }
  bool VisitLambdaExpr(LambdaExpr *lambda) override { // it may run at another time
    for (const LambdaCapture &capture : lambda->captures())
      if (capture.capturesVariable())
        if (auto *v = dyn_cast<VarDecl>(capture.getCapturedVar()))
          uses[v].known = false;
    return true;
  }

private:
  struct Use {
    bool known = true, allocated = false;
    unsigned last = 0;
  };
  ASTContext &ast;
  const SourceManager &sm;
  std::map<const VarDecl *, Use> uses;
};

class RunFinder : public DynamicRecursiveASTVisitor {
public:
  RunFinder(const Program &host, FoundRuns &found)
      : ast(host.ast()), sm(ast.getSourceManager()), found(found),
        hasDevicePointers(llvm::any_of(
            host.variables(), [](const DeviceVariable &v) { return llvm::StringRef(v.element).contains('*'); })) {
    ShouldVisitTemplateInstantiations = true;
    std::set<unsigned> several; // the launches of a template's instantiations stand at one place
    for (unsigned i = 0; i < host.launches().size(); ++i) {
      const LaunchSite &site = host.launches()[i];
      if (!site.inMacro && !site.isPattern && !site.symbol.empty() && !sites.emplace(site.begin, i).second)
        several.insert(site.begin);
    }
    for (unsigned begin : several)
      sites.erase(begin);
  }

  /// Methods, constructors and the like too.
  bool TraverseDecl(Decl *decl) override {
    const auto *fn = dyn_cast_or_null<FunctionDecl>(decl);
    if (!fn)
      return DynamicRecursiveASTVisitor::TraverseDecl(decl);
    if (fn->isDependentContext() || (fn->hasBody() && hasLabel(fn->getBody())))
      return true;
    const FunctionDecl *before = std::exchange(function, fn);
    const bool result = DynamicRecursiveASTVisitor::TraverseDecl(decl);
    function = before;
    return result;
  }

  bool VisitCompoundStmt(CompoundStmt *block) override {
    // A launch that is put off becomes a variable; nothing may jump over its declaration.
    if (llvm::any_of(block->body(), [](const Stmt *s) { return isa<SwitchCase, LabelStmt>(s); }))
      return true;
    LaunchRun run;
    within = block;
    std::string refused;
    bool waited = false; // since the run's first launch
    for (const Stmt *s : block->body()) {
      if (const unsigned *site = launchAt(s)) {
        std::string own;
        std::vector<const CUDAKernelCallExpr *> launches;
        BetweenLaunches arguments(sm, own, launches);
        arguments.allowReads(run.sites.empty() || !waited);
        if (!arguments.stmt(s)) {
          end(run);
          refused = own;
          continue;
        }
        waited &= !run.sites.empty();
        if (!refused.empty())
          found.notes.push_back(refused);
        refused.clear();
        run.sites.push_back(*site);
        continue;
      }
      std::string why;
      std::vector<const CUDAKernelCallExpr *> launches;
      BetweenLaunches between(sm, why, launches);
      between.allowReads(!waited);
      bool good = between.stmt(s);
      waited |= between.hasWaited();
      if (good && launches.empty() && !leaves(s))
        continue;
      if (!run.sites.empty())
        refused = !why.empty()        ? why
                  : !launches.empty() ? line(s) + "a launch within another statement"
                                      : line(s) + "the block may be left between launches";
      end(run);
    }
    end(run);
    return true;
  }

private:
  ASTContext &ast;
  const SourceManager &sm;
  FoundRuns &found;
  std::map<unsigned, unsigned> sites; ///< by LaunchSite::begin
  const bool hasDevicePointers;       ///< __device__ variables may hold pointers
  const FunctionDecl *function = nullptr;
  const Stmt *within = nullptr; ///< the block that is looked at

  std::string line(const Stmt *s) const {
    return llvm::formatv("line {0}: ", sm.getPresumedLoc(sm.getExpansionLoc(s->getBeginLoc())).getLine());
  }
  void end(LaunchRun &run) {
    if (run.sites.size() > 1) {
      if (function && function->doesThisDeclarationHaveABody() && !hasDevicePointers && !isInLoop(ast, within))
        run.lastUses = LastUses(*function, ast).known();
      found.runs.push_back(std::move(run));
    }
    run = {};
  }
  /// The launch that the statement is.
  const unsigned *launchAt(const Stmt *s) const {
    if (auto *full = dyn_cast<ExprWithCleanups>(s))
      s = full->getSubExpr();
    if (!isa<CUDAKernelCallExpr>(s) || s->getBeginLoc().isMacroID() || !sm.isInMainFile(s->getBeginLoc()))
      return nullptr;
    auto it = sites.find(sm.getFileOffset(s->getBeginLoc()));
    return it == sites.end() ? nullptr : &it->second;
  }
  /// Leaves the statement itself; after an error nothing matters any more.
  static bool leaves(const Stmt *s) {
    if (isa<BreakStmt, ContinueStmt>(s))
      return true;
    if (auto *branch = dyn_cast<IfStmt>(s); branch && asksForError(branch->getCond()))
      return branch->getElse() && leaves(branch->getElse());
    if (isa<ForStmt, WhileStmt, DoStmt>(s)) // its own affair
      return false;
    return llvm::any_of(s->children(), [](const Stmt *child) { return child && leaves(child); });
  }
  static bool hasLabel(const Stmt *s) {
    return s && (isa<LabelStmt, IndirectGotoStmt>(s) || llvm::any_of(s->children(), hasLabel));
  }
};

} // namespace

FoundRuns optiml::findLaunchRuns(const Program &host) {
  FoundRuns found;
  RunFinder finder(host, found);
  const SourceManager &sm = host.ast().getSourceManager();
  for (Decl *decl : host.ast().getTranslationUnitDecl()->noload_decls())
    if (!sm.isInSystemHeader(decl->getLocation()))
      finder.TraverseDecl(decl);
  llvm::sort(found.runs, [&](const LaunchRun &a, const LaunchRun &b) {
    return host.launches()[a.sites[0]].begin < host.launches()[b.sites[0]].begin;
  });
  return found;
}
