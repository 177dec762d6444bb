//===- Html.h - pieces of a page --------------------------------*- C++ -*-===//
#ifndef OPTIML_LIB_REPORT_HTML_H
#define OPTIML_LIB_REPORT_HTML_H

#include "optiml/Report/Limits.h"
#include "optiml/Report/SearchLog.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <utility>
#include <vector>

namespace optiml::report {

/// With &, <, > and quotes as entities, and without control characters.
std::string escaped(llvm::StringRef text);

/// With a prefix for powers of ten: "33.6 M", "4.8 T".
std::string quantity(double value);
/// "6.82".
std::string ratio(double value);
std::string percent(double value);

/// A value of the log as `show` writes it, with its place and its exact value, so that what a page says can be
/// compared with what was recorded.
std::string shown(const SearchLog &log, const std::string &pointer, std::string (*show)(double));

/// A line of a table; cells are HTML.
std::string row(const std::vector<std::string> &cells, const char *cell = "td");
/// With a head.
std::string table(const std::vector<std::string> &head, const std::string &rows);
/// A section with a heading that can be linked to.
std::string section(llvm::StringRef id, llvm::StringRef title, const std::string &content);
/// What opens when its summary is activated; both are HTML.
std::string details(const std::string &summary, const std::string &content, bool open = false);

} // namespace optiml::report

#endif
