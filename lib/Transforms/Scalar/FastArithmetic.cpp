//===- FastArithmetic.cpp - less exact arithmetic that costs less ---------===//
//
// fast-arithmetic[kernel]{use=intrinsics}: functions and divisions of floats go to the GPU's special function units.
//
// fast-arithmetic[kernel]{use=single}: what is computed in double precision only because of a constant or a function's
// name, and ends as a `float`, is computed as `float`.
//
// Example:
//   y[i] = 1.0 / (1.0 + exp(-x[i] / t));
//   y[i] = 1.0f / (1.0f + expf(-x[i] / t));                         // use=single
//   y[i] = __fdividef(1.0f, 1.0f + __expf(__fdividef(-x[i], t)));   // then use=intrinsics
//
//   a = m / sqrtf(r);
//   a = m * rsqrtf(r);                                              // use=intrinsics
//
// Legal: you allow it with `--optiml-fp=fast`. The verifier judges the error, on the inputs that it tries. Results must
// lie within the budget of the exact ones, relative to the magnitude of what they were made from. The budget is 4.9e-4,
// unless you give another (`--optiml-fp=fast:1e-5`). The summary reports the largest error that the verifier saw.
//
// Refuses: everything without `--optiml-fp=fast`; doubles that are variables or array elements; divisions by constants,
// which the compiler turns into multiplications; functions of the same names that are not CUDA's or the standard
// library's; comparisons; helpers that stay calls.
//
//===----------------------------------------------------------------------===//
#include "SingleFloats.h"
#include "Transforms.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Core/KernelName.h"
#include <cmath>

using namespace optiml;

namespace {
class FastArithmetic : public Transform {
public:
  llvm::StringRef name() const override { return "fast-arithmetic"; }
  bool onlyTunes() const override { return true; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    offer(result, state, "", {{{"use", "intrinsics"}}, {{"use", "single"}}});
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override;
};
} // namespace

static bool isDouble(const Type &type) { return type.isFloat() && type.bytes == 8; }

// Single precision

/// Functions of double that have a sister for float, with an f at its end.
static bool hasSister(const std::string &callee) {
  static const std::set<std::string> names = {"sqrt", "rsqrt", "cbrt",  "exp",  "exp2", "exp10", "expm1", "log",
                                              "log2", "log10", "log1p", "pow",  "sin",  "cos",   "tan",   "asin",
                                              "acos", "atan",  "atan2", "sinh", "cosh", "tanh",  "erf",   "erfc",
                                              "fabs", "fmin",  "fmax",  "fma",  "fmod", "floor", "ceil",  "hypot"};
  return names.count(callee) != 0;
}

static ExprRef literalOf(double value, const Expr &from) {
  if (!std::isfinite(float(value)) || (value != 0 && std::fabs(value) < double(std::numeric_limits<float>::min())))
    return nullptr;
  auto e = std::make_shared<Expr>(from);
  e->text = from.text + "f";
  e->type = Type::makeFloat(4);
  return e;
}

/// The same value in single precision, or null where it comes from something that is double for a reason. Integers are
/// converted by the operator that uses them.
static ExprRef inSingle(const ExprRef &e) {
  if (isSingle(e->type) || e->type.isInt())
    return e;
  if (!isDouble(e->type))
    return nullptr;
  if (e->kind == ExprKind::FloatLit) {
    char *end = nullptr;
    double value = std::strtod(e->text.c_str(), &end);
    return *end ? nullptr : literalOf(value, *e);
  }
  if (e->kind == ExprKind::Cast) { // (double)x of a float
    ExprRef of = inSingle(e->args[0]);
    return of ? castTo(Type::makeFloat(4), of) : nullptr;
  }
  bool operation =
      (e->kind == ExprKind::Binary && (e->text == "+" || e->text == "-" || e->text == "*" || e->text == "/")) ||
      (e->kind == ExprKind::Unary && (e->text == "-" || e->text == "+")) || e->kind == ExprKind::Cond;
  std::string callee = e->kind == ExprKind::Call ? unqualified(e->text).str() : "";
  if (!operation && !(e->kind == ExprKind::Call && e->isLibrary && hasSister(callee)))
    return nullptr;
  auto made = std::make_shared<Expr>(*e);
  made->type = Type::makeFloat(4);
  if (!operation)
    made->text = callee + "f";
  for (size_t i = e->kind == ExprKind::Cond ? 1 : 0; i < made->args.size(); ++i) {
    made->args[i] = inSingle(made->args[i]);
    if (!made->args[i])
      return nullptr;
    if (!operation && made->args[i]->type.isInt())
      made->args[i] = castTo(Type::makeFloat(4), made->args[i]);
  }
  bool onlyIntegers = operation && e->kind != ExprKind::Cond; // 1 / 2 of a double literal each would be one of integers
  for (const ExprRef &arg : made->args)
    onlyIntegers = onlyIntegers && arg->type.isInt();
  return onlyIntegers ? nullptr : made;
}

/// Values of double precision that end in a float: what is assigned, and what a variable begins with.
static unsigned toSingle(Stmt &body) {
  unsigned changes = 0;
  auto convert = [&](const ExprRef &value) -> ExprRef {
    if (!isDouble(value->type))
      return value;
    ExprRef made = inSingle(value);
    changes += made != nullptr;
    return made ? made : value;
  };
  rewriteExprs(body, [&](const ExprRef &e) -> ExprRef {
    if (e->kind == ExprKind::Cast && isSingle(e->type) && isDouble(e->args[0]->type)) {
      ExprRef value = convert(e->args[0]);
      return value == e->args[0] ? nullptr : value;
    }
    static const std::set<std::string> operators = {"=", "+=", "-=", "*=", "/="};
    if (e->kind != ExprKind::Assign || !isSingle(e->args[0]->type) || !operators.count(e->text))
      return nullptr;
    ExprRef value = convert(e->args[1]);
    return value == e->args[1] ? nullptr : assign(e->text, e->args[0], value);
  });
  walk(body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl && s.expr && s.dims.empty() && isSingle(s.type))
      s.expr = convert(s.expr);
  });
  return changes;
}

