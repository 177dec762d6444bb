//===- PtxInstructions.cpp - arithmetic of inline PTX ---------------------===//
#include "PtxLowering.h"

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
  // Round to nearest even on the upper half.
  Type *vectorOf32 = t.lanes == 2 ? static_cast<Type *>(FixedVectorType::get(b.getInt32Ty(), 2)) : b.getInt32Ty();
  Type *vectorOf16 = t.lanes == 2 ? static_cast<Type *>(FixedVectorType::get(b.getInt16Ty(), 2)) : b.getInt16Ty();
  Value *raw = b.CreateBitCast(v, vectorOf32);
  Value *odd = b.CreateAnd(b.CreateLShr(raw, 16), ConstantInt::get(vectorOf32, 1));
  Value *rounded = b.CreateLShr(b.CreateAdd(raw, b.CreateAdd(odd, ConstantInt::get(vectorOf32, 0x7fff))), 16);
  Value *nan = b.CreateFCmpUNO(v, v);
  return b.CreateTrunc(b.CreateSelect(nan, ConstantInt::get(vectorOf32, 0x7fff), rounded), vectorOf16);
}

Value *PtxLowering::typed(unsigned operand, PtxType t) {
  return operand < s->operands.size() ? toType(source(s->operands[operand], t.width()), t) : nullptr;
}

/// Operations that mean the same for a scalar and for each lane.
Value *PtxLowering::arithmetic(StringRef op, PtxType t, ArrayRef<Value *> x) {
  if (is_contained(x, nullptr))
    return nullptr;
  Type *type = x[0]->getType();
  auto call1 = [&](Intrinsic::ID id) { return b.CreateUnaryIntrinsic(id, x[0]); };
  if (t.isFloat()) {
    Value *one = ConstantFP::get(type, 1.0), *zero = ConstantFP::get(type, 0.0), *r = nullptr;
    if (op == "add" || op == "sub" || op == "mul" || op == "div") {
      if (x.size() != 2)
        return nullptr;
      r = op == "add"   ? b.CreateFAdd(x[0], x[1])
          : op == "sub" ? b.CreateFSub(x[0], x[1])
          : op == "mul" ? b.CreateFMul(x[0], x[1])
                        : b.CreateFDiv(x[0], x[1]);
    } else if ((op == "fma" || op == "mad") && x.size() == 3)
      r = b.CreateIntrinsic(type, Intrinsic::fma, {x[0], x[1], x[2]});
    else if (op == "min" && x.size() == 2)
      r = has("NaN") ? b.CreateBinaryIntrinsic(Intrinsic::minimum, x[0], x[1]) : b.CreateMinNum(x[0], x[1]);
    else if (op == "max" && x.size() == 2)
      r = has("NaN") ? b.CreateBinaryIntrinsic(Intrinsic::maximum, x[0], x[1]) : b.CreateMaxNum(x[0], x[1]);
    else if (op == "abs")
      r = call1(Intrinsic::fabs);
    else if (op == "neg")
      r = b.CreateFNeg(x[0]);
    else if (op == "sqrt")
      r = call1(Intrinsic::sqrt);
    else if (op == "rcp")
      r = b.CreateFDiv(one, x[0]);
    else if (op == "rsqrt")
      r = b.CreateFDiv(one, call1(Intrinsic::sqrt));
    else if (op == "ex2")
      r = call1(Intrinsic::exp2);
    else if (op == "lg2")
      r = call1(Intrinsic::log2);
    else if (op == "sin")
      r = call1(Intrinsic::sin);
    else if (op == "cos")
      r = call1(Intrinsic::cos);
    else if (op == "tanh")
      r = call1(Intrinsic::tanh);
    else if (op == "copysign" && x.size() == 2) // copysign d, a, b: a's sign on b
      r = b.CreateCopySign(x[1], x[0]);
    if (r && has("sat"))
      r = b.CreateMinNum(b.CreateMaxNum(r, zero), one);
    if (r && has("relu"))
      r = b.CreateMaxNum(r, zero);
    return r;
  }
  bool isSigned = t.kind == 's';
  if (x.size() == 2) {
    if (op == "add") {
      if (has("sat"))
        return b.CreateBinaryIntrinsic(isSigned ? Intrinsic::sadd_sat : Intrinsic::uadd_sat, x[0], x[1]);
      return b.CreateAdd(x[0], x[1]);
    }
    if (op == "sub") {
      if (has("sat"))
        return b.CreateBinaryIntrinsic(isSigned ? Intrinsic::ssub_sat : Intrinsic::usub_sat, x[0], x[1]);
      return b.CreateSub(x[0], x[1]);
    }
    if (op == "min")
      return b.CreateBinaryIntrinsic(isSigned ? Intrinsic::smin : Intrinsic::umin, x[0], x[1]);
    if (op == "max")
      return b.CreateBinaryIntrinsic(isSigned ? Intrinsic::smax : Intrinsic::umax, x[0], x[1]);
    if (op == "and")
      return b.CreateAnd(x[0], x[1]);
    if (op == "or")
      return b.CreateOr(x[0], x[1]);
    if (op == "xor")
      return b.CreateXor(x[0], x[1]);
  }
  if (x.size() == 1) {
    if (op == "abs")
      return b.CreateIntrinsic(type, Intrinsic::abs, {x[0], b.getFalse()});
    if (op == "neg")
      return b.CreateNeg(x[0]);
    if (op == "not")
      return b.CreateNot(x[0]);
    if (op == "cnot")
      return b.CreateZExt(b.CreateICmpEQ(x[0], ConstantInt::get(type, 0)), type);
    if (op == "brev")
      return call1(Intrinsic::bitreverse);
  }
  return nullptr;
}

