//===- Reduction.cpp - sums and extremes over threads ---------------------===//
#include "Reduction.h"
#include <algorithm>

using namespace optiml;

static bool isVar(const ExprRef &e, const std::string &name) { return e->kind == ExprKind::Var && e->text == name; }

StmtRef Fold::into(const ExprRef &v, const ExprRef &x) const {
  if (kind == Kind::Operator)
    return exprStmt(assign(op + "=", v, x));
  if (kind == Kind::Call)
    return exprStmt(assign("=", v, callOf(op, {v, x}, v->type, true)));
  return ifStmt(binary(op, x, v, Type::makeBool()), block({exprStmt(assign("=", v, x))}));
}

ExprRef Fold::identity(const Type &type) const {
  int64_t value = op == "*" ? 1 : op == "&" ? -1 : 0;
  if (!type.isFloat())
    return intLit(value);
  auto e = std::make_shared<Expr>();
  e->kind = ExprKind::FloatLit;
  e->type = type;
  e->text = std::to_string(value) + (type.bytes == 4 ? ".0f" : ".0");
  return e;
}

//===----------------------------------------------------------------------===//
// Recognizing
//===----------------------------------------------------------------------===//

namespace {
struct Update {
  std::string variable;
  Type type;
  Fold fold;
  unsigned mentions; ///< of the variable, by the update itself
  ExprRef value = nullptr; ///< what is folded in, where that is an operand as it stands
};
} // namespace

static bool isMinMax(const std::string &callee) {
  static const std::set<std::string> names = {"fmaxf", "fminf", "fmax", "fmin", "max", "min"};
  size_t scope = callee.rfind(':');
  return names.count(scope == std::string::npos ? callee : callee.substr(scope + 1));
}

/// Whether folding a value of this type into a variable rounds and compares alike in any order.
static bool foldsExactly(const Type &variable, const Type &value, bool compares) {
  if (variable.isFloat())
    return true;
  if (value.isFloat())
    return false; // every step would truncate
  return !compares || (variable.bytes == value.bytes && variable.isSigned == value.isSigned);
}

static std::optional<Update> plainUpdate(const ExprRef &e);

static std::optional<Update> updateOf(const ExprRef &e) {
  auto u = plainUpdate(e);
  if (!u || e->kind == ExprKind::IncDec)
    return u;
  bool exact = true;
  bool compares = u->fold.kind != Fold::Kind::Operator;
  const ExprRef &value = e->args[1];
  if (e->text == "=" && (value->kind == ExprKind::Binary || value->kind == ExprKind::Call)) {
    for (const ExprRef &part : value->args)
      exact &= foldsExactly(u->type, part->type, compares);
    if (compares && value->kind == ExprKind::Call) // fmaxf of a double rounds it
      exact &= value->type.cls == u->type.cls && value->type.bytes == u->type.bytes && value->type.isSigned == u->type.isSigned;
  } else {
    exact = foldsExactly(u->type, value->type, compares);
  }
  return exact ? u : std::nullopt;
}

static std::optional<Update> plainUpdate(const ExprRef &e) {
  if (e->kind != ExprKind::Assign && e->kind != ExprKind::IncDec)
    return std::nullopt;
  const ExprRef &target = e->args[0];
  if (target->kind != ExprKind::Var)
    return std::nullopt;
  Update u{target->text, target->type, {Fold::Kind::Operator, "+"}, 1};
  if (e->kind == ExprKind::IncDec)
    return u;
  const ExprRef &value = e->args[1];
  if (e->text == "-=")
    return u;
  if (e->text == "+=" || e->text == "*=" || e->text == "&=" || e->text == "|=" || e->text == "^=") {
    u.fold.op = e->text.substr(0, 1);
    u.value = value;
    return u;
  }
  if (e->text != "=")
    return std::nullopt;
  u.mentions = 2;
  if (value->kind == ExprKind::Binary) {
    bool first = isVar(value->args[0], u.variable), second = isVar(value->args[1], u.variable);
    static const std::set<std::string> operators = {"+", "*", "&", "|", "^"};
    if (operators.count(value->text) && first != second) {
      u.fold.op = value->text;
      u.value = value->args[first ? 1 : 0];
      return u;
    }
    if (value->text == "-" && first && !second)
      return u;
  }
  if (value->kind == ExprKind::Call && value->pure && value->args.size() == 2 && isMinMax(value->text) &&
      isVar(value->args[0], u.variable) != isVar(value->args[1], u.variable)) {
    u.fold = {Fold::Kind::Call, value->text};
    u.value = value->args[isVar(value->args[0], u.variable) ? 1 : 0];
    return u;
  }
  if (value->kind == ExprKind::Call && value->pure && value->args.size() == 3 && (value->text == "fmaf" || value->text == "fma") &&
      isVar(value->args[2], u.variable))
    return u;
  return std::nullopt;
}

