//===- Fiber.h - one CUDA thread and its stack ------------------*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_FIBER_H
#define OPTIML_LIB_EMULATOR_RUNTIME_FIBER_H

#include "optiml/Emulator/ABI.h"
#include <boost/context/detail/fcontext.hpp>
#include <cstdint>
#include <vector>

namespace optiml::emu {

struct Block;
struct ThreadRaces;

enum class FiberState : uint8_t { Fresh, Ready, Running, AtBarrier, AtWarpOp, AtActiveMask, Exited };
enum class WarpOp : uint8_t { Sync, Shuffle, Vote, MatchAny, MatchAll, Reduce, MatrixProduct };
const char *warpOpName(WarpOp op);

/// The twin that goes with a lane's number through a shuffle (ModeShadow).
struct ShuffledTwin {
  bool isKnown = false;
  double value = 0, magnitude = 0;
};

/// What a lane brings to a warp operation, and what it takes away.
struct WarpRequest {
  WarpOp op = WarpOp::Sync;
  uint32_t mode = 0, mask = 0, site = 0;
  uint64_t value = 0;
  uint32_t b = 0, c = 0;
  uint32_t result = 0, extra = 0;
  const void *place = nullptr; ///< caller of activemask
};

struct Fiber {
  ThreadContext context{}; ///< context.runtime points back here
  boost::context::detail::fcontext_t resumeAt = nullptr;
  Block *block = nullptr;
  ThreadRaces *races = nullptr; ///< ModeVerify
  uint32_t linear = 0;          ///< in its block
  uint16_t warp = 0;
  FiberState state = FiberState::Fresh;
  uint8_t barrierId = 0;
  bool yielded = false; ///< does not count as runnable in its warp
  uint32_t predicate = 0;
  uint32_t barrierResult = 0;
  uint32_t barrierSite = 0;
  uint32_t barriersPassed = 0;
  int stack = -1;
  WarpRequest request;
  ShuffledTwin given, taken;
};

inline Fiber &fiberOf(ThreadContext *context) { return *static_cast<Fiber *>(context->runtime); }

/// The stacks of one block's threads: one range of addresses, each stack with a guard page below while there are not
/// too many of them. Tops are staggered, or all stacks would compete for the same cache lines.
class StackPool {
public:
  static constexpr uint64_t stackBytes = 256 << 10;
  ~StackPool();
  /// Room for `count` stacks; drops what was there if that is too small.
  bool reserve(unsigned count);
  int take();
  void give(int stack) { freeStacks.push_back(stack); }
  /// All stacks become free.
  void reset();
  void *top(int stack) const;
  uint64_t usableBytes(int stack) const;
  uint64_t begin() const { return reinterpret_cast<uint64_t>(base); }
  uint64_t end() const { return begin() + capacity * stackBytes; }
  bool isGuard(uint64_t address) const;

private:
  char *base = nullptr;
  unsigned capacity = 0, created = 0;
  std::vector<int> freeStacks;
};

} // namespace optiml::emu

#endif
