//===- McpServerTest.cpp - the Model Context Protocol, without OptiML -----===//
#include "optiml/Agent/McpServer.h"
#include "Agent/Jobs.h"
#include "gtest/gtest.h"
#include <chrono>
#include <thread>
#include <unistd.h>

using namespace optiml::agent;
using nlohmann::json;

namespace {

/// A server with two tools, in a thread; the test is its client.
class Session {
public:
  Session()
      : server({"test", "1", "read me", /*longestLine=*/1000, /*mostCalls=*/2},
               {{"echo", "Echo", "", echoSchema(),
                 [](const json &arguments, ToolCall &) { return ToolAnswer{arguments, false}; }},
                {"hang", "Hang", "", echoSchema(),
                 [](const json &, ToolCall &call) {
                   call.progress("hanging");
                   while (!call.cancelled())
                     std::this_thread::sleep_for(std::chrono::milliseconds(1));
                   return refusal("stopped");
                 }}},
               {{"test://one", "one", "", "text/plain", [] { return std::string("1"); }}}) {
    EXPECT_EQ(pipe(toServer), 0);
    EXPECT_EQ(pipe(fromServer), 0);
    thread = std::thread([this] {
      server.serve(toServer[0], fromServer[1]);
      close(fromServer[1]);
    });
  }
  ~Session() {
    finish();
    close(toServer[0]);
    close(fromServer[0]);
  }
  void finish() {
    if (thread.joinable()) {
      close(toServer[1]);
      thread.join();
    }
  }
  void write(const std::string &line) {
    const std::string text = line + "\n";
    EXPECT_EQ(::write(toServer[1], text.data(), text.size()), ssize_t(text.size()));
  }
  void send(json message) {
    message["jsonrpc"] = "2.0";
    write(message.dump());
  }
  /// The next message; null at the end.
  json read() {
    std::string line;
    for (char c; ::read(fromServer[0], &c, 1) == 1 && c != '\n';)
      line += c;
    return line.empty() ? json() : json::parse(line, nullptr, false);
  }
  json ask(const json &id, const std::string &method, json params = json::object()) {
    send({{"id", id}, {"method", method}, {"params", std::move(params)}});
    return read();
  }
  void call(const json &id, const std::string &tool, json arguments = json::object()) {
    send({{"id", id},
          {"method", "tools/call"},
          {"params", {{"name", tool}, {"arguments", arguments}, {"_meta", {{"progressToken", "t"}}}}}});
  }

private:
  static json echoSchema() {
    return {{"type", "object"},
            {"properties",
             {{"text", {{"type", "string"}}},
              {"number", {{"type", "integer"}, {"minimum", 1}, {"maximum", 9}}},
              {"list", {{"type", "array"}}}}}};
  }
  McpServer server;
  int toServer[2], fromServer[2];
  std::thread thread;
};

TEST(McpServer, Initializes) {
  for (auto [asked, answered] : {std::pair("2025-11-25", "2025-11-25"),
                                 {"2025-06-18", "2025-06-18"},
                                 {"2024-01-01", "2025-11-25"},
                                 {"", "2025-11-25"}}) {
    Session session;
    const json result = session.ask(1, "initialize", {{"protocolVersion", asked}})["result"];
    EXPECT_EQ(result["protocolVersion"], answered);
    EXPECT_EQ(result["instructions"], "read me");
    EXPECT_EQ(result["serverInfo"]["name"], "test");
  }
}

TEST(McpServer, NeedsNoHandshakeWhereEachRequestNamesItsRevision) {
  Session session;
  const json meta = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"}};
  const json found = session.ask(1, "server/discover", {{"_meta", meta}})["result"];
  EXPECT_EQ(found["supportedVersions"], json({"2026-07-28", "2025-11-25", "2025-06-18"}));
  EXPECT_EQ(found["instructions"], "read me");
  const json list = session.ask(2, "tools/list", {{"_meta", meta}})["result"];
  EXPECT_EQ(list["tools"].size(), 2u);
  EXPECT_EQ(list["resultType"], "complete");
  EXPECT_EQ(list["cacheScope"], "private");
  const json echoed =
      session.ask(3, "tools/call", {{"name", "echo"}, {"arguments", {{"text", "x"}}}, {"_meta", meta}})["result"];
  EXPECT_EQ(echoed["structuredContent"]["text"], "x");
  EXPECT_EQ(echoed["resultType"], "complete");
  const json refused =
      session.ask(4, "tools/list", {{"_meta", {{"io.modelcontextprotocol/protocolVersion", "2031-01-01"}}}})["error"];
  EXPECT_EQ(refused["code"], -32022);
  EXPECT_EQ(refused["data"]["requested"], "2031-01-01");
}

TEST(McpServer, AnswersWithTheErrorsOfJsonRpc) {
  Session session;
  EXPECT_EQ(session.ask(1, "tools/list")["error"]["code"], -32600); // before initialize
  EXPECT_EQ(session.ask(2, "ping")["result"], json::object());
  session.ask(3, "initialize");
  EXPECT_EQ(session.ask("four", "nothing")["error"]["code"], -32601);
  EXPECT_EQ(session.ask(5, "tools/call", {{"name", "nothing"}})["error"]["code"], -32602);
  EXPECT_EQ(session.ask(6, "resources/read", {{"uri", "test://two"}})["error"]["code"], -32002);
  EXPECT_EQ(session.ask(7, "resources/read", {{"uri", "test://one"}})["result"]["contents"][0]["text"], "1");
  struct {
    const char *line;
    int code;
  } const lines[] = {{"{", -32700},
                     {"[]", -32600},
                     {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600},
                     {"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}", -32600},
                     {"{\"id\":1,\"method\":\"ping\"}", -32600}};
  for (const auto &line : lines) {
    session.write(line.line);
    const json answer = session.read();
    EXPECT_EQ(answer["error"]["code"], line.code) << line.line;
    EXPECT_TRUE(answer["id"].is_null()) << line.line;
  }
  session.write(std::string(5000, 'x'));
  EXPECT_EQ(session.read()["error"]["message"], "the message is too long");
  session.write(""); // no message
  session.send({{"method", "notifications/whatever"}});
  EXPECT_EQ(session.ask(8, "ping")["id"], 8);
}

TEST(McpServer, ChecksArguments) {
  struct {
    json arguments;
    const char *problem;
  } const cases[] = {{{{"text", "x"}, {"number", 3}}, ""},
                     {{{"text", 1}}, "argument 'text' must be of type string"},
                     {{{"number", 0}}, "argument 'number' must be at least 1"},
                     {{{"number", 10}}, "argument 'number' must be at most 9"},
                     {{{"number", 1.5}}, "argument 'number' must be of type integer"},
                     {{{"list", {"a", 1}}}, "argument 'list' must be of type array of strings"},
                     {{{"other", "x"}}, "there is no argument 'other'"},
                     {json::array(), "the arguments are no object"}};
  Session session;
  session.ask(1, "initialize");
  int id = 1;
  for (const auto &c : cases) {
    session.call(++id, "echo", c.arguments);
    const json result = session.read()["result"];
    EXPECT_EQ(result["isError"], *c.problem != 0) << c.arguments;
    EXPECT_EQ(result["structuredContent"].value("error", ""), c.problem) << c.arguments;
  }
}

TEST(McpServer, CallsRunBesideEachOther) {
  Session session;
  session.ask(1, "initialize");
  session.call(2, "hang");
  const json progress = session.read();
  EXPECT_EQ(progress["method"], "notifications/progress");
  EXPECT_EQ(progress["params"]["progressToken"], "t");
  session.call(3, "echo", {{"text", "meanwhile"}});
  EXPECT_EQ(session.read()["result"]["structuredContent"]["text"], "meanwhile");
  session.call(4, "hang");
  EXPECT_EQ(session.read()["method"], "notifications/progress");
  EXPECT_EQ(session.ask(5, "tools/call", {{"name", "echo"}})["error"]["message"], "too many calls at the same time");
  // Nobody answers what was cancelled.
  session.send({{"method", "notifications/cancelled"}, {"params", {{"requestId", 2}}}});
  session.send({{"method", "notifications/cancelled"}, {"params", {{"requestId", 77}}}});
  EXPECT_EQ(session.ask(6, "ping")["id"], 6);
  session.finish(); // ends the other one
  EXPECT_TRUE(session.read().is_null());
}

TEST(Jobs, AnswerWithAHandleWhileTheyRun) {
  ToolCall call(nullptr);
  std::atomic<bool> mayEnd{false};
  Jobs jobs;
  const ToolAnswer running = jobs.run("work", 0.01, call, [&](Job &job) {
    job.tell("half", {{"known", 1}});
    while (!mayEnd && !job.cancelled())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return ToolAnswer{{{"done", true}}, false};
  });
  EXPECT_EQ(running.content["status"], "running");
  const std::string handle = running.content["handle"];
  const ToolAnswer still = jobs.wait(handle, 0.1, call);
  EXPECT_EQ(still.content["known"], 1);
  EXPECT_EQ(still.content["stage"], "half");
  EXPECT_EQ(jobs.running(), 1u);
  mayEnd = true;
  EXPECT_EQ(jobs.wait(handle, 10, call).content["done"], true);
  EXPECT_EQ(jobs.wait(handle, 0, call).content["done"], true); // again
  EXPECT_EQ(jobs.cancel(handle).content["status"], "ended before");
  EXPECT_TRUE(jobs.wait("work-7", 0, call).isError);
}

TEST(Jobs, EndWhenTheyAreCancelled) {
  ToolCall call(nullptr);
  Jobs jobs;
  auto untilCancelled = [](Job &job) {
    while (!job.cancelled())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return refusal("cancelled");
  };
  const std::string handle = jobs.run("work", 0, call, untilCancelled).content["handle"];
  EXPECT_EQ(jobs.cancel(handle).content["status"], "cancelled");
  EXPECT_TRUE(jobs.wait(handle, 10, call).isError);
  ToolCall gone(nullptr);
  gone.cancel(); // whoever asked does not wait: nobody wants it
  jobs.run("work", 10, gone, untilCancelled);
  jobs.run("work", 0, call, untilCancelled); // ends with its Jobs
}

} // namespace
