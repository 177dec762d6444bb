//===- CompiledFor.cpp - kernels of one architecture in objects of several -===//
#include "Texts.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;

/// Behind the literal or comment that begins at `at`, or `at + 1`.
static size_t nextPlace(llvm::StringRef text, size_t at) {
  llvm::StringRef rest = text.substr(at);
  if (rest.starts_with("//"))
    return std::min(text.find('\n', at), text.size());
  if (rest.starts_with("/*")) {
    size_t end = text.find("*/", at + 2);
    return end == llvm::StringRef::npos ? text.size() : end + 2;
  }
  const char quote = text[at];
  const bool inNumber = quote == '\'' && at > 0 && llvm::isHexDigit(text[at - 1]); // 1'000, not u'x'
  if ((quote != '"' && quote != '\'') || inNumber)
    return at + 1;
  for (++at; at < text.size() && text[at] != quote; ++at)
    at += text[at] == '\\';
  return std::min(at + 1, text.size());
}

/// The place of the brace that ends the body which begins at `open`.
static size_t endOfBody(llvm::StringRef text, size_t open) {
  int depth = 0;
  for (size_t at = open; at < text.size(); at = nextPlace(text, at)) {
    depth += text[at] == '{';
    if (text[at] == '}' && --depth == 0)
      return at;
  }
  return text.size();
}

std::string optiml::compiledFor(unsigned arch, llvm::StringRef text) {
  static constexpr llvm::StringLiteral global = "__global__";
  const std::string begin = "\n#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == " + std::to_string(arch * 10) + "\n",
                    end = "\n#endif\n";
  std::string result;
  size_t copied = 0;
  bool inKernel = false; // between __global__ and its body
  int parentheses = 0;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(global))
      inKernel = true;
    parentheses += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (inKernel && parentheses == 0 && text[at] == ';')
      inKernel = false; // a declaration
    if (!inKernel || parentheses || text[at] != '{') {
      at = nextPlace(text, at);
      continue;
    }
    const size_t last = endOfBody(text, at);
    if (last == text.size())
      return text.str(); // not understood; it is right for every architecture all the same
    result += text.slice(copied, at + 1).str() + begin + text.slice(at + 1, last).str() + end;
    at = copied = last;
    inKernel = false;
  }
  return result + text.substr(copied).str();
}
