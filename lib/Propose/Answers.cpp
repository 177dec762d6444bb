//===- Answers.cpp - what a language model answered -----------------------===//
#include "optiml/Propose/Answers.h"
#include "PromptTexts.h"
#include "optiml/LanguageModels/JsonAnswer.h"
#include "optiml/Support/Error.h"
#include <algorithm>
#include <cmath>

using namespace optiml;
using llvm::StringRef;
using nlohmann::json;

llvm::Expected<json> optiml::findAnswer(StringRef text, StringRef key) {
  JsonLimits limits;
  limits.bytes = maxAnswerBytes;
  auto value = extractJson(text, limits);
  if (!value)
    return value.takeError();
  if (!value->is_object() || !value->contains(key.str()))
    return makeError("the answer is no JSON object with the field '{0}'", key);
  return value;
}

std::string optiml::oneLine(StringRef text, size_t bytes) {
  std::string result;
  for (char c : text) {
    bool control = (unsigned char)c < 0x20 || c == 0x7f;
    if (control && (result.empty() || result.back() == ' '))
      continue;
    if (result.size() >= bytes) {
      while (!result.empty() && ((unsigned char)result.back() & 0xc0) == 0x80) // whole characters
        result.pop_back();
      if (!result.empty() && ((unsigned char)result.back() & 0x80))
        result.pop_back();
      result += "...";
      break;
    }
    result += control ? ' ' : c;
  }
  return validUtf8(result);
}

static std::string textOf(const json &object, const char *name) {
  auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// A parameter as a word: models write 8 as well as "8".
static std::optional<std::string> wordOf(const json &value) {
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_boolean())
    return value.get<bool>() ? "1" : "0";
  if (value.is_number_unsigned())
    return std::to_string(value.get<uint64_t>());
  if (value.is_number_integer())
    return std::to_string(value.get<int64_t>());
  return std::nullopt;
}

static double confidenceOf(const json &object, double fallback) {
  auto it = object.find("confidence");
  if (it == object.end() || !it->is_number())
    return fallback;
  double value = it->get<double>();
  return std::isfinite(value) ? std::clamp(value, 0.0, 1.0) : fallback;
}

/// The feasible value that agrees with every parameter given; the error says why there is none.
static llvm::Expected<Params> legalParams(const ActionTemplate &legal, const Params &given) {
  for (const Params &value : legal.values)
    if (std::all_of(given.begin(), given.end(), [&](const auto &entry) {
          auto it = value.find(entry.first);
          return it != value.end() && it->second == entry.second;
        }))
      return value;
  return makeError("these parameters are not among the values that are feasible there");
}

static llvm::Expected<RankedAction> readAction(const json &entry, const std::vector<ActionTemplate> &legal) {
  if (!entry.is_object())
    return makeError("an action must be an object");
  RankedAction result;
  result.action.transform = textOf(entry, "transform");
  result.action.site = textOf(entry, "site");
  result.confidence = confidenceOf(entry, 0.5);
  result.reason = oneLine(textOf(entry, "reason"));
  Params given;
  if (auto params = entry.find("params"); params != entry.end() && params->is_object())
    for (const auto &[name, value] : params->items()) {
      std::optional<std::string> word = wordOf(value);
      if (!word)
        return makeError("parameter '{0}' must be a number or a word", oneLine(name, 40));
      given[name] = *word;
    }
  const ActionTemplate *found = nullptr;
  bool known = false;
  for (const ActionTemplate &candidate : legal) {
    known |= candidate.transform == result.action.transform;
    if (candidate.transform == result.action.transform && candidate.site == result.action.site)
      found = &candidate;
  }
  if (!found)
    return makeError(known ? "this transform is not legal at this site" : "no such transform is legal now");
  auto params = legalParams(*found, given);
  if (!params)
    return params.takeError();
  result.action.params = std::move(*params);
  return result;
}

llvm::Expected<ActionAnswer> optiml::readActions(StringRef text, const std::vector<ActionTemplate> &legal,
                                                 unsigned most) {
  auto object = findAnswer(text, "actions");
  if (!object)
    return object.takeError();
  const json &list = (*object)["actions"];
  if (!list.is_array())
    return makeError("'actions' must be an array");
  ActionAnswer answer;
  unsigned seen = 0;
  for (const json &entry : list) {
    if (++seen > most) {
      answer.dropped.push_back(llvm::formatv("{0} actions beyond the first {1}", list.size() - most, most));
      break;
    }
    auto action = readAction(entry, legal);
    if (!action) {
      std::string shown =
          entry.is_object() ? textOf(entry, "transform") + "[" + textOf(entry, "site") + "]" : "an action";
      if (entry.is_object() && entry.contains("params"))
        shown += entry["params"].dump(-1, ' ', true, json::error_handler_t::replace);
      answer.dropped.push_back(oneLine(shown, 160) + ": " + llvm::toString(action.takeError()));
      continue;
    }
    bool again = std::any_of(answer.actions.begin(), answer.actions.end(),
                             [&](const RankedAction &other) { return other.action == action->action; });
    if (!again)
      answer.actions.push_back(std::move(*action));
  }
  return answer;
}

const std::vector<std::string> &optiml::bottleneckNames() {
  static const std::vector<std::string> names = {"dram", "l2",     "l1",    "atomic",  "issue",   "fp32",
                                                 "fp64", "tensor", "int32", "special", "latency", "launch"};
  return names;
}

json optiml::diagnosisSchema() {
  json schema = answerSchema("diagnosis.json");
  schema["properties"]["bottleneck"]["enum"] = bottleneckNames();
  return schema;
}

llvm::Expected<Diagnosis> optiml::readDiagnosis(StringRef text) {
  auto object = findAnswer(text, "bottleneck");
  if (!object)
    return object.takeError();
  Diagnosis result;
  result.bottleneck = textOf(*object, "bottleneck");
  const std::vector<std::string> &names = bottleneckNames();
  if (std::find(names.begin(), names.end(), result.bottleneck) == names.end())
    return makeError("'{0}' is none of the bottlenecks that were named", oneLine(result.bottleneck, 40));
  result.confidence = confidenceOf(*object, 0.5);
  result.reason = oneLine(textOf(*object, "reason"));
  return result;
}
