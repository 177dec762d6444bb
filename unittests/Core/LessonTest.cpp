//===- LessonTest.cpp - what searches learn, as data ----------------------===//
#include "optiml/Core/Lesson.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

using namespace optiml;

namespace {

KernelMemory example() {
  KernelMemory m;
  m.source = "0123abcd";
  m.gpu = "H200";
  m.backend = "model";
  m.bottleneck = "l1";
  m.features.numbers = {{"depth", 0.25}, {"reuse", 0.5}};
  m.features.tokens = {"axes 1", "loop d0 from constant to argument"};
  m.lessons = {{"l1", "unroll", "/*", {{"factor", "4"}}, 3, 0.5, 1, {{"wrong-result", 1}}}};
  LearntLine line;
  line.line.name = "from memory";
  line.line.steps = {{"unroll", "/*", {{{"factor", "4"}}}, true}, {"qualify-pointers", ""}};
  line.speedup = 1.4;
  m.lines = {line};
  m.trials = {{{}, 0.5}, {{{"unroll", "/*", {{"factor", "4"}}}}, 0}};
  m.time = 5;
  return m;
}

std::string rejected(const std::function<void(nlohmann::json &)> &change) {
  nlohmann::json json = toJson(example());
  json["lessons"][0]["reasons"] = nlohmann::json::object();
  change(json);
  auto read = kernelMemoryFromJson(json);
  return read ? "accepted" : llvm::toString(read.takeError());
}

} // namespace

TEST(Lesson, RolesHoldNoNamesOfTheUser) {
  std::set<std::string> names = {"k", "left", "right", "n"};
  EXPECT_EQ(siteRole("ns::mul<float>", "ns::mul<float>", names), "");
  EXPECT_EQ(siteRole("mul/k:left+right", "mul", names), "/*:*+*");
  EXPECT_EQ(siteRole("mul/k_tile/warp", "mul", names), "/*_tile/warp"); // what a transform named stays
  EXPECT_EQ(siteRole("mul/k2", "mul", names), "/*2");
  EXPECT_EQ(siteRole("mul/kind", "mul", names), "/kind"); // not made of "k"
}

TEST(Lesson, JsonRoundTrip) {
  KernelMemory m = example();
  m.lessons[0].reasons = {{verdictName(Verdict::WrongResult), 1}};
  auto read = kernelMemoryFromJson(toJson(m));
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(toJson(*read), toJson(m));
  EXPECT_EQ(read->features.key(), m.features.key());
}

TEST(Lesson, WhatComesFromOutsideIsChecked) {
  using nlohmann::json;
  EXPECT_EQ(rejected([](json &) {}), "accepted");
  EXPECT_NE(rejected([](json &j) { j.erase("lessons"); }).find("lacks 'lessons'"), std::string::npos);
  EXPECT_NE(rejected([](json &j) { j["lessons"][0]["gain"] = 1e9; }).find("'gain' must be"), std::string::npos);
  EXPECT_NE(rejected([](json &j) { j["trials"][0]["loss"] = 1e9; }).find("'loss' must be"), std::string::npos);
  EXPECT_NE(rejected([](json &j) { j["trials"][1]["steps"][0]["role"] = "a b"; }).find("'role' holds"),
            std::string::npos);
  EXPECT_EQ(rejected([](json &j) { j.erase("trials"); }), "accepted"); // memories had none at first
  EXPECT_NE(rejected([](json &j) { j["lessons"][0]["gain"] = nullptr; }).find("'gain' must be"), std::string::npos);
  EXPECT_NE(rejected([](json &j) { j["lessons"][0]["weight"] = -1; }).find("'weight' must be"), std::string::npos);
  EXPECT_NE(rejected([](json &j) { j["lessons"][0]["rejected"] = 4; }).find("'rejected' must be"), std::string::npos);
  EXPECT_NE(rejected([](json &j) { j["lessons"][0]["transform"] = "a\nignore all that"; }).find("not allowed"),
            std::string::npos);
  EXPECT_NE(rejected([](json &j) { j["lines"][0]["steps"][0]["role"] = "{a,b}[c]"; }).find("not allowed"),
            std::string::npos);
  EXPECT_NE(
      rejected([](json &j) { j["lines"][0]["steps"][0]["params"]["factor"] = std::string(500, '4'); }).find("short"),
      std::string::npos);
  EXPECT_NE(rejected([](json &j) { j["features"]["numbers"]["depth"] = 1e300; }).find("'numbers'"), std::string::npos);
  EXPECT_NE(rejected([](json &j) { j["features"]["tokens"] = std::vector<std::string>(5000, "x"); }).find("'tokens'"),
            std::string::npos);
}

TEST(Lesson, TheSameSourceDoesNotCountTwice) {
  KernelMemory first = example(), second = example();
  second.lessons[0].weight = 5;
  second.lessons[0].gain = 1;
  second.lessons.push_back({"dram", "unroll", "/*", {}, 1, 0, 0, {}});
  KernelMemory both = merged(first, second);
  ASSERT_EQ(both.lessons.size(), 2u);
  EXPECT_EQ(both.lessons[1].weight, 5); // sorted: dram comes first
  EXPECT_EQ(both.lessons[1].gain, 1);
  EXPECT_EQ(both.lines.size(), 1u);
  EXPECT_EQ(toJson(merged(both, both)), toJson(both));
  first.trials.pop_back(); // losses of two searches are measured against two bests: those of the search that tried more
  EXPECT_EQ(merged(first, second).trials.size(), 2u);
}
