//===- IntExprTest.cpp - integer expressions ------------------------------===//
#include "optiml/Core/IntExpr.h"
#include "gtest/gtest.h"
#include <limits>
#include <map>
#include <random>

using namespace optiml;

static std::optional<int64_t> evaluate(const std::string &text, const std::map<std::string, int64_t> &names = {}) {
  auto parsed = IntExpr::parse(text);
  EXPECT_TRUE(bool(parsed)) << text;
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return {};
  }
  return parsed->evaluate([&](const std::string &name) -> std::optional<int64_t> {
    auto it = names.find(name);
    return it == names.end() ? std::nullopt : std::optional<int64_t>(it->second);
  });
}

TEST(IntExpr, FollowsCPrecedence) {
  EXPECT_EQ(evaluate("1 + 2 * 3"), 7);
  EXPECT_EQ(evaluate("(1 + 2) * 3"), 9);
  EXPECT_EQ(evaluate("10 - 3 - 2"), 5);
  EXPECT_EQ(evaluate("-7 / 2"), -3);
  EXPECT_EQ(evaluate("-7 % 2"), -1);
  EXPECT_EQ(evaluate("1 < 2 == 1"), 1);
  EXPECT_EQ(evaluate("0 || 2 && 3"), 1);
  EXPECT_EQ(evaluate("!3 + 1"), 1);
  EXPECT_EQ(evaluate("1 != 2"), 1);
}

TEST(IntExpr, KnowsLaunchNamesAndFunctions) {
  EXPECT_EQ(evaluate("ceildiv(grid.x * block.x, 64)", {{"grid.x", 10}, {"block.x", 16}}), 3);
  EXPECT_EQ(evaluate("min(n, 3) + max(n, 3)", {{"n", 5}}), 8);
  EXPECT_EQ(evaluate("aligned(p, 16)", {{"p", 4096}}), 1);
  EXPECT_EQ(evaluate("aligned(p, 16)", {{"p", 4100}}), 0);
  EXPECT_EQ(evaluate("disjoint(p, 16, q, 16)", {{"p", 0}, {"q", 16}}), 1);
  EXPECT_EQ(evaluate("disjoint(p, 17, q, 16)", {{"p", 0}, {"q", 16}}), 0);
  EXPECT_EQ(evaluate("disjoint(p, 4, q, 4)", {{"p", 100}, {"q", 0}}), 1);
  // Where the allocations begin, whatever the pointers are.
  EXPECT_EQ(evaluate("apart(p, s.q)", {{"p", 8}, {"s.q", 9}, {allocationOf("p"), 0}, {allocationOf("s.q"), 0}}), 0);
  EXPECT_EQ(evaluate("apart(p, q)", {{allocationOf("p"), 0}, {allocationOf("q"), 64}}), 1);
  EXPECT_FALSE(evaluate("apart(p, q)", {{"p", 0}, {"q", 64}}));
  // From the pointer to where its allocation ends.
  EXPECT_EQ(evaluate("holds(p, 4 * 16)", {{"p", 64}, {allocationEndOf("p"), 128}}), 1);
  EXPECT_EQ(evaluate("holds(p, 4 * 16)", {{"p", 68}, {allocationEndOf("p"), 128}}), 0);
  EXPECT_FALSE(evaluate("holds(p, 4)", {{"p", 64}}));
  // All of an allocation.
  EXPECT_EQ(evaluate("within(p, 64)", {{"p", 64}, {allocationOf("p"), 64}, {allocationEndOf("p"), 128}}), 1);
  EXPECT_EQ(evaluate("within(p, 63)", {{"p", 64}, {allocationOf("p"), 64}, {allocationEndOf("p"), 128}}), 0);
  EXPECT_EQ(evaluate("within(p, 64)", {{"p", 64}, {allocationOf("p"), 60}, {allocationEndOf("p"), 128}}), 0);
  EXPECT_FALSE(evaluate("within(p, 64)", {{"p", 64}, {allocationEndOf("p"), 128}}));
}

TEST(IntExpr, GivesNothingRatherThanAWrongValue) {
  EXPECT_FALSE(evaluate("1 / 0"));
  EXPECT_FALSE(evaluate("1 % (2 - 2)"));
  EXPECT_FALSE(evaluate("unknown + 1"));
  EXPECT_FALSE(evaluate("9223372036854775807 + 1"));
  EXPECT_FALSE(evaluate("-9223372036854775808 / -1"));
  EXPECT_FALSE(evaluate("-9223372036854775808 % -1"));
  EXPECT_FALSE(evaluate("-n", {{"n", std::numeric_limits<int64_t>::min()}}));
  EXPECT_FALSE(evaluate("ceildiv(5, 0)"));
}

TEST(IntExpr, ShortCircuitsAsCDoes) {
  EXPECT_EQ(evaluate("n != 0 && 10 % n == 0", {{"n", 0}}), 0);
  EXPECT_EQ(evaluate("n == 0 || 10 % n == 0", {{"n", 0}}), 1);
}

