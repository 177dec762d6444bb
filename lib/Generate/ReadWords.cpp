//===- ReadWords.cpp - numbers, shapes and types in plain words -----------===//
#include "ReadWords.h"
#include "optiml/Support/Numbers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

/// "x", "by", "*" or "×" between two dimensions.
static bool takeTimes(StringRef &text) {
  StringRef rest = text.ltrim();
  for (StringRef sign : {"x", "X", "\xc3\x97", "by ", "*"})
    if (StringRef after = rest;
        after.consume_front(sign) && !after.ltrim().empty() && llvm::isDigit(after.ltrim()[0])) {
      text = after.ltrim();
      return true;
    }
  return false;
}

/// "[64, 128]" or "(64, 128)".
static bool takeBrackets(StringRef &text, std::vector<double> &values) {
  if (text.empty() || (text[0] != '[' && text[0] != '('))
    return false;
  size_t end = text.find(text[0] == '[' ? ']' : ')');
  if (end == StringRef::npos)
    return false;
  llvm::SmallVector<StringRef, 4> parts;
  text.slice(1, end).split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    if (std::optional<double> value = parseNumber(part))
      values.push_back(*value);
  if (values.size() != parts.size() || values.empty()) {
    values.clear();
    return false;
  }
  text = text.drop_front(end + 1);
  return true;
}

static bool takeQuantity(StringRef &text, Token &token) {
  StringRef start = text;
  if (!takeBrackets(text, token.values)) {
    StringRef rest = text;
    for (std::optional<double> value = takeNumber(rest); value;
         value = takeTimes(rest) ? takeNumber(rest) : std::nullopt) {
      token.values.push_back(*value);
      text = rest;
    }
    // "5-point" is a word.
    if (text.size() > 1 && text[0] == '-' && llvm::isAlpha(text[1])) {
      token.values.clear();
      text = start;
    }
  }
  token.text = start.drop_back(text.size()).trim().str();
  return !token.values.empty();
}

/// "500th" is the number 500, and the word "kth".
static bool takeOrdinal(StringRef &text, std::vector<Token> &tokens) {
  StringRef digits = text.take_while([](char c) { return llvm::isDigit(c); }), ending = text.substr(digits.size(), 2);
  bool isOrdinal = ending == "th" || ending == "st" || ending == "nd" || ending == "rd";
  StringRef rest = text.drop_front(std::min(text.size(), digits.size() + 2));
  double value;
  if (digits.empty() || !isOrdinal || (!rest.empty() && llvm::isAlnum(rest[0])) || digits.getAsDouble(value))
    return false;
  tokens.push_back({digits.str(), {value}});
  tokens.push_back({"kth", {}});
  text = rest;
  return true;
}

static std::vector<Token> tokenize(StringRef text) {
  std::vector<Token> result;
  bool isAssigned = false;
  while (!text.empty()) {
    Token token;
    if (takeOrdinal(text, result))
      continue;
    bool mayBeNumber = llvm::isDigit(text[0]) || text[0] == '[' || text[0] == '(' || text[0] == '.' || text[0] == '-';
    if (mayBeNumber && takeQuantity(text, token)) {
      token.isAssigned = isAssigned;
      result.push_back(std::move(token));
      isAssigned = false;
    } else if (llvm::isAlnum(text[0])) {
      StringRef word = text.take_while([](char c) { return llvm::isAlnum(c) || c == '\''; });
      text = text.drop_front(word.size());
      token.text = word.lower();
      // "A*" is a name; in "A * B" and "A*B" the sign stands for itself.
      if (text.starts_with("*") && (text.size() == 1 || !llvm::isAlnum(text[1])))
        token.text += "*", text = text.drop_front();
      result.push_back(std::move(token));
      isAssigned = false;
    } else {
      isAssigned |= text[0] == '=';
      text = text.drop_front();
    }
  }
  return result;
}

static StringRef singular(StringRef word) {
  return word.size() > 2 && word.ends_with("s") && !word.ends_with("ss") ? word.drop_back() : word;
}

