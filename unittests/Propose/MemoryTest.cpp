//===- MemoryTest.cpp - learning from searches, and using it --------------===//
#include "optiml/Propose/LessonText.h"
#include "optiml/Propose/MemoryPolicy.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace optiml;

namespace {

KernelFeatures featuresOf(double reuse, std::vector<std::string> tokens) {
  return {{{"reuse", reuse}}, std::move(tokens)};
}

const std::vector<std::string> rowLike = {"axes 1", "global read d1 threads far", "loop d0"};
const std::vector<std::string> scatterLike = {"atomic d0 integer", "axes 2", "global write d0 threads gather"};

TriedRecipe tried(const char *recipe, double seconds, Verdict verdict = Verdict::Correct,
                  const char *bottleneck = "l1") {
  TriedRecipe t;
  t.recipe = llvm::cantFail(parseRecipe(recipe));
  t.measurement.verdict = verdict;
  t.measurement.time.seconds = seconds;
  t.measurement.time.baseline = 8;
  t.measurement.bottleneck = bottleneck;
  return t;
}

/// What a search on kernel "first", with a loop j over an array a, found out.
std::vector<KernelMemory> learnt() {
  KernelIdentities kernels = {{"first", {featuresOf(0.5, rowLike), {"first", "j", "a"}}}};
  std::vector<TriedRecipe> all = {
      tried("", 8),
      tried("distribute-loop[first/j]{threads=64}", 2, Verdict::Correct, "launch"),
      tried("unroll[first/j]{factor=4}", 8),
      tried("grid-stride[first]{x=1}", 32),
      tried("privatize-atomic[first:a]", 0, Verdict::WrongResult),
      tried("distribute-loop[first/j]{threads=64};unroll[first/warp]{factor=full}", 1, Verdict::Correct, "launch"),
      tried("coarsen[first]{x=2}", 0, Verdict::Timeout)};
  return learn(kernels, {"s1", "H200", "model"}, all, {all[5], all[1]});
}

const Lesson *lessonOn(const std::vector<KernelMemory> &memories, const std::string &transform,
                       const std::string &role) {
  for (const Lesson &l : memories.at(0).lessons)
    if (l.transform == transform && l.role == role)
      return &l;
  return nullptr;
}

/// A kernel as like as it can be, under other names.
LearntMemory memoryFor(const KernelFeatures &features, std::vector<KernelMemory> memories = learnt()) {
  return LearntMemory(std::move(memories), {{"other", {features, {"other", "i", "x"}}}}, {"s2", "H200", "model"});
}

class Fixed : public Proposer {
public:
  llvm::Expected<std::vector<Proposal>> propose(const SearchState &, unsigned) override {
    return std::vector<Proposal>{{{"grid-stride", "other", {{"x", "1"}}}, 1, "a"},
                                 {{"unroll", "other/i", {{"factor", "4"}}}, 1, "b"},
                                 {{"distribute-loop", "other/i", {{"threads", "64"}}}, 1, "c"}};
  }
  std::vector<OpeningLine> openingBook(const SearchState &) override { return {{"own", {}, ""}}; }
};

std::vector<std::string> order(const LearntMemory &memory) {
  Fixed fixed;
  MemoryPolicy policy(fixed, memory);
  SearchState state;
  Measurement m;
  m.bottleneck = "l1";
  state.measurement = &m;
  std::vector<std::string> result;
  for (const Proposal &p : llvm::cantFail(policy.propose(state, 10)))
    result.push_back(p.action.transform);
  return result;
}

} // namespace

TEST(Learn, AnActionIsJudgedByWhatItAdded) {
  auto memories = learnt();
  ASSERT_EQ(memories.size(), 1u);
  const Lesson *spread = lessonOn(memories, "distribute-loop", "/*");
  ASSERT_TRUE(spread);
  EXPECT_EQ(spread->bottleneck, "l1");
  EXPECT_DOUBLE_EQ(spread->gain, 2); // from 8 to 2
  const Lesson *unrolled = lessonOn(memories, "unroll", "/warp");
  ASSERT_TRUE(unrolled);
  EXPECT_EQ(unrolled->bottleneck, "launch"); // of what it was applied to
  EXPECT_DOUBLE_EQ(unrolled->gain, 1);
  EXPECT_DOUBLE_EQ(lessonOn(memories, "unroll", "/*")->gain, 0);
  EXPECT_DOUBLE_EQ(lessonOn(memories, "grid-stride", "")->gain, -2);
  const Lesson *wrong = lessonOn(memories, "privatize-atomic", ":*");
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->rejected, 1);
  EXPECT_FALSE(lessonOn(memories, "coarsen", "")); // the machine may have been busy
  EXPECT_EQ(wrong->reasons.at(verdictName(Verdict::WrongResult)), 1);
}

