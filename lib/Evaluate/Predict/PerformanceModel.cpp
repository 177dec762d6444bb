//===- PerformanceModel.cpp - seconds without a GPU -----------------------===//
#include "optiml/Evaluate/Predict/PerformanceModel.h"
#include "optiml/Emulator/ABI.h"
#include <algorithm>
#include <cmath>
#include <map>

using namespace optiml;
using emu::LaunchTrace;
using emu::SiteTrace;

// General constants of the model, the same for all programs and GPUs. docs/reward.md tells where they come from.
/// Exponent of the norm that joins the pipes: overlap is good, not perfect.
static constexpr double overlap = 4;
/// Share of L2 that holds data which is asked for again.
static constexpr double usableL2 = 0.9;
/// Read-modify-writes of L2 a clock: on one line of 128 bytes, and on all slices together.
static constexpr double atomicsPerClockALine = 0.3, atomicsPerClock = 64;

namespace {

/// Sums over the sites of a trace, per traced blocks.
struct SiteSums {
  double l1Cycles = 0, globalAccesses = 0, globalSectors = 0, usefulBytes = 0, sharedAccesses = 0, bankConflicts = 0;
  double partialSectors = 0; ///< of stores: the share of each sector that was not written, summed
};

SiteSums sumSites(const LaunchTrace &trace) {
  SiteSums sums;
  for (const SiteTrace &site : trace.sites) {
    sums.l1Cycles += site.l1Cycles;
    if (site.local)
      continue;
    bool load = site.kind == emu::AccessLoad, atomic = site.kind == emu::AccessAtomic;
    if (site.shared) {
      sums.sharedAccesses += site.warpAccesses;
      sums.bankConflicts += site.bankConflicts;
      // Lanes that update one word take turns; which words they are is not traced: half of them, say.
      sums.l1Cycles += atomic ? site.lanes / 2 : 0;
      continue;
    }
    sums.globalAccesses += site.warpAccesses;
    sums.globalSectors += site.sectors;
    sums.usefulBytes += std::min(site.lanes * site.accessBytes, site.sectors * 32);
    if (!load && !atomic)
      sums.partialSectors += std::max(0.0, site.sectors - site.lanes * site.accessBytes / 32);
  }
  return sums;
}

/// Numbers of the whole launch.
struct Geometry {
  double blocks, blocksPerBusySM, rounds, residentBlocks, warpsPerBlock, activeSMs;
};

Geometry geometryOf(const LaunchShape &shape, const GpuSpec &gpu, unsigned blocksPerSM) {
  Geometry g;
  g.blocks = double(shape.grid[0]) * shape.grid[1] * shape.grid[2];
  g.warpsPerBlock = std::ceil(double(shape.block[0]) * shape.block[1] * shape.block[2] / gpu.warpSize);
  g.blocksPerBusySM = std::ceil(g.blocks / gpu.sms);
  g.residentBlocks = std::min(double(blocksPerSM), g.blocksPerBusySM);
  g.rounds = std::ceil(g.blocks / (double(gpu.sms) * blocksPerSM));
  g.activeSMs = std::min(g.blocks, double(gpu.sms));
  return g;
}

/// Bytes that DRAM moves: every byte once, and again what was evicted from L2 before it was asked for again. Resident
/// blocks are taken to run in step, rounds of them one after the other.
double dramTraffic(double footprint, double roundFootprint, double rounds, double l2Traffic, const GpuSpec &gpu) {
  double cache = usableL2 * double(gpu.l2Bytes);
  if (footprint <= cache)
    return footprint;
  double most = std::max(footprint, l2Traffic);
  double traffic = std::clamp(rounds * roundFootprint, footprint, most);
  if (roundFootprint > cache)
    traffic += (most - traffic) * (1 - cache / roundFootprint);
  return traffic;
}

/// Clocks of L2 for the traced blocks' atomics. Those on one line take turns: `resident` blocks at a time work on as
/// many lines as the traced ones that make any do, more or less by how far these had lines of their own. A single one
/// of several tells nothing of that: the others are taken to meet on its lines.
double atomicClocks(const LaunchTrace &trace, double resident) {
  double clocks = 0, traced = double(trace.tracedBlocks);
  for (const SiteTrace &site : trace.sites)
    if (site.kind == emu::AccessAtomic && !site.shared && !site.local) {
      double lines = std::max(1.0, site.lines), active = site.atomicBlocks;
      if (resident > traced) {
        double own =
            active > 1
                ? std::clamp(std::log(lines * active / std::max(lines, site.linesByBlock)) / std::log(active), 0.0, 1.0)
                : traced <= 1;
        lines *= std::pow(resident / std::max(1.0, traced), own);
      }
      clocks += site.lanes / std::min(atomicsPerClock, atomicsPerClockALine * lines);
    }
  return clocks;
}

/// Clocks from a load or atomic of one site to its result.
double siteLatency(const SiteTrace &site, double l2Misses, const GpuSpec::Latencies &latency) {
  double accesses = std::max(1.0, site.warpAccesses);
  if (site.shared)
    return latency.shared + std::max(0.0, site.l1Cycles / accesses - 1);
  double beyond = l2Misses * (latency.dram - latency.l2);
  if (site.kind == emu::AccessAtomic)
    return latency.l2 + beyond;
  return latency.l1 + site.l1Misses * (latency.l2 - latency.l1 + beyond);
}

/// Clocks from a warp's first instruction to its last, were it alone. A scheduler issues one instruction of a warp a
/// clock, and a dependent one as many clocks later as arithmetic takes (4 on Volta and its successors: Jia et al.,
/// "Dissecting the NVIDIA Volta GPU architecture via microbenchmarking", arXiv 1804.06826). A basic block takes as long
/// as issuing its instructions, or as its longest path of waits and dependent arithmetic: ptxas puts the rest in
/// between. `instructions` are all that were traced, over which those of the blocks are spread: neighbouring loads that
/// became one, and spills.
double warpPath(const LaunchTrace &trace, const Prediction &prediction, const GpuSpec &gpu, double warps,
                double instructions) {
  double l2Misses = prediction.l2Bytes > 0 ? std::min(1.0, prediction.dramBytes / prediction.l2Bytes) : 0;
  std::map<uint32_t, std::pair<double, double>> latencies; // and how often a warp accesses the site
  for (const SiteTrace &site : trace.sites)
    latencies[site.site] = {siteLatency(site, l2Misses, gpu.latencies), site.warpAccesses / warps};
  double counted = 0, path = trace.barrier / warps * gpu.latencies.barrier;
  for (const emu::BasicBlockTrace &block : trace.basicBlocks)
    counted += block.times * block.instructions;
  double spread = counted > 0 ? instructions / warps / counted : 1;
  for (const emu::BasicBlockTrace &block : trace.basicBlocks) {
    double longest = block.chain * gpu.latencies.alu;
    for (const std::vector<uint32_t> &sites : block.waits) {
      double slowest = sites.empty() ? gpu.latencies.shared : 0;
      for (uint32_t site : sites)
        if (auto it = latencies.find(site); it != latencies.end()) // a site that was never reached has no sums
          slowest = std::max(slowest, it->second.first * std::min(1.0, it->second.second / block.times));
      longest += slowest;
    }
    path += block.times * std::max(longest, block.instructions * spread);
  }
  return path;
}

/// What no variant could be below: compulsory traffic, and arithmetic at the full rate of all multiprocessors.
double floorSeconds(const LaunchTrace &trace, double footprint, double scale, const GpuSpec &gpu, bool warmL2) {
  auto atFullRate = [&](double sum, double rate) { return sum * scale / (rate * gpu.sms * gpu.clockHz); };
  // Half of L2: the halves of it hold copies of each other's lines.
  bool inL2 = warmL2 && footprint <= double(gpu.l2Bytes) / 2;
  return gpu.launchSeconds + std::max({footprint / (inL2 ? gpu.l2BytesPerSecond : gpu.dramBytesPerSecond),
                                       atFullRate(trace.fp32, gpu.rates.fp32), atFullRate(trace.fp64, gpu.rates.fp64),
                                       atFullRate(trace.special, gpu.rates.special),
                                       gpu.rates.tensor > 0 ? atFullRate(trace.tensor, gpu.rates.tensor) : 0});
}

} // namespace

