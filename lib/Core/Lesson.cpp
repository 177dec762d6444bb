//===- Lesson.cpp - what earlier searches learnt --------------------------===//
#include "optiml/Core/Lesson.h"
#include "optiml/Core/Hash.h"
#include "optiml/Core/JsonFields.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <tuple>

using namespace optiml;
using llvm::StringRef;
using nlohmann::json;

namespace {
// A memory that keeps to these bounds costs a search milliseconds.
constexpr size_t maxNumbers = 64, maxTokens = 2000, maxLessons = 2000, maxLines = 16, maxSteps = 64, maxParams = 16,
                 maxTrials = 500;
constexpr size_t maxText = 200;
constexpr double maxLog = 40; ///< of a gain in log2
} // namespace

std::string KernelFeatures::key() const {
  std::vector<std::string> parts(tokens);
  for (const auto &[name, value] : numbers)
    parts.push_back(llvm::formatv("{0}={1:f4}", name, value).str());
  return contentHash(parts);
}

static bool isNameChar(char c) { return llvm::isAlnum(c) || c == '_'; }

/// The part of `name` that does not come from the user, with '*' for the rest.
static std::string general(StringRef name, const std::set<std::string> &userNames) {
  if (userNames.count(name.str()))
    return "*";
  size_t longest = 0;
  for (const std::string &user : userNames)
    if (name.starts_with(user) && user.size() > longest &&
        (name[user.size()] == '_' || llvm::isDigit(name[user.size()])))
      longest = user.size();
  return longest ? "*" + name.drop_front(longest).str() : name.str();
}

std::string optiml::siteRole(StringRef site, StringRef kernel, const std::set<std::string> &userNames) {
  site.consume_front(kernel);
  std::string role;
  for (size_t i = 0; i < site.size();) {
    size_t end = i;
    while (end < site.size() && isNameChar(site[end]))
      ++end;
    if (end > i) {
      role += general(site.slice(i, end), userNames);
      i = end;
    } else {
      role += StringRef("/:+").contains(site[i]) ? site[i] : '*';
      ++i;
    }
  }
  return role;
}

static auto identity(const Lesson &l) { return std::tie(l.bottleneck, l.transform, l.role, l.params); }

static bool sameSteps(const OpeningLine &a, const OpeningLine &b) {
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [](const OpeningStep &x, const OpeningStep &y) {
                      return x.transform == y.transform && x.siteGlob == y.siteGlob && x.preferences == y.preferences;
                    });
}

KernelMemory optiml::merged(const KernelMemory &a, const KernelMemory &b) {
  KernelMemory result = a;
  result.time = std::max(a.time, b.time);
  for (const Lesson &lesson : b.lessons) {
    auto known = std::find_if(result.lessons.begin(), result.lessons.end(),
                              [&](const Lesson &l) { return identity(l) == identity(lesson); });
    if (known == result.lessons.end())
      result.lessons.push_back(lesson);
    else if (lesson.weight > known->weight)
      *known = lesson;
  }
  for (const LearntLine &line : b.lines)
    if (std::none_of(result.lines.begin(), result.lines.end(),
                     [&](const LearntLine &l) { return sameSteps(l.line, line.line); }))
      result.lines.push_back(line);
  if (b.trials.size() > result.trials.size()) // losses of two searches are measured against two bests
    result.trials = b.trials;
  std::sort(result.lessons.begin(), result.lessons.end(),
            [](const Lesson &x, const Lesson &y) { return identity(x) < identity(y); });
  std::sort(result.lines.begin(), result.lines.end(), [](const LearntLine &x, const LearntLine &y) {
    return x.speedup != y.speedup ? x.speedup > y.speedup : x.line.name < y.line.name;
  });
  result.lessons.resize(std::min(result.lessons.size(), maxLessons));
  result.lines.resize(std::min(result.lines.size(), maxLines));
  return result;
}

static json lineJson(const LearntLine &line) {
  json steps = json::array();
  for (const OpeningStep &step : line.line.steps)
    steps.push_back({{"transform", step.transform},
                     {"role", step.siteGlob},
                     {"params", step.preferences.empty() ? Params() : step.preferences.front()},
                     {"required", step.required}});
  return {{"speedup", line.speedup}, {"steps", steps}};
}

