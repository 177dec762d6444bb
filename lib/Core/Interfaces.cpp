//===- Interfaces.cpp - measurements as JSON, verdict names ---------------===//
#include "optiml/Core/Interfaces.h"
#include "optiml/Core/JsonFields.h"
#include <utility>

using namespace optiml;
using nlohmann::json;

Proposer::~Proposer() = default;
Evaluator::~Evaluator() = default;
EvaluationMemory::~EvaluationMemory() = default;
ActionSpace::~ActionSpace() = default;

static constexpr std::pair<Verdict, const char *> verdictNames[] = {
    {Verdict::Correct, "correct"},
    {Verdict::NotApplicable, "not-applicable"},
    {Verdict::CompileError, "compile-error"},
    {Verdict::RuntimeError, "runtime-error"},
    {Verdict::Timeout, "timeout"},
    {Verdict::OverLimit, "over-limit"},
    {Verdict::WrongResult, "wrong-result"},
    {Verdict::Predicted, "predicted"},
};

const char *optiml::verdictName(Verdict verdict) {
  for (const auto &[value, name] : verdictNames)
    if (value == verdict)
      return name;
  return "unknown";
}

std::optional<Verdict> optiml::verdictFromName(llvm::StringRef text) {
  for (const auto &[value, name] : verdictNames)
    if (text == name)
      return value;
  return std::nullopt;
}

json optiml::toJson(const Measurement &m) {
  return {{"verdict", verdictName(m.verdict)},
          {"time",
           {{"seconds", m.time.seconds},
            {"baseline", m.time.baseline},
            {"predicted", m.time.predicted},
            {"perLaunch", m.time.perLaunch}}},
          {"counters", m.counters},
          {"bottleneck", m.bottleneck},
          {"resources",
           {{"registers", m.resources.registers},
            {"staticShared", m.resources.staticShared},
            {"spillStores", m.resources.spillStores},
            {"spillLoads", m.resources.spillLoads},
            {"occupancy", m.resources.occupancy}}},
          {"reward", m.reward},
          {"guardrails", m.guardrails},
          {"why", m.why},
          {"cost", m.cost}};
}

static double numberOrNaN(const json &value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

llvm::Expected<Measurement> optiml::measurementFromJson(const json &value) {
  Measurement m;
  JsonFields in(value, "a measurement");
  std::string verdict;
  in.text("verdict", verdict);
  if (std::optional<Verdict> known = verdictFromName(verdict))
    m.verdict = *known;
  else
    in.fail("a measurement's verdict '" + verdict + "' is unknown");

  JsonFields time(in.object("time"), "a measurement's time");
  if (in.ok()) {
    time.number("seconds", m.time.seconds);
    time.number("baseline", m.time.baseline);
    time.boolean("predicted", m.time.predicted);
    for (const json &seconds : time.array("perLaunch"))
      m.time.perLaunch.push_back(numberOrNaN(seconds));
    if (llvm::Error error = time.take())
      return std::move(error);
  }
  for (const auto &[name, number] : in.object("counters").items())
    m.counters[name] = numberOrNaN(number);
  in.text("bottleneck", m.bottleneck);
  JsonFields resources(in.object("resources"), "a measurement's resources");
  if (in.ok()) {
    resources.number("registers", m.resources.registers);
    resources.number("staticShared", m.resources.staticShared);
    resources.number("spillStores", m.resources.spillStores);
    resources.number("spillLoads", m.resources.spillLoads);
    resources.number("occupancy", m.resources.occupancy);
    if (llvm::Error error = resources.take())
      return std::move(error);
  }
  in.number("reward", m.reward);
  for (const json &guardrail : in.array("guardrails")) {
    if (guardrail.is_string())
      m.guardrails.push_back(guardrail);
    else
      in.fail("a measurement's guardrails must be strings");
  }
  in.text("why", m.why);
  in.number("cost", m.cost);
  if (llvm::Error error = in.take())
    return std::move(error);
  return m;
}
