//===- IntExprCxx.cpp - integer expressions as C++ text -------------------===//
//
// What the emitted dispatcher computes must be what evaluate() computes: names are cast to long long (they may be
// unsigned, int or pointers), and arithmetic between plain int literals is widened.
//
//===----------------------------------------------------------------------===//
#include "IntExprNode.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace optiml;
using llvm::StringRef;
using Node = IntExpr::Node;

namespace {

class CxxPrinter {
public:
  using Rename = std::function<std::string(const std::string &)>;
  explicit CxxPrinter(const Rename &rename) : rename(rename) {}

  std::string print(const Node &node, int context) const {
    switch (node.kind) {
    case Node::Literal: return literal(node.value, context);
    case Node::Name: return "(long long)" + rename(node.text);
    case Node::Unary: {
      bool bare = node.children[0]->kind == Node::Name;
      std::string child = print(*node.children[0], 0);
      return node.text + (bare ? child : "(" + child + ")");
    }
    case Node::Binary: return binary(node, context);
    case Node::Call: return call(node, context);
    }
    return {};
  }

private:
  static std::string literal(int64_t value, int context) {
    if (value == std::numeric_limits<int64_t>::min())
      return "(-9223372036854775807LL - 1)";
    bool fitsInt = value >= std::numeric_limits<int>::min() + 1 && value <= std::numeric_limits<int>::max();
    std::string text = std::to_string(value) + (fitsInt ? "" : "LL");
    return value < 0 && context > 0 ? "(" + text + ")" : text;
  }

  /// Whether the C++ type of what print() writes is long long rather than int or bool.
  static bool isWide(const Node &node) {
    switch (node.kind) {
    case Node::Literal:
      return node.value < std::numeric_limits<int>::min() + 1 || node.value > std::numeric_limits<int>::max();
    case Node::Name: return true;
    case Node::Unary: return node.text == "-" && isWide(*node.children[0]);
    case Node::Binary: return precedence(node.text) >= 5;
    case Node::Call:
      return node.text == "ceildiv" || ((node.text == "min" || node.text == "max") &&
                                        llvm::any_of(node.children, [](const auto &c) { return isWide(*c); }));
    }
    return false;
  }

  std::string wide(const Node &node, int context) const {
    if (isWide(node))
      return print(node, context);
    if (node.kind == Node::Literal && node.value >= 0)
      return std::to_string(node.value) + "LL";
    return "(long long)(" + print(node, 0) + ")";
  }

  std::string binary(const Node &node, int context) const {
    int level = precedence(node.text);
    const Node &a = *node.children[0], &b = *node.children[1];
    bool widen = level >= 5 && !isWide(a) && !isWide(b);
    std::string result = (widen ? wide(a, level) : print(a, level)) + " " + node.text + " " + print(b, level + 1);
    // C++ compilers warn about && within || without parentheses.
    if (node.text == "||")
      result = guardedOr(a) + " || " + guardedOr(b);
    return level < context ? "(" + result + ")" : result;
  }

  std::string guardedOr(const Node &node) const { return print(node, node.text == "&&" ? 3 : 2); }

  std::string call(const Node &node, int context) const {
    auto arg = [&](unsigned i, int level) { return print(*node.children[i], level); };
    auto parens = [&](std::string text, int level) { return level < context ? "(" + text + ")" : text; };
    if (node.text == "min" || node.text == "max") {
      const char *less = node.text == "min" ? " < " : " > ";
      return "(" + arg(0, 5) + less + arg(1, 5) + " ? " + arg(0, 1) + " : " + arg(1, 1) + ")";
    }
    if (node.text == "ceildiv") {
      // A literal divisor's "- 1" is folded for the reader.
      const Node &divisor = *node.children[1];
      std::string sum = wide(*node.children[0], 5);
      if (divisor.kind == Node::Literal && divisor.value > 0)
        return parens("(" + sum + " + " + std::to_string(divisor.value - 1) + ") / " + arg(1, 7), 6);
      return parens("(" + sum + " + " + arg(1, 6) + " - 1) / " + arg(1, 7), 6);
    }
    if (node.text == "apart") { // lib/Emit/texts/apart.txt
      auto pointer = [&](unsigned i) { return "(const void *)" + rename(node.children[i]->text); };
      return "optimlApart(" + pointer(0) + ", " + pointer(1) + ")";
    }
    if (node.text == "holds" || node.text == "within") // lib/Emit/texts/holds.txt, within.txt
      return std::string(node.text == "holds" ? "optimlHolds" : "optimlWithin") + "((const void *)" +
             rename(node.children[0]->text) + ", " + wide(*node.children[1], 1) + ")";
    if (node.text == "aligned")
      return parens(arg(0, 6) + " % " + arg(1, 7) + " == 0", 3);
    return "(" + wide(*node.children[0], 5) + " + " + arg(1, 6) + " <= " + arg(2, 5) + " || " +
           wide(*node.children[2], 5) + " + " + arg(3, 6) + " <= " + arg(0, 5) + ")";
  }

  const Rename &rename;
};

} // namespace

std::string IntExpr::cxx(const std::function<std::string(const std::string &)> &rename) const {
  return CxxPrinter(rename).print(*node, 0);
}
