//===- SearchSummary.cpp - what a search tells ----------------------------===//
#include "SearchSummary.h"
#include "optiml/Report/Trajectory.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace optiml;

double SearchOutcome::gain() const {
  if (double program = summary.value("programSpeedup", 0.0); improved && program > 0)
    return program;
  double after = summary.value("bestSeconds", 0.0);
  return improved && after > 0 ? summary.value("baselineSeconds", 0.0) / after : 1;
}

void SearchOutcome::dropRecipe() {
  recipe.clear();
  summary["recipeText"] = "";
  summary.erase("verified");
}

nlohmann::json optiml::summaryOf(const SearchResult &result, const Backend &backend) {
  nlohmann::json summary = toJson(result);
  summary["gpu"] = backend.gpuName();
  summary["otherSizes"] = backend.otherSizes();
  summary["notes"] = backend.notes();
  summary["originalFaults"] = backend.originalFaults();
  summary["baselineSeconds"] = result.baseline.measurement.time.seconds;
  summary["bestSeconds"] = result.best.measurement.time.seconds;
  summary["recipeText"] = recipeText(result.best.recipe);
  summary["evaluations"] = result.statistics.evaluations;
  summary["stopText"] = stopReasonText(result.stop);
  summary["bottleneck"] = result.best.measurement.bottleneck;
  return summary;
}

void optiml::addTimes(const ProgramTimes &times, nlohmann::json &summary) {
  summary["baselineSeconds"] = times.before;
  summary["bestSeconds"] = times.after;
  summary["speedup"] = times.before / times.after;
  for (const char *interval : {"speedupLow", "speedupHigh"})
    summary.erase(interval); // the search's, of its kernels alone
}

std::string optiml::wrapped(llvm::StringRef text, unsigned indent) {
  constexpr size_t columns = 80;
  std::string result;
  size_t column = indent;
  while (!text.empty()) {
    auto [word, rest] = text.split(' ');
    if (column > indent && column + 1 + word.size() > columns) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    text = rest;
  }
  return result;
}

static void addVerified(const std::string &what, nlohmann::json &summary) {
  std::string verified = summary.value("verified", std::string());
  summary["verified"] = verified + (verified.empty() ? "" : "; ") + what;
}

void optiml::addLoops(const LoopOutcome &loops, nlohmann::json &summary) {
  std::string recipe = summary.value("recipeText", std::string());
  for (const LoopRewrite &rewrite : loops.rewrites) {
    recipe += (recipe.empty() ? "" : "; ") + ("launch-loop[" + rewrite.kernel.original + "]");
    summary["loops"].push_back(rewrite.kernel.original);
  }
  summary["recipeText"] = recipe;
  addTimes(loops.timed.times, summary);
  addVerified(loops.timed.verified, summary);
}

void optiml::addFusions(const FuseTrial &fused, nlohmann::json &summary) {
  for (const std::string &note : fused.notes)
    summary["notes"].push_back(note);
  if (!fused.device)
    return;
  std::string first, recipe = summary.value("recipeText", std::string());
  for (const std::string &kernels : fused.kernels) {
    first += (first.empty() ? "" : "; ") + ("fuse-launches[" + kernels + "]");
    summary["fused"].push_back(kernels);
  }
  summary["recipeText"] = first + (recipe.empty() ? "" : "; ") + recipe;
  addVerified(fused.verified, summary);
}

/// The kernels that no transform applies to but those that tune, and what the original ones do wrong.
static void writeKernels(const nlohmann::json &s, llvm::raw_ostream &os) {
  if (s.contains("onlyTuned"))
    for (const auto &[kernel, why] : s["onlyTuned"].items())
      os << "  kernel:     " << kernel << " may only be tuned: " << why.get<std::string>() << "\n";
  if (s.contains("originalFaults"))
    for (const auto &fault : s["originalFaults"])
      os << "  warning:    the original itself is faulty, and its results are compared only where they are stable: "
         << fault.get<std::string>() << "\n";
}

