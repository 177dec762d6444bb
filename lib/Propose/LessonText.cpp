//===- LessonText.cpp - lessons for a language model's prompt -------------===//
#include "optiml/Propose/LessonText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>

using namespace optiml;

static std::string effect(const Lesson &l) {
  std::string text;
  if (l.weight > l.rejected)
    text = llvm::formatv("{0:f2} times {1}", std::exp2(std::abs(l.gain)), l.gain >= 0 ? "faster" : "slower").str();
  std::string why = llvm::join(llvm::make_first_range(l.reasons), ", ");
  if (l.rejected > 0)
    text += std::string(text.empty() ? "" : "; ") + "rejected" + (why.empty() ? "" : " (" + why + ")");
  return text;
}

static std::string lessonLine(const Lesson &l, double similarity) {
  return llvm::formatv("- {0}[{1}]{2} against {3}: {4} ({5:f1} evaluations, similarity {6:f2})\n", l.transform, l.role,
                       paramsText(l.params), l.bottleneck.empty() ? "an unknown bottleneck" : l.bottleneck, effect(l),
                       l.weight, similarity)
      .str();
}

static std::string recipeLine(const LearntLine &learnt, double similarity) {
  std::string steps;
  for (const OpeningStep &step : learnt.line.steps)
    steps += (steps.empty() ? "" : ";") + step.transform + "[" + step.siteGlob + "]" +
             (step.preferences.empty() ? "" : paramsText(step.preferences.front()));
  return llvm::formatv("- recipe, {0:f2} times faster (similarity {1:f2}): {2}\n", learnt.speedup, similarity, steps)
      .str();
}

std::string optiml::lessonText(const LearntMemory &memory, const std::string &kernel, const std::string &bottleneck,
                               unsigned count, size_t maxCharacters) {
  struct Ranked {
    double rank;
    std::string line;
  };
  std::vector<Ranked> lessons, recipes;
  for (const LearntMemory::Match &match : memory.similar(kernel)) {
    for (const LearntLine &line : match.memory->lines)
      recipes.push_back({match.similarity * std::log2(1 + line.speedup), recipeLine(line, match.similarity)});
    for (const Lesson &l : match.memory->lessons) {
      double confidence = l.weight / (l.weight + 2);
      double size = std::max(std::abs(l.gain), l.weight > 0 ? l.rejected / l.weight : 0);
      double rank = match.similarity * confidence * size * (l.bottleneck == bottleneck ? 1 : 0.3);
      if (rank > 0.01)
        lessons.push_back({rank, lessonLine(l, match.similarity)});
    }
  }
  auto byRank = [](const Ranked &a, const Ranked &b) { return a.rank != b.rank ? a.rank > b.rank : a.line < b.line; };
  std::sort(recipes.begin(), recipes.end(), byRank);
  std::sort(lessons.begin(), lessons.end(), byRank);
  recipes.resize(std::min<size_t>(recipes.size(), 2));
  lessons.resize(std::min<size_t>(lessons.size(), count));
  std::string text;
  for (const auto *list : {&recipes, &lessons})
    for (const Ranked &entry : *list)
      if (text.size() + entry.line.size() <= maxCharacters)
        text += entry.line;
  return text;
}