Value *PtxLowering::comparison(StringRef op, PtxType t, Value *x, Value *y) {
  if (!x || !y)
    return nullptr;
  struct Row {
    const char *name;
    CmpInst::Predicate f, u, s;
  };
  static const Row rows[] = {
      {"eq", CmpInst::FCMP_OEQ, CmpInst::ICMP_EQ, CmpInst::ICMP_EQ},
      {"ne", CmpInst::FCMP_ONE, CmpInst::ICMP_NE, CmpInst::ICMP_NE},
      {"lt", CmpInst::FCMP_OLT, CmpInst::ICMP_ULT, CmpInst::ICMP_SLT},
      {"le", CmpInst::FCMP_OLE, CmpInst::ICMP_ULE, CmpInst::ICMP_SLE},
      {"gt", CmpInst::FCMP_OGT, CmpInst::ICMP_UGT, CmpInst::ICMP_SGT},
      {"ge", CmpInst::FCMP_OGE, CmpInst::ICMP_UGE, CmpInst::ICMP_SGE},
      {"lo", CmpInst::BAD_FCMP_PREDICATE, CmpInst::ICMP_ULT, CmpInst::ICMP_ULT},
      {"ls", CmpInst::BAD_FCMP_PREDICATE, CmpInst::ICMP_ULE, CmpInst::ICMP_ULE},
      {"hi", CmpInst::BAD_FCMP_PREDICATE, CmpInst::ICMP_UGT, CmpInst::ICMP_UGT},
      {"hs", CmpInst::BAD_FCMP_PREDICATE, CmpInst::ICMP_UGE, CmpInst::ICMP_UGE},
      {"equ", CmpInst::FCMP_UEQ, CmpInst::BAD_ICMP_PREDICATE, CmpInst::BAD_ICMP_PREDICATE},
      {"neu", CmpInst::FCMP_UNE, CmpInst::BAD_ICMP_PREDICATE, CmpInst::BAD_ICMP_PREDICATE},
      {"ltu", CmpInst::FCMP_ULT, CmpInst::BAD_ICMP_PREDICATE, CmpInst::BAD_ICMP_PREDICATE},
      {"leu", CmpInst::FCMP_ULE, CmpInst::BAD_ICMP_PREDICATE, CmpInst::BAD_ICMP_PREDICATE},
      {"gtu", CmpInst::FCMP_UGT, CmpInst::BAD_ICMP_PREDICATE, CmpInst::BAD_ICMP_PREDICATE},
      {"geu", CmpInst::FCMP_UGE, CmpInst::BAD_ICMP_PREDICATE, CmpInst::BAD_ICMP_PREDICATE},
      {"num", CmpInst::FCMP_ORD, CmpInst::BAD_ICMP_PREDICATE, CmpInst::BAD_ICMP_PREDICATE},
      {"nan", CmpInst::FCMP_UNO, CmpInst::BAD_ICMP_PREDICATE, CmpInst::BAD_ICMP_PREDICATE},
  };
  for (const Row &row : rows) {
    if (op != row.name)
      continue;
    CmpInst::Predicate predicate = t.isFloat() ? row.f : t.kind == 's' ? row.s : row.u;
    if (predicate == CmpInst::BAD_FCMP_PREDICATE || predicate == CmpInst::BAD_ICMP_PREDICATE)
      return nullptr;
    return b.CreateCmp(predicate, x, y);
  }
  return nullptr;
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
  auto isFloat = [](PtxType t) { return t.isFloat(); };
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
  if (isFloat(*from) && isFloat(*to)) {
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
    Type *target = to->kind == 'h' || to->bits == 32 ? b.getFloatTy()
                   : to->bits == 16                  ? b.getHalfTy()
                                                     : b.getDoubleTy();
    return set(0, fromFloat(b.CreateFPCast(v, target), *to));
  }
  if (isFloat(*from)) {
    Intrinsic::ID round = has("rni")   ? Intrinsic::roundeven
                          : has("rmi") ? Intrinsic::floor
                          : has("rpi") ? Intrinsic::ceil
                                       : Intrinsic::trunc;
    v = b.CreateUnaryIntrinsic(round, v);
    Intrinsic::ID id = to->kind == 's' ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat;
    return set(0, b.CreateIntrinsic(id, {b.getIntNTy(to->bits), v->getType()}, {v}));
  }
  if (isFloat(*to)) {
    Type *target = to->kind == 'h' || to->bits == 32 ? b.getFloatTy()
                   : to->bits == 16                  ? b.getHalfTy()
                                                     : b.getDoubleTy();
    v = from->kind == 's' ? b.CreateSIToFP(v, target) : b.CreateUIToFP(v, target);
    return set(0, fromFloat(v, *to));
  }
  if (has("sat"))
    return false;
  Type *target = b.getIntNTy(to->bits);
  return set(0, from->kind == 's' ? b.CreateSExtOrTrunc(v, target) : b.CreateZExtOrTrunc(v, target));
}

