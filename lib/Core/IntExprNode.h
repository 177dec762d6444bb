//===- IntExprNode.h - the tree behind an IntExpr ---------------*- C++ -*-===//
#ifndef OPTIML_LIB_CORE_INTEXPRNODE_H
#define OPTIML_LIB_CORE_INTEXPRNODE_H

#include "optiml/Core/IntExpr.h"
#include "llvm/ADT/StringRef.h"

namespace optiml {

struct IntExpr::Node {
  enum Kind { Literal, Name, Unary, Binary, Call } kind;
  std::string text; ///< operator, name or function
  int64_t value = 0;
  std::vector<std::shared_ptr<const Node>> children;
};

inline std::shared_ptr<const IntExpr::Node> makeNode(IntExpr::Node::Kind kind, std::string text,
                                                     std::vector<std::shared_ptr<const IntExpr::Node>> children) {
  return std::make_shared<const IntExpr::Node>(IntExpr::Node{kind, std::move(text), 0, std::move(children)});
}

inline std::shared_ptr<const IntExpr::Node> literalNode(int64_t value) {
  return std::make_shared<const IntExpr::Node>(IntExpr::Node{IntExpr::Node::Literal, "", value, {}});
}

inline std::shared_ptr<const IntExpr::Node> binaryNode(std::string op, std::shared_ptr<const IntExpr::Node> left,
                                                       std::shared_ptr<const IntExpr::Node> right) {
  return makeNode(IntExpr::Node::Binary, std::move(op), {std::move(left), std::move(right)});
}

/// C's precedence levels of the binary operators, loosest 1.
inline int precedence(llvm::StringRef op) {
  if (op == "||")
    return 1;
  if (op == "&&")
    return 2;
  if (op == "==" || op == "!=")
    return 3;
  if (op == "<" || op == ">" || op == "<=" || op == ">=")
    return 4;
  return op == "+" || op == "-" ? 5 : 6;
}

/// Number of arguments of a function of the language, 0 when there is none of that name.
inline unsigned callArity(llvm::StringRef name) {
  if (name == "min" || name == "max" || name == "ceildiv" || name == "aligned" || name == "apart" || name == "holds" ||
      name == "within")
    return 2;
  return name == "disjoint" ? 4 : 0;
}

} // namespace optiml

#endif
