//===- Budget.h - what all models of a run may use --------------*- C++ -*-===//
#ifndef OPTIML_LIB_LANGUAGEMODELS_BUDGET_H
#define OPTIML_LIB_LANGUAGEMODELS_BUDGET_H

#include "optiml/LanguageModels/ModelFlags.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace optiml {

struct Price {
  double input = 0, output = 0; ///< US dollars for a million tokens
  double of(uint64_t promptTokens, uint64_t completionTokens) const {
    return (double(promptTokens) * input + double(completionTokens) * output) / 1e6;
  }
};

class PriceTable {
public:
  /// `file` empty: the table in data/model-prices.json.
  static llvm::Expected<PriceTable> load(const std::string &file);
  /// Of that very model, or of one whose name `model` continues with a date or "latest" ("o3-2025-04-16").
  std::optional<Price> find(llvm::StringRef model) const;

private:
  std::map<std::string, Price, std::less<>> prices;
};

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
