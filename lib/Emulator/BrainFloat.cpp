//===- BrainFloat.cpp - rounding to bfloat16 on hosts without it ----------===//
#include "DeviceModule.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

/// To nearest, ties to even, on the upper half of the float's bits; a NaN becomes CUDA's own.
static Value *rounded(IRBuilder<> &b, Value *v, Type *to) {
  auto like = [&](Type *scalar) {
    auto *vector = dyn_cast<FixedVectorType>(to);
    return vector ? static_cast<Type *>(FixedVectorType::get(scalar, vector->getNumElements())) : scalar;
  };
  Type *i32 = like(b.getInt32Ty());
  Value *raw = b.CreateBitCast(v, i32);
  Value *odd = b.CreateAnd(b.CreateLShr(raw, 16), ConstantInt::get(i32, 1));
  Value *upper = b.CreateLShr(b.CreateAdd(raw, b.CreateAdd(odd, ConstantInt::get(i32, 0x7fff))), 16);
  Value *bits = b.CreateSelect(b.CreateFCmpUNO(v, v), ConstantInt::get(i32, 0x7fff), upper);
  return b.CreateBitCast(b.CreateTrunc(bits, like(b.getInt16Ty())), to);
}

void optiml::emu::lowerBrainFloats(Module &module) {
  for (Function &f : module)
    for (Instruction &inst : make_early_inc_range(instructions(f)))
      if (isa<FPTruncInst>(inst) && inst.getType()->getScalarType()->isBFloatTy() &&
          inst.getOperand(0)->getType()->getScalarType()->isFloatTy()) {
        IRBuilder<> b(&inst);
        inst.replaceAllUsesWith(rounded(b, inst.getOperand(0), inst.getType()));
        inst.eraseFromParent();
      }
}
