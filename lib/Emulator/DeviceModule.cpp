//===- DeviceModule.cpp - sites, runtime functions, context fields --------===//
#include "DeviceModule.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstddef>

using namespace llvm;
using namespace optiml::emu;

static unsigned fieldOffset(Field field) {
  switch (field) {
  case Field::Tid: return offsetof(ThreadContext, tid);
  case Field::Ctaid: return offsetof(ThreadContext, ctaid);
  case Field::Ntid: return offsetof(ThreadContext, ntid);
  case Field::Nctaid: return offsetof(ThreadContext, nctaid);
  case Field::Shared: return offsetof(ThreadContext, shared);
  case Field::SiteCache: return offsetof(ThreadContext, siteCache);
  case Field::BlockCounts: return offsetof(ThreadContext, blockCounts);
  case Field::Lane: return offsetof(ThreadContext, lane);
  case Field::DynamicShared: return offsetof(ThreadContext, dynamicShared);
  case Field::Workspace: return offsetof(ThreadContext, workspace);
  }
  llvm_unreachable("all fields are listed");
}

Value *DeviceModule::fieldAddress(IRBuilder<> &b, Value *context, Field field, unsigned dimension) {
  return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), context, fieldOffset(field) + 4 * dimension);
}

unsigned DeviceModule::archOf(const Module &module) {
  unsigned arch = 0;
  for (const Function &f : module) {
    StringRef cpu = f.getFnAttribute("target-cpu").getValueAsString();
    if (cpu.consume_front("sm_") && !cpu.consumeInteger(10, arch))
      break;
  }
  return arch;
}

Value *DeviceModule::load(IRBuilder<> &b, Field field, unsigned dimension) {
  Function &f = *b.GetInsertBlock()->getParent();
  bool pointer = field == Field::Shared || field == Field::SiteCache || field == Field::BlockCounts;
  Type *type = pointer ? static_cast<Type *>(b.getPtrTy()) : b.getInt32Ty();
  LoadInst *load = b.CreateAlignedLoad(type, fieldAddress(b, context(f), field, dimension), Align(pointer ? 8 : 4));
  // Constant while one call of a thread or block function runs, whatever the kernel stores.
  load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(b.getContext(), {}));
  return load;
}

Value *DeviceModule::linearThread(IRBuilder<> &b) {
  Function &f = *b.GetInsertBlock()->getParent();
  Value *row = b.CreateAdd(tid(f, 1), b.CreateMul(tid(f, 2), load(b, Field::Ntid, 1)));
  return b.CreateAdd(tid(f, 0), b.CreateMul(row, load(b, Field::Ntid, 0)));
}

FunctionCallee DeviceModule::runtime(StringRef name) {
  LLVMContext &c = module.getContext();
  Type *v = Type::getVoidTy(c), *p = PointerType::get(c, 0), *i32 = Type::getInt32Ty(c), *i64 = Type::getInt64Ty(c),
       *f64 = Type::getDoubleTy(c);
  struct Row {
    const char *name;
    Type *result;
    std::vector<Type *> params; ///< after the context
  };
  const Row rows[] = {
#define RUNTIME_FUNCTION(name, result, ...) {#name, result, {__VA_ARGS__}},
#include "RuntimeFunctions.def"
  };
  for (const Row &row : rows) {
    if (name != row.name)
      continue;
    std::vector<Type *> params = {p};
    append_range(params, row.params);
    FunctionCallee callee = module.getOrInsertFunction(name, FunctionType::get(row.result, params, false));
    auto *f = cast<Function>(callee.getCallee());
    f->setDoesNotThrow();
    // The runtime tells by the place of a call which lanes met in it: there must be only one.
    if (name == "optiml_activemask")
      f->addFnAttr(Attribute::NoDuplicate);
    // What threads meet in stays on one path, as on a GPU.
    if (name.starts_with("optiml_barrier") || name == "optiml_syncwarp" || name == "optiml_shuffle" ||
        name == "optiml_vote" || name == "optiml_redux" || name == "optiml_matrix_product" ||
        name.starts_with("optiml_match"))
      f->addFnAttr(Attribute::Convergent);
    if (name == "optiml_unsupported" || name == "optiml_assert_fail" || name == "optiml_trap") {
      f->setDoesNotReturn();
      f->addFnAttr(Attribute::Cold);
    }
    return callee;
  }
  llvm_unreachable("no such runtime function");
}

