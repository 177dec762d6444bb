//===- IntExpr.cpp - integer expressions: parse, evaluate, print ----------===//
//
// A small precedence-climbing parser over an immutable tree. Printing puts parentheses only where the grammar needs
// them, so that the canonical text parses back to the same tree.
//
//===----------------------------------------------------------------------===//
#include "optiml/Core/IntExpr.h"
#include "IntExprNode.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <limits>

using namespace optiml;
using llvm::StringRef;
using Node = IntExpr::Node;
using NodePtr = std::shared_ptr<const Node>;

//===----------------------------------------------------------------------===//
// Parser
//===----------------------------------------------------------------------===//

namespace {

class Parser {
public:
  explicit Parser(StringRef text) : text(text) {}

  /// Null after a mistake; `message` then says what was expected where.
  NodePtr run() {
    if (text.size() > 16384) // everything below recurses over the tree
      return fail("longer than 16384 characters");
    NodePtr result = expression(1);
    skipSpace();
    if (result && at != text.size())
      return fail("expected an operator or the end");
    return result;
  }
  std::string message;

private:
  NodePtr fail(const char *what) {
    if (message.empty())
      message = llvm::formatv("bad expression '{0}': {1} at column {2}", text, what, at + 1).str();
    return nullptr;
  }

  void skipSpace() {
    while (at < text.size() && llvm::isSpace(text[at]))
      ++at;
  }

  bool eat(StringRef token) {
    skipSpace();
    if (!text.substr(at).starts_with(token))
      return false;
    at += token.size();
    return true;
  }

  /// The binary operator that stands here, longest first, without consuming it.
  StringRef peekOperator() {
    skipSpace();
    for (const char *op : {"||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%"})
      if (text.substr(at).starts_with(op))
        return op;
    return {};
  }

  NodePtr expression(int minimum) {
    if (++depth > 200)
      return fail("nested too deeply");
    NodePtr left = unary();
    while (left) {
      StringRef op = peekOperator();
      int level = op.empty() ? 0 : precedence(op);
      if (level == 0 || level < minimum)
        break;
      at += op.size();
      NodePtr right = expression(level + 1);
      if (!right)
        return nullptr;
      left = binaryNode(op.str(), left, right);
    }
    --depth;
    return left;
  }

  NodePtr unary() {
    skipSpace();
    if (at < text.size() && (text[at] == '-' || (text[at] == '!' && !text.substr(at).starts_with("!=")))) {
      char op = text[at++];
      skipSpace();
      if (op == '-' && at < text.size() && llvm::isDigit(text[at]))
        return number(/*negative=*/true);
      if (++depth > 200)
        return fail("nested too deeply");
      NodePtr child = unary();
      --depth;
      return child ? makeNode(Node::Unary, std::string(1, op), {child}) : nullptr;
    }
    return primary();
  }

  NodePtr number(bool negative) {
    size_t start = at;
    while (at < text.size() && llvm::isAlnum(text[at]))
      ++at;
    uint64_t magnitude;
    uint64_t limit = uint64_t(std::numeric_limits<int64_t>::max()) + negative;
    StringRef digits = text.slice(start, at);
    if (digits.getAsInteger(10, magnitude) || magnitude > limit) {
      at = start;
      return fail("expected a decimal integer of 64 bits");
    }
    return literalNode(negative ? int64_t(0 - magnitude) : int64_t(magnitude));
  }

  /// The length of "[12]" behind the character at `place`, or 0: an element of an array in a parameter.
  size_t elementAfter(size_t place) const {
    StringRef rest = text.substr(place + 1);
    size_t digits = rest.starts_with("[") ? rest.drop_front().find_first_not_of("0123456789") : 0;
    return digits && digits != StringRef::npos && rest[digits + 1] == ']' ? digits + 2 : 0;
  }

  NodePtr primary() {
    skipSpace();
    if (at == text.size())
      return fail("expected a value");
    if (llvm::isDigit(text[at]))
      return number(/*negative=*/false);
    if (eat("(")) {
      NodePtr inner = expression(1);
      if (inner && !eat(")"))
        return fail("expected ')'");
      return inner;
    }
    if (!llvm::isAlpha(text[at]) && text[at] != '_')
      return fail("expected a value");
    size_t start = at;
    while (at < text.size() && (llvm::isAlnum(text[at]) || text[at] == '_' || text[at] == '.'))
      at += 1 + elementAfter(at);
    std::string name = text.slice(start, at).str();
    if (!eat("("))
      return makeNode(Node::Name, name, {});
    unsigned arity = callArity(name);
    if (!arity) {
      at = start;
      return fail("unknown function (there are min, max, ceildiv, aligned, disjoint, apart and holds)");
    }
    std::vector<NodePtr> arguments;
    do {
      NodePtr argument = expression(1);
      if (!argument)
        return nullptr;
      arguments.push_back(argument);
    } while (eat(","));
    if (!eat(")"))
      return fail("expected ',' or ')'");
    if (arguments.size() != arity)
      return fail("wrong number of arguments");
    if (name == "apart" && llvm::any_of(arguments, [](const NodePtr &a) { return a->kind != Node::Name; }))
      return fail("apart takes two pointer arguments");
    if ((name == "holds" || name == "within") && arguments[0]->kind != Node::Name)
      return fail(name == "holds" ? "holds takes a pointer argument and a number of bytes"
                                  : "within takes a pointer argument and a number of bytes");
    return makeNode(Node::Call, name, std::move(arguments));
  }

