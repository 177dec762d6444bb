//===- Prompt.cpp - what a language model is told -------------------------===//
#include "optiml/Propose/Prompt.h"
#include "optiml/LanguageModels/JsonAnswer.h"
#include "optiml/Propose/Answers.h"
#include "optiml/Propose/ExpertPolicy.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>
#include <set>

using namespace optiml;
using llvm::StringRef;

static constexpr unsigned bytesPerToken = 3;
static constexpr StringRef gapMark = "[left out: too long]\n";

unsigned optiml::estimateTokens(StringRef text) { return unsigned((text.size() + bytesPerToken - 1) / bytesPerToken); }

void Prompt::add(unsigned priority, std::string text) { pieces.push_back({priority, validUtf8(text)}); }

ChatRequest optiml::chatRequest(std::string purpose, std::string role, const Prompt &prompt, PromptLimits limits,
                                nlohmann::json schema) {
  ChatRequest request;
  request.purpose = std::move(purpose);
  request.messages = {{ChatMessage::Role::System, std::move(role)},
                      {ChatMessage::Role::User, prompt.fit(limits.prompt)}};
  request.schema = std::move(schema);
  request.maxTokens = limits.answer;
  return request;
}

/// The beginning of `text`, in whole characters.
static std::string beginning(StringRef text, size_t bytes) {
  text = text.take_front(bytes);
  size_t end = text.size();
  while (end > 0 && (text[end - 1] & 0xc0) == 0x80)
    --end;
  if (end > 0 && (text[end - 1] & 0x80)) // its last character may be cut
    --end;
  return text.take_front(end).str();
}

std::string Prompt::fit(unsigned tokens) const {
  size_t room = size_t(tokens) * bytesPerToken, used = 0;
  std::vector<std::string> texts;
  for (const Piece &piece : pieces) {
    texts.push_back(piece.text);
    used += piece.text.size();
  }
  std::vector<size_t> order(pieces.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return pieces[a].priority != pieces[b].priority ? pieces[a].priority > pieces[b].priority : a > b;
  });
  std::set<size_t> gone;
  auto total = [&] { // each run of gaps is one mark
    size_t bytes = used;
    for (size_t i : gone)
      bytes += gone.count(i - 1) && i > 0 ? 0 : gapMark.size();
    return bytes;
  };
  for (size_t i : order) {
    if (total() <= room || pieces[i].priority == 0)
      break;
    used -= texts[i].size();
    texts[i].clear();
    gone.insert(i);
  }
  // What must stay is too long by itself: the longest of it is cut, and the next, until it fits.
  for (size_t bytes = total(); bytes > room; bytes = total()) {
    std::string &longest =
        *std::max_element(texts.begin(), texts.end(), [](const auto &a, const auto &b) { return a.size() < b.size(); });
    if (longest.size() <= 3 * gapMark.size()) // a thousand short pieces: there is no sense in any of them
      break;
    size_t before = longest.size(), over = bytes - room + gapMark.size();
    std::string kept = beginning(longest, before - std::min(over, before / 2));
    if (StringRef(kept).ends_with(gapMark))
      kept.resize(kept.size() - gapMark.size());
    longest = kept + gapMark.str();
    used -= before - longest.size();
  }
  std::string result;
  for (size_t i = 0; i < texts.size(); ++i)
    result += gone.count(i) ? (i > 0 && gone.count(i - 1) ? "" : gapMark.str()) : texts[i];
  if (result.size() > room)
    result = beginning(result, room);
  return result;
}

const KernelFacts *SearchFacts::find(StringRef kernel) const {
  for (const KernelFacts &facts : kernels)
    if (facts.name == kernel)
      return &facts;
  return nullptr;
}

std::string optiml::quoted(StringRef what, StringRef text) {
  std::string mark = what.str();
  while (text.contains(mark))
    mark += "_";
  return "<" + mark + ">\n" + text.rtrim().str() + "\n</" + mark + ">\n";
}

static std::string seconds(double value) { return llvm::formatv("{0:f3} us", value * 1e6).str(); }

std::string optiml::measurementLine(const Measurement &m) {
  std::string line = seconds(m.time.seconds);
  if (m.time.seconds > 0 && m.time.baseline > 0)
    line += llvm::formatv(", {0:f3} times as fast as the original", m.time.baseline / m.time.seconds);
  if (!m.bottleneck.empty())
    line += ", limited by " + m.bottleneck;
  if (m.resources.registers)
    line += llvm::formatv(", {0} registers, {1} bytes of static shared memory, occupancy {2:f2}", m.resources.registers,
                          m.resources.staticShared, m.resources.occupancy);
  if (m.resources.spillStores + m.resources.spillLoads)
    line += llvm::formatv(", spills {0} bytes", m.resources.spillStores + m.resources.spillLoads);
  for (const std::string &guardrail : m.guardrails)
    line += "; " + oneLine(guardrail, 120);
  return line;
}

