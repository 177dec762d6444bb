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

bool optiml::sameSteps(const OpeningLine &a, const OpeningLine &b) {
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

namespace optiml {
static void to_json(json &j, const OpeningStep &step) {
  j = {{"transform", step.transform},
       {"role", step.siteGlob},
       {"params", step.preferences.empty() ? Params() : step.preferences.front()},
       {"required", step.required}};
}
static void to_json(json &j, const LearntLine &line) { j = {{"speedup", line.speedup}, {"steps", line.line.steps}}; }
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LearntTrial::Step, transform, role, params)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LearntTrial, loss, steps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Lesson, bottleneck, transform, role, params, weight, gain, rejected, reasons)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KernelFeatures, numbers, tokens)
} // namespace optiml

json optiml::toJson(const KernelMemory &memory) {
  return {{"source", memory.source},         {"gpu", memory.gpu},           {"backend", memory.backend},
          {"bottleneck", memory.bottleneck}, {"features", memory.features}, {"lessons", memory.lessons},
          {"lines", memory.lines},           {"trials", memory.trials},     {"time", memory.time}};
}

//===----------------------------------------------------------------------===//
// Reading: the first mistake is remembered by the fields it is read through.
//===----------------------------------------------------------------------===//

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

static void readLesson(JsonFields &in, Lesson &l) {
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
}

static void readLine(JsonFields &in, LearntLine &result) {
  result.line.name = "from memory";
  bounded(in, "speedup", result.speedup, 1e-6, 1e9);
  if (fits(in, "steps", in.array("steps"), maxSteps))
    in.list("steps", "a step", result.line.steps, [](JsonFields &s, OpeningStep &step) {
      word(s, "transform", step.transform, "-_");
      word(s, "role", step.siteGlob, "/:+*_");
      Params wanted;
      params(s, wanted);
      if (!wanted.empty())
        step.preferences.push_back(std::move(wanted));
      s.boolean("required", step.required);
    });
}

static void readTrial(JsonFields &in, LearntTrial &result) {
  bounded(in, "loss", result.loss, -maxLog, maxLog);
  if (fits(in, "steps", in.array("steps"), maxSteps))
    in.list("steps", "a step", result.steps, [](JsonFields &s, LearntTrial::Step &step) {
      word(s, "transform", step.transform, "-_");
      word(s, "role", step.role, "/:+*_");
      params(s, step.params);
    });
}

static void readFeatures(JsonFields &in, KernelFeatures &into) {
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
}

llvm::Expected<KernelMemory> optiml::kernelMemoryFromJson(const json &value) {
  KernelMemory memory;
  JsonFields in(value, "a memory");
  word(in, "source", memory.source, "");
  word(in, "gpu", memory.gpu, " _-./()");
  word(in, "backend", memory.backend, " _-./()");
  word(in, "bottleneck", memory.bottleneck, "_-. ");
  in.number("time", memory.time);
  fits(in, "lessons", in.array("lessons"), maxLessons);
  fits(in, "lines", in.array("lines"), maxLines);
  fits(in, "trials", in.array("trials", /*required=*/false), maxTrials); // memories of before there were any have none
  in.inside("features", "'features'", [&](JsonFields &features) { readFeatures(features, memory.features); });
  in.list("lessons", "a lesson", memory.lessons, readLesson);
  in.list("lines", "a line", memory.lines, readLine);
  in.list("trials", "a trial", memory.trials, readTrial, /*required=*/false);
  if (llvm::Error e = in.take())
    return std::move(e);
  return memory;
}
