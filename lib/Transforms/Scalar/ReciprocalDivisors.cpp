//===- ReciprocalDivisors.cpp - what all threads divide by, inverted once -===//
//
// reciprocal-divisors[kernel]: where floats are divided again and again by what only the kernel's arguments tell, they
// are multiplied by its inverse, which is computed once. A division that is rounded exactly takes some ten
// instructions.
//
// Example:
//   for (int k = 0; k < n; ++k)                  const float inverse = 1.0f / (2.0f * sigma * sigma);
//     s += expf(-d[k] * d[k] /                   for (int k = 0; k < n; ++k)
//               (2.0f * sigma * sigma));           s += expf(-d[k] * d[k] * inverse);
//
// Legal: floating point need not be strict. A product with the inverse errs by one and a half units in the last place
// in place of a half. Zeros, infinities and NaN as divisors give the same. The two may be further apart where the
// inverse leaves the range of normal floats: for divisors beyond 2^126 or below 2^-126. The verifier judges the error.
//
// Refuses: everything under `--optiml-fp=strict`; doubles; divisors that depend on a thread, on memory, or on a
// variable that changes, or are quotients of integers; constants, which the compiler inverts where that is exact. A
// division outside of all loops needs another one with its divisor.
//
//===----------------------------------------------------------------------===//
#include "SingleFloats.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/TreeQueries.h"

using namespace optiml;

namespace {
class ReciprocalDivisors : public Transform {
public:
  llvm::StringRef name() const override { return "reciprocal-divisors"; }
  bool onlyTunes() const override { return true; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override { return kernelSite(*this, state, {{}}); }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override;
};

/// The divisions of a kernel whose divisors the arguments alone tell.
class UniformDivisions {
public:
  explicit UniformDivisions(Kernel &kernel)
      : kernel(kernel), model(kernel), changed(changedParameters(kernel)), taken(allNames(kernel)) {}
  /// False: there are none that are worth it.
  bool run();

private:
  ExprRef overArguments(const ExprRef &e, unsigned depth) const;
  void find(Stmt &s, bool isRepeated);

