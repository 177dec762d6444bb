//===- Arena.cpp - memory where the captured program had it ---------------===//
#include "Arena.h"
#include <algorithm>
#include <cstring>

using namespace optiml::gpu;

std::vector<AddressRange> optiml::gpu::joinRanges(std::vector<AddressRange> ranges, uint64_t granularity) {
  for (AddressRange &r : ranges) {
    uint64_t begin = r.begin / granularity * granularity;
    uint64_t end = (r.end() + granularity - 1) / granularity * granularity;
    r = {begin, std::max(end, begin + granularity) - begin};
  }
  std::sort(ranges.begin(), ranges.end(), [](auto &a, auto &b) { return a.begin < b.begin; });
  std::vector<AddressRange> joined;
  for (const AddressRange &r : ranges)
    if (!joined.empty() && r.begin <= joined.back().end())
      joined.back().bytes = std::max(joined.back().end(), r.end()) - joined.back().begin;
    else
      joined.push_back(r);
  return joined;
}

std::vector<AddressRange> optiml::gpu::gapsOf(const AddressRange &arena, std::vector<AddressRange> used,
                                              uint64_t reach) {
  std::sort(used.begin(), used.end(), [](auto &a, auto &b) { return a.begin < b.begin; });
  std::vector<AddressRange> gaps;
  auto add = [&](uint64_t begin, uint64_t end) {
    if (begin < end)
      gaps.push_back({begin, end - begin});
  };
  uint64_t position = arena.begin;
  bool before = false; // a used range ends at position
  auto gap = [&](uint64_t end, bool after) {
    if (end - position <= 2 * reach && before && after)
      return add(position, end);
    if (before)
      add(position, std::min(end, position + reach));
    if (after)
      add(std::max(position, end > reach ? end - reach : 0), end);
  };
  for (const AddressRange &u : used) {
    uint64_t begin = std::max(u.begin, arena.begin), end = std::min(u.end(), arena.end());
    if (begin >= end)
      continue;
    if (begin > position)
      gap(begin, true);
    position = std::max(position, end);
    before = true;
  }
  if (position < arena.end())
    gap(arena.end(), false);
  return gaps;
}

/// Takes a range of addresses, the wanted one if the driver allows.
static bool reserve(Device &device, const AddressRange &range, uint64_t granularity, CUdeviceptr &at) {
  const Driver &cu = device.cu;
  // The driver moves a hint to a boundary of its own (32 MiB, seen with driver 580), so ask from such a boundary on.
  for (uint64_t boundary : {granularity, uint64_t(32) << 20, uint64_t(512) << 20}) {
    uint64_t begin = range.begin / boundary * boundary;
    uint64_t bytes = (range.end() - begin + granularity - 1) / granularity * granularity;
    CUdeviceptr base = 0;
    if (cu.cuMemAddressReserve(&base, bytes, 0, begin, 0) != CUDA_SUCCESS)
      continue;
    if (base == begin) {
      at = base + (range.begin - begin);
      return true;
    }
    cu.cuMemAddressFree(base, bytes);
  }
  return device.ok(cu.cuMemAddressReserve(&at, range.bytes, granularity, 0, 0), "cannot reserve addresses");
}

bool Arenas::map(Device &device, std::vector<AddressRange> ranges) {
  const Driver &cu = device.cu;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device.device;
  size_t granularity = 0;
  if (!device.ok(cu.cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                 "cannot learn the granularity of memory"))
    return false;
  CUmemAccessDesc access = {};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  wanted = joinRanges(ranges, 1);
  for (const AddressRange &range : joinRanges(std::move(ranges), granularity)) {
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle handle;
    if (!reserve(device, range, granularity, at) ||
        !device.ok(cu.cuMemCreate(&handle, range.bytes, &properties, 0), "no room for the workload's buffers"))
      return false;
    bool good = device.ok(cu.cuMemMap(at, range.bytes, 0, handle, 0), "cannot map memory") &&
                device.ok(cu.cuMemSetAccess(at, range.bytes, &access, 1), "cannot make memory accessible");
    cu.cuMemRelease(handle); // the mapping keeps it
    if (!good)
      return false;
    relocated += at != range.begin;
    mapped.push_back(range);
    places.push_back(at);
  }
  return true;
}

size_t Arenas::patch(char *data, uint64_t bytes) const {
  if (!relocated || wanted.empty())
    return 0;
  uint64_t least = wanted.front().begin, most = wanted.back().end();
  size_t patched = 0;
  for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
    uint64_t word;
    memcpy(&word, data + i, 8);
    if (word < least || word > most)
      continue;
    auto it = std::upper_bound(wanted.begin(), wanted.end(), word,
                               [](uint64_t a, const AddressRange &r) { return a < r.begin; });
    if (it == wanted.begin() || word > (--it)->end()) // the end of a buffer is a pointer too
      continue;
    uint64_t now = translate(it->begin) + (word - it->begin);
    patched += now != word;
    memcpy(data + i, &now, 8);
  }
  return patched;
}

const AddressRange *Arenas::find(uint64_t address) const {
  auto it = std::upper_bound(mapped.begin(), mapped.end(), address,
                             [](uint64_t a, const AddressRange &r) { return a < r.begin; });
  if (it == mapped.begin() || address >= (--it)->end())
    return nullptr;
  return &*it;
}

CUdeviceptr Arenas::translate(uint64_t address) const {
  const AddressRange *range = find(address);
  return range ? places[size_t(range - mapped.data())] + (address - range->begin) : 0;
}
