//===- VerifySignature.cpp - parameter lists as text ----------------------===//
#include "VerifySignature.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cctype>

using namespace optiml;
using llvm::StringRef;

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
  return !p.contains('*') && (hasWord(p, "float") || hasWord(p, "double") || hasWord(p, "__half") ||
                                  hasWord(p, "__nv_bfloat16"));
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
                     .Cases({"int16_t", "uint16_t", "half"}, 2)
                     .Cases({"int32_t", "uint32_t"}, 4)
                     .Cases({"int64_t", "uint64_t", "size_t", "std::size_t"}, 8)
                     .Default(0);
    return n ? std::optional<uint64_t>(n) : std::nullopt;
  }
  uint64_t lanes = t.size() > 1 && t.back() >= '1' && t.back() <= '4' ? uint64_t(t.back() - '0') : 1;
  return e.bytes * lanes;
}
