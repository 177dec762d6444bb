//===- KernelTextCheck.cpp - what new kernel text may hold ----------------===//
#include "optiml/Frontend/KernelTextCheck.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Words.h"
#include "clang/AST/Attr.h"
#include "clang/AST/DynamicRecursiveASTVisitor.h"
#include "clang/Lex/Lexer.h"

using namespace optiml;
using llvm::StringRef;
namespace cl = clang;

/// Device code's way to the outside, and promises to the compiler that nobody checks.
static bool isForbiddenCallee(StringRef name) {
  static const std::set<StringRef> forbidden =
      words("printf vprintf malloc free memalign alloca __trap __brkpt __assert_fail __assertfail abort exit trap "
            "__prof_trigger __builtin_trap __builtin_debugtrap __builtin_unreachable __builtin_assume "
            "__builtin_alloca __builtin_assume_separate_storage __builtin_printf __nv_printf __assume "
            "__builtin_longjmp __builtin_setjmp __builtin_return_address __builtin_frame_address "
            "__builtin_verbose_trap __builtin_malloc __builtin_free");
  return forbidden.count(name) || name.starts_with("cuda") || name.starts_with("cu_");
}

static bool maySay(const cl::Attr &attr) {
  if (attr.isImplicit() || attr.isInherited())
    return true;
  return llvm::isa<cl::CUDADeviceAttr, cl::CUDAGlobalAttr, cl::CUDASharedAttr, cl::CUDALaunchBoundsAttr,
                   cl::AlwaysInlineAttr, cl::NoInlineAttr, cl::AlignedAttr, cl::UnusedAttr>(attr);
}

namespace {

/// What a function and those it calls do beyond their arguments: the file's variables that are read, and those that may
/// be written (whose address goes anywhere but into a load); calls that no new text may make, and assembly, in the
/// user's own functions.
struct GlobalUses {
  std::set<std::string> read, written, reached;
};

class GlobalUseVisitor : public cl::DynamicRecursiveASTVisitor {
public:
  GlobalUseVisitor(const cl::SourceManager &sm, GlobalUses &uses) : sm(sm), uses(uses) {
    ShouldVisitImplicitCode = true;
  }

  void addFunction(const cl::FunctionDecl *fn) {
    const cl::FunctionDecl *definition = nullptr;
    if (!fn || !fn->hasBody(definition) || !seen.insert(definition).second)
      return;
    TraverseStmt(definition->getBody());
  }

  bool VisitCallExpr(cl::CallExpr *call) override {
    const cl::FunctionDecl *callee = call->getDirectCallee();
    addFunction(callee);
    if (callee && callee->getDeclName().isIdentifier() && isForbiddenCallee(callee->getName()) &&
        isUsers(call->getBeginLoc()))
      uses.reached.insert(callee->getNameAsString());
    return true;
  }
  bool VisitCXXConstructExpr(cl::CXXConstructExpr *made) override {
    addFunction(made->getConstructor());
    return true;
  }
  bool VisitAsmStmt(cl::AsmStmt *s) override {
    if (isUsers(static_cast<cl::Stmt *>(s)->getBeginLoc())) // an AsmStmt's own answers nothing
      uses.reached.insert("asm");
    return true;
  }
  // What is made here is destroyed here.
  bool VisitVarDecl(cl::VarDecl *variable) override {
    addDestructors(variable->getType());
    return true;
  }
  bool VisitCXXBindTemporaryExpr(cl::CXXBindTemporaryExpr *temporary) override {
    addDestructors(temporary->getType());
    return true;
  }
  bool TraverseImplicitCastExpr(cl::ImplicitCastExpr *cast) override {
    if (cast->getCastKind() == cl::CK_LValueToRValue)
      if (const cl::VarDecl *variable = loaded(cast->getSubExpr())) {
        uses.read.insert(variable->getQualifiedNameAsString());
        return true;
      }
    return cl::DynamicRecursiveASTVisitor::TraverseImplicitCastExpr(cast);
  }
  bool VisitDeclRefExpr(cl::DeclRefExpr *ref) override {
    if (const cl::VarDecl *variable = mutableGlobal(ref)) {
      uses.read.insert(variable->getQualifiedNameAsString());
      uses.written.insert(variable->getQualifiedNameAsString());
    }
    return true;
  }

private:
  /// CUDA's headers, and what stands in for parts of them, have assembly in many functions.
  bool isUsers(cl::SourceLocation where) const {
    cl::SourceLocation at = sm.getExpansionLoc(where);
    return !sm.isInSystemHeader(at) && !sm.getFilename(at).starts_with("/optiml/");
  }

