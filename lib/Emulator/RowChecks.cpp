//===- RowChecks.cpp - one bounds check for a row of threads --------------===//
//
// In the loop over a block's threads, most accesses are linear in threadIdx.x: when the first and the last thread of a
// row stay inside an allocation, so do all between. A probe tests that before the row; where it holds, the row runs
// without those checks and can be vectorized, elsewhere (at the edges of a grid) with them. The probe evaluates
// addresses whether or not a condition of the kernel guards them, which can only make it fail.
//
// A linear value is its value for thread 0 and a step. Narrow integers wrap; where one is widened, the probe also tests
// that it does not wrap within the row.
//
//===----------------------------------------------------------------------===//
#include "RowChecks.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;
using namespace optiml::emu;

namespace {

struct Linear {
  Value *start; ///< for thread 0, of the value's own type
  Value *step;  ///< i64
  bool isUniform() const {
    auto *constant = dyn_cast<ConstantInt>(step);
    return constant && constant->isZero();
  }
};

/// Whether a value can be recomputed outside of the body: arithmetic over parameters, geometry and constants.
class Analysis {
public:
  bool isLinear(const Value *v) { return classify(v) != None; }
  bool varies(const Value *v) { return classify(v) == Varying; }

private:
  enum Class { None, Uniform, Varying };
  DenseMap<const Value *, Class> known;

  Class classify(const Value *v) {
    if (isa<Constant>(v))
      return Uniform;
    if (const auto *argument = dyn_cast<Argument>(v))
      return argument->getArgNo() == 1 ? Varying : Uniform;
    const auto *inst = dyn_cast<Instruction>(v);
    if (!inst || !(inst->getType()->isIntegerTy() || inst->getType()->isPointerTy()))
      return None;
    if (auto found = known.find(v); found != known.end())
      return found->second;
    known[v] = None; // in case of a cycle, which only a PHI could make
    return known[v] = classifyInstruction(*inst);
  }

  Class classifyInstruction(const Instruction &inst) {
    if (const auto *load = dyn_cast<LoadInst>(&inst))
      return load->hasMetadata(LLVMContext::MD_invariant_load) && classify(load->getPointerOperand()) == Uniform
                 ? Uniform
                 : None;
    if (isa<PHINode>(inst) || inst.mayReadOrWriteMemory() || !isSafeToSpeculativelyExecute(&inst))
      return None;
    Class worst = Uniform;
    for (const Value *operand : inst.operands()) {
      if (isa<Function>(operand))
        continue;
      Class c = classify(operand);
      if (c == None)
        return None;
      worst = std::max(worst, c);
    }
    if (worst == Uniform)
      return Uniform;
    switch (inst.getOpcode()) {
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Trunc:
    case Instruction::SExt:
    case Instruction::ZExt: return Varying;
    case Instruction::Or: return cast<PossiblyDisjointInst>(inst).isDisjoint() ? Varying : None;
    case Instruction::Mul:
      return classify(inst.getOperand(0)) == Uniform || classify(inst.getOperand(1)) == Uniform ? Varying : None;
    case Instruction::Shl: return isa<ConstantInt>(inst.getOperand(1)) ? Varying : None;
    case Instruction::GetElementPtr:
      return all_of(cast<GetElementPtrInst>(inst).indices(),
                    [](const Use &index) { return index->getType()->isIntegerTy(64) || isa<ConstantInt>(index); })
                 ? Varying
                 : None;
    default: return None;
    }
  }
};

/// Recomputes linear values of a body at the builder's place.
class Evaluator {
public:
  Evaluator(IRBuilder<> &b, Function &body, ArrayRef<Value *> arguments, Value *count)
      : b(b), body(body), arguments(arguments), last(b.CreateZExt(b.CreateSub(count, b.getInt32(1)), b.getInt64Ty())),
        holds(b.getTrue()) {}

  Linear get(Value *v) {
    if (isa<Constant>(v))
      return {v, b.getInt64(0)};
    if (auto *argument = dyn_cast<Argument>(v)) {
      if (argument->getArgNo() == 1)
        return {b.getInt32(0), b.getInt64(1)};
      return {arguments[argument->getArgNo()], b.getInt64(0)};
    }
    if (auto found = known.find(v); found != known.end())
      return found->second;
    Linear result = compute(*cast<Instruction>(v));
    known.insert({v, result});
    return result;
  }

  Value *last_() const { return last; }
  Value *condition() const { return holds; }
  void require(Value *c) { holds = b.CreateAnd(holds, c); }

private:
  IRBuilder<> &b;
  Function &body;
  ArrayRef<Value *> arguments;
  Value *last, *holds;
  DenseMap<Value *, Linear> known;

