//===- FuzzRecipe.cpp - recipes as people write them --------------------------===//
#include "optiml/Core/Action.h"
#include <cstdint>

using namespace optiml;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  auto recipe = parseRecipe(text);
  if (!recipe) {
    llvm::consumeError(recipe.takeError());
    return 0;
  }
  auto again = parseRecipe(recipeText(*recipe)); // what is printed is read again
  if (!again || *again != *recipe)
    __builtin_trap();
  return 0;
}
