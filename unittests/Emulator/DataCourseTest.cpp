#include "DeviceModule.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "gtest/gtest.h"

using namespace llvm;

namespace {

/// Of a kernel with buffers a and out, a number n, and a structure by value.
bool decides(const std::string &body) {
  LLVMContext context;
  SMDiagnostic problem;
  std::unique_ptr<Module> module = parseAssemblyString(
      "declare i32 @optiml_shuffle(ptr, i32, i32, i32, i32, i32, ptr, i32)\n"
      "declare ptr @optiml.shared(ptr, i32)\ndeclare void @optiml_barrier(ptr, i32, i32)\n"
      "declare float @expf(float)\ndeclare float @llvm.sqrt.f32(float)\n"
      "@table = internal constant [4 x i32] [i32 3, i32 1, i32 2, i32 0]\n"
      "define internal float @again(float %v) {\n  %r = call float @again(float %v)\n  ret float %r\n}\n"
      "define void @kernel(ptr %context, i32 %x, i32 %y, i32 %z, ptr %a, ptr %out, i32 %n, ptr byval({i32, i32}) %s) "
      "{\nentry:\n  %i = getelementptr float, ptr %a, i32 %x\n  %v = load float, ptr %i\n  %w = load i32, ptr %i\n"
      "  %to = getelementptr float, ptr %out, i32 %x\n" +
          body + "  br label %end\nend:\n  ret void\n}\n",
      problem, context);
  if (!module)
    ADD_FAILURE() << problem.getMessage().str();
  return module && optiml::emu::dataDecidesCourse(*module->getFunction("kernel"));
}

TEST(DataCourse, ValuesMayBeAnything) {
  EXPECT_FALSE(decides("  store float %v, ptr %to\n"));
  EXPECT_FALSE(decides("  %e = call float @expf(float %v)\n  %r = call float @llvm.sqrt.f32(float %e)\n"
                       "  %p = fcmp ogt float %r, 1.0\n  %m = select i1 %p, float %r, float %v\n"
                       "  store float %m, ptr %to\n"));
  EXPECT_FALSE(decides("  %old = atomicrmw fadd ptr %out, float %v seq_cst\n"));
  EXPECT_FALSE(decides("  %other = call i32 @optiml_shuffle(ptr %context, i32 0, i32 -1, i32 %w, i32 1, i32 31, ptr "
                       "null, i32 0)\n  store i32 %other, ptr %to\n"));
  EXPECT_FALSE(decides("  %tile = call ptr @optiml.shared(ptr %context, i32 0)\n"
                       "  %slot = getelementptr float, ptr %tile, i32 %x\n  store float %v, ptr %slot\n"
                       "  call void @optiml_barrier(ptr %context, i32 0, i32 0)\n  %back = load float, ptr %slot\n"
                       "  store float %back, ptr %to\n"));
}

TEST(DataCourse, PlacesAndBranchesMayNot) {
  EXPECT_TRUE(decides("  %g = getelementptr float, ptr %a, i32 %w\n  %u = load float, ptr %g\n"));
  EXPECT_TRUE(decides("  %g = getelementptr float, ptr %out, i32 %w\n  store float 1.0, ptr %g\n"));
  EXPECT_TRUE(decides("  %p = fcmp ogt float %v, 1.0\n  br i1 %p, label %end, label %more\nmore:\n"));
  EXPECT_TRUE(decides("  %p = fcmp ogt float %v, 1.0\n  %q = select i1 %p, ptr %a, ptr %out\n"
                      "  store float 1.0, ptr %q\n"));
  EXPECT_TRUE(decides("  %old = atomicrmw add ptr %out, i32 1 seq_cst\n  %g = getelementptr i32, ptr %a, i32 %old\n"
                      "  store i32 1, ptr %g\n"));
  EXPECT_TRUE(decides("  %other = call i32 @optiml_shuffle(ptr %context, i32 0, i32 %w, i32 1, i32 1, i32 31, ptr "
                      "null, i32 0)\n"));
  EXPECT_TRUE(decides("  %r = call float @again(float 1.0)\n"));
}

TEST(DataCourse, ParametersAndConstantsAreNoData) {
  EXPECT_FALSE(decides("  %p = icmp slt i32 %x, %n\n  br i1 %p, label %more, label %end\nmore:\n"));
  EXPECT_FALSE(decides("  %rows = load i32, ptr %s\n  %p = icmp slt i32 %x, %rows\n"
                       "  br i1 %p, label %more, label %end\nmore:\n"));
  EXPECT_FALSE(decides("  %t = getelementptr i32, ptr @table, i32 %x\n  %k = load i32, ptr %t\n"
                       "  %g = getelementptr float, ptr %a, i32 %k\n  %u = load float, ptr %g\n"));
}

TEST(DataCourse, WrittenParametersAreData) {
  EXPECT_TRUE(decides("  store i32 %w, ptr %s\n  %rows = load i32, ptr %s\n  %p = icmp slt i32 %x, %rows\n"
                      "  br i1 %p, label %more, label %end\nmore:\n"));
}

} // namespace
