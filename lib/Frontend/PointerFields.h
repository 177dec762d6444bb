//===- PointerFields.h - pointers in parameters by value --------*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_POINTERFIELDS_H
#define OPTIML_LIB_FRONTEND_POINTERFIELDS_H

#include "optiml/Frontend/Program.h"

namespace optiml {

/// Those that lie in a kernel's parameters of class type, in bases and members of members, too; not those in unions.
std::vector<PointerField> pointerFieldsOf(const clang::FunctionDecl &kernel);

} // namespace optiml

#endif
