//===- Trace.cpp - instrumentation for the performance model --------------===//
//
// ModeTrace works on code that was already optimized the way a GPU compiler would. Every access to memory is reported,
// every basic block counts how often the thread ran it, and each block's instructions are counted here by class: what
// the block would cost on a GPU, not on this machine.
//
//===----------------------------------------------------------------------===//
#include "Accesses.h"
#include "AddressArithmetic.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Passes/PassBuilder.h"
#include <cmath>

using namespace llvm;
using namespace optiml::emu;

namespace {

bool isDouble(const Type *type) { return type->getScalarType()->isDoubleTy(); }

unsigned lanesOf(const Type *type) {
  const auto *vector = dyn_cast<FixedVectorType>(type);
  return vector ? vector->getNumElements() : 1;
}

/// Part of an asynchronous copy, whose load and store are one instruction, and for which nobody waits where it stands.
bool isInBackground(const Instruction &inst) { return inst.hasMetadata("optiml.background"); }

/// Of a place that stands for a thread's registers, or for a zero.
bool isFree(const Instruction &inst, const Value *pointer) {
  return isInBackground(inst) && isa<AllocaInst>(getUnderlyingObject(pointer));
}

/// 64-bit integer operations take two instructions.
unsigned words(const Type *type) {
  const Type *scalar = type->getScalarType();
  unsigned bits = scalar->isIntegerTy() ? scalar->getIntegerBitWidth() : 32;
  return std::max(1u, (bits + 31) / 32) * lanesOf(type);
}

/// What a mathematical function costs: arithmetic instructions and special function unit operations.
struct MathCost {
  const char *name;
  unsigned arithmetic, special;
};
const MathCost mathCosts[] = {
    {"sqrt", 6, 1},   {"exp", 4, 1},    {"exp2", 2, 1},  {"exp10", 5, 1},     {"log", 9, 1},     {"log2", 7, 1},
    {"log10", 9, 1},  {"sin", 22, 0},   {"cos", 22, 0},  {"tan", 28, 1},      {"pow", 40, 2},    {"tanh", 12, 2},
    {"sinh", 16, 2},  {"cosh", 14, 2},  {"asin", 16, 1}, {"acos", 18, 1},     {"atan", 14, 1},   {"atan2", 24, 1},
    {"erf", 18, 1},   {"erfc", 22, 2},  {"cbrt", 12, 2}, {"hypot", 12, 1},    {"lgamma", 40, 2}, {"tgamma", 40, 3},
    {"expm1", 14, 1}, {"log1p", 14, 1}, {"fmod", 20, 1}, {"remainder", 24, 1}};

std::optional<MathCost> mathCost(StringRef name) {
  name.consume_front("llvm.");
  name = name.split('.').first;
  for (const MathCost &cost : mathCosts)
    if (name == cost.name ||
        (name.starts_with(cost.name) && name.size() == strlen(cost.name) + 1 && name.back() == 'f'))
      return cost;
  return std::nullopt;
}

/// Loads for which nobody waits in their own basic block: the warp goes on until something needs what was loaded.
struct LateLoads {
  DenseMap<const Instruction *, const BasicBlock *> home; ///< the block that waits; null: much else is done before
  DenseMap<const BasicBlock *, SmallVector<const Value *, 4>>
      arriving; ///< those loads, and what hands them on, by `home`
};

/// Between a load and its use these are as good as no wait: a load from L2 takes as many clocks (H200: 262).
constexpr size_t hidingInstructions = 256;

LateLoads lateLoads(Function &f, const LoopInfo &loops, const DominatorTree &dominators) {
  LateLoads result;
  DenseMap<const BasicBlock *, unsigned> order;
  for (const BasicBlock *block : ReversePostOrderTraversal<Function *>(&f))
    order[block] = unsigned(order.size());
  for (const Instruction &load : instructions(f)) {
    if (!isa<LoadInst>(load) || !order.count(load.getParent()))
      continue;
    SmallVector<const Value *, 4> carriers{&load};
    SmallPtrSet<const Value *, 8> seen;
    const BasicBlock *from = load.getParent(), *first = nullptr;
    // Those that come round a loop before they are used come last.
    auto isEarlier = [&](const BasicBlock *a, const BasicBlock *b) {
      bool aLater = order.lookup(a) >= order.lookup(from), bLater = order.lookup(b) >= order.lookup(from);
      return aLater != bLater ? aLater : order.lookup(a) < order.lookup(b);
    };
    for (size_t i = 0; i < carriers.size(); ++i)
      for (const User *user : carriers[i]->users()) {
        const auto *inst = cast<Instruction>(user);
        if (isa<PHINode, ExtractElementInst, InsertElementInst, ShuffleVectorInst, BitCastInst, FreezeInst>(inst)) {
          if (seen.insert(inst).second)
            carriers.push_back(inst);
        } else if (!first || isEarlier(inst->getParent(), first)) {
          first = inst->getParent();
        }
      }
    const Loop *around = first ? loops.getLoopFor(first) : nullptr;
    if (!first || first == from ||
        (around && !around->contains(from))) // used many times in a loop: it is waited for once
      continue;
    bool hidden = false;
    size_t between = 0; // instructions of blocks that are run in any case before the use
    for (const BasicBlock &block : f) {
      SmallPtrSet<BasicBlock *, 1> without{const_cast<BasicBlock *>(&block)};
      const Loop *loop = loops.getLoopFor(&block);
      if (&block == from || &block == first || !order.count(&block) ||
          isPotentiallyReachable(from, first, &without, &dominators, &loops))
        continue;
      hidden |= loop && !loop->contains(from) && !loop->contains(first);
      between += block.size();
    }
    hidden |= between >= hidingInstructions;
    result.home[&load] = hidden ? nullptr : first;
    if (!hidden)
      result.arriving[first].append(carriers.begin(), carriers.end());
  }
  return result;
}

class BlockCounter {
public:
  BlockCounter(const BasicBlock &block, const AddressArithmetic &addresses, AAResults &aliases, const LateLoads &late)
      : addresses(addresses), aliases(aliases), late(late) {
    for (const Value *value : late.arriving.lookup(&block))
      result.depth = loadDepth[value] = 1;
    for (const Instruction &inst : block) {
      unsigned before = instructions();
      count(inst);
      lengthenChain(inst, instructions() - before);
    }
    add(result.int32, addresses.pointers.lookup(&block));
  }
  BlockDesc result{};
  DenseMap<const Instruction *, unsigned>
      loadLevel; ///< of loads whose result is used: 1 for those that wait for no other

private:
  const AddressArithmetic &addresses;
  AAResults &aliases;
  const LateLoads &late;
  DenseMap<const Value *, unsigned> loadDepth, chainLength;
  SmallVector<std::pair<const StoreInst *, unsigned>, 8> lateStores; ///< those that wait for a load, and how deep

