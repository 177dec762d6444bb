//===- Accesses.cpp - bounds checks and access reports --------------------===//
//
// ModeBounds puts a short check before each access to memory that is not the thread's own stack: the runtime keeps, per
// worker and site, the range that the last checked address lay in (SiteCache), and is called only outside it.
// ModeVerify calls the runtime for every access but loads from memory that the launch does not write: there the range
// in the site cache says that a load is good.
//
//===----------------------------------------------------------------------===//
#include "Accesses.h"
#include "llvm/Analysis/DomTreeUpdater.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;
using namespace optiml::emu;

/// The generated code's own reads of the context, also where an optimizer merged them with reads of the thread's
/// memory: of a by-value parameter's pointer or a shared array's address, by a condition.
static bool isContextAccess(const Value *pointer) {
  SmallVector<const Value *, 4> objects;
  getUnderlyingObjects(pointer, objects, nullptr, 0);
  auto isContext = [](const Value *object) {
    const auto *argument = dyn_cast<Argument>(object);
    return argument && argument->getArgNo() == 0;
  };
  return any_of(objects, isContext) &&
         all_of(objects, [&](const Value *object) { return isContext(object) || isThreadLocalPointer(object); });
}

static AccessKind atomicKind(const Instruction &inst, SyncScope::ID scope) {
  return scope == inst.getContext().getOrInsertSyncScopeID(blockScopeName) ? AccessAtomicBlock : AccessAtomic;
}

/// The same address, also where it is computed twice, from what does not change.
static bool isSamePlace(const Value *a, const Value *b, unsigned depth = 6) {
  a = a->stripPointerCasts();
  b = b->stripPointerCasts();
  auto *x = dyn_cast<Instruction>(a), *y = dyn_cast<Instruction>(b);
  if (a == b || !depth || !x || !y || !x->isSameOperationAs(y) || isa<PHINode, CallBase>(x))
    return a == b;
  if (auto *load = dyn_cast<LoadInst>(x); x->mayReadOrWriteMemory() && !(load && isContextAccess(load->getOperand(0))))
    return false;
  return all_of(zip(x->operands(), y->operands()),
                [&](const auto &pair) { return isSamePlace(std::get<0>(pair), std::get<1>(pair), depth - 1); });
}

/// "old = *p;" before "atomicCAS(p, old, …)", as the CUDA C++ Programming Guide (atomicCAS) writes it, and "*p > x"
/// beside it: whatever is read, the exchange or another turn of the loop sets it right.
static bool isFirstLoad(LoadInst *load, ArrayRef<const AtomicCmpXchgInst *> exchanges) {
  auto isOfPlace = [&](const AtomicCmpXchgInst *exchange) {
    return isSamePlace(exchange->getPointerOperand(), load->getPointerOperand());
  };
  if (none_of(exchanges, isOfPlace))
    return false;
  SmallPtrSet<const Value *, 8> seen;
  SmallVector<const Value *, 8> work = {load};
  bool isExpected = false, isOnlyCompared = true;
  while (!work.empty())
    for (const Use &use : work.pop_back_val()->uses()) {
      const User *user = use.getUser();
      bool isNew = false;
      if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(user))
        isExpected |= use.getOperandNo() == 1 && isOfPlace(exchange);
      else if (isa<BitCastInst, PHINode>(user))
        isNew = seen.insert(user).second;
      else
        isOnlyCompared &= isa<CmpInst>(user);
      if (isNew)
        work.push_back(user);
    }
  return isExpected || isOnlyCompared;
}

