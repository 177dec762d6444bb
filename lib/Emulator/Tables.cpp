//===- Tables.cpp - entry points and the module's description -------------===//
//
// Emits for each kernel the function that runs one thread and, where no thread waits for another, the one that runs a
// whole block as loops over the thread indices; then the tables of ABI.h as constants, and their registration.
//
//===----------------------------------------------------------------------===//
#include "Accesses.h"
#include "RowChecks.h"
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
    std::vector<Constant *> kernels, variables, sites, blocks, code;
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
                              i32(site.size), i32(site.kind), i32(site.alignment), i32(site.block), i32(site.level)}));
    for (const BlockDesc &d : dm.blocks)
      blocks.push_back(record({i16(d.fp32), i16(d.fp64), i16(d.int32), i16(d.special), i16(d.tensor), i16(d.control),
                               i16(d.memory), i16(d.barrier), i16(d.other), i16(d.depth), i16(d.chain)}));
    for (const Code &c : dm.code)
      code.push_back(
          record({dm.string(c.kernel), dm.string(c.place.function), dm.string(c.place.file), i32(c.place.line),
                  dm.string(c.constants), i64(c.place.functionHash), i64(c.place.place)}));
    Constant *none = ConstantPointerNull::get(b.getPtrTy());
    Constant *desc =
        record({i32(abiVersion), i32(dm.mode), i32(kernels.size()), i32(variables.size()), i32(sites.size()),
                i32(blocks.size()), i32(code.size()), array(kernels), array(variables), array(sites), array(blocks),
                array(code), dm.covered ? dm.covered : none, dm.reachable ? dm.reachable : none, i32(dm.arch)});
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
    std::vector<Constant *> params, shared, pointers, written;
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
    for (const Pointer &p : kernel.pointers)
      pointers.push_back(record({i32(p.parameter), i32(p.offset), dm.string(p.pointee)}));
    for (auto [parameter, offset] : kernel.writes.places)
      written.push_back(record({i32(parameter), i32(offset)}));
    const KernelWrites &writes = kernel.writes;
    const uint32_t besides = (writes.variables ? WritesVariables : 0) | (writes.elsewhere ? WritesElsewhere : 0);
    Function *thread = threadFunction(kernel);
    Constant *block =
        kernel.mayWait ? static_cast<Constant *>(ConstantPointerNull::get(b.getPtrTy())) : blockFunction(kernel);
    kernel.body->setLinkage(GlobalValue::InternalLinkage);
    return record({dm.string(kernel.symbol),
                   dm.string(readableName(kernel.symbol)),
                   thread,
                   block,
                   i32(kernel.staticShared),
                   i32(params.size()),
                   array(params),
                   i32(shared.size()),
                   array(shared),
                   i32(kernel.granule),
                   i32(kernel.usesWarpOps),
                   i32(kernel.maxThreads),
                   i32(kernel.minBlocks),
                   i64(dm.kernelHashes[kernel.symbol]),
                   i32(dm.testNaN.count(kernel.symbol)),
                   i32(kernel.dataDecides),
                   i32(pointers.size()),
                   array(pointers),
                   i32(written.size()),
                   i32(besides),
                   array(written)});
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

  CallInst *callBody(Kernel &kernel, Function *body, ArrayRef<Value *> args) {
    CallInst *call = b.CreateCall(body, args);
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
    CallInst *call = callBody(kernel, kernel.body, args);
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

  /// One loop `for (index = 0; index < count; ++index)` around what is emitted next; at least one round.
  struct Loop {
    BasicBlock *header;
    PHINode *index;
  };
  Loop openLoop(const Twine &name) {
    Function *f = b.GetInsertBlock()->getParent();
    BasicBlock *before = b.GetInsertBlock();
    Loop loop;
    loop.header = BasicBlock::Create(context, name, f);
    b.CreateBr(loop.header);
    b.SetInsertPoint(loop.header);
    loop.index = b.CreatePHI(b.getInt32Ty(), 2, name);
    loop.index->addIncoming(b.getInt32(0), before);
    return loop;
  }
  void closeLoop(Loop &loop, Value *count) {
    Value *next = b.CreateNUWAdd(loop.index, b.getInt32(1));
    loop.index->addIncoming(next, b.GetInsertBlock());
    BasicBlock *exit = BasicBlock::Create(context, "", b.GetInsertBlock()->getParent());
    b.CreateCondBr(b.CreateICmpULT(next, count), loop.header, exit);
    b.SetInsertPoint(exit);
  }

  /// for (z) for (y) for (x) body. With row checks, a row whose accesses are known good runs a body without them.
  Function *blockFunction(Kernel &kernel) {
    Function *f = entryFunction("optiml.block." + kernel.symbol);
    std::vector<Value *> arguments;
    loadArguments(kernel, *f, arguments);
    Value *extent[3];
    for (unsigned d = 0; d < 3; ++d)
      extent[d] = dm.load(b, Field::Ntid, d);
    RowChecks checks(dm, *kernel.body);
    bool tellThread = callsRuntime(*kernel.body);

    Loop z = openLoop("tid.z"), y = openLoop("tid.y");
    std::vector<Value *> args = {f->getArg(0), b.getInt32(0), y.index, z.index};
    append_range(args, arguments);
    if (checks.empty()) {
      emitRow(kernel, kernel.body, args, extent, tellThread);
    } else {
      Value *fast = b.CreateAnd(checks.emitProbe(b, args, extent[0]), b.CreateICmpUGE(extent[0], b.getInt32(8)));
      BasicBlock *unchecked = BasicBlock::Create(context, "unchecked", f),
                 *checked = BasicBlock::Create(context, "checked", f), *next = BasicBlock::Create(context, "next", f);
      b.CreateCondBr(fast, unchecked, checked);
      b.SetInsertPoint(unchecked);
      emitRow(kernel, checks.uncheckedBody(), args, extent, tellThread);
      b.CreateBr(next);
      b.SetInsertPoint(checked);
      emitRow(kernel, kernel.body, args, extent, tellThread);
      b.CreateBr(next);
      b.SetInsertPoint(next);
    }
    closeLoop(y, extent[1]);
    closeLoop(z, extent[2]);
    b.CreateRetVoid();
    return f;
  }

  void emitRow(Kernel &kernel, Function *body, std::vector<Value *> args, ArrayRef<Value *> extent, bool tellThread) {
    Loop x = openLoop("tid.x");
    args[1] = x.index;
    if (tellThread) {
      for (unsigned d = 0; d < 3; ++d)
        b.CreateStore(args[1 + d], dm.fieldAddress(b, args[0], Field::Tid, d));
      Value *row = b.CreateAdd(args[2], b.CreateMul(args[3], extent[1]));
      Value *linear = b.CreateAdd(args[1], b.CreateMul(row, extent[0]));
      b.CreateStore(b.CreateAnd(linear, 31), dm.fieldAddress(b, args[0], Field::Lane));
    }
    callBody(kernel, body, args)->addFnAttr(Attribute::AlwaysInline);
    closeLoop(x, extent[0]);
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
