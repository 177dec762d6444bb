//===- OperationFile.cpp - reading operations/*.op ------------------------===//
//
// A file is a sequence of entries. An entry starts with "op: NAME", "stage: NAME", "family: NAME" or "snippet: NAME",
// goes on with "key: value" lines, and ends with sections of CUDA after "--- SECTION" lines.
//
//===----------------------------------------------------------------------===//
#include "optiml/Generate/Operation.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

static std::vector<std::string> list(StringRef text, StringRef separator) {
  std::vector<std::string> result;
  llvm::SmallVector<StringRef, 8> parts;
  text.split(parts, separator);
  for (StringRef part : parts)
    if (!part.trim().empty())
      result.push_back(part.trim().str());
  return result;
}

static llvm::Error parseSize(StringRef name, StringRef value, Operation &op) {
  Size size;
  size.name = name.str();
  auto [numbers, aliases] = value.split(" words ");
  size.aliases = list(aliases, ",");
  std::vector<std::string> parts = list(numbers, " ");
  for (size_t i = 0; i < parts.size(); ++i) {
    StringRef part = parts[i];
    int64_t *target = nullptr;
    if (i == 0 && part.consume_front("=")) // of a size that was described before
      size.sameAs = part.str();
    else if (i == 0)
      target = &size.value;
    else if (part == "keep")
      size.keep = true;
    else if (part == "pow2")
      size.powerOfTwo = true;
    else if (part.consume_front("small="))
      target = &size.small;
    else if (part.consume_front("least="))
      target = &size.least;
    else if (part.consume_front("most="))
      target = &size.most;
    else
      return makeError("unknown word '{0}' in a size", part);
    if (target && part.getAsInteger(10, *target))
      return makeError("'{0}' is no integer", part);
  }
  if (!size.sameAs.empty()) {
    auto known = llvm::find_if(op.sizes, [&](const Size &s) { return s.name == size.sameAs; });
    if (known == op.sizes.end())
      return makeError("the size '{0}' is not described before", size.sameAs);
    size.value = known->value;
  }
  op.sizes.push_back(std::move(size));
  return llvm::Error::success();
}

static llvm::Error parseReal(StringRef name, StringRef value, Operation &op) {
  auto [number, aliases] = value.split(" words ");
  Real real{name.str(), 0, list(aliases, ",")};
  if (number.trim().getAsDouble(real.value))
    return makeError("'{0}' is no number", number);
  op.reals.push_back(std::move(real));
  return llvm::Error::success();
}

/// "in NAME TYPE: COUNT = INIT"
static llvm::Error parseBuffer(StringRef key, StringRef value, Operation &op) {
  std::vector<std::string> words = list(key, " ");
  Buffer buffer;
  buffer.role = words[0] == "in"      ? Buffer::Role::In
                : words[0] == "out"   ? Buffer::Role::Out
                : words[0] == "inout" ? Buffer::Role::InOut
                                      : Buffer::Role::Temporary;
  if (words.size() < 2)
    return makeError("a buffer needs a name");
  buffer.name = words[1];
  buffer.type = llvm::join(words.begin() + 2, words.end(), " ");
  if (buffer.type.empty())
    buffer.type = "T";
  auto [count, init] = value.split(" = ");
  buffer.count = count.trim().str();
  buffer.init = init.trim().str();
  op.buffers.push_back(std::move(buffer));
  return llvm::Error::success();
}

static void parseShapes(StringRef value, Operation &op) {
  for (const std::string &alternative : list(value, ";")) {
    ShapeRule rule;
    for (const std::string &shape : list(alternative, ","))
      rule.shapes.push_back(list(shape, " "));
    op.shapes.push_back(std::move(rule));
  }
}

/// Keys whose value is a text or a list that is kept as it is.
static bool parsePlainKey(StringRef key, StringRef value, Operation &op) {
  const std::pair<StringRef, std::string *> texts[] = {
      {"title", &op.title},         {"group", &op.group},     {"about", &op.about},   {"formula", &op.formula},
      {"tolerance", &op.tolerance}, {"expr", &op.expression}, {"inputs", &op.inputs}, {"like", &op.like}};
  for (auto [name, text] : texts)
    if (key == name) {
      *text = value.str();
      return true;
    }
  bool isCommon = key.consume_front("common ");
  if (key == "phrases") {
    op.phrases = list(value, "|");
    op.isCommon = isCommon;
  } else if (key == "required")
    op.required.push_back(value.str());
  else if (key == "shapes")
    parseShapes(value, op);
  else
    return false;
  return true;
}

static llvm::Error parseKey(StringRef key, StringRef value, Operation &op) {
  if (parsePlainKey(key, value, op)) // not "phrases by-axis"
    return llvm::Error::success();
  auto [first, rest] = key.split(' ');
  rest = rest.trim();
  if (first == "about" || first == "phrases" || first == "common") // of the member of another family: "about by-axis"
    op.definitions[key.str()] = value.str();
  else if (first == "types") {
    op.types = list(value, " ");
    for (std::string &type : op.types) // a type of two words
      std::replace(type.begin(), type.end(), '_', ' ');
  } else if (first == "size")
    return parseSize(rest, value, op);
  else if (first == "real")
    return parseReal(rest, value, op);
  else if (first == "in" || first == "out" || first == "inout" || first == "temp")
    return parseBuffer(key, value, op);
  else if (first == "choice")
    op.choices.push_back({rest.str(), list(value, " ")});
  else if (first == "fuse") {
    op.fusesBefore = value.contains("before");
    op.fusesAfter = value.contains("after");
  } else if (first == "column") {
    auto [index, count] = value.split(" of ");
    op.columnIndex = index.trim().str();
    op.columnCount = count.trim().str();
  } else if (first == "require") {
    auto [condition, message] = value.split(" : ");
    op.requirements.push_back({condition.trim().str(), message.trim().str()});
  } else if (first == "def")
    op.definitions[rest.str()] = value.str();
  else if (first == "operand")
    op.operands.push_back({rest.str(), value.str()});
  else
    return makeError("unknown key '{0}'", key);
  return llvm::Error::success();
}

llvm::Error Library::add(StringRef fileName, StringRef text) {
  Operation *current = nullptr;
  std::string *section = nullptr;
  unsigned line = 0;
  while (!text.empty()) {
    StringRef row;
    std::tie(row, text) = text.split('\n');
    ++line;
    auto [key, value] = row.split(':');
    key = key.trim(), value = value.trim();
    bool starts = row.starts_with("op:") || row.starts_with("stage:") || row.starts_with("family:") ||
                  row.starts_with("snippet:");
    if (starts) {
      Operation &op = entries.emplace_back();
      op.name = value.str();
      op.line = line;
      op.isStage = key == "stage";
      op.isFamily = key == "family";
      op.isSnippet = key == "snippet";
      current = &op;
      section = nullptr;
    } else if (row.starts_with("--- ")) {
      if (!current)
        return makeError("{0}:{1}: a section needs an entry above it", fileName, line);
      section = &current->sections[row.drop_front(4).trim().str()];
    } else if (section)
      *section += (row + "\n").str();
    else if (!row.trim().empty() && !row.starts_with("#")) {
      if (!current)
        return makeError("{0}:{1}: expected 'op: NAME', 'stage: NAME', 'family: NAME' or 'snippet: NAME'", fileName,
                         line);
      if (llvm::Error error = parseKey(key, value, *current))
        return makeError("{0}:{1}: {2}", fileName, line, llvm::toString(std::move(error)));
    }
  }
  return llvm::Error::success();
}
