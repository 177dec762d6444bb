//===- PtxInstructions.cpp - arithmetic of inline PTX ---------------------===//
#include "PtxLowering.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace optiml::emu;

std::optional<PtxType> PtxType::parse(StringRef w) {
  PtxType t;
  if (w == "pred")
    return PtxType{'p', 1, 1};
  if (w.consume_front("bf16"))
    t = {'h', 16, 1};
  else if (w.consume_front("f16"))
    t = {'f', 16, 1};
  else {
    if (w.empty() || !StringRef("usbf").contains(w[0]))
      return std::nullopt;
    t.kind = w[0];
    w = w.drop_front();
    if (w.consumeInteger(10, t.bits) || !is_contained({8u, 16u, 32u, 64u, 128u}, t.bits))
      return std::nullopt;
  }
  if (w == "x2")
    t.lanes = 2;
  else if (!w.empty())
    return std::nullopt;
  return t;
}

std::optional<PtxType> PtxLowering::type(unsigned fromEnd) const {
  for (unsigned i = unsigned(s->words.size()); i-- > 1;)
    if (auto t = PtxType::parse(s->words[i])) {
      if (fromEnd == 0)
        return t;
      --fromEnd;
    }
  return std::nullopt;
}

/// bfloat is widened to float: its arithmetic is done there.
Value *PtxLowering::toType(Value *v, PtxType t) {
  if (!v || !t.isFloat())
    return v;
  LLVMContext &c = b.getContext();
  if (t.kind == 'h') {
    Type *i16 = b.getInt16Ty(), *i32 = b.getInt32Ty();
    if (t.lanes == 2) {
      Value *lanes = b.CreateBitCast(v, FixedVectorType::get(i16, 2));
      Value *wide = b.CreateShl(b.CreateZExt(lanes, FixedVectorType::get(i32, 2)), 16);
      return b.CreateBitCast(wide, FixedVectorType::get(b.getFloatTy(), 2));
    }
    return b.CreateBitCast(b.CreateShl(b.CreateZExt(v, i32), 16), b.getFloatTy());
  }
  Type *scalar = t.bits == 16 ? Type::getHalfTy(c) : t.bits == 32 ? Type::getFloatTy(c) : Type::getDoubleTy(c);
  return b.CreateBitCast(v, t.lanes == 2 ? FixedVectorType::get(scalar, 2) : scalar);
}

Value *PtxLowering::fromFloat(Value *v, PtxType t) {
  if (!v || t.kind != 'h')
    return v;
  auto lanes = [&](Type *type) { return t.lanes == 2 ? static_cast<Type *>(FixedVectorType::get(type, 2)) : type; };
  return b.CreateBitCast(b.CreateFPTrunc(v, lanes(b.getBFloatTy())), lanes(b.getInt16Ty()));
}

Value *PtxLowering::typed(unsigned operand, PtxType t) {
  return operand < s->operands.size() ? toType(source(s->operands[operand], t.width()), t) : nullptr;
}

/// Operations of one operand that are one of LLVM's intrinsics.
static Intrinsic::ID unaryIntrinsic(StringRef op) {
  return StringSwitch<Intrinsic::ID>(op)
#define PTX_UNARY(word, intrinsic) .Case(word, Intrinsic::intrinsic)
#include "PtxOperations.def"
      .Default(Intrinsic::not_intrinsic);
}

static std::optional<Instruction::BinaryOps> binaryOperation(StringRef op, bool isFloat) {
  using Operation = std::optional<Instruction::BinaryOps>;
  if (isFloat)
    return StringSwitch<Operation>(op)
#define PTX_FLOAT(word, operation) .Case(word, Instruction::operation)
#include "PtxOperations.def"
        .Default(std::nullopt);
  return StringSwitch<Operation>(op)
#define PTX_INTEGER(word, operation) .Case(word, Instruction::operation)
#include "PtxOperations.def"
      .Default(std::nullopt);
}

