//===- LaunchPlan.cpp - launch plans as JSON ------------------------------===//
#include "optiml/Core/LaunchPlan.h"
#include "optiml/Core/JsonFields.h"

using namespace optiml;
using nlohmann::json;

static json dimensionsJson(const std::array<IntExpr, 3> &dimensions) {
  return {dimensions[0].str(), dimensions[1].str(), dimensions[2].str()};
}

json optiml::toJson(const LaunchPlan &plan) {
  json scratch = json::array(), steps = json::array();
  for (const ScratchBuffer &buffer : plan.scratch) {
    scratch.push_back({{"name", buffer.name},
                       {"elementType", buffer.elementType},
                       {"elements", buffer.elements.str()},
                       {"zeroed", buffer.zeroed}});
    if (buffer.elementBytes)
      scratch.back()["elementBytes"] = buffer.elementBytes;
  }
  for (const LaunchStep &step : plan.steps)
    steps.push_back({{"kernel", step.kernel},
                     {"grid", dimensionsJson(step.grid)},
                     {"block", dimensionsJson(step.block)},
                     {"sharedBytes", step.sharedBytes.str()},
                     {"arguments", step.arguments}});
  return {{"scratch", scratch}, {"steps", steps}};
}

/// Reads an expression written as text; the mistake lands in `in`.
static void readExpression(JsonFields &in, const json &value, IntExpr &into) {
  if (!value.is_string())
    return in.fail("an expression must be a string");
  auto parsed = IntExpr::parse(value.get_ref<const std::string &>());
  if (parsed)
    into = *parsed;
  else
    in.fail(llvm::toString(parsed.takeError()));
}

static void readExpression(JsonFields &in, const char *name, IntExpr &into) {
  std::string text;
  in.text(name, text);
  if (in.ok())
    readExpression(in, json(text), into);
}

static void readDimensions(JsonFields &in, const char *name, std::array<IntExpr, 3> &into) {
  const json &values = in.array(name);
  if (values.size() != 3)
    return in.fail(std::string("a launch step's '") + name + "' must hold three expressions");
  for (unsigned i = 0; i < 3; ++i)
    readExpression(in, values[i], into[i]);
}

llvm::Expected<LaunchPlan> optiml::launchPlanFromJson(const json &value) {
  LaunchPlan plan;
  JsonFields in(value, "a launch plan");
  in.list("scratch", "a scratch buffer", plan.scratch, [](JsonFields &fields, ScratchBuffer &buffer) {
    fields.text("name", buffer.name);
    fields.text("elementType", buffer.elementType);
    readExpression(fields, "elements", buffer.elements);
    fields.boolean("zeroed", buffer.zeroed);
    fields.number("elementBytes", buffer.elementBytes, /*required=*/false);
  });
  in.list("steps", "a launch step", plan.steps, [](JsonFields &fields, LaunchStep &step) {
    fields.text("kernel", step.kernel);
    readDimensions(fields, "grid", step.grid);
    readDimensions(fields, "block", step.block);
    readExpression(fields, "sharedBytes", step.sharedBytes);
    fields.texts("arguments", step.arguments);
  });
  if (llvm::Error error = in.take())
    return std::move(error);
  return plan;
}
