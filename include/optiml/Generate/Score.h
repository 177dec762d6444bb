//===- Score.h - how fast a program is predicted to be ----------*- C++ -*-===//
#ifndef OPTIML_GENERATE_SCORE_H
#define OPTIML_GENERATE_SCORE_H

#include "optiml/Frontend/Toolchain.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace optiml::gen {

/// Seconds that the kernels of a program take with these arguments, by the performance model
/// (Evaluate/PerformanceModel.h): the sum over its launches. The program passed the gate; it runs in the sandbox, at
/// most `seconds` long.
llvm::Expected<double> predictProgram(const std::string &text, const std::vector<std::string> &arguments,
                                      double seconds, const Toolchain &toolchain);

} // namespace optiml::gen

#endif
