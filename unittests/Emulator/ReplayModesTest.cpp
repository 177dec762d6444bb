//===- ReplayModesTest.cpp - one kernel through every mode ----------------===//
//
// A launch, written as a workload by hand, is replayed on modules of each mode.
//
//===----------------------------------------------------------------------===//
#include "optiml/Emulator/Build.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/Replay.h"
#include "optiml/Workload/Workload.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <map>

using namespace optiml;
using namespace optiml::emu;

namespace {

const char *source = R"(
#include <cuda_runtime.h>
__global__ void dot(const float *x, const float *y, float *out, int n) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] * y[i] : 0.0f;
  __syncthreads();
  for (int o = 32; o > 0; o /= 2) {
    if (threadIdx.x < o)
      s[threadIdx.x] += s[threadIdx.x + o];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    out[blockIdx.x] = s[0];
}
)";

/// A cell of a .shadow file.
struct Record {
  uint64_t offset;
  uint32_t bytes, additions;
  double value, magnitude;
};

class ReplayModes : public testing::Test {
protected:
  void SetUp() override {
    toolchain = llvm::cantFail(Toolchain::find("x"));
    options = CompileOptions::parse({dir.file("a.cu")});
    llvm::cantFail(writeFileAtomically(dir.file("a.cu"), source));
    std::vector<float> x(n), y(n), out(4);
    for (int i = 0; i < n; ++i) {
      x[i] = 1.0f / float(i + 1);
      y[i] = i % 2 ? -1.0f : 1.0f;
    }
    LaunchImage launch;
    launch.kernel = "_Z3dotPKfS0_Pfi";
    launch.name = "dot";
    launch.grid = {4, 1, 1};
    launch.block = {64, 1, 1};
    addBuffer(launch, x);
    addBuffer(launch, y);
    addBuffer(launch, out);
    ArgumentImage count;
    count.bytes.assign(reinterpret_cast<const char *>(&n), sizeof n);
    launch.arguments.push_back(count);
    workload.directory = dir.path();
    workload.launches = {launch};
    workload.totalLaunches = 1;
    std::string error;
    ASSERT_TRUE(workload.write(error)) << error;
  }

  void addBuffer(LaunchImage &launch, const std::vector<float> &content) {
    size_t index = launch.buffers.size();
    BufferImage buffer;
    buffer.address = 0x200000001000 + 0x1000 * index;
    buffer.bytes = content.size() * sizeof(float);
    buffer.before = buffer.after = "in" + std::to_string(index) + ".bin";
    llvm::cantFail(writeFileAtomically(dir.file(buffer.before),
                                       llvm::StringRef(reinterpret_cast<const char *>(content.data()), buffer.bytes)));
    ArgumentImage pointer;
    pointer.bytes.assign(reinterpret_cast<const char *>(&buffer.address), sizeof buffer.address);
    pointer.isPointer = true;
    pointer.buffer = int(index);
    launch.arguments.push_back(pointer);
    launch.buffers.push_back(buffer);
  }

  /// Replays the launch on `text` (or the original) in this mode.
  ReplayResult replay(uint32_t mode, const std::string &text = source) {
    std::string error;
    llvm::cantFail(buildReplayModule(dir.file("a.cu"), text, options, toolchain, mode, dir.file("m.so")));
    const LaunchImage &launch = workload.launches[0];
    ReplayJob job;
    job.module = dir.file("m.so");
    job.workload = dir.path();
    job.outputDir = dir.path();
    ReplayStep step;
    step.kernel = launch.kernel;
    step.grid = launch.grid;
    step.block = launch.block;
    step.arguments = {0, 1, 2, 3};
    job.steps = {step};
    EXPECT_TRUE(writeJob(job, dir.file("job.json"), error)) << error;
    ProcessResult process = llvm::cantFail(
        runProcess({toolchain.libDir + "/../bin/optiml-replay", dir.file("job.json"), dir.file("result.json")}));
    EXPECT_TRUE(process.ok()) << process.describe() << process.err;
    ReplayResult result;
    EXPECT_TRUE(readResult(dir.file("result.json"), result, error)) << error;
    return result;
  }

