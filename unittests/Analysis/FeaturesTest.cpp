//===- FeaturesTest.cpp - what a kernel is like, without its names --------===//
#include "optiml/Analysis/Features.h"
#include "optiml/Analysis/Read.h"
#include <gtest/gtest.h>

using namespace optiml;

namespace {

const char *source = R"(
__global__ void rowSums(const float *a, float *out, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float sum = 0;
    for (int c = 0; c < cols; ++c)
      sum += a[r * cols + c];
    out[r] = sum;
  }
}
__global__ void f(const float *x1, float *x2, int x3, int x4) {
  int x5 = threadIdx.x + blockDim.x * blockIdx.x;
  if (x5 < x3) {
    float x6 = 0; for (int x7 = 0; x7 < x4; ++x7) { x6 += x1[x5 * x4 + x7]; }
    x2[x5] = x6;
  }
}
__global__ void columnSums(const float *a, float *out, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < cols) {
    float sum = 0;
    for (int r = 0; r < rows; ++r)
      sum += a[r * cols + c];
    out[c] = sum;
  }
}
__global__ void gatherHistogram(const int *which, const int *data, int *bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&bins[data[which[i]]], 1);
}
)";

class Features : public testing::Test {
protected:
  static void SetUpTestSuite() {
    Toolchain toolchain = llvm::cantFail(Toolchain::find("x"));
    auto options = CompileOptions::parse({"/kernels.cu"});
    auto program = llvm::cantFail(Program::parse("/kernels.cu", source, options, toolchain, View::Device));
    for (const KernelDecl &decl : program->kernels())
      kernels[decl.name] = llvm::cantFail(readKernel(*program, decl));
  }
  static void TearDownTestSuite() { kernels.clear(); }
  static KernelFeatures of(const std::string &name, const LaunchFacts &launch = {}) {
    return kernelFeatures(*kernels.at(name), launch);
  }
  static inline std::map<std::string, std::shared_ptr<const Kernel>> kernels;
};

TEST_F(Features, NamesAndLayoutDoNotCount) {
  EXPECT_EQ(of("rowSums").key(), of("f").key());
  EXPECT_NE(of("rowSums").key(), of("columnSums").key());
  for (const std::string &token : of("rowSums").tokens)
    EXPECT_EQ(token.find("rows"), std::string::npos) << token;
}

TEST_F(Features, TellHowNeighbouringThreadsReadMemory) {
  KernelFeatures rows = of("rowSums"), columns = of("columnSums"), gather = of("gatherHistogram");
  EXPECT_GT(rows.numbers["threads.far"], 0.7);
  EXPECT_GT(columns.numbers["threads.next"], 0.9);
  EXPECT_GT(gather.numbers["threads.gather"], 0.3);
  EXPECT_EQ(rows.numbers.count("threads.gather"), 0u);
}

TEST_F(Features, TellLoopsFoldsAndAtomics) {
  KernelFeatures rows = of("rowSums"), gather = of("gatherHistogram");
  EXPECT_GT(rows.numbers["folds"], 0);
  EXPECT_EQ(rows.numbers["depth"], 0.25);
  EXPECT_EQ(gather.numbers.count("depth"), 0u);
  EXPECT_GT(gather.numbers["atomics"], 0);
}

TEST_F(Features, TheLaunchsSizeCounts) {
  LaunchFacts small{{1, 1, 1}, {32, 1, 1}, {{"cols", 16}}}, large{{4096, 1, 1}, {256, 1, 1}, {{"cols", 4096}}};
  EXPECT_LT(of("rowSums", small).numbers["parallelism"], of("rowSums", large).numbers["parallelism"]);
  EXPECT_LT(of("rowSums", small).numbers["iterations"], of("rowSums", large).numbers["iterations"]);
}

} // namespace
