//===- EmbeddedFile.h - texts that are part of the program ------*- C++ -*-===//
#ifndef OPTIML_LIB_GENERATE_EMBEDDEDFILE_H
#define OPTIML_LIB_GENERATE_EMBEDDEDFILE_H

#include "optiml/Support/EmbeddedFile.h"
#include <string>

namespace optiml::gen {

/// The files of the folders operations, host and prompts.
extern const EmbeddedFile embeddedFiles[];

/// The text of a file of host or prompts. The program ends where there is none: that is a bug.
std::string resource(const char *name);

} // namespace optiml::gen

#endif
