//===- RowChecks.h - one bounds check for a row of threads ------*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_ROWCHECKS_H
#define OPTIML_LIB_EMULATOR_ROWCHECKS_H

#include "DeviceModule.h"

namespace optiml::emu {

/// A kernel body of which some checks hold for a whole row of threads once its first and last thread are known good.
class RowChecks {
public:
  /// Finds the checks of `body` whose address is linear in the thread's x index. Empty when there is nothing to gain.
  RowChecks(DeviceModule &dm, llvm::Function &body);
  bool empty() const { return rows.empty(); }
  /// A copy of the body without those checks.
  llvm::Function *uncheckedBody();
  /// Whether all of them hold for threads 0 … count-1 of a row. `arguments` are those of a call of the body for the
  /// row.
  llvm::Value *emitProbe(llvm::IRBuilder<> &b, llvm::ArrayRef<llvm::Value *> arguments, llvm::Value *count);

private:
  DeviceModule &dm;
  llvm::Function &body;
  std::vector<const InlineCheck *> rows;
};

} // namespace optiml::emu

#endif