  void addDestructors(cl::QualType type) {
    const cl::CXXRecordDecl *record = type->getBaseElementTypeUnsafe()->getAsCXXRecordDecl();
    if (!record || !record->hasDefinition() || record->hasTrivialDestructor() || !destroyed.insert(record).second)
      return;
    addFunction(record->getDestructor());
    for (const cl::FieldDecl *field : record->fields())
      addDestructors(field->getType());
    for (const cl::CXXBaseSpecifier &base : record->bases())
      addDestructors(base.getType());
  }

  static const cl::VarDecl *mutableGlobal(const cl::DeclRefExpr *ref) {
    auto *variable = llvm::dyn_cast<cl::VarDecl>(ref->getDecl());
    if (!variable || !variable->hasGlobalStorage() || variable->hasAttr<cl::CUDASharedAttr>() ||
        variable->isConstexpr() || variable->getType().isConstQualified())
      return nullptr;
    // A static __shared__ of a function has its attribute; anything else that is local is not global.
    return variable;
  }
  /// The variable of which an element or member is loaded; its subscripts are visited.
  const cl::VarDecl *loaded(cl::Expr *e) {
    e = e->IgnoreParens();
    if (auto *ref = llvm::dyn_cast<cl::DeclRefExpr>(e))
      return mutableGlobal(ref);
    if (auto *member = llvm::dyn_cast<cl::MemberExpr>(e); member && !member->isArrow())
      return loaded(member->getBase());
    if (auto *element = llvm::dyn_cast<cl::ArraySubscriptExpr>(e)) {
      auto *decay = llvm::dyn_cast<cl::ImplicitCastExpr>(element->getBase()->IgnoreParens());
      if (!decay || decay->getCastKind() != cl::CK_ArrayToPointerDecay)
        return nullptr;
      const cl::VarDecl *variable = loaded(decay->getSubExpr());
      if (variable)
        TraverseStmt(element->getIdx());
      return variable;
    }
    return nullptr;
  }

  const cl::SourceManager &sm;
  GlobalUses &uses;
  std::set<const cl::FunctionDecl *> seen;
  std::set<const cl::CXXRecordDecl *> destroyed;
};

/// Whether bytes of such a type are, or hold, an address.
bool holdsPointer(cl::QualType type, unsigned depth = 0) {
  type = type.getCanonicalType();
  if (type->isAnyPointerType() || type->isReferenceType() || type->isMemberPointerType())
    return true;
  const cl::RecordDecl *record = type->getBaseElementTypeUnsafe()->getAsRecordDecl();
  if (!record)
    return type->isArrayType() && holdsPointer(cl::QualType(type->getBaseElementTypeUnsafe(), 0), depth);
  record = record->getDefinition();
  if (!record || depth > 8)
    return true;
  if (auto *cxx = llvm::dyn_cast<cl::CXXRecordDecl>(record))
    for (const cl::CXXBaseSpecifier &base : cxx->bases())
      if (holdsPointer(base.getType(), depth + 1))
        return true;
  return llvm::any_of(record->fields(),
                      [&](const cl::FieldDecl *field) { return holdsPointer(field->getType(), depth + 1); });
}

/// Looks at everything in the new functions.
class BodyCheck : public cl::DynamicRecursiveASTVisitor {
public:
  BodyCheck(cl::SourceManager &sm, bool allowAssembly) : sm(sm), allowAssembly(allowAssembly) {
    ShouldVisitTemplateInstantiations = true;
  }
  std::string problem;

