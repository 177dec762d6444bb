//===- Conditions.cpp - a launch plan against a captured launch -----------===//
#include "optiml/Evaluate/Conditions.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <cstring>

using namespace optiml;

/// The items of a parameter list, split at commas outside of brackets.
static std::vector<std::string> parameterItems(const std::string &list) {
  std::vector<std::string> items;
  int depth = 0;
  std::string item;
  for (char c : list) {
    depth += c == '<' || c == '(' || c == '[' ? 1 : c == '>' || c == ')' || c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      items.push_back(item);
      item.clear();
    } else {
      item += c;
    }
  }
  if (!llvm::StringRef(item).trim().empty())
    items.push_back(item);
  return items;
}

static std::string lastIdentifier(llvm::StringRef text) {
  text = text.rtrim();
  size_t start = text.size();
  while (start > 0 && (llvm::isAlnum(text[start - 1]) || text[start - 1] == '_'))
    --start;
  return text.substr(start).str();
}

std::vector<std::string> optiml::parameterNames(const std::string &list) {
  std::vector<std::string> names;
  for (const std::string &item : parameterItems(list))
    names.push_back(lastIdentifier(item));
  return names;
}

LaunchEnvironment::LaunchEnvironment(const LaunchImage &launch, const KernelRewrite &rewrite) : launch(launch) {
  for (const std::string &item : parameterItems(rewrite.originalParameters)) {
    names.push_back(lastIdentifier(item));
    llvm::StringRef type = item;
    isUnsigned.push_back(type.contains("unsigned") || type.contains("size_t") || type.contains("uint"));
  }
}

std::optional<int64_t> LaunchEnvironment::operator()(const std::string &name) const {
  if (name == "shared")
    return launch.sharedBytes;
  size_t dot = name.find('.');
  if (dot != std::string::npos) {
    unsigned axis = unsigned(name[dot + 1] - 'x');
    if (axis > 2)
      return std::nullopt;
    std::string base = name.substr(0, dot);
    return base == "grid"    ? std::optional<int64_t>(launch.grid[axis])
           : base == "block" ? std::optional<int64_t>(launch.block[axis])
                             : std::nullopt;
  }
  for (size_t i = 0; i < names.size() && i < launch.arguments.size(); ++i) {
    if (names[i] != name)
      continue;
    const std::string &bytes = launch.arguments[i].bytes;
    uint64_t value = 0;
    if (bytes.size() > 8)
      return std::nullopt;
    memcpy(&value, bytes.data(), bytes.size());
    if (bytes.size() < 8 && !isUnsigned[i] && !bytes.empty()) { // sign-extend
      unsigned shift = 64 - 8 * unsigned(bytes.size());
      return int64_t(value << shift) >> shift;
    }
    return int64_t(value);
  }
  return std::nullopt;
}

bool optiml::conditionsHold(const KernelRewrite &rewrite, const LaunchImage &launch, std::string &failed) {
  LaunchEnvironment environment(launch, rewrite);
  for (const Condition &condition : rewrite.conditions) {
    auto value = condition.expression.evaluate([&](const std::string &n) { return environment(n); });
    if (value && *value)
      continue;
    failed = condition.expression.str() + " (" + condition.why + ")";
    return false;
  }
  return true;
}
