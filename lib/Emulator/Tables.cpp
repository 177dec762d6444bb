//===- Tables.cpp - entry points and the module's description -------------===//
//
// Emits for each kernel the function that runs one thread and, where no thread waits for another, the one that runs a
// whole block as loops over the thread indices; then the tables of ABI.h as constants, and their registration.
//
//===----------------------------------------------------------------------===//
#include "Accesses.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;
using namespace optiml::emu;

namespace {

/// "saxpy" or "scale<float>" from a mangled name: without result type and parameters.
std::string readableName(StringRef symbol) {
  std::string full = demangle(symbol);
  StringRef name = full;
  if (name.ends_with(")")) {
    unsigned depth = 0;
    for (size_t i = name.size(); i-- > 0;) {
      depth += name[i] == ')';
      depth -= name[i] == '(';
      if (depth == 0) {
        name = name.take_front(i);
        break;
      }
    }
  }
  name.consume_front("void ");
  return name.empty() ? full : name.str();
}

class Tables {
public:
  explicit Tables(DeviceModule &dm) : dm(dm), module(dm.module), context(module.getContext()), b(context) {}

  void run(bool registerAtStart) {
    std::vector<Constant *> kernels, variables, sites, blocks;
    for (Kernel &kernel : dm.kernels)
      kernels.push_back(describe(kernel));
    const DataLayout &layout = module.getDataLayout();
    for (auto &[name, symbol] : dm.variableSymbols)
      if (GlobalVariable *g = module.getNamedGlobal(name))
        variables.push_back(
            record({dm.string(symbol.first), g, i64(layout.getTypeAllocSize(g->getValueType()).getFixedValue()),
                    i32(symbol.second)}));
    for (const Site &site : dm.sites)
      sites.push_back(record({dm.string(site.function), dm.string(site.file), i32(site.line), i32(site.column),
                              i32(site.size), i32(site.kind), i32(site.alignment)}));
    for (const BlockDesc &d : dm.blocks)
      blocks.push_back(record({i16(d.fp32), i16(d.fp64), i16(d.int32), i16(d.special), i16(d.control), i16(d.memory),
                               i16(d.barrier), i16(d.other), i16(d.depth)}));
    Constant *desc =
        record({i32(abiVersion), i32(dm.mode), i32(kernels.size()), i32(variables.size()), i32(sites.size()),
                i32(blocks.size()), array(kernels), array(variables), array(sites), array(blocks)});
    auto *table = new GlobalVariable(module, desc->getType(), true,
                                     registerAtStart ? GlobalValue::InternalLinkage : GlobalValue::ExternalLinkage,
                                     desc, "optiml_module");
    if (registerAtStart)
      registerModule(table);
  }

private:
  DeviceModule &dm;
  Module &module;
  LLVMContext &context;
  IRBuilder<> b;

  Constant *i8(uint64_t v) { return b.getInt8(uint8_t(v)); }
  Constant *i16(uint64_t v) { return b.getInt16(uint16_t(v)); }
  Constant *i32(uint64_t v) { return b.getInt32(uint32_t(v)); }
  Constant *i64(uint64_t v) { return b.getInt64(v); }
  Constant *record(ArrayRef<Constant *> fields) { return ConstantStruct::getAnon(context, fields); }

  Constant *array(ArrayRef<Constant *> elements) {
    if (elements.empty())
      return ConstantPointerNull::get(b.getPtrTy());
    auto *type = ArrayType::get(elements[0]->getType(), elements.size());
    return new GlobalVariable(module, type, true, GlobalValue::PrivateLinkage, ConstantArray::get(type, elements));
  }

