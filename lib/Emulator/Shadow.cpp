//===- Shadow.cpp - a double and a magnitude beside every number ----------===//
//
// ModeShadow gives each floating-point value two twins, as numerical sanitizers do: `value`, what the computation would
// be in double precision, and `magnitude`, the sum of the absolute values of all the terms that went into it. Their
// difference from the program's own result tells its error, and the magnitude bounds the error that a legitimate
// reordering may have. Control flow follows the program's own values.
//
//   v = a + b, a - b     value va ± vb      magnitude ma + mb
//   v = a · b            va · vb            |va| · mb + ma · |vb| - |v|, and ma · mb · eps; at most |v| · hopeless
//   v = a / b            va / vb            (ma + mb · |v|) / |vb| - |v|; at most |v| · hopeless
//   v = sqrt(a)          sqrt(va)           |v| · ma / |va|
//   v = exp(a)           exp(va)            |v| · ma
//   v = f(a, …)          f(va, …)           |value|
//   double from a float that was rounded    magnitude · single; rounded to float again it is divided by that
//   min, max, select     the twin that the program's own choice selects
//   atomic + and -       as a load, the operation, and a store
//
// Results of sqrt and exp have at least the magnitude |v|. Twins travel through memory by optiml_shadow_store,
// optiml_shadow_load and, with bits that are only moved, optiml_shadow_copy; through shuffles by optiml_shadow_give and
// optiml_shadow_take. Through calls of functions that were not inlined and through returns they do not: there they
// start afresh from the value.
//
//===----------------------------------------------------------------------===//
#include "Accesses.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;
using namespace optiml::emu;

namespace {

struct Twin {
  Value *value = nullptr, *magnitude = nullptr; ///< doubles, or vectors of them
};

/// A double that single-precision results went into is as far from what double precision gives as they are, and so may
/// a legitimate reordering be. Its magnitude is in units of a double's rounding: this many times larger. The verifier
/// allows 4096 eps of a double's magnitude and 8 eps of a float's.
constexpr double single = 0x1p20;

/// A number whose magnitude is so many times its value has not a digit left, several times over. Without an end to it
/// the bounds of an elimination without pivots square themselves step by step until they overflow, and infinity tells
/// nothing.
constexpr double hopeless = 0x1p106;

bool isNumber(const Type *type) {
  const Type *scalar = type->getScalarType();
  return (scalar->isFloatTy() || scalar->isDoubleTy() || scalar->is16bitFPTy()) &&
         (!type->isVectorTy() || isa<FixedVectorType>(type));
}

class ShadowFunction {
public:
  ShadowFunction(DeviceModule &dm, Function &f) : dm(dm), f(f) {}

  void run() {
    IRBuilder<> entry(&f.getEntryBlock(), f.getEntryBlock().begin());
    auto *pair = ArrayType::get(entry.getDoubleTy(), 2);
    slot = entry.CreateAlloca(pair);
    std::vector<Instruction *> order;
    ReversePostOrderTraversal<Function *> blocks(&f);
    for (BasicBlock *block : blocks)
      for (Instruction &inst : *block)
        order.push_back(&inst);
    for (Instruction *inst : order)
      if (inst != slot)
        visit(*inst);
    for (auto &[phi, twin] : phis)
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        BasicBlock *from = phi->getIncomingBlock(i);
        IRBuilder<> b(from->getTerminator());
        Twin incoming = get(b, phi->getIncomingValue(i));
        cast<PHINode>(twin.value)->addIncoming(incoming.value, from);
        cast<PHINode>(twin.magnitude)->addIncoming(incoming.magnitude, from);
      }
  }

private:
  DeviceModule &dm;
  Function &f;
  AllocaInst *slot = nullptr;
  DenseMap<Value *, Twin> twins;
  DenseMap<Value *, Value *> bits; ///< integers that are the bits of a number with a twin
  std::vector<std::pair<PHINode *, Twin>> phis;

  static Type *doubles(Type *type) {
    Type *scalar = Type::getDoubleTy(type->getContext());
    auto *vector = dyn_cast<FixedVectorType>(type);
    return vector ? static_cast<Type *>(FixedVectorType::get(scalar, vector->getNumElements())) : scalar;
  }

  static Value *absolute(IRBuilder<> &b, Value *v) { return b.CreateUnaryIntrinsic(Intrinsic::fabs, v); }

