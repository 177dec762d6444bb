//===- Atomics.cpp - scoped atomic intrinsics become instructions ---------===//
//
// atomicAdd_block & co. reach us as intrinsics. Clang uses the signed maximum and minimum for the unsigned ones too;
// the name of the header's function that holds the call tells them apart, so that this runs before inlining.
//
//===----------------------------------------------------------------------===//
#include "Accesses.h"
#include "DeviceModule.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;
using namespace optiml::emu;

static std::optional<AtomicRMWInst::BinOp> operation(StringRef name, bool isUnsigned, bool isFloat) {
  return StringSwitch<std::optional<AtomicRMWInst::BinOp>>(name)
      .Case("add", isFloat ? AtomicRMWInst::FAdd : AtomicRMWInst::Add)
      .Case("exch", AtomicRMWInst::Xchg)
      .Case("max", isUnsigned ? AtomicRMWInst::UMax : AtomicRMWInst::Max)
      .Case("min", isUnsigned ? AtomicRMWInst::UMin : AtomicRMWInst::Min)
      .Case("inc", AtomicRMWInst::UIncWrap)
      .Case("dec", AtomicRMWInst::UDecWrap)
      .Case("and", AtomicRMWInst::And)
      .Case("or", AtomicRMWInst::Or)
      .Case("xor", AtomicRMWInst::Xor)
      .Default(std::nullopt);
}

void optiml::emu::lowerAtomics(DeviceModule &dm) {
  for (Function &f : dm.module)
    for (Instruction &inst : make_early_inc_range(instructions(f))) {
      auto *call = dyn_cast<CallInst>(&inst);
      Function *callee = call ? call->getCalledFunction() : nullptr;
      if (!callee || !callee->getName().starts_with("llvm.nvvm.atomic."))
        continue;
      StringRef op = callee->getName().drop_front(strlen("llvm.nvvm.atomic.")).split('.').first;
      bool isUnsigned = f.getName().contains("__uAtomic") || f.getName().contains("__ullAtomic");
      SyncScope::ID scope = callee->getName().contains(".cta.")
                                ? call->getContext().getOrInsertSyncScopeID(blockScopeName)
                                : SyncScope::System;
      IRBuilder<> b(call);
      Value *result = nullptr;
      if (op == "cas")
        result = b.CreateExtractValue(b.CreateAtomicCmpXchg(call->getArgOperand(0), call->getArgOperand(1),
                                                            call->getArgOperand(2), MaybeAlign(),
                                                            AtomicOrdering::SequentiallyConsistent,
                                                            AtomicOrdering::SequentiallyConsistent, scope),
                                      0);
      else if (auto binary = operation(op, isUnsigned, call->getType()->isFloatingPointTy()))
        result = b.CreateAtomicRMW(*binary, call->getArgOperand(0), call->getArgOperand(1), MaybeAlign(),
                                   AtomicOrdering::SequentiallyConsistent, scope);
      if (!result)
        continue; // reported as unsupported later
      call->replaceAllUsesWith(result);
      call->eraseFromParent();
    }
}
