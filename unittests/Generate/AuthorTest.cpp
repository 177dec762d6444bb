//===- AuthorTest.cpp - what models may write -----------------------------===//
#include "optiml/Generate/Author.h"
#include "optiml/Generate/ProgramText.h"
#include "optiml/Generate/WrittenProgram.h"
#include "gtest/gtest.h"

using namespace optiml::gen;

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

TEST(Author, ReadsAnswersLeniently) {
  auto program = [](const std::string &answer) {
    llvm::Expected<std::string> text = readProgram(answer);
    return text ? *text : "error: " + llvm::toString(text.takeError());
  };
  EXPECT_EQ(program("Sure! {\"program\": \"x\"}"), "x");
  EXPECT_EQ(program("```cuda\n" + kernel + "```\nDone."), kernel);
  for (const char *bad : {"", "no", "{\"program\": 3}", "```\nint x;\n```", "```cuda\n__global__", "{\"text\": \"x\"}"})
    EXPECT_EQ(program(bad).substr(0, 6), "error:") << bad;
}

TEST(Author, ReadsTasksWithinLimits) {
  auto sizes = [](const std::string &text) { return readTask("{\"definition\": \"d\", \"sizes\": [" + text + "]}"); };
  llvm::Expected<ProgramTask> task = sizes("{\"name\": \"n\", \"default\": 1000000, \"small\": 100, \"other\": 33}");
  ASSERT_TRUE(bool(task)) << llvm::toString(task.takeError());
  EXPECT_EQ(task->arguments.at(0).asked, 1000000);
  for (const char *bad : {"3", "{\"name\": \"n\"}", "{\"name\": \"n\", \"default\": 0, \"small\": 1, \"other\": 1}",
                          "{\"name\": \"n\", \"default\": 1, \"small\": 1000000, \"other\": 1}",
                          "{\"name\": \"n\", \"default\": 1.5, \"small\": 1, \"other\": 1}"}) {
    llvm::Expected<ProgramTask> read = sizes(bad);
    EXPECT_FALSE(bool(read)) << bad;
    llvm::consumeError(read.takeError());
  }
}

/// Empty where the request or its program fails, which is a failure of the test.
Harness harnessOf(const std::string &request) {
  llvm::Expected<Understood> understood = understand(request, Library::builtin(), Vocabulary::builtin());
  if (!understood) {
    ADD_FAILURE() << request << ": " << llvm::toString(understood.takeError());
    return {};
  }
  llvm::Expected<Harness> made = writeHarness(*understood, "SAME-1", Library::builtin());
  if (!made) {
    ADD_FAILURE() << request << ": " << llvm::toString(made.takeError());
    return {};
  }
  return *made;
}

TEST(Author, HarnessGivesWhatTheKernelsNeed) {
  EXPECT_EQ(harnessOf("row-wise softmax of a float matrix").signature,
            "void launch(const float *dX, float *dOut, int rows, int cols)");
  Harness sort = harnessOf("sort 1000 ints");
  EXPECT_EQ(sort.signature, "void launch(const int *dX, int *dOut, int n)"); // without the library's own scratch
  EXPECT_EQ(sort.text.find("__global__"), std::string::npos);
  EXPECT_NE(sort.text.find("\"SAME-1\""), std::string::npos);
  EXPECT_EQ(sort.text.find("\"PASSED\""), std::string::npos);
}

TEST(Author, HarnessHasWhatItsReferenceCalls) {
  Harness harness = harnessOf("monte carlo pi");
  EXPECT_NE(harness.text.find("unsigned randomBits("), std::string::npos);
  EXPECT_NE(harness.reference.find("unsigned randomBits("), std::string::npos);
}

TEST(Author, ExamplesHaveTheFormThatIsAskedFor) {
  llvm::Expected<Understood> understood =
      understand("5-point stencil, 3 steps", Library::builtin(), Vocabulary::builtin());
  ASSERT_TRUE(bool(understood)) << llvm::toString(understood.takeError());
  Harness harness = llvm::cantFail(writeHarness(*understood, "SAME-1", Library::builtin()));
  std::string example = llvm::cantFail(writeExample(*understood, "it", Library::builtin()));
  EXPECT_NE(example.find(harness.signature + " {"), std::string::npos);
  // Its loop swaps pointers: the result must be where the caller looks for it.
  EXPECT_NE(example.find("if (dOut != firstOut)"), std::string::npos);
  EXPECT_NE(example.find("cudaFree(firstNext)"), std::string::npos);
}

} // namespace
