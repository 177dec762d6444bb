//===- Allocations.cpp - the program's device memory ----------------------===//
#include "Allocations.h"
#include <algorithm>
#include <iterator>

using namespace optiml::gpu;

RangeIndex::RangeIndex(std::vector<MemoryRange> all) {
  auto byAddress = [](const MemoryRange &a, const MemoryRange &b) { return a.begin < b.begin; };
  std::vector<MemoryRange> variables;
  std::copy_if(all.begin(), all.end(), std::back_inserter(variables), [](auto &r) { return r.variable >= 0; });
  std::sort(variables.begin(), variables.end(), byAddress);
  std::erase_if(all, [&](const MemoryRange &r) {
    if (r.variable >= 0 || !r.bytes)
      return true;
    auto next = std::lower_bound(variables.begin(), variables.end(), r, byAddress);
    return (next != variables.end() && next->begin < r.end()) ||
           (next != variables.begin() && std::prev(next)->end() > r.begin);
  });
  std::sort(all.begin(), all.end(), byAddress);
  for (const MemoryRange &r : all)
    if (!ranges.empty() && r.begin < ranges.back().end())
      ranges.back().bytes = std::max(ranges.back().end(), r.end()) - ranges.back().begin;
    else
      ranges.push_back(r);
  for (const MemoryRange &v : variables) // never two at one place
    if (v.bytes && (ranges.empty() || ranges.back().variable < 0 || v.begin >= ranges.back().end()))
      ranges.push_back(v);
  std::sort(ranges.begin(), ranges.end(), byAddress);
  if (!ranges.empty()) {
    lowest = ranges.front().begin;
    span = ranges.back().end() - lowest;
  }
}

int RangeIndex::search(uint64_t address) const {
  auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                [](uint64_t a, const MemoryRange &r) { return a < r.begin; });
  if (after == ranges.begin() || !std::prev(after)->contains(address))
    return -1;
  return int(std::prev(after) - ranges.begin());
}

/// Removes what lies in [begin, begin + bytes); mappings may be cut, an allocation goes as a whole.
void Allocations::cut(uint64_t begin, uint64_t bytes, bool mappedOnly) {
  uint64_t end = begin + bytes;
  auto it = table.upper_bound(begin);
  if (it != table.begin())
    --it;
  while (it != table.end() && it->first < end) {
    auto [at, entry] = *it;
    uint64_t itsEnd = at + entry.bytes;
    if (itsEnd <= begin || (mappedOnly && !entry.mapped)) {
      ++it;
      continue;
    }
    it = table.erase(it);
    if (!entry.mapped)
      continue;
    if (at < begin)
      table[at] = {begin - at, true, nullptr};
    if (itsEnd > end)
      table[end] = {itsEnd - end, true, nullptr};
  }
}

void Allocations::insert(uint64_t begin, const Entry &entry) {
  if (!begin || !entry.bytes || begin + entry.bytes < begin)
    return;
  std::lock_guard lock(mutex);
  cut(begin, entry.bytes, false); // whatever was there has been freed in a way that was not seen
  table[begin] = entry;
}

void Allocations::add(uint64_t begin, uint64_t bytes, const void *owner) { insert(begin, {bytes, false, owner}); }

void Allocations::map(uint64_t begin, uint64_t bytes) { insert(begin, {bytes, true, nullptr}); }

void Allocations::remove(uint64_t begin) {
  std::lock_guard lock(mutex);
  auto it = table.find(begin);
  if (it != table.end() && !it->second.mapped)
    table.erase(it);
}

void Allocations::unmap(uint64_t begin, uint64_t bytes) {
  std::lock_guard lock(mutex);
  cut(begin, bytes, true);
}

void Allocations::removeOwned(const void *owner) {
  std::lock_guard lock(mutex);
  std::erase_if(table, [&](const auto &entry) { return owner && entry.second.owner == owner; });
}

bool Allocations::find(uint64_t address, MemoryRange &into) const {
  std::lock_guard lock(mutex);
  auto it = table.upper_bound(address);
  if (it == table.begin())
    return false;
  --it;
  if (address - it->first >= it->second.bytes)
    return false;
  into = {it->first, it->second.bytes};
  if (!it->second.mapped)
    return true;
  for (auto p = it; p != table.begin();) {
    --p;
    if (!p->second.mapped || p->first + p->second.bytes != into.begin)
      break;
    into = {p->first, into.bytes + p->second.bytes};
  }
  for (auto n = std::next(it); n != table.end() && n->second.mapped && n->first == into.end(); ++n)
    into.bytes += n->second.bytes;
  return true;
}

std::vector<MemoryRange> Allocations::all() const {
  std::lock_guard lock(mutex);
  std::vector<MemoryRange> result;
  bool joins = false; // whether the last one is a mapping
  for (auto &[begin, entry] : table) {
    if (joins && entry.mapped && result.back().end() == begin)
      result.back().bytes += entry.bytes;
    else
      result.push_back({begin, entry.bytes});
    joins = entry.mapped;
  }
  return result;
}
