//===- ModelTest.cpp - the performance model ------------------------------===//
//
// Traces are derived by hand from the kernels, so that the model is tested apart from the emulator. The times they are
// held against were measured on an H200.
//
//===----------------------------------------------------------------------===//
#include "optiml/Emulator/ABI.h"
#include "optiml/Evaluate/Predict/PerformanceModel.h"
#include "gtest/gtest.h"

using namespace optiml;
using emu::LaunchTrace;
using emu::SiteTrace;

namespace {

const GpuSpec &h200() { return *GpuSpec::find("H200"); }

SiteTrace globalSite(double accesses, double sectorsEach, double l1CyclesEach, bool load, double lanes = 32) {
  SiteTrace s;
  s.accessBytes = 4;
  s.kind = load ? emu::AccessLoad : emu::AccessStore;
  s.warpAccesses = accesses;
  s.lanes = lanes * accesses;
  s.sectors = sectorsEach * accesses;
  s.l1Cycles = l1CyclesEach * accesses;
  return s;
}

SiteTrace sharedSite(double accesses, double cyclesEach, bool load) {
  SiteTrace s = globalSite(accesses, 0, cyclesEach, load);
  s.shared = true;
  s.bankConflicts = (cyclesEach - 1) * accesses;
  return s;
}

/// Of 64 warps in eight blocks, on so many 128-byte lines.
SiteTrace atomicSite(double lines, double linesByBlock) {
  SiteTrace site = globalSite(64, lines > 1 ? 20 : 1, 1, false);
  site.kind = emu::AccessAtomic;
  site.lines = lines;
  site.linesByBlock = linesByBlock;
  site.atomicBlocks = 8;
  return site;
}

void number(LaunchTrace &trace) {
  for (size_t i = 0; i < trace.sites.size(); ++i)
    trace.sites[i].site = uint32_t(i);
}

/// One thread an output, 16×16 threads a block, n a multiple of 16, two rows a warp. 16 blocks of one block row traced.
LaunchTrace naiveSgemm(double n) {
  LaunchTrace t;
  t.tracedBlocks = 16;
  t.totalBlocks = uint64_t(n / 16) * uint64_t(n / 16);
  t.warpsPerBlock = 8;
  double warps = 16 * 8, iterations = warps * n;
  t.fp32 = iterations;        // fused multiply-add
  t.int32 = iterations;       // address of B
  t.control = iterations / 4; // unrolled by four
  t.memory = 2 * iterations;
  t.sites.push_back(globalSite(iterations, 2, 2, true)); // A: one word of each of two rows, in the same bank
  t.sites.push_back(globalSite(iterations, 2, 1, true)); // B: 16 neighbours, the same in both rows
  t.sites.push_back(globalSite(warps, 4, 1, false));
  number(t);
  t.sites[0].l1Misses = t.sites[1].l1Misses = 0.125; // a sector holds eight words
  t.basicBlocks = {{n / 4, 17, 8, {{0, 1}}}};        // the addresses of B and the sum follow each other
  t.l1Sectors = 4 * iterations;
  // The eight resident blocks of a row share A's rows and have 128 columns of B: hardly anything is asked for twice.
  double aSectors = 16 * n / 8, bSectors = 16 * 16 * n / 8, cSectors = 16 * 16 * 2;
  t.l2Sectors = aSectors + bSectors;
  t.storeSectors = cSectors;
  t.uniqueSectors = aSectors + bSectors + cSectors;
  t.footprintBytes = 32 * t.uniqueSectors;
  t.activeLanes = 32;
  return t;
}

/// 128×128 outputs a block of 16×16 threads, 8×8 adjacent outputs a thread, tiles of 8 in shared memory, scalar copies;
/// A's tile is transposed. Shared loads of eight neighbours become two of 16 bytes.
LaunchTrace stagedSgemm(double n) {
  LaunchTrace t;
  t.tracedBlocks = 2;
  t.totalBlocks = uint64_t(n / 128) * uint64_t(n / 128);
  t.warpsPerBlock = 8;
  double warps = 2 * 8, tiles = warps * n / 8;
  t.fp32 = tiles * 8 * 64;
  t.memory = tiles * (8 + 8 + 8 * 4);
  t.int32 = tiles * 24;
  t.control = tiles * 4;
  t.barrier = tiles * 2;
  t.sites.push_back(globalSite(tiles * 4, 4, 1, true)); // A: 8 words of each of four rows
  t.sites.push_back(globalSite(tiles * 4, 4, 1, true)); // B: 32 neighbours
  t.sites.push_back(sharedSite(tiles * 4, 2, false));   // A transposed, padded
  t.sites.push_back(sharedSite(tiles * 4, 1, false));
  t.sites.push_back(sharedSite(tiles * 16, 4, true)); // A: broadcast, 16 bytes wide
  t.sites.push_back(sharedSite(tiles * 16, 8, true)); // B: 32-byte strides, two-way conflicts
  number(t);
  t.sites[0].l1Misses = t.sites[1].l1Misses = 1;
  t.basicBlocks = {{n / 8, 46, 8, {{0, 1}}}, {n, 64 + 4, 1, {{4, 5}}}};
  t.l1Sectors = tiles * 32;
  t.l2Sectors = t.l1Sectors;
  t.storeSectors = 2 * 128 * 128 / 8;
  t.uniqueSectors = 128 * n / 8 + 2 * 128 * n / 8 + t.storeSectors;
  t.footprintBytes = 32 * t.uniqueSectors;
  t.activeLanes = 32;
  return t;
}

Prediction predictNaive(double n) {
  LaunchShape shape{{uint32_t(n / 16), uint32_t(n / 16), 1}, {16, 16, 1}, 0, 3 * 4 * n * n};
  return predictLaunch(naiveSgemm(n), {32, 0, 0, 0, 0}, shape, h200());
}

Prediction predictStaged(double n) {
  LaunchShape shape{{uint32_t(n / 128), uint32_t(n / 128), 1}, {16, 16, 1}, 0, 3 * 4 * n * n};
  return predictLaunch(stagedSgemm(n), {122, 2 * 128 * 9 * 4, 0, 0, 0}, shape, h200());
}

/// Every thread copies one word; n a multiple of 256.
LaunchTrace copyTrace(double blocks) {
  LaunchTrace t;
  t.tracedBlocks = 8;
  t.totalBlocks = uint64_t(blocks);
  t.warpsPerBlock = 8;
  double warps = 8 * 8;
  t.memory = 2 * warps;
  t.int32 = 4 * warps;
  t.control = warps;
  t.sites = {globalSite(warps, 4, 1, true), globalSite(warps, 4, 1, false)};
  number(t);
  t.sites[0].l1Misses = 1;
  t.basicBlocks = {{1, 7, 6, {{0}}}};
  t.l1Sectors = t.l2Sectors = t.storeSectors = 4 * warps;
  t.uniqueSectors = 8 * warps;
  t.footprintBytes = 32 * t.uniqueSectors;
  return t;
}

void expectWithin(double predicted, double measured, double factor) {
  EXPECT_LT(predicted, measured * factor);
  EXPECT_GT(predicted, measured / factor);
}

} // namespace

