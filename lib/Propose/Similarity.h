//===- Similarity.h - how alike two kernels are -----------------*- C++ -*-===//
#ifndef OPTIML_LIB_PROPOSE_SIMILARITY_H
#define OPTIML_LIB_PROPOSE_SIMILARITY_H

#include "optiml/Core/Lesson.h"
#include <span>

namespace optiml {

/// Compares kernels with a collection: the geometric mean of two likenesses, that of their numbers (exp of minus the
/// squared distance) and that of their words, weighed as in BM25 (Robertson and Zaragoza 2009: rare words say more,
/// repetitions less and less), relative to a kernel's score with itself.
class SimilarityIndex {
public:
  explicit SimilarityIndex(std::span<const KernelMemory> memories);
  /// From 0 to 1; 1 for equal features.
  double similarity(const KernelFeatures &query, size_t memory) const;

private:
  using Counts = std::map<std::string, unsigned>;
  double score(const Counts &query, const Counts &document) const;
  std::span<const KernelMemory> memories;
  std::vector<Counts> documents;
  Counts holding; ///< documents that hold a word
  double meanLength = 1;
};

} // namespace optiml

#endif
