//===- Request.h - what a request in plain words asks for -------*- C++ -*-===//
#ifndef OPTIML_GENERATE_REQUEST_H
#define OPTIML_GENERATE_REQUEST_H

#include "optiml/Generate/Operation.h"
#include "optiml/Generate/Words.h"

namespace optiml::gen {

/// One element-wise stage of a fused chain, with its constants.
struct Stage {
  const Operation *operation = nullptr;
  std::map<std::string, double> reals;
};

struct Understood {
  const Operation *operation = nullptr; ///< the heavier one, or the element-wise map
  std::string type;                     ///< float, double, int, …
  std::map<std::string, int64_t> sizes; ///< all of the operation's
  std::map<std::string, double> reals;
  std::map<std::string, std::string> choices; ///< choice to value
  std::vector<Stage> before, after;
  std::vector<std::string> ignored; ///< words that had no influence
  std::vector<std::string> notes;   ///< what the user should know ("how it is computed is left to the search")
  /// For --explain: operation, type, sizes, choices, fused stages; one a line.
  std::string explain() const;
};

/// What `request` asks for. The error says what was not understood or is not offered, with the nearest operations.
llvm::Expected<Understood> understand(llvm::StringRef request, const Library &library, const Vocabulary &vocabulary);

/// operations/examples.txt of lists of requests in the form of utils/check-gen.
std::string learnWords(llvm::StringRef lists, const Vocabulary &vocabulary);

/// The operations whose documentation has most to do with it, at most `count`.
std::vector<const Operation *> nearestOperations(llvm::StringRef request, const Library &library, const Vocabulary &vocabulary,
                                                 size_t count);

} // namespace optiml::gen

#endif
