//===- Purity.cpp - device functions without side effects -----------------===//
#include "optiml/Analysis/Purity.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DynamicRecursiveASTVisitor.h"
#include "llvm/ADT/StringSet.h"

using namespace optiml;
using namespace clang;

/// threadIdx and its like: its value is another one in every thread.
static bool isOfLaunch(const VarDecl &v) {
  static const llvm::StringSet<> indices = {"threadIdx", "blockIdx", "blockDim", "gridDim"};
  return indices.contains(v.getName());
}

/// `e` is a place in a variable for which `isMeant` holds, or a pointer into one, and in no array of pointers.
static bool leadsTo(const Expr *e, llvm::function_ref<bool(const VarDecl &)> isMeant) {
  for (;;) {
    e = e->IgnoreParens();
    if (auto *cast = dyn_cast<CastExpr>(e)) {
      const Expr *of = cast->getSubExpr();
      // A pointer that is loaded from memory may lead anywhere.
      if (cast->getCastKind() == CK_LValueToRValue && e->getType()->isPointerType() &&
          !isa<DeclRefExpr>(of->IgnoreParens()))
        return false;
      if (cast->getCastKind() == CK_IntegralToPointer)
        return false;
      e = of;
    } else if (auto *op = dyn_cast<UnaryOperator>(e);
               op && (op->getOpcode() == UO_AddrOf || op->getOpcode() == UO_Deref)) {
      e = op->getSubExpr();
    } else if (auto *member = dyn_cast<MemberExpr>(e)) {
      if (member->getMemberDecl()->getType()->isReferenceType() || !isa<FieldDecl>(member->getMemberDecl()))
        return false;
      e = member->getBase();
    } else if (auto *element = dyn_cast<ArraySubscriptExpr>(e)) {
      e = element->getBase();
    } else if (auto *sum = dyn_cast<BinaryOperator>(e); sum && sum->isAdditiveOp()) {
      e = sum->getLHS()->getType()->isPointerType() ? sum->getLHS() : sum->getRHS();
    } else if (auto *ref = dyn_cast<DeclRefExpr>(e)) {
      auto *v = dyn_cast<VarDecl>(ref->getDecl());
      return v && isMeant(*v);
    } else {
      return isa<CXXThisExpr>(e);
    }
  }
}

