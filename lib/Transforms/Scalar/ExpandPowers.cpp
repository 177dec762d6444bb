//===- ExpandPowers.cpp - powers as products ------------------------------===//
//
// expand-powers[kernel]: powers with a whole exponent become products, and `pow(2, x)` becomes `exp2(x)`. nvcc compiles
// `pow(x, 2.0)` like any other power, with over a hundred instructions in single precision and twice as many in double.
//
// Example:
//                                           float base = s / r2;
//   float s6 = powf(s / r2, 3.0f);          float s6 = base * base * base;
//   y[i] = pow(v, 2) / pow(w, 4.0);         y[i] = (double)v * (double)v / (w * w * (w * w));
//
// Legal: floating point need not be strict. Each product rounds by half a unit in the last place, which is why the
// exponent is at most 16, and 12 in single precision. For zeros, infinities and NaN the products give what C's `pow`
// gives for a whole exponent that is not zero (C17, F.10.4.4). `pow(float, int)` is computed in double precision, as
// nvcc does.
//
// Refuses: everything under `--optiml-fp=strict`; exponents that are zero, not whole, or not known; functions of that
// name that are not CUDA's or the standard library's. A half exponent stays, because `sqrt(-INFINITY)` is not what
// `pow` gives. Where a base cannot be computed first (behind `&&`, `||` and `?:`, and in conditions), it also refuses
// powers that would repeat the base more than three times.
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Core/KernelName.h"
#include <cmath>

using namespace optiml;

namespace {
class ExpandPowers : public Transform {
public:
  llvm::StringRef name() const override { return "expand-powers"; }
  bool onlyTunes() const override { return true; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override { return kernelSite(*this, state, {{}}); }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override;
};

class Expander {
public:
  explicit Expander(Kernel &kernel) : kernel(kernel), taken(allNames(kernel)) {}
  /// The number of powers that are gone.
  unsigned run();

private:
  ExprRef expanded(const ExprRef &e, bool always);
  ExprRef power(const ExprRef &e, bool always);
  ExprRef copied(const ExprRef &base, unsigned times, bool always);

