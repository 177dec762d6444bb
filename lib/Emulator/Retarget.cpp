//===- Retarget.cpp - NVPTX IR to host IR with hidden parameters ----------===//
//
// The first step: what Clang emitted for NVPTX becomes a module for this machine. All variables move to the one address
// space, shared variables become placeholders that depend on the context, and every function gains the hidden
// parameters of DeviceModule. Attributes that were deduced for a GPU are dropped (a kernel whose thread index now comes
// from memory is no longer "argmem only").
//
//===----------------------------------------------------------------------===//
#include "Accesses.h"
#include "DeviceModule.h"
#include "optiml/Frontend/CodeGen.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;
using namespace optiml;
using namespace optiml::emu;

namespace {

constexpr unsigned sharedSpace = 3;

/// Follows a constant pointer expression down to its users and hands each addrspacecast of `global` to the generic
/// space the replacement.
void replaceGlobal(GlobalVariable &old, GlobalVariable &fresh) {
  for (User *user : make_early_inc_range(old.users()))
    if (auto *cast = dyn_cast<ConstantExpr>(user); cast && cast->getOpcode() == Instruction::AddrSpaceCast)
      cast->replaceAllUsesWith(&fresh);
  old.removeDeadConstantUsers();
  if (!old.use_empty()) // a use in the variable's own space
    old.replaceAllUsesWith(ConstantExpr::getAddrSpaceCast(&fresh, old.getType()));
}

std::vector<Pointer> pointersOf(const Function &kernel) {
  std::vector<Pointer> result;
  if (const MDNode *all = kernel.getMetadata(pointersMetadata))
    for (const MDOperand &one : all->operands()) {
      const auto *node = cast<MDNode>(one);
      auto number = [&](unsigned i) { return mdconst::extract<ConstantInt>(node->getOperand(i))->getZExtValue(); };
      result.push_back({unsigned(number(0)), number(1), cast<MDString>(node->getOperand(2))->getString().str()});
    }
  return result;
}

bool isKernel(const Function &f) { return f.getCallingConv() == CallingConv::PTX_Kernel; }

unsigned numericAttribute(const Function &f, StringRef name) {
  unsigned product = 1;
  StringRef text = f.getFnAttribute(name).getValueAsString();
  if (text.empty())
    return 0;
  SmallVector<StringRef, 3> parts; // "128" or "16,8,1"
  text.split(parts, ',');
  for (StringRef part : parts) {
    unsigned value = 0;
    if (part.trim().getAsInteger(10, value))
      return 0;
    product *= value;
  }
  return product;
}

/// Only what does not depend on the target.
AttributeSet keptParameterAttributes(LLVMContext &context, AttributeSet from, bool keepNoAlias) {
  AttrBuilder kept(context);
  for (Attribute::AttrKind kind :
       {Attribute::ByVal, Attribute::StructRet, Attribute::ZExt, Attribute::SExt, Attribute::Alignment})
    if (from.hasAttribute(kind))
      kept.addAttribute(from.getAttribute(kind));
  if (keepNoAlias && from.hasAttribute(Attribute::NoAlias))
    kept.addAttribute(Attribute::NoAlias);
  return AttributeSet::get(context, kept);
}

class Retargeter {
public:
  explicit Retargeter(DeviceModule &dm) : dm(dm), module(dm.module), context(module.getContext()) {}

  Error run() {
    if (Error error = moveVariables())
      return error;
    addHiddenParameters();
    replaceSharedVariables();
    flattenPointers();
    return Error::success();
  }

private:
  DeviceModule &dm;
  Module &module;
  LLVMContext &context;
  std::vector<GlobalValue *> registered;
  std::vector<std::pair<GlobalVariable *, unsigned>> shared; ///< with the index of the SharedVariable