Prediction optiml::predictLaunch(const LaunchTrace &trace, const Resources &resources, const LaunchShape &shape,
                                 const GpuSpec &gpu) {
  Prediction result;
  unsigned threads = shape.block[0] * shape.block[1] * shape.block[2];
  result.occupancy = computeOccupancy(gpu, resources, threads, shape.dynamicShared);
  if (result.occupancy.blocksPerSM == 0) {
    result.infeasible = result.occupancy.limit + " cannot run on " + gpu.name;
    return result;
  }
  Geometry g = geometryOf(shape, gpu, result.occupancy.blocksPerSM);
  double traced = std::max<double>(1, double(trace.tracedBlocks));
  double scale = g.blocks / traced; // from the traced blocks to the grid
  double tracedWarps = traced * g.warpsPerBlock;
  SiteSums sums = sumSites(trace);

  // Spilled registers are no accesses of the source, so no trace has them. How often they move is not reported: once
  // between two barriers.
  double spills =
      (resources.spillLoads + resources.spillStores) / 4.0 * tracedWarps * std::max(1.0, trace.barrier / tracedWarps);
  sums.l1Cycles += spills;
  double instructions = trace.instructions() + spills;

  // Pipes of a multiprocessor. Fewer than four warps cannot use its four schedulers.
  double schedulers = std::min(1.0, g.residentBlocks * g.warpsPerBlock / 4);
  auto onBusySM = [&](double sum, double rate) {
    return sum / traced * g.blocksPerBusySM / (rate * schedulers * gpu.clockHz);
  };
  auto &t = result.pipes;
  t["issue"] = onBusySM(instructions, gpu.rates.issue);
  t["fp32"] = onBusySM(trace.fp32, gpu.rates.fp32);
  t["fp64"] = onBusySM(trace.fp64, gpu.rates.fp64);
  t["int32"] = onBusySM(trace.int32, gpu.rates.int32);
  t["special"] = onBusySM(trace.special, gpu.rates.special);
  if (trace.tensor > 0 && gpu.rates.tensor > 0)
    t["tensor"] = onBusySM(trace.tensor, gpu.rates.tensor);
  t["l1"] = sums.l1Cycles / traced * g.blocksPerBusySM / gpu.clockHz;

  // Memory behind L1 is shared by all.
  double uniqueBytes = 32 * trace.uniqueSectors;
  double most = shape.bufferBytes > 0 ? shape.bufferBytes : HUGE_VAL;
  double footprint = std::min(uniqueBytes * scale, most);
  double perRound = std::min(g.blocks, g.residentBlocks * gpu.sms);
  double roundFootprint = std::min(uniqueBytes / traced * perRound, footprint);
  result.l2Bytes = std::max(32 * (trace.l2Sectors + trace.storeSectors) * scale, footprint);
  result.dramBytes = dramTraffic(footprint, roundFootprint, g.rounds, result.l2Bytes, gpu);
  double l2BytesPerSecond = std::min(gpu.l2BytesPerSecond, g.activeSMs * gpu.l2BytesPerSMPerCycle * gpu.clockHz);
  // A sector that is written in part must be read to be completed.
  t["l2"] = (result.l2Bytes + 32 * sums.partialSectors * scale) / l2BytesPerSecond;
  t["dram"] = result.dramBytes / gpu.dramBytesPerSecond;
  t["atomic"] = scale * atomicClocks(trace, perRound) / gpu.clockHz;
  t["latency"] = g.rounds * warpPath(trace, result, gpu, tracedWarps, instructions) / gpu.clockHz;

  double slowest = 0, norm = 0;
  for (const auto &[pipe, seconds] : t)
    if (seconds > slowest) {
      slowest = seconds;
      result.bottleneck = pipe;
    }
  for (const auto &[pipe, seconds] : t)
    norm += slowest > 0 ? std::pow(seconds / slowest, overlap) : 0;
  result.seconds = slowest * std::pow(norm, 1 / overlap) + gpu.launchSeconds;
  if (slowest < gpu.launchSeconds)
    result.bottleneck = "launch";

  result.floorSeconds = floorSeconds(trace, footprint, scale, gpu, shape.warmL2);
  result.l1Cycles = sums.l1Cycles * scale;
  result.warpInstructions = instructions * scale;
  result.globalAccesses = sums.globalAccesses * scale;
  result.globalSectors = sums.globalSectors * scale;
  result.usefulBytes = sums.usefulBytes * scale;
  result.sharedAccesses = sums.sharedAccesses * scale;
  result.bankConflicts = sums.bankConflicts * scale;
  return result;
}

