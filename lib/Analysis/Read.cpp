//===- Read.cpp - a kernel's tree -----------------------------------------===//
#include "ChangedParameters.h"
#include "Choices.h"
#include "KernelReader.h"
#include "optiml/Analysis/Advances.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/Pointees.h"
#include "optiml/Analysis/TreeQueries.h"

using namespace optiml;

/// Names of the file's variables that device code can use: no local may take one, for scopes are flattened and helpers
/// are read in other scopes than their own.
static void collectGlobals(const cl::DeclContext *context, const cl::SourceManager &sm, std::set<std::string> &into) {
  for (const cl::Decl *d : context->noload_decls()) {
    if (llvm::isa<cl::NamespaceDecl, cl::LinkageSpecDecl>(d))
      collectGlobals(llvm::cast<cl::DeclContext>(d), sm, into);
    auto *v = llvm::dyn_cast<cl::VarDecl>(d);
    if (v && !sm.isInSystemHeader(v->getLocation()) &&
        (v->hasAttr<cl::CUDADeviceAttr>() || v->hasAttr<cl::CUDAConstantAttr>() || v->hasAttr<cl::HIPManagedAttr>() ||
         v->getType().isConstQualified()))
      into.insert(v->getNameAsString());
  }
}

/// By its name alone: a member of another class may be called so, too.
static bool namesHidden(Kernel &kernel, const std::set<std::string> &hidden) {
  return anyExpr(*kernel.body, [&](const ExprRef &e) {
    size_t dot = e->kind == ExprKind::Var ? e->text.rfind('.') : std::string::npos; // "p.data" is a name of its own
    return (e->kind == ExprKind::Member && hidden.count(e->text)) ||
           (dot != std::string::npos && hidden.count(e->text.substr(dot + 1)));
  });
}

/// Whether the text that Clang prints for the value names it: floating-point numbers lose digits.
static bool isPrintedExactly(const cl::APValue &value) {
  if (value.isStruct()) {
    for (unsigned i = 0; i < value.getStructNumBases(); ++i)
      if (!isPrintedExactly(value.getStructBase(i)))
        return false;
    for (unsigned i = 0; i < value.getStructNumFields(); ++i)
      if (!isPrintedExactly(value.getStructField(i)))
        return false;
    return true;
  }
  return value.isInt();
}

static bool hasName(cl::QualType type);

/// Whether the text names it.
static bool isPrintedExactly(const cl::TemplateArgument &argument) {
  using Kind = cl::TemplateArgument;
  switch (argument.getKind()) {
  case Kind::Type: return hasName(argument.getAsType());
  case Kind::Template: return true;
  case Kind::Integral:
    return !argument.getAsIntegral().isMinSignedValue() || argument.getAsIntegral().getBitWidth() < 64;
  case Kind::StructuralValue: return isPrintedExactly(argument.getAsStructuralValue());
  case Kind::Pack:
    return llvm::all_of(argument.pack_elements(), [](const Kind &element) { return isPrintedExactly(element); });
  default: return false;
  }
}

/// Whether the type can be written at namespace scope.
static bool hasName(cl::QualType type) {
  const cl::TagDecl *tag = type->isPointerType() ? type->getPointeeType()->getAsTagDecl() : type->getAsTagDecl();
  if (!tag)
    return true;
  const auto *record = llvm::dyn_cast<cl::CXXRecordDecl>(tag);
  if ((record && record->isLambda()) || tag->getParentFunctionOrMethod())
    return false;
  const auto *specialization = llvm::dyn_cast<cl::ClassTemplateSpecializationDecl>(tag);
  return !specialization || llvm::all_of(specialization->getTemplateArgs().asArray(),
                                         [](const auto &argument) { return isPrintedExactly(argument); });
}

