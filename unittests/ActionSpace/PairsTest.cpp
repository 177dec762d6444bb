//===- PairsTest.cpp - every transform after every other ------------------===//
//
// Transforms need not know each other's output: what one makes is an ordinary kernel. For every pair, the sites that
// the second finds after the first are held here, and everything that a pair makes reads back as the same tree.
//
//===----------------------------------------------------------------------===//
#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/Read.h"
#include "optiml/Support/Error.h"
#include <gtest/gtest.h>

using namespace optiml;

namespace {

const char *source = R"(
__global__ void product(int m, int n, int k, const float *a, const float *b, float *c) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n)
    for (int p = 0; p < k; ++p)
      c[row * n + col] += a[row * k + p] * b[p * n + col];
}
__global__ void blur(int w, int h, const float *in, float *out, const float *weights) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float sum = 0.0f;
  for (int i = -2; i <= 2; ++i)
    for (int j = -2; j <= 2; ++j) {
      int u = min(max(x + j, 0), w - 1), v = min(max(y + i, 0), h - 1);
      sum += weights[(i + 2) * 5 + j + 2] * in[v * w + u];
    }
  out[y * w + x] = sum;
}
__global__ void norms(const float *x, float *out, float *total, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float s = 0.0f;
    for (int j = 0; j < cols; ++j)
      s += x[row * cols + j] * x[row * cols + j];
    out[row] = s;
    atomicAdd(total, s);
  }
}
__global__ void outer(int n, const float *a, const float *b, float *c) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n)
    for (int j = row; j < n; ++j)
      c[row * n + j] = a[row] * b[j];
}
__global__ void scale(long long n, double f, double *x) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= f;
}
)";

struct Variants {
  Toolchain toolchain = llvm::cantFail(Toolchain::find("x"));
  CompileOptions options = CompileOptions::parse({"/kernels.cu"});
  std::unique_ptr<Program> program = parse(source);
  std::unique_ptr<KernelSpace> space = llvm::cantFail(KernelSpace::create(
      *program, [](const KernelDecl &) { return true; },
      [](const KernelDecl &) {
        LaunchHints hints;
        hints.grid = {64, 64, 1};
        hints.block = {16, 16, 1};
        hints.scalars["cols"] = 16;
        return hints;
      }));

  std::unique_ptr<Program> parse(const std::string &text) {
    return llvm::cantFail(Program::parse("/kernels.cu", text, options, toolchain, View::Device));
  }
};

/// The transforms with sites in `kernel`.
std::string transformsOf(const SearchState &state, llvm::StringRef kernel) {
  std::set<std::string> names;
  for (const ActionTemplate &site : state.legal)
    if (llvm::StringRef(site.site).starts_with(kernel))
      names.insert(site.transform);
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : " ") + name;
  return text;
}

} // namespace