TEST(Learn, TrialsAreTimedByTheirKernelsLaunches) {
  KernelIdentities kernels = {{"k", {featuresOf(0, rowLike), {"k"}, {{0, 1}}}},
                              {"l", {featuresOf(0, rowLike), {"l"}, {{1, 2}}}}};
  auto timed = [](const char *recipe, double first, double second) {
    TriedRecipe t = tried(recipe, first + 2 * second);
    t.measurement.time.perLaunch = {first, second};
    return t;
  };
  auto memories =
      learn(kernels, {"s", "g", "model"},
            {timed("", 4, 100), timed("a[k]", 2, 100), timed("b[l]", 4, 50), timed("a[k];b[l];c[l]", 1, 25)}, {});
  ASSERT_EQ(memories.size(), 2u);
  auto losses = [](const KernelMemory &memory) {
    std::map<size_t, double> bySteps;
    for (const LearntTrial &trial : memory.trials)
      bySteps[trial.steps.size() + (trial.loss == 0 ? 10 : 0)] = trial.loss;
    return bySteps;
  };
  // k: the original, a alone, and its part of the third; what is about l alone says nothing of it.
  EXPECT_EQ(losses(memories[0]), (std::map<size_t, double>{{0, 2}, {1, 1}, {11, 0}}));
  EXPECT_EQ(losses(memories[1]), (std::map<size_t, double>{{0, 2}, {1, 1}, {12, 0}}));
}

TEST(Learn, StepsTakenTogetherShareTheirGain) {
  KernelIdentities kernels = {{"k", {featuresOf(0, rowLike), {"k"}}}};
  auto memories = learn(kernels, {"s", "g", "model"}, {tried("", 8), tried("a[k];b[k]", 2)}, {});
  ASSERT_EQ(memories.at(0).lessons.size(), 2u);
  EXPECT_DOUBLE_EQ(memories[0].lessons[0].gain, 1);
  EXPECT_DOUBLE_EQ(memories[0].lessons[0].weight, 0.5);
}

TEST(Learn, WinnersBecomeLinesAroundTheStepThatGainedMost) {
  auto memories = learnt();
  ASSERT_EQ(memories[0].lines.size(), 1u); // the second is half as fast as the first
  const OpeningLine &line = memories[0].lines[0].line;
  EXPECT_DOUBLE_EQ(memories[0].lines[0].speedup, 8);
  ASSERT_EQ(line.steps.size(), 2u);
  EXPECT_EQ(line.steps[0].siteGlob, "/*");
  EXPECT_TRUE(line.steps[0].required);
  EXPECT_FALSE(line.steps[1].required);
  EXPECT_EQ(line.steps[1].siteGlob, "/warp");
}

TEST(Learn, WhatLostIsRememberedToo) {
  auto memories = learnt();
  std::map<std::string, double> losses;
  for (const LearntTrial &trial : memories[0].trials)
    losses[trial.steps.empty() ? "" : trial.steps[0].transform + std::to_string(trial.steps.size())] = trial.loss;
  EXPECT_EQ(losses, (std::map<std::string, double>{{"", 3},
                                                   {"distribute-loop1", 1},
                                                   {"distribute-loop2", 0},
                                                   {"unroll1", 3},
                                                   {"grid-stride1", 5},
                                                   {"privatize-atomic1", 4}})) // wrong: worse than the original
      << "a timeout says nothing";
}

TEST(Learn, NothingWithoutTheOriginal) {
  KernelIdentities kernels = {{"k", {featuresOf(0, rowLike), {"k"}}}};
  EXPECT_TRUE(learn(kernels, {"s", "g", "model"}, {tried("a[k]", 2)}, {tried("a[k]", 2)}).empty());
}

TEST(Memory, WhatHelpedOnASimilarKernelComesFirst) {
  EXPECT_EQ(order(memoryFor(featuresOf(0.45, rowLike))),
            (std::vector<std::string>{"distribute-loop", "unroll", "grid-stride"}));
}

TEST(Memory, ManyKernelsOfOneKindDoNotMakeTheNextOneStrange) {
  std::vector<KernelMemory> five;
  for (int i = 0; i < 5; ++i) {
    five.push_back(learnt().front());
    five.back().source = "s" + std::to_string(10 + i);
  }
  std::vector<std::string> more = rowLike;
  more.push_back("barrier d0");
  LearntMemory memory = memoryFor(featuresOf(0.5, more), five);
  ASSERT_EQ(memory.similar("other").size(), 5u);
  EXPECT_GT(memory.similar("other")[0].similarity, 0.7);
}

TEST(Memory, WithoutAnythingSimilarNothingChanges) {
  LearntMemory memory = memoryFor(featuresOf(0.5, scatterLike));
  EXPECT_TRUE(memory.similar("other").empty());
  EXPECT_EQ(order(memory), (std::vector<std::string>{"grid-stride", "unroll", "distribute-loop"}));
  EXPECT_TRUE(memory.lines().empty());
  EXPECT_EQ(lessonText(memory, "other", "l1", 5, 1000), "");
}

