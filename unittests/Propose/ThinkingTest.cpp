//===- ThinkingTest.cpp - models answer while the search goes on ----------===//
#include "optiml/Propose/Thinking.h"
#include "gtest/gtest.h"

using namespace optiml;

namespace {

/// Answers a question with its purpose, once it is allowed to, or given up.
class SlowModel : public LanguageModel {
public:
  std::string name() const override { return "slow"; }
  llvm::Expected<ChatReply> ask(const ChatRequest &request) override {
    std::unique_lock lock(mutex);
    while (!allowed.count(request.purpose) && !(request.abandoned && request.abandoned->load()))
      changed.wait_for(lock, std::chrono::milliseconds(5));
    if (!allowed.count(request.purpose))
      return llvm::createStringError("given up");
    ChatReply reply;
    reply.text = request.purpose;
    if (request.takenAt)
      *request.takenAt = takenAt;
    return reply;
  }
  void wasTaken(const ChatRequest &request, unsigned turn) override { taken.emplace_back(request.purpose, turn); }
  void allow(const std::string &purpose) {
    std::lock_guard lock(mutex);
    allowed.insert(purpose);
    changed.notify_all();
  }
  std::vector<std::pair<std::string, unsigned>> taken;
  unsigned takenAt = 0;

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::string> allowed;
};

ChatRequest about(const std::string &purpose) {
  ChatRequest request;
  request.purpose = purpose;
  return request;
}

/// What the thought learnt, "a,b".
std::string answersTo(Thinking &thinking, LanguageModel &model, const std::vector<std::string> &purposes) {
  std::vector<Thinking::Question> questions;
  for (const std::string &purpose : purposes)
    questions.push_back({&model, about(purpose)});
  std::string text;
  for (llvm::Expected<ChatReply> &reply : thinking.askAll(std::move(questions)))
    text += (text.empty() ? "" : ",") + (reply ? reply->text : llvm::toString(reply.takeError()));
  return text;
}

} // namespace

TEST(Thinking, WhatComesSoonIsTakenInAtOnce) {
  SlowModel model;
  model.allow("a");
  Thinking thinking(/*patience=*/30);
  std::string learnt;
  thinking.begin([&] { learnt = answersTo(thinking, model, {"a"}); });
  EXPECT_EQ(learnt, "a");
  EXPECT_FALSE(thinking.isWaiting());
  EXPECT_TRUE(model.taken.empty()); // nothing that a replay must wait for
}

TEST(Thinking, TheSearchGoesOnAndTakesAnswersInWhenItAsks) {
  SlowModel model;
  Thinking thinking(0.01);
  std::string learnt, other;
  thinking.begin([&] {
    learnt = answersTo(thinking, model, {"a", "b"});
    learnt += ";" + answersTo(thinking, model, {"c"});
  });
  thinking.begin([&] { other = answersTo(thinking, model, {"d"}); });
  EXPECT_TRUE(thinking.isWaiting());
  model.allow("b");
  for (int i = 0; i < 3; ++i)
    thinking.goOn();
  EXPECT_EQ(learnt, "");
  model.allow("a");
  ASSERT_TRUE(thinking.wait(30, nullptr));
  EXPECT_EQ(model.taken, (std::vector<std::pair<std::string, unsigned>>{{"a", 4}, {"b", 4}}));
  model.allow("c");
  ASSERT_TRUE(thinking.wait(30, nullptr));
  EXPECT_EQ(learnt, "a,b;c");
  EXPECT_FALSE(thinking.wait(0.01, nullptr)); // d has not come
  EXPECT_EQ(other, "");
  thinking.end();
  EXPECT_EQ(other, "given up");
  EXPECT_FALSE(thinking.isWaiting());
  thinking.begin([&] { other = "begun"; });
  EXPECT_EQ(other, "given up");
}

TEST(Thinking, AReplayTakesAnswersInAtTheSameTurn) {
  SlowModel model;
  model.allow("a");
  model.takenAt = 3;
  Thinking thinking(30);
  std::string learnt;
  thinking.begin([&] { learnt = answersTo(thinking, model, {"a"}); });
  for (unsigned turn = 1; turn < 3; ++turn) {
    thinking.goOn();
    EXPECT_EQ(learnt, "") << turn;
  }
  thinking.goOn();
  EXPECT_EQ(learnt, "a");
}

TEST(Thinking, WaitingEndsWithTheSearch) {
  SlowModel model;
  Thinking thinking(0.01);
  thinking.begin([&] { answersTo(thinking, model, {"never"}); });
  std::atomic<bool> cancel{true};
  EXPECT_FALSE(thinking.wait(30, &cancel));
}

TEST(Thinking, AReplayIsWaitedForWithoutWaiting) {
  SlowModel model;
  model.allow("a");
  model.takenAt = 1000000;
  Thinking thinking(30);
  std::string learnt;
  thinking.begin([&] { learnt = answersTo(thinking, model, {"a"}); });
  ASSERT_TRUE(thinking.wait(0, nullptr));
  EXPECT_EQ(learnt, "a");
  model.takenAt = Thinking::never; // it came too late
  thinking.begin([&] { learnt = answersTo(thinking, model, {"a"}) + " late"; });
  EXPECT_FALSE(thinking.wait(30, nullptr));
  thinking.end();
  EXPECT_EQ(learnt, "a late");
}
