//===- PtxMemory.cpp - memory and synchronization of inline PTX -----------===//
#include "Accesses.h"
#include "PtxLowering.h"

using namespace llvm;
using namespace optiml::emu;

/// [base + offset] as a pointer; addresses in shared memory are offsets from the block's base.
Value *PtxLowering::address(const PtxOperand &o) {
  if (o.kind != PtxOperand::Address)
    return nullptr;
  Value *base = source(o.elements[0], 0);
  if (!base || !base->getType()->isIntegerTy())
    return nullptr;
  base = b.CreateAdd(b.CreateZExtOrTrunc(base, b.getInt64Ty()), b.getInt64(o.bits));
  bool shared = any_of(s->words, [](const std::string &w) { return StringRef(w).starts_with("shared"); });
  if (shared)
    return b.CreatePtrAdd(dm.load(b, Field::Shared), base);
  return b.CreateIntToPtr(base, b.getPtrTy());
}

/// What a release orders before it, as a fence of its scope does.
void PtxLowering::release() {
  if (has("release") || has("acq_rel"))
    dm.call(b, "optiml_fence", {b.getInt32(has("sys") ? 2 : has("gpu") || has("cluster") ? 1 : 0)});
}

bool PtxLowering::loadStore(bool isStore) {
  auto t = type();
  if (!t || s->operands.size() < 2 || has("param") || has("const"))
    return false;
  unsigned lanes = has("v2") ? 2 : has("v4") ? 4 : 1;
  const PtxOperand &place = s->operands[isStore ? 0 : 1], &data = s->operands[isStore ? 1 : 0];
  Value *pointer = address(place);
  if (!pointer || (lanes > 1 && (data.kind != PtxOperand::Vector || data.elements.size() != lanes)))
    return false;
  Type *element = b.getIntNTy(t->width());
  if (t->kind == 'f') // so that shadow execution sees numbers
    element = t->lanes == 2   ? element
              : t->bits == 16 ? b.getInt16Ty()
              : t->bits == 32 ? b.getFloatTy()
                              : b.getDoubleTy();
  bool isVolatile = has("volatile") || has("mmio");
  AtomicOrdering order = has("acquire")   ? AtomicOrdering::Acquire
                         : has("release") ? AtomicOrdering::Release
                         : has("relaxed") ? AtomicOrdering::Monotonic
                                          : AtomicOrdering::NotAtomic;
  if (order != AtomicOrdering::NotAtomic && (lanes > 1 || !element->isIntegerTy()))
    return false;
  Align align(lanes * t->width() / 8);
  Type *whole = lanes == 1 ? element : static_cast<Type *>(FixedVectorType::get(element, lanes));
  if (isStore) {
    Value *value = lanes == 1 ? nullptr : static_cast<Value *>(PoisonValue::get(whole));
    for (unsigned i = 0; i < lanes; ++i) {
      Value *part = source(lanes == 1 ? data : data.elements[i], t->width());
      if (!part)
        return false;
      part = b.CreateBitCast(part, element);
      value = lanes == 1 ? part : b.CreateInsertElement(value, part, uint64_t(i));
    }
    release();
    StoreInst *store = b.CreateAlignedStore(value, pointer, align, isVolatile);
    store->setOrdering(order);
    return true;
  }
  LoadInst *load = b.CreateAlignedLoad(whole, pointer, align, isVolatile);
  load->setOrdering(order);
  if (has("nc"))
    load->setMetadata(readOnlyName, MDNode::get(b.getContext(), {}));
  if (lanes == 1)
    return set(0, load);
  for (unsigned i = 0; i < lanes; ++i)
    if (!assign(data.elements[i], b.CreateExtractElement(load, uint64_t(i))))
      return false;
  return true;
}

bool PtxLowering::atomic(bool wantsResult) {
  auto t = type();
  unsigned first = wantsResult ? 1 : 0;
  if (!t || s->operands.size() < first + 2 || has("noftz"))
    return false;
  Value *pointer = address(s->operands[first]);
  if (!pointer)
    return false;
  unsigned lanes = has("v2") ? 2 : has("v4") ? 4 : 1;
  if (t->lanes != 1 || (t->isFloat() && t->bits == 16))
    return false;
  release();
  if (has("cas")) {
    Value *expected = source(s->operands[first + 1], t->bits), *desired = source(s->operands[first + 2], t->bits);
    if (!expected || !desired || lanes > 1)
      return false;
    Value *r = b.CreateAtomicCmpXchg(pointer, expected, desired, MaybeAlign(), AtomicOrdering::SequentiallyConsistent,
                                     AtomicOrdering::SequentiallyConsistent);
    return !wantsResult || set(0, b.CreateExtractValue(r, 0));
  }
  struct Row {
    const char *name;
    AtomicRMWInst::BinOp u, s, f;
  };
  const Row rows[] = {
#define PTX_ATOMIC(word, ifUnsigned, ifSigned, ifFloat)                                                                \
  {word, AtomicRMWInst::ifUnsigned, AtomicRMWInst::ifSigned, AtomicRMWInst::ifFloat},
#include "PtxOperations.def"
  };
  for (const Row &row : rows) {
    if (!has(row.name))
      continue;
    AtomicRMWInst::BinOp op = t->isFloat() ? row.f : t->kind == 's' ? row.s : row.u;
    if (op == AtomicRMWInst::BAD_BINOP)
      return false;
    const PtxOperand &data = s->operands[first + 1];
    for (unsigned i = 0; i < lanes; ++i) {
      const PtxOperand &part = lanes == 1 ? data : data.elements[i];
      Value *value = toType(source(part, t->bits), *t);
      if (!value)
        return false;
      Value *place = b.CreateConstInBoundsGEP1_64(value->getType(), pointer, i);
      Value *old = b.CreateAtomicRMW(op, place, value, MaybeAlign(), AtomicOrdering::SequentiallyConsistent);
      const PtxOperand &result = s->operands[0];
      if (wantsResult && !assign(lanes == 1 ? result : result.elements[i], old))
        return false;
    }
    return true;
  }
  return false;
}

