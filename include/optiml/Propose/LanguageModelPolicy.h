//===- LanguageModelPolicy.h - language models propose ----------*- C++ -*-===//
//
// The proposer that asks language models, and fuses what they say with the expert policy into one prior:
//
//     prior(a) = (1 - λ) · expert(a) + λ · model(a)
//     model(a) = Σ_s gate(s) · confidence_s(a) · 0.85^rank_s(a)
//
// both normalized over the sites of a state, λ = `modelShare` (1 without the expert). A model is asked at the original
// and whenever there is a new best, not at every state: elsewhere what was said last counts for the sites that are
// still there. Without an answer λ is 0: the expert policy alone goes on. The search does not wait: an answer is taken
// in when it comes (Thinking.h). Only when the search has nothing else to do, or has spent its budget but for what is
// kept for answers, it waits, `waitSeconds` in all.
//
// Nothing a model says is believed: actions that are not legal are dropped, counted, and told to it the next time. The
// same answers give the same proposals.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_PROPOSE_LANGUAGEMODELPOLICY_H
#define OPTIML_PROPOSE_LANGUAGEMODELPOLICY_H

#include "optiml/LanguageModels/Chat.h"
#include "optiml/Propose/Answers.h"
#include "optiml/Propose/ExpertPolicy.h"
#include "optiml/Propose/History.h"
#include "optiml/Propose/KernelWriter.h"
#include "optiml/Propose/Prompt.h"
#include "optiml/Propose/Strategists.h"
#include "optiml/Propose/Thinking.h"
#include <functional>
#include <set>

namespace optiml {

struct LanguageModelSettings {
  bool expert = true;       ///< fuse with the expert policy and play its opening book; else the models alone
  bool mixture = true;      ///< strategists with a gate; else one generalist
  bool judge = true;        ///< a model diagnoses the bottleneck too
  double modelShare = 0.6;  ///< λ
  unsigned rounds = 8;      ///< how often a search asks for actions, at most
  unsigned strategists = 3; ///< asked in a round, at most
  unsigned promptTokens = 12000, answerTokens = 4096;
  double waitSeconds = 300; ///< for answers, when all else is done
  bool kernels = true;      ///< models write whole kernels
  KernelWriterSettings writer;
  /// What decides the outcome, as text: part of a stored search's key.
  std::string str() const;
};

/// What became of the questions.
struct LanguageModelStatistics {
  unsigned questions = 0, failedQuestions = 0;
  unsigned proposed = 0, dropped = 0; ///< actions
  unsigned judged = 0, disagreed = 0; ///< diagnoses, and those that differ from the rules'
  unsigned late = 0;                  ///< questions whose answers nobody waited for
};

/// The two priors as one, best first; each is normalized over sites first. `share` is λ.
std::vector<Proposal> fusePriors(const std::vector<Proposal> &expert, const std::vector<Proposal> &model, double share);

class LanguageModelPolicy : public Proposer {
public:
  /// Receives events for the trajectory: JSON objects with an "event".
  using Report = std::function<void(const nlohmann::json &)>;
  /// Receives, once, why the models are not asked any more.
  using Warn = std::function<void(const std::string &)>;

  /// `expert` (it outlives the policy) is what the models' answers are fused with. `models` (at least one; they outlive
  /// it, too) are shared out among the strategists in order; the last writes kernels. New kernel text goes into
  /// `texts`; without it none is asked for.
  LanguageModelPolicy(Proposer &expert, std::vector<LanguageModel *> models, SearchFacts facts,
                      const LanguageModelSettings &settings, Report report = {}, Warn warn = {},
                      std::shared_ptr<KernelTexts> texts = nullptr);
  llvm::Expected<std::vector<Proposal>> propose(const SearchState &state, unsigned count) override;
  std::vector<OpeningLine> openingBook(const SearchState &root) override;
  std::vector<Recipe> recipes() override;
  void observe(const SearchState &state, const Measurement &measurement) override;
  void refused(const Recipe &recipe, const std::string &why) override;
  bool awaitsAnswers() const override { return thinking.isWaiting(); }
  unsigned answersTaken() const override { return thinking.taken(); }
  void takeAnswer(double seconds, const std::atomic<bool> *cancel) override;
  /// The search has ended: answers that have not come are not waited for.
  void stopAsking() { thinking.end(); }

  const LanguageModelStatistics &statistics() const { return counts; }
  /// The statistics for the summary of a search.
  nlohmann::json summary() const;

private:
  using Site = std::pair<std::string, std::string>; ///< transform, site
  struct Asked {
    Recipe recipe; ///< of the state
    double seconds = 0;
    std::map<Action, std::set<std::string>> proposers; ///< strategists
  };
  bool isToBeAsked(const SearchState &state) const;
  void askRound(const SearchState &state);
  std::vector<std::pair<const Strategist *, double>> chooseStrategists(const SearchState &state);
  std::string judgeBottleneck(const SearchState &state);
  ChatRequest question(const SearchState &state, const Strategist &strategist) const;
  LanguageModel &modelOf(const Strategist &strategist) const;
  // In a thought.
  llvm::Expected<ChatReply> ask(LanguageModel &model, const ChatRequest &request);
  std::vector<llvm::Expected<ChatReply>> askAll(std::vector<Thinking::Question> questions);
  std::vector<Proposal> modelProposals(const SearchState &state) const;
  void failed(const std::string &purpose, llvm::Error error);

  std::vector<LanguageModel *> models;
  SearchFacts facts;
  LanguageModelSettings settings;
  Report report;
  Warn warn;
  Proposer &expert;
  History history;
  Gate gate;
  std::optional<KernelWriter> writer;
  LanguageModelStatistics counts;
  std::set<std::string> askedStates;
  std::vector<Asked> asked;
  std::map<std::string, std::vector<Proposal>> answers; ///< by state
  std::vector<Proposal> latest;
  std::map<std::string, std::vector<std::string>> droppedLast; ///< by strategist
  unsigned failuresInARow = 0;
  bool givenUp = false;
  bool asksRound = false, writes = false; ///< what is being thought about
  std::vector<Recipe> written;            ///< to be tried
  double waited = 0;
  Thinking thinking; ///< goes first: thoughts use all of the above
};

} // namespace optiml

#endif