  StringRef text;
  size_t at = 0;
  unsigned depth = 0;
};

} // namespace

llvm::Expected<IntExpr> IntExpr::parse(StringRef text) {
  Parser parser(text);
  NodePtr node = parser.run();
  if (!node)
    return makeError(parser.message);
  return IntExpr(node);
}

IntExpr IntExpr::of(const std::string &text) {
  Parser parser(text);
  NodePtr node = parser.run();
  if (!node)
    llvm::report_fatal_error(StringRef("OptiML wrote an expression it cannot read: " + parser.message));
  return IntExpr(node);
}

IntExpr IntExpr::literal(int64_t value) { return IntExpr(literalNode(value)); }
IntExpr::IntExpr() : node(literalNode(0)) {}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

using Value = std::optional<int64_t>;

static Value checkedAdd(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? Value() : Value(r);
}
static Value checkedSub(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_sub_overflow(a, b, &r) ? Value() : Value(r);
}
static Value checkedMul(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? Value() : Value(r);
}
static Value checkedDiv(int64_t a, int64_t b) {
  if (b == 0 || (a == std::numeric_limits<int64_t>::min() && b == -1))
    return {};
  return a / b;
}

static Value applyBinary(StringRef op, int64_t a, int64_t b) {
  if (op == "+")
    return checkedAdd(a, b);
  if (op == "-")
    return checkedSub(a, b);
  if (op == "*")
    return checkedMul(a, b);
  if (op == "/")
    return checkedDiv(a, b);
  if (op == "%")
    return checkedDiv(a, b) ? Value(a % b) : Value();
  if (op == "==")
    return a == b;
  if (op == "!=")
    return a != b;
  if (op == "<=")
    return a <= b;
  if (op == ">=")
    return a >= b;
  if (op == "<")
    return a < b;
  return a > b;
}

static Value evaluateNode(const Node &node, const IntExpr::Lookup &lookup);

static Value evaluateCall(const Node &node, const IntExpr::Lookup &lookup) {
  std::vector<int64_t> v;
  if (node.text == "holds" || node.text == "within") {
    const std::string &pointer = node.children[0]->text;
    if (node.text == "within") {
      Value first = lookup ? lookup(allocationOf(pointer)) : Value(), begin = lookup ? lookup(pointer) : Value();
      if (!first || !begin || *first != *begin)
        return first && begin ? Value(0) : Value();
    }
    Value begin = lookup ? lookup(pointer) : Value(), end = lookup ? lookup(allocationEndOf(pointer)) : Value(),
          bytes = evaluateNode(*node.children[1], lookup), room = begin && end ? checkedSub(*end, *begin) : Value();
    if (!room || !bytes)
      return {};
    return node.text == "holds" ? *room >= *bytes : *room <= *bytes;
  }
  for (const NodePtr &child : node.children) {
    Value value = node.text != "apart" ? evaluateNode(*child, lookup)
                  : lookup             ? lookup(allocationOf(child->text))
                                       : Value();
    if (!value)
      return {};
    v.push_back(*value);
  }
  if (node.text == "apart")
    return v[0] != v[1];
  if (node.text == "min")
    return std::min(v[0], v[1]);
  if (node.text == "max")
    return std::max(v[0], v[1]);
  if (node.text == "aligned") {
    Value rest = checkedDiv(v[0], v[1]) ? Value(v[0] % v[1]) : Value();
    return rest ? Value(*rest == 0) : Value();
  }
  if (node.text == "ceildiv") {
    // Exactly what cxx() prints, so that a replayed and a dispatched launch agree on every input.
    Value sum = checkedAdd(v[0], v[1]);
    sum = sum ? checkedSub(*sum, 1) : sum;
    return sum ? checkedDiv(*sum, v[1]) : sum;
  }
  Value endP = checkedAdd(v[0], v[1]), endQ = checkedAdd(v[2], v[3]);
  if (!endP || !endQ)
    return {};
  return *endP <= v[2] || *endQ <= v[0];
}

