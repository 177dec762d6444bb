//===- OutlookTest.cpp - what recipes promise after earlier searches ------===//
#include "../../lib/Propose/DetailCosts.h"
#include "optiml/Propose/MemoryPolicy.h"
#include "gtest/gtest.h"

using namespace optiml;

namespace {

const std::vector<std::string> rowLike = {"axes 1", "global read d1 threads far", "loop d0"};
const std::vector<std::string> scatterLike = {"atomic d0 integer", "axes 2", "global write d0 threads gather"};

std::vector<LearntTrial::Step> stepsOf(const char *text) {
  std::vector<LearntTrial::Step> steps;
  for (const Action &action : llvm::cantFail(parseRecipe(text)))
    steps.push_back({action.transform, "", action.params});
  return steps;
}

/// A kernel on which recipes lost so much.
KernelMemory memoryOf(const char *source, std::vector<std::string> tokens,
                      const std::vector<std::pair<const char *, double>> &trials) {
  KernelMemory memory;
  memory.source = source;
  memory.gpu = "H200";
  memory.backend = "model";
  memory.features = {{{"reuse", 0.5}}, std::move(tokens)};
  for (const auto &[text, loss] : trials)
    memory.trials.push_back({stepsOf(text), loss});
  return memory;
}

std::vector<KernelMemory> twoRows() {
  return {memoryOf("s1", rowLike,
                   {{"grid-stride[k]{x=1}", 4},
                    {"distribute-loop[k/j]{threads=64};unroll[k/w]{factor=4}", 0.6},
                    {"distribute-loop[k/j]{threads=64}", 0.3},
                    {"distribute-loop[k/j]{threads=128}", 0},
                    {"distribute-loop[k/j]{threads=128};unroll[k/w]{factor=2}", 0.2}}),
          memoryOf("s2", rowLike,
                   {{"distribute-loop[k/j]{threads=64};unroll[k/w]{factor=8}", 0.9},
                    {"distribute-loop[k/j]{threads=128};unroll[k/w]{factor=4}", 0.5},
                    {"distribute-loop[k/j]{threads=128}", 0}})};
}

class Nothing : public Proposer {
public:
  llvm::Expected<std::vector<Proposal>> propose(const SearchState &, unsigned) override {
    return std::vector<Proposal>();
  }
  std::vector<OpeningLine> openingBook(const SearchState &) override { return {}; }
};

SearchState stateOf(const Recipe &recipe) {
  SearchState state;
  auto variant = std::make_shared<Variant>();
  variant->recipe = recipe;
  state.variant = variant;
  return state;
}

/// A search on a kernel "other" that has begun; the original takes 8 seconds.
struct Begun {
  explicit Begun(std::vector<std::string> tokens, std::vector<KernelMemory> memories = twoRows())
      : memory(std::move(memories), {{"other", {{{{"reuse", 0.5}}, std::move(tokens)}, {"other", "i", "x"}}}},
               {"s3", "H200", "model"}),
        policy(proposer, memory) {
    tell("", 8);
  }
  void tell(const char *recipe, double seconds) {
    Measurement m;
    m.verdict = Verdict::Correct;
    m.time.seconds = seconds;
    policy.observe(stateOf(llvm::cantFail(parseRecipe(recipe))), m);
  }
  std::vector<size_t> choose(std::vector<const char *> recipes, size_t most = 9) const {
    std::vector<Prospect> prospects;
    for (const char *text : recipes) {
      Recipe recipe = llvm::cantFail(parseRecipe(text));
      prospects.push_back({recipe, recipe, unsigned(prospects.size())});
    }
    return policy.choose(prospects, most);
  }
  std::string tuned(const char *recipe) const {
    return recipeText(policy.tuned(stateOf(llvm::cantFail(parseRecipe(recipe)))));
  }

  Nothing proposer;
  LearntMemory memory;
  MemoryPolicy policy;
};

using Numbers = std::vector<size_t>;

} // namespace

TEST(DetailCosts, ComparesRecipesThatRestOnTheSame) {
  DetailCosts costs;
  for (const KernelMemory &memory : twoRows())
    costs.add(memory.trials, 1);
  costs.solve();
  auto of = [&](const char *text) { return costs.of(stepsOf(text)); };
  EXPECT_GT(of("distribute-loop[k]{threads=64}"), of("distribute-loop[k]{threads=128}") + 0.05);
  EXPECT_GT(of("distribute-loop[k]{threads=128};unroll[k]{factor=4}"), of("distribute-loop[k]{threads=128}") + 0.05);
  EXPECT_EQ(of("grid-stride[k]{x=1}"), 0) << "one kernel alone has it";
  EXPECT_EQ(of("stage-shared[k]"), 0);
}

TEST(DetailCosts, MoreMayBeAdded) {
  DetailCosts costs, more;
  for (const KernelMemory &memory : twoRows()) {
    costs.add(memory.trials, 1);
    more.add(memory.trials, 1);
  }
  more.solve();
  for (int i = 0; i < 3; ++i) {
    KernelMemory memory =
        memoryOf("s", rowLike, {{"distribute-loop[k]{threads=64}", 0}, {"distribute-loop[k]{threads=128}", 1.4}});
    costs.add(memory.trials, 1);
    more.add(memory.trials, 1);
  }
  costs.solve();
  more.solve();
  auto recipe = stepsOf("distribute-loop[k]{threads=64}");
  EXPECT_LT(more.of(recipe), 0);
  EXPECT_DOUBLE_EQ(more.of(recipe), costs.of(recipe));
}

