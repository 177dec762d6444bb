//===- Callable.cpp - functions that a host program can call ---------------===//
#include "optiml/Evaluate/Harness/Harness.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DynamicRecursiveASTVisitor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace optiml;
using namespace clang;

namespace {

/// What one function's body does.
struct Body {
  std::set<const FunctionDecl *> calls;
  std::set<const FunctionDecl *> kernels; ///< that it launches
  std::set<const ParmVarDecl *> hostPointers;
  bool launches = false;
  unsigned axes = 1;
  bool dynamicShared = false;
};

class BodyReader : public DynamicRecursiveASTVisitor {
public:
  explicit BodyReader(Body &body) : body(body) {}

  bool VisitCUDAKernelCallExpr(CUDAKernelCallExpr *call) override {
    body.launches = true;
    if (const FunctionDecl *kernel = call->getDirectCallee())
      body.kernels.insert(kernel->getCanonicalDecl());
    return true;
  }

  bool VisitCallExpr(CallExpr *call) override {
    const FunctionDecl *callee = call->getDirectCallee();
    if (!callee || isa<CUDAKernelCallExpr>(call))
      return true;
    body.calls.insert(callee->getCanonicalDecl());
    StringRef name = callee->getIdentifier() ? callee->getName() : "";
    body.launches |= name.starts_with("cudaLaunchKernel") || name == "cudaLaunchCooperativeKernel";
    if (name.starts_with("cudaMemcpy"))
      noteCopy(call);
    return true;
  }

  bool VisitDeclRefExpr(DeclRefExpr *expr) override {
    if (const auto *fn = dyn_cast<FunctionDecl>(expr->getDecl()); fn && fn->hasAttr<CUDAGlobalAttr>())
      body.kernels.insert(fn->getCanonicalDecl());
    if (const auto *variable = dyn_cast<VarDecl>(expr->getDecl()))
      body.dynamicShared |= variable->hasAttr<CUDASharedAttr>() && variable->hasExternalStorage();
    return true;
  }

  /// threadIdx.y and its like.
  bool VisitMSPropertyRefExpr(MSPropertyRefExpr *expr) override {
    const auto *base = dyn_cast<DeclRefExpr>(expr->getBaseExpr()->IgnoreParenImpCasts());
    if (!base || !base->getDecl()->getIdentifier())
      return true;
    StringRef name = base->getDecl()->getName();
    if (name == "threadIdx" || name == "blockIdx")
      body.axes = std::max(
          body.axes,
          llvm::StringSwitch<unsigned>(expr->getPropertyDecl()->getName()).Case("y", 2).Case("z", 3).Default(1));
    return true;
  }

private:
  /// In cudaMemcpy(to, from, bytes, kind) the kind tells which is the host's.
  void noteCopy(CallExpr *call) {
    StringRef kind;
    for (Expr *argument : call->arguments())
      if (const auto *ref = dyn_cast<DeclRefExpr>(argument->IgnoreParenImpCasts());
          ref && isa<EnumConstantDecl>(ref->getDecl()))
        kind = ref->getDecl()->getName();
    const bool toDevice = kind == "cudaMemcpyHostToDevice", toHost = kind == "cudaMemcpyDeviceToHost";
    if (!toDevice && !toHost)
      return;
    const unsigned index = toHost ? 0 : 1;
    if (call->getNumArgs() <= index)
      return;
    struct Finder : DynamicRecursiveASTVisitor {
      std::set<const ParmVarDecl *> &found;
      explicit Finder(std::set<const ParmVarDecl *> &found) : found(found) {}
      bool VisitDeclRefExpr(DeclRefExpr *expr) override {
        if (const auto *parameter = dyn_cast<ParmVarDecl>(expr->getDecl());
            parameter && parameter->getType()->isPointerType())
          found.insert(parameter);
        return true;
      }
    } finder(body.hostPointers);
    finder.TraverseStmt(call->getArg(index));
  }

  Body &body;
};

class Collector : public DynamicRecursiveASTVisitor {
public:
  /// Instances too: a function may launch through a template.
  explicit Collector(ASTContext &ast) : sm(ast.getSourceManager()) { ShouldVisitTemplateInstantiations = true; }
  std::vector<std::pair<const FunctionDecl *, Body>> functions;
  bool hasMain = false;

