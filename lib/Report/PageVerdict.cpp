//===- PageVerdict.cpp - verdict, program, verification, models -----------===//
#include "PageParts.h"
#include "optiml/Report/Limits.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace optiml;
using namespace optiml::report;
using nlohmann::json;

std::string report::measurementAt(const SearchLog &log, const std::string &key) {
  const int number = log.evaluationOf(key);
  return number < 0 ? "" : "/evaluations/" + std::to_string(number);
}

std::string report::stepMeasurementAt(const SearchLog &log, size_t i) {
  if (i + 1 == log.list("/winner/steps").size())
    return "/result/best/measurement";
  const std::string at = "/winner/steps/" + std::to_string(i), tried = measurementAt(log, log.text(at + "/key"));
  return tried.empty() && log.at(at + "/measurement").is_object() ? at + "/measurement" : tried;
}

static std::string fact(const std::string &name, const std::string &value) {
  return value.empty() ? "" : row({"<b>" + name + "</b>", value});
}
static std::string facts(const std::string &rows) {
  return "<div class=\"wide\"><table class=\"facts\"><tbody>\n" + rows + "</tbody></table></div>\n";
}
static std::string items(const json &list) {
  std::string result;
  for (const json &item : list)
    if (item.is_string())
      result += "<li>" + escaped(item.get<std::string>()) + "</li>\n";
  return result.empty() ? "" : "<ul>\n" + result + "</ul>\n";
}

static bool replaced(const SearchLog &log) {
  const json &told = log.at("/result/replaced");
  return told.is_boolean() && told.get<bool>();
}

/// What the search found, in one sentence.
static std::string headline(const SearchLog &log) {
  const double before = log.number("/result/baselineSeconds"), after = log.number("/result/bestSeconds");
  const std::string how = log.measured() ? "measured on " : "predicted for ", gpu = escaped(log.text("/search/gpu"));
  if (log.at("/result").is_null())
    return "The search was cut off before it ended";
  if (!replaced(log))
    return "The original stays" + (log.text("/result/kept").empty() ? "" : ": " + escaped(log.text("/result/kept")));
  const double program = log.number("/result/programSpeedup"); // all kernels of the program that was written
  return llvm::formatv("<strong>{0}</strong> times faster, {1}{2}",
                       ratio(program > 0 ? program
                             : after > 0 ? before / after
                                         : 0),
                       how, gpu);
}

static std::string programGain(const SearchLog &log) {
  if (!log.at("/result/programSpeedup").is_number())
    return "";
  return shown(log, "/result/programSpeedup", ratio) +
         " times faster in all its kernels: " + shown(log, "/result/programSeconds", timeText) + " → " +
         shown(log, "/result/programSecondsOptimized", timeText);
}

static std::string limitNow(const SearchLog &log) {
  const std::string best = "/result/best/measurement";
  std::string text = escaped(limitName(log.text("/result/bottleneck")));
  if (log.at(best + "/counters/roofline").is_number())
    text +=
        "; " + shown(log, best + "/counters/roofline", percent) + " of its roofline (<a href=\"#roofline\">plot</a>)";
  return text;
}

static std::string scientific(double value) { return llvm::formatv("{0:e2}", value); }

static std::string largestError(const SearchLog &log) {
  const std::string at = "/result/best/measurement/counters/verify.error";
  return log.at(at).is_number() ? "; largest relative error " + shown(log, at, scientific) : "";
}

/// Each step with what it gained, where it was measured; the recipe.
static std::string whyFaster(const SearchLog &log) {
  std::string steps;
  double before = log.number("/result/baseline/measurement/time/seconds");
  const size_t count = log.list("/winner/steps").size();
  for (size_t i = 0; i < count; ++i) {
    const std::string at = "/winner/steps/" + std::to_string(i);
    steps += (i ? ", " : "") + transformPage(log.text(at + "/transform")).title;
    const std::string here = stepMeasurementAt(log, i);
    if (const double after = here.empty() ? 0 : log.number(here + "/time/seconds"); after > 0 && before > 0) {
      steps += " (× " + ratio(before / after) + ")";
      before = after;
    }
  }
  return (steps.empty() ? "" : steps + "; a step that loses may open the way to the next.<br>") + "<code>" +
         escaped(log.text("/result/recipeText")) + "</code> (<a href=\"#steps\">step by step</a>)";
}

static std::string whereItRuns(const SearchLog &log) {
  std::map<std::string, size_t> conditions; // by kernel, after its last step
  for (const json &step : log.list("/winner/steps"))
    conditions[step.value("kernel", "")] = step.value("conditions", json::array()).size();
  std::string text;
  for (const auto &[kernel, count] : conditions)
    text +=
        (text.empty() ? "<code>" : "; <code>") + escaped(kernel) + "</code>: " +
        (count ? "where " + std::to_string(count) + " conditions hold, which each launch tests; else the original runs"
               : std::string("everywhere"));
  return text;
}

std::string report::verdictPart(const SearchLog &log) {
  std::string kernels = shown(log, "/result/baselineSeconds", timeText) + " → " +
                        shown(log, "/result/bestSeconds", timeText) + (log.measured() ? ", measured" : ", predicted");
  if (log.at("/result/speedupLow").is_number())
    kernels += ", 95 % interval of the gain " + shown(log, "/result/speedupLow", ratio) + " to " +
               shown(log, "/result/speedupHigh", ratio);
  std::string rows = fact("Kernels", kernels) + fact("Program", programGain(log));
  if (replaced(log))
    rows += fact("Is it right?", "Yes, in all that was compared: " + escaped(log.text("/result/verified")) +
                                     largestError(log) + " (<a href=\"#verification\">details</a>)");
  rows += fact("What limits it now", limitNow(log));
  if (replaced(log))
    rows += fact("Why it is faster", whyFaster(log)) + fact("Where it runs", whereItRuns(log));
  rows += fact("Search",
               shown(log, "/result/evaluations", quantity) + " evaluations; " + escaped(log.text("/result/stopText")));
  rows += fact("Where", escaped(log.text("/search/gpu")) + ", CUDA " + escaped(log.text("/search/cuda")) + ", OptiML " +
                            escaped(log.text("/search/version")) + ", " + escaped(log.text("/search/date")));
  rows += fact("Again", "<code>" + escaped(log.text("/search/command")) + "</code>");
  return "<p class=\"verdict\">" + headline(log) + "</p>\n" + facts(rows);
}

