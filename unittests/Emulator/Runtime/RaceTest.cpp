//===- RaceTest.cpp - what is a race and what is not ----------------------===//
#include "HandModule.h"
#include <atomic>

using namespace hand;

namespace {
using Word = uint32_t;
Word *pointer(void **args, int i) { return *static_cast<Word **>(args[i]); }
Word load(ThreadContext *c, Word *p) {
  optiml_access(c, p, Load4);
  return *p;
}
void store(ThreadContext *c, Word *p, Word v, uint32_t site = Store4) {
  optiml_access(c, p, site);
  *p = v;
}
Word atomicAdd(ThreadContext *c, Word *p, Word v) {
  optiml_access(c, p, Atomic4);
  return reinterpret_cast<std::atomic<Word> *>(p)->fetch_add(v);
}
Word *fresh(size_t words) {
  Word *p;
  cudaMalloc(reinterpret_cast<void **>(&p), words * 4);
  cudaMemset(p, 0, words * 4);
  return p;
}
constexpr SharedVarDesc tile{"tile", 0, 4096};
Word *shared(ThreadContext *c) { return reinterpret_cast<Word *>(c->shared); }
} // namespace

static void neighbour(ThreadContext *c, void **args, bool barrier) {
  Word t = c->tid[0], n = c->ntid[0];
  store(c, shared(c) + t, t);
  if (barrier)
    optiml_barrier(c, 0, BarrierA);
  store(c, pointer(args, 0) + t, load(c, shared(c) + (t + 1) % n));
}

TEST(Race, BarrierOrdersSharedMemory) {
  const void *k =
      addKernel("withBarrier", ModeVerify, [](ThreadContext *c, void **a) { neighbour(c, a, true); }, 1, {tile});
  EXPECT_EQ(launch(k, 1, 64, {fresh(64)}), cudaSuccess);
}

TEST(RaceDeath, DroppedBarrier) {
  // Every word is written before the kernel reads its neighbour's, but nothing orders the two.
  const void *k = addKernel("dropped", ModeVerify,
                            [](ThreadContext *c, void **a) {
                              Word t = c->tid[0];
                              store(c, shared(c) + t, t);
                              if (t)
                                load(c, shared(c) + t - 1);
                            },
                            1, {tile});
  EXPECT_EXIT(launch(k, 1, 64, {fresh(64)}), testing::ExitedWithCode(86),
              "data race in shared memory: load unordered with a store(.|\n)*k.cu:10(.|\n)*thread: \\(1, 0, "
              "0\\)(.|\n)*k.cu:11, by thread \\(0, 0, 0\\)(.|\n)*shared variable 'tile'");
}

TEST(RaceDeath, UninitializedShared) {
  const void *k = addKernel("uninitialized", ModeVerify,
                            [](ThreadContext *c, void **a) { load(c, shared(c) + c->tid[0]); }, 1, {tile});
  EXPECT_EXIT(launch(k, 1, 64, {fresh(64)}), testing::ExitedWithCode(86), "nothing has written");
}

TEST(Race, SyncwarpOrdersLanes) {
  const void *k = addKernel(
      "syncwarp", ModeVerify,
      [](ThreadContext *c, void **) {
        Word t = c->tid[0];
        store(c, shared(c) + t, t);
        optiml_syncwarp(c, ~0u, WarpA);
        load(c, shared(c) + (t ^ 1));
      },
      0, {tile}, true);
  EXPECT_EQ(launch(k, 1, 64, {}), cudaSuccess);
}

TEST(RaceDeath, SyncwarpDoesNotOrderWarps) {
  const void *k = addKernel(
      "crossWarp", ModeVerify,
      [](ThreadContext *c, void **) {
        Word t = c->tid[0];
        store(c, shared(c) + t, t);
        optiml_syncwarp(c, ~0u, WarpA);
        if (t >= 32)
          load(c, shared(c) + t - 32);
      },
      0, {tile}, true);
  EXPECT_EXIT(launch(k, 1, 64, {}), testing::ExitedWithCode(86), "data race in shared memory");
}

TEST(RaceDeath, ShuffleDoesNotOrderMemory) {
  const void *k = addKernel(
      "shuffleOnly", ModeVerify,
      [](ThreadContext *c, void **) {
        Word t = c->tid[0];
        store(c, shared(c) + t, t);
        optiml_shuffle(c, ShuffleIdx, ~0u, t, 0, 31, nullptr, WarpA);
        load(c, shared(c) + (t ^ 1));
      },
      0, {tile}, true);
  EXPECT_EXIT(launch(k, 1, 32, {}), testing::ExitedWithCode(86), "data race in shared memory");
}

