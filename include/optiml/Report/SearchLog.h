//===- SearchLog.h - a trajectory, read back --------------------*- C++ -*-===//
#ifndef OPTIML_REPORT_SEARCHLOG_H
#define OPTIML_REPORT_SEARCHLOG_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <nlohmann/json.hpp>
#include <string>

namespace optiml {

/// The events of one search in one object, which the report shows and carries with it:
///
///   search, winner, result     the events of these names; null where a search was cut off before them
///   evaluations, refused       those events, in their order
///   models                     what language models were asked and answered
///
/// Reports refer to values in it by JSON Pointers (RFC 6901).
struct SearchLog {
  std::string path;
  nlohmann::json events;

  /// The error names file and line. A last line that a killed search left unfinished is passed over.
  static llvm::Expected<SearchLog> read(const std::string &path);

  /// The value at a JSON Pointer, or null.
  const nlohmann::json &at(const std::string &pointer) const;
  /// ... where it is a number, a text, or a list; 0 or empty otherwise.
  double number(const std::string &pointer) const;
  std::string text(const std::string &pointer) const;
  const nlohmann::json &list(const std::string &pointer) const;
  /// The number of the evaluation with this key that was verified or at least tried; -1: none.
  int evaluationOf(const std::string &key) const;
  /// Whether times come from a clock.
  bool measured() const;
};

/// A line of JSON, untrusted; null where it is none, or nested deeper than a trajectory is.
nlohmann::json parsedEvent(llvm::StringRef line);

/// The newest trajectory below a store's folder; an error where there is none.
llvm::Expected<std::string> newestTrajectory(const std::string &storeFolder);

} // namespace optiml

#endif
