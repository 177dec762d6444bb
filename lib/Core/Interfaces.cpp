//===- Interfaces.cpp - measurements as JSON, verdict names ---------------===//
#include "optiml/Core/Interfaces.h"
#include "optiml/Core/JsonFields.h"
#include <algorithm>
#include <cmath>
#include <utility>

using namespace optiml;
using nlohmann::json;

bool Measurement::isUsable() const {
  return (correct() || verdict == Verdict::Predicted) && time.seconds > 0 && std::isfinite(time.seconds) &&
         std::isfinite(reward);
}

Proposer::~Proposer() = default;
Evaluator::~Evaluator() = default;
EvaluationCache::~EvaluationCache() = default;
ActionSpace::~ActionSpace() = default;

static constexpr std::pair<Verdict, const char *> verdictNames[] = {
    {Verdict::Correct, "correct"},
    {Verdict::NotApplicable, "not-applicable"},
    {Verdict::CompileError, "compile-error"},
    {Verdict::RuntimeError, "runtime-error"},
    {Verdict::Timeout, "timeout"},
    {Verdict::OverLimit, "over-limit"},
    {Verdict::WrongResult, "wrong-result"},
    {Verdict::Untested, "untested"},
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

std::optional<double> optiml::launchSeconds(const Timing &time, const std::map<size_t, double> &launches) {
  double seconds = 0;
  for (const auto &[launch, weight] : launches) {
    if (launch >= time.perLaunch.size())
      return std::nullopt;
    seconds += weight * time.perLaunch[launch];
  }
  return seconds;
}

void Resources::add(const Resources &other) {
  registers = std::max(registers, other.registers);
  staticShared = std::max(staticShared, other.staticShared);
  spillStores += other.spillStores;
  spillLoads += other.spillLoads;
}

namespace optiml {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Timing, seconds, baseline, predicted, perLaunch)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resources, registers, staticShared, spillStores, spillLoads, occupancy)
} // namespace optiml

json optiml::toJson(const Measurement &m) {
  json value = {{"verdict", verdictName(m.verdict)},
                {"time", m.time},
                {"counters", m.counters},
                {"bottleneck", m.bottleneck},
                {"resources", m.resources},
                {"reward", m.reward},
                {"guardrails", m.guardrails},
                {"why", m.why},
                {"cost", m.cost}};
  if (m.provisional)
    value["provisional"] = true;
  return value;
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

  in.inside("time", "a measurement's time", [&](JsonFields &time) {
    time.number("seconds", m.time.seconds);
    time.number("baseline", m.time.baseline);
    time.boolean("predicted", m.time.predicted);
    for (const json &seconds : time.array("perLaunch"))
      m.time.perLaunch.push_back(numberOrNaN(seconds));
  });
  for (const auto &[name, number] : in.object("counters").items())
    m.counters[name] = numberOrNaN(number);
  in.text("bottleneck", m.bottleneck);
  in.inside("resources", "a measurement's resources", [&](JsonFields &resources) {
    resources.number("registers", m.resources.registers);
    resources.number("staticShared", m.resources.staticShared);
    resources.number("spillStores", m.resources.spillStores);
    resources.number("spillLoads", m.resources.spillLoads);
    resources.number("occupancy", m.resources.occupancy);
  });
  in.number("reward", m.reward);
  in.texts("guardrails", m.guardrails);
  in.text("why", m.why);
  in.number("cost", m.cost);
  in.boolean("provisional", m.provisional, /*required=*/false);
  if (llvm::Error error = in.take())
    return std::move(error);
  return m;
}
