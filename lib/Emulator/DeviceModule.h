//===- DeviceModule.h - device IR on its way to the host --------*- C++ -*-===//
//
// What the passes that turn NVPTX IR into host code share: the module, its mode, its kernels, the table of sites, and
// the runtime's functions (optiml/Emulator/ABI.h).
//
// After `retargetModule` every function defined in the module has four hidden parameters in front: the ThreadContext
// and the three thread indices. The indices are passed as values so that in the block loop they are its induction
// variables.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EMULATOR_DEVICEMODULE_H
#define OPTIML_LIB_EMULATOR_DEVICEMODULE_H

#include "SourcePlaces.h"
#include "optiml/Emulator/ABI.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace optiml::emu {

/// Offsets of ThreadContext's fields, for generated code.
enum class Field : unsigned {
  Tid,
  Ctaid,
  Ntid,
  Nctaid,
  Shared,
  SiteCache,
  BlockCounts,
  Lane,
  DynamicShared,
  Workspace
};

struct SharedVariable {
  std::string name;  ///< as in the source
  uint64_t size = 0; ///< 0: dynamic
  uint64_t alignment = 1;
  bool reserved = false; ///< the GPU's own, for cooperative groups
  bool isDynamic() const { return size == 0; }
};

struct Pointer {
  unsigned parameter;
  uint64_t offset;
  std::string pointee;
};

/// Where a kernel may write, but for shared memory and its threads' own.
struct KernelWrites {
  std::set<std::pair<unsigned, unsigned>> places; ///< through the pointers there: parameter and offset in it
  bool variables = false;                         ///< to variables of the module
  bool elsewhere = false;                         ///< anywhere
};

struct Kernel {
  std::string symbol;
  llvm::Function *body = nullptr; ///< hidden parameters, then the kernel's own
  unsigned maxThreads = 0, minBlocks = 0;
  std::vector<Pointer> pointers; ///< see PointerDesc
  // Found after inlining:
  uint64_t staticShared = 0;
  std::vector<std::pair<unsigned, uint64_t>> shared; ///< (index into DeviceModule::sharedVariables, offset)
  bool mayWait = false;                              ///< cannot run as a loop over the block's threads
  bool usesWarpOps = false;
  bool dataDecides = true; ///< dataDecidesCourse
  unsigned granule = 16;
  KernelWrites writes; ///< ModeVerify
};

struct Site {
  std::string function, file;
  uint32_t line = 0, column = 0, size = 0;
  AccessKind kind = AccessLoad;
  uint32_t alignment = 1;
  uint32_t block = 0, level = 0; ///< ModeTrace: see SiteDesc
};

/// A piece of code in one kernel: see CodeDesc.
struct Code {
  std::string kernel;
  CodePlace place;
  std::string constants;
};

/// One inline bounds check: `branch` goes to the runtime when the address is not known good.
struct InlineCheck {
  llvm::BranchInst *branch;
  llvm::Value *pointer;
  uint32_t size, alignment;
  /// A slot of the site cache shared by the accesses with the same base; its span is the object's size in bytes.
  unsigned group;
};

class DeviceModule {
public:
  static constexpr unsigned hiddenParams = 4;

  DeviceModule(llvm::Module &module, uint32_t mode, const Toolchain &toolchain)
      : module(module), mode(mode), systemFolders(toolchain), arch(archOf(module)) {}

  llvm::Module &module;
  uint32_t mode;
  std::vector<Kernel> kernels;
  std::vector<SharedVariable> sharedVariables;
  std::vector<Site> sites;
  std::vector<BlockDesc> blocks;
  std::map<llvm::Function *, std::vector<InlineCheck>> checks; ///< ModeBounds
  SystemFolders systemFolders; ///< places in headers below these are reported where they were inlined
  std::map<std::string, std::pair<std::string, VariableKind>> variableSymbols; ///< by IR name: mangled symbol

  std::vector<CodePlace> codePlaces; ///< ModeCoverage, before inlining
  std::vector<Code> code;            ///< after it
  /// Of the code of each function, by symbol, and of it and what it calls; as it came from Clang.
  std::map<std::string, uint64_t> functionHashes, kernelHashes;
  std::set<std::string> testNaN; ///< functions: KernelDesc::testsNaN
  llvm::GlobalVariable *covered = nullptr, *reachable = nullptr;

  unsigned arch; ///< compute capability × 10, by Clang's attributes

  bool is(ModuleMode bit) const { return mode & bit; }

