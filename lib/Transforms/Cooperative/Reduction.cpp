//===- Reduction.cpp - sums and extremes over threads ---------------------===//
#include "Reduction.h"
#include "JointUpdates.h"
#include "Matches.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

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
  unsigned mentions;       ///< of the variable, by the update itself
  ExprRef value = nullptr; ///< what is folded in, where that is an operand as it stands
};
} // namespace

bool optiml::isMinMax(const std::string &callee) {
  static const std::set<std::string> names = {"fmaxf", "fminf", "fmax", "fmin", "max", "min"};
  return names.count(unqualified(callee).str());
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
      exact &= value->type.cls == u->type.cls && value->type.bytes == u->type.bytes &&
               value->type.isSigned == u->type.isSigned;
  } else {
    exact = foldsExactly(u->type, value->type, compares);
  }
  return exact ? u : std::nullopt;
}

static std::optional<Update> plainUpdate(const ExprRef &e) {
  if (!isChange(e) || e->args[0]->kind != ExprKind::Var)
    return std::nullopt;
  const ExprRef &target = e->args[0];
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
  if (value->kind == ExprKind::Call && value->pure && value->isLibrary && value->args.size() == 2 &&
      isMinMax(value->text) && isVar(value->args[0], u.variable) != isVar(value->args[1], u.variable)) {
    u.fold = {Fold::Kind::Call, value->text};
    u.value = value->args[isVar(value->args[0], u.variable) ? 1 : 0];
    return u;
  }
  if (value->kind == ExprKind::Call && value->pure && value->isLibrary && value->args.size() == 3 &&
      (value->text == "fmaf" || value->text == "fma") && isVar(value->args[2], u.variable))
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
  return Update{variable,
                assigned->args[0]->type,
                {Fold::Kind::Compare, first ? mirrored(condition->text) : condition->text},
                2,
                assigned->args[1]};
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

/// Of two iterations of the loop over `variable`, the later one has the greater value of `e` (1), or the lesser (-1);
/// 0: neither is known.
static int directionOf(const ExprRef &e, const std::string &variable,
                       const std::function<bool(const ExprRef &)> &isFixed) {
  auto of = [&](size_t i) { return directionOf(e->args[i], variable, isFixed); };
  if (e->kind == ExprKind::Cast) { // a negative number would become a large one
    bool keeps =
        e->type.cls == Type::Class::Int && e->type.bytes >= 4 && (e->type.isSigned || !e->args[0]->type.isSigned);
    return keeps ? of(0) : 0;
  }
  if (e->kind != ExprKind::Binary || !e->type.isInt())
    return isVar(e, variable);
  auto shifts = [&](size_t i) {
    return isFixed(e->args[i]) && (e->type.isSigned || constantValue(e->args[i]).value_or(-1) >= 0);
  };
  if (e->text == "+")
    return shifts(1) ? of(0) : shifts(0) ? of(1) : 0;
  if (e->text == "-" && e->type.isSigned)
    return isFixed(e->args[1]) ? of(0) : isFixed(e->args[0]) ? -of(1) : 0;
  auto positive = [&](size_t i) { return constantValue(e->args[i]).value_or(0) > 0; };
  if (e->text == "*")
    return positive(1) ? of(0) : positive(0) ? of(1) : 0;
  return 0;
}

namespace {
/// What is kept beside an extreme or a place, for threads to exchange.
class KeptValues {
public:
  KeptValues(Stmt &loop, const std::set<std::string> &inside)
      : loop(loop), counted(asCountedLoop(loop)), fixed(inside) {
    walkExprs(loop, [&](const ExprRef &e) {
      if (isChange(e) && e->args[0]->kind == ExprKind::Var)
        fixed.insert(e->args[0]->text);
    });
  }
  std::optional<Reduction> extreme(const PlacedExtreme &found) const;
  std::optional<Reduction> match(const Match &found, const std::map<std::string, Type> &types) const;

private:
  static bool canBeExchanged(const Type &type) {
    return !type.isVolatile && (type.cls == Type::Class::Int || type.isFloat()) && (type.bytes == 4 || type.bytes == 8);
  }
  /// As directionOf, for a variable that becomes `value` in iterations.
  int direction(const Type &type, const ExprRef &value) const {
    if (type.cls != Type::Class::Int || type.isSigned != value->type.isSigned || type.bytes < value->type.bytes)
      return 0;
    return directionOf(value, counted->var, [&](const ExprRef &e) { return isFixed(e); });
  }
  bool isFixed(const ExprRef &e) const {
    bool result = e->type.isInt();
    walk(e, [&](const ExprRef &x) {
      result &= x->kind == ExprKind::IntLit || x->kind == ExprKind::Builtin || x->kind == ExprKind::Binary ||
                x->kind == ExprKind::Cast || (x->kind == ExprKind::Var && !fixed.count(x->text));
    });
    return result;
  }
  bool keepFlag(const std::string &flag, Reduction &r) const {
    const ExprRef *found = nullptr;
    walkExprs(loop, [&](const ExprRef &e) {
      if (isVar(e, flag))
        found = &e;
    });
    if (!found || !(*found)->type.isInt() || (*found)->type.isVolatile)
      return false;
    r.flag = flag;
    r.kept.emplace_back(flag, (*found)->type.unqualified());
    return true;
  }

  Stmt &loop;
  std::optional<CountedLoop> counted;
  std::set<std::string> fixed; ///< what iterations have, or change
};
} // namespace

/// The extreme as a reduction, if something that is kept beside it tells which of equal values stays.
std::optional<Reduction> KeptValues::extreme(const PlacedExtreme &found) const {
  if (!counted)
    return std::nullopt;
  Reduction r{found.extreme, found.type.unqualified(), {Fold::Kind::Compare, found.isMaximum ? ">" : "<"}};
  r.unordered = found.unordered;
  using Tie = PlacedExtreme::Tie;
  for (const auto &[name, type] : found.kept) {
    if (!canBeExchanged(type))
      return std::nullopt;
    r.kept.emplace_back(name, type.unqualified());
    const ExprRef &value = found.values.at(name);
    if (!r.index.empty())
      continue;
    bool ordered = found.tie == Tie::First || found.tie == Tie::Last;
    int way = direction(type, value);
    if (!ordered)
      way = found.decides == name && type.cls == Type::Class::Int && type.isSigned == value->type.isSigned &&
            type.bytes >= value->type.bytes;
    if (!way)
      continue;
    r.index = name;
    r.greaterFirst = ordered ? (found.tie == Tie::First) != (way > 0) : found.tie == Tie::Greater;
  }
  if (!found.flag.empty() && !keepFlag(found.flag, r))
    return std::nullopt;
  return r.index.empty() && !found.kept.empty() ? std::nullopt : std::optional(r);
}

/// The match as a reduction, if one of its values tells which came first.
std::optional<Reduction> KeptValues::match(const Match &found, const std::map<std::string, Type> &types) const {
  if (!counted || found.flag.empty())
    return std::nullopt;
  Reduction r;
  for (const auto &[name, value] : found.values) {
    const Type type = types.at(name).unqualified();
    if (!canBeExchanged(types.at(name)))
      return std::nullopt;
    int way = r.variable.empty() ? direction(type, value) : 0;
    if (!way) {
      r.kept.emplace_back(name, type);
      continue;
    }
    r.variable = name;
    r.type = type;
    r.fold = {Fold::Kind::Compare, (way > 0) == found.isFirst ? "<" : ">"};
  }
  r.startsUnset = !found.isFirst;
  return !r.variable.empty() && keepFlag(found.flag, r) ? std::optional(r) : std::nullopt;
}

/// One of those over `left`, variables that are no reductions of their own.
static std::optional<Reduction> findJoint(Stmt &loop, const std::map<std::string, Type> &left,
                                          const std::set<std::string> &inside) {
  if (auto pair = findRescaledSum(loop, left)) {
    Reduction r{pair->extreme, pair->type, {Fold::Kind::Compare, ">"}, {{pair->sum, pair->type}}, {}, pair->function};
    r.unordered = pair->unordered;
    return r;
  }
  if (auto moments = findRunningMoments(loop, left))
    return Reduction{moments->mean,
                     moments->type,
                     {Fold::Kind::Operator, "+"},
                     {{moments->squares, moments->type}, {moments->count, moments->countType}},
                     {},
                     {},
                     true};
  if (auto sum = findSum(loop, left)) {
    const auto &[name, type] = *sum;
    if (!type.isVolatile && (type.cls == Type::Class::Int || type.isFloat()) && (type.bytes == 4 || type.bytes == 8))
      return Reduction{name, type.unqualified(), {Fold::Kind::Operator, "+"}};
  }
  if (auto extreme = findPlacedExtreme(loop, left))
    return KeptValues(loop, inside).extreme(*extreme);
  if (auto match = findMatch(loop, left))
    return KeptValues(loop, inside).match(*match, left);
  return std::nullopt;
}

llvm::Expected<std::vector<Reduction>>
optiml::findReductions(Stmt &loop, bool strictFloat, const std::set<std::string> &explainedArrays, bool runsAgain) {
  std::set<std::string> inside = explainedArrays;
  walk(loop, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl)
      inside.insert(s.text);
  });
  // What is assigned, by roots; updates as statements; how often each name occurs.
  std::map<std::string, unsigned> lines, mentions, explained;
  std::map<std::string, Update> updates;
  std::map<std::string, Type> types;
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
           (target->kind == ExprKind::Subscript && target->args[0]->kind != ExprKind::Cast &&
            !target->args[0]->type.isPointer()))
      target = target->args[0].get();
    if (target->kind == ExprKind::Var && !inside.count(target->text)) {
      lines.emplace(target->text, e->line);
      types.emplace(target->text, target->type);
    }
  });
  auto isPlain = [&](const std::string &name) {
    auto u = updates.find(name);
    return u != updates.end() && !mixed.count(name) && explained[name] == mentions[name] &&
           !opaqueMentions(loop, {name});
  };
  std::map<std::string, Type> left, all = types; // that are no reductions alone; that none over several has taken
  for (const auto &[name, type] : types)
    if (!isPlain(name))
      left.emplace(name, type);
  bool readable = loop.body.size() == 1 && loop.body[0]->kind == StmtKind::Block;
  std::vector<Reduction> result;
  while (!left.empty()) {
    auto joint = readable ? findJoint(loop, left, inside) : std::nullopt;
    if (!joint && readable) // a sum of what depends on the others
      joint = findJoint(loop, all, inside);
    if (!joint || (!left.count(joint->variable) &&
                   llvm::none_of(joint->kept, [&](const auto &kept) { return left.count(kept.first); }))) {
      const std::string &name = left.begin()->first;
      return notApplicable("what the loop computes in '{0}' is no sum, product or extreme alone (line {1})", name,
                           lines.at(name));
    }
    if (joint->unordered && !runsAgain)
      return notApplicable("where a value is no number, '{0}' depends on the order", joint->variable);
    if (strictFloat && joint->keepsSums())
      return notApplicable("the order in which '{0}' is computed may not change (--optiml-fp=strict)", joint->variable);
    for (std::map<std::string, Type> *names : {&left, &all}) {
      names->erase(joint->variable);
      for (const auto &[name, type] : joint->kept)
        names->erase(name);
    }
    result.push_back(*joint);
  }
  for (const auto &[name, assigned] : all) {
    const Update &u = updates.at(name);
    Type type = u.type.unqualified();
    unsigned line = lines.at(name);
    if (!(type.cls == Type::Class::Int || type.isFloat()) || (type.bytes != 4 && type.bytes != 8))
      return notApplicable("'{0}' has a type that threads cannot exchange (line {1})", name, line);
    if (strictFloat && type.isFloat())
      return notApplicable("the order in which '{0}' is computed may not change (--optiml-fp=strict)", name);
    result.push_back({name, type, u.fold});
  }
  llvm::sort(result, [](const Reduction &a, const Reduction &b) { return a.variable < b.variable; });
  return result;
}