TEST(IntExpr, SaysWhereTheMistakeIs) {
  auto message = [](const char *text) {
    auto parsed = IntExpr::parse(text);
    return parsed ? std::string("parsed") : llvm::toString(parsed.takeError());
  };
  EXPECT_NE(message("1 +").find("expected a value at column 4"), std::string::npos) << message("1 +");
  EXPECT_NE(message("(1").find("expected ')'"), std::string::npos);
  EXPECT_NE(message("pow(1, 2)").find("unknown function"), std::string::npos);
  EXPECT_NE(message("min(1)").find("wrong number of arguments"), std::string::npos);
  EXPECT_NE(message("1 2").find("expected an operator"), std::string::npos);
  EXPECT_NE(message("9223372036854775808").find("64 bits"), std::string::npos);
  EXPECT_NE(message("0x10").find("decimal"), std::string::npos);
  EXPECT_NE(message("").find("expected a value"), std::string::npos);
  EXPECT_NE(message((std::string(5000, '(') + "1").c_str()).find("nested too deeply"), std::string::npos);
  EXPECT_NE(message((std::string(5000, '!') + "1").c_str()).find("nested too deeply"), std::string::npos);
}

TEST(IntExpr, ListsNamesInOrder) {
  EXPECT_EQ(IntExpr::of("n * grid.x + m - n").names(), (std::vector<std::string>{"n", "grid.x", "m"}));
}

TEST(IntExpr, SubstitutesAndFolds) {
  IntExpr geometry = IntExpr::of("ceildiv(grid.y * block.y, 16 * c)");
  IntExpr replaced = geometry.substitute([](const std::string &name) -> std::optional<IntExpr> {
    if (name == "c")
      return IntExpr::literal(4);
    if (name == "block.y")
      return IntExpr::of("a + 1");
    return {};
  });
  EXPECT_EQ(replaced.str(), "ceildiv(grid.y * (a + 1), 64)");
  IntExpr one = IntExpr::of("ceildiv(grid.x, c)").substitute([](const std::string &name) {
    return name == "c" ? std::optional(IntExpr::literal(1)) : std::nullopt;
  });
  EXPECT_EQ(one.str(), "grid.x");
}

TEST(IntExpr, PrintsReadableCxx) {
  auto cxx = [](const char *text) { return IntExpr::of(text).cxx([](const std::string &name) { return name; }); };
  EXPECT_EQ(cxx("ceildiv(grid.y, 4)"), "((long long)grid.y + 3) / 4");
  EXPECT_EQ(cxx("n % 4 == 0 && n > 0"), "(long long)n % 4 == 0 && (long long)n > 0");
  EXPECT_EQ(cxx("aligned(a, 16)"), "(long long)a % 16 == 0");
  EXPECT_EQ(cxx("apart(a, s.b)"), "optimlApart((const void *)a, (const void *)s.b)");
  EXPECT_EQ(cxx("holds(s.b, 4 * n)"), "optimlHolds((const void *)s.b, 4 * (long long)n)");
  EXPECT_EQ(cxx("within(b, 64)"), "optimlWithin((const void *)b, 64LL)");
  EXPECT_EQ(cxx("2000000000 * 4"), "2000000000LL * 4");
  EXPECT_EQ(cxx("a || b && c"), "(long long)a || ((long long)b && (long long)c)");
}

namespace {

/// Random expressions over every construct of the language.
class RandomExpr {
public:
  explicit RandomExpr(unsigned seed) : random(seed) {}
  std::string text(int depth) {
    if (depth == 0 || pick(5) == 0)
      return pick(2) ? std::to_string(int(pick(200)) - 100) : names[pick(4)];
    switch (pick(7)) {
    case 0: return "-(" + text(depth - 1) + ")";
    case 1: return "!(" + text(depth - 1) + ")";
    case 2: {
      static const char *functions[] = {"min", "max", "ceildiv", "aligned"};
      return std::string(functions[pick(4)]) + "(" + text(depth - 1) + "," + text(depth - 1) + ")";
    }
    default: {
      static const char *operators[] = {"+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||"};
      std::string op = operators[pick(13)];
      auto operand = [&] { return pick(2) ? "(" + text(depth - 1) + ")" : text(depth - 1); };
      std::string left = operand();
      return left + op + " " + operand();
    }
    }
  }
  unsigned pick(unsigned n) { return random() % n; }

private:
  std::mt19937 random;
  const char *names[4] = {"n", "grid.x", "block.y", "shared"};
};

} // namespace

TEST(IntExpr, CanonicalTextReadsBackAsTheSameExpression) {
  RandomExpr random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string text = random.text(4);
    IntExpr first = IntExpr::of(text);
    IntExpr second = IntExpr::of(first.str());
    ASSERT_EQ(first.str(), second.str()) << text;
    for (int64_t base : {0, 3, -17}) {
      auto lookup = [&](const std::string &name) { return std::optional<int64_t>(base + int64_t(name.size())); };
      ASSERT_EQ(first.evaluate(lookup), second.evaluate(lookup)) << text;
    }
  }
}

TEST(IntExpr, TellsWhatItDividesByInnerFirst) {
  auto divisors = [](const char *text) {
    std::string all;
    for (const IntExpr &divisor : llvm::cantFail(IntExpr::parse(text)).divisors())
      all += divisor.str() + "; ";
    return all;
  };
  EXPECT_EQ(divisors("ceildiv(n, 32) + n % 4 - min(n, m) * 2"), "");
  EXPECT_EQ(divisors("ceildiv(n, m / (n - k)) % block.x"), "n - k; m / (n - k); block.x; ");
  EXPECT_EQ(divisors("n / 0 + n / -2"), "0; -2; ");
}
