//===- InlinePtx.cpp - inline PTX becomes IR ------------------------------===//
//
// Headers (cuda_fp16, cooperative groups, Clang's own) and programs hold small pieces of straight-line PTX. Each
// instruction is translated to IR by its words; one that is not known makes the whole statement unsupported. Registers
// hold integers of their width; instructions reinterpret them as their type says.
//
//===----------------------------------------------------------------------===//
#include "PtxLowering.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;
using namespace optiml::emu;

PtxLowering::PtxLowering(DeviceModule &dm, CallInst &call) : dm(dm), call(call), b(&call) {}

bool PtxLowering::run(std::string &unknown) {
  auto *code = cast<InlineAsm>(call.getCalledOperand());
  auto statements = parsePtx(code->getAsmString());
  if (!statements || !bindOperands(*code)) {
    unknown = StringRef(code->getAsmString()).trim().split('\n').first.str();
    return false;
  }
  for (const PtxStatement &statement : *statements) {
    s = &statement;
    if (statement.words[0].empty() && statement.words.size() > 1 && statement.words[1] == "reg")
      continue; // registers take the width of what is written to them
    if (!statement.guard.empty() ? !guarded() : !instruction()) {
      unknown = statement.text;
      return false;
    }
  }
  finish();
  return true;
}

bool PtxLowering::bindOperands(const InlineAsm &code) {
  unsigned input = 0;
  Type *result = call.getType();
  unsigned numOutputs = 0;
  for (const InlineAsm::ConstraintInfo &info : code.ParseConstraints()) {
    if (info.Type == InlineAsm::isClobber)
      continue;
    if (info.Type == InlineAsm::isOutput) {
      if (info.isIndirect)
        return false;
      auto *structure = dyn_cast<StructType>(result);
      outputTypes.push_back(structure ? structure->getElementType(numOutputs) : result);
      ++numOutputs;
      operands.push_back(nullptr);
      continue;
    }
    if (info.Type != InlineAsm::isInput || input >= call.arg_size())
      return false;
    Value *value = call.getArgOperand(input++);
    if (value->getType()->isIntegerTy(1))
      value = b.CreateZExt(value, b.getInt32Ty());
    // An input tied to an output ("+r") is the output's first value.
    if (!info.Codes.empty() && isDigit(info.Codes[0][0])) {
      unsigned tied = 0;
      if (StringRef(info.Codes[0]).getAsInteger(10, tied) || tied >= operands.size())
        return false;
      operands[tied] = bits(value);
    }
    operands.push_back(bits(value));
  }
  return true;
}

void PtxLowering::finish() {
  if (!call.getType()->isVoidTy()) {
    std::vector<Value *> values;
    for (unsigned i = 0; i < outputTypes.size(); ++i) {
      Type *type = outputTypes[i];
      Value *value = operands[i] ? operands[i] : nullptr;
      if (!value)
        values.push_back(UndefValue::get(type));
      else if (type->isPointerTy())
        values.push_back(b.CreateIntToPtr(b.CreateZExtOrTrunc(value, b.getInt64Ty()), type));
      else
        values.push_back(
            b.CreateBitCast(b.CreateZExtOrTrunc(value, b.getIntNTy(unsigned(type->getPrimitiveSizeInBits()))), type));
    }
    Value *result = values[0];
    if (isa<StructType>(call.getType())) {
      result = PoisonValue::get(call.getType());
      for (unsigned i = 0; i < values.size(); ++i)
        result = b.CreateInsertValue(result, values[i], i);
    }
    call.replaceAllUsesWith(result);
  }
  call.eraseFromParent();
}

/// Runs an instruction under a predicate: one with effects in a block of its own, others by selecting their results.
bool PtxLowering::guarded() {
  auto found = registers.find(s->guard);
  if (found == registers.end())
    return false;
  Value *condition = asPredicate(found->second);
  if (s->guardNegated)
    condition = b.CreateNot(condition);
  auto registersBefore = registers;
  auto operandsBefore = operands;
  Instruction *then = SplitBlockAndInsertIfThen(condition, call.getIterator(), false);
  BasicBlock *before = then->getParent()->getSinglePredecessor();
  b.SetInsertPoint(then);
  b.SetCurrentDebugLocation(call.getDebugLoc());
  if (!instruction())
    return false;
  BasicBlock *inside = then->getParent();
  b.SetInsertPoint(&call);
  auto merge = [&](Value *now, Value *old) -> Value * {
    if (now == old || !now)
      return now;
    if (!old)
      old = UndefValue::get(now->getType());
    if (old->getType() != now->getType()) // the register's other half is not written
      return nullptr;
    PHINode *phi = PHINode::Create(now->getType(), 2, "", call.getParent()->begin());
    phi->addIncoming(now, inside);
    phi->addIncoming(old, before);
    return phi;
  };
  for (auto &[name, value] : registers)
    if (!(value = merge(value, registersBefore.count(name) ? registersBefore[name] : nullptr)))
      return false;
  for (unsigned i = 0; i < operands.size(); ++i)
    if (operands[i] && !(operands[i] = merge(operands[i], operandsBefore[i])))
      return false;
  return true;
}