  Error moveVariables() {
    for (StringRef name : {"llvm.used", "llvm.compiler.used", "llvm.global_ctors"})
      if (GlobalVariable *list = module.getGlobalVariable(name))
        list->eraseFromParent();
    if (NamedMDNode *annotations = module.getNamedMetadata("nvvm.annotations"))
      annotations->eraseFromParent();
    const DataLayout &layout = module.getDataLayout();
    std::vector<GlobalVariable *> all;
    for (GlobalVariable &g : module.globals())
      all.push_back(&g);
    for (GlobalVariable *g : all) {
      g->removeDeadConstantUsers();
      g->setComdat(nullptr);
      if (g->use_empty() && (g->isDeclaration() || !g->isExternallyInitialized())) {
        g->eraseFromParent();
        continue;
      }
      if (g->getAddressSpace() == sharedSpace) {
        SharedVariable variable;
        std::string demangled = demangle(g->getName());
        size_t colon = demangled.rfind("::");
        variable.name = colon == std::string::npos ? demangled : demangled.substr(colon + 2);
        variable.size = g->isDeclaration() ? 0 : layout.getTypeAllocSize(g->getValueType()).getFixedValue();
        variable.alignment =
            std::max<uint64_t>(g->getAlign().valueOrOne().value(), layout.getABITypeAlign(g->getValueType()).value());
        shared.push_back({g, unsigned(dm.sharedVariables.size())});
        dm.sharedVariables.push_back(variable);
        continue;
      }
      if (g->isDeclaration() && !g->hasExternalWeakLinkage())
        return makeError("the variable '{0}' is defined in none of the sources given; where another one defines it, "
                         "that one is needed, too, and -rdc=true",
                         demangle(g->getName()));
      moveVariable(*g);
    }
    appendToCompilerUsed(module, registered); // the host may ask for them although no kernel does
    return Error::success();
  }

  void moveVariable(GlobalVariable &g) {
    std::string symbol = g.getName().str();
    // The host may write what it can name, so that its initial value is not to be relied on.
    bool constant = g.isConstant() && !g.isExternallyInitialized();
    const VariableKind kind = constant && g.hasLocalLinkage() ? VariableFixed
                              : g.getAddressSpace() == 4      ? VariableConstant
                                                              : VariableDevice;
    Constant *initializer = g.hasInitializer() ? g.getInitializer() : nullptr;
    auto *fresh = new GlobalVariable(module, g.getValueType(), constant, GlobalValue::InternalLinkage,
                                     initializer ? initializer : Constant::getNullValue(g.getValueType()), "", nullptr,
                                     GlobalVariable::NotThreadLocal, 0, g.isExternallyInitialized());
    fresh->setAlignment(std::max(g.getAlign().valueOrOne(), Align(constant ? 1 : 16)));
    if (g.getAddressSpace() == 0)
      g.replaceAllUsesWith(fresh);
    else
      replaceGlobal(g, *fresh);
    std::string name = "optiml.var." + symbol;
    fresh->setName(name);
    dm.variableSymbols[fresh->getName().str()] = {symbol, kind};
    if (g.isExternallyInitialized())
      registered.push_back(fresh);
    g.eraseFromParent();
  }

  void addHiddenParameters() {
    std::vector<Function *> old;
    for (Function &f : module)
      if (!f.isDeclaration())
        old.push_back(&f);
    DenseMap<Function *, Function *> fresh;
    Type *i32 = Type::getInt32Ty(context);
    for (Function *f : old) {
      std::vector<Type *> params = {PointerType::get(context, 0), i32, i32, i32};
      append_range(params, f->getFunctionType()->params());
      auto *type = FunctionType::get(f->getReturnType(), params, f->isVarArg());
      Function *g = Function::Create(type, GlobalValue::InternalLinkage, 0, "", &module);
      g->takeName(f);
      copyAttributes(*f, *g);
      g->splice(g->begin(), f);
      g->setSubprogram(f->getSubprogram());
      f->setSubprogram(nullptr);
      static const char *names[] = {"ctx", "tid.x", "tid.y", "tid.z"};
      for (unsigned i = 0; i < DeviceModule::hiddenParams; ++i)
        g->getArg(i)->setName(names[i]);
      for (Argument &a : f->args()) {
        Argument *b = g->getArg(a.getArgNo() + DeviceModule::hiddenParams);
        a.replaceAllUsesWith(b);
      }
      fresh[f] = g;
      if (isKernel(*f)) {
        Kernel kernel;
        kernel.symbol = g->getName().str();
        kernel.body = g;
        kernel.maxThreads = numericAttribute(*f, "nvvm.maxntid");
        kernel.minBlocks = numericAttribute(*f, "nvvm.minctasm");
        kernel.pointers = pointersOf(*f);
        dm.kernels.push_back(kernel);
      }
    }
    for (auto &[f, g] : fresh)
      for (Instruction &inst : make_early_inc_range(instructions(*g))) {
        // __ldg promises that nobody writes; take no program's word for it.
        if (MDNode *promise = inst.getMetadata(LLVMContext::MD_invariant_load)) {
          inst.setMetadata(LLVMContext::MD_invariant_load, nullptr);
          inst.setMetadata(readOnlyName, promise);
        }
        if (auto *call = dyn_cast<CallInst>(&inst))
          passHiddenArguments(*call, *g, fresh);
        else if (isa<FPToSIInst, FPToUIInst>(inst))
          saturate(cast<CastInst>(inst));
      }
    for (auto &[f, g] : fresh) {
      f->replaceAllUsesWith(g);
      f->eraseFromParent();
    }
  }