  template <typename T> std::vector<T> output(const std::string &suffix) {
    unsigned index = unsigned(workload.launches[0].arguments[2].buffer);
    std::string bytes = llvm::cantFail(readFile(dir.file("b" + std::to_string(index) + suffix)));
    std::vector<T> values(bytes.size() / sizeof(T));
    memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }

  static std::string replaced(const std::string &from, const std::string &to) {
    std::string text = source;
    text.replace(text.find(from), from.size(), to);
    return text;
  }

  TempDir dir = llvm::cantFail(TempDir::create("optiml-replay-test"));
  const int n = 256;
  Toolchain toolchain;
  CompileOptions options;
  Workload workload;
};

TEST_F(ReplayModes, VerifyAcceptsTheOriginal) {
  ReplayResult result = replay(ModeVerify);
  EXPECT_TRUE(result.ok);
  EXPECT_TRUE(result.faults.empty());
  EXPECT_EQ(output<float>(".bin").size(), 4u);
}

TEST_F(ReplayModes, VerifySeesADroppedBarrier) {
  ReplayResult result = replay(ModeVerify, replaced("    __syncthreads();\n  }", "  }"));
  ASSERT_FALSE(result.faults.empty());
  EXPECT_EQ(result.faults[0].kind, "race") << result.faults[0].message;
}

TEST_F(ReplayModes, BoundsSeeAWideIndex) {
  ReplayResult result = replay(ModeBounds, replaced("s[threadIdx.x + o]", "s[threadIdx.x + 2 * o]"));
  ASSERT_FALSE(result.faults.empty());
  EXPECT_EQ(result.faults[0].kind, "out-of-bounds");
  EXPECT_NE(result.faults[0].message.find("'s'"), std::string::npos) << result.faults[0].message;
}

TEST_F(ReplayModes, ShadowGivesTheDoubleResultAndItsMagnitude) {
  ASSERT_TRUE(replay(ModeShadow).ok);
  std::vector<Record> shadows = output<Record>(".shadow");
  ASSERT_EQ(shadows.size(), 4u);
  EXPECT_EQ(shadows[0].offset, 0u);
  double value = 0, magnitude = 0;
  for (int i = 0; i < 64; ++i) {
    double term = double(1.0f / float(i + 1));
    value += i % 2 ? -term : term;
    magnitude += term;
  }
  EXPECT_NEAR(shadows[0].value, value, 1e-12);
  EXPECT_NEAR(shadows[0].magnitude, magnitude, 1e-6);
  EXPECT_NEAR(output<float>(".bin")[0], value, 1e-5);
}

// As relative errors do: elimination and powers would have no bound otherwise.
TEST_F(ReplayModes, MagnitudesOfFactorsAddUp) {
  ASSERT_TRUE(replay(ModeShadow, replaced("out[blockIdx.x] = s[0];", "if (blockIdx.x == 0) {"
                                                                     "  float a = x[0] * 3 - x[0] * 2, p = a;"
                                                                     "  for (int i = 0; i < 6; ++i) p *= a;"
                                                                     "  out[0] = p; out[1] = 1 / p; }"))
                  .ok);
  std::vector<Record> shadows = output<Record>(".shadow");
  ASSERT_EQ(shadows.size(), 2u);
  EXPECT_EQ(output<float>(".bin")[0], 1);
  EXPECT_NEAR(shadows[0].magnitude, 29, 0.1); // 5, and 4 more for each factor
  EXPECT_NEAR(shadows[1].magnitude, 29, 0.1);
}