Value *PtxLowering::bits(Value *v) {
  Type *type = v->getType();
  if (type->isIntegerTy())
    return v;
  if (type->isPointerTy())
    return b.CreatePtrToInt(v, b.getInt64Ty());
  return b.CreateBitCast(v, b.getIntNTy(unsigned(type->getPrimitiveSizeInBits())));
}

Value *PtxLowering::asPredicate(Value *v) {
  return v->getType()->isIntegerTy(1) ? v : b.CreateICmpNE(v, ConstantInt::get(v->getType(), 0));
}

/// The value of a source operand as bits of this width (null: whatever width it has).
Value *PtxLowering::source(const PtxOperand &o, unsigned width) {
  Value *v = nullptr;
  switch (o.kind) {
  case PtxOperand::Immediate:
    return b.getIntN(width ? width : 32, width && width < 64 ? o.bits & maskTrailingOnes<uint64_t>(width) : o.bits);
  case PtxOperand::FloatBits: return b.getInt32(uint32_t(o.bits));
  case PtxOperand::DoubleBits: return b.getInt64(o.bits);
  case PtxOperand::Asm: v = o.index < operands.size() ? operands[o.index] : nullptr; break;
  case PtxOperand::Name:
    if (o.name == "WARP_SZ")
      v = b.getInt32(32);
    else if (o.name[0] == '%' && !registers.count(o.name))
      v = special(o.name.substr(1));
    else if (auto found = registers.find(o.name); found != registers.end())
      v = found->second;
    break;
  case PtxOperand::Vector: { // packed: the first element is the lowest
    unsigned each = width / unsigned(o.elements.size());
    if (!each)
      return nullptr;
    v = b.getIntN(width, 0);
    for (unsigned i = 0; i < o.elements.size(); ++i) {
      Value *element = source(o.elements[i], each);
      if (!element)
        return nullptr;
      v = b.CreateOr(v, b.CreateShl(b.CreateZExt(element, v->getType()), uint64_t(each) * i));
    }
    return v;
  }
  case PtxOperand::Address: return nullptr;
  }
  if (!v)
    return nullptr;
  if (o.negated)
    v = b.CreateNot(asPredicate(v));
  return width ? b.CreateZExtOrTrunc(v, b.getIntNTy(width)) : v;
}

bool PtxLowering::assign(const PtxOperand &o, Value *v) {
  if (!v)
    return false;
  if (!v->getType()->isIntegerTy())
    v = bits(v);
  switch (o.kind) {
  case PtxOperand::Asm:
    if (o.index >= operands.size())
      return false;
    operands[o.index] = v;
    return true;
  case PtxOperand::Name:
    if (o.name != "_")
      registers[o.name] = v;
    return true;
  case PtxOperand::Vector: {
    unsigned each = v->getType()->getIntegerBitWidth() / unsigned(o.elements.size());
    for (unsigned i = 0; i < o.elements.size(); ++i)
      if (!assign(o.elements[i], b.CreateTrunc(b.CreateLShr(v, uint64_t(each) * i), b.getIntNTy(each))))
        return false;
    return true;
  }
  default: return false;
  }
}

/// A special register's value.
Value *PtxLowering::special(StringRef name) {
  if (name == "envreg1" || name == "envreg2") // cooperative_groups/details/driver_abi.h
    return dm.load(b, Field::Workspace, name == "envreg2");
  // By way of the intrinsic that reads it, so that there is one list.
  if (name.starts_with("envreg"))
    return b.getInt32(0);
  if (name == "dynamic_smem_size")
    return dm.load(b, Field::DynamicShared);
  if (name == "reserved_smem_offset_1") {
    auto reserved = find_if(dm.sharedVariables, [](const SharedVariable &v) { return v.reserved; });
    if (reserved == dm.sharedVariables.end()) {
      SharedVariable variable;
      variable.name = "reserved shared memory";
      variable.size = reservedSharedBytes;
      variable.alignment = 16;
      variable.reserved = true;
      reserved = dm.sharedVariables.insert(reserved, variable);
    }
    Value *address = dm.sharedAddress(b, unsigned(reserved - dm.sharedVariables.begin()));
    Type *i64 = b.getInt64Ty();
    return b.CreateTrunc(b.CreateSub(b.CreatePtrToInt(address, i64), b.CreatePtrToInt(dm.load(b, Field::Shared), i64)),
                         b.getInt32Ty());
  }
  std::string intrinsic = name.str();
  if (StringRef(name).starts_with("lanemask_"))
    intrinsic = ("lanemask." + name.drop_front(9)).str();
  return lowerSpecialRegister(dm, b, intrinsic,
                              name == "clock64" || name == "globaltimer" || name == "gridid"
                                  ? b.getInt64Ty()
                                  : static_cast<Type *>(b.getInt32Ty()));
}

bool optiml::emu::lowerInlinePtx(DeviceModule &dm, CallInst &call, std::string &unknown) {
  return PtxLowering(dm, call).run(unknown);
}
