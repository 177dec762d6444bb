//===- Plot.h - plots as SVG ------------------------------------*- C++ -*-===//
//
// Colours, fonts and themes are the page's: shapes have classes only.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_REPORT_PLOT_H
#define OPTIML_LIB_REPORT_PLOT_H

#include <string>
#include <vector>

namespace optiml::report {

struct PlotPoint {
  double x = 0, y = 0;
  std::string label; ///< beside it
  std::string title; ///< told when pointed at
  std::string kind;  ///< a class: "original", "step", "winner", "other"
};

struct PlotLine {
  std::vector<std::pair<double, double>> points;
  std::string label, kind;
};

struct Plot {
  std::string title; ///< also for those who do not see it
  std::string xLabel, yLabel;
  bool logX = false, logY = false;
  std::vector<PlotLine> lines;
  std::vector<PlotPoint> points;
  std::string svg() const;
};

/// Two bars on one scale, as SVG.
std::string barPair(double before, double after);

} // namespace optiml::report

#endif
