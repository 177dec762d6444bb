//===- Signature.cpp - what a kernel's buffers hold -----------------------===//
#include "optiml/Workload/Signature.h"
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>

using namespace optiml;

static std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ')
    s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ')
    s.remove_suffix(1);
  return s;
}

std::vector<std::string> optiml::splitTopLevel(std::string_view list) {
  std::vector<std::string> result;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    char c = i < list.size() ? list[i] : ',';
    if (c == '(' || c == '<' || c == '[' || c == '{')
      ++depth;
    if (c == ')' || c == '>' || c == ']' || c == '}')
      --depth;
    if (c != ',' || (depth > 0 && i < list.size()))
      continue;
    std::string_view part = trim(list.substr(begin, i - begin));
    if (!part.empty() && part != "void")
      result.emplace_back(part);
    begin = i + 1;
  }
  return result;
}

std::string optiml::demangled(const std::string &symbol) {
  int status = 0;
  char *text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text ? text : symbol;
  free(text);
  return result;
}

bool optiml::sameFunction(const std::string &a, const std::string &b) {
  return a == b || (a.starts_with("_Z") && b.starts_with("_Z") && demangled(a) == demangled(b));
}

std::vector<std::string> optiml::parameterTypes(const std::string &symbol) {
  std::string name = demangled(symbol);
  if (name.empty() || name.back() != ')')
    return {};
  int depth = 0;
  for (size_t i = name.size(); i-- > 0;) {
    depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
    if (!depth)
      return splitTopLevel(std::string_view(name).substr(i + 1, name.size() - i - 2));
  }
  return {};
}

static bool consumeBack(std::string_view &s, std::string_view word) {
  s = trim(s);
  if (s.size() < word.size() || s.substr(s.size() - word.size()) != word)
    return false;
  s.remove_suffix(word.size());
  s = trim(s);
  return true;
}

ElementType optiml::elementType(std::string_view name) {
  // float4 and its like count as their elements.
  std::string_view base = name;
  if (base.size() > 1 && base.back() >= '1' && base.back() <= '4' && base.find(' ') == std::string_view::npos)
    base.remove_suffix(1);
  struct Known {
    std::string_view name;
    ElementType type;
  };
  using K = ElementKind;
  static constexpr Known known[] = {
      {"float", {K::Float, 4, false}},          {"double", {K::Double, 8, false}},
      {"__half", {K::Half, 2, false}},          {"__nv_bfloat16", {K::BFloat16, 2, false}},
      {"int", {K::Integer, 4, false}},          {"unsigned int", {K::Integer, 4, true}},
      {"unsigned", {K::Integer, 4, true}},      {"uint", {K::Integer, 4, true}},
      {"short", {K::Integer, 2, false}},        {"unsigned short", {K::Integer, 2, true}},
      {"ushort", {K::Integer, 2, true}},        {"char", {K::Integer, 1, false}},
      {"signed char", {K::Integer, 1, false}},  {"unsigned char", {K::Integer, 1, true}},
      {"uchar", {K::Integer, 1, true}},         {"bool", {K::Integer, 1, true, true}},
      {"long", {K::Integer, 8, false}},         {"long long", {K::Integer, 8, false}},
      {"unsigned long", {K::Integer, 8, true}}, {"unsigned long long", {K::Integer, 8, true}},
  };
  for (const Known &k : known)
    if (k.name == base)
      return k.type;
  return {};
}

ElementType optiml::pointeeType(std::string_view t) {
  while (consumeBack(t, "const") || consumeBack(t, "__restrict__") || consumeBack(t, "__restrict") ||
         consumeBack(t, "restrict") || consumeBack(t, "volatile")) {
  }
  if (!consumeBack(t, "*"))
    return {};
  while (consumeBack(t, "const") || consumeBack(t, "volatile")) {
  }
  for (std::string_view word : {"const ", "volatile "})
    if (t.substr(0, word.size()) == word)
      t = trim(t.substr(word.size()));
  return elementType(t);
}

