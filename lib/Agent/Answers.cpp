//===- Answers.cpp - what tools say ---------------------------------------===//
#include "Answers.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace optiml;
using namespace optiml::agent;
using nlohmann::json;

static constexpr size_t mostActions = 120, mostValues = 12, pageBytes = 20000, longestWhy = 4000;

static double rounded(double value) { // four digits say enough, and cost less to read
  if (value == 0 || !std::isfinite(value))
    return 0;
  const double unit = std::pow(10, 3 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * unit) / unit;
}

static double speedupOf(const Measurement &m, const Measurement &baseline) {
  return m.time.seconds > 0 ? baseline.time.seconds / m.time.seconds : 0;
}

Attempt optiml::agent::attemptOf(const Recipe &recipe, const Measurement &m, const Measurement &baseline) {
  const bool stands = m.correct() && m.guardrails.empty();
  return {recipeText(recipe), verdictName(m.verdict), m.correct() ? "" : m.why, stands ? speedupOf(m, baseline) : 0};
}

json optiml::agent::answerOf(const Measurement &m, const Measurement &baseline) {
  json answer = {{"verdict", verdictName(m.verdict)}};
  if (!m.correct()) {
    answer["why"] = m.why.substr(0, longestWhy);
    return answer;
  }
  answer["speedup"] = rounded(speedupOf(m, baseline));
  answer["microseconds"] = rounded(m.time.seconds * 1e6);
  answer["originalMicroseconds"] = rounded(baseline.time.seconds * 1e6);
  answer["times"] = m.time.predicted ? "predicted" : "measured";
  if (m.provisional)
    answer["provisional"] = "compared on the captured launches; submit verifies it on everything else";
  if (!m.bottleneck.empty())
    answer["limitedBy"] = m.bottleneck;
  if (auto share = m.counters.find("roofline"); share != m.counters.end())
    answer["shareOfRoofline"] = rounded(share->second);
  answer["registers"] = m.resources.registers;
  answer["staticSharedBytes"] = m.resources.staticShared;
  answer["spilledBytes"] = m.resources.spillStores + m.resources.spillLoads;
  answer["occupancy"] = rounded(m.resources.occupancy);
  if (!m.guardrails.empty())
    answer["against"] = m.guardrails;
  return answer;
}

json optiml::agent::answerOf(const VerifyReport &report, double speedup) {
  json answer = {{"verdict", verdictName(report.verdict)}, {"runs", report.runs}, {"inputs", report.launches}};
  if (!report.correct())
    answer["why"] = report.why.substr(0, longestWhy);
  for (const Finding &finding : report.findings)
    answer["findings"].push_back({{"what", finding.what}, {"inputs", finding.inputs}});
  if (!report.notes.empty())
    answer["notes"] = report.notes;
  if (speedup > 0)
    answer.update({{"speedup", rounded(speedup)}, {"times", "predicted"}});
  return answer;
}

json optiml::agent::profileOf(const Measurement &m, const Measurement &baseline) {
  json answer = answerOf(m, baseline), counters = json::object();
  for (const auto &[name, value] : m.counters) {
    if (llvm::StringRef(name).starts_with("cost."))
      continue;
    auto before = baseline.counters.find(name);
    counters[name] = {{"variant", rounded(value)},
                      {"original", before == baseline.counters.end() ? json() : json(rounded(before->second))}};
  }
  answer["counters"] = counters;
  answer["launches"] = json::array();
  for (size_t i = 0; i < m.time.perLaunch.size() && i < baseline.time.perLaunch.size(); ++i)
    answer["launches"].push_back({{"microseconds", rounded(m.time.perLaunch[i] * 1e6)},
                                  {"originalMicroseconds", rounded(baseline.time.perLaunch[i] * 1e6)}});
  return answer;
}

json optiml::agent::actionsOf(const SearchState &state, const std::string &filter) {
  json actions = json::array();
  size_t leftOut = 0;
  for (const ActionTemplate &action : state.legal) {
    const std::string name = action.transform + "[" + action.site + "]";
    if (name.find(filter) == std::string::npos)
      continue;
    if (actions.size() == mostActions) {
      ++leftOut;
      continue;
    }
    json values = json::array();
    for (const Params &params : action.values)
      if (!params.empty() && values.size() < mostValues)
        values.push_back(paramsText(params));
    json one = {{"action", name}};
    if (!values.empty())
      one["values"] = values;
    if (action.values.size() > mostValues)
      one["moreValues"] = action.values.size() - mostValues;
    actions.push_back(one);
  }
  json answer = {{"actions", actions}};
  if (leftOut)
    answer["leftOut"] = leftOut;
  return answer;
}

json optiml::agent::rewritesOf(const Variant &variant) {
  json kernels = json::array();
  for (const KernelRewrite &rewrite : variant.rewrites) {
    json conditions = json::array(), steps = json::array();
    for (const Condition &condition : rewrite.conditions)
      conditions.push_back({{"holds", condition.expression.str()}, {"because", condition.why}});
    for (const LaunchStep &step : rewrite.plan.steps)
      steps.push_back({{"kernel", step.kernel},
                       {"grid", {step.grid[0].str(), step.grid[1].str(), step.grid[2].str()}},
                       {"block", {step.block[0].str(), step.block[1].str(), step.block[2].str()}},
                       {"sharedBytes", step.sharedBytes.str()}});
    kernels.push_back({{"kernel", rewrite.original},
                       {"text", rewrite.twinText},
                       {"launches", steps},
                       {"runsWhere", conditions},
                       {"onlyTested", rewrite.testedOnly}});
  }
  return kernels;
}

json optiml::agent::pageOf(const std::string &text, uint64_t offset) {
  json page = {{"text", offset < text.size() ? text.substr(offset, pageBytes) : ""}, {"bytes", text.size()}};
  if (offset + pageBytes < text.size())
    page["nextOffset"] = offset + pageBytes;
  return page;
}

json optiml::agent::historyOf(const Workspace &workspace, size_t last) {
  const std::vector<Attempt> attempts = workspace.attempts();
  json list = json::array();
  const Attempt *best = nullptr;
  for (size_t i = 0; i < attempts.size(); ++i) {
    const Attempt &a = attempts[i];
    if (!best || a.speedup > best->speedup)
      best = &a;
    if (i + last < attempts.size())
      continue;
    json one = {{"number", i + 1}, {"recipe", a.recipe}, {"verdict", a.verdict}};
    if (a.speedup > 0)
      one["speedup"] = rounded(a.speedup);
    if (!a.why.empty())
      one["why"] = a.why.substr(0, 300);
    list.push_back(one);
  }
  json answer = {{"evaluations", attempts.size()}, {"evaluationsLeft", workspace.left()}, {"last", list}};
  if (best && best->speedup > 0)
    answer["best"] = {{"recipe", best->recipe}, {"speedup", rounded(best->speedup)}};
  return answer;
}
