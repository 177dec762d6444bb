//===- HttpTest.cpp - endpoints that answer well, badly, or not at all ----===//
#include "optiml/LanguageModels/JsonAnswer.h"
#include "optiml/LanguageModels/ModelSession.h"
#include "optiml/Support/LineProcess.h"
#include "optiml/Support/TempDir.h"
#include "gtest/gtest.h"
#include <atomic>
#include <chrono>
#include <thread>

using namespace optiml;
using nlohmann::json;

namespace {

const std::string key = "sk-not-for-anyone-else-42";

class Http : public testing::Test {
protected:
  static void SetUpTestSuite() {
    server = llvm::cantFail(LineProcess::start({"python3", SCRIPTED_ENDPOINT}));
    std::string port;
    ASSERT_EQ(server->receive(port, 30), LineProcess::Answer::Line);
    base = "http://127.0.0.1:" + port + "/";
  }
  static void TearDownTestSuite() { server.reset(); }

  /// Less than what a server that is not cut off takes, and enough for a machine that does much else.
  static constexpr double soon = 15; // seconds

  /// A session with one model at the server's `path`.
  std::unique_ptr<ModelSession> open(const std::string &url, double timeout = 5) {
    setenv("OPTIML_TEST_KEY", key.c_str(), 1); // every session takes it out
    ModelFlags flags;
    flags.models = {url};
    flags.names = {"m1"};
    flags.keyVariables = {"OPTIML_TEST_KEY"};
    flags.timeout = timeout;
    ModelSession::Options options;
    options.cancel = &cancel;
    options.transcript = folder.file("transcript.jsonl");
    return llvm::cantFail(ModelSession::open(flags, options));
  }
  /// The reply as JSON, or its error as a string.
  json ask(const std::string &path, double timeout = 5, const json &schema = nullptr) {
    auto session = open(path.find("://") == std::string::npos ? base + path : path, timeout);
    return askOne(*session, schema);
  }
  json askOne(ModelSession &session, const json &schema = nullptr) {
    ChatRequest request;
    request.purpose = "test";
    request.messages = {{ChatMessage::Role::System, "Be brief."}, {ChatMessage::Role::User, "Which?"}};
    request.maxTokens = 100;
    request.schema = schema;
    auto start = std::chrono::steady_clock::now();
    auto reply = session.models()[0]->ask(request);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!reply)
      return llvm::toString(reply.takeError());
    return {{"text", reply->text},
            {"stop", reply->stop},
            {"prompt", reply->promptTokens},
            {"completion", reply->completionTokens}};
  }
  /// What the server was sent, from an answer of its "right" kind.
  json sent(const json &reply) {
    if (!reply.is_object())
      return reply;
    auto inside = extractJson(reply["text"].get<std::string>(), {4 << 20, 64});
    return inside ? *inside : json(llvm::toString(inside.takeError()));
  }
  static bool has(const json &text, const std::string &part) {
    return (text.is_string() ? text.get<std::string>() : text.dump()).find(part) != std::string::npos;
  }

  static std::unique_ptr<LineProcess> server;
  static std::string base;
  TempDir folder = llvm::cantFail(TempDir::create("optiml-http"));
  std::atomic<bool> cancel{false};
  double seconds = 0;
};
std::unique_ptr<LineProcess> Http::server;
std::string Http::base;

const json schema = {{"type", "object"}, {"properties", {{"which", {{"type", "string"}}}}}};

TEST_F(Http, ARightAnswer) {
  json reply = ask("right", 5, schema);
  EXPECT_EQ(reply["prompt"], 11);
  EXPECT_EQ(reply["completion"], 7);
  EXPECT_EQ(reply["stop"], "end");
  json told = sent(reply);
  EXPECT_EQ(told["key"], "Bearer [key]"); // it was sent, and scrubbed on its way back
  EXPECT_EQ(told["body"]["model"], "m1");
  EXPECT_EQ(told["body"]["max_tokens"], 100);
  EXPECT_EQ(told["body"]["messages"][1], (json{{"role", "user"}, {"content", "Which?"}}));
  EXPECT_EQ(told["body"]["response_format"]["json_schema"]["schema"], schema);
  EXPECT_FALSE(has(llvm::cantFail(readFile(folder.file("transcript.jsonl"))), key));
}

TEST_F(Http, WhatAServerDoesNotTakeIsPutInAnotherWay) {
  json told = sent(ask("noschema", 5, schema));
  EXPECT_FALSE(told["body"].contains("response_format"));
  EXPECT_TRUE(has(told["body"]["messages"].back()["content"], "fits this JSON schema")) << told;
  auto session = open(base + "picky");
  told = sent(askOne(*session));
  EXPECT_EQ(told["body"]["max_completion_tokens"], 100);
  EXPECT_FALSE(told["body"].contains("temperature"));
  EXPECT_EQ(told["count"], 3);
  EXPECT_EQ(sent(askOne(*session))["count"], 4); // it is remembered
  EXPECT_TRUE(has(ask("refuses", 5, schema), "m1 at 127.0.0.1:")) << "names the model";
  EXPECT_TRUE(has(ask("refuses", 5, schema), "HTTP 400: I never take anything"));
}

TEST_F(Http, UselessAnswers) {
  EXPECT_TRUE(has(ask("wrongjson"), "its answer cannot be read: it is no JSON"));
  EXPECT_TRUE(has(ask("nochoices"), "has no 'choices'"));
  EXPECT_TRUE(has(ask("deep"), "nested deeper than 64 levels"));
  EXPECT_EQ(ask("refusal")["stop"], "refusal");
  EXPECT_EQ(ask("refusal")["text"], "I cannot help with that.");
  EXPECT_EQ(ask("half")["stop"], "length");
  EXPECT_TRUE(has(ask("huge"), "longer than 4194304 bytes"));
}

