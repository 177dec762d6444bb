//===- Coverage.cpp - which code of a kernel ran ----------------------------===//
//
// Before device functions are inlined every basic block of the user's code calls a placeholder with its number. After
// inlining each call that is left, in each kernel, becomes a store into a table. What LLVM removes from the optimized
// module could never run, with these template arguments and constants, and does not count.
//
//===----------------------------------------------------------------------===//
#include "DeviceModule.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/StructuralHash.h"

using namespace llvm;
using namespace optiml::emu;

static constexpr const char *placeholderName = "optiml.covered";

/// Nothing but a jump, and what Clang adds to one: the ends of variables' lives, and where to go on after them.
static bool isJump(const BasicBlock &block) {
  const auto *end = dyn_cast<BranchInst>(block.getTerminator());
  return end && !end->isConditional() && all_of(block, [&](const Instruction &inst) {
           const auto *store = dyn_cast<StoreInst>(&inst);
           return &inst == end || inst.isLifetimeStartOrEnd() ||
                  (store && isa<AllocaInst>(store->getPointerOperand()) && isa<ConstantInt>(store->getValueOperand()));
         });
}

/// What a person would call code: not a mere jump, but for a jump that a condition alone leads to, such as "return".
/// The end of a loop is none.
static bool holdsCode(const BasicBlock &block, const LoopInfo &loops) {
  if (isa<UnreachableInst>(block.getTerminator()))
    return false; // only a fault leads there
  const BasicBlock *before = block.getSinglePredecessor();
  const bool isLone = &block.front() == block.getTerminator();
  if (before && isJump(block) && loops.isLoopHeader(before) && !loops.getLoopFor(before)->contains(&block))
    return false;
  if (!isLone || !isJump(block))
    return true;
  const auto *branch = before ? dyn_cast<BranchInst>(before->getTerminator()) : nullptr;
  return branch && branch->isConditional();
}

/// The first instruction that has a place in the source.
static const Instruction *firstPlaced(const BasicBlock &block) {
  for (const Instruction &inst : block)
    if (const DILocation *l = inst.getDebugLoc(); l && l->getLine())
      return &inst;
  return nullptr;
}

std::optional<CodePlace> optiml::emu::ownPlace(const DeviceModule &dm, const Instruction &inst) {
  const DILocation *place = inst.getDebugLoc();
  if (!place || !place->getLine() || dm.systemFolders.hold(*place))
    return std::nullopt;
  const Function &f = *inst.getFunction();
  auto hash = dm.functionHashes.find(f.getName().str());
  return CodePlace{functionName(place, f), filePath(*place), place->getLine(),
                   hash == dm.functionHashes.end() ? 0 : hash->second};
}

/// The function and, each once, those that it calls.
static SetVector<const Function *> withCallees(const Function &kernel) {
  SetVector<const Function *> all;
  all.insert(&kernel);
  for (unsigned i = 0; i < all.size(); ++i) // it grows
    for (const Instruction &inst : instructions(*all[i]))
      for (const Value *operand : inst.operand_values())
        if (const auto *callee = dyn_cast<Function>(operand); callee && !callee->isDeclaration())
          all.insert(callee);
  return all;
}

/// "isnan(v)", or "v != v". Not optimized yet.
static bool isTestForNaN(const Instruction &inst) {
  if (const auto *call = dyn_cast<CallBase>(&inst)) {
    if (const auto *is = dyn_cast<IntrinsicInst>(call); is && is->getIntrinsicID() == Intrinsic::is_fpclass)
      return true;
    return call->getCalledFunction() && call->getCalledFunction()->getName().contains_insensitive("isnan");
  }
  const auto *compare = dyn_cast<FCmpInst>(&inst);
  if (!compare)
    return false;
  if (compare->getPredicate() == CmpInst::FCMP_UNO || compare->getPredicate() == CmpInst::FCMP_ORD)
    return true;
  auto source = [](const Value *v) {
    const auto *load = dyn_cast<LoadInst>(v);
    return load ? load->getPointerOperand() : v;
  };
  return source(compare->getOperand(0)) == source(compare->getOperand(1));
}

