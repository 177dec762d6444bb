//===- Sizes.h - odd sizes, and what is launched ------------------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_SIZES_H
#define OPTIML_LIB_EVALUATE_VERIFY_SIZES_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace optiml {

/// Command lines with odd sizes, different in every place, in place of the integers from 4 up, so that remainders and
/// swapped extents show.
std::vector<std::vector<std::string>> oddSizes(const std::vector<std::string> &arguments);

/// With small sizes in place of all that are not.
std::vector<std::string> smallSizes(std::vector<std::string> arguments);

/// With this one in place of all of them that are 8 or more.
std::vector<std::string> equalSizes(std::vector<std::string> arguments, int64_t size);

/// All integers that are larger are 1, or 0; and then each alone.
std::vector<std::vector<std::string>> cornerSizes(const std::vector<std::string> &arguments);

/// Each integer of at least half of `unit`, and 4, is raised to a multiple of it, and `beside` added.
std::vector<std::string> roundedSizes(std::vector<std::string> arguments, int64_t unit, int64_t beside);

/// Numbers by which a text takes remainders: "n % 4".
std::vector<int64_t> moduliOf(llvm::StringRef text);

/// In what a text may count elements: a warp, and the numbers that stand in it.
std::vector<int64_t> unitsOf(llvm::StringRef text);

/// Whether the text names the kernel of this symbol more often than a definition does.
bool mayBeLaunched(llvm::StringRef text, const std::string &symbol);

} // namespace optiml

#endif
