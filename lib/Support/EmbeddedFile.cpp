//===- EmbeddedFile.cpp - texts that are part of the program --------------===//
#include "optiml/Support/EmbeddedFile.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstring>

const char *optiml::embeddedText(const EmbeddedFile *table, const char *name) {
  for (; table->name; ++table)
    if (std::strcmp(table->name, name) == 0)
      return table->text;
  llvm::report_fatal_error(llvm::Twine("no embedded file '") + name + "'");
}
