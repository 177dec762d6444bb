//===- Trace.cpp - logging accesses and joining lanes into warps ----------===//
#include "Trace.h"
#include "Fault.h"
#include "Regions.h"
#include <algorithm>
#include <cmath>
#include <tuple>

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

namespace {

/// One warp instruction: the lanes' accesses of one (site, occurrence).
struct Joined {
  uint32_t site, position; ///< position: earliest in any lane's own sequence
  uint32_t bytes = 0;
  std::vector<uint64_t> addresses;
};

/// Distinct 4-byte words that fall into the busiest of the 32 banks.
unsigned bankDegree(const Joined &j, unsigned &words) {
  static thread_local std::vector<uint64_t> all;
  all.clear();
  for (uint64_t a : j.addresses)
    for (uint64_t w = a / 4, end = (a + j.bytes - 1) / 4; w <= end; ++w)
      all.push_back(w);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  unsigned banks[32] = {};
  for (uint64_t w : all)
    ++banks[w % 32];
  words = unsigned(all.size());
  return *std::max_element(banks, banks + 32);
}

void distinct(const Joined &j, unsigned unit, std::vector<uint64_t> &into) {
  into.clear();
  for (uint64_t a : j.addresses)
    for (uint64_t s = a / unit, end = (a + j.bytes - 1) / unit; s <= end; ++s)
      into.push_back(s);
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

/// Joins the logs of one warp. The result is in the order in which a converged warp would issue.
std::vector<Joined> joinWarp(const BlockTrace &t, const Warp &w, uint32_t numSites) {
  std::vector<Joined> all;
  std::vector<std::vector<uint32_t>> bySite(numSites);
  std::vector<uint32_t> occurrence(numSites);
  uint32_t lanes = uint32_t(__builtin_popcount(w.present));
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    std::fill(occurrence.begin(), occurrence.end(), 0);
    const auto &log = t.threads[w.first + lane];
    for (uint32_t i = 0; i < log.size(); ++i) {
      const TraceEvent &e = log[i];
      uint32_t n = occurrence[e.site]++;
      if (n == bySite[e.site].size()) {
        bySite[e.site].push_back(uint32_t(all.size()));
        all.push_back({e.site, i, 0, {}});
      }
      Joined &j = all[bySite[e.site][n]];
      j.position = std::min(j.position, i);
      j.bytes = std::max(j.bytes, e.bytes);
      j.addresses.push_back(e.address);
    }
  }
  std::sort(all.begin(), all.end(), [](const Joined &a, const Joined &b) {
    return std::tie(a.position, a.site) < std::tie(b.position, b.site);
  });
  return all;
}

/// Whether `next` lies `offset` bytes after `first` in every lane.
bool continues(const Joined &first, const Joined &next, uint64_t offset) {
  if (next.bytes != first.bytes || next.addresses.size() != first.addresses.size() || next.site == first.site)
    return false;
  for (size_t lane = 0; lane < first.addresses.size(); ++lane)
    if (next.addresses[lane] != first.addresses[lane] + offset)
      return false;
  return true;
}

/// ptxas knows where shared memory lies and joins accesses of neighbouring words, wherever in a basic block they stand,
/// into one of up to 16 bytes. (Elsewhere it rarely knows enough of the alignment.) The result tells of each access how
/// many it stands for: 0 when it became part of another.
std::vector<uint8_t> joinSharedWords(const std::vector<Joined> &all, const std::vector<bool> &shared,
                                     const ModuleDesc &module) {
  constexpr size_t window = 64; // accesses of a basic block, about
  std::vector<uint8_t> standsFor(all.size(), 1);
  std::vector<uint32_t> epoch(all.size()); // loads do not move across stores, nor stores across anything
  uint32_t now = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    bool changes = shared[i] && !isLoad(module.sites[all[i].site].kind);
    bool before = i && shared[i - 1] && !isLoad(module.sites[all[i - 1].site].kind);
    epoch[i] = now += changes != before;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const Joined &first = all[i];
    AccessKind kind = module.sites[first.site].kind;
    if (!shared[i] || standsFor[i] != 1 || !(isLoad(kind) || isStore(kind)))
      continue;
    for (size_t count : {4, 2}) {
      uint64_t width = count * first.bytes;
      if (width > 16 || std::any_of(first.addresses.begin(), first.addresses.end(),
                                    [&](uint64_t address) { return address % width != 0; }))
        continue;
      std::vector<size_t> members;
      size_t begin = i > window ? i - window : 0, end = std::min(all.size(), i + window);
      for (size_t k = 1; k < count && members.size() == k - 1; ++k)
        for (size_t other = begin; other < end; ++other)
          if (other != i && shared[other] && epoch[other] == epoch[i] && standsFor[other] == 1 &&
              module.sites[all[other].site].kind == kind && continues(first, all[other], k * first.bytes)) {
            members.push_back(other);
            break;
          }
      if (members.size() != count - 1)
        continue;
      standsFor[i] = uint8_t(count);
      for (size_t member : members)
        standsFor[member] = 0;
      break;
    }
  }
  return standsFor;
}

} // namespace

