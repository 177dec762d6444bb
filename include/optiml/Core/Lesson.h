//===- Lesson.h - what earlier searches learnt ------------------*- C++ -*-===//
//
// A search leaves a KernelMemory for each kernel: what the kernel is like, in features that hold no name and no text of
// the user's, what each action did there, and the recipes that won, in general form. They live in the store, travel as
// JSON between stores (docs/formats.md), and guide later searches on similar kernels (Propose/Memory.h).
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_CORE_LESSON_H
#define OPTIML_CORE_LESSON_H

#include "optiml/Core/Interfaces.h"
#include <nlohmann/json_fwd.hpp>
#include <set>

namespace optiml {

/// What a kernel is like. Equal kernels under other names have equal features.
struct KernelFeatures {
  std::map<std::string, double> numbers; ///< each from about 0 to 1; one that is absent is 0
  std::vector<std::string> tokens;       ///< words for its parts ("loop d1 param"), sorted, with repetitions
  std::string key() const;               ///< of equal features, a hash
};

/// What one action did on one kind of place.
struct Lesson {
  std::string bottleneck; ///< of the variant that it was applied to
  std::string transform;
  std::string role; ///< the site in general form, see siteRole()
  Params params;
  double weight = 0;                     ///< evaluations it rests on; one that several actions share counts in parts
  double gain = 0;                       ///< mean log2(time before / time after) of those that ran
  double rejected = 0;                   ///< of the weight, what did not compile, failed, or gave wrong results
  std::map<std::string, double> reasons; ///< `rejected` by verdictName
};

/// A recipe that was evaluated, won or lost, in general form.
struct LearntTrial {
  struct Step {
    std::string transform, role;
    Params params;
    auto operator<=>(const Step &) const = default;
  };
  std::vector<Step> steps; ///< none: the original
  double loss = 0; ///< log2(its time / the time of that kernel's best); of what was rejected, more than the original's
};

struct LearntLine {
  OpeningLine line;
  double speedup = 1; ///< of the program's kernels, where it was learnt
};

struct KernelMemory {
  std::string source;     ///< of the search it comes from; the same search again replaces it and does not count twice
  std::string gpu;        ///< "H200"
  std::string backend;    ///< "model": predicted; anything else: measured
  std::string bottleneck; ///< of the original
  KernelFeatures features;
  std::vector<Lesson> lessons;
  std::vector<LearntLine> lines; ///< fastest first
  std::vector<LearntTrial> trials;
  int64_t time = 0; ///< seconds since 1970
};

/// What follows the kernel in the name of a site, with `userNames` and what is made of them ("k_tile") replaced by '*':
/// a glob that finds the same kind of place in a kernel with other names.
std::string siteRole(llvm::StringRef site, llvm::StringRef kernel, const std::set<std::string> &userNames);

/// Whether two lines do the same; they may be of different kernels.
bool sameSteps(const OpeningLine &a, const OpeningLine &b);

/// What two searches from one source learnt: of each lesson the one that rests on more, all lines, and the trials of
/// the one that has more.
KernelMemory merged(const KernelMemory &a, const KernelMemory &b);

nlohmann::json toJson(const KernelMemory &memory);
/// Checks everything: memories are exchanged between people. Counts and lengths are bounded.
llvm::Expected<KernelMemory> kernelMemoryFromJson(const nlohmann::json &value);

} // namespace optiml

#endif
