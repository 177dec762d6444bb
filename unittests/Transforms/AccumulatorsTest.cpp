//===- AccumulatorsTest.cpp - which loops threads can share out -----------===//
#include "optiml/ActionSpace/Registry.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/Read.h"
#include "optiml/Transforms/Transform.h"
#include <gtest/gtest.h>

using namespace optiml;

namespace {

/// What stands before the loop over j < n, its body, and what follows: x has the values, row i of out and at what is
/// made of them.
struct Case {
  std::string before, body, after;
};

const char *const parameters =
    "const float *__restrict__ x, float *__restrict__ out, int *__restrict__ at, int n, int k";

/// The kernels in which distribute-loop combines what threads have, by place in `cases`. One parse for all of them.
std::vector<bool> sharedOut(const std::vector<Case> &cases) {
  std::string text = "__device__ float weight(float v) { return v * v; }\n";
  for (size_t i = 0; i < cases.size(); ++i)
    text += "__global__ void k" + std::to_string(i) + "(" + parameters +
            ") {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  " + cases[i].before +
            "\n  for (int j = 0; j < n; ++j) {\n" + cases[i].body + "\n  }\n  " + cases[i].after + "\n}\n";
  Toolchain toolchain = llvm::cantFail(Toolchain::find("x"));
  auto program =
      llvm::cantFail(Program::parse("/sums.cu", text, CompileOptions::parse({"/sums.cu"}), toolchain, View::Device));
  EXPECT_EQ(program->kernels().size(), cases.size());
  std::vector<bool> result;
  for (size_t i = 0; i < cases.size(); ++i) {
    std::shared_ptr<Kernel> kernel = llvm::cantFail(readKernel(*program, program->kernels()[i]));
    KernelState state = originalState(kernel, "k", "k", "k_optiml", {});
    auto shared = findTransform("distribute-loop")->apply(state, "", {{"threads", "32"}, {"rows", "8"}});
    bool combines = shared && print(*shared->tree).find("__shfl") != std::string::npos;
    if (!shared)
      llvm::consumeError(shared.takeError());
    result.push_back(combines);
  }
  return result;
}

void expectAll(bool wanted, const std::vector<Case> &cases) {
  std::vector<bool> found = sharedOut(cases);
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i], wanted) << cases[i].before << "\n" << cases[i].body;
}

const std::string row = "float v = x[i * n + j]; ", store = "out[i] = m; at[i] = p;";
const std::string list =
                      "float best[8]; int where[8]; for (int t = 0; t < 8; ++t) { best[t] = -1e30f; where[t] = -1; }",
                  show = "for (int t = 0; t < 8; ++t) { out[i * 8 + t] = best[t]; at[i * 8 + t] = where[t]; }";
} // namespace

TEST(Accumulators, ExtremesWithTheirPlace) {
  std::string start = "float m = -1e30f; int p = -1;";
  expectAll(true, {
                      {start, row + "if (v > m) { m = v; p = j; }", store},
                      {start, row + "if (!(v <= m) && v == v) { p = j; m = v; }", store},
                      {start, row + "p = m < v ? j : p; m = fmaxf(v, m);", store},
                      {start, row + "bool take = v >= m; if (take) p = j; if (take) m = v;", store},
                      {start, row + "if (v > m || (v == m && j < p)) { m = v; p = j; }", store},
                      {start, row + "if (v < 3.f) { if (m < v) { m = v; p = j; } }", store},
                      {"int p = 0;", "if (x[i * n + p] < x[i * n + j]) p = j;", "at[i] = p;"},
                  });
  expectAll(false, {
                       {start, row + "if (v > m) m = v; p = j;", store},
                       {start, row + "if (v > m) { m = v + 1.f; p = j; }", store},
                       {start, row + "if (v > m) { m = v; p += j; }", store},
                       {start, row + "if (v > m) { p = j; m = v; } else if (v < 0.f) p = -j;", store},
                       {start, row + "if (v > m) { m = v; p = j % 7; }", store},
                       {start, row + "if (v <= m) continue; m = v; p = j; if (p > 5) m = 0.f;", store},
                   });
}

