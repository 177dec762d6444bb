//===- VerifierTest.cpp - variants against the original -------------------===//
#include "optiml/Evaluate/Verify/Verifier.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/Blob.h"
#include "llvm/Support/FileSystem.h"
#include <cstring>
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

  void makeVerifier() {
    auto build = [](const std::string &text,
                    const std::vector<std::pair<uint32_t, std::string>> &outputs) -> llvm::Error {
      if (text == "does not compile")
        return makeError("expected ';'");
      for (auto &[mode, out] : outputs)
        if (std::error_code ec = llvm::sys::fs::copy_file(std::string(MODULE_DIR) + "/verify-module-" + text + "-" +
                                                              std::to_string(mode & ~emu::ModeCoverage) + ".so",
                                                          out))
          return makeError("no module for {0}: {1}", text, ec.message());
      return llvm::Error::success();
    };
    verifier = llvm::cantFail(Verifier::create(build, "0", {w}, options));
  }

  BufferImage buffer(uint64_t address, const std::vector<float> &v) {
    std::string name = blobName(v.data(), v.size() * 4), error;
    EXPECT_TRUE(writeBlob(dir.path(), name, v.data(), v.size() * 4, error)) << error;
    return {address, v.size() * 4, "", false, false, name, name};
  }

  VerifyReport verify(const std::string &text) {
    variant.text = text;
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

TEST_F(Verified, LeavesOutWhatTakesTooLong) {
  options.affordableSeconds = 1e-9;
  makeVerifier();
  VerifyReport r = verify("2");
  EXPECT_EQ(r.verdict, Verdict::NotApplicable) << "neither right nor wrong";
  EXPECT_EQ(r.unaffordable, 1u);
  EXPECT_EQ(r.launches, 0u);
  EXPECT_NE(r.why.find("takes longer than"), std::string::npos) << r.why;
}
