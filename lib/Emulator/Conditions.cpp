//===- Conditions.cpp - how near conditions come to their outcomes -----------===//
//
// What leads to code that has not run? Each comparison tells the runtime its operands, which keeps the nearest ones for
// either outcome: the branch distance of search-based testing (Korel 1990; McMinn 2004). The values that a comparison
// did not have are then looked for by changing the program's arguments (lib/Evaluate/Verify/Explore.cpp).
//
//===----------------------------------------------------------------------===//
#include "Conditions.h"
#include "optiml/Emulator/ABI.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include <limits>
#include <set>

using namespace llvm;
using namespace optiml::emu;

static constexpr const char *integerMark = "optiml.condition", *floatMark = "optiml.condition.float";

namespace {

/// "cudaMalloc(…) != cudaSuccess": the emulator's calls succeed.
bool isResultOfApi(const Value *value) {
  const auto *call = dyn_cast<CallBase>(value);
  return call && call->getCalledFunction() && call->getCalledFunction()->getName().contains("cuda");
}

struct Extremum {
  unsigned bits;
  bool isSigned;
};
/// std::min or std::max of two integers: its comparison stands in a header that is not the user's.
std::optional<Extremum> extremumOf(const Instruction &inst) {
  const auto *call = dyn_cast<CallInst>(&inst);
  StringRef name = call && call->getCalledFunction() ? call->getCalledFunction()->getName() : "";
  if ((!name.consume_front("_ZSt3minI") && !name.consume_front("_ZSt3maxI")) || !name.ends_with("ERKT_S2_S2_"))
    return std::nullopt;  // Clang's own, for CUDA, have an enable_if in between
  switch (name.front()) { // Itanium C++ ABI, 5.1.5.2
  case 'i': return Extremum{32, true};
  case 'j': return Extremum{32, false};
  case 'l':
  case 'x': return Extremum{64, true};
  case 'm':
  case 'y': return Extremum{64, false};
  default: return std::nullopt;
  }
}

/// The distances of integers for which the comparison just has the outcome false, and true.
std::pair<uint8_t, uint8_t> leastDistances(CmpInst::Predicate p) {
  switch (p) {
  case CmpInst::ICMP_EQ:
  case CmpInst::ICMP_SLE:
  case CmpInst::ICMP_SGE:
  case CmpInst::ICMP_ULE:
  case CmpInst::ICMP_UGE: return {1, 0};
  default: return {0, 1};
  }
}

/// Numbers of blocks and chunks come from it, which change where nothing is left over.
bool isDivision(const Instruction &inst) {
  return (inst.getOpcode() == Instruction::SDiv || inst.getOpcode() == Instruction::UDiv) &&
         inst.getType()->isIntegerTy() && inst.getType()->getIntegerBitWidth() <= 64;
}

Value *asNumber(IRBuilder<> &b, Value *v, bool isSigned) {
  if (v->getType()->isPointerTy())
    return b.CreatePtrToInt(v, b.getInt64Ty());
  return isSigned ? b.CreateSExt(v, b.getInt64Ty()) : b.CreateZExt(v, b.getInt64Ty());
}

/// The comparisons that decide whether loops go on, with what says there that an iteration has been: a loop of which no
/// run made a second iteration has not shown its step.
std::map<const Instruction *, PHINode *> laterIterations(Module &module) {
  std::map<const Instruction *, PHINode *> result;
  for (Function &f : module) {
    if (f.isDeclaration())
      continue;
    const DominatorTree tree(f);
    const LoopInfo loops(tree);
    for (const Loop *loop : loops.getLoopsInPreorder()) {
      BasicBlock *header = loop->getHeader();
      auto *branch = dyn_cast<BranchInst>(header->getTerminator());
      auto *compare = branch && branch->isConditional() ? dyn_cast<CmpInst>(branch->getCondition()) : nullptr;
      if (!compare || compare->getParent() != header || !loop->isLoopExiting(header))
        continue;
      auto *again = PHINode::Create(Type::getInt1Ty(f.getContext()), 2, "", header->begin());
      for (BasicBlock *from : predecessors(header))
        again->addIncoming(ConstantInt::getBool(f.getContext(), loop->contains(from)), from);
      result[compare] = again;
    }
  }
  return result;
}

} // namespace

