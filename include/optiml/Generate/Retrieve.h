//===- Retrieve.h - plain words without a language model --------*- C++ -*-===//
//
// Retrieval, no understanding: SQLite's FTS5 ranks the operations by their names, descriptions and phrasings, and a
// small reader takes numbers, shapes, types and options out of the words. A request comes out where the first operation
// is clearly first and nothing is left over; otherwise the caller shows the candidates.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GENERATE_RETRIEVE_H
#define OPTIML_GENERATE_RETRIEVE_H

#include "optiml/Generate/Request.h"

namespace optiml::gen {

/// One operation that the words may mean.
struct Match {
  const Operation *operation = nullptr;
  double score = 0;                  ///< comparable within one answer only; the best is first
  Request request;                   ///< with the options that were found in the words
  std::vector<std::string> leftOver; ///< words and numbers that it does not account for
  std::vector<std::string> missing;  ///< options that must still be given
};

struct Retrieval {
  std::vector<Match> matches;
  std::string doubt;               ///< why the first is not to be written; empty: it may be
  std::vector<std::string> stages; ///< stages that the words name beside the first match
};

/// The `count` best operations for `words`. An error: there is nothing to search for.
llvm::Expected<Retrieval> retrieve(llvm::StringRef words, const Library &library, size_t count = 3);

/// What --candidates prints: {"candidates": [{"operation": …, "score": …, "command": …}, …], "understood": {…}}.
nlohmann::json toJson(const Retrieval &retrieval);

} // namespace optiml::gen

#endif
