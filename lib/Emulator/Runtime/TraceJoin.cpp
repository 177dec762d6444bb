//===- TraceJoin.cpp - the accesses of lanes become those of a warp -------===//
#include "TraceJoin.h"
#include "Regions.h"
#include <algorithm>
#include <tuple>

using namespace optiml::emu;

void WarpJoin::distinct(const Joined &j, unsigned shift, std::vector<uint64_t> &into) const {
  into.clear();
  bool ascending = true; // as nearly all accesses are
  for (uint64_t a : addresses(j))
    for (uint64_t s = a >> shift, end = (a + j.bytes - 1) >> shift; s <= end; ++s) {
      if (!into.empty() && s <= into.back()) {
        if (s == into.back())
          continue;
        ascending = false;
      }
      into.push_back(s);
    }
  if (ascending)
    return;
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

void WarpJoin::run(const Block &block, const Warp &warp) {
  const BlockTrace &t = *block.trace;
  all.clear();
  bySite.resize(block.launch->module->numSites);
  for (std::vector<uint32_t> &list : bySite)
    list.clear();
  uint32_t lanes = uint32_t(__builtin_popcount(warp.present));
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    occurrence.assign(bySite.size(), 0);
    const std::vector<TraceEvent> &log = t.threads[warp.first + lane];
    for (uint32_t i = 0; i < log.size(); ++i) {
      const TraceEvent &e = log[i];
      uint32_t n = occurrence[e.site]++;
      if (n == bySite[e.site].size()) {
        bySite[e.site].push_back(uint32_t(all.size()));
        all.push_back({e.site, i, 0, 0, uint32_t(all.size())});
        if (slots.size() < all.size() * 32)
          slots.resize(std::max<size_t>(1024, 2 * slots.size()));
      }
      Joined &j = all[bySite[e.site][n]];
      j.position = std::min(j.position, i);
      j.bytes = std::max(j.bytes, e.bytes);
      slots[size_t(j.slot) * 32 + j.lanes++] = e.address;
    }
  }
  std::sort(all.begin(), all.end(), [](const Joined &a, const Joined &b) {
    return std::tie(a.position, a.site) < std::tie(b.position, b.site);
  });
  joinSharedWords(block);
}

/// Whether `next` lies `offset` bytes after `first` in every lane.
bool WarpJoin::continues(const Joined &first, const Joined &next, uint64_t offset) const {
  if (next.bytes != first.bytes || next.lanes != first.lanes || next.site == first.site)
    return false;
  std::span<const uint64_t> a = addresses(first), b = addresses(next);
  return std::equal(a.begin(), a.end(), b.begin(), [&](uint64_t x, uint64_t y) { return y == x + offset; });
}

/// ptxas knows where shared memory lies and joins accesses of neighbouring words, wherever in a basic block they stand,
/// into one of up to 16 bytes. (Elsewhere it rarely knows enough of the alignment.)
void WarpJoin::joinSharedWords(const Block &block) {
  constexpr size_t window = 64; // accesses of a basic block, about
  const ModuleDesc &module = *block.launch->module;
  merged.assign(all.size(), 1);
  shared.resize(all.size());
  epoch.resize(all.size()); // loads do not move across stores, nor stores across anything
  uint32_t now = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    Region region;
    shared[i] = locate(block, addresses(all[i]).front(), region) && region.kind == RegionKind::Shared;
    bool changes = shared[i] && !isLoad(module.sites[all[i].site].kind);
    bool before = i && shared[i - 1] && !isLoad(module.sites[all[i - 1].site].kind);
    epoch[i] = now += changes != before;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const Joined &first = all[i];
    AccessKind kind = module.sites[first.site].kind;
    if (!shared[i] || merged[i] != 1 || !(isLoad(kind) || isStore(kind)))
      continue;
    for (size_t count : {4, 2}) {
      uint64_t width = count * first.bytes;
      std::span<const uint64_t> lanes = addresses(first);
      if (width > 16 || std::any_of(lanes.begin(), lanes.end(), [&](uint64_t a) { return a % width != 0; }))
        continue;
      size_t members[4], found = 0;
      size_t begin = i > window ? i - window : 0, end = std::min(all.size(), i + window);
      for (size_t k = 1; k < count && found == k - 1; ++k)
        for (size_t other = begin; other < end; ++other)
          if (other != i && shared[other] && epoch[other] == epoch[i] && merged[other] == 1 &&
              module.sites[all[other].site].kind == kind && continues(first, all[other], k * first.bytes)) {
            members[found++] = other;
            break;
          }
      if (found != count - 1)
        continue;
      merged[i] = uint8_t(count);
      for (size_t k = 0; k < found; ++k)
        merged[members[k]] = 0;
      break;
    }
  }
}
