//===- PlanTest.cpp - launch plans made concrete --------------------------===//
#include "../../lib/Evaluate/Verify/ConcretePlan.h"
#include "optiml/Support/Error.h"
#include "optiml/Workload/Signature.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace optiml;

namespace {
template <typename T> ArgumentImage scalar(T v) {
  return {std::string(reinterpret_cast<const char *>(&v), sizeof v), false, -1, 0};
}

struct Plan : testing::Test {
  LaunchImage launch;
  KernelRewrite rewrite;
  void SetUp() override {
    launch.grid = {10, 3, 1};
    launch.block = {16, 16, 1};
    launch.arguments = {scalar<uint64_t>(0x1000), scalar<int>(-7), scalar<unsigned>(0xffffffffu), scalar<float>(2)};
    launch.arguments[0].isPointer = true;
    rewrite.original = "k";
    rewrite.originalParameters = {{"const float *__restrict__ a", "a", Parameter::Kind::Pointer},
                                  {"int n", "n", Parameter::Kind::Signed},
                                  {"unsigned m", "m", Parameter::Kind::Unsigned},
                                  {"float f", "f", Parameter::Kind::Float}};
    LaunchStep step;
    step.kernel = "twin";
    step.grid = {IntExpr::of("ceildiv(grid.x, 4)"), IntExpr::of("grid.y"), IntExpr::of("1")};
    step.block = {IntExpr::of("block.x * 4"), IntExpr::of("2"), IntExpr::of("1")};
    step.sharedBytes = IntExpr::of("block.x * 4");
    step.arguments = {"f", "partial", "a"};
    rewrite.plan.steps = {step};
    rewrite.plan.scratch = {{"partial", "float4", IntExpr::of("grid.x * grid.y"), true}};
  }
  void require(const char *expression) { rewrite.conditions.push_back({IntExpr::of(expression), "because"}); }
};
} // namespace

TEST_F(Plan, EvaluatesGeometryScratchAndArguments) {
  auto plan = concretePlan(rewrite, launch);
  ASSERT_TRUE(bool(plan)) << llvm::toString(plan.takeError());
  EXPECT_EQ(plan->steps[0].grid, (std::array<uint32_t, 3>{3, 3, 1}));
  EXPECT_EQ(plan->steps[0].block, (std::array<uint32_t, 3>{64, 2, 1}));
  EXPECT_EQ(plan->steps[0].sharedBytes, 64u);
  EXPECT_EQ(plan->steps[0].arguments, (std::vector<int>{3, -1, 0}));
  ASSERT_EQ(plan->scratch.size(), 1u);
  EXPECT_EQ(plan->scratch[0].bytes, 30u * 16);
  EXPECT_TRUE(plan->scratch[0].zeroed);
}

TEST_F(Plan, ScratchOfATypeOfTheProgramHasTheSizeThatItsTransformGives) {
  rewrite.plan.scratch[0].elementType = "real";
  EXPECT_TRUE(llvm::errorToBool(concretePlan(rewrite, launch).takeError()));
  rewrite.plan.scratch[0].elementBytes = 8;
  auto plan = concretePlan(rewrite, launch);
  ASSERT_TRUE(bool(plan)) << llvm::toString(plan.takeError());
  EXPECT_EQ(plan->scratch[0].bytes, 30u * 8);
}

TEST_F(Plan, ReadsSignsAndAddresses) {
  require("n == 0 - 7");
  require("m == 4294967295");
  require("aligned(a, 4096)");
  EXPECT_TRUE(bool(concretePlan(rewrite, launch)));
}

TEST_F(Plan, ConditionsThatDoNotHoldAreNotApplicable) {
  for (const char *c : {"n > 0", "f == 2", "unknown > 0"}) {
    rewrite.conditions.clear();
    require(c);
    auto plan = concretePlan(rewrite, launch);
    ASSERT_FALSE(bool(plan)) << c;
    bool notApplicable = false;
    llvm::handleAllErrors(
        plan.takeError(), [&](const NotApplicable &) { notApplicable = true; }, [](const llvm::ErrorInfoBase &) {});
    EXPECT_TRUE(notApplicable) << c;
  }
}

TEST_F(Plan, LimitsAreErrors) {
  rewrite.plan.steps[0].block[1] = IntExpr::of("20");
  auto plan = concretePlan(rewrite, launch);
  ASSERT_FALSE(bool(plan));
  EXPECT_NE(llvm::toString(plan.takeError()).find("more than 1024 threads"), std::string::npos);
  rewrite.plan.steps[0].block[1] = IntExpr::of("0");
  plan = concretePlan(rewrite, launch);
  ASSERT_FALSE(bool(plan));
  llvm::consumeError(plan.takeError());
}

TEST(Signature, NamesAndTypes) {
  EXPECT_EQ(parameterTypes("_Z6gatherPKfPfii"), (std::vector<std::string>{"float const*", "float*", "int", "int"}));
  EXPECT_EQ(pointeeType("float const*").kind, ElementKind::Float);
  EXPECT_EQ(pointeeType("float4 const*").kind, ElementKind::Float);
  EXPECT_EQ(pointeeType("unsigned char*").bytes, 1u);
  EXPECT_EQ(pointeeType("__half2 const*").kind, ElementKind::Half);
  EXPECT_EQ(pointeeType("__nv_bfloat16*").kind, ElementKind::BFloat16);
  EXPECT_EQ(pointeeType("__nv_bfloat162*").kind, ElementKind::BFloat16);
  EXPECT_EQ(pointeeType("int").kind, ElementKind::Unknown);
  EXPECT_EQ(pointeeType("Particle*").kind, ElementKind::Unknown);
  EXPECT_EQ(sizeOfType("float2"), 8u);
  EXPECT_EQ(sizeOfType("unsigned long long"), 8u);
  EXPECT_FALSE(sizeOfType("Particle"));
}

TEST(Signature, BuffersBehindStructuresHaveTheElementsThatTheyWereNamed) {
  LaunchImage launch;
  launch.kernel = "_Z5scalePf4View"; // scale(float*, View)
  launch.buffers.resize(3);
  launch.buffers[1].element = "__half";
  launch.arguments.push_back({std::string(8, 0), true, 0, 0});
  launch.arguments.push_back({std::string(16, 0), false, -1, 0});
  std::vector<ElementType> types = bufferTypes(launch);
  EXPECT_EQ(types[0].kind, ElementKind::Float);
  EXPECT_EQ(types[1].kind, ElementKind::Half);
  EXPECT_EQ(types[2].kind, ElementKind::Unknown);
  launch.buffers[0].element = "int"; // the structure sees it otherwise
  launch.buffers[1].element = "?";
  types = bufferTypes(launch);
  EXPECT_EQ(types[0].kind, ElementKind::Unknown);
  EXPECT_EQ(types[1].kind, ElementKind::Unknown);
}
