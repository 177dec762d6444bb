//===- McpServer.h - the Model Context Protocol over two pipes --*- C++ -*-===//
//
// JSON-RPC 2.0, one message a line, as the protocol's stdio transport wants it (modelcontextprotocol.io, revisions
// 2025-06-18, 2025-11-25 and 2026-07-28). It knows nothing of OptiML: tools and resources are tables. Calls of tools
// run beside each other, each on a thread of its own.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_AGENT_MCPSERVER_H
#define OPTIML_AGENT_MCPSERVER_H

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace optiml::agent {

/// What a tool answers. A refusal is an ordinary answer with `isError`, so that a model reads why.
struct ToolAnswer {
  nlohmann::json content = nlohmann::json::object();
  bool isError = false;
};

inline ToolAnswer refusal(const std::string &why) { return {{{"error", why}}, true}; }

/// One call of a tool, as it sees the client.
class ToolCall {
public:
  explicit ToolCall(std::function<void(const std::string &)> tell) : tell(std::move(tell)) {}
  /// The client does not want the answer any more.
  bool cancelled() const { return isCancelled; }
  void cancel() { isCancelled = true; }
  /// Tells a client that asked for it what is going on.
  void progress(const std::string &what) const {
    if (tell)
      tell(what);
  }

private:
  std::function<void(const std::string &)> tell;
  std::atomic<bool> isCancelled{false};
};

struct Tool {
  std::string name, title, description;
  /// A JSON schema of an object whose properties are of type string, integer, number or boolean, or arrays of strings.
  nlohmann::json schema;
  std::function<ToolAnswer(const nlohmann::json &arguments, ToolCall &call)> run;
};

struct Resource {
  std::string uri, name, description, mimeType;
  std::function<std::string()> read;
};

/// Why the arguments do not fit a tool's schema; empty: they do.
std::string argumentProblem(const nlohmann::json &schema, const nlohmann::json &arguments);

class McpServer {
public:
  struct Settings {
    std::string name, version, instructions;
    size_t longestLine = 8 << 20; ///< bytes; longer messages are refused
    unsigned mostCalls = 8;       ///< at the same time
  };
  McpServer(Settings settings, std::vector<Tool> tools, std::vector<Resource> resources);
  ~McpServer();
  /// Serves the client until it closes `in`, and waits for calls that are under way. Writes nothing else to `out`.
  void serve(int in, int out);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace optiml::agent

#endif
