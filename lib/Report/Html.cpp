//===- Html.cpp - pieces of a page ----------------------------------------===//
#include "Html.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace optiml;

std::string report::escaped(llvm::StringRef text) {
  std::string result;
  for (char c : text)
    switch (c) {
    case '&': result += "&amp;"; break;
    case '<': result += "&lt;"; break;
    case '>': result += "&gt;"; break;
    case '"': result += "&quot;"; break;
    case '\'': result += "&#39;"; break;
    default:
      if (uint8_t(c) >= ' ' || c == '\n' || c == '\t')
        result += c;
    }
  return result;
}

std::string report::quantity(double value) {
  static constexpr std::pair<double, const char *> prefixes[] = {
      {1e15, " P"}, {1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}};
  for (auto [unit, name] : prefixes)
    if (std::fabs(value) >= unit)
      return llvm::formatv("{0:f2}{1}", value / unit, name);
  return std::fabs(value - std::round(value)) < 1e-9 ? llvm::formatv("{0:f0}", value).str()
                                                     : llvm::formatv("{0:f2}", value).str();
}

std::string report::ratio(double value) { return llvm::formatv("{0:f2}", value); }
std::string report::percent(double value) { return llvm::formatv("{0:f0} %", 100 * value); }

std::string report::shown(const SearchLog &log, const std::string &pointer, std::string (*show)(double)) {
  const nlohmann::json &value = log.at(pointer);
  if (!value.is_number())
    return "–";
  return llvm::formatv("<data data-at=\"{0}\" value=\"{1}\">{2}</data>", escaped(pointer), value.dump(),
                       show(value.get<double>()));
}

std::string report::row(const std::vector<std::string> &cells, const char *cell) {
  std::string result = "<tr>";
  for (const std::string &content : cells)
    result += llvm::formatv("<{0}>{1}</{0}>", cell, content);
  return result + "</tr>\n";
}

std::string report::table(const std::vector<std::string> &head, const std::string &rows) {
  return "<div class=\"wide\"><table><thead>" + row(head, "th") + "</thead><tbody>\n" + rows +
         "</tbody></table></div>\n";
}

std::string report::section(llvm::StringRef id, llvm::StringRef title, const std::string &content) {
  return llvm::formatv("<section id=\"{0}\"><h2>{1}</h2>\n{2}</section>\n", id, escaped(title), content);
}

std::string report::details(const std::string &summary, const std::string &content, bool open) {
  return llvm::formatv("<details{0}><summary>{1}</summary>\n{2}</details>\n", open ? " open" : "", summary, content);
}
