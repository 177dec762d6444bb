//===- KernelTextTokens.cpp - the tokens of new kernel text ---------------===//
#include "optiml/Frontend/KernelTextCheck.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Words.h"
#include "clang/Basic/LangOptions.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/StringExtras.h"
#include <vector>

using namespace optiml;
using llvm::StringRef;
namespace tok = clang::tok;

namespace {

/// Goes over the tokens as they are written, before any macro means anything.
class TokenCheck {
public:
  TokenCheck(StringRef text, StringRef what, bool allowAssembly)
      : text(text), what(what), allowAssembly(allowAssembly) {
    options.CPlusPlus = options.CPlusPlus11 = options.CPlusPlus14 = options.CPlusPlus17 = options.CPlusPlus20 = true;
    options.LineComment = options.Digraphs = options.Bool = true;
  }

  llvm::Error run() {
    if (llvm::Error e = checkBytes())
      return e;
    // The lexer wants a zero after the last byte.
    std::string copy = text.str();
    clang::Lexer lexer(clang::SourceLocation(), options, copy.data(), copy.data(), copy.data() + copy.size());
    lexer.SetCommentRetentionState(true);
    clang::Token token;
    size_t end = 0, seen = 0;
    while (true) {
      bool last = lexer.LexFromRawLexer(token);
      end = size_t(lexer.getBufferLocation() - copy.data());
      offset = end - token.getLength();
      if (token.is(tok::eof))
        break;
      seen = end;
      if (llvm::Error e = countNested(token))
        return e;
      if (llvm::Error e = check(token))
        return e;
      if (last)
        break;
    }
    // The lexer passes over a comment that does not end.
    if (!text.drop_front(std::min(seen, text.size())).trim().empty())
      return fail("a comment is not closed");
    if (!open.empty())
      return fail("a bracket is not closed");
    return llvm::Error::success();
  }

private:
  llvm::Error fail(const llvm::Twine &why) {
    unsigned line = 1 + unsigned(text.take_front(offset).count('\n'));
    return makeError((what + ", line " + llvm::Twine(line) + ": " + why).str());
  }

  llvm::Error checkBytes() {
    if (text.size() > maxKernelTextBytes)
      return fail("it has " + llvm::Twine(text.size()) + " bytes; at most " + llvm::Twine(maxKernelTextBytes) +
                  " are allowed");
    for (offset = 0; offset < text.size(); ++offset) {
      char c = text[offset];
      if (c == '\\')
        return fail("a backslash is not allowed");
      if (!llvm::isPrint(c) && c != '\n' && c != '\t' && c != '\r')
        return fail("only printable ASCII characters are allowed");
    }
    offset = 0;
    if (text.contains("?\?"))
      return fail("\"?\?\" is not allowed");
    return llvm::Error::success();
  }

  /// Compilers recurse over what is nested, and nothing but the stack's end stops them: bounds the tokens of a
  /// statement together with those of the statements that it stands in.
  llvm::Error countNested(const clang::Token &token) {
    constexpr unsigned most = 1000;
    if (token.is(tok::comment))
      return llvm::Error::success();
    bool goesOn =
        !token.isOneOf(tok::raw_identifier, tok::numeric_constant, tok::l_brace, tok::r_brace, tok::semi, tok::hash);
    if (ended && !goesOn && !(token.is(tok::raw_identifier) && token.getRawIdentifier() == "else")) {
      nested -= pending.back();
      pending.back() = 0;
    }
    ended = false;
    ++pending.back();
    if (++nested > most)
      return fail("a statement with those around it has more than " + llvm::Twine(most) + " tokens; split it");
    if (token.isOneOf(tok::l_brace, tok::l_paren, tok::l_square)) {
      pending.push_back(0);
    } else if (token.isOneOf(tok::r_brace, tok::r_paren, tok::r_square) && pending.size() > 1) {
      nested -= pending.back();
      pending.pop_back();
      ended = token.is(tok::r_brace);
    } else if (token.is(tok::semi)) {
      ended = open.empty() || open.back() == '}';
    }
    return llvm::Error::success();
  }

