//===- PageParts.h - the sections of the page -------------------*- C++ -*-===//
#ifndef OPTIML_LIB_REPORT_PAGEPARTS_H
#define OPTIML_LIB_REPORT_PAGEPARTS_H

#include "Html.h"

namespace optiml::report {

std::string verdictPart(const SearchLog &log);
std::string programPart(const SearchLog &log);
std::string rooflinePart(const SearchLog &log);
std::string searchPart(const SearchLog &log);
llvm::Expected<std::string> stepsPart(const SearchLog &log);
std::string verificationPart(const SearchLog &log);
std::string modelsPart(const SearchLog &log);

/// Where the log has the measurement of the variant with this key: an evaluation's pointer; empty: nowhere.
std::string measurementAt(const SearchLog &log, const std::string &key);

/// Of the variant after the i-th step of the winner.
std::string stepMeasurementAt(const SearchLog &log, size_t i);

/// What the documentation says of a transform, as HTML.
struct TransformPage {
  std::string title; ///< "several outputs a thread"; empty: there is no page
  std::string legal; ///< when it is legal
};
/// The title as plain text.
std::string plainTitle(llvm::StringRef transform);
TransformPage transformPage(llvm::StringRef transform);

} // namespace optiml::report

#endif