// Of what has not a digit left; else a result of 0 would have to be met exactly.
TEST_F(ReplayModes, MagnitudesStayFinite) {
  ASSERT_TRUE(replay(ModeShadow, replaced("out[blockIdx.x] = s[0];", "if (blockIdx.x == 0) {"
                                                                     "  float p = (x[0] + 0x1p40f) - 0x1p40f;"
                                                                     "  for (int i = 0; i < 8; ++i) p *= p;"
                                                                     "  out[0] = p - p; }"))
                  .ok);
  std::vector<Record> shadows = output<Record>(".shadow");
  ASSERT_EQ(shadows.size(), 1u);
  EXPECT_EQ(shadows[0].value, 0);
  EXPECT_GT(shadows[0].magnitude, 0x1p80);
  EXPECT_LT(shadows[0].magnitude, 0x1p200);
}

// A double has the tolerance of a double only where no rounded float went into it.
TEST_F(ReplayModes, MagnitudeOfADoubleTellsThatFloatsWentIntoIt) {
  ASSERT_TRUE(
      replay(ModeShadow, replaced("out[blockIdx.x] = s[0];", "if (blockIdx.x == 0) {"
                                                             "  reinterpret_cast<double *>(out)[0] = s[0];"
                                                             "  reinterpret_cast<double *>(out)[1] = x[2] * 3.0; }"))
          .ok);
  std::vector<Record> shadows = output<Record>(".shadow");
  ASSERT_EQ(shadows.size(), 2u);
  EXPECT_NE(output<double>(".bin")[0], shadows[0].value);
  EXPECT_GT(shadows[0].magnitude, 0x1p20);
  EXPECT_EQ(output<double>(".bin")[1], shadows[1].value);
  EXPECT_LT(shadows[1].magnitude, 2);
}

// However they are rounded and packed. What was computed is known up to the store; a load finds the rounded number.
TEST_F(ReplayModes, NumbersOf16BitsHaveTwins) {
  const double third = double(1.0f / 3.0f); // x[2]
  std::string body = "if (blockIdx.x == 0) {"
                     "  auto *h = reinterpret_cast<__half *>(out);"
                     "  auto *b = reinterpret_cast<__nv_bfloat16 *>(out);"
                     "  h[0] = __float2half(x[2]);"
                     "  b[1] = __nv_bfloat16(x[2]);"
                     "  reinterpret_cast<__half2 *>(out)[1] = __floats2half2_rn(1, x[2]);"
                     "  __nv_bfloat162 pair(b[1], b[1]);"
                     "  pair.y = __float2bfloat16(x[2] + 1);"
                     "  __shared__ __nv_bfloat162 kept;"
                     "  kept = pair;"
                     "  reinterpret_cast<__nv_bfloat162 *>(out)[2] = kept; }";
  ASSERT_TRUE(
      replay(ModeShadow, "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" + replaced("out[blockIdx.x] = s[0];", body))
          .ok);
  std::map<uint64_t, double> values;
  for (const Record &r : output<Record>(".shadow")) {
    EXPECT_EQ(r.bytes, 2u);
    values[r.offset / 2] = r.value;
  }
  EXPECT_EQ(values[0], third);
  EXPECT_EQ(values[1], third);
  EXPECT_EQ(values[3], third);
  EXPECT_EQ(values[5], third + 1);
  EXPECT_FALSE(values.count(4) && values[4] == third) << "it was loaded";
}

TEST_F(ReplayModes, TraceCountsWarpAccesses) {
  ReplayResult result = replay(ModeTrace);
  ASSERT_TRUE(result.ok);
  ASSERT_EQ(result.traces.size(), 1u);
  const LaunchTrace &trace = result.traces[0];
  EXPECT_EQ(trace.tracedBlocks, 4u);
  double globalLoads = 0, sectors = 0;
  for (const SiteTrace &site : trace.sites)
    if (!site.shared && !site.local && site.kind == AccessLoad) {
      globalLoads += site.warpAccesses;
      sectors += site.sectors;
    }
  EXPECT_EQ(globalLoads, 4 * 2 * 2); // blocks, warps, x and y
  EXPECT_EQ(sectors, globalLoads * 4);
  EXPECT_EQ(trace.barrier, 4 * 2 * 7);
  EXPECT_GT(trace.fp32, 0);
}

} // namespace
