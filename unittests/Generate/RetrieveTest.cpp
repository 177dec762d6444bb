//===- RetrieveTest.cpp - plain words without a model ---------------------===//
#include "optiml/Generate/Retrieve.h"
#include "ReadWords.h"
#include "gtest/gtest.h"

using namespace optiml::gen;

namespace {

const Operation &operation(const char *name) { return *Library::builtin().findPublic(name); }

TEST(ReadWords, QuantitiesAreTakenOutOfTheWords) {
  Reading reading = readWords("2^20 1M, 4096x1024 [3, 4] 512 by 256 -1.5 2d 5-point of 64-bit integers");
  std::vector<std::vector<double>> values;
  for (const Token &token : reading.tokens)
    if (!token.isWord())
      values.push_back(token.values);
  EXPECT_EQ(values, (std::vector<std::vector<double>>{{1048576}, {1048576}, {4096, 1024}, {3, 4}, {512, 256}, {-1.5}}));
  EXPECT_EQ(reading.words(), (std::vector<std::string>{"2d", "5", "point", "of"}));
  EXPECT_EQ(reading.type, "long long");
}

TEST(ReadWords, TypesHaveManyNames) {
  const std::pair<const char *, const char *> cases[] = {
      {"in double precision", "double"}, {"1000 floats", "float"},   {"an fp16 tensor", "half"}, {"bf16", "bfloat16"},
      {"unsigned ints", "unsigned"},     {"double every value", ""}, {"half of them", ""},       {"single file", ""},
      {"single precision", "float"},     {"int8 inputs", "int8"},    {"a long time", ""}};
  for (const auto &[text, type] : cases)
    EXPECT_EQ(readWords(text).type, type) << text;
}

TEST(ReadWords, NumbersBecomeOptions) {
  struct Case {
    const char *operation, *words;
    Options options;
    std::vector<std::string> left;
  };
  for (const Case &c : std::vector<Case>{
           {"softmax",
            "row softmax, 4096x1024 halfs",
            {{"type", "half"}, {"rows", "4096"}, {"cols", "1024"}, {"axis", "row"}},
            {}},
           {"softmax",
            "softmax of 300 rows and 700 columns",
            {{"rows", "300"}, {"cols", "700"}, {"axis", "row"}},
            {"columns"}},
           {"gemm", "M=N=K=1000", {{"m", "1000"}, {"n", "1000"}, {"k", "1000"}}, {}},
           {"gemm", "512x256 times 256x128", {{"m", "512"}, {"k", "256"}, {"n", "128"}}, {}},
           {"gemm", "512x256 times 512x128", {}, {"512x256", "512x128"}},
           {"sum", "sum of 500k floats", {{"type", "float"}, {"n", "500000"}}, {}},
           {"sum", "sum of 3 and 4", {}, {"3", "4"}},
           {"divide-constant", "divide 1000 floats by 3", {{"type", "float"}, {"n", "1000"}, {"divisor", "3"}}, {}},
           {"clamp", "clip to [0, 6]", {{"low", "0"}, {"high", "6"}}, {}},
           {"range-histogram", "20 bins from -5 to 5", {{"bins", "20"}, {"low", "-5"}, {"high", "5"}}, {}},
           {"sort",
            "sort 100 ints in descending order",
            {{"type", "int"}, {"n", "100"}, {"order", "descending"}},
            {}}}) {
    Options options;
    EXPECT_EQ(bindOptions(readWords(c.words), operation(c.operation), Library::builtin(), options), c.left) << c.words;
    EXPECT_EQ(options, c.options) << c.words;
  }
}

Retrieval found(const char *words) {
  llvm::Expected<Retrieval> result = retrieve(words, Library::builtin());
  if (!result) {
    ADD_FAILURE() << words << ": " << llvm::toString(result.takeError());
    return {{{&operation("sum"), 0, {}, {}, {}}}, "", {}};
  }
  return *result;
}

TEST(Retrieve, AFormulaMeansTheStageWithItsValues) {
  const std::pair<const char *, Request> cases[] = {
      {"y = 2*x + y for 1e6 doubles", {"saxpy", "", {{"alpha", "2"}, {"n", "1000000"}, {"type", "double"}}, {}, {}}},
      {"2x - 3y", {"axpby", "", {{"alpha", "2"}, {"beta", "-3"}}, {}, {}}},
      {"z[i] = x[i] > 0 ? x[i] : 0.1*x[i]", {"leaky-relu", "", {{"slope", "0.1"}}, {}, {}}},
      {"1/(1+exp(-x))", {"sigmoid", "", {}, {}, {}}},
      {"(a-b)*(a-b)", {"squared-difference", "", {}, {}, {}}}};
  for (const auto &[words, request] : cases) {
    Retrieval retrieval = found(words);
    EXPECT_EQ(retrieval.doubt, "") << words;
    EXPECT_EQ(commandLine(retrieval.matches[0].request), commandLine(request)) << words;
  }
}

TEST(Retrieve, WhatIsNotAccountedForIsDoubted) {
  for (const char *words :
       {"sparse softmax", "softmax of 4096 things and 5 others", "relu then sum of the fourth roots",
        "sum of the eigenvalues", "y = 2*x + y summed over all rows", "clamp an array"})
    EXPECT_NE(found(words).doubt, "") << words;
  EXPECT_EQ(found("softmax and then relu").stages, std::vector<std::string>{"relu"});
  llvm::Expected<Retrieval> nothing = retrieve("the of and", Library::builtin());
  ASSERT_FALSE(bool(nothing));
  llvm::consumeError(nothing.takeError());
}

TEST(Retrieve, MisspeltAndJoinedWordsAreGuessedAtAndDoubted) {
  const std::pair<const char *, const char *> cases[] = {{"transpoze an array", "transpose"},
                                                         {"batch normalisatoin", "batch-norm"},
                                                         {"LeakyRelu", "leaky-relu"},
                                                         {"crossEntropy of logits", "cross-entropy"}};
  for (const auto &[words, operation] : cases) {
    Retrieval retrieval = found(words);
    EXPECT_EQ(retrieval.matches[0].operation->name, operation) << words;
    EXPECT_NE(retrieval.doubt, "") << words;
  }
  EXPECT_EQ(found("row-wise softmax").matches[0].operation->name, "softmax"); // a hyphen is no minus
}

TEST(Retrieve, AnyTextIsSafe) {
  for (const std::string &words :
       {std::string(100000, 'x'), std::string(5000, '['), std::string("\"; drop table texts; --"),
        std::string("a\0b", 3), std::string("\xff\xfe sum"), std::string("((((((((((x")}) {
    llvm::Expected<Retrieval> result = retrieve(words, Library::builtin());
    if (!result)
      llvm::consumeError(result.takeError());
  }
}

} // namespace
