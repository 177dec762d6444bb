//===- KernelPlace.h - where a new kernel can stand -------------*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_KERNELPLACE_H
#define OPTIML_LIB_FRONTEND_KERNELPLACE_H

namespace clang {
class ASTContext;
class DeclContext;
class TemplateArgument;
} // namespace clang

namespace optiml {

/// The first offset of the main file, from `place` on, where all that the template argument names is declared and
/// `scope`, a namespace, can be gone on with; 0 where there is none.
unsigned placeBehind(const clang::TemplateArgument &argument, const clang::DeclContext &scope, unsigned place,
                     const clang::ASTContext &ast);

} // namespace optiml

#endif