  /// A load stays behind a store that may be to the same place, and warps issue in order.
  unsigned depthOfStoresBefore(const LoadInst &load) const {
    unsigned depth = 0;
    for (auto [store, storeDepth] : lateStores)
      if (storeDepth > depth && !aliases.isNoAlias(MemoryLocation::get(store), MemoryLocation::get(&load)))
        depth = storeDepth;
    return depth;
  }

  unsigned instructions() const {
    return result.fp32 + result.fp64 + result.int32 + result.special + result.tensor + result.control + result.memory +
           result.barrier + result.other;
  }

  /// The chain through an instruction that became `own` ones on the GPU: those before it, and its own, which follow
  /// each other unless they are lanes of a vector.
  void lengthenChain(const Instruction &inst, unsigned own) {
    unsigned length = 0;
    if (!isa<PHINode>(inst)) // the block's beginning
      for (const Value *operand : inst.operands())
        length = std::max(length, chainLength.lookup(operand));
    length += (own + lanesOf(inst.getType()) - 1) / lanesOf(inst.getType());
    if (length)
      chainLength[&inst] = length;
    result.chain = uint16_t(std::max<unsigned>(result.chain, std::min(length, 0xffffu)));
  }

  void floating(const Type *type, unsigned n = 1) {
    uint16_t &counter = isDouble(type) ? result.fp64 : result.fp32;
    counter = uint16_t(counter + n * lanesOf(type));
  }
  static void add(uint16_t &counter, unsigned n) { counter = uint16_t(std::min(counter + n, 0xffffu)); }

