//===- ReportCommand.cpp - the program optiml-report ----------------------===//
#include "optiml/Report/ReportCommand.h"
#include "optiml/Report/Page.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace optiml;

static constexpr const char *help = R"(usage: optiml report [options] [TRAJECTORY|STORE|RECIPES]

Shows a search as one web page, which needs no other file and no network. TRAJECTORY is the file that a search names at
its end; of a STORE, the folder of --optiml-store, the newest is taken, and so it is of the default store. Of a file of
RECIPES the page has its records.

  -o FILE        where the page goes (report.html); - is standard output
  --json         print what the page is made from, and write no page
)";

namespace {
struct Options {
  std::string input, output = "report.html";
  bool json = false, showHelp = false;
};
} // namespace

static llvm::Expected<Options> parse(llvm::ArrayRef<char *> arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    llvm::StringRef argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      options.showHelp = true;
    } else if (argument == "--json") {
      options.json = true;
    } else if (argument == "-o" && i + 1 < arguments.size()) {
      options.output = arguments[++i];
    } else if (argument.starts_with("-")) {
      return makeError("there is no option '{0}' (or a value is missing); optiml report --help lists them", argument);
    } else if (options.input.empty()) {
      options.input = argument.str();
    } else {
      return makeError("one search at a time: '{0}' and '{1}' were given", options.input, argument);
    }
  }
  return options;
}

static llvm::Expected<SearchLog> find(const std::string &input) {
  if (!input.empty() && !llvm::sys::fs::is_directory(input))
    return SearchLog::read(input);
  const std::string store = input.empty() ? userCacheFolder() : input;
  if (store.empty())
    return makeError("there is no default store, as neither $XDG_CACHE_HOME nor $HOME is set; name a trajectory");
  auto newest = newestTrajectory(store);
  return newest ? SearchLog::read(*newest) : llvm::Expected<SearchLog>(newest.takeError());
}

/// The records of a file of recipes; nothing where it is none.
static std::vector<nlohmann::json> recipesIn(llvm::StringRef text) {
  std::vector<nlohmann::json> records;
  for (bool first = true; !text.empty(); first = false) {
    auto [line, rest] = text.split('\n');
    text = rest;
    nlohmann::json value = parsedEvent(line);
    if (first && !(value.is_object() && value.value("format", nlohmann::json()) == "optiml recipes"))
      return {};
    if (!first && value.is_object())
      records.push_back(std::move(value));
  }
  return records;
}

static llvm::Error write(const Options &options, const std::string &page, const std::string &source) {
  if (options.output == "-") {
    llvm::outs() << page;
    return llvm::Error::success();
  }
  if (llvm::Error error = writeFileAtomically(options.output, page))
    return error;
  llvm::outs() << options.output << ": " << source << "\n";
  return llvm::Error::success();
}

static llvm::Error makeReport(const Options &options) {
  if (!options.input.empty() && !llvm::sys::fs::is_directory(options.input)) {
    auto text = readFile(options.input);
    if (!text)
      return text.takeError();
    if (std::vector<nlohmann::json> records = recipesIn(*text); !records.empty() && !options.json)
      return write(options, recipesPage(options.input, records), options.input);
  }
  auto log = find(options.input);
  if (!log)
    return log.takeError();
  if (options.json) {
    llvm::outs() << log->events.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return llvm::Error::success();
  }
  auto page = reportPage(*log);
  if (!page)
    return page.takeError();
  return write(options, *page, log->path);
}

int optiml::runReportCommand(int argc, char **argv) {
  auto options = parse({argv + 1, argv + argc});
  if (options && options->showHelp) {
    llvm::outs() << help;
    return 0;
  }
  llvm::Error error = options ? makeReport(*options) : options.takeError();
  if (!error)
    return 0;
  llvm::errs() << "optiml-report: error: " << llvm::toString(std::move(error)) << "\n";
  return 2;
}
