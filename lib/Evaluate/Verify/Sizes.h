//===- Sizes.h - arguments that lead to code ---------------------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_SIZES_H
#define OPTIML_LIB_EVALUATE_VERIFY_SIZES_H

#include "optiml/Workload/Replay.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace optiml {

/// Command lines with odd sizes, different in every place, in place of the integers from 4 up, so that remainders and
/// swapped extents show.
std::vector<std::vector<std::string>> oddSizes(const std::vector<std::string> &arguments);

/// Command lines that differ from `arguments` in its integers and may lead to code that has not run, the likeliest
/// first. What is tried are the integers of the conditions on the way there and of the host's code in `text`: at the
/// boundary and on both sides of it, multiples, and the least number beyond one that is a multiple of another.
std::vector<std::vector<std::string>> argumentsThatMayReach(llvm::ArrayRef<emu::MissedCode> missed,
                                                            llvm::StringRef text,
                                                            const std::vector<std::string> &arguments);

/// Whether the text names the kernel of this symbol more often than a definition does.
bool mayBeLaunched(llvm::StringRef text, const std::string &symbol);

} // namespace optiml

#endif
