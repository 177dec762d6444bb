//===- Settings.cpp - the environment's settings, read once ---------------===//
#include "Settings.h"
#include "optiml/Workload/RuntimeSettings.h"
#include <cfenv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <unistd.h>

using namespace optiml;
using namespace optiml::emu;

static unsigned cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
    return unsigned(CPU_COUNT(&set));
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? unsigned(n) : 1;
}

static const char *text(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

Settings &optiml::emu::settings() {
  static Settings *s = [] {
    auto *s = new Settings;
    uint64_t workers = environmentNumber(envWorkers, cores());
    s->workers = workers < 1 ? 1 : workers > 256 ? 256 : unsigned(workers);
    s->orderSeed = environmentNumber(envOrderSeed, 0);
    s->stopAtRaces = strcmp(text(envRaces), "report") != 0;
    s->late = *text(envLate);
    s->memoryBytes = environmentNumber(envMemory, 0);
    s->faultFile = text(envFaultFile);
    s->copyLog = text(envCopyLog);
    s->coverageFile = text(envCoverage);
    s->otherFill = *text(envOtherFill);
    s->otherMemory = *text(envOtherMemory);
    if (*text(envRounding))
      s->rounding = strcmp(text(envRounding), "up") == 0 ? FE_UPWARD : FE_DOWNWARD;
    s->touchedFile = text(envTouched);
    s->notesTouched = !s->touchedFile.empty();
    s->freshSeed = environmentNumber(envFresh, 0);
    s->freshIntegers = freshIntegersNamed(text(envFreshIntegers)).value_or(FreshIntegers::Random);
    s->freshHost = floatRangeNamed(text(envFreshHost));
    std::ifstream types(text(envFreshTypes));
    for (std::string hash, type; types >> hash && std::getline(types >> std::ws, type);)
      s->freshTypes[strtoull(hash.c_str(), nullptr, 16)] = type;
    if (*text(envFreshKernels))
      s->freshKernels = "," + std::string(text(envFreshKernels)) + ",";
    s->shift = strtoull(text(envShift), nullptr, 10);
    if (const char *only = strchr(text(envShift), '@'))
      s->shifted = strtoull(only + 1, nullptr, 10);
    s->skipKernel = text(envSkipKernel);
    s->alterCopy = environmentNumber(envAlterCopy, ~0ull);
    s->alterToNaN = *text(envAlterToNaN);
    s->captureDir = pathOfProcess(text(envCapture));
    s->captureLimits = environmentLimits(s->captureLimits);
    return s;
  }();
  return *s;
}
