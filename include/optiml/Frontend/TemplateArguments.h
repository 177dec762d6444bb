//===- TemplateArguments.h - a template named from within -------*- C++ -*-===//
#ifndef OPTIML_FRONTEND_TEMPLATEARGUMENTS_H
#define OPTIML_FRONTEND_TEMPLATEARGUMENTS_H

#include <optional>
#include <string>

namespace clang {
class TemplateDecl;
} // namespace clang

namespace optiml {

/// "T, N": a template's own parameters as its arguments. Nothing where that needs more than names: for packs,
/// constraints, templates, and parameters without a name.
std::optional<std::string> ownArguments(const clang::TemplateDecl &of);

} // namespace optiml

#endif
