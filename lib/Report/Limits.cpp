//===- Limits.cpp - bottlenecks and times ----------------------------------===//
#include "optiml/Report/Limits.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

std::string optiml::limitName(llvm::StringRef bottleneck) {
  return llvm::StringSwitch<std::string>(bottleneck)
      .Case("dram", "global memory (DRAM) bandwidth")
      .Case("l2", "L2 cache bandwidth")
      .Case("l1", "L1 cache and shared memory")
      .Case("issue", "the number of instructions")
      .Case("latency", "waiting: too few warps to hide latencies")
      .Case("fp32", "single-precision arithmetic")
      .Case("fp64", "double-precision arithmetic")
      .Case("int32", "integer arithmetic")
      .Case("special", "special functions (exp, sin, division, …)")
      .Case("tensor", "tensor cores")
      .Case("atomic", "atomic operations")
      .Case("launch", "the time that a launch takes")
      .Default(bottleneck.empty() ? "not known" : bottleneck.str());
}

std::string optiml::timeText(double seconds) {
  if (seconds >= 1)
    return llvm::formatv("{0:f2} s", seconds);
  if (seconds >= 1e-3)
    return llvm::formatv("{0:f2} ms", seconds * 1e3);
  return llvm::formatv("{0:f1} us", seconds * 1e6);
}
