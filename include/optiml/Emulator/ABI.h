//===- ABI.h - between emulated device code and its runtime -----*- C++ -*-===//
//
// Device code, retargeted to the host by lib/Emulator, calls the functions declared here; lib/Emulator/Runtime (the
// archive liboptiml-cudart.a) defines them. Both sides include this header; nothing else is shared between them. It
// includes no LLVM header, and the runtime links no LLVM.
//
// How device code is rewritten:
//  - every device function gains a first parameter `ThreadContext *`; every direct and indirect call passes it on;
//  - shared variables become offsets into ThreadContext::shared; __device__ and __constant__ variables become ordinary
//    globals; all pointers are in one address space (the host's);
//  - threadIdx & co. become loads of ThreadContext fields; warp and block intrinsics become calls of optiml_* below;
//  - every access that is not provably to the thread's own stack is checked or traced as ModuleMode says.
//
// A compiled module exports one object `optiml_module` of type ModuleDesc and registers it in a constructor by
// optiml_register_module (programs); replayed modules are shared objects and are found by dlsym.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EMULATOR_ABI_H
#define OPTIML_EMULATOR_ABI_H

#include <stddef.h>
#include <stdint.h>

namespace optiml::emu {

constexpr uint32_t abiVersion = 13;

/// What the instrumentation of a module does. Bits.
enum ModuleMode : uint32_t {
  ModePlain = 0,
  ModeBounds =
      1, ///< global and shared bounds, alignment: inline check against ThreadContext::siteCache, then optiml_check
  ModeVerify = 2,      ///< every access goes to optiml_access: bounds, races, uninitialized shared memory
  ModeTrace = 4,       ///< optimized first; every access goes to optiml_trace, every basic block counts itself
  ModeShadow = 8,      ///< every floating-point value has a double twin and a magnitude twin (sum of absolute terms)
  ModeCoverage = 16,   ///< tells which code ran (CodeDesc)
  ModeConditions = 32, ///< of programs: tells how near each condition came to either outcome (ConditionDesc)
};

/// Volatile accesses are the polling and flag-setting kind: the race checker lets them synchronize as atomics do.
enum AccessKind : uint32_t {
  AccessLoad = 0,
  AccessStore = 1,
  AccessAtomic = 2,
  AccessVolatileLoad = 3,
  AccessVolatileStore = 4,
  AccessAtomicBlock = 5,  ///< atomic among the threads of one block only (atomicAdd_block)
  AccessReadOnlyLoad = 6, ///< __ldg: through a cache that sees no stores of the same kernel
  AccessFirstLoad = 7     ///< what atomicCAS of the same place expects first
};

/// One static memory access (or barrier, or unsupported construct) of the source, for messages and traces.
struct SiteDesc {
  const char *function; ///< demangled name of the function that holds it
  const char *file;
  uint32_t line, column;
  uint32_t size; ///< bytes of one access
  AccessKind kind;
  uint32_t alignment; ///< what the address must be a multiple of (at most 16)
  uint32_t block;     ///< ModeTrace: which BlockDesc it is in
  uint32_t level; ///< ModeTrace: how many loads of the block, it included, wait for each other; 0: nothing waits for it
};

/// What one lane holds of a product of a 16x8 and an 8x8 matrix by a warp, and of the 16x8 sums that it is added to.
struct MatrixPieces {
  float sums[4];
  float a[4], b[2]; ///< the lower 13 bits do not count
};

/// Counted instructions of one basic block in ModeTrace, per execution by one thread, after optimization.
struct BlockDesc {
  uint16_t fp32, fp64, int32, special, tensor, control, memory, barrier, other;
  uint16_t depth; ///< longest chain of dependent loads in the block (for latency)
  uint16_t chain; ///< longest chain of dependent instructions in the block; how long loads take is not in it
};

struct ParamDesc {
  uint32_t offset, size; ///< in the kernel's parameter space (natural layout of the original parameter list)
  uint8_t isPointer;
};

/// A pointer in a parameter, which may be one or hold several.
struct PointerDesc {
  uint32_t parameter, offset;
  const char *pointee; ///< "float", or places in a structure: recordLayout in Signature.h
};

/// ModeVerify: a pointer in a parameter through which the kernel may write.
struct WrittenDesc {
  uint32_t parameter, offset;
};

/// What else it may write to, but for shared memory and its threads' own: variables of its module, or anything.
enum KernelWritesBesides : uint32_t { WritesVariables = 1, WritesElsewhere = 2 };

struct SharedVarDesc {
  const char *name;
  uint32_t offset, size; ///< in the block's shared memory; ModeBounds/ModeVerify leave a 64-byte gap after each
};

struct ThreadContext;
using ThreadFn = void (*)(ThreadContext *, void **args);

struct KernelDesc {
  const char *symbol; ///< mangled name, as passed to __cudaRegisterFunction
  const char *name;   ///< demangled
  ThreadFn thread;    ///< runs one thread; args[i] points to the i-th parameter's value
  ThreadFn block;     ///< runs all threads of a block one after the other, in a loop; null when the kernel (with what
                      ///< it calls) may wait for other threads: barriers, warp operations, spin loops, indirect calls
  uint32_t staticShared; ///< bytes of static shared memory, gaps included; dynamic shared memory follows, 16-aligned
  uint32_t numParams;
  const ParamDesc *params;
  uint32_t numSharedVars;
  const SharedVarDesc *sharedVars;
  uint32_t granule;               ///< smallest access in bytes (1, 2, 4, 8, 16): the unit of race shadow
  uint32_t usesWarpOps;           ///< reaches a warp intrinsic
  uint32_t maxThreads, minBlocks; ///< __launch_bounds__, 0 when absent
  uint64_t hash;        ///< ModeCoverage: of its code and that of what it calls, without names of places; else 0
  uint32_t testsNaN;    ///< ModeCoverage: it, or what it calls, asks whether a number is NaN
  uint32_t dataDecides; ///< ModeCoverage: what it touches, or what of it runs, may depend on the content of memory
  uint32_t numPointers;
  const PointerDesc *pointers;
  uint32_t numWritten;
  uint32_t writesBesides; ///< KernelWritesBesides
  const WrittenDesc *written;
};

enum VariableKind : uint32_t {
  VariableDevice,
  VariableConstant, ///< __constant__
  VariableFixed,    ///< a constant of the file's own, such as a string; its name says nothing outside
};

struct GlobalVarDesc {
  const char *symbol; ///< mangled, as passed to __cudaRegisterVar
  void *address;
  uint64_t size;
  VariableKind kind;
};

/// ModeCoverage: a basic block of the user's code, in one kernel.
struct CodeDesc {
  const char *kernel;   ///< mangled; empty in a function that calls itself, which all kernels share
  const char *function; ///< demangled name of the function that holds it
  const char *file;
  uint32_t line;
  const char *constants; ///< "4,1024": integers in the conditions on the way there, the nearest condition's first
  uint64_t functionHash; ///< of the code of the function that holds it
  uint64_t place;        ///< the same for all instances of a template, and all kernels that hold the function
};

/// ModeConditions: a comparison of the user's code, or another value that decides where it goes on; in device code, of
/// one kernel. Or a block of host code that works with the GPU: it has the outcome true each time it runs.
struct ConditionDesc {
  const char *function; ///< demangled name of the function that holds it
  const char *file;
  uint32_t line;
  uint32_t isFloat;
  uint64_t functionHash; ///< of the code of that function
  uint64_t place;        ///< as in CodeDesc
  uint8_t least[2];      ///< by outcome (false, true): the distance of integer operands at the edge to the other
  uint8_t leads[2];      ///< of host code, by outcome: work with the GPU may follow that does not follow otherwise
  const char *work;      ///< such a block's: kernels that it may launch, "k1,k2"; "*": copies and the like. Else null
};

/// How near it came to either outcome. Zero: it never had that outcome.
struct ConditionRecord {
  uint64_t nearness[2]; ///< the complement of the least distance of the operands (of floats: of that number's bits)
  int64_t left[2], right[2]; ///< the operands there (floats: bits of doubles)
};

struct ModuleDesc {
  uint32_t version; ///< abiVersion
  uint32_t mode;    ///< ModuleMode bits
  uint32_t numKernels, numVars, numSites, numBlocks, numCode;
  const KernelDesc *kernels;
  const GlobalVarDesc *vars;
  const SiteDesc *sites;
  const BlockDesc *blocks;
  const CodeDesc *code;
  const uint8_t *covered;   ///< one a CodeDesc: whether it ran
  const uint8_t *reachable; ///< one a CodeDesc: zero where the compiler has shown that it never runs
  uint32_t arch;            ///< compute capability × 10 that the code was compiled for
};

/// One slot a site: an access of SiteDesc::size bytes at p is known good when p - lo <= span (unsigned).
struct SiteCache {
  uint64_t lo, span;
};

/// State of one CUDA thread (fibers), or of the one that runs (block loop). The fields up to `blockCounts` are read by
/// generated code: do not reorder without the generator (lib/Emulator).
struct ThreadContext {
  uint32_t tid[3];
  uint32_t ctaid[3];
  uint32_t ntid[3];
  uint32_t nctaid[3];
  char *shared;           ///< base of the block's shared memory
  SiteCache *siteCache;   ///< of this worker, numSites slots; reset when the block changes (shared memory moves)
  uint32_t *blockCounts;  ///< ModeTrace: of this thread, numBlocks counters
  uint32_t lane;          ///< linear thread index in the block % 32
  uint32_t dynamicShared; ///< bytes
  uint32_t workspace[2];  ///< address of what the blocks of a cooperative launch meet at, high half first; else 0
  void *runtime;          ///< the runtime's own state of this thread
};

enum ShuffleMode : uint32_t { ShuffleIdx, ShuffleUp, ShuffleDown, ShuffleBfly };
enum VoteMode : uint32_t { VoteAll, VoteAny, VoteUni, VoteBallot };
enum ReduceOp : uint32_t { ReduceAdd, ReduceMin, ReduceMax, ReduceUMin, ReduceUMax, ReduceAnd, ReduceOr, ReduceXor };
enum BarrierOp : uint32_t { BarrierPopc, BarrierAnd, BarrierOr };

/// Double twin and magnitude (sum of absolute terms) of a float or double in memory, ModeShadow.
struct Shadow {
  double value, magnitude;
};

} // namespace optiml::emu

