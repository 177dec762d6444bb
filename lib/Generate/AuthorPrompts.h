//===- AuthorPrompts.h - what models are asked to write ---------*- C++ -*-===//
#ifndef OPTIML_LIB_GENERATE_AUTHORPROMPTS_H
#define OPTIML_LIB_GENERATE_AUTHORPROMPTS_H

#include "optiml/Generate/Author.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace optiml::gen {

/// Which operation of the library, with which options, is meant?
ChatRequest requestQuestion(const AuthorOptions &options, const Library &library);
/// What does the request mean, and which sizes has it? Asked once, where the library does not know it.
ChatRequest taskQuestion(const AuthorOptions &options);
/// How would it be written? The answer is text.
ChatRequest planQuestion(const ProgramTask &task, const AuthorOptions &options);
/// Write it. `example` and `plan` may be empty.
ChatRequest programQuestion(const ProgramTask &task, const AuthorOptions &options, llvm::StringRef example,
                            llvm::StringRef plan);
/// The same question with the last answer and why it was refused.
ChatRequest repairQuestion(ChatRequest asked, llvm::StringRef answer, llvm::StringRef why);

/// Asks, and asks again with the reason while the answer cannot be used, `repairs` times at most.
template <typename Answer>
llvm::Expected<Answer> askUntil(LanguageModel &model, ChatRequest question, unsigned repairs,
                                llvm::function_ref<llvm::Expected<Answer>(llvm::StringRef)> read) {
  for (unsigned left = repairs;; --left) {
    llvm::Expected<ChatReply> reply = model.ask(question);
    if (!reply)
      return reply.takeError();
    llvm::Expected<Answer> answer = read(reply->text);
    if (answer || left == 0)
      return answer;
    question = repairQuestion(std::move(question), reply->text, llvm::toString(answer.takeError()));
  }
}

} // namespace optiml::gen

#endif
