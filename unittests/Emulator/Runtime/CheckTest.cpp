//===- CheckTest.cpp - bounds, alignment, crashes -------------------------===//
#include "HandModule.h"

using namespace hand;

static void storeChecked(ThreadContext *c, void **args) {
  float *p = &at(args, 0, globalId(c));
  optiml_check(c, p, Store4);
  *p = 1;
}

static float *allocate(size_t bytes) {
  float *p;
  cudaMalloc(reinterpret_cast<void **>(&p), bytes);
  return p;
}

TEST(Check, FillsTheSiteCache) {
  const void *k = addKernel(
      "cache", ModeBounds,
      [](ThreadContext *c, void **args) {
        float *p = &at(args, 0, globalId(c));
        optiml_check(c, p, Store4);
        const SiteCache &s = c->siteCache[Store4];
        *p = s.lo == reinterpret_cast<uint64_t>(&at(args, 0, 0)) && s.span == 128 - 4;
      },
      1);
  float *p = allocate(128);
  ASSERT_EQ(launch(k, 1, 32, {p}), cudaSuccess);
  EXPECT_EQ(p[31], 1);
  cudaFree(p);
}

TEST(CheckDeath, PastTheEnd) {
  const void *k = addKernel("pastEnd", ModeBounds, storeChecked, 1);
  float *p = allocate(100);
  EXPECT_EXIT(
      launch(k, dim3(1), 32, {p}), testing::ExitedWithCode(86),
      "out-of-bounds store of 4 bytes\n  kernel: pastEnd\n  source: k.cu:11:1 in f\n  thread: \\(25, 0, 0\\) of "
      "block \\(0, 0, 0\\)\n  detail: address 0x[0-9a-f]+ is 0 bytes past the end of the 100-byte allocation from "
      "cudaMalloc #[0-9]+");
}

TEST(CheckDeath, AfterFree) {
  const void *k = addKernel("afterFree", ModeBounds, storeChecked, 1);
  float *p = allocate(128);
  cudaFree(p);
  EXPECT_EXIT(launch(k, 1, 1, {p}), testing::ExitedWithCode(86), "which was freed");
}

TEST(CheckDeath, NullAndHostPointers) {
  const void *k = addKernel("nullPointer", ModeBounds, storeChecked, 1);
  EXPECT_EXIT(launch(k, 1, 1, {nullptr}), testing::ExitedWithCode(86), "is a null pointer");
  static float host[4];
  EXPECT_EXIT(launch(k, 1, 1, {host}), testing::ExitedWithCode(86), "not device memory");
}

TEST(CheckDeath, Misaligned) {
  const void *k = addKernel("misaligned", ModeBounds, storeChecked, 1);
  float *p = allocate(128);
  EXPECT_EXIT(launch(k, 1, 1, {reinterpret_cast<char *>(p) + 2}), testing::ExitedWithCode(86),
              "misaligned store of 4 bytes");
}

static void sharedPastEnd(ThreadContext *c, void **) { optiml_check(c, c->shared + 4 * c->tid[0], Load4); }

TEST(CheckDeath, SharedMemory) {
  const void *k = addKernel("sharedEnd", ModeBounds, sharedPastEnd, 0, {{"tile", 0, 64}});
  EXPECT_EXIT(launch(k, 1, 32, {}), testing::ExitedWithCode(86),
              "thread: \\(16, 0, 0\\).*\n.*0 bytes past the end of shared variable 'tile' \\(64 bytes\\)");
}

static void overflow(ThreadContext *c, void **args) {
  volatile char big[64 << 10];
  big[0] = char(c->tid[0]);
  big[sizeof big - 1] = 1;
  if (big[0] == char(c->tid[0])) // always
    overflow(c, args);
  big[1] = big[0];
}

TEST(CheckDeath, StackOverflow) {
  const void *k = addKernel("overflow", ModePlain, overflow, 0);
  EXPECT_EXIT(launch(k, 1, 1, {}), testing::ExitedWithCode(86), "local memory exceeds");
}

TEST(CheckDeath, CrashWithoutChecks) {
  const void *k = addKernel("crash", ModePlain, [](ThreadContext *c, void **args) { at(args, 0, 0) = 1; }, 1);
  EXPECT_EXIT(launch(k, 1, 1, {reinterpret_cast<void *>(8)}), testing::ExitedWithCode(86),
              "the kernel crashed.*\n.*kernel: crash");
}

TEST(CheckDeath, AssertAndTrap) {
  const void *a = addKernel(
      "asserts", ModePlain, [](ThreadContext *c, void **) { optiml_assert_fail(c, "x > 0", "a.cu", 7, "f", Load4); },
      0);
  EXPECT_EXIT(launch(a, 1, 1, {}), testing::ExitedWithCode(86), "assertion 'x > 0' failed(.|\n)*a.cu:7");
  const void *t = addKernel("traps", ModePlain, [](ThreadContext *c, void **) { optiml_trap(c, Load4); }, 0);
  EXPECT_EXIT(launch(t, 1, 1, {}), testing::ExitedWithCode(86), "trap");
}
