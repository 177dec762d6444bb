//===- SanitizerTest.cpp - what compute-sanitizer says --------------------===//
//
// A script stands in for compute-sanitizer: it notes what it runs, and says for each module what the module's name
// asks.
//
//===----------------------------------------------------------------------===//
#include "optiml/Evaluate/Measure/Sanitizer.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace optiml;

static const char script[] = R"(#!/bin/sh
for job; do :; done
echo x >> "$(dirname "$0")/runs"
[ "$2" = memcheck ] || exit 0
ours() {
  echo '========= Program hit CUDA_ERROR_INVALID_VALUE (error 1) due to "invalid argument"' \
    'on CUDA API call to cuFuncGetParamInfo.'
}
case $(cat "$job") in
*'"bad"'*)
  ours
  echo '========= Invalid __global__ write of size 4 bytes'
  echo '========= ERROR SUMMARY: 2 errors'
  exit 77;;
*'"unsaid"'*) ours; echo '========= ERROR SUMMARY: 3 errors'; exit 77;;
*'"slow"'*) sleep 60;;
*'"fine"'*) ours; ours; echo '========= ERROR SUMMARY: 2 errors'; exit 77;;
esac
)";

namespace {
class SanitizerTest : public ::testing::Test {
protected:
  SanitizerReport check(const std::string &module, const std::string &original) {
    llvm::cantFail(writeFileAtomically(dir.file("sanitizer"), script));
    EXPECT_FALSE(llvm::sys::fs::setPermissions(dir.file("sanitizer"), llvm::sys::fs::all_all));
    Sanitizer sanitizer(dir.file("sanitizer"), {"worker"}, dir.path(), nullptr, /*seconds=*/60);
    return sanitizer.check({{"workload", module, {}}}, {{"workload", original, {}}});
  }
  size_t runs() { return llvm::StringRef(llvm::cantFail(readFile(dir.file("runs")))).count('\n'); }
  TempDir dir = llvm::cantFail(TempDir::create("optiml-sanitizer-test"));
};
} // namespace

TEST_F(SanitizerTest, TheWorkersOwnQuestionIsNoFinding) {
  EXPECT_TRUE(check("fine", "fine").clean);
  EXPECT_EQ(runs(), 3u); // and the original need not run
}

TEST_F(SanitizerTest, AFindingCountsUnlessTheOriginalHasIt) {
  SanitizerReport report = check("bad", "fine");
  EXPECT_FALSE(report.clean);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].find("memcheck: Invalid __global__ write"), std::string::npos);
  EXPECT_FALSE(check("unsaid", "fine").clean);
  EXPECT_TRUE(check("bad", "bad").clean);
}

TEST_F(SanitizerTest, AllLaunchesShareAProcess) {
  llvm::cantFail(writeFileAtomically(dir.file("sanitizer"), script));
  EXPECT_FALSE(llvm::sys::fs::setPermissions(dir.file("sanitizer"), llvm::sys::fs::all_all));
  Sanitizer sanitizer(dir.file("sanitizer"), {"worker"}, dir.path(), nullptr, /*seconds=*/60);
  const SanitizerJob fine{"workload", "fine", {}};
  EXPECT_TRUE(sanitizer.check({fine, fine, fine}, {fine, fine, fine}).clean);
  EXPECT_EQ(runs(), 3u);
}

TEST_F(SanitizerTest, TheRunsOfAToolShareItsTime) {
  llvm::cantFail(writeFileAtomically(dir.file("sanitizer"), script));
  EXPECT_FALSE(llvm::sys::fs::setPermissions(dir.file("sanitizer"), llvm::sys::fs::all_all));
  Sanitizer sanitizer(dir.file("sanitizer"), {"worker"}, dir.path(), nullptr, /*seconds=*/1);
  const SanitizerJob slow{"workload", "slow", {}};
  SanitizerReport report = sanitizer.check({slow, slow, slow}, {slow, slow, slow});
  EXPECT_TRUE(report.clean);
  EXPECT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(runs(), 3u); // none of the launches alone
}
