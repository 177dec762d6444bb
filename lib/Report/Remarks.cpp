//===- Remarks.cpp - a search as a compiler's remarks ---------------------===//
#include "optiml/Report/Remarks.h"
#include "PageParts.h"
#include "optiml/Report/Limits.h"
#include "optiml/Report/TextDiff.h"
#include "clang/Basic/Diagnostic.h"
#include "clang/Basic/FileManager.h"
#include "clang/Basic/Sarif.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Tooling/Core/Diagnostic.h"
#include "clang/Tooling/ReplacementsYaml.h"
#include "llvm/Remarks/Remark.h"
#include "llvm/Remarks/RemarkSerializer.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace optiml;
using nlohmann::json;

namespace {
/// Where a kernel stands.
struct Place {
  std::string symbol;
  unsigned line = 1;
};
} // namespace

static Place placeOf(const SearchLog &log, llvm::StringRef kernel) {
  for (const json &known : log.list("/search/kernels"))
    if (known.value("name", "") == kernel)
      return {known.value("symbol", kernel.str()), known.value("line", 1u)};
  return {kernel.str(), 1};
}

static const char *flagOf(OptimizationRemark::Kind kind) {
  return kind == OptimizationRemark::Passed   ? "-Rpass"
         : kind == OptimizationRemark::Missed ? "-Rpass-missed"
                                              : "-Rpass-analysis";
}

/// "x=16,y=8" of "block-shape[sgemm]{x=16,y=8}", and the site without the kernel.
static std::string detailsOf(llvm::StringRef action, llvm::StringRef kernel) {
  llvm::StringRef site = action.split('[').second.split(']').first;
  const llvm::StringRef values = action.split('{').second.split('}').first;
  site.consume_front(kernel);
  std::string text = site.empty() ? "" : " at " + site.str();
  return text + (values.empty() ? "" : " with " + values.str());
}

std::vector<OptimizationRemark> optiml::remarksOf(const SearchLog &log) {
  std::vector<OptimizationRemark> remarks;
  const std::string file = log.text("/search/file");
  auto add = [&](OptimizationRemark::Kind kind, const std::string &name, const std::string &kernel, unsigned line,
                 std::string message) {
    const Place place = placeOf(log, kernel);
    remarks.push_back({kind, name, place.symbol, file, line ? line : place.line, std::move(message)});
  };
  const bool improved = log.at("/result/replaced") == true;
  const json none = json::array(), &steps = improved ? log.list("/winner/steps") : none;
  for (const json &step : steps) {
    const std::string transform = step.value("transform", ""), kernel = step.value("kernel", ""),
                      what = report::plainTitle(transform);
    add(OptimizationRemark::Passed, transform, kernel, step.value("line", 0u),
        transform + detailsOf(step.value("action", ""), kernel) + (what.empty() ? "" : ": " + what));
  }
  for (const json &missed : log.list("/winner/missed"))
    add(OptimizationRemark::Missed, missed.value("transform", ""), missed.value("kernel", ""), missed.value("line", 0u),
        missed.value("transform", "") + " does not apply: " + missed.value("why", ""));
  std::map<std::string, const json *> last; // step of each kernel
  for (const json &step : steps)
    last[step.value("kernel", "")] = &step;
  for (const json &kernel : log.list("/search/kernels")) {
    const std::string name = kernel.value("name", "");
    std::string text =
        "the program's kernels are limited by " + limitName(log.text("/result/baseline/measurement/bottleneck"));
    if (log.at("/result/baseline/measurement/counters/roofline").is_number())
      text +=
          ", at " + report::percent(log.number("/result/baseline/measurement/counters/roofline")) + " of the roofline";
    add(OptimizationRemark::Analysis, "Bottleneck", name, 0, text);
    if (auto step = last.find(name); step != last.end())
      for (const json &condition : step->second->value("conditions", none))
        add(OptimizationRemark::Analysis, "Condition", name, 0,
            "the new kernel runs where " + condition.value("holds", "") + ": " + condition.value("because", ""));
  }
  return remarks;
}

std::string optiml::printed(const OptimizationRemark &remark) {
  return llvm::formatv("{0}:{1}:1: remark: {2} [{3}=optiml]", remark.file, remark.line, remark.message,
                       flagOf(remark.kind));
}