TEST(Pairs, WhatIsLegalAfterWhat) {
  Variants v;
  SearchState root = llvm::cantFail(v.space->root());
  std::map<std::string, std::string> found;
  found["product:"] = transformsOf(root, "product");
  found["blur:"] = transformsOf(root, "blur");
  found["norms:"] = transformsOf(root, "norms");
  found["outer:"] = transformsOf(root, "outer");
  found["scale:"] = transformsOf(root, "scale");
  for (const ActionTemplate &first : root.legal) {
    std::string kernel = first.site.substr(0, first.site.find_first_of("/:"));
    auto after = v.space->apply(root, {first.transform, first.site, first.values[0]});
    ASSERT_TRUE(bool(after)) << first.transform << " " << llvm::toString(after.takeError());
    found.try_emplace(kernel + ": " + first.transform, transformsOf(*after, kernel));
  }
  const std::map<std::string, std::string> expected = {
      {"product:", "block-shape promote-accumulator qualify-pointers unroll vectorize-loop"},
      {"product: block-shape", "coarsen promote-accumulator qualify-pointers stage-shared unroll vectorize-loop"},
      {"product: promote-accumulator", "block-shape qualify-pointers unroll vectorize-loop"},
      {"product: qualify-pointers", "block-shape promote-accumulator unroll vectorize-loop"},
      {"product: vectorize-loop", "block-shape promote-accumulator qualify-pointers unroll"},
      {"product: unroll", "block-shape promote-accumulator qualify-pointers"},
      {"blur:", "block-shape qualify-pointers unroll"},
      {"blur: block-shape", "coarsen qualify-pointers stage-shared stage-window unroll vectorize-access"},
      {"blur: qualify-pointers", "block-shape unroll"},
      {"blur: unroll", "block-shape qualify-pointers unroll"},
      {"norms:", "block-shape distribute-loop grid-stride qualify-pointers specialize-scalar split-reduction unroll "
                 "vectorize-loop"},
      {"norms: block-shape",
       "coarsen privatize-atomic qualify-pointers specialize-scalar stage-shared stage-strips unroll "
       "vectorize-access vectorize-loop"},
      {"norms: distribute-loop", "qualify-pointers specialize-scalar unroll"},
      {"norms: grid-stride", "privatize-atomic qualify-pointers specialize-scalar unroll vectorize-loop"},
      {"norms: qualify-pointers",
       "block-shape distribute-loop grid-stride specialize-scalar split-reduction unroll vectorize-loop"},
      {"norms: specialize-scalar", "block-shape grid-stride qualify-pointers unroll vectorize-loop"},
      {"norms: vectorize-loop", "block-shape distribute-loop grid-stride qualify-pointers specialize-scalar unroll"},
      {"norms: split-reduction", "specialize-scalar unroll"},
      {"norms: unroll", "block-shape grid-stride qualify-pointers specialize-scalar"},
      {"outer:", "block-shape distribute-loop grid-stride loop-to-grid qualify-pointers unroll"},
      {"outer: block-shape", "coarsen qualify-pointers unroll"},
      {"outer: distribute-loop", "qualify-pointers unroll"},
      {"outer: grid-stride", "qualify-pointers unroll"},
      {"outer: loop-to-grid", "block-shape qualify-pointers swap-thread-axes transpose-through-shared"},
      {"outer: qualify-pointers", "block-shape distribute-loop grid-stride loop-to-grid unroll"},
      {"outer: unroll", "block-shape grid-stride qualify-pointers"},
      {"scale:", "block-shape grid-stride qualify-pointers"},
      {"scale: block-shape", "coarsen qualify-pointers vectorize-access"},
      {"scale: grid-stride", "qualify-pointers unroll"},
      {"scale: qualify-pointers", "block-shape grid-stride"},
  };
  for (const auto &[key, value] : found)
    EXPECT_EQ(value, expected.count(key) ? expected.at(key) : "?") << key;
}

TEST(Pairs, WhatTheyMakeReadsBackAsTheSameTree) {
  Variants v;
  SearchState root = llvm::cantFail(v.space->root());
  std::string text = source;
  std::vector<std::pair<std::shared_ptr<Kernel>, std::string>> made; // with their recipes
  auto keep = [&](const SearchState &state) {
    const auto &variant = static_cast<const TreeVariant &>(*state.variant);
    for (const KernelRewrite &rewrite : variant.rewrites) {
      auto tree = variant.kernels.at(rewrite.original).tree->clone();
      tree->name = "made" + std::to_string(made.size());
      text += print(*tree);
      made.emplace_back(tree, recipeText(variant.recipe));
    }
  };
  auto each = [&](const SearchState &from, llvm::StringRef kernel, auto then) {
    for (const ActionTemplate &site : from.legal) {
      if (!kernel.empty() && siteKernel(site.site) != kernel) // what is done to one kernel says nothing of another
        continue;
      for (const Params *params : {&site.values.front(), &site.values.back()}) {
        auto next = v.space->apply(from, {site.transform, site.site, *params});
        if (!next) { // only ever with a reason
          llvm::Error rest =
              llvm::handleErrors(next.takeError(), [](const NotApplicable &n) { EXPECT_NE(n.reason, ""); });
          EXPECT_FALSE(llvm::errorToBool(std::move(rest))) << site.transform << " " << site.site;
          continue;
        }
        keep(*next);
        then(*next, siteKernel(site.site));
      }
    }
  };
  each(root, "", [&](const SearchState &state, llvm::StringRef kernel) {
    each(state, kernel, [](const SearchState &, llvm::StringRef) {});
  });
  ASSERT_GT(made.size(), 100u);
  auto again = v.parse(text);
  for (const auto &[tree, recipe] : made) {
    const KernelDecl *decl = again->findKernel(tree->name);
    ASSERT_TRUE(decl);
    auto read = readKernel(*again, *decl);
    ASSERT_TRUE(bool(read)) << recipe << ": " << llvm::toString(read.takeError());
    EXPECT_TRUE(equal(**read, *tree)) << recipe << "\n" << print(*tree) << print(**read);
  }
}
