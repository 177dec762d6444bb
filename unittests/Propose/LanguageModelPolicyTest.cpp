//===- LanguageModelPolicyTest.cpp - language models propose --------------===//
#include "optiml/Propose/LanguageModelPolicy.h"
#include "ScriptedModel.h"
#include "gtest/gtest.h"
#include <condition_variable>
#include <set>

using namespace optiml;

namespace {

ActionTemplate site(const char *transform, const char *name, std::vector<Params> values) {
  return {transform, name, std::move(values)};
}

/// A program whose legal actions shrink as they are taken.
SearchState stateAfter(const std::string &recipe, const Measurement *measurement) {
  SearchState state;
  auto variant = std::make_shared<Variant>();
  variant->recipe = llvm::cantFail(parseRecipe(recipe));
  state.variant = variant;
  state.key = "key:" + recipe;
  state.measurement = measurement;
  for (const ActionTemplate &legal :
       {site("coarsen", "k", {{{"x", "4"}}, {{"x", "2"}}}), site("stage-shared", "k/i:a", {{{"tile", "16"}}}),
        site("qualify-pointers", "k", {{}})}) {
    bool taken = std::any_of(variant->recipe.begin(), variant->recipe.end(),
                             [&](const Action &action) { return action.transform == legal.transform; });
    if (!taken)
      state.legal.push_back(legal);
  }
  return state;
}

Measurement measured(double seconds, const char *bottleneck = "l1") {
  Measurement m;
  m.verdict = Verdict::Correct;
  m.time.baseline = 8e-6;
  m.time.seconds = seconds;
  m.bottleneck = bottleneck;
  m.counters["l1_utilization"] = 0.9;
  return m;
}

SearchFacts facts() {
  SearchFacts result;
  result.gpu = "a GPU with 132 multiprocessors";
  KernelFacts kernel;
  kernel.name = "k";
  kernel.source = "__global__ void k(float *a) { a[threadIdx.x] = 0; }";
  kernel.launches = {"grid (4, 1, 1), block (256, 1, 1)"};
  result.kernels.push_back(kernel);
  return result;
}

std::string answer(const std::string &actions) { return "{\"actions\": [" + actions + "]}"; }
const char *qualify =
    R"({"transform": "qualify-pointers", "site": "k", "params": {}, "confidence": 1, "reason": "no aliasing"})";

LanguageModelSettings plain() {
  LanguageModelSettings settings;
  settings.mixture = settings.judge = false;
  return settings;
}

const Measurement baseline = measured(8e-6);

/// A policy that has seen the baseline.
struct Asked {
  explicit Asked(ScriptedModel::Script script, LanguageModelSettings settings = plain())
      : model(std::move(script)),
        policy(
            expert, {&model}, facts(), settings, [this](const nlohmann::json &event) { events.push_back(event); },
            [this](const std::string &why) { warnings.push_back(why); }) {
    policy.observe(stateAfter("", &baseline), baseline);
  }
  std::vector<Proposal> propose(const std::string &recipe = "", const Measurement *m = &baseline) {
    return llvm::cantFail(policy.propose(stateAfter(recipe, m), 100));
  }
  ExpertPolicy expert;
  ScriptedModel model;
  std::vector<nlohmann::json> events;
  std::vector<std::string> warnings;
  LanguageModelPolicy policy;
};

double priorOf(const std::vector<Proposal> &proposals, const char *transform) {
  double best = 0;
  for (const Proposal &p : proposals)
    if (p.action.transform == transform)
      best = std::max(best, p.prior);
  return best;
}

} // namespace

TEST(LanguageModelPolicy, WhatTheModelRanksFirstComesFirst) {
  ExpertPolicy expert;
  auto before = llvm::cantFail(expert.propose(stateAfter("", &baseline), 100));
  EXPECT_NE(before.front().action.transform, "qualify-pointers");
  Asked asked([](const ChatRequest &) { return answer(qualify); });
  auto proposals = asked.propose();
  EXPECT_EQ(proposals.front().action.transform, "qualify-pointers");
  EXPECT_EQ(proposals.front().reason, "all: no aliasing");
  // λ is the model's share, and the expert's actions stay.
  EXPECT_GT(proposals.front().prior, 0.6);
  EXPECT_LT(proposals.front().prior, 0.8);
  EXPECT_GT(priorOf(proposals, "coarsen"), 0.05);
  EXPECT_EQ(proposals.size(), 4u);
}