std::vector<MemoryAccess> optiml::emu::memoryAccesses(Function &f, bool withStack) {
  const DataLayout &layout = f.getDataLayout();
  std::vector<MemoryAccess> result;
  auto add = [&](Instruction &inst, Value *pointer, Type *type, Align align, AccessKind kind) {
    if (isContextAccess(pointer) || isCoverage(pointer) || (!withStack && isThreadLocalPointer(pointer)))
      return;
    uint64_t size = layout.getTypeStoreSize(type);
    if (size)
      result.push_back(
          {&inst, pointer, nullptr, uint32_t(size), uint32_t(std::min<uint64_t>(align.value(), 16)), kind});
  };
  SmallVector<const AtomicCmpXchgInst *, 4> exchanges;
  for (Instruction &inst : instructions(f))
    if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&inst))
      exchanges.push_back(exchange);
  for (Instruction &inst : instructions(f)) {
    if (auto *load = dyn_cast<LoadInst>(&inst)) {
      add(inst, load->getPointerOperand(), load->getType(), load->getAlign(),
          load->isAtomic()                  ? AccessAtomic
          : load->isVolatile()              ? AccessVolatileLoad
          : isFirstLoad(load, exchanges)    ? AccessFirstLoad
          : load->hasMetadata(readOnlyName) ? AccessReadOnlyLoad
                                            : AccessLoad);
    } else if (auto *store = dyn_cast<StoreInst>(&inst)) {
      add(inst, store->getPointerOperand(), store->getValueOperand()->getType(), store->getAlign(),
          store->isAtomic()     ? AccessAtomic
          : store->isVolatile() ? AccessVolatileStore
                                : AccessStore);
    } else if (auto *rmw = dyn_cast<AtomicRMWInst>(&inst)) {
      add(inst, rmw->getPointerOperand(), rmw->getType(), rmw->getAlign(), atomicKind(inst, rmw->getSyncScopeID()));
    } else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&inst)) {
      add(inst, exchange->getPointerOperand(), exchange->getCompareOperand()->getType(), exchange->getAlign(),
          atomicKind(inst, exchange->getSyncScopeID()));
    } else if (auto *memory = dyn_cast<AnyMemIntrinsic>(&inst)) {
      if (withStack || !isThreadLocalPointer(memory->getRawDest()))
        result.push_back({&inst, memory->getRawDest(), memory->getLength(), 1, 1, AccessStore});
      if (auto *copy = dyn_cast<AnyMemTransferInst>(memory);
          copy && (withStack || !isThreadLocalPointer(copy->getRawSource())))
        result.push_back({&inst, copy->getRawSource(), copy->getLength(), 1, 1, AccessLoad});
    }
  }
  return result;
}

namespace {

/// `void optiml.check(ctx, tid.x, tid.y, tid.z, address, site)`: the way into the runtime. In the block loop the
/// context does not know which thread runs until here.
Function *slowCheck(DeviceModule &dm) {
  if (Function *f = dm.module.getFunction(slowCheckName))
    return f;
  LLVMContext &context = dm.module.getContext();
  Type *pointer = PointerType::get(context, 0), *i32 = Type::getInt32Ty(context);
  auto *type = FunctionType::get(Type::getVoidTy(context), {pointer, i32, i32, i32, pointer, i32, i32, i32}, false);
  Function *f = Function::Create(type, GlobalValue::InternalLinkage, slowCheckName, dm.module);
  f->setCallingConv(CallingConv::PreserveMost);
  f->addFnAttr(Attribute::NoInline);
  f->addFnAttr(Attribute::Cold);
  f->setDoesNotThrow();
  IRBuilder<> b(BasicBlock::Create(context, "", f));
  storeThread(dm, b);
  dm.call(b, "optiml_check", {f->getArg(4), f->getArg(5)});
  Value *cache = dm.load(b, Field::SiteCache);
  auto *slotType = ArrayType::get(b.getInt64Ty(), 2);
  auto field = [&](unsigned argument, unsigned word) {
    Value *index = b.CreateZExt(f->getArg(argument), b.getInt64Ty());
    return b.CreateInBoundsGEP(slotType, cache, {index, b.getInt64(word)});
  };
  b.CreateStore(b.CreateLoad(b.getInt64Ty(), field(5, 0)), field(6, 0));
  Value *span = b.CreateLoad(b.getInt64Ty(), field(5, 1));
  b.CreateStore(b.CreateAdd(span, b.CreateZExt(f->getArg(7), b.getInt64Ty())), field(6, 1));
  b.CreateRetVoid();
  return f;
}

/// Leads past the range that is known to be good at the site; to there, where the runtime is to be called.
Instruction *branchUnlessKnown(DeviceModule &dm, const MemoryAccess &access, unsigned site, DomTreeUpdater *updater) {
  IRBuilder<> b(access.inst);
  Type *i64 = b.getInt64Ty();
  Value *slot = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), dm.load(b, Field::SiteCache), site * sizeof(SiteCache));
  Value *lo = b.CreateAlignedLoad(i64, slot, Align(8));
  Value *span = b.CreateAlignedLoad(i64, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), slot, 8), Align(8));
  Value *address = b.CreatePtrToInt(access.pointer, i64);
  Value *bad = b.CreateICmpUGT(b.CreateSub(address, lo), span);
  if (access.alignment > 1)
    bad = b.CreateOr(bad, b.CreateICmpNE(b.CreateAnd(address, access.alignment - 1), b.getInt64(0)));
  return SplitBlockAndInsertIfThen(bad, access.inst->getIterator(), false,
                                   MDBuilder(b.getContext()).createUnlikelyBranchWeights(), updater);
}

