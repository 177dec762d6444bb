//===- VariantTest.cpp - keys, plans and measurements ---------------------===//
#include "optiml/Core/Interfaces.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

using namespace optiml;

static Variant variantOf(const std::string &twin) {
  Variant variant;
  variant.path = "a.cu";
  KernelRewrite rewrite;
  rewrite.original = "scale";
  rewrite.originalSymbol = "_Z5scalePfi";
  rewrite.twin = "scale_opt";
  rewrite.twinText = twin;
  LaunchStep step;
  step.kernel = "scale_opt";
  step.grid = {IntExpr::of("ceildiv(grid.x,4)"), IntExpr::of("grid.y"), IntExpr::of("1")};
  step.block = {IntExpr::of("block.x"), IntExpr::of("1"), IntExpr::of("1")};
  step.arguments = {"a", "n"};
  rewrite.plan.steps.push_back(step);
  rewrite.plan.scratch.push_back({"tmp", "float", IntExpr::of("n*2"), true, 4});
  rewrite.conditions.push_back({IntExpr::of("aligned(a,16)"), "vector loads"});
  variant.rewrites.push_back(rewrite);
  return variant;
}

TEST(Variant, KeyIgnoresLayoutAndComments) {
  std::string key = variantOf("__global__ void f(int *a) { a[0] = 1 + +2; }").key();
  EXPECT_EQ(variantOf("__global__ void\n f(int*a){ // note\n a[0]=1+ /*x*/ +2 ; }").key(), key);
  EXPECT_EQ(key.size(), 32u);
}

TEST(Variant, KeySeesWhatMatters) {
  Variant base = variantOf("void f() { g(\"a b\"); }");
  EXPECT_NE(variantOf("void f() { g(\"a  b\"); }").key(), base.key());
  EXPECT_NE(variantOf("void f() { g(\"ab\"); }").key(), base.key());
  EXPECT_NE(variantOf("x = a - -b;").key(), variantOf("x = a--b;").key());
  EXPECT_NE(variantOf("int a;").key(), variantOf("inta;").key());
  EXPECT_NE(variantOf("\n#define X\nint a;").key(), variantOf("\n#define X int a;").key());
  Variant plan = base;
  plan.rewrites[0].plan.steps[0].grid[0] = IntExpr::of("ceildiv(grid.x, 8)");
  EXPECT_NE(plan.key(), base.key());
  Variant condition = base;
  condition.rewrites[0].conditions.clear();
  EXPECT_NE(condition.key(), base.key());
  Variant none;
  EXPECT_NE(none.key(), base.key());
}

TEST(Variant, KeyDoesNotDependOnTheOrderOfKernels) {
  Variant one = variantOf("a"), two;
  KernelRewrite other = one.rewrites[0];
  other.originalSymbol = "_Z1bv";
  two.rewrites = {other, one.rewrites[0]};
  one.rewrites.push_back(other);
  EXPECT_EQ(one.key(), two.key());
}

TEST(Variant, KeyTakesAnyBytes) { EXPECT_EQ(variantOf("// \xff\xfe\n\"\xff\"").key().size(), 32u); }

TEST(LaunchPlan, RoundTripsThroughJson) {
  LaunchPlan plan = variantOf("x").rewrites[0].plan;
  auto again = launchPlanFromJson(nlohmann::json::parse(toJson(plan).dump()));
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(toJson(*again), toJson(plan));
  EXPECT_EQ(again->steps[0].grid[0].str(), "ceildiv(grid.x, 4)");
}

TEST(LaunchPlan, MistakesAreNamed) {
  auto message = [](const char *text) {
    auto plan = launchPlanFromJson(nlohmann::json::parse(text));
    return plan ? std::string("read") : llvm::toString(plan.takeError());
  };
  EXPECT_EQ(message("[]"), "a launch plan must be a JSON object");
  EXPECT_EQ(message(R"({"scratch":[]})"), "a launch plan lacks 'steps'");
  EXPECT_EQ(message(R"({"scratch":[],"steps":[{"kernel":"k","grid":["1"]}]})"),
            "a launch step's 'grid' must hold three expressions");
  EXPECT_NE(message(R"({"scratch":[{"name":"s","elementType":"int","elements":"1 +","zeroed":false}],"steps":[]})")
                .find("expected a value"),
            std::string::npos);
}

TEST(Measurement, RoundTripsThroughJson) {
  Measurement m;
  m.verdict = Verdict::WrongResult;
  m.time = {0.5, 1.0, true, {0.25, 0.25}};
  m.counters = {{"dram_bytes", 1e9}};
  m.bottleneck = "dram";
  m.resources = {40, 1024, 4, 8, 0.75};
  m.reward = 1;
  m.guardrails = {"spills"};
  m.why = "first difference";
  m.cost = 2;
  auto again = measurementFromJson(nlohmann::json::parse(toJson(m).dump()));
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(toJson(*again), toJson(m));
}

TEST(Measurement, EveryVerdictHasAName) {
  for (int i = 0; i <= int(Verdict::Predicted); ++i)
    EXPECT_EQ(verdictFromName(verdictName(Verdict(i))), Verdict(i));
  EXPECT_FALSE(verdictFromName("excellent"));
}

TEST(Measurement, DamageIsAnError) {
  for (const char *text : {"null", "{}", R"({"verdict":"excellent"})", R"({"verdict":"correct","time":[]})",
                           R"({"verdict":"correct","time":{"seconds":"1"}})"}) {
    auto m = measurementFromJson(nlohmann::json::parse(text));
    EXPECT_FALSE(bool(m)) << text;
    llvm::consumeError(m.takeError());
  }
}
