//===- JsonAnswerTest.cpp - JSON out of what a model wrote ----------------===//
#include "optiml/LanguageModels/JsonAnswer.h"
#include "gtest/gtest.h"

using namespace optiml;
using nlohmann::json;

namespace {

json extracted(llvm::StringRef text) {
  llvm::Expected<json> value = extractJson(text);
  if (value)
    return *value;
  return llvm::toString(value.takeError());
}

TEST(JsonAnswer, PlainFencedAndInProse) {
  json wanted = {{"a", {1, 2}}};
  for (const char *text : {R"({"a": [1, 2]})", "```json\n{\"a\": [1, 2]}\n```",
                           "Sure! Here it is:\n```\n{\"a\": [1, 2]}\n```\nHope {that} helps.",
                           R"(I think [see 3] this: {"a": [1, 2]} is {best}.)", R"(As in [1], {"a": [1, 2,],})",
                           " \n{\"a\":[1,2]} trailing"})
    EXPECT_EQ(extracted(text), wanted) << text;
}

TEST(JsonAnswer, BracketsAndCommasInStringsStay) {
  EXPECT_EQ(extracted(R"({"code": "a[i] = {1,};\" }", "n": [1, ]})"), (json{{"code", "a[i] = {1,};\" }"}, {"n", {1}}}));
}

TEST(JsonAnswer, ListsOfObjectsAreAnswersToo) {
  EXPECT_EQ(extracted(R"([{"a": 1}, {"a": 2}])"), json::parse(R"([{"a": 1}, {"a": 2}])"));
  EXPECT_EQ(extracted("The order is [3, 1, 2]."), json::parse("[3, 1, 2]"));
}

TEST(JsonAnswer, HalfAnAnswerIsNone) {
  // The whole action inside of it is not the answer.
  EXPECT_EQ(extracted(R"({"actions": [{"name": "unroll"}, {"na)"), json("the answer's JSON is cut off or not closed"));
  EXPECT_EQ(extracted("```json\n{\"actions\": [{\"name\": \"unroll\"},\n"),
            json("the answer's JSON is cut off or not closed"));
}

TEST(JsonAnswer, NoneAtAll) {
  EXPECT_EQ(extracted("I cannot help with that."), json("the answer holds no JSON object or array"));
  EXPECT_EQ(extracted(""), json("the answer holds no JSON object or array"));
  EXPECT_TRUE(extracted("{not: json}").is_string());
}

TEST(JsonAnswer, DepthAndLengthAreLimited) {
  EXPECT_EQ(extracted(std::string(5000, '[') + std::string(5000, ']')),
            json("the answer's JSON cannot be used: it is nested deeper than 32 levels"));
  EXPECT_EQ(extracted(std::string(2 << 20, ' ')), json("the answer is longer than 1048576 bytes"));
  EXPECT_TRUE(extracted(std::string(1 << 20, '{')).is_string()); // in no time
  EXPECT_TRUE(extracted(std::string(1 << 20, '[')).is_string());
}

TEST(JsonAnswer, Utf8) { EXPECT_EQ(validUtf8("caf\xe9 \xe2\x82\xac"), "caf\xef\xbf\xbd \xe2\x82\xac"); }

} // namespace
