//===- FuseTrial.h - fusing launches, tried out -----------------*- C++ -*-===//
//
// Before the search: a program in which launches are fused takes the place of the original when it is the same and faster.
// The search then rewrites the fused kernels as it would any other.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_FUSETRIAL_H
#define OPTIML_LIB_DRIVER_FUSETRIAL_H

#include "Backend.h"

namespace optiml {

struct FuseTrial {
  std::string text;                  ///< the program with fused launches; empty: all stay as they are
  std::unique_ptr<Program> device;   ///< ... in the device view
  std::vector<std::string> kernels;  ///< "addBias+relu"
  ProgramTimes times;                ///< of the program without and with them
  std::string verified;              ///< what was compared, for people
  std::vector<std::string> notes;    ///< why launches stay apart
  double gain() const { return text.empty() || times.after <= 0 ? 1 : times.before / times.after; }
};

/// After Backend::observe(). `device` is a view of the original.
FuseTrial tryFusions(const SearchTask &task, Backend &backend, const Program &device);

} // namespace optiml

#endif
