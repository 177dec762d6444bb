//===- KernelPlace.cpp - where a new kernel can stand ---------------------===//
#include "KernelPlace.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/Lex/Lexer.h"

using namespace optiml;
using namespace clang;

/// Behind the declaration, of this scope, that holds the type's definition: an offset of the main file, or 0.
static unsigned endOfDeclaration(const TagDecl &type, const DeclContext &scope, const ASTContext &ast) {
  const SourceManager &sm = ast.getSourceManager();
  const Decl *outermost = &type;
  if (auto *record = dyn_cast<CXXRecordDecl>(&type))
    if (const CXXRecordDecl *pattern = record->getTemplateInstantiationPattern())
      outermost = pattern;
  auto isScope = [&](const DeclContext *c) {
    return c->isFileContext() && c->getRedeclContext()->getPrimaryContext() ==
                                     const_cast<DeclContext &>(scope).getRedeclContext()->getPrimaryContext();
  };
  while (!isScope(outermost->getLexicalDeclContext())) {
    if (outermost->getAccess() == AS_private || outermost->getAccess() == AS_protected)
      return 0;
    outermost = dyn_cast<Decl>(outermost->getLexicalDeclContext());
    if (!outermost || isa<TranslationUnitDecl>(outermost))
      return 0;
  }
  SourceLocation end = sm.getExpansionRange(outermost->getEndLoc()).getEnd();
  if (!isa<NamespaceDecl, LinkageSpecDecl>(outermost)) // "} name;" ends elsewhere
    end = Lexer::findLocationAfterToken(end, tok::semi, sm, ast.getLangOpts(), false);
  else
    end = Lexer::getLocForEndOfToken(end, 0, sm, ast.getLangOpts());
  return end.isValid() && sm.isInMainFile(end) ? sm.getFileOffset(end) : 0;
}

unsigned optiml::placeBehind(const TemplateArgument &argument, const DeclContext &scope, unsigned place,
                             const ASTContext &ast) {
  const SourceManager &sm = ast.getSourceManager();
  if (argument.getKind() == TemplateArgument::Integral)
    return place;
  if (argument.getKind() != TemplateArgument::Type)
    return 0;
  QualType type = argument.getAsType().getCanonicalType();
  while (type->isPointerType())
    type = type->getPointeeType();
  if (type->isBuiltinType())
    return place;
  const TagDecl *tag = type->getAsTagDecl();
  const TagDecl *definition = tag ? tag->getDefinition() : nullptr;
  if (!definition || definition->getName().empty() || definition->getParentFunctionOrMethod())
    return 0;
  for (const DeclContext *around = definition->getDeclContext(); around; around = around->getParent())
    if (isa<ClassTemplateSpecializationDecl>(around))
      return 0;
  if (auto *specialization = dyn_cast<ClassTemplateSpecializationDecl>(definition))
    for (const TemplateArgument &a : specialization->getTemplateArgs().asArray())
      if ((place = placeBehind(a, scope, place, ast)) == 0)
        return 0;
  SourceLocation there = sm.getLocForStartOfFile(sm.getMainFileID()).getLocWithOffset(int(place));
  if (sm.isBeforeInTranslationUnit(sm.getExpansionLoc(definition->getLocation()), there))
    return place;
  return endOfDeclaration(*definition, scope, ast);
}