  Kernel &kernel;
  std::set<std::string> taken;
  std::vector<StmtRef> *before = nullptr; ///< where a base may be computed first; null: nowhere
  unsigned changes = 0;
};
} // namespace

/// An expression of so many nodes may stand in the text twice or three times.
static constexpr unsigned mostRepeated = 12, mostTimes = 3;
static constexpr int mostSingle = 12, mostDouble = 16;

static std::optional<double> literalValue(const ExprRef &e) {
  if (auto value = constantValue(e))
    return double(*value);
  if (e->kind == ExprKind::FloatLit)
    return std::strtod(e->text.c_str(), nullptr);
  if (e->kind == ExprKind::Cast && (e->type.isFloat() || e->type.isInt()))
    return literalValue(e->args[0]);
  auto value =
      e->kind == ExprKind::Unary && (e->text == "-" || e->text == "+") ? literalValue(e->args[0]) : std::nullopt;
  return value ? std::optional(e->text == "-" ? -*value : *value) : std::nullopt;
}

static ExprRef inType(const Type &type, const ExprRef &e) {
  return e->type.isFloat() && e->type.bytes == type.bytes ? e : castTo(type, e);
}

static bool isSimple(const ExprRef &e) {
  return e->kind == ExprKind::Var || (e->kind == ExprKind::Cast && isSimple(e->args[0])) ||
         (e->kind == ExprKind::Member && !e->args[0]->type.isPointer() && isSimple(e->args[0]));
}

static ExprRef product(const ExprRef &base, unsigned times) {
  if (times == 1)
    return base;
  ExprRef half = product(base, times / 2), square = binary("*", half, half, base->type);
  return times % 2 ? binary("*", square, base, base->type) : square;
}

/// Something cheap with the value of `base`, which is needed so many times; null when there is no place to compute it.
ExprRef Expander::copied(const ExprRef &base, unsigned times, bool always) {
  if (isSimple(base) || times == 1)
    return base;
  unsigned nodes = 0;
  bool repeatable = true;
  walk(base, [&](const ExprRef &e) {
    ++nodes;
    repeatable &= e->pure && !isChange(e);
  });
  if (!repeatable)
    return nullptr;
  if (always && before) {
    std::string name = freshName(taken, "base");
    before->push_back(declStmt(name, base->type, base));
    return var(name, base->type);
  }
  return times <= mostTimes && nodes <= mostRepeated ? base : nullptr;
}

ExprRef Expander::power(const ExprRef &e, bool always) {
  if (e->kind != ExprKind::Call || !e->isLibrary || !e->pure || e->args.size() != 2 || !e->type.isFloat())
    return nullptr;
  llvm::StringRef name = unqualified(e->text);
  if (name != "pow" && name != "powf")
    return nullptr;
  // pow(float, int) is a double for nvcc, whatever the headers at hand make of it.
  const ExprRef &below = e->args[0], &above = e->args[1];
  bool single = e->type.bytes == 4 && (name == "powf" || !(below->type.isInt() || above->type.isInt()));
  Type type = Type::makeFloat(single ? 4 : 8);
  if (literalValue(below) == 2.0)
    return callOf(single ? "exp2f" : "exp2", {inType(type, above)}, type, true);
  auto exponent = literalValue(above);
  int most = single ? mostSingle : mostDouble;
  if (!exponent || std::fabs(*exponent) > most || *exponent == 0 || *exponent != std::floor(*exponent))
    return nullptr;
  unsigned times = unsigned(std::fabs(*exponent));
  ExprRef base = copied(inType(type, below), times, always);
  if (!base)
    return nullptr;
  ExprRef result = product(base, times);
  if (*exponent > 0)
    return result;
  return binary("/", floatLit(single ? "1.0f" : "1.0", type), result, type);
}

/// `always`: computed whenever the statement runs.
ExprRef Expander::expanded(const ExprRef &e, bool always) {
  bool maySkip = e->kind == ExprKind::Cond || (e->kind == ExprKind::Binary && (e->text == "&&" || e->text == "||"));
  ExprRef now = e;
  for (size_t i = 0; i < e->args.size(); ++i)
    if (ExprRef arg = expanded(e->args[i], always && !(maySkip && i > 0)); arg != e->args[i]) {
      auto made = std::make_shared<Expr>(*now);
      made->args[i] = arg;
      now = made;
    }
  if (ExprRef made = power(now, always)) {
    ++changes;
    return made;
  }
  return now;
}

/// Whether what the statement computes may be computed in front of it: nothing changes before it is used.
static bool changesNothingFirst(const Stmt &s) {
  bool fine = s.expr != nullptr;
  if (fine)
    walk(s.expr, [&](const ExprRef &e) {
      bool isLast = e == s.expr && s.kind == StmtKind::Expr && e->kind == ExprKind::Assign;
      fine &= isLast || (!isChange(e) && e->pure);
    });
  return fine;
}

unsigned Expander::run() {
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    std::vector<StmtRef> made;
    for (const StmtRef &s : list) {
      bool plain = (s->kind == StmtKind::Expr || (s->kind == StmtKind::Decl && s->dims.empty() && !s->isShared)) &&
                   changesNothingFirst(*s);
      before = plain ? &made : nullptr;
      ownExprs(*s, [&](ExprRef &e) {
        if (e)
          e = expanded(e, plain);
      });
      made.push_back(s);
    }
    list = std::move(made);
  });
  return changes;
}

llvm::Expected<KernelState> ExpandPowers::apply(const KernelState &state, llvm::StringRef, const Params &) const {
  if (state.hints.strictFloat)
    return notApplicable("results may not be rounded otherwise (--optiml-fp=strict)");
  auto kernel = state.tree->clone();
  if (!Expander(*kernel).run())
    return notApplicable("no power has a whole exponent of at most {0} that is known", mostDouble);
  return state.withTree(kernel);
}

DEFINE_TRANSFORM(ExpandPowers)
