//===- ProgramSearch.cpp - the searches of one program --------------------===//
#include "ProgramSearch.h"
#include "optiml/Core/Hash.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <ctime>

using namespace optiml;

// It must be this much faster: its program has fewer threads, and other GPUs may have more of them.
static constexpr double surelyFaster = 1.02;

/// Seconds for a Deadline, for which 0 is no limit.
static double secondsOf(double remaining) { return std::max(1e-3, remaining); }

/// Searches a program in which launches are fused, in the place of the original.
llvm::Expected<SearchOutcome> ProgramSearch::searchFused(const FuseTrial &trial, const std::string &name,
                                                         const SearchLimits &within, const Deadline *deadline) {
  SearchTask other = task;
  other.text = trial.text;
  other.device = trial.device.get();
  other.replaced = true;
  other.executable = trial.executable;
  other.folder += "/" + name;
  other.deadline = deadline;
  if (std::error_code e = llvm::sys::fs::create_directory(other.folder))
    return makeError("{0}: {1}", other.folder, e.message());
  if (llvm::Error e = backend.observe(other))
    return std::move(e);
  watch.lap("observe");
  bool launched = llvm::any_of(backend.performance().launches, [&](const LaunchImage &launch) {
    const KernelDecl *decl = trial.device->findKernel(launch.kernel);
    return decl && llvm::any_of(trial.names, [&](const std::string &kernel) {
             return llvm::StringRef(decl->name).ends_with(kernel);
           });
  });
  if (!launched)
    return notApplicable("the program does not launch them as the fused kernel needs it");
  SearchKey own{contentHash(key.context + "|" + trial.text),
                name == "fused" ? key.search : contentHash(key.search + "|" + name)};
  return SearchRun(other, backend, *trial.device, trial, std::move(own), means, within, watch).run();
}

/// Searches the program as it is.
llvm::Expected<SearchOutcome> ProgramSearch::searchApart(const SearchLimits &within, const Deadline *deadline) {
  SearchTask own = task;
  own.deadline = deadline;
  FuseTrial apart;
  apart.notes = fused.notes;
  return SearchRun(own, backend, given, apart, key, means, within, watch).run();
}

/// Searches the program with no fewer threads than it has.
llvm::Expected<SearchOutcome> ProgramSearch::searchFully(const SearchLimits &within, const Deadline *deadline) {
  if (!fused.device)
    return searchApart(within, deadline);
  auto outcome = searchFused(fused, "fused", within, deadline);
  if (outcome)
    return outcome;
  means.progress.clear();
  llvm::errs() << "optiml-clang: warning: launches that could be fused stay apart: "
               << llvm::toString(outcome.takeError()) << "\n";
  task.folder += "/apart"; // something else was observed last
  if (std::error_code e = llvm::sys::fs::create_directory(task.folder))
    return makeError("{0}: {1}", task.folder, e.message());
  if (llvm::Error e = backend.observe(task))
    return std::move(e);
  watch.lap("observe");
  return searchApart(within, deadline);
}

/// Of the program searched as it is, and with launches over rows fused.
static SearchOutcome better(SearchOutcome apart, SearchOutcome overRows) {
  unsigned here = apart.summary.value("evaluations", 0u), there = overRows.summary.value("evaluations", 0u);
  std::string note = llvm::formatv(
      "{0} evaluations with launches of a thread an element apart ended {1:f2} times as fast as the original, "
      "{2} with them fused over rows {3:f2} times",
      here, apart.gain(), there, overRows.gain());
  SearchOutcome winner = overRows.gain() > surelyFaster * apart.gain() ? std::move(overRows) : std::move(apart);
  winner.summary["evaluations"] = here + there;
  winner.summary["notes"].push_back(note);
  return winner;
}

/// What to do about a file that is no program.
static std::string adviceOn(llvm::StringRef why) {
  return why.contains("undefined") && why.contains("main")
             ? "; where a program of other files calls it, record a run of that one (optiml-run --capture=FOLDER) and "
               "search on --optiml-workload=FOLDER"
             : "";
}

