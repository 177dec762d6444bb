//===- Replay.h - jobs for optiml-replay ------------------------*- C++ -*-===//
//
// `optiml-replay JOB.json RESULT.json` loads one compiled device module (a shared object, ABI.h), rebuilds the memory
// of one captured launch, runs a sequence of kernel launches on it, and writes the memory afterwards. It is always run
// as a child process with limits. Needs no LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_WORKLOAD_REPLAY_H
#define OPTIML_WORKLOAD_REPLAY_H

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace optiml::emu {

/// One launch to run: the kernel and its concrete geometry.
struct ReplayStep {
  std::string kernel; ///< mangled
  std::array<uint32_t, 3> grid, block;
  uint32_t sharedBytes = 0;
  /// For each parameter: index of the captured launch's argument, or -1 - s for scratch buffer s.
  std::vector<int> arguments;
};

struct ReplayScratch {
  uint64_t bytes = 0;
  bool zeroed = false; ///< otherwise filled with a poison pattern
};

struct ReplayJob {
  std::string module;   ///< shared object
  std::string workload; ///< folder
  unsigned launch = 0;  ///< index into the workload's launches
  std::vector<ReplayScratch> scratch;
  std::vector<ReplayStep> steps;
  /// Replaces the captured contents of buffers (index -> blob file), for fresh inputs.
  std::map<unsigned, std::string> inputs;
  std::string outputDir;  ///< where buffers after the launch go, as b<i>.bin (and b<i>.shadow in ModeShadow)
  uint64_t orderSeed = 0; ///< 0: natural order of blocks and warps; otherwise a permutation
  unsigned workers = 1;
  double seconds = 0;               ///< give up after this long (0: none)
  double beginSeconds = 0;          ///< no further block of a step begins after this long (0: all do)
  bool numbersOnly = false;         ///< ModeShadow: write the floating-point numbers that were stored, and nothing else
  std::vector<uint32_t> onlyBlocks; ///< linear ids of the blocks to run; empty: all
  bool tellsTouched = false;        ///< ModeBounds: fill in ReplayResult::touched
  uint64_t l1Bytes = 192 << 10;     ///< ModeTrace: the L1 cache that the traced blocks share
};

/// A failure found while running, in the user's terms.
struct ReplayFault {
  std::string kind;    ///< "out-of-bounds", "misaligned", "race", "uninitialized-shared", "stale-read",
                       ///< "divergent-barrier", "unsupported", "assert", "trap", "crash", "timeout", "launch", and
                       ///< "benign-race": two threads store the same value. Races do not end the launch
  std::string message; ///< one line: kernel, source line, thread, block, buffer
  std::string file;
  uint32_t line = 0;
  std::string kernel; ///< mangled
};

/// A piece of code that could have run and did not (ModeCoverage).
struct MissedCode {
  uint32_t code = 0;  ///< its number in the module: the same in every run of a program text
  std::string kernel; ///< mangled; empty in a function that calls itself
  std::string function, file;
  uint32_t line = 0;
  std::string constants; ///< integers in the conditions on the way there: CodeDesc
  uint64_t functionHash = 0, place = 0;
};

/// Totals of one memory site over the traced blocks. Warp-level: lanes are joined by (site, occurrence).
struct SiteTrace {
  uint32_t site = 0, line = 0, accessBytes = 0;
  uint32_t kind = 0;        ///< AccessKind
  bool shared = false;      ///< else global (or constant)
  bool local = false;       ///< thread-private memory: neither
  double warpAccesses = 0;  ///< warp instructions
  double lanes = 0;         ///< active lanes, summed
  double sectors = 0;       ///< distinct 32-byte sectors, summed over warp instructions (global)
  double lines128 = 0;      ///< distinct 128-byte lines, summed (global)
  double l1Cycles = 0;      ///< FACTS: max(32·width/128, ⌈(n128+2)/4⌉, bank conflict degree), summed
  double bankConflicts = 0; ///< passes beyond the conflict-free number (shared)
  double lines = 0,
         linesByBlock = 0; ///< of global atomics: distinct 128-byte lines of all traced blocks, and of each, summed
  double atomicBlocks = 0; ///< traced blocks that make such atomics
  double l1Misses = 0;     ///< share of the loads that the L1 of LaunchTrace::l2Sectors lacks a sector of (global)
};

/// A basic block that warps ran.
struct BasicBlockTrace {
  double times = 0;        ///< mean over warps
  double instructions = 0; ///< a warp's, one time, of all classes
  double chain = 0;        ///< of these, the most that depend on one another
  /// Loads that a warp issues together and then waits for, once those before them have come: SiteTrace::site of each;
  /// none: an exchange between lanes.
  std::vector<std::vector<uint32_t>> waits;
};

/// What the performance model needs of one launch, from the traced blocks.
struct LaunchTrace {
  uint64_t tracedBlocks = 0, totalBlocks = 0, warpsPerBlock = 0;
  /// Warp instructions by class (sum over traced warps; a block counts as often as its busiest lane ran it).
  double fp32 = 0, fp64 = 0, int32 = 0, special = 0, tensor = 0, control = 0, memory = 0, barrier = 0, other = 0;
  double instructions() const { return fp32 + fp64 + int32 + special + tensor + control + memory + barrier + other; }
  double activeLanes = 0; ///< mean active lanes per warp instruction (divergence)
  std::vector<BasicBlockTrace> basicBlocks;
  std::vector<SiteTrace> sites;
  double l1Sectors = 0;      ///< sectors asked of L1 by loads (global)
  double l2Sectors = 0;      ///< of those, the ones missing an LRU L1 shared by all traced blocks
  double uniqueSectors = 0;  ///< distinct sectors over the traced blocks
  double storeSectors = 0;   ///< sectors written through to L2, or sent there by atomics
  double footprintBytes = 0; ///< distinct bytes ×32-byte sectors touched by the traced blocks, all launches' steps
};

struct ReplayResult {
  bool ok = false;
  std::vector<ReplayFault> faults;
  double seconds = 0;
  uint64_t begun = 0;              ///< blocks of the last step, the first ones in their order
  std::vector<LaunchTrace> traces; ///< one a step, ModeTrace
  std::vector<MissedCode> missed;  ///< ModeCoverage: of the kernels that ran
  std::vector<std::string> ran;    ///< ModeCoverage: these, mangled
  bool dataDecides = true;         ///< false, ModeCoverage: the content of memory changes nothing of what they touch
  std::vector<uint64_t> touched;   ///< of each buffer: bytes up to the last one that was accessed
};

bool writeJob(const ReplayJob &job, const std::string &path, std::string &error);
bool readJob(const std::string &path, ReplayJob &job, std::string &error);
bool writeResult(const ReplayResult &result, const std::string &path, std::string &error);
bool readResult(const std::string &path, ReplayResult &result, std::string &error);

} // namespace optiml::emu

#endif
