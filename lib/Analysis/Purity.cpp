//===- Purity.cpp - device functions without side effects -----------------===//
#include "optiml/Analysis/Purity.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "llvm/ADT/StringSet.h"

using namespace optiml;
using namespace clang;

namespace {
class BodyCheck : public RecursiveASTVisitor<BodyCheck> {
public:
  /// `makesObject`: of a constructor, whose object is its value.
  BodyCheck(PurityAnalysis &purity, bool makesObject) : purity(purity), makesObject(makesObject) {}
  bool pure = true;
  bool stop() {
    pure = false;
    return false;
  }
  bool VisitCallExpr(CallExpr *call) { return purity.isPure(call->getDirectCallee()) || stop(); }
  bool VisitGCCAsmStmt(GCCAsmStmt *) { return stop(); }
  bool VisitCXXNewExpr(CXXNewExpr *) { return stop(); }
  bool VisitUnaryOperator(UnaryOperator *op) { return op->getOpcode() != UO_Deref || stop(); }
  bool VisitArraySubscriptExpr(ArraySubscriptExpr *e) { return isLocalArray(e->getBase()) || stop(); }
  bool VisitMemberExpr(MemberExpr *e) {
    return !e->isArrow() || isa<CXXThisExpr>(e->getBase()->IgnoreParenImpCasts()) || stop();
  }
  bool VisitDeclRefExpr(DeclRefExpr *ref) {
    auto *v = dyn_cast<VarDecl>(ref->getDecl());
    static const llvm::StringSet<> indices = {"threadIdx", "blockIdx", "blockDim", "gridDim"};
    if (v && indices.contains(v->getName()))
      return stop(); // its value is another one in every thread
    if (v && v->isStaticLocal() && !v->getType().isConstQualified())
      return stop(); // another value at the next call
    if (!v || v->isLocalVarDeclOrParm())
      return (v && v->hasAttr<CUDASharedAttr>()) ? stop() : true;
    return v->getType().isConstQualified() || v->hasAttr<CUDAConstantAttr>() || stop();
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
  PurityAnalysis &purity;
  bool makesObject;
};
} // namespace

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
  } else if (isHalfHeader(ast.getSourceManager(), function->getLocation())) {
    // Arithmetic and conversions, by inline assembly; but for exchanges between the threads of a warp.
    auto *method = dyn_cast<CXXMethodDecl>(function);
    result = !llvm::StringRef(name).starts_with("__shfl") && !function->getReturnType()->isReferenceType() &&
             (isa<CXXConstructorDecl>(function) ||
              (!function->getReturnType()->isVoidType() && (!method || method->isStatic() || method->isConst())));
  } else if (unsigned id = function->getBuiltinID()) {
    result = ast.BuiltinInfo.isConst(id);
  } else if (function->hasBody(definition)) {
    BodyCheck check(*this, isa<CXXConstructorDecl>(definition));
    check.TraverseStmt(definition->getBody());
    result = check.pure;
    if (auto *constructor = dyn_cast<CXXConstructorDecl>(definition)) {
      for (CXXCtorInitializer *initializer : constructor->inits())
        if (Expr *value = initializer->getInit()) {
          auto *written = dyn_cast<CXXDefaultInitExpr>(value); // beside the member's declaration
          check.TraverseStmt(written ? written->getExpr() : value);
        }
      result = check.pure;
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
