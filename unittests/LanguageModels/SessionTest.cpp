//===- SessionTest.cpp - budgets, transcripts, replays, keys --------------===//
#include "optiml/LanguageModels/ModelSession.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"
#include <chrono>
#include <csignal>
#include <fstream>
#include <sys/prctl.h>
#include <sys/stat.h>

using namespace optiml;
using nlohmann::json;

namespace {

/// A scratch folder with a shell script as the model.
class Session : public testing::Test {
protected:
  void SetUp() override { folder = std::make_unique<TempDir>(llvm::cantFail(TempDir::create("optiml-models"))); }

  std::string script(const std::string &name, const std::string &body) {
    std::string path = folder->file(name);
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    chmod(path.c_str(), 0700);
    return "exec:" + path;
  }
  std::unique_ptr<ModelSession> open(const ModelFlags &flags, std::string *error = nullptr) {
    ModelSession::Options options;
    options.source = "saxpy.cu";
    options.transcript = folder->file("transcript.jsonl");
    options.say = [this](const std::string &line) { said.push_back(line); };
    auto session = ModelSession::open(flags, options);
    if (session)
      return std::move(*session);
    std::string text = llvm::toString(session.takeError());
    if (error)
      *error = text;
    else
      ADD_FAILURE() << text;
    return nullptr;
  }
  std::string contents(const std::string &name) {
    auto text = readFile(folder->file(name));
    return text ? *text : llvm::toString(text.takeError());
  }
  std::vector<json> transcript() {
    std::istringstream lines(contents("transcript.jsonl"));
    std::vector<json> result;
    for (std::string line; std::getline(lines, line);)
      result.push_back(json::parse(line));
    return result;
  }

