//===- DeviceLambdas.h - classes in place of device lambdas -----*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_DEVICELAMBDAS_H
#define OPTIML_LIB_FRONTEND_DEVICELAMBDAS_H

#include "optiml/Frontend/Program.h"
#include <optional>

namespace optiml {

/// The program's text, in which classes stand for the __device__ lambdas that are part of its kernels' types: their
/// kernels can be named then, and what the lambdas have captured. Nothing where there is none that a class can stand
/// for. The user calls the file `name`.
std::optional<std::string> withoutDeviceLambdas(const Program &program, llvm::StringRef name);

} // namespace optiml

#endif