  /// The magnitude of a result that may have any relation to what it is made of. A double that differs from its twin by
  /// more than a few of its own roundings comes from floats.
  static Value *ownMagnitude(IRBuilder<> &b, Value *own, Value *value) {
    Value *magnitude = absolute(b, value);
    if (!own->getType()->getScalarType()->isDoubleTy())
      return magnitude;
    Type *type = value->getType();
    Value *rounded =
        b.CreateFCmpOGT(absolute(b, b.CreateFSub(own, value)), b.CreateFMul(magnitude, ConstantFP::get(type, 0x1p-40)));
    return b.CreateSelect(rounded, b.CreateFMul(magnitude, ConstantFP::get(type, single)), magnitude);
  }

  /// The relative errors of the factors add up; their product counts where both factors are all but cancelled. Zero
  /// times infinity is zero: so that a version that multiplies by the zeros of a margin has the twins of one that
  /// leaves out what lies there.
  static Twin product(IRBuilder<> &b, Type *type, Twin x, Twin y) {
    Value *value = b.CreateFMul(x.value, y.value);
    Value *zero = ConstantFP::get(value->getType(), 0);
    Value *isMade = b.CreateAnd(b.CreateFCmpUNO(value, value), b.CreateFCmpORD(x.value, y.value));
    value = b.CreateSelect(isMade, zero, value);
    Value *first =
        b.CreateFAdd(b.CreateFMul(absolute(b, x.value), y.magnitude), b.CreateFMul(x.magnitude, absolute(b, y.value)));
    double eps = type->getScalarType()->isDoubleTy() ? 0x1p-53 : 0x1p-24;
    Value *second = b.CreateFMul(b.CreateFMul(x.magnitude, y.magnitude), ConstantFP::get(value->getType(), eps));
    Value *magnitude = b.CreateFAdd(b.CreateFSub(first, absolute(b, value)), second);
    return bounded(b, {value, b.CreateSelect(isMade, zero, magnitude)});
  }

  /// With a magnitude that is not beyond hope. What is infinite stays so: an infinite number was in it.
  static Twin bounded(IRBuilder<> &b, Twin twin) {
    Type *type = twin.value->getType();
    Value *most = b.CreateFMul(absolute(b, twin.value), ConstantFP::get(type, hopeless));
    Value *beyond =
        b.CreateAnd(b.CreateFCmpOGT(twin.magnitude, most), b.CreateFCmpONE(twin.value, ConstantFP::get(type, 0)));
    beyond = b.CreateAnd(beyond, b.CreateFCmpOLT(twin.magnitude, ConstantFP::getInfinity(type)));
    return {twin.value, b.CreateSelect(beyond, most, twin.magnitude)};
  }

  /// The magnitude of a function's result whose relative error is `factor` roundings, where that is more than one.
  static Twin amplified(IRBuilder<> &b, Value *value, Value *factor) {
    Value *size = absolute(b, value);
    Value *times = b.CreateFMul(size, factor);
    Value *more = b.CreateFCmpOGT(times, size); // not where it is NaN
    return bounded(b, {value, b.CreateSelect(more, times, size)});
  }

  /// Of a conversion between precisions.
  Twin converted(IRBuilder<> &b, CastInst &cast) {
    Value *from = cast.getOperand(0);
    Twin x = get(b, from);
    Type *type = x.value->getType();
    bool fromDouble = from->getType()->getScalarType()->isDoubleTy(),
         toDouble = cast.getType()->getScalarType()->isDoubleTy();
    if (toDouble && !fromDouble) {
      Value *rounded = b.CreateFCmpUNE(&cast, x.value);
      return {x.value, b.CreateSelect(rounded, b.CreateFMul(x.magnitude, ConstantFP::get(type, single)), x.magnitude)};
    }
    if (fromDouble && !toDouble) {
      Value *scaled = b.CreateFMul(x.magnitude, ConstantFP::get(type, 1 / single));
      return {x.value, b.CreateBinaryIntrinsic(Intrinsic::maxnum, scaled, absolute(b, x.value))};
    }
    return x;
  }

  static Twin fresh(IRBuilder<> &b, Value *v) {
    Value *wide = v->getType()->getScalarType()->isDoubleTy() ? v : b.CreateFPExt(v, doubles(v->getType()));
    return {wide, absolute(b, wide)};
  }

