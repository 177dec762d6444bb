//===- Highlight.cpp - CUDA in colours ------------------------------------===//
#include "Highlight.h"
#include "Html.h"
#include "clang/Basic/IdentifierTable.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/StringSet.h"

using namespace optiml;

static bool isCudaWord(llvm::StringRef word) {
  static const llvm::StringSet<> words = {"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"};
  return words.contains(word) || (word.starts_with("__") && word.ends_with("__"));
}

static const char *classOf(const clang::Token &token, const clang::IdentifierTable &words) {
  using namespace clang;
  switch (token.getKind()) {
  case tok::comment: return "c";
  case tok::numeric_constant: return "n";
  case tok::string_literal:
  case tok::char_constant: return "s";
  case tok::raw_identifier: {
    auto known = words.find(token.getRawIdentifier());
    return known != words.end() && known->second->getTokenID() != tok::identifier ? "k"
           : isCudaWord(token.getRawIdentifier())                                 ? "u"
                                                                                  : nullptr;
  }
  default: return nullptr;
  }
}

std::vector<std::string> report::highlighted(llvm::StringRef source) {
  const std::string text = source.str(); // the lexer wants a null at the end
  clang::LangOptions language;
  language.CPlusPlus = language.CPlusPlus11 = language.CPlusPlus17 = language.Bool = language.CUDA = true;
  language.LineComment = true;
  clang::IdentifierTable words(language);
  clang::Lexer lexer(clang::SourceLocation(), language, text.data(), text.data(), text.data() + text.size());
  lexer.SetCommentRetentionState(true);
  std::vector<std::string> lines(1);
  auto add = [&](llvm::StringRef piece, const char *kind) {
    for (bool first = true; first || !piece.empty(); first = false) {
      auto [line, rest] = piece.split('\n');
      if (!line.empty())
        lines.back() += kind ? "<i class=" + std::string(kind) + ">" + escaped(line) + "</i>" : escaped(line);
      if (line.size() < piece.size())
        lines.emplace_back();
      piece = rest;
    }
  };
  clang::Token token;
  size_t at = 0;
  do {
    lexer.LexFromRawLexer(token);
    const size_t end = size_t(lexer.getBufferLocation() - text.data()), begin = end - token.getLength();
    add(llvm::StringRef(text).slice(at, begin), nullptr);
    if (token.isNot(clang::tok::eof))
      add(llvm::StringRef(text).slice(begin, end), classOf(token, words));
    at = std::max(at, end);
  } while (token.isNot(clang::tok::eof));
  if (!lines.empty() && lines.back().empty())
    lines.pop_back();
  return lines;
}