namespace {
/// What no text does that is pure, confined or unaware; the rest is for those derived to say.
class EffectCheck : public DynamicRecursiveASTVisitor {
public:
  bool good = true;
  /// Returned by what visits: the check ends where something is missing.
  bool require(bool condition) { return good &= condition; }
  bool VisitGCCAsmStmt(GCCAsmStmt *s) override { return require(purity.isInstruction(*s)); }
  bool VisitCXXNewExpr(CXXNewExpr *) override { return require(false); }
  bool VisitCXXBindTemporaryExpr(CXXBindTemporaryExpr *) override { return require(false); } // it is destroyed
  bool VisitCXXConstructExpr(CXXConstructExpr *e) override {
    return require(e->getConstructor()->isTrivial() || purity.isPure(e->getConstructor()));
  }
  bool VisitCXXDefaultArgExpr(CXXDefaultArgExpr *e) override { return TraverseStmt(e->getExpr()); }

protected:
  explicit EffectCheck(PurityAnalysis &purity) : purity(purity) {}
  PurityAnalysis &purity;
};

class BodyCheck : public EffectCheck {
public:
  /// `makesObject`: of a constructor, whose object is its value.
  BodyCheck(PurityAnalysis &purity, bool makesObject) : EffectCheck(purity), makesObject(makesObject) {}
  bool VisitCallExpr(CallExpr *call) override { return require(purity.isPure(call->getDirectCallee())); }
  bool VisitVarDecl(VarDecl *v) override { return require(!v->getType().isDestructedType()); }
  bool VisitUnaryOperator(UnaryOperator *op) override { return require(op->getOpcode() != UO_Deref); }
  bool VisitArraySubscriptExpr(ArraySubscriptExpr *e) override { return require(isLocalArray(e->getBase())); }
  bool VisitMemberExpr(MemberExpr *e) override {
    return require(!e->isArrow() || isa<CXXThisExpr>(e->getBase()->IgnoreParenImpCasts()));
  }
  bool VisitDeclRefExpr(DeclRefExpr *ref) override {
    auto *v = dyn_cast<VarDecl>(ref->getDecl());
    if (v && isOfLaunch(*v))
      return require(false);
    if (v && v->isStaticLocal() && !v->getType().isConstQualified())
      return require(false); // another value at the next call
    if (!v || v->isLocalVarDeclOrParm())
      return require(!v || !v->hasAttr<CUDASharedAttr>());
    return require(v->getType().isConstQualified() || v->hasAttr<CUDAConstantAttr>());
  }

private:
  bool isLocalArray(const Expr *base) const {
    base = base->IgnoreParenImpCasts();
    if (auto *element = dyn_cast<ArraySubscriptExpr>(base); element && element->getType()->isArrayType())
      return isLocalArray(element->getBase());
    if (auto *member = dyn_cast<MemberExpr>(base))
      return makesObject && member->getType()->isArrayType() &&
             isa<CXXThisExpr>(member->getBase()->IgnoreParenImpCasts());
    auto *ref = dyn_cast<DeclRefExpr>(base);
    auto *v = ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
    return v && v->isLocalVarDecl() && v->getType()->isArrayType() && !v->hasAttr<CUDASharedAttr>();
  }
  bool makesObject;
};

/// Each access and call of the body of a confined function.
class ConfinedCheck : public EffectCheck {
public:
  explicit ConfinedCheck(PurityAnalysis &purity) : EffectCheck(purity) {}
  bool VisitLambdaExpr(LambdaExpr *) override { return require(false); }
  bool VisitUnaryOperator(UnaryOperator *op) override {
    return require(op->getOpcode() != UO_Deref || leads(op->getSubExpr()));
  }
  bool VisitArraySubscriptExpr(ArraySubscriptExpr *e) override { return require(leads(e->getBase())); }
  bool VisitMemberExpr(MemberExpr *e) override { return require(!e->isArrow() || leads(e->getBase())); }
  bool VisitVarDecl(VarDecl *v) override {
    QualType type = v->getType();
    bool isOwn = !v->isStaticLocal() || type.isConstQualified();
    isOwn &= !v->hasAttr<CUDASharedAttr>() && !type.isVolatileQualified() && !type.isDestructedType();
    bool points = type->isPointerType() || type->isReferenceType();
    return require(isOwn && (!points || isa<ParmVarDecl>(v) || (v->hasInit() && leads(v->getInit()))));
  }
  bool VisitBinaryOperator(BinaryOperator *op) override {
    return require(op->getOpcode() != BO_Assign || !op->getType()->isPointerType() || leads(op->getRHS()));
  }
  bool VisitDeclRefExpr(DeclRefExpr *ref) override {
    auto *v = dyn_cast<VarDecl>(ref->getDecl());
    return require(!v || isOwn(*v));
  }
  bool VisitCallExpr(CallExpr *call) override {
    const FunctionDecl *callee = call->getDirectCallee();
    if (purity.isPure(callee))
      return true;
    if (!purity.isConfined(callee))
      return require(false);
    for (const Expr *arg : call->arguments())
      require(!(arg->getType()->isPointerType() || arg->isLValue()) || leads(arg));
    if (auto *ofObject = dyn_cast<CXXMemberCallExpr>(call))
      require(leads(ofObject->getImplicitObjectArgument()));
    return good;
  }

private:
  /// A local, a parameter, or a constant of the file.
  static bool isOwn(const VarDecl &v) {
    return v.isLocalVarDeclOrParm() ||
           ((v.getType().isConstQualified() || v.hasAttr<CUDAConstantAttr>()) && !isOfLaunch(v));
  }
  static bool leads(const Expr *e) {
    return leadsTo(
        e, [](const VarDecl &v) { return isOwn(v) && (v.isLocalVarDeclOrParm() || !v.getType()->isPointerType()); });
  }
};

/// Each access and call of text that any thread may run.
class UnawareCheck : public EffectCheck {
public:
  explicit UnawareCheck(PurityAnalysis &purity) : EffectCheck(purity) {}
  bool VisitLambdaExpr(LambdaExpr *) override { return require(false); }
  bool VisitCallExpr(CallExpr *call) override { return require(purity.isUnaware(*call)); }
  bool VisitDeclRefExpr(DeclRefExpr *ref) override {
    auto *v = dyn_cast<VarDecl>(ref->getDecl());
    return require(!v || !(isOfLaunch(*v) || v->hasAttr<CUDASharedAttr>()));
  }
  bool VisitVarDecl(VarDecl *v) override {
    return require(!v->isStaticLocal() && !v->hasAttr<CUDASharedAttr>() && !v->getType().isDestructedType());
  }
  bool VisitExpr(Expr *e) override { // volatile memory is how threads wait; the text of a static_assert has no type
    return require(e->getType().isNull() || !e->getType().isVolatileQualified());
  }
};

/// Each access and call of a function that any block may run.
class OfAnyBlockCheck : public EffectCheck {
public:
  explicit OfAnyBlockCheck(PurityAnalysis &purity) : EffectCheck(purity) {}
  bool VisitLambdaExpr(LambdaExpr *) override { return require(false); }
  bool VisitCallExpr(CallExpr *call) override {
    // In a loop it may wait for what another block has to do.
    return require(purity.isOfAnyBlock(*call)) && require(!loops || purity.isUnaware(*call) || exchanges(*call));
  }
  bool VisitDeclRefExpr(DeclRefExpr *ref) override {
    auto *v = dyn_cast<VarDecl>(ref->getDecl());
    return require(!v || !isOfLaunch(*v) || v->getName() == "threadIdx" || v->getName() == "blockDim");
  }
  bool VisitVarDecl(VarDecl *v) override {
    return require(!v->isStaticLocal() && !v->hasAttr<CUDASharedAttr>() && !v->getType().isDestructedType());
  }
  bool VisitExpr(Expr *e) override {
    return require(!loops || e->getType().isNull() || !e->getType().isVolatileQualified());
  }
  bool check(Stmt *body) {
    loops = holdsLoop(body);
    TraverseStmt(body);
    return good;
  }
  static bool exchanges(const CallExpr &call) {
    const FunctionDecl *callee = call.getDirectCallee();
    return callee && callee->getIdentifier() && llvm::StringRef(callee->getName()).starts_with("__shfl_");
  }

private:
  bool loops = false;
  static bool holdsLoop(const Stmt *s) {
    return s && (isa<ForStmt, WhileStmt, DoStmt, CXXForRangeStmt>(s) || llvm::any_of(s->children(), holdsLoop));
  }
};

/// Leaves the text, or enters it at another place than its begin.
bool jumps(const Stmt *s) {
  return s &&
         (isa<ReturnStmt, GotoStmt, IndirectGotoStmt, LabelStmt, SwitchCase>(s) || llvm::any_of(s->children(), jumps));
}
} // namespace