  Constant *describe(Kernel &kernel) {
    const DataLayout &layout = module.getDataLayout();
    std::vector<Constant *> params, shared;
    uint64_t end = 0;
    for (Argument &a : drop_begin(kernel.body->args(), DeviceModule::hiddenParams)) {
      Type *type = a.hasByValAttr() ? a.getParamByValType() : a.getType();
      Align align =
          a.hasByValAttr() ? std::max(a.getParamAlign().valueOrOne(), Align(1)) : layout.getABITypeAlign(type);
      uint64_t offset = alignTo(end, align), size = layout.getTypeAllocSize(type).getFixedValue();
      params.push_back(record({i32(offset), i32(size), i8(type->isPointerTy())}));
      end = offset + size;
    }
    for (auto [index, offset] : kernel.shared)
      if (const SharedVariable &v = dm.sharedVariables[index]; !v.isDynamic())
        shared.push_back(record({dm.string(v.name), i32(offset), i32(v.size)}));
    Function *thread = threadFunction(kernel);
    Constant *block =
        kernel.mayWait ? static_cast<Constant *>(ConstantPointerNull::get(b.getPtrTy())) : blockFunction(kernel);
    kernel.body->setLinkage(GlobalValue::InternalLinkage);
    return record({dm.string(kernel.symbol), dm.string(readableName(kernel.symbol)), thread, block,
                   i32(kernel.staticShared), i32(params.size()), array(params), i32(shared.size()), array(shared),
                   i32(kernel.granule), i32(kernel.usesWarpOps), i32(kernel.maxThreads), i32(kernel.minBlocks)});
  }

  Function *entryFunction(const Twine &name) {
    auto *type = FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false);
    Function *f = Function::Create(type, GlobalValue::InternalLinkage, name, module);
    f->setDoesNotThrow();
    b.SetInsertPoint(BasicBlock::Create(context, "entry", f));
    return f;
  }