static std::string mirrored(const std::string &comparison) {
  return comparison == "<" ? ">" : comparison == "<=" ? ">=" : comparison == ">" ? "<" : "<=";
}

/// if (x > v) v = x, and v = x > v ? x : v.
static std::optional<Update> comparedUpdate(const ExprRef &condition, const ExprRef &assigned) {
  if (assigned->kind != ExprKind::Assign || assigned->text != "=" || assigned->args[0]->kind != ExprKind::Var)
    return std::nullopt;
  const std::string &variable = assigned->args[0]->text;
  static const std::set<std::string> comparisons = {"<", "<=", ">", ">="};
  if (condition->kind != ExprKind::Binary || !comparisons.count(condition->text))
    return std::nullopt;
  bool first = isVar(condition->args[0], variable), second = isVar(condition->args[1], variable);
  if (first == second || !equal(condition->args[first ? 1 : 0], assigned->args[1]) ||
      !foldsExactly(assigned->args[0]->type, assigned->args[1]->type, true))
    return std::nullopt;
  return Update{variable, assigned->args[0]->type,
                {Fold::Kind::Compare, first ? mirrored(condition->text) : condition->text}, 2, assigned->args[1]};
}

static std::optional<Update> comparedUpdate(const Stmt &s) {
  if (s.kind == StmtKind::If && s.body.size() == 1 && s.body[0]->body.size() == 1 &&
      s.body[0]->body[0]->kind == StmtKind::Expr)
    return comparedUpdate(s.expr, s.body[0]->body[0]->expr);
  if (s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign && s.expr->args[1]->kind == ExprKind::Cond &&
      s.expr->args[0]->kind == ExprKind::Var && isVar(s.expr->args[1]->args[2], s.expr->args[0]->text)) {
    auto u = comparedUpdate(s.expr->args[1]->args[0], assign("=", s.expr->args[0], s.expr->args[1]->args[1]));
    if (u)
      u->mentions = 3;
    return u;
  }
  return std::nullopt;
}

std::optional<FoldedValue> optiml::asFold(const Stmt &s) {
  auto u = comparedUpdate(s);
  if (!u && s.kind == StmtKind::Expr)
    u = updateOf(s.expr);
  if (!u || !u->value || mentions(u->value, u->variable))
    return std::nullopt;
  return FoldedValue{u->variable, u->type, u->fold, u->value};
}

llvm::Expected<std::vector<Reduction>> optiml::findReductions(Stmt &loop, bool strictFloat,
                                                               const std::set<std::string> &explainedArrays) {
  std::set<std::string> inside = explainedArrays;
  walk(loop, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl)
      inside.insert(s.text);
  });
  // What is assigned, by roots; updates as statements; how often each name occurs.
  std::map<std::string, unsigned> lines, mentions, explained;
  std::map<std::string, Update> updates;
  std::set<std::string> mixed;
  auto note = [&](const Update &u) {
    explained[u.variable] += u.mentions;
    auto [it, added] = updates.emplace(u.variable, u);
    if (!added && !(it->second.fold == u.fold))
      mixed.insert(u.variable);
  };
  std::set<const Stmt *> done;
  walk(loop, [&](Stmt &s) {
    if (done.count(&s))
      return;
    if (auto u = comparedUpdate(s)) {
      note(*u);
      if (s.kind == StmtKind::If)
        done.insert(s.body[0]->body[0].get());
    } else if (s.kind == StmtKind::Expr) {
      if (auto u = updateOf(s.expr))
        note(*u);
    }
  });
  walkExprs(loop, [&](const ExprRef &e) {
    if (e->kind == ExprKind::Var)
      ++mentions[e->text];
    if (e->kind != ExprKind::Assign && e->kind != ExprKind::IncDec)
      return;
    const Expr *target = e->args[0].get();
    while ((target->kind == ExprKind::Member && !target->args[0]->type.isPointer()) ||
           (target->kind == ExprKind::Subscript && target->args[0]->kind != ExprKind::Cast && !target->args[0]->type.isPointer()))
      target = target->args[0].get();
    if (target->kind == ExprKind::Var && !inside.count(target->text))
      lines.emplace(target->text, e->line);
  });
  std::vector<Reduction> result;
  for (const auto &[name, line] : lines) {
    auto u = updates.find(name);
    if (u == updates.end() || mixed.count(name) || explained[name] != mentions[name] || opaqueMentions(loop, {name}))
      return notApplicable("what the loop computes in '{0}' is no sum, product or extreme alone (line {1})", name, line);
    Type type = u->second.type;
    type.isConst = type.isVolatile = false;
    if (!(type.cls == Type::Class::Int || type.isFloat()) || (type.bytes != 4 && type.bytes != 8))
      return notApplicable("'{0}' has a type that threads cannot exchange (line {1})", name, line);
    if (strictFloat && type.isFloat())
      return notApplicable("the order in which '{0}' is computed may not change (--optiml-fp=strict)", name);
    result.push_back({name, type, u->second.fold});
  }
  return result;
}

