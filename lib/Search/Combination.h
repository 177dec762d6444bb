//===- Combination.h - the best of every kernel together --------*- C++ -*-===//
#ifndef OPTIML_LIB_SEARCH_COMBINATION_H
#define OPTIML_LIB_SEARCH_COMBINATION_H

#include "Session.h"
#include <set>

namespace optiml::search {

/// What did best on every kernel, one after the other. It is played as soon as each kernel had its turn, for beside one
/// kernel's much faster line those of the others are hardly seen, and where times are predicted they are not even
/// verified. Where each kernel's launches are known, any variant tells how good its actions on a kernel are.
class Combination {
public:
  /// `kernels`: as sites name them.
  Combination(Session &session, std::vector<std::string> kernels);
  Combination(const Combination &) = delete;
  ~Combination() { session.evaluated = nullptr; }

  bool hasTried(size_t kernel) const { return tried[kernel]; }
  /// The best line on `kernel`, also if it is only predicted; null: none is better than the original.
  Node *bestOn(size_t kernel) const;

  /// The kernels of which the node slows a launch down, though over all launches it saves about as much as any variant.
  std::vector<std::string> slowedBy(const Node &node) const;

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
  using Parts = std::vector<const Node *>; ///< by kernel, of which variant the actions are; null: the original

  bool isOn(size_t kernel, const Action &action) const { return siteKernel(action.site) == kernels[kernel]; }
  double leastSaved() const; ///< seconds that are worth a part
  double secondsOn(size_t kernel, const Node &node) const;
  /// Seconds of a run that the node's actions on the kernel save.
  double savedOn(size_t kernel, const Node &node) const;
  bool slowsALaunchOf(size_t kernel, const Node &node) const;
  Recipe partOn(size_t kernel, const Node &node) const;
  double secondsOf(const Parts &parts) const;
  Parts best(bool proven) const;
  void play(const Parts &parts, bool canWait);
  void evaluateWaiting();

  Session &session;
  const std::vector<std::string> kernels;
  std::vector<std::vector<Node *>> ends;     ///< by kernel, of lines on it. What was believed may still fail.
  std::vector<std::vector<Node *>> variants; ///< by kernel, where its launches are known
  std::vector<bool> tried;
  std::set<std::string> known; ///< the recipes that were played
  Node *end = nullptr;         ///< where the last one led
  std::optional<Waiting> waiting;
  double played = HUGE_VAL;
};

} // namespace optiml::search

#endif
