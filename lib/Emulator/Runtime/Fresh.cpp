//===- Fresh.cpp - kernels on other inputs --------------------------------===//
#include "AroundLaunch.h"
#include "Settings.h"
#include "optiml/Workload/Blob.h"
#include "optiml/Workload/Signature.h"
#include <cstring>
#include <set>

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

/// Other contents for the floats that the host wrote since the last kernel had them.
static void changeHostInputs(const Launch &l, const std::vector<std::string> &types) {
  static auto &mutex = *new std::mutex;
  std::lock_guard lock(mutex);
  const std::string &wanted = settings().freshHost;
  FloatRange range = wanted == "negative" ? FloatRange::Negative
                     : wanted == "masked" ? FloatRange::Masked
                     : wanted == "same"   ? FloatRange::Same
                                          : FloatRange::Wide;
  for (uint32_t i = 0; i < l.kernel->numParams; ++i) {
    Allocation *a = l.kernel->params[i].isPointer ? pointedTo(l, i) : nullptr;
    if (!a || !a->fromHost)
      continue;
    a->fromHost = false;
    char *data = reinterpret_cast<char *>(a->address);
    uint64_t hash = hashOf(data, a->bytes);
    if (refreshElements(data, a->bytes, pointeeType(types[i]), settings().freshSeed ^ hash, FreshIntegers::Keep, range))
      logInput(hash);
  }
}

void optiml::emu::freshBefore(const Launch &l, unsigned workers) {
  if (!settings().freshSeed)
    return;
  std::vector<std::string> types = parameterTypes(l.kernel->symbol);
  if (types.size() != l.kernel->numParams)
    return;
  if (!settings().freshHost.empty())
    return changeHostInputs(l, types);
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
    std::string name, type;
  };
  std::vector<Output> outputs;
  uint64_t inputs = 0; ///< identifies all contents
  bool changed = false;
  for (uint32_t i = 0; i < l.kernel->numParams; ++i) {
    Allocation *a = l.kernel->params[i].isPointer ? pointedTo(l, i) : nullptr;
    if (!a || !done.insert(a).second)
      continue;
    char *data = reinterpret_cast<char *>(a->address);
    uint64_t seed = settings().freshSeed ^ hashOf(types[i].data(), types[i].size()) ^ (i + 1) * 0x9E3779B97F4A7C15;
    changed |= refreshElements(data, a->bytes, pointeeType(types[i]), seed, settings().freshIntegers);
    inputs = inputs * 31 + hashOf(data, a->bytes);
    outputs.push_back({a, "argument " + std::to_string(i) + " (" + types[i] + ")", types[i]});
  }
  if (changed) {
    Launch again;
    again.kernel = l.kernel;
    again.module = l.module;
    again.grid = l.grid;
    again.block = l.block;
    again.dynamicShared = l.dynamicShared;
    again.args = l.args;
    again.orderSeed = l.orderSeed;
    std::string error;
    if (runLaunch(again, workers, error))
      for (const Output &o : outputs)
        logFreshResult(*o.buffer, l.kernel->symbol, o.name, o.type, inputs);
  }
  for (size_t i = 0; i < buffers.size(); ++i)
    memcpy(reinterpret_cast<void *>(buffers[i]->address), saved[i].data(), saved[i].size());
}
