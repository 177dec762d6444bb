//===- KernelWriter.h - a model writes a whole new kernel -------*- C++ -*-===//
//
// Three roles, as in work with several agents: plan (which kernel, by which idea), write (its body, helpers and
// launch), and repair (the same with the message of whoever refused it, at most `repairs` times). What is written
// enters the search as replace-body actions (KernelText.h), which Clang checks and the verifier tests like anything
// else.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_PROPOSE_KERNELWRITER_H
#define OPTIML_PROPOSE_KERNELWRITER_H

#include "optiml/Core/KernelText.h"
#include "optiml/LanguageModels/Chat.h"
#include "optiml/Propose/History.h"
#include "optiml/Propose/Prompt.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>

namespace optiml {

struct KernelWriterSettings {
  unsigned texts = 3;        ///< new kernels in a search, repairs not counted; 0: none
  unsigned repairs = 3;      ///< of each
  unsigned evaluations = 25; ///< from one new kernel to the next
  unsigned promptTokens = 12000, answerTokens = 8192;
  bool allowAssembly = false;
};

struct KernelWriterStatistics {
  unsigned texts = 0, repairs = 0; ///< written
  unsigned passed = 0;             ///< that were found correct, or predicted to be too slow to be worth the proof
};

/// What a new text of the kernel may do and must not, for its author.
std::string kernelTextRules(const KernelFacts &kernel, bool allowAssembly);

/// The answer of the roles write and repair. `kernel` is whose body it is, whatever the answer says.
llvm::Expected<KernelText> readKernelText(llvm::StringRef text, const std::string &kernel);

class KernelWriter {
public:
  using Ask = std::function<llvm::Expected<ChatReply>(const ChatRequest &)>;
  using Report = std::function<void(const nlohmann::json &)>;
  /// `texts` is the table that the action space looks texts up in.
  KernelWriter(const SearchFacts &facts, std::shared_ptr<KernelTexts> texts, const KernelWriterSettings &settings,
               Report report)
      : facts(facts), texts(std::move(texts)), settings(settings), report(std::move(report)) {}

  /// Whether there is something to ask: a text to mend, or a new one.
  bool isDue(const History &history) const;
  /// The recipe to try now, if any; asks `ask` for it. A failed question ends the present text and is returned.
  llvm::Expected<std::vector<Recipe>> next(const History &history,
                                           llvm::function_ref<llvm::Expected<ChatReply>(const ChatRequest &)> ask);
  void observe(const Recipe &recipe, const Measurement &measurement);
  void refused(const Recipe &recipe, const std::string &why);
  const KernelWriterStatistics &statistics() const { return counts; }

private:
  bool isPending(const Recipe &recipe) const;
  void settle(const std::string &outcome);
  ChatRequest writeRequest(const KernelFacts &kernel, const std::string &plan, const History &history) const;
  llvm::Expected<std::vector<Recipe>> submit(llvm::Expected<ChatReply> reply, const std::string &purpose);

  const SearchFacts &facts;
  std::shared_ptr<KernelTexts> texts;
  KernelWriterSettings settings;
  Report report;
  KernelWriterStatistics counts;
  unsigned started = 0;
  size_t nextAt = 1;

  // The text at hand.
  std::string kernel, name, failure;
  ChatRequest request; ///< the one that wrote it
  std::string lastAnswer;
  unsigned repairsLeft = 0;
};

} // namespace optiml

#endif