TEST(RaceDeath, TwoBlocksStoreToOnePlace) {
  const void *k = addKernel(
      "twoBlocks", ModeVerify, [](ThreadContext *c, void **a) { store(c, pointer(a, 0), c->ctaid[0] + 1); }, 1);
  EXPECT_EXIT(launch(k, 2, 1, {fresh(1)}), testing::ExitedWithCode(86),
              "data race in global memory: store unordered with a store");
}

TEST(Race, EqualStoresAreBenign) {
  const void *k = addKernel("benign", ModeVerify, [](ThreadContext *c, void **a) { store(c, pointer(a, 0), 7); }, 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(launch(k, 2, 32, {fresh(1)}), cudaSuccess);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("both store the same value"), std::string::npos);
}

TEST(Race, AtomicsDoNotRace) {
  const void *k =
      addKernel("atomics", ModeVerify, [](ThreadContext *c, void **a) { atomicAdd(c, pointer(a, 0), 1); }, 1);
  Word *p = fresh(1);
  EXPECT_EQ(launch(k, 10, 64, {p}), cudaSuccess);
  EXPECT_EQ(*p, 640u);
}

TEST(RaceDeath, LostAtomic) {
  const void *k = addKernel(
      "lostAtomic", ModeVerify, [](ThreadContext *c, void **a) { store(c, pointer(a, 0), load(c, pointer(a, 0)) + 1); },
      1);
  EXPECT_EXIT(launch(k, 1, 2, {fresh(1)}), testing::ExitedWithCode(86), "data race in global memory");
}

/// The last block sums what all blocks stored.
static void lastBlock(ThreadContext *c, void **a, bool fence) {
  Word *partial = pointer(a, 0), *ticket = pointer(a, 1), *sum = pointer(a, 2), *last = shared(c);
  if (c->tid[0] == 0) {
    store(c, partial + c->ctaid[0], c->ctaid[0]);
    if (fence)
      optiml_fence(c, 1);
    store(c, last, atomicAdd(c, ticket, 1) == c->nctaid[0] - 1);
  }
  optiml_barrier(c, 0, BarrierA);
  if (load(c, last))
    for (Word i = c->tid[0]; i < c->nctaid[0]; i += c->ntid[0])
      atomicAdd(c, sum, load(c, partial + i));
}

TEST(Race, FenceAndAtomicPublish) {
  const void *k =
      addKernel("lastBlock", ModeVerify, [](ThreadContext *c, void **a) { lastBlock(c, a, true); }, 3, {tile});
  Word *sum = fresh(1);
  EXPECT_EQ(launch(k, 100, 64, {fresh(100), fresh(1), sum}), cudaSuccess);
  EXPECT_EQ(*sum, 4950u);
}

TEST(RaceDeath, MissingFence) {
  const void *k =
      addKernel("noFence", ModeVerify, [](ThreadContext *c, void **a) { lastBlock(c, a, false); }, 3, {tile});
  EXPECT_EXIT(launch(k, 100, 64, {fresh(100), fresh(1), fresh(1)}), testing::ExitedWithCode(86),
              "data race in global memory: load unordered with a store");
}

TEST(Race, VolatileFlagPublishes) {
  const void *k = addKernel(
      "flag", ModeVerify,
      [](ThreadContext *c, void **a) {
        Word *data = pointer(a, 0), *flag = pointer(a, 1);
        if (c->ctaid[0] == 0) {
          store(c, data, 42);
          optiml_fence(c, 1);
          store(c, flag, 1, VolatileStore4);
        } else {
          for (;;) {
            optiml_access(c, flag, VolatileLoad4);
            if (*static_cast<volatile Word *>(flag))
              break;
            optiml_yield(c);
          }
          load(c, data);
        }
      },
      2);
  EXPECT_EQ(launch(k, 2, 1, {fresh(1), fresh(1)}), cudaSuccess);
}

TEST(RaceDeath, BarrierThatSomeThreadsNeverReach) {
  const void *k = addKernel(
      "barrierInBranch", ModeVerify,
      [](ThreadContext *c, void **) {
        optiml_barrier(c, 0, BarrierA);
        if (c->tid[0] < 32)
          optiml_barrier(c, 0, BarrierB);
      },
      0);
  EXPECT_EXIT(launch(k, 1, 64, {}), testing::ExitedWithCode(86),
              "a thread of the block has finished without reaching it(.|\n)*k.cu:17");
}

TEST(Race, ThreadsMayFinishBeforeTheFirstBarrier) {
  const void *k = addKernel(
      "earlyExit", ModeVerify,
      [](ThreadContext *c, void **) {
        if (c->tid[0] >= 40)
          return;
        optiml_barrier(c, 0, BarrierA);
        optiml_barrier(c, 0, BarrierB);
      },
      0);
  EXPECT_EQ(launch(k, 1, 64, {}), cudaSuccess);
}
