//===- main.cpp - the search program behind optiml-clang ------------------===//
#include "optiml/Driver/SearchProgram.h"

int main(int argc, char **argv) { return optiml::searchProgram(argc, argv); }
