//===- NsightCompute.h - hardware counters from ncu -------------*- C++ -*-===//
//
// Nsight Compute's command line as another way to the same counters: where CUPTI cannot be used in process, and to
// check it. Needs neither LLVM nor CUDA.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GPU_NSIGHTCOMPUTE_H
#define OPTIML_GPU_NSIGHTCOMPUTE_H

#include "optiml/Gpu/Counters.h"

namespace optiml::gpu {

struct NcuOptions {
  std::string ncu = "ncu";
  std::vector<std::string> program; ///< with its arguments
  std::vector<std::string> kernels; ///< names without parameters; none: all
  unsigned skip = 0;                ///< launches (of these kernels) before the first that is profiled
  unsigned count = 0;               ///< launches that are profiled; 0: all
  std::string logFile;              ///< where ncu writes instead of its stdout, which it shares with the program
  std::vector<std::string> metrics; ///< full names; none: all of counterMetrics()
};

/// The arguments to run ncu with. Clocks are left as they are, so that times agree with what is measured otherwise. Run
/// it with LC_ALL=C: numbers are printed as the locale has them.
std::vector<std::string> ncuCommand(const NcuOptions &options);

struct NcuKernel {
  std::string name; ///< as ncu writes it: with template arguments and parameters
  RawCounters raw;  ///< in base units: nanoseconds, bytes, counts, percent
};

/// Reads what ncu printed with --csv, one row a kernel (--page raw) or one row a metric (--page details), among lines
/// of other kinds. False, and `why` says what ncu says, when there is no kernel in it.
bool parseNcuCsv(const std::string &text, std::vector<NcuKernel> &kernels, std::string &why);

/// combine() of kernels as ncu read them.
RawCounters combine(const std::vector<NcuKernel> &kernels);

} // namespace optiml::gpu

#endif
