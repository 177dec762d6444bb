//===- Template.cpp - ${placeholders} and @if lines of operations ---------===//
#include "Template.h"
#include "Formula.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

const ShortFloat *optiml::gen::shortFloat(StringRef type) {
  // eps is twice the error of rounding once.
  static const ShortFloat all[] = {
      {"half", "__half", "cuda_fp16.h", "__half2float", "__float2half", "1e-3"},
      {"bfloat16", "__nv_bfloat16", "cuda_bf16.h", "__bfloat162float", "__float2bfloat16", "4e-3"}};
  const ShortFloat *found = llvm::find_if(all, [&](const ShortFloat &one) { return one.type == type; });
  return found == std::end(all) ? nullptr : found;
}

std::string optiml::gen::Renderer::computeType(Place place) const {
  if (place == Place::Reference)
    return isFloating() ? "double" : spec.type == "unsigned" ? "unsigned long long" : "long long";
  if (spec.type == "int8")
    return "int";
  return shortFloat(spec.type) ? "float" : spec.type == "unsigned" ? "unsigned" : spec.type;
}

std::string Renderer::cType(StringRef type, Place place) const {
  if (type == "R" && spec.type == "int8")
    return "int";
  if ((type == "T" || type == "R") && spec.type == "int8")
    return "signed char";
  if (type == "T" || type == "R")
    return shortFloat(spec.type) ? shortFloat(spec.type)->cType.str() : spec.type;
  if (type == "C")
    return computeType(place);
  if (type == "A") {
    if (isFloating())
      return computeType(place);
    return spec.type.find("unsigned") != std::string::npos ? "unsigned long long" : "long long";
  }
  return type.str();
}

/// A number as the compute type writes it.
std::string Renderer::literal(StringRef number, Place place) const {
  std::string type = computeType(place);
  bool real = type == "float" || type == "double";
  std::string text = number.str();
  if (real && number.find_first_of(".e") == StringRef::npos)
    text += ".0";
  if (type == "float")
    text += "f";
  return text;
}

/// A function of the mathematics library in the compute type.
std::string Renderer::function(StringRef name, Place place) const {
  std::string type = computeType(place);
  if (type == "float")
    return name == "abs" ? "fabsf" : name == "max" ? "fmaxf" : name == "min" ? "fminf" : name.str() + "f";
  if (type == "double")
    return name == "abs" ? "fabs" : name == "max" ? "fmax" : name == "min" ? "fmin" : name.str();
  if (name == "max" || name == "min")
    return place == Place::Device ? name.str() : "std::" + name.str() + "<" + type + ">";
  return name == "abs" && place == Place::Reference ? "std::llabs" : name.str();
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

/// How often `name` stands in `text` as a word of its own.
static unsigned countWord(StringRef text, StringRef name) {
  unsigned count = 0;
  for (size_t at = text.find(name); at != StringRef::npos; at = text.find(name, at + 1)) {
    auto isWord = [&](size_t i) { return i < text.size() && (llvm::isAlnum(text[i]) || text[i] == '_'); };
    count += !(at && isWord(at - 1)) && !isWord(at + name.size());
  }
  return count;
}

static std::string replaceWords(StringRef text, const std::map<std::string, std::string> &by) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (!llvm::isAlpha(text[i]) && text[i] != '_') {
      if (llvm::isDigit(text[i])) { // 1e5f is no word
        while (i < text.size() && (llvm::isAlnum(text[i]) || text[i] == '.'))
          result += text[i++];
        continue;
      }
      result += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && (llvm::isAlnum(text[end]) || text[end] == '_'))
      ++end;
    std::string word = text.slice(i, end).str();
    auto it = by.find(word);
    result += it == by.end() ? word : it->second;
    i = end;
  }
  return result;
}

static std::string camel(StringRef name) {
  std::string result;
  bool upper = false;
  for (char c : name) {
    if (c == '-') {
      upper = true;
      continue;
    }
    result += upper ? llvm::toUpper(c) : c;
    upper = false;
  }
  return result;
}

Renderer::Renderer(const ProgramSpec &spec) : spec(spec) {
  name(spec.before, before, true);
  name(spec.after, after, false);
}