Value *PtxLowering::floatArithmetic(StringRef op, ArrayRef<Value *> x) {
  Type *type = x[0]->getType();
  Value *one = ConstantFP::get(type, 1.0), *zero = ConstantFP::get(type, 0.0), *r = nullptr;
  if (auto binary = binaryOperation(op, /*isFloat=*/true)) {
    if (x.size() != 2)
      return nullptr;
    r = b.CreateBinOp(*binary, x[0], x[1]);
  } else if (Intrinsic::ID id = unaryIntrinsic(op))
    r = b.CreateUnaryIntrinsic(id, x[0]);
  else if ((op == "fma" || op == "mad") && x.size() == 3)
    r = b.CreateIntrinsic(type, Intrinsic::fma, {x[0], x[1], x[2]});
  else if (op == "min" && x.size() == 2)
    r = has("NaN") ? b.CreateBinaryIntrinsic(Intrinsic::minimum, x[0], x[1]) : b.CreateMinNum(x[0], x[1]);
  else if (op == "max" && x.size() == 2)
    r = has("NaN") ? b.CreateBinaryIntrinsic(Intrinsic::maximum, x[0], x[1]) : b.CreateMaxNum(x[0], x[1]);
  else if (op == "neg")
    r = b.CreateFNeg(x[0]);
  else if (op == "rcp")
    r = b.CreateFDiv(one, x[0]);
  else if (op == "rsqrt")
    r = b.CreateFDiv(one, b.CreateUnaryIntrinsic(Intrinsic::sqrt, x[0]));
  else if (op == "copysign" && x.size() == 2) // copysign d, a, b: a's sign on b
    r = b.CreateCopySign(x[1], x[0]);
  if (r && has("sat"))
    r = b.CreateMinNum(b.CreateMaxNum(r, zero), one);
  if (r && has("relu"))
    r = b.CreateMaxNum(r, zero);
  return r;
}

/// Operations that mean the same for a scalar and for each lane.
Value *PtxLowering::arithmetic(StringRef op, PtxType t, ArrayRef<Value *> x) {
  if (is_contained(x, nullptr))
    return nullptr;
  if (t.isFloat())
    return floatArithmetic(op, x);
  bool isSigned = t.kind == 's';
  auto either = [&](Intrinsic::ID ifSigned, Intrinsic::ID ifUnsigned) {
    return b.CreateBinaryIntrinsic(isSigned ? ifSigned : ifUnsigned, x[0], x[1]);
  };
  if (x.size() == 2) {
    if (op == "add" && has("sat"))
      return either(Intrinsic::sadd_sat, Intrinsic::uadd_sat);
    if (op == "sub" && has("sat"))
      return either(Intrinsic::ssub_sat, Intrinsic::usub_sat);
    if (op == "min")
      return either(Intrinsic::smin, Intrinsic::umin);
    if (op == "max")
      return either(Intrinsic::smax, Intrinsic::umax);
    if (auto binary = binaryOperation(op, /*isFloat=*/false))
      return b.CreateBinOp(*binary, x[0], x[1]);
  }
  if (x.size() == 1) {
    Type *type = x[0]->getType();
    if (op == "abs")
      return b.CreateIntrinsic(type, Intrinsic::abs, {x[0], b.getFalse()});
    if (op == "neg")
      return b.CreateNeg(x[0]);
    if (op == "not")
      return b.CreateNot(x[0]);
    if (op == "cnot")
      return b.CreateZExt(b.CreateICmpEQ(x[0], ConstantInt::get(type, 0)), type);
    if (op == "brev")
      return b.CreateUnaryIntrinsic(Intrinsic::bitreverse, x[0]);
  }
  return nullptr;
}

