//===- Accesses.h - a function's accesses to memory -------------*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_ACCESSES_H
#define OPTIML_LIB_EMULATOR_ACCESSES_H

#include "DeviceModule.h"

namespace optiml::emu {

struct MemoryAccess {
  llvm::Instruction *inst;
  llvm::Value *pointer;
  llvm::Value *bytes;       ///< of memcpy & co., else null
  uint32_t size, alignment; ///< alignment: what the address must be a multiple of
  AccessKind kind;
};

/// All accesses but the generated code's own; `withStack`: those to the thread's stack too.
std::vector<MemoryAccess> memoryAccesses(llvm::Function &f, bool withStack);

/// Writes the hidden thread indices (and the lane) to the context.
void storeThread(DeviceModule &dm, llvm::IRBuilder<> &b);

/// LLVM's name of the scope of atomics among one block's threads.
constexpr const char *blockScopeName = "block";
/// Metadata of loads by __ldg.
constexpr const char *readOnlyName = "optiml.readonly";

constexpr const char *slowCheckName = "optiml.check";

} // namespace optiml::emu

#endif