/// Says so where less than half of the budget is left for evaluations, as the program itself takes long.
void ProgramSearch::tellSmallBudget() const {
  const double budget = task.flags.budget.seconds, spent = task.elapsed(),
               others = spent + backend.concludingSeconds(false);
  if (backend.measures() && budget > 0 && others > 0.5 * budget)
    llvm::errs() << llvm::formatv("optiml-clang: remark: observing the program took {0:f1} s, and what follows the "
                                  "search takes about {1:f1} s; -O-search={2:f0}s would leave half of the time to it\n",
                                  spent, others - spent, 2 * others);
}

llvm::Expected<SearchOutcome> ProgramSearch::search() {
  means.progress.phase("observing the program");
  std::optional<FusionsAhead> ahead(std::in_place, task, backend, given);
  if (llvm::Error e = backend.observe(task)) {
    const std::string why = llvm::toString(std::move(e)), &input = task.options.inputs.front();
    return makeError("{0}{1}{2}", llvm::StringRef(why).starts_with(input + ":") ? "" : input + ": ", why,
                     adviceOn(why));
  }
  means.progress.clear();
  watch.lap("observe");
  tellSmallBudget();
  if (task.isRecorded() || !backend.sawWholeProgram()) {
    ahead.reset(); // it looks at the AST, as the search does
    return searchApart(limits, task.deadline);
  }
  FuseTrials trials = tryFusions(task, backend, given, /*overRows=*/limits.evaluations != 1, *ahead, limits.budget);
  fused = std::move(trials.plain);
  FuseTrial rows = std::move(trials.overRows);
  watch.lap("fuse");
  if (!rows.device) {
    for (const std::string &note : rows.notes)
      if (!llvm::is_contained(fused.notes, note))
        fused.notes.push_back(note);
    return searchFully(limits, task.deadline);
  }
  double left = limits.budget.remaining(),
         toSettle = std::isfinite(left) ? std::max(0.0, task.deadline->remaining() - left) : 0;
  Deadline half(secondsOf(left / 2), limits.budget.flag()), settled(secondsOf(left / 2 + toSettle), task.cancel());
  auto outcome = searchFully({limits.evaluations / 2, half}, &settled);
  if (outcome && means.interrupted)
    return outcome;
  SearchLimits rest = limits;
  if (outcome) {
    rest.toBeat = outcome->gain();
    if (limits.evaluations)
      rest.evaluations -= std::min(limits.evaluations - 1, outcome->summary.value("evaluations", 0u));
  }
  auto overRows = searchFused(rows, "rows", rest, task.deadline);
  if (outcome && overRows)
    return better(std::move(*outcome), std::move(*overRows));
  if (!outcome && !overRows)
    return llvm::joinErrors(outcome.takeError(), overRows.takeError());
  if (!outcome) {
    llvm::consumeError(outcome.takeError()); // the program with launches fused was searched
    return overRows;
  }
  outcome->summary["notes"].push_back("launches over rows are not fused: " + llvm::toString(overRows.takeError()));
  return outcome;
}

void ProgramSearch::remember(const SearchOutcome &outcome) {
  // What failed for lack of time may succeed the next time, which finds these evaluations in the store.
  bool unfinished = outcome.summary.contains("kept") && task.deadline->passed();
  if (!means.store || means.interrupted || outcome.cancelled || unfinished)
    return;
  StoredSearch stored;
  stored.recipe = outcome.recipe;
  stored.emittedText = outcome.emitted;
  stored.summary = outcome.summary;
  stored.time = std::time(nullptr);
  if (llvm::Error e = means.store->addSearch(key.search, key.context, stored))
    llvm::errs() << "optiml-clang: warning: " << llvm::toString(std::move(e)) << "\n";
}

llvm::Expected<SearchOutcome> ProgramSearch::run() {
  auto outcome = search();
  if (outcome)
    remember(*outcome);
  return outcome;
}
