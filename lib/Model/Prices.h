//===- Prices.h - what models cost ------------------------------*- C++ -*-===//
#ifndef OPTIML_LIB_MODEL_PRICES_H
#define OPTIML_LIB_MODEL_PRICES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
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

} // namespace optiml

#endif
