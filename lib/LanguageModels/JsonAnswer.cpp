//===- JsonAnswer.cpp - JSON out of what a model wrote --------------------===//
#include "optiml/LanguageModels/JsonAnswer.h"
#include "optiml/Support/Error.h"
#include <algorithm>
#include <optional>

using namespace optiml;
using nlohmann::json;

llvm::Expected<json> optiml::parseJsonWithin(llvm::StringRef text, const JsonLimits &limits) {
  if (text.size() > limits.bytes)
    return makeError("it is longer than {0} bytes", limits.bytes);
  bool tooDeep = false;
  // Values below the limit are never built, so that nothing walks a tree of unbounded depth.
  auto shallow = [&](int depth, json::parse_event_t event, json &) {
    bool opens = event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && depth >= int(limits.depth))
      tooDeep = true;
    return !tooDeep;
  };
  json value = json::parse(text.begin(), text.end(), shallow, /*allow_exceptions=*/false);
  if (tooDeep)
    return makeError("it is nested deeper than {0} levels", limits.depth);
  if (value.is_discarded())
    return makeError("it is no JSON");
  return value;
}

namespace {

/// The first object or array of `text` from `start` on, copied without commas that stand before a closing bracket.
struct Bracketed {
  bool closed = false;
  size_t end = 0; ///< behind it
  std::string copy;
};

Bracketed readBracketed(llvm::StringRef text, size_t start) {
  Bracketed result;
  std::string open;
  bool inString = false;
  for (size_t i = start; i < text.size(); ++i) {
    char c = text[i];
    result.copy += c;
    if (inString) {
      if (c == '\\' && i + 1 < text.size())
        result.copy += text[++i];
      else if (c == '"')
        inString = false;
      continue;
    }
    if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      open += c;
    } else if (c == '}' || c == ']') {
      if (open.empty() || open.back() != (c == '}' ? '{' : '['))
        return result; // brackets of something else
      result.copy.pop_back();
      size_t last = result.copy.find_last_not_of(" \t\r\n");
      if (last != std::string::npos && result.copy[last] == ',')
        result.copy.erase(last);
      result.copy += c;
      open.pop_back();
      if (open.empty()) {
        result.closed = true;
        result.end = i + 1;
        return result;
      }
    }
  }
  result.end = text.size();
  return result;
}

bool isListOfScalars(const json &value) {
  return value.is_array() && std::none_of(value.begin(), value.end(), [](const json &e) { return e.is_structured(); });
}

/// Whether an open bracket is that of an object or a list, rather than one in prose.
bool beginsLikeJson(llvm::StringRef text) {
  llvm::StringRef inside = text.drop_front().ltrim();
  return inside.empty() || inside.front() == '"' || (text.front() == '[' && inside.find_first_of("{[") == 0);
}

} // namespace

llvm::Expected<json> optiml::extractJson(llvm::StringRef text, const JsonLimits &limits) {
  if (text.size() > limits.bytes)
    return makeError("the answer is longer than {0} bytes", limits.bytes);
  bool cutOff = false;
  std::string why;
  // Each attempt may read the text to its end: their number is bounded, not only the text's length.
  constexpr unsigned mostAttempts = 16;
  std::optional<json> list; // of plain values: such brackets also stand in prose ("see [1]")
  auto firstIn = [&](llvm::StringRef part) -> std::optional<json> {
    size_t at = part.find_first_of("{[");
    for (unsigned attempt = 0; at != llvm::StringRef::npos && attempt < mostAttempts; ++attempt) {
      Bracketed found = readBracketed(part, at);
      size_t next = at + 1;
      if (found.closed) {
        llvm::Expected<json> value = parseJsonWithin(found.copy, limits);
        if (!value) {
          why = llvm::toString(value.takeError());
          if (why.find("nested") != std::string::npos)
            return std::nullopt;
        } else if (isListOfScalars(*value)) {
          if (!list)
            list = std::move(*value);
          next = found.end;
        } else {
          return std::move(*value);
        }
      } else if (found.end == part.size() && beginsLikeJson(part.substr(at))) {
        cutOff = true; // and what is whole inside of it is not the answer
        return std::nullopt;
      }
      at = part.find_first_of("{[", next);
    }
    return std::nullopt;
  };
  // A fence before the prose around it: prose may have brackets of its own.
  if (!text.trim().starts_with("{") && !text.trim().starts_with("["))
    for (size_t fence = text.find("```"), tried = 0; fence != llvm::StringRef::npos && tried < 8; ++tried) {
      size_t begin = fence + 3, end = text.find("```", begin);
      if (auto value = firstIn(text.slice(begin, end)))
        return std::move(*value);
      if (list)
        return std::move(*list);
      fence = end == llvm::StringRef::npos ? end : text.find("```", end + 3);
    }
  if (!cutOff)
    if (auto value = firstIn(text))
      return std::move(*value);
  if (cutOff)
    return makeError("the answer's JSON is cut off or not closed");
  if (list)
    return std::move(*list);
  return makeError(why.empty() ? "the answer holds no JSON object or array"
                               : "the answer's JSON cannot be used: " + why);
}

std::string optiml::validUtf8(llvm::StringRef text) {
  // nlohmann/json knows what UTF-8 is: as a JSON string and back.
  std::string quoted = json(text.str()).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(quoted).get<std::string>();
}
