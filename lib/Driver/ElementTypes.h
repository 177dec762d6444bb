//===- ElementTypes.h - what captured buffers hold --------------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_ELEMENTTYPES_H
#define OPTIML_LIB_DRIVER_ELEMENTTYPES_H

#include "optiml/Frontend/Program.h"
#include "optiml/Workload/Workload.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// Sets BufferImage::element of what a kernel's symbol does not tell: of buffers that launches get in members of structures,
/// and of variables. Writes the workload again; the error says why it could not.
llvm::Error nameElements(Workload &workload, const Program &program);

} // namespace optiml

#endif