/// A default argument of the call is computed at run time.
static bool computesDefaults(const CallExpr &call, const ASTContext &ast) {
  return llvm::any_of(call.arguments(), [&](const Expr *argument) {
    auto *byDefault = dyn_cast<CXXDefaultArgExpr>(argument);
    return byDefault && !byDefault->getExpr()->isEvaluatable(ast);
  });
}

bool PurityAnalysis::isInstruction(const GCCAsmStmt &s) const {
  for (unsigned i = 0; i < s.getNumClobbers(); ++i)
    if (s.getClobber(i) == "memory")
      return false;
  const std::string text = s.getAsmString();
  const bool reads = text.find("ld") != std::string::npos || text.find("tex") != std::string::npos;
  return !reads && !s.isVolatile() && s.getNumInputs() > 0 && s.getNumOutputs() > 0 &&
         ast.getSourceManager().isInSystemHeader(s.getAsmLoc());
}

bool PurityAnalysis::isPure(const CallExpr &call) {
  return isPure(call.getDirectCallee()) && !computesDefaults(call, ast);
}

bool PurityAnalysis::isConfined(const CallExpr &call) {
  auto isOwn = [](const VarDecl &v) {
    return v.isLocalVarDecl() && !v.isStaticLocal() && !v.hasAttr<CUDASharedAttr>() && !v.getType()->isPointerType() &&
           !v.getType()->isReferenceType();
  };
  return isConfined(call.getDirectCallee()) && !computesDefaults(call, ast) &&
         llvm::all_of(call.arguments(), [&](const Expr *argument) {
           const bool leads = argument->getType()->isPointerType() || argument->isGLValue();
           return !leads || isa<MaterializeTemporaryExpr>(argument) || leadsTo(argument, isOwn);
         });
}

bool PurityAnalysis::isUnaware(const CallExpr &call) {
  return isUnaware(call.getDirectCallee()) && !computesDefaults(call, ast);
}

bool PurityAnalysis::isUnaware(const Stmt &s) {
  UnawareCheck check(*this);
  check.TraverseStmt(const_cast<Stmt *>(&s));
  return check.good && !jumps(&s);
}

bool PurityAnalysis::isUnaware(const FunctionDecl *function) {
  const FunctionDecl *definition = nullptr;
  // Which thread prints first is open anyway.
  static const llvm::StringSet<> tells = {"__assert_fail", "printf"};
  if (isPure(function) || (function && function->getIdentifier() && tells.contains(function->getName())))
    return true;
  if (!function || !function->hasBody(definition) || function->isVariadic())
    return false;
  if (auto it = unaware.find(function); it != unaware.end())
    return it->second;
  unaware[function] = false; // recursion: it may wait for something
  UnawareCheck check(*this);
  check.TraverseStmt(definition->getBody());
  return unaware[function] = check.good;
}

bool PurityAnalysis::isOfAnyBlock(const CallExpr &call) {
  return isOfAnyBlock(call.getDirectCallee()) && !computesDefaults(call, ast);
}

