//===- VerifierTest.cpp - variants against the original -------------------===//
#include "optiml/Evaluate/Verify/Verifier.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Evaluate/Verify/DerivedSizes.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/Blob.h"
#include "llvm/Support/FileSystem.h"
#include <cstring>
#include <future>
#include <gtest/gtest.h>

using namespace optiml;

namespace {

std::string bytesOf(const void *p, size_t n) { return std::string(static_cast<const char *>(p), n); }

/// A launch of gather (unittests/Workload/ReplayModule.cpp) on 64 elements; texts are the numbers of prepared modules.
class Verified : public testing::Test {
protected:
  TempDir dir = llvm::cantFail(TempDir::create("optiml-verifier-test"));
  std::unique_ptr<Verifier> verifier;
  Variant variant;
  Workload w;
  VerifyOptions options;

  void SetUp() override {
    w.directory = dir.path();
    LaunchImage l;
    l.kernel = "_Z6gatherPKfPfii";
    l.name = "gather";
    l.grid = {2, 1, 1};
    l.block = {32, 1, 1};
    std::vector<float> x, y(64, -1);
    for (int i = 0; i < 64; ++i)
      x.push_back(float(i) + 0.25f);
    uint64_t xAddress = 0x200000000100, yAddress = 0x200000008000;
    l.buffers = {buffer(xAddress, x), buffer(yAddress, y)};
    int n = 64, stride = 1;
    l.arguments = {{bytesOf(&xAddress, 8), true, 0, 0},
                   {bytesOf(&yAddress, 8), true, 1, 0},
                   {bytesOf(&n, 4), false, -1, 0},
                   {bytesOf(&stride, 4), false, -1, 0}};
    w.launches.push_back(l);
    std::string error;
    ASSERT_TRUE(w.write(error)) << error;
    options.replayProgram = REPLAY_PROGRAM;
    makeVerifier();
    KernelRewrite r;
    r.original = "gather";
    r.originalSymbol = l.kernel;
    r.twin = "twin";
    using Kind = Parameter::Kind;
    r.originalParameters = {{"const float *x", "x", Kind::Pointer},
                            {"float *y", "y", Kind::Pointer},
                            {"int n", "n", Kind::Signed},
                            {"int stride", "stride", Kind::Signed}};
    LaunchStep step;
    step.kernel = "twin";
    step.grid = {IntExpr::of("ceildiv(grid.x, 2)"), IntExpr::of("1"), IntExpr::of("1")};
    step.block = {IntExpr::of("block.x"), IntExpr::of("1"), IntExpr::of("1")};
    step.sharedBytes = IntExpr::of("0");
    step.arguments = {"x", "y", "n", "stride"};
    r.plan.steps = {step};
    variant.rewrites = {r};
  }

  static llvm::Error build(const std::string &text, const std::vector<std::pair<uint32_t, std::string>> &outputs) {
    if (text == "does not compile")
      return makeError("expected ';'");
    for (auto &[mode, out] : outputs)
      if (std::error_code ec = llvm::sys::fs::copy_file(std::string(MODULE_DIR) + "/verify-module-" + text + "-" +
                                                            std::to_string(mode & ~emu::ModeCoverage) + ".so",
                                                        out))
        return makeError("no module for {0}: {1}", text, ec.message());
    return llvm::Error::success();
  }
  CheckedModules modulesOf(const std::string &text) {
    CheckedModules modules = {dir.path() + "/derived-bounds.so", dir.path() + "/derived-verify.so"};
    llvm::cantFail(build(text, {{emu::ModeBounds, modules.bounds}, {emu::ModeVerify, modules.verify}}));
    return modules;
  }
  void makeVerifier() { verifier = llvm::cantFail(Verifier::create(build, "0", {w}, options)); }

  BufferImage buffer(uint64_t address, const std::vector<float> &v) {
    std::string name = blobName(v.data(), v.size() * 4), error;
    EXPECT_TRUE(writeBlob(dir.path(), name, v.data(), v.size() * 4, error)) << error;
    return {address, v.size() * 4, "", false, false, name, name};
  }