  /// The twin of `v`, made at the builder's place for values that have none (parameters, constants).
  Twin get(IRBuilder<> &b, Value *v) {
    if (auto found = twins.find(v); found != twins.end())
      return found->second;
    return fresh(b, v);
  }

  void visit(Instruction &inst) {
    if (auto *store = dyn_cast<StoreInst>(&inst)) {
      Value &stored = *store->getValueOperand();
      if (twins.count(&stored))
        storeTwin(*store, stored, 0);
      else if (auto *load = dyn_cast<LoadInst>(&stored); load && !isNumber(load->getType()))
        copyTwins(
            *store, load->getPointerOperand(), store->getPointerOperand(),
            ConstantInt::get(Type::getInt64Ty(f.getContext()), f.getDataLayout().getTypeStoreSize(load->getType())));
      else
        store16s(*store, stored, 0);
      return;
    }
    if (auto *copy = dyn_cast<AnyMemTransferInst>(&inst)) {
      copyTwins(*copy, copy->getRawSource(), copy->getRawDest(), copy->getLength());
      return;
    }
    if (auto *call = dyn_cast<CallInst>(&inst); call && isShuffle(*call)) {
      shuffleTwin(*call);
      return;
    }
    if (!isNumber(inst.getType())) {
      if (isa<BitCastInst>(inst) && isNumber(inst.getOperand(0)->getType()) && twins.count(inst.getOperand(0)))
        bits[&inst] = inst.getOperand(0);
      return;
    }
    if (auto *phi = dyn_cast<PHINode>(&inst)) {
      IRBuilder<> b(phi);
      Type *type = doubles(phi->getType());
      Twin twin{b.CreatePHI(type, phi->getNumIncomingValues()), b.CreatePHI(type, phi->getNumIncomingValues())};
      twins[phi] = twin;
      phis.push_back({phi, twin});
      return;
    }
    IRBuilder<> b(inst.getNextNode());
    if (isa<PHINode>(b.GetInsertPoint()))
      b.SetInsertPoint(inst.getParent(), inst.getParent()->getFirstInsertionPt());
    b.SetCurrentDebugLocation(inst.getDebugLoc());
    if (auto twin = compute(b, inst))
      twins[&inst] = *twin;
  }

  std::optional<Twin> compute(IRBuilder<> &b, Instruction &inst) {
    auto operand = [&](unsigned i) { return get(b, inst.getOperand(i)); };
    switch (inst.getOpcode()) {
    case Instruction::FAdd: {
      Twin x = operand(0), y = operand(1);
      return Twin{b.CreateFAdd(x.value, y.value), b.CreateFAdd(x.magnitude, y.magnitude)};
    }
    case Instruction::FSub: {
      Twin x = operand(0), y = operand(1);
      return Twin{b.CreateFSub(x.value, y.value), b.CreateFAdd(x.magnitude, y.magnitude)};
    }
    case Instruction::FMul: return product(b, inst.getType(), operand(0), operand(1));
    case Instruction::FDiv: {
      Twin x = operand(0), y = operand(1);
      Value *value = b.CreateFDiv(x.value, y.value), *size = absolute(b, value);
      Value *sum = b.CreateFAdd(x.magnitude, b.CreateFMul(y.magnitude, size));
      return bounded(b, {value, b.CreateFSub(b.CreateFDiv(sum, absolute(b, y.value)), size)});
    }
    case Instruction::FRem: {
      Value *value = b.CreateFRem(operand(0).value, operand(1).value);
      return Twin{value, ownMagnitude(b, &inst, value)};
    }
    case Instruction::FNeg: {
      Twin x = operand(0);
      return Twin{b.CreateFNeg(x.value), x.magnitude};
    }
    case Instruction::FPExt:
    case Instruction::FPTrunc:
      return isNumber(inst.getOperand(0)->getType()) ? std::optional<Twin>(converted(b, cast<CastInst>(inst)))
                                                     : std::nullopt;
    case Instruction::Freeze:
      return isNumber(inst.getOperand(0)->getType()) ? std::optional<Twin>(operand(0)) : std::nullopt;
    case Instruction::Select: {
      Value *c = inst.getOperand(0);
      Twin x = operand(1), y = operand(2);
      return Twin{b.CreateSelect(c, x.value, y.value), b.CreateSelect(c, x.magnitude, y.magnitude)};
    }
    case Instruction::ExtractElement: {
      Twin x = operand(0);
      Value *i = inst.getOperand(1);
      return Twin{b.CreateExtractElement(x.value, i), b.CreateExtractElement(x.magnitude, i)};
    }
    case Instruction::InsertElement: {
      Twin x = operand(0), y = operand(1);
      Value *i = inst.getOperand(2);
      return Twin{b.CreateInsertElement(x.value, y.value, i), b.CreateInsertElement(x.magnitude, y.magnitude, i)};
    }
    case Instruction::ShuffleVector: {
      Twin x = operand(0), y = operand(1);
      ArrayRef<int> mask = cast<ShuffleVectorInst>(inst).getShuffleMask();
      return Twin{b.CreateShuffleVector(x.value, y.value, mask), b.CreateShuffleVector(x.magnitude, y.magnitude, mask)};
    }
    case Instruction::Load: return loadTwin(b, cast<LoadInst>(inst), inst.getType());
    case Instruction::BitCast: return castTwin(b, cast<BitCastInst>(inst));
    case Instruction::AtomicRMW: return atomicTwin(cast<AtomicRMWInst>(inst));
    case Instruction::Call: return callTwin(b, cast<CallInst>(inst));
    default: return std::nullopt; // conversions from integers, reinterpreted bits: exact as they are
    }
  }

