//===- KernelName.cpp - the parts of a function's full name ---------------===//
#include "optiml/Core/KernelName.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;

llvm::StringRef optiml::scopeOf(llvm::StringRef name) {
  size_t end = 0; // past the last :: outside of template arguments
  int depth = 0;
  for (size_t i = 0; i + 1 < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (depth == 0 && name[i] == ':' && name[i + 1] == ':')
      end = i + 2;
  }
  return name.take_front(end);
}

llvm::StringRef optiml::unqualified(llvm::StringRef name) { return name.drop_front(scopeOf(name).size()); }

std::string optiml::withoutNameless(std::string name) {
  static const std::string nameless = "(anonymous namespace)::";
  for (size_t at; (at = name.find(nameless)) != std::string::npos;)
    name.erase(at, nameless.size());
  return name;
}

llvm::StringRef optiml::titleOf(llvm::StringRef declaration) {
  declaration.consume_front("void ");
  int depth = 0;
  for (size_t i = 0; i < declaration.size(); ++i) {
    depth += declaration[i] == '<' ? 1 : declaration[i] == '>' ? -1 : 0;
    if (depth == 0 && declaration[i] == '(' && !declaration.drop_front(i).starts_with("(anonymous namespace)"))
      return declaration.take_front(i);
  }
  return declaration;
}

std::string optiml::plainName(llvm::StringRef declaration) {
  return unqualified(titleOf(declaration)).split('<').first.str();
}

std::string optiml::identifierOf(llvm::StringRef name) {
  std::string result;
  for (char c : unqualified(name))
    if (llvm::isAlnum(c) || c == '_')
      result += c;
    else if (!result.empty() && result.back() != '_')
      result += '_';
  return llvm::StringRef(result).rtrim('_').str();
}
