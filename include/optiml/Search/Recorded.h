//===- Recorded.h - searching a table of measured variants ------*- C++ -*-===//
//
// To compare ways to search, the dear part is done once: the variants of a program that searches evaluated are read
// back from a store, and any number of searches run over them in milliseconds. The legal actions of a recipe are those
// by which some recorded recipe goes on. What was never evaluated itself and is only passed through counts as slow as
// what stands before it.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_SEARCH_RECORDED_H
#define OPTIML_SEARCH_RECORDED_H

#include "optiml/Core/Interfaces.h"
#include <map>

namespace optiml {

struct RecordedVariant {
  std::string key;
  Recipe recipe; ///< empty: the original
  Measurement measurement;
  bool verified = false; ///< else a prediction
};

class RecordedSpace : public ActionSpace, public Evaluator {
public:
  /// Of a variant that occurs twice, what was verified counts. The error: there is no usable original among them.
  static llvm::Expected<std::unique_ptr<RecordedSpace>> create(const std::vector<RecordedVariant> &variants);

  llvm::Expected<SearchState> root() override { return stateOf(nodes.at("")); }
  llvm::Expected<SearchState> apply(const SearchState &state, const Action &action) override;
  /// A recorded prediction is taken for right: with Fidelity::Verified its verdict is Correct.
  Measurement evaluate(const Variant &variant, Fidelity fidelity) override;

  size_t size() const { return recorded; }
  /// The greatest speed-up in the table.
  double bestSpeedup() const { return best; }

private:
  struct Node {
    std::string key;
    Recipe recipe;
    std::optional<Measurement> measurement;
    bool verified = false;
    std::vector<Action> actions; ///< in the order in which they were recorded
  };
  SearchState stateOf(const Node &node) const;
  void add(const RecordedVariant &variant);
  std::map<std::string, Node> nodes; ///< by recipeText
  size_t recorded = 0;
  double best = 1;
};

} // namespace optiml

#endif