static Value evaluateNode(const Node &node, const IntExpr::Lookup &lookup) {
  switch (node.kind) {
  case Node::Literal: return node.value;
  case Node::Name: return lookup ? lookup(node.text) : Value();
  case Node::Unary: {
    Value child = evaluateNode(*node.children[0], lookup);
    if (!child)
      return {};
    return node.text == "!" ? Value(*child == 0) : checkedSub(0, *child);
  }
  case Node::Binary: {
    Value left = evaluateNode(*node.children[0], lookup);
    if (!left)
      return {};
    if (node.text == "&&" && *left == 0)
      return 0;
    if (node.text == "||" && *left != 0)
      return 1;
    Value right = evaluateNode(*node.children[1], lookup);
    if (!right)
      return {};
    if (node.text == "&&" || node.text == "||")
      return *right != 0;
    return applyBinary(node.text, *left, *right);
  }
  case Node::Call: return evaluateCall(node, lookup);
  }
  return {};
}

Value IntExpr::evaluate(const Lookup &lookup) const { return evaluateNode(*node, lookup); }

//===----------------------------------------------------------------------===//
// Canonical text, names, substitution
//===----------------------------------------------------------------------===//

static std::string printNode(const Node &node, int context) {
  switch (node.kind) {
  case Node::Literal: return std::to_string(node.value);
  case Node::Name: return node.text;
  case Node::Unary: {
    std::string child = printNode(*node.children[0], 100);
    // "--1" would read back as another tree.
    return node.text + (child.starts_with("-") || llvm::isDigit(child[0]) ? "(" + child + ")" : child);
  }
  case Node::Binary: {
    int level = precedence(node.text);
    std::string result =
        printNode(*node.children[0], level) + " " + node.text + " " + printNode(*node.children[1], level + 1);
    return level < context ? "(" + result + ")" : result;
  }
  case Node::Call: {
    std::string result = node.text + "(";
    for (const NodePtr &child : node.children)
      result += (child == node.children.front() ? "" : ", ") + printNode(*child, 0);
    return result + ")";
  }
  }
  return {};
}

std::string IntExpr::str() const { return printNode(*node, 0); }

static void collectNames(const Node &node, std::vector<std::string> &names) {
  if (node.kind == Node::Name && std::find(names.begin(), names.end(), node.text) == names.end())
    names.push_back(node.text);
  for (const NodePtr &child : node.children)
    collectNames(*child, names);
}

std::vector<std::string> IntExpr::names() const {
  std::vector<std::string> result;
  collectNames(*node, result);
  return result;
}

static void collectDivisors(const NodePtr &node, std::vector<NodePtr> &divisors) {
  for (const NodePtr &child : node->children)
    collectDivisors(child, divisors);
  bool divides = node->children.size() == 2 &&
                 (node->text == "/" || node->text == "%" || node->text == "ceildiv" || node->text == "aligned");
  if (divides && !(node->children[1]->kind == Node::Literal && node->children[1]->value > 0))
    divisors.push_back(node->children[1]);
}

std::vector<IntExpr> IntExpr::divisors() const {
  std::vector<NodePtr> found;
  collectDivisors(node, found);
  std::vector<IntExpr> result;
  for (NodePtr &divisor : found)
    result.push_back(IntExpr(std::move(divisor)));
  return result;
}

/// Folds what a substitution makes constant or trivial; plans are read by people.
static NodePtr simplified(NodePtr node) {
  bool allLiteral = !node->children.empty() &&
                    llvm::all_of(node->children, [](const NodePtr &child) { return child->kind == Node::Literal; });
  if (allLiteral)
    if (Value value = evaluateNode(*node, nullptr))
      return literalNode(*value);
  if (node->children.size() != 2)
    return node;
  auto isLiteral = [](const NodePtr &n, int64_t v) { return n->kind == Node::Literal && n->value == v; };
  const NodePtr &a = node->children[0], &b = node->children[1];
  if ((node->text == "*" && isLiteral(b, 1)) || ((node->text == "+" || node->text == "-") && isLiteral(b, 0)) ||
      ((node->text == "/" || node->text == "ceildiv") && isLiteral(b, 1)))
    return a;
  if ((node->text == "*" && isLiteral(a, 1)) || (node->text == "+" && isLiteral(a, 0)))
    return b;
  return node;
}

IntExpr IntExpr::substitute(const std::function<std::optional<IntExpr>(const std::string &)> &replacement) const {
  std::function<NodePtr(const NodePtr &)> visit = [&](const NodePtr &from) -> NodePtr {
    if (from->kind == Node::Name) {
      std::optional<IntExpr> other = replacement(from->text);
      return other ? other->node : from;
    }
    if (from->children.empty())
      return from;
    std::vector<NodePtr> children;
    for (const NodePtr &child : from->children)
      children.push_back(visit(child));
    if (children == from->children)
      return from;
    return simplified(makeNode(from->kind, from->text, std::move(children)));
  };
  return IntExpr(visit(node));
}
