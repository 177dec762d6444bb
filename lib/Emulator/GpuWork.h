//===- GpuWork.h - what host code does with the GPU -------------*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_GPUWORK_H
#define OPTIML_LIB_EMULATOR_GPUWORK_H

#include "llvm/IR/Module.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace optiml::emu {

/// Which code of a host module launches kernels, or copies or sets device memory.
class GpuWork {
public:
  struct Work {
    std::set<std::string> kernels; ///< mangled
    bool other = false;            ///< copies, or launches of who knows what
    bool any() const { return other || !kernels.empty(); }
    /// Whether it has become more.
    bool add(const Work &work);
    /// As ConditionDesc::work has it.
    std::string str() const;
  };

  explicit GpuWork(llvm::Module &module);
  /// Whether work may follow where `branch` goes on to `side` that does not follow where it goes elsewhere: sides that
  /// meet again before their launches lead to nothing of their own.
  bool onlyBy(const llvm::BasicBlock *side, const llvm::BasicBlock *branch) const;
  /// The blocks that work, each with its first instruction that does.
  std::vector<std::pair<llvm::Instruction *, Work>> sites() const;

private:
  Work workOf(const llvm::Instruction &inst) const;
  Work workOf(const llvm::BasicBlock &block) const;

  llvm::Module &module;
  std::map<const llvm::Function *, Work> works;
};

} // namespace optiml::emu

#endif
