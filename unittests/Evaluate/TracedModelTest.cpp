//===- TracedModelTest.cpp - the model on the emulator's traces -----------===//
//
// The whole way: CUDA text, trace of a few blocks, ptxas, prediction; against times measured on an H200.
//
//===----------------------------------------------------------------------===//
#include "optiml/Emulator/Build.h"
#include "optiml/Evaluate/Predict/PerformanceModel.h"
#include "optiml/Evaluate/Predict/Ptxas.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/Replay.h"
#include "optiml/Workload/Workload.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"
#include "gtest/gtest.h"

using namespace optiml;

namespace {

const char *source = R"(
extern "C" __global__ void naive(int n, const float *a, const float *b, float *c) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n && col < n) {
    float sum = 0.0f;
    for (int p = 0; p < n; ++p)
      sum += a[row * n + p] * b[p * n + col];
    c[row * n + col] = sum;
  }
}
// The same with its sum in memory.
extern "C" __global__ void updating(int n, const float *a, const float *b, float *c) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  for (int p = 0; p < n; ++p)
    c[row * n + col] += a[row * n + p] * b[p * n + col];
}
// 16x16 threads, 8x8 outputs a thread, tiles of 8; a thread's outputs are adjacent.
extern "C" __global__ void __launch_bounds__(256) staged(int n, const float *a, const float *b, float *c) {
  __shared__ float as[8][132];
  __shared__ float bs[8][128];
  float acc[8][8] = {};
  int tx = threadIdx.x, ty = threadIdx.y, tid = ty * 16 + tx;
  int row0 = blockIdx.y * 128, col0 = blockIdx.x * 128;
  for (int k0 = 0; k0 < n; k0 += 8) {
#pragma unroll
    for (int i = tid; i < 1024; i += 256)
      as[i % 8][i / 8] = a[(row0 + i / 8) * n + k0 + i % 8];
#pragma unroll
    for (int i = tid; i < 1024; i += 256)
      bs[i / 128][i % 128] = b[(k0 + i / 128) * n + col0 + i % 128];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; ++k)
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j)
          acc[i][j] += as[k][ty * 8 + i] * bs[k][tx * 8 + j];
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j)
      c[(row0 + ty * 8 + i) * n + col0 + tx * 8 + j] = acc[i][j];
}
// Not run: recursion that looks at no thread's number, and a loop of which Clang says nothing, ended the compiler.
__device__ float halves(int x) { return x < 0 ? 0.0f : halves(x + 1) * 2.0f + 1.0f; }
__global__ void recursive(int n, float *out) { out[threadIdx.x] = halves(n); }
__global__ void endless(int n, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  while (out[0] == out[0] || i < n)
    out[0] += 1.0f;
}
)";

class TracedModel : public testing::Test {
protected:
  static void SetUpTestSuite() {
    dir = new TempDir(llvm::cantFail(TempDir::create("optiml-traced-model")));
    llvm::cantFail(writeFileAtomically(dir->file("k.cu"), source));
    Toolchain toolchain = llvm::cantFail(Toolchain::find("x"));
    CompileOptions options = CompileOptions::parse({dir->file("k.cu"), "-arch=sm_90"});
    llvm::cantFail(
        emu::buildReplayModule(dir->file("k.cu"), std::nullopt, options, toolchain, emu::ModeTrace, dir->file("k.so")));
    CubinRequest request;
    request.nvcc = toolchain.nvcc;
    request.source = dir->file("k.cu");
    request.cubin = dir->file("k.cubin");
    request.architecture = "sm_90";
    report = llvm::cantFail(compileCubin(request)).report;
  }
  static void TearDownTestSuite() { delete dir; }

  struct Traced {
    emu::LaunchTrace trace;
    Prediction prediction;
  };