void Renderer::name(const std::vector<Stage> &stages, std::vector<NamedStage> &named, bool isBefore) {
  auto unique = [&](const std::string &wanted) {
    std::string result = wanted;
    auto taken = [&](const std::string &n) {
      return llvm::any_of(all, [&](const Extra &e) { return e.name == n; }) ||
             llvm::any_of(spec.operation->sizes, [&](const Size &s) { return s.name == n; }) ||
             llvm::any_of(spec.operation->reals, [&](const Real &r) { return r.name == n; }) ||
             llvm::any_of(spec.operation->buffers, [&](const Buffer &b) { return b.name == n; });
    };
    for (unsigned i = 2; taken(result); ++i)
      result = wanted + std::to_string(i);
    return result;
  };
  for (const Stage &stage : stages) {
    NamedStage entry{&stage, {}, {}};
    for (const Operand &operand : stage.operation->operands) {
      Extra extra;
      extra.name = unique(operand.name);
      extra.isArray = true;
      extra.perColumn = operand.shape == "column";
      extra.isBefore = isBefore;
      auto init = stage.operation->definitions.find("operand-init");
      extra.init = init == stage.operation->definitions.end() ? "${any}" : init->second;
      entry.names[operand.name] = extra.name;
      all.push_back(std::move(extra));
    }
    for (const auto &[real, value] : stage.reals) {
      Extra extra;
      extra.name = unique(real);
      extra.isBefore = isBefore;
      extra.value = value;
      entry.names[real] = extra.name;
      all.push_back(std::move(extra));
    }
    StringRef expression = stage.operation->expression;
    if (countWord(expression, "v") > 1 || stage.operation->definitions.count("function"))
      entry.function = camel(stage.operation->name);
    named.push_back(std::move(entry));
  }
}

std::string Renderer::load(StringRef array, StringRef index, Place place) const {
  std::string element = (array + "[" + index + "]").str();
  const Buffer *buffer = nullptr;
  for (const Buffer &b : spec.operation->buffers)
    if (array == b.name)
      buffer = &b;
  std::string type = buffer ? buffer->type : "T";
  bool out = buffer && buffer->role == Buffer::Role::Out && place == Place::Reference;
  if (const ShortFloat *narrow = shortFloat(spec.type); narrow && type == "T" && !out)
    return narrow->toFloat.str() + "(" + element + ")";
  if (place == Place::Reference && !out && (type == "T" || type == "A"))
    return "(" + computeType(place) + ")" + element;
  return element;
}

llvm::Expected<std::string> Renderer::chain(const std::vector<NamedStage> &stages, std::string value, StringRef index,
                                            Place place, unsigned depth) {
  for (const NamedStage &named : stages) {
    const Operation &op = *named.stage->operation;
    std::map<std::string, std::string> by;
    std::string arguments;
    for (const Operand &operand : op.operands) {
      const std::string &array = named.names.at(operand.name);
      by[operand.name] = load(array, operand.shape == "column" ? StringRef(spec.operation->columnIndex) : index, place);
      arguments += ", " + by[operand.name];
    }
    for (const auto &[real, unused] : named.stage->reals) {
      by[real] = named.names.at(real);
      arguments += ", " + by[real];
    }
    if (!named.function.empty()) {
      value = named.function + (place == Place::Reference ? "Reference" : "") + "(" + value + arguments + ")";
      continue;
    }
    llvm::Expected<std::string> expression = expand(op.expression, place, depth + 1);
    if (!expression)
      return expression.takeError();
    bool simple = value.find_first_of(" ") == std::string::npos;
    bool isCall = StringRef(*expression).contains("(v)") || *expression == "v";
    by["v"] = simple || isCall ? value : "(" + value + ")";
    value = replaceWords(*expression, by);
  }
  return value;
}