llvm::Expected<std::shared_ptr<Kernel>> KernelReader::read(const KernelDecl &source) {
  const cl::FunctionDecl *fn = kernelDecl = source.decl;
  stands = source.placeOffset ? sm.getLocForStartOfFile(sm.getMainFileID()).getLocWithOffset(int(source.placeOffset))
                              : sm.getExpansionLoc(fn->getBody()->getEndLoc());
  collectGlobals(ast.getTranslationUnitDecl(), sm, taken);
  auto kernel = std::make_shared<Kernel>();
  kernel->name = fn->getNameAsString();
  kernel->line = source.line;
  for (const cl::ParmVarDecl *param : fn->parameters()) {
    if (param->getType()->isReferenceType())
      return fail(param->getLocation(), "a parameter is a reference");
    if (!hasName(param->getType()))
      return fail(param->getLocation(),
                  "a lambda or a class of a function's own is a type of its parameters, which has "
                  "no name here");
    std::string name = param->getNameAsString();
    if (name.empty())
      name = "unused" + std::to_string(param->getFunctionScopeIndex());
    kernel->params.push_back({claim(param, name), convert(param->getType()), fieldsOf(param->getType())});
    if (param->getType()->isRecordType() && !factsOf(fn).modified.count(param))
      memberPointers.insert(name);
  }
  if (const cl::TemplateArgumentList *list = fn->getTemplateSpecializationArgs())
    for (const cl::TemplateArgument &argument : list->asArray())
      if (!isPrintedExactly(argument))
        return fail(fn->getLocation(), "a template argument has no exact name here");
  if (auto *bounds = fn->getAttr<cl::CUDALaunchBoundsAttr>()) {
    kernel->maxThreads = evaluate(bounds->getMaxThreads());
    kernel->minBlocks = evaluate(bounds->getMinBlocks());
  }
  kernel->body = block();
  groups.find(*fn);
  statement(fn->getBody(), kernel->body->body);
  kernel->body->body.insert(kernel->body->body.begin(), sharedOfCallees.begin(), sharedOfCallees.end());
  if (!problem.empty())
    return llvm::make_error<NotApplicable>(problem, place);
  removeUnusedClosures(*kernel);
  typeDynamicShared(*kernel);
  removeContinues(*kernel->body);
  followParameters(*kernel, taken);
  namePointees(*kernel);
  // "Sum *s = &sums[labels[i]];": rows that data choose.
  nameRows(*kernel, taken, [](const std::string &, const ExprRef &index) { return anyNode(index, isLoad); });
  splitRecords(*kernel, records, taken);
  if (namesHidden(*kernel, records.hidden))
    return llvm::make_error<NotApplicable>("a private member cannot be named in the kernel", place);
  useOneCounter(*kernel, taken);
  normalize(*kernel);
  foldChoices(*kernel);
  return kernel;
}

llvm::Error KernelReader::fail(cl::SourceLocation loc, const std::string &why) {
  note(loc, why);
  return llvm::make_error<NotApplicable>(problem, place);
}

void KernelReader::note(cl::SourceLocation loc, const std::string &why) {
  if (!problem.empty())
    return;
  problem = why;
  cl::PresumedLoc p = sm.getPresumedLoc(sm.getExpansionLoc(loc));
  if (p.isValid())
    place = llvm::formatv("{0}:{1}", p.getFilename(), p.getLine());
}

unsigned KernelReader::evaluate(const cl::Expr *e) {
  cl::Expr::EvalResult result;
  if (!e || !e->EvaluateAsInt(result, ast))
    return 0;
  return unsigned(result.Val.getInt().getZExtValue());
}

std::string KernelReader::uniqueName(const std::string &wish) {
  std::string name = wish;
  for (unsigned i = 1; taken.count(name); ++i)
    name = wish + "_" + std::to_string(i);
  taken.insert(name);
  return name;
}

llvm::Expected<std::shared_ptr<Kernel>> optiml::readKernel(const Program &program, const KernelDecl &kernel) {
  if (!kernel.decl || !kernel.decl->getBody())
    return llvm::make_error<NotApplicable>("kernel '" + kernel.name + "' has no body here",
                                           llvm::formatv("{0}:{1}", kernel.file, kernel.line).str());
  auto read = [&](bool followReferences, bool intoPrivate) {
    auto tree = KernelReader(program.ast(), followReferences, intoPrivate).read(kernel);
    if (tree)
      (*tree)->macros = program.macros();
    return tree;
  };
  // A private member may be left, or a reference be used in a construct that is kept verbatim.
  for (bool intoPrivate : {true, false}) {
    auto tree = read(/*followReferences=*/true, intoPrivate);
    if (tree)
      return tree;
    llvm::consumeError(tree.takeError());
  }
  return read(/*followReferences=*/false, /*intoPrivate=*/false);
}