  /// A GPU clamps numbers that do not fit an integer; C++ leaves them undefined.
  void saturate(CastInst &conversion) {
    IRBuilder<> b(&conversion);
    Intrinsic::ID id = isa<FPToSIInst>(conversion) ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat;
    Value *value = conversion.getOperand(0);
    Value *clamped = b.CreateIntrinsic(id, {conversion.getType(), value->getType()}, {value});
    conversion.replaceAllUsesWith(clamped);
    conversion.eraseFromParent();
  }

  void copyAttributes(Function &f, Function &g) {
    g.setDSOLocal(true);
    g.setDoesNotThrow();
    // __noinline__ is for registers and code size on a GPU; kernels carry it always.
    if (f.hasFnAttribute(Attribute::NoReturn))
      g.setDoesNotReturn();
    bool keepNoAlias = dm.mode == ModePlain || dm.is(ModeTrace);
    for (unsigned i = 0; i < f.arg_size(); ++i)
      g.addParamAttrs(
          i + DeviceModule::hiddenParams,
          AttrBuilder(context, keptParameterAttributes(context, f.getAttributes().getParamAttrs(i), keepNoAlias)));
    const unsigned limits[] = {1024, 1024, 64};
    for (unsigned d = 0; d < 3; ++d)
      g.addParamAttr(1 + d,
                     Attribute::get(context, Attribute::Range, ConstantRange(APInt(32, 0), APInt(32, limits[d]))));
  }

  void passHiddenArguments(CallInst &call, Function &caller, const DenseMap<Function *, Function *> &fresh) {
    Function *callee = call.getCalledFunction();
    if (call.isInlineAsm())
      return;
    if (auto *target = dyn_cast<Function>(call.getCalledOperand());
        target && target->isDeclaration() && !fresh.contains(target))
      return; // intrinsic or library function
    std::vector<Value *> args = {caller.getArg(0), caller.getArg(1), caller.getArg(2), caller.getArg(3)};
    auto types = map_to_vector(args, [](Value *arg) { return arg->getType(); });
    append_range(types, call.getFunctionType()->params());
    append_range(args, call.args());
    auto *type = FunctionType::get(call.getType(), types, call.getFunctionType()->isVarArg());
    Value *target = call.getCalledOperand();
    if (callee)
      target = fresh.lookup(callee);
    CallInst *replacement = CallInst::Create(type, target, args, "", call.getIterator());
    replacement->setDebugLoc(call.getDebugLoc());
    for (unsigned i = 0; i < call.arg_size(); ++i) {
      AttrBuilder kept(context, keptParameterAttributes(context, call.getAttributes().getParamAttrs(i), false));
      for (Attribute attribute : kept.attrs())
        replacement->addParamAttr(i + DeviceModule::hiddenParams, attribute);
    }
    if (isa<FPMathOperator>(&call))
      replacement->copyFastMathFlags(&call);
    call.replaceAllUsesWith(replacement);
    replacement->takeName(&call);
    call.eraseFromParent();
  }

