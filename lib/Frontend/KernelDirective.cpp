//===- KernelDirective.cpp - what a source says of a kernel ---------------===//
#include "KernelDirective.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/Attr.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/Basic/SourceManager.h"

using namespace clang;
using llvm::StringRef;

/// "off", "on" or "recipe(ACTIONS)".
static bool read(StringRef text, optiml::KernelDirective &into) {
  text = text.trim();
  if (text == "off")
    into.isOff = true;
  else if (text == "on")
    into.isOn = true;
  else if (text.consume_front("recipe(") && text.consume_back(")") && !text.trim().empty())
    into.recipe = text.trim().str();
  else
    return false;
  return true;
}

optiml::KernelDirective optiml::directiveOf(const FunctionDecl &kernel, const SourceManager &sources,
                                            std::string &wrong) {
  const FunctionDecl *written = kernel.getTemplateInstantiationPattern();
  const Decl *decl = written ? written : &kernel;
  KernelDirective result;
  auto take = [&](StringRef text) {
    if (!read(text, result))
      wrong = text.trim().str();
  };
  for (const auto *annotation : decl->specific_attrs<AnnotateAttr>())
    if (StringRef text = annotation->getAnnotation(); text.consume_front("optiml:"))
      take(text);
  if (const auto *of = cast<FunctionDecl>(decl)->getDescribedFunctionTemplate())
    decl = of;
  const auto [file, offset] = sources.getDecomposedLoc(sources.getExpansionLoc(decl->getBeginLoc()));
  StringRef before = sources.getBufferData(file).take_front(offset);
  before = before.take_front(before.rfind('\n') + 1); // the definition may be indented
  bool inComment = false;
  while (!before.empty()) {
    const size_t start = before.drop_back().rfind('\n') + 1; // npos + 1 is 0
    StringRef line = before.drop_front(start).trim();
    before = before.take_front(start);
    if (inComment || line.ends_with("*/")) {
      inComment = !line.contains("/*");
      if (inComment || line.rsplit("/*").first.trim().empty())
        continue;
      break; // code, and a comment behind it
    }
    if (line.empty() || line.starts_with("//"))
      continue;
    if (!line.consume_front("#") || !(line = line.ltrim()).consume_front("pragma"))
      break;
    if ((line = line.ltrim()).consume_front("optiml") && (line.empty() || isspace(line[0])))
      take(line.split("//").first);
  }
  return result;
}