  VerifyReport verify(const std::string &text) {
    variant.text = text;
    variant.rewrites[0].twinText = text;
    return llvm::cantFail(verifier->verify(variant));
  }
};

} // namespace

TEST_F(Verified, AcceptsTheSameAndOtherRounding) {
  VerifyReport r = verify("0");
  EXPECT_EQ(r.verdict, Verdict::Correct) << r.why;
  EXPECT_EQ(r.launches, 1u);
  EXPECT_EQ(r.runs, 3u) << "two orders on the captured input, one on a random one";
  r = verify("1");
  EXPECT_EQ(r.verdict, Verdict::Correct) << r.why;
}

TEST_F(Verified, RejectsWrongValues) {
  VerifyReport r = verify("2");
  ASSERT_EQ(r.verdict, Verdict::WrongResult);
  ASSERT_TRUE(r.difference);
  EXPECT_EQ(r.difference->index, 0u);
  EXPECT_EQ(r.difference->expected, "0.25");
  EXPECT_NE(r.why.find("argument 1 (float*)[0]: 0.25025"), std::string::npos) << r.why;
}

TEST_F(Verified, RejectsAccessesOutOfBounds) {
  VerifyReport r = verify("3");
  ASSERT_EQ(r.verdict, Verdict::Correct) << "one block covers exactly 64 elements";
  variant.rewrites[0].plan.steps[0].grid[0] = IntExpr::of("grid.x");
  r = verify("3");
  ASSERT_EQ(r.verdict, Verdict::RuntimeError);
  EXPECT_EQ(r.faults.at(0).kind, "out-of-bounds");
}

TEST_F(Verified, RejectsRaces) {
  VerifyReport r = verify("4");
  ASSERT_EQ(r.verdict, Verdict::RuntimeError);
  EXPECT_EQ(r.faults.at(0).kind, "race");
}

TEST_F(Verified, RejectsTooFewThreads) {
  variant.rewrites[0].plan.steps[0].grid[0] = IntExpr::of("1");
  variant.rewrites[0].plan.steps[0].block[0] = IntExpr::of("block.x / 2");
  VerifyReport r = verify("0");
  ASSERT_EQ(r.verdict, Verdict::WrongResult);
  EXPECT_EQ(r.difference->index, 32u);
  EXPECT_EQ(r.difference->actual, "-1");
}

TEST_F(Verified, KernelsThatReachForTheNetworkAreStopped) {
  VerifyReport r = verify("5");
  EXPECT_EQ(r.verdict, Verdict::RuntimeError);
  EXPECT_NE(r.why.find("a system call that its sandbox forbids"), std::string::npos) << r.why;
}

TEST_F(Verified, ConditionsAndErrorsHaveTheirVerdicts) {
  variant.rewrites[0].conditions.push_back({IntExpr::of("n > 64"), "size class"});
  EXPECT_EQ(verify("0").verdict, Verdict::NotApplicable);
  variant.rewrites[0].conditions.clear();
  VerifyReport r = verify("does not compile");
  EXPECT_EQ(r.verdict, Verdict::CompileError);
  EXPECT_NE(r.why.find("expected ';'"), std::string::npos);
  variant.rewrites[0].plan.steps[0].kernel = "absent";
  EXPECT_EQ(verify("0").verdict, Verdict::OverLimit);
}

TEST_F(Verified, LongLaunchesAreComparedAsAWholeAndCheckedInPart) {
  options.longSeconds = 0;
  w.launches[0].grid = {32, 1, 1}; // of which 8 blocks are recomputed
  w.launches[0].block = {2, 1, 1};
  std::string error;
  ASSERT_TRUE(w.write(error)) << error;
  makeVerifier();
  VerifyReport r = verify("0");
  EXPECT_EQ(r.verdict, Verdict::Correct) << r.why;
  EXPECT_EQ(r.launches, 1u);
  EXPECT_EQ(r.longLaunches, 1u);
  EXPECT_EQ(r.runs, 3u) << "the captured input, races on some blocks of it, a random input";
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_NE(r.notes[0].find("races on 8 of 16 blocks"), std::string::npos) << r.notes[0];
  r = verify("1");
  EXPECT_EQ(r.verdict, Verdict::Correct) << "other rounding, also where nothing was recomputed: " << r.why;
  EXPECT_EQ(verify("2").verdict, Verdict::WrongResult);
  EXPECT_NE(verify("4").verdict, Verdict::Correct);
  variant.rewrites[0].plan.steps[0].grid[0] = IntExpr::of("15"); // the last block is missing
  r = verify("0");
  ASSERT_EQ(r.verdict, Verdict::WrongResult);
  EXPECT_EQ(r.difference->index, 60u);
}

