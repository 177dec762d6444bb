//===- DataCourse.cpp - does data decide what a kernel touches? -----------===//
//
// Where it does not, a kernel that is free of races on one content of its buffers is so on all: its threads touch the
// same places in the same order. Asked when device functions are inlined and before anything is instrumented.
//
//===----------------------------------------------------------------------===//
#include "DeviceModule.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;
using namespace optiml::emu;

/// Whether the kernel only reads what the pointer leads to.
static bool isOnlyRead(const Value &pointer) {
  return all_of(pointer.users(), [](const User *user) {
    const auto *inst = dyn_cast<Instruction>(user);
    return inst && (isa<LoadInst>(inst) || (isa<GetElementPtrInst, CastInst>(inst) && isOnlyRead(*inst)));
  });
}

/// Whether what the load gives is the same for every content of memory: parameters, the thread's indices, constants.
static bool loadsNoData(const LoadInst &load) {
  const Value *object = getUnderlyingObject(load.getPointerOperand());
  if (const auto *argument = dyn_cast<Argument>(object))
    return argument->getArgNo() == 0 || (argument->hasByValAttr() && isOnlyRead(*argument));
  const auto *variable = dyn_cast<GlobalVariable>(object);
  return variable && variable->isConstant() && !variable->isExternallyInitialized();
}

/// Functions of the runtime that exchange values among lanes. Behind the context, a mode and the mask come values.
static bool exchangesValues(const CallBase &call) {
  const Function *callee = call.getCalledFunction();
  static constexpr StringLiteral names[] = {"optiml_shuffle",   "optiml_vote",  "optiml_match_any",
                                            "optiml_match_all", "optiml_redux", "optiml_barrier_reduce"};
  return callee && is_contained(names, callee->getName());
}

static bool isRuntime(const CallBase &call) {
  const Function *callee = call.getCalledFunction();
  return callee && callee->getName().starts_with("optiml");
}

/// A function of the host's mathematics: values in, a value out.
static bool isMathematics(const CallBase &call) {
  const Function *callee = call.getCalledFunction();
  return callee && callee->isDeclaration() && !isRuntime(call) &&
         none_of(call.args(), [](const Use &use) { return use->getType()->isPointerTy(); });
}

/// Whether data in this operand decides what is touched, or what runs.
static bool decides(const Use &use) {
  const auto *user = cast<Instruction>(use.getUser());
  if (isa<LoadInst>(user) || user->isTerminator())
    return !isa<ReturnInst>(user);
  if (isa<StoreInst>(user))
    return use.getOperandNo() == StoreInst::getPointerOperandIndex();
  if (isa<AtomicRMWInst, AtomicCmpXchgInst>(user))
    return use.getOperandNo() == 0;
  const auto *call = dyn_cast<CallBase>(user);
  if (!call || isMathematics(*call))
    return false;
  if (isa<IntrinsicInst>(call))
    return call->mayReadOrWriteMemory();
  return !exchangesValues(*call) || use.getOperandNo() <= 2;
}

bool optiml::emu::dataDecidesCourse(const Function &kernel) {
  SmallSetVector<const Instruction *, 32> data;
  for (const Instruction &inst : instructions(kernel)) {
    if (const auto *load = dyn_cast<LoadInst>(&inst); load ? !loadsNoData(*load) : inst.isAtomic())
      data.insert(&inst);
    const auto *call = dyn_cast<CallBase>(&inst);
    if (!call || isa<IntrinsicInst>(call) || isMathematics(*call))
      continue;
    if (!isRuntime(*call))
      return true; // recursion, or a pointer to a function
    if (!call->getType()->isVoidTy() && call->getCalledFunction()->getName() != sharedPlaceholder)
      data.insert(call);
  }
  for (unsigned i = 0; i < data.size(); ++i) // it grows
    for (const Use &use : data[i]->uses()) {
      if (decides(use))
        return true;
      data.insert(cast<Instruction>(use.getUser()));
    }
  return false;
}
