//===- Rewrites.cpp - rules that rewrite a request ------------------------===//
#include "Rewrites.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml::gen;
using llvm::StringRef;

/// The longest run of letters that every match has: outside of groups and sets, and not optional.
static std::string lettersOf(StringRef pattern) {
  std::string best, run;
  unsigned depth = 0;
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
      ++depth;
      end();
    } else if (c == ')') {
      --depth;
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

Rewrites::Rewrites(llvm::ArrayRef<Rewrite> all, llvm::Regex::RegexFlags flags) {
  for (const Rewrite &rule : all)
    rules.push_back({llvm::Regex(rule.pattern, flags), rule.by,
                     flags & llvm::Regex::IgnoreCase ? std::string() : lettersOf(rule.pattern)});
}

std::string Rewrites::operator()(std::string text) const {
  for (const Rule &rule : rules)
    if (StringRef(text).contains(rule.needs))
      for (unsigned times = 0; times < 20 && rule.pattern.match(text); ++times)
        text = rule.pattern.sub(rule.by, text);
  return text;
}
