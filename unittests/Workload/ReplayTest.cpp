//===- ReplayTest.cpp - optiml-replay -------------------------------------===//
#include "optiml/Workload/Replay.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/Blob.h"
#include "optiml/Workload/Workload.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace optiml;
using namespace optiml::emu;

namespace {

std::string bytesOf(const void *p, size_t n) { return std::string(static_cast<const char *>(p), n); }

/// A workload of one launch: x of 1024 floats, y of 32, the variable factor, n = 32.
class Replayed : public testing::Test {
protected:
  static constexpr uint64_t xAddress = 0x200000000100, yAddress = 0x200000008000;
  TempDir dir = llvm::cantFail(TempDir::create("optiml-replay-test"));
  std::vector<float> x, y;

  void SetUp() override {
    for (int i = 0; i < 1024; ++i)
      x.push_back(float(i));
    y.assign(32, -1);
    float factor = 3;
    Workload w;
    w.directory = dir.path();
    w.totalLaunches = 1;
    LaunchImage l;
    l.kernel = "_Z6gatherPKfPfii";
    l.name = "gather";
    l.block = {32, 1, 1};
    l.buffers = {buffer(xAddress, x.data(), 4096), buffer(yAddress, y.data(), 128), buffer(0x4000, &factor, 4)};
    l.buffers[2].symbol = "factor";
    int n = 32, stride = 2;
    l.arguments = {{bytesOf(&xAddress, 8), true, 0, 0},
                   {bytesOf(&yAddress, 8), true, 1, 0},
                   {bytesOf(&n, 4), false, -1, 0},
                   {bytesOf(&stride, 4), false, -1, 0}};
    l.launchClass = "c";
    w.launches.push_back(l);
    std::string error;
    ASSERT_TRUE(w.write(error)) << error;
  }

  BufferImage buffer(uint64_t address, const void *data, size_t bytes) {
    std::string name = blobName(data, bytes), error;
    EXPECT_TRUE(writeBlob(dir.path(), name, data, bytes, error)) << error;
    return {address, bytes, "", false, false, name, name};
  }

  ReplayJob job(uint32_t mode, const std::string &kernel, std::vector<int> arguments) {
    ReplayJob j;
    j.module = std::string(MODULE_DIR) + "/replay-module-" + std::to_string(mode) + ".so";
    j.workload = j.outputDir = dir.path();
    j.steps.push_back({kernel, {1, 1, 1}, {32, 1, 1}, 0, std::move(arguments)});
    return j;
  }

  ReplayResult run(const ReplayJob &j) {
    std::string error;
    EXPECT_TRUE(writeJob(j, dir.file("job.json"), error)) << error;
    ProcessOptions options;
    options.limits.seconds = 30;
    ProcessResult p =
        llvm::cantFail(runProcess({REPLAY_PROGRAM, dir.file("job.json"), dir.file("result.json")}, options));
    EXPECT_TRUE(p.ok()) << p.describe() << p.err;
    ReplayResult r;
    EXPECT_TRUE(readResult(dir.file("result.json"), r, error)) << error;
    return r;
  }

  template <typename T> std::vector<T> output(const std::string &name) {
    std::string bytes = llvm::cantFail(readFile(dir.file(name)));
    std::vector<T> v(bytes.size() / sizeof(T));
    memcpy(v.data(), bytes.data(), v.size() * sizeof(T));
    return v;
  }
};

} // namespace

TEST_F(Replayed, RunsOnRebuiltMemory) {
  ReplayResult r = run(job(ModeBounds, "_Z6gatherPKfPfii", {0, 1, 2, 3}));
  EXPECT_TRUE(r.ok);
  EXPECT_TRUE(r.faults.empty());
  std::vector<float> out = output<float>("b1.bin");
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], 3.0f * float(2 * i)) << "the variable's captured value is 3, the module's own 1";
  EXPECT_EQ(output<float>("b0.bin"), x);
}

TEST_F(Replayed, ReplacesInputsAndUsesScratch) {
  ReplayJob j = job(ModeBounds, "_Z6gatherPKfPfii", {0, -1, 2, 3});
  j.scratch.push_back({128, true});
  j.steps.push_back({"_Z6gatherPKfPfii", {1, 1, 1}, {32, 1, 1}, 0, {-1, 1, 2, 3}});
  j.steps[1].block = {16, 1, 1};
  std::vector<float> fresh(1024, 5);
  std::string error, name = "fresh.bin";
  ASSERT_TRUE(writeBlob(dir.path(), name, fresh.data(), 4096, error));
  j.inputs[0] = name;
  ReplayResult r = run(j);
  ASSERT_TRUE(r.ok);
  EXPECT_EQ(output<float>("b1.bin")[3], 3 * 3 * 5.0f);
  EXPECT_EQ(output<float>("b1.bin")[16], -1) << "not written by half a block";
}