CallInst *DeviceModule::call(IRBuilder<> &b, StringRef name, ArrayRef<Value *> args) {
  std::vector<Value *> all = {context(*b.GetInsertBlock()->getParent())};
  append_range(all, args);
  return b.CreateCall(runtime(name), all);
}

unsigned DeviceModule::addSite(const Instruction *at, uint32_t size, AccessKind kind, uint32_t alignment) {
  Site site;
  site.size = size;
  site.kind = kind;
  site.alignment = alignment;
  const DILocation *location = at->getDebugLoc();
  while (location && (systemFolders.hold(*location) || location->getLine() == 0) && location->getInlinedAt())
    location = location->getInlinedAt();
  site.function = functionName(location, *at->getFunction());
  if (location) {
    site.file = filePath(*location);
    site.line = location->getLine();
    site.column = location->getColumn();
  }
  auto key = std::make_tuple(site.function, site.file, site.line, site.column, size, uint32_t(kind), alignment);
  // Accesses share a site only in ModeTrace's absence: there each static instruction is counted by itself.
  auto [entry, fresh] = siteIndex.try_emplace(key, unsigned(sites.size()));
  if (!fresh && !is(ModeTrace) && !is(ModeBounds))
    return entry->second;
  sites.push_back(std::move(site));
  return unsigned(sites.size() - 1);
}

Value *DeviceModule::site(IRBuilder<> &b, uint32_t size, AccessKind kind, uint32_t alignment) {
  return b.getInt32(addSite(&*b.GetInsertPoint(), size, kind, alignment));
}

Constant *DeviceModule::string(StringRef text) {
  Constant *&slot = strings[text.str()];
  if (!slot) {
    Constant *data = ConstantDataArray::getString(module.getContext(), text);
    auto *global = new GlobalVariable(module, data->getType(), true, GlobalValue::PrivateLinkage, data, "optiml.str");
    global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    slot = global;
  }
  return slot;
}

Value *DeviceModule::sharedAddress(IRBuilder<> &b, unsigned index) {
  Type *pointer = b.getPtrTy();
  FunctionCallee placeholder =
      module.getOrInsertFunction(sharedPlaceholder, FunctionType::get(pointer, {pointer, b.getInt32Ty()}, false));
  auto *f = cast<Function>(placeholder.getCallee());
  f->setDoesNotAccessMemory();
  f->setDoesNotThrow();
  f->setWillReturn();
  f->setSpeculatable();
  f->addRetAttr(Attribute::NonNull);
  return b.CreateCall(placeholder, {context(*b.GetInsertBlock()->getParent()), b.getInt32(index)});
}

void DeviceModule::replaceByUnsupported(Instruction &inst, const std::string &construct) {
  IRBuilder<> b(&inst);
  call(b, "optiml_unsupported", {string(construct), site(b)});
  if (!inst.getType()->isVoidTy())
    inst.replaceAllUsesWith(Constant::getNullValue(inst.getType()));
  inst.eraseFromParent();
}

bool optiml::emu::isThreadLocalPointer(const Value *pointer) {
  SmallVector<const Value *, 4> objects;
  getUnderlyingObjects(pointer, objects, nullptr, 0);
  return all_of(objects, [](const Value *object) {
    if (isa<AllocaInst>(object))
      return true;
    // A by-value parameter lives in the caller's frame.
    const auto *argument = dyn_cast<Argument>(object);
    return argument && argument->hasByValAttr();
  });
}
