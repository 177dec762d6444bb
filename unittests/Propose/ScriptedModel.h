//===- ScriptedModel.h - a language model for tests -------------*- C++ -*-===//
#ifndef OPTIML_UNITTESTS_PROPOSE_SCRIPTEDMODEL_H
#define OPTIML_UNITTESTS_PROPOSE_SCRIPTEDMODEL_H

#include "optiml/LanguageModels/Chat.h"
#include "optiml/Support/Error.h"
#include <functional>
#include <mutex>

namespace optiml {

/// Answers by a function of the question; an empty answer is an error. Keeps the questions.
class ScriptedModel : public LanguageModel {
public:
  using Script = std::function<std::string(const ChatRequest &)>;
  explicit ScriptedModel(Script script) : script(std::move(script)) {}
  std::string name() const override { return "scripted"; }
  llvm::Expected<ChatReply> ask(const ChatRequest &request) override {
    std::lock_guard lock(mutex);
    questions.push_back(request);
    ChatReply reply;
    reply.text = script(request);
    reply.stop = "end";
    if (reply.text.empty())
      return makeError("no answer");
    return reply;
  }
  unsigned count(llvm::StringRef purpose) const {
    unsigned n = 0;
    for (const ChatRequest &question : questions)
      n += llvm::StringRef(question.purpose).starts_with(purpose);
    return n;
  }
  std::vector<ChatRequest> questions;

private:
  Script script;
  std::mutex mutex; ///< strategists are asked at the same time
};

} // namespace optiml

#endif