TEST_F(Http, StormsPassOrEndInTime) {
  EXPECT_EQ(sent(ask("shower/1"))["count"], 3);
  EXPECT_EQ(sent(ask("hiccup/1"))["count"], 2);
  EXPECT_TRUE(has(ask("storm", 1.5), "HTTP 429: slow down"));
  EXPECT_LT(seconds, soon);
  json tomorrow = ask("tomorrow", 30);
  EXPECT_TRUE(has(tomorrow, "(1 attempts; the next could only be in 86400.0 s)")) << tomorrow;
  EXPECT_LT(seconds, soon);
}

TEST_F(Http, PausesMayBeDatesAndMayBeNonsense) {
  json second = ask("dated/1", 30);
  EXPECT_EQ(sent(second)["count"], 2) << second;
  EXPECT_LT(seconds, soon);
  EXPECT_EQ(sent(ask("dated/-100000"))["count"], 2); // a date in the past
  json year = ask("dated/31536000", 30);
  EXPECT_TRUE(has(year, "the next could only be in 3")) << year;
  EXPECT_LT(seconds, soon);
  EXPECT_EQ(sent(ask("odd/1", 30))["count"], 3);
  EXPECT_LT(seconds, soon);
}

TEST_F(Http, WhatGrowsIsCutOff) {
  json headers = ask("headers", 30);
  EXPECT_TRUE(headers.is_string() && has(headers, "header")) << headers;
  json bomb = ask("bomb"); // nobody asked for compression: it stays as small as it came
  EXPECT_TRUE(has(bomb, "its answer cannot be read: it is no JSON")) << bomb;
  EXPECT_TRUE(has(ask("dribble", 0.4), "no answer in time"));
  EXPECT_LT(seconds, soon);
}

TEST_F(Http, BytesThatAreNoJson) {
  EXPECT_TRUE(has(ask("bytes/utf8"), "it is no JSON"));
  EXPECT_TRUE(has(ask("bytes/surrogate"), "it is no JSON"));
  EXPECT_TRUE(has(ask("bytes/number"), "it is no JSON"));
  json negative = ask("bytes/negative"); // counts that are none are estimated
  EXPECT_EQ(negative["text"], "x");
  EXPECT_LT(negative["prompt"].get<uint64_t>(), 100u);
  EXPECT_EQ(negative["completion"], 1);
  EXPECT_EQ(ask("bytes/twice")["text"], "last");
  EXPECT_EQ(ask("bytes/control")["text"], std::string("a\0\x1b[2Jb", 7));
}

TEST_F(Http, AKeyAtTheEndOfWhatIsShownIsNotHalfShown) {
  for (const char *path : {"longtale", "notjson"}) {
    json told = ask(path);
    EXPECT_TRUE(has(told, "HTTP 40") && has(told, ".....")) << told;
    EXPECT_FALSE(has(told, "sk-")) << told;
    EXPECT_FALSE(has(llvm::cantFail(readFile(folder.file("transcript.jsonl"))), "sk-"));
  }
}

TEST_F(Http, SlowAndDeadServers) {
  EXPECT_TRUE(has(ask("slow", 0.3), "no answer in time (--optiml-llm-timeout)"));
  EXPECT_LT(seconds, soon);
  json dead = ask("http://127.0.0.1:1/v1", 1.5);
  EXPECT_TRUE(has(dead, "connect")) << dead;
  EXPECT_LT(seconds, soon);
  EXPECT_TRUE(has(ask("hangup", 1.5), "attempts")); // tried again
  EXPECT_TRUE(has(ask("partial", 1.5), "attempts"));
}

TEST_F(Http, KeysAreNeitherRepeatedNorSentElsewhere) {
  json told = ask("tells");
  EXPECT_TRUE(has(told, "HTTP 401: Incorrect API key provided: Bearer [key]")) << told;
  json moved = ask("redirect");
  EXPECT_TRUE(has(moved, "wants to send the question elsewhere (HTTP 302), which is not followed")) << moved;
  ModelFlags flags;
  flags.models = {"http://192.0.2.1/v1"};
  flags.keyVariables = {"OPTIML_TEST_KEY"};
  setenv("OPTIML_TEST_KEY", key.c_str(), 1);
  auto session = ModelSession::open(flags, {});
  ASSERT_FALSE(bool(session));
  EXPECT_TRUE(has(llvm::toString(session.takeError()), "a key is not sent without encryption"));
}

TEST_F(Http, AnthropicsMessages) {
  json reply = ask("anthropic/v1/messages", 5, schema);
  EXPECT_EQ(reply["stop"], "end"); // the version was told
  EXPECT_EQ(reply["prompt"], 5);
  json body = sent(reply)["body"];
  EXPECT_EQ(body["system"], "Be brief.");
  EXPECT_EQ(body["messages"], (json{{{"role", "user"}, {"content", "Which?"}}}));
  EXPECT_EQ(body["tools"][0]["input_schema"], schema);
  body = sent(ask("anthropic:" + base + "anthropic/v1", 5, {{"type", "array"}}))["body"];
  EXPECT_FALSE(body.contains("tools")); // which take objects only
  EXPECT_TRUE(has(body["system"], "fits this JSON schema")) << body;
}

TEST_F(Http, CancellingEndsAQuestion) {
  auto session = open(base + "slow", 30);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancel = true;
  });
  EXPECT_TRUE(has(askOne(*session), "cancelled"));
  later.join();
  EXPECT_LT(seconds, soon);
}

} // namespace