  static llvm::Value *context(llvm::Function &f) { return f.getArg(0); }
  static llvm::Value *tid(llvm::Function &f, unsigned dimension) { return f.getArg(1 + dimension); }

  /// Loads a 32-bit or pointer field that does not change while a function runs.
  llvm::Value *load(llvm::IRBuilder<> &b, Field field, unsigned dimension = 0);
  llvm::Value *fieldAddress(llvm::IRBuilder<> &b, llvm::Value *context, Field field, unsigned dimension = 0);
  /// The thread's linear index in its block.
  llvm::Value *linearThread(llvm::IRBuilder<> &b);

  /// One of the functions of ABI.h.
  llvm::FunctionCallee runtime(llvm::StringRef name);
  /// A call of a runtime function, the context first.
  llvm::CallInst *call(llvm::IRBuilder<> &b, llvm::StringRef name, llvm::ArrayRef<llvm::Value *> args = {});
  /// The builder's place as a site.
  llvm::Value *site(llvm::IRBuilder<> &b, uint32_t size = 0, AccessKind kind = AccessLoad, uint32_t alignment = 1);
  unsigned addSite(const llvm::Instruction *at, uint32_t size, AccessKind kind, uint32_t alignment);
  /// Replaces `inst` by a call that stops the program when it is reached.
  void replaceByUnsupported(llvm::Instruction &inst, const std::string &construct);
  llvm::Constant *string(llvm::StringRef text);
  /// The address of sharedVariables[index], a placeholder until the layout is known.
  llvm::Value *sharedAddress(llvm::IRBuilder<> &b, unsigned index);

private:
  static unsigned archOf(const llvm::Module &module);

  std::map<std::string, llvm::Constant *> strings;
  std::map<std::tuple<std::string, std::string, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>, unsigned> siteIndex;
};

/// The name of the placeholder that stands for a shared variable's address until the layout is known:
/// `ptr optiml.shared(ptr context, i32 index)`.
constexpr const char *sharedPlaceholder = "optiml.shared";
/// Bytes that the GPU keeps for cooperative groups in every block (%reserved_smem_offset_1).
constexpr uint64_t reservedSharedBytes = 1024;

// The passes, in their order.
/// Host data layout, one address space, hidden parameters.
llvm::Error retargetModule(DeviceModule &dm);
/// Scoped atomic intrinsics become instructions.
void lowerAtomics(DeviceModule &dm);
/// Inlines device functions and promotes locals, so that what is left in memory is memory.
void inlineDeviceFunctions(DeviceModule &dm);
/// Accesses beside a thread's own variables at places that are known before anything runs. Promotion drops them.
void checkConstantLocals(DeviceModule &dm);
/// NVVM intrinsics, inline PTX, printf & co. become runtime calls or plain instructions.
void lowerIntrinsics(DeviceModule &dm);
/// Whether what the kernel touches, or what of it runs, may depend on the content of memory.
bool dataDecidesCourse(const llvm::Function &kernel);
/// Places shared variables; decides what may run as a loop; puts yields into loops that poll memory.
void layOutShared(DeviceModule &dm);
void analyzeWaiting(DeviceModule &dm);
/// ModeVerify: fills Kernel::writes.
void findWrites(DeviceModule &dm);
/// ModeBounds and ModeVerify.
void instrumentAccesses(DeviceModule &dm);
void instrumentTrace(DeviceModule &dm);
void instrumentShadow(DeviceModule &dm);
/// Conversions from float to bfloat16 become integer operations. To be called once twins are in.
void lowerBrainFloats(llvm::Module &module);
/// ModeCoverage: hashes the code as it is at first; numbers the user's before inlining; counts it after; and once the
/// module is optimized, notes what is left of it.
void hashCode(DeviceModule &dm);
std::optional<CodePlace> ownPlace(const DeviceModule &dm, const llvm::Instruction &inst);
void markCode(DeviceModule &dm);
void countCode(DeviceModule &dm);
void findReachableCode(DeviceModule &dm);
/// A store there is one of countCode's.
bool isCoverage(const llvm::Value *pointer);
constexpr const char *coveredName = "optiml.code";
/// Thread and block functions, tables, registration.
void emitTables(DeviceModule &dm, bool registerAtStart);

/// Whether the pointer can only point into the thread's own stack.
bool isThreadLocalPointer(const llvm::Value *pointer);

/// Translates one piece of inline PTX at its place; false when it holds something unknown.
bool lowerInlinePtx(DeviceModule &dm, llvm::CallInst &call, std::string &unknown);

} // namespace optiml::emu

#endif
