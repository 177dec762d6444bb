//===- Fault.cpp - what went wrong in a kernel, in the user's terms -------===//
#include "Fault.h"
#include "AroundLaunch.h"
#include "Scheduler.h"
#include "Settings.h"
#include "optiml/Workload/RuntimeSettings.h"
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace optiml::emu;

FaultCollector *optiml::emu::faultCollector = nullptr;
void (*optiml::emu::replayCrashed)(const Fault &) = nullptr;

std::string optiml::emu::triple(const uint32_t v[3]) {
  return "(" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " + std::to_string(v[2]) + ")";
}

std::string Fault::oneLine() const {
  std::string s;
  if (!file.empty())
    s += file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": ";
  s += headline;
  if (!kernelName.empty())
    s += " in kernel " + kernelName;
  if (hasThread)
    s += ", thread " + triple(thread) + " of block " + triple(block);
  if (!detail.empty())
    s += ": " + detail;
  for (char &c : s)
    if (c == '\n')
      c = ' ';
  return s;
}

std::string Fault::paragraph() const {
  std::string s = "optiml: error: " + headline + "\n";
  s += "  kernel: " + kernelName + "\n";
  if (!file.empty()) {
    s += "  source: " + file + ":" + std::to_string(line) + ":" + std::to_string(column);
    if (!function.empty())
      s += " in " + function;
    s += "\n";
  }
  if (hasThread)
    s += "  thread: " + triple(thread) + " of block " + triple(block) + "\n";
  if (!detail.empty())
    s += "  detail: " + detail + "\n";
  return s;
}

Fault optiml::emu::faultAt(const Fiber &fiber, const char *kind, uint32_t site) {
  const Launch &launch = *fiber.block->launch;
  Fault f;
  f.kind = kind;
  f.kernel = launch.kernel->symbol;
  f.kernelName = launch.kernel->name;
  if (site < launch.module->numSites) {
    const SiteDesc &s = launch.module->sites[site];
    f.function = s.function ? s.function : "";
    f.file = s.file ? s.file : "";
    f.line = s.line;
    f.column = s.column;
  }
  for (int i = 0; i < 3; ++i) {
    f.thread[i] = fiber.context.tid[i];
    f.block[i] = fiber.context.ctaid[i];
  }
  return f;
}

void FaultCollector::add(const Fault &fault) {
  constexpr size_t most = 64;
  std::lock_guard lock(mutex);
  // One of each kind and place: a race is met by thousands of threads.
  std::string key = fault.kind + '\0' + fault.kernel + '\0' + fault.file + '\0' + std::to_string(fault.line) + '\0' +
                    std::to_string(fault.column);
  if (faults.size() < most && seen.insert(key).second)
    faults.push_back(fault);
}

static void writeToFile(const Fault &fault) {
  if (settings().faultFile.empty())
    return;
  nlohmann::json j{{"kind", fault.kind},
                   {"message", fault.oneLine()},
                   {"file", fault.file},
                   {"line", fault.line},
                   {"kernel", fault.kernel}};
  std::ofstream(settings().faultFile, std::ios::app)
      << j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

void optiml::emu::stopProgram(const Fault &fault) {
  static std::mutex once; // never released: the first fault wins
  once.lock();
  fflush(nullptr);
  std::string text = fault.paragraph();
  fputs(text.c_str(), stderr);
  writeToFile(fault);
  finishCapture();
  finishCopyLog();
  fflush(nullptr);
  _exit(faultExitCode);
}

void optiml::emu::raise(Fiber &fiber, const Fault &fault) {
  if (!faultCollector)
    stopProgram(fault);
  faultCollector->add(fault);
  abandonLaunch(fiber);
}

void optiml::emu::note(Fiber &fiber, const Fault &fault) {
  if (faultCollector) {
    faultCollector->add(fault);
    return;
  }
  if (settings().stopAtRaces && fault.kind != "benign-race")
    stopProgram(fault);
  static std::mutex mutex;
  static auto *seen = new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (seen->insert(fault.kind + fault.kernel + fault.file + std::to_string(fault.line)).second) {
    fputs(fault.paragraph().c_str(), stderr);
    writeToFile(fault);
  }
}

void optiml::emu::noteDeviceState(const char *what) {
  if (settings().stopAtRaces)
    return;
  Fault fault;
  fault.kind = "device-state";
  fault.headline = std::string("the program changes a state of the device that outlives its work: ") + what;
  writeToFile(fault);
}