void optiml::emu::hashCode(DeviceModule &dm) {
  for (const Function &f : dm.module)
    if (!f.isDeclaration()) {
      dm.functionHashes[f.getName().str()] = StructuralHash(f, /*DetailedHash=*/true);
      stable_hash hash = 0;
      bool testsNaN = false;
      for (const Function *each : withCallees(f)) {
        hash = stable_hash_combine(hash, StructuralHash(*each, /*DetailedHash=*/true));
        testsNaN |= any_of(instructions(*each), isTestForNaN);
      }
      dm.kernelHashes[f.getName().str()] = hash ? hash : 1;
      if (testsNaN)
        dm.testNaN.insert(f.getName().str());
    }
}

void optiml::emu::markCode(DeviceModule &dm) {
  LLVMContext &context = dm.module.getContext();
  auto *type = FunctionType::get(Type::getVoidTy(context), {Type::getInt32Ty(context)}, false);
  auto *placeholder = cast<Function>(dm.module.getOrInsertFunction(placeholderName, type).getCallee());
  placeholder->setDoesNotThrow();
  placeholder->setWillReturn();
  placeholder->setOnlyAccessesInaccessibleMemory();
  for (Function &f : dm.module) {
    if (f.isDeclaration())
      continue;
    const DominatorTree tree(f);
    const LoopInfo loops(tree);
    PlaceNumbers numbers;
    for (BasicBlock &block : f) {
      const Instruction *first = holdsCode(block, loops) ? firstPlaced(block) : nullptr;
      std::optional<CodePlace> place = first ? ownPlace(dm, *first) : std::nullopt;
      if (!place)
        continue;
      IRBuilder<> b(&block, block.getFirstInsertionPt());
      b.SetCurrentDebugLocation(first->getDebugLoc());
      b.CreateCall(placeholder, {b.getInt32(unsigned(dm.codePlaces.size()))});
      place->place = numbers.next(*first->getDebugLoc());
      dm.codePlaces.push_back(*place);
    }
  }
}

/// The index of a thread or block, or the extent of a block or grid.
static bool isPlaceInGrid(const Value *value) {
  while (const auto *cast = dyn_cast<CastInst>(value))
    value = cast->getOperand(0);
  const auto *call = dyn_cast<CallInst>(value);
  return call && call->getCalledFunction() && call->getCalledFunction()->getName().contains(".sreg.");
}

/// In "blockIdx.x * 128", and in "i += 128" of a loop: how the threads share the work, whatever is done.
static bool sharesWork(const BinaryOperator &op, const Value *constant) {
  const Value *other = op.getOperand(op.getOperand(0) == constant);
  const bool scales = op.getOpcode() == Instruction::Mul || op.getOpcode() == Instruction::Shl;
  const auto *phi = dyn_cast<PHINode>(other);
  return (scales && isPlaceInGrid(other)) ||
         (op.getOpcode() == Instruction::Add && phi && is_contained(phi->incoming_values(), &op));
}

/// Integers that the conditions which lead to `block` are made with, the nearest condition's first: "4,1024". What is
/// merely before it, a loop say, does not lead there; how threads share the work is no condition.
static std::string constantsBefore(const BasicBlock &block, const DominatorTree &tree, const PostDominatorTree &after) {
  constexpr unsigned mostConstants = 16, mostSteps = 64;
  SetVector<int64_t> constants;
  const BasicBlock *decided = &block;
  const DomTreeNode *node = tree.getNode(&block);
  for (node = node ? node->getIDom() : nullptr; node && constants.size() < mostConstants; node = node->getIDom()) {
    if (after.dominates(decided, node->getBlock()))
      continue;
    decided = node->getBlock();
    const Instruction *end = node->getBlock()->getTerminator();
    SmallVector<const Value *, 16> work;
    if (const auto *branch = dyn_cast<BranchInst>(end); branch && branch->isConditional())
      work.push_back(branch->getCondition());
    else if (const auto *choice = dyn_cast<SwitchInst>(end))
      for (const auto &c : choice->cases())
        work.push_back(c.getCaseValue());
    SmallPtrSet<const Value *, 16> seen;
    for (unsigned steps = 0; !work.empty() && steps < mostSteps; ++steps) {
      const Value *value = work.pop_back_val();
      if (!seen.insert(value).second)
        continue;
      if (const auto *number = dyn_cast<ConstantInt>(value)) {
        if (number->getBitWidth() > 1 && number->getBitWidth() <= 64 && number->getSExtValue() > 0)
          constants.insert(number->getSExtValue());
      } else if (const auto *op = dyn_cast<BinaryOperator>(value)) {
        for (const Value *operand : op->operand_values())
          if (!isa<ConstantInt>(operand) || !sharesWork(*op, operand))
            work.push_back(operand);
      } else if (isa<CmpInst, CastInst, SelectInst, PHINode>(value)) {
        append_range(work, cast<Instruction>(value)->operand_values());
      }
    }
  }
  std::string text;
  for (int64_t c : constants)
    text += (text.empty() ? "" : ",") + std::to_string(c);
  return text;
}

