//===- Checks.cpp - the entry points of memory checking -------------------===//
#include "Fault.h"
#include "Races.h"
#include "Regions.h"
#include "Settings.h"
#include "Trace.h"
#include <algorithm>

using namespace optiml::emu;

extern "C" {

void optiml_check(ThreadContext *context, const void *address, uint32_t site) {
  Fiber &f = fiberOf(context);
  const SiteDesc &s = f.block->launch->module->sites[site];
  Region r = checkedRegion(f, reinterpret_cast<uint64_t>(address), s.size, s.kind, site, s.alignment);
  if (r.allocation && settings().notesTouched) {
    const uint64_t end = reinterpret_cast<uint64_t>(address) + s.size - r.lo;
    noteTouched(*r.allocation, end);
    r.bytes = std::max<uint64_t>(end, s.size); // an access behind it comes here again
  }
  // Memory that device code allocated may be freed by it again; the other ranges stand for the whole launch.
  if (r.bytes >= s.size && !(r.allocation && r.allocation->kind == MemoryKind::Heap))
    context->siteCache[site] = {r.lo, r.bytes - s.size};
}

void optiml_access(ThreadContext *context, const void *address, uint32_t site) {
  Fiber &f = fiberOf(context);
  const SiteDesc &s = f.block->launch->module->sites[site];
  if (s.kind == AccessAtomic && !f.block->isShared(address))
    f.block->interleave(f);
  raceAccess(f, reinterpret_cast<uint64_t>(address), s.size, s.kind, site, s.alignment);
}

void optiml_access_range(ThreadContext *context, const void *address, uint64_t bytes, uint32_t site) {
  if (!bytes)
    return;
  Fiber &f = fiberOf(context);
  const Launch &l = *f.block->launch;
  AccessKind kind = l.module->sites[site].kind;
  uint64_t a = reinterpret_cast<uint64_t>(address);
  if (l.mode(ModeVerify))
    raceAccess(f, a, bytes, kind, site, 1);
  else if (l.mode(ModeTrace))
    traceAccess(f, a, bytes, site);
  else
    checkedRegion(f, a, bytes, kind, site, 1);
  noteTouched(address, bytes);
}

void optiml_outside_local(ThreadContext *context, uint64_t offset, uint64_t bytes, uint32_t site) {
  Fiber &fiber = fiberOf(context);
  const SiteDesc &s = fiber.block->launch->module->sites[site];
  Fault f = faultAt(fiber, "out-of-bounds", site);
  f.headline = accessHeadline("out-of-bounds", s.kind, s.size);
  f.detail = "it is at offset " + std::to_string(int64_t(offset)) + " of a variable of the thread's own, which has " +
             std::to_string(bytes) + " bytes";
  raise(fiber, f);
}

void optiml_trace(ThreadContext *context, const void *address, uint32_t site) {
  Fiber &f = fiberOf(context);
  traceAccess(f, reinterpret_cast<uint64_t>(address), f.block->launch->module->sites[site].size, site);
}

void optiml_unsupported(ThreadContext *context, const char *construct, uint32_t site) {
  Fiber &fiber = fiberOf(context);
  Fault f = faultAt(fiber, "unsupported", site);
  f.headline = std::string("unsupported: ") + construct;
  f.detail = "the CPU emulator cannot run this construct";
  raise(fiber, f);
}

uint32_t optiml_is_shared(ThreadContext *context, const void *address) {
  const Block &b = *fiberOf(context).block;
  uint64_t a = reinterpret_cast<uint64_t>(address), lo = reinterpret_cast<uint64_t>(b.shared);
  return a >= lo && a < lo + b.sharedCapacity;
}

uint32_t optiml_is_global(ThreadContext *context, const void *address) {
  Region r;
  return locate(*fiberOf(context).block, reinterpret_cast<uint64_t>(address), r) && r.kind == RegionKind::Global;
}
}
