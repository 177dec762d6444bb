//===- TimeStepsTest.cpp - which kernels are steps of a stencil -----------===//
#include "optiml/Transforms/TimeSteps.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/Read.h"
#include <gtest/gtest.h>

using namespace optiml;

namespace {

/// What is found for each kernel: "a>b low+high", one a dimension, a ring marked by "o"; or why there is nothing.
std::vector<std::string> stepsOf(const std::vector<std::string> &kernels) {
  std::string text;
  for (size_t i = 0; i < kernels.size(); ++i)
    text += "namespace n" + std::to_string(i) + " {\n" + kernels[i] + "\n}\n";
  Toolchain toolchain = llvm::cantFail(Toolchain::find("x"));
  auto program =
      llvm::cantFail(Program::parse("/steps.cu", text, CompileOptions::parse({"/steps.cu"}), toolchain, View::Device));
  std::vector<std::string> result;
  for (const KernelDecl &decl : program->kernels()) {
    auto step = recognizeTimeStep(
        originalState(llvm::cantFail(readKernel(*program, decl)), decl.name, decl.symbol, "twin", LaunchHints()));
    if (!step) {
      result.push_back(llvm::toString(step.takeError()));
      continue;
    }
    std::string found;
    for (const TimeStep::Field &field : step->fields)
      found += (found.empty() ? "" : " ") + field.in + ">" + field.out;
    for (const TimeStep::Dimension &dim : step->dims)
      found += " " + std::to_string(dim.low) + "+" + std::to_string(dim.high) + (dim.ring.empty() ? "" : "o");
    result.push_back(found);
  }
  return result;
}

std::string row(const std::string &body) {
  return "__global__ void k(const float *a, float *b, const float *c, int n, int d) { int i = blockIdx.x * blockDim.x "
         "+ threadIdx.x; " +
         body + " }";
}
std::string plane(const std::string &body) {
  return "__global__ void k(const float *a, float *b, int w, int h, int pitch) { int x = blockIdx.x * blockDim.x + "
         "threadIdx.x, "
         "y = blockIdx.y * blockDim.y + threadIdx.y; " +
         body + " }";
}

void expectSteps(const std::vector<std::pair<std::string, std::string>> &cases) {
  std::vector<std::string> kernels;
  for (const auto &[kernel, expected] : cases)
    kernels.push_back(kernel);
  std::vector<std::string> found = stepsOf(kernels);
  ASSERT_EQ(found.size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_NE(found[i].find(cases[i].second), std::string::npos)
        << cases[i].first << "\nis: " << found[i] << "\nnot: " << cases[i].second;
}

TEST(TimeStepsTest, OneDimension) {
  expectSteps({
      {row("if (i > 0 && i < n - 1) b[i] = a[i - 1] + c[i] * a[i + 1];"), "a>b 1+1"},
      {row("if (i < 2 || i >= n) return; float v = a[i - 2]; b[i] = v - a[i];"), "a>b 2+0"},
      {row("if (i < n) b[i] = i > 0 ? a[i - 1] : c[0];"), "a>b 1+0"},
      {row("if (i < n) { if (i == 0 || i == n - 1) b[i] = a[i]; else b[i] = a[i - 1] + a[i + 1]; }"), "a>b 1+1"},
      {row("if (i >= n) return; bool edge = i == 0 || i == n - 1; if (!edge) b[i] = a[i - 1] + a[i + 1]; else b[i] = "
           "0;"),
       "a>b 1+1"},
      {row("if (i < n) b[i] = a[(i + 1) % n];"), "a>b 0+1o"},
      {row("if (i < n) b[i] = a[i == 0 ? n - 1 : i - 1];"), "a>b 1+0o"},
      {row("if (i < n) b[i] = a[min(i + 3, n - 1)];"), "a>b 0+3"},
      {row("if (i < n) { float s = 0; for (int k = -1; k <= 2; ++k) if (k != 0) s += a[(i + k + n) % n]; b[i] = s; }"),
       "a>b 1+2o"},
      {row("if (i < n) { float s = 0; for (int k = -2; k <= 2; ++k) if (i + k >= 0 && i + k < n) s += a[i + k]; b[i] = "
           "s; }"),
       "a>b 2+2"},
      {row("if (i == 0) b[i] = a[i]; else if (i == n - 1 || (i < n - 1 && i > 0)) b[i] = __ldg(&a[i - 1]);"),
       "a>b 1+0"},
      {row("if (i < n) if (a[i] > 0) b[i] = a[i]; else b[i] = 0;"),
       "a>b 0+0"}, // what memory holds decides what, not whether
      {row("if (i > 3 && i < n - 4) { float s = 0; for (int k = -4; k <= 4; ++k) s += a[i + k]; b[i] = s; }"),
       "a>b 4+4"},
  });
}

TEST(TimeStepsTest, Planes) {
  expectSteps({
      {plane("if (x > 0 && x < w - 1 && y > 0 && y < h) b[y * w + x] = a[y * w + x - 1] + a[(y - 1) * w + x + 1];"),
       "a>b 1+1 1+0"},
      {plane("if (x < w && y < h) b[y * w + x] = a[(y + h - 1) % h * w + (x == w - 1 ? 0 : x + 1)];"), "a>b 0+1o 1+0o"},
      {plane("if (x < h && y < w && x > 0) b[x * w + y] = a[(x - 1) * w + y];"), "a>b 0+0 1+0"}, // x runs along columns
      {plane("if (x < w && y < h) b[(y + 1) * (w + 2) + x + 1] = a[(y + 1) * (w + 2) + x + 2];"), "a>b 0+1 0+0"},
      {plane("if (x > 0 && x < 99 && y < h) b[y * 100 + x] = a[y * 100 + x - 1];"), "a>b 1+0 0+0"},
      {plane("if (x >= 1 && x < w && y < h) b[y * pitch + x] = a[y * pitch + x - 1];"),
       "a>b 1+0 0+0"}, // asks for w <= pitch
      {row("if (i < n * d) { int x = i % d, y = i / d; b[i] = a[y * d + max(x - 1, 0)]; }"), "a>b 1+0 0+0"},
  });
}

TEST(TimeStepsTest, WhatIsNone) {
  expectSteps({
      {row("if (i > 0 && i < n) b[i - 1] = a[i] + b[i];"), "reads what it writes"},
      {row("if (i > 0 && i < n) { b[i] = a[i - 1]; b[i + n] = a[i]; }"), "other cells than its own"},
      {row("if (i >= d && i < n) b[i] = a[i - d];"), "not at a constant distance"},
      {row("if (i < n) b[i] = a[n - 1 - i];"), "not at a constant distance"},
      {row("if (i < n) b[i] = a[i / 2];"), "by a rule"},
      {row("if (i < n) b[i] = a[(i + 20) % n];"), "by a rule that leads to far cells"},
      {row("if (i > 0 && i < n) b[i] = a[(i + 1) % n];"), "not all computed"}, // the ring has a gap
      {plane("if (x < w && y > 0 && y < h) b[y * w + x] = x < 5 ? a[(y - 1) * w + (x + 1) % w] : 0;"),
       "only some cells look around"},
      {row("if (i > 0 && i < n && c[i] > 0) b[i] = a[i - 1];"), "depends on more than their indices"},
      {row("if (i > 0 && i < n) b[i] = c[i] > 0 ? a[i - 1] : 0;"), "depends on more than indices"},
      {row("for (; i < n; i += gridDim.x * blockDim.x) b[i] = a[i];"), "a thread's place"},
      {row("if (i < n) atomicAdd(&b[i], a[i]);"), "it"},
      {row("if (i < n) b[i] = a[i] + threadIdx.x;"), "a thread's place in its block"},
      {plane("if (x < w && y > 0 && y < h) b[y * w + x] = a[y * w + x - 1];"), "a cell of another row"},
      {plane("if (x < w && y < h) b[x * y + x] = a[x];"), "no cell of a grid"},
  });
}

} // namespace
