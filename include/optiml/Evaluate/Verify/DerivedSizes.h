//===- DerivedSizes.h - smaller launches from recorded ones -----*- C++ -*-===//
//
// A recording holds the sizes that one run had. Of its launches others are made, with smaller and odd sizes, on which a
// variant can be compared as a program with arguments is at odd ones.
//
// Integers among the arguments become smaller, those that were equal alike. One that was the product of two others, or
// lay beside one (n + 1, n / 2), stays that. The grid follows where it was an integer over the block's extent. Buffers
// keep what they hold, up to the last byte that the original uses at the new sizes. So nothing has to be known of what
// an integer means: the original runs under the checkers first, and a launch on which it shows any fault is no test.
//
// Integers in buffers may name elements: labels, bins, columns. A table that holds all those that the run has seen is
// tested with larger ones, too, in longer buffers.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EVALUATE_VERIFY_DERIVEDSIZES_H
#define OPTIML_EVALUATE_VERIFY_DERIVEDSIZES_H

#include "optiml/Evaluate/Verify/Verifier.h"

namespace optiml {

/// An integer in a kernel's arguments: a parameter, or a member of one.
struct ArgumentInteger {
  unsigned argument = 0;
  uint64_t offset = 0; ///< bytes, in it
  unsigned bytes = 4;  ///< 1, 2, 4 or 8
  bool isSigned = true;
};

/// Its value in a launch.
int64_t valueOf(const LaunchImage &launch, const ArgumentInteger &integer);

/// A kernel whose launches others are made of.
struct SizedKernel {
  std::string recorded; ///< its symbol in the workload
  std::string symbol;   ///< ... and in the text
  std::vector<ArgumentInteger> integers;
  /// Arguments that point to integers which the kernel only reads, and these.
  std::vector<ArgumentInteger> indices;
  /// Runs with other sizes are known: only what such runs hardly show is made, the last kinds of
  /// launchesWithOtherSizes().
  bool addsRare = false;
};

/// Other values for a launch's integers and grid; exposed for tests. Each is smaller in some integer and larger in
/// none. Most keep no size. The last ones have blocks that find nothing to do, and keep the smallest, and the two
/// smallest integers: a kernel may be written for these values (a number of channels, of features).
/// Of each list the first one that the original runs well will do.
std::vector<std::vector<LaunchImage>> launchesWithOtherSizes(const LaunchImage &launch, const SizedKernel &kernel);

/// Launches whose sizes lie just beside odd ones, each larger by one: what a vector or an unrolled loop leaves over has
/// another length in each, and meets other data. Two lists, the second of other sizes: it is for where the original
/// runs none of the first. In a third one, integers that were as large as the block are sizes, too, or one integer
/// alone is less than sizes that are whole pieces, and no longer a product of the others, say.
std::vector<std::vector<LaunchImage>> launchesWithNearSizes(const LaunchImage &launch, const SizedKernel &kernel);

/// The original's modules, in emu::ModeBounds and emu::ModeVerify.
struct CheckedModules {
  std::string bounds, verify;
};

/// A workload in the folder `directory`, which is created, with launches of these kernels that are made of `recorded`.
/// It takes `seconds` at most. No launch: none could be made.
llvm::Expected<Workload> deriveSizes(const Workload &recorded, const std::vector<SizedKernel> &kernels,
                                     const CheckedModules &original, const VerifyOptions &options,
                                     const std::string &directory, double seconds);

/// The same with launchesWithNearSizes().
llvm::Expected<Workload> deriveNearSizes(const Workload &recorded, const SizedKernel &kernel,
                                         const CheckedModules &original, const VerifyOptions &options,
                                         const std::string &directory, double seconds);

} // namespace optiml

#endif