bool PtxLowering::addressConversion() {
  StringRef op = s->words[0];
  Value *v = s->operands.size() >= 2 ? source(s->operands[1], 64) : nullptr;
  if (!v)
    return false;
  bool shared = any_of(s->words, [](const std::string &w) { return StringRef(w).starts_with("shared"); });
  if (op == "mapa")
    return set(0, v);
  if (op == "isspacep") {
    Value *pointer = b.CreateIntToPtr(v, b.getPtrTy());
    if (!shared && !has("global"))
      return false;
    Value *r = dm.call(b, shared ? "optiml_is_shared" : "optiml_is_global", {pointer});
    return set(0, b.CreateICmpNE(r, b.getInt32(0)));
  }
  if (!shared)
    return (has("global") || has("local") || has("const")) && set(0, v);
  Value *base = b.CreatePtrToInt(dm.load(b, Field::Shared), b.getInt64Ty());
  if (has("to"))
    return set(0, b.CreateSub(v, base));
  auto t = type();
  return t && set(0, b.CreateAdd(b.CreateAnd(v, maskTrailingOnes<uint64_t>(32)), base));
}

/// cp.async is done at once, one of the orders that a program must expect.
bool PtxLowering::asyncCopy() {
  if (s->words.size() < 2 || s->words[1] != "async" || has("bulk") || has("mbarrier"))
    return false;
  if (has("commit_group") || has("wait_group") || has("wait_all"))
    return true;
  if (s->operands.size() < 3 || s->operands[2].kind == PtxOperand::Name)
    return false;
  auto constant = [&](const PtxOperand &o) -> std::optional<uint64_t> {
    if (o.kind == PtxOperand::Immediate)
      return o.bits;
    Value *v = source(o, 32);
    if (auto *c = dyn_cast_or_null<ConstantInt>(v))
      return c->getZExtValue();
    return std::nullopt;
  };
  auto size = constant(s->operands[2]);
  if (!size || (*size != 4 && *size != 8 && *size != 16))
    return false;
  // The destination is in shared memory, the source in global.
  PtxStatement copy = *s;
  Value *to = address(s->operands[0]);
  erase_if(copy.words, [](const std::string &w) { return StringRef(w).starts_with("shared"); });
  const PtxStatement *saved = s;
  s = &copy;
  Value *from = address(copy.operands[1]);
  s = saved;
  if (!to || !from)
    return false;
  Type *type = b.getIntNTy(unsigned(*size) * 8);
  if (*size == 16)
    type = FixedVectorType::get(b.getFloatTy(), 4);
  else if (*size == 4)
    type = b.getFloatTy();
  if (s->operands.size() > 3) { // src-size: the rest is zero; 0 reads nothing
    Value *bytes = source(s->operands[3], 32);
    if (!bytes)
      return false;
    // Reading zeros of one's own instead keeps this free of branches.
    Function &f = *call.getFunction();
    AllocaInst *zero = IRBuilder<>(&f.getEntryBlock(), f.getEntryBlock().begin()).CreateAlloca(type);
    zero->setAlignment(Align(16));
    storeInBackground(Constant::getNullValue(type), zero, Align(*size));
    auto isWhole = [&](Value *v) {
      auto *c = dyn_cast<ConstantInt>(v);
      return c && (c->isZero() || c->getZExtValue() == *size);
    };
    if (auto *choice = dyn_cast<SelectInst>(bytes);
        choice && isWhole(choice->getTrueValue()) && isWhole(choice->getFalseValue())) {
      Value *place = b.CreateSelect(b.CreateICmpNE(bytes, b.getInt32(0)), from, zero);
      storeInBackground(b.CreateAlignedLoad(type, place, Align(*size)), to, Align(*size));
      return true;
    }
    for (unsigned i = 0; i < *size / 4; ++i) {
      Value *inside = b.CreateICmpULT(b.getInt32(4 * i), bytes);
      Value *place = b.CreateSelect(inside, b.CreateConstInBoundsGEP1_64(b.getFloatTy(), from, i), zero);
      Value *word = b.CreateAlignedLoad(b.getFloatTy(), place, Align(4));
      b.CreateAlignedStore(word, b.CreateConstInBoundsGEP1_64(b.getFloatTy(), to, i), Align(4));
    }
    return true;
  }
  storeInBackground(b.CreateAlignedLoad(type, from, Align(*size)), to, Align(*size));
  return true;
}