TEST(LanguageModelPolicy, FusionIsDeterministicAndNormalizedOverSites) {
  Action a{"a", "k", {}}, b1{"b", "k", {{"v", "1"}}}, b2{"b", "k", {{"v", "2"}}};
  std::vector<Proposal> expert = {{a, 3, "expert"}, {b1, 1, "expert"}, {b2, 0.8, "expert"}},
                        model = {{b2, 0.5, "model"}};
  auto fused = fusePriors(expert, model, 0.5);
  ASSERT_EQ(fused.size(), 3u);
  EXPECT_EQ(fused[0].action, b2);
  EXPECT_DOUBLE_EQ(fused[0].prior, 0.5 + 0.5 * 0.8 / 4);
  EXPECT_EQ(fused[0].reason, "model");
  EXPECT_DOUBLE_EQ(fused[1].prior, 0.5 * 3 / 4);
  EXPECT_DOUBLE_EQ(fusePriors(expert, {}, 0.5)[0].prior, 0.75); // nothing was said
  EXPECT_DOUBLE_EQ(fusePriors({}, model, 0.5)[0].prior, 1);
}

TEST(LanguageModelPolicy, IsAskedAtTheOriginalAndAtEveryNewBestOnly) {
  Asked asked([](const ChatRequest &) { return answer(qualify); });
  asked.propose();
  asked.propose();
  EXPECT_EQ(asked.model.questions.size(), 1u);
  asked.propose("coarsen[k]{x=2}");
  EXPECT_EQ(asked.model.questions.size(), 1u);
  Measurement faster = measured(4e-6);
  asked.policy.observe(stateAfter("coarsen[k]{x=2}", &faster), faster);
  asked.propose("coarsen[k]{x=2}", &faster);
  EXPECT_EQ(asked.model.questions.size(), 2u);
  EXPECT_NE(asked.model.questions[1].messages[1].text.find("Fastest so far: coarsen[k]{x=2}"), std::string::npos);
}

TEST(LanguageModelPolicy, WhatWasSaidLastCountsWhereNobodyIsAsked) {
  Asked asked([](const ChatRequest &) { return answer(qualify); });
  asked.propose();
  EXPECT_EQ(asked.propose("coarsen[k]{x=4}").front().action.transform, "qualify-pointers");
}

TEST(LanguageModelPolicy, WhatIsNotLegalIsCountedAndToldTheNextTime) {
  Asked asked([](const ChatRequest &) {
    return answer(std::string(qualify) + R"(, {"transform": "fly", "site": "k", "params": {"height": 3}})");
  });
  asked.propose();
  EXPECT_EQ(asked.policy.statistics().proposed, 1u);
  EXPECT_EQ(asked.policy.statistics().dropped, 1u);
  Measurement faster = measured(4e-6);
  asked.policy.observe(stateAfter("coarsen[k]{x=2}", &faster), faster);
  asked.propose("coarsen[k]{x=2}", &faster);
  EXPECT_NE(asked.model.questions.back().messages[1].text.find("fly[k]{\"height\":3}: no such transform"),
            std::string::npos)
      << asked.model.questions.back().messages[1].text;
}

TEST(LanguageModelPolicy, WithoutAnswersTheExpertGoesOnAndOneRemarkSaysSo) {
  ExpertPolicy expert;
  Asked asked([](const ChatRequest &) { return ""; });
  double seconds = 8e-6;
  std::string recipe;
  for (int i = 0; i < 8; ++i) {
    Measurement m = measured(seconds);
    auto state = stateAfter(recipe, &m);
    state.key += std::to_string(i);
    asked.policy.observe(state, m);
    auto proposals = llvm::cantFail(asked.policy.propose(state, 100)),
         wanted = llvm::cantFail(expert.propose(state, 100));
    ASSERT_EQ(proposals.size(), wanted.size());
    EXPECT_EQ(proposals.front().action, wanted.front().action);
    recipe = "coarsen[k]{x=2}";
    seconds /= 2;
  }
  EXPECT_EQ(asked.warnings.size(), 1u);
  EXPECT_EQ(asked.model.questions.size(), 4u);
}

TEST(LanguageModelPolicy, TheModelAloneHasNoOpeningBook) {
  LanguageModelSettings settings = plain();
  settings.expert = false;
  Asked asked([](const ChatRequest &) { return answer(qualify); }, settings);
  EXPECT_TRUE(asked.policy.openingBook(stateAfter("", &baseline)).empty());
  auto proposals = asked.propose();
  ASSERT_EQ(proposals.size(), 1u);
  EXPECT_DOUBLE_EQ(proposals[0].prior, 1);
}