  bool fail(cl::SourceLocation where, const llvm::Twine &why) {
    if (problem.empty()) {
      cl::PresumedLoc place = sm.getPresumedLoc(sm.getExpansionLoc(where));
      problem = (place.isValid() ? llvm::Twine(place.getFilename()) + ":" + llvm::Twine(place.getLine()) + ": "
                                 : llvm::Twine(""))
                    .str();
      problem += why.str();
    }
    return false;
  }

  bool VisitDecl(cl::Decl *decl) override {
    for (const cl::Attr *attr : decl->attrs())
      if (!maySay(*attr))
        return fail(decl->getLocation(), llvm::Twine("the attribute '") + attr->getSpelling() + "' is not allowed");
    if (auto *record = llvm::dyn_cast<cl::RecordDecl>(decl)) {
      auto *cxx = llvm::dyn_cast<cl::CXXRecordDecl>(record);
      if (!cxx || !cxx->isLambda())
        return fail(decl->getLocation(), "classes are not allowed");
    }
    if (auto *fn = llvm::dyn_cast<cl::FunctionDecl>(decl); fn && fn->isLocalExternDecl())
      return fail(decl->getLocation(), "functions must not be declared within a function");
    if (auto *variable = llvm::dyn_cast<cl::VarDecl>(decl)) {
      bool shared = variable->hasAttr<cl::CUDASharedAttr>();
      if (!shared && (variable->isStaticLocal() || variable->isLocalExternDecl()))
        return fail(decl->getLocation(), "static and extern variables are not allowed, except __shared__ ones");
      if (variable->hasAttr<cl::CUDADeviceAttr>() || variable->hasAttr<cl::CUDAConstantAttr>())
        if (!variable->isConstexpr())
          return fail(decl->getLocation(), "variables of the device are not allowed here");
    }
    return true;
  }
  bool VisitCallExpr(cl::CallExpr *call) override {
    if (call->isTypeDependent() || call->isValueDependent() ||
        llvm::isa<cl::CXXPseudoDestructorExpr>(call->getCallee()))
      return true;
    const cl::FunctionDecl *callee = call->getDirectCallee();
    if (!callee)
      return fail(call->getBeginLoc(), "calls through pointers are not allowed");
    if (auto *method = llvm::dyn_cast<cl::CXXMethodDecl>(callee); method && method->isVirtual())
      return fail(call->getBeginLoc(), "virtual calls are not allowed");
    if (callee->getDeclName().isIdentifier() && isForbiddenCallee(callee->getName()))
      return fail(call->getBeginLoc(), "calls of '" + callee->getName() + "' are not allowed");
    return true;
  }
  bool VisitCastExpr(cl::CastExpr *cast) override {
    if (cast->getCastKind() == cl::CK_IntegralToPointer)
      return fail(cast->getBeginLoc(), "pointers must not be made of integers");
    auto pointee = [](cl::QualType type) {
      return type->isPointerType() || type->isReferenceType() ? type->getPointeeType() : cl::QualType();
    };
    // Another way to make a pointer of an integer: *(float **)&number, memcpy(&pointer, &number, 8).
    if (cast->getCastKind() == cl::CK_LValueToRValueBitCast || cast->getCastKind() == cl::CK_LValueBitCast)
      if (holdsPointer(cast->getType()) || holdsPointer(cast->getSubExpr()->getType()))
        return fail(cast->getBeginLoc(), "the bytes of pointers must not be seen as another type");
    if (cast->getCastKind() == cl::CK_BitCast)
      for (cl::QualType seen : {pointee(cast->getType()), pointee(cast->getSubExpr()->getType())})
        if (!seen.isNull() && !seen->isVoidType() && !seen->isFunctionType() && holdsPointer(seen))
          return fail(cast->getBeginLoc(), "the bytes of pointers must not be seen as another type");
    cl::QualType from = pointee(cast->getSubExpr()->getType()), to = pointee(cast->getType());
    if (llvm::isa<cl::ExplicitCastExpr>(cast) && !from.isNull() && !to.isNull() && from.isConstQualified() &&
        !to.isConstQualified())
      return fail(cast->getBeginLoc(), "casts must not drop const");
    if (llvm::isa<cl::CXXConstCastExpr>(cast))
      return fail(cast->getBeginLoc(), "const_cast is not allowed");
    return true;
  }
  bool VisitAttributedStmt(cl::AttributedStmt *s) override {
    for (const cl::Attr *attr : s->getAttrs())
      if (!llvm::isa<cl::LoopHintAttr, cl::FallThroughAttr, cl::LikelyAttr, cl::UnlikelyAttr>(attr))
        return fail(s->getBeginLoc(), llvm::Twine("the attribute '") + attr->getSpelling() + "' is not allowed");
    return true;
  }
  bool VisitGCCAsmStmt(cl::GCCAsmStmt *s) override {
    return allowAssembly || fail(s->getBeginLoc(), "inline assembly is not allowed");
  }
  bool VisitMSAsmStmt(cl::MSAsmStmt *s) override { return fail(s->getBeginLoc(), "inline assembly is not allowed"); }
  bool VisitCXXNewExpr(cl::CXXNewExpr *e) override { return fail(e->getBeginLoc(), "new is not allowed"); }
  bool VisitCXXDeleteExpr(cl::CXXDeleteExpr *e) override { return fail(e->getBeginLoc(), "delete is not allowed"); }
  bool VisitCXXThrowExpr(cl::CXXThrowExpr *e) override { return fail(e->getBeginLoc(), "throw is not allowed"); }
  bool VisitCXXTryStmt(cl::CXXTryStmt *s) override { return fail(s->getBeginLoc(), "try is not allowed"); }
  bool VisitIndirectGotoStmt(cl::IndirectGotoStmt *s) override {
    return fail(s->getBeginLoc(), "computed goto is not allowed");
  }
  bool VisitCUDAKernelCallExpr(cl::CUDAKernelCallExpr *e) override {
    return fail(e->getBeginLoc(), "kernels must not be launched here");
  }
  bool VisitVAArgExpr(cl::VAArgExpr *e) override {
    return fail(e->getBeginLoc(), "variable arguments are not allowed");
  }

private:
  cl::SourceManager &sm;
  bool allowAssembly;
};

class DeclarationCheck {
public:
  DeclarationCheck(const Program &program, const KernelTextPlace &place)
      : program(program), place(place), sm(program.ast().getSourceManager()) {}
  llvm::Expected<const KernelDecl *> run();

private:
  llvm::Error look(const cl::DeclContext *context);
  llvm::Error checkTopLevel(cl::Decl *decl);
  unsigned offsetOf(cl::SourceLocation where) const { return sm.getFileOffset(sm.getExpansionLoc(where)); }
  bool isInside(cl::SourceLocation where) const {
    cl::SourceLocation at = sm.getExpansionLoc(where);
    return at.isValid() && sm.isInMainFile(at) && sm.getFileOffset(at) >= place.begin &&
           sm.getFileOffset(at) < place.end;
  }
  llvm::Error fail(cl::SourceLocation where, const llvm::Twine &why) {
    cl::PresumedLoc p = sm.getPresumedLoc(sm.getExpansionLoc(where));
    return makeError((llvm::Twine(p.isValid() ? p.getFilename() : "") + ":" +
                      llvm::Twine(p.isValid() ? p.getLine() : 0) + ": " + why)
                         .str());
  }

