//===- PtxParser.cpp - statements of inline PTX ---------------------------===//
//
// Straight-line PTX only: labels and branches are not understood. Braces that open a scope are dropped (a name declared
// in two scopes of one asm statement means the same value then, which is harmless as each is written before it is
// read).
//
//===----------------------------------------------------------------------===//
#include "PtxParser.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace optiml::emu;

namespace {

class Parser {
public:
  explicit Parser(std::string text) : text(std::move(text)) {}

  std::optional<std::vector<PtxStatement>> run() {
    std::vector<PtxStatement> result;
    for (skip(); at < text.size(); skip()) {
      char c = text[at];
      if (c == '{' || c == '}' || c == ';') {
        ++at;
        continue;
      }
      PtxStatement statement;
      if (!parse(statement))
        return std::nullopt;
      result.push_back(std::move(statement));
    }
    return result;
  }

private:
  std::string text;
  size_t at = 0;

  static bool isWordChar(char c) { return isAlnum(c) || c == '_' || c == '$' || c == '%' || c == '.'; }

  void skip() {
    for (;;) {
      while (at < text.size() && isSpace(text[at]))
        ++at;
      if (StringRef(text).substr(at).starts_with("//"))
        at = std::min(text.find('\n', at), text.size());
      else if (StringRef(text).substr(at).starts_with("/*"))
        at = std::min(text.find("*/", at), text.size() - 2) + 2;
      else
        return;
    }
  }

  bool take(char c) {
    skip();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }

  std::string word() {
    skip();
    size_t begin = at;
    // "::" occurs in mnemonics such as cp.async.bulk.shared::cluster
    while (at < text.size() && (isWordChar(text[at]) || StringRef(text).substr(at).starts_with("::")))
      at += text[at] == ':' ? 2 : 1;
    return text.substr(begin, at - begin);
  }

  bool parse(PtxStatement &statement) {
    size_t begin = at;
    if (take('@')) {
      statement.guardNegated = take('!');
      statement.guard = word();
      if (statement.guard.empty())
        return false;
    }
    std::string mnemonic = word();
    if (mnemonic.empty())
      return false;
    SmallVector<StringRef, 8> words;
    StringRef(mnemonic).split(words, '.');
    for (StringRef w : words)
      statement.words.push_back(w.str());
    if (take(':'))
      return false; // a label
    bool declaration = mnemonic == ".reg";
    if (declaration) {
      std::string type = word();
      statement.words.push_back(StringRef(type).ltrim('.').str());
    }
    skip();
    while (at < text.size() && text[at] != ';' && text[at] != '}') {
      PtxOperand operand;
      if (!parse(operand))
        return false;
      statement.operands.push_back(std::move(operand));
      if (!take(','))
        break;
    }
    skip();
    if (at < text.size() && text[at] != ';' && text[at] != '}')
      return false;
    statement.text = StringRef(text).slice(begin, at).trim().str();
    return true;
  }

  bool parse(PtxOperand &operand) {
    skip();
    if (take('{')) {
      operand.kind = PtxOperand::Vector;
      do {
        PtxOperand element;
        if (!parse(element))
          return false;
        operand.elements.push_back(std::move(element));
      } while (take(','));
      return take('}');
    }
    if (take('[')) {
      operand.kind = PtxOperand::Address;
      PtxOperand base;
      if (!parse(base))
        return false;
      operand.elements.push_back(std::move(base));
      if (take('+')) {
        PtxOperand offset;
        if (!parse(offset) || offset.kind != PtxOperand::Immediate)
          return false;
        operand.bits = offset.bits;
      }
      return take(']');
    }
    operand.negated = take('!');
    bool minus = take('-');
    std::string name = word();
    if (name.empty())
      return false;
    StringRef digits = name;
    if (minus || isDigit(name[0])) {
      if (digits.consume_front("0f") || digits.consume_front("0F")) {
        operand.kind = PtxOperand::FloatBits;
        return !digits.getAsInteger(16, operand.bits);
      }
      if (digits.consume_front("0d") || digits.consume_front("0D")) {
        operand.kind = PtxOperand::DoubleBits;
        return !digits.getAsInteger(16, operand.bits);
      }
      operand.kind = PtxOperand::Immediate;
      digits.consume_back("U");
      if (digits.getAsInteger(0, operand.bits))
        return false;
      if (minus)
        operand.bits = 0 - operand.bits;
      return true;
    }
    if (digits.consume_front("$") && !digits.empty() && isDigit(digits[0])) {
      operand.kind = PtxOperand::Asm;
      if (digits.getAsInteger(10, operand.index))
        return false;
    } else {
      operand.name = name;
    }
    if (take('|'))
      operand.second = word();
    return true;
  }
};

} // namespace

std::optional<std::vector<PtxStatement>> optiml::emu::parsePtx(StringRef text) {
  // In an asm template $$ stands for a dollar sign; names may hold one. Give it another letter that names may hold.
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '$') {
      plain += '_';
      ++i;
    } else if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '{') { // ${0:modifier}
      size_t end = text.find('}', i);
      if (end == StringRef::npos)
        return std::nullopt;
      plain += "$" + text.slice(i + 2, end).split(':').first.str();
      i = end;
    } else {
      plain += text[i];
    }
  }
  return Parser(plain).run();
}
