//===- Library.cpp - families and members; the embedded library -----------===//
#include "EmbeddedFile.h"
#include "optiml/Generate/Operation.h"
#include "optiml/Generate/Words.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/ErrorHandling.h"

using namespace optiml;
using namespace optiml::gen;

const Operation *Library::find(llvm::StringRef name) const {
  for (const Operation &op : entries)
    if (op.name == name)
      return &op;
  return nullptr;
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
  inherit(op.always, family.always);
  inherit(op.shapes, family.shapes);
  inherit(op.notWith, family.notWith);
  inherit(op.columnIndex, family.columnIndex);
  inherit(op.columnCount, family.columnCount);
  inherit(op.tolerance, family.tolerance);
  inherit(op.requirements, family.requirements);
  inherit(op.group, family.group);
  op.fusesBefore |= family.fusesBefore;
  op.fusesAfter |= family.fusesAfter;
  op.asks.insert(family.asks.begin(), family.asks.end());
  op.definitions.insert(family.definitions.begin(), family.definitions.end());
  op.sections.insert(family.sections.begin(), family.sections.end());
}

/// "like: reduce-all reduce-axis": one row of a table becomes an operation of each family.
static std::vector<Operation> expandFamilies(const std::vector<Operation> &entries, const Library &library) {
  std::vector<Operation> result;
  for (const Operation &op : entries) {
    auto like = op.definitions.find("like");
    llvm::SmallVector<llvm::StringRef, 2> families;
    if (like != op.definitions.end())
      llvm::StringRef(like->second).split(families, ' ');
    if (families.size() < 2) {
      result.push_back(op);
      continue;
    }
    for (llvm::StringRef name : families) {
      Operation member = op;
      member.definitions["like"] = name.str();
      const Operation *family = library.find(name);
      if (family && family->definitions.count("suffix")) {
        member.name += family->definitions.at("suffix");
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
    auto like = op.definitions.find("like");
    if (like == op.definitions.end())
      continue;
    const Operation *family = find(like->second);
    if (!family || family == &op)
      return makeError("operation {0} (line {1}): there is no family '{2}'", op.name, op.line, like->second);
    inheritFrom(op, *family);
  }
  for (Operation &op : entries) // what is offered for one type of 16 bits is offered for the other
    if (auto half = llvm::find(op.types, "half"); half != op.types.end())
      op.types.insert(half + 1, "bfloat16");
  for (const Operation &op : entries) {
    if (op.isSnippet || op.isFamily)
      continue;
    if (op.types.empty() || op.title.empty() || (op.says.empty() && op.name != "map" && op.name != "map2d"))
      return makeError("operation {0} (line {1}): needs title, says and types", op.name, op.line);
    if (op.isStage ? op.expression.empty() : !op.sections.count("reference"))
      return makeError("operation {0} (line {1}): needs {2}", op.name, op.line,
                       op.isStage ? "an expr" : "a reference");
    if (llvm::count_if(entries, [&](const Operation &other) { return other.name == op.name; }) > 1)
      return makeError("operation {0} (line {1}): there are two of this name", op.name, op.line);
  }
  return llvm::Error::success();
}

/// The embedded texts are part of the program (a unit test reads them): a mistake in them is a bug.
static void orDie(llvm::Error error) {
  if (error)
    llvm::report_fatal_error(llvm::Twine(llvm::toString(std::move(error))), /*gen_crash_diag=*/false);
}

const Library &Library::builtin() {
  static const Library library = [] {
    Library result;
    for (const EmbeddedFile *file = embeddedOperationFiles; file->name; ++file)
      if (llvm::StringRef(file->name).ends_with(".op"))
        orDie(result.add(file->name, file->text));
    orDie(result.finish());
    return result;
  }();
  return library;
}

const Vocabulary &Vocabulary::builtin() {
  static const Vocabulary vocabulary = [] {
    for (const EmbeddedFile *file = embeddedOperationFiles; file->name; ++file)
      if (llvm::StringRef(file->name) == "words.txt")
        if (llvm::Expected<Vocabulary> parsed = Vocabulary::parse(file->text))
          return std::move(*parsed);
        else
          orDie(parsed.takeError());
    llvm::report_fatal_error("words.txt is not embedded");
  }();
  return vocabulary;
}
