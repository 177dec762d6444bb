//===- PtxInteger.cpp - integer arithmetic of inline PTX ------------------===//
#include "PtxLowering.h"

using namespace llvm;
using namespace optiml::emu;

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
    bool isSigned = t.kind == 's';
    Value *product = b.CreateMul(b.CreateIntCast(x, wide, isSigned), b.CreateIntCast(y, wide, isSigned));
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
    return b.CreateIntCast(v, wide, isSigned);
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

Value *PtxLowering::shiftCount(unsigned operand) {
  return s->operands.size() > operand ? source(s->operands[operand], 32) : nullptr;
}

bool PtxLowering::countBits(StringRef op, PtxType t) {
  Value *x = typed(1, t);
  if (!x)
    return false;
  Value *r = op == "popc" ? b.CreateUnaryIntrinsic(Intrinsic::ctpop, x)
                          : b.CreateIntrinsic(x->getType(), Intrinsic::ctlz, {x, b.getFalse()});
  return set(0, b.CreateZExtOrTrunc(r, b.getInt32Ty()));
}

/// The position of the highest bit that is set.
bool PtxLowering::findBit(PtxType t) {
  Value *x = typed(1, t);
  if (!x)
    return false;
  Type *type = x->getType();
  Value *zeros = b.CreateIntrinsic(type, Intrinsic::ctlz, {x, b.getFalse()});
  if (!has("shiftamt"))
    zeros = b.CreateSub(ConstantInt::get(type, t.bits - 1), zeros);
  Value *result = b.CreateTrunc(zeros, b.getInt32Ty());
  return set(0, b.CreateSelect(b.CreateICmpEQ(x, ConstantInt::get(type, 0)), b.getInt32(~0u), result));
}

/// Counts beyond the width shift everything out.
bool PtxLowering::shift(StringRef op, PtxType t) {
  unsigned n = t.bits;
  Type *type = b.getIntNTy(n);
  Value *x = typed(1, t), *by = shiftCount(2);
  if (!x || !by)
    return false;
  Value *amount = b.CreateZExtOrTrunc(by, type), *far = b.CreateICmpUGE(by, b.getInt32(n));
  if (op == "shl")
    return set(0, b.CreateSelect(far, ConstantInt::get(type, 0), b.CreateShl(x, amount)));
  if (t.kind == 's')
    return set(0, b.CreateAShr(x, b.CreateSelect(far, ConstantInt::get(type, n - 1), amount)));
  return set(0, b.CreateSelect(far, ConstantInt::get(type, 0), b.CreateLShr(x, amount)));
}

/// shf.{l,r}.{wrap,clamp}.b32 d, low, high, count
bool PtxLowering::funnelShift(PtxType t) {
  Value *low = typed(1, t), *high = typed(2, t), *by = shiftCount(3);
  if (!low || !high || !by)
    return false;
  by = has("wrap") ? b.CreateAnd(by, 31) : b.CreateBinaryIntrinsic(Intrinsic::umin, by, b.getInt32(32));
  Type *i64 = b.getInt64Ty();
  Value *pair = b.CreateOr(b.CreateShl(b.CreateZExt(high, i64), 32), b.CreateZExt(low, i64));
  Value *amount = b.CreateZExt(by, i64);
  Value *r = has("l") ? b.CreateLShr(b.CreateShl(pair, amount), 32) : b.CreateLShr(pair, amount);
  return set(0, b.CreateTrunc(r, b.getIntNTy(t.bits)));
}

bool PtxLowering::bitField(StringRef op, PtxType t) {
  unsigned first = op == "bfe" ? 1 : 2;
  Value *x = typed(first, t), *position = shiftCount(first + 1), *length = shiftCount(first + 2);
  if (!x || !position || !length)
    return false;
  position = b.CreateZExt(b.CreateAnd(position, 255), b.getInt64Ty());
  length = b.CreateZExt(b.CreateAnd(length, 255), b.getInt64Ty());
  Type *type = b.getIntNTy(t.bits), *i128 = b.getIntNTy(128);
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
  if (t.kind != 's')
    return set(0, b.CreateTrunc(b.CreateAnd(b.CreateLShr(b.CreateZExt(x, i128), p), mask), type));
  Value *shift = b.CreateSub(ConstantInt::get(i128, 128), l);
  Value *field = b.CreateAShr(b.CreateShl(b.CreateAShr(b.CreateSExt(x, i128), p), shift), shift);
  Value *none = b.CreateICmpEQ(length, b.getInt64(0));
  return set(0, b.CreateSelect(none, ConstantInt::get(type, 0), b.CreateTrunc(field, type)));
}

bool PtxLowering::permuteBytes(PtxType t) {
  Value *x = typed(1, t), *y = typed(2, t), *selector = shiftCount(3);
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

bool PtxLowering::divide(StringRef op, PtxType t) {
  Value *x = typed(1, t), *y = typed(2, t);
  if (!x || !y)
    return false;
  Value *r = op == "div" ? (t.kind == 's' ? b.CreateSDiv(x, y) : b.CreateUDiv(x, y))
                         : (t.kind == 's' ? b.CreateSRem(x, y) : b.CreateURem(x, y));
  return set(0, r);
}

bool PtxLowering::dotProduct() {
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

bool PtxLowering::integerOp(StringRef op, PtxType t) {
  if (op == "popc" || op == "clz")
    return countBits(op, t);
  if (op == "bfind" && t.kind != 's')
    return findBit(t);
  if (op == "shl" || op == "shr")
    return shift(op, t);
  if (op == "shf")
    return funnelShift(t);
  if (op == "bfe" || op == "bfi")
    return bitField(op, t);
  if (op == "prmt" && s->words.size() == 2)
    return permuteBytes(t);
  if (op == "div" || op == "rem")
    return divide(op, t);
  return op == "dp4a" && dotProduct();
}
