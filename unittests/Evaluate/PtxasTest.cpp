//===- PtxasTest.cpp - what ptxas says ------------------------------------===//
#include "optiml/Evaluate/Predict/Ptxas.h"
#include "optiml/Evaluate/Predict/Compile.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "gtest/gtest.h"
#include <cstdlib>

using namespace optiml;

TEST(Ptxas, ReadsEveryKernel) {
  PtxasReport report = parsePtxasOutput(R"(ptxas info    : 16 bytes gmem, 12 bytes cmem[3]
ptxas info    : Compiling entry function '_Z5sgemmPfS_S_i' for 'sm_90'
ptxas info    : Function properties for _Z5sgemmPfS_S_i
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 122 registers, used 1 barriers, 9216 bytes smem, 380 bytes cmem[0]
ptxas info    : Compile time = 23.123 ms
ptxas info    : Compiling entry function '_Z3bigPd' for 'sm_90'
ptxas info    : Function properties for _Z3bigPd
    560 bytes stack frame, 564 bytes spill stores, 612 bytes spill loads
ptxas info    : Used 255 registers, 560 bytes cumulative stack size, 360 bytes cmem[0]
)");
  ASSERT_EQ(report.size(), 2u);
  EXPECT_EQ(report["_Z5sgemmPfS_S_i"].registers, 122u);
  EXPECT_EQ(report["_Z5sgemmPfS_S_i"].staticShared, 9216u);
  EXPECT_EQ(report["_Z5sgemmPfS_S_i"].spillStores, 0u);
  EXPECT_EQ(report["_Z3bigPd"].registers, 255u);
  EXPECT_EQ(report["_Z3bigPd"].staticShared, 0u);
  EXPECT_EQ(report["_Z3bigPd"].spillStores, 564u);
  EXPECT_EQ(report["_Z3bigPd"].spillLoads, 612u);
  EXPECT_TRUE(parsePtxasOutput("nonsense\nUsed 3 registers\n").empty());
}

TEST(Ptxas, KeepsTheFlagsThatReachDeviceCode) {
  std::vector<std::string> kept = cubinFlags({"-O3",
                                              "-c",
                                              "app.cu",
                                              "-o",
                                              "-odd.o",
                                              "-DN=4",
                                              "-D",
                                              "M=5",
                                              "-Iinc",
                                              "-I",
                                              "more",
                                              "-arch=sm_90",
                                              "-gencode",
                                              "arch=compute_90,code=sm_90",
                                              "--use_fast_math",
                                              "-maxrregcount=64",
                                              "-Xcompiler",
                                              "-DHOST",
                                              "-lcublas",
                                              "-std=c++17",
                                              "-Xptxas",
                                              "-O2",
                                              "--maxrregcount",
                                              "32",
                                              "-isystem",
                                              "sys"});
  EXPECT_EQ(kept, (std::vector<std::string>{"-DN=4", "-D", "M=5", "-Iinc", "-I", "more", "--use_fast_math",
                                            "-maxrregcount=64", "-std=c++17", "-Xptxas", "-O2", "--maxrregcount", "32",
                                            "-isystem", "sys"}));
}

namespace {
std::string findNvcc() {
  if (const char *named = getenv("OPTIML_NVCC"))
    return named;
  std::string found = findOnPath("nvcc");
  return found.empty() ? "/usr/local/cuda/bin/nvcc" : found;
}
} // namespace

TEST(Ptxas, CompilesWithNvcc) {
  TempDir dir = llvm::cantFail(TempDir::create("optiml-ptxas-test"));
  CubinRequest request;
  request.nvcc = findNvcc();
  request.source = dir.file("k.cu");
  request.cubin = dir.file("k.cubin");
  request.architecture = "sm_90";
  request.flags = {"-DSIZE=256"};
  request.limits.seconds = 60;
  llvm::cantFail(writeFileAtomically(request.source, "extern \"C\" __global__ void k(float *a) {\n"
                                                     "  __shared__ float t[SIZE];\n"
                                                     "  t[threadIdx.x] = a[threadIdx.x];\n  __syncthreads();\n"
                                                     "  a[threadIdx.x] = t[SIZE - 1 - threadIdx.x];\n}\n"));
  CubinResult good = llvm::cantFail(compileCubin(request));
  ASSERT_TRUE(good.ok) << good.diagnostics;
  EXPECT_EQ(good.report["k"].staticShared, 1024u);
  EXPECT_GT(good.report["k"].registers, 0u);
  llvm::cantFail(writeFileAtomically(request.source, "__global__ void k(float *a) { a[0] = nothing; }\n"));
  CubinResult bad = llvm::cantFail(compileCubin(request));
  EXPECT_FALSE(bad.ok);
  EXPECT_NE(bad.diagnostics.find("nothing"), std::string::npos) << bad.diagnostics;
  request.nvcc = "/nonexistent/nvcc";
  auto missing = compileCubin(request);
  ASSERT_FALSE(bool(missing));
  EXPECT_NE(llvm::toString(missing.takeError()).find("/nonexistent/nvcc"), std::string::npos);
}

// As NVRTC, nvcc and Clang name kernels in namespaces, with and without a name, and instantiations.
TEST(Ptxas, FindsKernelsByPlainName) {
  CompiledText text;
  for (const char *symbol : {"_ZN42_GLOBAL__N__00000000_5_dt_cu_c7b46af4_328313radial_optimlEPKNS_4AtomEPKiS4_Pf",
                             "_ZN2ns5scaleEPfi", "_Z5blendIfEvPKT_", "plain"})
    text.ptxas[symbol] = {};
  EXPECT_EQ(text.symbolOf("radial_optiml").find("_ZN42"), 0u);
  EXPECT_EQ(text.symbolOf("scale"), "_ZN2ns5scaleEPfi");
  EXPECT_EQ(text.symbolOf("_Z5blendIfEvPKT_"), "_Z5blendIfEvPKT_");
  EXPECT_EQ(text.symbolOf("plain"), "plain");
  EXPECT_EQ(text.symbolOf("radial"), "");
}
