//===- Reach.cpp - the memory a launch may touch --------------------------===//
#include "Reach.h"
#include <algorithm>
#include <cstring>

using namespace optiml::gpu;

static constexpr uint64_t pieceBytes = uint64_t(16) << 20;

Reach::Reach(RangeIndex theIndex, Reader reader)
    : index(std::move(theIndex)), read(std::move(reader)), states(index.all().size()) {}

void Reach::reach(int range, uint64_t address) {
  if (range < 0)
    return;
  const MemoryRange &r = index.all()[size_t(range)];
  State &s = states[size_t(range)];
  uint64_t begin = r.begin;
  if (r.bytes > largeRange && r.variable < 0)
    begin = std::max(begin, address & ~(windowAlignment - 1));
  if (begin >= s.begin)
    return;
  total += s.begin == UINT64_MAX ? r.end() - begin : s.begin - begin;
  s.begin = begin;
  queue.push_back(size_t(range));
}

void Reach::addPointer(uint64_t address) {
  if (!address)
    return;
  if (index.find(address) < 0)
    --address; // one past the end of a buffer belongs to it
  reach(index.find(address), address);
}

void Reach::addWords(const char *value, uint64_t bytes, uint64_t offset) {
  for (uint64_t i = (8 - offset % 8) % 8; i + 8 <= bytes; i += 8) {
    uint64_t word;
    memcpy(&word, value + i, 8);
    reach(index.find(word), word);
  }
}

void Reach::addRange(size_t i) { reach(int(i), index.all()[i].begin); }

bool Reach::scanPiece(uint64_t begin, uint64_t bytes, bool &found) {
  buffer.resize(bytes);
  if (!read(begin, bytes, buffer.data()))
    return false;
  for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
    uint64_t word;
    memcpy(&word, buffer.data() + i, 8);
    if (int range = index.find(word); range >= 0) {
      found = true;
      reach(range, word);
    }
  }
  return true;
}

bool Reach::scan(size_t range) {
  State &s = states[range];
  uint64_t begin = (s.begin + 7) & ~uint64_t(7);
  uint64_t end = std::min(index.all()[range].end(), s.scanned);
  s.scanned = s.begin;
  bool found = false;
  for (uint64_t at = begin, n = 0; at < end; at += n) {
    bool first = at == begin;
    if (!first && !found)
      break;
    n = std::min(end - at, first ? probeBytes : pieceBytes);
    if (!scanPiece(at, n, found))
      return false;
  }
  return true;
}

bool Reach::follow(uint64_t most) {
  while (!queue.empty() && bytes() <= most) {
    size_t range = queue.back();
    queue.pop_back();
    if (states[range].begin < states[range].scanned && !scan(range))
      return false;
  }
  return true;
}

std::vector<MemoryRange> Reach::windows() const {
  std::vector<MemoryRange> result;
  for (size_t i = 0; i < states.size(); ++i) {
    const MemoryRange &r = index.all()[i];
    if (states[i].begin != UINT64_MAX)
      result.push_back({states[i].begin, r.end() - states[i].begin, r.variable});
  }
  return result;
}