bool optiml::onlyReduces(Stmt &loop) {
  auto found = findReductions(loop, /*strictFloat=*/false);
  if (found)
    return true;
  llvm::consumeError(found.takeError());
  return false;
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
  if (!group.isWithinWarp())
    return barrierStmt();
  std::vector<ExprRef> arguments = group.threads == 32 ? std::vector<ExprRef>{} : std::vector<ExprRef>{group.mask()};
  return exprStmt(callOf("__syncwarp", arguments, Type::makeVoid(), false));
}

ExprRef ThreadGroup::mask() const {
  if (threads >= 32)
    return intLit(0xffffffff, Type::makeUnsigned());
  ExprRef place = mul(binary("%", builtin("threadIdx.y"), intLit(32 / threads)), intLit(threads));
  return binary("<<", intLit((int64_t(1) << threads) - 1, Type::makeUnsigned()), place, Type::makeUnsigned());
}

static StmtRef forOffsets(const std::string &name, int64_t first, StmtRef body) {
  StmtRef s = countedFor(name, Type::makeInt(), intLit(first), intLit(0), 1, std::move(body), NoUnroll);
  ExprRef offset = var(name, Type::makeInt());
  s->expr = binary(">", offset, intLit(0), Type::makeBool());
  s->step = assign("/=", offset, intLit(2));
  return s;
}

