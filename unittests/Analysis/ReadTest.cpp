//===- ReadTest.cpp - from text to tree and back --------------------------===//
#include "optiml/Analysis/Read.h"
#include "optiml/Analysis/KernelModel.h"
#include <gtest/gtest.h>

using namespace optiml;

namespace {

const char *source = R"(
#define SIZE 64
template <typename T> struct Pair { T first, second; };
__device__ float square(float x) { return x * x; }
__global__ void counterOutside(int n, float *x) {
  int i, k;
  i = blockIdx.x * blockDim.x + threadIdx.x;
  for (k = 0; k < n; k++)
    x[i] += k;
  for (k = 1; k <= SIZE; k += 2)
    x[i] -= k;
}
__global__ void counterUsedAfter(int n, int *x) {
  int k;
  for (k = 0; k < n; ++k)
    if (x[k] == 0)
      break;
  x[threadIdx.x] = k;
}
__global__ void counterOfBothLoops(int n, int *x) {
  int k;
  for (k = 0; k < n; ++k)
    for (k = 0; k < 3; ++k)
      x[k] = 1;
}
__global__ void assignedLater(const int *x, int *y) {
  int a, b;
  if (x[0])
    a = 1;
  else
    a = 2;
  b = a + 1;
  y[threadIdx.x] = b;
}
template <typename T, int N> __global__ void generic(size_t count, const Pair<T> *pairs, T *out) {
  __shared__ T tile[N][N + 1];
  auto at = static_cast<size_t>(blockIdx.x) * N + threadIdx.x;
  if (at >= count)
    return;
  const Pair<T> &p = pairs[at];
  tile[threadIdx.y][threadIdx.x] = p.first > T(0) ? square(p.first) : p.second;
  __syncthreads();
#pragma unroll 4
  for (int k = 0; k < N; ++k) {
    T v = tile[k][threadIdx.x];
    do {
      v *= 0.5f;
    } while (v > 1);
    out[at] += v;
  }
}
__global__ void odd(unsigned n, unsigned *x) {
  extern __shared__ unsigned dynamic[];
  unsigned i = threadIdx.x;
  while (i < n) {
    if (i & 1u) {
      i += blockDim.x;
      continue;
    }
    dynamic[i % 32] = (n - i) / 2 + (x[i] << 3);
    x[i] = atomicAdd(&dynamic[i % 32], ~i ^ 0xffu);
    i += blockDim.x;
  }
}
__global__ void sequenced(int *x) {
  int a = (x[threadIdx.x] = 1, 2);
  x[threadIdx.x + 1] = (a = 3, a + 1);
  for (int i = (x[0] = a, 0); i < a; ++i)
    x[i] = i ? (a -= 1, i) : a;
}
struct Grid {
  int nx, ny;
  __device__ int at(int x, int y) const { return y * nx + x; }
};
class Hidden {
  int nx = 1;

public:
  __device__ int at(int x, int y) const { return y * nx + x; }
};
__global__ void hidden(Hidden h, float *out) { out[h.at(threadIdx.x, 2)] = 1; }
__device__ inline size_t index(size_t row, size_t col, unsigned width) { return row * width + col; }
__global__ void indexed(Grid g, const float *in, float *out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = threadIdx.y;
  out[g.at(x, y + 1)] = in[index(y, x, 5)] + in[g.at(0, 0)];
}
int main() {
  generic<float, 32><<<1, 32>>>(1, nullptr, nullptr);
}
)";