bool PurityAnalysis::isOfAnyBlock(const FunctionDecl *function) {
  if (isUnaware(function))
    return true;
  if (!function || !function->getIdentifier() || function->isVariadic())
    return false;
  if (auto it = ofAnyBlock.find(function); it != ofAnyBlock.end())
    return it->second;
  ofAnyBlock[function] = false; // recursion: it may wait for something
  const llvm::StringRef name = function->getName();
  const FunctionDecl *definition = nullptr;
  // Which index __fetch_builtin_x is of, its object says.
  if (ast.getSourceManager().isInSystemHeader(function->getLocation()))
    return ofAnyBlock[function] = name.starts_with("__fetch_builtin_") || name.starts_with("atomic") ||
                                  name.starts_with("__shfl_") || name.starts_with("__threadfence") ||
                                  name == "__syncwarp" || name == "__ballot_sync" || name == "__any_sync" ||
                                  name == "__all_sync";
  if (!function->hasBody(definition))
    return false;
  return ofAnyBlock[function] = OfAnyBlockCheck(*this).check(definition->getBody());
}

bool PurityAnalysis::isConfined(const FunctionDecl *function) {
  const FunctionDecl *definition = nullptr;
  if (!function || !function->hasBody(definition) || function->isVariadic() ||
      isNumberHeader(ast.getSourceManager(), function->getLocation()))
    return false;
  if (auto it = confined.find(function); it != confined.end())
    return it->second;
  confined[function] = false; // recursion: not confined
  ConfinedCheck check(*this);
  for (const ParmVarDecl *param : definition->parameters()) {
    QualType type = param->getType();
    if (type->isPointerType() || type->isReferenceType())
      type = type->getPointeeType();
    check.require(!type.isVolatileQualified() && !type->isPointerType());
  }
  if (isa<CXXConstructorDecl>(definition) || isa<CXXDestructorDecl>(definition) ||
      definition->getReturnType()->isPointerType() || definition->getReturnType()->isReferenceType())
    check.require(false);
  if (check.good)
    check.TraverseStmt(definition->getBody());
  return confined[function] = check.good;
}

bool PurityAnalysis::isPure(const FunctionDecl *function) {
  if (!function)
    return false;
  if (auto it = known.find(function); it != known.end())
    return it->second;
  known[function] = false; // recursion: not pure
  std::string name = function->getNameAsString();
  const FunctionDecl *definition = nullptr;
  bool result = false;
  bool byValue = true;
  for (const ParmVarDecl *param : function->parameters()) {
    QualType type = param->getType();
    byValue &= !type->isPointerType() && !(type->isReferenceType() && !type->getPointeeType().isConstQualified());
  }
  if (!byValue) {
    result = false;
  } else if (llvm::StringRef(name).starts_with("__nv_")) {
    result = true; // libdevice's mathematics
  } else if (isNumberHeader(ast.getSourceManager(), function->getLocation())) {
    // Arithmetic and conversions, by inline assembly; but for exchanges between the threads of a warp.
    auto *method = dyn_cast<CXXMethodDecl>(function);
    result = !llvm::StringRef(name).starts_with("__shfl") && !function->getReturnType()->isReferenceType() &&
             (isa<CXXConstructorDecl>(function) ||
              (!function->getReturnType()->isVoidType() && (!method || method->isStatic() || method->isConst())));
  } else if (unsigned id = function->getBuiltinID()) {
    // No kernel changes how numbers are rounded, or looks at errno.
    result = !llvm::StringRef(name).starts_with("__nvvm_read_ptx_sreg_") && // where the thread is
             (ast.BuiltinInfo.isConst(id) || ast.BuiltinInfo.isConstWithoutErrnoAndExceptions(id) ||
              ast.BuiltinInfo.isConstWithoutExceptions(id));
  } else if (function->hasBody(definition)) {
    BodyCheck check(*this, isa<CXXConstructorDecl>(definition));
    check.TraverseStmt(definition->getBody());
    result = check.good;
    if (auto *constructor = dyn_cast<CXXConstructorDecl>(definition)) {
      for (CXXCtorInitializer *initializer : constructor->inits())
        if (Expr *value = initializer->getInit()) {
          auto *written = dyn_cast<CXXDefaultInitExpr>(value); // beside the member's declaration
          check.TraverseStmt(written ? written->getExpr() : value);
        }
      result = check.good;
    } else if (auto *method = dyn_cast<CXXMethodDecl>(definition)) {
      result &= method->isStatic() || method->isConst();
    }
  } else {
    // The host's own mathematics (declared in math.h) is what Clang maps to libdevice.
    result = function->hasAttr<ConstAttr>() ||
             (function->isExternC() && ast.getSourceManager().isInSystemHeader(function->getLocation()) &&
              function->getReturnType()->isRealFloatingType());
  }
  known[function] = result;
  return result;
}
