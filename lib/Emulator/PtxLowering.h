//===- PtxLowering.h - one inline PTX statement being translated -*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_PTXLOWERING_H
#define OPTIML_LIB_EMULATOR_PTXLOWERING_H

#include "DeviceModule.h"
#include "PtxParser.h"
#include <map>

namespace optiml::emu {

/// A PTX type word: u32, f16x2, b64, pred, …
struct PtxType {
  char kind = 0;      ///< 'u', 's', 'b', 'f', 'h' (bfloat), 'p'
  unsigned bits = 0;  ///< of one element
  unsigned lanes = 1; ///< 2 for f16x2
  unsigned width() const { return bits * lanes; }
  bool isFloat() const { return kind == 'f' || kind == 'h'; }
  static std::optional<PtxType> parse(llvm::StringRef word);
};

class PtxLowering {
public:
  PtxLowering(DeviceModule &dm, llvm::CallInst &call);
  bool run(std::string &unknown);

private:
  using Value = llvm::Value;
  DeviceModule &dm;
  llvm::CallInst &call;
  llvm::IRBuilder<> b;
  const PtxStatement *s = nullptr; ///< the statement being translated
  std::vector<llvm::Type *> outputTypes;
  std::vector<Value *> operands; ///< of the asm statement, outputs first; as integers
  std::map<std::string, Value *> registers;
  Value *carry = nullptr; ///< condition code of add.cc & co., i1

  // InlinePtx.cpp: operands and structure.
  bool bindOperands(const llvm::InlineAsm &code);
  void finish();
  bool guarded();
  Value *bits(Value *v);
  Value *asPredicate(Value *v);
  Value *source(const PtxOperand &o, unsigned width);
  bool assign(const PtxOperand &o, Value *v);
  Value *special(llvm::StringRef name);
  bool has(llvm::StringRef word) const { return llvm::is_contained(s->words, word); }

  // PtxInstructions.cpp: one instruction.
  bool instruction();
  std::optional<PtxType> type(unsigned fromEnd = 0) const; ///< the last type word, or one before
  Value *typed(unsigned operand, PtxType type);            ///< a source as a value of the type
  Value *toType(Value *bits, PtxType type);
  Value *fromFloat(Value *v, PtxType type); ///< back to the type's own precision (bfloat is computed in float)
  bool set(unsigned operand, Value *v) { return assign(s->operands[operand], v); }
  Value *arithmetic(llvm::StringRef op, PtxType t, llvm::ArrayRef<Value *> args);
  Value *comparison(llvm::StringRef op, PtxType t, Value *x, Value *y);
  Value *floatArithmetic(llvm::StringRef op, llvm::ArrayRef<Value *> args);
  bool setp();
  bool convert();

  // PtxInteger.cpp
  bool integerOp(llvm::StringRef op, PtxType t);
  bool multiplyAdd(llvm::StringRef op, PtxType t);
  bool carryOp(llvm::StringRef op, PtxType t);
  bool logic3();
  Value *shiftCount(unsigned operand); ///< also of positions and lengths: 32 bits; null where there is none
  bool countBits(llvm::StringRef op, PtxType t);
  bool findBit(PtxType t);
  bool shift(llvm::StringRef op, PtxType t);
  bool funnelShift(PtxType t);
  bool bitField(llvm::StringRef op, PtxType t);
  bool permuteBytes(PtxType t);
  bool divide(llvm::StringRef op, PtxType t);
  bool dotProduct();

  // PtxMemory.cpp: memory and synchronization.
  Value *address(const PtxOperand &o);
  void release();
  bool loadStore(bool isStore);
  bool atomic(bool wantsResult);
  bool addressConversion();
  bool asyncCopy();
  void markBackground(llvm::Instruction &access);
  void storeInBackground(llvm::Value *value, llvm::Value *to, llvm::Align alignment);
  bool synchronization(llvm::StringRef op);
  bool warpOperation(llvm::StringRef op);

  // PtxTensor.cpp: tensor cores.
  bool matrixProduct();
  bool toTensorFloat();
};

/// The value of %name (without the percent sign), or null. Shared with the intrinsics that read special registers.
llvm::Value *lowerSpecialRegister(DeviceModule &dm, llvm::IRBuilder<> &b, llvm::StringRef name, llvm::Type *type);

} // namespace optiml::emu

#endif