// Beside other kernels it would be the same.
TEST_F(Verified, AKernelThatWasRightIsNotComparedAgain) {
  makeVerifier();
  VerifyReport r = verify("1");
  ASSERT_EQ(r.verdict, Verdict::Correct) << r.why;
  EXPECT_GT(r.runs, 0u);
  r = verify("1");
  EXPECT_EQ(r.verdict, Verdict::Correct);
  EXPECT_EQ(r.runs, 0u);
  EXPECT_EQ(r.launches, 1u);
  EXPECT_EQ(verify("2").verdict, Verdict::WrongResult);
  EXPECT_EQ(verify("2").verdict, Verdict::WrongResult);
  variant.rewrites[0].plan.steps[0].block[0] = IntExpr::of("16"); // too few threads
  EXPECT_NE(verify("1").verdict, Verdict::Correct);
}

// Several threads that are given the same rewrites compare each of them once.
TEST_F(Verified, WhatAnotherThreadComparesIsNotComparedAgain) {
  const unsigned alone = verify("1").runs;
  ASSERT_GT(alone, 0u);
  variant.rewrites.push_back(variant.rewrites[0]);
  variant.rewrites[1].conditions.push_back({IntExpr::of("n > 1"), "it is another one"});
  for (auto [text, verdict] : {std::pair("1", Verdict::Correct), {"2", Verdict::WrongResult}}) {
    makeVerifier();
    variant.text = variant.rewrites[0].twinText = variant.rewrites[1].twinText = text;
    std::vector<std::future<VerifyReport>> threads;
    for (unsigned i = 0; i < 4; ++i)
      threads.push_back(std::async(std::launch::async, [this] { return llvm::cantFail(verifier->verify(variant)); }));
    unsigned runs = 0;
    for (std::future<VerifyReport> &thread : threads) {
      VerifyReport r = thread.get();
      EXPECT_EQ(r.verdict, verdict) << r.why;
      EXPECT_EQ(r.launches, r.correct() ? 2u : 0u);
      EXPECT_TRUE(!r.correct() || r.runs + r.earlierRuns == 2 * alone);
      runs += r.runs;
    }
    if (verdict == Verdict::Correct)
      EXPECT_EQ(runs, 2 * alone);
  }
}

// What is compared does not speak for another rewrite that nothing compares.
TEST_F(Verified, RewritesForLargeLaunchesNeedAComparisonOfTheirOwn) {
  Workload larger = w;
  const int n = 65;
  larger.launches[0].arguments[2].bytes = bytesOf(&n, 4);
  KernelRewrite forLarge = variant.rewrites[0];
  forLarge.conditions.push_back({IntExpr::of("n > 64"), "size class"});
  variant.rewrites.push_back(forLarge);
  for (bool comparedElsewhere : {false, true}) {
    options.comparedElsewhere = comparedElsewhere;
    makeVerifier();
    EXPECT_EQ(verify("1").verdict, Verdict::Correct) << "nothing runs the other";
    makeVerifier();
    verifier->addLarge(larger);
    for (int again = 0; again < 2; ++again) {
      VerifyReport r = verify("1");
      EXPECT_EQ(r.verdict, Verdict::NotApplicable) << r.why;
      EXPECT_EQ(r.launches, comparedElsewhere ? 1u : 0u);
    }
    EXPECT_NE(verify("2").verdict, Verdict::Correct);
  }
}

