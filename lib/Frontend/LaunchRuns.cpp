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

/// Where the local variables of a function that hold memory of their own are used first and last
/// (LaunchRun::lastUses).
class UsesOfMemory : public DynamicRecursiveASTVisitor {
public:
  UsesOfMemory(const FunctionDecl &fn, ASTContext &ast) : ast(ast), sm(ast.getSourceManager()) {
    TraverseStmt(fn.getBody());
  }
  void tell(LaunchRun &run) const {
    std::map<std::string, unsigned> named;
    for (const auto &[v, use] : uses)
      ++named[v->getNameAsString()];
    for (const auto &[v, use] : uses)
      if (const std::string name = v->getNameAsString(); use.known && use.allocated && named[name] == 1) {
        run.firstUses[name] = use.first;
        run.lastUses[name] = use.last;
      }
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
    const SourceRange range = sm.getExpansionRange(ref->getLocation()).getAsRange();
    if (!taker.starts_with("cudaFree"))
      use.last = std::max(use.last, sm.getFileOffset(range.getEnd()));
    if (!taker.starts_with("cudaMalloc"))
      use.first = std::min(use.first, sm.getFileOffset(range.getBegin()));
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
    unsigned first = ~0u, last = 0;
  };
  ASTContext &ast;
  const SourceManager &sm;
  std::map<const VarDecl *, Use> uses;
};

/// The function's own variables that an expression mentions.
void addMentioned(const Stmt *s, std::set<std::string> &into) {
  if (!s)
    return;
  if (auto *ref = dyn_cast<DeclRefExpr>(s))
    if (auto *v = dyn_cast<VarDecl>(ref->getDecl()); v && v->isLocalVarDeclOrParm())
      into.insert(v->getNameAsString());
  for (const Stmt *child : s->children())
    addMentioned(child, into);
}

std::vector<std::set<std::string>> mentionedBy(const CUDAKernelCallExpr &launch) {
  std::vector<std::set<std::string>> result;
  for (const Expr *argument : launch.arguments())
    addMentioned(argument, result.emplace_back());
  return result;
}

bool isLoop(const Stmt *s) { return isa<ForStmt, WhileStmt, DoStmt, CXXForRangeStmt>(s); }

/// The variable that the expression is, no part of it; null: none.
const VarDecl *variable(const Expr *e) { return isa<DeclRefExpr>(e->IgnoreParenImpCasts()) ? holder(e) : nullptr; }

/// What a loop with launches does to variables, and where its launches stand.
class LoopFacts {
public:
  using How = LaunchRun::Loop::Change;
  explicit LoopFacts(const Stmt &loop) { visit(&loop, 0, true); }
  bool isNested(const CUDAKernelCallExpr &launch) const { return places.at(&launch).first > 1; }
  bool isCertain(const CUDAKernelCallExpr &launch) const { return places.at(&launch).second; }
  /// LaunchRun::Loop::changed
  std::map<std::string, How> changed() const {
    std::map<std::string, How> result;
    for (const auto &[v, change] : changes)
      result[v->getNameAsString()] = change.isOfTurn ? How::OfTurn : change.times == 1 ? change.how : How::Other;
    return result;
  }

private:
  struct Change {
    unsigned times = 0;
    How how = How::Other;
    bool isOfTurn = false;
  };
  std::map<const CUDAKernelCallExpr *, std::pair<unsigned, bool>> places; ///< loops around it, and no condition
  std::map<const VarDecl *, Change> changes;

  void change(const Expr *place, How how) {
    if (const VarDecl *v = holder(place)) {
      ++changes[v].times;
      changes[v].how = variable(place) ? how : How::Other;
    }
  }
  static How howBy(const BinaryOperator &b) {
    const Expr *by = b.getRHS()->IgnoreParenImpCasts();
    const auto *number = dyn_cast<IntegerLiteral>(by);
    auto is = [&](uint64_t value) { return number && number->getValue() == value; };
    switch (b.getOpcode()) {
    case BO_AddAssign:
      return number ? How::Steps : variable(by) && variable(by) == variable(b.getLHS()) ? How::Doubles : How::Other;
    case BO_SubAssign: return number ? How::Steps : How::Other;
    case BO_MulAssign: return is(2) ? How::Doubles : How::Other;
    case BO_ShlAssign: return is(1) ? How::Doubles : How::Other;
    case BO_DivAssign: return is(2) ? How::Halves : How::Other;
    case BO_ShrAssign: return is(1) ? How::Halves : How::Other;
    default: return How::Other;
    }
  }
  void visit(const Stmt *s, unsigned loops, bool certain) {
    if (!s)
      return;
    if (auto *launch = dyn_cast<CUDAKernelCallExpr>(s))
      places[launch] = {loops, certain};
    const bool once = loops == 1 && certain;
    const auto *b = dyn_cast<BinaryOperator>(s);
    const How how = !once ? How::Other : b ? howBy(*b) : isa<UnaryOperator>(s) ? How::Steps : How::Other;
    for (const Expr *place : changedPlaces(s))
      change(place, how);
    if (auto *decls = dyn_cast<DeclStmt>(s)) {
      for (const Decl *d : decls->decls())
        if (auto *v = dyn_cast<VarDecl>(d); v && loops)
          changes[v].isOfTurn = true;
        else if (v)
          changes[v];
    }
    if (auto *loop = dyn_cast<ForStmt>(s)) {
      visit(loop->getInit(), loops, certain);
      visit(loop->getCond(), loops + 1, certain);
      visit(loop->getInc(), loops + 1, certain);
      return visit(loop->getBody(), loops + 1, certain);
    }
    if (auto *range = dyn_cast<CXXForRangeStmt>(s)) {
      changes[range->getLoopVariable()].isOfTurn = true;
      return visit(range->getBody(), loops + 1, certain);
    }
    const auto *macro = dyn_cast<DoStmt>(s);
    if (isa<WhileStmt, DoStmt>(s) && !(macro && runsOnce(*macro)))
      ++loops;
    if (isa<IfStmt, SwitchStmt, AbstractConditionalOperator>(s))
      certain = false;
    for (const Stmt *child : s->children())
      visit(child, loops, certain);
  }
};

