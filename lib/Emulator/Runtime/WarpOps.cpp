//===- WarpOps.cpp - operations among the lanes of a warp -----------------===//
//
// The lanes named in an operation's mask meet; the last to come computes everybody's result. Lanes that have finished
// (or never were) do not count.
//
//===----------------------------------------------------------------------===//
#include "Fault.h"
#include "Races.h"
#include "Scheduler.h"
#include <algorithm>
#include <bit>

using namespace optiml::emu;

static void computeShuffle(Block &b, Warp &w, uint32_t lanes) {
  for (uint32_t left = lanes; left; left &= left - 1) {
    int lane = std::countr_zero(left);
    WarpRequest &r = b.fibers[w.first + lane].request;
    int bval = int(r.b & 31), segment = int(r.c >> 8 & 31), clamp = int(r.c & 31);
    int maxLane = (lane & segment) | (clamp & ~segment), minLane = lane & segment;
    int source = lane;
    bool inRange = false;
    switch (r.mode) {
    case ShuffleUp:
      source = lane - bval;
      inRange = source >= maxLane;
      break;
    case ShuffleDown:
      source = lane + bval;
      inRange = source <= maxLane;
      break;
    case ShuffleBfly:
      source = lane ^ bval;
      inRange = source <= maxLane;
      break;
    default: source = minLane | (bval & ~segment); inRange = source <= maxLane;
    }
    if (!inRange)
      source = lane;
    r.extra = inRange;
    // The value of a lane that takes no part is undefined in CUDA; a pattern makes its use visible.
    bool takesPart = lanes >> source & 1;
    b.fibers[w.first + lane].taken = takesPart ? b.fibers[w.first + source].given : ShuffledTwin();
    r.result = takesPart ? uint32_t(b.fibers[w.first + source].request.value) : poisonByte * 0x01010101u;
  }
}

/// Element k of row `row` of the 16x8 matrix lies with lane 4 * (row % 8) + k % 4, that of column `column` of the 8x8
/// matrix with lane 4 * column + k % 4 (PTX ISA, fragments of m16n8k8). Products are exact in double precision.
static void multiplyMatrices(Block &b, Warp &w) {
  auto pieces = [&](unsigned lane) { return reinterpret_cast<MatrixPieces *>(b.fibers[w.first + lane].request.value); };
  auto rounded = [](float v) { return double(std::bit_cast<float>(std::bit_cast<uint32_t>(v) & ~0x1fffu)); };
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      double sum = pieces(lane)->sums[i];
      for (unsigned k = 0; k < 8; ++k)
        sum += rounded(pieces(row % 8 * 4 + k % 4)->a[k / 4 * 2 + row / 8]) *
               rounded(pieces(column * 4 + k % 4)->b[k / 4]);
      pieces(lane)->sums[i] = float(sum);
    }
}

static uint32_t reduce(uint32_t op, uint32_t a, uint32_t b) {
  switch (op) {
  case ReduceAdd: return a + b;
  case ReduceMin: return uint32_t(std::min(int32_t(a), int32_t(b)));
  case ReduceMax: return uint32_t(std::max(int32_t(a), int32_t(b)));
  case ReduceUMin: return std::min(a, b);
  case ReduceUMax: return std::max(a, b);
  case ReduceAnd: return a & b;
  case ReduceOr: return a | b;
  default: return a ^ b;
  }
}

static void compute(Block &b, Warp &w, uint32_t lanes) {
  auto request = [&](int lane) -> WarpRequest & { return b.fibers[w.first + lane].request; };
  auto forLanes = [&](auto &&action) {
    for (uint32_t left = lanes; left; left &= left - 1)
      action(std::countr_zero(left));
  };
  WarpRequest &first = request(std::countr_zero(lanes));
  switch (first.op) {
  case WarpOp::Sync: break;
  case WarpOp::Shuffle: return computeShuffle(b, w, lanes);
  case WarpOp::MatrixProduct: return multiplyMatrices(b, w);
  case WarpOp::Vote: {
    uint32_t ballot = 0;
    forLanes([&](int i) { ballot |= uint32_t(request(i).value != 0) << i; });
    uint32_t result = 0;
    switch (first.mode) {
    case VoteAll: result = ballot == lanes; break;
    case VoteAny: result = ballot != 0; break;
    case VoteUni: result = ballot == lanes || ballot == 0; break;
    default: result = ballot;
    }
    forLanes([&](int i) { request(i).result = result; });
    break;
  }
  case WarpOp::MatchAny:
    forLanes([&](int i) {
      uint32_t equal = 0;
      forLanes([&](int j) { equal |= uint32_t(request(i).value == request(j).value) << j; });
      request(i).result = equal;
    });
    break;
  case WarpOp::MatchAll: {
    bool all = true;
    forLanes([&](int i) { all &= request(i).value == first.value; });
    forLanes([&](int i) {
      request(i).result = all ? lanes : 0;
      request(i).extra = all;
    });
    break;
  }
  case WarpOp::Reduce: {
    bool begun = false;
    uint32_t result = 0;
    forLanes([&](int i) {
      result = begun ? reduce(first.mode, result, uint32_t(request(i).value)) : uint32_t(request(i).value);
      begun = true;
    });
    forLanes([&](int i) { request(i).result = result; });
    break;
  }
  }
}

