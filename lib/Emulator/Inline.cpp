//===- Inline.cpp - device functions inlined, locals promoted -------------===//
//
// A GPU compiler inlines nearly everything, and a checker should see memory, not local variables. So every device
// function that is not recursive goes into its callers, and allocas become values; nothing else is optimized yet, or
// the bugs that checks look for would be optimized away.
//
// Small aligned copies of structures (`float4 v = p[i]`) become loads and stores of vectors first: that is what they
// are on the GPU, and SROA would otherwise split them into four accesses.
//
//===----------------------------------------------------------------------===//
#include "DeviceModule.h"
#include "Optimize.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Metadata.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Mem2Reg.h"

using namespace llvm;
using namespace optiml::emu;

namespace {

struct Member {
  uint64_t offset, size;
  Type *type;
};

/// The scalar members of the copied structure, from !tbaa.struct; empty when unknown.
SmallVector<Member, 8> copiedMembers(const MemCpyInst &copy) {
  SmallVector<Member, 8> members;
  LLVMContext &context = copy.getContext();
  const MDNode *node = copy.getMetadata(LLVMContext::MD_tbaa_struct);
  for (unsigned i = 0; node && i + 2 < node->getNumOperands(); i += 3) {
    uint64_t offset = mdconst::extract<ConstantInt>(node->getOperand(i))->getZExtValue();
    uint64_t size = mdconst::extract<ConstantInt>(node->getOperand(i + 1))->getZExtValue();
    StringRef name;
    if (auto *tag = dyn_cast<MDNode>(node->getOperand(i + 2)); tag && tag->getNumOperands() > 1)
      if (auto *type = dyn_cast<MDNode>(tag->getOperand(1)); type && type->getNumOperands() > 0)
        if (auto *text = dyn_cast<MDString>(type->getOperand(0)))
          name = text->getString();
    if (name == "float" && size == 4)
      members.push_back({offset, size, Type::getFloatTy(context)});
    else if (name == "double" && size == 8)
      members.push_back({offset, size, Type::getDoubleTy(context)});
    else if (isPowerOf2_64(size) && size <= 8)
      members.push_back({offset, size, Type::getIntNTy(context, unsigned(size) * 8)});
    else
      return {};
  }
  return members;
}

/// Replaces a small copy by loads and stores of its members, or of one vector where it is aligned as one.
void expandCopy(MemCpyInst &copy) {
  auto *length = dyn_cast<ConstantInt>(copy.getLength());
  if (!length || copy.isVolatile() || length->isZero() || length->getZExtValue() > 64)
    return;
  uint64_t size = length->getZExtValue();
  Align to = copy.getDestAlign().valueOrOne(), from = copy.getSourceAlign().valueOrOne();
  SmallVector<Member, 8> members = copiedMembers(copy);
  if (sum_of(map_range(members, [](const Member &m) { return m.size; }), uint64_t(0)) != size)
    members.clear(); // unions, padding: bytes that no member names may matter
  bool whole = isPowerOf2_64(size) && size <= 16 && to >= size && from >= size;
  bool uniform = !members.empty() && all_of(members, [&](const Member &m) { return m.type == members[0].type; });
  if (whole) {
    LLVMContext &context = copy.getContext();
    Type *type;
    if (uniform)
      type = members.size() == 1 ? members[0].type : FixedVectorType::get(members[0].type, unsigned(members.size()));
    else if (size == 16)
      type = FixedVectorType::get(Type::getInt32Ty(context), 4);
    else
      type = Type::getIntNTy(context, unsigned(size) * 8);
    members = {{0, size, type}};
  } else if (members.empty()) {
    return;
  }
  IRBuilder<> b(&copy);
  SmallVector<Value *, 8> values;
  for (const Member &m : members)
    values.push_back(b.CreateAlignedLoad(m.type,
                                         b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), copy.getSource(), m.offset),
                                         commonAlignment(from, m.offset)));
  for (auto [m, value] : zip(members, values))
    b.CreateAlignedStore(value, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), copy.getDest(), m.offset),
                         commonAlignment(to, m.offset));
  copy.eraseFromParent();
}

} // namespace

void optiml::emu::inlineDeviceFunctions(DeviceModule &dm) {
  SmallPtrSet<Function *, 16> kernels;
  for (Kernel &kernel : dm.kernels) {
    kernels.insert(kernel.body);
    kernel.body->setLinkage(GlobalValue::ExternalLinkage); // a root for dead code elimination
  }
  for (Function &f : dm.module) {
    if (f.isDeclaration())
      continue;
    for (Instruction &inst : make_early_inc_range(instructions(f)))
      if (auto *copy = dyn_cast<MemCpyInst>(&inst))
        expandCopy(*copy);
    if (!kernels.contains(&f))
      f.addFnAttr(Attribute::AlwaysInline); // the inliner leaves recursive calls alone
  }

  PassBuilder builder;
  PassAnalyses analyses(builder);
  ModulePassManager passes;
  passes.addPass(GlobalDCEPass());
  passes.addPass(AlwaysInlinerPass(/*InsertLifetime=*/true));
  passes.addPass(createModuleToFunctionPassAdaptor(PromotePass()));
  passes.run(dm.module, analyses.modules);
  if (dm.mode & (ModeBounds | ModeVerify))
    checkConstantLocals(dm);

  FunctionPassManager locals;
  locals.addPass(SROAPass(SROAOptions::ModifyCFG));
  locals.addPass(SimplifyCFGPass(SimplifyCFGOptions().convertSwitchRangeToICmp(false)));
  locals.addPass(SROAPass(SROAOptions::ModifyCFG));
  locals.addPass(EarlyCSEPass()); // equal addresses become one value, which needs one check
  ModulePassManager rest;
  rest.addPass(createModuleToFunctionPassAdaptor(std::move(locals)));
  rest.addPass(GlobalDCEPass());
  PassAnalyses fresh(builder); // instructions were added
  rest.run(dm.module, fresh.modules);

  for (Function &f : dm.module)
    for (Instruction &inst : instructions(f)) {
      // Programs reinterpret memory at will (int and float views of one buffer); nvcc lets them.
      inst.setMetadata(LLVMContext::MD_tbaa, nullptr);
      inst.setMetadata(LLVMContext::MD_tbaa_struct, nullptr);
    }
}
