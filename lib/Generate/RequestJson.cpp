//===- RequestJson.cpp - requests as JSON, and their schema ---------------===//
#include "optiml/Generate/Request.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Numbers.h"
#include "optiml/Support/Subprocess.h"
#include "llvm/ADT/STLExtras.h"
#include <nlohmann/json.hpp>

using namespace optiml;
using namespace optiml::gen;
using nlohmann::json;

static llvm::Expected<Options> readOptions(const json &value, const std::string &where) {
  Options result;
  if (!value.is_object())
    return makeError("{0}: want an object of options", where);
  for (const auto &[name, option] : value.items()) {
    if (option.is_string())
      result[name] = option.get<std::string>();
    else if (option.is_number())
      result[name] = shortestNumber(option.get<double>());
    else
      return makeError("{0}.{1}: want a number or a text", where, name);
  }
  return result;
}

static llvm::Expected<std::vector<StageRequest>> readStages(const json &value, const std::string &where) {
  std::vector<StageRequest> result;
  if (!value.is_array())
    return makeError("{0}: want a list of stages", where);
  for (const json &stage : value) {
    if (!stage.is_object() || !stage.contains("stage") || !stage["stage"].is_string())
      return makeError("{0}: a stage is an object with \"stage\" and \"options\"", where);
    for (const auto &[field, unused] : stage.items())
      if (field != "stage" && field != "options")
        return makeError("{0}: a stage has no field '{1}'", where, field);
    llvm::Expected<Options> options = readOptions(stage.value("options", json::object()), where + ".options");
    if (!options)
      return options.takeError();
    result.push_back({stage["stage"].get<std::string>(), std::move(*options)});
  }
  return result;
}

llvm::Expected<Request> optiml::gen::readRequest(const json &value) {
  if (!value.is_object())
    return makeError("a request is a JSON object");
  Request result;
  for (const auto &[field, content] : value.items()) {
    if (field == "operation" || field == "formula") {
      if (!content.is_string())
        return makeError("{0}: want a text", field);
      (field == "formula" ? result.formula : result.operation) = content.get<std::string>();
    } else if (field == "options") {
      if (llvm::Error error = readOptions(content, field).moveInto(result.options))
        return error;
    } else if (field == "before" || field == "after") {
      if (llvm::Error error = readStages(content, field).moveInto(field == "before" ? result.before : result.after))
        return error;
    } else {
      return makeError("a request has no field '{0}'", field);
    }
  }
  return result;
}

static json stagesAsJson(const std::vector<StageRequest> &stages) {
  json result = json::array();
  for (const StageRequest &stage : stages)
    result.push_back({{"stage", stage.stage}, {"options", stage.options}});
  return result;
}

json optiml::gen::toJson(const Request &request) {
  json result = json::object();
  (request.formula.empty() ? result["operation"] : result["formula"]) =
      request.formula.empty() ? request.operation : request.formula;
  result["options"] = request.options;
  if (!request.before.empty())
    result["before"] = stagesAsJson(request.before);
  if (!request.after.empty())
    result["after"] = stagesAsJson(request.after);
  return result;
}

//===----------------------------------------------------------------------===//
// The schema
//===----------------------------------------------------------------------===//

static json optionSchema(const Option &option) {
  switch (option.kind) {
  case Option::Kind::Type:
  case Option::Kind::Choice: return {{"enum", option.values}};
  case Option::Kind::Constant: return {{"type", "number"}};
  case Option::Kind::Size: return {{"type", "integer"}, {"minimum", option.least}, {"maximum", option.most}};
  }
  return {};
}

/// Nothing is asked for that a person would call a default.
static json optionsSchema(llvm::ArrayRef<Option> options) {
  json properties = json::object(), required = json::array();
  for (const Option &option : options) {
    properties[option.name] = optionSchema(option);
    if (option.required)
      required.push_back(option.name);
  }
  json result = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!required.empty())
    result["required"] = required;
  return result;
}

json optiml::gen::requestSchema(const Library &library) {
  json operations = json::array(), stages = json::array();
  json listOfStages = {{"type", "array"}, {"items", {{"$ref", "#/$defs/stage"}}}};
  for (const Operation &op : library.operations()) {
    if (!op.isPublic())
      continue;
    std::vector<Option> options = optionsOf(op, library);
    json properties = {{"operation", {{"const", op.name}}}, {"options", optionsSchema(options)}};
    if (op.fusesBefore || op.isStage)
      properties["before"] = listOfStages;
    if (op.fusesAfter || op.isStage)
      properties["after"] = listOfStages;
    json required = {"operation"};
    if (llvm::any_of(options, [](const Option &option) { return option.required; }))
      required.push_back("options");
    operations.push_back({{"title", op.title},
                          {"type", "object"},
                          {"properties", properties},
                          {"required", required},
                          {"additionalProperties", false}});
    if (!op.isStage)
      continue;
    llvm::erase_if(options, [](const Option &o) { return o.kind != Option::Kind::Constant; });
    stages.push_back({{"type", "object"},
                      {"properties", {{"stage", {{"const", op.name}}}, {"options", optionsSchema(options)}}},
                      {"required", {"stage"}},
                      {"additionalProperties", false}});
  }
  operations.push_back({{"title", "element-wise work by a formula"},
                        {"type", "object"},
                        {"properties",
                         {{"formula", {{"type", "string"}}},
                          {"options", {{"type", "object"}}},
                          {"before", listOfStages},
                          {"after", listOfStages}}},
                        {"required", {"formula"}},
                        {"additionalProperties", false}});
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", "a request of optiml-gen"},
          {"oneOf", operations},
          {"$defs", {{"stage", {{"oneOf", stages}}}}}};
}

//===----------------------------------------------------------------------===//
// The command line
//===----------------------------------------------------------------------===//

static void addStageFlags(const char *flag, const std::vector<StageRequest> &stages, std::vector<std::string> &argv) {
  for (const StageRequest &stage : stages) {
    std::string text = std::string(flag) + "=" + stage.stage;
    for (const auto &[name, value] : stage.options)
      text += "," + name + "=" + value;
    argv.push_back(text);
  }
}

std::string optiml::gen::commandLine(const Request &request) {
  std::vector<std::string> argv = {"optiml-gen"};
  argv.push_back(request.formula.empty() ? request.operation : "--formula=" + request.formula);
  for (const auto &[name, value] : request.options)
    argv.push_back("--" + name + "=" + value);
  addStageFlags("--before", request.before, argv);
  addStageFlags("--after", request.after, argv);
  return shellQuote(argv);
}