void optiml::emu::countCode(DeviceModule &dm) {
  Function *placeholder = dm.module.getFunction(placeholderName);
  if (!placeholder)
    return;
  std::map<const Function *, std::string> kernels;
  for (const Kernel &kernel : dm.kernels)
    kernels[kernel.body] = kernel.symbol;
  std::map<std::pair<const Function *, unsigned>, unsigned> slots;
  struct Trees {
    DominatorTree before;
    PostDominatorTree after;
  };
  std::map<const Function *, Trees> trees;
  std::vector<std::pair<CallInst *, unsigned>> calls;
  for (User *user : placeholder->users()) {
    auto *call = cast<CallInst>(user);
    unsigned number = unsigned(cast<ConstantInt>(call->getArgOperand(0))->getZExtValue());
    auto [slot, fresh] = slots.try_emplace({call->getFunction(), number}, unsigned(dm.code.size()));
    if (fresh) {
      auto kernel = kernels.find(call->getFunction());
      Trees &tree = trees[call->getFunction()];
      if (!tree.before.getRoot()) {
        tree.before.recalculate(*call->getFunction());
        tree.after.recalculate(*call->getFunction());
      }
      dm.code.push_back({kernel == kernels.end() ? "" : kernel->second, dm.codePlaces[number],
                         constantsBefore(*call->getParent(), tree.before, tree.after)});
    }
    calls.push_back({call, slot->second});
  }
  Type *byte = Type::getInt8Ty(dm.module.getContext());
  auto *type = ArrayType::get(byte, dm.code.size());
  auto table = [&](const char *name) {
    return new GlobalVariable(dm.module, type, false, GlobalValue::InternalLinkage, ConstantAggregateZero::get(type),
                              name);
  };
  dm.covered = table(coveredName);
  dm.reachable = table("optiml.reachable");
  for (auto [call, slot] : calls) {
    IRBuilder<> b(call);
    Value *address = b.CreateConstInBoundsGEP2_32(type, dm.covered, 0, slot);
    // Atomic, so that nothing makes one wide store of several.
    b.CreateAlignedStore(b.getInt8(1), address, Align(1))->setAtomic(AtomicOrdering::Unordered);
    call->eraseFromParent();
  }
  placeholder->eraseFromParent();
}

void optiml::emu::findReachableCode(DeviceModule &dm) {
  if (!dm.covered)
    return;
  const DataLayout &layout = dm.module.getDataLayout();
  SmallVector<uint8_t, 0> reachable(dm.code.size());
  for (Function &f : dm.module)
    for (Instruction &inst : instructions(f)) {
      auto *store = dyn_cast<StoreInst>(&inst);
      if (!store || !store->isAtomic())
        continue;
      APInt offset(64, 0);
      const Value *base = store->getPointerOperand()->stripAndAccumulateInBoundsConstantOffsets(layout, offset);
      if (base == dm.covered && offset.ult(reachable.size()))
        reachable[offset.getZExtValue()] = 1;
    }
  dm.reachable->setInitializer(ConstantDataArray::get(dm.module.getContext(), reachable));
}

bool optiml::emu::isCoverage(const Value *pointer) {
  const auto *global = dyn_cast<GlobalVariable>(pointer->stripInBoundsConstantOffsets());
  return global && global->getName() == coveredName;
}
