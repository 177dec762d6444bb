//===- DeducingLauncher.h - launches that deduce template arguments *- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_DEDUCINGLAUNCHER_H
#define OPTIML_LIB_DRIVER_DEDUCINGLAUNCHER_H

#include <string>

namespace clang {
class FunctionDecl;
}

namespace optiml {

/// A function template that deduces what a launch of `kernel`'s template deduces, and hands its arguments, after grid, block,
/// shared bytes and stream, to `chooser` for that instantiation (Emitter::chooser). It has to stand behind the
/// kernel's definition, in its namespace. Empty when that cannot be written: parameter packs, constraints, parameters without
/// a name, or text that a macro makes.
std::string deducingLauncher(const clang::FunctionDecl &kernel, const std::string &name, const std::string &chooser);

} // namespace optiml

#endif
