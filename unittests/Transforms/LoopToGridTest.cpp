//===- LoopToGridTest.cpp - which loops become axes of the grid -----------===//
#include "optiml/ActionSpace/Registry.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/Read.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/Transform.h"
#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>

using namespace optiml;

namespace {

/// A kernel of row `i` out of n, the loop to be mapped, and what is said to it: the reason of a refusal, or conditions,
/// "; " between them.
struct Case {
  std::string parameters, body, site, answer;
  std::map<std::string, int64_t> scalars = {};
};

std::string answerOf(const Kernel &kernel, const Case &c) {
  LaunchHints hints;
  hints.scalars = c.scalars;
  KernelState state = originalState(std::make_shared<Kernel>(kernel), "k", "k", "k_optiml", hints);
  auto mapped = findTransform("loop-to-grid")->apply(state, c.site, {});
  if (!mapped)
    return llvm::toString(mapped.takeError());
  std::vector<std::string> conditions;
  for (const Condition &condition : mapped->rewrite.conditions)
    conditions.push_back(condition.expression.str());
  return llvm::join(conditions, "; ");
}

/// One parse for all of them.
void expectAnswers(const std::vector<Case> &cases) {
  std::string text = "__device__ float factor;\n";
  for (size_t i = 0; i < cases.size(); ++i)
    text += "__global__ void k" + std::to_string(i) + "(" + cases[i].parameters +
            ", int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n  " + cases[i].body +
            "\n}\n";
  Toolchain toolchain = llvm::cantFail(Toolchain::find("x"));
  auto program =
      llvm::cantFail(Program::parse("/loops.cu", text, CompileOptions::parse({"/loops.cu"}), toolchain, View::Device));
  ASSERT_EQ(program->kernels().size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    auto kernel = llvm::cantFail(readKernel(*program, program->kernels()[i]));
    std::string answer = answerOf(*kernel, cases[i]);
    EXPECT_NE(answer.find(cases[i].answer), std::string::npos) << cases[i].body << "\n  is answered: " << answer;
  }
}

const std::string out = "float *__restrict__ out", both = "const float *__restrict__ in, float *__restrict__ out";
} // namespace

TEST(LoopToGrid, IterationsThatShareMemoryStayTogether) {
  expectAnswers({
      {out, "for (int j = 1; j < n; ++j) out[i * n + j] += out[i * n + j - 1];", "/j", "iterations may meet in 'out'"},
      {both, "for (int j = 0; j < n; ++j) out[i] += in[i * n + j];", "/j", "iterations may meet in 'out'"},
      {"const int *__restrict__ in, " + out, "for (int j = 0; j < n; ++j) out[in[j]] = j;", "/j",
       "iterations may meet in 'out'"},
      {out, "for (int j = 0; j < n; ++j) out[i * n + j / 2] = j;", "/j", "iterations may meet in 'out'"},
      {out, "for (int j = 0; j < n; ++j) out[i * n + j % 8] = j;", "/j", "iterations may meet in 'out'"},
      // Three elements from every second one on.
      {out, "for (int j = 0; j < n; j += 2) for (int k = 0; k < 3; ++k) out[i * 2 * n + j + k] = j;", "/j",
       "iterations may meet in 'out'"},
      {out, "for (int j = 0; j < n; j += 3) for (int k = 0; k < 3; ++k) out[i * 2 * n + j + k] = j;", "/j", "n >= 1"},
      {out, "for (int j = 0; j < n; ++j) { out[j] = 1; out[n - 1 - j] = 2; }", "/j", "iterations may meet in 'out'"},
      // (j, i) is (i, j) of the same iteration alone.
      {out, "for (int j = 0; j < n; ++j) { out[i * n + j] = 1; out[j * n + i] = 2; }", "/j", "n >= 1"},
      {out, "for (int j = 0; j < n; ++j) { out[i * n + j] = 1; out[j * n + i + 1] = 2; }", "/j",
       "iterations may meet in 'out'"},
      {out, "for (int j = i; j < n; ++j) { out[i * n + j] = 1; out[j * n + i] = 2; }", "/j", "n >= 1"},
      // Rows of 64 elements, of which more than 64 may be written.
      {out + ", int m", "for (int j = i; j < m; ++j) { out[i * 64 + j] = 1; out[j * 64 + i] = 2; }", "/j",
       "iterations may meet in 'out'"},
      {out + ", int m",
       "for (int j = i; j < m; ++j) { out[i * 64 + j] = 1; out[j * 64 + i] = 2; }",
       "/j",
       "iterations may meet in 'out'",
       {{"m", 80}}},
      {out + ", int m, int w, int p",
       "for (int j = 0; j < m; ++j) for (int k = 0; k < w; ++k) out[(j * p + k) * n + i] = 1;", "/j", "p - w >= 0; "},
      {"int *out", "for (int j = 0; j < n; ++j) out[i * n + j] = atomicAdd(&out[0], 1);", "/j", "work together"},
      {out, "for (int j = 0; j < n; ++j) { atomicAdd(&out[j], 1.0f); atomicMax((int *)&out[j], 3); }", "/j",
       "iterations may meet in 'out'"},
      {both, "for (int j = 0; j < n; ++j) out[in[i] > 0 ? j : i] = 1;", "/j", "iterations may meet in 'out'"},
      {"float **out", "for (int j = 0; j < n; ++j) out[i][j] = 1;", "/j", "whose memory line"},
      {out, "for (int j = 0; j < n; ++j) out[i * n + j] = factor;", "/j",
       "'factor' may be a variable that the loop writes"},
  });
}

