//===- BuildBesideTest.cpp - programs built during a search ---------------===//
#include "BuildBeside.h"
#include "optiml/Support/Error.h"
#include <gtest/gtest.h>

using namespace optiml;

namespace {
Variant variantOf(const std::string &twin) {
  Variant variant;
  KernelRewrite rewrite;
  rewrite.original = "k";
  rewrite.twinText = "void " + twin + "() {}";
  variant.rewrites.push_back(rewrite);
  return variant;
}

std::string nameOf(const Variant &variant) { return variant.rewrites[0].twinText; }
} // namespace

TEST(BuildBeside, TheLastOneIsThere) {
  BuildBeside programs(
      [](const Variant &v, const std::atomic<bool> *) { return llvm::Expected<std::string>(nameOf(v)); }, 1, nullptr);
  programs.want(variantOf("a"));
  programs.want(variantOf("b"));
  EXPECT_EQ(programs.take(variantOf("b").key()), "void b() {}");
  programs.want(variantOf("c")); // nothing is built any more
  EXPECT_EQ(programs.take(variantOf("c").key()), "");
}

TEST(BuildBeside, SeveralAtOnce) {
  std::atomic<unsigned> begun = 0;
  BuildBeside programs(
      [&](const Variant &v, const std::atomic<bool> *cancel) {
        for (++begun; begun < 2 && !*cancel;) // each waits for the other
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return llvm::Expected<std::string>(nameOf(v));
      },
      2, nullptr);
  programs.want(variantOf("a"));
  while (!begun)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  programs.want(variantOf("b"));
  while (begun < 2)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(programs.take(variantOf("a").key()), "void a() {}");
}

TEST(BuildBeside, WhatNobodyWantedOrNobodyCanBuildIsNot) {
  BuildBeside programs(
      [](const Variant &, const std::atomic<bool> *) -> llvm::Expected<std::string> {
        return makeError("nvcc does not like it");
      },
      1, nullptr);
  programs.want(variantOf("a"));
  EXPECT_EQ(programs.take(variantOf("b").key()), "");
  EXPECT_EQ(programs.take(variantOf("a").key()), "");
}

TEST(BuildBeside, TakingAnotherStopsTheCompiler) {
  BuildBeside programs(
      [](const Variant &v, const std::atomic<bool> *cancel) -> llvm::Expected<std::string> {
        while (!*cancel)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return makeError("stopped");
      },
      1, nullptr);
  programs.want(variantOf("slow"));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(programs.take(variantOf("other").key()), "");
}
