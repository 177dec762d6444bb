//===- Settings.h - the environment's settings, read once -------*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_SETTINGS_H
#define OPTIML_LIB_EMULATOR_RUNTIME_SETTINGS_H

#include "optiml/Workload/Recorder.h"
#include "optiml/Workload/Signature.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace optiml::emu {

/// See include/optiml/Workload/RuntimeSettings.h for the variables.
struct Settings {
  unsigned workers = 1;
  uint64_t orderSeed = 0;
  bool stopAtRaces = true;
  bool late = false;        ///< work on streams
  uint64_t memoryBytes = 0; ///< 0: half of the host's
  std::string faultFile;
  std::string copyLog;
  std::string coverageFile;
  std::string touchedFile;
  bool notesTouched = false; ///< Allocation::touched is kept
  bool otherFill = false, otherMemory = false;
  std::optional<int> rounding; ///< FE_UPWARD, FE_DOWNWARD
  uint64_t freshSeed = 0;
  FreshIntegers freshIntegers = FreshIntegers::Random;
  std::optional<FloatRange> freshHost;
  std::map<uint64_t, std::string> freshTypes; ///< types of pointers, by the hash of a buffer's contents
  std::string freshKernels;                   ///< with a comma on either side of each; empty: all
  uint64_t shift = 0;                         ///< bytes
  uint64_t shifted = 0;                       ///< the only allocation that is, from 1; 0: all are
  std::string skipKernel;                     ///< empty: none
  uint64_t alterCopy = ~0ull;                 ///< byte among those copied to the host; all ones: none
  bool alterToNaN = false;
  std::string captureDir;
  CaptureLimits captureLimits;
};
/// Mutable: a replay sets what its job says before anything runs.
Settings &settings();

} // namespace optiml::emu

#endif
