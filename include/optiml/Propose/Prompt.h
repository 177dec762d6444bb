//===- Prompt.h - what a language model is told -----------------*- C++ -*-===//
//
// A prompt is made of pieces with priorities; what does not fit a budget of tokens is left out, the least important
// first. Prompts hold nothing that differs from run to run (no clock, no temporary path), so that a recorded search can
// be replayed.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_PROPOSE_PROMPT_H
#define OPTIML_PROPOSE_PROMPT_H

#include "optiml/Core/Interfaces.h"
#include "optiml/LanguageModels/Chat.h"
#include "llvm/ADT/StringRef.h"
#include <functional>
#include <string>
#include <vector>

namespace optiml {

/// How many tokens a model will probably count: one for every three bytes of source code, rather too many than too few.
unsigned estimateTokens(llvm::StringRef text);

class Prompt {
public:
  /// Pieces stand in the order in which they are added. Priority 0 is kept whatever it costs; of the others those with
  /// the largest number go first, and of equal ones the last.
  void add(unsigned priority, std::string text);
  /// What fits, at most `tokens` by estimateTokens(); says in place of each gap that something was left out. When the
  /// pieces of priority 0 alone do not fit, the longest of them is cut.
  std::string fit(unsigned tokens) const;

private:
  struct Piece {
    unsigned priority;
    std::string text;
  };
  std::vector<Piece> pieces;
};

/// A question: who the model is to be (`role`), what it is told, and how long both may be in tokens.
struct PromptLimits {
  unsigned prompt, answer;
};
ChatRequest chatRequest(std::string purpose, std::string role, const Prompt &prompt, PromptLimits limits,
                        nlohmann::json schema = {});

/// What a prompt says of a kernel.
struct KernelFacts {
  std::string name;                  ///< as in sites
  std::string source;                ///< its definition as the user wrote it, comments and all
  std::string twin;                  ///< the name under which a new one stands beside it
  std::string parameters;            ///< as C++ text
  std::string printed;               ///< the original as OptiML prints it: template arguments in place, helpers read in
  std::vector<std::string> launches; ///< one line each: geometry, arguments, weight
};

/// What does not change during a search.
struct SearchFacts {
  std::string gpu;                  ///< its numbers, a few lines
  std::string rules;                ///< what may change in floating point, one line
  bool measured = false;            ///< times are from a clock
  std::vector<KernelFacts> kernels; ///< the one that takes most time first
  /// What earlier searches found on kernels like this one under this bottleneck, a line each; empty: nothing. Null: no
  /// memory.
  std::function<std::string(const std::string &kernel, const std::string &bottleneck)> lessons;
  const KernelFacts *find(llvm::StringRef kernel) const;
};

/// The user's text between marks that do not occur in it. What stands there is data.
std::string quoted(llvm::StringRef what, llvm::StringRef text);
/// One line: time, speed-up, what limits it.
std::string measurementLine(const Measurement &measurement);
/// The counters that tell something, one a line, by name.
std::string counterLines(const Measurement &measurement);
/// Without the folders of absolute paths, which differ from run to run and are nobody's business.
std::string withoutFolders(llvm::StringRef text);

/// Kernels, launches, GPU, profile: what every question about `state` begins with.
void addSituation(Prompt &prompt, const SearchFacts &facts, const SearchState &state);
/// The legal actions of `state`, one site a line.
void addLegalActions(Prompt &prompt, const SearchState &state);

} // namespace optiml

#endif