  struct Inverse {
    ExprRef divisor; ///< over the arguments
    unsigned uses = 0;
    std::string name;
  };
  Kernel &kernel;
  KernelModel model;
  const std::set<std::string> changed;
  std::set<std::string> taken;
  std::map<const Expr *, std::string> divisors; ///< of divisions, by what is divided by: the divisor's text
  std::map<std::string, Inverse> inverses;
};
} // namespace

/// A division in a loop counts as so many.
static constexpr unsigned inLoop = 2;
/// So many are worth an inverse.
static constexpr unsigned leastUses = 2;
/// A variable that holds a divisor is followed through so many others.
static constexpr unsigned mostSteps = 4;

/// A number that a division of floats takes as a float.
static bool isFloatOrInt(const Type &type) { return isSingle(type) || type.isInt(); }

/// Evaluated where the original does not, it may fault or be undefined.
static bool mayBeUndefined(const Expr &e) {
  if (e.kind == ExprKind::Cast)
    return e.type.isInt() && e.args[0]->type.isFloat();
  const bool isRisky = e.text == "/" || e.text == "%" || e.text == "<<" || e.text == ">>";
  return e.kind == ExprKind::Binary && e.type.isInt() && isRisky;
}

/// The expression with its variables followed to the arguments; null: something else decides it.
ExprRef UniformDivisions::overArguments(const ExprRef &e, unsigned depth) const {
  switch (e->kind) {
  case ExprKind::FloatLit:
  case ExprKind::IntLit: return e;
  case ExprKind::Var: {
    if (model.param(e->text))
      return e->type.isPointer() || changed.count(e->text) ? nullptr : e;
    const Stmt *held = depth ? model.singleAssignment(e->text) : nullptr;
    if (!held || held->kind != StmtKind::Decl || !held->expr || !held->dims.empty() || held->isShared)
      return nullptr;
    const ExprRef value = overArguments(held->expr, depth - 1);
    return value ? asNumber(held->type.unqualified(), value) : nullptr;
  }
  case ExprKind::Member:
    return e->args[0]->kind == ExprKind::Var && !e->args[0]->type.isPointer() && model.param(e->args[0]->text) &&
                   !changed.count(e->args[0]->text)
               ? e
               : nullptr;
  case ExprKind::Unary:
  case ExprKind::Binary:
  case ExprKind::Cast: {
    if (isUnary(e, "*") || isUnary(e, "&") || hasEffects(e) || mayBeUndefined(*e))
      return nullptr;
    bool known = true;
    ExprRef result = mapOperands(e, [&](const ExprRef &operand) {
      ExprRef value = overArguments(operand, depth);
      known &= value != nullptr;
      return value ? value : operand;
    });
    return known ? result : nullptr;
  }
  default: return nullptr;
  }
}

void UniformDivisions::find(Stmt &s, bool isRepeated) {
  const bool loops = s.kind == StmtKind::For || s.kind == StmtKind::While || s.kind == StmtKind::Do;
  ownExprs(s, [&](ExprRef &e) {
    if (!e)
      return;
    walk(e, [&](const ExprRef &part) {
      const bool divides = isBinary(part, "/") || (part->kind == ExprKind::Assign && part->text == "/=");
      if (!divides || !isSingle(part->type) || !isFloatOrInt(part->args[0]->type) || !isFloatOrInt(part->args[1]->type))
        return;
      const ExprRef known = overArguments(part->args[1], mostSteps);
      if (!known || !anyNode(known, [&](const ExprRef &n) { return n->kind == ExprKind::Var; }))
        return;
      const ExprRef divisor = asNumber(Type::makeFloat(4), known);
      Inverse &inverse = inverses[str(divisor)];
      inverse.divisor = divisor;
      inverse.uses += isRepeated || loops ? inLoop : 1;
      divisors[part.get()] = str(divisor);
    });
  });
  for (const StmtRef &inner : s.body)
    find(*inner, isRepeated || loops);
}

bool UniformDivisions::run() {
  find(*kernel.body, false);
  std::erase_if(inverses, [](const auto &entry) { return entry.second.uses < leastUses; });
  if (inverses.empty())
    return false;
  for (auto &[text, inverse] : inverses)
    inverse.name = freshName(taken, "inverse");
  std::function<ExprRef(const ExprRef &)> multiplied = [&](const ExprRef &e) -> ExprRef {
    const ExprRef now = mapOperands(e, multiplied);
    auto divisor = divisors.find(e.get());
    auto found = divisor == divisors.end() ? inverses.end() : inverses.find(divisor->second);
    if (found == inverses.end())
      return now;
    const ExprRef factor = var(found->second.name, e->type);
    if (now->kind == ExprKind::Assign)
      return assign("*=", now->args[0], factor);
    return isOne(now->args[0]) ? factor : binary("*", now->args[0], factor, now->type);
  };
  walk(*kernel.body, [&](Stmt &s) {
    ownExprs(s, [&](ExprRef &e) {
      if (e)
        e = multiplied(e);
    });
  });
  std::vector<StmtRef> declared;
  for (const auto &[text, inverse] : inverses) {
    const Type type = Type::makeFloat(4);
    declared.push_back(
        declStmt(inverse.name, type.withConst(true), binary("/", floatLit("1.0f", type), inverse.divisor, type)));
  }
  std::vector<StmtRef> &list = kernel.body->body;
  list.insert(list.begin(), declared.begin(), declared.end());
  return true;
}

llvm::Expected<KernelState> ReciprocalDivisors::apply(const KernelState &state, llvm::StringRef, const Params &) const {
  if (state.hints.strictFloat)
    return notApplicable("results may not be rounded otherwise (--optiml-fp=strict)");
  auto kernel = state.tree->clone();
  if (!UniformDivisions(*kernel).run())
    return notApplicable("no float is divided again and again by what the arguments tell");
  return state.withTree(kernel);
}

DEFINE_TRANSFORM(ReciprocalDivisors)
