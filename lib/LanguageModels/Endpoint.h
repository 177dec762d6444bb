//===- Endpoint.h - what answers behind a model -----------------*- C++ -*-===//
//
// One question to one place, without budgets and transcripts: those are the session's.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_LANGUAGEMODELS_ENDPOINT_H
#define OPTIML_LIB_LANGUAGEMODELS_ENDPOINT_H

#include "Transcript.h"
#include "optiml/LanguageModels/Chat.h"
#include <atomic>
#include <memory>
#include <optional>

namespace optiml {

/// How a question went, beside its reply or error.
struct Exchange {
  double seconds = 120;                      ///< in: how long it may take with all retries
  const std::atomic<bool> *cancel = nullptr; ///< in
  const Secrets *secrets = nullptr; ///< in; what came from outside loses its keys before anything is cut off it
  unsigned attempts = 1;            ///< how often the server was asked
  bool perhapsBilled = false;       ///< no reply came, but the model may have worked on one
  std::optional<double> usd;        ///< what a recorded exchange had cost
};

inline std::string withoutKeys(const Exchange &exchange, std::string text) {
  return exchange.secrets ? exchange.secrets->scrub(std::move(text)) : text;
}

class Endpoint {
public:
  virtual ~Endpoint() = default;
  virtual std::string name() const = 0;
  /// What the first notice of a run calls the place that sees the source; empty: nothing leaves this program.
  virtual std::string place() const = 0;
  /// The model as price tables know it; empty: unknown.
  virtual std::string priceName() const = 0;
  virtual llvm::Expected<ChatReply> ask(const ChatRequest &request, Exchange &exchange) = 0;
};

/// A local command that reads a request on standard input and writes its answer (docs/formats.md). It inherits the
/// environment, from which the session has taken the keys.
llvm::Expected<std::unique_ptr<Endpoint>> makeExecEndpoint(llvm::StringRef command, const std::string &model);

/// One endpoint for each model that answers in the transcript `file`.
llvm::Expected<std::vector<std::unique_ptr<Endpoint>>> makeReplayEndpoints(const std::string &file);

enum class HttpProtocol { OpenAI, Anthropic };
struct HttpTarget {
  std::string url;  ///< of requests
  std::string host; ///< with its port, where one is given: for people, and to choose a key by
  HttpProtocol protocol = HttpProtocol::OpenAI;
  bool encrypted = false, loopback = false;
  std::string model, key;
};
/// `text`: a value of --optiml-llm that is a URL, perhaps behind "anthropic:".
llvm::Expected<HttpTarget> parseHttpTarget(llvm::StringRef text);
/// An error where this build has no HTTP.
llvm::Expected<std::unique_ptr<Endpoint>> makeHttpEndpoint(HttpTarget target);

/// The request as `exec:` commands and transcripts have it.
nlohmann::json requestToJson(const ChatRequest &request);
/// Tells requests apart: all but the purpose.
std::string requestHash(const ChatRequest &request);
/// An upper estimate, for models that do not tell: a token has seldom less than three bytes.
uint64_t estimatedTokens(size_t bytes);
uint64_t estimatedPromptTokens(const ChatRequest &request);
/// From untrusted JSON: the value where it has the type, else the fallback.
std::string textOf(const nlohmann::json &object, const char *name, const std::string &fallback = "");
uint64_t countOf(const nlohmann::json &object, const char *name);

} // namespace optiml

#endif
