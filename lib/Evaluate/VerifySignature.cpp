//===- VerifySignature.cpp - parameter lists as text ----------------------===//
#include "VerifySignature.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cctype>

using namespace optiml;
using llvm::StringRef;

std::vector<std::string> optiml::splitTopLevel(StringRef list) {
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
    StringRef part = list.slice(begin, i).trim();
    if (!part.empty() && part != "void")
      result.push_back(part.str());
    begin = i + 1;
  }
  return result;
}

static bool wordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::vector<std::string> optiml::namesOfParameters(StringRef list) {
  std::vector<std::string> names;
  for (const std::string &parameter : splitTopLevel(list)) {
    StringRef text = StringRef(parameter).split('=').first.rtrim();
    while (text.ends_with("]"))
      text = text.take_front(text.rfind('[')).rtrim();
    size_t begin = text.size();
    while (begin && wordCharacter(text[begin - 1]))
      --begin;
    names.push_back(text.drop_front(begin).str());
  }
  return names;
}

static bool hasWord(StringRef text, StringRef word) {
  for (size_t at = text.find(word); at != StringRef::npos; at = text.find(word, at + 1))
    if ((at == 0 || !wordCharacter(text[at - 1])) &&
        (at + word.size() == text.size() || !wordCharacter(text[at + word.size()])))
      return true;
  return false;
}

bool optiml::isUnsignedParameter(StringRef p) {
  for (const char *word : {"unsigned", "size_t", "uint", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "bool", "uchar",
                           "ushort", "ulong", "uintptr_t"})
    if (hasWord(p, word))
      return true;
  return false;
}

bool optiml::isFloatParameter(StringRef p) {
  return !p.contains('*') && (hasWord(p, "float") || hasWord(p, "double") || hasWord(p, "__half"));
}

std::vector<std::string> optiml::demangledTypes(StringRef name) {
  if (!name.ends_with(")"))
    return {};
  int depth = 0;
  for (size_t i = name.size(); i-- > 0;) {
    depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
    if (!depth)
      return splitTopLevel(name.slice(i + 1, name.size() - 1));
  }
  return {};
}

ElementType optiml::pointeeType(StringRef type) {
  StringRef t = type.trim();
  for (bool changed = true; changed;) {
    changed = t.consume_back("const") || t.consume_back("__restrict") || t.consume_back("restrict") ||
              t.consume_back("volatile");
    t = t.rtrim();
  }
  if (!t.consume_back("*") && !t.consume_back("]"))
    return {};
  t = t.trim();
  for (StringRef word : {"const", "volatile"}) {
    t.consume_back(word);
    t = t.rtrim();
    if (t.starts_with((word + " ").str()))
      t = t.drop_front(word.size() + 1).ltrim();
  }
  // float4 and its like count as their elements.
  StringRef base = t;
  if (base.size() > 1 && base.back() >= '1' && base.back() <= '4' && !base.contains(' '))
    base = base.drop_back();
  using K = ElementKind;
  return llvm::StringSwitch<ElementType>(base)
      .Case("float", {K::Float, 4, false})
      .Case("double", {K::Double, 8, false})
      .Cases({"int", "signed int"}, {K::Integer, 4, false})
      .Cases({"unsigned int", "unsigned", "uint"}, {K::Integer, 4, true})
      .Cases({"short"}, {K::Integer, 2, false})
      .Cases({"unsigned short", "ushort"}, {K::Integer, 2, true})
      .Cases({"char", "signed char"}, {K::Integer, 1, false})
      .Cases({"unsigned char", "uchar", "bool"}, {K::Integer, 1, true})
      .Cases({"long", "long long", "longlong"}, {K::Integer, 8, false})
      .Cases({"unsigned long", "unsigned long long", "ulong", "ulonglong"}, {K::Integer, 8, true})
      .Default({});
}

std::vector<ElementType> optiml::bufferTypes(const LaunchImage &launch) {
  std::vector<ElementType> result(launch.buffers.size());
  std::vector<bool> seen(launch.buffers.size());
  std::vector<std::string> types = demangledTypes(launch.name);
  if (types.size() != launch.arguments.size())
    return result;
  for (size_t i = 0; i < types.size(); ++i) {
    const ArgumentImage &a = launch.arguments[i];
    if (!a.isPointer || a.buffer < 0)
      continue;
    ElementType t = pointeeType(types[i]);
    ElementType &have = result[size_t(a.buffer)];
    // Two arguments that see one buffer differently leave it unknown.
    if (seen[size_t(a.buffer)] && (have.kind != t.kind || have.bytes != t.bytes))
      t = {};
    seen[size_t(a.buffer)] = true;
    have = t;
  }
  return result;
}

std::optional<uint64_t> optiml::sizeOfType(StringRef type) {
  if (type.trim().ends_with("*"))
    return 8;
  StringRef t = type.trim();
  t.consume_front("const ");
  ElementType e = pointeeType((t + "*").str());
  if (e.kind == ElementKind::Unknown) {
    uint64_t n = llvm::StringSwitch<uint64_t>(t)
                     .Cases({"int8_t", "uint8_t"}, 1)
                     .Cases({"int16_t", "uint16_t", "__half", "half"}, 2)
                     .Cases({"int32_t", "uint32_t"}, 4)
                     .Cases({"int64_t", "uint64_t", "size_t", "std::size_t"}, 8)
                     .Default(0);
    return n ? std::optional<uint64_t>(n) : std::nullopt;
  }
  uint64_t lanes = t.size() > 1 && t.back() >= '1' && t.back() <= '4' ? uint64_t(t.back() - '0') : 1;
  return e.bytes * lanes;
}
