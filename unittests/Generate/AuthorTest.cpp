//===- AuthorTest.cpp - what models may write -----------------------------===//
#include "optiml/Generate/Author.h"
#include "optiml/Generate/ProgramText.h"
#include "gtest/gtest.h"

using namespace optiml::gen;

namespace {

const std::string kernel = "__global__ void k(int *p) { *p = 1; }\n";

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
Harness harnessOf(const std::string &operation, Options options = {}) {
  llvm::Expected<ProgramSpec> spec = resolve({operation, "", std::move(options), {}, {}}, Library::builtin());
  if (!spec) {
    ADD_FAILURE() << operation << ": " << llvm::toString(spec.takeError());
    return {};
  }
  llvm::Expected<Harness> made = writeHarness(*spec, "SAME-1", Library::builtin());
  if (!made) {
    ADD_FAILURE() << operation << ": " << llvm::toString(made.takeError());
    return {};
  }
  return *made;
}

TEST(Author, ReadsRequestsInTheLibrarysTerms) {
  ModelRequest known =
      llvm::cantFail(readModelRequest("{\"request\": {\"operation\": \"sum\", \"options\": {\"n\": 3}}}"));
  ASSERT_TRUE(known.request.has_value());
  EXPECT_EQ(commandLine(*known.request), "optiml-gen sum --n=3");
  ModelRequest none = llvm::cantFail(readModelRequest("{\"request\": null, \"none\": \"no such\\nthing\"}"));
  EXPECT_FALSE(none.request.has_value());
  EXPECT_EQ(none.none, "no such thing");
  for (const char *bad : {"", "{}", "{\"request\": 3}", "{\"request\": {\"op\": \"sum\"}}"}) {
    llvm::Expected<ModelRequest> read = readModelRequest(bad);
    EXPECT_FALSE(bool(read)) << bad;
    llvm::consumeError(read.takeError());
  }
}

TEST(Author, HarnessGivesWhatTheKernelsNeed) {
  EXPECT_EQ(harnessOf("softmax").signature, "void launch(const float *dX, float *dOut, int rows, int cols)");
  Harness sort = harnessOf("sort", {{"type", "int"}});
  EXPECT_EQ(sort.signature, "void launch(const int *dX, int *dOut, int n)"); // without the library's own scratch
  EXPECT_EQ(sort.text.find("__global__"), std::string::npos);
  EXPECT_NE(sort.text.find("\"SAME-1\""), std::string::npos);
  EXPECT_EQ(sort.text.find("\"PASSED\""), std::string::npos);
}

TEST(Author, HarnessHasWhatItsReferenceCalls) {
  Harness harness = harnessOf("monte-carlo-pi");
  EXPECT_NE(harness.text.find("unsigned randomBits("), std::string::npos);
  EXPECT_NE(harness.reference.find("unsigned randomBits("), std::string::npos);
}

TEST(Author, ExamplesHaveTheFormThatIsAskedFor) {
  ProgramSpec spec = llvm::cantFail(resolve({"stencil-5point", "", {}, {}, {}}, Library::builtin()));
  Harness harness = llvm::cantFail(writeHarness(spec, "SAME-1", Library::builtin()));
  std::string example = llvm::cantFail(writeExample(spec, "it", Library::builtin()));
  EXPECT_NE(example.find(harness.signature + " {"), std::string::npos);
  // Its loop swaps pointers: the result must be where the caller looks for it.
  EXPECT_NE(example.find("if (dOut != firstOut)"), std::string::npos);
  EXPECT_NE(example.find("cudaFree(firstNext)"), std::string::npos);
}

} // namespace
