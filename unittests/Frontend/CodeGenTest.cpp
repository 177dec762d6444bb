//===- CodeGenTest.cpp - Clang in this process ----------------------------===//
#include "optiml/Frontend/CodeGen.h"
#include "optiml/Support/TempDir.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include <gtest/gtest.h>

using namespace optiml;

namespace {

class CodeGen : public testing::Test {
protected:
  void SetUp() override {
    toolchain = llvm::cantFail(Toolchain::find("x"));
    ASSERT_FALSE(llvm::errorToBool(writeFileAtomically(dir.file("scale.h"), "#define FACTOR 3\n")));
    ASSERT_FALSE(llvm::errorToBool(writeFileAtomically(file, source)));
  }

  TempDir dir = llvm::cantFail(TempDir::create("optiml-codegen-test"));
  std::string file = dir.file("a.cu");
  std::string source = "#include \"scale.h\"\n"
                       "__global__ void scale(float *x) { x[threadIdx.x] *= FACTOR; }\n"
                       "int main() { scale<<<1, 32>>>(nullptr); }\n";
  Toolchain toolchain;
  CompileOptions options = CompileOptions::parse({"a.cu"});
  llvm::LLVMContext context;
};

TEST_F(CodeGen, DeviceModuleHasTheKernel) {
  auto module = emitDeviceModule(file, std::nullopt, options, toolchain, context);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  EXPECT_TRUE((*module)->getFunction("_Z5scalePf"));
}

TEST_F(CodeGen, ReplacedTextIncludesBesideTheOriginal) {
  for (int i = 0; i < 3; ++i) { // from the second on by a precompiled include block
    std::string kernel = "k" + std::to_string(i);
    std::string text = "#include \"scale.h\"\n__global__ void " + kernel + "(int *x) { *x = FACTOR; }\n";
    auto module = emitDeviceModule(file, text, options, toolchain, context);
    ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
    EXPECT_TRUE((*module)->getFunction("_Z2" + kernel + "Pi"));
  }
}

TEST_F(CodeGen, ErrorsNameThePlace) {
  for (int i = 0; i < 2; ++i) {
    auto module = emitDeviceModule(file, "#include \"scale.h\"\n\n__global__ void k() { missing(); }\n", options,
                                   toolchain, context);
    ASSERT_FALSE(bool(module));
    EXPECT_EQ(llvm::toString(module.takeError()), file + ":3:23: use of undeclared identifier 'missing'");
  }
}

TEST_F(CodeGen, ManagedVariablesAreRefused) {
  auto module = emitDeviceModule(file, "__device__ __managed__ int m;\n", options, toolchain, context);
  ASSERT_FALSE(bool(module));
  EXPECT_EQ(llvm::toString(module.takeError()), file + ":1:12: __managed__ variables are not supported");
}

TEST_F(CodeGen, MissingFileIsNamed) {
  auto module = emitDeviceModule(dir.file("none.cu"), std::nullopt, options, toolchain, context);
  ASSERT_FALSE(bool(module));
  EXPECT_NE(llvm::toString(module.takeError()).find("none.cu: No such file"), std::string::npos);
}

TEST_F(CodeGen, HostObjectIsWritten) {
  llvm::Error error = emitHostObject(file, std::nullopt, options, toolchain, dir.file("a.o"));
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  EXPECT_TRUE(llvm::sys::fs::exists(dir.file("a.o")));
}

} // namespace
