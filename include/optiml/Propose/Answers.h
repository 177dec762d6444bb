//===- Answers.h - what a language model answered ---------------*- C++ -*-===//
//
// Answers are untrusted text: they are bounded in length, read leniently (prose or a fence around the JSON does not
// matter), and nothing in them is believed that was not asked for. The schemas are in docs/proposers.md.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_PROPOSE_ANSWERS_H
#define OPTIML_PROPOSE_ANSWERS_H

#include "optiml/Core/Interfaces.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace optiml {

/// Longer answers are not looked at.
inline constexpr size_t maxAnswerBytes = 256 << 10;

/// The JSON object in `text`, which must have the field `key`. The error says what is wrong, in words for the model.
llvm::Expected<nlohmann::json> findAnswer(llvm::StringRef text, llvm::StringRef key);

/// At most `bytes` of it on one line: no control characters, valid UTF-8. For what is shown, logged or sent back.
std::string oneLine(llvm::StringRef text, size_t bytes = 300);

struct RankedAction {
  Action action;
  double confidence = 0; ///< 0 to 1
  std::string reason;
};

struct ActionAnswer {
  std::vector<RankedAction> actions; ///< legal ones, best first, no two alike
  std::vector<std::string> dropped;  ///< the others, each with what is wrong with it
};

/// Keeps what is legal. Parameters that are left out are those of the site's first value that agrees with the rest.
llvm::Expected<ActionAnswer> readActions(llvm::StringRef text, const std::vector<ActionTemplate> &legal,
                                         unsigned most = 24);

/// What the judge says of the counters.
struct Diagnosis {
  std::string bottleneck;
  double confidence = 0;
  std::string reason;
};

/// The names a diagnosis may use.
const std::vector<std::string> &bottleneckNames();
nlohmann::json diagnosisSchema();
llvm::Expected<Diagnosis> readDiagnosis(llvm::StringRef text);

} // namespace optiml

#endif
