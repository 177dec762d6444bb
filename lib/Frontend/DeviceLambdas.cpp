//===- DeviceLambdas.cpp - classes in place of device lambdas -------------===//
//
// The type of a lambda has no name, and what it has captured cannot be read from outside. So
//
//   launch(n, [=] __device__(int i) { y[i] = a * x[i]; });
//
// becomes, with the class before the function,
//
//   struct OptimlLambda7 {
//     float *y;
//     float a;
//     const float *x;
//     __device__ auto operator()(int i) const { y[i] = a * x[i]; }
//   };
//   launch(n, OptimlLambda7{y, a, x});
//
// The members are called as the variables are, so that the text of the lambda means the same. Lambdas stay that are
// generic, capture by reference or with an initializer, or use what only their function or class knows.
//
//===----------------------------------------------------------------------===//
#include "DeviceLambdas.h"
#include "TextEdits.h"
#include "optiml/Frontend/LineMarks.h"
#include "optiml/Frontend/TemplateArguments.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/QualTypeNames.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

using namespace clang;
using llvm::StringRef;

namespace {

/// Lambdas' classes by where the lambdas stand: of a template, that of one instantiation.
using Closures = std::map<SourceLocation, const CXXRecordDecl *>;

/// Adds those that are, or are arguments of, the type.
void addClosures(QualType type, Closures &closures) {
  const CXXRecordDecl *record = type.getNonReferenceType()->getAsCXXRecordDecl();
  if (!record)
    return;
  if (record->isLambda())
    closures.emplace(record->getLocation(), record);
  if (auto *specialization = dyn_cast<ClassTemplateSpecializationDecl>(record))
    for (const TemplateArgument &argument : specialization->getTemplateArgs().asArray())
      if (argument.getKind() == TemplateArgument::Type)
        addClosures(argument.getAsType(), closures);
}

/// Whether the declaration stands in a function, but not in the lambda.
bool isLocal(const Decl *decl, const LambdaExpr &lambda) {
  if (!decl->getDeclContext()->isFunctionOrMethod() && !decl->getParentFunctionOrMethod())
    return false;
  for (const DeclContext *around = decl->getDeclContext(); around; around = around->getParent())
    if (around == lambda.getCallOperator())
      return false;
  return true;
}

/// Whether the declaration is that of a class that the lambda stands in, or a member of it.
bool isOfOwnClass(const Decl *decl, const LambdaExpr &lambda) {
  for (const DeclContext *around = lambda.getLambdaClass()->getDeclContext(); around; around = around->getParent())
    if (around->isRecord() && (decl == cast<Decl>(around) || decl->getDeclContext() == around))
      return true;
  return false;
}

/// Whether the type can be written outside of the function.
bool hasName(QualType type, const LambdaExpr &lambda) {
  if (type->isPointerType() || type->isReferenceType())
    return hasName(type->getPointeeType(), lambda);
  if (type->isDependentType()) // of the function's template, whose parameters the class has, too
    return type->isTemplateTypeParmType();
  const TagDecl *tag = type->getAsTagDecl();
  if (!tag)
    return type->isBuiltinType();
  if (tag->getName().empty() || isLocal(tag, lambda) || isOfOwnClass(tag, lambda) || tag->getAccess() == AS_private ||
      tag->getAccess() == AS_protected)
    return false;
  if (auto *specialization = dyn_cast<ClassTemplateSpecializationDecl>(tag))
    for (const TemplateArgument &argument : specialization->getTemplateArgs().asArray())
      if (argument.getKind() == TemplateArgument::Type ? !hasName(argument.getAsType(), lambda)
                                                       : argument.getKind() != TemplateArgument::Integral)
        return false;
  return true;
}

/// Whether names mean something else in a part of it.
class UsingDirectives : public RecursiveASTVisitor<UsingDirectives> {
public:
  bool found = false;
  bool VisitUsingDirectiveDecl(UsingDirectiveDecl *) { return !(found = true); }
};

/// What a lambda's function takes from the function around it beside what is captured.
class FreeNames : public RecursiveASTVisitor<FreeNames> {
public:
  FreeNames(const LambdaExpr &lambda, const CXXRecordDecl &closure) : lambda(lambda) {
    for (const LambdaCapture &capture : closure.captures())
      if (capture.capturesVariable())
        captured[capture.getCapturedVar()->getName()];
  }
  bool isPossible = true;
  std::map<std::string, std::string> constants;          ///< by name, their declarations as members
  std::map<llvm::StringRef, const ValueDecl *> captured; ///< by name; null: it is not used

