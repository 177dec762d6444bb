//===- ApiUnsupported.cpp - functions that programs often mention ---------===//
//
// Graphs, textures and arrays link, but say that they are not supported. What is not here at all fails at link, with
// its name.
//
//===----------------------------------------------------------------------===//
#include "Api.h"

using namespace optiml::emu;

#define UNSUPPORTED(function, ...)                                                                                     \
  cudaError_t function(__VA_ARGS__) { return unsupported(#function); }

extern "C" {

#include "Unsupported.def"

#define PER_THREAD_UNSUPPORTED(function, suffix) OPTIML_PER_THREAD(function, suffix);
#include "PerThread.def"
}
