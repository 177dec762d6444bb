//===- PrintfTest.cpp - device printf -------------------------------------===//
#include "HandModule.h"

using namespace hand;

static void prints(ThreadContext *c, void **) {
  struct {
    int32_t i;
    const char *s; // at offset 8
    double d;
    int64_t l;
    int32_t width, value;
    uint32_t u;
    int32_t ch;
  } args = {-5, "text", 2.5, 1ll << 40, 6, 42, 0xffffffffu, 'x'};
  optiml_vprintf(c, "%d %s %.2f %lld %*d %u %c %%\n", &args);
}

TEST(Printf, FormatsPackedArguments) {
  const void *k = addKernel("prints", ModePlain, prints, 0);
  testing::internal::CaptureStdout();
  ASSERT_EQ(launch(k, 1, 1, {}), cudaSuccess);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "-5 text 2.50 1099511627776     42 4294967295 x %\n");
}
