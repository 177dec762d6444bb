//===- PolyTest.cpp - index arithmetic in normal form ---------------------===//
#include "PolyValue.h"
#include <gtest/gtest.h>
#include <random>

using namespace optiml;

namespace {

class RandomPolys : public testing::TestWithParam<unsigned> {
protected:
  std::mt19937 random{GetParam()};
  const std::vector<std::string> names = {"i", "k", "n", "threadIdx.x"};

  Poly make() {
    Poly p;
    for (unsigned terms = random() % 4; terms; --terms) {
      Poly term(int64_t(random() % 9) - 4);
      for (unsigned factors = random() % 3; factors; --factors)
        term = term * Poly::atom(names[random() % names.size()]);
      p = p + term;
    }
    return p;
  }

  std::map<std::string, int64_t> point() {
    std::map<std::string, int64_t> at;
    for (const std::string &name : names)
      at[name] = int64_t(random() % 21) - 10;
    return at;
  }
};

} // namespace

TEST_P(RandomPolys, AreARing) {
  Poly a = make(), b = make(), c = make();
  EXPECT_EQ(a + b, b + a);
  EXPECT_EQ(a * b, b * a);
  EXPECT_EQ((a + b) * c, a * c + b * c);
  EXPECT_EQ((a * b) * c, a * (b * c));
  EXPECT_EQ(a - a, Poly());
  for (const auto &[monomial, coefficient] : (a * b - c).terms)
    EXPECT_NE(coefficient, 0) << "no term is kept that is zero";
}

TEST_P(RandomPolys, HaveTheValueOfWhatTheyAreMadeOf) {
  Poly a = make(), b = make();
  auto at = point();
  EXPECT_EQ(valueOf(a + b, at), valueOf(a, at) + valueOf(b, at));
  EXPECT_EQ(valueOf(a - b, at), valueOf(a, at) - valueOf(b, at));
  EXPECT_EQ(valueOf(a * b, at), valueOf(a, at) * valueOf(b, at));
  auto replaced = at;
  replaced["k"] = valueOf(b, at);
  EXPECT_EQ(valueOf(a.substitute("k", b), at), valueOf(a, replaced));
}

TEST_P(RandomPolys, AreTheirCoefficientTimesTheAtomAndARest) {
  Poly p = make();
  auto coefficient = p.coefficient("i");
  Poly rest = p.filter([](const Poly::Monomial &m) { return std::find(m.begin(), m.end(), "i") == m.end(); });
  bool square = false;
  for (const auto &[monomial, c] : p.terms)
    square |= std::count(monomial.begin(), monomial.end(), "i") > 1;
  ASSERT_EQ(coefficient.has_value(), !square) << p.str();
  if (coefficient) {
    EXPECT_FALSE(coefficient->mentions("i"));
    EXPECT_EQ(*coefficient * Poly::atom("i") + rest, p);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPolys, testing::Range(1u, 41u));

TEST(Poly, KnowsConstantsAndAffineForms) {
  Poly i = Poly::atom("i"), n = Poly::atom("n");
  EXPECT_EQ(Poly(7).constant(), 7);
  EXPECT_EQ(Poly().constant(), 0);
  EXPECT_FALSE((i + Poly(1)).constant());
  EXPECT_EQ((i * Poly(3) + Poly(5)).constantTerm(), 5);
  EXPECT_TRUE((i + n * Poly(2) - Poly(1)).isAffine());
  EXPECT_FALSE((i * n).isAffine());
  EXPECT_EQ((i * n + i).atoms(), (std::set<std::string>{"i", "n"}));
}