TEST_F(Verified, LeavesOutWhatTakesTooLong) {
  options.affordableSeconds = 1e-9;
  makeVerifier();
  VerifyReport r = verify("2");
  EXPECT_EQ(r.verdict, Verdict::NotApplicable) << "neither right nor wrong";
  EXPECT_EQ(r.unaffordable, 1u);
  EXPECT_EQ(r.launches, 0u);
  EXPECT_NE(r.why.find("takes longer than"), std::string::npos) << r.why;
}

// Where a GPU compares them, some blocks of large launches run under the checkers.
TEST_F(Verified, LargeLaunchesAloneShowFaults) {
  options.comparedElsewhere = true;
  verifier = llvm::cantFail(Verifier::create(build, "0", {}, options));
  verifier->addLarge(w);
  VerifyReport r = verify("0");
  EXPECT_EQ(r.verdict, Verdict::NotApplicable) << "it is not compared here";
  EXPECT_EQ(r.launches, 0u);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_EQ(verify("2").verdict, Verdict::NotApplicable);
  EXPECT_EQ(verify("4").verdict, Verdict::RuntimeError);
}

// A variant that is right where its blocks cover the recorded size exactly, and wrong elsewhere.
TEST_F(Verified, DerivedSizesShowWhatARecordingHides) {
  const std::vector<SizedKernel> kernels = {{"_Z6gatherPKfPfii", "_Z6gatherPKfPfii", {{2, 0, 4, true}}}};
  auto derived = llvm::cantFail(deriveSizes(w, kernels, modulesOf("0"), options, dir.path() + "/derived", 60));
  ASSERT_EQ(derived.launches.size(), 5u);
  int n = 0;
  for (auto [launch, size] : {std::pair(0, 41), {1, 32}, {2, 1}}) {
    memcpy(&n, derived.launches[launch].arguments[2].bytes.data(), 4);
    EXPECT_EQ(n, size);
    EXPECT_EQ(derived.launches[launch].grid[0], size > 32 ? 2u : 1u);
    EXPECT_EQ(derived.launches[launch].buffers[1].bytes, uint64_t(4 * size)) << "what the original writes";
  }
  ASSERT_EQ(verify("3").verdict, Verdict::Correct);
  verifier = llvm::cantFail(Verifier::create(build, "0", {w, derived}, options));
  VerifyReport r = verify("3");
  ASSERT_EQ(r.verdict, Verdict::RuntimeError);
  EXPECT_EQ(r.faults.at(0).kind, "out-of-bounds");
  EXPECT_EQ(verify("0").verdict, Verdict::Correct);
}

// Where the original shows a fault there is nothing to compare with.
TEST_F(Verified, SizesThatTheOriginalDoesNotTakeAreLeftOut) {
  const std::vector<SizedKernel> kernels = {{"_Z6gatherPKfPfii", "twin", {{2, 0, 4, true}}}};
  auto derived = llvm::cantFail(deriveSizes(w, kernels, modulesOf("4"), options, dir.path() + "/derived", 60));
  EXPECT_EQ(derived.launches.size(), 1u) << "one element is without the race";
}

namespace {

LaunchImage launchWith(std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block, std::vector<int> values) {
  LaunchImage l;
  l.grid = grid;
  l.block = block;
  for (int v : values)
    l.arguments.push_back({bytesOf(&v, 4), false, -1, 0});
  return l;
}

/// The values and the grid of each launch that is made of one with these.
std::vector<std::vector<int>> derivedFrom(const LaunchImage &launch, bool addsRare = false) {
  std::vector<ArgumentInteger> integers;
  for (unsigned i = 0; i < launch.arguments.size(); ++i)
    integers.push_back({i, 0, 4, true});
  std::vector<std::vector<int>> result;
  for (const std::vector<LaunchImage> &alternatives :
       launchesWithOtherSizes(launch, {"", "", integers, {}, addsRare})) {
    const LaunchImage &other = alternatives.front();
    std::vector<int> row;
    for (const ArgumentImage &argument : other.arguments) {
      int v;
      memcpy(&v, argument.bytes.data(), 4);
      row.push_back(v);
    }
    row.insert(row.end(), other.grid.begin(), other.grid.end());
    result.push_back(row);
  }
  return result;
}

} // namespace

