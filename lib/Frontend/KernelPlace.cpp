//===- KernelPlace.cpp - where a new kernel can stand ---------------------===//
#include "KernelPlace.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;
using namespace clang;

/// Behind the declaration, of a namespace, that holds the type's definition.
static std::optional<TextPlace> endOfDeclaration(const TagDecl &type, const ASTContext &ast) {
  const SourceManager &sm = ast.getSourceManager();
  const Decl *outermost = &type;
  if (auto *record = dyn_cast<CXXRecordDecl>(&type))
    if (const CXXRecordDecl *pattern = record->getTemplateInstantiationPattern())
      outermost = pattern;
  while (!outermost->getLexicalDeclContext()->isFileContext()) {
    if (outermost->getAccess() == AS_private || outermost->getAccess() == AS_protected)
      return std::nullopt;
    outermost = cast<Decl>(outermost->getLexicalDeclContext());
  }
  SourceLocation end = sm.getExpansionRange(outermost->getEndLoc()).getEnd();
  if (!isa<LinkageSpecDecl>(outermost)) { // "} name = {1};"
    std::optional<Token> token = Lexer::findNextToken(end, sm, ast.getLangOpts());
    while (token && token->isNot(tok::semi) && token->isNot(tok::eof))
      token = Lexer::findNextToken(token->getLocation(), sm, ast.getLangOpts());
    end = token ? token->getLocation() : SourceLocation();
  }
  end = Lexer::getLocForEndOfToken(end, 0, sm, ast.getLangOpts());
  if (end.isInvalid() || !sm.isInMainFile(end))
    return std::nullopt;
  return TextPlace{sm.getFileOffset(end), outermost->getLexicalDeclContext()};
}

std::optional<TextPlace> optiml::placeBehind(const TemplateArgument &argument, TextPlace place, const ASTContext &ast) {
  const SourceManager &sm = ast.getSourceManager();
  if (argument.getKind() == TemplateArgument::Integral)
    return place;
  if (argument.getKind() != TemplateArgument::Type)
    return std::nullopt;
  QualType type = argument.getAsType().getCanonicalType();
  while (type->isPointerType())
    type = type->getPointeeType();
  if (type->isBuiltinType())
    return place;
  const TagDecl *tag = type->getAsTagDecl();
  const TagDecl *definition = tag ? tag->getDefinition() : nullptr;
  if (!definition || definition->getName().empty() || definition->getParentFunctionOrMethod())
    return std::nullopt;
  for (const DeclContext *around = definition->getDeclContext(); around; around = around->getParent())
    if (isa<ClassTemplateSpecializationDecl>(around))
      return std::nullopt;
  if (auto *specialization = dyn_cast<ClassTemplateSpecializationDecl>(definition))
    for (const TemplateArgument &a : specialization->getTemplateArgs().asArray()) {
      std::optional<TextPlace> behind = placeBehind(a, place, ast);
      if (!behind)
        return std::nullopt;
      place = *behind;
    }
  SourceLocation there = sm.getLocForStartOfFile(sm.getMainFileID()).getLocWithOffset(int(place.offset));
  if (sm.isBeforeInTranslationUnit(sm.getExpansionLoc(definition->getLocation()), there))
    return place;
  return endOfDeclaration(*definition, ast);
}

/// The namespaces around it, from the outermost to itself.
static llvm::SmallVector<const NamespaceDecl *> namespacesOf(const DeclContext *scope) {
  llvm::SmallVector<const NamespaceDecl *> result;
  for (; scope; scope = scope->getParent())
    if (auto *space = dyn_cast<NamespaceDecl>(scope))
      result.insert(result.begin(), space);
  return result;
}

std::string optiml::wayInto(const DeclContext *from, const DeclContext *to) {
  const auto left = namespacesOf(from), entered = namespacesOf(to);
  size_t common = 0;
  while (common < std::min(left.size(), entered.size()) && declaresSameEntity(left[common], entered[common]))
    ++common;
  std::string way;
  for (const NamespaceDecl *space : llvm::reverse(llvm::drop_begin(left, common)))
    way += space->isAnonymousNamespace() ? "} // namespace\n" : "} // namespace " + space->getNameAsString() + "\n";
  for (const NamespaceDecl *space : llvm::drop_begin(entered, common))
    way += std::string(space->isInline() ? "inline " : "") +
           (space->isAnonymousNamespace() ? "namespace {\n" : "namespace " + space->getNameAsString() + " {\n");
  return way;
}
