//===- Variant.cpp - the identity of a rewritten program ------------------===//
#include "optiml/Core/Variant.h"
#include "optiml/Core/Hash.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

using namespace optiml;

std::string optiml::declarations(const std::vector<Parameter> &parameters) {
  return llvm::join(llvm::map_range(parameters, [](const Parameter &p) { return p.declaration; }), ", ");
}
using llvm::StringRef;

static bool isWordChar(char c) { return llvm::isAlnum(c) || c == '_' || c == '"' || c == '\''; }

/// Whether a space between these two characters may part two tokens ("int a", "+ +").
static bool needsSpace(char before, char after) {
  static constexpr StringRef joining = "+-*/%<>=!&|^:.#";
  return (isWordChar(before) && isWordChar(after)) || (joining.contains(before) && joining.contains(after));
}

/// The length of the string or character literal that starts at text[0], or 0.
static size_t literalLength(StringRef text) {
  char quote = text[0];
  if (quote != '"' && quote != '\'')
    return 0;
  size_t i = 1;
  while (i < text.size() && text[i] != quote && text[i] != '\n')
    i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

/// The text without comments and with only the white space that tokens need, so that layout does not tell variants
/// apart. Line ends of preprocessor lines are kept.
static std::string normalized(StringRef text) {
  std::string out;
  bool space = false, directive = false;
  auto put = [&](StringRef token) {
    if (space && !out.empty() && needsSpace(out.back(), token[0]))
      out += ' ';
    space = false;
    out += token;
  };
  for (size_t i = 0; i < text.size();) {
    StringRef rest = text.substr(i);
    if (rest.starts_with("//") || rest.starts_with("/*")) {
      size_t length = rest[1] == '/' ? rest.find('\n') : rest.find("*/", 2);
      if (length != StringRef::npos && rest[1] == '*')
        length += 2;
      i = length == StringRef::npos ? text.size() : i + length;
      space = true;
    } else if (llvm::isSpace(rest[0])) {
      if (rest[0] == '\n' && directive) {
        out += '\n';
        directive = false;
      }
      space = true;
      ++i;
    } else if (size_t length = literalLength(rest)) {
      put(rest.take_front(length));
      i += length;
    } else {
      directive |= rest[0] == '#';
      put(rest.take_front(1));
      ++i;
    }
  }
  return out;
}

std::string KernelRewrite::placed(const std::string &text) const {
  return enter.empty() ? text : enter + text + (text.ends_with("\n") ? "" : "\n") + leave;
}

bool Variant::testedOnly() const {
  return std::any_of(rewrites.begin(), rewrites.end(), [](const KernelRewrite &rewrite) { return rewrite.testedOnly; });
}

std::string Variant::key() const {
  auto ordered = llvm::to_vector(llvm::make_pointer_range(rewrites));
  std::sort(ordered.begin(), ordered.end(), [](const KernelRewrite *a, const KernelRewrite *b) {
    return std::tie(a->originalSymbol, a->original) < std::tie(b->originalSymbol, b->original);
  });
  nlohmann::json all = nlohmann::json::array();
  for (const KernelRewrite *rewrite : ordered) {
    std::set<std::string> conditions;
    for (const Condition &condition : rewrite->conditions)
      conditions.insert(condition.expression.str());
    all.push_back({{"of", rewrite->originalSymbol.empty() ? rewrite->original : rewrite->originalSymbol},
                   {"text", normalized(rewrite->twinText)},
                   {"plan", toJson(rewrite->plan)},
                   {"conditions", conditions}});
  }
  // Twins may hold any bytes a user's file holds: bytes that are no UTF-8 must not make dump() fail.
  return contentHash(all.dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore));
}
