//===- AddressArithmetic.h - what indexing costs on a GPU -------*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_ADDRESSARITHMETIC_H
#define OPTIML_LIB_EMULATOR_ADDRESSARITHMETIC_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/Function.h"

namespace optiml::emu {

/// Addresses in loops, after the strength reduction that a GPU compiler does and our intermediate code has not seen.
struct AddressArithmetic {
  /// Instructions that only compute addresses which advance by a constant step in their loop: they go away.
  llvm::DenseSet<const llvm::Instruction *> reduced;
  /// What takes their place: pointers that are advanced once an iteration, by the block that first uses them. Addresses
  /// a constant apart share one.
  llvm::DenseMap<const llvm::BasicBlock *, unsigned> pointers;
};

AddressArithmetic analyzeAddresses(llvm::Function &function);

} // namespace optiml::emu

#endif
