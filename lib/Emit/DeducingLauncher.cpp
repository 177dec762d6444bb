//===- DeducingLauncher.cpp - launches that deduce template arguments -----===//
#include "Texts.h"
#include "optiml/Frontend/TemplateArguments.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/Lex/Lexer.h"

using namespace optiml;

/// Empty when a macro makes it.
static std::string textOf(clang::SourceRange range, const clang::ASTContext &ast) {
  if (range.isInvalid() || range.getBegin().isMacroID() || range.getEnd().isMacroID())
    return "";
  return clang::Lexer::getSourceText(clang::CharSourceRange::getTokenRange(range), ast.getSourceManager(),
                                     ast.getLangOpts())
      .str();
}

std::string optiml::deducingLauncher(const clang::FunctionDecl &kernel, const std::string &name,
                                     const std::string &chooser) {
  const clang::FunctionTemplateDecl *of = kernel.getPrimaryTemplate();
  if (!of)
    return "";
  const clang::ASTContext &ast = kernel.getASTContext();
  const clang::FunctionDecl *pattern = of->getTemplatedDecl();
  if (const clang::FunctionDecl *definition = nullptr;
      pattern->isDefined(definition) && definition->getDescribedFunctionTemplate()) {
    pattern = definition; // a declaration before it may leave names out
    of = definition->getDescribedFunctionTemplate();
  }
  std::string header = textOf(of->getTemplateParameters()->getSourceRange(), ast), parameters, arguments;
  const std::optional<std::string> instantiation = ownArguments(*of);
  for (const clang::ParmVarDecl *parameter : pattern->parameters()) {
    std::string text = textOf(parameter->getSourceRange(), ast);
    if (text.empty() || parameter->isParameterPack() || parameter->getName().empty())
      return "";
    parameters += ", " + text;
    arguments += ", " + parameter->getName().str();
  }
  if (header.empty() || !instantiation)
    return "";
  std::string own = "optiml_"; // before names of this function, which the text of the kernel does not use
  while ((header + parameters).find(own) != std::string::npos)
    own += "_";
  return "\n" + header + "\nvoid " + name + "(dim3 " + own + "grid, dim3 " + own + "block, size_t " + own +
         "shared, cudaStream_t " + own + "stream" + parameters + ") {\n  " + chooser + "(" +
         pattern->getNameAsString() + "<" + *instantiation + ">)(" + own + "grid, " + own + "block, " + own +
         "shared, " + own + "stream" + arguments + ");\n}\n";
}