  /// A product that only feeds a sum becomes part of a fused multiply-add.
  static bool isFused(const Instruction &product) {
    if (product.getOpcode() != Instruction::FMul || !product.hasOneUse() || !product.hasAllowContract())
      return false;
    const auto *user = dyn_cast<Instruction>(*product.user_begin());
    return user && (user->getOpcode() == Instruction::FAdd || user->getOpcode() == Instruction::FSub) &&
           user->hasAllowContract();
  }

  void count(const Instruction &inst) {
    unsigned depth = depthOfOperands(inst);
    if (addresses.reduced.count(&inst)) {
      if (depth)
        loadDepth[&inst] = depth;
      return;
    }
    Type *type = inst.getType();
    switch (inst.getOpcode()) {
    case Instruction::FMul:
      if (!isFused(inst))
        floating(type);
      break;
    case Instruction::FAdd:
    case Instruction::FSub:
    case Instruction::FNeg: floating(type); break;
    case Instruction::FCmp: floating(inst.getOperand(0)->getType()); break;
    case Instruction::FDiv:
    case Instruction::FRem:
      floating(type, 8);
      add(result.special, 1);
      break;
    case Instruction::FPToSI:
    case Instruction::FPToUI:
    case Instruction::SIToFP:
    case Instruction::UIToFP:
    case Instruction::FPTrunc:
    case Instruction::FPExt: add(result.special, lanesOf(type)); break;
    case Instruction::SDiv:
    case Instruction::UDiv:
    case Instruction::SRem:
    case Instruction::URem: countDivision(inst); break;
    case Instruction::Mul: add(result.int32, words(type) == 1 ? 1 : words(type) * 2); break;
    case Instruction::Add:
    case Instruction::Sub: // IMAD and LEA take a multiplication or shift along
      if (!(inst.getOperand(0)->hasOneUse() && isa<Instruction>(inst.getOperand(0)) &&
            (cast<Instruction>(inst.getOperand(0))->getOpcode() == Instruction::Mul ||
             cast<Instruction>(inst.getOperand(0))->getOpcode() == Instruction::Shl)))
        add(result.int32, words(type));
      break;
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
      if (!type->isIntegerTy(1)) // predicates combine in the comparisons
        add(result.int32, words(type));
      break;
    case Instruction::ICmp: add(result.int32, words(inst.getOperand(0)->getType())); break;
    case Instruction::Select: add(result.int32, words(type)); break;
    case Instruction::SExt: // a sign extension is a shift; a zero extension is free
      if (type->isIntegerTy(64) && !onlyFeedsAddresses(inst))
        add(result.int32, 1);
      break;
    case Instruction::GetElementPtr:
      if (!cast<GetElementPtrInst>(inst).hasAllConstantIndices())
        add(result.int32, 1); // IMAD.WIDE
      break;
    case Instruction::Br: add(result.control, cast<BranchInst>(inst).isConditional()); break;
    case Instruction::Switch:
    case Instruction::IndirectBr: add(result.control, 3); break;
    case Instruction::Ret: add(result.control, 1); break;
    case Instruction::Load:
    case Instruction::Store:
    case Instruction::AtomicRMW:
    case Instruction::AtomicCmpXchg: countAccess(inst, depth); break;
    case Instruction::Call: countCall(cast<CallInst>(inst), depth); break;
    default: break; // casts between integers, PHIs, vectors' elements: free or folded
    }
    if (depth) {
      loadDepth[&inst] = depth;
      result.depth = uint16_t(std::max<unsigned>(result.depth, depth));
    }
  }

