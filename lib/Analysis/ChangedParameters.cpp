//===- ChangedParameters.cpp - parameters that the kernel moves on --------===//
//
// "in += row * columns;", said once for all that follows, is "const float *in1 = in + row * columns;", and in1 in its
// place from there on: parameters then are the same in all threads, which is what makes one thread's work another's.
//
//===----------------------------------------------------------------------===//
#include "ChangedParameters.h"

using namespace optiml;

/// What the statement gives the variable: "v = e;", "v += e;", "++v;". Null when it does anything else.
static ExprRef newValue(const Stmt &s, const std::string &name, const Type &type) {
  if (s.kind != StmtKind::Expr || !s.expr || s.expr->args.empty())
    return nullptr;
  const Expr &e = *s.expr;
  if (!isVar(e.args[0], name))
    return nullptr;
  if (e.kind == ExprKind::IncDec)
    return binary(e.text.find('+') != std::string::npos ? "+" : "-", var(name, type), intLit(1), type);
  if (e.kind != ExprKind::Assign)
    return nullptr;
  llvm::StringRef op(e.text);
  op.consume_back("=");
  // What "n /= x" computes in, the statement does not say.
  if (!op.empty() && !(type.isPointer() || (e.args[1]->type.text == type.text && type.bytes >= 4)))
    return nullptr;
  return op.empty() ? e.args[1] : binary(op.str(), var(name, type), e.args[1], type);
}

/// `name` is `param`, or what it has become.
static void follow(std::vector<StmtRef> &body, std::string name, const Param &param, std::set<std::string> &taken) {
  Type type = param.type.withConst(false);
  for (size_t i = 0; i < body.size(); ++i) {
    ExprRef value = newValue(*body[i], name, type);
    bool later = false; // in a loop, or under a condition
    for (size_t j = i; j < body.size(); ++j)
      later |= countChanges(*body[j]).count(name) && !newValue(*body[j], name, type);
    if (!value || later)
      continue;
    std::string next = freshName(taken, param.name);
    body[i] = atLine(body[i]->line, declStmt(next, type, value));
    for (size_t j = i + 1; j < body.size(); ++j)
      rewriteExprs(*body[j],
                   [&](const ExprRef &e) -> ExprRef { return isVar(e, name) ? var(next, e->type) : nullptr; });
    name = next;
  }
  // "if (row < n) { in += row * columns; … }", and nothing else looks at it.
  for (size_t i = 0; i < body.size(); ++i) {
    Stmt &s = *body[i];
    const bool isAlone = std::none_of(body.begin() + long(i) + 1, body.end(),
                                      [&](const StmtRef &later) { return countMentions(*later).count(name) != 0; });
    if ((s.kind != StmtKind::If && s.kind != StmtKind::Block) || !isAlone || !countChanges(s).count(name))
      continue;
    if (s.kind == StmtKind::Block)
      follow(s.body, name, param, taken);
    else
      for (const StmtRef &branch : s.body)
        follow(branch->body, name, param, taken);
    break;
  }
}

void optiml::followParameters(Kernel &kernel, std::set<std::string> &taken) {
  for (const Param &param : kernel.params) {
    bool number = param.type.isInt() || param.type.isFloat() || param.type.isPointer();
    if (number && !param.type.isVolatile && !param.type.isConst && !opaqueMentions(*kernel.body, {param.name}))
      follow(kernel.body->body, param.name, param, taken);
  }
}
