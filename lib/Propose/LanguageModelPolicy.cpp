//===- LanguageModelPolicy.cpp - language models propose ------------------===//
#include "optiml/Propose/LanguageModelPolicy.h"
#include "PromptTexts.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cmath>
#include <utility>

using namespace optiml;
using nlohmann::json;

/// How fast the weight falls along a ranking.
static constexpr double rankDecay = 0.85;
/// After so many questions in a row without a usable answer no more are asked.
static constexpr unsigned patience = 4;
/// What the judge's diagnosis counts where it differs from the rules'.
static constexpr double judgeShare = 0.3;

LanguageModelPolicy::LanguageModelPolicy(Proposer &expert, std::vector<LanguageModel *> models, SearchFacts facts,
                                         const LanguageModelSettings &settings, Report report, Warn warn,
                                         std::shared_ptr<KernelTexts> texts)
    : models(std::move(models)), facts(std::move(facts)), settings(settings), report(std::move(report)),
      warn(std::move(warn)), expert(expert) {
  if (texts && settings.kernels)
    writer.emplace(this->facts, std::move(texts), settings.writer, this->report);
}

std::string LanguageModelSettings::str() const {
  return llvm::formatv("expert={0} mixture={1} judge={2} kernels={3} assembly={4} share={5}", expert, mixture, judge,
                       kernels, writer.allowAssembly, modelShare)
      .str();
}

nlohmann::json LanguageModelPolicy::summary() const {
  KernelWriterStatistics written = writer ? writer->statistics() : KernelWriterStatistics();
  return {{"questions", counts.questions}, {"failed", counts.failedQuestions}, {"proposed", counts.proposed},
          {"dropped", counts.dropped},     {"judged", counts.judged},          {"disagreed", counts.disagreed},
          {"late", counts.late},           {"kernelTexts", written.texts},     {"repairs", written.repairs},
          {"textsPassed", written.passed}};
}

std::vector<Recipe> LanguageModelPolicy::recipes() {
  thinking.goOn();
  if (writer && !givenUp && !writes && writer->isDue(history)) {
    writes = true;
    thinking.begin([this] {
      auto wanted = writer->next(history, [&](const ChatRequest &request) { return ask(*models.back(), request); });
      writes = false;
      if (!wanted)
        return failed("kernel", wanted.takeError());
      if (!wanted->empty())
        failuresInARow = 0;
      written.insert(written.end(), wanted->begin(), wanted->end());
    });
  }
  return std::exchange(written, {});
}

void LanguageModelPolicy::takeAnswer(double seconds, const std::atomic<bool> *cancel) {
  const auto begin = std::chrono::steady_clock::now();
  const bool came = thinking.wait(std::min(seconds, settings.waitSeconds - waited), cancel);
  waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!came)
    thinking.end();
}

/// The sum over sites of the best prior there: what the search normalizes by.
static double siteSum(const std::vector<Proposal> &proposals) {
  std::map<std::pair<std::string, std::string>, double> best;
  for (const Proposal &p : proposals) {
    double &prior = best[{p.action.transform, p.action.site}];
    prior = std::max(prior, p.prior);
  }
  return llvm::sum_of(llvm::make_second_range(best), 0.0);
}

std::vector<Proposal> optiml::fusePriors(const std::vector<Proposal> &expert, const std::vector<Proposal> &model,
                                         double share) {
  double expertSum = siteSum(expert), modelSum = siteSum(model);
  if (!(modelSum > 0))
    share = 0;
  else if (!(expertSum > 0))
    share = 1;
  std::vector<Proposal> fused;
  std::map<Action, size_t> at;
  auto addAll = [&](const std::vector<Proposal> &proposals, double factor) {
    for (const Proposal &p : proposals) {
      auto [entry, isNew] = at.try_emplace(p.action, fused.size());
      if (isNew)
        fused.push_back({p.action, 0, p.reason});
      fused[entry->second].prior += factor * p.prior;
    }
  };
  // The model's first: where both have a reason, its is the one that speaks of this kernel.
  if (share > 0)
    addAll(model, share / modelSum);
  if (share < 1 && expertSum > 0)
    addAll(expert, (1 - share) / expertSum);
  std::stable_sort(fused.begin(), fused.end(), [](const Proposal &a, const Proposal &b) { return a.prior > b.prior; });
  return fused;
}

llvm::Expected<std::vector<Proposal>> LanguageModelPolicy::propose(const SearchState &state, unsigned count) {
  thinking.goOn();
  if (!asksRound && isToBeAsked(state)) {
    asksRound = true;
    // While answers are awaited, the search may change its mind about the state.
    SearchState kept = state;
    auto measured = state.measurement ? std::make_shared<const Measurement>(*state.measurement) : nullptr;
    kept.measurement = measured.get();
    thinking.begin([this, kept, measured] {
      askRound(kept);
      asksRound = false;
    });
  }
  std::vector<Proposal> model = modelProposals(state), known;
  // Without the expert, it still speaks where no model has.
  if (settings.expert || model.empty()) {
    auto proposals = expert.propose(state, ~0u);
    if (!proposals)
      return proposals.takeError();
    known = std::move(*proposals);
  }
  std::vector<Proposal> fused = fusePriors(known, model, settings.expert ? settings.modelShare : 1);
  if (fused.size() > count)
    fused.resize(count);
  return fused;
}

