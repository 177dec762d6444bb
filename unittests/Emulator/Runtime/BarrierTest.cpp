//===- BarrierTest.cpp - barriers, warp operations, spin-waits ------------===//
#include "HandModule.h"
#include <atomic>

using namespace hand;

namespace {
struct Buffer {
  uint32_t *p = nullptr;
  explicit Buffer(size_t n) {
    cudaMalloc(reinterpret_cast<void **>(&p), n * 4);
    cudaMemset(p, 0, n * 4);
  }
  ~Buffer() { cudaFree(p); }
};
uint32_t *pointer(void **args, int i) { return *static_cast<uint32_t **>(args[i]); }
} // namespace

static void reverseInShared(ThreadContext *c, void **args) {
  auto *s = reinterpret_cast<uint32_t *>(c->shared);
  uint32_t n = c->ntid[0], t = c->tid[0];
  s[t] = c->ctaid[0] * n + t;
  optiml_barrier(c, 0, BarrierA);
  pointer(args, 0)[c->ctaid[0] * n + t] = s[n - 1 - t];
}

TEST(Barrier, OrdersSharedMemory) {
  const void *k = addKernel("reverse", ModePlain, reverseInShared, 1, {{"s", 0, 4096}});
  Buffer b(64 * 1024);
  ASSERT_EQ(launch(k, 64, 1024, {b.p}), cudaSuccess);
  for (uint32_t i = 0; i < 64 * 1024; ++i)
    ASSERT_EQ(b.p[i], i / 1024 * 1024 + 1023 - i % 1024);
}

static void countWithReduction(ThreadContext *c, void **args) {
  uint32_t t = c->tid[0];
  if (t >= 100)
    return; // finished threads do not count
  uint32_t odd = optiml_barrier_reduce(c, 0, BarrierPopc, t & 1, BarrierA);
  uint32_t all = optiml_barrier_reduce(c, 0, BarrierAnd, t < 100, BarrierB);
  uint32_t any = optiml_barrier_reduce(c, 0, BarrierOr, t == 99, BarrierA);
  pointer(args, 0)[t] = odd * 4 + all * 2 + any;
}

TEST(Barrier, ReducesAmongLiveThreads) {
  const void *k = addKernel("reduce", ModePlain, countWithReduction, 1);
  Buffer b(128);
  ASSERT_EQ(launch(k, 1, 128, {b.p}), cudaSuccess);
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(b.p[i], 50u * 4 + 3);
}

static void warpSum(ThreadContext *c, void **args) {
  uint32_t v = c->tid[0];
  for (uint32_t d = 16; d; d /= 2)
    v += optiml_shuffle(c, ShuffleBfly, ~0u, v, d, 31, nullptr, WarpA);
  uint32_t up = optiml_shuffle(c, ShuffleUp, ~0u, c->lane, 1, 0, nullptr, WarpA);
  // A segment of eight lanes, as __shfl_sync(…, 3, 8).
  uint32_t segment = optiml_shuffle(c, ShuffleIdx, ~0u, c->lane, 3, (32 - 8) << 8 | 31, nullptr, WarpA);
  pointer(args, 0)[c->tid[0]] = v;
  pointer(args, 1)[c->tid[0]] = up * 100 + segment;
}

TEST(Warp, Shuffles) {
  const void *k = addKernel("warpSum", ModePlain, warpSum, 2, {}, true);
  Buffer sum(64), other(64);
  ASSERT_EQ(launch(k, 1, 64, {sum.p, other.p}), cudaSuccess);
  for (uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(sum.p[i], i < 32 ? 496u : 1520u);
    uint32_t lane = i % 32;
    EXPECT_EQ(other.p[i], (lane ? lane - 1 : 0) * 100 + lane / 8 * 8 + 3);
  }
}

