//===- Operation.h - what optiml-gen can write ------------------*- C++ -*-===//
//
// The library of operations is text: lib/Generate/operations/*.op, embedded at build time. docs/generating.md describes
// the format: titles and phrasings, types, sizes, buffers, and sections of CUDA with ${placeholders}. A stage is an
// element-wise expression. It stands alone, in a chain, or before and after another operation.
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
  int64_t value = 1;                 ///< the default
  int64_t small = 1;                 ///< what the gate runs it with
  int64_t least = 1, most = 1 << 30; ///< what the generated program accepts
  bool keep = false;                 ///< the gate keeps the request's value (window sizes, k) where it is at most 64
  bool powerOfTwo = false;
  std::string sameAs;               ///< the size whose value it takes when the request names only that one
  std::vector<std::string> aliases; ///< other nouns for it ("rows" is also "height")
};

/// A real constant of the generated program.
struct Real {
  std::string name;
  double value = 0; ///< the default
  std::vector<std::string> aliases;
};

struct Buffer {
  enum class Role { In, Out, InOut, Temporary } role = Role::In;
  std::string name;
  std::string type;  ///< a C type, "T" (the request's) or "A" (what it is accumulated in)
  std::string count; ///< C expression over the sizes
  std::string init;  ///< C expression over the index i, or "custom" (section inputs fills it)
};

/// A property that the request may choose. The first value is the default.
struct Choice {
  std::string name;
  std::vector<std::string> values;
};

/// How "512x256" is read: one list of dimensions for each shape in the request. "k=n" sets both.
struct ShapeRule {
  std::vector<std::vector<std::string>> shapes;
};

/// Another array that an element-wise stage reads.
struct Operand {
  std::string name;
  std::string shape; ///< "same" as the values, or "column": one for each column (channel) of the result
};

struct Operation {
  std::string name, title, group, about;
  std::string formula; ///< for people: what it computes, as an equation; may be empty
  std::string like;    ///< the families whose member it is, with spaces between
  bool isStage = false, isFamily = false, isSnippet = false;
  std::vector<std::string> phrases; ///< a few ways to ask for it, for retrieval
  bool isCommon = false;            ///< people ask for it often
  std::vector<std::string> types;   ///< the first is the default
  std::vector<Size> sizes;
  std::vector<Real> reals;
  std::vector<Buffer> buffers;
  std::vector<Choice> choices;
  std::vector<ShapeRule> shapes;
  std::vector<std::string> required; ///< sizes and constants that have no usual value
  bool fusesBefore = false, fusesAfter = false;
  std::string columnIndex, columnCount;                          ///< where a fused per-column operand is read
  std::string tolerance;                                         ///< C expression over eps and the sizes
  std::vector<std::pair<std::string, std::string>> requirements; ///< C condition over the sizes, and the message
  std::map<std::string, std::string> definitions, sections;
  // Stages only
  std::string expression, inputs; ///< over v, operands and reals; inputs: how the tested values are drawn
  std::vector<Operand> operands;
  unsigned line = 0; ///< in its file

  /// A request may name it: no family, no snippet, and not the map that carries stages.
  bool isPublic() const { return !isFamily && !isSnippet && !phrases.empty(); }
  bool hasColumnOperand() const;
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
  /// The operation that a request may name; null when there is none.
  const Operation *findPublic(llvm::StringRef name) const;
  /// The embedded library.
  static const Library &builtin();

private:
  llvm::Error check(const Operation &op) const;

  std::vector<Operation> entries;
};

} // namespace optiml::gen

#endif
