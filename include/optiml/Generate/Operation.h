//===- Operation.h - what optiml-gen can write ------------------*- C++ -*-===//
//
// The library of operations is text (lib/Generate/operations/*.op, embedded at build time; docs/generating.md describes the
// format): names and synonyms, types, sizes, buffers, and sections of CUDA with ${placeholders}. A stage is an element-wise
// expression that can stand alone, in a chain, or before and after a heavier operation.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GENERATE_OPERATION_H
#define OPTIML_GENERATE_OPERATION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace optiml::gen {

/// An integer argument of the generated program.
struct Size {
  std::string name;
  int64_t value = 1;               ///< default when the request names none
  int64_t small = 1;               ///< what the gate runs it with
  int64_t least = 1, most = 1 << 30; ///< what the generated program accepts
  bool keep = false;               ///< the gate keeps the request's value (window sizes, k) where it is at most 64
  bool powerOfTwo = false;
  std::string sameAs; ///< the size whose value it takes when the request names only that one
  std::string total;  ///< it is a number for each of that size's; one that is not smaller counts all of them ("50000 edges")
  std::vector<std::string> words;  ///< phrases that name it beside a number
};

/// A real constant of the generated program.
struct Real {
  std::string name;
  double value = 0;
  std::vector<std::string> words;
};

struct Buffer {
  enum class Role { In, Out, InOut, Temporary } role = Role::In;
  std::string name;
  std::string type;  ///< a C type, "T" (the request's) or "A" (what it is accumulated in)
  std::string count; ///< C expression over the sizes
  std::string init;  ///< C expression over the index i, or "custom" (section inputs fills it)
};

/// A property that the request may choose: the first value is the default. A value is a modifier of the vocabulary.
struct Choice {
  std::string name;
  std::vector<std::string> values;
};

/// How "512x256" beside each other are read: one list of dimensions per shape in the request. "k=n" sets both.
struct ShapeRule {
  std::vector<std::vector<std::string>> shapes;
  std::vector<std::string> words; ///< phrases that must stand beside it ("3x3 kernel"); empty: none
  std::string when;               ///< "choice=value" under which it holds; empty: always
};

/// Another array that an element-wise stage reads.
struct Operand {
  std::string name;
  std::string shape; ///< "same" as the values, or "column": one for each column (channel) of the result
};

struct Operation {
  std::string name, title, group, about;
  bool isStage = false, isFamily = false, isSnippet = false;
  std::vector<std::string> says;  ///< phrases that mean it
  std::vector<std::string> formulas; ///< equations that mean it, each perhaps with " => " and the words to say then
  std::vector<std::string> types; ///< first is the default
  std::vector<Size> sizes;
  std::vector<Real> reals;
  std::vector<Buffer> buffers;
  std::vector<Choice> choices;
  std::vector<std::string> always; ///< modifiers that it is in any case ("tiled")
  std::vector<ShapeRule> shapes;
  std::vector<std::string> notWith; ///< words that mean another thing than this one
  std::vector<std::vector<std::string>> means; ///< what it does, step by step: says it without its name
  std::vector<std::string> needs;   ///< phrases of which one must be said; empty: none
  /// Constants and sizes without a usual value: the request gives it or says one of these phrases ("a constant").
  std::map<std::string, std::vector<std::string>> asks;
  bool fusesBefore = false, fusesAfter = false;
  std::string columnIndex, columnCount; ///< where a fused per-column operand is read
  std::string tolerance;                ///< C expression over eps and the sizes
  std::vector<std::pair<std::string, std::string>> requirements; ///< C condition over the sizes, and the message
  std::map<std::string, std::string> definitions, sections;
  // Stages only
  std::string expression, inputs; ///< over v, operands and reals; inputs: how the tested values are drawn
  std::vector<Operand> operands;
  unsigned line = 0; ///< in its file
};

class Library {
public:
  /// Parses one .op file. The error names file and line.
  llvm::Error add(llvm::StringRef fileName, llvm::StringRef text);
  /// Puts families into their members and checks that what is mentioned exists. Call once after the last add.
  llvm::Error finish();
  const std::vector<Operation> &operations() const { return entries; }
  /// Null when there is none.
  const Operation *find(llvm::StringRef name) const;
  /// The embedded library.
  static const Library &builtin();

private:
  std::vector<Operation> entries;
};

} // namespace optiml::gen

#endif
