//===- SearchLog.cpp - a trajectory, read back ----------------------------===//
#include "optiml/Report/SearchLog.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace optiml;
using nlohmann::json;

static const json nothing, emptyList = json::array();

json optiml::parsedEvent(llvm::StringRef line) {
  constexpr int deepest = 64; // what shows or frees deeper values uses up the stack
  bool isDeep = false;
  auto watch = [&](int depth, json::parse_event_t, json &) {
    isDeep |= depth > deepest;
    return depth <= deepest;
  };
  json event = json::parse(line.begin(), line.end(), watch, /*allow_exceptions=*/false);
  return isDeep ? json() : event;
}

llvm::Expected<SearchLog> SearchLog::read(const std::string &path) {
  auto content = readFile(path);
  if (!content)
    return content.takeError();
  SearchLog log{path,
                {{"search", nullptr},
                 {"winner", nullptr},
                 {"result", nullptr},
                 {"evaluations", json::array()},
                 {"refused", json::array()},
                 {"models", json::array()}}};
  llvm::StringRef rest = *content;
  for (unsigned number = 1; !rest.empty(); ++number) {
    auto [line, after] = rest.split('\n');
    const bool finished = line.size() < rest.size();
    rest = after;
    json event = parsedEvent(line);
    if (!event.is_object() || !event.contains("event") || !event["event"].is_string()) {
      if (!finished && number > 1)
        break;
      return makeError("{0}:{1}: this is no line of a trajectory; optiml report reads what a search left in its store, "
                       "under trajectories",
                       path, number);
    }
    const std::string kind = event["event"];
    event.erase("event");
    if (kind == "search" || kind == "winner" || kind == "result")
      log.events[kind] = std::move(event);
    else if (kind == "evaluation")
      log.events["evaluations"].push_back(std::move(event));
    else if (kind == "refused")
      log.events["refused"].push_back(std::move(event));
    else {
      event["event"] = kind;
      log.events["models"].push_back(std::move(event));
    }
  }
  if (!log.events["search"].is_object())
    return makeError("{0}: there is no search in it", path);
  return log;
}

const json &SearchLog::at(const std::string &pointer) const {
  const json::json_pointer place(pointer);
  return events.contains(place) ? events.at(place) : nothing;
}

double SearchLog::number(const std::string &pointer) const {
  const json &value = at(pointer);
  return value.is_number() ? value.get<double>() : 0;
}

std::string SearchLog::text(const std::string &pointer) const {
  const json &value = at(pointer);
  return value.is_string() ? value.get<std::string>() : "";
}

const json &SearchLog::list(const std::string &pointer) const {
  const json &value = at(pointer);
  return value.is_array() ? value : emptyList;
}

int SearchLog::evaluationOf(const std::string &key) const {
  const json &all = list("/evaluations");
  for (size_t i = 0; i < all.size(); ++i)
    if (text("/evaluations/" + std::to_string(i) + "/key") == key)
      return int(i);
  return -1;
}

bool SearchLog::measured() const {
  const json &told = at("/search/measured");
  return told.is_boolean() ? told.get<bool>() : text("/search/backend").rfind("gpu", 0) == 0;
}

llvm::Expected<std::string> optiml::newestTrajectory(const std::string &storeFolder) {
  const std::string folder = storeFolder + "/trajectories";
  std::string newest;
  llvm::sys::TimePoint<> when;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    llvm::sys::fs::file_status status;
    if (!llvm::StringRef(i->path()).ends_with(".jsonl") || llvm::sys::fs::status(i->path(), status))
      continue;
    if (newest.empty() || status.getLastModificationTime() > when)
      newest = i->path(), when = status.getLastModificationTime();
  }
  if (newest.empty())
    return makeError("there is no trajectory in '{0}'; a search (optiml-clang -O-search FILE.cu) writes one", folder);
  return newest;
}