TEST(LanguageModelPolicy, TheSameAnswersGiveTheSameQuestionsAndProposals) {
  auto once = [] {
    LanguageModelSettings settings;
    Asked asked([](const ChatRequest &) { return answer(qualify); }, settings);
    std::string all;
    for (const Proposal &p : asked.propose())
      all += p.action.str() + std::to_string(p.prior);
    std::set<std::string> questions; // those that are asked at the same time arrive in any order
    for (const ChatRequest &question : asked.model.questions)
      questions.insert(question.purpose + question.messages[0].text + question.messages[1].text);
    for (const std::string &question : questions)
      all += question;
    return all;
  };
  EXPECT_EQ(once(), once());
}

TEST(Mixture, StrategistsAreAskedByTheirWeightAgainstTheBottleneck) {
  LanguageModelSettings settings = plain();
  settings.mixture = true;
  Asked asked([](const ChatRequest &) { return answer(qualify); }, settings);
  asked.propose();
  ASSERT_EQ(asked.model.questions.size(), 3u);
  auto first = llvm::find_if(asked.events, [](const nlohmann::json &event) { return event["event"] == "proposals"; });
  ASSERT_NE(first, asked.events.end());
  EXPECT_EQ((*first)["purpose"], "propose/memory"); // l1
  EXPECT_NE(asked.model.questions[0].messages[0].text, asked.model.questions[1].messages[0].text);
}

TEST(Mixture, StrategistsAreAskedAtTheSameTimeAndHeardInTheOrderOfTheirWeights) {
  // Each answers only when all have been asked, the first one last.
  std::mutex mutex;
  std::condition_variable changed;
  unsigned inside = 0, answered = 0;
  struct Meeting : LanguageModel {
    std::function<std::string(const ChatRequest &)> script;
    std::string name() const override { return "meeting"; }
    llvm::Expected<ChatReply> ask(const ChatRequest &request) override {
      ChatReply reply;
      reply.text = script(request);
      reply.stop = "end";
      return reply;
    }
  } model;
  model.script = [&](const ChatRequest &request) {
    std::unique_lock lock(mutex);
    ++inside;
    changed.notify_all();
    bool isFirst = request.purpose == "propose/memory";
    bool met =
        changed.wait_for(lock, std::chrono::seconds(30), [&] { return inside == 3 && (!isFirst || answered == 2); });
    ++answered;
    changed.notify_all();
    return met ? answer(qualify) : "";
  };
  LanguageModelSettings settings;
  settings.judge = settings.kernels = false;
  ExpertPolicy expert;
  std::vector<std::string> heard;
  LanguageModelPolicy policy(expert, {&model}, facts(), settings, [&](const nlohmann::json &event) {
    if (event["event"] == "proposals")
      heard.push_back(event["purpose"]);
  });
  policy.observe(stateAfter("", &baseline), baseline);
  llvm::cantFail(policy.propose(stateAfter("", &baseline), 100));
  ASSERT_EQ(heard.size(), 3u);
  EXPECT_EQ(heard[0], "propose/memory") << "the heaviest against l1, though it answered last";
}

TEST(Mixture, TheGateLearnsFromWhatBecameOfProposals) {
  Gate gate;
  EXPECT_STREQ(gate.choose("l1", 1)[0].first->name, "memory");
  for (int i = 0; i < 6; ++i) {
    gate.update("memory", 0);
    gate.update("instruction", 1);
  }
  EXPECT_STREQ(gate.choose("l1", 1)[0].first->name, "instruction");
  for (int i = 0; i < 100; ++i)
    gate.update("memory", 0);
  EXPECT_DOUBLE_EQ(gate.fare("memory"), 0.2); // nobody is silenced for good
  double sum = 0;
  for (const auto &[strategist, weight] : gate.choose("dram", 3))
    sum += weight;
  EXPECT_DOUBLE_EQ(sum, 1);
  EXPECT_DOUBLE_EQ(Gate::outcomeOf(measured(4e-6), 8e-6), 1);
  EXPECT_DOUBLE_EQ(Gate::outcomeOf(measured(8e-6), 8e-6), 0.5);
  EXPECT_DOUBLE_EQ(Gate::outcomeOf(Measurement(), 8e-6), 0);
}