std::vector<OpeningLine> LanguageModelPolicy::openingBook(const SearchState &root) {
  return settings.expert ? expert.openingBook(root) : std::vector<OpeningLine>();
}

bool LanguageModelPolicy::isToBeAsked(const SearchState &state) const {
  bool worthIt = state.key == history.rootKey() || state.key == history.bestKey();
  return worthIt && !givenUp && !state.legal.empty() && !askedStates.count(state.key) &&
         askedStates.size() < settings.rounds;
}

void LanguageModelPolicy::failed(const std::string &purpose, llvm::Error error) {
  std::string why = oneLine(llvm::toString(std::move(error)));
  if (thinking.hasEnded()) {
    ++counts.late;
    return;
  }
  ++counts.failedQuestions;
  if (report)
    report({{"event", "model-failed"}, {"purpose", purpose}, {"why", why}});
  if (++failuresInARow < patience || givenUp)
    return;
  givenUp = true;
  if (warn)
    warn("the search goes on without its language model, which gave no usable answer " + std::to_string(patience) +
         " times in a row; the last time: " + why);
}

llvm::Expected<ChatReply> LanguageModelPolicy::ask(LanguageModel &model, const ChatRequest &request) {
  return std::move(askAll({{&model, request}}).front());
}

std::vector<llvm::Expected<ChatReply>> LanguageModelPolicy::askAll(std::vector<Thinking::Question> questions) {
  counts.questions += unsigned(questions.size());
  std::vector<llvm::Expected<ChatReply>> replies = thinking.askAll(questions);
  for (size_t i = 0; i < replies.size(); ++i)
    if (replies[i] && replies[i]->stop == "refusal")
      replies[i] = makeError("{0} refuses to answer", questions[i].model->name());
  return replies;
}

LanguageModel &LanguageModelPolicy::modelOf(const Strategist &strategist) const {
  if (!settings.mixture)
    return *models.front();
  auto known =
      std::find_if(strategists().begin(), strategists().end(), [&](const Strategist &s) { return &s == &strategist; });
  return *models[size_t(known - strategists().begin()) % models.size()];
}

ChatRequest LanguageModelPolicy::question(const SearchState &state, const Strategist &strategist) const {
  Prompt prompt;
  addSituation(prompt, facts, state);
  prompt.add(2, std::string("Weigh these counters first: ") + strategist.evidence + "\n");
  addLegalActions(prompt, state);
  history.addTo(prompt);
  if (auto it = droppedLast.find(strategist.name); it != droppedLast.end() && !it->second.empty()) {
    prompt.add(1, "# What you proposed the last time and is not legal\n");
    for (const std::string &line : it->second)
      prompt.add(2, "- " + line + "\n");
  }
  prompt.add(0, promptText("rank-answer.txt"));
  return chatRequest(settings.mixture ? std::string("propose/") + strategist.name : "propose",
                     promptText("rank-role.txt") + strategist.instruction, prompt,
                     {settings.promptTokens, settings.answerTokens}, answerSchema("actions.json"));
}

std::string LanguageModelPolicy::judgeBottleneck(const SearchState &state) {
  if (!settings.judge || !state.measurement || givenUp)
    return "";
  Prompt prompt;
  prompt.add(0, "# GPU\n" + facts.gpu + "\n# Counters of one run\n");
  // The rules' own diagnosis is not told: the judge is to find it independently.
  Measurement counters = *state.measurement;
  counters.bottleneck.clear();
  prompt.add(0, measurementLine(counters) + "\n");
  prompt.add(1, counterLines(counters));
  prompt.add(0, "# Question\nWhat limits this program? One of: " + llvm::join(bottleneckNames(), ", ") +
                    ".\n# Answer\n{\"bottleneck\": \"...\", \"confidence\": 0 to 1, \"reason\": \"one sentence\"}\n");
  ChatRequest request = chatRequest("judge", promptText("judge-role.txt"), prompt,
                                    {settings.promptTokens, settings.answerTokens}, diagnosisSchema());
  auto reply = ask(*models.front(), request);
  llvm::Expected<Diagnosis> diagnosis = reply ? readDiagnosis(reply->text) : reply.takeError();
  if (!diagnosis) {
    failed(request.purpose, diagnosis.takeError());
    return "";
  }
  failuresInARow = 0;
  const std::string &rules = state.measurement->bottleneck;
  bool differs = !rules.empty() && diagnosis->bottleneck != rules;
  ++counts.judged;
  counts.disagreed += differs;
  if (report)
    report({{"event", "judge"},
            {"state", state.key},
            {"rules", rules},
            {"judge", diagnosis->bottleneck},
            {"agrees", !differs},
            {"confidence", diagnosis->confidence},
            {"reason", diagnosis->reason}});
  return differs ? diagnosis->bottleneck : "";
}

