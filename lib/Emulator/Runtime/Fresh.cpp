//===- Fresh.cpp - kernels on other inputs --------------------------------===//
#include "AroundLaunch.h"
#include "Settings.h"
#include "optiml/Workload/Blob.h"
#include "optiml/Workload/Signature.h"
#include <cstring>
#include <set>
#include <span>

using namespace optiml;
using namespace optiml::emu;

// Bounds what saving and logging may take.
static constexpr uint64_t mostBytes = uint64_t(256) << 20;
static constexpr size_t mostLaunches = 64;

/// Whether this is the first launch of its kind.
static bool wanted(const Launch &l) {
  static auto &seen = *new std::set<std::string>;
  static auto &mutex = *new std::mutex;
  std::string key = l.kernel->symbol;
  for (uint32_t v : {l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], l.dynamicShared})
    key += "," + std::to_string(v);
  std::lock_guard lock(mutex);
  return seen.size() < mostLaunches && seen.insert(key).second;
}

static uint64_t hashOf(const char *data, size_t bytes) {
  return strtoull(blobName(data, bytes).substr(0, 16).c_str(), nullptr, 16);
}

/// Only the largest buffers from the host hold NaN: where it were among the weights, say, that those are multiplied by
/// the zeros of a margin would show, and that is no fault.
static FloatRange rangeFor(const Allocation &a) {
  if (*settings().freshHost != FloatRange::LoneNaN)
    return *settings().freshHost;
  static const uint64_t largest = [] {
    uint64_t most = 0;
    for (const Allocation *other : *Memory::get().liveTable())
      most = std::max(most, other->fromHost ? other->bytes : 0);
    return most;
  }();
  return a.bytes >= largest ? FloatRange::LoneNaN : FloatRange::Same;
}

/// Other contents for a buffer that the host wrote since the last kernel had it.
static void changeHostInput(Allocation &a, std::string element) {
  static auto &mutex = *new std::mutex;
  std::lock_guard lock(mutex);
  if (!a.fromHost)
    return;
  const FloatRange range = rangeFor(a);
  a.fromHost = false;
  char *data = reinterpret_cast<char *>(a.address);
  const uint64_t hash = hashOf(data, a.bytes);
  if (auto it = settings().freshTypes.find(hash); it != settings().freshTypes.end())
    element = it->second;
  if (!refreshBuffer(data, a.bytes, element, settings().freshSeed ^ hash, settings().freshIntegers, range))
    return;
  char text[20];
  snprintf(text, sizeof text, "%llx ", (unsigned long long)hash);
  logInput(hash ^ hashOf(data, a.bytes), text + element);
}

static void changeHostInputs(const Launch &l) {
  if (!settings().freshTypes.empty())
    for (Allocation *a : *Memory::get().liveTable())
      changeHostInput(*a, "");
  else
    for (const PointerDesc &p : std::span(l.kernel->pointers, l.kernel->numPointers))
      if (Allocation *a = pointedTo(l, p.parameter, p.offset))
        changeHostInput(*a, p.pointee);
}

void optiml::emu::freshBeforeCopy(Allocation &from) {
  if (settings().freshHost && !settings().freshTypes.empty())
    changeHostInput(from, "");
}

/// Of the arguments that are plain numbers. (What fills the gaps of a record is anybody's guess.)
static uint64_t hashOfNumbers(const Launch &l, std::span<const PointerDesc> all) {
  std::set<uint32_t> pointers;
  for (const PointerDesc &p : all)
    pointers.insert(p.parameter);
  uint64_t hash = 0;
  for (uint32_t i = 0; i < l.kernel->numParams; ++i)
    if (const ParamDesc &param = l.kernel->params[i]; !pointers.count(i) && param.size <= 8)
      hash = hash * 31 + hashOf(static_cast<const char *>(l.args[i]), param.size);
  return hash;
}

void optiml::emu::freshBefore(const Launch &l, unsigned workers) {
  if (!settings().freshSeed)
    return;
  if (settings().freshHost)
    return changeHostInputs(l);
  std::vector<std::string> types = parameterTypes(l.kernel->symbol);
  if (types.size() != l.kernel->numParams)
    return;
  const std::string &only = settings().freshKernels;
  if ((!only.empty() && only.find("," + std::string(l.kernel->symbol) + ",") == std::string::npos) || !wanted(l))
    return;
  std::vector<Allocation *> buffers = reachableBuffers(l);
  uint64_t total = 0;
  for (Allocation *a : buffers)
    total += a->bytes;
  if (total > mostBytes)
    return;
  std::vector<std::string> saved;
  for (Allocation *a : buffers)
    saved.emplace_back(reinterpret_cast<const char *>(a->address), a->bytes);

  std::set<Allocation *> done;
  struct Output {
    Allocation *buffer;
    std::string name, element;
  };
  std::vector<Output> outputs;
  const std::vector<PointerDesc> pointers = pointersOf(*l.kernel);
  uint64_t inputs = hashOfNumbers(l, pointers); ///< identifies arguments and contents
  bool changed = false;
  for (const PointerDesc &p : pointers) {
    Allocation *a = pointedTo(l, p.parameter, p.offset);
    if (!a || !done.insert(a).second)
      continue;
    char *data = reinterpret_cast<char *>(a->address);
    const std::string &type = types[p.parameter];
    uint64_t seed = settings().freshSeed ^ hashOf(type.data(), type.size()) ^
                    (p.parameter + 1 + (uint64_t(p.offset) << 32)) * 0x9E3779B97F4A7C15;
    changed |= refreshBuffer(data, a->bytes, p.pointee, seed, settings().freshIntegers);
    inputs = (inputs * 31 + hashOf(data, a->bytes)) * 31 + (addressIn(l, p.parameter, p.offset) - a->address);
    outputs.push_back({a, "argument " + std::to_string(p.parameter) + " (" + type + ")", p.pointee});
  }
  if (changed) {
    Launch again;
    again.kernel = l.kernel;
    again.module = l.module;
    again.grid = l.grid;
    again.block = l.block;
    again.dynamicShared = l.dynamicShared;
    again.args = l.args;
    again.workspace = l.workspace;
    again.orderSeed = l.orderSeed;
    std::string error;
    if (runLaunch(again, workers, error))
      for (const Output &o : outputs)
        logFreshResult(*o.buffer, l.kernel->symbol, o.name, o.element, inputs);
  }
  for (size_t i = 0; i < buffers.size(); ++i)
    memcpy(reinterpret_cast<void *>(buffers[i]->address), saved[i].data(), saved[i].size());
}
