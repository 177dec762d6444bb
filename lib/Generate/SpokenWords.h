//===- SpokenWords.h - a request read word by word --------------*- C++ -*-===//
//
// For readings in which every word of a request must have its part (Compose.cpp, Piecewise.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GENERATE_SPOKENWORDS_H
#define OPTIML_LIB_GENERATE_SPOKENWORDS_H

#include "optiml/Generate/Words.h"

namespace optiml::gen {

class SpokenWords {
public:
  SpokenWords(llvm::StringRef request, const Vocabulary &vocabulary);

  /// What has been read by tail(): the parts of the request that say what the data are.
  std::string keptOf(llvm::StringRef request) const;

protected:
  using Set = std::set<llvm::StringRef>;

  struct Word {
    std::string raw, text; ///< as written and canonical
    size_t begin = 0, end = 0;
    bool tells = false; ///< cannot be left out
    std::optional<double> number;
  };

  const std::string &raw(size_t ahead = 0) const;
  const std::string &text(size_t ahead = 0) const;
  const std::string &last() const { return words[at - 1].raw; }
  /// Reads the words of a phrase, as they are written or canonical.
  bool take(std::initializer_list<llvm::StringRef> phrase);
  bool takeAny(const Set &set);
  /// "I want to compute", "a kernel that".
  void lead();
  /// "of a 512x1000 float matrix": what the data are; kept for the reader.
  bool tail();
  /// "1M floats" up to the end.
  bool bareTail();
  bool startsTail();
  /// "two float arrays", "x and y".
  bool bothInputs();

  std::vector<Word> words;
  size_t at = 0;
  unsigned inputs = 1; ///< arrays that it names
  std::vector<std::pair<size_t, size_t>> kept;

  bool readTail(size_t first);

private:
  bool pair();
};

} // namespace optiml::gen

#endif