TEST(Mixture, ProposalsThatFailedCountAgainstWhoMadeThem) {
  LanguageModelSettings settings = plain();
  settings.mixture = true;
  settings.strategists = 1;
  Asked asked([](const ChatRequest &) { return answer(qualify); }, settings);
  asked.propose();
  EXPECT_EQ(asked.model.questions.back().purpose, "propose/memory");
  Measurement wrong;
  wrong.verdict = Verdict::WrongResult;
  for (const char *more : {"", ";coarsen[k]{x=4}", ";coarsen[k]{x=2}", ";stage-shared[k/i:a]{tile=16}"})
    asked.policy.observe(stateAfter(std::string("qualify-pointers[k]") + more, &wrong), wrong);
  Measurement faster = measured(4e-6);
  asked.policy.observe(stateAfter("coarsen[k]{x=2}", &faster), faster);
  asked.propose("coarsen[k]{x=2}", &faster);
  EXPECT_NE(asked.model.questions.back().purpose, "propose/memory");
}

TEST(Mixture, OneWhoNeverAnswersDoesNotEndTheOthers) {
  LanguageModelSettings settings = plain();
  settings.mixture = true;
  Asked asked([](const ChatRequest &request) { return request.purpose == "propose/memory" ? "no" : answer(qualify); },
              settings);
  double seconds = 4e-6;
  for (int i = 0; i < 6; ++i, seconds /= 2) { // each one a new best
    Measurement m = measured(seconds);
    SearchState state = stateAfter("coarsen[k]{x=2}", &m);
    state.key += std::to_string(i);
    asked.policy.observe(state, m);
    EXPECT_EQ(llvm::cantFail(asked.policy.propose(state, 100)).front().action.transform, "qualify-pointers") << i;
  }
  EXPECT_TRUE(asked.warnings.empty());
  EXPECT_GE(asked.policy.statistics().failedQuestions, 5u);
  EXPECT_EQ(asked.policy.statistics().questions, 18u);
}

TEST(Kernels, AreAskedForOnlyWhereTheyAreWanted) {
  for (bool wanted : {true, false}) {
    LanguageModelSettings settings = plain();
    settings.kernels = wanted;
    settings.writer.repairs = 0;
    ScriptedModel model([](const ChatRequest &) { return "{}"; });
    ExpertPolicy expert;
    LanguageModelPolicy policy(expert, {&model}, facts(), settings, {}, {}, std::make_shared<KernelTexts>());
    policy.observe(stateAfter("", &baseline), baseline);
    policy.recipes();
    EXPECT_EQ(model.count("kernel/") > 0, wanted);
  }
}

TEST(Judge, WhoIsAskedFollowsItInPart) {
  // Against l1 three are heavier than who looks at the algorithm; against atomics nobody is.
  for (const char *said : {"l1", "atomic"}) {
    LanguageModelSettings settings = plain();
    settings.mixture = settings.judge = true;
    Asked asked(
        [&](const ChatRequest &request) {
          return request.purpose == "judge"
                     ? std::string(R"({"bottleneck": ")") + said + R"(", "confidence": 1, "reason": "r"})"
                     : answer(qualify);
        },
        settings);
    asked.propose();
    EXPECT_EQ(asked.model.count("propose/algorithm"), said == std::string("atomic") ? 1u : 0u) << said;
    EXPECT_EQ(asked.model.count("propose/memory"), 1u) << "the rules' diagnosis counts more";
  }
}

TEST(Judge, DisagreementWithTheRulesIsRecorded) {
  LanguageModelSettings settings = plain();
  settings.judge = true;
  Asked asked(
      [](const ChatRequest &request) {
        return request.purpose == "judge" ? R"({"bottleneck": "dram", "confidence": 0.7, "reason": "bytes"})"
                                          : answer(qualify);
      },
      settings);
  asked.propose();
  EXPECT_EQ(asked.policy.statistics().judged, 1u);
  EXPECT_EQ(asked.policy.statistics().disagreed, 1u);
  ASSERT_EQ(asked.events.front()["event"], "judge");
  EXPECT_EQ(asked.events.front()["rules"], "l1");
  EXPECT_EQ(asked.events.front()["agrees"], false);
  // The rules' verdict is not told to the judge.
  EXPECT_EQ(asked.model.questions.front().messages[1].text.find("limited by"), std::string::npos);
}
