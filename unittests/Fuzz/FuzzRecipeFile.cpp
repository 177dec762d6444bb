//===- FuzzRecipeFile.cpp - files of recipes ----------------------------------===//
#include "RecipeFile.h"
#include <cstdint>

using namespace optiml;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  auto file = RecipeFile::parse("optiml.recipes", text);
  if (!file)
    llvm::consumeError(file.takeError());
  return 0;
}
