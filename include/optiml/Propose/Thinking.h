//===- Thinking.h - models answer while the search goes on ------*- C++ -*-===//
//
// A line of thought is ordinary code that asks models and waits for their answers. While it waits, the search goes on.
// Thoughts and the search take turns and never run at the same time, so that they share data without locks: a thought
// runs when the search begins it, and when the search asks what has come (goOn). It is a coroutine that has a thread as
// its stack.
//
// When an answer is taken in is counted in calls of goOn(), and a transcript records it, so that a replay takes the
// same answers in at the same places.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_PROPOSE_THINKING_H
#define OPTIML_PROPOSE_THINKING_H

#include "optiml/LanguageModels/Chat.h"
#include "optiml/Support/Deadline.h"
#include <functional>
#include <future>
#include <list>

namespace optiml {

class Thinking {
public:
  struct Question {
    LanguageModel *model;
    ChatRequest request;
  };

  /// An answer that comes within `patience` seconds is waited for, until one takes longer.
  explicit Thinking(double patience = 1) : patience(patience), ended(0, nullptr) {}
  ~Thinking() { end(); }

  // For the search.

  /// The thought runs until it waits, or to its end.
  void begin(std::function<void()> thought);
  /// Thoughts whose answers have come go on.
  void goOn();
  bool isWaiting() const { return !thoughts.empty(); }
  /// Waits until something has come, at most so long, and goes on with it. False: nothing has.
  bool wait(double seconds, const std::atomic<bool> *cancel);
  /// What has not come is not waited for; thoughts go on with errors. No new ones begin.
  void end();
  bool hasEnded() const { return ended.passed(); }
  /// How often a thought has gone on.
  unsigned taken() const { return resumed; }
  /// The turn, in transcripts, of answers that the search did not wait for.
  static constexpr unsigned never = 1u << 30;

  // For thoughts.

  /// Asks all at the same time. The answers are in the order of the questions.
  std::vector<llvm::Expected<ChatReply>> askAll(std::vector<Question> questions);

private:
  struct Thought {
    std::function<void()> body;
    std::thread thread;
    std::vector<std::future<llvm::Expected<ChatReply>>> pending;
    unsigned dueAt = 0; ///< of a replay: the turn at which they are taken in
    bool done = false;
  };
  bool hasCome(Thought &thought) const;
  void run(Thought &thought);
  void giveTurn(Thought &thought);
  void letSearchGoOn(Thought &thought);
  void tidy();

  double patience;
  Deadline ended;
  std::list<Thought> thoughts;
  std::mutex mutex;
  std::condition_variable changed;
  Thought *active = nullptr; ///< null: the search's turn
  unsigned turn = 0, resumed = 0;
};

} // namespace optiml

#endif
