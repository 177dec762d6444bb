//===- DeadlineTest.cpp - when something must be done by ------------------===//
#include "optiml/Support/Deadline.h"
#include "optiml/Support/Subprocess.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace optiml;

TEST(Deadline, StopsAChildProcess) {
  Deadline deadline(0.1, nullptr);
  ProcessOptions options;
  options.cancel = deadline.flag();
  ProcessResult result = llvm::cantFail(runProcess({"sleep", "100"}, options));
  EXPECT_TRUE(result.cancelled);
  EXPECT_LT(result.seconds, 50);
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.remaining(), 0);
}

TEST(Deadline, FollowsAnOuterOne) {
  std::atomic<bool> interrupted{false};
  Deadline outer(0, &interrupted), inner(1000, outer.flag());
  EXPECT_TRUE(std::isinf(outer.remaining()));
  EXPECT_GT(inner.remaining(), 900);
  EXPECT_FALSE(inner.passed());
  interrupted = true;
  while (!inner.passed())
    std::this_thread::yield();
  EXPECT_TRUE(outer.passed());
}

TEST(Deadline, AHugeTimeIsNone) {
  EXPECT_TRUE(std::isinf(Deadline(1e300, nullptr).remaining()));
  EXPECT_TRUE(std::isinf(Deadline(INFINITY, nullptr).remaining()));
}