static json trialJson(const LearntTrial &trial) {
  json steps = json::array();
  for (const LearntTrial::Step &step : trial.steps)
    steps.push_back({{"transform", step.transform}, {"role", step.role}, {"params", step.params}});
  return {{"loss", trial.loss}, {"steps", steps}};
}

json optiml::toJson(const KernelMemory &memory) {
  json lessons = json::array(), lines = json::array(), trials = json::array();
  for (const Lesson &l : memory.lessons)
    lessons.push_back({{"bottleneck", l.bottleneck},
                       {"transform", l.transform},
                       {"role", l.role},
                       {"params", l.params},
                       {"weight", l.weight},
                       {"gain", l.gain},
                       {"rejected", l.rejected},
                       {"reasons", l.reasons}});
  for (const LearntLine &line : memory.lines)
    lines.push_back(lineJson(line));
  for (const LearntTrial &trial : memory.trials)
    trials.push_back(trialJson(trial));
  return {{"source", memory.source},
          {"gpu", memory.gpu},
          {"backend", memory.backend},
          {"bottleneck", memory.bottleneck},
          {"features", {{"numbers", memory.features.numbers}, {"tokens", memory.features.tokens}}},
          {"lessons", lessons},
          {"lines", lines},
          {"trials", trials},
          {"time", memory.time}};
}

namespace {

/// Reads the parts of a memory; the first mistake is remembered by the fields it is read through.
class MemoryReader {
public:
  /// A text of printable ASCII; `allowed` beyond letters and digits.
  static void word(JsonFields &in, const char *name, std::string &into, StringRef allowed) {
    in.text(name, into);
    if (into.size() > maxText)
      in.fail(std::string("'") + name + "' is longer than " + std::to_string(maxText) + " characters");
    for (char c : into)
      if (!llvm::isAlnum(c) && !allowed.contains(c)) {
        in.fail(std::string("'") + name + "' holds a character that is not allowed there");
        return;
      }
  }

  static void bounded(JsonFields &in, const char *name, double &into, double low, double high) {
    in.number(name, into);
    if (in.ok() && !(into >= low && into <= high))
      in.fail(llvm::formatv("'{0}' must be a number from {1:f0} to {2:f0}", name, low, high).str());
  }

  static bool fits(JsonFields &in, const char *name, const json &list, size_t most) {
    if (list.size() > most)
      in.fail(llvm::formatv("'{0}' has more than {1} entries", name, most).str());
    return in.ok();
  }

  static void params(JsonFields &in, Params &into) {
    const json &given = in.object("params");
    if (!fits(in, "params", given, maxParams))
      return;
    for (const auto &[name, value] : given.items()) {
      std::string text = value.is_string() ? value.get<std::string>() : "";
      bool good = !text.empty() && text.size() <= maxText && !name.empty() && name.size() <= maxText &&
                  std::all_of(text.begin(), text.end(), [](char c) { return isNameChar(c) || c == '-' || c == '.'; }) &&
                  std::all_of(name.begin(), name.end(), isNameChar);
      if (!good)
        return in.fail("'params' must hold short words");
      into[name] = text;
    }
  }

  static llvm::Expected<Lesson> lesson(const json &value) {
    Lesson l;
    JsonFields in(value, "a lesson");
    word(in, "bottleneck", l.bottleneck, "_-. ");
    word(in, "transform", l.transform, "-_");
    word(in, "role", l.role, "/:+*_");
    params(in, l.params);
    bounded(in, "weight", l.weight, 0, 1e6);
    bounded(in, "gain", l.gain, -maxLog, maxLog);
    bounded(in, "rejected", l.rejected, 0, l.weight);
    const json &reasons = in.object("reasons");
    if (fits(in, "reasons", reasons, maxParams))
      for (const auto &[name, count] : reasons.items()) {
        if (!verdictFromName(name) || !count.is_number())
          in.fail("'reasons' must give a weight for each verdict");
        else
          l.reasons[name] = count.get<double>();
      }
    if (llvm::Error e = in.take())
      return std::move(e);
    return l;
  }