std::optional<RecordLayout> optiml::recordLayout(std::string_view element) {
  auto number = [&](size_t &value) {
    auto [end, error] = std::from_chars(element.data(), element.data() + element.size(), value);
    element.remove_prefix(size_t(end - element.data()));
    return error == std::errc();
  };
  RecordLayout layout;
  if (!element.starts_with('{') || !element.ends_with('}'))
    return std::nullopt;
  element = element.substr(1, element.size() - 2);
  if (!number(layout.bytes) || layout.bytes == 0 || !element.starts_with(':'))
    return std::nullopt;
  element.remove_prefix(1);
  while (!(element = trim(element)).empty()) {
    const size_t at = element.find('@');
    if (at == std::string_view::npos)
      return std::nullopt;
    RecordField field;
    field.type = elementType(element.substr(0, at));
    element.remove_prefix(at + 1);
    const size_t size = field.type.bytes;
    if (!number(field.offset) || size > layout.bytes || field.offset > layout.bytes - size)
      return std::nullopt;
    layout.fields.push_back(field);
  }
  return layout;
}

static bool pointsToVoid(std::string_view type) {
  return type.substr(0, 4) == "void" || type.substr(0, 10) == "const void";
}

template <typename T> static T readAs(const char *data) {
  T value;
  memcpy(&value, data, sizeof value);
  return value;
}

static std::string numberText(double value, int digits) {
  char text[40];
  snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string optiml::elementText(const char *data, const ElementType &type, size_t bytes) {
  if (type.kind == ElementKind::Float)
    return numberText(double(readAs<float>(data)), 9);
  if (type.kind == ElementKind::Double)
    return numberText(readAs<double>(data), 17);
  if (type.isFloat16())
    return numberText(double(valueOf16(readAs<uint16_t>(data), type.format16())), 5);
  uint64_t v = 0;
  memcpy(&v, data, std::min<size_t>(type.bytes, bytes));
  if (type.isUnsigned)
    return std::to_string(v);
  unsigned shift = 64 - 8 * type.bytes;
  return std::to_string(int64_t(v << shift) >> shift);
}

std::string optiml::bufferName(const LaunchImage &launch, unsigned buffer) {
  const BufferImage &b = launch.buffers[buffer];
  if (!b.symbol.empty())
    return "variable '" + b.symbol + "'";
  std::vector<std::string> types = parameterTypes(launch.kernel);
  for (size_t i = 0; i < launch.arguments.size(); ++i)
    if (launch.arguments[i].buffer == int(buffer))
      return "argument " + std::to_string(i) + (types.size() == launch.arguments.size() ? " (" + types[i] + ")" : "");
  return "buffer " + std::to_string(buffer);
}

std::vector<ElementType> optiml::bufferTypes(const LaunchImage &launch) {
  std::vector<ElementType> result(launch.buffers.size());
  std::vector<bool> seen(launch.buffers.size());
  for (size_t i = 0; i < launch.buffers.size(); ++i)
    if (!launch.buffers[i].element.empty()) {
      seen[i] = true;
      result[i] = elementType(launch.buffers[i].element);
    }
  std::vector<std::string> types = parameterTypes(launch.kernel);
  if (types.size() != launch.arguments.size())
    return result;
  for (size_t i = 0; i < types.size(); ++i) {
    const ArgumentImage &a = launch.arguments[i];
    if (!a.isPointer || a.buffer < 0)
      continue;
    ElementType t = pointeeType(types[i]);
    ElementType &have = result[size_t(a.buffer)];
    // Of a structure its name tells nothing, but the buffer may.
    if (t.kind == ElementKind::Unknown && !launch.buffers[size_t(a.buffer)].element.empty() && !pointsToVoid(types[i]))
      continue;
    // Two that see one buffer differently leave it unknown.
    if (seen[size_t(a.buffer)] && !(have == t))
      t = {};
    seen[size_t(a.buffer)] = true;
    have = t;
  }
  return result;
}

bool optiml::pointsToConst(const LaunchImage &launch, unsigned buffer) {
  const std::vector<std::string> types = parameterTypes(launch.kernel);
  bool all = false;
  for (size_t i = 0; i < launch.arguments.size() && i < types.size(); ++i)
    if (launch.arguments[i].buffer == int(buffer)) {
      if (types[i].find("const*") == std::string::npos && types[i].find("const *") == std::string::npos)
        return false;
      all = true;
    }
  return all;
}