std::vector<std::pair<const Strategist *, double>> LanguageModelPolicy::chooseStrategists(const SearchState &state) {
  std::string other = judgeBottleneck(state);
  if (!settings.mixture)
    return {{&generalist(), 1}};
  std::string bottleneck = state.measurement ? state.measurement->bottleneck : "";
  return gate.choose(bottleneck, settings.strategists, other, other.empty() ? 0 : judgeShare);
}

void LanguageModelPolicy::askRound(const SearchState &state) {
  askedStates.insert(state.key);
  Asked round;
  round.recipe = state.variant->recipe;
  round.seconds = state.measurement ? state.measurement->time.seconds : 0;
  std::map<Action, Proposal> merged;
  // All at the same time; what they say counts in the order of their weights, whoever answers first.
  std::vector<std::pair<const Strategist *, double>> chosen = chooseStrategists(state);
  if (givenUp || thinking.hasEnded()) // the judge's was one failure too many, or comes too late
    chosen.clear();
  std::vector<Thinking::Question> questions;
  for (const auto &[strategist, weight] : chosen)
    questions.push_back({&modelOf(*strategist), question(state, *strategist)});
  std::vector<llvm::Expected<ChatReply>> replies = askAll(questions);
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto &[strategist, weight] = chosen[i];
    const ChatRequest &request = questions[i].request;
    llvm::Expected<ChatReply> &reply = replies[i];
    llvm::Expected<ActionAnswer> answer = reply ? readActions(reply->text, state.legal.all()) : reply.takeError();
    if (!answer) {
      droppedLast[strategist->name] = {"the whole answer"};
      failed(request.purpose, answer.takeError());
      continue;
    }
    failuresInARow = 0;
    counts.proposed += unsigned(answer->actions.size());
    counts.dropped += unsigned(answer->dropped.size());
    droppedLast[strategist->name] = answer->dropped;
    json listed = json::array();
    double decay = 1;
    for (const RankedAction &action : answer->actions) {
      Proposal &proposal = merged.try_emplace(action.action, Proposal{action.action, 0, ""}).first->second;
      proposal.prior += weight * std::max(action.confidence, 0.01) * decay;
      if (proposal.reason.empty())
        proposal.reason = std::string(strategist->name) + ": " + action.reason;
      decay *= rankDecay;
      round.proposers[action.action].insert(strategist->name);
      listed.push_back({{"action", action.action.str()}, {"confidence", action.confidence}, {"reason", action.reason}});
    }
    if (report)
      report({{"event", "proposals"},
              {"purpose", request.purpose},
              {"state", state.key},
              {"recipe", recipeText(state.variant->recipe)},
              {"weight", weight},
              {"actions", listed},
              {"dropped", answer->dropped}});
  }
  std::vector<Proposal> all;
  for (auto &[action, proposal] : merged)
    all.push_back(std::move(proposal));
  std::stable_sort(all.begin(), all.end(), [](const Proposal &a, const Proposal &b) { return a.prior > b.prior; });
  if (!all.empty())
    latest = all;
  answers[state.key] = std::move(all);
  asked.push_back(std::move(round));
}

std::vector<Proposal> LanguageModelPolicy::modelProposals(const SearchState &state) const {
  if (auto own = answers.find(state.key); own != answers.end() && !own->second.empty())
    return own->second;
  // Elsewhere: what was said last of the sites that are still there; of a site's values, the one that was named or else
  // the first.
  std::vector<Proposal> result;
  for (const Proposal &said : latest)
    for (const ActionTemplate &legal : state.legal) {
      if (legal.transform != said.action.transform || legal.site != said.action.site || legal.values.empty())
        continue;
      Proposal proposal = said;
      if (std::find(legal.values.begin(), legal.values.end(), said.action.params) == legal.values.end())
        proposal.action.params = legal.values.front();
      bool again =
          std::any_of(result.begin(), result.end(), [&](const Proposal &p) { return p.action == proposal.action; });
      if (!again)
        result.push_back(std::move(proposal));
    }
  return result;
}

/// Whether `recipe` goes on from `base`, and takes `action` after it.
static bool tookAfter(const Recipe &recipe, const Recipe &base, const Action &action) {
  return recipe.size() > base.size() && std::equal(base.begin(), base.end(), recipe.begin()) &&
         std::find(recipe.begin() + long(base.size()), recipe.end(), action) != recipe.end();
}

void LanguageModelPolicy::observe(const SearchState &state, const Measurement &measurement) {
  expert.observe(state, measurement);
  history.observe(state, measurement);
  if (writer)
    writer->observe(state.variant->recipe, measurement);
  for (const Asked &round : asked) {
    std::set<std::string> credited;
    for (const auto &[action, proposers] : round.proposers)
      if (tookAfter(state.variant->recipe, round.recipe, action))
        credited.insert(proposers.begin(), proposers.end());
    for (const std::string &strategist : credited)
      gate.update(strategist, Gate::outcomeOf(measurement, round.seconds));
  }
}

void LanguageModelPolicy::refused(const Recipe &recipe, const std::string &why) {
  history.refused(recipe, why);
  if (writer)
    writer->refused(recipe, why);
}