ThreadGroup ThreadGroup::ofBlock(const std::array<int64_t, 3> &shape) {
  ThreadGroup group{shape[0] * shape[1] * shape[2]};
  if (shape[1] != 1 || shape[2] != 1)
    group.extents = {shape[0], shape[1]};
  return group;
}

ExprRef ThreadGroup::rank() const {
  ExprRef x = builtin("threadIdx.x"), row = builtin("threadIdx.y");
  if (!extents[0])
    return x;
  if (threads != extents[0] * extents[1])
    row = extents[1] == 1 ? builtin("threadIdx.z") : add(mul(builtin("threadIdx.z"), intLit(extents[1])), row);
  return add(mul(row, intLit(extents[0])), x);
}

ExprRef ThreadGroup::isFirst() const {
  ExprRef first;
  for (const char *axis : {"threadIdx.x", "threadIdx.y", "threadIdx.z"}) {
    bool isThere =
        axis[10] == 'x' || (axis[10] == 'y' ? extents[1] > 1 : extents[0] && threads != extents[0] * extents[1]);
    if (isThere)
      first = logicalAnd(first, binary("==", builtin(axis), intLit(0), Type::makeBool()));
  }
  return first;
}

Combiner::Combiner(ThreadGroup group, std::set<std::string> &taken)
    : group(group), taken(taken), offset(freshName(taken, "offset")),
      warp(group.isWithinWarp() ? "" : freshName(taken, "warp")) {}

