//===- SearchReports.h - what a search leaves for people --------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_SEARCHREPORTS_H
#define OPTIML_LIB_DRIVER_SEARCHREPORTS_H

#include "optiml/Driver/Flags.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// Page, diff, fix-its, SARIF, record and remarks, from the trajectory of a search that has ended. Goes on after an
/// error, and returns all of them. `source` is the user's file, and `before` and `after` its text, old and new.
llvm::Error writeReports(const ReportFlags &flags, const std::string &trajectory, const std::string &source,
                         const std::string &before, const std::string &after);

} // namespace optiml

#endif