TEST(LoopToGrid, ConditionsComeFromTheLaunchThatIsKnown) {
  expectAnswers({{out + ", int m",
                  "for (int j = i; j < m; ++j) { out[i * 64 + j] = 1; out[j * 64 + i] = 2; }",
                  "/j",
                  "-m + 64 >= 0",
                  {{"m", 64}, {"n", 64}}}});
}

TEST(LoopToGrid, WhatStandsAroundTheLoopKeepsItsMeaning) {
  expectAnswers({
      {both,
       "float last = 0; for (int j = 0; j < n; ++j) { out[i * n + j] = in[i * n + j] - last; last = in[i * n + j]; }",
       "/j", "'last' keeps its value"},
      {both, "float v; for (int j = 0; j < n; ++j) { v = in[i * n + j]; out[i * n + j] = v; } out[i] = v;", "/j",
       "'v' keeps its value"},
      {both, "float v = 0; for (int j = 0; j < n; ++j) { if (in[j] > 0) v = in[j]; out[i * n + j] = v; }", "/j",
       "'v' keeps its value"},
      {both, "float v[2]; for (int j = 0; j < n; ++j) { v[0] = in[j]; out[i * n + j] = v[0]; }", "/j",
       "'v' keeps its value"},
      {both, "float v[2] = {0, 0}; float *p = v; for (int j = 0; j < n; ++j) { p[0] += in[j]; out[i * n + j] = p[0]; }",
       "/j", "overlap cannot be tested"},
      {both, "float v = 0; float *p = &v; for (int j = 0; j < n; ++j) { *p += in[j]; out[i * n + j] = v; }", "/j",
       "'v' keeps its value"},
      {out, "int j; for (j = 0; j < n; ++j) out[i * n + j] = 1; for (j = 0; j < 8; ++j) out[i * n + j + 1] = 2;", "/j",
       "iterations may meet what stands outside of the loop"},
      {both, "float v = out[i]++; for (int j = 0; j < n; ++j) { v = in[j]; out[i * n + j] = v; }", "/j",
       "'v' keeps its value"},
      {both, "const float *p = in; for (int j = 0; j < n; ++j) { out[i * n + j] = *p; p += n; } out[i] = *p;", "/j",
       "'p' keeps its value"},
      {both, "const float *p = in; for (int j = 0; j < n; ++j) { out[i * n + j] = *p; p += n; }", "/j", "n >= 1"},
      {both, "for (int j = 0; j < n; ++j) { out[i * n + j] = in[j]; ++i; } out[i] = 1;", "/j", "'i' keeps its value"},
      {out, "out[i * n + i] = 1; for (int j = i; j < n; ++j) out[i * n + j] = 2;", "/j",
       "iterations may meet what stands outside of the loop"},
      {out + ", float *__restrict__ ends", "for (int j = 0; j < n; ++j) out[i * n + j] = j; ends[i] = out[i * n];",
       "/j", "iterations may meet what stands outside of the loop"},
      {"float *__restrict__ flag, " + out,
       "if (flag[i] > 0) flag[i] = 0; if (flag[i] == 0) for (int j = 0; j < n; ++j) out[i * n + j] = 1;", "/j",
       "reads 'flag', which is written outside of the loop too"},
      {"int *__restrict__ next, " + out, "int t = atomicAdd(next, 1); for (int j = 0; j < n; ++j) out[t * n + j] = 1;",
       "/j", "work together"},
      {both + ", float *__restrict__ sums",
       "for (int j = 0; j < n; ++j) out[i * n + j] = 1; float s = 0; for (int k = 0; k < n; ++k) s += in[k]; sums[i] = "
       "s;",
       "/j", "would be run again for every iteration"},
      {"volatile float *out", "for (int j = 0; j < n; ++j) out[i * n + j] = 1;", "/j", "work together"},
      {out, "for (int j = 0; j < n; ++j) { out[i * n + j] = 1; __syncwarp(); }", "/j", "work together"},
      {both, "for (int j = 0; j < n; ++j) { if (in[j] < 0) break; out[i * n + j] = 1; }", "/j", "leaves the loop"},
      {both, "for (int j = 0; j < n; ++j) { if (in[j] < 0) return; out[i * n + j] = 1; }", "/j", "leaves the loop"},
  });
}

