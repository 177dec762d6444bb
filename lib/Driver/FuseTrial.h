//===- FuseTrial.h - fusing launches, tried out -----------------*- C++ -*-===//
//
// Before the search: a program in which launches are fused takes the place of the original when it is the same and faster.
// The search then rewrites the fused kernels as it would any other.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_FUSETRIAL_H
#define OPTIML_LIB_DRIVER_FUSETRIAL_H

#include "Backend.h"
#include <set>

namespace optiml {

struct FuseTrial {
  std::string text;                  ///< the program with fused launches; empty: all stay as they are
  std::unique_ptr<Program> device;   ///< ... in the device view
  std::vector<std::string> kernels;  ///< "addBias+relu"
  std::vector<std::string> names;    ///< of the new kernels
  std::set<unsigned> launches;       ///< of the fused ones, LaunchSite::begin
  ProgramTimes times;                ///< of the program without and with them
  std::string verified;              ///< what was compared, for people
  std::vector<std::string> notes;    ///< why launches stay apart
  double gain() const { return text.empty() || times.after <= 0 ? 1 : times.before / times.after; }
};

struct FuseTrials {
  /// Without a loss of threads, and no slower.
  FuseTrial plain;
  /// The same, and kernels of a thread an element fused into those of a thread a row (fuseOverRows). What comes out has fewer
  /// threads; how fast it can be made is for a search to say, so that its time is no reason against it here.
  FuseTrial overRows;
};

/// After Backend::observe() of the original, of which `device` is a view. Takes at most a share of `budget`, the search's time.
FuseTrials tryFusions(const SearchTask &task, Backend &backend, const Program &device, bool overRows, const Deadline &budget);

} // namespace optiml

#endif