  static llvm::Expected<LearntLine> line(const json &value) {
    LearntLine result;
    result.line.name = "from memory";
    JsonFields in(value, "a line");
    bounded(in, "speedup", result.speedup, 1e-6, 1e9);
    const json &steps = in.array("steps");
    if (fits(in, "steps", steps, maxSteps))
      for (const json &item : steps) {
        OpeningStep step;
        JsonFields s(item, "a step");
        word(s, "transform", step.transform, "-_");
        word(s, "role", step.siteGlob, "/:+*_");
        Params wanted;
        params(s, wanted);
        if (!wanted.empty())
          step.preferences.push_back(std::move(wanted));
        s.boolean("required", step.required);
        if (llvm::Error e = s.take())
          return std::move(e);
        result.line.steps.push_back(std::move(step));
      }
    if (llvm::Error e = in.take())
      return std::move(e);
    return result;
  }

  static llvm::Expected<LearntTrial> trial(const json &value) {
    LearntTrial result;
    JsonFields in(value, "a trial");
    bounded(in, "loss", result.loss, -maxLog, maxLog);
    const json &steps = in.array("steps");
    if (fits(in, "steps", steps, maxSteps))
      for (const json &item : steps) {
        LearntTrial::Step step;
        JsonFields s(item, "a step");
        word(s, "transform", step.transform, "-_");
        word(s, "role", step.role, "/:+*_");
        params(s, step.params);
        if (llvm::Error e = s.take())
          return std::move(e);
        result.steps.push_back(std::move(step));
      }
    if (llvm::Error e = in.take())
      return std::move(e);
    return result;
  }

  static llvm::Error features(const json &value, KernelFeatures &into) {
    JsonFields in(value, "'features'");
    const json &numbers = in.object("numbers");
    if (fits(in, "numbers", numbers, maxNumbers))
      for (const auto &[name, number] : numbers.items()) {
        double x = number.is_number() ? number.get<double>() : NAN;
        if (name.size() > maxText || !(std::abs(x) <= 100))
          in.fail("'numbers' must hold numbers from -100 to 100");
        into.numbers[name] = x;
      }
    const json &tokens = in.array("tokens");
    if (fits(in, "tokens", tokens, maxTokens))
      for (const json &token : tokens) {
        if (!token.is_string() || token.get_ref<const std::string &>().size() > maxText)
          in.fail("'tokens' must hold short texts");
        else
          into.tokens.push_back(token.get<std::string>());
      }
    std::sort(into.tokens.begin(), into.tokens.end());
    return in.take();
  }
};

} // namespace

llvm::Expected<KernelMemory> optiml::kernelMemoryFromJson(const json &value) {
  KernelMemory memory;
  JsonFields in(value, "a memory");
  MemoryReader::word(in, "source", memory.source, "");
  MemoryReader::word(in, "gpu", memory.gpu, " _-./()");
  MemoryReader::word(in, "backend", memory.backend, " _-./()");
  MemoryReader::word(in, "bottleneck", memory.bottleneck, "_-. ");
  in.number("time", memory.time);
  const json &features = in.object("features"), &lessons = in.array("lessons"), &lines = in.array("lines");
  MemoryReader::fits(in, "lessons", lessons, maxLessons);
  MemoryReader::fits(in, "lines", lines, maxLines);
  const json &trials = in.array("trials", /*required=*/false); // memories of before there were any have none
  MemoryReader::fits(in, "trials", trials, maxTrials);
  if (llvm::Error e = in.take())
    return std::move(e);
  if (llvm::Error e = MemoryReader::features(features, memory.features))
    return std::move(e);
  for (const json &item : lessons) {
    auto lesson = MemoryReader::lesson(item);
    if (!lesson)
      return lesson.takeError();
    memory.lessons.push_back(std::move(*lesson));
  }
  for (const json &item : lines) {
    auto line = MemoryReader::line(item);
    if (!line)
      return line.takeError();
    memory.lines.push_back(std::move(*line));
  }
  for (const json &item : trials) {
    auto trial = MemoryReader::trial(item);
    if (!trial)
      return trial.takeError();
    memory.trials.push_back(std::move(*trial));
  }
  return memory;
}
