//===- CoverageTest.cpp - what ran, and what may lead to the rest ------------===//
#include "../../lib/Evaluate/Verify/Coverage.h"
#include "../../lib/Evaluate/Verify/Sizes.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

using namespace optiml;
using emu::MissedCode;

namespace {

MissedCode missed(uint32_t code, const char *kernel, const char *constants = "") {
  MissedCode m;
  m.code = code;
  m.kernel = kernel;
  m.function = kernel;
  m.file = "a.cu";
  m.line = 10 + code;
  m.constants = constants;
  return m;
}

std::vector<uint32_t> numbers(const Coverage &coverage) {
  std::vector<uint32_t> result;
  for (const MissedCode &m : coverage.missed())
    result.push_back(m.code);
  return result;
}

using Numbers = std::vector<uint32_t>;

TEST(Coverage, WhatRanOnceHasRun) {
  Coverage coverage;
  EXPECT_TRUE(coverage.addRun({"f"}, {missed(1, "f"), missed(2, "f")}));
  EXPECT_EQ(numbers(coverage), (Numbers{1, 2}));
  EXPECT_FALSE(coverage.addRun({"f"}, {missed(1, "f"), missed(2, "f"), missed(3, "f")})); // 3 ran the first time
  EXPECT_EQ(numbers(coverage), (Numbers{1, 2}));
  EXPECT_TRUE(coverage.addRun({"f"}, {missed(2, "f")}));
  EXPECT_EQ(numbers(coverage), (Numbers{2}));
}

TEST(Coverage, RunsOfOneKernelSayNothingAboutAnother) {
  Coverage coverage;
  coverage.addRun({"f"}, {missed(1, "f")});
  EXPECT_TRUE(coverage.addRun({"g"}, {missed(5, "g")}));
  EXPECT_EQ(numbers(coverage), (Numbers{1, 5}));
  EXPECT_TRUE(coverage.addRun({"f", "g"}, {}));
  EXPECT_TRUE(numbers(coverage).empty());
}

TEST(Coverage, PlacesAreNamedOnce) {
  std::string text = "int a;\nif (b)\n  c = 1;\n";
  MissedCode m = missed(1, "f");
  m.line = 3;
  EXPECT_EQ(placesOf({m, m}, "/x/a.cu", text), "line 3 of f ('c = 1;')");
  EXPECT_EQ(placesOf({m}, "/x/b.cu", text), "a.cu:line 3 of f");
}

TEST(Coverage, WhatTheOriginalDidNotRunEitherNeedsNoRun) {
  std::string original = "f() {\n  if (i >= n)\n    return;\n}",
              changed = "g() {\n\n  if (i >= n)\n      return;\n  x;\n}";
  MissedCode there = missed(1, "f"), copy = missed(1, "g"), own = missed(2, "g"), elsewhere = missed(3, "g", "4");
  there.line = 3;
  copy.line = 4;
  own.line = 5;
  elsewhere.line = 4;
  Coverage of, by;
  by.addRun({"f"}, {there});
  of.addRun({"g"}, {copy, own, elsewhere});
  of.ignoreCopies(changed, by, original);
  EXPECT_EQ(numbers(of), (Numbers{3, 2}));
}

using Line = std::vector<std::string>;

TEST(Sizes, ComeFromTheConditionsOnTheWay) {
  auto lines = argumentsThatMayReach({missed(1, "f", "8,100000")}, "", {"1000", "fast", "7"});
  for (const Line &want : {Line{"100000", "fast", "7"}, Line{"100001", "fast", "7"}, Line{"99999", "fast", "7"},
                           Line{"1000", "fast", "8"}, Line{"100000", "fast", "100000"}, Line{"1001", "fast", "7"}})
    EXPECT_TRUE(llvm::is_contained(lines, want)) << want[0] << " " << want[2];
  for (const Line &line : lines)
    EXPECT_EQ(line[1], "fast");
}

TEST(Sizes, ComeFromTheHostsCodeToo) {
  auto lines = argumentsThatMayReach({}, "if (n >= (1 << 16) && x < 2.5f) launch(n, a3);", {"10"});
  EXPECT_TRUE(llvm::is_contained(lines, Line{"65536"}));
  EXPECT_TRUE(llvm::is_contained(lines, Line{"0"}));
}

TEST(Sizes, AreGuessedWhereNoneIsGiven) {
  EXPECT_TRUE(argumentsThatMayReach({missed(1, "f", "64")}, "int main() {}", {}).empty());
  auto lines = argumentsThatMayReach({missed(1, "f", "64")}, "int main(int argc, char **argv) {}", {});
  EXPECT_TRUE(llvm::is_contained(lines, Line{"64"}));
  EXPECT_TRUE(llvm::is_contained(lines, (Line{"64", "64"})));
}

TEST(Sizes, AKernelThatIsOnlyDefinedIsNotLaunched) {
  EXPECT_FALSE(mayBeLaunched("__global__ void add(int *x) {} int added;", "_Z3addPi"));
  EXPECT_TRUE(mayBeLaunched("__global__ void add(int *x) {} int main() { add<<<1, 1>>>(0); }", "_Z3addPi"));
}

} // namespace
