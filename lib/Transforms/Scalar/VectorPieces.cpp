//===- VectorPieces.cpp - 16 bytes of an array at once --------------------===//
#include "VectorPieces.h"
#include "optiml/Analysis/Bounds.h"

using namespace optiml;

std::string optiml::vectorName(const Type &element) {
  if (element.isFloat())
    return element.bytes == 4 ? "float4" : element.bytes == 8 ? "double2" : "";
  if (element.cls == Type::Class::Int && element.bytes == 4)
    return element.isSigned ? "int4" : "uint4";
  return "";
}

Type optiml::vectorType(const Type &element) {
  Type type;
  type.cls = Type::Class::Record;
  type.text = vectorName(element);
  type.bytes = 16;
  return type;
}

ExprRef optiml::reinterpreted(const ExprRef &element, Type type, bool isConst) {
  Type pointer = Type::makePointer(type.withConst(isConst));
  return subscript(castTo(pointer, addressOf(element)), intLit(0), type);
}

bool Multiples::require(const Poly &p) {
  for (const auto &[monomial, c] : p.terms) {
    bool given = c % width == 0;
    std::vector<std::string> candidates;
    for (const std::string &atom : monomial) {
      auto it = known.find(atom);
      given |= (it != known.end() && it->second % width == 0) || parameters.count(atom);
      if (planText(model, Poly::atom(atom)))
        candidates.push_back(atom);
    }
    if (given)
      continue;
    if (candidates.empty())
      return false;
    parameters.insert(candidates.back());
  }
  return true;
}