  const Program &program;
  const KernelTextPlace &place;
  cl::SourceManager &sm;
  std::vector<cl::FunctionDecl *> functions;
  const cl::FunctionDecl *kernel = nullptr;
};

} // namespace

llvm::Error DeclarationCheck::look(const cl::DeclContext *context) {
  for (cl::Decl *decl : context->noload_decls()) {
    if (decl->isImplicit())
      continue;
    if (isInside(decl->getBeginLoc())) {
      if (llvm::Error e = checkTopLevel(decl))
        return e;
    } else if (llvm::isa<cl::NamespaceDecl, cl::LinkageSpecDecl>(decl)) {
      if (llvm::Error e = look(llvm::cast<cl::DeclContext>(decl)))
        return e;
    }
  }
  return llvm::Error::success();
}

llvm::Error DeclarationCheck::checkTopLevel(cl::Decl *decl) {
  cl::FunctionDecl *fn = decl->getAsFunction();
  if (!fn || llvm::isa<cl::CXXMethodDecl>(fn))
    return fail(decl->getBeginLoc(), "only the kernel's body and __device__ functions are allowed");
  if (!fn->getDeclName().isIdentifier() || fn->getDeclContext() != fn->getLexicalDeclContext() ||
      fn->getTemplateSpecializationKind() != cl::TSK_Undeclared)
    return fail(decl->getBeginLoc(), "helpers must be plain functions with names of their own");
  if (fn->getName() == place.twin && offsetOf(fn->getBeginLoc()) == place.kernelBegin) {
    // Brackets of macros may end it elsewhere than where it seems to.
    cl::SourceLocation end = fn->getEndLoc();
    if (end.isMacroID() || offsetOf(end) + 1 != place.end)
      return fail(fn->getBeginLoc(), "the body does not end where it should");
    kernel = fn;
  } else {
    if (!fn->getName().starts_with(place.twin + "_"))
      return fail(fn->getBeginLoc(),
                  "the name of helper '" + fn->getName() + "' must begin with '" + place.twin + "_'");
    if (!fn->hasAttr<cl::CUDADeviceAttr>() || fn->hasAttr<cl::CUDAHostAttr>() || fn->hasAttr<cl::CUDAGlobalAttr>())
      return fail(fn->getBeginLoc(), "helper '" + fn->getName() + "' must be __device__ and nothing else");
    if (fn->isVariadic())
      return fail(fn->getBeginLoc(), "variable arguments are not allowed");
    if (fn->getEndLoc().isMacroID() || offsetOf(fn->getEndLoc()) >= place.kernelBegin)
      return fail(fn->getBeginLoc(), "helper '" + fn->getName() + "' does not end before the kernel");
    for (const cl::FunctionDecl *other : fn->redecls())
      if (!isInside(other->getBeginLoc()))
        return fail(fn->getBeginLoc(), "the name of helper '" + fn->getName() + "' is taken");
  }
  functions.push_back(fn);
  BodyCheck check(sm, place.allowAssembly);
  check.TraverseDecl(decl);
  return check.problem.empty() ? llvm::Error::success() : makeError(check.problem);
}