  bool VisitDeclRefExpr(DeclRefExpr *ref) {
    const ValueDecl *decl = ref->getDecl();
    if (isa<UsingShadowDecl>(ref->getFoundDecl()))
      isPossible &= !isLocal(ref->getFoundDecl(), lambda);
    isPossible &= (ref->hasQualifier() || !decl->isCXXClassMember()) && !isOfOwnClass(decl, lambda);
    if (!isLocal(decl, lambda))
      return true;
    if (auto known = captured.find(decl->getName()); known != captured.end()) {
      known->second = decl;
      return true;
    }
    const auto *variable = dyn_cast<VarDecl>(decl);
    const bool isConstant = variable && variable->getInit() && !variable->getInit()->isValueDependent() &&
                            !variable->getType()->isDependentType() &&
                            (variable->isConstexpr() || (variable->getType().isConstQualified() &&
                                                         variable->getType()->isIntegralType(context())));
    const APValue *value = isConstant ? variable->evaluateValue() : nullptr;
    if (!value || !value->isInt() || !variable->getType()->isBuiltinType())
      return isPossible = false;
    const std::string type = variable->getType().getUnqualifiedType().getAsString(context().getPrintingPolicy());
    constants[decl->getName().str()] =
        "static constexpr " + type + " " + decl->getName().str() + " = " + llvm::toString(value->getInt(), 10) + ";";
    return true;
  }
  bool VisitTypeLoc(TypeLoc type) {
    if (auto alias = type.getAs<TypedefTypeLoc>())
      isPossible &= !isLocal(alias.getDecl(), lambda) && !isOfOwnClass(alias.getDecl(), lambda);
    else if (auto shadow = type.getAs<UsingTypeLoc>())
      isPossible &= !isLocal(shadow.getDecl(), lambda);
    else if (auto tag = type.getAs<TagTypeLoc>())
      isPossible &= !isLocal(tag.getDecl(), lambda) && !isOfOwnClass(tag.getDecl(), lambda);
    return true;
  }
  bool VisitCXXThisExpr(CXXThisExpr *) { return isPossible = false; }
  bool VisitLambdaExpr(LambdaExpr *) { return isPossible = false; }

private:
  const ASTContext &context() const { return lambda.getCallOperator()->getASTContext(); }
  const LambdaExpr &lambda;
};

class Converter : public RecursiveASTVisitor<Converter> {
public:
  Converter(const optiml::Program &program, StringRef name)
      : name(name), ast(program.ast()), sm(ast.getSourceManager()), text(program.text()) {
    for (const optiml::KernelDecl &kernel : program.kernels())
      for (const ParmVarDecl *parameter : kernel.decl->parameters())
        addClosures(parameter->getType(), closures);
  }

  std::optional<std::string> run() {
    if (closures.empty())
      return std::nullopt;
    TraverseAST(ast);
    return optiml::edited(text, edits); // without the mark of a line that another lambda begins in
  }

  bool VisitLambdaExpr(LambdaExpr *lambda) {
    if (auto closure = closures.find(lambda->getLambdaClass()->getLocation()); closure != closures.end())
      convert(*lambda, *closure->second);
    return true;
  }

private:
  /// An offset of the main file; nothing in macros and other files.
  std::optional<size_t> offsetOf(SourceLocation place) const {
    return place.isFileID() && sm.isInMainFile(place) ? std::optional<size_t>(sm.getFileOffset(place)) : std::nullopt;
  }

  struct Place {
    size_t offset = 0;             ///< of the line where it begins
    std::string header, arguments; ///< "template <typename T>" and "<T>", where it is a template
  };
  /// The declaration at namespace scope that holds the lambda.
  std::optional<Place> placeBefore(const LambdaExpr &lambda) const {
    const Decl *outermost = lambda.getLambdaClass();
    bool isDependent = false; // but for a function that is a template itself
    for (const DeclContext *around = outermost->getLexicalDeclContext(); !around->isFileContext();
         around = around->getLexicalParent()) {
      isDependent |= around->isDependentContext() && !around->getLexicalParent()->isFileContext();
      outermost = cast<Decl>(around);
    }
    const auto *function = dyn_cast<FunctionDecl>(outermost);
    if (isDependent || (!function && (outermost == lambda.getLambdaClass() || !isa<CXXRecordDecl>(outermost))) ||
        (function && function->getTemplateSpecializationKind() != TSK_Undeclared))
      return std::nullopt;
    UsingDirectives directives;
    directives.TraverseDecl(const_cast<Decl *>(outermost));
    if (directives.found)
      return std::nullopt;
    Place place;
    if (const FunctionTemplateDecl *of = function ? function->getDescribedFunctionTemplate() : nullptr) {
      const TemplateParameterList &parameters = *of->getTemplateParameters();
      const auto begin = offsetOf(parameters.getTemplateLoc()), end = offsetOf(parameters.getRAngleLoc());
      const std::optional<std::string> arguments = optiml::ownArguments(*of);
      if (!begin || !end || !arguments)
        return std::nullopt;
      place.header = text.slice(*begin, *end + 1).str() + " ";
      place.arguments = "<" + *arguments + ">";
      outermost = of;
    } else if (cast<DeclContext>(outermost)->isDependentContext()) {
      return std::nullopt;
    }
    const std::optional<size_t> begin = offsetOf(sm.getExpansionLoc(outermost->getBeginLoc()));
    if (!begin)
      return std::nullopt;
    const size_t line = text.rfind('\n', *begin) + 1; // 0 in the first line
    place.offset = text.slice(line, *begin).trim().empty() ? line : *begin;
    return place;
  }

