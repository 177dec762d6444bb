//===- Combination.h - the best of every kernel together --------*- C++ -*-===//
#ifndef OPTIML_LIB_SEARCH_COMBINATION_H
#define OPTIML_LIB_SEARCH_COMBINATION_H

#include "Session.h"

namespace optiml::search {

/// The best line of every kernel, one after the other. It is played as soon as each kernel had its turn, for beside one
/// kernel's much faster line those of the others are hardly seen, and where times are predicted they are not even
/// verified.
class Combination {
public:
  Combination(Session &session, size_t kernels) : session(session), ends(kernels), tried(kernels) {}

  bool hasTried(size_t kernel) const { return tried[kernel]; }
  /// The best line on `kernel`, also if it is only predicted; null: none is better than the original.
  Node *bestOn(size_t kernel) const;

  /// The end of a line on `kernel` was evaluated.
  void add(size_t kernel, Node *end);
  void playIfBetter();
  /// What is to be evaluated with the next batch, where several lines are evaluated at once.
  std::optional<Job> take();
  /// What is best in the end; where it is wrong, what is proven to be right one by one.
  void finish();

private:
  struct Waiting {
    Node *end;
    Path path;
  };
  double secondsOf(const Node *node) const { return (node ? node : session.root)->measured->time.seconds; }
  double secondsOf(const std::vector<Node *> &lines) const;
  std::vector<Node *> best() const;
  std::vector<Node *> proven() const;
  void play(const std::vector<Node *> &lines, bool canWait);
  void evaluateWaiting();

  Session &session;
  std::vector<std::vector<Node *>> ends; ///< by kernel. What was believed may still fail.
  std::vector<bool> tried;
  Recipe recipe; ///< the last one played, and where it led
  Node *end = nullptr;
  std::optional<Waiting> waiting;
  double played = HUGE_VAL;
};

} // namespace optiml::search

#endif
