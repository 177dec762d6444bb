//===- CubinSymbolsTest.cpp - reading what ptxas wrote --------------------===//
#include "optiml/Gpu/CubinSymbols.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

using namespace optiml::gpu;
namespace fs = std::filesystem;

namespace {

const char *source = R"(#include <cstdio>
__device__ float table[4] = {1, 2, 3};
__device__ float zeros[1024];
__constant__ int coef[2] = {7, 8};
__constant__ int coefZero[4];
static __device__ int hidden = 5;
__managed__ int counter = 3;
__device__ float *pointer = table;
__device__ __noinline__ float apply(float x) { return x * 2; }
__global__ void k(float *a, int n) {
  static __device__ int calls;
  __shared__ float s[8];
  atomicAdd(&calls, 1);
  s[threadIdx.x] = a[n];
  __syncthreads();
  a[0] = table[n] + zeros[n] + coef[n] + coefZero[n] + hidden + counter + pointer[n] + apply(s[n]);
  table[n] = hidden = counter = zeros[n] = n;
  pointer = a;
  printf("%f", a[0]);
}
extern "C" __global__ void plain(float *a) { a[0] = 1; }
)";

/// The cubin of `source`; empty when there is no nvcc.
const std::string &cubin() {
  static const std::string image = [] {
    char dir[] = "/tmp/optiml-cubin-test-XXXXXX";
    if (!mkdtemp(dir))
      return std::string();
    std::string base = dir;
    std::ofstream(base + "/k.cu") << source;
    const char *named = getenv("OPTIML_NVCC");
    std::string compile = " -arch=sm_90 -cubin -o " + base + "/k.cubin " + base + "/k.cu > /dev/null 2>&1";
    std::string nvcc = named ? named : "nvcc";
    if (system((nvcc + compile).c_str()) != 0)
      (void)!system(("/usr/local/cuda/bin/nvcc" + compile).c_str());
    std::ifstream in(base + "/k.cubin", std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    fs::remove_all(base);
    return bytes;
  }();
  return image;
}

const CubinVariable *find(const CubinSymbols &s, const std::string &name) {
  for (const CubinVariable &v : s.variables)
    if (v.name == name)
      return &v;
  return nullptr;
}

} // namespace

TEST(CubinSymbols, KernelsAndVariables) {
  if (cubin().empty())
    GTEST_SKIP() << "no nvcc";
  CubinSymbols s;
  ASSERT_TRUE(readCubin(cubin().data(), cubin().size(), s));
  std::sort(s.kernels.begin(), s.kernels.end());
  EXPECT_EQ(s.kernels, (std::vector<std::string>{"_Z1kPfi", "plain"}));
  std::vector<std::string> names;
  for (const CubinVariable &v : s.variables)
    names.push_back(v.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"_ZZ1kPfiE5calls", "coef", "coefZero", "counter", "hidden", "pointer",
                                             "table", "zeros"}));
  const CubinVariable *table = find(s, "table"), *zeros = find(s, "zeros"), *coef = find(s, "coef");
  ASSERT_TRUE(table && zeros && coef);
  EXPECT_EQ(table->bytes, 16u);
  EXPECT_FALSE(table->constant);
  float values[4] = {1, 2, 3, 0};
  EXPECT_TRUE(table->isInitial(values));
  values[3] = -0.0f;
  EXPECT_FALSE(table->isInitial(values)) << "bytes count";
  EXPECT_EQ(zeros->bytes, 4096u);
  EXPECT_TRUE(zeros->initial.empty());
  std::string content(4096, '\0');
  EXPECT_TRUE(zeros->isInitial(content.data()));
  content[4095] = 1;
  EXPECT_FALSE(zeros->isInitial(content.data()));
  EXPECT_TRUE(coef->constant);
  int coefficients[2] = {7, 8};
  EXPECT_TRUE(coef->isInitial(coefficients));
  EXPECT_TRUE(find(s, "coefZero")->constant);
  EXPECT_TRUE(find(s, "counter")->managed);
  EXPECT_FALSE(find(s, "hidden")->managed);
}

TEST(CubinSymbols, AddressesInVariablesAreTheLoaders) {
  if (cubin().empty())
    GTEST_SKIP() << "no nvcc";
  CubinSymbols s;
  ASSERT_TRUE(readCubin(cubin().data(), cubin().size(), s));
  const CubinVariable *pointer = find(s, "pointer");
  ASSERT_TRUE(pointer);
  EXPECT_EQ(pointer->relocated.size(), 1u);
  uint64_t somewhere = 0x7f0012345678;
  EXPECT_TRUE(pointer->isInitial(&somewhere));
}

TEST(CubinSymbols, RefusesWhatIsNoCubin) {
  CubinSymbols s;
  EXPECT_FALSE(readCubin(nullptr, 0, s));
  std::string text = "\x50\xed\x55\xba fat binary, compressed, or anything else that is not ELF; long enough for one";
  EXPECT_FALSE(readCubin(text.data(), text.size(), s));
  if (cubin().empty())
    GTEST_SKIP() << "no nvcc";
  // Truncated or damaged files must not be read beyond their end.
  for (size_t n = 0; n < cubin().size(); n += 37) {
    std::string cut(cubin(), 0, n);
    readCubin(cut.data(), cut.size(), s);
  }
  for (size_t i = 0; i < cubin().size(); ++i) {
    std::string damaged = cubin();
    damaged[i] = char(damaged[i] ^ 0xff);
    readCubin(damaged.data(), damaged.size(), s);
  }
}