static void votes(ThreadContext *c, void **args) {
  uint32_t lane = c->lane, result = 0;
  if (lane < 8) {
    uint32_t mask = optiml_activemask(c);
    result = optiml_vote(c, VoteBallot, mask, lane & 1, WarpA);
    result |= optiml_match_any(c, mask, lane / 4, WarpA) << 8;
    result |= optiml_redux(c, ReduceMax, mask, lane, WarpA) << 16;
  }
  pointer(args, 0)[lane] = result;
}

TEST(Warp, VotesOfTheActiveLanes) {
  const void *k = addKernel("votes", ModePlain, votes, 1, {}, true);
  Buffer b(32);
  ASSERT_EQ(launch(k, 1, 32, {b.p}), cudaSuccess);
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(b.p[i], i >= 8 ? 0u : 0xaau | (i < 4 ? 0x0fu : 0xf0u) << 8 | 7u << 16);
}

/// Every block waits for its predecessor's flag.
static void chain(ThreadContext *c, void **args) {
  auto *flags = reinterpret_cast<std::atomic<uint32_t> *>(pointer(args, 0));
  uint32_t b = c->ctaid[0];
  if (b)
    while (!flags[b - 1].load())
      optiml_yield(c);
  flags[b] = b ? flags[b - 1].load() + 1 : 1;
}

TEST(Scheduler, SpinWaitsOnEarlierBlocksEnd) {
  const void *k = addKernel("chain", ModePlain, chain, 1);
  Buffer b(500);
  ASSERT_EQ(launch(k, 500, 1, {b.p}), cudaSuccess);
  EXPECT_EQ(b.p[499], 500u);
}

/// Every block waits for its successor, as cooperative kernels may.
static void backwards(ThreadContext *c, void **args) {
  auto *flags = reinterpret_cast<std::atomic<uint32_t> *>(pointer(args, 0));
  uint32_t b = c->ctaid[0];
  if (b + 1 < c->nctaid[0])
    while (!flags[b + 1].load())
      optiml_yield(c);
  optiml_barrier(c, 0, BarrierA);
  if (c->tid[0] == 0)
    flags[b] = 1;
}

TEST(Scheduler, SpinWaitsOnLaterBlocksEnd) {
  const void *k = addKernel("backwards", ModePlain, backwards, 1);
  Buffer b(100);
  ASSERT_EQ(launch(k, 100, 64, {b.p}), cudaSuccess);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(b.p[i], 1u);
}

static void divergent(ThreadContext *c, void **) {
  if (c->tid[0] < 32)
    optiml_barrier(c, 0, BarrierA);
  else
    optiml_barrier(c, 0, BarrierB);
}

TEST(BarrierDeath, DifferentBarriers) {
  const void *k = addKernel("divergent", ModePlain, divergent, 0);
  EXPECT_EXIT(launch(k, 1, 64, {}), testing::ExitedWithCode(86),
              "divergent barrier.*\n.*kernel: divergent.*\n.*k.cu:17.*\n.*thread: \\(32, 0, 0\\).*\n.*k.cu:16");
}

static void hanging(ThreadContext *c, void **) {
  if (c->tid[0] == 0)
    optiml_syncwarp(c, ~0u, WarpA);
  else
    optiml_barrier(c, 0, BarrierA);
}

TEST(BarrierDeath, WarpOperationAgainstBarrier) {
  const void *k = addKernel("hanging", ModePlain, hanging, 0, {}, true);
  EXPECT_EXIT(launch(k, 1, 32, {}), testing::ExitedWithCode(86), "31 threads wait at the barrier in k.cu:16");
}

static void notInMask(ThreadContext *c, void **) { optiml_syncwarp(c, 1, WarpA); }

TEST(BarrierDeath, LaneOutsideItsMask) {
  const void *k = addKernel("notInMask", ModePlain, notInMask, 0, {}, true);
  EXPECT_EXIT(launch(k, 1, 32, {}), testing::ExitedWithCode(86), "lane 1 is not in the mask 0x00000001");
}
