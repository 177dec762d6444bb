//===- Memory.h - earlier searches guide this one ---------------*- C++ -*-===//
//
// After KernelBlaster and LOOPRAG: the kernels that earlier searches looked at are compared with those of this one
// (features and BM25), and what was learnt on similar ones multiplies another proposer's priors and is played first.
// Nothing similar: nothing changes. A lesson never makes an action legal, and never spares a variant its verification.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_PROPOSE_MEMORY_H
#define OPTIML_PROPOSE_MEMORY_H

#include "optiml/Core/Interfaces.h"
#include "optiml/Propose/Learn.h"
#include "llvm/ADT/StringRef.h"

namespace optiml {

/// What a kernel in another style needs before it is like others, in this order; done wherever it can be done.
inline constexpr llvm::StringLiteral preparations[] = {"expand-powers",      "reciprocal-roots", "thread-per-iteration",
                                                       "loop-to-grid",       "loop-to-grid",     "swap-thread-axes",
                                                       "promote-accumulator"};

/// What was learnt on kernels like those of one program. Immutable; may be used from any thread. The same memories give
/// the same answers, in whatever order they come.
class LearntMemory {
public:
  LearntMemory(std::vector<KernelMemory> memories, KernelIdentities kernels, const MemoryOrigin &here);
  LearntMemory(LearntMemory &&) = default; // matches point into memories: no copies

  /// A remembered kernel that is similar enough to count.
  struct Match {
    const KernelMemory *memory;
    double similarity; ///< 0 to 1, discounted where GPU or backend differ
  };
  /// The most similar first. Unknown kernels have none.
  const std::vector<Match> &similar(const std::string &kernel) const;

  struct Expectation {
    double gain = 0;   ///< log2 of the speed-up to expect, shrunk towards 0 where little is known
    double weight = 0; ///< evaluations it rests on, discounted by similarity
  };
  Expectation expect(const Action &action, const std::string &bottleneck) const;

  /// Whether anything was tried on kernels like this one.
  bool knowsTrials(const std::string &kernel) const;
  /// Of any kind: the most similar first, of those on which anything was tried.
  const std::vector<Match> &mostAlike(const std::string &kernel) const;
  /// A recipe on `kernel`, in general form.
  std::vector<LearntTrial::Step> generalForm(const Recipe &recipe, const std::string &kernel) const;

  /// A recipe that won on a similar kernel, for the kernel that it is similar to.
  struct Line {
    OpeningLine line;
    double similarity;
    unsigned rank; ///< 0: the first of those for that kernel
  };
  /// The most promising of each kernel first, then the second of each, and so on.
  std::vector<Line> lines() const;
  /// Recipes that were nearly the best on similar kernels, the likeliest first, in other forms and with other
  /// parameters, each followed by what it rests on alone.
  std::vector<OpeningLine> nearlyBest() const;

  const KernelIdentities &identities() const { return kernels; }
  /// Of all kernels.
  bool launchesAreKnown() const;

private:
  std::vector<KernelMemory> memories;
  KernelIdentities kernels;
  std::map<std::string, std::vector<Match>> matches, alike;
};

} // namespace optiml

#endif