TEST(LoopToGrid, LoopsAroundAreRunByEveryThread) {
  expectAnswers({
      {out, "for (int j = 0; j < n; ++j) for (int k = 0; k < n; ++k) out[(i * n + j) * n + k] = k;", "/j/k", "n >= 1"},
      {both + ", const int *__restrict__ at",
       "for (int k = 0; k < n; ++k) { int c = at[i * n + k]; if (c < 0) break; for (int j = 0; j < 32; ++j) out[i * 32 "
       "+ j] += in[c * 32 + j]; }",
       "/k/j", "ceildiv(32, block.y) <= 65535"},
      {both, "for (int k = 0; k < n; ++k) for (int j = 0; j <= k; ++j) out[i * n + j] += in[k];", "/k/j",
       "is not known before the launch"},
      // All threads run the outer loop as often as one of them.
      {both + ", int *__restrict__ ends",
       "for (int k = 0; k < n; ++k) { for (int j = 0; j < n; ++j) out[i * n + j] += in[k]; if (in[k] > 3) { "
       "ends[i] = k; break; } }",
       "/k/j", "leaves a loop that all threads run"},
      // An element of one iteration is another's in a later turn.
      {out, "for (int k = 0; k < n; ++k) for (int j = 0; j < n; ++j) out[i * n + j + k] += 1;", "/k/j",
       "iterations may meet"},
      {out, "for (int k = 0; k < n; ++k) for (int j = 0; j < n; ++j) out[i * n + j] += out[i * n + k];", "/k/j",
       "iterations may meet"},
      {out,
       "for (int k = 0; k < n; ++k) { float first = out[i * n]; for (int j = 0; j < n; ++j) out[i * n + j] = first; }",
       "/k/j", "iterations may meet what stands outside of the loop"},
      {both,
       "for (int k = 0; k < n; ++k) { float t[8]; for (int j = 0; j < 8; ++j) t[j] = in[k]; out[i * n + k] = "
       "t[k % 8]; }",
       "/k/j", "'t' keeps its value"},
      {both, "float s = 0; for (int k = 0; k < n; ++k) for (int j = 0; j < n; ++j) { s += in[k]; out[i * n + j] = s; }",
       "/k/j", "'s' keeps its value"},
  });
}

TEST(LoopToGrid, BoundsAreKnownBeforeTheLaunch) {
  expectAnswers({
      {"const int *__restrict__ begin, " + out, "for (int j = begin[i]; j < begin[i + 1]; ++j) out[j] = 1;", "/j",
       "are not known before the launch"},
      {out + ", int m", "int m2 = m; if (i > 3) m2 = n; for (int j = 0; j < m2; ++j) out[i * n + j] = 1;", "/j",
       "are not known before the launch"},
      {out + ", unsigned m", "for (int j = -1; j < m; ++j) out[i * 100 + j + 1] = 1;", "/j",
       "of different signedness, and may be negative"},
      {out + ", int m", "for (int j = -m; j < m; ++j) out[i * n + j + m] = 1;", "/j", "2 * m >= 1"},
      {out + ", unsigned m", "for (unsigned j = i - 5; j < m; ++j) out[i * n + j] = 1;", "/j",
       "of different signedness, and may be negative"},
      {out, "for (short j = 0; j < n; ++j) out[i * n + j] = 1;", "/j", "too narrow"},
      {out + ", long long m", "for (int j = 0; j < m; ++j) out[i * n + j] = 1;", "/j", "m >= 1"},
      {out, "for (int j = 0; j < n; ++j) out[i * n + j] = blockIdx.y + blockIdx.z;", "/j", "looks at all axes"},
  });
}
