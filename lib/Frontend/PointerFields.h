//===- PointerFields.h - what kernels' pointers point to --------*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_POINTERFIELDS_H
#define OPTIML_LIB_FRONTEND_POINTERFIELDS_H

#include "optiml/Frontend/Program.h"
#include "clang/AST/Type.h"

namespace optiml {

/// Parameters that are pointers, and pointers in parameters of class type, in bases and members of members, too; not
/// those in unions, nor pointers to void.
std::vector<PointerField> pointerFieldsOf(const clang::FunctionDecl &kernel);

/// The name of what such a type holds throughout: "double" for a structure of three doubles, or of arrays of them; of a
/// structure that holds several types, their places (recordLayout in Signature.h), or its own name if there are none.
std::string elementName(const clang::ASTContext &ast, clang::QualType type);

} // namespace optiml

#endif
