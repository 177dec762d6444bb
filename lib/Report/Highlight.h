//===- Highlight.h - CUDA in colours ----------------------------*- C++ -*-===//
#ifndef OPTIML_LIB_REPORT_HIGHLIGHT_H
#define OPTIML_LIB_REPORT_HIGHLIGHT_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace optiml::report {

/// The lines of a CUDA source as HTML, told apart by Clang's lexer. Any text will do.
std::vector<std::string> highlighted(llvm::StringRef source);

} // namespace optiml::report

#endif
