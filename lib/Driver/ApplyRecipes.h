//===- ApplyRecipes.h - saved recipes, written and applied ------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_APPLYRECIPES_H
#define OPTIML_LIB_DRIVER_APPLYRECIPES_H

#include "Backend.h"
#include "optiml/Frontend/Toolchain.h"

namespace optiml {

/// Adds the recipe of each kernel that the search has rewritten to the file that the flags name. The error names what
/// could not be saved: text of a language model, or what rests on more than a record holds.
llvm::Error saveRecipes(const SearchTask &task, const Program &device, const Backend &backend,
                        const SearchResult &result, const std::map<std::string, uint64_t> &leastThreads,
                        const nlohmann::json &summary);

/// optiml-clang without a search: applies what the file of recipes holds for the source, and compiles with nvcc. No GPU
/// is used, nothing is run, and no store is opened. Returns the process's exit code.
int applyRecipes(const OwnFlags &flags, const std::vector<std::string> &arguments, const Toolchain &toolchain);

} // namespace optiml

#endif
