//===- TemplateArguments.cpp - a template named from within ---------------===//
#include "optiml/Frontend/TemplateArguments.h"
#include "clang/AST/DeclTemplate.h"

std::optional<std::string> optiml::ownArguments(const clang::TemplateDecl &of) {
  if (of.hasAssociatedConstraints())
    return std::nullopt;
  std::string arguments;
  for (const clang::NamedDecl *parameter : *of.getTemplateParameters()) {
    if (parameter->isParameterPack() || parameter->getName().empty() ||
        llvm::isa<clang::TemplateTemplateParmDecl>(parameter))
      return std::nullopt;
    arguments += (arguments.empty() ? "" : ", ") + parameter->getName().str();
  }
  return arguments;
}
