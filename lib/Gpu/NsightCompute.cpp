//===- NsightCompute.cpp - hardware counters from ncu ---------------------===//
#include "optiml/Gpu/NsightCompute.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

using namespace optiml::gpu;

static std::string join(const std::vector<std::string> &parts, const char *separator) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : separator) + part;
  return text;
}

std::vector<std::string> optiml::gpu::ncuCommand(const NcuOptions &options) {
  std::vector<std::string> metrics = options.metrics;
  if (metrics.empty())
    for (const CounterMetric &metric : counterMetrics())
      metrics.push_back(metric.metric);
  std::vector<std::string> command = {options.ncu,        "--clock-control", "none",   "--metrics",
                                      join(metrics, ","), "--csv",           "--page", "raw"};
  auto add = [&](const char *option, const std::string &value) {
    command.push_back(option);
    command.push_back(value);
  };
  if (!options.kernels.empty())
    add("--kernel-name", "regex:^(" + join(options.kernels, "|") + ")$"); // C++ names have nothing to escape
  if (options.skip)
    add("--launch-skip", std::to_string(options.skip));
  if (options.count)
    add("--launch-count", std::to_string(options.count));
  if (!options.logFile.empty())
    add("--log-file", options.logFile);
  command.insert(command.end(), options.program.begin(), options.program.end());
  return command;
}

/// The cells of one line of CSV, of which ncu quotes all. Empty when the line is none.
static std::vector<std::string> splitRow(const std::string &line) {
  std::vector<std::string> cells;
  if (line.empty() || line[0] != '"')
    return cells;
  std::string cell;
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"')
      cell += line[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.push_back(std::move(cell)), cell.clear();
    else
      cell += c;
  }
  if (quoted)
    return {};
  cells.push_back(std::move(cell));
  return cells;
}

/// What to multiply a value by to have it in nanoseconds, bytes, counts: ncu scales units to keep numbers short.
static double unitScale(std::string unit) {
  if (size_t slash = unit.find('/'); slash != std::string::npos)
    unit.resize(slash); // of rates: the unit of what is counted
  static const std::map<std::string, double> seconds = {
      {"nsecond", 1}, {"ns", 1},       {"usecond", 1e3}, {"us", 1e3}, {"msecond", 1e6},
      {"ms", 1e6},    {"second", 1e9}, {"sec", 1e9},     {"s", 1e9},
  };
  if (auto it = seconds.find(unit); it != seconds.end())
    return it->second;
  // "Kbyte", "Mbyte", "Gbyte": powers of 1000.
  static const std::map<char, double> prefixes = {{'K', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}};
  if (unit.size() > 1 && std::islower(static_cast<unsigned char>(unit[1])))
    if (auto it = prefixes.find(unit[0]); it != prefixes.end())
      return it->second;
  return 1;
}

/// "1,048,576.5"; NaN for "n/a" and other words.
static double number(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  char *end = nullptr;
  double value = strtod(text.c_str(), &end);
  return text.empty() || *end ? NAN : value;
}

namespace {

/// Reads rows one after another; each header says what those after it are.
class CsvReader {
public:
  explicit CsvReader(std::vector<NcuKernel> &kernels) : kernels(kernels) {}

  void row(const std::vector<std::string> &cells) {
    if (std::find(cells.begin(), cells.end(), "Kernel Name") != cells.end() && cells[0] == "ID") {
      header = cells;
      units.clear();
      lastId.clear();
    } else if (header.empty() || cells.size() != header.size()) {
      return; // the program's own output
    } else if (column("Metric Name") < header.size()) {
      metricRow(cells);
    } else if (cells[0].empty()) {
      units = cells;
    } else {
      kernelRow(cells);
    }
  }

private:
  size_t column(const char *name) const {
    return size_t(std::find(header.begin(), header.end(), name) - header.begin());
  }

  std::string cell(const std::vector<std::string> &cells, const char *name) const {
    size_t i = column(name);
    return i < cells.size() ? cells[i] : "";
  }

  void add(const std::string &metric, const std::string &unit, const std::string &text) {
    double value = number(text) * unitScale(unit);
    if (std::isfinite(value))
      kernels.back().raw[metric] = value;
  }

  /// Names of metrics are lower case and have two underscores: other columns describe the launch.
  static bool isMetric(const std::string &name) {
    return name.find("__") != std::string::npos && name.find('.') != std::string::npos;
  }

  void kernelRow(const std::vector<std::string> &cells) {
    kernels.push_back({cell(cells, "Kernel Name"), {}});
    for (size_t i = 0; i < cells.size(); ++i)
      if (isMetric(header[i]))
        add(header[i], i < units.size() ? units[i] : "", cells[i]);
  }

  void metricRow(const std::vector<std::string> &cells) {
    std::string id = cell(cells, "Process ID") + "/" + cells[0];
    if (id != lastId)
      kernels.push_back({cell(cells, "Kernel Name"), {}});
    lastId = id;
    if (std::string metric = cell(cells, "Metric Name"); isMetric(metric))
      add(metric, cell(cells, "Metric Unit"), cell(cells, "Metric Value"));
  }

  std::vector<NcuKernel> &kernels;
  std::vector<std::string> header, units;
  std::string lastId;
};

} // namespace

bool optiml::gpu::parseNcuCsv(const std::string &text, std::vector<NcuKernel> &kernels, std::string &why) {
  kernels.clear();
  if (text.find("ERR_NVGPUCTRPERM") != std::string::npos) {
    why = counterPermissionHint();
    return false;
  }
  CsvReader reader(kernels);
  std::string error;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' '))
      line.pop_back();
    const std::string mark = "==ERROR== ";
    if (error.empty() && line.rfind(mark, 0) == 0)
      error = line.substr(mark.size());
    if (std::vector<std::string> cells = splitRow(line); !cells.empty())
      reader.row(cells);
  }
  // Without a value, none of its metrics exist here.
  bool anything = std::any_of(kernels.begin(), kernels.end(), [](const NcuKernel &k) { return !k.raw.empty(); });
  if (anything)
    return true;
  if (!error.empty())
    why = "ncu: " + error;
  else if (!kernels.empty())
    why = "ncu has no value for any metric";
  else if (text.find("No kernels were profiled") != std::string::npos)
    why = "ncu: no kernels were profiled";
  else
    why = "ncu printed no table of metrics";
  kernels.clear();
  return false;
}

RawCounters optiml::gpu::combine(const std::vector<NcuKernel> &kernels) {
  std::vector<RawCounters> raw;
  for (const NcuKernel &kernel : kernels)
    raw.push_back(kernel.raw);
  return combine(raw);
}