/// Takes the words that say a type out of the tokens.
static std::string takeType(std::vector<Token> &tokens) {
  std::string type;
  for (size_t i = 0; i < tokens.size();) {
    StringRef word = tokens[i].isWord() ? StringRef(tokens[i].text) : "";
    bool hasPrecision = i + 1 < tokens.size() && tokens[i + 1].text == "precision";
    bool isPlural = word.ends_with("s");
    std::string named = typeNamed(isPlural ? word.drop_back() : word);
    // "double every value" is no type.
    bool isVerb = word == "double" && (i == 0 || tokens[i - 1].text == "to" || tokens[i - 1].text == "then") &&
                  i + 1 < tokens.size() && !hasPrecision &&
                  llvm::is_contained({"all", "each", "every", "the", "them", "it"}, tokens[i + 1].text);
    bool isHalf = word == "half" && i + 1 < tokens.size() && tokens[i + 1].text == "of";
    if (named.empty() || isVerb || isHalf || (word == "single" && !hasPrecision) || word == "long" || word == "longs") {
      ++i;
      continue;
    }
    type = type.empty() ? named : type;
    tokens.erase(tokens.begin() + i, tokens.begin() + i + 1 + hasPrecision);
  }
  return type;
}

/// Numbers of things in a row: "1000 floats", "64 values".
static void markLengths(std::vector<Token> &tokens) {
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    StringRef next = tokens[i + 1].isWord() ? singular(tokens[i + 1].text) : StringRef();
    bool isThing = !typeNamed(next).empty() ||
                   llvm::is_contained({"element", "value", "number", "entry", "entrie", "sample"}, next);
    tokens[i].isLength = tokens[i].values.size() == 1 && isThing;
  }
}

/// "64-bit integers" are int64.
static void joinBits(std::vector<Token> &tokens) {
  for (size_t i = 0; i + 2 < tokens.size(); ++i) {
    StringRef bit = tokens[i + 1].text, of = singular(tokens[i + 2].text);
    bool isWidth = tokens[i].text == "64" || tokens[i].text == "32" || tokens[i].text == "16";
    if (!isWidth || singular(bit) != "bit" || (of != "float" && of != "int" && of != "integer"))
      continue;
    tokens[i + 2].text = (of == "float" ? "float" : "int") + tokens[i].text;
    tokens.erase(tokens.begin() + i, tokens.begin() + i + 2);
  }
}

Reading optiml::gen::readWords(StringRef text) {
  Reading reading;
  reading.tokens = tokenize(text);
  joinBits(reading.tokens);
  markLengths(reading.tokens);
  reading.type = takeType(reading.tokens);
  return reading;
}

