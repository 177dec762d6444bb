//===- SplitRecords.h - records as their members ----------------*- C++ -*-===//
//
// A private variable of a class that is copied byte by byte (a complex number, a float4, a particle) becomes one
// variable for each of its members, where the kernel looks at members alone: "sum = sum + a * b" of complex numbers is
// then two sums like any other.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_ANALYSIS_SPLITRECORDS_H
#define OPTIML_LIB_ANALYSIS_SPLITRECORDS_H

#include "optiml/Analysis/Tree.h"

namespace optiml {

/// A class that is copied byte by byte: numbers, pointers, other such classes, and arrays of these, in order.
struct RecordShape {
  struct Field {
    std::string name;
    Type type;
    unsigned offset = 0;            ///< bytes
    std::vector<ExprRef> dims = {}; ///< of an array, whose elements `type` is of
  };
  std::vector<Field> fields; ///< without members that have none themselves (functors)
  bool isWhole = true;       ///< there are neither arrays nor such members: it is copied member by member
  bool isAggregate = false;  ///< "place = {a, b};" stores one
};

/// What is known of the classes that a kernel names.
struct Records {
  std::map<std::string, RecordShape> shapes; ///< by the type's text
  /// What a constructor that only computes makes of its arguments "$0", "$1", …, for each field; by constructorKey.
  /// Empty: not known, or several.
  std::map<std::string, std::vector<ExprRef>> constructors;
  std::set<std::string> hidden; ///< private members that the tree names, which only the class may
};
std::string constructorKey(const std::string &type, size_t arguments);

/// Splits every record that can be. `taken`: names that no variable may get.
void splitRecords(Kernel &kernel, const Records &records, std::set<std::string> taken);

/// Removes what splitting records leaves over: variables `made` that nothing reads, names that only carry a value to
/// where it is used once, and copies of a variable that replace it. Declarations go to where the values are.
void tidyParts(Kernel &kernel, const std::set<std::string> &made);

bool loadsMemory(const ExprRef &e);
/// The variable that an element or member belongs to; empty when it is none.
std::string placeOf(ExprRef e);

} // namespace optiml

#endif