TEST(Accumulators, SumsInTheScaleOfAMaximum) {
  std::string start = "float m = -1e30f, s = 0.f;", end = "out[i] = m + logf(s);";
  expectAll(
      true,
      {
          {start, row + "float o = m; m = fmaxf(m, v); s = s * expf(o - m) + expf(v - m);", end},
          {start, row + "if (v > m) { s *= expf(m - v); s += 1.f; m = v; } else s += expf(v - m);", end},
          {start, row + "float h = fmaxf(m, v), e = expf(fminf(m, v) - h); s = v > m ? fmaf(s, e, 1.f) : s + e; m = h;",
           end},
          {start, row + "float h = v > m ? v : m; s = weight(v) * expf(v - h) + expf(m - h) * s; m = h;", end},
      });
  expectAll(false, {
                       {start, row + "float o = m; m = fmaxf(m, v); s = s * expf(m - o) + expf(v - m);", end},
                       {start, row + "float o = m; m = fmaxf(m, v); s = s * expf(o - m) + expf(v - o);", end},
                       {start, row + "if (v > m) { s = s * expf(m - v) + 2.f; m = v; } else s += expf(v - m);", end},
                       {start, row + "float o = m; m = fminf(m, v); s = s * expf(o - m) + expf(v - m);", end},
                   });
}

TEST(Accumulators, RunningMoments) {
  std::string start = "float mean = 0.f, q = 0.f; int c = 0;", end = "out[i] = mean + q;";
  expectAll(true, {
                      {start, row + "++c; float d = v - mean; mean += d / c; q += d * (v - mean);", end},
                      {start, row + "float d = v - mean; q += d * d * c / (c + 1); ++c; mean = mean + d / c;", end},
                      {start, row + "float d = v - mean; mean += d / (j + 1); q += d * (v - mean);", end},
                      {start,
                       row + "if (v < 0.f) continue; c += 1; float d = v - mean, r = 1.f / c; mean = fmaf(d, r, mean); "
                             "q = fmaf(d, v - mean, q);",
                       end},
                  });
  expectAll(false, {
                       {start, row + "float d = v - mean; mean += d / (c + 2); ++c; q += d * (v - mean);", end},
                       {start, row + "++c; float d = v - mean; mean += d / c; q += d * d;", end},
                       {start, row + "++c; float d = v - mean; mean += d / c; q += d * (v - mean) * 2.f;", end},
                       {start, row + "++c; float d = v - mean; q += d * (v - mean); mean += d / c;", end},
                   });
}

TEST(Accumulators, Matches) {
  std::string start = "float m = 0.f; int p = -1; bool seen = false;";
  expectAll(true, {
                      {start, row + "if (!seen && v > 3.f) { m = v; p = j; seen = true; }", store},
                      {start, row + "if (v > 3.f && p < 0) { m = v; p = j; }", store},
                      {start, row + "p = p != -1 ? p : v > 3.f ? j : -1;", store},
                      {start, row + "if (v > 3.f) { p = j; m = v; }", store},
                      {start, row + "if (v > 3.f) { seen = true; m = v; }", "out[i] = seen ? m : -1.f;"},
                      {start, row + "p = v > 3.f ? 7 : p;", "at[i] = p;"},
                      {start, row + "if (v > m) p = j;", store}, // the last one above a number that stays
                  });
  expectAll(false, {
                       {start, row + "if (v > 3.f && p < 5) { m = v; p = j; }", store},        // j may be 4
                       {start, row + "if (!seen && v > 3.f) { p = j; seen = j > 4; }", store}, // may go on
                       {start, row + "if (v > 3.f) p = p + j;  if (v > m) p = j;", store},
                       {start, row + "if (v > 3.f) p = j; if (v < 1.f) m = v + p;", store},
                       {start, row + "if (v > 3.f) { p = j; break; }", store}, // others would read on
                   });
}

TEST(Accumulators, WhereTheOrderOfNoNumberMatters) {
  std::string start = "float m = -1e30f; int p = -1;";
  expectAll(true, {
                      {start, row + "if (!(v <= m)) { m = v; p = j; }", store},
                      {start, row + "if (v <= m) continue; p = j; m = v;", store},
                  });
  expectAll(false, {{start, row + "if (!(v <= m)) { m = v; p = j; } out[i * n + j] = v;", store}});
}

