//===- McpServer.cpp - the Model Context Protocol over two pipes ----------===//
#include "optiml/Agent/McpServer.h"
#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <unistd.h>

using namespace optiml::agent;
using nlohmann::json;

static constexpr int parseError = -32700, invalidRequest = -32600, noMethod = -32601, invalidParams = -32602,
                     resourceMissing = -32002, unsupportedRevision = -32022;
/// That begin with initialize, newest first: what is answered to a client that asks for another one.
static constexpr const char *revisions[] = {"2025-11-25", "2025-06-18"};
/// Without it: each request names its revision.
static constexpr const char *statelessRevision = "2026-07-28";
static constexpr const char *revisionKey = "io.modelcontextprotocol/protocolVersion",
                            *serverKey = "io.modelcontextprotocol/serverInfo";

static std::string textOf(const json &message) {
  return message.dump(-1, ' ', false, json::error_handler_t::replace); // what a program prints may be no UTF-8
}

static bool fits(const json &property, const json &value) {
  const std::string type = property.value("type", "");
  if (type == "array")
    return value.is_array() && std::all_of(value.begin(), value.end(), [](const json &v) { return v.is_string(); });
  if (type == "integer")
    return value.is_number_integer();
  if (type == "number")
    return value.is_number();
  return type == "boolean" ? value.is_boolean() : type == "string" && value.is_string();
}

std::string optiml::agent::argumentProblem(const json &schema, const json &arguments) {
  if (!arguments.is_object())
    return "the arguments are no object";
  const json &properties = schema.at("properties");
  for (const auto &[name, value] : arguments.items()) {
    auto property = properties.find(name);
    if (property == properties.end())
      return "there is no argument '" + name.substr(0, 100) + "'";
    if (!fits(*property, value))
      return "argument '" + name + "' must be of type " + property->value("type", "") +
             (property->value("type", "") == "array" ? " of strings" : "");
    if (value.is_number() && property->contains("minimum") && value < property->at("minimum"))
      return "argument '" + name + "' must be at least " + property->at("minimum").dump();
    if (value.is_number() && property->contains("maximum") && value > property->at("maximum"))
      return "argument '" + name + "' must be at most " + property->at("maximum").dump();
  }
  for (const json &name : schema.value("required", json::array()))
    if (!arguments.contains(name.get<std::string>()))
      return "argument '" + name.get<std::string>() + "' is missing";
  return "";
}

/// A member of that type, or an empty one.
static json member(const json &object, const char *name, json::value_t type) {
  auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->type() == type ? *found : json(type);
}
static std::string textMember(const json &object, const char *name) {
  return member(object, name, json::value_t::string).get<std::string>();
}

namespace {
/// Who waits for an answer.
struct Asker {
  json id;
  bool isStateless = false; ///< it speaks statelessRevision
};
} // namespace

struct McpServer::Impl {
  Settings settings;
  std::vector<Tool> tools;
  std::vector<Resource> resources;
  int out = -1;
  std::mutex writing;
  std::mutex mutex; ///< of what follows
  std::condition_variable ended;
  bool initialized = false;
  std::map<std::string, std::shared_ptr<ToolCall>> calls; ///< under way, by the request's id
  size_t running = 0;                                     ///< of the calls: those without an answer

  void write(const json &message);
  void answer(const Asker &asker, json result);
  /// What may be asked for again: clients of statelessRevision want to know for how long they may keep it.
  void answerList(const Asker &asker, json result);
  void refuse(const json &id, int code, const std::string &why, json data = nullptr);
  json capabilities() const { return {{"tools", json::object()}, {"resources", json::object()}}; }
  json about() const { return {{"name", settings.name}, {"version", settings.version}}; }
  void handle(const std::string &line);
  void request(Asker asker, const std::string &method, const json &params);
  void notified(const std::string &method, const json &params);
  void initialize(const Asker &asker, const json &params);
  void listTools(const Asker &asker);
  void callTool(const Asker &asker, const json &params);
  void finish(const Asker &asker, const ToolAnswer &given, const ToolCall &call);
  void readResource(const Asker &asker, const json &params);
};

McpServer::McpServer(Settings settings, std::vector<Tool> tools, std::vector<Resource> resources)
    : impl(std::make_unique<Impl>()) {
  impl->settings = std::move(settings);
  impl->tools = std::move(tools);
  impl->resources = std::move(resources);
}
McpServer::~McpServer() = default;

