//===- PtxTest.cpp - statements of inline PTX -----------------------------===//
#include "PtxParser.h"
#include <gtest/gtest.h>

using namespace optiml::emu;

namespace {

TEST(PtxParser, MnemonicAndOperands) {
  auto s = parsePtx("mad.lo.u32 $0, $1, 0x10, -3;");
  ASSERT_TRUE(s);
  ASSERT_EQ(s->size(), 1u);
  EXPECT_EQ((*s)[0].words, (std::vector<std::string>{"mad", "lo", "u32"}));
  ASSERT_EQ((*s)[0].operands.size(), 4u);
  EXPECT_EQ((*s)[0].operands[1].index, 1u);
  EXPECT_EQ((*s)[0].operands[2].bits, 16u);
  EXPECT_EQ((*s)[0].operands[3].bits, uint64_t(-3));
}

TEST(PtxParser, ScopesPredicatesAddressesAndVectors) {
  auto s = parsePtx("{ .reg .pred p;\n setp.ne.b32 p, $1, 0; // comment\n"
                    "@!p ld.global.v2.f32 {$0, $2}, [$3+8]; }");
  ASSERT_TRUE(s);
  ASSERT_EQ(s->size(), 3u);
  EXPECT_EQ((*s)[0].words[1], "reg");
  EXPECT_EQ((*s)[2].guard, "p");
  EXPECT_TRUE((*s)[2].guardNegated);
  EXPECT_EQ((*s)[2].operands[0].kind, PtxOperand::Vector);
  EXPECT_EQ((*s)[2].operands[1].kind, PtxOperand::Address);
  EXPECT_EQ((*s)[2].operands[1].bits, 8u);
}

TEST(PtxParser, DollarsAndFloatConstants) {
  auto s = parsePtx("mov.b32 __$$t, 0f3F800000;");
  ASSERT_TRUE(s);
  EXPECT_EQ((*s)[0].operands[0].name, "___t");
  EXPECT_EQ((*s)[0].operands[1].kind, PtxOperand::FloatBits);
  EXPECT_EQ((*s)[0].operands[1].bits, 0x3F800000u);
}

TEST(PtxParser, BranchesAreNotUnderstood) { EXPECT_FALSE(parsePtx("again: add.u32 $0, $0, 1; @p bra again;")); }

} // namespace