bool PtxLowering::logic3() {
  Value *x = source(s->operands[1], 32), *y = source(s->operands[2], 32), *z = source(s->operands[3], 32);
  const PtxOperand &table = s->operands[4];
  uint64_t f = table.bits;
  if (table.kind == PtxOperand::Asm) {
    auto *constant = dyn_cast_or_null<ConstantInt>(operands[table.index]);
    if (!constant)
      return false;
    f = constant->getZExtValue();
  } else if (table.kind != PtxOperand::Immediate)
    return false;
  if (!x || !y || !z)
    return false;
  Value *result = b.getInt32(0);
  for (unsigned i = 0; i < 8; ++i) {
    if (!(f >> i & 1))
      continue;
    Value *term = b.CreateAnd(i & 4 ? x : b.CreateNot(x), i & 2 ? y : b.CreateNot(y));
    result = b.CreateOr(result, b.CreateAnd(term, i & 1 ? z : b.CreateNot(z)));
  }
  return set(0, result);
}

bool PtxLowering::carryOp(StringRef op, PtxType t) {
  // add.cc, addc[.cc], sub.cc, subc[.cc], mad.lo.cc, mad.hi.cc, madc.*: the carry flag links them.
  unsigned n = t.bits;
  Type *narrow = b.getIntNTy(n), *wide = b.getIntNTy(2 * n);
  bool reads = op == "addc" || op == "subc" || op == "madc", writes = has("cc"), subtract = op.starts_with("sub");
  Value *x = source(s->operands[1], n), *y = source(s->operands[2], n);
  if (!x || !y || (reads && !carry))
    return false;
  if (op.starts_with("mad")) {
    auto extend = [&](Value *v) { return t.kind == 's' ? b.CreateSExt(v, wide) : b.CreateZExt(v, wide); };
    Value *product = b.CreateMul(extend(x), extend(y));
    x = b.CreateTrunc(has("hi") ? b.CreateLShr(product, n) : product, narrow);
    y = source(s->operands[3], n);
    if (!y)
      return false;
  }
  Value *zx = b.CreateZExt(x, wide), *zy = b.CreateZExt(y, wide);
  Value *sum = subtract ? b.CreateSub(zx, zy) : b.CreateAdd(zx, zy);
  if (reads)
    sum = subtract ? b.CreateSub(sum, b.CreateZExt(carry, wide)) : b.CreateAdd(sum, b.CreateZExt(carry, wide));
  if (writes)
    carry = b.CreateTrunc(b.CreateLShr(sum, n), b.getInt1Ty());
  return set(0, b.CreateTrunc(sum, narrow));
}

