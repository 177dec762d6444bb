//===- ProgramTextCheckTest.cpp - what a model's program may hold ---------===//
#include "optiml/Frontend/ProgramTextCheck.h"
#include "gtest/gtest.h"

using namespace optiml;

namespace {

const std::string kernel = "__global__ void k(int *p) { *p = 1; }\n";

std::string refusal(const std::string &text) {
  llvm::Expected<WrittenProgram> program = checkWrittenProgram(text);
  return program ? "" : llvm::toString(program.takeError());
}

TEST(WrittenProgram, TellsIncludesAndKernels) {
  llvm::Expected<WrittenProgram> program =
      checkWrittenProgram("#include <vector>\n#  include <cuda_fp16.h> // half\n#define N 4\ntemplate <typename T> "
                          "__global__ void __launch_bounds__(256) first(T *p) "
                          "{ extern __shared__ int s[]; }\n__global__ void second(int *thread) {}\n// #include "
                          "\"x\"\nconst char *s = \"system(\";\n");
  ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
  EXPECT_EQ(program->includes, (std::vector<std::string>{"vector", "cuda_fp16.h"}));
  EXPECT_EQ(program->kernels, (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(program->body.find("#include <"), std::string::npos);
  EXPECT_EQ(program->body.size(), program->text.size());
}

TEST(WrittenProgram, RefusesWhatReachesOutside) {
  EXPECT_EQ(refusal(kernel), "");
  for (const char *line : {"#include \"/etc/passwd\"",
                           "#include <../x>",
                           "#inc\\\nlude \"x\"",
                           "%:include \"x\"",
                           "# /**/ include \"x\"",
                           "#include_next <vector>",
                           "#import <vector>",
                           "#embed \"x\"",
                           "#line 1 \"x\"",
                           "#pragma GCC system_header",
                           "_Pragma(\"x\")",
                           "asm(\"\");",
                           "__asm__(\"\");",
                           "int a = __has_include(<x>);",
                           "void f() { std::system(\"id\"); }",
                           "#define C(a) a##b",
                           "extern \"C\" int g();",
                           "int sys\\\ntem;",
                           "char **e = environ;",
                           "// \xc3\xa4",
                           "int a = ?\?(1;",
                           "std::ofstream f;",
                           "void f() { std::remove(\"notes.txt\"); }", // a sandbox only refuses it, unseen
                           "void f() { rename(\"a\", \"b\"); }",
                           "__managed__ int m;"})
    EXPECT_NE(refusal(line + std::string("\n") + kernel), "") << line;
  EXPECT_NE(refusal("int main() { return 0; }"), "");
  EXPECT_NE(refusal(kernel + std::string(maxProgramBytes, ' ')), "");
  EXPECT_EQ(refusal("\n" + kernel + "int f() { return system(0); }").substr(0, 7), "line 3:");
}

TEST(ChangedProgram, MayHoldWhatTheOriginalHolds) {
  const std::string original = "#include \"own.h\"\n#include <thrust/sort.h>\nFILE *f = fopen(\"x\", \"r\");\n"
                               "asm(\"trap;\"\n    \"exit;\");\n// \xc3\xa9\n" +
                               kernel;
  auto refusal = [&](const std::string &more) {
    return llvm::toString(checkChangedProgram(original + more, original));
  };
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal("  #include \"own.h\"\n#include <vector>\nint x;\n"), "");
  for (const char *line : {"#include \"other.h\"", "#include <thrust/scan.h>", "#include MACRO", "#inc\\\nlude \"x\"",
                           "#embed \"x\"", "FILE *g = fopen(\"y\", \"r\");", "asm(\"trap;\");", "\xc3\xa9",
                           "asm(\"trap;\"\n\".incbin \\\"x\\\"\");", "int y = __has_include(\"x\");", "extern int z;"})
    EXPECT_NE(refusal(line), "") << line;
  EXPECT_NE(refusal(std::string(2 << 20, ' ')), "");
}

} // namespace
