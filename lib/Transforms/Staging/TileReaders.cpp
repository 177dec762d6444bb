//===- TileReaders.cpp - elements that one thread reads anyway ------------===//
#include "TileReads.h"
#include "optiml/Analysis/Bounds.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

/// Threads of the first block that are tried: as far from the edge as a filter may reach.
constexpr int64_t mostThreads = 16;

namespace {
class Readers {
public:
  Readers(const KernelState &state, const KernelModel &model, const std::vector<Poly> &places,
          const std::vector<Runner> &runners)
      : state(state), model(model), places(places), runners(runners) {}

  /// What must hold at the launch, each >= 0, so that a thread of the first block along `axis` reads whatever the
  /// loops' variables are, as far as `facts` decide; nothing when there is none.
  std::optional<std::vector<Poly>> find(unsigned axis, const std::vector<Poly> &facts) const;
  bool decidesPlace(const std::string &atom) const {
    return llvm::any_of(places, [&](const Poly &p) { return p.mentions(atom); });
  }

private:
  std::optional<Poly> worst(Poly fact) const;
  bool promised(const Poly &p) const;

  const KernelState &state;
  const KernelModel &model;
  const std::vector<Poly> &places;
  const std::vector<Runner> &runners;
};
} // namespace

static std::string onAxis(const char *base, unsigned axis) { return std::string(base) + char('x' + axis); }

/// The least value of the fact over the loops that decide the place, in the first iteration of the others.
std::optional<Poly> Readers::worst(Poly fact) const {
  for (const Runner &r : runners) {
    auto c = fact.coefficient(r.atom);
    if (!c || !c->constant())
      return std::nullopt;
    bool last = *c->constant() < 0 && decidesPlace(r.atom);
    fact = fact.substitute(r.atom, Poly(last ? r.low + r.step * (r.count - 1) : r.low));
  }
  return fact;
}

/// It is >= 0 for the captured launches, if there are any.
bool Readers::promised(const Poly &p) const {
  return state.hints.arguments.empty() || state.hints.evaluate(IntExpr::of(p.str())).value_or(-1) >= 0;
}

std::optional<std::vector<Poly>> Readers::find(unsigned axis, const std::vector<Poly> &facts) const {
  for (int64_t thread = 0; thread < std::min(std::max<int64_t>(model.blockExtent(axis), 1), mostThreads); ++thread) {
    std::vector<Poly> needed;
    bool reads = true;
    for (const Poly &fact : facts) {
      auto left = worst(
          fact.substitute(onAxis("threadIdx.", axis), Poly(thread)).substitute(onAxis("blockIdx.", axis), Poly(0)));
      if (left && *left == Poly::atom(onAxis("gridDim.", axis)) - Poly(1))
        continue; // there is a block
      auto constant = left ? left->constant() : std::nullopt;
      reads = reads && left && (constant ? *constant >= 0 : planText(model, *left) && promised(*left));
      if (reads && !constant)
        needed.push_back(*left);
    }
    if (reads)
      return needed;
  }
  return std::nullopt;
}

void optiml::dropFactsOfReaders(KernelState &state, const KernelModel &model, const std::vector<Poly> &places,
                                const std::vector<Runner> &runners, std::vector<Poly> &facts) {
  // Threads are no loops here: the one that reads is looked for.
  std::vector<Runner> loops = runners;
  llvm::erase_if(loops, [](const Runner &r) { return r.atom.starts_with("threadIdx."); });
  if (llvm::any_of(loops, [](const Runner &r) { return r.count < 1; }))
    return;
  Readers readers(state, model, places, loops);
  auto says = [](const Poly &fact, unsigned axis) {
    return fact.mentions(onAxis("threadIdx.", axis)) || fact.mentions(onAxis("blockIdx.", axis));
  };
  for (unsigned axis = 0; axis < 3; ++axis) {
    if (readers.decidesPlace(onAxis("threadIdx.", axis)) || readers.decidesPlace(onAxis("blockIdx.", axis)))
      continue;
    std::vector<Poly> own;
    bool ofLoops = false, alone = true;
    for (const Poly &fact : facts) {
      if (!says(fact, axis))
        continue;
      own.push_back(fact);
      for (unsigned other = 0; other < 3; ++other)
        alone &= other == axis || !says(fact, other);
      ofLoops |=
          llvm::any_of(loops, [&](const Runner &r) { return fact.mentions(r.atom) && readers.decidesPlace(r.atom); });
    }
    auto needed = ofLoops && alone ? readers.find(axis, own) : std::nullopt;
    if (!needed)
      continue;
    for (const Poly &p : *needed)
      state.require((p - Poly(p.constantTerm())).str() + " >= " + std::to_string(-p.constantTerm()),
                    "one thread reads all that is copied");
    llvm::erase_if(facts, [&](const Poly &fact) { return says(fact, axis); });
  }
}