  std::unique_ptr<TempDir> folder;
  std::vector<std::string> said;
};

ChatRequest question(const std::string &text) {
  ChatRequest request;
  request.purpose = "judge";
  request.messages = {{ChatMessage::Role::System, "Answer in one word."}, {ChatMessage::Role::User, text}};
  request.maxTokens = 100;
  return request;
}

/// The text of the answer, or the error behind "error: ".
std::string answer(LanguageModel &model, const ChatRequest &request) {
  llvm::Expected<ChatReply> reply = model.ask(request);
  return reply ? reply->text : "error: " + llvm::toString(reply.takeError());
}

bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

TEST_F(Session, ACommandReadsTheRequestAndAnswers) {
  ModelFlags flags;
  flags.models = {script("model", "cat > \"$0.in\"; echo '{\"text\": \"memory\", \"promptTokens\": 12, "
                                  "\"completionTokens\": 1}'")};
  flags.names = {"small"};
  auto session = open(flags);
  ASSERT_EQ(session->models().size(), 1u);
  EXPECT_TRUE(said.empty());
  auto reply = session->models()[0]->ask(question("Why? caf\xe9"));
  ASSERT_TRUE(bool(reply)) << llvm::toString(reply.takeError());
  EXPECT_EQ(reply->text, "memory");
  EXPECT_EQ(reply->stop, "end");
  EXPECT_EQ(reply->promptTokens, 12u);
  EXPECT_FALSE(reply->estimatedTokens);
  json request = json::parse(contents("model.in"));
  EXPECT_EQ(request["version"], 1);
  EXPECT_EQ(request["purpose"], "judge");
  EXPECT_EQ(request["model"], "small");
  EXPECT_EQ(request["messages"][1]["role"], "user");
  EXPECT_EQ(request["messages"][1]["content"], "Why? caf\xef\xbf\xbd");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(contains(said[0], "saxpy.cu and what is measured of it go to small at the command exec:")) << said[0];
  EXPECT_TRUE(contains(said[0], "at most 50 calls and 500000 tokens")) << said[0];
  EXPECT_EQ(session->summary(), "1 questions, 1 answers, 12 + 1 tokens, cost not known");
}

TEST_F(Session, WhatACommandDoesWrongIsAnError) {
  struct Case {
    const char *body, *error;
  } cases[] = {{"echo 'I think it is memory'", "its answer cannot be read: it is no JSON"},
               {"echo '[1]'", "no string 'text'"},
               {"echo '{\"text\": 5}'", "no string 'text'"},
               {"echo '{\"error\": \"no model loaded\"}'", "it says: no model loaded"},
               {"echo starting >&2; echo out of memory >&2; exit 3", "exit code 3: out of memory"},
               {"kill -9 $$", "killed by signal 9"},
               {"sleep 10", "ran longer than its limit"},
               {"head -c 6000000 /dev/zero", "longer than"},
               {"printf '{\"text\": %01000d' 0", "no JSON"}};
  unsigned number = 0;
  for (const Case &c : cases) {
    ModelFlags flags;
    flags.models = {script("model" + std::to_string(++number), c.body)};
    flags.timeout = 0.4;
    auto session = open(flags);
    EXPECT_TRUE(contains(answer(*session->models()[0], question("x")), c.error))
        << answer(*session->models()[0], question("x"));
  }
}

TEST_F(Session, AProgramThatIsNotThereIsToldAtOnce) {
  ModelFlags flags;
  flags.models = {"exec:/nonexistent/model --fast"};
  std::string error;
  EXPECT_FALSE(open(flags, &error));
  EXPECT_EQ(error, "exec:/nonexistent/model: there is no such program");
}

TEST_F(Session, TheTranscriptAnswersAgainBitForBit) {
  ModelFlags flags;
  // Two models; the first answers with a count, so that equal questions get different answers.
  flags.models = {script("counting", "echo x >> \"$0.n\"; n=$(wc -l < \"$0.n\"); test $n -lt 3 || exit 1; echo "
                                     "\"{\\\"text\\\": \\\"answer $n\\\", \\\"stop\\\": \\\"length\\\"}\""),
                  script("other", "echo '{\"text\": \"other\", \"promptTokens\": 5, \"completionTokens\": 7}'")};
  flags.names = {"gpt-4.1-2025-04-14", "o3"};
  auto play = [&](ModelSession &session) {
    std::string log;
    for (const char *text : {"a", "a", "b", "a"})
      for (LanguageModel *model : session.models()) {
        auto reply = model->ask(question(text));
        log += model->name() + ": " +
               (reply ? json({reply->text, reply->stop, reply->promptTokens, reply->completionTokens,
                              reply->estimatedTokens, reply->seconds})
                            .dump()
                      : llvm::toString(reply.takeError())) +
               "\n";
      }
    return log + session.summary();
  };
  auto recorded = open(flags);
  std::string first = play(*recorded);
  EXPECT_TRUE(contains(first, "answer 1") && contains(first, "answer 2") && contains(first, "exit code 1")) << first;
  llvm::cantFail(
      llvm::errorCodeToError(llvm::sys::fs::copy_file(folder->file("transcript.jsonl"), folder->file("kept.jsonl"))));
  std::vector<json> before = transcript();
  ASSERT_EQ(before.size(), 9u);
  EXPECT_EQ(before[0]["models"].size(), 2u);
  EXPECT_EQ(before[1]["outcome"], "answered");
  EXPECT_GT(before[1]["usd"].get<double>(), 0);

  ModelFlags again;
  again.models = {"replay:" + folder->file("kept.jsonl")};
  again.budget.calls = 1; // costs nothing, needs nothing
  said.clear();
  auto replayed = open(again);
  EXPECT_EQ(play(*replayed), first);
  EXPECT_EQ(transcript(), before);
  EXPECT_TRUE(said.empty()); // nothing leaves the program
  EXPECT_TRUE(
      contains(answer(*replayed->models()[0], question("a")), "holds no further answer to this request for 'judge'"));
}

TEST_F(Session, ATranscriptMayBeWrittenByHandAndEndInTheMiddle) {
  std::ofstream(folder->file("hand.jsonl"))
      << "{\"purpose\": \"judge\", \"reply\": {\"text\": \"one\"}}\n"
      << "{\"purpose\": \"judge\", \"reply\": {\"text\": \"two\"}}\n{\"purpose\": \"ju";
  ModelFlags flags;
  flags.models = {"replay:" + folder->file("hand.jsonl")};
  auto session = open(flags);
  EXPECT_EQ(answer(*session->models()[0], question("a")), "one");
  EXPECT_EQ(answer(*session->models()[0], question("b")), "two");
}

TEST_F(Session, BrokenTranscriptsNameTheLine) {
  std::ofstream(folder->file("bad.jsonl")) << "{\"purpose\": \"judge\", \"reply\": {\"text\": \"one\"}}\n{\"no\": 1}\n";
  ModelFlags flags;
  flags.models = {"replay:" + folder->file("bad.jsonl")};
  std::string error;
  EXPECT_FALSE(open(flags, &error));
  EXPECT_TRUE(contains(error, "bad.jsonl:2: this line is no part of a transcript")) << error;
}

TEST_F(Session, ATranscriptIsNotWrittenOverItself) {
  std::ofstream(folder->file("transcript.jsonl")) << "{\"purpose\": \"judge\", \"reply\": {\"text\": \"one\"}}\n";
  ModelFlags flags;
  flags.models = {"replay:" + folder->file("transcript.jsonl")};
  std::string error;
  EXPECT_FALSE(open(flags, &error));
  EXPECT_TRUE(contains(error, "would be overwritten")) << error;
}

TEST_F(Session, OneBudgetOverAllModels) {
  std::string model = script("model", "echo '{\"text\": \"yes\", \"promptTokens\": 10, \"completionTokens\": 20}'");
  ModelFlags flags;
  flags.models = {model, model};
  flags.budget.calls = 3;
  auto session = open(flags);
  EXPECT_EQ(answer(*session->models()[0], question("a")), "yes");
  EXPECT_EQ(answer(*session->models()[1], question("a")), "yes");
  EXPECT_EQ(answer(*session->models()[1], question("b")), "yes");
  EXPECT_TRUE(contains(answer(*session->models()[0], question("c")), "the budget of 3 calls is spent"));
  EXPECT_EQ(session->totals().refused, 1u);
  EXPECT_EQ(transcript().back()["outcome"], "refused");
}

TEST_F(Session, TheMostThatAQuestionMayCostIsReserved) {
  ModelFlags flags;
  flags.models = {script("model", "echo '{\"text\": \"yes\", \"promptTokens\": 10, \"completionTokens\": 20}'")};
  flags.budget.tokens = 150; // the question is some 30 tokens, its answer up to 100
  auto session = open(flags);
  EXPECT_EQ(answer(*session->models()[0], question("a")), "yes"); // used: 30
  EXPECT_TRUE(contains(answer(*session->models()[0], question("a")), "the budget of 150 tokens does not allow for"));
}

TEST_F(Session, MoneyIsCountedByThePriceTable) {
  std::ofstream(folder->file("prices.json")) << R"({"models": {"m": {"input": 1000, "output": 2000}}})";
  ModelFlags flags;
  flags.models = {script("model", "echo '{\"text\": \"yes\", \"promptTokens\": 10, \"completionTokens\": 20}'")};
  flags.names = {"m"};
  flags.prices = folder->file("prices.json");
  flags.budget.usd = 0.27; // a question may come to 0.23
  auto session = open(flags);
  EXPECT_EQ(answer(*session->models()[0], question("a")), "yes");
  EXPECT_NEAR(session->totals().usd, 0.05, 1e-9);
  EXPECT_TRUE(contains(answer(*session->models()[0], question("a")), "the budget of 0.27 USD does not allow for"));
  EXPECT_TRUE(contains(said.at(0), ", 0.27 USD")) << said[0];
  flags.names = {"unknown"};
  std::string error;
  EXPECT_FALSE(open(flags, &error));
  EXPECT_TRUE(contains(error, "no price of 'unknown' is known; give --optiml-llm-prices=FILE")) << error;
}

TEST_F(Session, AModelThatKeepsFailingIsNotAskedAnyMore) {
  ModelFlags flags;
  flags.models = {script("model", "echo x >> \"$0.n\"; exit 1")};
  auto session = open(flags);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(contains(answer(*session->models()[0], question("a")), "exit code 1"));
  EXPECT_TRUE(
      contains(answer(*session->models()[0], question("a")), "not asked any more, since it failed 3 times in a row"));
  EXPECT_EQ(contents("model.n"), "x\nx\nx\n");
}

TEST_F(Session, KeysReachNobodyAndNothing) {
  const std::string key = "sk-very\"secret-0123456789";
  setenv("OPTIML_TEST_KEY", key.c_str(), 1);
  ModelFlags flags;
  // A command that tells all it knows of its surroundings.
  flags.models = {
      script(
          "spy",
          "env > \"$0.env\"; tr '\\0' '\\n' < /proc/$PPID/environ >> \"$0.env\"; echo 'sk-very\"secret-0123456789' "
          ">&2; "
          "test -e \"$0.second\" && exit 1; touch \"$0.second\"; "
          R"x(printf '%s' '{"text": "the key is sk-very\"secret-0123456789, in JSON sk-very\\\"secret-0123456789"}')x"),
      "https://127.0.0.1:9/v1"};
  flags.keyVariables = {"OPTIML_TEST_KEY"};
  flags.timeout = 1;
  std::string error;
  std::unique_ptr<ModelSession> session = open(flags, &error);
  EXPECT_EQ(getenv("OPTIML_TEST_KEY"), nullptr);
  if (!session) {
    EXPECT_TRUE(contains(error, "has no HTTP")) << error; // a build without libcurl
    return;
  }
#if !__has_feature(address_sanitizer)
  EXPECT_EQ(prctl(PR_GET_DUMPABLE), 0); // nobody reads it out of this process's memory
#endif
  EXPECT_EQ(answer(*session->models()[0], question("The key is " + key)), "the key is [key], in JSON [key]");
  std::string failed = answer(*session->models()[0], question("y"));
  EXPECT_TRUE(contains(failed, "exit code 1: [key]")) << failed;
  answer(*session->models()[1], question("z"));
  auto child = runProcess({"/usr/bin/env"});
  ASSERT_TRUE(bool(child));
  for (const std::string &text :
       {child->out, contents("spy.env"), contents("transcript.jsonl"), said.at(0), session->summary()})
    EXPECT_FALSE(contains(text, "0123456789")) << text;
}

TEST_F(Session, AKeyThatIsCutOffIsStillNone) {
  // Errors are shortened: not in the middle of a key, of which the rest would then be shown.
  setenv("OPTIML_TEST_KEY", "sk-abcdefghijklmnopqrstuvwxyz", 1);
  ModelFlags flags;
  std::string filler(290, '.');
  flags.models = {script("front", "echo '{\"error\": \"" + filler + "sk-abcdefghijklmnopqrstuvwxyz\"}'"),
                  script("back", "echo 'sk-abcdefghijklmnopqrstuvwxyz" + filler + "' >&2; exit 1"),
                  "https://127.0.0.1:9/v1"};
  flags.keyVariables = {"OPTIML_TEST_KEY"};
  std::string error;
  std::unique_ptr<ModelSession> session = open(flags, &error);
  if (!session) {
    EXPECT_TRUE(contains(error, "has no HTTP")) << error;
    return;
  }
  for (int i : {0, 1}) {
    std::string failed = answer(*session->models()[size_t(i)], question("x"));
    EXPECT_TRUE(contains(failed, filler.substr(5)) && !contains(failed, "sk-abc") && !contains(failed, "xyz"))
        << failed;
  }
}

TEST_F(Session, OnlyItsOwnerReadsATranscriptAlsoWhereAnOldOneWasOpen) {
  std::ofstream(folder->file("transcript.jsonl")) << "old\n";
  chmod(folder->file("transcript.jsonl").c_str(), 0644);
  ModelFlags flags;
  flags.models = {script("model", "echo '{\"text\": \"yes\"}'")};
  auto session = open(flags);
  EXPECT_EQ(answer(*session->models()[0], question("a")), "yes");
  struct stat status;
  ASSERT_EQ(stat(folder->file("transcript.jsonl").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(transcript().size(), 2u); // and nothing of the old one is left
}

TEST_F(Session, ACommandThatLeavesSomebodyBehindDoesNotHoldTheSearchUp) {
  // A daemon of its own session that keeps the pipe: silent, or writing for ever.
  for (const char *daemon :
       {"setsid sleep 20 &", "setsid sh -c 'while :; do echo x; done' 2>/dev/null &", "setsid yes & sleep 0.1;"}) {
    ModelFlags flags;
    flags.models = {script("model", std::string("echo '{\"text\": \"yes\"}'; ") + daemon + " echo $! > \"$0.pid\"")};
    auto session = open(flags);
    auto start = std::chrono::steady_clock::now();
    answer(*session->models()[0], question("a"));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << daemon;
    kill(std::stoi(contents("model.pid")), SIGKILL);
  }
}

TEST_F(Session, BudgetsAreKeptToTheirExactLimits) {
  ChatRequest asked = question("a");
  uint64_t most = 0; // of one question
  {
    ModelFlags flags;
    flags.models = {script("model", "echo '{\"text\": \"yes\", \"promptTokens\": 10, \"completionTokens\": 20}'")};
    flags.budget.tokens = 1;
    std::string refused = answer(*open(flags)->models()[0], asked);
    ASSERT_TRUE(contains(refused, "does not allow for ")) << refused;
    most = std::stoull(refused.substr(refused.find("allow for ") + 10));
  }
  ModelFlags flags;
  flags.models = {script("model", "echo '{\"text\": \"yes\", \"promptTokens\": 10, \"completionTokens\": 20}'")};
  flags.budget.tokens = most - 1;
  EXPECT_TRUE(contains(answer(*open(flags)->models()[0], asked), "budget"));
  flags.budget.tokens = most + 30; // the first one came to 30
  auto session = open(flags);
  EXPECT_EQ(answer(*session->models()[0], asked), "yes");
  EXPECT_EQ(answer(*session->models()[0], asked), "yes");
  EXPECT_TRUE(contains(answer(*session->models()[0], asked), "budget"));
  // What a model says it used counts, also where that is more than was expected of it.
  flags.models = {script(
      "glutton", "echo '{\"text\": \"yes\", \"promptTokens\": 18446744073709551615, \"completionTokens\": 20}'")};
  flags.budget.tokens = 1000000;
  session = open(flags);
  EXPECT_EQ(answer(*session->models()[0], asked), "yes");
  EXPECT_TRUE(contains(answer(*session->models()[0], asked), "the budget of 1000000 tokens does not allow for"));
}

TEST_F(Session, AKeyIsNeverSentToAHostItMayNotBeFor) {
  setenv("OPTIML_TEST_KEY", "sk-0123456789", 1);
  ModelFlags flags;
  flags.models = {"https://a.example.com", "https://b.example.com"};
  flags.keyVariables = {"OPTIML_TEST_KEY"};
  std::string error;
  EXPECT_FALSE(open(flags, &error));
  EXPECT_TRUE(contains(error, "--optiml-llm-key-env is given 1 times for 2 endpoints")) << error;
  flags.keyVariables = {"OPTIML_TEST_KEY_THAT_IS_NOT_SET", "none"};
  EXPECT_FALSE(open(flags, &error));
  EXPECT_EQ(error, "the environment variable OPTIML_TEST_KEY_THAT_IS_NOT_SET is not set; it should hold the key");
}

TEST_F(Session, UrlsHoldNoSecrets) {
  for (const char *url :
       {"https://user:word@example.com/v1", "https://example.com/v1?key=word", "https://example.com/#word"}) {
    ModelFlags flags;
    flags.models = {url};
    std::string error;
    EXPECT_FALSE(open(flags, &error));
    EXPECT_TRUE(contains(error, "holds no user, query or fragment") && !contains(error, "word")) << error;
  }
}

} // namespace
