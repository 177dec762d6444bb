//===- Coverage.cpp - which code ran ----------------------------------------===//
//
// The file that a program writes at its end has lines of words with tabs between them. For each kernel of its modules:
//   kernel SYMBOL RAN(0|1) KernelDesc::hash KernelDesc::testsNaN KernelDesc::dataDecides
//   function CodeDesc::functionHash, or KernelDesc::hash
// for each of its pointers:
//   pointee PointerDesc::pointee
// and for the module:
//   ran NUMBER:PLACE,...
// with the code that ran; for each piece of code of a kernel that ran, but which itself did not:
//   missed NUMBER KERNEL FUNCTION FILE LINE CONSTANTS functionHash place
// a hash of all launches, in their order:
//   launches HASH
// for the integers that main() is written with:
//   constants VALUE,...
// and for each condition, each kernel's "gridDim > 1" and "gridDim > 65535" by axis, and each function of the host:
//   condition NUMBER HOST(0|1) FUNCTION FILE LINE FLOAT(0|1) functionHash place, then for false and for true: least
//   leads nearness left right
// and for each block of the host that works with the GPU:
//   site place FUNCTION FILE LINE functionHash RAN(0|1) work
//
//===----------------------------------------------------------------------===//
#include "Coverage.h"
#include "Api.h"
#include "Scheduler.h"
#include "Settings.h"
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <span>

using namespace optiml::emu;

std::vector<MissedCode> optiml::emu::missedCode(const ModuleDesc &module, const std::set<std::string> &kernels) {
  std::vector<MissedCode> missed;
  for (uint32_t i = 0; i < module.numCode; ++i) {
    const CodeDesc &c = module.code[i];
    if (module.reachable[i] && !module.covered[i] && (!*c.kernel || kernels.count(c.kernel)))
      missed.push_back({i, c.kernel, c.function, c.file, c.line, c.constants, c.functionHash, c.place});
  }
  return missed;
}

namespace {
struct Conditions {
  const ConditionDesc *descs;
  const ConditionRecord *records;
  uint32_t number;
  const char *constants; ///< of the host's code; null: of device code
};
/// A kernel that has only run with one block may be wrong for two, and no kernel runs with more blocks than the device
/// takes (CUDA Programming Guide, "Technical Specifications per Compute Capability").
enum GridCondition : unsigned { ManyOnX, ManyOnY, ManyOnZ, TooManyOnY, TooManyOnZ };
struct Runs {
  std::mutex mutex;
  std::map<const ModuleDesc *, std::set<std::string>> kernels; ///< that ran
  uint64_t launches = 0xcbf29ce484222325;                      ///< hash of how, one after the other
  std::vector<Conditions> conditions;
  std::map<std::pair<const KernelDesc *, GridCondition>, ConditionRecord> grids;
};
Runs &runs() {
  static Runs *runs = new Runs; // for ever
  return *runs;
}

/// "\tleast leads nearness left right"
void writeSide(FILE *file, unsigned least, unsigned leads, const ConditionRecord &r, int outcome) {
  fprintf(file, "\t%u\t%u\t%llu\t%lld\t%lld", least, leads, (unsigned long long)r.nearness[outcome],
          (long long)r.left[outcome], (long long)r.right[outcome]);
}

/// They have no file. In place of a line, the last ones have their axis.
void writeGrids(FILE *file) {
  for (const auto &[key, record] : runs().grids) {
    auto [kernel, condition] = key;
    const uint64_t place = kernel->hash * 8 + condition;
    fprintf(file, "condition\t%u\t1\t%s\t\t%u\t0\t%llu\t%llu",
            unsigned(kernel->hash >> 37) * 8 + condition + (1u << 30), kernel->name,
            condition < TooManyOnY ? 0u : condition - ManyOnZ, (unsigned long long)kernel->hash,
            (unsigned long long)place);
    writeSide(file, 0, 0, record, 0);
    writeSide(file, 1, 0, record, 1);
    fprintf(file, "\n");
  }
}

void writeConditions(FILE *file) {
  unsigned number = 0;
  for (const Conditions &c : runs().conditions) {
    if (c.constants)
      fprintf(file, "constants\t%s\n", c.constants);
    for (uint32_t i = 0; i < c.number; ++i, ++number) {
      const ConditionDesc &d = c.descs[i];
      const ConditionRecord &r = c.records[i];
      if (!r.nearness[0] && !r.nearness[1] && !c.constants)
        continue;
      if (d.work) {
        fprintf(file, "site\t%llu\t%s\t%s\t%u\t%llu\t%d\t%s\n", (unsigned long long)d.place, d.function, d.file, d.line,
                (unsigned long long)d.functionHash, r.nearness[1] != 0, d.work);
        continue;
      }
      fprintf(file, "condition\t%u\t%d\t%s\t%s\t%u\t%u\t%llu\t%llu", number, c.constants != nullptr, d.function, d.file,
              d.line, d.isFloat, (unsigned long long)d.functionHash, (unsigned long long)d.place);
      for (int outcome : {0, 1})
        writeSide(file, d.least[outcome], d.leads[outcome], r, outcome);
      fprintf(file, "\n");
    }
  }
}

void writeCoverage() {
  FILE *file = fopen(settings().coverageFile.c_str(), "w");
  if (!file)
    return;
  std::lock_guard lock(runs().mutex);
  for (const auto &[module, kernels] : runs().kernels) {
    for (uint32_t i = 0; i < module->numKernels; ++i) {
      const KernelDesc &k = module->kernels[i];
      fprintf(file, "kernel\t%s\t%d\t%llu\t%u\t%u\n", k.symbol, int(kernels.count(k.symbol)),
              (unsigned long long)k.hash, k.testsNaN, k.dataDecides);
      fprintf(file, "function\t%llu\n", (unsigned long long)k.hash);
      for (const PointerDesc &p : std::span(k.pointers, k.numPointers))
        fprintf(file, "pointee\t%s\n", p.pointee);
    }
    for (const MissedCode &m : missedCode(*module, kernels))
      fprintf(file, "missed\t%u\t%s\t%s\t%s\t%u\t%s\t%llu\t%llu\n", m.code, m.kernel.c_str(), m.function.c_str(),
              m.file.c_str(), m.line, m.constants.c_str(), (unsigned long long)m.functionHash,
              (unsigned long long)m.place);
    fprintf(file, "ran\t");
    for (uint32_t i = 0; i < module->numCode; ++i)
      if (module->covered[i])
        fprintf(file, "%u:%llu,", i, (unsigned long long)module->code[i].place);
    fprintf(file, "\n");
    std::set<uint64_t> functions;
    for (uint32_t i = 0; i < module->numCode; ++i)
      if (functions.insert(module->code[i].functionHash).second)
        fprintf(file, "function\t%llu\n", (unsigned long long)module->code[i].functionHash);
  }
  fprintf(file, "launches\t%llu\n", (unsigned long long)runs().launches);
  writeConditions(file);
  writeGrids(file);
  fclose(file);
}

void note(ConditionRecord &r, uint64_t distance, int64_t left, int64_t right, uint32_t outcome) {
  const uint64_t nearness = distance == ~0ull ? 1 : ~distance;
  if (nearness <= r.nearness[outcome])
    return;
  r.nearness[outcome] = nearness;
  r.left[outcome] = left;
  r.right[outcome] = right;
}
} // namespace

