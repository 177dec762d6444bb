//===- PageSteps.cpp - the winner, step by step ---------------------------===//
#include "Highlight.h"
#include "PageParts.h"
#include "Plot.h"
#include "optiml/Report/TextDiff.h"
#include "optiml/Support/EmbeddedFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace optiml;
using namespace optiml::report;
using nlohmann::json;

namespace optiml::report {
extern const EmbeddedFile transformPages[];
}

/// Code spans and links of Markdown; nothing else stands in these paragraphs.
static std::string fromMarkdown(llvm::StringRef text) {
  std::string html;
  while (!text.empty()) {
    const size_t at = text.find_first_of("`[");
    html += escaped(text.take_front(at));
    text = text.drop_front(std::min(at, text.size()));
    if (text.consume_front("`")) {
      auto [code, rest] = text.split('`');
      html += "<code>" + escaped(code) + "</code>";
      text = rest;
    } else if (text.starts_with("[")) {
      auto [label, rest] = text.drop_front().split("](");
      html += fromMarkdown(label);
      text = rest.split(')').second;
    }
  }
  return html;
}

static llvm::StringRef pageOf(llvm::StringRef transform) {
  for (const EmbeddedFile *file = transformPages; file->name; ++file)
    if (llvm::StringRef(file->name) == (transform + ".md").str())
      return file->text;
  return "";
}

static llvm::StringRef titleIn(llvm::StringRef page, llvm::StringRef transform) {
  return page.split(("# " + transform + ": ").str()).second.split('\n').first;
}

std::string report::plainTitle(llvm::StringRef transform) {
  std::string title = titleIn(pageOf(transform), transform).str();
  llvm::erase(title, '`');
  return title;
}

TransformPage report::transformPage(llvm::StringRef transform) {
  const llvm::StringRef page = pageOf(transform);
  TransformPage result;
  result.title = fromMarkdown(titleIn(page, transform));
  llvm::StringRef legal = page.split("## When it is legal\n").second;
  legal = legal.take_front(std::min(legal.find("\n## "), legal.find("\n<!--")));
  llvm::SmallVector<llvm::StringRef> paragraphs;
  legal.split(paragraphs, "\n\n", -1, false);
  for (llvm::StringRef paragraph : paragraphs)
    result.legal += "<p>" + fromMarkdown(paragraph.trim()) + "</p>\n";
  return result;
}

static llvm::Expected<std::string> diffTable(const std::string &before, const std::string &after) {
  auto pairs = sideBySide(before, after);
  if (!pairs)
    return pairs.takeError();
  const std::vector<std::string> left = highlighted(before), right = highlighted(after);
  auto cell = [](const std::vector<std::string> &lines, int line, const char *kind) {
    return line < 0 || size_t(line) >= lines.size()
               ? std::string("<td></td><td class=\"gap\"></td>")
               : llvm::formatv("<td>{0}</td><td class=\"{1}\"><pre>{2}</pre></td>", line + 1, kind, lines[size_t(line)])
                     .str();
  };
  constexpr size_t context = 3; // lines around what changes; longer stretches are left out
  std::vector<bool> shows(pairs->size());
  for (size_t i = 0; i < pairs->size(); ++i)
    for (size_t j = i < context ? 0 : i - context; !(*pairs)[i].same && j <= i + context && j < shows.size(); ++j)
      shows[j] = true;
  std::string rows;
  for (size_t i = 0; i < pairs->size(); ++i) {
    const LinePair &pair = (*pairs)[i];
    if (!shows[i]) {
      rows += i == 0 || shows[i - 1] ? "<tr class=\"left-out\"><td></td><td>…</td><td></td><td>…</td></tr>\n" : "";
      continue;
    }
    rows += "<tr>" + cell(left, pair.before, pair.same ? "same" : "old") +
            cell(right, pair.after, pair.same ? "same" : "new") + "</tr>\n";
  }
  return "<div class=\"wide\"><table class=\"diff\"><tbody>\n" + rows + "</tbody></table></div>\n";
}

/// Counters before and after, where both are known and they differ.
static std::string counterTable(const SearchLog &log, const std::string &before, const std::string &after) {
  static constexpr std::pair<const char *, const char *> named[] = {
      {"/time/seconds", "time"},
      {"/counters/dram_bytes", "bytes from and to DRAM"},
      {"/counters/l2_bytes", "bytes from and to L2"},
      {"/counters/warp_instructions", "instructions of warps"},
      {"/counters/sectors_per_request", "sectors of 32 bytes for each request"},
      {"/counters/sector_efficiency", "bytes asked for / bytes moved"},
      {"/counters/bank_conflicts_per_request", "bank conflicts for each request"},
      {"/resources/registers", "registers a thread"},
      {"/resources/staticShared", "static shared memory of a block, bytes"},
      {"/resources/occupancy", "occupancy"},
      {"/resources/spillStores", "spilled bytes"}};
  std::string rows;
  for (auto [at, words] : named) {
    const double then = log.number(before + at), now = log.number(after + at);
    if (log.at(before + at).is_number() && log.at(after + at).is_number() && then != now)
      rows += row({words, shown(log, before + at, llvm::StringRef(at) == "/time/seconds" ? timeText : quantity),
                   shown(log, after + at, llvm::StringRef(at) == "/time/seconds" ? timeText : quantity),
                   barPair(then, now)});
  }
  return rows.empty() ? "" : table({"", "Before", "After", ""}, rows);
}

static std::string conditionsOf(const json &conditions) {
  std::string rows;
  for (const json &condition : conditions)
    rows +=
        row({"<code>" + escaped(condition.value("holds", "")) + "</code>", escaped(condition.value("because", ""))});
  return rows.empty() ? "<p>No condition: the new kernel takes every launch.</p>\n"
                      : "<p>Tested at run time; where one does not hold, the original runs:</p>\n" +
                            table({"Condition", "Why"}, rows);
}

llvm::Expected<std::string> report::stepsPart(const SearchLog &log) {
  const json &steps = log.list("/winner/steps");
  if (steps.empty())
    return "<p>There is no step: nothing that was tried inside a kernel was faster.</p>\n";
  std::string text, measured = "/result/baseline/measurement";
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string at = "/winner/steps/" + std::to_string(i);
    const bool last = i + 1 == steps.size();
    const TransformPage page = transformPage(log.text(at + "/transform"));
    text += llvm::formatv("<h3>{0}. <code>{1}</code></h3>\n", i + 1, escaped(log.text(at + "/action")));
    text +=
        "<p>" + (page.title.empty() ? "a new text for the kernel, which tests alone speak for" : page.title) + "</p>\n";
    const std::string here = stepMeasurementAt(log, i);
    if (here.empty()) {
      text += "<p>Not evaluated on its own.</p>\n";
    } else {
      text += counterTable(log, measured, here);
      measured = here;
    }
    if (!page.legal.empty())
      text += details("Why it is legal", page.legal);
    text += details("When it runs", conditionsOf(log.list(at + "/conditions")));
    auto diff = diffTable(log.text(at + "/before"), log.text(at + "/after"));
    if (!diff)
      return diff.takeError();
    text += details("What changes", *diff, last && steps.size() == 1);
  }
  auto whole = diffTable(log.text("/winner/steps/0/before"), steps.back().value("after", ""));
  if (!whole)
    return whole.takeError();
  if (steps.size() > 1 && steps.front().value("kernel", "") == steps.back().value("kernel", ""))
    text += "<h3>All steps together</h3>\n" + details("The original kernel and the new one", *whole, true);
  return text;
}