  unsigned depthOfOperands(const Instruction &inst) const {
    unsigned depth = 0;
    if (!isa<PHINode>(inst))
      for (const Value *operand : inst.operands())
        depth = std::max(depth, loadDepth.lookup(operand));
    return depth;
  }

  void countDivision(const Instruction &inst) {
    if (isa<ConstantInt>(inst.getOperand(1)))
      return add(result.int32, 3 * words(inst.getType()));
    add(result.int32, inst.getType()->getScalarSizeInBits() > 32 ? 70 : 16);
    add(result.special, 1);
  }

  void countAccess(const Instruction &inst, unsigned &depth) {
    const Value *pointer = getLoadStorePointerOperand(&inst);
    if (pointer && isOwn(pointer))
      return; // special registers and parameters are operands on a GPU
    if (isInBackground(inst) && (isa<StoreInst>(inst) || isFree(inst, pointer)))
      return;
    Type *data = isa<StoreInst>(inst) ? inst.getOperand(0)->getType() : inst.getType();
    unsigned bytes = unsigned(inst.getDataLayout().getTypeStoreSize(data).getFixedValue());
    add(result.memory, std::max(1u, (bytes + 15) / 16));
    if (isInBackground(inst))
      return;
    if (const auto *load = dyn_cast<LoadInst>(&inst))
      depth = std::max(depth, depthOfStoresBefore(*load));
    if (const auto *store = dyn_cast<StoreInst>(&inst); store && depth)
      lateStores.emplace_back(store, depth);
    else if (!store && !inst.use_empty() && !late.home.count(&inst))
      loadLevel[&inst] = ++depth;
  }

  static bool onlyFeedsAddresses(const Instruction &inst) {
    return all_of(inst.users(), [](const User *user) { return isa<GetElementPtrInst>(user); });
  }

  static bool isOwn(const Value *pointer) {
    SmallVector<const Value *, 4> objects;
    getUnderlyingObjects(pointer, objects, nullptr, 0);
    return all_of(objects, [](const Value *object) {
      const auto *argument = dyn_cast<Argument>(object);
      return argument && (argument->getArgNo() == 0 || argument->hasByValAttr());
    });
  }

  void countCall(const CallInst &call, unsigned &depth) {
    const Function *callee = call.getCalledFunction();
    if (!callee) {
      add(result.control, 2);
      return;
    }
    StringRef name = callee->getName();
    Type *type = call.getType();
    if (name == "optiml_barrier" || name == "optiml_barrier_reduce" || name == "optiml_syncwarp") {
      add(result.barrier, 1);
    } else if (name == "optiml_shuffle" || name == "optiml_vote" || name == "optiml_redux" ||
               name.starts_with("optiml_match")) {
      add(result.other, 1);
      ++depth; // as long as a read of shared memory
    } else if (name == "optiml_matrix_product") {
      add(result.tensor, 1);
    } else if (name.starts_with("optiml")) {
      add(result.other, 2);
    } else if (auto cost = mathCost(name)) {
      floating(type, isDouble(type) ? cost->arithmetic * 2 : cost->arithmetic);
      add(result.special, cost->special);
    } else if (const auto *intrinsic = dyn_cast<IntrinsicInst>(&call)) {
      countIntrinsic(*intrinsic);
    } else {
      add(result.control, 2);
    }
  }

