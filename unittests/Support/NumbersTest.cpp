//===- NumbersTest.cpp - numbers as people write them ---------------------===//
#include "optiml/Support/Numbers.h"
#include "gtest/gtest.h"

using namespace optiml;

namespace {

TEST(Numbers, AreReadAsPeopleWriteThem) {
  const std::pair<const char *, double> cases[] = {
      {"4096", 4096},    {"1,000,000", 1000000}, {"1e6", 1e6},    {"2.5", 2.5},       {"-3", -3},
      {"64k", 65536},    {"500k", 5e5},          {"1M", 1048576}, {"4Ki", 4096},      {"2^20", 1048576},
      {"2 ** 10", 1024}, {"1<<20", 1048576},     {".5", 0.5},     {"3 million", 3e6}, {"2 billion", 2e9}};
  for (const auto &[text, value] : cases)
    EXPECT_EQ(parseNumber(text), value) << text;
  for (const char *text : {"", "x", "3d", "5-point", "1,00", "1 2", "k", "2^"})
    EXPECT_EQ(parseNumber(text), std::nullopt) << text;
  EXPECT_EQ(shortestNumber(0.1), "0.1");
  EXPECT_EQ(shortestNumber(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(shortestNumber(1048576), "1048576");
}

} // namespace