TEST(DerivedSizes, KeepWhatIntegersAreToOneAnother) {
  using Rows = std::vector<std::vector<int>>;
  // Rows and columns; a width; equal ones; a seed below zero. The last one has blocks that find nothing to do.
  EXPECT_EQ(derivedFrom(launchWith({4, 24, 1}, {128, 16, 1}, {512, 384, 3, 512, -7})),
            (Rows{{43, 37, 3, 43, -7, 1, 3, 1},
                  {64, 32, 3, 64, -7, 1, 2, 1},
                  {2, 1, 3, 2, -7, 1, 1, 1},
                  {44, 36, 3, 44, -7, 1, 3, 1},
                  {8, 4, 3, 8, -7, 1, 1, 1},
                  {43, 37, 3, 43, -7, 2, 4, 1}}));
  // The product of two, and what lies beside one.
  EXPECT_EQ(derivedFrom(launchWith({118, 1, 1}, {256, 1, 1}, {300, 100, 30000, 101, 200})),
            (Rows{{43, 37, 1591, 38, 74, 7, 1, 1},
                  {64, 32, 2048, 33, 64, 8, 1, 1},
                  {2, 1, 2, 2, 2, 1, 1, 1},
                  {44, 36, 1584, 37, 72, 7, 1, 1},
                  {8, 4, 32, 5, 8, 1, 1, 1},
                  {43, 37, 1591, 38, 74, 11, 1, 1},
                  {43, 100, 4300, 101, 200, 21, 1, 1}}));
  // A block for each row; the block's extent is no size.
  EXPECT_EQ(derivedFrom(launchWith({1000, 1, 1}, {256, 1, 1}, {1000, 256})), (Rows{{557, 256, 557, 1, 1},
                                                                                   {256, 256, 256, 1, 1},
                                                                                   {1, 256, 1, 1, 1},
                                                                                   {540, 256, 540, 1, 1},
                                                                                   {4, 256, 4, 1, 1},
                                                                                   {37, 256, 41, 1, 1}}));
  EXPECT_EQ(derivedFrom(launchWith({4, 1, 1}, {128, 1, 1}, {5, 7})), Rows{});
  // Rows by the threads' second axis: also a length that is odd in blocks by whole groups.
  EXPECT_EQ(derivedFrom(launchWith({256, 8, 1}, {64, 4, 1}, {8, 1024, 64}), true), (Rows{{8, 44, 64, 11, 8, 1},
                                                                                         {4, 8, 64, 2, 4, 1},
                                                                                         {5, 43, 64, 11, 5, 1},
                                                                                         {2, 107, 64, 16, 2, 1},
                                                                                         {8, 43, 64, 12, 9, 1},
                                                                                         {8, 51, 64, 14, 9, 1}}));
}

// Images, channels, rows and columns; an element a thread; the number of all elements is one of the integers.
TEST(DerivedSizes, ProductsOfSeveralIntegersStayProducts) {
  for (const std::vector<int> &row : derivedFrom(launchWith({6272, 1, 1}, {256, 1, 1}, {16, 32, 56, 56, 1605632}))) {
    EXPECT_EQ(row[0] * row[1] * row[2] * row[3], row[4]);
    EXPECT_GE(row[5] * 256, row[4]);
  }
  // Of two that are no sizes by themselves, and the grid alone.
  for (const std::vector<int> &row : derivedFrom(launchWith({9408, 1, 1}, {64, 1, 1}, {3, 64, 3136}))) {
    EXPECT_EQ(row[0], 3);
    EXPECT_EQ(row[1], 64);
    EXPECT_GE(row[5 - 2], 3 * row[2]);
  }
}

