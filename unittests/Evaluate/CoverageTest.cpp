//===- CoverageTest.cpp - what ran, and what may lead to the rest ------------===//
#include "../../lib/Evaluate/Verify/Coverage.h"
#include "../../lib/Evaluate/Verify/Sizes.h"
#include "optiml/Support/TempDir.h"
#include "gtest/gtest.h"
#include <filesystem>
#include <unistd.h>

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

TEST(Coverage, StatementsBesideTheirConditionsAreTheSame) {
  const std::string original = "if (sum > 255) sum = 255;\n} else if (a) { y[i] = 1; }\nif (b) return;\nif (c) w = 0;",
                    changed = "if (sum1[iy][ix1] > 255) {\nsum1[iy][ix1] = 255;\n}\nif (a) y[i] = 1;\nif (b) {\n"
                              "return;\nif (d)\nreturn;\nif (c)\nv = 0;\nif (a)\ny[i + 1] = 1;";
  Coverage of, by;
  std::vector<MissedCode> there, copies;
  for (uint32_t line : {1, 2, 3, 4}) {
    there.push_back(missed(line, "f"));
    there.back().line = line;
  }
  for (uint32_t line : {2, 4, 6, 8, 10, 12}) {
    copies.push_back(missed(10 + line, "g"));
    copies.back().line = line;
  }
  by.addRun({"f"}, there);
  of.addRun({"g"}, copies);
  of.ignoreCopies(changed, by, original);
  // Another condition, another variable, another place.
  EXPECT_EQ(numbers(of), (Numbers{18, 20, 22}));
}

TEST(Coverage, AnotherInstanceOfATemplateWillDo) {
  MissedCode m = missed(1, "f<1>");
  m.place = 77;
  ProgramCoverage run;
  run.ran = {"f<1>"};
  run.missed = {m};
  Coverage coverage;
  coverage.add(run);
  EXPECT_EQ(numbers(coverage), (Numbers{1}));
  run.ran = {"f<2>"};
  run.missed = {};
  run.covered = {{9, 77}};
  coverage.add(run);
  EXPECT_TRUE(numbers(coverage).empty());
}

TEST(Coverage, HostCodeThatWorksWithTheGPUMustRun) {
  ProgramCoverage run;
  HostSite site;
  site.function = "launch";
  site.file = "a.cu";
  site.line = 2;
  site.functionHash = 8;
  site.work = {"f", "g"};
  run.sites[5] = site;
  site.work.clear(); // the optimizer knows that it never runs
  run.sites[6] = site;
  Coverage coverage;
  EXPECT_FALSE(coverage.add(run));
  ASSERT_EQ(coverage.missedSites().size(), 1u);
  EXPECT_EQ(placesOf(coverage.missedSites(), "a.cu", "\nif (n > 4) f<<<1, 1>>>();"),
            "line 2 of launch ('if (n > 4) f<<<1, 1>>>();')");
  Coverage other = coverage;
  other.ignoreFunctions({8});
  EXPECT_TRUE(other.missedSites().empty());
  other = coverage;
  other.ignore("f");
  EXPECT_FALSE(other.missedSites().empty());
  other.ignore("g"); // all that it launches is the original's own
  EXPECT_TRUE(other.missedSites().empty());
  run.sites[5].ran = true;
  EXPECT_TRUE(coverage.add(run));
  EXPECT_TRUE(coverage.missedSites().empty());
}

TEST(Coverage, AFileThatSaysSomethingElseIsAnError) {
  std::string path = testing::TempDir() + "coverage-" + std::to_string(getpid());
  for (const char *text : {"kernel\tf\n", "condition\t1\t1\tf\n", "missed\tx\n", "what\n"}) {
    ASSERT_FALSE(bool(writeFileAtomically(path, text)));
    llvm::Expected<ProgramCoverage> run = readCoverage(path);
    EXPECT_FALSE(bool(run)) << text;
    llvm::consumeError(run.takeError());
  }
  // Half a line at the end is what a stopped program leaves.
  ASSERT_FALSE(bool(writeFileAtomically(path, "condition\t1\t1\tf")));
  llvm::Expected<ProgramCoverage> cut = readCoverage(path);
  EXPECT_TRUE(bool(cut)) << llvm::toString(cut.takeError());
  std::filesystem::remove(path);
  llvm::Expected<ProgramCoverage> none = readCoverage(path);
  EXPECT_TRUE(bool(none)) << llvm::toString(none.takeError());
}

TEST(Sizes, AKernelThatIsOnlyDefinedIsNotLaunched) {
  EXPECT_FALSE(mayBeLaunched("__global__ void add(int *x) {} int added;", "_Z3addPi"));
  EXPECT_TRUE(mayBeLaunched("__global__ void add(int *x) {} int main() { add<<<1, 1>>>(0); }", "_Z3addPi"));
}

} // namespace
