//===- AddressArithmetic.cpp - what indexing costs on a GPU ---------------===//
#include "AddressArithmetic.h"
#include "Optimize.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Passes/PassBuilder.h"
#include <set>

using namespace llvm;
using namespace optiml::emu;

static bool isIndexArithmetic(const Instruction &inst) {
  switch (inst.getOpcode()) {
  case Instruction::Add:
  case Instruction::Sub:
  case Instruction::Mul:
  case Instruction::Shl:
  case Instruction::Or:
  case Instruction::SExt:
  case Instruction::ZExt:
  case Instruction::Trunc:
  case Instruction::GetElementPtr: return true;
  default: return false;
  }
}

/// The start of a recurrence without its constant part.
static const SCEV *withoutConstant(const SCEV *start, ScalarEvolution &se) {
  const auto *sum = dyn_cast<SCEVAddExpr>(start);
  if (!sum || !isa<SCEVConstant>(sum->getOperand(0)))
    return start;
  SmallVector<const SCEV *, 4> rest(drop_begin(sum->operands()));
  return se.getAddExpr(rest);
}

AddressArithmetic optiml::emu::analyzeAddresses(Function &function) {
  AddressArithmetic result;
  PassBuilder builder;
  PassAnalyses analyses(builder);
  auto &loops = analyses.functions.getResult<LoopAnalysis>(function);
  if (loops.empty())
    return result;
  auto &se = analyses.functions.getResult<ScalarEvolutionAnalysis>(function);

  std::set<std::tuple<const Loop *, const SCEV *, const SCEV *>> seen;
  SmallVector<const Instruction *, 32> work;
  DenseSet<const Instruction *> reduciblePointers;
  for (Instruction &inst : instructions(function)) {
    Value *pointer = getLoadStorePointerOperand(&inst);
    const Loop *loop = loops.getLoopFor(inst.getParent());
    auto *address = dyn_cast_or_null<Instruction>(pointer);
    if (!loop || !address || !loop->contains(address) || !se.isSCEVable(pointer->getType()))
      continue;
    const auto *recurrence = dyn_cast<SCEVAddRecExpr>(se.getSCEV(pointer));
    if (!recurrence || recurrence->getLoop() != loop || !recurrence->isAffine())
      continue;
    const SCEV *step = recurrence->getStepRecurrence(se);
    if (seen.insert({loop, withoutConstant(recurrence->getStart(), se), step}).second)
      ++result.pointers[inst.getParent()];
    reduciblePointers.insert(address);
    work.push_back(address);
  }
  // From the addresses back to what only they need.
  auto goesAway = [&](const Instruction &inst) {
    return isIndexArithmetic(inst) && loops.getLoopFor(inst.getParent()) && all_of(inst.users(), [&](const User *user) {
             const auto *by = cast<Instruction>(user);
             if (result.reduced.count(by))
               return true;
             return reduciblePointers.count(&inst) && getLoadStorePointerOperand(by) == &inst;
           });
  };
  while (!work.empty()) {
    const Instruction *inst = work.pop_back_val();
    if (result.reduced.count(inst) || !goesAway(*inst))
      continue;
    result.reduced.insert(inst);
    for (const Value *operand : inst->operands())
      if (const auto *before = dyn_cast<Instruction>(operand))
        work.push_back(before);
  }
  return result;
}
