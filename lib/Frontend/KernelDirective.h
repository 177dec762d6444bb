//===- KernelDirective.h - what a source says of a kernel -------*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_KERNELDIRECTIVE_H
#define OPTIML_LIB_FRONTEND_KERNELDIRECTIVE_H

#include "optiml/Frontend/Program.h"

namespace clang {
class SourceManager;
} // namespace clang

namespace optiml {

/// Of `#pragma optiml …` on lines before the definition, between which and it stand only blank lines, comments and
/// other pragmas; or of the attribute [[clang::annotate("optiml:…")]]. `wrong`: gets what cannot be understood.
KernelDirective directiveOf(const clang::FunctionDecl &kernel, const clang::SourceManager &sources, std::string &wrong);

} // namespace optiml

#endif
