//===- ExpertTables.cpp - the expert policy's knowledge -------------------===//
//
// Reads expert.txt, which is part of the program.
//
//===----------------------------------------------------------------------===//
#include "optiml/Propose/ExpertPolicy.h"
#include "llvm/ADT/StringExtras.h"
#include <cassert>

using namespace optiml;
using llvm::StringRef;

namespace optiml {
extern const char *const expertText;
}

namespace {
struct ExpertTables {
  std::vector<ExpertRule> rules;
  std::vector<ExpertOrder> orders;
  std::vector<ExpertLine> lines;
};
} // namespace

static double readNumber(StringRef text) {
  double value = 0;
  [[maybe_unused]] bool bad = text.getAsDouble(value);
  assert(!bad && "expert.txt: expected a number");
  return value;
}

static OpeningStep readStep(StringRef text) {
  OpeningStep step;
  auto [transform, rest] = text.split(' ');
  step.transform = transform.str();
  for (StringRef word : llvm::split(rest, ' ')) {
    if (word == "required")
      step.required = true;
    else if (word == "everywhere")
      step.everySite = true;
    else if (word == "only")
      step.onlyPreferred = true;
    else if (word == "inexact")
      step.inexact = true;
    else if (!word.empty()) {
      Params &params = step.preferences.emplace_back();
      for (StringRef param : llvm::split(word, ','))
        params[param.split('=').first.str()] = param.split('=').second.str();
    }
  }
  return step;
}

/// What comes before a line's own steps.
static void addPreparation(OpeningLine &line) {
  auto needs = [&](llvm::ArrayRef<StringRef> transforms) {
    return llvm::any_of(line.steps, [&](const OpeningStep &s) {
      return s.required && llvm::is_contained(transforms, StringRef(s.transform));
    });
  };
  std::vector<OpeningStep> first;
  // What a programmer has tiled by hand starts again from the plain kernel, where a line has better tiles to offer.
  if (needs({"stage-shared", "stage-window"}))
    first.push_back(readStep("unstage-shared"));
  first.push_back(readStep("expand-powers inexact"));
  first.push_back(readStep("reciprocal-roots inexact"));
  first.push_back(readStep("reciprocal-divisors inexact"));
  // One index for all cells hides the rows that tiles need.
  if (needs({"stage-shared", "stage-window", "coarsen"}))
    first.push_back(readStep("unflatten-index"));
  // A tile, or a group of threads, serves all loops over the same iterations.
  if (needs({"stage-shared", "stage-window", "distribute-loop", "split-reduction"}))
    first.push_back(readStep("fuse-loops"));
  // A stride that is 1 says which elements are neighbours, before anything asks.
  first.push_back(readStep("specialize-scalar everywhere only value=1"));
  // So do a block's threads that share a row: the work of one thread is shared out anew.
  if (needs({"distribute-loop", "split-reduction"}))
    first.push_back(readStep("thread-per-block"));
  // Threads that take turns come first to have one iteration each, where that is possible, and loops of few threads to
  // be axes of the grid. Axes have a site for swapping only where they lie across the arrays' rows, and all else is
  // better after it.
  if (!StringRef(line.name).ends_with("threads as they are"))
    for (StringRef step : {"thread-per-iteration", "loop-to-grid", "loop-to-grid", "swap-thread-axes"})
      first.push_back(readStep(step));
  line.steps.insert(line.steps.begin(), first.begin(), first.end());
}

static ExpertTables readTables(StringRef text) {
  ExpertTables tables;
  StringRef section;
  for (StringRef row : llvm::split(text, '\n')) {
    if (row.empty() || row.starts_with("#"))
      continue;
    if (row.starts_with("[")) {
      section = row;
    } else if (section == "[lines]") {
      if (row.starts_with(" ")) {
        tables.lines.back().line.steps.push_back(readStep(row.ltrim()));
        continue;
      }
      auto [name, against] = row.split(": ");
      tables.lines.push_back({{name.str(), {}}, {}});
      if (against != "-")
        for (StringRef bottleneck : llvm::split(against, ' '))
          tables.lines.back().bottlenecks.push_back(bottleneck.str());
    } else {
      auto [first, afterFirst] = row.split(' ');
      auto [second, afterSecond] = afterFirst.split(' ');
      auto [number, reason] = afterSecond.split(' ');
      if (section == "[rules]")
        tables.rules.push_back({first, second == "-" ? "" : second, readNumber(number), reason});
      else
        tables.orders.push_back({first, second, readNumber(number)});
    }
  }
  for (ExpertLine &line : tables.lines)
    addPreparation(line.line);
  return tables;
}

static const ExpertTables &expertTables() {
  static const ExpertTables tables = readTables(expertText);
  return tables;
}

llvm::ArrayRef<ExpertRule> optiml::expertRules() { return expertTables().rules; }
llvm::ArrayRef<ExpertOrder> optiml::expertOrders() { return expertTables().orders; }
llvm::ArrayRef<ExpertLine> optiml::expertLines() { return expertTables().lines; }