  void countIntrinsic(const IntrinsicInst &call) {
    Type *type = call.getType();
    switch (call.getIntrinsicID()) {
    case Intrinsic::fma:
    case Intrinsic::fmuladd:
    case Intrinsic::minnum:
    case Intrinsic::maxnum:
    case Intrinsic::minimum:
    case Intrinsic::maximum: floating(type); break;
    case Intrinsic::floor:
    case Intrinsic::ceil:
    case Intrinsic::trunc:
    case Intrinsic::rint:
    case Intrinsic::nearbyint:
    case Intrinsic::roundeven:
    case Intrinsic::round:
    case Intrinsic::fptosi_sat:
    case Intrinsic::fptoui_sat: add(result.special, lanesOf(type)); break;
    case Intrinsic::smax:
    case Intrinsic::smin:
    case Intrinsic::umax:
    case Intrinsic::umin:
    case Intrinsic::abs:
    case Intrinsic::ctlz:
    case Intrinsic::cttz:
    case Intrinsic::ctpop:
    case Intrinsic::bitreverse:
    case Intrinsic::fshl:
    case Intrinsic::fshr:
    case Intrinsic::bswap: add(result.int32, words(type)); break;
    case Intrinsic::memcpy:
    case Intrinsic::memset:
    case Intrinsic::memmove: add(result.memory, 4); break;
    default: // fabs and copysign are operand modifiers; lifetime markers and assumptions are nothing
      break;
    }
  }
};

} // namespace

void optiml::emu::instrumentTrace(DeviceModule &dm) {
  FunctionAnalysisManager analyses;
  PassBuilder builder;
  builder.registerFunctionAnalyses(analyses);
  ModuleAnalysisManager moduleAnalyses; // asked by the alias analysis for what is cached: nothing
  analyses.registerPass([&] { return ModuleAnalysisManagerFunctionProxy(moduleAnalyses); });
  builder.registerModuleAnalyses(moduleAnalyses);
  for (Function &f : dm.module) {
    if (f.isDeclaration())
      continue;
    // Count first, before there is instrumentation to be counted.
    std::vector<std::pair<BasicBlock *, unsigned>> numbered;
    DenseMap<const Instruction *, std::pair<unsigned, unsigned>> places; // block and level
    AddressArithmetic addresses = analyzeAddresses(f);
    LateLoads late = lateLoads(f, analyses.getResult<LoopAnalysis>(f), analyses.getResult<DominatorTreeAnalysis>(f));
    for (BasicBlock &block : f) {
      numbered.push_back({&block, unsigned(dm.blocks.size())});
      BlockCounter counter(block, addresses, analyses.getResult<AAManager>(f), late);
      for (auto [load, level] : counter.loadLevel)
        places[load] = {unsigned(dm.blocks.size()), level};
      dm.blocks.push_back(counter.result);
    }
    DenseMap<const BasicBlock *, unsigned> numbers(numbered.begin(), numbered.end());
    for (auto [load, home] : late.home)
      if (home)
        places[load] = {numbers.lookup(home), 1};
    std::vector<MemoryAccess> accesses = memoryAccesses(f, /*withStack=*/true);
    for (const MemoryAccess &access : accesses) {
      if (isFree(*access.inst, access.pointer))
        continue;
      IRBuilder<> b(access.inst);
      if (access.bytes)
        dm.call(b, "optiml_access_range",
                {access.pointer, b.CreateZExtOrTrunc(access.bytes, b.getInt64Ty()), dm.site(b, 1, access.kind)});
      else
        dm.call(b, "optiml_trace", {access.pointer, dm.site(b, access.size, access.kind, access.alignment)});
      std::tie(dm.sites.back().block, dm.sites.back().level) = places.lookup(access.inst);
    }
    for (auto [block, number] : numbered) {
      IRBuilder<> b(block, block->getFirstInsertionPt());
      Value *slot = b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), dm.load(b, Field::BlockCounts), number);
      b.CreateAlignedStore(b.CreateAdd(b.CreateAlignedLoad(b.getInt32Ty(), slot, Align(4)), b.getInt32(1)), slot,
                           Align(4));
    }
  }
}