  /// The kernel's parameters, read through args[i].
  void loadArguments(Kernel &kernel, Function &f, std::vector<Value *> &values) {
    for (Argument &a : drop_begin(kernel.body->args(), DeviceModule::hiddenParams)) {
      unsigned index = a.getArgNo() - DeviceModule::hiddenParams;
      Value *pointer =
          b.CreateAlignedLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_32(b.getPtrTy(), f.getArg(1), index), Align(8));
      if (a.hasByValAttr())
        values.push_back(pointer);
      else if (a.getType()->isIntegerTy(1))
        values.push_back(b.CreateTrunc(b.CreateLoad(b.getInt8Ty(), pointer), b.getInt1Ty()));
      else
        values.push_back(b.CreateLoad(a.getType(), pointer));
    }
  }

  CallInst *callBody(Kernel &kernel, ArrayRef<Value *> args) {
    CallInst *call = b.CreateCall(kernel.body, args);
    for (unsigned i = 0; i < args.size(); ++i)
      for (Attribute attribute : kernel.body->getAttributes().getParamAttrs(i))
        if (attribute.hasAttribute(Attribute::ByVal) || attribute.hasAttribute(Attribute::Alignment) ||
            attribute.hasAttribute(Attribute::ZExt) || attribute.hasAttribute(Attribute::SExt))
          call->addParamAttr(i, attribute);
    return call;
  }

  Function *threadFunction(Kernel &kernel) {
    Function *f = entryFunction("optiml.thread." + kernel.symbol);
    std::vector<Value *> args = {f->getArg(0)};
    for (unsigned d = 0; d < 3; ++d)
      args.push_back(b.CreateLoad(b.getInt32Ty(), dm.fieldAddress(b, f->getArg(0), Field::Tid, d)));
    loadArguments(kernel, *f, args);
    CallInst *call = callBody(kernel, args);
    // Inlined where it is the only way to run the kernel, or is run once a thread.
    bool direct = kernel.mayWait || dm.mode & (ModeVerify | ModeTrace);
    call->addFnAttr(direct ? Attribute::AlwaysInline : Attribute::NoInline);
    b.CreateRetVoid();
    return f;
  }

  /// Whether the body calls the runtime other than for a failed check: then the context must know the thread.
  bool callsRuntime(Function &body) {
    std::vector<Function *> work = {&body};
    std::set<Function *> seen = {&body};
    while (!work.empty()) {
      Function *f = work.back();
      work.pop_back();
      for (Instruction &inst : instructions(*f)) {
        auto *call = dyn_cast<CallInst>(&inst);
        if (!call)
          continue;
        Function *callee = call->getCalledFunction();
        if (!callee || (callee->isDeclaration() && callee->getName().starts_with("optiml_")))
          return true;
        if (!callee->isDeclaration() && callee->getName() != slowCheckName && seen.insert(callee).second)
          work.push_back(callee);
      }
    }
    return false;
  }

  Function *blockFunction(Kernel &kernel) {
    Function *f = entryFunction("optiml.block." + kernel.symbol);
    BasicBlock *entry = b.GetInsertBlock();
    std::vector<Value *> arguments;
    loadArguments(kernel, *f, arguments);
    Value *extent[3];
    for (unsigned d = 0; d < 3; ++d)
      extent[d] = dm.load(b, Field::Ntid, d);
    // for (z) for (y) for (x), each at least once.
    BasicBlock *header[3], *latch[3], *exit = BasicBlock::Create(context, "exit", f);
    static const char axes[] = "xyz";
    for (unsigned d = 3; d-- > 0;)
      header[d] = BasicBlock::Create(context, Twine("loop.") + Twine(axes[d]), f, exit);
    for (unsigned d = 0; d < 3; ++d)
      latch[d] = d == 0 ? header[0] : BasicBlock::Create(context, Twine("next.") + Twine(axes[d]), f, exit);
    b.CreateBr(header[2]);
    PHINode *index[3];
    for (unsigned d = 3; d-- > 0;) {
      b.SetInsertPoint(header[d]);
      index[d] = b.CreatePHI(b.getInt32Ty(), 2, Twine("tid.") + Twine(axes[d]));
      index[d]->addIncoming(b.getInt32(0), d == 2 ? entry : header[d + 1]);
      if (d > 0)
        b.CreateBr(header[d - 1]);
    }
    std::vector<Value *> args = {f->getArg(0), index[0], index[1], index[2]};
    append_range(args, arguments);
    if (callsRuntime(*kernel.body)) {
      for (unsigned d = 0; d < 3; ++d)
        b.CreateStore(index[d], dm.fieldAddress(b, f->getArg(0), Field::Tid, d));
      Value *row = b.CreateAdd(index[1], b.CreateMul(index[2], extent[1]));
      Value *linear = b.CreateAdd(index[0], b.CreateMul(row, extent[0]));
      b.CreateStore(b.CreateAnd(linear, 31), dm.fieldAddress(b, f->getArg(0), Field::Lane));
    }
    callBody(kernel, args)->addFnAttr(Attribute::AlwaysInline);
    for (unsigned d = 0; d < 3; ++d) {
      b.SetInsertPoint(latch[d]);
      Value *next = b.CreateNUWAdd(index[d], b.getInt32(1));
      index[d]->addIncoming(next, latch[d]);
      b.CreateCondBr(b.CreateICmpULT(next, extent[d]), header[d], d == 2 ? exit : latch[d + 1]);
    }
    b.SetInsertPoint(exit);
    b.CreateRetVoid();
    return f;
  }

  void registerModule(GlobalVariable *table) {
    Function *f = Function::Create(FunctionType::get(b.getVoidTy(), false), GlobalValue::InternalLinkage,
                                   "optiml.register", module);
    b.SetInsertPoint(BasicBlock::Create(context, "", f));
    FunctionCallee callee =
        module.getOrInsertFunction("optiml_register_module", FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false));
    b.CreateCall(callee, {table});
    b.CreateRetVoid();
    appendToGlobalCtors(module, f, 101); // before the program's own constructors
  }
};

} // namespace

void optiml::emu::emitTables(DeviceModule &dm, bool registerAtStart) { Tables(dm).run(registerAtStart); }
