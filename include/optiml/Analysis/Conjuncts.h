//===- Conjuncts.h - conditions, part by part -------------------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_CONJUNCTS_H
#define OPTIML_ANALYSIS_CONJUNCTS_H

#include "optiml/Analysis/Tree.h"
#include "llvm/ADT/STLExtras.h"

namespace optiml {

/// The parts of a && b && …, from the left; of another condition, itself.
inline void addConjuncts(const ExprRef &condition, std::vector<ExprRef> &into) {
  if (!isBinary(condition, "&&"))
    return into.push_back(condition);
  addConjuncts(condition->args[0], into);
  addConjuncts(condition->args[1], into);
}

/// What is left of the condition without these parts of it; null: nothing.
inline ExprRef withoutConjuncts(const ExprRef &condition, const std::vector<ExprRef> &needless) {
  if (llvm::is_contained(needless, condition))
    return nullptr;
  if (!isBinary(condition, "&&"))
    return condition;
  ExprRef left = withoutConjuncts(condition->args[0], needless), right = withoutConjuncts(condition->args[1], needless);
  return left && right ? logicalAnd(left, right) : left ? left : right;
}

} // namespace optiml

#endif
