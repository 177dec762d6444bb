//===- PointerFields.h - what kernels' pointers point to --------*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_POINTERFIELDS_H
#define OPTIML_LIB_FRONTEND_POINTERFIELDS_H

#include "optiml/Frontend/Program.h"
#include "clang/AST/Type.h"

namespace optiml {

/// Those that lie in a kernel's parameters of class type, in bases and members of members, too; not those in unions.
/// And parameters that point to structures.
std::vector<PointerField> pointerFieldsOf(const clang::FunctionDecl &kernel);

/// The name of what such a type holds throughout: "double" for a structure of three doubles, or of arrays of them; of a
/// structure that holds several types, its own name.
std::string elementName(const clang::ASTContext &ast, clang::QualType type);

} // namespace optiml

#endif