extern "C" {
void optiml_register_module(const optiml::emu::ModuleDesc *module);

/// ModeConditions, of host code and of device code. `constants`, of host code: "0,1,4096", the integers that main() is
/// written with; null: of device code.
void optiml_register_conditions(const optiml::emu::ConditionDesc *, optiml::emu::ConditionRecord *, uint32_t number,
                                const char *constants);
void optiml_condition(optiml::emu::ConditionRecord *, int64_t left, int64_t right, uint32_t outcome);
void optiml_condition_float(optiml::emu::ConditionRecord *, double left, double right, uint32_t outcome);

// Checks. Each may stop the program (or, in a replay, the launch) with a message: kernel, line, thread, block, buffer.
void optiml_check(optiml::emu::ThreadContext *, const void *address,
                  uint32_t site); ///< ModeBounds slow path; fills the slot
void optiml_access(optiml::emu::ThreadContext *, const void *address, uint32_t site); ///< ModeVerify
/// An access at `offset` of a variable on the thread's stack that has only `bytes` bytes.
void optiml_outside_local(optiml::emu::ThreadContext *, uint64_t offset, uint64_t bytes, uint32_t site);
/// Bounds and races of memcpy/memset-like accesses of `bytes` bytes (ModeBounds, ModeVerify, ModeTrace).
void optiml_access_range(optiml::emu::ThreadContext *, const void *address, uint64_t bytes, uint32_t site);
void optiml_trace(optiml::emu::ThreadContext *, const void *address, uint32_t site); ///< ModeTrace
[[noreturn]] void optiml_unsupported(optiml::emu::ThreadContext *, const char *construct, uint32_t site);

// Block and warp operations.
void optiml_barrier(optiml::emu::ThreadContext *, uint32_t id, uint32_t site);
uint32_t optiml_barrier_reduce(optiml::emu::ThreadContext *, uint32_t id, uint32_t op, uint32_t predicate,
                               uint32_t site);
void optiml_syncwarp(optiml::emu::ThreadContext *, uint32_t mask, uint32_t site);
/// As PTX shfl.sync: `b` lane/delta/mask, `c` clamp and segment mask; *inRange (may be null) gets the predicate.
uint32_t optiml_shuffle(optiml::emu::ThreadContext *, uint32_t mode, uint32_t mask, uint32_t value, uint32_t b,
                        uint32_t c, uint32_t *inRange, uint32_t site);
uint32_t optiml_vote(optiml::emu::ThreadContext *, uint32_t mode, uint32_t mask, uint32_t predicate, uint32_t site);
uint32_t optiml_match_any(optiml::emu::ThreadContext *, uint32_t mask, uint64_t value, uint32_t site);
uint32_t optiml_match_all(optiml::emu::ThreadContext *, uint32_t mask, uint64_t value, uint32_t *predicate,
                          uint32_t site);
uint32_t optiml_redux(optiml::emu::ThreadContext *, uint32_t op, uint32_t mask, uint32_t value, uint32_t site);
/// As PTX mma.sync.m16n8k8 with TF32 inputs and float sums, by all lanes of a warp; `pieces` are this lane's, and get
/// its sums.
void optiml_matrix_product(optiml::emu::ThreadContext *, optiml::emu::MatrixPieces *pieces, uint32_t site);
uint32_t optiml_activemask(optiml::emu::ThreadContext *);
void optiml_fence(optiml::emu::ThreadContext *, uint32_t scope); ///< 0 block, 1 device, 2 system
void optiml_yield(optiml::emu::ThreadContext *);                 ///< in loops that poll memory
uint64_t optiml_clock(optiml::emu::ThreadContext *);
void optiml_nanosleep(optiml::emu::ThreadContext *, uint32_t nanoseconds);

// Device library.
int32_t optiml_vprintf(optiml::emu::ThreadContext *, const char *format, const void *packedArguments);
[[noreturn]] void optiml_assert_fail(optiml::emu::ThreadContext *, const char *message, const char *file, uint32_t line,
                                     const char *function, uint32_t site);
[[noreturn]] void optiml_trap(optiml::emu::ThreadContext *, uint32_t site);
void *optiml_malloc(optiml::emu::ThreadContext *, uint64_t bytes);
void optiml_free(optiml::emu::ThreadContext *, void *pointer);
uint32_t optiml_is_shared(optiml::emu::ThreadContext *, const void *address);
uint32_t optiml_is_global(optiml::emu::ThreadContext *, const void *address);

// ModeShadow. A store remembers the twin of the stored value (call it after the store: it reads the stored bits); a
// load gives it back when the memory still holds the bits that were stored, and otherwise {value, |value|}. Vectors go
// element by element.
void optiml_shadow_store(optiml::emu::ThreadContext *, const void *address, uint32_t bytes, double value,
                         double magnitude);
void optiml_shadow_load(optiml::emu::ThreadContext *, const void *address, uint32_t bytes, optiml::emu::Shadow *result);
// Around an atomic sum: begin gives the element's twin and holds off other sums of it until end stores the new twin.
void optiml_shadow_atomic_begin(optiml::emu::ThreadContext *, const void *address, uint32_t bytes,
                                optiml::emu::Shadow *result);
void optiml_shadow_atomic_end(optiml::emu::ThreadContext *, const void *address, uint32_t bytes, double value,
                              double magnitude);
// After memory was copied as it is: the twins go with the numbers.
void optiml_shadow_copy(optiml::emu::ThreadContext *, const void *to, const void *from, uint64_t bytes);
// Before a shuffle: the twin of the lane's number. After one: that of the lane that the bits came from.
void optiml_shadow_give(optiml::emu::ThreadContext *, double value, double magnitude);
void optiml_shadow_take(optiml::emu::ThreadContext *, uint32_t bits, optiml::emu::Shadow *result);
}

#endif
