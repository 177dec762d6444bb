//===- Reachable.cpp - the memory a launch may touch ----------------------===//
#include "AroundLaunch.h"
#include "Modules.h"
#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

using namespace optiml::emu;

static void pointersIn(const char *bytes, uint64_t size, std::set<Allocation *> &found,
                       std::vector<Allocation *> &queue) {
  Memory &memory = Memory::get();
  for (uint64_t i = 0; i + 8 <= size; i += 8) {
    uint64_t v;
    memcpy(&v, bytes + i, 8);
    if (!memory.inArena(v))
      continue;
    Allocation *a = memory.find(v);
    if (a && found.insert(a).second)
      queue.push_back(a);
  }
}

uint64_t optiml::emu::addressIn(const Launch &l, uint32_t parameter, uint32_t offset) {
  uint64_t address;
  memcpy(&address, static_cast<const char *>(l.args[parameter]) + offset, 8);
  return address;
}

Allocation *optiml::emu::pointedTo(const Launch &l, uint32_t parameter, uint32_t offset) {
  const uint64_t address = addressIn(l, parameter, offset);
  Allocation *a = Memory::get().find(address);
  return a ? a : address ? Memory::get().find(address - 1) : nullptr;
}

std::vector<PointerDesc> optiml::emu::pointersOf(const KernelDesc &kernel) {
  std::vector<PointerDesc> all(kernel.pointers, kernel.pointers + kernel.numPointers);
  for (uint32_t i = 0; i < kernel.numParams; ++i)
    if (kernel.params[i].isPointer &&
        std::none_of(all.begin(), all.end(), [&](const PointerDesc &p) { return p.parameter == i; }))
      all.push_back({i, 0, "void"});
  return all;
}

std::vector<Allocation *> optiml::emu::reachableBuffers(const Launch &l) {
  std::set<Allocation *> found;
  std::vector<Allocation *> queue;
  auto add = [&](Allocation *a) {
    if (a && found.insert(a).second)
      queue.push_back(a);
  };
  for (Allocation *a : Modules::get().variablesOf(l.module))
    add(a);
  for (uint32_t i = 0; i < l.kernel->numParams; ++i) {
    if (l.kernel->params[i].isPointer)
      add(pointedTo(l, i));
    else
      pointersIn(static_cast<const char *>(l.args[i]), l.kernel->params[i].size, found, queue);
  }
  while (!queue.empty()) {
    Allocation *a = queue.back();
    queue.pop_back();
    pointersIn(reinterpret_cast<const char *>(a->address), a->bytes, found, queue);
  }
  std::vector<Allocation *> result;
  std::copy_if(found.begin(), found.end(), std::back_inserter(result), [](Allocation *a) { return !a->fixed; });
  std::sort(result.begin(), result.end(), [](Allocation *a, Allocation *b) { return a->address < b->address; });
  return result;
}
