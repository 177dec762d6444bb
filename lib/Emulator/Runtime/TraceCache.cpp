//===- TraceCache.cpp - an L1 cache over the traced blocks ----------------===//
//
// The traced blocks are taken to be co-resident on one multiprocessor and share an LRU cache of 128-byte lines with
// four sectors each. Loads that miss ask L2 for a sector; stores write through and allocate nothing; atomics go to L2.
//
//===----------------------------------------------------------------------===//
#include "Trace.h"
#include "optiml/Emulator/ABI.h"
#include <list>
#include <map>
#include <set>
#include <unordered_map>

using namespace optiml::emu;

namespace {
class SectorCache {
public:
  explicit SectorCache(uint64_t bytes) : capacity(std::max<uint64_t>(1, bytes / 128)) {}
  /// Whether the sector was present; brings it in if `allocate`.
  bool access(uint64_t sector, bool allocate) {
    uint64_t line = sector / 4;
    uint8_t bit = uint8_t(1u << (sector % 4));
    auto it = lines.find(line);
    if (it != lines.end()) {
      order.splice(order.begin(), order, it->second.place);
      bool hit = it->second.sectors & bit;
      if (allocate)
        it->second.sectors |= bit;
      return hit;
    }
    if (!allocate)
      return false;
    if (lines.size() >= capacity) {
      lines.erase(order.back());
      order.pop_back();
    }
    order.push_front(line);
    lines[line] = {order.begin(), bit};
    return false;
  }

private:
  struct Line {
    std::list<uint64_t>::iterator place;
    uint8_t sectors;
  };
  uint64_t capacity;
  std::list<uint64_t> order;
  std::unordered_map<uint64_t, Line> lines;
};
} // namespace

void TraceCollector::countAtomicLines() {
  std::map<uint32_t, std::set<uint64_t>> all, block;
  size_t warpsPerBlock = warps.size() / std::max<uint64_t>(1, result.tracedBlocks);
  for (size_t w = 0; w < warps.size(); ++w) {
    if (warpsPerBlock && w % warpsPerBlock == 0)
      block.clear();
    for (const WarpAccess &a : warps[w])
      for (uint32_t i = 0; result.sites[a.site].kind == AccessAtomic && i < a.count; ++i) {
        uint64_t line = sectors[a.first + i] / 4;
        result.sites[a.site].atomicBlocks += block[a.site].empty();
        result.sites[a.site].lines += all[a.site].insert(line).second;
        result.sites[a.site].linesByBlock += block[a.site].insert(line).second;
      }
  }
}

void TraceCollector::finish(const Launch &launch) {
  SectorCache l1(l1Bytes);
  std::unordered_set<uint64_t> unique;
  double misses = 0, simulated = 0;
  struct Loads {
    double all = 0, missed = 0;
  };
  std::vector<Loads> loads(result.sites.size());
  std::vector<size_t> position(warps.size());
  for (bool more = true; more;) {
    more = false;
    for (size_t w = 0; w < warps.size(); ++w) {
      if (position[w] == warps[w].size())
        continue;
      more = true;
      const WarpAccess &a = warps[w][position[w]++];
      uint32_t kind = result.sites[a.site].kind;
      bool missed = false;
      for (uint32_t i = 0; i < a.count; ++i) {
        uint64_t sector = sectors[a.first + i];
        unique.insert(sector);
        if (footprint)
          footprint->insert(sector);
        if (kind == AccessAtomic)
          continue;
        bool load = kind == AccessLoad;
        bool hit = l1.access(sector, load);
        simulated += load;
        misses += load && !hit;
        missed |= load && !hit;
      }
      ++loads[a.site].all;
      loads[a.site].missed += missed;
    }
  }
  countAtomicLines();
  // What was not logged for want of room missed as often as the rest.
  result.l2Sectors = simulated ? misses * (result.l1Sectors / simulated) : 0;
  result.uniqueSectors = double(unique.size());
  result.footprintBytes = 32.0 * double(footprint ? footprint->size() : unique.size());
  result.totalBlocks = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  result.warpsPerBlock = (launch.threads + 31) / 32;
  result.activeLanes = warpInstructions ? laneInstructions / warpInstructions : 0;
  for (SiteTrace &site : result.sites)
    site.l1Misses = loads[site.site].all ? loads[site.site].missed / loads[site.site].all : 0;
  const ModuleDesc &m = *launch.module;
  std::vector<size_t> place(blockRuns.size());
  for (uint32_t block = 0; block < blockRuns.size(); ++block)
    if (blockRuns[block] > 0) {
      const BlockDesc &d = m.blocks[block];
      place[block] = result.basicBlocks.size();
      result.basicBlocks.push_back({blockRuns[block] / warpCount, instructionsOf(d), double(d.chain), {}});
      result.basicBlocks.back().waits.resize(d.depth);
    }
  for (uint32_t site = 0; site < m.numSites; ++site) {
    const SiteDesc &s = m.sites[site];
    if (s.level && s.block < blockRuns.size() && blockRuns[s.block] > 0)
      result.basicBlocks[place[s.block]].waits[s.level - 1].push_back(site);
  }
  std::erase_if(result.sites, [](const SiteTrace &s) { return s.warpAccesses == 0; });
}
