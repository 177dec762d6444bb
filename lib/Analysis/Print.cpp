//===- Print.cpp - kernel trees as CUDA source ----------------------------===//
//
// Prints with as few parentheses as C's precedence needs. What is printed reads back as the same tree.
//
//===----------------------------------------------------------------------===//
#include "optiml/Analysis/Tree.h"
#include <cctype>

namespace optiml {

static int binaryPrecedence(const std::string &op) {
  static const std::map<std::string, int> table = {
      {",", 1},   {"||", 4},  {"&&", 5},  {"|", 6},   {"^", 7},  {"&", 8},  {"==", 9}, {"!=", 9}, {"<", 10}, {">", 10},
      {"<=", 10}, {">=", 10}, {"<<", 11}, {">>", 11}, {"+", 12}, {"-", 12}, {"*", 13}, {"/", 13}, {"%", 13}};
  return table.at(op);
}

enum : int { PrecAssign = 2, PrecCond = 3, PrecUnary = 14, PrecPostfix = 15, PrecPrimary = 16 };

/// *(T *)p, which reads as an element of a recast pointer.
static bool isDereference(const Expr &e) {
  return e.args[0]->kind == ExprKind::Cast && e.args[0]->type.isPointer() && e.args[1]->kind == ExprKind::IntLit &&
         e.args[1]->value == 0;
}

static int precedence(const Expr &e) {
  switch (e.kind) {
  case ExprKind::Assign: return PrecAssign;
  case ExprKind::Cond: return PrecCond;
  case ExprKind::Binary: return binaryPrecedence(e.text);
  case ExprKind::Unary:
  case ExprKind::Cast: return PrecUnary;
  case ExprKind::IncDec: return e.text[0] == 'x' ? PrecPostfix : PrecUnary;
  case ExprKind::IntLit: return e.value < 0 ? PrecUnary : PrecPrimary;
  case ExprKind::Subscript: return isDereference(e) ? PrecUnary : PrecPostfix;
  case ExprKind::Call:
  case ExprKind::Member: return PrecPostfix;
  default: return PrecPrimary;
  }
}

static std::string print(const ExprRef &e, int minPrecedence);

static std::string list(const std::vector<ExprRef> &args) {
  std::string result;
  for (const ExprRef &arg : args)
    result += (result.empty() ? "" : ", ") + print(arg, PrecAssign);
  return result;
}

static std::string literal(const Expr &e) {
  std::string digits = std::to_string(e.value);
  if (!e.type.isInt() || e.type.cls == Type::Class::Bool)
    return e.type.cls == Type::Class::Bool ? (e.value ? "true" : "false") : digits;
  if (!e.type.isSigned && e.type.bytes == 4 && e.value == 0xffffffff)
    return "0xffffffff"; // a mask
  if (!e.type.isSigned && e.type.bytes >= 4)
    digits = std::to_string(uint64_t(e.value)) + "u";
  if (e.type.bytes == 8)
    digits += e.type.text.find("long long") != std::string::npos ? "ll" : "l";
  return digits;
}

static std::string printNode(const Expr &e) {
  auto arg = [&](unsigned i, int p) { return print(e.args[i], p); };
  switch (e.kind) {
  case ExprKind::IntLit: return literal(e);
  case ExprKind::FloatLit:
  case ExprKind::Var:
  case ExprKind::Builtin: return e.text;
  case ExprKind::Opaque: return e.text;
  case ExprKind::Unary: {
    std::string operand = arg(0, PrecUnary);
    bool clash = operand[0] == e.text[0]; // - -x, & &x
    return e.text + (clash ? " " : "") + operand;
  }
  case ExprKind::Binary: {
    int p = binaryPrecedence(e.text);
    std::string left = arg(0, p), right = arg(1, p + 1);
    return e.text == "," ? left + ", " + right : left + " " + e.text + " " + right;
  }
  case ExprKind::Assign: return arg(0, PrecUnary) + " " + e.text + " " + arg(1, PrecAssign);
  case ExprKind::IncDec: {
    std::string op = e.text.find('+') != std::string::npos ? "++" : "--";
    return e.text[0] == 'x' ? arg(0, PrecPostfix) + op : op + arg(0, PrecUnary);
  }
  case ExprKind::Cond: return arg(0, PrecCond + 1) + " ? " + arg(1, PrecAssign) + " : " + arg(2, PrecCond);
  case ExprKind::Call: return e.text + "(" + list(e.args) + ")";
  case ExprKind::Subscript:
    if (isDereference(e))
      return "*" + arg(0, PrecUnary);
    return arg(0, PrecPostfix) + "[" + arg(1, PrecAssign) + "]";
  case ExprKind::Member: return arg(0, PrecPostfix) + (e.args[0]->type.isPointer() ? "->" : ".") + e.text;
  case ExprKind::Cast: return "(" + e.text + ")" + arg(0, PrecUnary);
  case ExprKind::InitList: return "{" + list(e.args) + "}";
  }
  return "";
}

static std::string print(const ExprRef &e, int minPrecedence) {
  std::string text = printNode(*e);
  return precedence(*e) < minPrecedence ? "(" + text + ")" : text;
}

std::string str(const ExprRef &e) { return print(e, 0); }

/// "const float *__restrict__ a", "int n"; arrays get their extents after the name.
static std::string declarator(const Type &type, const std::string &name) {
  std::string text = type.text;
  if (type.isPointer()) {
    std::string qualifiers = std::string(type.isConst ? "const" : "") + (type.isVolatile ? "volatile" : "");
    if (type.isRestrict)
      qualifiers += qualifiers.empty() ? "__restrict__" : " __restrict__";
    bool star = !text.empty() && text.back() == '*';
    return text + (star ? "" : " ") + qualifiers + (qualifiers.empty() ? "" : " ") + name;
  }
  return std::string(type.isConst ? "const " : "") + (type.isVolatile ? "volatile " : "") + text + " " + name;
}

/// Parameter::members
static std::vector<std::string> wholeMembers(const Param &param) {
  std::vector<std::string> names;
  unsigned end = 0;
  for (const Param::Field &field : param.fields) {
    const bool isNumber = field.type.isInt() || field.type.isFloat() || field.type.isPointer();
    if (!isNumber || field.offset < end || field.offset - end >= std::max(1u, field.type.bytes))
      return {};
    end = field.offset + field.type.bytes;
    names.push_back(field.name);
  }
  return end <= param.type.bytes && param.type.bytes - end < 8 ? names : std::vector<std::string>();
}

std::vector<Parameter> parametersOf(const Kernel &kernel) {
  std::vector<Parameter> result;
  for (const Param &param : kernel.params) {
    const Type &type = param.type;
    auto kind = type.isPointer() ? Parameter::Kind::Pointer
                : type.isFloat() ? Parameter::Kind::Float
                : type.isInt()   ? type.isSigned ? Parameter::Kind::Signed : Parameter::Kind::Unsigned
                                 : Parameter::Kind::Other;
    result.push_back({declarator(type, param.name), param.name, kind, wholeMembers(param)});
  }
  return result;
}

namespace {
class Printer {
public:
  Printer(const std::string &indent) : unit(indent) {}
  std::string out;

