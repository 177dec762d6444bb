//===- Kernels.cpp - shared memory's layout, and who waits for whom -------===//
//
// After inlining and lowering, finds for each kernel what it reaches: its shared variables (which get their offsets
// here), whether a thread may wait for another one (barriers, warp operations, loops that poll memory), and its
// smallest access.
//
//===----------------------------------------------------------------------===//
#include "DeviceModule.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;
using namespace optiml::emu;

namespace {

/// The functions that a kernel can reach, itself first; indirect calls reach every function whose address is taken.
SetVector<Function *> reachable(Function &from) {
  SetVector<Function *> seen;
  seen.insert(&from);
  for (unsigned i = 0; i < seen.size(); ++i)
    for (Instruction &inst : instructions(*seen[i])) {
      auto *call = dyn_cast<CallInst>(&inst);
      if (!call || call->isInlineAsm())
        continue;
      if (Function *callee = call->getCalledFunction()) {
        if (!callee->isDeclaration())
          seen.insert(callee);
        continue;
      }
      for (Function &f : *from.getParent())
        if (!f.isDeclaration() && f.hasAddressTaken())
          seen.insert(&f);
    }
  return seen;
}

const Function *declaredCallee(const Instruction &inst) {
  const auto *call = dyn_cast<CallInst>(&inst);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  return callee && callee->isDeclaration() ? callee : nullptr;
}

std::optional<unsigned> sharedIndex(const Instruction &inst) {
  const Function *callee = declaredCallee(inst);
  if (!callee || callee->getName() != sharedPlaceholder)
    return std::nullopt;
  return unsigned(cast<ConstantInt>(cast<CallInst>(inst).getArgOperand(1))->getZExtValue());
}

std::set<unsigned> sharedUses(const Function &f) {
  std::set<unsigned> result;
  for (const Instruction &inst : instructions(f))
    if (auto index = sharedIndex(inst))
      result.insert(*index);
  return result;
}

/// Offsets of these variables, one after the other; returns the bytes of the static ones.
uint64_t placeVariables(const DeviceModule &dm, const std::set<unsigned> &used,
                        std::vector<std::pair<unsigned, uint64_t>> &placed) {
  uint64_t gap = dm.mode & (ModeBounds | ModeVerify) ? 64 : 0, end = 0;
  for (unsigned index : used) {
    const SharedVariable &variable = dm.sharedVariables[index];
    if (variable.isDynamic())
      continue;
    uint64_t offset = alignTo(end, variable.alignment);
    placed.push_back({index, offset});
    end = offset + variable.size + gap;
  }
  for (unsigned index : used)
    if (dm.sharedVariables[index].isDynamic())
      placed.push_back({index, alignTo(end, 16)});
  return end;
}

void lowerSharedUses(DeviceModule &dm, Function &f, const std::vector<std::pair<unsigned, uint64_t>> &placed) {
  for (Instruction &inst : make_early_inc_range(instructions(f))) {
    auto index = sharedIndex(inst);
    if (!index)
      continue;
    for (auto [variable, offset] : placed)
      if (variable == *index) {
        IRBuilder<> b(&inst);
        inst.replaceAllUsesWith(b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), dm.load(b, Field::Shared), offset));
      }
    inst.eraseFromParent();
  }
}

/// A value that tells what another thread did: the result of a read that may differ each time round the loop. A
/// compare-and-swap that retries with what it saw, or an addition, makes progress by itself and is no waiting.
bool isPoll(const Instruction &inst, const Loop &loop) {
  if (const auto *load = dyn_cast<LoadInst>(&inst))
    return load->isVolatile() || load->isAtomic();
  if (const auto *exchange = dyn_cast<AtomicCmpXchgInst>(&inst))
    return loop.isLoopInvariant(exchange->getCompareOperand());
  if (const auto *rmw = dyn_cast<AtomicRMWInst>(&inst)) {
    switch (rmw->getOperation()) {
    case AtomicRMWInst::Add:
    case AtomicRMWInst::Sub:
    case AtomicRMWInst::FAdd:
    case AtomicRMWInst::FSub:
      return isa<Constant>(rmw->getValOperand()) && cast<Constant>(rmw->getValOperand())->isNullValue();
    case AtomicRMWInst::UIncWrap:
    case AtomicRMWInst::UDecWrap: return false;
    default: return true;
    }
  }
  return false;
}

