//===- Author.h - language models write programs ----------------*- C++ -*-===//
//
// Several strategies at the same time, each in its own conversation: straight; after the example of a program of the
// library; plan first, then write. Each answer passes the gate of Gate.h as a stranger's text, and where the library
// knows the request its function `launch` is also run on the library's inputs and compared with the library's
// reference. What is refused goes back with the reason, a few times. The library's own program is a candidate like the
// others. What passes is ranked by predicted time.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GENERATE_AUTHOR_H
#define OPTIML_GENERATE_AUTHOR_H

#include "optiml/Frontend/Toolchain.h"
#include "optiml/Generate/Request.h"
#include "optiml/LanguageModels/Chat.h"
#include "llvm/ADT/ArrayRef.h"
#include <functional>
#include <optional>

namespace optiml::gen {

struct Candidate {
  std::string strategy; ///< "library", "straight", "example", "plan"
  std::string model;    ///< who wrote it; empty: the library
  std::string text;
  bool passed = false;
  std::string why;               ///< it was refused: the last reason
  unsigned repairs = 0;          ///< answers after the first
  bool compared = false;         ///< with the library's reference
  std::optional<double> seconds; ///< predicted for the middle sizes; nothing where that was not possible
  /// For people: one line.
  std::string describe() const;
};

struct AuthorOptions {
  std::string request;
  const ProgramSpec *spec = nullptr; ///< null: the library does not know it
  unsigned repairs = 3;              ///< of each strategy, at most
  double seconds = 30;               ///< one run of a candidate
  bool nvcc = true;
  unsigned promptTokens = 12000, answerTokens = 8192;
  std::function<void(const Candidate &)> done; ///< called for each as it is finished, by one thread at a time
};

/// A request in the library's terms, as a model put it.
struct ModelRequest {
  std::optional<Request> request;
  std::string none; ///< without a request: why the library has none
};
/// Asks for `options.request` in the library's terms. What the library does not take goes back with the reason.
llvm::Expected<ModelRequest> askForRequest(LanguageModel &model, const AuthorOptions &options, const Library &library);
/// A model's answer to that question.
llvm::Expected<ModelRequest> readModelRequest(llvm::StringRef answer);

/// All candidates; those that passed first, the fastest of them at the front. Questions that fail (no answer, the
/// budget is spent) end a strategy with the reason. An error: nothing could be tried at all.
llvm::Expected<std::vector<Candidate>> writeCandidates(llvm::ArrayRef<LanguageModel *> models,
                                                       const AuthorOptions &options, const Toolchain &toolchain);

/// Its text as it is shown: with a comment that says who wrote it for which request, and what was checked.
std::string headed(const Candidate &candidate, llvm::StringRef request);

/// What a program does, agreed before anybody writes it.
struct ProgramTask {
  struct Argument {
    std::string name;
    int64_t asked = 1, small = 1, other = 2; ///< the default; what the gate runs it with, first and then
  };
  std::string definition; ///< in words, or the library's reference
  std::string signature;  ///< of `launch`; empty: whoever writes it chooses
  std::vector<Argument> arguments;
};
/// A model's answer to what a request means. The error says what is wrong, in words for the model.
llvm::Expected<ProgramTask> readTask(llvm::StringRef answer);
/// The program in an answer: the field "program" of a JSON object, or what stands in a fence.
llvm::Expected<std::string> readProgram(llvm::StringRef answer);

} // namespace optiml::gen

#endif