static void writeSummary(const SearchOutcome &outcome, const OwnFlags &flags, const std::string &path, bool fromStore,
                         llvm::raw_ostream &os) {
  const nlohmann::json &s = outcome.summary;
  auto number = [&](const char *name) { return s.value(name, 0.0); };
  auto word = [&](const char *name) { return s.value(name, std::string()); };
  double baseline = number("baselineSeconds"), best = number("bestSeconds");
  os << "OptiML: " << path << ": ";
  bool measured = s.value("measured", false);
  std::string verb = measured ? "measured on " : "predicted for ";
  if (!outcome.improved) {
    std::string reason = "no verified variant is ";
    reason += measured ? "surely faster" : llvm::formatv("predicted to be {0:f2} times faster", flags.margin).str();
    os << "the original stays: " << s.value("kept", reason) << " (baseline " << timeText(baseline) << ", " << verb
       << word("gpu") << "; " << s.value("evaluations", 0) << " evaluations; " << word("stopText")
       << (fromStore ? "; from the store)\n" : ")\n");
  } else {
    os << llvm::formatv("{0:f2} times faster, {1}{2}\n", outcome.gain(), verb, word("gpu"));
    os << "  recipe:     " << word("recipeText") << "\n";
    os << "  kernels:    " << timeText(baseline) << " -> " << timeText(best) << " ("
       << (measured ? "measured" : "predicted");
    if (s.contains("speedupLow"))
      os << llvm::formatv(", 95 % interval {0:f2} to {1:f2}", number("speedupLow"), number("speedupHigh"));
    os << "; limited by " << word("bottleneck") << ")\n";
    if (s.contains("programSpeedup"))
      os << llvm::formatv("  program:    {0:f2} times faster in all its kernels ({1} -> {2}); same exit code and words",
                          number("programSpeedup"), timeText(number("programSeconds")),
                          timeText(number("programSecondsOptimized")))
         << (s.contains("programNumbers") ? ", numbers such as " + word("programNumbers") : "") << "\n";
    if (s.contains("programNotCompared"))
      os << "  program:    " << word("programNotCompared") << "\n";
    os << "  verified:   " << word("verified");
    if (s.contains("otherSizes") && !s["otherSizes"].empty()) {
      os << ", sizes";
      for (const auto &sizes : s["otherSizes"])
        os << " [" << sizes.get<std::string>() << "]";
    }
    os << "\n";
    if (s.contains("texts") && !s["texts"].empty())
      os << "  tested:     a kernel's text is a language model's: tested, not proven; other sizes run the original\n";
    os << "  search:     " << s.value("evaluations", 0) << " evaluations; " << word("stopText")
       << (fromStore ? " (from the store)" : "") << "\n";
  }
  if (s.contains("proposer") && s["proposer"].is_object()) {
    const nlohmann::json &p = s["proposer"];
    os << "  models:     " << word("models");
    if (unsigned failed = p.value("failed", 0u))
      os << ", " << failed << " without use";
    os << llvm::formatv("; {0} actions proposed, {1} not legal; {2} kernels and {3} repairs written, {4} passed",
                        p.value("proposed", 0u), p.value("dropped", 0u), p.value("kernelTexts", 0u),
                        p.value("repairs", 0u), p.value("textsPassed", 0u));
    if (unsigned judged = p.value("judged", 0u))
      os << llvm::formatv("; {0} of {1} diagnoses differ from the rules'", p.value("disagreed", 0u), judged);
    if (unsigned late = p.value("late", 0u))
      os << "; " << late << " answers came too late";
    os << "\n";
  }
  writeKernels(s, os);
  if ((flags.verbose || flags.budget.seconds > 0) && !fromStore && s.contains("phaseSeconds")) {
    os << "  time:      ";
    for (const auto &[phase, seconds] : s["phaseSeconds"].items())
      if (seconds.get<double>() >= 0.05)
        os << llvm::formatv(" {0} {1:f1} s", phase, seconds.get<double>());
    if (flags.verbose && s.contains("loopSeconds"))
      for (const auto &[step, seconds] : s["loopSeconds"].items())
        os << llvm::formatv("{0}{1} {2:f1} s", step == s["loopSeconds"].begin().key() ? "; loops: " : " ", step,
                            seconds.get<double>());
    os << "\n";
  }
  if (flags.verbose && s.contains("notes"))
    for (const auto &note : s["notes"])
      os << "  note:       " << note.get<std::string>() << "\n";
  if (!flags.emit.empty() && outcome.improved)
    os << "  new source: " << flags.emit << "\n";
  if (!word("trajectory").empty() && flags.store != "none")
    os << "  trajectory: " << word("trajectory") << "\n  next:       optiml report " << word("trajectory") << "\n";
}

/// Recipes may break after an action.
static std::string forTerminal(llvm::StringRef text) {
  constexpr unsigned indent = 14, begin = 2;
  std::string result;
  for (; !text.empty(); text = text.split('\n').second) {
    const llvm::StringRef line = text.split('\n').first;
    if (!line.starts_with("  ")) {
      result += wrapped(line, 0) + "\n";
      continue;
    }
    std::string rest = line.drop_front(std::min<size_t>(indent, line.size())).str();
    if (line.drop_front(begin).starts_with("recipe:"))
      for (size_t at = 0; (at = rest.find(";", at)) != std::string::npos; at += 2)
        rest.replace(at, rest.compare(at, 2, "; ") == 0 ? 2 : 1, "; ");
    result += line.take_front(indent).str() + wrapped(rest, indent) + "\n";
  }
  return result;
}

void optiml::printSummary(const SearchOutcome &outcome, const OwnFlags &flags, const std::string &path,
                          bool fromStore) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeSummary(outcome, flags, path, fromStore, os);
  llvm::errs() << (llvm::errs().is_displayed() ? forTerminal(text) : text);
}
