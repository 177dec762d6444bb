//===- AtomicFunction.h - loops around atomicCAS ----------------*- C++ -*-===//
//
// CUDA has no atomicMin for floats, and had no atomicAdd for doubles: programs have functions of their own, which try
// atomicCAS until nothing came between.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_ANALYSIS_ATOMICFUNCTION_H
#define OPTIML_ANALYSIS_ATOMICFUNCTION_H

#include <string>

namespace clang {
class FunctionDecl;
}

namespace optiml {

/// The fold that `f(T *place, T value)` applies to what `place` points to, in one step for all other threads: "+",
/// "min" or "max"; empty where `f` does anything else, or it is not understood. Every path is run on symbols, with up
/// to two other threads that come between.
///
/// Of what is no number: a value that is NaN may be left out, or stay until another value comes.
std::string atomicFold(const clang::FunctionDecl *f);

} // namespace optiml

#endif
