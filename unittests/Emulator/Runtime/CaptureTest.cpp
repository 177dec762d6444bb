//===- CaptureTest.cpp - which launches are recorded ----------------------===//
//
// A program of its own: capturing is decided once in a process.
//
//===----------------------------------------------------------------------===//
#include "HandModule.h"
#include "optiml/Workload/Workload.h"
#include <cstdlib>
#include <cstring>
#include <filesystem>

using namespace hand;

namespace {

/// Runs `program` in a child with capture on, and reads the workload.
optiml::Workload captured(void (*program)(), const char *perClass = "2", const char *maxBytes = "1G") {
  char dir[] = "/tmp/optiml-capture-test-XXXXXX";
  EXPECT_NE(mkdtemp(dir), nullptr);
  EXPECT_EXIT(
      {
        setenv("OPTIML_CAPTURE", (std::string(dir) + "/deep/er").c_str(), 1);
        setenv("OPTIML_CAPTURE_PER_CLASS", perClass, 1);
        setenv("OPTIML_CAPTURE_MAX_BYTES", maxBytes, 1);
        program();
        exit(0);
      },
      testing::ExitedWithCode(0), "");
  optiml::Workload w;
  std::string error;
  EXPECT_TRUE(optiml::Workload::read(std::string(dir) + "/deep/er", w, error)) << error;
  std::filesystem::remove_all(dir);
  return w;
}

float *fresh(size_t n) {
  float *p;
  cudaMalloc(reinterpret_cast<void **>(&p), n * 4);
  std::vector<float> ones(n, 1);
  cudaMemcpy(p, ones.data(), n * 4, cudaMemcpyHostToDevice);
  return p;
}

const void *doubling() {
  return addKernel("doubling", ModePlain, [](ThreadContext *c, void **args) { at(args, 0, globalId(c)) *= 2; }, 1);
}

} // namespace

TEST(Capture, KeepsTheFirstAndSpreadsTheRest) {
  optiml::Workload w = captured([] {
    const void *k = doubling();
    float *p = fresh(32), *other = fresh(64);
    for (int i = 0; i < 20; ++i)
      launch(k, 1, 32, {p});
    launch(k, 2, 32, {other});
  });
  EXPECT_EQ(w.totalLaunches, 21u);
  ASSERT_EQ(w.launches.size(), 3u);
  EXPECT_EQ(w.launches[0].sequence, 0u);
  EXPECT_EQ(w.launches[1].sequence, 15u) << "the sixteenth, the last power of two";
  EXPECT_EQ(w.launches[2].sequence, 20u);
  EXPECT_EQ(w.launches[0].weight, 10);
  EXPECT_EQ(w.launches[1].weight, 10);
  EXPECT_EQ(w.launches[2].weight, 1);
  EXPECT_EQ(w.launches[0].launchClass, w.launches[1].launchClass);
  EXPECT_NE(w.launches[0].launchClass, w.launches[2].launchClass);
  EXPECT_NE(w.launches[0].buffers[0].before, w.launches[0].buffers[0].after);
}

TEST(Capture, FollowsPointersInBuffers) {
  optiml::Workload w = captured([] {
    const void *k = addKernel(
        "indirect", ModePlain,
        [](ThreadContext *c, void **args) { (**static_cast<float ***>(args[0]))[c->tid[0]] = 5; }, 1);
    float *data = fresh(32), *unrelated = fresh(8), **table;
    (void)unrelated;
    cudaMalloc(reinterpret_cast<void **>(&table), sizeof data);
    cudaMemcpy(table, &data, sizeof data, cudaMemcpyHostToDevice);
    launch(k, 1, 32, {table});
  });
  ASSERT_EQ(w.launches.size(), 1u);
  EXPECT_EQ(w.launches[0].buffers.size(), 2u) << "the table and what it points to, not the unrelated buffer";
  EXPECT_EQ(w.launches[0].arguments[0].buffer, 1);
}

TEST(Capture, SaysWhatItLeavesOut) {
  optiml::Workload w = captured(
      [] {
        const void *k = doubling();
        launch(k, 1, 32, {fresh(32)});
        launch(k, 1, 32, {fresh(1 << 20)});
      },
      "2", "1M");
  EXPECT_EQ(w.launches.size(), 1u);
  ASSERT_EQ(w.leftOut.size(), 1u);
  EXPECT_NE(w.leftOut[0].find("OPTIML_CAPTURE_MAX_BYTES"), std::string::npos);
}
