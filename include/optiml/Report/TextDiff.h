//===- TextDiff.h - what differs between two texts --------------*- C++ -*-===//
#ifndef OPTIML_REPORT_TEXTDIFF_H
#define OPTIML_REPORT_TEXTDIFF_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace optiml {

/// A unified diff, by the program `diff` of POSIX, with `context` lines around what differs; empty where nothing does.
/// The names stand in its head, as git writes them: "a/file.cu".
llvm::Expected<std::string> unifiedDiff(llvm::StringRef before, llvm::StringRef after, const std::string &nameBefore,
                                        const std::string &nameAfter, unsigned context = 3);

/// A line of two texts side by side; -1: there is none on this side. Lines count from 0.
struct LinePair {
  int before = -1, after = -1;
  bool same = false;
};
llvm::Expected<std::vector<LinePair>> sideBySide(llvm::StringRef before, llvm::StringRef after);

} // namespace optiml

#endif
