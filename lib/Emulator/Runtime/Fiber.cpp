//===- Fiber.cpp - stacks of CUDA threads ---------------------------------===//
#include "Fiber.h"
#include <algorithm>
#include <atomic>
#include <sys/mman.h>

using namespace optiml::emu;

// Every guard page splits a mapping in two, and Linux allows a process 65,530 mappings.
static constexpr int maxGuards = 20000;
static std::atomic<int> guards{0};

const char *optiml::emu::warpOpName(WarpOp op) {
  switch (op) {
  case WarpOp::Sync: return "__syncwarp";
  case WarpOp::Shuffle: return "a warp shuffle";
  case WarpOp::Vote: return "a warp vote";
  case WarpOp::MatchAny:
  case WarpOp::MatchAll: return "a warp match";
  case WarpOp::Reduce: return "a warp reduction";
  case WarpOp::MatrixProduct: return "a product of matrices by a warp";
  }
  return "a warp operation";
}

StackPool::~StackPool() {
  if (base)
    munmap(base, capacity * stackBytes);
  guards -= int(std::min<unsigned>(created, maxGuards));
}

bool StackPool::reserve(unsigned count) {
  if (count <= capacity) {
    reset();
    return true;
  }
  if (base)
    munmap(base, capacity * stackBytes);
  guards -= int(std::min<unsigned>(created, maxGuards));
  created = capacity = 0;
  freeStacks.clear();
  void *p = mmap(nullptr, count * stackBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  base = p == MAP_FAILED ? nullptr : static_cast<char *>(p);
  capacity = base ? count : 0;
  return base != nullptr;
}

int StackPool::take() {
  if (!freeStacks.empty()) {
    int s = freeStacks.back();
    freeStacks.pop_back();
    return s;
  }
  if (created == capacity)
    return -1;
  if (guards++ < maxGuards)
    mprotect(base + created * stackBytes, 4096, PROT_NONE);
  return int(created++);
}

void StackPool::reset() {
  freeStacks.clear();
  for (int i = int(created); i-- > 0;)
    freeStacks.push_back(i);
}

static uint64_t stagger(int stack) { return (uint64_t(stack) * 320) % 16384; }

void *StackPool::top(int stack) const { return base + (stack + 1) * stackBytes - stagger(stack); }

uint64_t StackPool::usableBytes(int stack) const { return stackBytes - 4096 - stagger(stack); }

bool StackPool::isGuard(uint64_t address) const {
  return address >= begin() && address < end() && (address - begin()) % stackBytes < 4096;
}
