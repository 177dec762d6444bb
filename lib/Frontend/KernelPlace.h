//===- KernelPlace.h - where a new kernel can stand -------------*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_KERNELPLACE_H
#define OPTIML_LIB_FRONTEND_KERNELPLACE_H

#include "clang/AST/DeclBase.h"
#include "clang/AST/TemplateBase.h"
#include <optional>
#include <string>

namespace optiml {

/// An offset of the main file, and the namespace that it stands in.
struct TextPlace {
  unsigned offset = 0;
  const clang::DeclContext *scope = nullptr;
};

/// The first place from `place` on where all that the template argument names is declared; nothing where there is none.
std::optional<TextPlace> placeBehind(const clang::TemplateArgument &argument, TextPlace place,
                                     const clang::ASTContext &ast);

/// The lines that lead from one namespace into another.
std::string wayInto(const clang::DeclContext *from, const clang::DeclContext *to);

} // namespace optiml

#endif
