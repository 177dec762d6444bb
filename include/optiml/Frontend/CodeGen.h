//===- CodeGen.h - device IR and host objects from CUDA text ----*- C++ -*-===//
#ifndef OPTIML_FRONTEND_CODEGEN_H
#define OPTIML_FRONTEND_CODEGEN_H

#include "optiml/Frontend/CompileOptions.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <optional>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace optiml {

/// At each kernel of emitDeviceModule's: what its pointers point to, a node (parameter, offset, pointee) for each
/// PointerField.
constexpr const char *pointersMetadata = "optiml.pointers";

/// The device half as unoptimized NVPTX IR with line tables. libdevice's functions (__nv_*) are defined
/// by the host's mathematics (DeviceLibrary.cpp). Every use of a shared,
/// constant or global variable is an addrspacecast to a generic pointer.
llvm::Expected<std::unique_ptr<llvm::Module>> emitDeviceModule(const std::string &path,
                                                               const std::optional<std::string> &text,
                                                               const CompileOptions &options,
                                                               const Toolchain &toolchain, llvm::LLVMContext &context);

/// The host half as unoptimized IR with line tables. `strict`: signed arithmetic does not overflow, as C++ has it; else
/// it wraps around.
llvm::Expected<std::unique_ptr<llvm::Module>> emitHostModule(const std::string &path,
                                                             const std::optional<std::string> &text,
                                                             const CompileOptions &options, const Toolchain &toolchain,
                                                             bool strict, llvm::LLVMContext &context);

/// The host half as an object file that registers kernels and variables by their mangled names.
llvm::Error emitHostObject(const std::string &path, const std::optional<std::string> &text,
                           const CompileOptions &options, const Toolchain &toolchain, const std::string &outObject);

} // namespace optiml

#endif
