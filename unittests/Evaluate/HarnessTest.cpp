//===- HarnessTest.cpp - how many elements a buffer has --------------------===//
#include "optiml/Evaluate/Harness/Harness.h"
#include "gtest/gtest.h"

using namespace optiml;

namespace {

using Sizes = std::vector<std::vector<int64_t>>;

struct Case {
  const char *what;
  std::vector<std::string> names;
  uint64_t (*elements)(const std::vector<int64_t> &);
  const char *wanted; ///< null: none fits
};

const Case cases[] = {
    {"a vector", {"n"}, [](auto &s) { return uint64_t(s[0]); }, "1LL * n"},
    {"a constant", {"n"}, [](auto &) { return uint64_t(9); }, "9"},
    {"nothing touched", {"n"}, [](auto &) { return uint64_t(0); }, "1"},
    {"offsets", {"rows", "cols"}, [](auto &s) { return uint64_t(s[0] + 1); }, "1LL * rows + 1"},
    {"a matrix", {"m", "n", "k"}, [](auto &s) { return uint64_t(s[0] * s[2]); }, "1LL * m * k"},
    {"a square", {"n"}, [](auto &s) { return uint64_t(s[0] * s[0]); }, "1LL * n * n"},
    {"three planes", {"h", "w"}, [](auto &s) { return uint64_t(3 * s[0] * s[1]); }, "1LL * 3 * h * w"},
    {"pairs but the last", {"n"}, [](auto &s) { return uint64_t(2 * s[0] - 1); }, "1LL * 2 * n - 1"},
    {"all but a last row's end", {"h", "w"}, [](auto &s) { return uint64_t(s[0] * s[1] - s[1] / 2); }, "1LL * h * w"},
    {"one for each block", {"n"}, [](auto &s) { return uint64_t((s[0] * s[0] + 63) / 64); }, "(1LL * n * n + 63) / 64"},
    {"no product", {"n"}, [](auto &s) { return uint64_t((s[0] + 255) / 256 * 256 * 1000 + s[0] * 17 % 13); }, nullptr},
};

TEST(FitExtent, FindsTheProduct) {
  for (const Case &c : cases) {
    Sizes sizes = {{37, 53, 71}, {71, 43, 61}, {61, 47, 37}};
    std::vector<uint64_t> elements;
    for (std::vector<int64_t> &s : sizes) {
      s.resize(c.names.size());
      elements.push_back(c.elements(s));
    }
    std::optional<ExtentFormula> found = fitExtent(c.names, sizes, elements, {64});
    EXPECT_EQ(found ? found->text : "none", c.wanted ? c.wanted : "none") << c.what;
  }
}

} // namespace