bool Block::completeWarpOp(Warp &w, uint32_t mask) {
  uint32_t lanes = mask & w.present & ~w.exited;
  if (!lanes || (lanes & ~w.waiting))
    return false;
  const WarpRequest &first = fibers[w.first + uint32_t(std::countr_zero(lanes))].request;
  for (uint32_t left = lanes; left; left &= left - 1) {
    const WarpRequest &r = fibers[w.first + uint32_t(std::countr_zero(left))].request;
    if (r.mask != mask || r.op != first.op || r.mode != first.mode)
      return false;
  }
  compute(*this, w, lanes);
  quietYields = 0;
  if (first.op == WarpOp::Sync)
    warpSyncRaces(*this, w, lanes);
  w.waiting &= ~lanes;
  for (uint32_t left = lanes; left; left &= left - 1) {
    Fiber &f = fibers[w.first + uint32_t(std::countr_zero(left))];
    if (f.state == FiberState::AtWarpOp)
      wake(f);
  }
  return true;
}

/// Fills self.request.result, which it returns, and .extra.
static uint32_t meet(Fiber &self, WarpOp op, uint32_t mode, uint32_t mask, uint64_t value, uint32_t site,
                     uint32_t b = 0, uint32_t c = 0) {
  Block &block = *self.block;
  Warp &w = block.warpOf(self);
  settleRaces(self);
  if (!(mask >> self.context.lane & 1)) {
    Fault f = faultAt(self, "divergent-barrier", site);
    char text[16];
    snprintf(text, sizeof text, "0x%08x", mask);
    f.headline = std::string(warpOpName(op)) + " by a lane that its mask does not name";
    f.detail = "lane " + std::to_string(self.context.lane) + " is not in the mask " + text;
    raise(self, f);
  }
  self.request = {op, mode, mask, site, value, b, c, 0, 0, nullptr};
  w.waiting |= 1u << self.context.lane;
  if (!block.completeWarpOp(w, mask)) {
    block.block(self, FiberState::AtWarpOp);
    block.switchAway(self);
  }
  return self.request.result;
}

void Block::resolveActiveMasks(Warp &w) {
  while (w.asking) {
    const void *place = fibers[w.first + uint32_t(std::countr_zero(w.asking))].request.place;
    uint32_t together = 0;
    for (uint32_t left = w.asking; left; left &= left - 1) {
      uint32_t lane = uint32_t(std::countr_zero(left));
      together |= uint32_t(fibers[w.first + lane].request.place == place) << lane;
    }
    w.asking &= ~together;
    for (uint32_t left = together; left; left &= left - 1) {
      Fiber &f = fibers[w.first + uint32_t(std::countr_zero(left))];
      f.request.result = together;
      wake(f);
    }
  }
}

extern "C" {

void optiml_syncwarp(ThreadContext *context, uint32_t mask, uint32_t site) {
  meet(fiberOf(context), WarpOp::Sync, 0, mask, 0, site);
}

uint32_t optiml_shuffle(ThreadContext *context, uint32_t mode, uint32_t mask, uint32_t value, uint32_t b, uint32_t c,
                        uint32_t *inRange, uint32_t site) {
  Fiber &f = fiberOf(context);
  meet(f, WarpOp::Shuffle, mode, mask, value, site, b, c);
  f.given.isKnown = false;
  if (inRange)
    *inRange = f.request.extra;
  return f.request.result;
}

uint32_t optiml_vote(ThreadContext *context, uint32_t mode, uint32_t mask, uint32_t predicate, uint32_t site) {
  return meet(fiberOf(context), WarpOp::Vote, mode, mask, predicate, site);
}

uint32_t optiml_match_any(ThreadContext *context, uint32_t mask, uint64_t value, uint32_t site) {
  return meet(fiberOf(context), WarpOp::MatchAny, 0, mask, value, site);
}

uint32_t optiml_match_all(ThreadContext *context, uint32_t mask, uint64_t value, uint32_t *predicate, uint32_t site) {
  Fiber &f = fiberOf(context);
  meet(f, WarpOp::MatchAll, 0, mask, value, site);
  if (predicate)
    *predicate = f.request.extra;
  return f.request.result;
}

uint32_t optiml_redux(ThreadContext *context, uint32_t op, uint32_t mask, uint32_t value, uint32_t site) {
  return meet(fiberOf(context), WarpOp::Reduce, op, mask, value, site);
}

void optiml_matrix_product(ThreadContext *context, MatrixPieces *pieces, uint32_t site) {
  Fiber &f = fiberOf(context);
  Warp &w = f.block->warpOf(f);
  if (w.present != 0xffffffff || w.exited) {
    Fault fault = faultAt(f, "divergent-barrier", site);
    fault.headline = std::string(warpOpName(WarpOp::MatrixProduct)) + " of which lanes are missing";
    raise(f, fault);
  }
  meet(f, WarpOp::MatrixProduct, 0, 0xffffffff, reinterpret_cast<uintptr_t>(pieces), site);
}

/// The lanes that come to the same call before every other lane of the warp waits for something.
__attribute__((noinline)) uint32_t optiml_activemask(ThreadContext *context) {
  Fiber &f = fiberOf(context);
  Block &b = *f.block;
  Warp &w = b.warpOf(f);
  if (std::popcount(w.present & ~w.exited) == 1)
    return 1u << f.context.lane;
  f.request.place = __builtin_return_address(0);
  w.asking |= 1u << f.context.lane;
  b.block(f, FiberState::AtActiveMask);
  b.switchAway(f);
  return f.request.result;
}
}