// Each remainder of a vector is there, also where the sizes that are its factors are whole.
TEST(DerivedSizes, NearSizesLeaveOverAll) {
  const LaunchImage launch = launchWith({4704, 1, 1}, {256, 1, 1}, {384, 3136, 1204224});
  std::vector<ArgumentInteger> integers = {{0, 0, 4, true}, {1, 0, 4, true}, {2, 0, 4, true}};
  std::set<int64_t> left;
  bool isUneven = false;
  for (const std::vector<LaunchImage> &list : launchesWithNearSizes(launch, {"", "", integers, {}, false}))
    for (const LaunchImage &other : list) {
      const int64_t rows = valueOf(other, integers[0]), columns = valueOf(other, integers[1]),
                    all = valueOf(other, integers[2]);
      left.insert(columns % 4);
      isUneven |= rows % 4 == 0 && columns % 4 == 0 && all < rows * columns;
      EXPECT_GE(other.grid[0] * 256, all);
    }
  EXPECT_EQ(left.size(), 4u);
  EXPECT_TRUE(isUneven);
}

// What happens to be as large as the block may be a size all the same.
TEST(DerivedSizes, NearSizesChangeWhatIsAsLargeAsTheBlock) {
  const LaunchImage launch = launchWith({1, 1, 1}, {64, 1, 1}, {16, 32, 64});
  std::vector<ArgumentInteger> integers = {{0, 0, 4, true}, {1, 0, 4, true}, {2, 0, 4, true}};
  std::set<int64_t> rows;
  for (const std::vector<LaunchImage> &list : launchesWithNearSizes(launch, {"", "", integers, {}, false}))
    for (const LaunchImage &other : list)
      rows.insert(valueOf(other, integers[2]));
  EXPECT_GE(rows.size(), 4u);
  EXPECT_TRUE(rows.count(64));
}

// The first alternative may take long where many extents are multiplied.
TEST(DerivedSizes, ManyExtentsAreShortToo) {
  const LaunchImage launch = launchWith({41016, 1, 1}, {256, 1, 1}, {60, 100, 50, 35});
  std::vector<ArgumentInteger> integers;
  for (unsigned i = 0; i < 4; ++i)
    integers.push_back({i, 0, 4, true});
  const auto derived = launchesWithOtherSizes(launch, {"", "", integers, {}, false});
  ASSERT_GE(derived.front().size(), 2u);
  EXPECT_LT(derived.front()[1].grid[0], derived.front()[0].grid[0]);
}

TEST(DerivedSizes, KeepTheSmallestThatAKernelMayBeWrittenFor) {
  using Rows = std::vector<std::vector<int>>;
  // Points, features, centers: all odd; more than one block of points.
  const LaunchImage points = launchWith({4096, 1, 1}, {256, 1, 1}, {1 << 20, 16, 64});
  EXPECT_EQ(derivedFrom(points, /*addsRare=*/true), (Rows{{52, 16, 44, 1, 1, 1},
                                                          {12, 4, 8, 1, 1, 1},
                                                          {53, 11, 43, 1, 1, 1},
                                                          {797, 16, 43, 8, 1, 1},
                                                          {813, 16, 59, 8, 1, 1},
                                                          {797, 16, 64, 8, 1, 1}}));
  EXPECT_EQ(derivedFrom(points).size(), 9u);
  // It may have to be no smaller than what is kept.
  const std::vector<ArgumentInteger> three = {{0, 0, 4, true}, {1, 0, 4, true}, {2, 0, 4, true}};
  const std::vector<LaunchImage> alternatives = launchesWithOtherSizes(points, {"", "", three, {}, true}).back();
  ASSERT_EQ(alternatives.size(), 4u);
  // And one block of points may be all that there is time for.
  EXPECT_EQ(alternatives[0].grid[0], 8u);
  EXPECT_EQ(alternatives[2].grid[0], 5u);
  // Heads that no integer tells.
  EXPECT_EQ(derivedFrom(launchWith({128, 128, 8}, {16, 16, 1}, {2048, 64})).front(),
            (std::vector<int>{43, 37, 3, 3, 2}));
  // Rows that are long.
  EXPECT_EQ(derivedFrom(launchWith({512, 1, 1}, {128, 1, 1}, {512, 1024}), true),
            (Rows{{252, 504, 252, 1, 1}, {4, 8, 4, 1, 1}, {37, 74, 45, 1, 1}}));
}
