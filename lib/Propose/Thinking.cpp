//===- Thinking.cpp - models answer while the search goes on --------------===//
#include "optiml/Propose/Thinking.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

using Clock = std::chrono::steady_clock;

void Thinking::begin(std::function<void()> body) {
  if (hasEnded())
    return;
  Thought &thought = thoughts.emplace_back();
  thought.body = std::move(body);
  thought.thread = std::thread([this, &thought] { run(thought); });
  giveTurn(thought);
  tidy();
}

/// On the thought's own thread.
void Thinking::run(Thought &thought) {
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return active == &thought; });
  }
  thought.body();
  std::lock_guard lock(mutex);
  thought.done = true;
  active = nullptr;
  changed.notify_all();
}

void Thinking::giveTurn(Thought &thought) {
  std::unique_lock lock(mutex);
  active = &thought;
  changed.notify_all();
  changed.wait(lock, [&] { return !active; });
}

void Thinking::letSearchGoOn(Thought &thought) {
  std::unique_lock lock(mutex);
  active = nullptr;
  changed.notify_all();
  changed.wait(lock, [&] { return active == &thought; });
}

void Thinking::tidy() {
  for (auto thought = thoughts.begin(); thought != thoughts.end();) {
    if (!thought->done) {
      ++thought;
      continue;
    }
    thought->thread.join();
    thought = thoughts.erase(thought);
  }
}

bool Thinking::hasCome(Thought &thought) const {
  if (hasEnded())
    return true;
  if (thought.dueAt)
    return turn >= thought.dueAt;
  return llvm::all_of(thought.pending,
                      [](auto &reply) { return reply.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
}

void Thinking::goOn() {
  ++turn;
  for (Thought &thought : thoughts)
    if (hasCome(thought)) {
      ++resumed;
      giveTurn(thought);
    }
  tidy();
}

bool Thinking::wait(double seconds, const std::atomic<bool> *cancel) {
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  while (isWaiting()) {
    // The answers of a replay are there; the search had nothing else to do until they were due.
    unsigned next = never;
    for (const Thought &thought : thoughts)
      if (thought.dueAt)
        next = std::min(next, thought.dueAt);
    if (llvm::any_of(thoughts, [&](Thought &thought) { return hasCome(thought); }) || next < never) {
      if (next < never)
        turn = std::max(turn, next - 1);
      goOn();
      return true;
    }
    const bool isReplay = llvm::all_of(thoughts, [](const Thought &thought) { return thought.dueAt != 0; });
    if (isReplay || Clock::now() >= until || (cancel && cancel->load()))
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

void Thinking::end() {
  ended.raise();
  while (!thoughts.empty())
    goOn();
}

std::vector<llvm::Expected<ChatReply>> Thinking::askAll(std::vector<Question> questions) {
  Thought &thought = *active; // only thoughts ask, each in its turn
  std::vector<unsigned> due(questions.size());
  thought.pending.clear();
  for (size_t i = 0; i < questions.size(); ++i) {
    Question &question = questions[i];
    question.request.abandoned = ended.flag();
    question.request.takenAt = &due[i];
    thought.pending.push_back(
        std::async(std::launch::async, [&question] { return question.model->ask(question.request); }));
  }
  const auto until = Clock::now() + std::chrono::duration<double>(patience);
  bool waited =
      !llvm::all_of(thought.pending, [&](auto &reply) { return reply.wait_until(until) == std::future_status::ready; });
  if (waited) {
    patience = 0;
    letSearchGoOn(thought);
  }
  std::vector<llvm::Expected<ChatReply>> replies;
  for (auto &reply : thought.pending)
    replies.push_back(reply.get());
  if (const unsigned last = questions.empty() ? 0 : *llvm::max_element(due); last > turn && !hasEnded()) {
    thought.dueAt = last;
    letSearchGoOn(thought);
    thought.dueAt = 0;
    waited = true;
  }
  if (waited)
    for (const Question &question : questions)
      question.model->wasTaken(question.request, hasEnded() ? never : turn);
  return replies;
}