TracePlan optiml::planTrace(const GpuSpec &gpu, const Resources &resources, const LaunchShape &shape, unsigned most) {
  TracePlan plan;
  uint64_t blocks = uint64_t(shape.grid[0]) * shape.grid[1] * shape.grid[2];
  unsigned threads = shape.block[0] * shape.block[1] * shape.block[2];
  uint64_t perSM = std::max(1u, computeOccupancy(gpu, resources, threads, shape.dynamicShared).blocksPerSM);
  uint64_t resident = std::min(perSM, (blocks + gpu.sms - 1) / gpu.sms);
  uint64_t traced = std::clamp<uint64_t>(resident, 1, std::max(1u, most));
  uint64_t shared = resident * (resources.staticShared + shape.dynamicShared);
  if (shared)
    shared += resident * gpu.reservedSharedPerBlock;
  plan.l1Bytes = std::max<uint64_t>((gpu.l1Bytes - std::min(gpu.l1Bytes, shared)) * traced / resident, 4096);
  // A middle round, or the middle of the only one: the first block starts at the edge of every array, and where work
  // grows along the grid it has the least.
  uint64_t round = gpu.sms * perSM;
  plan.round = std::min(blocks, round);
  uint64_t first = blocks > round ? blocks / round / 2 * round : (blocks - (resident - 1) * gpu.sms) / 2;
  for (uint64_t i = 0; i < traced; ++i)
    if (uint64_t block = first + i * gpu.sms; block < blocks && block <= UINT32_MAX)
      plan.blocks.push_back(uint32_t(block));
  return plan;
}