void optiml::emu::writeCoverageAtExit() {
  if (settings().coverageFile.empty())
    return;
  static std::once_flag once;
  std::call_once(once, [] { atexit(writeCoverage); });
}

void optiml::emu::noteGrid(const ModuleDesc &module, const KernelDesc &kernel, const std::array<uint32_t, 3> &grid) {
  if (settings().coverageFile.empty() || !(module.mode & ModeConditions))
    return;
  writeCoverageAtExit();
  std::lock_guard lock(runs().mutex);
  auto add = [&](GridCondition condition, uint32_t blocks, uint32_t bound) {
    note(runs().grids[{&kernel, condition}], blocks > bound ? blocks - bound : bound - blocks, blocks, bound,
         blocks > bound);
  };
  for (unsigned axis = 0; axis < 3; ++axis)
    add(GridCondition(ManyOnX + axis), grid[axis], 1);
  for (unsigned axis : {1, 2})
    if (grid[axis] > 1)
      add(GridCondition(ManyOnZ + axis), grid[axis], Device::maxBlocksOnYZ);
}

void optiml::emu::noteRun(const Launch &launch) {
  if (settings().coverageFile.empty() || !launch.module->numCode)
    return;
  writeCoverageAtExit();
  std::lock_guard lock(runs().mutex);
  runs().kernels[launch.module].insert(launch.kernel->symbol);
  auto add = [](const void *bytes, size_t size) { // FNV-1a
    for (size_t i = 0; i < size; ++i)
      runs().launches = (runs().launches ^ static_cast<const unsigned char *>(bytes)[i]) * 0x100000001b3;
  };
  add(launch.kernel->symbol, strlen(launch.kernel->symbol));
  add(launch.grid.data(), sizeof launch.grid);
  add(launch.block.data(), sizeof launch.block);
  add(&launch.dynamicShared, sizeof launch.dynamicShared);
  for (uint32_t i = 0; i < launch.kernel->numParams; ++i)
    add(launch.args[i], launch.kernel->params[i].size);
}

extern "C" {

void optiml_register_conditions(const ConditionDesc *descs, ConditionRecord *records, uint32_t number,
                                const char *constants) {
  writeCoverageAtExit();
  runs().conditions.push_back({descs, records, number, constants});
}

// Blocks run on several threads: the nearest operands may then be those of either.
void optiml_condition(ConditionRecord *record, int64_t left, int64_t right, uint32_t outcome) {
  uint64_t distance = left > right ? uint64_t(left) - uint64_t(right) : uint64_t(right) - uint64_t(left);
  note(*record, distance, left, right, outcome);
}

void optiml_condition_float(ConditionRecord *record, double left, double right, uint32_t outcome) {
  double distance = std::fabs(left - right);
  note(*record, std::isnan(distance) ? ~0ull : std::bit_cast<uint64_t>(distance), std::bit_cast<int64_t>(left),
       std::bit_cast<int64_t>(right), outcome);
}
}
