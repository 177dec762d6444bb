//===- Rewrites.h - rules that rewrite a request ----------------*- C++ -*-===//
#ifndef OPTIML_LIB_GENERATE_REWRITES_H
#define OPTIML_LIB_GENERATE_REWRITES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Regex.h"
#include <string>
#include <vector>

namespace optiml::gen {

/// A regular expression and what replaces all its matches (\1 is its first group).
struct Rewrite {
  llvm::StringRef pattern, by;
};

/// Rules that are applied in their order, each until it matches no more; compiled once, and skipped where a text lacks
/// letters that the pattern needs.
class Rewrites {
public:
  explicit Rewrites(llvm::ArrayRef<Rewrite> rules, llvm::Regex::RegexFlags flags = llvm::Regex::NoFlags);
  std::string operator()(std::string text) const;

private:
  struct Rule {
    llvm::Regex pattern;
    llvm::StringRef by;
    std::vector<std::vector<std::string>> needs; ///< one of each of these is in every match
  };
  std::vector<Rule> rules;
};

} // namespace optiml::gen

#endif
