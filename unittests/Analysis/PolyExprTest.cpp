//===- PolyExprTest.cpp - trees of polynomials ----------------------------===//
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/Read.h"
#include <gtest/gtest.h>

using namespace optiml;

TEST(PolyExpr, MembersOfParametersAreNoNamesOfTheirOwn) {
  const char *text = "struct Shape { int pad, rows; struct { short cols; } inner; };\n"
                     "__global__ void k(float *x, Shape s, Shape of) { x[threadIdx.x] = 0; }\n";
  Toolchain toolchain = llvm::cantFail(Toolchain::find("x"));
  auto program =
      llvm::cantFail(Program::parse("/a.cu", text, CompileOptions::parse({"/a.cu"}), toolchain, View::Device));
  auto kernel = llvm::cantFail(readKernel(*program, program->kernels()[0]));
  KernelModel model(*kernel, {0, 0, 0});
  for (const char *name : {"s.rows", "of.rows", "of.inner.cols"}) { // the kernel itself reads none of them
    ExprRef tree = polyExpr(model, Poly::atom(name));
    EXPECT_EQ(str(tree), name);
    EXPECT_EQ(tree->kind, ExprKind::Member) << name;
    EXPECT_EQ(tree->type.bytes, name == std::string("of.inner.cols") ? 2u : 4u);
  }
  EXPECT_EQ(polyExpr(model, Poly::atom("blockDim.x"))->kind, ExprKind::Builtin);
  EXPECT_EQ(polyExpr(model, Poly::atom("n"))->kind, ExprKind::Var);
}
