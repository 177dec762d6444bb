//===- Page.h - a search as one page ----------------------------*- C++ -*-===//
#ifndef OPTIML_REPORT_PAGE_H
#define OPTIML_REPORT_PAGE_H

#include "optiml/Report/SearchLog.h"

namespace optiml {

/// One HTML file that needs no other and no network: the verdict, the program, roofline, search, the winner's steps,
/// verification, models, and the log itself as JSON. Every number of the log that it shows stands in an element
/// <data data-at="JSON POINTER" value="EXACT VALUE">.
llvm::Expected<std::string> reportPage(const SearchLog &log);

/// The records of a file of recipes (docs/formats.md) as a page: what is applied where, and what it gained.
std::string recipesPage(const std::string &path, const std::vector<nlohmann::json> &records);

} // namespace optiml

#endif