//===----------------------------------------------------------------------===//
// Marks
//===----------------------------------------------------------------------===//

void ConditionMarks::mark(Instruction &before, const CodePlace &place, Value *left, Value *right, Value *outcome,
                          std::pair<uint8_t, uint8_t> least, Leads leads, std::string work) {
  LLVMContext &context = module.getContext();
  const bool isFloat = left->getType()->isDoubleTy();
  auto *type =
      FunctionType::get(Type::getVoidTy(context),
                        {Type::getInt32Ty(context), left->getType(), left->getType(), Type::getInt1Ty(context)}, false);
  FunctionCallee callee = module.getOrInsertFunction(isFloat ? floatMark : integerMark, type);
  cast<Function>(callee.getCallee())->setDoesNotThrow();
  cast<Function>(callee.getCallee())->setWillReturn();
  IRBuilder<> b(&before);
  b.CreateCall(callee, {b.getInt32(unsigned(conditions.size())), left, right, outcome});
  conditions.push_back({place, isFloat, {least.first, least.second}, {leads.first, leads.second}, std::move(work)});
}

void ConditionMarks::markExtremum(CallInst &call, const CodePlace &place) {
  const Extremum e = *extremumOf(call);
  IRBuilder<> b(&call);
  auto number = [&](unsigned i) {
    return asNumber(b, b.CreateLoad(b.getIntNTy(e.bits), call.getArgOperand(i)), e.isSigned);
  };
  Value *left = number(0), *right = number(1);
  mark(call, place, left, right, b.CreateICmpSLT(left, right), {0, 1}, {});
}

void ConditionMarks::markDivision(BinaryOperator &division, const CodePlace &place) {
  const bool isSigned = division.getOpcode() == Instruction::SDiv;
  IRBuilder<> b(&division);
  Value *divisor = asNumber(b, division.getOperand(1), isSigned);
  Value *rest = asNumber(b,
                         isSigned ? b.CreateSRem(division.getOperand(0), division.getOperand(1))
                                  : b.CreateURem(division.getOperand(0), division.getOperand(1)),
                         isSigned);
  for (Value *edge : {static_cast<Value *>(b.getInt64(0)), b.CreateSub(divisor, b.getInt64(1))})
    mark(division, place, rest, edge, b.CreateICmpEQ(rest, edge), {1, 0}, {});
}

void ConditionMarks::markSwitch(SwitchInst &choice, const CodePlace &place, const GpuWork *work) {
  IRBuilder<> b(&choice);
  auto leadsTo = [&](const BasicBlock *side) { return Leads{false, work && work->onlyBy(side, choice.getParent())}; };
  int64_t last = std::numeric_limits<int64_t>::min();
  Value *none = b.getTrue();
  for (const auto &c : choice.cases()) {
    last = std::max(last, c.getCaseValue()->getSExtValue());
    none = b.CreateAnd(none, b.CreateICmpNE(choice.getCondition(), c.getCaseValue()));
  }
  if (choice.getNumCases() && choice.getCondition()->getType()->getIntegerBitWidth() <= 64)
    mark(choice, place, asNumber(b, choice.getCondition(), true), b.getInt64(last + 1), none, {1, 0},
         leadsTo(choice.getDefaultDest()));
  for (const auto &c : choice.cases()) {
    Value *is = b.CreateICmpEQ(choice.getCondition(), c.getCaseValue());
    mark(choice, place, asNumber(b, choice.getCondition(), true), asNumber(b, c.getCaseValue(), true), is, {1, 0},
         leadsTo(c.getCaseSuccessor()));
  }
}

std::vector<Instruction *> ConditionMarks::markedInstructions(bool isHost) const {
  std::vector<Instruction *> all;
  for (Function &f : module)
    for (Instruction &inst : instructions(f))
      if (isa<CmpInst, BranchInst, SelectInst, SwitchInst>(inst) || extremumOf(inst) || (isHost && isDivision(inst)))
        all.push_back(&inst);
  return all;
}

