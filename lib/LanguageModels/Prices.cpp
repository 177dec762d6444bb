//===- Prices.cpp - what models cost --------------------------------------===//
#include "Budget.h"
#include "optiml/LanguageModels/JsonAnswer.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include <cmath>

using namespace optiml;
using nlohmann::json;

namespace optiml {
extern const char *const builtInModelPrices;
}

static bool readAmount(const json &entry, const char *name, double &amount) {
  if (!entry.is_object() || !entry.contains(name) || !entry[name].is_number())
    return false;
  amount = entry[name].get<double>();
  return amount >= 0 && std::isfinite(amount);
}

llvm::Expected<PriceTable> PriceTable::load(const std::string &file) {
  std::string content = builtInModelPrices;
  if (!file.empty()) {
    if (llvm::Error error = readFile(file).moveInto(content))
      return error;
  }
  llvm::Expected<json> table = parseJsonWithin(content);
  if (!table)
    return makeError("the price table '{0}' cannot be read: {1}", file, llvm::toString(table.takeError()));
  if (!table->is_object() || !table->contains("models") || !(*table)["models"].is_object())
    return makeError("the price table '{0}' has no object 'models' (docs/formats.md)", file);
  PriceTable result;
  for (const auto &[model, entry] : (*table)["models"].items()) {
    Price price;
    if (!readAmount(entry, "input", price.input) || !readAmount(entry, "output", price.output))
      return makeError(
          "the price table '{0}' wants for '{1}' the numbers 'input' and 'output': US dollars for a million tokens",
          file, model);
    result.prices[model] = price;
  }
  return result;
}

/// "2025-04-16", "20250416", "latest": which build of a model, at the same price.
static bool isVersion(llvm::StringRef text) {
  return text == "latest" || (text.size() >= 8 && text.find_first_not_of("0123456789-") == llvm::StringRef::npos);
}

std::optional<Price> PriceTable::find(llvm::StringRef model) const {
  for (size_t end = model.size(); end != llvm::StringRef::npos; end = model.rfind('-', end)) {
    auto known = prices.find(model.substr(0, end));
    if (known != prices.end() && (end == model.size() || isVersion(model.substr(end + 1))))
      return known->second;
    if (end == 0)
      break;
  }
  return std::nullopt;
}