class Read : public testing::Test {
protected:
  static void SetUpTestSuite() {
    toolchain = new Toolchain(llvm::cantFail(Toolchain::find("x")));
    program = parse(source).release();
  }
  static void TearDownTestSuite() {
    delete program;
    delete toolchain;
  }
  static std::unique_ptr<Program> parse(const std::string &text) {
    return llvm::cantFail(
        Program::parse("/kernels.cu", text, CompileOptions::parse({"/kernels.cu"}), *toolchain, View::Device));
  }
  static std::shared_ptr<Kernel> kernel(const Program &from, llvm::StringRef name) {
    for (const KernelDecl &decl : from.kernels())
      if (llvm::StringRef(decl.name).starts_with(name))
        return llvm::cantFail(readKernel(from, decl));
    ADD_FAILURE() << "no kernel " << name.str();
    return nullptr;
  }
  static std::vector<CountedLoop> loops(Kernel &k) {
    std::vector<CountedLoop> result;
    walk(*k.body, [&](Stmt &s) {
      if (auto loop = asCountedLoop(s))
        result.push_back(*loop);
    });
    return result;
  }
  static inline Toolchain *toolchain;
  static inline Program *program;
};

TEST_F(Read, PrintedKernelsReadBackAsTheSameTree) {
  std::string text = source;
  std::vector<std::shared_ptr<Kernel>> trees;
  for (const KernelDecl &decl : program->kernels()) {
    auto tree = llvm::cantFail(readKernel(*program, decl))->clone();
    tree->name = "again" + std::to_string(trees.size());
    text += print(*tree);
    trees.push_back(tree);
  }
  EXPECT_EQ(trees.size(), 9u);
  auto again = parse(text);
  for (const auto &tree : trees)
    EXPECT_TRUE(equal(*kernel(*again, tree->name), *tree)) << print(*tree) << print(*kernel(*again, tree->name));
}

TEST_F(Read, CountersMoveIntoTheirLoops) {
  auto k = kernel(*program, "counterOutside");
  auto found = loops(*k);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].var, "k");
  EXPECT_EQ(found[1].tripCount(), 32);
  EXPECT_EQ(k->body->body[0]->text, "i");
  ASSERT_TRUE(k->body->body[0]->expr) << "the declaration has its value";
  KernelModel model(*k);
  EXPECT_EQ(model.poly(var("i", Type::makeInt())), Poly::atom("globalIdx.x"));
}

TEST_F(Read, CountersThatAreSeenElsewhereStay) {
  EXPECT_TRUE(loops(*kernel(*program, "counterUsedAfter")).empty());
  EXPECT_LE(loops(*kernel(*program, "counterOfBothLoops")).size(), 1u);
  auto k = kernel(*program, "counterOfBothLoops");
  EXPECT_EQ(k->body->body[0]->kind, StmtKind::Decl) << print(*k);
}

TEST_F(Read, ValuesOfBranchesStay) {
  auto k = kernel(*program, "assignedLater");
  EXPECT_EQ(k->body->body[0]->text, "a");
  EXPECT_FALSE(k->body->body[0]->expr);
  EXPECT_EQ(k->body->body[2]->text, "b") << print(*k);
  EXPECT_TRUE(k->body->body[2]->expr);
}

TEST_F(Read, IndexFunctionsAreReadAsTheirArithmetic) {
  auto k = kernel(*program, "indexed");
  KernelModel model(*k);
  Poly width = Poly::atom("g.nx"), x = Poly::atom("globalIdx.x"), y = Poly::atom("threadIdx.y");
  for (const Access &access : model.accesses())
    if (access.write) {
      EXPECT_EQ(access.subscripts.at(0), (y + Poly(1)) * width + x) << access.subscripts[0].str();
    }
  EXPECT_NE(print(*k).find("in[(size_t)y * (unsigned int)5 + (size_t)x]"), std::string::npos) << print(*k);
}

TEST_F(Read, PrivateMembersAreNotNamed) {
  EXPECT_NE(print(*kernel(*program, "hidden")).find("out[h.at(threadIdx.x, 2)]"), std::string::npos);
}

TEST_F(Read, InstantiationsAreReadWithTheirArguments) {
  std::string text = print(*kernel(*program, "generic"));
  EXPECT_NE(text.find("float tile[32][33]"), std::string::npos) << text;
  EXPECT_EQ(text.find(" T "), std::string::npos) << text;
}

} // namespace