bool PtxLowering::multiplyAdd(StringRef op, PtxType t) {
  bool add = op == "mad" || op == "mad24", short24 = op.ends_with("24");
  unsigned n = t.bits;
  Value *x = source(s->operands[1], n), *y = source(s->operands[2], n);
  if (!x || !y)
    return false;
  bool isSigned = t.kind == 's';
  Type *wide = b.getIntNTy(2 * n);
  auto extend = [&](Value *v) {
    if (short24)
      v = isSigned ? b.CreateAShr(b.CreateShl(v, 8), 8) : b.CreateAnd(v, 0xffffff);
    return isSigned ? b.CreateSExt(v, wide) : b.CreateZExt(v, wide);
  };
  Value *product = b.CreateMul(extend(x), extend(y));
  if (has("hi"))
    product = b.CreateTrunc(b.CreateLShr(product, short24 ? 16 : n), x->getType());
  else if (!has("wide"))
    product = b.CreateTrunc(product, x->getType());
  if (add) {
    Value *z = source(s->operands[3], product->getType()->getIntegerBitWidth());
    if (!z)
      return false;
    product = b.CreateAdd(product, z);
  }
  return set(0, product);
}

bool PtxLowering::integerOp(StringRef op, PtxType t) {
  unsigned n = t.bits;
  Type *type = b.getIntNTy(n);
  bool isSigned = t.kind == 's';
  auto count = [&](unsigned i) { return s->operands.size() > i ? source(s->operands[i], 32) : nullptr; };
  if (op == "popc" || op == "clz") {
    Value *x = typed(1, t);
    if (!x)
      return false;
    Value *r = op == "popc" ? b.CreateUnaryIntrinsic(Intrinsic::ctpop, x)
                            : b.CreateIntrinsic(type, Intrinsic::ctlz, {x, b.getFalse()});
    return set(0, b.CreateZExtOrTrunc(r, b.getInt32Ty()));
  }
  if (op == "bfind" && !isSigned) {
    Value *x = typed(1, t);
    if (!x)
      return false;
    Value *zeros = b.CreateIntrinsic(type, Intrinsic::ctlz, {x, b.getFalse()});
    if (!has("shiftamt"))
      zeros = b.CreateSub(ConstantInt::get(type, n - 1), zeros);
    Value *result = b.CreateTrunc(zeros, b.getInt32Ty());
    return set(0, b.CreateSelect(b.CreateICmpEQ(x, ConstantInt::get(type, 0)), b.getInt32(~0u), result));
  }
  if (op == "shl" || op == "shr") { // counts beyond the width shift everything out
    Value *x = typed(1, t), *by = count(2);
    if (!x || !by)
      return false;
    Value *amount = b.CreateZExtOrTrunc(by, type), *far = b.CreateICmpUGE(by, b.getInt32(n));
    if (op == "shl")
      return set(0, b.CreateSelect(far, ConstantInt::get(type, 0), b.CreateShl(x, amount)));
    if (isSigned)
      return set(0, b.CreateAShr(x, b.CreateSelect(far, ConstantInt::get(type, n - 1), amount)));
    return set(0, b.CreateSelect(far, ConstantInt::get(type, 0), b.CreateLShr(x, amount)));
  }
  if (op == "shf") { // shf.{l,r}.{wrap,clamp}.b32 d, low, high, count
    Value *low = typed(1, t), *high = typed(2, t), *by = count(3);
    if (!low || !high || !by)
      return false;
    by = has("wrap") ? b.CreateAnd(by, 31) : b.CreateBinaryIntrinsic(Intrinsic::umin, by, b.getInt32(32));
    Type *i64 = b.getInt64Ty();
    Value *pair = b.CreateOr(b.CreateShl(b.CreateZExt(high, i64), 32), b.CreateZExt(low, i64));
    Value *amount = b.CreateZExt(by, i64);
    Value *r = has("l") ? b.CreateLShr(b.CreateShl(pair, amount), 32) : b.CreateLShr(pair, amount);
    return set(0, b.CreateTrunc(r, type));
  }
  if (op == "bfe" || op == "bfi") {
    unsigned first = op == "bfe" ? 1 : 2;
    Value *x = typed(first, t), *position = count(first + 1), *length = count(first + 2);
    if (!x || !position || !length)
      return false;
    position = b.CreateZExt(b.CreateAnd(position, 255), b.getInt64Ty());
    length = b.CreateZExt(b.CreateAnd(length, 255), b.getInt64Ty());
    Type *i128 = b.getIntNTy(128);
    Value *p = b.CreateZExt(b.CreateBinaryIntrinsic(Intrinsic::umin, position, b.getInt64(64)), i128);
    Value *l = b.CreateZExt(b.CreateBinaryIntrinsic(Intrinsic::umin, length, b.getInt64(64)), i128);
    Value *mask = b.CreateSub(b.CreateShl(ConstantInt::get(i128, 1), l), ConstantInt::get(i128, 1));
    if (op == "bfi") {
      Value *insert = typed(1, t);
      if (!insert)
        return false;
      Value *field = b.CreateShl(b.CreateAnd(b.CreateZExt(insert, i128), mask), p);
      Value *kept = b.CreateAnd(b.CreateZExt(x, i128), b.CreateNot(b.CreateShl(mask, p)));
      return set(0, b.CreateTrunc(b.CreateOr(kept, field), type));
    }
    if (!isSigned)
      return set(0, b.CreateTrunc(b.CreateAnd(b.CreateLShr(b.CreateZExt(x, i128), p), mask), type));
    Value *shift = b.CreateSub(ConstantInt::get(i128, 128), l);
    Value *field = b.CreateAShr(b.CreateShl(b.CreateAShr(b.CreateSExt(x, i128), p), shift), shift);
    Value *none = b.CreateICmpEQ(length, b.getInt64(0));
    return set(0, b.CreateSelect(none, ConstantInt::get(type, 0), b.CreateTrunc(field, type)));
  }
  if (op == "prmt" && s->words.size() == 2) {
    Value *x = typed(1, t), *y = typed(2, t), *selector = count(3);
    if (!x || !y || !selector)
      return false;
    Type *i64 = b.getInt64Ty();
    Value *pair = b.CreateOr(b.CreateShl(b.CreateZExt(y, i64), 32), b.CreateZExt(x, i64));
    Value *result = b.getInt32(0);
    for (unsigned i = 0; i < 4; ++i) {
      Value *nibble = b.CreateLShr(selector, uint64_t(4 * i));
      Value *byte =
          b.CreateTrunc(b.CreateLShr(pair, b.CreateShl(b.CreateZExt(b.CreateAnd(nibble, 7), i64), 3)), b.getInt8Ty());
      Value *sign = b.CreateAShr(byte, 7);
      byte = b.CreateSelect(b.CreateICmpNE(b.CreateAnd(nibble, 8), b.getInt32(0)), sign, byte);
      result = b.CreateOr(result, b.CreateShl(b.CreateZExt(byte, b.getInt32Ty()), uint64_t(8 * i)));
    }
    return set(0, result);
  }
  if ((op == "div" || op == "rem") && !t.isFloat()) {
    Value *x = typed(1, t), *y = typed(2, t);
    if (!x || !y)
      return false;
    Value *r = op == "div" ? (isSigned ? b.CreateSDiv(x, y) : b.CreateUDiv(x, y))
                           : (isSigned ? b.CreateSRem(x, y) : b.CreateURem(x, y));
    return set(0, r);
  }
  if (op == "dp4a") {
    auto x = this->type(1), y = this->type(0);
    Value *u = source(s->operands[1], 32), *v = source(s->operands[2], 32), *sum = source(s->operands[3], 32);
    if (!x || !y || !u || !v || !sum)
      return false;
    for (unsigned i = 0; i < 4; ++i) {
      auto byte = [&](Value *w, char kind) {
        Value *narrow = b.CreateTrunc(b.CreateLShr(w, uint64_t(8 * i)), b.getInt8Ty());
        return kind == 's' ? b.CreateSExt(narrow, b.getInt32Ty()) : b.CreateZExt(narrow, b.getInt32Ty());
      };
      sum = b.CreateAdd(sum, b.CreateMul(byte(u, x->kind), byte(v, y->kind)));
    }
    return set(0, sum);
  }
  return false;
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
