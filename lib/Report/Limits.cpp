//===- Limits.cpp - bottlenecks in words ----------------------------------===//
#include "optiml/Report/Limits.h"
#include "llvm/ADT/StringSwitch.h"

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
