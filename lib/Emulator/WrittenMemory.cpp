//===- WrittenMemory.cpp - which of its parameters a kernel writes through -===//
//
// ModeVerify. Nothing can race with the loads from memory that a launch does not write, so that they need no record
// (Runtime/Races.h). At the launch, the parameters tell which memory that is.
//
//===----------------------------------------------------------------------===//
#include "DeviceModule.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;
using namespace optiml::emu;

namespace {

class Writes {
public:
  explicit Writes(Kernel &kernel) : kernel(kernel), layout(kernel.body->getDataLayout()) {}

  void find() {
    for (Instruction &inst : instructions(*kernel.body)) {
      if (auto *store = dyn_cast<StoreInst>(&inst))
        through(store->getPointerOperand());
      else if (auto *update = dyn_cast<AtomicRMWInst>(&inst))
        through(update->getPointerOperand());
      else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&inst))
        through(exchange->getPointerOperand());
      else if (auto *memory = dyn_cast<AnyMemIntrinsic>(&inst))
        through(memory->getRawDest());
      else if (auto *call = dyn_cast<CallBase>(&inst); call && call->mayWriteToMemory())
        byCall(*call);
    }
  }

private:
  Kernel &kernel;
  const DataLayout &layout;

  void byCall(const CallBase &call) {
    const Function *callee = call.getCalledFunction();
    kernel.writes.elsewhere |= !callee || !callee->isDeclaration();
    for (const Value *argument : call.args())
      if (argument->getType()->isPointerTy() && !isOf(argument, 0))
        through(argument);
  }

  static bool isOf(const Value *value, unsigned parameter) {
    const auto *argument = dyn_cast<Argument>(value);
    return argument && argument->getArgNo() == parameter;
  }

  void through(const Value *pointer) {
    SmallVector<const Value *, 4> objects;
    getUnderlyingObjects(pointer, objects, nullptr, 0);
    for (const Value *object : objects)
      into(object);
  }

  void into(const Value *object) {
    if (isa<AllocaInst>(object) || isOf(object, 0))
      return;
    if (isa<GlobalVariable>(object)) {
      kernel.writes.variables = true;
      return;
    }
    APInt offset(64, 0);
    if (const auto *argument = dyn_cast<Argument>(object)) {
      if (argument->hasByValAttr()) // a pointer in it may be another one from now on
        kernel.writes.elsewhere = true;
      else
        add(*argument, 0);
      return;
    }
    const auto *load = dyn_cast<LoadInst>(object);
    const Value *from =
        load ? load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/true)
             : nullptr;
    if (from && isOf(from, 0))
      return; // where shared memory lies
    const auto *argument = dyn_cast_or_null<Argument>(from);
    if (argument && argument->hasByValAttr())
      add(*argument, offset.getZExtValue());
    else
      kernel.writes.elsewhere = true;
  }

  void add(const Argument &argument, uint64_t offset) {
    if (argument.getArgNo() < DeviceModule::hiddenParams)
      return;
    kernel.writes.places.insert({argument.getArgNo() - DeviceModule::hiddenParams, unsigned(offset)});
  }
};

} // namespace

void optiml::emu::findWrites(DeviceModule &dm) {
  for (Kernel &kernel : dm.kernels)
    Writes(kernel).find();
}
