//===- Trace.cpp - logging accesses and counting what warps do ------------===//
#include "Trace.h"
#include "Fault.h"
#include "Regions.h"
#include "TraceJoin.h"
#include <algorithm>
#include <cmath>

using namespace optiml::emu;

// Bounds the memory that one block's log takes (16 bytes an event); what exceeds it is scaled up from the rest.
static constexpr size_t eventsPerBlock = 8 << 20;

void optiml::emu::prepareTrace(Block &b) {
  if (!b.launch->trace || !b.launch->mode(ModeTrace)) {
    deleteBlockTrace(b.trace);
    b.trace = nullptr;
    return;
  }
  if (!b.trace)
    b.trace = new BlockTrace;
  b.trace->threads.resize(b.launch->threads);
  b.trace->seen.resize(b.launch->threads);
  b.trace->perThreadLimit = std::max<size_t>(1024, eventsPerBlock / b.launch->threads);
}

void optiml::emu::startTrace(Block &b) {
  if (!b.trace)
    return;
  for (auto &t : b.trace->threads)
    t.clear();
  std::fill(b.trace->seen.begin(), b.trace->seen.end(), 0);
}

void optiml::emu::finishTrace(Block &b) {
  if (b.trace)
    b.launch->trace->addBlock(b);
}

void optiml::emu::deleteBlockTrace(BlockTrace *trace) { delete trace; }

void optiml::emu::traceAccess(Fiber &fiber, uint64_t address, uint64_t bytes, uint32_t site) {
  Block &b = *fiber.block;
  // An access outside all memory would crash the replay; the bounds check is cheap next to logging.
  SiteCache &slot = b.siteCache[site];
  if (address - slot.lo > slot.span || slot.lo == 1) {
    Region r;
    if (locate(b, address, r) && bytes <= r.bytes - (address - r.lo))
      slot = {r.lo, r.bytes - bytes};
    else
      checkedRegion(fiber, address, bytes, b.launch->module->sites[site].kind, site, 1);
  }
  if (!b.trace)
    return;
  auto &log = b.trace->threads[fiber.linear];
  if (b.trace->seen[fiber.linear]++ < b.trace->perThreadLimit)
    log.push_back({address, site, uint32_t(std::min<uint64_t>(bytes, UINT32_MAX))});
}

/// Of distinct 4-byte words, those in the busiest of the 32 banks.
static unsigned bankDegree(const std::vector<uint64_t> &words) {
  unsigned banks[32] = {};
  for (uint64_t word : words)
    ++banks[word % 32];
  return *std::max_element(banks, banks + 32);
}

double optiml::emu::instructionsOf(const BlockDesc &d) {
  return double(d.fp32) + d.fp64 + d.int32 + d.special + d.tensor + d.control + d.memory + d.barrier + d.other;
}

/// Instruction counts: a warp runs a basic block as often as its busiest lane.
static void countInstructions(TraceCollector &c, Block &b, const Warp &w) {
  const ModuleDesc &m = *b.launch->module;
  uint32_t lanes = uint32_t(__builtin_popcount(w.present));
  c.blockRuns.resize(m.numBlocks);
  for (uint32_t i = 0; i < m.numBlocks; ++i) {
    uint64_t busiest = 0, sum = 0;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      uint32_t n = b.counts[size_t(w.first + lane) * m.numBlocks + i];
      busiest = std::max<uint64_t>(busiest, n);
      sum += n;
    }
    if (!busiest)
      continue;
    const BlockDesc &d = m.blocks[i];
    double n = double(busiest);
    c.result.fp32 += n * d.fp32;
    c.result.fp64 += n * d.fp64;
    c.result.int32 += n * d.int32;
    c.result.special += n * d.special;
    c.result.tensor += n * d.tensor;
    c.result.control += n * d.control;
    c.result.memory += n * d.memory;
    c.result.barrier += n * d.barrier;
    c.result.other += n * d.other;
    c.blockRuns[i] += n;
    double size = instructionsOf(d);
    c.warpInstructions += n * size;
    c.laneInstructions += double(sum) * size;
  }
  c.warpCount += 1;
}

void TraceCollector::addBlock(Block &b) {
  const ModuleDesc &m = *b.launch->module;
  const BlockTrace &t = *b.trace;
  if (result.sites.size() < m.numSites) {
    result.sites.resize(m.numSites);
    for (uint32_t i = 0; i < m.numSites; ++i) {
      result.sites[i].site = i;
      result.sites[i].line = m.sites[i].line;
      result.sites[i].accessBytes = m.sites[i].size;
      result.sites[i].kind = isStore(m.sites[i].kind)  ? AccessStore
                             : isLoad(m.sites[i].kind) ? AccessLoad
                                                       : AccessAtomic;
    }
  }
  ++result.tracedBlocks;
  WarpJoin join;
  std::vector<uint64_t> wordList, sectorList, lineList;
  for (const Warp &w : b.warps) {
    countInstructions(*this, b, w);
    uint64_t seen = 0, logged = 0;
    for (uint32_t lane = 0; lane < uint32_t(__builtin_popcount(w.present)); ++lane) {
      seen += t.seen[w.first + lane];
      logged += t.threads[w.first + lane].size();
    }
    double scale = logged ? double(seen) / double(logged) : 1;
    warps.emplace_back();
    join.run(b, w);
    const std::vector<uint8_t> &standsFor = join.standsFor();
    std::vector<Joined> &joined = join.accesses();
    for (size_t i = 0; i < joined.size(); ++i) {
      Joined &j = joined[i];
      if (standsFor[i] == 0) {
        result.memory -= scale; // no instruction of its own
        continue;
      }
      j.bytes *= standsFor[i];
      SiteTrace &s = result.sites[j.site];
      Region r;
      if (!locate(b, join.addresses(j).front(), r))
        continue;
      double lanes = double(j.lanes), width = double(j.bytes);
      s.warpAccesses += scale;
      s.lanes += scale * lanes;
      if (r.kind == RegionKind::Local) {
        // Local memory is interleaved so that equal offsets of 32 lanes are neighbours.
        s.local = true;
        s.sectors += scale * std::ceil(lanes * width / 32);
        s.lines128 += scale * std::ceil(lanes * width / 128);
        s.l1Cycles += scale * std::max(1.0, 32 * width / 128);
        continue;
      }
      join.distinct(j, 2, wordList);
      unsigned degree = bankDegree(wordList);
      if (r.kind == RegionKind::Shared) {
        s.shared = true;
        double least = std::ceil(double(wordList.size()) / 32);
        s.l1Cycles += scale * std::max({32 * width / 128, double(degree), 1.0});
        s.bankConflicts += scale * std::max(0.0, degree - least);
        continue;
      }
      join.distinct(j, 7, lineList);
      join.distinct(j, 5, sectorList);
      s.sectors += scale * double(sectorList.size());
      s.lines128 += scale * double(lineList.size());
      s.l1Cycles += scale * std::max({32 * width / 128, std::ceil((double(lineList.size()) + 2) / 4), double(degree)});
      if (r.kind == RegionKind::Constant || r.kind == RegionKind::ReadOnly)
        continue; // the constant cache is neither L1 nor L2
      (s.kind == AccessLoad ? result.l1Sectors : result.storeSectors) += scale * double(sectorList.size());
      warps.back().push_back({uint32_t(sectors.size()), uint32_t(sectorList.size()), j.site});
      sectors.insert(sectors.end(), sectorList.begin(), sectorList.end());
    }
  }
}
