//===- ModelSession.h - the models of one run -------------------*- C++ -*-===//
//
// Opens the models that the flags name and stands between them and whoever asks: one budget over all, a transcript, a
// notice before the first question, and no key in anything that comes out.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LANGUAGEMODELS_MODELSESSION_H
#define OPTIML_LANGUAGEMODELS_MODELSESSION_H

#include "optiml/LanguageModels/Chat.h"
#include "optiml/LanguageModels/ModelFlags.h"
#include "llvm/ADT/ArrayRef.h"
#include <atomic>
#include <functional>
#include <memory>

namespace optiml {

/// What a run's questions came to.
struct ModelTotals {
  unsigned asked = 0, answered = 0;
  unsigned refused = 0; ///< of those asked, by the budget or because the model failed too often
  uint64_t promptTokens = 0, completionTokens = 0;
  bool estimatedTokens = false; ///< some model did not tell them
  double usd = 0;               ///< of what has a price
  bool unpriced = false;        ///< some model has none
  double seconds = 0;           ///< sum over the answers
};

class ModelSession {
public:
  struct Options {
    std::string source;     ///< what the questions hold, for the notice: "saxpy.cu"
    std::string transcript; ///< file, where the flags name none; empty: none
    /// Gets lines for people: the notice, and warnings such as a transcript that cannot be written.
    std::function<void(const std::string &)> say;
    const std::atomic<bool> *cancel = nullptr; ///< polled; ends questions that wait
  };

  /// Contacts nobody. Takes the keys out of this process's environment, so that no child process inherits them: call it
  /// before the first thread and the first child. An error (a key that is not set, a transcript that cannot be read, a
  /// limit in money on a model without a price) says what to do. With no model in the flags, models() is empty.
  static llvm::Expected<std::unique_ptr<ModelSession>> open(const ModelFlags &flags, Options options);
  ~ModelSession();

  /// In the order of the flags; a transcript stands for all models that it recorded. They live as long as the session.
  llvm::ArrayRef<LanguageModel *> models() const;
  ModelTotals totals() const;
  /// The totals in words: "12 questions, 11 answers, 45200 + 3100 tokens, 0.14 USD".
  std::string summary() const;

  struct Impl;

private:
  ModelSession();
  std::unique_ptr<Impl> impl;
};

} // namespace optiml

#endif
