//===- Rewrites.cpp - rules that rewrite a request ------------------------===//
#include "Rewrites.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml::gen;
using llvm::StringRef;

/// The longest run of letters that every match has: outside of groups and sets, and not optional. `groups`: what
/// is inside the groups that every match has.
static std::string lettersOf(StringRef pattern, std::vector<StringRef> *groups = nullptr) {
  std::string best, run;
  unsigned depth = 0;
  size_t begin = 0;
  auto end = [&] {
    if (run.size() > best.size())
      best = run;
    run.clear();
  };
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c == '[') { // a set
      i = pattern.find(']', i + 2);
      end();
    } else if (c == '\\') {
      ++i;
      end();
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
      return "";
    } else if (c == '?' || c == '*' || c == '{') {
      if (!run.empty())
        run.pop_back();
      end();
    } else if ((llvm::isAlnum(c) || c == ' ') && !depth) {
      run += c;
    } else
      end();
  }
  end();
  return best;
}

/// One of these is in every match; nothing where that cannot be told.
static std::vector<std::string> anyOf(StringRef pattern) {
  std::vector<StringRef> groups;
  std::string letters = lettersOf(pattern, &groups);
  std::vector<std::string> best;
  if (!letters.empty())
    best = {letters};
  if (letters.size() > 2)
    return best;
  size_t least = letters.size();
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
    if (shortest != StringRef::npos && shortest > least)
      least = shortest, best = all;
  }
  return best;
}

Rewrites::Rewrites(llvm::ArrayRef<Rewrite> all, llvm::Regex::RegexFlags flags) {
  for (const Rewrite &rule : all)
    rules.push_back({llvm::Regex(rule.pattern, flags), rule.by,
                     flags & llvm::Regex::IgnoreCase ? std::vector<std::string>() : anyOf(rule.pattern)});
}

std::string Rewrites::operator()(std::string text) const {
  for (const Rule &rule : rules)
    if (rule.needs.empty() || llvm::any_of(rule.needs, [&](const std::string &letters) { return StringRef(text).contains(letters); }))
      for (unsigned times = 0; times < 20 && rule.pattern.match(text); ++times)
        text = rule.pattern.sub(rule.by, text);
  return text;
}