/// The predicate of a comparison's word; a floating-point one (with a u: also true of NaN), or an integer one.
static std::optional<CmpInst::Predicate> predicateOf(StringRef op, PtxType t) {
  using Predicate = std::optional<CmpInst::Predicate>;
  if (t.isFloat())
    return StringSwitch<Predicate>(op)
#define PTX_FLOAT_COMPARISON(word, predicate) .Case(word, CmpInst::predicate)
#include "PtxOperations.def"
        .Default(std::nullopt);
  bool isSigned = t.kind == 's';
  return StringSwitch<Predicate>(op)
#define PTX_COMPARISON(word, ifSigned, ifUnsigned) .Case(word, isSigned ? CmpInst::ifSigned : CmpInst::ifUnsigned)
#include "PtxOperations.def"
      .Default(std::nullopt);
}

Value *PtxLowering::comparison(StringRef op, PtxType t, Value *x, Value *y) {
  auto predicate = predicateOf(op, t);
  return x && y && predicate ? b.CreateCmp(*predicate, x, y) : nullptr;
}

/// setp.CMP[.BOOL].type p[|q], a, b[, c] and set.CMP.dtype.stype d, a, b.
bool PtxLowering::setp() {
  auto t = type();
  if (!t || s->operands.size() < 3)
    return false;
  Value *result = comparison(s->words[1], *t, typed(1, *t), typed(2, *t));
  if (!result)
    return false;
  if (s->words[0] == "set") {
    auto d = type(1);
    if (!d)
      return false;
    Type *lanes = result->getType();
    if (d->kind == 'f' || d->kind == 'h') {
      PtxType wide = *d;
      Type *type = toType(b.getIntN(wide.width(), 0), wide)->getType();
      Value *one = ConstantFP::get(type, 1.0), *zero = ConstantFP::get(type, 0.0);
      return set(0, fromFloat(b.CreateSelect(result, one, zero), *d));
    }
    Type *type = lanes->isVectorTy() ? static_cast<Type *>(FixedVectorType::get(b.getIntNTy(d->width() / 2), 2))
                                     : b.getIntNTy(d->width());
    return set(0, b.CreateSExt(result, type));
  }
  Value *other = nullptr;
  if (result->getType()->isVectorTy()) { // setp.f16x2 p|q
    other = b.CreateExtractElement(result, uint64_t(1));
    result = b.CreateExtractElement(result, uint64_t(0));
  } else {
    other = b.CreateNot(result);
  }
  if (s->operands.size() == 4) {
    Value *c = source(s->operands[3], 1);
    if (!c)
      return false;
    auto combine = [&](Value *v) {
      return has("and") ? b.CreateAnd(v, c) : has("or") ? b.CreateOr(v, c) : b.CreateXor(v, c);
    };
    result = combine(result);
    other = combine(other);
  }
  if (!s->operands[0].second.empty())
    registers[s->operands[0].second] = other;
  return set(0, result);
}