std::string optiml::counterLines(const Measurement &m) {
  std::string lines;
  for (const auto &[name, value] : m.counters)
    if (std::isfinite(value) && !StringRef(name).starts_with("verify.") && name != "cost")
      llvm::raw_string_ostream(lines) << "  " << name << " = " << llvm::format("%.4g", value) << "\n";
  return lines;
}

std::string optiml::withoutFolders(StringRef text) {
  std::string result;
  auto isPathChar = [](char c) { return llvm::isAlnum(c) || StringRef("._-+/@").contains(c); };
  for (size_t i = 0; i < text.size();) {
    bool starts = text[i] == '/' && (i == 0 || !isPathChar(text[i - 1])) && i + 1 < text.size() &&
                  isPathChar(text[i + 1]) && text[i + 1] != '/';
    if (!starts) {
      result += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && isPathChar(text[end]))
      ++end;
    StringRef path = text.substr(i, end - i);
    result += path.substr(path.rtrim('/').rfind('/') + 1);
    i = end;
  }
  return result;
}

static const KernelRewrite *rewriteOf(const SearchState &state, StringRef kernel) {
  for (const KernelRewrite &rewrite : state.variant->rewrites)
    if (rewrite.original == kernel)
      return &rewrite;
  return nullptr;
}

static std::string planText(const KernelRewrite &rewrite) {
  std::string text;
  for (const LaunchStep &step : rewrite.plan.steps)
    text += llvm::formatv(
        "launched as {0}: grid ({1}, {2}, {3}), block ({4}, {5}, {6}), {7} bytes of dynamic shared memory\n",
        step.kernel, step.grid[0].str(), step.grid[1].str(), step.grid[2].str(), step.block[0].str(),
        step.block[1].str(), step.block[2].str(), step.sharedBytes.str());
  for (const Condition &condition : rewrite.conditions)
    text += "only where " + condition.expression.str() + "\n";
  return text;
}

void optiml::addSituation(Prompt &prompt, const SearchFacts &facts, const SearchState &state) {
  prompt.add(1, "# GPU\n" + facts.gpu + "\n");
  if (!facts.rules.empty())
    prompt.add(0, "# Arithmetic\n" + facts.rules + "\n");
  for (const KernelFacts &kernel : facts.kernels) {
    prompt.add(0, "# Kernel " + kernel.name + "\n");
    prompt.add(2, "As the user wrote it:\n" + quoted("source", kernel.source));
    if (const KernelRewrite *rewrite = rewriteOf(state, kernel.name)) {
      prompt.add(1, "As it is now:\n" + quoted("current", rewrite->twinText));
      prompt.add(3, planText(*rewrite));
    }
    std::string launches;
    for (const std::string &launch : kernel.launches)
      launches += "- " + launch + "\n";
    prompt.add(2, "Its launches:\n" + launches);
    std::string lessons =
        facts.lessons ? facts.lessons(kernel.name, state.measurement ? state.measurement->bottleneck : "") : "";
    if (!lessons.empty())
      prompt.add(3, "What earlier searches found on kernels like it (* stands for names):\n" + lessons);
  }
  prompt.add(0,
             "# Where it stands\nApplied so far: " +
                 (state.variant->recipe.empty() ? "nothing, this is the original" : recipeText(state.variant->recipe)) +
                 "\n");
  if (const Measurement *m = state.measurement) {
    prompt.add(1, std::string("Time (") + (m->time.predicted ? "predicted" : "measured") + "): " + measurementLine(*m) +
                      "\n");
    prompt.add(3, "Counters:\n" + counterLines(*m));
  }
}

/// What a transform is good for, in general.
static std::string describe(const std::string &transform) {
  for (const ExpertRule &rule : expertRules())
    if (transform == rule.transform && rule.bottleneck.empty())
      return rule.reason.str();
  return "";
}

void optiml::addLegalActions(Prompt &prompt, const SearchState &state) {
  constexpr size_t shownValues = 12;
  prompt.add(
      0, "# Legal actions\nOne site a line: transform, site, feasible parameters (the expert's best guess first).\n");
  std::set<std::string> described;
  for (const ActionTemplate &legal : state.legal) {
    std::string line = "- " + legal.transform + " at " + legal.site + ":";
    for (size_t i = 0; i < std::min(shownValues, legal.values.size()); ++i)
      line += legal.values[i].empty() ? " {}" : " " + paramsText(legal.values[i]);
    if (legal.values.size() > shownValues)
      line += llvm::formatv(" and {0} more", legal.values.size() - shownValues);
    if (std::string what = describe(legal.transform); !what.empty() && described.insert(legal.transform).second)
      line += "\n  " + legal.transform + ": " + what;
    prompt.add(1, line + "\n");
  }
}