/// m and what is kept with it, in the order of Reduction::kept.
static std::vector<std::pair<std::string, Type>> variablesOf(const Reduction &r) {
  std::vector<std::pair<std::string, Type>> all = {{r.variable, r.type}};
  all.insert(all.end(), r.kept.begin(), r.kept.end());
  return all;
}

/// Takes another thread's extreme where it is better, or is the same and comes first. `values`: as variablesOf.
StmtRef Combiner::better(const Reduction &r, const std::vector<ExprRef> &values) {
  auto variables = variablesOf(r);
  std::vector<StmtRef> body, take;
  std::vector<ExprRef> others;
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto &[name, type] = variables[i];
    others.push_back(var(freshName(taken, "other_" + name), type));
    body.push_back(declStmt(others.back()->text, type, values[i]));
    take.push_back(exprStmt(assign("=", var(name, type), others.back())));
  }
  if (r.isMean) {
    RunningMoments own{r.kept[1].first, r.variable, r.kept[0].first, r.kept[1].second, r.type};
    body.push_back(combineMoments(own, others[2], others[0], others[1], taken));
    return block(body);
  }
  if (!r.exponential.empty()) {
    body.push_back(combineRescaled({r.variable, r.kept[0].first, r.type, r.exponential}, others[0], others[1]));
    return block(body);
  }
  ExprRef m = var(r.variable, r.type), takes = binary(r.fold.op, others[0], m, Type::makeBool());
  if (!r.index.empty()) {
    size_t place = 1;
    while (variables[place].first != r.index)
      ++place;
    ExprRef at = var(r.index, variables[place].second);
    ExprRef first = logicalAnd(binary("==", others[0], m, Type::makeBool()),
                               r.greaterFirst ? lessThan(at, others[place]) : lessThan(others[place], at));
    takes = binary("||", takes, first, Type::makeBool());
  }
  if (!r.flag.empty()) { // one of both may have nothing yet
    size_t flag = 1;
    while (variables[flag].first != r.flag)
      ++flag;
    ExprRef nothing = unary("!", var(r.flag, variables[flag].second), Type::makeBool());
    takes = logicalAnd(others[flag], binary("||", nothing, takes, Type::makeBool()));
  }
  body.push_back(ifStmt(takes, block(take)));
  return block(body);
}