/// For Trace.cpp: part of an asynchronous copy, for which nobody waits here; or of a place of the thread's own, which
/// is free.
void PtxLowering::markBackground(Instruction &access) {
  access.setMetadata("optiml.background", MDNode::get(access.getContext(), {}));
}

void PtxLowering::storeInBackground(Value *value, Value *to, Align alignment) {
  markBackground(*b.CreateAlignedStore(value, to, alignment));
  if (auto *load = dyn_cast<LoadInst>(value))
    markBackground(*load);
}

bool PtxLowering::synchronization(StringRef op) {
  Value *site = dm.site(b);
  if (op == "bar" || op == "barrier") {
    if (has("warp")) {
      Value *mask = source(s->operands[0], 32);
      return mask && dm.call(b, "optiml_syncwarp", {mask, site});
    }
    if (has("cluster"))
      return !has("wait") || dm.call(b, "optiml_barrier", {b.getInt32(0), site});
    Value *id = s->operands.size() == 1 ? source(s->operands[0], 32) : nullptr; // a thread count is not known
    return has("sync") && id && dm.call(b, "optiml_barrier", {id, site});
  }
  if (op == "membar" || op == "fence") {
    unsigned scope = has("cta") ? 0 : has("sys") ? 2 : 1;
    dm.call(b, "optiml_fence", {b.getInt32(scope)});
    return true;
  }
  if (op == "nanosleep") {
    Value *time = source(s->operands[0], 32);
    return time && dm.call(b, "optiml_nanosleep", {time});
  }
  if (op == "trap")
    return dm.call(b, "optiml_trap", {site});
  return true; // brkpt, pmevent, prefetch, …: hints
}

bool PtxLowering::warpOperation(StringRef op) {
  Value *site = dm.site(b);
  auto &o = s->operands;
  if (op == "activemask")
    return o.size() == 1 && set(0, dm.call(b, "optiml_activemask"));
  if (!has("sync") || o.size() < 3)
    return false;
  if (op == "shfl") { // shfl.sync.mode.b32 d[|p], a, b, c, mask
    if (o.size() != 5)
      return false;
    unsigned mode = has("idx") ? ShuffleIdx : has("up") ? ShuffleUp : has("down") ? ShuffleDown : ShuffleBfly;
    Value *a = source(o[1], 32), *lane = source(o[2], 32), *c = source(o[3], 32), *mask = source(o[4], 32);
    if (!a || !lane || !c || !mask)
      return false;
    Value *slot = ConstantPointerNull::get(b.getPtrTy());
    if (!o[0].second.empty()) {
      Function &f = *call.getFunction();
      slot = IRBuilder<>(&f.getEntryBlock(), f.getEntryBlock().begin()).CreateAlloca(b.getInt32Ty());
    }
    Value *r = dm.call(b, "optiml_shuffle", {b.getInt32(mode), mask, a, lane, c, slot, site});
    if (!o[0].second.empty())
      registers[o[0].second] = b.CreateICmpNE(b.CreateLoad(b.getInt32Ty(), slot), b.getInt32(0));
    return set(0, r);
  }
  if (op == "vote") {
    unsigned mode = has("all") ? VoteAll : has("any") ? VoteAny : has("uni") ? VoteUni : VoteBallot;
    Value *p = source(o[1], 1), *mask = source(o[2], 32);
    if (!p || !mask)
      return false;
    Value *r = dm.call(b, "optiml_vote", {b.getInt32(mode), mask, b.CreateZExt(p, b.getInt32Ty()), site});
    return set(0, mode == VoteBallot ? r : b.CreateICmpNE(r, b.getInt32(0)));
  }
  if (op == "match" && has("any")) {
    auto t = type();
    Value *v = t ? source(o[1], t->bits) : nullptr, *mask = source(o[2], 32);
    return v && mask && set(0, dm.call(b, "optiml_match_any", {mask, b.CreateZExtOrTrunc(v, b.getInt64Ty()), site}));
  }
  if (op == "redux") {
    bool isSigned = has("s32");
    unsigned code = has("add")   ? ReduceAdd
                    : has("min") ? (isSigned ? ReduceMin : ReduceUMin)
                    : has("max") ? (isSigned ? ReduceMax : ReduceUMax)
                    : has("and") ? ReduceAnd
                    : has("or")  ? ReduceOr
                                 : ReduceXor;
    Value *v = source(o[1], 32), *mask = source(o[2], 32);
    return v && mask && !has("f32") && set(0, dm.call(b, "optiml_redux", {b.getInt32(code), mask, v, site}));
  }
  return false;
}