bool pollsMemory(const Loop &loop, const DominatorTree &tree) {
  SetVector<const Value *> slice;
  SmallVector<BasicBlock *, 8> exiting;
  loop.getExitingBlocks(exiting);
  auto addCondition = [&](const BasicBlock *block) {
    if (const auto *branch = dyn_cast<BranchInst>(block->getTerminator()); branch && branch->isConditional())
      slice.insert(branch->getCondition());
    else if (const auto *choice = dyn_cast<SwitchInst>(block->getTerminator()))
      slice.insert(choice->getCondition());
  };
  for (const BasicBlock *block : exiting)
    addCondition(block);
  for (unsigned i = 0; i < slice.size(); ++i) {
    const auto *inst = dyn_cast<Instruction>(slice[i]);
    if (!inst || !loop.contains(inst))
      continue;
    if (isPoll(*inst, loop))
      return true;
    // A value chosen by control flow depends on what chose.
    if (isa<PHINode>(inst) && inst->getParent() != loop.getHeader())
      if (auto *node = tree.getNode(inst->getParent()); node && node->getIDom())
        addCondition(node->getIDom()->getBlock());
    if (const auto *call = dyn_cast<CallInst>(inst); call && !isa<IntrinsicInst>(call))
      continue; // runtime calls synchronize by themselves
    for (const Value *operand : inst->operands())
      slice.insert(operand);
  }
  return false;
}

/// Lets other threads run in loops that wait for them. Returns whether there was one.
bool insertYields(DeviceModule &dm, Function &f) {
  DominatorTree tree(f);
  LoopInfo loops(tree);
  bool any = false;
  for (Loop *loop : loops.getLoopsInPreorder()) {
    if (!pollsMemory(*loop, tree))
      continue;
    any = true;
    SmallVector<BasicBlock *, 4> latches;
    loop->getLoopLatches(latches);
    for (BasicBlock *latch : latches) {
      IRBuilder<> b(latch->getTerminator());
      dm.call(b, "optiml_yield");
    }
  }
  return any;
}

unsigned accessGranule(const Function &f) {
  const DataLayout &layout = f.getDataLayout();
  uint64_t granule = 16;
  auto note = [&](const Value *pointer, uint64_t size) {
    if (!isThreadLocalPointer(pointer) && size)
      granule = std::min<uint64_t>(granule, size & -size);
  };
  for (const Instruction &inst : instructions(f)) {
    if (const Value *pointer = getLoadStorePointerOperand(&inst))
      note(pointer, layout.getTypeStoreSize(getLoadStoreType(&inst)));
    else if (const auto *rmw = dyn_cast<AtomicRMWInst>(&inst))
      note(rmw->getPointerOperand(), layout.getTypeStoreSize(rmw->getType()));
    else if (const auto *exchange = dyn_cast<AtomicCmpXchgInst>(&inst))
      note(exchange->getPointerOperand(), layout.getTypeStoreSize(exchange->getCompareOperand()->getType()));
    else if (const auto *copy = dyn_cast<MemIntrinsic>(&inst))
      note(copy->getRawDest(), copy->getDestAlign().valueOrOne().value());
  }
  return unsigned(granule);
}

} // namespace

void optiml::emu::layOutShared(DeviceModule &dm) {
  std::map<Function *, std::set<unsigned>> uses;
  std::set<unsigned> everywhere;
  SmallPtrSet<Function *, 16> kernels;
  for (Kernel &kernel : dm.kernels)
    kernels.insert(kernel.body);
  bool common = false;
  for (Function &f : dm.module) {
    if (f.isDeclaration())
      continue;
    std::set<unsigned> used = sharedUses(f);
    everywhere.insert(used.begin(), used.end());
    // A function that several kernels may call sees a variable at the same place in all of them.
    common |= !used.empty() && !kernels.contains(&f);
    uses[&f] = std::move(used);
  }
  std::vector<std::pair<unsigned, uint64_t>> all;
  uint64_t allBytes = placeVariables(dm, everywhere, all);
  for (Kernel &kernel : dm.kernels) {
    if (common) {
      kernel.shared = all;
      kernel.staticShared = allBytes;
    } else {
      kernel.staticShared = placeVariables(dm, uses[kernel.body], kernel.shared);
    }
    lowerSharedUses(dm, *kernel.body, kernel.shared);
  }
  for (auto &[f, used] : uses)
    if (!kernels.contains(f))
      lowerSharedUses(dm, *f, all);
}

void optiml::emu::analyzeWaiting(DeviceModule &dm) {
  std::map<Function *, bool> spins;
  for (Function &f : dm.module)
    if (!f.isDeclaration())
      spins[&f] = insertYields(dm, f);
  const std::set<StringRef> warpOps = {"optiml_syncwarp",   "optiml_shuffle",       "optiml_vote",
                                       "optiml_match_any",  "optiml_match_all",     "optiml_redux",
                                       "optiml_activemask", "optiml_matrix_product"};
  const std::set<StringRef> waits = {"optiml_barrier", "optiml_barrier_reduce", "optiml_nanosleep"};
  for (Kernel &kernel : dm.kernels) {
    for (Function *f : reachable(*kernel.body)) {
      kernel.mayWait |= spins[f];
      kernel.granule = std::min(kernel.granule, accessGranule(*f));
      for (Instruction &inst : instructions(*f))
        if (const Function *callee = declaredCallee(inst)) {
          kernel.usesWarpOps |= warpOps.count(callee->getName()) != 0;
          kernel.mayWait |= waits.count(callee->getName()) != 0;
        }
    }
    kernel.mayWait |= kernel.usesWarpOps;
  }
}
