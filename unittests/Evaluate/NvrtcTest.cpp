//===- NvrtcTest.cpp - kernels alone, through NVRTC -----------------------===//
#include "optiml/Evaluate/Predict/Nvrtc.h"
#include "optiml/Support/TempDir.h"
#include "gtest/gtest.h"

using namespace optiml;

TEST(Nvrtc, TakesFlagsThatMeanTheSame) {
  using Words = std::vector<std::string>;
  struct {
    Words flags;
    std::optional<Words> options;
  } table[] = {
      {{"-DN=4", "-D", "M=5", "-Iinc", "-I", "more"}, Words{"-DN=4", "-DM=5", "-Iinc", "-Imore"}},
      {{"--use_fast_math", "-maxrregcount=64", "--maxrregcount", "32"},
       Words{"--use_fast_math", "--maxrregcount=64", "--maxrregcount=32"}},
      {{"-std=c++17", "-Xptxas", "-O2", "-isystem", "sys"}, Words{"--std=c++17", "--ptxas-options=-O2", "-Isys"}},
      {{"--expt-relaxed-constexpr", "-w", "-ccbin", "g++", "--ftz=true"}, Words{"--ftz=true"}},
      {{"-include", "all.h"}, std::nullopt},
      {{"-dlto"}, std::nullopt},
      {{"-D"}, std::nullopt},
  };
  for (const auto &row : table)
    EXPECT_EQ(nvrtcOptions(row.flags), row.options) << row.flags.front();
}

TEST(Nvrtc, MakesTheCodeThatNvccMakes) {
  auto toolchain = llvm::cantFail(Toolchain::find(OPTIML_BUILD_DIR "/bin/optiml-opt"));
  toolchain.libDir = OPTIML_BUILD_DIR "/lib";
  std::optional<Nvrtc> nvrtc = Nvrtc::find(toolchain);
  if (!nvrtc)
    GTEST_SKIP() << "the toolkit has no NVRTC";
  TempDir dir = llvm::cantFail(TempDir::create("optiml-nvrtc-test"));
  CubinRequest request;
  request.nvcc = toolchain.nvcc;
  request.source = dir.file("k.cu");
  request.cubin = dir.file("nvcc.cubin");
  request.architecture = "sm_90";
  request.limits.seconds = 60;
  const std::string first =
                        "__global__ void sum(const float *a, float *b, int n) {\n"
                        "  float s = 0;\n  for (int i = threadIdx.x; i < n; i += blockDim.x)\n    s += sqrtf(a[i]);\n"
                        "  atomicAdd(b, s);\n}\n",
                    second = "template <typename T> __global__ void scale(T *a) { a[threadIdx.x] *= 2; }\n";
  llvm::cantFail(writeFileAtomically(request.source, first + second + "template __global__ void scale(double *);\n"));
  CubinResult whole = llvm::cantFail(compileCubin(request));
  ASSERT_TRUE(whole.ok) << whole.diagnostics;

  CubinRequest alone = request;
  alone.cubin = dir.file("nvrtc.cubin");
  llvm::cantFail(writeFileAtomically(alone.source, first + second));
  CubinResult result = llvm::cantFail(nvrtc->compile(alone, {}, {"scale<double>"}));
  ASSERT_TRUE(result.ok) << result.diagnostics;
  EXPECT_EQ(result.report.size(), 2u);
  for (const auto &[symbol, resources] : result.report)
    EXPECT_EQ(resources.registers, whole.report[symbol].registers) << symbol;
  EXPECT_TRUE(haveLikeCode(alone.cubin, request.cubin));

  llvm::cantFail(
      writeFileAtomically(alone.source, "__global__ void sum(const float *a, float *b, int n) { b[0] = n; }\n"));
  result = llvm::cantFail(nvrtc->compile(alone, {}, {}));
  ASSERT_TRUE(result.ok) << result.diagnostics;
  EXPECT_FALSE(haveLikeCode(alone.cubin, request.cubin));

  llvm::cantFail(writeFileAtomically(alone.source, "__global__ void sum(float *b) { b[0] = nothing; }\n"));
  result = llvm::cantFail(nvrtc->compile(alone, {}, {}));
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.diagnostics.find("nothing"), std::string::npos) << result.diagnostics;
  EXPECT_FALSE(haveLikeCode(dir.file("missing.cubin"), request.cubin));
}

// A header is precompiled by one process and used by others, with the same code as without.
TEST(Nvrtc, PrecompilesHeaders) {
  auto toolchain = llvm::cantFail(Toolchain::find(OPTIML_BUILD_DIR "/bin/optiml-opt"));
  toolchain.libDir = OPTIML_BUILD_DIR "/lib";
  std::optional<Nvrtc> nvrtc = Nvrtc::find(toolchain);
  if (!nvrtc)
    GTEST_SKIP() << "the toolkit has no NVRTC";
  TempDir dir = llvm::cantFail(TempDir::create("optiml-nvrtc-test"));
  CubinRequest request;
  request.source = dir.file("k.cu");
  request.cubin = dir.file("k.cubin");
  request.architecture = "sm_90";
  request.limits.seconds = 60;
  const std::string head = "#include <cuda_fp16.h>\n", precompiled = dir.file("head.pch"),
                    kernel = "__global__ void k(__half *x) { x[threadIdx.x] = __hadd(x[threadIdx.x], x[0]); }\n";
  llvm::cantFail(writeFileAtomically(request.source, head));
  CubinResult created = llvm::cantFail(nvrtc->compile(request, {"--create-pch=" + precompiled}, {}));
  if (!created.ok)
    GTEST_SKIP() << "this NVRTC, or this machine, precompiles no headers: " << created.diagnostics;
  llvm::cantFail(writeFileAtomically(request.source, head + kernel));
  CubinResult plain = llvm::cantFail(nvrtc->compile(request, {}, {}));
  ASSERT_TRUE(plain.ok) << plain.diagnostics;
  CubinRequest other = request;
  other.cubin = dir.file("other.cubin");
  CubinResult quick = llvm::cantFail(nvrtc->compile(other, {"--use-pch=" + precompiled}, {}));
  ASSERT_TRUE(quick.ok) << quick.diagnostics;
  EXPECT_TRUE(haveLikeCode(other.cubin, request.cubin));
  EXPECT_EQ(quick.report.size(), 1u);
}
