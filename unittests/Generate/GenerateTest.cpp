//===- GenerateTest.cpp - words, the library, program texts ---------------===//
#include "optiml/Generate/ProgramText.h"
#include "gtest/gtest.h"

using namespace optiml::gen;

namespace {

Understood read(const std::string &request) {
  llvm::Expected<Understood> result = understand(request, Library::builtin(), Vocabulary::builtin());
  EXPECT_TRUE(bool(result)) << request << ": " << (result ? "" : llvm::toString(result.takeError()));
  return result ? *result : Understood();
}

TEST(Words, NumbersHaveUnitsAndShapesAreOneToken) {
  std::vector<Token> tokens = Vocabulary::builtin().tokenize("2^20 1M 64k 1,000,000 4096x1024 [3, 4] 512 by 256 -1.5 2d");
  std::vector<std::vector<double>> values;
  for (const Token &token : tokens)
    values.push_back(token.values);
  EXPECT_EQ(values, (std::vector<std::vector<double>>{
                        {1048576}, {1048576}, {65536}, {1000000}, {4096, 1024}, {3, 4}, {512, 256}, {-1.5}, {}}));
}

TEST(Words, OneFormForManySpellings) {
  const Vocabulary &words = Vocabulary::builtin();
  EXPECT_EQ(words.words("normalise"), words.words("Normalization"));
  EXPECT_EQ(words.words("largest"), words.words("maximum"));
  EXPECT_EQ(words.words("neighbours"), words.words("neighbor"));
}

TEST(Words, AMistakeInTheVocabularyNamesItsLine) {
  llvm::Expected<Vocabulary> result = Vocabulary::parse("filler: a\nnonsense x: y\n");
  ASSERT_FALSE(bool(result));
  EXPECT_EQ(llvm::toString(result.takeError()), "words.txt:2: unknown kind 'nonsense'");
}

TEST(Operations, AMistakeInAFileNamesItsLine) {
  Library library;
  llvm::Error error = library.add("x.op", "op: x\ntitle: y\nsizes n: 3\n");
  ASSERT_TRUE(bool(error));
  EXPECT_EQ(llvm::toString(std::move(error)), "x.op:3: unknown key 'sizes n'");
}

TEST(Operations, EveryOneIsAProgramInEveryTypeAndChoice) {
  unsigned count = 0;
  for (const Operation &op : Library::builtin().operations()) {
    if (op.isFamily || op.isSnippet || op.isStage || op.says.empty())
      continue;
    ++count;
    for (const std::string &type : op.types) {
      Understood request;
      request.operation = &op;
      request.type = type;
      for (const Size &size : op.sizes)
        request.sizes[size.name] = size.value;
      for (const Real &real : op.reals)
        request.reals[real.name] = real.value;
      for (size_t value = 0; value < 3; ++value) {
        for (const Choice &choice : op.choices)
          request.choices[choice.name] = choice.values[std::min(value, choice.values.size() - 1)];
        llvm::Expected<std::string> text = writeProgram(request, op.name, Library::builtin());
        ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
        EXPECT_EQ(text->find("${"), std::string::npos) << op.name;
        EXPECT_EQ(text->find("@if"), std::string::npos) << op.name;
        EXPECT_EQ(text->find("SEED"), std::string::npos) << op.name;
      }
    }
  }
  EXPECT_GE(count, 100u);
}

TEST(Requests, OfReversesAndThenKeepsTheOrderOfStages) {
  Understood of = read("exp of the square of each element");
  ASSERT_EQ(of.before.size(), 2u);
  EXPECT_EQ(of.before[0].operation->name, "square");
  Understood then = read("matmul followed by bias and then GELU");
  ASSERT_EQ(then.after.size(), 2u);
  EXPECT_EQ(then.after[1].operation->name, "gelu");
}

TEST(Requests, TwoShapesOfAMatrixProductMustFit) {
  Understood request = read("multiply a 512x256 matrix by a 256x128 matrix");
  EXPECT_EQ(request.sizes["m"], 512);
  EXPECT_EQ(request.sizes["k"], 256);
  EXPECT_EQ(request.sizes["n"], 128);
  llvm::Expected<Understood> wrong =
      understand("multiply a 512x256 matrix by a 512x128 matrix", Library::builtin(), Vocabulary::builtin());
  ASSERT_FALSE(bool(wrong));
  EXPECT_NE(llvm::toString(wrong.takeError()).find("does not fit"), std::string::npos);
}

} // namespace
