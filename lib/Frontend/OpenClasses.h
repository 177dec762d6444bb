//===- OpenClasses.h - classes whose members kernels may name ---*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_OPENCLASSES_H
#define OPTIML_LIB_FRONTEND_OPENCLASSES_H

#include "optiml/Frontend/Program.h"
#include <optional>

namespace optiml {

/// The program's text, in which classes that its kernels take by value have nothing that is private: a new kernel that
/// calls a function of theirs can name what that uses. Nothing where there is no such class in the file.
std::optional<std::string> withOpenClasses(const Program &program);

} // namespace optiml

#endif
