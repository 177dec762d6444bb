//===- Finalists.cpp - which variants race once more ----------------------===//
#include "Finalists.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

static constexpr size_t mostRacers = 4;
// A variant that was this much slower than the fastest does not take part.
static constexpr double mayStillWin = 1.1;

std::vector<Candidate> optiml::finalists(std::vector<Candidate> all, const Candidate &best,
                                         const std::function<bool(const Variant &)> &isVerified) {
  if (llvm::none_of(all, [&](const Candidate &c) { return c.key == best.key; }))
    all.insert(all.begin(), best);
  std::vector<Candidate> chosen;
  llvm::copy_if(all, std::back_inserter(chosen), [&](const Candidate &c) { return isVerified(*c.variant); });
  if (chosen.empty())
    chosen = std::move(all);
  auto seconds = [](const Candidate &c) { return c.measurement.time.seconds; };
  const double fastest =
      seconds(*llvm::min_element(chosen, [&](const auto &a, const auto &b) { return seconds(a) < seconds(b); }));
  llvm::erase_if(chosen, [&](const Candidate &c) { return seconds(c) > mayStillWin * fastest; });
  chosen.resize(std::min(chosen.size(), mostRacers));
  return chosen;
}
