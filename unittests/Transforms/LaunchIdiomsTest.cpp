//===- LaunchIdiomsTest.cpp - what a single launch is recognized as -------===//
#include "optiml/Transforms/LaunchIdioms.h"
#include "optiml/Analysis/Read.h"
#include <algorithm>
#include <gtest/gtest.h>

using namespace optiml;

namespace {

/// Kernels and what they should be: "scan + in out", "exchange data", "none". One parse for all of them.
void expectIdioms(const std::vector<std::pair<std::string, std::string>> &cases) {
  std::string text;
  for (size_t i = 0; i < cases.size(); ++i)
    text += "namespace n" + std::to_string(i) + " {\n" + cases[i].first + "\n}\n";
  Toolchain toolchain = llvm::cantFail(Toolchain::find("x"));
  auto program = llvm::cantFail(
      Program::parse("/idioms.cu", text, CompileOptions::parse({"/idioms.cu"}), toolchain, View::Device));
  ASSERT_EQ(program->kernels().size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    auto kernel = llvm::cantFail(readKernel(*program, program->kernels()[i]));
    auto idiom = recognizeLaunchIdiom(*kernel);
    std::string found = "none";
    if (!idiom)
      llvm::consumeError(idiom.takeError());
    else if (idiom->kind == LaunchIdiom::Kind::ScanStep)
      found = "scan " + idiom->op + " " + idiom->in + " " + idiom->out;
    else
      found = "exchange " + idiom->out;
    EXPECT_EQ(found, cases[i].second) << cases[i].first;
  }
}

std::string scanWith(const std::string &body) {
  return "__global__ void k(const int *a, int *b, int n, int d) { int i = blockIdx.x * blockDim.x + threadIdx.x; " +
         body + " }";
}
std::string sortWith(const std::string &body, const std::string &type = "int") {
  return "__global__ void k(" + type + " *v, int n, int p) { int i = blockIdx.x * blockDim.x + threadIdx.x; " + body +
         " }";
}

TEST(LaunchIdiomsTest, ScansInManyWords) {
  expectIdioms({
      {scanWith("if (i < n) { if (i >= d) b[i] = a[i] + a[i - d]; else b[i] = a[i]; }"), "scan + a b"},
      {scanWith("if (i >= n) return; int s = a[i]; if (!(i < d)) s += a[i - d]; b[i] = s;"), "scan + a b"},
      {scanWith("if (n <= i) return; b[i] = a[i]; if (i - d >= 0) b[i] = max(b[i], a[i - d]);"), "scan max a b"},
      {scanWith("if (i < n && i < d) b[i] = *(a + i); if (i < n && i >= d) b[i] = a[i - d] ^ a[i];"), "scan ^ a b"},
  });
}

TEST(LaunchIdiomsTest, WhatIsAlmostAScanIsNone) {
  expectIdioms({
      {scanWith("if (i < n) b[i] = i > d ? a[i] + a[i - d] : a[i];"), "none"}, // one too few
      {scanWith("if (i < n - 1) b[i] = i >= d ? a[i] + a[i - d] : a[i]; if (i == n - 1) b[i] = 0;"), "none"},
      {scanWith("if (i < n && i >= d) b[i] = a[i] + a[i - d];"), "none"},       // the first are not copied
      {scanWith("if (i < n) b[i] = i >= d ? a[i] - a[i - d] : a[i];"), "none"}, // not associative
      {scanWith("if (i < n) b[i] = i >= d ? a[i] + a[i - d] : 0;"), "none"},
      {scanWith("if (i < n) b[n - 1 - i] = i >= d ? a[i] + a[i - d] : a[i];"), "none"},
      {scanWith("if (i < n && a[i] > 0) b[i] = i >= d ? a[i] + a[i - d] : a[i];"), "none"}, // depends on data
      {scanWith("if (threadIdx.x < n) b[i] = i >= d ? a[i] + a[i - d] : a[i];"), "none"},
      {scanWith("if ((i - 7) % 2 < 0) return; if (i < n) b[i] = i >= d ? a[i] + a[i - d] : a[i];"),
       "none"}, // some are left out
      {scanWith("for (; i < n; i += d) b[i] = a[i];"), "none"},
  });
}

TEST(LaunchIdiomsTest, ExchangesInManyWords) {
  expectIdioms({
      {sortWith(
           "int j = 2 * i + p % 2; if (j + 1 < n && v[j] > v[j + 1]) { int t = v[j]; v[j] = v[j + 1]; v[j + 1] = t; }"),
       "exchange v"},
      {sortWith("int j = 2 * i + (p & 1); if (j < n - 1) { int x = v[j], y = v[j + 1]; if (y <= x) { v[j + 1] = x; "
                "v[j] = y; } }"),
       "exchange v"},
      {sortWith("if (i >= n - 1 || i % 2 != p % 2) return; int x = v[i], y = v[i + 1]; v[i] = min(x, y); v[i + 1] = "
                "max(x, y);"),
       "exchange v"},
      {sortWith(
           "if ((i + p) % 2 == 0 && i + 1 < n) if (v[i + 1] < v[i]) { int t = v[i + 1]; v[i + 1] = v[i]; v[i] = t; }"),
       "exchange v"},
      {sortWith("if (p == 0) { if (i < n / 2 && v[2 * i] > v[2 * i + 1]) { int t = v[2 * i]; v[2 * i] = v[2 * i + 1]; "
                "v[2 * i + 1] = t; } }"
                " else if (2 * i + 2 < n && v[2 * i + 1] > v[2 * i + 2]) { int t = v[2 * i + 1]; v[2 * i + 1] = v[2 * "
                "i + 2]; v[2 * i + 2] = t; }"),
       "exchange v"},
  });
}

TEST(LaunchIdiomsTest, WhatIsAlmostAnExchangeIsNone) {
  const char *swap = "{ auto t = v[j]; v[j] = v[j + 1]; v[j + 1] = t; }";
  auto with = [&](const std::string &condition, const std::string &type = "int") {
    return sortWith("int j = 2 * i + p % 2; if (" + condition + ") " + swap, type);
  };
  expectIdioms({
      {with("j + 1 < n && v[j] > v[j + 1]", "long long"), "exchange v"},
      {with("j + 1 < n && v[j] > v[j + 1]", "float"), "none"}, // NaN, and zeros of two signs
      {with("j + 1 < n && v[j] < v[j + 1]"), "none"},          // the other way round
      {with("j + 1 < n && v[j] > 0"), "none"},
      {with("j + 1 < n"), "none"},
      {sortWith(
           "int j = 2 * i + p % 2; if (j + 2 < n && v[j] > v[j + 2]) { int t = v[j]; v[j] = v[j + 2]; v[j + 2] = t; }"),
       "none"},
      {sortWith("int j = 2 * i + p % 2; if (j + 1 < n && v[j] > v[j + 1]) { v[j] = v[j + 1]; v[j + 1] = v[j]; }"),
       "none"}, // loses one
  });
}

/// What stands at the top of the sort's skeleton: n phases of either parity first sort n elements. By the 0-1 principle
/// it is enough to try all sequences of zeros and ones.
TEST(LaunchIdiomsTest, AsManyPhasesAsElementsSort) {
  for (int n = 1; n <= 12; ++n)
    for (int first : {0, 1})
      for (unsigned bits = 0; bits < 1u << n; ++bits) {
        unsigned v = bits;
        for (int phase = 0; phase < n; ++phase)
          for (int x = (first + phase) % 2; x + 1 < n; x += 2)
            if ((v >> x & 1) > (v >> (x + 1) & 1))
              v ^= 3u << x;
        unsigned ones = unsigned(__builtin_popcount(bits));
        ASSERT_EQ(v, ((1u << ones) - 1) << (n - int(ones))) << "n = " << n << ", first = " << first;
      }
}

} // namespace