/// Instruction counts: a warp runs a basic block as often as its busiest lane.
static void countInstructions(TraceCollector &c, Block &b, const Warp &w) {
  const ModuleDesc &m = *b.launch->module;
  uint32_t lanes = uint32_t(__builtin_popcount(w.present));
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
    c.result.control += n * d.control;
    c.result.memory += n * d.memory;
    c.result.barrier += n * d.barrier;
    c.result.other += n * d.other;
    c.loadChains += n * d.depth;
    double size = double(d.fp32) + d.fp64 + d.int32 + d.special + d.control + d.memory + d.barrier + d.other;
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
  std::vector<uint64_t> sectorList, lineList;
  for (const Warp &w : b.warps) {
    countInstructions(*this, b, w);
    uint64_t seen = 0, logged = 0;
    for (uint32_t lane = 0; lane < uint32_t(__builtin_popcount(w.present)); ++lane) {
      seen += t.seen[w.first + lane];
      logged += t.threads[w.first + lane].size();
    }
    double scale = logged ? double(seen) / double(logged) : 1;
    warps.emplace_back();
    std::vector<Joined> joined = joinWarp(t, w, m.numSites);
    std::vector<bool> shared(joined.size());
    for (size_t i = 0; i < joined.size(); ++i) {
      Region region;
      shared[i] = locate(b, joined[i].addresses.front(), region) && region.kind == RegionKind::Shared;
    }
    std::vector<uint8_t> standsFor = joinSharedWords(joined, shared, m);
    for (size_t i = 0; i < joined.size(); ++i) {
      Joined &j = joined[i];
      if (standsFor[i] == 0) {
        result.memory -= scale; // no instruction of its own
        continue;
      }
      j.bytes *= standsFor[i];
      SiteTrace &s = result.sites[j.site];
      Region r;
      if (!locate(b, j.addresses.front(), r))
        continue;
      double lanes = double(j.addresses.size()), width = double(j.bytes);
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
      unsigned words, degree = bankDegree(j, words);
      if (r.kind == RegionKind::Shared) {
        s.shared = true;
        double least = std::ceil(words / 32.0);
        s.l1Cycles += scale * std::max({32 * width / 128, double(degree), 1.0});
        s.bankConflicts += scale * std::max(0.0, degree - least);
        continue;
      }
      distinct(j, 128, lineList);
      distinct(j, 32, sectorList);
      s.sectors += scale * double(sectorList.size());
      s.lines128 += scale * double(lineList.size());
      s.l1Cycles += scale * std::max({32 * width / 128, std::ceil((double(lineList.size()) + 2) / 4), double(degree)});
      if (r.kind == RegionKind::Constant || r.kind == RegionKind::ReadOnly)
        continue; // the constant cache is neither L1 nor L2
      (s.kind == AccessLoad ? result.l1Sectors : result.storeSectors) += scale * double(sectorList.size());
      warps.back().push_back({uint32_t(sectors.size()), uint32_t(sectorList.size()), uint8_t(s.kind)});
      sectors.insert(sectors.end(), sectorList.begin(), sectorList.end());
    }
  }
}
