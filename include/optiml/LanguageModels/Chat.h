//===- Chat.h - asking a language model -------------------------*- C++ -*-===//
//
// What everything that asks a model sees. Behind it are endpoints, local commands and recorded transcripts; budgets,
// retries and the transcript are theirs. An answer is untrusted text: whoever asks parses it leniently, checks it, and
// goes on without it where it is of no use.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LANGUAGEMODELS_CHAT_H
#define OPTIML_LANGUAGEMODELS_CHAT_H

#include "llvm/Support/Error.h"
#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace optiml {

struct ChatMessage {
  enum class Role { System, User, Assistant } role = Role::User;
  std::string text;
};

struct ChatRequest {
  std::string purpose; ///< what it is for, as transcripts and budget reports name it: "propose/memory", "judge",
                       ///< "kernel", "repair"
  std::vector<ChatMessage> messages;
  nlohmann::json schema; ///< JSON schema of the answer; null: free text
  unsigned maxTokens = 4096;
  double temperature = 0.2;
  const std::atomic<bool> *abandoned = nullptr; ///< polled: nobody waits for the answer any more
  /// Of a replay, filled in by whoever answers: the turn of the search at which it was taken in (Thinking.h); 0: at
  /// once.
  unsigned *takenAt = nullptr;
};

struct ChatReply {
  std::string text;
  std::string stop; ///< why the text ends: "end", "length", "refusal"
  uint64_t promptTokens = 0, completionTokens = 0;
  bool estimatedTokens = false; ///< the model did not tell them
  double seconds = 0;
};

class LanguageModel {
public:
  virtual ~LanguageModel() = default;
  /// For people: the model and where it is, never a key.
  virtual std::string name() const = 0;
  /// Blocks, within the limits that the model was opened with. May be called from several threads. An error (no answer,
  /// the budget is spent, the server refuses) is an ordinary outcome.
  virtual llvm::Expected<ChatReply> ask(const ChatRequest &request) = 0;
  /// The answer to this request was taken in at that turn, which transcripts record.
  virtual void wasTaken(const ChatRequest & /*request*/, unsigned /*turn*/) {}
};

} // namespace optiml

#endif
