//===- SanitizerTest.cpp - which tools see which jobs ---------------------===//
//
// A script stands in for compute-sanitizer: it notes its tool, and finds something in jobs whose module is "bad".
//
//===----------------------------------------------------------------------===//
#include "optiml/Evaluate/Measure/Sanitizer.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace optiml;

namespace {
class SanitizerTest : public ::testing::Test {
protected:
  SanitizerReport check(const std::vector<std::string> &modules, const std::vector<std::string> &originals) {
    const std::string script = R"(#!/bin/sh
tool=$2
echo "$tool" >> )" + dir.file("tools") +
                               R"(
[ "$tool" = memcheck ] || exit 0
for word; do
  if [ -f "$word" ] && grep -q '"bad"' "$word"; then
    echo "========= Invalid __global__ write of size 4 bytes"
    exit 77
  fi
done
[ -z "$OPTIML_TEST_REFUSES" ] || [ $# -lt 10 ] || { echo "no room" >&2; exit 3; }
)";
    llvm::cantFail(writeFileAtomically(dir.file("sanitizer"), script));
    EXPECT_FALSE(llvm::sys::fs::setPermissions(dir.file("sanitizer"), llvm::sys::fs::all_all));
    auto jobsOf = [](const std::vector<std::string> &names) {
      std::vector<SanitizerJob> jobs;
      for (const std::string &name : names)
        jobs.push_back({"workload", name, {}});
      return jobs;
    };
    Sanitizer sanitizer(dir.file("sanitizer"), {"worker"}, dir.path(), nullptr, /*seconds=*/60);
    return sanitizer.check(jobsOf(modules), jobsOf(originals));
  }
  size_t toolsRun() { return llvm::StringRef(llvm::cantFail(readFile(dir.file("tools")))).count('\n'); }
  TempDir dir = llvm::cantFail(TempDir::create("optiml-sanitizer-test"));
};
} // namespace

TEST_F(SanitizerTest, EachToolLooksAtAllJobsAtOnce) {
  EXPECT_TRUE(check({"a", "b", "c"}, {"a", "b", "c"}).clean);
  EXPECT_EQ(toolsRun(), 3u);
}

TEST_F(SanitizerTest, WhatIsFoundIsLookedForJobByJob) {
  SanitizerReport report = check({"a", "bad"}, {"a", "original"});
  EXPECT_FALSE(report.clean);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].find("memcheck: Invalid __global__ write"), std::string::npos);
  EXPECT_EQ(toolsRun(), 3u + 2 + 1);
}

TEST_F(SanitizerTest, WhatTheOriginalDoesTooIsNotHeldAgainstAVariant) {
  EXPECT_TRUE(check({"a", "bad"}, {"a", "bad"}).clean);
  EXPECT_TRUE(check({"bad"}, {"bad"}).clean);
  EXPECT_FALSE(check({"bad"}, {"good"}).clean);
}

TEST_F(SanitizerTest, WhereAllAtOnceFailEachIsTriedAlone) {
  setenv("OPTIML_TEST_REFUSES", "1", 1);
  SanitizerReport report = check({"a", "b", "c"}, {"a", "b", "c"});
  unsetenv("OPTIML_TEST_REFUSES");
  EXPECT_TRUE(report.clean);
  EXPECT_TRUE(report.notes.empty());
  EXPECT_EQ(toolsRun(), 3u + 3);
}