  std::optional<Twin> callTwin(IRBuilder<> &b, CallInst &call) {
    Function *callee = call.getCalledFunction();
    if (!callee)
      return std::nullopt;
    Type *type = doubles(call.getType());
    auto arg = [&](unsigned i) { return get(b, call.getArgOperand(i)); };
    if (auto *intrinsic = dyn_cast<IntrinsicInst>(&call)) {
      switch (intrinsic->getIntrinsicID()) {
      case Intrinsic::fma:
      case Intrinsic::fmuladd: {
        Twin xy = product(b, call.getType(), arg(0), arg(1)), z = arg(2);
        return Twin{b.CreateFAdd(xy.value, z.value), b.CreateFAdd(xy.magnitude, z.magnitude)};
      }
      case Intrinsic::fabs: {
        Twin x = arg(0);
        return Twin{absolute(b, x.value), x.magnitude};
      }
      case Intrinsic::minnum:
      case Intrinsic::maxnum:
      case Intrinsic::minimum:
      case Intrinsic::maximum: {
        Twin x = arg(0), y = arg(1);
        Value *first = b.CreateFCmpOEQ(&call, call.getArgOperand(0));
        return Twin{b.CreateSelect(first, x.value, y.value), b.CreateSelect(first, x.magnitude, y.magnitude)};
      }
      case Intrinsic::copysign: {
        Value *value = b.CreateCopySign(arg(0).value, arg(1).value);
        return Twin{value, arg(0).magnitude};
      }
      case Intrinsic::floor:
      case Intrinsic::ceil:
      case Intrinsic::trunc:
      case Intrinsic::rint:
      case Intrinsic::nearbyint:
      case Intrinsic::round:
      case Intrinsic::roundeven: return std::nullopt; // a step: the program's own choice counts
      case Intrinsic::ldexp:
      case Intrinsic::powi: {
        Value *value = b.CreateIntrinsic(intrinsic->getIntrinsicID(), {type, call.getArgOperand(1)->getType()},
                                         {arg(0).value, call.getArgOperand(1)});
        return Twin{value, ownMagnitude(b, &call, value)};
      }
      default: break;
      }
      if (!all_of(call.args(), [](const Use &u) { return isNumber(u->getType()); }))
        return std::nullopt;
      SmallVector<Value *, 3> args;
      for (unsigned i = 0; i < call.arg_size(); ++i)
        args.push_back(arg(i).value);
      Value *value = b.CreateIntrinsic(type, intrinsic->getIntrinsicID(), args);
      return resultOf(b, call, Intrinsic::getBaseName(intrinsic->getIntrinsicID()).substr(strlen("llvm.")), value);
    }
    // A library function of floats: the one of doubles has the name without the f.
    StringRef name = callee->getName();
    if (!callee->isDeclaration() || name.starts_with("optiml") || call.getType()->isVectorTy())
      return std::nullopt;
    if (call.getType()->isFloatTy() && !name.consume_back("f"))
      return std::nullopt;
    SmallVector<Type *, 3> types;
    SmallVector<Value *, 3> args;
    for (unsigned i = 0; i < call.arg_size(); ++i) {
      Value *v = call.getArgOperand(i);
      if (v->getType()->isPointerTy())
        return std::nullopt; // it would write a second time
      Value *wide = isNumber(v->getType()) ? arg(i).value : v;
      types.push_back(wide->getType());
      args.push_back(wide);
    }
    Value *value = b.CreateCall(dm.module.getOrInsertFunction(name, FunctionType::get(type, types, false)), args);
    return resultOf(b, call, name, value);
  }

