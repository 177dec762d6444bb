//===- Inlining.h - reading functions in place of their calls ---*- C++ -*-===//
//
// The reader puts the body of a helper where it is called when that shows what the helper does to memory. This is what
// it asks of the helper's declaration, and what it does to its tree; Read.cpp binds the arguments.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_ANALYSIS_INLINING_H
#define OPTIML_LIB_ANALYSIS_INLINING_H

#include "optiml/Analysis/Tree.h"

namespace clang {
class Expr;
class FunctionDecl;
class Stmt;
class VarDecl;
} // namespace clang

namespace optiml {

struct CalleeFacts {
  std::string refusal; ///< why its body must stay where it is; empty: it may be read elsewhere
  std::map<const clang::VarDecl *, unsigned> uses;
  std::set<const clang::VarDecl *>
      modified; ///< they or members of them; elements of arrays too, what is pointed to not
  /// Their addresses are taken, or references bound to them: calls may change them.
  std::set<const clang::VarDecl *> exposed;
};
CalleeFacts examineCallee(const clang::FunctionDecl *definition);
CalleeFacts examineStatement(const clang::Stmt *statement);

/// Floats in it become doubles, or it takes a square root: transforms have other forms for these.
bool hasOtherForms(const clang::Expr *value);

/// Holds barriers, or calls and text whose effects are not known; atomic operations are.
bool letsThreadsMeet(const std::vector<StmtRef> &list);

/// Writes something that is neither declared among the statements nor one of `own`, or lets threads meet.
bool writesOutside(const std::vector<StmtRef> &list, const std::set<std::string> &own = {});
/// There is neither opaque text nor a call that might do anything (atomics do what is known).
bool wholeTree(const ExprRef &e);
bool wholeTree(const std::vector<StmtRef> &list);

/// An lvalue of variables, members and elements.
bool isPlace(const ExprRef &e);
/// It takes a load to find the place.
bool placeLoads(const ExprRef &place);
/// p + i or &p[i], as {p, i}; anything else as {it, null}.
std::pair<ExprRef, ExprRef> splitPointer(const ExprRef &e);
/// The index that is `offset` and `index` in sequence. Pointers are moved in 64 bits, where narrower types might wrap.
ExprRef joinOffsets(const ExprRef &offset, const ExprRef &index);
/// What a pointer leads to, where that can be said without following it: &a, or p + i. Else the pointer itself.
ExprRef pointedTo(const ExprRef &pointer);
/// The same, or pointer[0]; null where what it leads to has no type.
ExprRef placeAt(const ExprRef &pointer);
/// The variable that holds the place; empty when a pointer leads to it.
std::string placeRoot(const ExprRef &place);

} // namespace optiml

#endif