  /// "__device__ auto operator()(int i) const -> float {…}", as far as the text tells.
  std::optional<std::string> operatorOf(const LambdaExpr &lambda) const {
    const CXXMethodDecl &method = *lambda.getCallOperator();
    const FunctionTypeLoc function = method.getFunctionTypeLoc();
    if (!function || !lambda.hasExplicitParameters() || lambda.isGenericLambda())
      return std::nullopt;
    const auto introducer = offsetOf(lambda.getIntroducerRange().getEnd()), open = offsetOf(function.getLParenLoc()),
               close = offsetOf(function.getRParenLoc()), body = offsetOf(lambda.getBody()->getBeginLoc()),
               end = offsetOf(lambda.getBody()->getEndLoc());
    if (!introducer || !open || !close || !body || !end || !(*introducer < *open && *close < *body))
      return std::nullopt;
    std::string behind = text.slice(*close + 1, *body).trim().str();
    if (lambda.isMutable()) {
      const size_t word = behind.find("mutable");
      if (word == std::string::npos)
        return std::nullopt;
      behind.erase(word, 7);
    } else {
      behind = behind.empty() ? "const" : "const " + behind;
    }
    if (StringRef(behind).contains("__")) // attributes, which stand elsewhere there
      return std::nullopt;
    return (text.slice(*introducer + 1, *open).trim() + " auto operator()" + text.slice(*open, *close + 1) + " " +
            StringRef(behind).trim() + " " + text.slice(*body, *end + 1))
        .str();
  }

  void convert(const LambdaExpr &lambda, const CXXRecordDecl &closure) {
    const auto begin = offsetOf(lambda.getBeginLoc()), end = offsetOf(lambda.getEndLoc());
    const std::optional<Place> place = placeBefore(lambda);
    const std::optional<std::string> function = operatorOf(lambda);
    if (!begin || !end || !place || !function || edits.count(*begin))
      return;
    FreeNames free(lambda, closure);
    free.TraverseStmt(lambda.getBody());
    for (ParmVarDecl *parameter : lambda.getCallOperator()->parameters())
      free.TraverseDecl(parameter);
    if (!free.isPossible)
      return;
    std::string members, values;
    auto field = closure.field_begin();
    for (const LambdaCapture &capture : closure.captures()) {
      QualType type = (field++)->getType();
      if (!capture.capturesVariable() || capture.getCaptureKind() != LCK_ByCopy || capture.isPackExpansion() ||
          capture.getCapturedVar()->isInitCapture())
        return;
      const llvm::StringRef variable = capture.getCapturedVar()->getName();
      if (!place->header.empty()) { // the class has the function's template parameters
        const ValueDecl *written = free.captured[variable];
        if (!written)
          return;
        type = written->getType().getNonReferenceType();
      }
      if (!hasName(type, lambda))
        return;
      std::string declared = TypeName::getFullyQualifiedName(type, ast, ast.getPrintingPolicy());
      members += "  " + declared + (StringRef(declared).ends_with("*") ? "" : " ") + variable.str() + ";\n";
      values += (values.empty() ? "" : ", ") + variable.str();
    }
    for (const auto &[constant, declaration] : free.constants)
      members += "  " + declaration + "\n";

    const unsigned line = sm.getPresumedLineNumber(lambda.getBeginLoc());
    const std::string base = "OptimlLambda" + std::to_string(line);
    std::string type = base;
    for (unsigned i = 2; text.contains(type) || !names.insert(type).second; ++i)
      type = base + "_" + std::to_string(i);
    std::string definition = "// OptiML: the lambda of line " + std::to_string(line) + ".\n" + place->header +
                             "struct " + type + " {\n" + members + markAt(*begin) + "  " + *function + "\n};\n";
    optiml::TextEdit &before = edits[place->offset];
    before.end = place->offset;
    before.text += definition + markAt(place->offset);
    edits[*begin] = {*end + 1, type + place->arguments + "{" + values + "}"};
    // Behind the line in which the lambda ends, lines have their own numbers again.
    if (const size_t next = text.find('\n', *end); text.slice(*begin, *end).contains('\n') && next != StringRef::npos)
      edits.try_emplace(next + 1, optiml::TextEdit{next + 1, markAt(next + 1)});
  }

  std::string markAt(size_t offset) const { return optiml::lineMarkAt(text, text.rfind('\n', offset) + 1, name); }

  const StringRef name;
  ASTContext &ast;
  const SourceManager &sm;
  const StringRef text;
  Closures closures;
  std::set<std::string> names;
  optiml::TextEdits edits;
};

} // namespace

std::optional<std::string> optiml::withoutDeviceLambdas(const Program &program, StringRef name) {
  return Converter(program, name).run();
}
