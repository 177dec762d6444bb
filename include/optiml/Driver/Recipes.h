//===- Recipes.h - sources as recipes rewrite them --------------*- C++ -*-===//
#ifndef OPTIML_DRIVER_RECIPES_H
#define OPTIML_DRIVER_RECIPES_H

#include "optiml/Frontend/CompileOptions.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace optiml {

/// The CUDA sources of the command line that the file of recipes in $OPTIML_RECIPES rewrites, by path: what
/// optiml-clang would compile in their place. `warn` is told what no longer applies. Empty without that variable.
llvm::Expected<std::map<std::string, std::string>> textsByRecipes(const CompileOptions &options,
                                                                  const Toolchain &toolchain,
                                                                  llvm::function_ref<void(const std::string &)> warn);

} // namespace optiml

#endif
