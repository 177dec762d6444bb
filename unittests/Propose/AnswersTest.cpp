//===- AnswersTest.cpp - reading what models answer -----------------------===//
#include "optiml/Propose/Answers.h"
#include "gtest/gtest.h"

using namespace optiml;

namespace {
std::vector<ActionTemplate> legal() {
  return {{"unroll", "k/i", {{{"factor", "4"}}, {{"factor", "8"}}}},
          {"block-shape", "k", {{{"x", "32"}, {"y", "8"}}, {{"x", "16"}, {"y", "16"}}}}};
}
std::vector<std::string> actionsOf(const std::string &text) {
  auto answer = readActions(text, legal());
  std::vector<std::string> result;
  if (!answer) {
    result.push_back("error: " + llvm::toString(answer.takeError()));
    return result;
  }
  for (const RankedAction &action : answer->actions)
    result.push_back(action.action.str());
  for (const std::string &line : answer->dropped)
    result.push_back("dropped: " + line);
  return result;
}
template <typename T> bool isError(llvm::Expected<T> answer) {
  bool failed = !answer;
  llvm::consumeError(answer.takeError());
  return failed;
}
using Lines = std::vector<std::string>;
} // namespace

TEST(Answers, ProseAndFencesAroundTheObjectDoNotMatter) {
  Lines wanted = {"unroll[k/i]{factor=8}"};
  std::string object =
      R"({"actions": [{"transform": "unroll", "site": "k/i", "params": {"factor": 8}, "confidence": 0.9}]})";
  EXPECT_EQ(actionsOf(object), wanted);
  EXPECT_EQ(actionsOf("Let me think about {this} first.\n```json\n" + object + "\n```\nHope that {helps}!"), wanted);
}

TEST(Answers, WhatIsNotLegalIsDroppedWithItsReason) {
  Lines got = actionsOf(R"({"actions": [
    {"transform": "rm-rf", "site": "k"},
    {"transform": "unroll", "site": "other/i"},
    {"transform": "unroll", "site": "k/i", "params": {"factor": "3"}},
    {"transform": "unroll", "site": "k/i", "params": {"factor": [1]}},
    {"transform": "unroll", "site": "k/i", "params": {"extra": "1"}},
    "unroll",
    {"transform": "unroll", "site": "k/i", "params": {"factor": "4"}},
    {"transform": "unroll", "site": "k/i", "params": {"factor": 4}}]})");
  ASSERT_EQ(got.size(), 7u);
  EXPECT_EQ(got[0], "unroll[k/i]{factor=4}"); // once
  EXPECT_NE(got[1].find("no such transform"), std::string::npos) << got[1];
  EXPECT_NE(got[2].find("not legal at this site"), std::string::npos) << got[2];
  EXPECT_NE(got[3].find("not among the values"), std::string::npos) << got[3];
  EXPECT_NE(got[4].find("a number or a word"), std::string::npos) << got[4];
  EXPECT_NE(got[5].find("not among the values"), std::string::npos) << got[5];
}

TEST(Answers, ParametersLeftOutAreTheFirstThatAgree) {
  EXPECT_EQ(actionsOf(R"({"actions": [{"transform": "block-shape", "site": "k", "params": {"y": 16}},
                                      {"transform": "unroll", "site": "k/i"}]})"),
            (Lines{"block-shape[k]{x=16,y=16}", "unroll[k/i]{factor=4}"}));
}

TEST(Answers, WhatIsNoAnswerIsAnError) {
  for (const char *text : {"", "no", "{", "{\"actions\": ", "{\"actions\": 3}", "[1, 2]", "{\"action\": []}"})
    EXPECT_TRUE(isError(readActions(text, legal()))) << text;
  EXPECT_TRUE(isError(readActions(std::string(maxAnswerBytes + 1, ' '), legal())));
  std::string deep = "{\"actions\": " + std::string(100000, '[') + std::string(100000, ']') + "}";
  EXPECT_TRUE(isError(readActions(deep, legal())));
}

TEST(Answers, OnlyAsManyActionsAsWereAskedForAreRead) {
  std::string list;
  for (int i = 0; i < 1000; ++i)
    list += std::string(i ? "," : "") + R"({"transform": "none", "site": "k"})";
  auto answer = llvm::cantFail(readActions("{\"actions\": [" + list + "]}", legal()));
  EXPECT_TRUE(answer.actions.empty());
  EXPECT_LE(answer.dropped.size(), 25u);
}

TEST(Answers, ReasonsAreShortLinesWithoutControlCharacters) {
  EXPECT_EQ(oneLine("a\n\x1b[31mb\t c"), "a [31mb  c");
  EXPECT_EQ(oneLine(std::string(10, 'x'), 4), "xxxx...");
  EXPECT_EQ(oneLine("ab\xc3\xa4z", 3), "ab...");
  EXPECT_EQ(oneLine("\xff"), "\xef\xbf\xbd");
}

TEST(Answers, ADiagnosisIsOneOfTheNamesGiven) {
  EXPECT_EQ(llvm::cantFail(readDiagnosis(R"({"bottleneck": "l2", "confidence": 7})")).bottleneck, "l2");
  EXPECT_EQ(llvm::cantFail(readDiagnosis(R"({"bottleneck": "l2", "confidence": 7})")).confidence, 1);
  EXPECT_TRUE(isError(readDiagnosis(R"({"bottleneck": "the moon"})")));
}