TEST(Accumulators, InArraysOfAThread) {
  const std::string start = "float s[2] = {0.f, 0.f};", both = "out[i] = s[0] + s[1];";
  expectAll(true, {
                      {start, row + "s[j % 2] += v;", both},
                      {start, row + "if (v > s[j & 1]) s[j & 1] = v;", both},
                      {start, row + "s[0] = s[0] + v; s[1] += v * v;", both},
                  });
  expectAll(false, {
                       {start, row + "s[j % 2] += v; s[0] *= .5f;", both},
                       {start, row + "s[s[0] > 1.f] += v;", both},
                   });
}

TEST(Accumulators, WhatOneIterationHandsToTheNext) {
  expectAll(true,
            {
                {"float last = x[i * n]; int c = 0;", row + "if (v < last) ++c; last = v;", "at[i] = c;"},
                {"int last = -1; int c = 0;", row + "int b = v > 2.f; if (b != last) c++; last = b;", "at[i] = c;"},
                {"float s[2] = {0.f, 1e30f};", row + "s[0] += v; s[1] = fminf(s[1], v);", "out[i] = s[0] + s[1];"},
                {"float s = 0;", "if (j == at[i]) break; s += x[i * n + j];", "out[i] = s;"},
                {"float s = 0;", "int p = i * k + j; if (p >= n) break; s += x[p];", "out[i] = s;"},
            });
  expectAll(false,
            {
                {"float last = 0; int c = 0;", row + "if (v < last) ++c; last = last * .5f + v;", "at[i] = c;"},
                {"float last = 0; int c = 0;", row + "if (v < last) ++c; last = v;", "at[i] = c; out[i] = last;"},
                {"float s[2] = {0.f, 0.f};", row + "s[j % 2] = s[1 - j % 2] + v;", "out[i] = s[0] + s[1];"},
                {"float s = 0;", "s += x[i * n + j]; if (j == k) break;", "out[i] = s;"},
                {"float s = 0;", "if (x[i * n + j] > 3.f) break; s += x[i * n + j];", "out[i] = s;"},
            });
}

TEST(Accumulators, SumsUnderConditions) {
  expectAll(true, {
                      {"int c = 0;", row + "c = v > 0.f ? c + 1 : c;", "at[i] = c;"},
                      {"float s = 0;", row + "if (v > 0) s = v - -s; else s = 2 * v + s;", "out[i] = s;"},
                  });
  expectAll(false, {
                       {"int c = 0;", row + "c = v > 0.f ? c + 1 : 0;", "at[i] = c;"},
                       {"float s = 0;", row + "s += s * v;", "out[i] = s;"},
                       {"float s = 0;", row + "if (s < 5.f) s += v;", "out[i] = s;"},
                   });
}

TEST(Accumulators, TheKBest) {
  auto shift = [](const std::string &from, const std::string &condition) {
    return row + "int p = " + from + "; while (p > 0 && " + condition +
           ") { best[p] = best[p - 1]; where[p] = where[p - 1]; --p; } best[p] = v; where[p] = j;";
  };
  std::string guarded = row + "if (v > best[7]) { int p = 0; while (best[p] >= v) ++p; for (int t = 7; t > p; --t) { "
                              "best[t] = best[t - 1]; where[t] = where[t - 1]; } best[p] = v; where[p] = j; }";
  std::string bubble =
      row + "if (v > best[7]) { best[7] = v; where[7] = j; for (int t = 7; t > 0; --t) if (best[t] > best[t - 1]) "
            "{ float b = best[t]; best[t] = best[t - 1]; best[t - 1] = b; int w = where[t]; where[t] = "
            "where[t - 1]; where[t - 1] = w; } }";
  expectAll(true, {{list, row + "if (best[7] < v) {" + shift("7", "best[p - 1] < v").substr(row.size()) + "}", show},
                   {list, guarded, show},
                   {list, bubble, show}});
  expectAll(false,
            {{list, shift("7", "best[p - 1] < v"), show}, // it overwrites the last one
             {list, row + "if (v > best[6]) {" + shift("7", "best[p - 1] < v").substr(row.size()) + "}", show},
             {list, row + "if (v > best[7]) {" + shift("7", "best[p - 1] > v").substr(row.size()) + "}", show},
             {list, row + "if (v > best[7]) {" + shift("6", "best[p - 1] < v").substr(row.size()) + "}", show},
             {list, row + "if (v > best[7]) { best[7] = v; where[7] = j; }", show},
             {list, row + "if (v > best[7]) {" + shift("7", "best[p - 1] <= v").substr(row.size()) + "}", show}});
}