  bool VisitFunctionDecl(FunctionDecl *fn) override {
    if (!fn->isThisDeclarationADefinition() || fn->isDependentContext() ||
        !sm.isInMainFile(sm.getExpansionLoc(fn->getLocation())))
      return true;
    hasMain |= fn->isMain();
    Body body;
    BodyReader(body).TraverseStmt(fn->getBody());
    functions.push_back({fn, std::move(body)});
    return true;
  }

private:
  const SourceManager &sm;
};

CallableParameter describe(const ParmVarDecl &parameter, unsigned number, const Body &body, ASTContext &ast) {
  PrintingPolicy policy(ast.getLangOpts());
  policy.SuppressTagKeyword = true;
  CallableParameter result;
  result.name = parameter.getIdentifier() ? parameter.getName().str() : "parameter" + std::to_string(number + 1);
  QualType type = parameter.getType().getNonReferenceType().getCanonicalType().getUnqualifiedType();
  result.type = type.getAsString(policy);
  if (parameter.getType().getAsString().find("cudaStream_t") != std::string::npos)
    result.kind = CallableParameter::Stream;
  else if (type->isBooleanType())
    result.kind = CallableParameter::Boolean;
  else if (type->isIntegralOrUnscopedEnumerationType() && !type->isEnumeralType())
    result.kind = CallableParameter::Integer;
  else if (type->isRealFloatingType())
    result.kind = CallableParameter::Floating;
  else if (type->isPointerType()) {
    QualType element = type->getPointeeType();
    if (element->isVoidType() || element->isPointerType() || element->isFunctionType() || element->isIncompleteType())
      return result;
    result.kind = CallableParameter::Buffer;
    result.written = !element.isConstQualified();
    result.hostMemory = body.hostPointers.count(&parameter);
    result.type = element.getUnqualifiedType().getAsString(policy);
    result.elementBytes = uint64_t(ast.getTypeSizeInChars(element).getQuantity());
  }
  return result;
}

Callable describe(const FunctionDecl &fn, const Body &body, ASTContext &ast) {
  Callable result;
  result.name = fn.getQualifiedNameAsString();
  result.line =
      ast.getSourceManager().getPresumedLoc(ast.getSourceManager().getExpansionLoc(fn.getLocation())).getLine();
  result.isKernel = fn.hasAttr<CUDAGlobalAttr>();
  result.axes = body.axes;
  result.dynamicShared = body.dynamicShared;
  if (const auto *bounds = fn.getAttr<CUDALaunchBoundsAttr>())
    if (std::optional<llvm::APSInt> value = bounds->getMaxThreads()->getIntegerConstantExpr(ast))
      result.maxThreads = unsigned(value->getLimitedValue(1024));
  for (unsigned i = 0; i < fn.getNumParams(); ++i)
    result.parameters.push_back(describe(*fn.getParamDecl(i), i, body, ast));
  return result;
}

} // namespace

std::vector<const CallableParameter *> Callable::of(CallableParameter::Kind kind) const {
  std::vector<const CallableParameter *> result;
  for (const CallableParameter &p : parameters)
    if (p.kind == kind)
      result.push_back(&p);
  return result;
}

std::string Callable::obstacle() const {
  for (const CallableParameter &p : parameters)
    if (p.kind == CallableParameter::Unknown)
      return "its parameter '" + p.name + "' has the type " + p.type;
  if (of(CallableParameter::Buffer).empty())
    return "it takes no buffer";
  return "";
}

struct FileFunctions::Impl {
  ASTContext &ast;
  Collector found;
  explicit Impl(ASTContext &ast) : ast(ast), found(ast) {
    found.TraverseAST(ast);
    // A function launches what those that it calls launch.
    for (bool changed = true; changed;) {
      changed = false;
      for (auto &[fn, body] : found.functions)
        for (auto &[other, otherBody] : found.functions)
          if (body.calls.count(other->getCanonicalDecl()) && otherBody.launches && !body.launches)
            body.launches = changed = true;
    }
  }
};

FileFunctions::FileFunctions(const Program &program) : impl(std::make_unique<Impl>(program.ast())) {}
FileFunctions::~FileFunctions() = default;

bool FileFunctions::haveMain() const { return impl->found.hasMain; }

std::vector<Callable> FileFunctions::callables() const {
  auto isHost = [](const FunctionDecl *fn) {
    return !fn->hasAttr<CUDAGlobalAttr>() && (!fn->hasAttr<CUDADeviceAttr>() || fn->hasAttr<CUDAHostAttr>());
  };
  std::set<const FunctionDecl *> used;
  for (const auto &[fn, body] : impl->found.functions)
    if (isHost(fn) && body.launches) {
      used.insert(body.calls.begin(), body.calls.end());
      used.insert(body.kernels.begin(), body.kernels.end());
    }
  std::vector<Callable> hosts, kernels;
  for (const auto &[fn, body] : impl->found.functions) {
    const bool isKernel = fn->hasAttr<CUDAGlobalAttr>();
    if (fn->isTemplateInstantiation() || fn->isMain() || isa<CXXMethodDecl>(fn) || used.count(fn->getCanonicalDecl()) ||
        (!isKernel && !(isHost(fn) && body.launches)))
      continue;
    (isKernel ? kernels : hosts).push_back(describe(*fn, body, impl->ast));
  }
  hosts.insert(hosts.end(), kernels.begin(), kernels.end());
  return hosts;
}

std::set<std::string> FileFunctions::reachableFrom(llvm::StringRef function) const {
  std::vector<const FunctionDecl *> waiting;
  std::map<const FunctionDecl *, const Body *> bodies;
  for (const auto &[fn, body] : impl->found.functions) {
    bodies[fn->getCanonicalDecl()] = &body;
    if (fn->getQualifiedNameAsString() == function)
      waiting.push_back(fn->getCanonicalDecl());
  }
  std::set<const FunctionDecl *> seen;
  std::set<std::string> names;
  while (!waiting.empty()) {
    const FunctionDecl *fn = waiting.back();
    waiting.pop_back();
    if (!seen.insert(fn).second)
      continue;
    names.insert(fn->getNameAsString());
    if (auto it = bodies.find(fn); it != bodies.end())
      for (const std::set<const FunctionDecl *> *next : {&it->second->calls, &it->second->kernels})
        waiting.insert(waiting.end(), next->begin(), next->end());
  }
  return names;
}
