//===- ProgramTest.cpp - what is seen of a program ------------------------===//
#include "optiml/Frontend/Program.h"
#include "optiml/Frontend/DeviceText.h"
#include "optiml/Support/TempDir.h"
#include <gtest/gtest.h>

using namespace optiml;

static std::unique_ptr<Program> parsed(const TempDir &dir, const char *text) {
  std::string file = dir.file("a.cu");
  EXPECT_FALSE(llvm::errorToBool(writeFileAtomically(file, text)));
  auto program =
      Program::parse(file, text, CompileOptions::parse({"a.cu"}), llvm::cantFail(Toolchain::find("x")), View::Device);
  EXPECT_TRUE(bool(program)) << llvm::toString(program.takeError());
  return program ? std::move(*program) : nullptr;
}

TEST(Program, ElementsOfDeviceVariables) {
  TempDir dir = llvm::cantFail(TempDir::create("optiml-program-test"));
  auto program = parsed(dir, "__device__ const double sum[2][3] = {};\n"
                             "namespace n { static __constant__ float4 table[8]; }\n"
                             "int host;\n"
                             "__global__ void k(int *x) { __shared__ int s[4]; *x = s[0]; }\n");
  ASSERT_TRUE(program);
  std::string found;
  for (const DeviceVariable &v : program->variables())
    found += v.symbol + ":" + v.element + " ";
  EXPECT_EQ(found, "_ZL3sum:double _ZN1nL5tableE:float ");
}

TEST(Program, PointersInParametersByValue) {
  TempDir dir = llvm::cantFail(TempDir::create("optiml-program-test"));
  const char *text = "template <typename T> struct Span { T *data; unsigned long n; };\n"
                     "struct Grid { int nx, ny; Span<const float> in; Span<float> out; };\n"
                     "struct Params : Grid { double *sums[2]; void *opaque; union { int *a; float *b; }; };\n"
                     "__global__ void k(const float *x, Params p, Span<short> s, int n) { p.out.data[n] = x[n]; }\n";
  auto program = parsed(dir, text);
  ASSERT_TRUE(program);
  ASSERT_EQ(program->kernels().size(), 1u);
  std::string found;
  for (const PointerField &p : program->kernels()[0].pointers)
    found += std::to_string(p.parameter) + "+" + std::to_string(p.offset) + ":" + p.pointee + " ";
  EXPECT_EQ(found, "0+0:float 1+8:float 1+24:float 1+40:double 1+48:double 2+0:short ");
}

TEST(Program, ArgumentsOfMain) {
  TempDir dir = llvm::cantFail(TempDir::create("optiml-program-test"));
  const char *kernel =
      "__global__ void k(int *x) { *x = 1; }\nint number(int count, char **words) { return count + words[1][0]; }\n";
  auto reads = [&](const char *main) { return parsed(dir, (std::string(kernel) + main).c_str())->readsArguments(); };
  EXPECT_TRUE(reads("")); // in another file
  EXPECT_FALSE(reads("int main() { return 0; }"));
  EXPECT_FALSE(reads("int main(int argc, char **argv) { int n = 8; return n; }"));
  EXPECT_TRUE(reads("int main(int argc, char **argv) { return argc > 1; }"));
  EXPECT_TRUE(
      reads("int main(int argc, char **argv) { auto parse = [&] { return number(2, argv); }; return parse(); }"));
}

// A structure of one type throughout is an array of it; of one with a gap or several types the places are known.
TEST(Program, PointersToStructures) {
  TempDir dir = llvm::cantFail(TempDir::create("optiml-program-test"));
  const char *text = "struct Vec { double x, y, z; };\n"
                     "template <int N> struct Body : Vec { Vec v; double rest[N]; };\n"
                     "struct Mixed { float x; int id; };\n"
                     "struct Choice { union { float f; int i; }; };\n"
                     "struct alignas(16) Gap { float x, y, z; };\n"
                     "struct Bits { unsigned a : 4, b : 28; };\n"
                     "__global__ void k(const Body<2> *b, Mixed *m, Choice *c, Gap *g, Bits *t, float4 *f, int *i) { "
                     "i[0] = m->id + int(b->x); }\n";
  auto program = parsed(dir, text);
  ASSERT_TRUE(program);
  ASSERT_EQ(program->kernels().size(), 1u);
  std::string found;
  for (const PointerField &p : program->kernels()[0].pointers)
    found += std::to_string(p.parameter) + ":" + p.pointee + " ";
  EXPECT_EQ(found, "0:double 1:{8: float@0 int@4} 2:Choice 3:{16: float@0 float@4 float@8} 4:Bits 5:float 6:int ");
}

// What all texts of a program for NVRTC begin with: directives up to the first declaration.
TEST(Program, HeadOfItsDeviceText) {
  TempDir dir = llvm::cantFail(TempDir::create("optiml-program-test"));
  auto headOf = [&](const std::string &text) {
    auto program = parsed(dir, text.c_str());
    return program ? DeviceText::of(*program).head() : "no program";
  };
  const std::string kernel = "__global__ void k(__half *x, int n) { x[n] = __float2half(float(TWICE(n))); }\n",
                    includes =
                        "/* All that\n   is included. */\n#include <cuda_fp16.h>\n#define TWICE(x) \\\n  ((x) + (x))\n"
                        "#ifdef MORE // not here\n#include <cooperative_groups.h>\n#endif\n";
  std::string head = headOf(includes + "#if 1\n" + kernel + "#endif\n");
  EXPECT_NE(head.find("#include <cuda_fp16.h>"), std::string::npos) << head;
  EXPECT_TRUE(llvm::StringRef(head).ends_with("#endif\n")) << head;
  EXPECT_EQ(head.find("#if 1"), std::string::npos) << head;
  EXPECT_EQ(headOf("#define TWICE(x) (2 * (x))\n__global__ void k(int *x, int n) { x[n] = TWICE(n); }\n"), "")
      << "it includes nothing";
}