TEST(Memory, LittleEvidenceSaysLittle) {
  auto strong = learnt();
  for (Lesson &l : strong[0].lessons)
    l.weight *= 20;
  Action action{"distribute-loop", "other/i", {{"threads", "64"}}};
  auto weak = memoryFor(featuresOf(0.5, rowLike)).expect(action, "l1");
  auto sure = memoryFor(featuresOf(0.5, rowLike), strong).expect(action, "l1");
  EXPECT_GT(weak.gain, 0.3);
  EXPECT_LT(weak.gain, 1);
  EXPECT_GT(sure.gain, 1.7);
  EXPECT_LT(sure.gain, 2);
}

TEST(Memory, LessonsFromElsewhereCountLess) {
  Action action{"distribute-loop", "other/i", {{"threads", "64"}}};
  double here = memoryFor(featuresOf(0.5, rowLike)).expect(action, "l1").gain;
  auto abroad = learnt();
  abroad[0].gpu = "H100";
  EXPECT_LT(memoryFor(featuresOf(0.5, rowLike), abroad).expect(action, "l1").gain, here);
  EXPECT_LT(memoryFor(featuresOf(0.5, rowLike)).expect(action, "dram").gain, here);
  action.params["threads"] = "128";
  EXPECT_LT(memoryFor(featuresOf(0.5, rowLike)).expect(action, "l1").gain, here);
}

TEST(Memory, LinesArePlayedFirstOnTheKernelTheyFit) {
  LearntMemory memory = memoryFor(featuresOf(0.5, rowLike));
  Fixed fixed;
  MemoryPolicy policy(fixed, memory);
  auto book = policy.openingBook({});
  ASSERT_EQ(book.size(), 3u);
  EXPECT_EQ(book[0].kernel, "other");
  constexpr size_t first = std::size(preparations);
  ASSERT_EQ(book[0].steps.size(), first + 2);
  EXPECT_EQ(book[0].steps[0].transform, preparations[0]) << "this kernel may need what that one did not";
  EXPECT_FALSE(book[0].steps[0].required);
  EXPECT_EQ(book[0].steps[first].transform, "distribute-loop");
  EXPECT_EQ(book[0].steps[first + 1].transform, "unroll");
  EXPECT_EQ(book[1].name, "own");
  ASSERT_EQ(book[2].steps.size(), first + 1) << "what the recipe rests on, without the unrolling";
  EXPECT_EQ(book[2].steps[first].transform, "distribute-loop");
}

TEST(Memory, RecipesOfKernelsThatAreOnlyAlikeComeAfterTheBook) {
  LearntMemory memory = memoryFor(featuresOf(1.3, rowLike)); // another reuse
  ASSERT_EQ(memory.similar("other").size(), 1u);
  ASSERT_LT(memory.similar("other")[0].similarity, 0.8);
  Fixed fixed;
  MemoryPolicy policy(fixed, memory);
  auto book = policy.openingBook({});
  ASSERT_EQ(book.size(), 3u);
  EXPECT_EQ(book[0].name, "own");
  EXPECT_EQ(book[1].kernel, "other");
}

TEST(Memory, TheBookIsPlayedByTurnsWithWhatIsRemembered) {
  auto one = learnt()[0], two = one;
  two.source = "s0";
  LearntMemory memory = memoryFor(featuresOf(0.5, rowLike), {one, two});
  Fixed fixed;
  MemoryPolicy policy(fixed, memory);
  auto book = policy.openingBook({});
  ASSERT_EQ(book.size(), 4u);
  EXPECT_EQ(book[0].kernel, "other");
  EXPECT_EQ(book[1].name, "own") << "not after all that is remembered";
  EXPECT_EQ(book[2].kernel, "other");
}

TEST(Memory, TheOrderInTheStoreDoesNotMatter) {
  auto one = learnt()[0], two = one;
  two.source = "s0";
  two.lessons[0].gain = -1;
  Action action{"distribute-loop", "other/i", {{"threads", "64"}}};
  EXPECT_EQ(memoryFor(featuresOf(0.5, rowLike), {one, two}).expect(action, "l1").gain,
            memoryFor(featuresOf(0.5, rowLike), {two, one}).expect(action, "l1").gain);
}

TEST(LessonText, TellsTheMostInWholeLines) {
  LearntMemory memory = memoryFor(featuresOf(0.5, rowLike));
  std::string text = lessonText(memory, "other", "l1", 10, 10000);
  EXPECT_EQ(text.find("- recipe, 8.00 times faster"), 0u) << text;
  EXPECT_NE(text.find("- distribute-loop[/*]{threads=64} against l1: 4.00 times faster"), std::string::npos) << text;
  EXPECT_NE(text.find("- grid-stride[]{x=1} against l1: 4.00 times slower"), std::string::npos) << text;
  EXPECT_NE(text.find("rejected (wrong-result)"), std::string::npos) << text;
  std::string brief = lessonText(memory, "other", "l1", 10, 200);
  EXPECT_LE(brief.size(), 200u);
  EXPECT_TRUE(brief.empty() || brief.back() == '\n');
}