/// LaunchRun::copies
class CopyFinder : public DynamicRecursiveASTVisitor {
public:
  std::map<std::string, std::string> copies;
  bool VisitVarDecl(VarDecl *v) override {
    const VarDecl *from = v->getInit() && v->getType()->isPointerType() ? variable(v->getInit()) : nullptr;
    if (from)
      copies[v->getNameAsString()] = from->getNameAsString();
    return true;
  }
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
        run.mentioned.push_back(mentionedBy(*launchOf(s)));
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
      if (good && addLoop(s, launches, run))
        continue;
      if (run.sites.empty() && !why.empty() && isLoop(s) && !launches.empty())
        found.notes.push_back(why + " (its loop stays as it is)");
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
    if (run.sites.size() > 1 || !run.loops.empty()) {
      if (function && function->doesThisDeclarationHaveABody() && !run.loops.empty()) {
        CopyFinder finder;
        finder.TraverseStmt(function->getBody());
        run.copies = std::move(finder.copies);
      }
      if (function && function->doesThisDeclarationHaveABody() && !hasDevicePointers && !isInLoop(ast, within))
        UsesOfMemory(*function, ast).tell(run);
      found.runs.push_back(std::move(run));
    }
    run = {};
  }
  /// The launch that the statement is.
  static const CUDAKernelCallExpr *launchOf(const Stmt *s) {
    if (auto *full = dyn_cast<ExprWithCleanups>(s))
      s = full->getSubExpr();
    return dyn_cast<CUDAKernelCallExpr>(s);
  }
  const unsigned *launchAt(const Stmt *s) const {
    const CUDAKernelCallExpr *launch = launchOf(s);
    if (!launch || launch->getBeginLoc().isMacroID() || !sm.isInMainFile(launch->getBeginLoc()))
      return nullptr;
    auto it = sites.find(sm.getFileOffset(launch->getBeginLoc()));
    return it == sites.end() ? nullptr : &it->second;
  }
  /// Takes a loop's launches in. False where it is no loop, or its turns cannot be told by the launches.
  bool addLoop(const Stmt *s, const std::vector<const CUDAKernelCallExpr *> &launches, LaunchRun &run) {
    const auto *once = dyn_cast<DoStmt>(s);
    const auto stop = isLoop(s) && !(once && runsOnce(*once)) && !s->getBeginLoc().isMacroID()
                          ? endOfLoop(*s, sm, ast.getLangOpts())
                          : std::nullopt;
    if (!stop)
      return false;
    LaunchRun::Loop loop;
    loop.begin = sm.getFileOffset(s->getBeginLoc());
    loop.end = *stop;
    loop.first = run.sites.size();
    loop.count = launches.size();
    const LoopFacts facts(*s);
    std::vector<unsigned> own;
    for (const CUDAKernelCallExpr *launch : launches) {
      const unsigned *site = launchAt(launch);
      if (!site || (launches.size() > 1 && facts.isNested(*launch)))
        return false;
      own.push_back(*site);
      loop.always.push_back(launches.size() == 1 || facts.isCertain(*launch));
    }
    if (!loop.always.front())
      return false;
    loop.changed = facts.changed();
    if (facts.isNested(*launches.front())) // a turn is one of an inner loop
      for (auto &[name, how] : loop.changed)
        how = LoopFacts::How::Other;
    llvm::append_range(run.sites, own);
    for (const CUDAKernelCallExpr *launch : launches)
      run.mentioned.push_back(mentionedBy(*launch));
    run.loops.push_back(std::move(loop));
    return true;
  }
  /// Leaves the statement itself; after an error nothing matters any more.
  static bool leaves(const Stmt *s) {
    if (isa<BreakStmt, ContinueStmt>(s))
      return true;
    if (auto *branch = dyn_cast<IfStmt>(s); branch && asksForError(branch->getCond()))
      return branch->getElse() && leaves(branch->getElse());
    if (isLoop(s)) // its own affair
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