void McpServer::Impl::write(const json &message) {
  const std::string line = textOf(message) + "\n";
  std::lock_guard lock(writing);
  for (size_t done = 0; done < line.size();) {
    ssize_t n = ::write(out, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return; // the client is gone; its end of our input tells
    done += size_t(n);
  }
}

void McpServer::Impl::answer(const Asker &asker, json result) {
  if (asker.isStateless) {
    result["resultType"] = "complete";
    result["_meta"][serverKey] = about();
  }
  write({{"jsonrpc", "2.0"}, {"id", asker.id}, {"result", std::move(result)}});
}

void McpServer::Impl::answerList(const Asker &asker, json result) {
  if (asker.isStateless)
    result.update({{"ttlMs", 0}, {"cacheScope", "private"}});
  answer(asker, std::move(result));
}

void McpServer::Impl::refuse(const json &id, int code, const std::string &why, json data) {
  json error = {{"code", code}, {"message", why}};
  if (!data.is_null())
    error["data"] = std::move(data);
  write({{"jsonrpc", "2.0"}, {"id", id}, {"error", std::move(error)}});
}

void McpServer::Impl::initialize(const Asker &asker, const json &params) {
  std::string wanted = textMember(params, "protocolVersion");
  if (std::find(std::begin(revisions), std::end(revisions), wanted) == std::end(revisions))
    wanted = revisions[0];
  {
    std::lock_guard lock(mutex);
    initialized = true;
  }
  answer(asker, {{"protocolVersion", wanted},
                 {"capabilities", capabilities()},
                 {"serverInfo", about()},
                 {"instructions", settings.instructions}});
}

void McpServer::Impl::listTools(const Asker &asker) {
  json list = json::array();
  for (const Tool &tool : tools)
    list.push_back(
        {{"name", tool.name}, {"title", tool.title}, {"description", tool.description}, {"inputSchema", tool.schema}});
  answerList(asker, {{"tools", list}});
}

void McpServer::Impl::finish(const Asker &asker, const ToolAnswer &given, const ToolCall &call) {
  {
    std::lock_guard lock(mutex);
    --running; // who reads the answer may call again at once
  }
  if (!call.cancelled()) // the protocol wants no answer then
    answer(asker, {{"content",
                    {{{"type", "text"}, {"text", given.content.dump(1, ' ', false, json::error_handler_t::replace)}}}},
                   {"structuredContent", given.content},
                   {"isError", given.isError}});
  std::lock_guard lock(mutex);
  calls.erase(textOf(asker.id));
  ended.notify_all();
}

void McpServer::Impl::callTool(const Asker &asker, const json &params) {
  const std::string name = textMember(params, "name");
  auto tool = std::find_if(tools.begin(), tools.end(), [&](const Tool &t) { return t.name == name; });
  if (tool == tools.end())
    return refuse(asker.id, invalidParams, "there is no tool '" + name.substr(0, 100) + "'");
  const json meta = member(params, "_meta", json::value_t::object);
  const json token = meta.value("progressToken", json());
  std::function<void(const std::string &)> tell;
  if (token.is_string() || token.is_number_integer())
    tell = [this, token, count = 0](const std::string &what) mutable {
      write({{"jsonrpc", "2.0"},
             {"method", "notifications/progress"},
             {"params", {{"progressToken", token}, {"progress", ++count}, {"message", what}}}});
    };
  auto call = std::make_shared<ToolCall>(std::move(tell));
  json arguments = params.contains("arguments") ? params.at("arguments") : json::object();
  {
    std::lock_guard lock(mutex);
    if (running >= settings.mostCalls)
      return refuse(asker.id, invalidRequest, "too many calls at the same time");
    if (!calls.emplace(textOf(asker.id), call).second)
      return refuse(asker.id, invalidRequest, "a request with this id is under way");
    ++running;
  }
  std::thread([this, asker, call, &tool = *tool, arguments = std::move(arguments)] {
    const std::string problem = argumentProblem(tool.schema, arguments);
    finish(asker, problem.empty() ? tool.run(arguments, *call) : refusal(problem), *call);
  }).detach();
}

void McpServer::Impl::readResource(const Asker &asker, const json &params) {
  const std::string uri = textMember(params, "uri");
  for (const Resource &resource : resources)
    if (resource.uri == uri)
      return answerList(asker,
                        {{"contents", {{{"uri", uri}, {"mimeType", resource.mimeType}, {"text", resource.read()}}}}});
  refuse(asker.id, resourceMissing, "there is no resource '" + uri.substr(0, 200) + "'");
}

void McpServer::Impl::request(Asker asker, const std::string &method, const json &params) {
  if (const std::string revision = textMember(member(params, "_meta", json::value_t::object), revisionKey);
      !revision.empty()) {
    asker.isStateless = revision == statelessRevision;
    if (!asker.isStateless && std::find(std::begin(revisions), std::end(revisions), revision) == std::end(revisions))
      return refuse(asker.id, unsupportedRevision, "this revision of the protocol is not spoken here",
                    {{"supported", {statelessRevision, revisions[0], revisions[1]}}, {"requested", revision}});
  }
  if (method == "server/discover")
    return answerList(asker, {{"supportedVersions", {statelessRevision, revisions[0], revisions[1]}},
                              {"capabilities", capabilities()},
                              {"serverInfo", about()},
                              {"instructions", settings.instructions}});
  if (method == "initialize")
    return initialize(asker, params);
  if (method == "ping")
    return answer(asker, json::object());
  {
    std::lock_guard lock(mutex);
    if (!initialized && !asker.isStateless)
      return refuse(asker.id, invalidRequest, "initialize comes first");
  }
  if (method == "tools/list")
    return listTools(asker);
  if (method == "tools/call")
    return callTool(asker, params);
  if (method == "resources/list") {
    json list = json::array();
    for (const Resource &resource : resources)
      list.push_back({{"uri", resource.uri},
                      {"name", resource.name},
                      {"description", resource.description},
                      {"mimeType", resource.mimeType}});
    return answerList(asker, {{"resources", list}});
  }
  if (method == "resources/templates/list")
    return answerList(asker, {{"resourceTemplates", json::array()}});
  if (method == "resources/read")
    return readResource(asker, params);
  refuse(asker.id, noMethod, "there is no method '" + method.substr(0, 100) + "'");
}

void McpServer::Impl::notified(const std::string &method, const json &params) {
  if (method != "notifications/cancelled" || !params.is_object() || !params.contains("requestId"))
    return;
  std::lock_guard lock(mutex);
  if (auto call = calls.find(textOf(params.at("requestId"))); call != calls.end())
    call->second->cancel();
}

void McpServer::Impl::handle(const std::string &line) {
  if (line.find_first_not_of(" \t\r") == std::string::npos)
    return;
  const json message = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (message.is_discarded())
    return refuse(nullptr, parseError, "this line is no JSON");
  if (!message.is_object() || textMember(message, "jsonrpc") != "2.0")
    return refuse(nullptr, invalidRequest, "a message is one object with \"jsonrpc\": \"2.0\"");
  const std::string method = textMember(message, "method");
  const json params = message.contains("params") ? message.at("params") : json::object();
  if (!message.contains("id"))
    return notified(method, params);
  const json &id = message.at("id");
  if (!id.is_string() && !id.is_number_integer())
    return refuse(nullptr, invalidRequest, "an id is a string or an integer");
  if (method.empty()) // an answer to a question that was never asked, or no method
    return message.contains("result") || message.contains("error") ? void()
                                                                   : refuse(id, invalidRequest, "there is no method");
  request({id}, method, params);
}

void McpServer::serve(int in, int out) {
  impl->out = out;
  std::string pending;
  bool tooLong = false;
  std::vector<char> buffer(1 << 16);
  for (;;) {
    ssize_t n = read(in, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    for (const char *at = buffer.data(), *end = at + n; at < end;) {
      const char *newline = std::find(at, end, '\n');
      if (!tooLong)
        pending.append(at, newline);
      if (pending.size() > impl->settings.longestLine) {
        tooLong = true;
        pending.clear();
      }
      if (newline == end)
        break;
      if (tooLong)
        impl->refuse(nullptr, invalidRequest, "the message is too long");
      else
        impl->handle(pending);
      pending.clear();
      tooLong = false;
      at = newline + 1;
    }
  }
  std::unique_lock lock(impl->mutex);
  for (auto &[id, call] : impl->calls)
    call->cancel();
  impl->ended.wait(lock, [this] { return impl->calls.empty(); });
}
