//===- Limits.h - bottlenecks and times --------------------------*- C++ -*-===//
#ifndef OPTIML_REPORT_LIMITS_H
#define OPTIML_REPORT_LIMITS_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace optiml {

/// "global memory (DRAM) bandwidth" for Measurement::bottleneck "dram".
std::string limitName(llvm::StringRef bottleneck);

/// "1.20 s", "3.41 ms", "17.0 us".
std::string timeText(double seconds);

} // namespace optiml

#endif