TEST(Model, NaiveSgemmWithinAFactorOfTwo) {
  expectWithin(predictNaive(1024).seconds, 427e-6, 2);
  expectWithin(predictNaive(4096).seconds, 26.7e-3, 2);
  EXPECT_EQ(predictNaive(4096).bottleneck, "l1");
}

TEST(Model, StagedSgemmWithinAFactorOfTwo) {
  Prediction p = predictStaged(4096);
  expectWithin(p.seconds, 2.67e-3 / 0.61, 2);
  EXPECT_EQ(p.occupancy.blocksPerSM, 2u);
  EXPECT_EQ(p.occupancy.limit, "registers");
}

TEST(Model, RanksTheStagedKernelAtLeastFiveTimesFaster) {
  EXPECT_GT(predictNaive(4096).seconds / predictStaged(4096).seconds, 5 * 0.8);
}

TEST(Model, ABigCopyRunsAtTheBandwidthOfDram) {
  double blocks = 1 << 18, bytes = blocks * 256 * 4 * 2;
  LaunchShape shape{{uint32_t(blocks), 1, 1}, {256, 1, 1}, 0, bytes};
  Prediction p = predictLaunch(copyTrace(blocks), {16, 0, 0, 0, 0}, shape, h200());
  EXPECT_EQ(p.bottleneck, "dram");
  expectWithin(p.seconds, bytes / h200().dramBytesPerSecond, 1.25);
  EXPECT_GT(p.floorSeconds / p.seconds, 0.8);
  EXPECT_LE(p.floorSeconds, p.seconds);
}

