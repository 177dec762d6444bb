//===- ThreadValues.cpp - integers as the threads of a block see them -----===//
#include "optiml/Analysis/ThreadValues.h"

using namespace optiml;

static int64_t asType(int64_t v, const Type &type) {
  if (type.cls == Type::Class::Bool)
    return v != 0;
  if (type.cls != Type::Class::Int || type.bytes >= 8)
    return v;
  unsigned shift = 64 - 8 * type.bytes;
  return type.isSigned ? int64_t(uint64_t(v) << shift) >> shift : int64_t(uint64_t(v) << shift >> shift);
}

std::optional<int64_t> ThreadValues::builtin(const std::string &name, int64_t thread) const {
  if (name == "threadIdx.x")
    return thread;
  if (name == "threadIdx.y" || name == "threadIdx.z")
    return 0;
  if (name == "blockDim.x")
    return threads;
  if (name == "blockDim.y" || name == "blockDim.z")
    return 1;
  return std::nullopt;
}

static std::optional<int64_t> apply(const std::string &op, int64_t a, int64_t b, const Type &operands) {
  // Beyond this range a product could leave 64 bits; no index into shared memory comes near.
  constexpr int64_t large = int64_t(1) << 31;
  if (a > large || b > large || a < -large || b < -large)
    return std::nullopt;
  if (op == "+")
    return a + b;
  if (op == "-")
    return a - b;
  if (op == "*")
    return a * b;
  if (op == "/" || op == "%")
    return b == 0 ? std::nullopt : std::optional<int64_t>(op == "/" ? a / b : a % b);
  if (op == "<<" || op == ">>")
    return b < 0 || b > 31 ? std::nullopt : std::optional<int64_t>(op == "<<" ? a * (int64_t(1) << b) : a >> b);
  if (op == "&")
    return a & b;
  if (op == "|")
    return a | b;
  if (op == "^")
    return a ^ b;
  bool isUnsigned = operands.isInt() && !operands.isSigned && operands.bytes >= 4;
  if (isUnsigned) { // comparisons of 32 bits or more
    a = asType(a, operands);
    b = asType(b, operands);
  }
  if (op == "<")
    return a < b;
  if (op == "<=")
    return a <= b;
  if (op == ">")
    return a > b;
  if (op == ">=")
    return a >= b;
  if (op == "==")
    return a == b;
  if (op == "!=")
    return a != b;
  return std::nullopt;
}

std::optional<int64_t> ThreadValues::valueOf(const ExprRef &e, int64_t thread, unsigned depth) const {
  constexpr unsigned deepest = 64;
  if (depth > deepest || !e->type.isInt())
    return std::nullopt;
  auto of = [&](unsigned i) { return valueOf(e->args[i], thread, depth + 1); };
  switch (e->kind) {
  case ExprKind::IntLit: return e->value;
  case ExprKind::Builtin: return builtin(e->text, thread);
  case ExprKind::Var: {
    if (auto it = variables.find(e->text); it != variables.end())
      return it->second[size_t(thread)];
    const Stmt *declaration = model.singleAssignment(e->text);
    if (!declaration || !declaration->expr)
      return std::nullopt;
    auto v = valueOf(declaration->expr, thread, depth + 1);
    return v ? std::optional<int64_t>(asType(*v, declaration->type)) : std::nullopt;
  }
  case ExprKind::Cast:
  case ExprKind::Unary: {
    auto v = of(0);
    if (!v)
      return std::nullopt;
    if (e->kind == ExprKind::Cast || e->text == "+")
      return asType(*v, e->type);
    if (e->text == "-" || e->text == "~")
      return asType(e->text == "-" ? -*v : ~*v, e->type);
    return e->text == "!" ? std::optional<int64_t>(*v == 0) : std::nullopt;
  }
  case ExprKind::Cond: {
    auto c = of(0);
    return c ? of(*c ? 1 : 2) : std::nullopt;
  }
  case ExprKind::Binary: {
    auto a = of(0);
    if (a && (e->text == "&&" || e->text == "||")) {
      if ((*a != 0) == (e->text == "||"))
        return *a != 0;
      auto b = of(1);
      return b ? std::optional<int64_t>(*b != 0) : std::nullopt;
    }
    auto b = of(1);
    if (!a || !b)
      return std::nullopt;
    // Operands are converted to the wider type, to the unsigned one where both are as wide.
    const Type &first = e->args[0]->type, &second = e->args[1]->type;
    bool takesSecond = second.bytes > first.bytes || (second.bytes == first.bytes && !second.isSigned);
    auto v = apply(e->text, *a, *b, takesSecond ? second : first);
    return v ? std::optional<int64_t>(asType(*v, e->type)) : std::nullopt;
  }
  default: return std::nullopt;
  }
}

std::optional<ActiveThreads> ThreadValues::where(const ExprRef &condition, const ActiveThreads &active) const {
  ActiveThreads result(size_t(threads), false);
  for (int64_t t = 0; t < threads; ++t)
    if (active[size_t(t)]) {
      auto v = (*this)(condition, t);
      if (!v)
        return std::nullopt;
      result[size_t(t)] = *v != 0;
    }
  return result;
}

bool ThreadValues::set(const std::string &name, const Type &type, const ExprRef &e, const ActiveThreads &active) {
  std::vector<int64_t> values(size_t(threads), 0);
  if (auto it = variables.find(name); it != variables.end())
    values = it->second;
  for (int64_t t = 0; t < threads; ++t)
    if (active[size_t(t)]) {
      auto v = (*this)(e, t);
      if (!v)
        return false;
      values[size_t(t)] = asType(*v, type);
    }
  variables[name] = std::move(values);
  return true;
}

bool ThreadValues::assign(const ExprRef &e, const ActiveThreads &active) {
  if (!isChange(e) || e->args[0]->kind != ExprKind::Var || !variables.count(e->args[0]->text))
    return false;
  const ExprRef &target = e->args[0];
  return set(target->text, target->type, newValue(e), active);
}
