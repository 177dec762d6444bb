//===- Library.cpp - families and members; the embedded library -----------===//
#include "EmbeddedFile.h"
#include "optiml/Generate/Operation.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/ErrorHandling.h"
#include <set>

using namespace optiml;
using namespace optiml::gen;

const Operation *Library::find(llvm::StringRef name) const {
  for (const Operation &op : entries)
    if (op.name == name)
      return &op;
  return nullptr;
}

const Operation *Library::findPublic(llvm::StringRef name) const {
  const Operation *op = find(name);
  return op && op->isPublic() ? op : nullptr;
}

template <typename T> static void inherit(T &own, const T &family) {
  if (own.empty())
    own = family;
}

/// Sizes, buffers and so on that the member names itself replace the family's.
static void inheritFrom(Operation &op, const Operation &family) {
  inherit(op.types, family.types);
  inherit(op.sizes, family.sizes);
  inherit(op.reals, family.reals);
  inherit(op.buffers, family.buffers);
  inherit(op.choices, family.choices);
  inherit(op.shapes, family.shapes);
  inherit(op.columnIndex, family.columnIndex);
  inherit(op.columnCount, family.columnCount);
  inherit(op.tolerance, family.tolerance);
  inherit(op.requirements, family.requirements);
  inherit(op.group, family.group);
  op.fusesBefore |= family.fusesBefore;
  op.fusesAfter |= family.fusesAfter;
  inherit(op.required, family.required);
  op.definitions.insert(family.definitions.begin(), family.definitions.end());
  op.sections.insert(family.sections.begin(), family.sections.end());
}

/// "suffix: -by-axis": the member's own texts are "about by-axis" and "phrases by-axis".
static void takeTexts(Operation &member, const std::string &suffix) {
  std::string of = " " + suffix.substr(1);
  auto text = [&](const std::string &key) {
    auto at = member.definitions.find(key + of);
    return at == member.definitions.end() ? "" : at->second;
  };
  member.name += suffix;
  member.about = text("about");
  member.isCommon = !text("common phrases").empty();
  member.phrases.clear();
  std::string phrases = text(member.isCommon ? "common phrases" : "phrases");
  llvm::SmallVector<llvm::StringRef, 8> parts;
  llvm::StringRef(phrases).split(parts, '|');
  for (llvm::StringRef phrase : parts)
    member.phrases.push_back(phrase.trim().str());
}

/// "like: reduce-all reduce-axis": one row of a table becomes an operation of each family.
static std::vector<Operation> expandFamilies(const std::vector<Operation> &entries, const Library &library) {
  std::vector<Operation> result;
  for (const Operation &op : entries) {
    llvm::SmallVector<llvm::StringRef, 2> families;
    llvm::StringRef(op.like).split(families, ' ');
    if (families.size() < 2) {
      result.push_back(op);
      continue;
    }
    for (llvm::StringRef name : families) {
      Operation member = op;
      member.like = name.str();
      const Operation *family = library.find(name);
      if (family && family->definitions.count("suffix")) {
        takeTexts(member, family->definitions.at("suffix"));
        member.title += " " + family->definitions.at("title-suffix");
      }
      result.push_back(std::move(member));
    }
  }
  return result;
}

llvm::Error Library::finish() {
  entries = expandFamilies(entries, *this);
  for (Operation &op : entries) {
    if (op.like.empty())
      continue;
    const Operation *family = find(op.like);
    if (!family || family == &op)
      return makeError("operation {0} (line {1}): there is no family '{2}'", op.name, op.line, op.like);
    inheritFrom(op, *family);
  }
  for (Operation &op : entries) // what is offered for one type of 16 bits is offered for the other
    if (auto half = llvm::find(op.types, "half"); half != op.types.end())
      op.types.insert(half + 1, "bfloat16");
  for (const Operation &op : entries)
    if (llvm::Error error = check(op))
      return error;
  return llvm::Error::success();
}

/// What every entry needs, so that requests, help and retrieval can rely on it.
llvm::Error Library::check(const Operation &op) const {
  if (op.isSnippet || op.isFamily)
    return llvm::Error::success();
  bool isCarrier = op.name == "map" || op.name == "map2d"; // of stages; nobody asks for it
  if (op.types.empty() || op.title.empty() || (!isCarrier && (op.phrases.empty() || op.about.empty())))
    return makeError("operation {0} (line {1}): needs title, about, phrases and types", op.name, op.line);
  if (op.isStage ? op.expression.empty() : !op.sections.count("reference"))
    return makeError("operation {0} (line {1}): needs {2}", op.name, op.line, op.isStage ? "an expr" : "a reference");
  if (llvm::count_if(entries, [&](const Operation &other) { return other.name == op.name; }) > 1)
    return makeError("operation {0} (line {1}): there are two of this name", op.name, op.line);
  // Flags of optiml-gen are no options of operations.
  std::set<std::string> names = {"type", "before", "after",    "request", "formula", "list",    "schema",    "explain",
                                 "help", "time",   "optimize", "repairs", "ungated", "no-nvcc", "candidates"};
  auto add = [&](const std::string &name) { return names.insert(name).second; };
  bool areUnique = llvm::all_of(op.sizes, [&](const Size &s) { return add(s.name); }) &&
                   llvm::all_of(op.reals, [&](const Real &r) { return add(r.name); }) &&
                   llvm::all_of(op.choices, [&](const Choice &c) { return add(c.name); });
  if (!areUnique)
    return makeError("operation {0} (line {1}): two options of one name", op.name, op.line);
  for (const std::string &name : op.required)
    if (!names.count(name))
      return makeError("operation {0} (line {1}): there is no option '{2}' to be required", op.name, op.line, name);
  return llvm::Error::success();
}

bool Operation::hasColumnOperand() const {
  return llvm::any_of(operands, [](const Operand &operand) { return operand.shape == "column"; });
}

/// The embedded texts are part of the program (a unit test reads them): a mistake in them is a bug.
static void orDie(llvm::Error error) {
  if (error)
    llvm::report_fatal_error(llvm::Twine(llvm::toString(std::move(error))), /*gen_crash_diag=*/false);
}

const Library &Library::builtin() {
  static const Library library = [] {
    Library result;
    for (const EmbeddedFile *file = embeddedFiles; file->name; ++file)
      if (llvm::StringRef(file->name).ends_with(".op"))
        orDie(result.add(file->name, file->text));
    orDie(result.finish());
    return result;
  }();
  return library;
}

std::string optiml::gen::resource(const char *name) { return embeddedText(embeddedFiles, name); }
