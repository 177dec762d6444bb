//===- Rewrites.cpp - rules that rewrite a request ------------------------===//
#include "Rewrites.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml::gen;
using llvm::StringRef;

/// The longest run of letters that every match has: outside of groups and sets, and not optional. `groups`: what
/// is inside the groups that every match has; `runs`: all such runs.
static std::string lettersOf(StringRef pattern, std::vector<StringRef> *groups = nullptr,
                             std::vector<std::string> *runs = nullptr) {
  std::string best, run;
  unsigned depth = 0;
  size_t begin = 0;
  auto end = [&] {
    if (runs && !run.empty())
      runs->push_back(run);
    if (run.size() > best.size())
      best = run;
    run.clear();
  };
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c == '[') { // a set
      i = pattern.find(']', i + 2);
      end();
    } else if (c == '\\') { // a sign as it stands
      ++i;
      if (!depth)
        run += pattern[i];
    } else if (c == '(') {
      if (!depth++)
        begin = i + 1;
      end();
    } else if (c == ')') {
      bool isOptional = i + 1 < pattern.size() && StringRef("?*{").contains(pattern[i + 1]);
      if (!--depth && !isOptional && groups)
        groups->push_back(pattern.slice(begin, i));
      end();
    } else if (c == '|' && !depth) {
      if (runs)
        runs->clear();
      if (groups)
        groups->clear();
      return "";
    } else if (c == '?' || c == '*' || c == '{') {
      if (!run.empty())
        run.pop_back();
      end();
      i = c == '{' ? pattern.find('}', i) : i;
    } else if ((llvm::isAlnum(c) || StringRef(" =-<>,:/_%@~#\"'&").contains(c)) && !depth) {
      run += c;
    } else
      end();
  }
  end();
  return best;
}

/// One of each of these is in every match.
static std::vector<std::vector<std::string>> needsOf(StringRef pattern) {
  std::vector<StringRef> groups;
  std::vector<std::string> runs;
  lettersOf(pattern, &groups, &runs);
  std::vector<std::vector<std::string>> result;
  for (const std::string &run : runs)
    result.push_back({run});
  if (pattern.starts_with("(") && result.empty() && groups.empty()) // "(a|b) c|d e": alternatives of the whole
    groups.push_back(pattern);
  for (StringRef group : groups) {
    std::vector<std::string> all;
    size_t shortest = StringRef::npos, begin = 0;
    unsigned depth = 0;
    for (size_t i = 0; i <= group.size(); ++i) {
      char c = i < group.size() ? group[i] : '|';
      if (c == '\\')
        ++i;
      else if (c == '[')
        i = group.find(']', i + 2);
      else if (c == '|' && !depth) {
        all.push_back(lettersOf(group.slice(begin, i)));
        shortest = std::min(shortest, all.back().size());
        begin = i + 1;
      }
      depth += c == '(';
      depth -= c == ')';
    }
    if (shortest != StringRef::npos && shortest > 0)
      result.push_back(std::move(all));
  }
  // What is rare is looked for first.
  llvm::stable_sort(result, [](const auto &a, const auto &b) { return a.size() < b.size(); });
  return result;
}

Rewrites::Rewrites(llvm::ArrayRef<Rewrite> all, llvm::Regex::RegexFlags flags) {
  for (const Rewrite &rule : all)
    rules.push_back(
        {llvm::Regex(rule.pattern, flags), rule.by,
         flags & llvm::Regex::IgnoreCase ? std::vector<std::vector<std::string>>() : needsOf(rule.pattern)});
}

std::string Rewrites::operator()(std::string text) const {
  for (const Rule &rule : rules)
    if (llvm::all_of(rule.needs, [&](const std::vector<std::string> &some) {
          return llvm::any_of(some,
                              [&](const std::string &letters) { return text.find(letters) != std::string::npos; });
        }))
      for (unsigned times = 0; times < 20 && rule.pattern.match(text); ++times)
        text = rule.pattern.sub(rule.by, text);
  return text;
}
