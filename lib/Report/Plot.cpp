//===- Plot.cpp - plots as SVG --------------------------------------------===//
#include "Plot.h"
#include "Html.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>

using namespace optiml;
using namespace optiml::report;

static constexpr double width = 720, height = 360, left = 74, right = 24, top = 18, bottom = 48;

namespace {
/// One axis: values to places.
struct Axis {
  bool log = false;
  double least = 0, most = 1;

  void take(double value) {
    if (!std::isfinite(value) || (log && value <= 0))
      return;
    if (first)
      least = most = value, first = false;
    least = std::min(least, value), most = std::max(most, value);
  }
  void finish() {
    if (log) {
      least = std::pow(10, std::floor(std::log10(first ? 1 : least) - 0.05));
      most = std::pow(10, std::ceil(std::log10(first ? 10 : most) + 0.05));
    } else {
      least = std::min(least, 0.0);
      most = most > least ? most + 0.06 * (most - least) : least + 1;
    }
  }
  double share(double value) const {
    if (!log)
      return (value - least) / (most - least);
    return (std::log10(std::max(value, least)) - std::log10(least)) / (std::log10(most) - std::log10(least));
  }
  std::vector<double> ticks() const {
    std::vector<double> result;
    if (log) {
      for (double tick = least; tick <= most * 1.001; tick *= 10)
        result.push_back(tick);
      return result;
    }
    const double rough = (most - least) / 6, unit = std::pow(10, std::floor(std::log10(rough)));
    const double step = rough / unit < 1.5   ? unit
                        : rough / unit < 3.5 ? 2 * unit
                        : rough / unit < 7.5 ? 5 * unit
                                             : 10 * unit;
    for (double tick = std::ceil(least / step) * step; tick <= most; tick += step)
      result.push_back(tick);
    return result;
  }

private:
  bool first = true;
};

struct Frame {
  Axis x, y;
  double px(double value) const { return left + x.share(value) * (width - left - right); }
  double py(double value) const { return height - bottom - y.share(value) * (height - top - bottom); }
};
} // namespace

static std::string word(double x, double y, const char *anchor, const std::string &text, const char *kind = "") {
  return llvm::formatv("<text x=\"{0:f1}\" y=\"{1:f1}\" text-anchor=\"{2}\" class=\"{3}\">{4}</text>", x, y, anchor,
                       kind, escaped(text));
}

/// "10 M": ticks are round.
static std::string tickText(double value) {
  std::string text = quantity(value);
  if (size_t zeros = text.find(".00"); zeros != std::string::npos)
    text.erase(zeros, 3);
  return text;
}

static std::string axes(const Frame &frame, const Plot &plot) {
  std::string svg;
  for (double tick : frame.x.ticks())
    svg += llvm::formatv("<path class=\"grid\" d=\"M{0:f1} {1}V{2}\"/>", frame.px(tick), top, height - bottom).str() +
           word(frame.px(tick), height - bottom + 16, "middle", tickText(tick));
  for (double tick : frame.y.ticks())
    svg += llvm::formatv("<path class=\"grid\" d=\"M{0} {1:f1}H{2}\"/>", left, frame.py(tick), width - right).str() +
           word(left - 6, frame.py(tick) + 4, "end", tickText(tick));
  svg += word((left + width - right) / 2, height - 10, "middle", plot.xLabel, "axis");
  svg += llvm::formatv("<text transform=\"translate(14 {0:f1}) rotate(-90)\" text-anchor=\"middle\" class=\"axis\">{1}"
                       "</text>",
                       (top + height - bottom) / 2, escaped(plot.yLabel));
  return svg;
}

/// Beside a sloping line, at its lower end; above a level one, at its right end.
static std::string labelOf(const Frame &frame, const PlotLine &line) {
  const auto [x, y] = line.points.front();
  if (line.points.back().second > y)
    return line.kind == "dram" ? word(frame.px(x) + 12, frame.py(y) + 8, "start", line.label)
                               : word(frame.px(x) - 6, frame.py(y) - 4, "end", line.label);
  return word(frame.px(line.points.back().first) - 4, frame.py(line.points.back().second) - 6, "end", line.label);
}

std::string Plot::svg() const {
  Frame frame;
  frame.x.log = logX, frame.y.log = logY;
  for (const PlotLine &line : lines)
    for (auto [x, y] : line.points)
      frame.x.take(x), frame.y.take(y);
  for (const PlotPoint &point : points)
    frame.x.take(point.x), frame.y.take(point.y);
  frame.x.finish(), frame.y.finish();
  std::string svg =
      llvm::formatv("<svg viewBox=\"0 0 {0} {1}\" role=\"img\"><title>{2}</title>", width, height, escaped(title))
          .str() +
      axes(frame, *this);
  for (const PlotLine &line : lines) {
    svg += llvm::formatv("<path class=\"line {0}\" d=\"", escaped(line.kind));
    for (size_t i = 0; i < line.points.size(); ++i)
      svg += llvm::formatv("{0}{1:f1} {2:f1}", i ? "L" : "M", frame.px(line.points[i].first),
                           frame.py(line.points[i].second));
    svg += "\"/>";
    if (!line.points.empty() && !line.label.empty())
      svg += labelOf(frame, line);
  }
  for (const PlotPoint &point : points) {
    if (!std::isfinite(point.x) || !std::isfinite(point.y))
      continue;
    const double x = frame.px(point.x), y = frame.py(point.y);
    const bool atRight = x > 0.75 * width;
    svg +=
        llvm::formatv("<circle class=\"point {0}\" cx=\"{1:f1}\" cy=\"{2:f1}\" r=\"{3}\"><title>{4}</title></circle>",
                      escaped(point.kind), x, y, point.kind == "other" ? 3 : 6, escaped(point.title));
    if (!point.label.empty())
      svg += word(x + (atRight ? -10 : 10), y + 4, atRight ? "end" : "start", point.label, "label");
  }
  return svg + "</svg>\n";
}

std::string report::barPair(double before, double after) {
  const double most = std::max({before, after, 1e-300}), full = 160;
  return llvm::formatv("<svg class=\"bars\" viewBox=\"0 0 {0} 22\" aria-hidden=\"true\"><rect class=\"before\" width=\""
                       "{1:f1}\" height=\"9\"/><rect class=\"after\" y=\"12\" width=\"{2:f1}\" height=\"9\"/></svg>",
                       full, full * before / most, full * after / most);
}
