//===- HttpProtocol.cpp - requests and answers of endpoints ---------------===//
#include "HttpProtocol.h"
#include "optiml/LanguageModels/JsonAnswer.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using nlohmann::json;

static std::string schemaInWords(const json &schema) {
  return "Answer with one JSON value that fits this JSON schema, and with nothing else:\n" + schema.dump();
}

static json openAiBody(const HttpTarget &target, const ChatRequest &request, const ServerLimits &limits) {
  json plain = requestToJson(request);
  json body = {{"messages", plain["messages"]}};
  if (!target.model.empty())
    body["model"] = target.model;
  body[limits.completionTokensName ? "max_completion_tokens" : "max_tokens"] = request.maxTokens;
  if (!limits.noTemperature)
    body["temperature"] = request.temperature;
  if (request.schema.is_null())
    return body;
  if (limits.noSchema)
    body["messages"].push_back({{"role", "system"}, {"content", schemaInWords(request.schema)}});
  else
    body["response_format"] = {{"type", "json_schema"},
                               {"json_schema", {{"name", "answer"}, {"schema", request.schema}}}};
  return body;
}

static json anthropicBody(const HttpTarget &target, const ChatRequest &request, const ServerLimits &limits) {
  json messages = json::array();
  std::string system;
  for (const ChatMessage &message : request.messages) {
    std::string text = validUtf8(message.text);
    if (message.role == ChatMessage::Role::System)
      system += (system.empty() ? "" : "\n\n") + text;
    else
      messages.push_back({{"role", message.role == ChatMessage::Role::User ? "user" : "assistant"}, {"content", text}});
  }
  json body = {{"model", target.model}, {"max_tokens", request.maxTokens}};
  if (!limits.noTemperature)
    body["temperature"] = request.temperature;
  // Constrained output is a tool that must be called; tools take objects only.
  bool asTool = !request.schema.is_null() && !limits.noSchema && textOf(request.schema, "type") == "object";
  if (asTool) {
    body["tools"] = {{{"name", "answer"}, {"description", "Gives the answer."}, {"input_schema", request.schema}}};
    body["tool_choice"] = {{"type", "tool"}, {"name", "answer"}};
  } else if (!request.schema.is_null()) {
    system += (system.empty() ? "" : "\n\n") + schemaInWords(request.schema);
  }
  if (!system.empty())
    body["system"] = system;
  body["messages"] = std::move(messages);
  return body;
}

json optiml::httpBody(const HttpTarget &target, const ChatRequest &request, const ServerLimits &limits) {
  return target.protocol == HttpProtocol::OpenAI ? openAiBody(target, request, limits)
                                                 : anthropicBody(target, request, limits);
}

/// A member that is an object or an array; null otherwise.
static const json &memberOf(const json &object, const char *name) {
  static const json none;
  auto it = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && it != object.end() ? *it : none;
}

/// Text as a string, or in pieces: [{"type": "text", "text": "…"}].
static std::string joinedText(const json &content) {
  if (content.is_string())
    return content.get<std::string>();
  std::string text;
  if (content.is_array())
    for (const json &part : content)
      text += textOf(part, "text");
  return text;
}

static llvm::Expected<ChatReply> readOpenAi(const json &body) {
  const json &choices = memberOf(body, "choices");
  if (!choices.is_array() || choices.empty())
    return makeError("its answer has no 'choices'; is this an OpenAI-compatible chat endpoint?");
  const json &message = memberOf(choices[0], "message");
  ChatReply reply;
  reply.text = joinedText(memberOf(message, "content"));
  std::string finish = textOf(choices[0], "finish_reason"), refusal = textOf(message, "refusal");
  reply.stop = finish == "length" ? "length" : finish == "content_filter" || !refusal.empty() ? "refusal" : "end";
  if (reply.text.empty())
    reply.text = refusal;
  reply.promptTokens = countOf(memberOf(body, "usage"), "prompt_tokens");
  reply.completionTokens = countOf(memberOf(body, "usage"), "completion_tokens");
  return reply;
}

static llvm::Expected<ChatReply> readAnthropic(const json &body) {
  const json &content = memberOf(body, "content");
  if (!content.is_array())
    return makeError("its answer has no 'content'; is this Anthropic's messages endpoint?");
  ChatReply reply;
  for (const json &block : content)
    if (textOf(block, "type") == "tool_use" && block.contains("input")) {
      reply.text = block["input"].dump();
      break;
    }
  if (reply.text.empty())
    reply.text = joinedText(content);
  std::string stop = textOf(body, "stop_reason");
  reply.stop = stop == "max_tokens" ? "length" : stop == "refusal" ? "refusal" : "end";
  reply.promptTokens = countOf(memberOf(body, "usage"), "input_tokens");
  reply.completionTokens = countOf(memberOf(body, "usage"), "output_tokens");
  return reply;
}

llvm::Expected<ChatReply> optiml::readHttpAnswer(HttpProtocol protocol, llvm::StringRef text) {
  llvm::Expected<json> body = parseJsonWithin(text, {size_t(8) << 20, 64});
  if (!body)
    return makeError("its answer cannot be read: {0}", llvm::toString(body.takeError()));
  return protocol == HttpProtocol::OpenAI ? readOpenAi(*body) : readAnthropic(*body);
}

std::string optiml::httpErrorText(llvm::StringRef text) {
  std::string said = text.str();
  if (auto body = parseJsonWithin(text)) {
    const json &error = memberOf(*body, "error");
    std::string message = error.is_string() ? error.get<std::string>() : textOf(error, "message");
    if (message.empty())
      message = textOf(*body, "message", textOf(*body, "detail"));
    if (!message.empty())
      said = message;
  } else {
    llvm::consumeError(body.takeError());
  }
  for (char &c : said)
    if (static_cast<unsigned char>(c) < ' ')
      c = ' ';
  return llvm::StringRef(said).trim().take_front(300).str();
}

bool optiml::adaptTo(llvm::StringRef body, const ChatRequest &request, ServerLimits &limits) {
  std::string said = body.lower();
  auto mentions = [&](const char *word) { return said.find(word) != std::string::npos; };
  bool *limit = nullptr;
  if (mentions("max_completion_tokens") && !limits.completionTokensName)
    limit = &limits.completionTokensName;
  else if (mentions("temperature") && !limits.noTemperature)
    limit = &limits.noTemperature;
  else if (!request.schema.is_null() && !limits.noSchema)
    limit = &limits.noSchema; // also where the server does not say what it minds
  if (limit)
    *limit = true;
  return limit;
}