  Linear compute(Instruction &inst) {
    // The same instruction on the values of thread 0.
    Instruction *copy = inst.clone();
    copy->dropPoisonGeneratingFlags();
    bool uniform = true;
    SmallVector<Linear, 4> operands;
    for (Use &use : inst.operands()) {
      if (isa<Function>(use)) {
        operands.push_back({use, b.getInt64(0)});
        continue;
      }
      operands.push_back(get(use));
      copy->setOperand(use.getOperandNo(), operands.back().start);
      uniform &= operands.back().isUniform();
    }
    b.Insert(copy);
    if (uniform)
      return {copy, b.getInt64(0)};
    switch (inst.getOpcode()) {
    case Instruction::Add:
    case Instruction::Or: return {copy, b.CreateAdd(operands[0].step, operands[1].step)};
    case Instruction::Sub: return {copy, b.CreateSub(operands[0].step, operands[1].step)};
    case Instruction::Mul: {
      const Linear &factor = operands[operands[0].isUniform() ? 0 : 1],
                   &other = operands[operands[0].isUniform() ? 1 : 0];
      return {copy, b.CreateMul(other.step, b.CreateSExtOrTrunc(factor.start, b.getInt64Ty()))};
    }
    case Instruction::Shl:
      return {copy, b.CreateShl(operands[0].step, cast<ConstantInt>(inst.getOperand(1))->getZExtValue())};
    case Instruction::SExt:
    case Instruction::ZExt: {
      bool isSigned = inst.getOpcode() == Instruction::SExt;
      unsigned width = inst.getOperand(0)->getType()->getIntegerBitWidth();
      Value *wide = b.CreateSExtOrTrunc(copy, b.getInt64Ty());
      if (!isSigned)
        wide = b.CreateZExtOrTrunc(copy, b.getInt64Ty());
      Value *end = b.CreateAdd(wide, b.CreateMul(operands[0].step, last));
      Type *narrow = b.getIntNTy(width);
      Value *back = b.CreateTrunc(end, narrow);
      require(b.CreateICmpEQ(isSigned ? b.CreateSExt(back, b.getInt64Ty()) : b.CreateZExt(back, b.getInt64Ty()), end));
      return {copy, operands[0].step};
    }
    case Instruction::GetElementPtr: {
      auto &gep = cast<GEPOperator>(inst);
      SmallMapVector<Value *, APInt, 4> variable;
      APInt constant(64, 0);
      Value *step = operands[0].step;
      if (!gep.collectOffset(body.getDataLayout(), 64, variable, constant)) {
        require(b.getFalse());
        return {copy, step};
      }
      for (auto &[index, scale] : variable)
        step = b.CreateAdd(step, b.CreateMul(get(index).step, b.getInt64(scale.getSExtValue())));
      return {copy, step};
    }
    default: // a truncation
      return {copy, operands[0].step};
    }
  }
};

} // namespace

RowChecks::RowChecks(DeviceModule &dm, Function &body) : dm(dm), body(body) {
  constexpr size_t most = 48; // beyond, the probe costs more than it saves
  Analysis analysis;
  bool any = false;
  for (const InlineCheck &check : dm.checks[&body])
    if (analysis.isLinear(check.pointer)) {
      rows.push_back(&check);
      any |= analysis.varies(check.pointer);
    }
  if (!any || rows.size() > most)
    rows.clear();
}

Function *RowChecks::uncheckedBody() {
  ValueToValueMapTy map;
  Function *copy = CloneFunction(&body, map);
  copy->setName(body.getName() + ".unchecked");
  copy->setLinkage(GlobalValue::InternalLinkage);
  for (const InlineCheck *check : rows)
    cast<BranchInst>(map[check->branch])->setCondition(ConstantInt::getFalse(body.getContext()));
  return copy;
}

Value *RowChecks::emitProbe(IRBuilder<> &b, ArrayRef<Value *> arguments, Value *count) {
  Type *i64 = b.getInt64Ty();
  Evaluator evaluator(b, body, arguments, count);
  Value *cache = dm.load(b, Field::SiteCache);
  for (const InlineCheck *check : rows) {
    Linear address = evaluator.get(check->pointer);
    Value *slot = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), cache, check->group * sizeof(SiteCache));
    Value *lo = b.CreateAlignedLoad(i64, slot, Align(8));
    Value *bytes = b.CreateAlignedLoad(i64, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), slot, 8), Align(8));
    Value *first = b.CreatePtrToInt(address.start, i64);
    Value *last = b.CreateAdd(first, b.CreateMul(address.step, evaluator.last_()));
    // The range of a group is in bytes; empty (0) until a check has filled it.
    Value *span = b.CreateSub(bytes, b.getInt64(check->size));
    evaluator.require(b.CreateICmpUGE(bytes, b.getInt64(check->size)));
    evaluator.require(b.CreateICmpULE(b.CreateSub(first, lo), span));
    evaluator.require(b.CreateICmpULE(b.CreateSub(last, lo), span));
    if (check->alignment > 1)
      evaluator.require(
          b.CreateICmpEQ(b.CreateAnd(b.CreateOr(first, address.step), check->alignment - 1), b.getInt64(0)));
  }
  return evaluator.condition();
}