  /// `value`: what the function of that name gives for the twins of the call's arguments.
  Twin resultOf(IRBuilder<> &b, CallInst &call, StringRef name, Value *value) {
    if (name == "sqrt") {
      Twin x = get(b, call.getArgOperand(0));
      return amplified(b, value, b.CreateFDiv(x.magnitude, absolute(b, x.value)));
    }
    if (name == "exp" || name == "exp2" || name == "exp10" || name == "expm1")
      return amplified(b, value, get(b, call.getArgOperand(0)).magnitude);
    return Twin{value, ownMagnitude(b, &call, value)};
  }

  unsigned scalarBytes(Type *type) {
    return unsigned(f.getDataLayout().getTypeStoreSize(type->getScalarType()).getFixedValue());
  }

  /// What the runtime has left there.
  Twin inSlot(IRBuilder<> &b) {
    Value *magnitude = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), slot, 8);
    Value *value = b.CreateLoad(b.getDoubleTy(), slot);
    return {value, b.CreateLoad(b.getDoubleTy(), magnitude)};
  }

  static bool isShuffle(const CallInst &call) {
    const Function *callee = call.getCalledFunction();
    return callee && callee->getName() == "optiml_shuffle";
  }

  /// Of bits that become a number again: those of a shuffle, or of memory that was read as an integer.
  std::optional<Twin> castTwin(IRBuilder<> &b, BitCastInst &cast) {
    Value *from = cast.getOperand(0);
    if (auto *load = dyn_cast<LoadInst>(from); load && !cast.getType()->isVectorTy()) {
      IRBuilder<> after(load->getNextNode());
      return loadTwin(after, *load, cast.getType());
    }
    if (auto found = bits.find(from); found != bits.end() && found->second->getType() == cast.getType())
      return twins[found->second];
    auto *call = dyn_cast<CallInst>(from);
    if (!call || !isShuffle(*call) || !cast.getType()->isFloatTy())
      return std::nullopt;
    dm.call(b, "optiml_shadow_take", {from, slot});
    return inSlot(b);
  }

  /// The lane hands its twin over with its bits.
  void shuffleTwin(CallInst &call) {
    constexpr unsigned value = 3; // of optiml_shuffle(context, mode, mask, value, …)
    auto *cast = dyn_cast<BitCastInst>(call.getArgOperand(value));
    if (!cast || !isNumber(cast->getOperand(0)->getType()) || !twins.count(cast->getOperand(0)))
      return;
    IRBuilder<> b(&call);
    Twin given = twins[cast->getOperand(0)];
    dm.call(b, "optiml_shadow_give", {given.value, given.magnitude});
  }

  void copyTwins(Instruction &copy, Value *from, Value *to, Value *bytes) {
    IRBuilder<> b(copy.getNextNode());
    b.SetCurrentDebugLocation(copy.getDebugLoc());
    dm.call(b, "optiml_shadow_copy", {to, from, b.CreateZExtOrTrunc(bytes, b.getInt64Ty())});
  }

  std::optional<Twin> loadTwin(IRBuilder<> &b, LoadInst &load, Type *type) {
    unsigned bytes = scalarBytes(type);
    auto *vector = dyn_cast<FixedVectorType>(type);
    if (type->getScalarType()->is16bitFPTy())
      return std::nullopt; // nothing but the bits is known: they are exact
    Twin result;
    for (unsigned i = 0; i < (vector ? vector->getNumElements() : 1); ++i) {
      Value *place = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), load.getPointerOperand(), uint64_t(bytes) * i);
      dm.call(b, "optiml_shadow_load", {place, b.getInt32(bytes), slot});
      Twin own = inSlot(b);
      if (!vector)
        return own;
      if (!result.value)
        result = {PoisonValue::get(doubles(type)), PoisonValue::get(doubles(type))};
      result.value = b.CreateInsertElement(result.value, own.value, uint64_t(i));
      result.magnitude = b.CreateInsertElement(result.magnitude, own.magnitude, uint64_t(i));
    }
    return result;
  }

  /// Sums by atomics are sums too: the element's twin takes in what is added. Its old twin is the result.
  std::optional<Twin> atomicTwin(AtomicRMWInst &atomic) {
    bool adds = atomic.getOperation() == AtomicRMWInst::FAdd, subtracts = atomic.getOperation() == AtomicRMWInst::FSub;
    if ((!adds && !subtracts) || atomic.getType()->isVectorTy() || atomic.getType()->is16bitFPTy())
      return std::nullopt;
    if (isa<Constant>(atomic.getValOperand())) // adding zero is how programs wait for others: it may switch threads
      if (cast<Constant>(atomic.getValOperand())->isNullValue())
        return std::nullopt;
    Value *place = atomic.getPointerOperand();
    Value *bytes = ConstantInt::get(Type::getInt32Ty(f.getContext()), scalarBytes(atomic.getType()));
    IRBuilder<> before(&atomic);
    dm.call(before, "optiml_shadow_atomic_begin", {place, bytes, slot});
    Twin old = inSlot(before);
    Twin added = get(before, atomic.getValOperand());
    IRBuilder<> after(atomic.getNextNode());
    after.SetCurrentDebugLocation(atomic.getDebugLoc());
    Value *sum = adds ? after.CreateFAdd(old.value, added.value) : after.CreateFSub(old.value, added.value);
    dm.call(after, "optiml_shadow_atomic_end", {place, bytes, sum, after.CreateFAdd(old.magnitude, added.magnitude)});
    return old;
  }

  /// Numbers of 16 bits are stored as integers, alone or two and more in one. Notes those that `v`, a part of what is
  /// stored, is made of; `at`: its first bit.
  void store16s(StoreInst &store, Value &v, unsigned at, unsigned depth = 0) {
    constexpr unsigned deepest = 8;
    if (depth > deepest)
      return;
    auto *inst = dyn_cast<Instruction>(&v);
    if (auto found = bits.find(&v); found != bits.end() && at % 16 == 0)
      return storeTwin(store, *found->second, at / 8);
    switch (inst ? inst->getOpcode() : 0) {
    case Instruction::Or:
      if (!haveNoCommonBitsSet(inst->getOperand(0), inst->getOperand(1), SimplifyQuery(f.getDataLayout())))
        return; // it changes bits
      store16s(store, *inst->getOperand(1), at, depth + 1);
      [[fallthrough]];
    case Instruction::ZExt:
    case Instruction::BitCast: return store16s(store, *inst->getOperand(0), at, depth + 1);
    case Instruction::Shl:
      if (auto *by = dyn_cast<ConstantInt>(inst->getOperand(1)))
        store16s(store, *inst->getOperand(0), at + unsigned(by->getLimitedValue(64)), depth + 1);
      return;
    default: return;
    }
  }

  /// `stored`, a number that has a twin, lies `offset` bytes into what is stored, or was shifted out of it.
  void storeTwin(StoreInst &store, Value &stored, unsigned offset) {
    TypeSize whole = f.getDataLayout().getTypeStoreSize(store.getValueOperand()->getType());
    if (offset + f.getDataLayout().getTypeStoreSize(stored.getType()) > whole)
      return;
    IRBuilder<> b(store.getNextNode());
    b.SetCurrentDebugLocation(store.getDebugLoc());
    Twin twin = twins[&stored];
    unsigned bytes = scalarBytes(stored.getType());
    auto *vector = dyn_cast<FixedVectorType>(stored.getType());
    for (unsigned i = 0; i < (vector ? vector->getNumElements() : 1); ++i) {
      Value *place =
          b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), store.getPointerOperand(), offset + uint64_t(bytes) * i);
      Value *value = vector ? b.CreateExtractElement(twin.value, uint64_t(i)) : twin.value;
      Value *magnitude = vector ? b.CreateExtractElement(twin.magnitude, uint64_t(i)) : twin.magnitude;
      dm.call(b, "optiml_shadow_store", {place, b.getInt32(bytes), value, magnitude});
    }
  }
};

} // namespace

void optiml::emu::instrumentShadow(DeviceModule &dm) {
  for (Function &f : dm.module) // what this declares in the module comes last, and stays a declaration
    if (!f.isDeclaration())
      ShadowFunction(dm, f).run();
}
