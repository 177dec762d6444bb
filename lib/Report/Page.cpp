//===- Page.cpp - a search as one page ------------------------------------===//
#include "optiml/Report/Page.h"
#include "PageParts.h"
#include "optiml/Support/EmbeddedFile.h"
#include "optiml/Support/Error.h"
#include "llvm/Support/Path.h"

using namespace optiml;
using namespace optiml::report;

namespace optiml::report {
extern const EmbeddedFile pageTexts[];
}

/// As the content of a script element, which some kinds of "<" would end.
static std::string embedded(const nlohmann::json &value) {
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6)
    text.replace(at, 1, "\\u003c"); // stands in strings only
  return text;
}

static std::string head(const std::string &title) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\"><title>" +
         escaped(title) + "</title>\n<style>\n" + embeddedText(pageTexts, "page.css") +
         "</style></head>\n<body><main>\n<h1>" + escaped(title) + "</h1>\n";
}

std::string optiml::recipesPage(const std::string &path, const std::vector<nlohmann::json> &records) {
  auto text = [](const nlohmann::json &record, const char *name) {
    auto found = record.find(name);
    return found != record.end() && found->is_string() ? escaped(found->get<std::string>()) : "";
  };
  auto number = [](const nlohmann::json &record, const char *name) {
    auto found = record.find(name);
    return found != record.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  std::string rows;
  for (const nlohmann::json &record : records) {
    const bool measured = record.value("measured", nlohmann::json()) == true;
    std::string gain = number(record, "speedup") > 0 ? ratio(number(record, "speedup")) + " times" : "";
    if (number(record, "low") > 0)
      gain += " (" + ratio(number(record, "low")) + " to " + ratio(number(record, "high")) + ")";
    if (number(record, "before") > 0)
      gain += ", " + timeText(number(record, "before")) + " → " + timeText(number(record, "after"));
    rows += row(
        {text(record, "file"), "<code>" + text(record, "kernel") + "</code>", "sm_" + quantity(number(record, "arch")),
         text(record, "threads"),
         gain + (measured ? ", measured on " : ", predicted for ") + text(record, "gpu") + " " + text(record, "date"),
         "<code>" + text(record, "recipe") + "</code>"});
  }
  return head("OptiML: recipes in " + path) + "<p>Gains are those of the kernels that were searched together.</p>\n" +
         table({"File", "Kernel", "GPU code", "Threads", "Gain", "Recipe"}, rows) + "</main></body></html>\n";
}

static llvm::Expected<std::string> pageOf(const SearchLog &log) {
  const std::string file = llvm::sys::path::filename(log.text("/search/file")).str();
  const std::string title = "OptiML: " + (file.empty() ? log.path : file);
  auto steps = stepsPart(log);
  if (!steps)
    return steps.takeError();
  std::string page = head(title);
  page += verdictPart(log);
  page += section("program", "The program", programPart(log));
  page += section("roofline", "Roofline", rooflinePart(log));
  page += section("steps", "The winner, step by step", *steps);
  page += section("search", "The search", searchPart(log));
  page += section("verification", "Verification", verificationPart(log));
  page += section("models", "Language models", modelsPart(log));
  page += section("data", "Data",
                  "<p>Everything above comes from the trajectory, which this page carries as JSON in "
                  "the element <code>log</code>; <code>optiml report --json</code> prints it.</p>\n");
  page += "</main>\n<script type=\"application/json\" id=\"log\">" + embedded(log.events) + "</script>\n<script>\n" +
          embeddedText(pageTexts, "page.js") + "</script></body></html>\n";
  return page;
}

llvm::Expected<std::string> optiml::reportPage(const SearchLog &log) {
  try {
    return pageOf(log);
  } catch (const nlohmann::json::exception &wrong) {
    return makeError("{0}: a value in it is of another kind than a search writes: {1}", log.path, wrong.what());
  }
}
