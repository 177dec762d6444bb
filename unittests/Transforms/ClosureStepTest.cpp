//===- ClosureStepTest.cpp - which kernels are steps of a closure ---------===//
#include "optiml/Transforms/ClosureStep.h"
#include "optiml/Analysis/Read.h"
#include <gtest/gtest.h>

using namespace optiml;

namespace {

/// Kernels and what they should be: "min + d", or "none". One parse for all of them.
void expectSteps(const std::vector<std::pair<std::string, std::string>> &cases) {
  std::string text;
  for (size_t i = 0; i < cases.size(); ++i)
    text += "namespace n" + std::to_string(i) + " {\n" + cases[i].first + "\n}\n";
  Toolchain toolchain = llvm::cantFail(Toolchain::find("x"));
  auto program = llvm::cantFail(
      Program::parse("/closures.cu", text, CompileOptions::parse({"/closures.cu"}), toolchain, View::Device));
  ASSERT_EQ(program->kernels().size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    auto kernel = llvm::cantFail(readKernel(*program, program->kernels()[i]));
    auto idiom = recognizeClosureStep(*kernel);
    std::string found = idiom ? idiom->op + " " + idiom->with + " " + idiom->in : "none";
    if (idiom && !idiom->infinite.empty())
      found += " " + idiom->infinite + (idiom->infiniteAlone ? " alone" : "");
    if (!idiom)
      llvm::consumeError(idiom.takeError());
    EXPECT_EQ(found, cases[i].second) << cases[i].first;
  }
}

std::string grid(const std::string &body, const std::string &type = "int") {
  return "__global__ void relax(" + type + " *d, int n, int k) { int j = blockIdx.x * blockDim.x + threadIdx.x; " +
         "int i = blockIdx.y * blockDim.y + threadIdx.y; " + body + " }";
}

TEST(ClosureStepTest, ShortestPathsInManyWords) {
  expectSteps({
      {grid("if (i >= n || j >= n) return; int t = d[i * n + k] + d[k * n + j]; if (t < d[i * n + j]) d[i * n + j] = "
            "t;"),
       "min + d"},
      {grid("if (i < n && j < n) d[i * n + j] = min(d[i * n + j], d[i * n + k] + d[k * n + j]);"), "min + d"},
      {grid("if (i < n && j < n) d[i * n + j] = fminf(d[k * n + j] + d[i * n + k], d[i * n + j]);", "float"),
       "min + d"},
      {grid("if (i < n) { if (j < n) { double old = d[i * n + j], way = d[i * n + k] + d[k * n + j]; d[i * n + j] = "
            "old > "
            "way ? way : old; } }",
            "double"),
       "min + d"},
      {grid("if (i < n && j < n && i != k && j != k) { const int a = d[i * n + k]; if (a + d[k * n + j] <= d[i * n + "
            "j]) "
            "d[i * n + j] = a + d[k * n + j]; }"),
       "min + d"},
      {grid("if (i < n && j < n) { int a = d[i * n + k], b = d[k * n + j]; if (a != 2147483647 && b != 2147483647 && a "
            "+ b "
            "< d[i * n + j]) d[i * n + j] = a + b; }"),
       "min + d 2147483647ll alone"},
      {grid("if (i < n && j < n) { float a = d[i * n + k]; if (a >= 1e30f) return; float s = a + d[k * n + j]; if (d[i "
            "* n "
            "+ j] > s) d[i * n + j] = s; }",
            "float"),
       "min + d 1e30f"},
      {"__global__ void fw(unsigned *w, int n, int through) { int t = blockIdx.x * blockDim.x + threadIdx.x; if (t >= "
       "n * "
       "n) return; int r = t / n, c = t % n; unsigned s = w[r * n + through] + w[through * n + c]; if (s < w[t]) w[t] "
       "= "
       "s; }",
       "min + w"},
      {"template <int N> __device__ int at(int r, int c) { return r * N + c; } __global__ void fw(long long *w, int k) "
       "{ "
       "size_t c = blockIdx.x * (size_t)blockDim.x + threadIdx.x; int r = blockIdx.y; if (c < 500) { long long s = "
       "w[at<500>(r, k)] + "
       "w[at<500>(k, c)]; if (s < w[at<500>(r, c)]) w[at<500>(r, c)] = s; } }",
       "min + w"},
      {"__global__ void fw(float *w, int pitch, int k) { float *row = w + threadIdx.x * pitch; row[blockIdx.x] = "
       "fminf(row[blockIdx.x], row[k] + w[k * pitch + blockIdx.x]); }",
       "min + w"},
  });
}

TEST(ClosureStepTest, OtherSemirings) {
  expectSteps({
      {grid("if (i < n && j < n) { float w = fminf(d[i * n + k], d[k * n + j]); if (w > d[i * n + j]) d[i * n + j] = "
            "w; }",
            "float"),
       "max min d"},
      {grid("if (i < n && j < n) d[i * n + j] = min(d[i * n + j], max(d[i * n + k], d[k * n + j]));"), "min max d"},
      {grid("if (i < n && j < n) { double p = d[i * n + k] * d[k * n + j]; if (p > d[i * n + j]) d[i * n + j] = p; }",
            "double"),
       "max * d"},
      {grid("if (i < n && j < n) d[i * n + j] |= d[i * n + k] & d[k * n + j];", "unsigned"), "| & d"},
      {grid("if (i < n && j < n && d[i * n + k] && d[k * n + j]) d[i * n + j] = 1;"), "| & d 1"},
      {grid("if (i < n && j < n && !d[i * n + j]) d[i * n + j] = d[i * n + k] && d[k * n + j];"), "| & d 1"},
      {grid("if (i < n && j < n) d[i * n + j] = d[i * n + j] || (d[i * n + k] && d[k * n + j]);"), "| & d 1"},
  });
}

TEST(ClosureStepTest, WhatIsAlmostAStepIsNone) {
  const std::string in = "if (i >= n || j >= n) return; ";
  expectSteps({
      {grid(in + "int t = d[i * n + k] + d[k * n + j]; if (t > d[i * n + j]) d[i * n + j] = t;"), "none"}, // longest
      {grid(in + "int t = d[i * n + k] - d[k * n + j]; if (t < d[i * n + j]) d[i * n + j] = t;"), "none"},
      {grid(in + "int t = d[i * n + k] + d[j * n + k]; if (t < d[i * n + j]) d[i * n + j] = t;"), "none"}, // transposed
      {grid(in + "int t = d[i * n + k] + d[k * n + j]; if (t < d[j * n + i]) d[i * n + j] = t;"), "none"},
      {grid(in + "int t = d[i * n + k] + d[k * n + j] + 1; if (t < d[i * n + j]) d[i * n + j] = t;"), "none"},
      {grid(in + "if (i == j) return; int t = d[i * n + k] + d[k * n + j]; if (t < d[i * n + j]) d[i * n + j] = t;"),
       "none"}, // the diagonal stays as it is
      {grid(in + "if (j < i) return; int t = d[i * n + k] + d[k * n + j]; if (t < d[i * n + j]) d[i * n + j] = t;"),
       "none"},
      {grid(in + "int t = d[i * n + k] + d[k * n + j]; if (t < 100) d[i * n + j] = t;"), "none"},
      {grid(in + "float t = d[i * n + k] * d[k * n + j]; if (t < d[i * n + j]) d[i * n + j] = t;", "float"), "none"},
      {grid(in + "d[i * n + j] ^= d[i * n + k] & d[k * n + j];"), "none"},
      {grid(in + "if (d[i * n + k] || d[k * n + j]) d[i * n + j] = 1;"), "none"},
      {grid(in + "if (d[i * n + k] > 1 && d[k * n + j]) d[i * n + j] = 1;"), "none"},
      {"__global__ void p(int *d, int *via, int n, int k) { int t = blockIdx.x * blockDim.x + threadIdx.x; if (t >= n "
       "* n) "
       "return; int s = d[t / n * n + k] + d[k * n + t % n]; if (s < d[t]) { d[t] = s; via[t] = k; } }",
       "none"}, // of several shortest paths, which one is remembered depends on the order
      {"__global__ void p(const int *d, int *e, int n, int k) { int t = blockIdx.x * blockDim.x + threadIdx.x; if (t < "
       "n * "
       "n) e[t] = min(d[t], d[t / n * n + k] + d[k * n + t % n]); }",
       "none"},
  });
}

} // namespace
