//===- EmbeddedFile.h - texts that are part of the program ------*- C++ -*-===//
#ifndef OPTIML_SUPPORT_EMBEDDEDFILE_H
#define OPTIML_SUPPORT_EMBEDDEDFILE_H

namespace optiml {

/// A text file that cmake/EmbedTexts.cmake puts into the program. Tables of them end with a null name.
struct EmbeddedFile {
  const char *name, *text;
};

/// The text of the file with this name. The program ends where there is none: that is a bug.
const char *embeddedText(const EmbeddedFile *table, const char *name);

} // namespace optiml

#endif