  void stmt(const Stmt &s, unsigned depth) {
    switch (s.kind) {
    case StmtKind::Block:
      if (!s.text.empty())
        line(depth, "// " + s.text);
      line(depth, "{");
      children(s, depth + 1);
      line(depth, "}");
      break;
    case StmtKind::Decl: line(depth, decl(s) + ";"); break;
    case StmtKind::Expr: line(depth, str(s.expr) + ";"); break;
    case StmtKind::For:
      loopPrefix(s, depth);
      line(depth, "for (" + (s.init ? s.init->kind == StmtKind::Decl ? decl(*s.init) : str(s.init->expr) : "") + ";" +
                      (s.expr ? " " + str(s.expr) : "") + ";" + (s.step ? " " + str(s.step) : "") + ") {");
      children(*s.body[0], depth + 1);
      line(depth, "}");
      break;
    case StmtKind::While:
      loopPrefix(s, depth);
      line(depth, "while (" + str(s.expr) + ") {");
      children(*s.body[0], depth + 1);
      line(depth, "}");
      break;
    case StmtKind::Do:
      line(depth, "do {");
      children(*s.body[0], depth + 1);
      line(depth, "} while (" + str(s.expr) + ");");
      break;
    case StmtKind::If:
      line(depth, "if (" + str(s.expr) + ") {");
      children(*s.body[0], depth + 1);
      if (s.body.size() > 1) {
        line(depth, "} else {");
        children(*s.body[1], depth + 1);
      }
      line(depth, "}");
      break;
    case StmtKind::Barrier: line(depth, "__syncthreads();"); break;
    case StmtKind::Return: line(depth, "return;"); break;
    case StmtKind::Break: line(depth, "break;"); break;
    case StmtKind::Continue: line(depth, "continue;"); break;
    case StmtKind::Opaque: line(depth, s.text); break;
    }
  }

  void children(const Stmt &block, unsigned depth) {
    for (const StmtRef &child : block.body)
      stmt(*child, depth);
  }

private:
  void line(unsigned depth, const std::string &text) {
    for (unsigned i = 0; i < depth; ++i)
      out += unit;
    out += text + "\n";
  }
  void loopPrefix(const Stmt &s, unsigned depth) {
    if (!s.text.empty())
      line(depth, "// " + s.text);
    if (s.unroll == FullUnroll)
      line(depth, "#pragma unroll");
    else if (s.unroll > 0)
      line(depth, "#pragma unroll " + std::to_string(s.unroll));
  }
  std::string decl(const Stmt &s) {
    std::string text = s.isExtern ? "extern " : "";
    if (s.isShared)
      text += "__shared__ ";
    if (s.align)
      text += "__align__(" + std::to_string(s.align) + ") ";
    text += declarator(s.type, s.text);
    for (const ExprRef &dim : s.dims)
      text += dim ? "[" + str(dim) + "]" : "[]";
    if (s.expr)
      text += " = " + print(s.expr, PrecAssign);
    return text;
  }
  std::string unit;
};
} // namespace

std::string print(const Kernel &kernel, const std::string &indent) {
  Printer printer(indent);
  std::string bounds;
  if (kernel.maxThreads)
    bounds = "__launch_bounds__(" + std::to_string(kernel.maxThreads) +
             (kernel.minBlocks ? ", " + std::to_string(kernel.minBlocks) : "") + ") ";
  std::string head = "__global__ void " + bounds + kernel.name + "(";
  // Parameters, broken over lines of at most 100 columns.
  std::string line = head, text;
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    std::string item =
        declarator(kernel.params[i].type, kernel.params[i].name) + (i + 1 < kernel.params.size() ? "," : "");
    if (line.size() + item.size() + 1 > 100 && i > 0) {
      text += line + "\n";
      line = std::string(std::min<size_t>(head.size(), 40), ' ') + item;
    } else {
      line += (i ? " " : "") + item;
    }
  }
  printer.out = text + line + ") {\n";
  printer.children(*kernel.body, 1);
  return printer.out + "}\n";
}

} // namespace optiml
