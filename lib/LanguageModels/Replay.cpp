//===- Replay.cpp - a transcript answers ----------------------------------===//
#include "Endpoint.h"
#include "optiml/LanguageModels/JsonAnswer.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/FileSystem.h"
#include <deque>
#include <map>
#include <mutex>

using namespace optiml;
using nlohmann::json;

namespace {

constexpr uint64_t longestTranscript = uint64_t(256) << 20;
constexpr unsigned mostRecordedModels = 16;

struct Recorded {
  ChatReply reply;
  std::string error; ///< when there was no reply
  unsigned attempts = 1;
  unsigned takenAt = 0;
  std::optional<double> usd;
};

/// Hands out the recorded outcomes, equal requests in the order of the file.
class ReplayEndpoint : public Endpoint {
public:
  explicit ReplayEndpoint(std::string file) : file(std::move(file)) {}
  std::string name() const override { return recordedName; }
  std::string place() const override { return ""; }
  std::string priceName() const override { return ""; }

  llvm::Expected<ChatReply> ask(const ChatRequest &request, Exchange &exchange) override {
    std::lock_guard lock(mutex);
    auto found = outcomes.find({request.purpose, requestHash(request)});
    if (found == outcomes.end() || found->second.empty())
      found = outcomes.find({request.purpose, ""}); // lines written by hand
    if (found == outcomes.end() || found->second.empty())
      return makeError("'{0}' holds no further answer to this request for '{1}'", file, request.purpose);
    Recorded next = std::move(found->second.front());
    found->second.pop_front();
    exchange.attempts = next.attempts;
    exchange.usd = next.usd;
    if (request.takenAt)
      *request.takenAt = next.takenAt;
    if (!next.error.empty())
      return makeError(next.error);
    return next.reply;
  }

  std::string recordedName;
  std::map<std::pair<std::string, std::string>, std::deque<Recorded>> outcomes; ///< by purpose and request

private:
  std::string file;
  std::mutex mutex;
};

double numberOf(const json &object, const char *name) {
  auto it = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && it != object.end() && it->is_number() ? it->get<double>() : 0;
}

Recorded readOutcome(const json &line) {
  Recorded result;
  result.error = textOf(line, "error");
  result.attempts = unsigned(std::min<uint64_t>(std::max<uint64_t>(countOf(line, "attempts"), 1), 1000));
  if (line.contains("usd") && line["usd"].is_number())
    result.usd = line["usd"].get<double>();
  json none = json::object();
  const json &reply = line.contains("reply") ? line["reply"] : none;
  result.reply.text = textOf(reply, "text");
  result.reply.stop = textOf(reply, "stop", "end");
  result.reply.promptTokens = countOf(reply, "promptTokens");
  result.reply.completionTokens = countOf(reply, "completionTokens");
  result.reply.estimatedTokens = reply.is_object() && reply.value("estimatedTokens", json()) == json(true);
  result.reply.seconds = numberOf(reply, "seconds");
  return result;
}

} // namespace

llvm::Expected<std::vector<std::unique_ptr<Endpoint>>> optiml::makeReplayEndpoints(const std::string &file) {
  uint64_t size = 0;
  if (std::error_code ec = llvm::sys::fs::file_size(file, size))
    return makeError("cannot read the transcript '{0}': {1}", file, ec.message());
  if (size > longestTranscript)
    return makeError("the transcript '{0}' is larger than {1} MiB", file, longestTranscript >> 20);
  llvm::Expected<std::string> content = readFile(file);
  if (!content)
    return content.takeError();
  std::map<unsigned, std::unique_ptr<ReplayEndpoint>> models;
  unsigned number = 0;
  llvm::StringRef rest = *content;
  while (!rest.empty()) {
    auto [text, next] = rest.split('\n');
    ++number;
    bool last = next.empty();
    rest = next;
    if (text.trim().empty())
      continue;
    llvm::Expected<json> line = parseJsonWithin(text, {size_t(64) << 20, 64});
    if (!line && last && !content->ends_with("\n")) {
      llvm::consumeError(line.takeError()); // half a line, of a run that was killed
      break;
    }
    if (!line)
      return makeError("{0}:{1}: this line is no part of a transcript: {2}", file, number,
                       llvm::toString(line.takeError()));
    if (line->is_object() && line->contains("transcript")) { // the head: every model of the run, asked or not
      const json names = line->value("models", json::array());
      for (unsigned i = 0; names.is_array() && i < names.size() && i < mostRecordedModels; ++i) {
        models[i] = std::make_unique<ReplayEndpoint>(file);
        models[i]->recordedName = names[i].is_string() ? names[i].get<std::string>() : "";
      }
      continue;
    }
    const bool isTaken = line->is_object() && line->contains("takenAt");
    if (textOf(*line, "purpose").empty() || !(isTaken || line->contains("reply") || line->contains("error")))
      return makeError(
          "{0}:{1}: this line is no part of a transcript: want an object with 'purpose', and 'reply' or 'error'", file,
          number);
    json model = line->value("model", json());
    uint64_t index = countOf(model, "index");
    if (index >= mostRecordedModels)
      return makeError("{0}:{1}: the transcript's model number {2} is not below {3}", file, number, index,
                       mostRecordedModels);
    std::unique_ptr<ReplayEndpoint> &endpoint = models[unsigned(index)];
    if (!endpoint)
      endpoint = std::make_unique<ReplayEndpoint>(file);
    if (endpoint->recordedName.empty())
      endpoint->recordedName = textOf(model, "name", "replay:" + file);
    std::deque<Recorded> &outcomes = endpoint->outcomes[{textOf(*line, "purpose"), textOf(*line, "hash")}];
    if (!isTaken) {
      outcomes.push_back(readOutcome(*line));
      continue;
    }
    for (Recorded &outcome : outcomes) // equal questions are taken in in their order
      if (!outcome.takenAt) {
        outcome.takenAt = unsigned(std::min<uint64_t>(countOf(*line, "takenAt"), 1u << 30));
        break;
      }
  }
  if (models.empty()) // a run that asked nothing
    models[0] = std::make_unique<ReplayEndpoint>(file);
  std::vector<std::unique_ptr<Endpoint>> result;
  for (auto &[index, endpoint] : models)
    result.push_back(std::move(endpoint));
  return result;
}
