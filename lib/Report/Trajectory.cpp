//===- Trajectory.cpp - a search, line by line ----------------------------===//
#include "optiml/Report/Trajectory.h"
#include "optiml/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace optiml;
using nlohmann::json;

namespace optiml {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SearchStatistics, evaluations, recalled, correct, failed, predicted, modelled,
                                   applied, notApplicable, transpositions, variants, seconds)
}

static json candidateJson(const Candidate &candidate) {
  return {{"recipe", recipeText(candidate.recipe)},
          {"key", candidate.key},
          {"speedup", candidate.speedup()},
          {"measurement", toJson(candidate.measurement)}};
}

json optiml::toJson(const EvaluationRecord &record) {
  json line = toJson(record.measurement);
  line["event"] = "evaluation";
  line["number"] = record.number;
  line["recipe"] = recipeText(record.recipe);
  line["key"] = record.key;
  const Timing &time = record.measurement.time;
  line["speedup"] = time.seconds > 0 ? time.baseline / time.seconds : 0;
  line["recalled"] = record.recalled;
  line["improved"] = record.improved;
  line["elapsed"] = record.elapsed;
  return line;
}

json optiml::toJson(const SearchResult &result) {
  json top = json::array();
  for (const Candidate &candidate : result.top)
    top.push_back(candidateJson(candidate));
  return {{"improved", result.improved},         {"baseline", candidateJson(result.baseline)},
          {"best", candidateJson(result.best)},  {"top", top},
          {"stop", stopReasonText(result.stop)}, {"notes", result.notes},
          {"statistics", result.statistics}};
}

llvm::Expected<std::unique_ptr<Trajectory>> Trajectory::create(const std::string &path, const json &about) {
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (!folder.empty())
    if (std::error_code error = llvm::sys::fs::create_directories(folder))
      return makeError("cannot create the folder of the trajectory '{0}': {1}", path, error.message());
  int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0)
    return makeError("cannot write the trajectory '{0}': {1}", path, strerror(errno));
  std::unique_ptr<Trajectory> trajectory(new Trajectory(path, descriptor));
  json line = about;
  line["event"] = "search";
  trajectory->write(line);
  return trajectory;
}

Trajectory::~Trajectory() { close(descriptor); }

void Trajectory::write(const json &line) {
  if (failure)
    return;
  std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (size_t at = 0; at < text.size();) {
    ssize_t n = ::write(descriptor, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      failure = n < 0 ? errno : ENOSPC;
      return;
    }
    at += n;
  }
}

void Trajectory::evaluated(const EvaluationRecord &record) { write(toJson(record)); }

void Trajectory::refused(const Recipe &recipe, const std::string &why) {
  write({{"event", "refused"}, {"recipe", recipeText(recipe)}, {"why", why}});
}

llvm::Error Trajectory::finish(const json &result) {
  json line = result;
  line["event"] = "result";
  write(line);
  return failure ? makeError("cannot write the trajectory '{0}': {1}", file, strerror(failure))
                 : llvm::Error::success();
}

void ObserverList::started(const Recipe &recipe, Fidelity fidelity) {
  for (SearchObserver *observer : observers)
    observer->started(recipe, fidelity);
}

void ObserverList::evaluated(const EvaluationRecord &record) {
  for (SearchObserver *observer : observers)
    observer->evaluated(record);
}

void ObserverList::refused(const Recipe &recipe, const std::string &why) {
  for (SearchObserver *observer : observers)
    observer->refused(recipe, why);
}
