//===- ExpertPolicy.h - what a CUDA programmer would try --------*- C++ -*-===//
//
// The proposer that needs no language model. Tables decide (lib/Propose/expert.txt): which transform helps against
// which bottleneck, and how much; and an opening book of recipes that are known to be good. Every proposal says why.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_PROPOSE_EXPERTPOLICY_H
#define OPTIML_PROPOSE_EXPERTPOLICY_H

#include "optiml/Core/Interfaces.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace optiml {

/// "Against this bottleneck, this transform has this weight, because." An empty bottleneck is the rule for all others.
struct ExpertRule {
  llvm::StringRef transform, bottleneck;
  double weight;
  llvm::StringRef reason;
};

/// "While `first` is still legal on the kernel, `then` can wait": its weight is multiplied by `factor`.
struct ExpertOrder {
  llvm::StringRef first, then;
  double factor;
};

struct ExpertLine {
  OpeningLine line;
  std::vector<std::string> bottlenecks; ///< against which it is played first; empty: any
};

llvm::ArrayRef<ExpertRule> expertRules();
llvm::ArrayRef<ExpertOrder> expertOrders();
llvm::ArrayRef<ExpertLine> expertLines();

/// Stateless; may be called from any thread.
class ExpertPolicy : public Proposer {
public:
  llvm::Expected<std::vector<Proposal>> propose(const SearchState &state, unsigned count) override;
  std::vector<OpeningLine> openingBook(const SearchState &root) override;
};

} // namespace optiml

#endif