void WorkloadPrediction::beginLaunch(double weight) { launches.push_back({weight, 0}); }

void WorkloadPrediction::addStep(const Prediction &p, const Resources &resources) {
  if (launches.empty())
    beginLaunch(1);
  double weight = launches.back().weight;
  if (!p.infeasible.empty() && infeasible.empty())
    infeasible = p.infeasible;
  launches.back().seconds += p.seconds;
  seconds += weight * p.seconds;
  bottleneckSeconds[p.bottleneck] += weight * p.seconds;
  for (const auto &[pipe, time] : p.pipes)
    pipeSeconds[pipe] += weight * time;
  auto add = [&](const char *name, double value) { sums[name] += weight * value; };
  add("dram_bytes", p.dramBytes);
  add("l2_bytes", p.l2Bytes);
  add("l1_cycles", p.l1Cycles);
  add("warp_instructions", p.warpInstructions);
  add("accesses", p.globalAccesses);
  add("sectors", p.globalSectors);
  add("useful", p.usefulBytes);
  add("shared", p.sharedAccesses);
  add("conflicts", p.bankConflicts);
  add("floor", p.floorSeconds);
  add("occupancy", p.occupancy.share * p.seconds);
  worst.add(resources);
}

void WorkloadPrediction::fill(Measurement &m) const {
  m.verdict = infeasible.empty() ? Verdict::Predicted : Verdict::OverLimit;
  m.why = infeasible;
  m.time.predicted = true;
  m.time.seconds = seconds;
  m.time.perLaunch.clear();
  for (const Launch &launch : launches)
    m.time.perLaunch.push_back(launch.seconds);
  auto sum = [&](const char *name) {
    auto it = sums.find(name);
    return it == sums.end() ? 0.0 : it->second;
  };
  for (const auto &[pipe, time] : pipeSeconds)
    m.counters["time." + pipe] = time;
  for (const char *name : {"dram_bytes", "l2_bytes", "l1_cycles", "warp_instructions"})
    m.counters[name] = sum(name);
  m.counters["sectors_per_request"] = sum("accesses") > 0 ? sum("sectors") / sum("accesses") : 0;
  m.counters["sector_efficiency"] = sum("sectors") > 0 ? sum("useful") / (32 * sum("sectors")) : 1;
  m.counters["bank_conflicts_per_request"] = sum("shared") > 0 ? sum("conflicts") / sum("shared") : 0;
  m.counters["occupancy"] = seconds > 0 ? sum("occupancy") / seconds : 0;
  m.counters["roofline"] = seconds > 0 ? sum("floor") / seconds : 0;
  m.resources = worst;
  m.resources.occupancy = m.counters["occupancy"];
  double longest = 0;
  for (const auto &[pipe, time] : bottleneckSeconds)
    if (time > longest) {
      longest = time;
      m.bottleneck = pipe;
    }
}
