//===- LinePlayer.h - following a line of the opening book ------*- C++ -*-===//
//
// A line of the book is general ("stage every operand, tile 8 if there is such a value"). It is resolved step by step
// against what is legal after the steps before it.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_SEARCH_LINEPLAYER_H
#define OPTIML_LIB_SEARCH_LINEPLAYER_H

#include "Session.h"
#include <atomic>
#include <set>

namespace optiml::search {

/// Follows one line on one kernel; the `next` of a Walk. `exactly`: whether it leaves out what it can of the steps that
/// round otherwise.
class LinePlayer {
public:
  LinePlayer(OpeningLine line, std::string kernel, std::shared_ptr<const std::atomic<bool>> exactly)
      : line(std::move(line)), kernel(std::move(kernel)), exactly(std::move(exactly)) {}
  std::optional<Action> operator()(const SearchState &at, bool refused);

  std::shared_ptr<bool> dropped = std::make_shared<bool>(false); ///< a required step did not apply

private:
  void noteTaken();
  void nextStep();
  std::optional<Action> resolve(const OpeningStep &wanted, const SearchState &at) const;
  std::optional<Action> resolve(const OpeningStep &wanted, const SearchState &at, bool anyShape) const;

  OpeningLine line;
  std::string kernel;
  std::shared_ptr<const std::atomic<bool>> exactly;
  size_t step = 0;
  bool taken = false;
  std::optional<Action> last;
  std::set<std::string> tried, doneSites;
};

/// Takes the steps of a recipe that apply, from the root on.
Walk replayOf(Session &session, Recipe recipe);

} // namespace optiml::search

#endif
