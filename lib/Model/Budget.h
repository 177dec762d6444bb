//===- Budget.h - what all models of a run may use --------------*- C++ -*-===//
#ifndef OPTIML_LIB_MODEL_BUDGET_H
#define OPTIML_LIB_MODEL_BUDGET_H

#include "Prices.h"
#include "optiml/Model/ModelFlags.h"
#include <mutex>

namespace optiml {

/// Keeps calls, tokens and money within their limits, also while several questions are under way: each first reserves
/// the most that it can come to.
class Budget {
public:
  explicit Budget(const ModelBudget &limits) : limits(limits) {}

  struct Reservation {
    uint64_t tokens = 0;
    double usd = 0;
  };
  /// An error names the limit that stands in the way.
  llvm::Expected<Reservation> reserve(uint64_t promptTokens, uint64_t completionTokens,
                                      const std::optional<Price> &price);
  /// Puts what was really used in the place of the reservation.
  void settle(const Reservation &reservation, uint64_t tokens, double usd);

private:
  ModelBudget limits;
  std::mutex mutex;
  uint64_t calls = 0, tokens = 0;
  double usd = 0;
};

} // namespace optiml

#endif
