//===- Coverage.cpp - which code ran ----------------------------------------===//
//
// The file that a program writes at its end has a line for each kernel of its modules:
//   kernel TAB symbol TAB 1 (it ran) or 0 TAB KernelDesc::hash
// and for each piece of code of a kernel that ran, but which itself did not:
//   function TAB CodeDesc::functionHash
//   missed TAB number TAB kernel TAB function TAB file TAB line TAB constants TAB
//     functionHash
//
//===----------------------------------------------------------------------===//
#include "Coverage.h"
#include "Settings.h"
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

using namespace optiml::emu;

std::vector<MissedCode> optiml::emu::missedCode(const ModuleDesc &module, const std::set<std::string> &kernels) {
  std::vector<MissedCode> missed;
  for (uint32_t i = 0; i < module.numCode; ++i) {
    const CodeDesc &c = module.code[i];
    if (module.reachable[i] && !module.covered[i] && (!*c.kernel || kernels.count(c.kernel)))
      missed.push_back({i, c.kernel, c.function, c.file, c.line, c.constants, c.functionHash});
  }
  return missed;
}

namespace {
struct Runs {
  std::mutex mutex;
  std::map<const ModuleDesc *, std::set<std::string>> kernels; ///< that ran
};
Runs &runs() {
  static Runs *runs = new Runs; // for ever
  return *runs;
}
} // namespace

static void writeCoverage() {
  FILE *file = fopen(settings().coverageFile.c_str(), "w");
  if (!file)
    return;
  std::lock_guard lock(runs().mutex);
  for (const auto &[module, kernels] : runs().kernels) {
    for (uint32_t i = 0; i < module->numKernels; ++i) {
      const KernelDesc &k = module->kernels[i];
      fprintf(file, "kernel\t%s\t%d\t%llu\n", k.symbol, int(kernels.count(k.symbol)), (unsigned long long)k.hash);
    }
    for (const MissedCode &m : missedCode(*module, kernels))
      fprintf(file, "missed\t%u\t%s\t%s\t%s\t%u\t%s\t%llu\n", m.code, m.kernel.c_str(), m.function.c_str(),
              m.file.c_str(), m.line, m.constants.c_str(), (unsigned long long)m.functionHash);
    std::set<uint64_t> functions;
    for (uint32_t i = 0; i < module->numCode; ++i)
      if (functions.insert(module->code[i].functionHash).second)
        fprintf(file, "function\t%llu\n", (unsigned long long)module->code[i].functionHash);
  }
  fclose(file);
}

void optiml::emu::noteRun(const ModuleDesc &module, const KernelDesc &kernel) {
  if (settings().coverageFile.empty() || !module.numCode)
    return;
  static std::once_flag once;
  std::call_once(once, [] { atexit(writeCoverage); });
  std::lock_guard lock(runs().mutex);
  runs().kernels[&module].insert(kernel.symbol);
}
