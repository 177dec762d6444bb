//===- MemoryPolicy.h - proposals weighed by memory -------------*- C++ -*-===//
#ifndef OPTIML_PROPOSE_MEMORYPOLICY_H
#define OPTIML_PROPOSE_MEMORYPOLICY_H

#include "optiml/Core/Interfaces.h"
#include "optiml/Propose/Memory.h"

namespace optiml {

/// Another proposer's answers, weighed by memory.
class MemoryPolicy : public Proposer, public Outlook {
public:
  MemoryPolicy(Proposer &inner, const LearntMemory &memory);
  ~MemoryPolicy() override;
  llvm::Expected<std::vector<Proposal>> propose(const SearchState &state, unsigned count) override;
  std::vector<OpeningLine> openingBook(const SearchState &root) override;
  void observe(const SearchState &state, const Measurement &measurement) override;

  bool knowsAnything() const override;
  std::vector<size_t> choose(const std::vector<Prospect> &prospects, size_t most) const override;
  Recipe tuned(const SearchState &end) const override;
  std::vector<Recipe> variations(const SearchState &end) const override;

private:
  class Experience; ///< with one kernel: what other kernels taught, and what this search tried
  /// Of the kernel that all of the recipe is about; null where there are several, or none.
  const Experience *experienceWith(const Recipe &recipe) const;
  double shareOf(const Experience &experience) const;

  Proposer &inner;
  const LearntMemory &memory;
  std::map<std::string, std::unique_ptr<Experience>> experiences;
};

} // namespace optiml

#endif
