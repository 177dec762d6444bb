//===- Budget.cpp - what all models of a run may use ----------------------===//
#include "Budget.h"
#include "optiml/Support/Error.h"

using namespace optiml;

llvm::Expected<Budget::Reservation> Budget::reserve(uint64_t promptTokens, uint64_t completionTokens,
                                                    const std::optional<Price> &price) {
  Reservation wanted{promptTokens + completionTokens, price ? price->of(promptTokens, completionTokens) : 0};
  std::lock_guard lock(mutex);
  if (calls >= limits.calls)
    return makeError("the budget of {0} calls is spent", limits.calls);
  if (tokens + wanted.tokens > limits.tokens)
    return makeError("the budget of {0} tokens does not allow for {1} more; {2} are used", limits.tokens, wanted.tokens,
                     tokens);
  if (limits.usd > 0 && usd + wanted.usd > limits.usd)
    return makeError("the budget of {0:f2} USD does not allow for up to {1:f4} more; {2:f4} are used", limits.usd,
                     wanted.usd, usd);
  ++calls;
  tokens += wanted.tokens;
  usd += wanted.usd;
  return wanted;
}

void Budget::settle(const Reservation &reservation, uint64_t usedTokens, double usedUsd) {
  std::lock_guard lock(mutex);
  tokens = tokens - reservation.tokens + usedTokens;
  usd = usd - reservation.usd + usedUsd;
}
