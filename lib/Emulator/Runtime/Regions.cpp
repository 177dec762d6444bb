//===- Regions.cpp - bounds of device memory ------------------------------===//
#include "Regions.h"
#include "Fault.h"
#include "Modules.h"

using namespace optiml::emu;

static uint64_t dynamicOffset(const KernelDesc &k) { return (uint64_t(k.staticShared) + 15) & ~uint64_t(15); }

static bool locateShared(const Block &b, uint64_t offset, Region &region) {
  const KernelDesc &k = *b.launch->kernel;
  region.kind = RegionKind::Shared;
  uint64_t base = reinterpret_cast<uint64_t>(b.shared);
  for (uint32_t i = 0; i < k.numSharedVars; ++i) {
    const SharedVarDesc &v = k.sharedVars[i];
    if (offset >= v.offset && offset - v.offset < v.size) {
      region.lo = base + v.offset;
      region.bytes = v.size;
      return true;
    }
  }
  uint64_t dynamic = dynamicOffset(k);
  if (offset >= dynamic && offset - dynamic < b.launch->dynamicShared) {
    region.lo = base + dynamic;
    region.bytes = b.launch->dynamicShared;
    return true;
  }
  return false;
}

bool optiml::emu::locate(const Block &b, uint64_t address, Region &region) {
  uint64_t shared = reinterpret_cast<uint64_t>(b.shared);
  if (address >= shared && address < shared + b.sharedCapacity)
    return locateShared(b, address - shared, region);
  Allocation *a = Memory::findIn(*b.launch->memory, address);
  if (!a && Memory::get().inArena(address))
    a = Memory::get().find(address); // allocated by device code since the launch began
  if (a) {
    region = {a->constant ? RegionKind::Constant : RegionKind::Global, a->address, a->bytes, a};
    return true;
  }
  if (address >= b.stacks.begin() && address < b.stacks.end()) {
    region = {RegionKind::Local, b.stacks.begin(), b.stacks.end() - b.stacks.begin(), nullptr};
    return true;
  }
  for (uint32_t i = 0; i < b.launch->kernel->numParams; ++i) {
    uint64_t lo = reinterpret_cast<uint64_t>(b.launch->args[i]), size = b.launch->kernel->params[i].size;
    if (address >= lo && address - lo < size) {
      region = {RegionKind::Local, lo, size, nullptr};
      return true;
    }
  }
  if (const ImageRange *r = Modules::get().readOnlyImage(address, 1)) {
    region = {RegionKind::ReadOnly, r->begin, r->end - r->begin, nullptr};
    return true;
  }
  return false;
}

static std::string count(uint64_t n) { return std::to_string(n) + (n == 1 ? " byte " : " bytes "); }

/// The place of [address, address + bytes) relative to [lo, lo + size), called `name`.
static std::string relation(uint64_t address, uint64_t bytes, uint64_t lo, uint64_t size, const std::string &name) {
  if (address >= lo + size)
    return count(address - lo - size) + "past the end of " + name;
  if (address < lo)
    return count(lo - address) + "before the start of " + name;
  return "at offset " + std::to_string(address - lo) + " of " + name + ", of which it exceeds the end by " +
         std::to_string(address + bytes - lo - size) + " bytes";
}

static std::string describeShared(const Block &b, uint64_t address, uint64_t bytes) {
  const KernelDesc &k = *b.launch->kernel;
  uint64_t offset = address - reinterpret_cast<uint64_t>(b.shared);
  std::string best = "in shared memory, but the kernel has none there";
  uint64_t bestDistance = UINT64_MAX;
  auto consider = [&](uint64_t lo, uint64_t size, const std::string &name) {
    uint64_t distance = offset >= lo + size ? offset - lo - size : offset < lo ? lo - offset : 0;
    // At equal distance the earlier one: running past the end is the usual mistake.
    if (distance < bestDistance) {
      bestDistance = distance;
      best = relation(offset, bytes, lo, size, name);
    }
  };
  for (uint32_t i = 0; i < k.numSharedVars; ++i)
    consider(k.sharedVars[i].offset, k.sharedVars[i].size,
             "shared variable '" + std::string(k.sharedVars[i].name) + "' (" + std::to_string(k.sharedVars[i].size) +
                 " bytes)");
  if (b.launch->dynamicShared)
    consider(dynamicOffset(k), b.launch->dynamicShared,
             "the " + std::to_string(b.launch->dynamicShared) + " bytes of dynamic shared memory");
  else if (!k.numSharedVars)
    return "in dynamic shared memory, but the launch asked for none";
  return best;
}

std::string optiml::emu::describeAddress(const Block &b, uint64_t address, uint64_t bytes) {
  char text[32];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  if (address < 65536)
    return std::string("address ") + text + " is a null pointer" +
           (address ? " plus " + std::to_string(address) + " bytes" : "");
  uint64_t shared = reinterpret_cast<uint64_t>(b.shared);
  if (address + 4096 >= shared && address < shared + b.sharedCapacity + 4096)
    return std::string("address ") + text + " is " + describeShared(b, address, bytes);
  Allocation *a = Memory::get().nearest(address);
  if (!a)
    return std::string("address ") + text + " is not device memory (perhaps a pointer to host memory)";
  std::string name = a->describe();
  if (a->freed)
    name += ", which was freed";
  if (a->freed && a->contains(address, bytes))
    return std::string("address ") + text + " is at offset " + std::to_string(address - a->address) + " of " + name;
  return std::string("address ") + text + " is " + relation(address, bytes, a->address, a->bytes, name);
}

const char *optiml::emu::accessName(AccessKind kind) {
  return kind == AccessAtomicBlock ? "block-wide atomic operation"
         : kind == AccessAtomic    ? "atomic operation"
         : isStore(kind)           ? "store"
                                   : "load";
}

std::string optiml::emu::accessHeadline(const char *what, AccessKind kind, uint64_t bytes) {
  return std::string(what) + " " + accessName(kind) + " of " + std::to_string(bytes) +
         (bytes == 1 ? " byte" : " bytes");
}

Region optiml::emu::checkedRegion(Fiber &fiber, uint64_t address, uint64_t bytes, AccessKind kind, uint32_t site,
                                  uint32_t alignment) {
  const Block &b = *fiber.block;
  Region region;
  bool found = locate(b, address, region);
  if (!found || address - region.lo > region.bytes || bytes > region.bytes - (address - region.lo)) {
    Fault f = faultAt(fiber, "out-of-bounds", site);
    f.headline = accessHeadline("out-of-bounds", kind, bytes);
    f.detail = describeAddress(b, address, bytes);
    raise(fiber, f);
  }
  if (alignment > 1 && address % alignment != 0) {
    Fault f = faultAt(fiber, "misaligned", site);
    f.headline = accessHeadline("misaligned", kind, bytes);
    f.detail = "the address is no multiple of " + std::to_string(alignment);
    if (region.allocation)
      f.detail += "; it is at offset " + std::to_string(address - region.lo) + " of " + region.allocation->describe();
    raise(fiber, f);
  }
  if (!isLoad(kind) && (region.kind == RegionKind::Constant || region.kind == RegionKind::ReadOnly)) {
    Fault f = faultAt(fiber, "out-of-bounds", site);
    f.headline = std::string(accessName(kind)) + " to constant memory";
    f.detail = region.allocation ? "the address is in " + region.allocation->describe() : "the address is read-only";
    raise(fiber, f);
  }
  return region;
}