  llvm::Error check(const clang::Token &token) {
    if (pragma != Pragma::None && token.isAtStartOfLine()) {
      if (pragma != Pragma::Factor)
        return fail(onlyUnroll);
      pragma = Pragma::None;
    }
    if (token.is(tok::comment))
      return commentEnds(token);
    if (pragma != Pragma::None)
      return checkPragma(token);
    switch (token.getKind()) {
    case tok::hash:
      if (!token.isAtStartOfLine())
        return fail(onlyUnroll);
      pragma = Pragma::Hash;
      return llvm::Error::success();
    case tok::hashhash: return fail(onlyUnroll);
    case tok::l_brace:
    case tok::l_paren:
    case tok::l_square:
      open += token.is(tok::l_brace) ? '}' : token.is(tok::l_paren) ? ')' : ']';
      return llvm::Error::success();
    case tok::r_brace:
    case tok::r_paren:
    case tok::r_square: {
      char closes = token.is(tok::r_brace) ? '}' : token.is(tok::r_paren) ? ')' : ']';
      if (open.empty() || open.back() != closes)
        return fail("a bracket is closed that was not opened here");
      open.pop_back();
      return llvm::Error::success();
    }
    case tok::raw_identifier: return checkIdentifier(token.getRawIdentifier());
    case tok::unknown: return fail("this is no token of C++");
    default: break;
    }
    if (tok::isStringLiteral(token.getKind()) && !allowAssembly)
      return fail("string literals are not allowed");
    return llvm::Error::success();
  }

  llvm::Error commentEnds(const clang::Token &token) {
    StringRef comment = text.substr(offset, token.getLength());
    if (comment.starts_with("/*") && (comment.size() < 4 || !comment.ends_with("*/")))
      return fail("a comment is not closed");
    return llvm::Error::success();
  }

  /// After '#': pragma unroll, and a factor, perhaps in parentheses.
  llvm::Error checkPragma(const clang::Token &token) {
    bool isWord = token.is(tok::raw_identifier);
    if (pragma == Pragma::Hash && isWord && token.getRawIdentifier() == "pragma")
      pragma = Pragma::Word;
    else if (pragma == Pragma::Word && isWord && token.getRawIdentifier() == "unroll")
      pragma = Pragma::Factor;
    else if (pragma != Pragma::Factor || !token.isOneOf(tok::numeric_constant, tok::l_paren, tok::r_paren))
      return fail(onlyUnroll);
    return llvm::Error::success();
  }

  llvm::Error checkIdentifier(StringRef name) {
    static const std::set<StringRef> never =
        words("__attribute__ __attribute __declspec _Pragma __pragma __host__ __global__ __constant__ __managed__ "
              "__FILE__ __LINE__ __COUNTER__ __DATE__ __TIME__ __TIMESTAMP__ __BASE_FILE__ __FILE_NAME__ "
              "__has_include __has_include_next __has_embed __func__ __FUNCTION__ __PRETTY_FUNCTION__ import module "
              "export");
    if (never.count(name))
      return fail("'" + name + "' is not allowed");
    if (!allowAssembly && (name == "asm" || name == "__asm" || name == "__asm__"))
      return fail("inline assembly is not allowed");
    return llvm::Error::success();
  }

  static constexpr const char *onlyUnroll =
      "preprocessor lines are not allowed, except \"#pragma unroll\" with a number or none";
  enum class Pragma { None, Hash, Word, Factor };
  StringRef text, what;
  bool allowAssembly;
  clang::LangOptions options;
  Pragma pragma = Pragma::None;
  std::string open; ///< what closes the brackets that are open
  std::vector<unsigned> pending = {
      0};              ///< tokens of the statement so far, outside of all brackets and in each that is open
  unsigned nested = 0; ///< their sum
  bool ended = false;  ///< the token before may have ended a statement
  size_t offset = 0;
};

} // namespace

llvm::Error optiml::checkKernelTokens(StringRef text, StringRef what, bool allowAssembly) {
  return TokenCheck(text, what, allowAssembly).run();
}
