//===- Remarks.h - a search as a compiler's remarks -------------*- C++ -*-===//
#ifndef OPTIML_REPORT_REMARKS_H
#define OPTIML_REPORT_REMARKS_H

#include "optiml/Report/SearchLog.h"
#include <string>
#include <vector>

namespace optiml {

/// What was done to a kernel, what could not be done where one would expect it, and what was learnt.
struct OptimizationRemark {
  enum Kind { Passed, Missed, Analysis };
  Kind kind = Passed;
  std::string name;   ///< the transform; or "Gain", "Bottleneck", "Condition"
  std::string kernel; ///< mangled where it is known
  std::string file;
  unsigned line = 1;
  std::string message;
};

std::vector<OptimizationRemark> remarksOf(const SearchLog &log);

/// As clang prints them: "file.cu:17:1: remark: MESSAGE [-Rpass=optiml]".
std::string printed(const OptimizationRemark &remark);

/// LLVM's record of remarks, "yaml" or "bitstream", for llvm-remarkutil and opt-viewer.py.
llvm::Expected<std::string> remarkRecord(const std::vector<OptimizationRemark> &remarks, const std::string &format);

/// Its remarks as SARIF 2.1.0, for code hosts and editors.
std::string sarifOf(const SearchLog &log);

/// The new source as a set of replacements in the old one, for clang-apply-replacements.
llvm::Expected<std::string> fixItsOf(const std::string &path, const std::string &before, const std::string &after);

} // namespace optiml

#endif
