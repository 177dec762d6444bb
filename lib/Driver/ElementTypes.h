//===- ElementTypes.h - what captured buffers hold --------------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_ELEMENTTYPES_H
#define OPTIML_LIB_DRIVER_ELEMENTTYPES_H

#include "optiml/Frontend/Program.h"
#include "optiml/Workload/Workload.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// Sets BufferImage::element of buffers that launches get in members of structures, which a kernel's symbol does not tell,
/// and writes the workload again. The error says why it could not be written.
llvm::Error nameElements(Workload &workload, const std::vector<KernelDecl> &kernels);

} // namespace optiml

#endif