bool PtxLowering::convert() {
  auto from = type(0), to = type(1);
  if (!from || !to || s->operands.size() < 2)
    return false;
  if (has("rz") || has("rm") || has("rp"))
    return false; // directed rounding of floating-point results
  Type *target = to->kind == 'h' || to->bits == 32 ? b.getFloatTy() : to->bits == 16 ? b.getHalfTy() : b.getDoubleTy();
  if (to->lanes == 2 && from->lanes == 1 && s->operands.size() == 3) { // cvt.rn.f16x2.f32 d, upper, lower
    PtxType one{to->kind, 16, 1};
    Value *halves[2];
    for (unsigned i = 0; i < 2; ++i) {
      Value *v = typed(2 - i, *from);
      if (!v)
        return false;
      if (has("relu"))
        v = b.CreateMaxNum(v, ConstantFP::get(v->getType(), 0.0));
      v = one.kind == 'h' ? fromFloat(v, one) : bits(b.CreateFPTrunc(v, b.getHalfTy()));
      halves[i] = b.CreateZExt(v, b.getInt32Ty());
    }
    return set(0, b.CreateOr(halves[0], b.CreateShl(halves[1], 16)));
  }
  if (to->lanes == 2 || from->lanes == 2)
    return false;
  Value *v = typed(1, *from);
  if (!v)
    return false;
  if (from->isFloat() && to->isFloat()) {
    if (has("rni"))
      v = b.CreateUnaryIntrinsic(Intrinsic::roundeven, v);
    else if (has("rzi"))
      v = b.CreateUnaryIntrinsic(Intrinsic::trunc, v);
    else if (has("rmi"))
      v = b.CreateUnaryIntrinsic(Intrinsic::floor, v);
    else if (has("rpi"))
      v = b.CreateUnaryIntrinsic(Intrinsic::ceil, v);
    if (has("sat"))
      v = b.CreateMinNum(b.CreateMaxNum(v, ConstantFP::get(v->getType(), 0.0)), ConstantFP::get(v->getType(), 1.0));
    return set(0, fromFloat(b.CreateFPCast(v, target), *to));
  }
  if (from->isFloat()) {
    Intrinsic::ID round = has("rni")   ? Intrinsic::roundeven
                          : has("rmi") ? Intrinsic::floor
                          : has("rpi") ? Intrinsic::ceil
                                       : Intrinsic::trunc;
    v = b.CreateUnaryIntrinsic(round, v);
    Intrinsic::ID id = to->kind == 's' ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat;
    return set(0, b.CreateIntrinsic(id, {b.getIntNTy(to->bits), v->getType()}, {v}));
  }
  if (to->isFloat()) {
    v = from->kind == 's' ? b.CreateSIToFP(v, target) : b.CreateUIToFP(v, target);
    return set(0, fromFloat(v, *to));
  }
  if (has("sat"))
    return false;
  return set(0, b.CreateIntCast(v, b.getIntNTy(to->bits), from->kind == 's'));
}

bool PtxLowering::instruction() {
  StringRef op = s->words[0];
  if (op == "ld" || op == "ldu")
    return loadStore(false);
  if (op == "st")
    return loadStore(true);
  if (op == "atom" || op == "red")
    return atomic(op == "atom");
  if (op == "cvta" || op == "isspacep" || op == "mapa")
    return addressConversion();
  if (op == "cp")
    return asyncCopy();
  if (op == "setp" || op == "set")
    return setp();
  if (op == "cvt")
    return has("tf32") ? toTensorFloat() : convert();
  if (op == "mma")
    return matrixProduct();
  if (is_contained({"bar", "barrier", "membar", "fence", "nanosleep", "trap", "brkpt", "pmevent", "prefetch",
                    "prefetchu", "griddepcontrol", "discard", "applypriority"},
                   op))
    return synchronization(op);
  if (is_contained({"shfl", "vote", "match", "redux", "activemask"}, op))
    return warpOperation(op);
  if (op == "lop3" && s->operands.size() == 5)
    return logic3();
  std::optional<PtxType> t = type();
  if (!t || s->operands.empty())
    return false;
  if (op == "mov") {
    Value *v = s->operands.size() == 2 ? source(s->operands[1], t->width()) : nullptr;
    return v && set(0, v);
  }
  if (op == "selp") {
    Value *x = typed(1, *t), *y = typed(2, *t), *p = source(s->operands[3], 1);
    return x && y && p && set(0, b.CreateSelect(p, bits(x), bits(y)));
  }
  if (!t->isFloat()) {
    if (has("cc") || op == "addc" || op == "subc" || op == "madc")
      return s->operands.size() >= 3 && carryOp(op, *t);
    if (is_contained({"mul", "mad", "mul24", "mad24"}, op))
      return s->operands.size() >= 3 && multiplyAdd(op, *t);
    if (is_contained({"popc", "clz", "bfind", "shl", "shr", "shf", "bfe", "bfi", "prmt", "div", "rem", "dp4a"}, op))
      return integerOp(op, *t);
  } else if (has("rz") || has("rm") || has("rp")) {
    return false;
  }
  std::vector<Value *> args;
  for (unsigned i = 1; i < s->operands.size(); ++i)
    args.push_back(typed(i, *t));
  if (args.empty())
    return false;
  Value *result = arithmetic(op, *t, args);
  return result && set(0, fromFloat(result, *t));
}