std::vector<StmtRef> Combiner::combineWithPlace(const Reduction &r) {
  auto variables = variablesOf(r);
  std::vector<ExprRef> shuffled;
  for (const auto &[name, type] : variables)
    shuffled.push_back(
        callOf("__shfl_xor_sync", {group.mask(), var(name, type), var(offset, Type::makeInt())}, type, false));
  std::vector<StmtRef> result = {forOffsets(offset, group.firstOffset(), better(r, shuffled))};
  auto firstLane = [&](const ExprRef &value) {
    std::vector<ExprRef> arguments = {group.mask(), value, intLit(0)};
    if (group.threads < 32)
      arguments.push_back(intLit(group.threads));
    return arguments;
  };
  if (group.isWithinWarp() &&
      r.isMean) // which part came first decides how it is rounded: the lanes go on with one result
    for (const auto &[name, type] : variables)
      result.push_back(
          exprStmt(assign("=", var(name, type), callOf("__shfl_sync", firstLane(var(name, type)), type, false))));
  if (group.isWithinWarp())
    return result;
  const int64_t warps = group.threads / 32;
  ExprRef thread = group.rank();
  std::vector<StmtRef> shared, store, load;
  std::vector<ExprRef> ofWarp;
  for (const auto &[name, type] : variables) {
    std::string array = freshName(taken, name + "_of_warps");
    shared.push_back(sharedArray(array, type, {intLit(warps)}));
    auto element = [&, &type = type](const ExprRef &i) { return subscript(var(array, type), i, type); };
    store.push_back(exprStmt(assign("=", element(binary("/", thread, intLit(32))), var(name, type))));
    load.push_back(exprStmt(assign("=", var(name, type), element(intLit(0)))));
    ofWarp.push_back(element(var(warp, Type::makeInt())));
  }
  result.insert(result.begin(), shared.begin(), shared.end());
  result.push_back(ifStmt(binary("==", binary("%", thread, intLit(32)), intLit(0), Type::makeBool()), block(store)));
  result.push_back(barrierStmt());
  result.insert(result.end(), load.begin(), load.end());
  result.push_back(countedFor(warp, Type::makeInt(), intLit(1), intLit(warps), 1, better(r, ofWarp), NoUnroll));
  return result;
}

std::vector<StmtRef> Combiner::combine(const Reduction &reduction) {
  if (reduction.keepsPlace())
    return combineWithPlace(reduction);
  std::vector<StmtRef> result;
  ExprRef v = var(reduction.variable, reduction.type);
  ExprRef shuffled = callOf("__shfl_xor_sync", {group.mask(), v, var(offset, Type::makeInt())}, reduction.type, false);
  // The shuffle stands alone: every lane must reach it, and it must not be evaluated twice.
  auto folded = [&](const ExprRef &value, const char *name) {
    if (reduction.fold.kind == Fold::Kind::Operator)
      return block({reduction.fold.into(v, value)});
    std::string other = freshName(taken, name);
    return block({declStmt(other, reduction.type, value), reduction.fold.into(v, var(other, reduction.type))});
  };
  result.push_back(forOffsets(offset, group.firstOffset(), folded(shuffled, "other")));
  if (group.isWithinWarp())
    return result;
  int64_t warps = group.threads / 32;
  llvm::StringRef base = reduction.variable;
  base.consume_back("_of_thread");
  std::string array = freshName(taken, base.str() + "_of_warps");
  ExprRef thread = group.rank(), ofWarps = var(array, reduction.type);
  ExprRef lane0 = binary("==", binary("%", thread, intLit(32)), intLit(0), Type::makeBool());
  result.insert(result.begin(), sharedArray(array, reduction.type, {intLit(warps)}));
  result.push_back(ifStmt(
      lane0, block({exprStmt(assign("=", subscript(ofWarps, binary("/", thread, intLit(32)), reduction.type), v))})));
  result.push_back(barrierStmt());
  result.push_back(exprStmt(assign("=", v, subscript(ofWarps, intLit(0), reduction.type))));
  result.push_back(countedFor(warp, Type::makeInt(), intLit(1), intLit(warps), 1,
                              folded(subscript(ofWarps, var(warp, Type::makeInt()), reduction.type), "other"),
                              NoUnroll));
  return result;
}
