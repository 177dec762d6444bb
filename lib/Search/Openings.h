//===- Openings.h - what is tried before the tree grows ---------*- C++ -*-===//
#ifndef OPTIML_LIB_SEARCH_OPENINGS_H
#define OPTIML_LIB_SEARCH_OPENINGS_H

#include "Combination.h"

namespace optiml::search {

/// Tries the opening book on every kernel, then the best of all kernels together. With an outlook the lines come in the
/// order of what they promise, and what did best is tried with other details, too.
class Openings {
public:
  explicit Openings(Session &session); ///< that has begun
  ~Openings();
  void play();
  /// After a step of the search: varies the best where it is new, and plays a few lines of the book that promised too
  /// little.
  void playOn();

private:
  /// A line of the book on one kernel.
  struct Line {
    Walk walk;
    std::shared_ptr<bool> dropped;
    size_t kernel;
    unsigned rank;
    std::string idea; ///< what its last required step does
  };
  /// What was walked and waits to be evaluated.
  struct Waiting;

  /// The next lines that are walked together.
  std::vector<Line> nextLines();
  void playInTurn();
  void walkLines();
  void playRanked();
  void playLeft();
  void tune();
  void varyBest();
  void mendUntested();
  void vary(Node &node, size_t kernel);
  void wait(const Walk &walk, size_t kernel, unsigned rank, const Recipe *basis = nullptr);
  bool evaluatePromising(size_t most);
  void evaluate(std::vector<Waiting> batch);
  void run(std::vector<Job> jobs);
  std::vector<Job> triedExactly();
  std::vector<Job> forLargeLaunches();
  std::vector<Job> mended();
  void mend();

  Session &session;
  std::vector<std::string> kernels;
  Combination combination;
  std::vector<Line> lines;                                   ///< not walked yet, in the order of the book
  std::map<std::pair<size_t, std::string>, unsigned> played; ///< lines that applied or may, by kernel and idea
  std::vector<Waiting> waiting;
  std::vector<const Node *> varied;                        ///< by kernel, the last node that was
  std::set<std::string> inexact;                           ///< transforms of steps that round otherwise
  std::vector<std::shared_ptr<std::atomic<bool>>> exactly; ///< by kernel, whether such steps were found to be the fault
};

} // namespace optiml::search

#endif