  /// Traces at most two blocks of a launch on n×n matrices of zeros.
  Traced run(const char *kernel, int n, uint32_t outputsPerBlock) {
    LaunchImage launch;
    launch.kernel = launch.name = kernel;
    launch.grid = {n / outputsPerBlock, n / outputsPerBlock, 1};
    launch.block = {16, 16, 1};
    ArgumentImage size;
    size.bytes.assign(reinterpret_cast<const char *>(&n), sizeof n);
    launch.arguments.push_back(size);
    uint64_t bytes = uint64_t(n) * n * 4;
    int descriptor; // a file of zeros that takes no room
    EXPECT_FALSE(llvm::sys::fs::openFileForWrite(dir->file("zeros.bin"), descriptor));
    EXPECT_FALSE(llvm::sys::fs::resize_file(descriptor, bytes));
    llvm::sys::Process::SafelyCloseFileDescriptor(descriptor);
    for (int i = 0; i < 3; ++i) {
      BufferImage buffer;
      buffer.address = 0x700000000000 + (uint64_t(i) << 32);
      buffer.bytes = bytes;
      buffer.before = buffer.after = "zeros.bin";
      launch.buffers.push_back(buffer);
      ArgumentImage pointer;
      pointer.isPointer = true;
      pointer.buffer = i;
      pointer.bytes.assign(reinterpret_cast<const char *>(&buffer.address), sizeof buffer.address);
      launch.arguments.push_back(pointer);
    }
    Workload workload;
    workload.directory = dir->path();
    workload.launches = {launch};
    workload.totalLaunches = 1;
    std::string error;
    EXPECT_TRUE(workload.write(error)) << error;

    LaunchShape shape{launch.grid, launch.block, 0, 3.0 * double(bytes)};
    TracePlan plan = planTrace(gpu, report[kernel], shape, 2);
    emu::ReplayJob job;
    job.module = dir->file("k.so");
    job.workload = dir->path();
    job.steps = {{kernel, launch.grid, launch.block, 0, {0, 1, 2, 3}}};
    job.outputDir = dir->path();
    job.onlyBlocks = plan.blocks;
    job.l1Bytes = plan.l1Bytes;
    EXPECT_TRUE(emu::writeJob(job, dir->file("job.json"), error)) << error;
    ProcessResult child =
        llvm::cantFail(runProcess({OPTIML_BUILD_DIR "/bin/optiml-replay", dir->file("job.json"), dir->file("r.json")}));
    EXPECT_TRUE(child.ok()) << child.describe() << child.err;
    emu::ReplayResult result;
    EXPECT_TRUE(emu::readResult(dir->file("r.json"), result, error)) << error;
    if (result.traces.size() != 1) {
      ADD_FAILURE() << "no trace";
      return {};
    }
    return {result.traces[0], predictLaunch(result.traces[0], report[kernel], shape, gpu)};
  }

  static void expectWithinTwo(double predicted, double measured) {
    EXPECT_LT(predicted, measured * 2);
    EXPECT_GT(predicted, measured / 2);
  }

  static double perWarp(const emu::LaunchTrace &trace, double sum) {
    return sum / double(trace.tracedBlocks * trace.warpsPerBlock);
  }

  static inline TempDir *dir;
  static inline PtxasReport report;
  const GpuSpec &gpu = *GpuSpec::find("H200");
};

} // namespace

TEST_F(TracedModel, PredictsNaiveAndStagedSgemmWithinAFactorOfTwo) {
  expectWithinTwo(run("naive", 1024, 16).prediction.seconds, 427e-6);
  expectWithinTwo(run("naive", 4096, 16).prediction.seconds, 26.7e-3);
  expectWithinTwo(run("staged", 4096, 128).prediction.seconds, 2.67e-3 / 0.61);
}

TEST_F(TracedModel, CountsAddressesAsAGpuCompilerLeavesThem) {
  Traced naive = run("naive", 256, 16);
  EXPECT_NEAR(perWarp(naive.trace, naive.trace.fp32), 256, 8);
  EXPECT_NEAR(perWarp(naive.trace, naive.trace.memory), 2 * 256, 8);
  // Two pointers, the counter and its comparison, and at most as much again; not the ten of the source's arithmetic.
  EXPECT_LT(perWarp(naive.trace, naive.trace.int32), 8 * 256);
}

TEST_F(TracedModel, LoopsAreUnrolledAsNvccDoes) {
  // Four iterations' loads are asked for together.
  double most = 0;
  size_t together = 0;
  for (const emu::BasicBlockTrace &block : run("naive", 256, 16).trace.basicBlocks)
    if (block.times > most && !block.waits.empty()) {
      most = block.times;
      together = block.waits.front().size();
    }
  EXPECT_EQ(most, 64);
  EXPECT_EQ(together, 8u);
}

TEST_F(TracedModel, LoadsStayBehindStoresThatMayBeToTheSamePlace) {
  double waits = 0;
  for (const emu::BasicBlockTrace &block : run("updating", 256, 16).trace.basicBlocks)
    waits += block.times * double(block.waits.size());
  EXPECT_NEAR(waits, 256, 4);
}

TEST_F(TracedModel, NeighbouringWordsOfSharedMemoryAreReadTogether) {
  Traced staged = run("staged", 256, 128);
  double loads = 0;
  for (const emu::SiteTrace &site : staged.trace.sites)
    if (site.shared && site.kind == emu::AccessLoad) {
      loads += site.warpAccesses;
      EXPECT_LE(site.bankConflicts, 3 * site.warpAccesses);
    }
  // Eight words of A and eight of B for each of 256 products: four accesses when all are joined, sixteen when none is.
  EXPECT_GE(perWarp(staged.trace, loads), 256 * 4 - 1);
  EXPECT_LE(perWarp(staged.trace, loads), 256 * 8);
}