llvm::Expected<std::string> optiml::remarkRecord(const std::vector<OptimizationRemark> &remarks,
                                                 const std::string &format) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto serializer = llvm::remarks::createRemarkSerializer(
      format == "bitstream" ? llvm::remarks::Format::Bitstream : llvm::remarks::Format::YAML, os);
  if (!serializer)
    return serializer.takeError();
  for (const OptimizationRemark &remark : remarks) {
    llvm::remarks::Remark record;
    record.RemarkType = remark.kind == OptimizationRemark::Passed   ? llvm::remarks::Type::Passed
                        : remark.kind == OptimizationRemark::Missed ? llvm::remarks::Type::Missed
                                                                    : llvm::remarks::Type::Analysis;
    record.PassName = "optiml";
    record.RemarkName = remark.name;
    record.FunctionName = remark.kernel;
    record.Loc = llvm::remarks::RemarkLocation{remark.file, remark.line, 1};
    record.Args.emplace_back("String", remark.message);
    (*serializer)->emit(record);
  }
  (*serializer)->finalize();
  serializer->reset();
  return text;
}

std::string optiml::sarifOf(const SearchLog &log) {
  const std::string source = log.text("/search/source"), version = log.text("/search/version");
  clang::DiagnosticOptions options;
  clang::DiagnosticsEngine diagnostics(llvm::makeIntrusiveRefCnt<clang::DiagnosticIDs>(), options,
                                       new clang::IgnoringDiagConsumer());
  clang::FileManager files{clang::FileSystemOptions()};
  clang::SourceManager sources(diagnostics, files);
  std::map<std::string, clang::FileID> known;
  clang::SarifDocumentWriter writer(sources);
  writer.createRun("optiml", "OptiML, an optimizer for CUDA", version); // it keeps a reference
  std::map<std::string, size_t> rules;
  for (const OptimizationRemark &remark : remarksOf(log)) {
    auto [rule, isNew] = rules.try_emplace(remark.name, 0);
    if (const std::string title = report::plainTitle(remark.name); isNew)
      rule->second = writer.createRule(clang::SarifRule::create()
                                           .setRuleId(remark.name)
                                           .setName(remark.name)
                                           .setDescription(title.empty() ? remark.name : title));
    auto [file, first] = known.try_emplace(remark.file);
    if (first) {
      clang::FileEntryRef entry = files.getVirtualFileRef(remark.file, off_t(source.size()), 0);
      sources.overrideFileContents(entry, llvm::MemoryBuffer::getMemBufferCopy(source, remark.file));
      file->second = sources.createFileID(entry, clang::SourceLocation(), clang::SrcMgr::C_User);
    }
    const clang::SourceLocation begin = sources.translateLineCol(file->second, remark.line, 1),
                                end = sources.translateLineCol(file->second, remark.line, 65535);
    writer.appendResult(clang::SarifResult::create(uint32_t(rule->second))
                            .setRuleId(remark.name)
                            .setDiagnosticMessage(remark.message)
                            .setDiagnosticLevel(clang::SarifResultLevel::Note)
                            .addLocations({clang::CharSourceRange::getCharRange(begin, end)}));
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}\n", llvm::json::Value(writer.createDocument()));
  return text;
}

llvm::Expected<std::string> optiml::fixItsOf(const std::string &path, const std::string &before,
                                             const std::string &after) {
  auto pairs = sideBySide(before, after);
  if (!pairs)
    return pairs.takeError();
  auto linesOf = [](llvm::StringRef text) {
    std::vector<llvm::StringRef> lines;
    while (!text.empty()) {
      lines.push_back(text.take_front(std::min(text.find('\n'), text.size() - 1) + 1));
      text = text.drop_front(lines.back().size());
    }
    return lines;
  };
  const std::vector<llvm::StringRef> old = linesOf(before), fresh = linesOf(after);
  clang::tooling::TranslationUnitReplacements unit;
  unit.MainSourceFile = path;
  unsigned offset = 0;
  for (size_t i = 0; i < pairs->size();) {
    if ((*pairs)[i].same) {
      offset += unsigned(old[size_t((*pairs)[i].before)].size());
      ++i;
      continue;
    }
    unsigned length = 0;
    std::string text;
    for (; i < pairs->size() && !(*pairs)[i].same; ++i) {
      if ((*pairs)[i].before >= 0)
        length += unsigned(old[size_t((*pairs)[i].before)].size());
      if ((*pairs)[i].after >= 0)
        text += fresh[size_t((*pairs)[i].after)];
    }
    unit.Replacements.emplace_back(path, offset, length, text);
    offset += length;
  }
  std::string yaml;
  llvm::raw_string_ostream os(yaml);
  llvm::yaml::Output output(os);
  output << unit;
  return yaml;
}
