//===- SearchReports.cpp - what a search leaves for people ----------------===//
#include "SearchReports.h"
#include "optiml/Report/Page.h"
#include "optiml/Report/Remarks.h"
#include "optiml/Report/TextDiff.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace optiml;

static llvm::Error write(const std::string &path, llvm::Expected<std::string> text) {
  if (!text)
    return text.takeError();
  if (path != "-")
    return writeFileAtomically(path, *text);
  llvm::outs() << *text;
  llvm::outs().flush();
  return llvm::Error::success();
}

static bool wanted(const ReportFlags &flags, OptimizationRemark::Kind kind) {
  const std::string &pattern = kind == OptimizationRemark::Passed   ? flags.passed
                               : kind == OptimizationRemark::Missed ? flags.missed
                                                                    : flags.analysis;
  return !pattern.empty() && llvm::Regex(pattern).match("optiml");
}

static llvm::Error reportsOf(const SearchLog &log, const ReportFlags &flags, const std::string &source,
                             const std::string &before, const std::string &after) {
  llvm::Error errors = llvm::Error::success();
  auto also = [&](llvm::Error error) { errors = llvm::joinErrors(std::move(errors), std::move(error)); };
  const std::vector<OptimizationRemark> remarks = remarksOf(log);
  for (const OptimizationRemark &remark : remarks)
    if (wanted(flags, remark.kind))
      llvm::errs() << printed(remark) << "\n";
  if (!flags.page.empty())
    also(write(flags.page, reportPage(log)));
  if (!flags.diff.empty()) {
    const std::string name = llvm::sys::path::is_absolute(source) ? source.substr(1) : source;
    also(write(flags.diff, unifiedDiff(before, after, "a/" + name, "b/" + name)));
  }
  if (!flags.fixIts.empty())
    also(write(flags.fixIts, fixItsOf(log.text("/search/file"), before, after)));
  if (!flags.sarif.empty())
    also(write(flags.sarif, sarifOf(log)));
  if (!flags.record.empty())
    also(write(flags.recordFile.empty() ? (llvm::sys::path::stem(source) + ".opt." + flags.record).str()
                                        : flags.recordFile,
               remarkRecord(remarks, flags.record)));
  return errors;
}

llvm::Error optiml::writeReports(const ReportFlags &flags, const std::string &trajectory, const std::string &source,
                                 const std::string &before, const std::string &after) {
  if (trajectory.empty())
    return makeError("reports are made from the trajectory of a search, and this one has left none");
  auto log = SearchLog::read(trajectory);
  if (!log)
    return log.takeError();
  try {
    return reportsOf(*log, flags, source, before, after);
  } catch (const nlohmann::json::exception &wrong) {
    return makeError("{0}: a value in it is of another kind than a search writes: {1}", trajectory, wrong.what());
  }
}
