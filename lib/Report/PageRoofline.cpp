//===- PageRoofline.cpp - where a kernel stands under its roofs -----------===//
//
// Williams, Waterman, Patterson, Roofline: an insightful visual performance model, CACM 52(4), 2009. Both axes count
// operations of the kind that keeps its unit busiest in the original; where there are none of floating point, integer
// operations, or instructions.
//
//===----------------------------------------------------------------------===//
#include "PageParts.h"
#include "Plot.h"
#include "optiml/Report/Limits.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <set>

using namespace optiml;
using namespace optiml::report;

namespace {
struct Kind {
  const char *name, *words;
};
constexpr Kind kinds[] = {{"fp64", "double-precision operations"},
                          {"fp32", "single-precision operations"},
                          {"int32", "integer operations"},
                          {"issue", "instructions of a lane"}};
} // namespace

static const Kind &kindOf(const SearchLog &log, const std::string &original) {
  auto busy = [&](const Kind &kind) { return log.number(original + "/counters/time." + kind.name); };
  const Kind &real = busy(kinds[0]) > busy(kinds[1]) ? kinds[0] : kinds[1];
  return busy(real) > 0 ? real : busy(kinds[2]) > 0 ? kinds[2] : kinds[3];
}

/// What the variant executes: the time that its operations alone take, at the unit's peak.
static double executed(const SearchLog &log, const std::string &at, const Kind &kind) {
  return log.number(at + "/counters/time." + kind.name) * log.number(std::string("/search/peaks/") + kind.name);
}

/// The variant whose measurement is there, which does so much work.
static bool place(const SearchLog &log, const std::string &at, double work, const char *memory, PlotPoint &point) {
  const double bytes = log.number(at + "/counters/" + memory + "_bytes"), time = log.number(at + "/time/seconds");
  if (work <= 0 || bytes <= 0 || time <= 0)
    return false;
  point.x = work / bytes;
  point.y = work / time;
  return std::isfinite(point.x) && std::isfinite(point.y);
}

/// Variants execute more than the task needs, each in its own measure: what the thriftiest of them executes is taken
/// for the work of all, so that heights compare as times do.
static double leastWork(const SearchLog &log, const std::vector<std::string> &places, const Kind &kind) {
  double least = 0;
  for (const std::string &at : places)
    if (const double work = executed(log, at, kind); work > 0 && (least == 0 || work < least))
      least = work;
  return least;
}

static std::vector<PlotLine> ceilings(const SearchLog &log, const Kind &kind, double least, double most) {
  std::vector<PlotLine> lines;
  const double peak = log.number(std::string("/search/peaks/") + kind.name);
  for (const char *memory : {"dram", "l2"}) {
    const double bandwidth = log.number(std::string("/search/peaks/") + memory);
    if (bandwidth <= 0 || peak <= 0)
      continue;
    const double ridge = std::min(peak / bandwidth, most);
    if (ridge > least)
      lines.push_back({{{least, least * bandwidth}, {ridge, ridge * bandwidth}},
                       llvm::formatv("{0} {1}B/s", memory[0] == 'd' ? "DRAM" : "L2", quantity(bandwidth)),
                       memory});
  }
  lines.push_back({{{least, peak}, {most, peak}}, llvm::formatv("{0}/s of {1}", quantity(peak), kind.words), "peak"});
  return lines;
}

std::string report::rooflinePart(const SearchLog &log) {
  const std::string original = "/result/baseline/measurement", best = "/result/best/measurement";
  const Kind &kind = kindOf(log, original);
  Plot plot;
  plot.title = "Roofline";
  plot.xLabel = std::string(kind.words) + " for each byte from memory (filled: DRAM, hollow: L2)";
  plot.yLabel = std::string(kind.words) + " in a second";
  plot.logX = plot.logY = true;
  std::vector<std::string> places = {original, best};
  for (size_t i = 0; i < log.list("/evaluations").size(); ++i)
    if (log.text("/evaluations/" + std::to_string(i) + "/verdict") == "correct")
      places.push_back("/evaluations/" + std::to_string(i));
  const double work = leastWork(log, places, kind);
  auto add = [&](const std::string &at, const std::string &label, const std::string &style, const std::string &title) {
    for (const char *memory : {"dram", "l2"})
      if (PlotPoint point; place(log, at, work, memory, point)) {
        point.kind = style + (memory[0] == 'l' ? " hollow" : "");
        point.label = memory[0] == 'd' ? label : "";
        point.title = title + ", " + quantity(point.x) + " for a byte of " + (memory[0] == 'd' ? "DRAM, " : "L2, ") +
                      quantity(point.y) + "/s";
        plot.points.push_back(std::move(point));
      }
  };
  for (size_t i = 0; i + 1 < log.list("/winner/steps").size(); ++i)
    if (log.text("/winner/steps/" + std::to_string(i) + "/key") != log.text("/result/best/key"))
      add(stepMeasurementAt(log, i), std::to_string(i + 1), "step", "after step " + std::to_string(i + 1));
  add(original, "original", "original", "the original");
  if (log.text("/result/best/key") != log.text("/result/baseline/key"))
    add(best, "winner", "winner", "the best variant");
  std::string text;
  if (plot.points.empty()) {
    text = "<p>There are no counters from which a roofline could be drawn.</p>\n";
  } else {
    double least = plot.points[0].x, most = least;
    for (const PlotPoint &point : plot.points)
      least = std::min(least, point.x), most = std::max(most, point.x);
    const double ridge = log.number(std::string("/search/peaks/") + kind.name) / log.number("/search/peaks/dram");
    plot.lines = ceilings(log, kind, std::min(least, ridge) / 4, std::max(most, ridge) * 4);
    text = "<figure>" + plot.svg() + "</figure>\n";
  }
  auto reached = [&](const std::string &what, const std::string &at) {
    return log.at(at + "/counters/roofline").is_number()
               ? what + " reaches " + shown(log, at + "/counters/roofline", percent) + ". "
               : std::string();
  };
  text += "<p>100 % of the roofline is the time that the memory traffic that cannot be avoided takes at full DRAM "
          "bandwidth, or the arithmetic at its peak, whichever is longer. " +
          reached("The original", original) + reached("The best variant", best) + "It is limited by " +
          escaped(limitName(log.text("/result/bottleneck"))) + ".</p>\n";
  return text;
}