TEST_F(Replayed, ReportsOutOfBounds) {
  ReplayJob j = job(ModeBounds, "_Z6gatherPKfPfii", {1, 0, 2, 3}); // x and y change places: y ends first
  ReplayResult r = run(j);
  EXPECT_FALSE(r.ok);
  ASSERT_EQ(r.faults.size(), 1u);
  EXPECT_EQ(r.faults[0].kind, "out-of-bounds");
  EXPECT_EQ(r.faults[0].kernel, "_Z6gatherPKfPfii");
  EXPECT_EQ(r.faults[0].file, "m.cu");
  EXPECT_EQ(r.faults[0].line, 1u);
  EXPECT_NE(r.faults[0].message.find("thread (16, 0, 0)"), std::string::npos) << r.faults[0].message;
}

TEST_F(Replayed, RacesDoNotEndTheLaunch) {
  ReplayResult r = run(job(ModeVerify, "racy", {0, 1}));
  EXPECT_TRUE(r.ok);
  ASSERT_EQ(r.faults.size(), 1u);
  EXPECT_EQ(r.faults[0].kind, "race");
  EXPECT_EQ(output<float>("b1.bin")[0], 31);
}

TEST_F(Replayed, SurvivesCrashesAndEndlessLoops) {
  ReplayResult r = run(job(ModeBounds, "crash", {}));
  EXPECT_FALSE(r.ok);
  ASSERT_EQ(r.faults.size(), 1u);
  EXPECT_EQ(r.faults[0].kind, "crash");
  ReplayJob j = job(ModeBounds, "forever", {});
  j.seconds = 0.2;
  r = run(j);
  EXPECT_FALSE(r.ok);
  ASSERT_EQ(r.faults.size(), 1u);
  EXPECT_EQ(r.faults[0].kind, "timeout");
}

TEST_F(Replayed, RefusesWhatDoesNotFit) {
  ReplayResult r = run(job(ModeBounds, "absent", {}));
  ASSERT_EQ(r.faults.size(), 1u);
  EXPECT_EQ(r.faults[0].kind, "launch");
  EXPECT_NE(r.faults[0].message.find("no kernel absent"), std::string::npos);
  r = run(job(ModeBounds, "_Z6gatherPKfPfii", {0, 1, 2}));
  ASSERT_EQ(r.faults.size(), 1u);
  EXPECT_EQ(r.faults[0].kind, "launch");
  r = run(job(ModeBounds, "_Z6gatherPKfPfii", {2, 1, 2, 3}));
  ASSERT_EQ(r.faults.size(), 1u);
  EXPECT_EQ(r.faults[0].kind, "launch") << "an int where a pointer belongs";
}

TEST_F(Replayed, TracesWarpAccesses) {
  ReplayResult r = run(job(ModeTrace, "_Z6gatherPKfPfii", {0, 1, 2, 3}));
  ASSERT_TRUE(r.ok);
  ASSERT_EQ(r.traces.size(), 1u);
  const LaunchTrace &t = r.traces[0];
  EXPECT_EQ(t.tracedBlocks, 1u);
  ASSERT_EQ(t.sites.size(), 2u);
  const SiteTrace &load = t.sites[0], &store = t.sites[1];
  EXPECT_EQ(load.warpAccesses, 1);
  EXPECT_EQ(load.lanes, 32);
  EXPECT_EQ(load.sectors, 8) << "32 floats, two apart";
  EXPECT_EQ(load.lines128, 2);
  EXPECT_EQ(store.sectors, 4);
  EXPECT_EQ(t.l1Sectors, 8);
  EXPECT_EQ(t.l2Sectors, 8);
  EXPECT_EQ(t.storeSectors, 4);
  EXPECT_EQ(t.footprintBytes, 12 * 32);
  EXPECT_EQ(t.fp32, 2);
  EXPECT_EQ(t.int32, 3);
  EXPECT_EQ(t.activeLanes, 32);
  EXPECT_EQ(load.l1Misses, 1);
  ASSERT_EQ(t.basicBlocks.size(), 1u);
  EXPECT_EQ(t.basicBlocks[0].times, 1);
  EXPECT_GE(t.basicBlocks[0].instructions, t.basicBlocks[0].chain);
  EXPECT_EQ(t.basicBlocks[0].waits, std::vector<std::vector<uint32_t>>{{0}});
}

TEST_F(Replayed, TracesBankConflicts) {
  ReplayResult r = run(job(ModeTrace, "column", {}));
  ASSERT_TRUE(r.ok);
  ASSERT_EQ(r.traces.at(0).sites.size(), 1u);
  const SiteTrace &s = r.traces[0].sites[0];
  EXPECT_TRUE(s.shared);
  EXPECT_EQ(s.l1Cycles, 32);
  EXPECT_EQ(s.bankConflicts, 31);
}

TEST_F(Replayed, WritesTwins) {
  ReplayResult r = run(job(ModeShadow, "_Z6gatherPKfPfii", {0, 1, 2, 3}));
  ASSERT_TRUE(r.ok);
  struct Record {
    uint64_t offset;
    uint32_t bytes, unused;
    double value, magnitude;
  };
  std::vector<Record> records = output<Record>("b1.shadow");
  ASSERT_EQ(records.size(), 32u);
  EXPECT_EQ(records[5].offset, 20u);
  EXPECT_EQ(records[5].bytes, 4u);
  EXPECT_EQ(records[5].value, 30);
  EXPECT_TRUE(output<Record>("b0.shadow").empty()) << "x was only read";
}