llvm::Expected<std::string> Renderer::stageFunctions(Place place) {
  std::string result;
  std::set<std::string> seen;
  for (const std::vector<NamedStage> *stages : {&before, &after})
    for (const NamedStage &named : *stages) {
      if (named.function.empty() || !seen.insert(named.function).second)
        continue;
      const Operation &op = *named.stage->operation;
      llvm::Expected<std::string> expression = expand(op.expression, place, 0);
      if (!expression)
        return expression.takeError();
      std::string type = computeType(place), parameters = type + " v";
      for (const Operand &operand : op.operands)
        parameters += ", " + type + " " + operand.name;
      for (const auto &[real, unused] : named.stage->reals)
        parameters += ", " + type + " " + real;
      bool reference = place == Place::Reference;
      result += (reference ? "static " : "__device__ ") + type + " " + named.function +
                (reference ? "Reference(" : "(") + parameters + ") { return " + *expression + "; }\n\n";
    }
  return result;
}

/// ", const float *bias, float scale" or ", dBias, scale".
std::string Renderer::extraList(Place place, bool declare, bool wantBefore, bool wantAfter) const {
  std::string result;
  for (const Extra &extra : all) {
    if (!(extra.isBefore ? wantBefore : wantAfter))
      continue;
    if (!declare)
      result += ", " + (extra.isArray && place == Place::Host
                            ? "d" + std::string(1, llvm::toUpper(extra.name[0])) + extra.name.substr(1)
                            : extra.name);
    else if (extra.isArray)
      result += ", const " + cType("T", place) + " *" + extra.name;
    else
      result += ", " + computeType(place) + " " + extra.name;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

bool Renderer::holds(StringRef condition) const {
  condition = condition.trim();
  if (condition.consume_front("!"))
    return !holds(condition);
  auto [name, value] = condition.split('=');
  if (name == "type")
    return spec.type == value;
  if (name == "floating")
    return isFloating();
  if (name == "before")
    return !spec.before.empty();
  if (name == "after")
    return !spec.after.empty();
  if (name == "def")
    return spec.operation->definitions.count(value.str()) != 0;
  auto it = spec.choices.find(name.str());
  return it != spec.choices.end() && it->second == value;
}

/// Keeps the lines between @if CONDITION, @else and @end that apply.
std::string Renderer::filterLines(StringRef text) const {
  std::string result;
  std::vector<std::pair<bool, bool>> open; ///< the condition, and whether we are in @else
  llvm::SmallVector<StringRef, 0> lines;
  text.split(lines, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    StringRef line = lines[i].trim();
    if (line.consume_front("@if "))
      open.push_back({holds(line), false});
    else if (line == "@else" && !open.empty())
      open.back().second = true;
    else if (line == "@end" && !open.empty())
      open.pop_back();
    else if (llvm::all_of(open, [](auto &o) { return o.first != o.second; }))
      result += lines[i].str() + (i + 1 < lines.size() ? "\n" : "");
  }
  return result;
}

llvm::Expected<std::string> Renderer::placeholder(StringRef inner, Place place, unsigned depth) {
  auto [key, rest] = inner.split(' ');
  if (rest.empty()) {
    if (inner == "T" || inner == "R" || inner == "C" || inner == "A")
      return cType(inner, place);
    if (inner == "nl")
      return std::string("\n");
    if (inner == "name")
      return camel(spec.operation->name);
    if (isMathFunction(inner))
      return function(inner, place);
    if (!inner.empty() && (llvm::isDigit(inner[0]) || (inner[0] == '-' && inner.size() > 1)))
      return literal(inner, place);
    bool integer = !isFloating(), isUnsigned = spec.type.find("unsigned") != std::string::npos;
    if (inner == "lowest")
      return std::string(!integer ? "-INFINITY" : isUnsigned ? "0" : spec.type == "int" ? "INT_MIN" : "LLONG_MIN");
    if (inner == "highest")
      return std::string(!integer                  ? "INFINITY"
                         : spec.type == "unsigned" ? "UINT_MAX"
                         : isUnsigned              ? "ULLONG_MAX"
                         : spec.type == "int"      ? "INT_MAX"
                                                   : "LLONG_MAX");
    // How inputs are drawn; SEED is replaced for each buffer.
    if (inner == "any")
      return std::string(isUnsigned ? "hash(i, SEED) % 200"
                         : integer  ? "(int)(hash(i, SEED) % 201) - 100"
                                    : "2.0 * uniform(i, SEED) - 1.0");
    if (inner == "wide")
      return std::string(integer ? "(int)(hash(i, SEED) % 2001) - 1000" : "8.0 * uniform(i, SEED) - 4.0");
    if (inner == "positive")
      return std::string(integer ? "1 + hash(i, SEED) % 100" : "0.1 + 1.9 * uniform(i, SEED)");
    if (inner == "unit")
      return std::string(integer ? "hash(i, SEED) % 2" : "uniform(i, SEED)");
    for (auto [word, b, a] : std::initializer_list<std::tuple<StringRef, bool, bool>>{
             {"params", true, true}, {"before.params", true, false}, {"after.params", false, true}})
      if (inner == word)
        return extraList(place, true, b, a);
    for (auto [word, b, a] : std::initializer_list<std::tuple<StringRef, bool, bool>>{
             {"args", true, true}, {"before.args", true, false}, {"after.args", false, true}})
      if (inner == word)
        return extraList(place, false, b, a);
    auto definition = spec.operation->definitions.find(inner.str());
    if (definition != spec.operation->definitions.end())
      return expand(definition->second, place, depth + 1);
  }
  if (key == "if") { // ${if axis=row ? rows : cols}
    auto [condition, values] = rest.split(" ? ");
    auto [yes, no] = values.split(" : ");
    return (holds(condition) ? yes : no).str();
  }
  if (key == "get" || key == "fget") {
    auto [array, index] = rest.split(' ');
    std::string value = load(array, index, place);
    return key == "get" ? value : chain(before, value, index, place, depth);
  }
  if (key == "put" || key == "fput" || key == "finish") {
    auto [where, value] = rest.split(" : ");
    auto [array, index] = where.split(' ');
    llvm::Expected<std::string> final = key == "put" ? value.str() : chain(after, value.str(), index, place, depth);
    if (!final || key == "finish")
      return final;
    const ShortFloat *narrow = place == Place::Reference ? nullptr : shortFloat(spec.type);
    for (const Buffer &b : spec.operation->buffers)
      if (b.name == array && b.type != "T")
        narrow = nullptr;
    return (array + "[" + index + "] = ").str() + (narrow ? narrow->fromFloat.str() + "(" + *final + ")" : *final);
  }
  return makeError("operation {0}: nothing is known of ${{{1}}", spec.operation->name, inner);
}

/// Whether a value between these texts needs parentheses where it has operators of its own.
static bool isOperand(StringRef before, StringRef after) {
  before = before.rtrim(), after = after.ltrim();
  bool begins = before.empty() || StringRef("(,=:").contains(before.back()) || before.ends_with("return");
  bool ends = after.empty() || StringRef(";,)").contains(after.front());
  return !begins || !ends;
}

llvm::Expected<std::string> Renderer::expand(StringRef text, Place place, unsigned depth) {
  if (depth > 16)
    return makeError("operation {0}: definitions that hold themselves", spec.operation->name);
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (!text.substr(i).starts_with("${")) {
      result += text[i++];
      continue;
    }
    size_t end = i + 2;
    for (int open = 1; end < text.size(); ++end) {
      open += text.substr(end).starts_with("{") ? 1 : text[end] == '}' ? -1 : 0;
      if (!open)
        break;
    }
    if (end >= text.size())
      return makeError("operation {0}: a placeholder without an end", spec.operation->name);
    llvm::Expected<std::string> inner = expand(text.slice(i + 2, end), place, depth + 1);
    if (!inner)
      return inner;
    llvm::Expected<std::string> value = placeholder(*inner, place, depth + 1);
    if (!value)
      return value;
    bool isFused = StringRef(*inner).starts_with("fget ") && !before.empty() && before.back().function.empty();
    bool wraps = isFused && StringRef(*value).contains(' ') && isOperand(text.take_front(i), text.substr(end + 1));
    result += wraps ? "(" + *value + ")" : *value;
    i = end + 1;
  }
  return result;
}

llvm::Expected<std::string> Renderer::render(StringRef text, Place place) {
  return expand(filterLines(text), place, 0);
}
