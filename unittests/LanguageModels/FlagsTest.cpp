//===- FlagsTest.cpp - values of --optiml-llm* ----------------------------===//
#include "optiml/LanguageModels/ModelFlags.h"
#include "gtest/gtest.h"

using namespace optiml;

namespace {

TEST(ModelFlags, BudgetsInAnyOrder) {
  ModelFlags flags;
  std::string error;
  ASSERT_TRUE(setModelBudget("1.50usd,20,200k", flags, error)) << error;
  EXPECT_EQ(flags.budget.calls, 20u);
  EXPECT_EQ(flags.budget.tokens, 200000u);
  EXPECT_EQ(flags.budget.usd, 1.5);
  ASSERT_TRUE(setModelBudget("1.5M", flags, error));
  EXPECT_EQ(flags.budget.tokens, 1500000u);
  EXPECT_EQ(flags.budget.calls, ModelBudget().calls); // its default
  EXPECT_EQ(flags.budget.usd, 0);
}

TEST(ModelFlags, WrongBudgetsChangeNothing) {
  for (const char *bad :
       {"", "0", "-1", "k", "usd", "0usd", "nanusd", "infk", "1,2", "1k,2M", "1usd,2usd", "20,", "1e12k", "$3"}) {
    ModelFlags flags;
    std::string error;
    EXPECT_FALSE(setModelBudget(bad, flags, error)) << bad;
    EXPECT_NE(error.find("20,200k,1.50usd"), std::string::npos);
    EXPECT_EQ(flags.budget.calls, ModelBudget().calls);
  }
}

TEST(ModelFlags, ModelsAreUrlsCommandsOrTranscripts) {
  ModelFlags flags;
  std::string error;
  for (const char *good : {"https://api.example.com/v1", "http://127.0.0.1:8080", "anthropic:https://proxy.example.com",
                           "exec:python3 'my model.py'", "replay:run.jsonl"})
    EXPECT_TRUE(addModel(good, flags, error)) << error;
  EXPECT_EQ(flags.models.size(), 5u);
  for (const char *bad : {"", "gpt-5", "ftp://x", "exec:", "https://", "anthropic:", "none"}) {
    error.clear();
    EXPECT_FALSE(addModel(bad, flags, error)) << bad;
    EXPECT_NE(error.find("want a URL"), std::string::npos);
  }
}

TEST(ModelFlags, AKeyInPlaceOfItsVariableIsNotRepeated) {
  ModelFlags flags;
  std::string error;
  EXPECT_FALSE(addKeyVariable("sk-secret-0123456789", flags, error));
  EXPECT_EQ(error.find("secret"), std::string::npos);
  EXPECT_TRUE(flags.keyVariables.empty());
  error.clear();
  EXPECT_TRUE(addKeyVariable("MY_KEY", flags, error));
}

} // namespace