TEST(Model, ATinyLaunchCostsTheLaunch) {
  LaunchShape shape{{1, 1, 1}, {256, 1, 1}, 0, 2048};
  LaunchTrace trace = copyTrace(1);
  Prediction p = predictLaunch(trace, {16, 0, 0, 0, 0}, shape, h200());
  EXPECT_EQ(p.bottleneck, "launch");
  expectWithin(p.seconds, h200().launchSeconds, 1.5);
}

TEST(Model, BuffersBoundTheFootprint) {
  // 16 traced blocks of naive sgemm see half of B; scaled to the grid that would be far more than there is.
  EXPECT_LE(predictNaive(1024).dramBytes, 3 * 4 * 1024 * 1024.0);
}

TEST(Model, WorseAccessIsSlower) {
  LaunchShape shape{{1 << 16, 1, 1}, {256, 1, 1}, 0, 0};
  auto seconds = [&](const LaunchTrace &trace, Resources resources = {16, 0, 0, 0, 0}) {
    return predictLaunch(trace, resources, shape, h200()).seconds;
  };
  LaunchTrace good = copyTrace(1 << 16);
  double base = seconds(good);
  LaunchTrace strided = good; // every lane its own sector
  strided.sites[0] = globalSite(64, 32, 9, true);
  strided.l1Sectors = strided.l2Sectors = 32 * 64;
  strided.uniqueSectors = 36 * 64;
  EXPECT_GT(seconds(strided), 2 * base);
  LaunchTrace conflicts = good;
  conflicts.sites.push_back(sharedSite(64 * 4, 32, true));
  EXPECT_GT(seconds(conflicts), 1.5 * base);
  LaunchTrace chained = good;
  chained.basicBlocks[0].times = 200;
  EXPECT_GT(seconds(chained), 2 * base);
  LaunchTrace doubles = good;
  doubles.fp64 = 64 * 400;
  EXPECT_GT(seconds(doubles), 1.5 * base);
  EXPECT_GT(seconds(good, {64, 0, 400, 400, 0}), 1.5 * base); // spills
  LaunchTrace atomics = good;
  atomics.sites.push_back(atomicSite(1, 8)); // all lanes on one address
  EXPECT_GT(seconds(atomics), 20 * base);
}

TEST(Model, OneAtomicAnElementIsWhatItWasMeasured) {
  // A dot product of 2^24 elements with one atomic each on one address took 29 ms.
  double blocks = (1 << 24) / 256;
  LaunchTrace trace = copyTrace(blocks);
  trace.sites[1] = atomicSite(1, 8);
  LaunchShape shape{{uint32_t(blocks), 1, 1}, {256, 1, 1}, 0, 8.0 * (1 << 24)};
  expectWithin(predictLaunch(trace, {16, 0, 0, 0, 0}, shape, h200()).seconds, 29e-3, 2);
  // 256 bins for as many values, 4.0 ms: blocks that share eight lines wait for each other.
  trace.sites[1] = atomicSite(8, 64);
  expectWithin(predictLaunch(trace, {16, 0, 0, 0, 0}, shape, h200()).seconds, 4.0e-3, 2);
  // A line for each warp, and no turns to take.
  trace.sites[1] = atomicSite(64, 64);
  EXPECT_LT(predictLaunch(trace, {16, 0, 0, 0, 0}, shape, h200()).seconds, 0.4e-3);
}

