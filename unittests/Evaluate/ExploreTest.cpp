//===- ExploreTest.cpp - arguments that lead to code -------------------------===//
#include "../../lib/Evaluate/Verify/Explore.h"
#include "gtest/gtest.h"

using namespace optiml;

namespace {

/// A program of the host alone, whose conditions are told as a real one's are.
class Program {
public:
  using Body = std::function<void(Program &, const std::vector<int64_t> &)>;
  explicit Program(Body body) : body(std::move(body)) {}

  bool less(int64_t a, int64_t b) { return note(a, b, a < b, 1, 0); }
  bool equal(int64_t a, int64_t b) { return note(a, b, a == b, 0, 1); }

  /// The outcomes that were seen, "0T 1F".
  std::string explored(const Arguments &given) {
    ArgumentExplorer explorer(
        [&](const Arguments &arguments, const ArgumentExplorer::ProbeOptions &) { return run(arguments); }, {});
    EXPECT_FALSE(bool(explorer.start(given)));
    const Deadline deadline(20, nullptr);
    EXPECT_FALSE(bool(explorer.explore(deadline, /*thorough=*/true)));
    found = explorer.worthComparing({}, 100);
    std::string text;
    for (const auto &[number, c] : all)
      for (bool outcome : {false, true})
        if (c.sides[outcome].seen())
          text += std::to_string(number) + (outcome ? "T " : "F ");
    return text;
  }
  bool finds(const Arguments &arguments) const {
    return std::find(found.begin(), found.end(), arguments) != found.end();
  }
  unsigned runs = 0;

private:
  llvm::Expected<ProbeResult> run(const Arguments &arguments) {
    std::vector<int64_t> values;
    for (const std::string &argument : arguments)
      values.push_back(integerIn(argument).value_or(0));
    now.clear();
    next = 0;
    ++runs;
    body(*this, values);
    ProgramCoverage coverage;
    coverage.conditions = now;
    for (const auto &[number, c] : now)
      for (bool outcome : {false, true})
        if (c.sides[outcome].nearness > all[number].sides[outcome].nearness)
          all[number].sides[outcome] = c.sides[outcome];
    return ProbeResult{std::move(coverage)};
  }

  /// Numbered in the order in which they are met, which has to be the same in every run.
  bool note(int64_t a, int64_t b, bool outcome, uint32_t leastTrue, uint32_t leastFalse) {
    ConditionState &c = now[next++];
    c.isHost = true;
    c.sides[true].least = leastTrue;
    c.sides[false].least = leastFalse;
    ConditionSide &side = c.sides[outcome];
    side.leads = true;
    side.nearness = ~uint64_t(std::abs(a - b));
    side.left = a;
    side.right = b;
    return outcome;
  }

  Body body;
  std::map<uint32_t, ConditionState> now, all;
  uint32_t next = 0;
  std::vector<Arguments> found;
};

TEST(Explore, AnArgumentThatIsComparedIsFoundAtOnce) {
  Program p([](Program &p, auto &v) { p.less(v[0], 65536); });
  EXPECT_EQ(p.explored({"1000"}), "0F 0T ");
  EXPECT_TRUE(p.finds({"65536"}));
  EXPECT_TRUE(p.finds({"65535"}));
  EXPECT_LT(p.runs, 20u);
}

TEST(Explore, NestedConditionsOnRemaindersAndSizes) {
  Program p([](Program &p, auto &v) {
    if (p.equal(v[0] % 8, 0) && !p.less(v[0], 4096))
      p.less(v[1], v[0]);
  });
  EXPECT_EQ(p.explored({"1003", "7"}), "0F 0T 1F 1T 2F 2T ");
}

TEST(Explore, ProductsQuotientsAndTwoArguments) {
  Program p([](Program &p, auto &v) {
    p.less(v[0] * v[1], 1 << 20);
    p.less((v[0] + 255) / 256, 513);
    p.equal(v[0], v[1]);
  });
  EXPECT_EQ(p.explored({"100", "60"}), "0F 0T 1F 1T 2F 2T ");
}

TEST(Explore, WhatIsNotAnIntegerStays) {
  Program p([](Program &p, auto &v) { p.less(v[1], 5); });
  EXPECT_EQ(p.explored({"fast", "9"}), "0F 0T ");
  EXPECT_TRUE(p.finds({"fast", "4"}));
}

TEST(Explore, AnOutcomeThatIsImpossibleIsGivenUp) {
  Program p([](Program &p, auto &v) { p.less(v[0] * v[0] % 4, 2); });
  EXPECT_EQ(p.explored({"10"}), "0T ");
  EXPECT_LT(p.runs, 200u);
}

TEST(Explore, ALostConditionIsFoundAgainWithTheSameNumberOfElements) {
  Program p([](Program &p, auto &v) {
    if (!p.less(v[0] * v[1], 8193))
      p.less(v[1], 8);
  });
  EXPECT_EQ(p.explored({"60", "45"}), "0F 0T 1F 1T ");
}

} // namespace