std::vector<std::string> Reading::words() const {
  std::vector<std::string> result;
  for (const Token &token : tokens)
    if (token.isWord())
      result.push_back(token.text);
  return result;
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

namespace {

/// Binds what one reading says to one operation's options.
class Binder {
public:
  Binder(const Reading &reading, const Operation &op, const Library &library, Options &into)

      : tokens(reading.tokens), options(optionsOf(op, library)), into(into), used(tokens.size()) {
    rules = op.shapes;
    if (op.isStage) {
      rules = op.hasColumnOperand() ? std::vector<ShapeRule>() : library.find("map")->shapes;
      llvm::append_range(rules, library.find("map2d")->shapes);
    }
  }

  std::vector<std::string> run() {
    for (size_t i = 0; i < tokens.size(); ++i)
      if (tokens[i].values.size() == 1)
        bindByName(i);
    bindRange();
    bindRequired();
    bindByShape();
    std::vector<std::string> left;
    for (size_t i = 0; i < tokens.size(); ++i)
      if (tokens[i].isWord() && !bindChoice(i))
        left.push_back(tokens[i].text);
    for (size_t i = 0; i < tokens.size(); ++i)
      if (!used[i] && !tokens[i].isWord())
        left.push_back(tokens[i].text);
    return left;
  }

private:
  const Option *named(StringRef word) const {
    for (const Option &option : options)
      if (option.kind == Option::Kind::Size || option.kind == Option::Kind::Constant)
        if (singular(option.name) == singular(word) ||
            llvm::any_of(option.aliases, [&](StringRef alias) { return singular(alias) == singular(word); }))
          return &option;
    return nullptr;
  }

  bool set(const Option *option, size_t at) {
    if (!option || into.count(option->name) || (tokens[at].isLength && option->kind != Option::Kind::Size))
      return false;
    into[option->name] = shortestNumber(tokens[at].values[0]);
    return used[at] = true;
  }

  StringRef word(size_t at) const {
    return at < tokens.size() && tokens[at].isWord() ? StringRef(tokens[at].text) : StringRef();
  }

  void bindByName(size_t at) {
    if (tokens[at].isAssigned) { // M=N=K=1000
      for (size_t i = at; i-- > 0 && named(word(i));)
        set(named(word(i)), at);
      return;
    }
    if (set(named(word(at + 1)), at))
      return;
    size_t before = at == 0 ? tokens.size() : at - 1;
    if (word(before) == "of" || word(before) == "is" || word(before) == "size")
      before = before == 0 ? tokens.size() : before - 1;
    set(named(word(before)), at);
  }

  /// "from -5 to 5", "between 0 and 1"
  void bindRange() {
    const Option *low = named("low"), *high = named("high");
    for (size_t i = 1; low && high && i + 2 < tokens.size(); ++i) {
      bool begins = word(i - 1) == "from" || word(i - 1) == "between";
      bool goesOn = word(i + 1) == "to" || word(i + 1) == "and";
      if (begins && goesOn && tokens[i].values.size() == 1 && tokens[i + 2].values.size() == 1 && set(low, i))
        set(high, i + 2);
    }
    for (size_t i = 0; low && high && i < tokens.size(); ++i) // [0, 10]
      if (!used[i] && tokens[i].values.size() == 2 && StringRef("[(").contains(tokens[i].text[0]) &&
          !into.count(low->name) && !into.count(high->name)) {
        into[low->name] = shortestNumber(tokens[i].values[0]);
        into[high->name] = shortestNumber(tokens[i].values[1]);
        used[i] = true;
      }
  }

  /// "divide 1000 floats by 3"
  void bindRequired() {
    std::vector<const Option *> wanted;
    for (const Option &option : options)
      if (option.required && !into.count(option.name))
        wanted.push_back(&option);
    for (size_t i = tokens.size(); wanted.size() == 1 && i-- > 0;)
      if (!used[i] && tokens[i].values.size() == 1 && !tokens[i].isLength) {
        set(wanted.front(), i);
        return;
      }
  }

  /// All quantities that have no name must fit one rule together.
  void bindByShape() {
    std::vector<size_t> open;
    for (size_t i = 0; i < tokens.size(); ++i)
      if (!used[i] && !tokens[i].isWord())
        open.push_back(i);
    for (const ShapeRule &rule : rules)
      if (bindRule(rule, open))
        return;
  }

  bool bindRule(const ShapeRule &rule, const std::vector<size_t> &open) {
    if (open.empty() || rule.shapes.size() != open.size())
      return false;
    Options found;
    for (size_t i = 0; i < open.size(); ++i) {
      if (rule.shapes[i].size() != tokens[open[i]].values.size())
        return false;
      for (size_t d = 0; d < rule.shapes[i].size(); ++d) {
        llvm::SmallVector<StringRef, 2> names;
        StringRef(rule.shapes[i][d]).split(names, '=');
        double number = tokens[open[i]].values[d];
        if (number != std::floor(number) || number < 1)
          return false;
        std::string value = shortestNumber(number);
        for (StringRef name : names)
          if (auto [known, isNew] = found.try_emplace(name.str(), value); !isNew && known->second != value)
            return false;
      }
    }
    for (const auto &[name, value] : found)
      if (into.count(name) && into.at(name) != value)
        return false;
    into.insert(found.begin(), found.end());
    for (size_t at : open)
      used[at] = true;
    return true;
  }

  /// False: it says another value than was said before.
  bool bindChoice(size_t at) {
    for (const Option &option : options) {
      if (option.kind != Option::Kind::Choice)
        continue;
      for (const std::string &value : option.values)
        if (singular(tokens[at].text) == value || tokens[at].text + "-" + word(at + 1).str() == value)
          if (auto [known, isNew] = into.try_emplace(option.name, value); !isNew && known->second != value)
            return false;
    }
    return true;
  }

  const std::vector<Token> &tokens;
  std::vector<Option> options;
  std::vector<ShapeRule> rules;
  Options &into;
  std::vector<bool> used;
};

} // namespace

std::vector<std::string> optiml::gen::bindOptions(const Reading &reading, const Operation &operation,
                                                  const Library &library, Options &into) {
  if (!reading.type.empty())
    into["type"] = reading.type;
  return Binder(reading, operation, library, into).run();
}