llvm::Expected<const KernelDecl *> DeclarationCheck::run() {
  if (llvm::Error e = look(program.ast().getTranslationUnitDecl()))
    return std::move(e);
  const KernelDecl *original = program.findKernel(place.symbol), *made = nullptr;
  for (const KernelDecl &candidate : program.kernels())
    if (kernel && candidate.decl == kernel)
      made = &candidate;
  if (!made || !original)
    return makeError("the new body does not make the kernel '{0}'", place.twin);
  GlobalUses before, after;
  GlobalUseVisitor(sm, before).addFunction(original->decl);
  GlobalUseVisitor(sm, after).addFunction(kernel);
  for (const std::string &name : after.written)
    if (!before.written.count(name))
      return makeError("the new body may write '{0}', which the original does not write", name);
  for (const std::string &name : after.read)
    if (!before.read.count(name) && !before.written.count(name))
      return makeError("the new body reads '{0}', which the original does not use", name);
  for (const std::string &name : after.reached)
    if (!before.reached.count(name) && !(name == "asm" && place.allowAssembly))
      return makeError("the new body reaches '{0}' through a function of the file, which the original does not", name);
  return made;
}

llvm::Expected<const KernelDecl *> optiml::checkKernelDeclarations(const Program &program,
                                                                   const KernelTextPlace &place) {
  return DeclarationCheck(program, place).run();
}