// Blocks that make no atomic have no lines of their own either.
TEST(Model, AtomicsMeetAlsoWhereOnlySomeBlocksMakeThem) {
  LaunchTrace trace = copyTrace(1056);
  LaunchShape shape{{1056, 1, 1}, {256, 1, 1}, 0, 0};
  auto clocks = [&](double lanes, double lines, double byBlock, double blocks) {
    trace.sites[1] = atomicSite(lines, byBlock);
    trace.sites[1].lanes = lanes;
    trace.sites[1].atomicBlocks = blocks;
    return predictLaunch(trace, {16, 0, 0, 0, 0}, shape, h200()).pipes["atomic"];
  };
  double all = clocks(2048, 1, 8, 8);
  EXPECT_NEAR(clocks(1024, 1, 4, 4), all / 2, all / 100);
  EXPECT_NEAR(clocks(256, 1, 1, 1), all / 8, all / 100);
}

TEST(Model, WritingSectorsInPartCosts) {
  LaunchTrace whole = copyTrace(1 << 16), part = whole;
  part.sites[1] = globalSite(64, 32, 1, false); // every lane another sector
  part.storeSectors = 32 * 64;
  LaunchShape shape{{1 << 16, 1, 1}, {256, 1, 1}, 0, 0};
  double a = predictLaunch(whole, {16, 0, 0, 0, 0}, shape, h200()).pipes["l2"];
  double b = predictLaunch(part, {16, 0, 0, 0, 0}, shape, h200()).pipes["l2"];
  EXPECT_NEAR(b / a, (4 + 32 + 28) / 8.0, 1e-6);
}

TEST(Model, TracesTheBlocksOfOneMultiprocessor) {
  LaunchShape big{{1 << 16, 1, 1}, {256, 1, 1}, 0, 0}, small{{100, 1, 1}, {256, 1, 1}, 0, 0};
  TracePlan plan = planTrace(h200(), {32, 0, 0, 0, 0}, big, 64);
  ASSERT_EQ(plan.blocks.size(), 8u);
  EXPECT_EQ(plan.blocks[1] - plan.blocks[0], 132u);
  EXPECT_GT(plan.blocks[0], 8u * 132);
  EXPECT_LT(plan.blocks[7], 1u << 16);
  EXPECT_EQ(plan.l1Bytes, h200().l1Bytes);
  TracePlan half = planTrace(h200(), {32, 0, 0, 0, 0}, big, 4);
  EXPECT_EQ(half.blocks.size(), 4u);
  EXPECT_EQ(half.l1Bytes, h200().l1Bytes / 2);
  EXPECT_EQ(planTrace(h200(), {32, 0, 0, 0, 0}, small, 64).blocks, std::vector<uint32_t>{50});
  EXPECT_EQ(planTrace(h200(), {32, 20 << 10, 0, 0, 0}, small, 64).l1Bytes, h200().l1Bytes - (21 << 10));
}

TEST(Model, TooFewBlocksLeaveTheGpuIdle) {
  LaunchTrace trace = stagedSgemm(4096);
  LaunchShape few{{33, 1, 1}, {16, 16, 1}, 0, 0}, many{{33 * 4, 1, 1}, {16, 16, 1}, 0, 0};
  double a = predictLaunch(trace, {122, 0, 0, 0, 0}, few, h200()).seconds;
  double b = predictLaunch(trace, {122, 0, 0, 0, 0}, many, h200()).seconds;
  EXPECT_NEAR(a / b, 1, 0.1); // a quarter of the work takes as long on a quarter of the multiprocessors
}