// Intrinsics

static std::string intrinsicFor(std::string callee) {
  static const std::set<std::string> names = {"exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "pow"};
  if (!callee.empty() && callee.back() == 'f')
    callee.pop_back();
  return names.count(callee) ? "__" + callee + "f" : "";
}

static bool isSquareRoot(const ExprRef &e) {
  return e->kind == ExprKind::Call && e->isLibrary && isSingle(e->type) && e->args.size() == 1 &&
         isSingle(e->args[0]->type) && (unqualified(e->text) == "sqrtf" || unqualified(e->text) == "sqrt");
}

static bool isConstant(const ExprRef &e) {
  return e->kind == ExprKind::FloatLit || constantValue(e).has_value() ||
         (e->kind == ExprKind::Unary && isConstant(e->args[0]));
}

/// The cheaper form of one operation, or null.
static ExprRef approximated(const ExprRef &e) {
  if (!isSingle(e->type))
    return nullptr;
  if (isBinary(e, "/") && !isConstant(e->args[1])) {
    const ExprRef &above = e->args[0], &below = e->args[1];
    if (!isSquareRoot(below))
      return callOf("__fdividef", {above, below}, e->type, true);
    ExprRef reciprocal = callOf("rsqrtf", below->args, e->type, true);
    return isOne(above) ? reciprocal : binary("*", above, reciprocal, e->type);
  }
  if (e->kind != ExprKind::Call || !e->isLibrary || !e->pure)
    return nullptr;
  for (const ExprRef &arg : e->args)
    if (!isSingle(arg->type) && !arg->type.isInt())
      return nullptr;
  std::string intrinsic = intrinsicFor(unqualified(e->text).str());
  return intrinsic.empty() ? nullptr : callOf(intrinsic, e->args, e->type, true);
}

static unsigned toIntrinsics(Stmt &body) {
  unsigned changes = 0;
  rewriteExprs(body, [&](const ExprRef &e) -> ExprRef {
    ExprRef made = approximated(e);
    changes += made != nullptr;
    if (!made && e->kind == ExprKind::Assign && e->text == "/=" && isSingle(e->args[0]->type) &&
        e->args[0]->kind == ExprKind::Var && isSingle(e->args[1]->type) && !isConstant(e->args[1])) {
      ++changes;
      return assign("=", e->args[0], callOf("__fdividef", {e->args[0], e->args[1]}, e->args[0]->type, true));
    }
    return made;
  });
  return changes;
}

llvm::Expected<KernelState> FastArithmetic::apply(const KernelState &state, llvm::StringRef,
                                                  const Params &params) const {
  auto use = params.find("use");
  if (use == params.end() || (use->second != "single" && use->second != "intrinsics"))
    return notApplicable("'use' must be single or intrinsics");
  if (!state.hints.approximate)
    return notApplicable("results may not become less exact (--optiml-fp=fast allows it)");
  auto kernel = state.tree->clone();
  bool single = use->second == "single";
  if (!(single ? toSingle(*kernel->body) : toIntrinsics(*kernel->body)))
    return notApplicable(single ? "no float is computed in double precision that could do without"
                                : "there are no functions or divisions of floats that have a faster form");
  return state.withTree(kernel);
}

DEFINE_TRANSFORM(FastArithmetic)