bool optiml::startsAtIdentity(const Stmt &s, const Reduction &r) {
  if (s.kind != StmtKind::Decl || s.text != r.variable || !s.expr)
    return false;
  ExprRef identity = r.fold.identity(r.type);
  auto number = [](const ExprRef &e) -> std::optional<double> {
    if (e->kind == ExprKind::FloatLit)
      return std::strtod(e->text.c_str(), nullptr);
    if (auto value = constantValue(e))
      return double(*value);
    return std::nullopt;
  };
  auto start = number(s.expr), want = number(identity);
  return start && want && *start == *want;
}

//===----------------------------------------------------------------------===//
// Combining
//===----------------------------------------------------------------------===//

StmtRef optiml::groupBarrier(const ThreadGroup &group) {
  Type none;
  none.cls = Type::Class::Void;
  none.text = "void";
  return group.isWarp() ? exprStmt(callOf("__syncwarp", {}, none, false)) : barrierStmt();
}

static StmtRef forOffsets(const std::string &name, StmtRef body) {
  StmtRef s = countedFor(name, Type::makeInt(), intLit(16), intLit(0), 1, std::move(body), NoUnroll);
  ExprRef offset = var(name, Type::makeInt());
  s->expr = binary(">", offset, intLit(0), Type::makeBool());
  s->step = assign("/=", offset, intLit(2));
  return s;
}

Combiner::Combiner(ThreadGroup group, std::set<std::string> &taken)
    : group(group), taken(taken), offset(freshName(taken, "offset")), warp(group.isWarp() ? "" : freshName(taken, "warp")) {}

std::vector<StmtRef> Combiner::combine(const Reduction &reduction) {
  std::vector<StmtRef> result;
  ExprRef v = var(reduction.variable, reduction.type);
  ExprRef mask = intLit(0xffffffff, Type::makeUnsigned());
  ExprRef shuffled = callOf("__shfl_xor_sync", {mask, v, var(offset, Type::makeInt())}, reduction.type, false);
  // The shuffle stands alone: every lane must reach it, and it must not be evaluated twice.
  auto folded = [&](const ExprRef &value, const char *name) {
    if (reduction.fold.kind == Fold::Kind::Operator)
      return block({reduction.fold.into(v, value)});
    std::string other = freshName(taken, name);
    return block({declStmt(other, reduction.type, value), reduction.fold.into(v, var(other, reduction.type))});
  };
  result.push_back(forOffsets(offset, folded(shuffled, "other")));
  if (group.isWarp())
    return result;
  int64_t warps = group.threads / 32;
  llvm::StringRef base = reduction.variable;
  base.consume_back("_of_thread");
  std::string array = freshName(taken, base.str() + "_of_warps");
  StmtRef shared = declStmt(array, reduction.type, nullptr, {intLit(warps)});
  shared->isShared = true;
  ExprRef thread = builtin("threadIdx.x"), ofWarps = var(array, reduction.type);
  ExprRef lane0 = binary("==", binary("%", thread, intLit(32)), intLit(0), Type::makeBool());
  result.insert(result.begin(), shared);
  result.push_back(ifStmt(lane0, block({exprStmt(assign("=", subscript(ofWarps, binary("/", thread, intLit(32)), reduction.type), v))})));
  result.push_back(barrierStmt());
  result.push_back(exprStmt(assign("=", v, subscript(ofWarps, intLit(0), reduction.type))));
  result.push_back(countedFor(warp, Type::makeInt(), intLit(1), intLit(warps), 1,
                              folded(subscript(ofWarps, var(warp, Type::makeInt()), reduction.type), "other"), NoUnroll));
  return result;
}