TEST(Occupancy, FollowsTheToolkit) {
  EXPECT_EQ(computeOccupancy(h200(), {32, 0, 0, 0, 0}, 256, 0).blocksPerSM, 8u);
  EXPECT_DOUBLE_EQ(computeOccupancy(h200(), {32, 0, 0, 0, 0}, 256, 0).share, 1);
  EXPECT_EQ(computeOccupancy(h200(), {128, 0, 0, 0, 0}, 256, 0).blocksPerSM, 2u);
  // What a launch asks for may be more than what a kernel has by itself.
  EXPECT_EQ(computeOccupancy(h200(), {32, 0, 0, 0, 0}, 128, 100 << 10).blocksPerSM, 2u);
  EXPECT_EQ(computeOccupancy(h200(), {32, 0, 0, 0, 0}, 128, 228 << 10).blocksPerSM, 0u);
  EXPECT_EQ(computeOccupancy(h200(), {32, 49 << 10, 0, 0, 0}, 128, 0).blocksPerSM, 0u);
  Occupancy shared = computeOccupancy(h200(), {32, 40 << 10, 0, 0, 0}, 128, 0);
  EXPECT_EQ(shared.limit, "shared memory");
  EXPECT_EQ(shared.blocksPerSM, 5u);
  for (const GpuSpec &gpu : GpuSpec::all())
    EXPECT_GT(computeOccupancy(gpu, {32, 1024, 0, 0, 0}, 128, 0).blocksPerSM, 0u) << gpu.name;
}

TEST(Occupancy, WhatCannotRunSaysWhy) {
  EXPECT_EQ(computeOccupancy(h200(), {32, 0, 0, 0, 0}, 2048, 0).blocksPerSM, 0u);
  EXPECT_EQ(computeOccupancy(h200(), {128, 0, 0, 0, 0}, 1024, 0).blocksPerSM, 0u);
  LaunchShape shape{{1, 1, 1}, {256, 1, 1}, 228 << 10, 0};
  Prediction p = predictLaunch(copyTrace(1), {32, 0, 0, 0, 0}, shape, h200());
  EXPECT_EQ(p.infeasible, "233472 bytes of shared memory a block cannot run on H200");
  WorkloadPrediction workload;
  workload.addStep(p, {});
  Measurement m;
  workload.fill(m);
  EXPECT_EQ(m.verdict, Verdict::OverLimit);
  EXPECT_EQ(m.why, p.infeasible);
}

TEST(WorkloadPrediction, WeighsLaunches) {
  Prediction sgemm = predictNaive(1024), copy;
  copy.seconds = 1e-3;
  copy.bottleneck = "dram";
  copy.floorSeconds = 1e-3;
  WorkloadPrediction workload;
  workload.beginLaunch(3);
  workload.addStep(sgemm, {32, 0, 0, 0, 0});
  workload.addStep(copy, {40, 0, 4, 4, 0});
  workload.beginLaunch(10);
  workload.addStep(copy, {16, 0, 0, 0, 0});
  Measurement m;
  workload.fill(m);
  EXPECT_EQ(m.verdict, Verdict::Predicted);
  ASSERT_EQ(m.time.perLaunch.size(), 2u);
  EXPECT_NEAR(m.time.perLaunch[0], sgemm.seconds + 1e-3, 1e-12);
  EXPECT_NEAR(m.time.seconds, 3 * (sgemm.seconds + 1e-3) + 10e-3, 1e-12);
  EXPECT_EQ(m.bottleneck, "dram");
  EXPECT_EQ(m.resources.registers, 40u);
  EXPECT_EQ(m.resources.spillLoads, 4u);
  EXPECT_GT(m.counters["roofline"], 0.5);
  EXPECT_NEAR(m.counters["sectors_per_request"], 2, 0.1);
}