TEST(Variations, DropWhatTrimsAndReplaceWhatWasTried) {
  TriedParameters tried;
  const KernelMemory memory = twoRows()[0];
  for (const LearntTrial &trial : memory.trials)
    addParameters(tried, trial);
  std::vector<std::string> texts;
  for (const Recipe &recipe : variationsOf(
           llvm::cantFail(parseRecipe("distribute-loop[k/j]{threads=64};unroll[k/w]{factor=4};unroll[k/v]{factor=2}")),
           tried))
    texts.push_back(recipeText(recipe));
  EXPECT_EQ(texts,
            (std::vector<std::string>{"distribute-loop[k/j]{threads=128};unroll[k/w]{factor=4};unroll[k/v]{factor=2}",
                                      "distribute-loop[k/j]{threads=64}"}));
}

TEST(Outlook, WhatDidWellOnKernelsLikeThisComesFirstAndWhatDidBadlyNotAtAll) {
  EXPECT_EQ(Begun(rowLike).choose(
                {"grid-stride[other]{x=1}", "coarsen[other]{x=2}", "distribute-loop[other/i]{threads=128}"}),
            (Numbers{2, 1}));
}

TEST(Outlook, OfWhatIsUnlikeAllThatWasTriedEarlierOnesComeFirst) {
  EXPECT_EQ(Begun(rowLike).choose({"coarsen[other]{x=2}", "stage-shared[other/i:x]", "stage-window[other:x]"}),
            (Numbers{0, 1, 2}));
}

TEST(Outlook, WhatIsEvaluatedTogetherDiffers) {
  EXPECT_EQ(Begun(rowLike).choose(
                {"coarsen[other]{x=2}", "coarsen[other]{x=2};qualify-pointers[other]", "stage-window[other:x]"}, 2),
            (Numbers{0, 2}));
}

TEST(Outlook, WhatThisSearchSeesCountsMore) {
  Begun search(rowLike);
  const char *spread = "distribute-loop[other/i]{threads=128};qualify-pointers[other]";
  EXPECT_EQ(search.choose({spread}), (Numbers{0}));
  search.tell("grid-stride[other]{x=1}", 1);
  search.tell("distribute-loop[other/i]{threads=128}", 16);
  EXPECT_EQ(search.choose({spread}), Numbers());
}

TEST(Outlook, AKernelThatTakesLittleTimeIsNotWorthAnEvaluation) {
  KernelFeatures rows = {{{"reuse", 0.5}}, rowLike};
  auto chosenWith = [&](double seconds) {
    LearntMemory memory(twoRows(), {{"k", {rows, {"k"}, {{0, 1}}}}, {"l", {rows, {"l"}, {{1, 1}}}}},
                        {"s3", "H200", "model"});
    Nothing proposer;
    MemoryPolicy policy(proposer, memory);
    Measurement m;
    m.verdict = Verdict::Correct;
    m.time.perLaunch = {seconds, 8};
    m.time.seconds = seconds + 8;
    policy.observe(stateOf({}), m);
    std::vector<Prospect> prospects;
    for (const char *text : {"distribute-loop[k/i]{threads=128}", "distribute-loop[l/i]{threads=128}"}) {
      Recipe recipe = llvm::cantFail(parseRecipe(text));
      prospects.push_back({recipe, recipe, 0});
    }
    return policy.choose(prospects, 2);
  };
  EXPECT_EQ(chosenWith(9), (Numbers{0, 1}));
  EXPECT_EQ(chosenWith(7), (Numbers{1, 0}));
  EXPECT_EQ(chosenWith(0.01), (Numbers{1}));
}

TEST(Outlook, LinesAreTunedAsItPaidElsewhere) {
  Begun search(rowLike);
  EXPECT_EQ(search.tuned("distribute-loop[other/i]{threads=64};unroll[other/w]{factor=16}"),
            "distribute-loop[other/i]{threads=128}");
  EXPECT_EQ(search.tuned("coarsen[other]{x=2};unroll[other/w]{factor=16}"),
            "coarsen[other]{x=2};unroll[other/w]{factor=16}");
}

TEST(Outlook, TheBestIsVariedAsItPaidElsewhere) {
  Begun search(rowLike);
  std::vector<Recipe> variations = search.policy.variations(
      stateOf(llvm::cantFail(parseRecipe("distribute-loop[other/i]{threads=128};unroll[other/w]{factor=16}"))));
  ASSERT_EQ(variations.size(), 1u);
  EXPECT_EQ(recipeText(variations[0]), "distribute-loop[other/i]{threads=128}");
}

TEST(Outlook, WithoutAnythingSimilarThereIsNone) {
  Begun search(scatterLike);
  EXPECT_FALSE(search.policy.knowsAnything());
  EXPECT_TRUE(search.policy.variations(stateOf(llvm::cantFail(parseRecipe("unroll[other/i]{factor=4}")))).empty());
  EXPECT_TRUE(Begun(rowLike).policy.knowsAnything());
}
