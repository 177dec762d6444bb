//===- ProtocolTest.cpp - requests and replies as lines -------------------===//
#include "optiml/Gpu/Protocol.h"
#include <gtest/gtest.h>

using namespace optiml;
using namespace optiml::gpu;

TEST(Protocol, RequestsRoundTrip) {
  PrepareRequest prepare;
  prepare.cubin = "/tmp/a b.cubin";
  prepare.careful = true;
  CaseRequest c;
  c.launch = 3;
  c.name = "random input 1 of launch 7";
  c.inputs[2] = "/tmp/input.bin";
  c.bounds.push_back({1, Compare::Double, 1e-12, -1, "/tmp/cells"});
  prepare.cases.push_back(c);
  std::string line = encode(prepare), error;
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(requestName(line), "prepare");
  PrepareRequest read;
  ASSERT_TRUE(decode(line, read, error)) << error;
  EXPECT_EQ(encode(read), line);
  EXPECT_EQ(read.cases.at(0).inputs.at(2), "/tmp/input.bin");
  EXPECT_EQ(read.cases.at(0).bounds.at(0).compare, Compare::Double);

  EvaluateRequest evaluate;
  emu::ReplayStep step{"_Z1kPf", {1, 2, 3}, {4, 5, 6}, 7, {0, -1}};
  evaluate.candidates.push_back({"x.cubin", {{2, {{64, true}}, {step}}}});
  EvaluateRequest again;
  ASSERT_TRUE(decode(encode(evaluate), again, error)) << error;
  EXPECT_EQ(encode(again), encode(evaluate));
}

TEST(Protocol, RepliesRoundTrip) {
  EvaluateReply reply;
  reply.lost = true;
  reply.candidates.push_back({"wrong-result", "c[3]: 1 \xff instead of 2", 1, 2, {{0, 1e-3, 2e-3, 2, 1.9, 2.1, 9}}});
  EvaluateReply read;
  std::string error;
  ASSERT_TRUE(decode(encode(reply), read, error)) << error;
  EXPECT_TRUE(read.lost);
  EXPECT_EQ(read.candidates.at(0).times.at(0).rounds, 9u);
}

TEST(Protocol, WhatIsNoMessageIsAnError) {
  std::string error;
  EvaluateReply reply;
  for (const char *line : {"", "{", "[]", "{\"why\":1}", "null", "{\"candidates\":[{}]}"}) {
    error.clear();
    EXPECT_FALSE(decode(line, reply, error)) << line;
    EXPECT_NE(error, "") << line;
  }
  DeviceInfo info;
  EXPECT_FALSE(decode("Welcome to gpu1!", info, error));
  EXPECT_EQ(requestName("not json"), "");
  EXPECT_EQ(requestName("{\"do\":3}"), "");
}
