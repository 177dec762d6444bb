//===- Similarity.cpp - how alike two kernels are -------------------------===//
#include "Similarity.h"
#include <algorithm>
#include <cmath>

using namespace optiml;

/// BM25's usual parameters: how soon repetitions stop to count, and how much long documents are discounted.
static constexpr double saturation = 1.2, lengthShare = 0.75;
/// How rare a word is cannot be told from a few kernels: as if there were that many more, without any of the words.
/// Otherwise a memory of five stencils would find the words of a stencil worthless, and a sixth one unlike all of them
/// for the one word that it has more.
static constexpr double background = 30;

static std::map<std::string, unsigned> countWords(const KernelFeatures &features) {
  std::map<std::string, unsigned> counts;
  for (const std::string &token : features.tokens)
    ++counts[token];
  return counts;
}

static double lengthOf(const std::map<std::string, unsigned> &counts) {
  return llvm::sum_of(llvm::make_second_range(counts), 0.0);
}

SimilarityIndex::SimilarityIndex(std::span<const KernelMemory> memories) : memories(memories) {
  double length = 0;
  for (const KernelMemory &memory : memories) {
    documents.push_back(countWords(memory.features));
    length += lengthOf(documents.back());
    for (const auto &[word, count] : documents.back())
      ++holding[word];
  }
  if (length > 0)
    meanLength = length / double(documents.size());
}

double SimilarityIndex::score(const Counts &query, const Counts &document) const {
  double result = 0, length = lengthOf(document);
  for (const auto &[word, asked] : query) {
    auto found = document.find(word);
    if (found == document.end())
      continue;
    auto it = holding.find(word);
    double holders = it == holding.end() ? 0 : it->second;
    double rarity = std::log(1 + (background + double(documents.size()) - holders + 0.5) / (holders + 0.5));
    // As often as both have it: a kernel with ten such loops is not like one with a single one.
    double count = std::min(found->second, asked);
    result += rarity * count * (saturation + 1) /
              (count + saturation * (1 - lengthShare + lengthShare * length / meanLength));
  }
  return result;
}

static double distance(const KernelFeatures &a, const KernelFeatures &b) {
  double sum = 0;
  for (const auto &[name, value] : a.numbers) {
    auto it = b.numbers.find(name);
    double d = value - (it == b.numbers.end() ? 0 : it->second);
    sum += d * d;
  }
  for (const auto &[name, value] : b.numbers)
    if (!a.numbers.count(name))
      sum += value * value;
  return sum;
}

double SimilarityIndex::similarity(const KernelFeatures &query, size_t memory) const {
  Counts words = countWords(query);
  double own = score(words, words);
  double shared = own > 0 ? std::min(1.0, score(words, documents[memory]) / own) : 0;
  return std::sqrt(std::exp(-distance(query, memories[memory].features)) * shared);
}
