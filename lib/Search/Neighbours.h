//===- Neighbours.h - the best with one detail changed ----------*- C++ -*-===//
//
// How many threads share a row, how large a tile is: what a line of the book or a walk chose is one guess among
// several. Coordinate descent (one action's parameters at a time, the others as they are) from the best so far finds
// better ones in few evaluations, wherever in the recipe they stand.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_SEARCH_NEIGHBOURS_H
#define OPTIML_LIB_SEARCH_NEIGHBOURS_H

#include "Session.h"
#include <deque>
#include <set>

namespace optiml::search {

class Neighbours {
public:
  explicit Neighbours(Session &session) : session(session) {}
  /// Up to `most` that were not asked for before, of the search's best as it is now. The values next to an action's own
  /// come before those further off, and early actions, on which the others rest, before late ones.
  std::vector<Job> next(size_t most);

private:
  void lookAround(Node &best);

  Session &session;
  Node *around = nullptr;
  std::deque<Recipe> waiting;
  std::set<std::string> known; ///< recipes that were asked for
};

} // namespace optiml::search

#endif