std::string report::programPart(const SearchLog &log) {
  struct Times {
    double before = 0, after = 0;
  };
  std::map<std::string, Times> times;
  double all = 0;
  const json &before = log.list("/result/baseline/measurement/time/perLaunch"),
             &after = log.list("/result/best/measurement/time/perLaunch");
  for (size_t i = 0; i < log.list("/search/launches").size() && i < before.size(); ++i) {
    const std::string at = "/search/launches/" + std::to_string(i);
    const double weight = log.number(at + "/times");
    Times &kernel = times[log.text(at + "/kernel")];
    kernel.before += weight * before[i].get<double>();
    kernel.after += weight * (i < after.size() ? after[i].get<double>() : before[i].get<double>());
    all += weight * before[i].get<double>();
  }
  std::string rows;
  for (size_t i = 0; i < log.list("/search/kernels").size(); ++i) {
    const std::string at = "/search/kernels/" + std::to_string(i), name = log.text(at + "/name");
    const Times kernel = times[name];
    rows +=
        row({"<code>" + escaped(name) + "</code>, line " + shown(log, at + "/line", quantity),
             items(log.list(at + "/launches")), all > 0 ? percent(kernel.before / all) : "–", timeText(kernel.before),
             timeText(kernel.after), kernel.after > 0 ? ratio(kernel.before / kernel.after) : "–"});
  }
  std::string text = table({"Kernel", "Launches", "Share before", "Before", "After", "Gain"}, rows);
  if (!replaced(log))
    text += "<p>“After” is the best variant that was found; the program does not use it.</p>\n";
  std::string skipped;
  for (const json &kernel : log.list("/search/leftAsTheyAre"))
    skipped += row({"<code>" + escaped(kernel.value("kernel", "")) + "</code>", escaped(kernel.value("why", ""))});
  if (!skipped.empty())
    text += "<h3>Left as they are</h3>\n" + table({"Kernel", "Why"}, skipped);
  return text;
}

std::string report::verificationPart(const SearchLog &log) {
  const std::string counters = "/result/best/measurement/counters";
  std::string sizes;
  for (const json &line : log.list("/result/otherSizes"))
    sizes += (sizes.empty() ? "<code>" : ", <code>") + escaped(line.get<std::string>()) + "</code>";
  std::string own;
  for (const json &argument : log.list("/search/arguments"))
    own += (own.empty() ? "" : " ") + argument.get<std::string>();
  std::string rows = fact("Compared", escaped(log.text("/result/verified")));
  rows += fact("Launches and runs", shown(log, counters + "/verify.launches", quantity) + " and " +
                                        shown(log, counters + "/verify.runs", quantity));
  rows += fact("The program's arguments", own.empty() ? "none" : "<code>" + escaped(own) + "</code>");
  rows += fact("Other sizes", sizes.empty() ? "none" : sizes);
  rows +=
      fact("Checkers", "bounds, uninitialized memory, data races and barriers on the CPU emulator; blocks and warps "
                       "in other orders; made-up inputs beside the program's own");
  rows += fact("Floating point", "<code>" + escaped(log.text("/search/fp")) + "</code>");
  rows += fact("Largest relative error seen", log.at(counters + "/verify.error").is_number()
                                                  ? shown(log, counters + "/verify.error", scientific)
                                                  : "none");
  std::string text = facts(rows);
  if (const std::string notes = items(log.list("/result/notes")); !notes.empty())
    text += "<h3>Notes</h3>\n<p>Launches are numbered in each run; other sizes have runs of their own.</p>\n" + notes;
  if (const std::string faults = items(log.list("/result/originalFaults")); !faults.empty())
    text += "<h3>The original itself is faulty</h3>\n" + faults;
  std::string untested;
  for (const json &line : log.list("/evaluations"))
    if (line.value("verdict", "") == "untested")
      untested += row({"<code>" + escaped(line.value("recipe", "")) + "</code>", escaped(line.value("why", ""))});
  if (!untested.empty())
    text += "<h3>Variants that were left out, as not all of their code could be run</h3>\n" +
            table({"Recipe", "What did not run"}, untested);
  return text;
}

std::string report::modelsPart(const SearchLog &log) {
  const json &events = log.list("/models");
  if (events.empty() && log.at("/result/proposer").is_null())
    return "<p>No language model was asked.</p>\n";
  std::string rows;
  for (const char *name :
       {"proposed", "dropped", "kernelTexts", "repairs", "textsPassed", "judged", "disagreed", "failed"})
    if (log.at(std::string("/result/proposer/") + name).is_number())
      rows += fact(name, shown(log, std::string("/result/proposer/") + name, quantity));
  std::string text =
      (log.text("/result/models").empty() ? "" : "<p>" + escaped(log.text("/result/models")) + "</p>\n") + facts(rows);
  for (const json &event : events)
    text += details(escaped(event.value("event", "")), "<pre>" + escaped(event.dump(2)) + "</pre>");
  return text;
}