void checkInline(DeviceModule &dm, const MemoryAccess &access, DominatorTree &tree,
                 DenseMap<const Value *, unsigned> &groups) {
  Function &f = *access.inst->getFunction();
  unsigned site = dm.addSite(access.inst, access.size, access.kind, access.alignment);
  auto [group, fresh] = groups.try_emplace(getUnderlyingObject(access.pointer), unsigned(dm.sites.size()));
  if (fresh)
    dm.sites.push_back(Site()); // only its slot counts
  DomTreeUpdater updater(tree, DomTreeUpdater::UpdateStrategy::Eager);
  Instruction *then = branchUnlessKnown(dm, access, site, &updater);
  IRBuilder<> slow(then);
  slow.SetCurrentDebugLocation(access.inst->getDebugLoc());
  Function *check = slowCheck(dm);
  CallInst *call =
      slow.CreateCall(check, {f.getArg(0), f.getArg(1), f.getArg(2), f.getArg(3), access.pointer, slow.getInt32(site),
                              slow.getInt32(group->second), slow.getInt32(access.size)});
  call->setCallingConv(check->getCallingConv());
  auto *branch = cast<BranchInst>(then->getParent()->getSinglePredecessor()->getTerminator());
  dm.checks[&f].push_back({branch, access.pointer, access.size, access.alignment, group->second});
}

/// A constant place inside a variable of the module needs no check.
bool isKnownGood(const MemoryAccess &access, const DataLayout &layout) {
  APInt offset(64, 0);
  const Value *base = access.pointer->stripAndAccumulateInBoundsConstantOffsets(layout, offset);
  const auto *global = dyn_cast<GlobalVariable>(base);
  if (!global || access.bytes || offset.isNegative())
    return false;
  return offset.getZExtValue() + access.size <= layout.getTypeAllocSize(global->getValueType()).getFixedValue();
}

/// Tells of an access beside a variable of `size` bytes, at `at`.
void callOutsideLocal(DeviceModule &dm, Instruction *at, const MemoryAccess &access, Value *offset, uint64_t size) {
  IRBuilder<> b(at);
  b.SetCurrentDebugLocation(access.inst->getDebugLoc());
  if (!dm.is(ModeVerify))
    storeThread(dm, b);
  dm.call(b, "optiml_outside_local",
          {offset, b.getInt64(size), b.getInt32(dm.addSite(access.inst, access.size, access.kind, access.alignment))});
}

