//===- main.cpp - the search program behind optiml-clang ------------------===//
#include "optiml/Driver/Programs.h"
#include <malloc.h>

int main(int argc, char **argv) {
  // Clang is run hundreds of times: keep the memory of one run for the next instead of faulting it in again.
  mallopt(M_MMAP_THRESHOLD, 256 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  return optiml::searchProgram(argc, argv);
}
