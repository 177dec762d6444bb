//===- ExpertPolicyTest.cpp - the built-in proposer -----------------------===//
#include "optiml/Propose/ExpertPolicy.h"
#include "optiml/Search/Search.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <set>

using namespace optiml;

namespace {

Params shape(int x, int y) { return {{"x", std::to_string(x)}, {"y", std::to_string(y)}}; }

Params tile(const std::string &style, int x, int y) {
  Params params = shape(x, y);
  params["style"] = style;
  return params;
}

/// The legal actions of a naive matrix product after some steps, as the transforms give them.
std::vector<ActionTemplate> legalAfter(const Recipe &recipe) {
  std::set<std::string> done;
  for (const Action &action : recipe)
    done.insert(action.transform);
  std::vector<ActionTemplate> legal;
  auto offer = [&](bool when, ActionTemplate site) {
    if (when && !done.count(site.transform))
      legal.push_back(std::move(site));
  };
  offer(true, {"promote-accumulator", "sgemm/k:c", {{}}});
  offer(true, {"block-shape", "sgemm", {shape(32, 8), shape(16, 16)}});
  offer(done.count("block-shape") && !done.count("stage-shared"),
        {"coarsen", "sgemm", {tile("blocked", 8, 8), tile("strided", 8, 8), tile("blocked", 4, 4)}});
  offer(done.count("block-shape"), {"stage-shared", "sgemm/k:a+b", {{{"tile", "16"}}, {{"tile", "8"}}}});
  offer(done.count("stage-shared"), {"unroll", "sgemm/k/kk", {{{"factor", "full"}}, {{"factor", "4"}}}});
  offer(!done.count("stage-shared"), {"unroll", "sgemm/k", {{{"factor", "4"}}, {{"factor", "8"}}}});
  offer(true, {"qualify-pointers", "sgemm", {{}}});
  return legal;
}

SearchState stateAfter(const Recipe &recipe) {
  SearchState state;
  auto variant = std::make_shared<Variant>();
  variant->recipe = recipe;
  state.key = recipeText(recipe);
  state.variant = variant;
  state.legal = legalAfter(recipe);
  return state;
}

const Proposal *find(const std::vector<Proposal> &proposals, const std::string &transform) {
  for (const Proposal &proposal : proposals)
    if (proposal.action.transform == transform)
      return &proposal;
  return nullptr;
}

} // namespace

TEST(ExpertPolicy, ProposesOnlyLegalActionsBestFirstWithReasons) {
  ExpertPolicy policy;
  SearchState state = stateAfter({});
  auto proposals = llvm::cantFail(policy.propose(state, 100));
  size_t values = 0;
  for (const ActionTemplate &site : state.legal)
    values += site.values.size();
  EXPECT_EQ(proposals.size(), values);
  for (size_t i = 0; i < proposals.size(); ++i) {
    EXPECT_FALSE(proposals[i].reason.empty());
    EXPECT_GT(proposals[i].prior, 0);
    if (i)
      EXPECT_LE(proposals[i].prior, proposals[i - 1].prior);
  }
  EXPECT_EQ(llvm::cantFail(policy.propose(state, 2)).size(), 2u);
}

TEST(ExpertPolicy, TheBottleneckDecides) {
  ExpertPolicy policy;
  SearchState state =
      stateAfter(llvm::cantFail(parseRecipe("promote-accumulator[sgemm/k:c];block-shape[sgemm]{x=16}")));
  Measurement l1, latency;
  l1.bottleneck = "l1";
  l1.time.seconds = 1;
  l1.counters["time.l1"] = 0.82;
  latency.bottleneck = "latency";
  state.measurement = &l1;
  auto againstL1 = llvm::cantFail(policy.propose(state, 100));
  state.measurement = &latency;
  auto againstLatency = llvm::cantFail(policy.propose(state, 100));
  EXPECT_EQ(againstL1[0].action.transform, "coarsen");
  EXPECT_NE(againstL1[0].reason.find("l1 (82 % of the time)"), std::string::npos) << againstL1[0].reason;
  EXPECT_GT(find(againstLatency, "unroll")->prior, find(againstL1, "unroll")->prior);
  EXPECT_NE(find(againstL1, "stage-shared")->reason.find("better after coarsen"), std::string::npos);
}

TEST(ExpertPolicy, AnUnknownTransformStillGetsAChance) {
  ExpertPolicy policy;
  SearchState state = stateAfter({});
  state.legal.push_back({"fuse-everything", "sgemm", {{}}});
  auto proposals = llvm::cantFail(policy.propose(state, 100));
  ASSERT_TRUE(find(proposals, "fuse-everything"));
  EXPECT_GT(find(proposals, "fuse-everything")->prior, 0);
}

TEST(ExpertPolicy, TheBookFollowsTheBottleneck) {
  ExpertPolicy policy;
  SearchState root = stateAfter({});
  for (const char *bottleneck : {"dram", "fp32", "atomic", "issue"}) {
    Measurement m;
    m.bottleneck = bottleneck;
    root.measurement = &m;
    std::vector<OpeningLine> book = policy.openingBook(root);
    EXPECT_EQ(book.size(), expertLines().size());
    bool seen = true; // lines against it come first
    for (const OpeningLine &line : book) {
      auto known =
          std::find_if(expertLines().begin(), expertLines().end(), [&](auto &l) { return l.line.name == line.name; });
      ASSERT_NE(known, expertLines().end());
      bool against = std::count(known->bottlenecks.begin(), known->bottlenecks.end(), bottleneck) > 0;
      EXPECT_TRUE(seen || !against) << line.name << " against " << bottleneck;
      seen = against;
    }
  }
  root.measurement = nullptr;
  EXPECT_EQ(policy.openingBook(root).size(), expertLines().size());
}

TEST(ExpertPolicy, TheBookHoldsTheRegisterTiledMatrixProduct) {
  struct Space : ActionSpace {
    llvm::Expected<SearchState> root() override { return stateAfter({}); }
    llvm::Expected<SearchState> apply(const SearchState &state, const Action &action) override {
      Recipe recipe = state.variant->recipe;
      recipe.push_back(action);
      return stateAfter(recipe);
    }
  } space;
  struct Judge : Evaluator {
    Measurement evaluate(const Variant &variant, Fidelity) override {
      Measurement m;
      m.verdict = Verdict::Correct;
      m.bottleneck = "l1";
      m.time.baseline = 1;
      m.time.seconds = 1 - 0.1 * double(variant.recipe.size());
      m.reward = double(variant.recipe.size());
      return m;
    }
  } judge;
  ExpertPolicy policy;
  SearchSettings settings;
  settings.evaluations = 1;
  settings.seconds = 0;
  SearchResult result = llvm::cantFail(runSearch(space, policy, judge, settings));
  EXPECT_EQ(recipeText(result.best.recipe),
            "promote-accumulator[sgemm/k:c];block-shape[sgemm]{x=16,y=16};coarsen[sgemm]{style=blocked,x=8,y=8};"
            "stage-shared[sgemm/k:a+b]{tile=8};unroll[sgemm/k/kk]{factor=full};qualify-pointers[sgemm]");
}