  /// Every use of a shared variable becomes an instruction: a call of the placeholder.
  void replaceSharedVariables() {
    if (shared.empty())
      return;
    Type *pointer = PointerType::get(context, 0);
    for (auto [g, index] : shared) {
      std::vector<Constant *> constants = {g};
      convertUsersOfConstantsToInstructions(constants);
      // A front block where the addresses are computed would lengthen live ranges; one call a use is merged later.
      while (!g->use_empty()) {
        auto *user = cast<Instruction>(*g->user_begin());
        Instruction *at = user;
        if (auto *phi = dyn_cast<PHINode>(user)) {
          for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
            if (phi->getIncomingValue(i) == g)
              at = phi->getIncomingBlock(i)->getTerminator();
        }
        IRBuilder<> b(at);
        b.SetCurrentDebugLocation(user->getDebugLoc());
        Value *address = dm.sharedAddress(b, index);
        if (user->getOpcode() == Instruction::AddrSpaceCast && user->getType() == pointer) {
          user->replaceAllUsesWith(address);
          user->eraseFromParent();
          continue;
        }
        user->replaceUsesOfWith(g, b.CreateAddrSpaceCast(address, g->getType()));
      }
      g->eraseFromParent();
    }
  }

  /// Pointers that instructions hold in an address space of their own. Global and constant ones are plain pointers
  /// here; a shared one is the offset from the block's base, as programs see it in __cvta_generic_to_shared.
  void flattenPointers() {
    Type *plain = PointerType::get(context, 0);
    auto special = [](Type *type) {
      auto *pointer = dyn_cast<PointerType>(type);
      return pointer && pointer->getAddressSpace() != 0;
    };
    for (Function &f : module) {
      if (f.isDeclaration())
        continue;
      SetVector<Instruction *> casts;
      for (Instruction &inst : instructions(f))
        if (inst.getOpcode() == Instruction::AddrSpaceCast)
          casts.insert(&inst);
      for (Instruction *cast : casts) {
        Value *from = cast->getOperand(0);
        bool fromShared = from->getType()->getPointerAddressSpace() == sharedSpace,
             toShared = cast->getType()->getPointerAddressSpace() == sharedSpace;
        IRBuilder<> b(cast);
        if (fromShared != toShared) {
          // Keep the cast's type until all operands have lost theirs.
          Value *base = b.CreatePtrToInt(dm.load(b, Field::Shared), b.getInt64Ty());
          Value *address = b.CreatePtrToInt(from, b.getInt64Ty());
          Value *moved = toShared ? b.CreateSub(address, base) : b.CreateAdd(address, base);
          Value *result = b.CreateIntToPtr(moved, cast->getType());
          cast->replaceAllUsesWith(result);
          cast->eraseFromParent();
        }
      }
      for (Instruction &inst : instructions(f)) {
        if (special(inst.getType()))
          inst.mutateType(plain);
        for (Use &use : inst.operands())
          if (auto *constant = dyn_cast<Constant>(use.get()); constant && special(constant->getType()))
            use.set(flattenConstant(constant));
      }
      for (Instruction &inst : make_early_inc_range(instructions(f))) {
        if (inst.getOpcode() == Instruction::AddrSpaceCast) {
          inst.replaceAllUsesWith(inst.getOperand(0));
          inst.eraseFromParent();
        } else if (auto *call = dyn_cast<IntrinsicInst>(&inst)) {
          renameIntrinsic(*call);
        }
      }
    }
  }

  Constant *flattenConstant(Constant *constant) {
    if (isa<PoisonValue>(constant))
      return PoisonValue::get(PointerType::get(context, 0));
    if (isa<UndefValue>(constant))
      return UndefValue::get(PointerType::get(context, 0));
    if (auto *expression = dyn_cast<ConstantExpr>(constant);
        expression && expression->getOpcode() == Instruction::AddrSpaceCast)
      return expression->getOperand(0);
    return ConstantPointerNull::get(PointerType::get(context, 0));
  }

  /// An overloaded intrinsic whose pointer operands changed their type needs another declaration.
  void renameIntrinsic(IntrinsicInst &call) {
    SmallVector<Type *, 4> overloads;
    FunctionType *type =
        FunctionType::get(call.getType(), map_to_vector(call.args(), [](Value *arg) { return arg->getType(); }), false);
    if (type == call.getFunctionType() || !Intrinsic::getIntrinsicSignature(call.getIntrinsicID(), type, overloads))
      return;
    call.setCalledFunction(Intrinsic::getOrInsertDeclaration(&module, call.getIntrinsicID(), overloads));
  }
};

} // namespace

Error optiml::emu::retargetModule(DeviceModule &dm) { return Retargeter(dm).run(); }