void ConditionMarks::insert(const PlaceOf &placeOf, bool isHost) {
  std::optional<GpuWork> work;
  if (isHost)
    work.emplace(module);
  /// By outcome, of the branches that depend on the value.
  auto leadsOf = [&](Value *condition) {
    Leads leads;
    for (User *user : condition->users())
      if (auto *branch = dyn_cast<BranchInst>(user); branch && work) {
        leads.first |= work->onlyBy(branch->getSuccessor(1), branch->getParent());
        leads.second |= work->onlyBy(branch->getSuccessor(0), branch->getParent());
      }
    return leads;
  };
  std::map<const Function *, PlaceNumbers> numbers;
  if (work)
    for (const auto &[inst, does] : work->sites())
      if (std::optional<CodePlace> place = placeOf(*inst)) {
        place->place = numbers[inst->getFunction()].next(*inst->getDebugLoc());
        Constant *zero = ConstantInt::get(Type::getInt64Ty(module.getContext()), 0);
        mark(*inst, *place, zero, zero, ConstantInt::getTrue(module.getContext()), {0, 0}, {}, does.str());
      }
  const std::vector<Instruction *> all = markedInstructions(isHost);
  const std::map<const Instruction *, PHINode *> again = laterIterations(module);
  for (Instruction *inst : all) {
    std::optional<CodePlace> place = placeOf(*inst);
    if (!place)
      continue;
    if (auto *call = dyn_cast<CallInst>(inst)) {
      place->place = numbers[inst->getFunction()].next(*inst->getDebugLoc());
      markExtremum(*call, *place);
      continue;
    }
    place->place = numbers[inst->getFunction()].next(*inst->getDebugLoc());
    if (auto *division = dyn_cast<BinaryOperator>(inst)) {
      markDivision(*division, *place);
      continue;
    }
    if (auto *compare = dyn_cast<CmpInst>(inst)) {
      Value *left = compare->getOperand(0), *right = compare->getOperand(1);
      Type *type = left->getType();
      const bool isInteger = type->isPointerTy() || (type->isIntegerTy() && type->getIntegerBitWidth() <= 64);
      if ((isa<Constant>(left) && isa<Constant>(right)) || type->isIntegerTy(1) ||
          !(isInteger || type->isFloatTy() || type->isDoubleTy()))
        continue;
      if (isResultOfApi(left))
        continue;
      IRBuilder<> b(inst->getNextNode());
      if (isInteger) {
        const bool isSigned = !compare->isUnsigned();
        left = asNumber(b, left, isSigned), right = asNumber(b, right, isSigned);
      } else if (type->isFloatTy()) {
        left = b.CreateFPExt(left, b.getDoubleTy()), right = b.CreateFPExt(right, b.getDoubleTy());
      }
      mark(*b.GetInsertPoint(), *place, left, right, compare, leastDistances(compare->getPredicate()),
           leadsOf(compare));
      if (auto it = again.find(compare); it != again.end()) {
        Instruction *then = SplitBlockAndInsertIfThen(it->second, b.GetInsertPoint(), /*Unreachable=*/false);
        then->setDebugLoc(compare->getDebugLoc());
        place->place = numbers[inst->getFunction()].next(*inst->getDebugLoc());
        mark(*then, *place, left, right, compare, leastDistances(compare->getPredicate()), {});
      }
      continue;
    }
    IRBuilder<> b(inst);
    if (auto *choice = dyn_cast<SwitchInst>(inst)) {
      markSwitch(*choice, *place, work ? &*work : nullptr);
      continue;
    }
    auto *branch = dyn_cast<BranchInst>(inst);
    if (branch && !branch->isConditional())
      continue;
    Value *condition = branch ? branch->getCondition() : cast<SelectInst>(inst)->getCondition();
    if (isa<CmpInst, Constant>(condition) || !condition->getType()->isIntegerTy(1) || isResultOfApi(condition))
      continue;
    mark(*inst, *place, asNumber(b, condition, false), b.getInt64(0), condition, {0, 1},
         branch ? leadsOf(condition) : Leads());
  }
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

void ConditionMarks::emit(bool isHost) {
  LLVMContext &context = module.getContext();
  IRBuilder<> b(context);
  std::vector<CallInst *> calls;
  std::map<std::pair<const Function *, unsigned>, unsigned> slotOf;
  std::vector<unsigned> order;
  const std::string constants = isHost ? constantsOfMain() : "";
  for (const char *name : {integerMark, floatMark})
    if (Function *placeholder = module.getFunction(name))
      for (User *user : placeholder->users()) {
        auto *call = cast<CallInst>(user);
        unsigned number = unsigned(cast<ConstantInt>(call->getArgOperand(0))->getZExtValue());
        if (slotOf.try_emplace({call->getFunction(), number}, unsigned(order.size())).second)
          order.push_back(number);
        calls.push_back(call);
      }
  if (calls.empty() && !isHost)
    return;

  Type *word = b.getInt64Ty(), *half = b.getInt32Ty(), *byte = b.getInt8Ty(), *pointer = b.getPtrTy();
  auto *record = ArrayType::get(word, sizeof(ConditionRecord) / sizeof(uint64_t));
  auto *recordsType = ArrayType::get(record, order.size());
  records = new GlobalVariable(module, recordsType, false, GlobalValue::InternalLinkage,
                               ConstantAggregateZero::get(recordsType), "optiml.conditions");
  FunctionCallee tell = module.getOrInsertFunction("optiml_condition", b.getVoidTy(), pointer, word, word, half);
  FunctionCallee tellFloat = module.getOrInsertFunction("optiml_condition_float", b.getVoidTy(), pointer,
                                                        b.getDoubleTy(), b.getDoubleTy(), half);
  for (CallInst *call : calls) {
    unsigned number = unsigned(cast<ConstantInt>(call->getArgOperand(0))->getZExtValue());
    b.SetInsertPoint(call);
    Value *at = b.CreateConstInBoundsGEP2_32(recordsType, records, 0, slotOf.at({call->getFunction(), number}));
    b.CreateCall(call->getArgOperand(1)->getType()->isDoubleTy() ? tellFloat : tell,
                 {at, call->getArgOperand(1), call->getArgOperand(2), b.CreateZExt(call->getArgOperand(3), half)});
    call->eraseFromParent();
  }
  for (const char *name : {integerMark, floatMark})
    if (Function *placeholder = module.getFunction(name))
      placeholder->eraseFromParent();

  auto *pair = ArrayType::get(byte, 2);
  auto *descType = StructType::get(pointer, pointer, half, half, word, word, pair, pair, pointer);
  auto *tableType = ArrayType::get(descType, order.size());
  table = new GlobalVariable(module, tableType, false, GlobalValue::InternalLinkage,
                             ConstantAggregateZero::get(tableType), "optiml.conditions.of");
  slots = std::move(order);
  Function *start = Function::Create(FunctionType::get(b.getVoidTy(), false), GlobalValue::InternalLinkage,
                                     "optiml.register.conditions", module);
  b.SetInsertPoint(BasicBlock::Create(context, "", start));
  FunctionCallee add =
      module.getOrInsertFunction("optiml_register_conditions", b.getVoidTy(), pointer, pointer, half, pointer);
  b.CreateCall(add, {table, records, b.getInt32(unsigned(slots.size())),
                     isHost ? static_cast<Constant *>(b.CreateGlobalString(constants, "optiml.text", 0, &module))
                            : ConstantPointerNull::get(b.getPtrTy())});
  b.CreateRetVoid();
  appendToGlobalCtors(module, start, 65535);
}

/// An outcome that the optimizer has found to be impossible leads nowhere.
void ConditionMarks::describe() {
  if (!table)
    return;
  const DataLayout &layout = module.getDataLayout();
  std::vector<std::array<bool, 2>> possible(slots.size(), {false, false});
  for (const char *name : {"optiml_condition", "optiml_condition_float"})
    if (Function *tell = module.getFunction(name))
      for (User *user : tell->users()) {
        auto *call = dyn_cast<CallBase>(user);
        APInt offset(64, 0);
        const Value *base =
            call ? call->getArgOperand(0)->stripAndAccumulateInBoundsConstantOffsets(layout, offset) : nullptr;
        const size_t slot = offset.getZExtValue() / sizeof(ConditionRecord);
        if (base != records || slot >= possible.size()) { // which one is decided at run time
          possible.assign(slots.size(), {true, true});
          break;
        }
        const auto *outcome = dyn_cast<ConstantInt>(call->getArgOperand(3));
        for (bool side : {false, true})
          possible[slot][side] |= !outcome || outcome->isOne() == side;
      }
  IRBuilder<> b(module.getContext());
  auto *tableType = cast<ArrayType>(table->getValueType());
  auto *descType = cast<StructType>(tableType->getElementType());
  auto text = [&](StringRef s) { return b.CreateGlobalString(s, "optiml.text", 0, &module); };
  std::vector<Constant *> descs;
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    const Condition &c = conditions[slots[slot]];
    uint8_t leads[2] = {uint8_t(c.leads[0] && possible[slot][0]), uint8_t(c.leads[1] && possible[slot][1])};
    Constant *work = ConstantPointerNull::get(b.getPtrTy());
    if (!c.work.empty())
      work = text(possible[slot][1] ? c.work : "");
    auto bytes = [&](const uint8_t (&v)[2]) { return ConstantDataArray::get(module.getContext(), ArrayRef(v)); };
    descs.push_back(ConstantStruct::get(descType, {text(c.place.function), text(c.place.file), b.getInt32(c.place.line),
                                                   b.getInt32(c.isFloat), b.getInt64(c.place.functionHash),
                                                   b.getInt64(c.place.place), bytes(c.least), bytes(leads), work}));
  }
  table->setInitializer(ConstantArray::get(tableType, descs));
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// Integers in a constant, such as the initial contents of a local array.
static void collectIntegers(const Constant &constant, std::set<int64_t> &into) {
  if (const auto *number = dyn_cast<ConstantInt>(&constant)) {
    if (number->getBitWidth() > 8 && number->getBitWidth() <= 64)
      into.insert(number->getSExtValue());
  } else if (const auto *data = dyn_cast<ConstantDataSequential>(&constant)) {
    constexpr uint64_t most = 64;
    for (uint64_t i = 0; i < std::min(data->getNumElements(), most) && data->getElementType()->isIntegerTy(); ++i)
      collectIntegers(*data->getElementAsConstant(unsigned(i)), into);
  } else if (const auto *global = dyn_cast<GlobalVariable>(&constant)) {
    if (global->hasInitializer() && global->hasLocalLinkage())
      collectIntegers(*global->getInitializer(), into);
  } else {
    for (const Use &operand : constant.operands())
      collectIntegers(*cast<Constant>(operand), into);
  }
}

std::string ConditionMarks::constantsOfMain() const {
  const Function *main = module.getFunction("main");
  std::set<int64_t> chosen, others; // as in "argc > 1 ? atoi(argv[1]) : 1000"
  if (main)
    for (const Instruction &inst : instructions(*main)) {
      const auto *call = dyn_cast<CallInst>(&inst);
      const Function *callee = call ? call->getCalledFunction() : nullptr;
      const bool marks = callee && (callee->getName() == integerMark || callee->getName() == floatMark);
      if (marks || (isa<GetElementPtrInst, IntrinsicInst>(inst) && !isa<MemTransferInst>(inst)))
        continue;
      const bool chooses = isa<PHINode, SelectInst, StoreInst, MemTransferInst>(inst);
      for (const Value *operand : inst.operand_values())
        if (const auto *constant = dyn_cast<Constant>(operand); constant && !isa<Function>(constant))
          collectIntegers(*constant, chooses ? chosen : others);
    }
  constexpr size_t most = 40;
  std::vector<int64_t> all;
  for (const std::set<int64_t> *some : {&chosen, &others})
    for (int64_t value : *some)
      if (value >= 0 && value <= (int64_t(1) << 31) && !is_contained(all, value) && all.size() < most)
        all.push_back(value);
  return join(map_range(all, [](int64_t value) { return std::to_string(value); }), ",");
}