/// Accesses to a thread's own variables by an index that is not known: optimization would hide those beside them.
void checkLocals(DeviceModule &dm, Function &f) {
  const DataLayout &layout = f.getDataLayout();
  for (const MemoryAccess &access : memoryAccesses(f, /*withStack=*/true)) {
    APInt constant(64, 0);
    const Value *base = access.pointer->stripAndAccumulateInBoundsConstantOffsets(layout, constant);
    auto *variable = dyn_cast<AllocaInst>(getUnderlyingObject(access.pointer, 0));
    std::optional<TypeSize> size = variable ? variable->getAllocationSize(layout) : std::nullopt;
    if (access.bytes || !size || base == variable || size->getFixedValue() < access.size)
      continue;
    IRBuilder<> b(access.inst);
    Type *i64 = b.getInt64Ty();
    Value *offset = b.CreateSub(b.CreatePtrToInt(access.pointer, i64), b.CreatePtrToInt(variable, i64));
    Value *bad = b.CreateICmpUGT(offset, b.getInt64(size->getFixedValue() - access.size));
    Instruction *then = SplitBlockAndInsertIfThen(bad, access.inst->getIterator(), false,
                                                  MDBuilder(b.getContext()).createUnlikelyBranchWeights());
    callOutsideLocal(dm, then, access, offset, size->getFixedValue());
  }
}

} // namespace

void optiml::emu::storeThread(DeviceModule &dm, IRBuilder<> &b) {
  Function &f = *b.GetInsertBlock()->getParent();
  for (unsigned d = 0; d < 3; ++d)
    b.CreateStore(f.getArg(1 + d), dm.fieldAddress(b, f.getArg(0), Field::Tid, d));
  b.CreateStore(b.CreateAnd(dm.linearThread(b), 31), dm.fieldAddress(b, f.getArg(0), Field::Lane));
}

void optiml::emu::checkConstantLocals(DeviceModule &dm) {
  for (Function &f : dm.module)
    for (const MemoryAccess &access : memoryAccesses(f, /*withStack=*/true)) {
      const DataLayout &layout = f.getDataLayout();
      APInt offset(64, 0);
      auto *variable = dyn_cast<AllocaInst>(
          access.pointer->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/true));
      std::optional<TypeSize> size = variable ? variable->getAllocationSize(layout) : std::nullopt;
      if (!access.bytes && size &&
          (offset.ugt(size->getFixedValue()) || (offset + access.size).ugt(size->getFixedValue())))
        callOutsideLocal(dm, access.inst, access, ConstantInt::get(f.getContext(), offset), size->getFixedValue());
    }
}

void optiml::emu::instrumentAccesses(DeviceModule &dm) {
  bool verify = dm.is(ModeVerify);
  for (Function &f : dm.module) { // what this adds to the module comes last
    if (f.isDeclaration() || f.getName() == slowCheckName)
      continue;
    checkLocals(dm, f);
    DominatorTree tree(f);
    DenseMap<const Value *, unsigned> groups;
    // What an earlier check on every path has shown: pointers with the checked size.
    DenseMap<Value *, SmallVector<std::pair<Instruction *, uint32_t>, 2>> checked;
    for (const MemoryAccess &access : memoryAccesses(f, /*withStack=*/false)) {
      IRBuilder<> b(access.inst);
      if (access.bytes) {
        dm.call(b, "optiml_access_range",
                {access.pointer, b.CreateZExtOrTrunc(access.bytes, b.getInt64Ty()), dm.site(b, 1, access.kind)});
        continue;
      }
      if (verify) {
        const unsigned site = dm.addSite(access.inst, access.size, access.kind, access.alignment);
        if (access.kind == AccessLoad || access.kind == AccessReadOnlyLoad) {
          b.SetInsertPoint(branchUnlessKnown(dm, access, site, nullptr));
          b.SetCurrentDebugLocation(access.inst->getDebugLoc());
        }
        dm.call(b, "optiml_access", {access.pointer, b.getInt32(site)});
        continue;
      }
      if (isKnownGood(access, f.getDataLayout()))
        continue;
      auto &earlier = checked[access.pointer];
      if (any_of(earlier, [&](auto &e) { return e.second >= access.size && tree.dominates(e.first, access.inst); }))
        continue;
      checkInline(dm, access, tree, groups);
      earlier.push_back({access.inst, access.size});
    }
  }
}
