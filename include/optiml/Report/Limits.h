//===- Limits.h - bottlenecks in words --------------------------*- C++ -*-===//
#ifndef OPTIML_REPORT_LIMITS_H
#define OPTIML_REPORT_LIMITS_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace optiml {

/// "global memory (DRAM) bandwidth" for Measurement::bottleneck "dram".
std::string limitName(llvm::StringRef bottleneck);

} // namespace optiml

#endif
