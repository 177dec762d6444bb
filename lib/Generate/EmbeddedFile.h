//===- EmbeddedFile.h - the operation library inside the program -*- C++ -*-===//
#ifndef OPTIML_LIB_GENERATE_EMBEDDEDFILE_H
#define OPTIML_LIB_GENERATE_EMBEDDEDFILE_H

namespace optiml::gen {

struct EmbeddedFile {
  const char *name, *text;
};
/// Ends with a null name.
extern const EmbeddedFile embeddedOperationFiles[];

} // namespace optiml::gen

#endif
