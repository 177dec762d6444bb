//===- Settings.cpp - the environment's settings, read once ---------------===//
#include "Settings.h"
#include "optiml/Emulator/RuntimeSettings.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <unistd.h>

using namespace optiml;
using namespace optiml::emu;

/// A whole decimal number with an optional K, M or G; a bad one is reported once and ignored.
static uint64_t number(const char *name, uint64_t fallback) {
  const char *text = getenv(name);
  if (!text || !*text)
    return fallback;
  char *end = nullptr;
  uint64_t value = strtoull(text, &end, 10);
  const char suffixes[] = "KMG";
  if (const char *suffix = *end && !end[1] ? strchr(suffixes, *end) : nullptr)
    return value << (10 * (suffix - suffixes + 1));
  if (*end || *text == '-') {
    fprintf(stderr, "optiml: warning: %s=%s is not a number; ignored\n", name, text);
    return fallback;
  }
  return value;
}

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
    uint64_t workers = number(envWorkers, cores());
    s->workers = workers < 1 ? 1 : workers > 256 ? 256 : unsigned(workers);
    s->orderSeed = number(envOrderSeed, 0);
    s->stopAtRaces = strcmp(text(envRaces), "report") != 0;
    s->memoryBytes = number(envMemory, 0);
    s->faultFile = text(envFaultFile);
    s->copyLog = text(envCopyLog);
    s->freshSeed = number(envFresh, 0);
    std::string integers = text(envFreshIntegers);
    s->freshIntegers = integers == "keep"      ? FreshIntegers::Keep
                       : integers == "shuffle" ? FreshIntegers::Shuffle
                                               : FreshIntegers::Random;
    s->freshHost = text(envFreshHost);
    s->captureDir = text(envCapture);
    s->capturePerClass = unsigned(number(envCapturePerClass, 2));
    s->captureMaxBytes = number(envCaptureMaxBytes, uint64_t(1) << 30);
    s->captureMaxLaunches = unsigned(number(envCaptureMaxLaunches, 256));
    return s;
  }();
  return *s;
}
