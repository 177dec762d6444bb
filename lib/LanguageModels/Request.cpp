//===- Request.cpp - requests as JSON, their hash and their size ----------===//
#include "Endpoint.h"
#include "optiml/Core/Hash.h"
#include "optiml/LanguageModels/JsonAnswer.h"

using namespace optiml;
using nlohmann::json;

static const char *roleName(ChatMessage::Role role) {
  switch (role) {
  case ChatMessage::Role::System: return "system";
  case ChatMessage::Role::User: return "user";
  case ChatMessage::Role::Assistant: return "assistant";
  }
  return "user";
}

json optiml::requestToJson(const ChatRequest &request) {
  json messages = json::array();
  for (const ChatMessage &message : request.messages)
    messages.push_back({{"role", roleName(message.role)}, {"content", validUtf8(message.text)}});
  json result = {
      {"messages", std::move(messages)}, {"maxTokens", request.maxTokens}, {"temperature", request.temperature}};
  if (!request.schema.is_null())
    result["schema"] = request.schema;
  return result;
}

std::string optiml::requestHash(const ChatRequest &request) { return contentHash(requestToJson(request).dump()); }

uint64_t optiml::estimatedTokens(size_t bytes) { return bytes / 3 + 1; }

uint64_t optiml::estimatedPromptTokens(const ChatRequest &request) {
  uint64_t tokens = request.schema.is_null() ? 0 : estimatedTokens(request.schema.dump().size());
  for (const ChatMessage &message : request.messages)
    tokens += estimatedTokens(message.text.size()) + 8; // what marks its beginning, role and end
  return tokens;
}

std::string optiml::textOf(const json &object, const char *name, const std::string &fallback) {
  auto it = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && it != object.end() && it->is_string() ? it->get<std::string>() : fallback;
}

uint64_t optiml::countOf(const json &object, const char *name) {
  constexpr uint64_t most = uint64_t(1) << 40; // a model may tell anything; sums must not overflow
  auto it = object.is_object() ? object.find(name) : object.end();
  bool usable = object.is_object() && it != object.end() && it->is_number_unsigned();
  return usable ? std::min(it->get<uint64_t>(), most) : 0;
}
