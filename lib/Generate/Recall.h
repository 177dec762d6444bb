//===- Recall.h - in which words operations have been asked for -*- C++ -*-===//
//
// operations/examples.txt counts, for each operation, in how many of the known requests for it a word or two words
// beside each other occur ("refused": in those for what the library does not hold). Where the phrases of the operations
// do not explain a request, the operation that is asked for in such words is tried, if it is by far the likeliest one.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GENERATE_RECALL_H
#define OPTIML_LIB_GENERATE_RECALL_H

#include "optiml/Generate/Words.h"
#include <map>
#include <string>
#include <vector>

namespace optiml::gen {

class Recall {
public:
  explicit Recall(llvm::StringRef examples);
  static const Recall &builtin();

  /// The operation that is asked for in such words; empty where several are, or where words are among them with which
  /// only other things are asked for.
  std::string guess(const std::vector<Token> &tokens) const;
  /// Whether requests for the operation have this word.
  bool knows(const std::string &operation, const std::string &word) const;

private:
  struct Operation {
    std::string name;
    double requests = 0;
    std::map<std::string, double> counts;
  };
  std::vector<Operation> operations;
  std::map<std::string, double> spread; ///< in how many operations' requests a feature occurs
  std::map<std::string, double> total;  ///< in how many requests a word occurs
};

} // namespace optiml::gen

#endif
