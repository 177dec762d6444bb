//===- Numbers.h - numbers as people write them -----------------*- C++ -*-===//
#ifndef OPTIML_SUPPORT_NUMBERS_H
#define OPTIML_SUPPORT_NUMBERS_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace optiml {

/// Reads a number at the start of `text` and drops it: 4096, 1,000,000, 1e6, 2.5, -3, 64k, 1M, 4Ki, 2^20, 2**20, 1<<20,
/// 1 million. k, M and G are powers of 1024 where the number before them is a power of two, else of 1000. Nothing where
/// a letter follows that makes it no number (3d).
std::optional<double> takeNumber(llvm::StringRef &text);

/// The whole text is one number.
std::optional<double> parseNumber(llvm::StringRef text);

/// The shortest decimal form that reads back as `value`. Whole numbers have no exponent.
std::string shortestNumber(double value);

} // namespace optiml

#endif
