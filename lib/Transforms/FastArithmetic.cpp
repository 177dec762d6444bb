//===- FastArithmetic.cpp - less exact arithmetic that costs less ---------===//
//
// fast-arithmetic[kernel]{use=single}: what is computed in double precision only because of a constant ("0.5 * x") or of a
// function's name, and is stored as float, is computed as float.
// fast-arithmetic[kernel]{use=intrinsics}: functions and divisions of floats by the GPU's special function units: __expf,
// __logf, __fdividef, rsqrtf, … (CUDA C++ Programming Guide, "Intrinsic Functions", gives their errors).
//
// Legal: only where --optiml-fp=fast allows it. The error is the verifier's to judge: results may be off by the budget, relative
// to the magnitude of what they were made from.
//
//===----------------------------------------------------------------------===//
#include "Common.h"
#include "Transforms.h"
#include <cmath>

using namespace optiml;

namespace {
class FastArithmetic : public Transform {
public:
  llvm::StringRef name() const override { return "fast-arithmetic"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    ActionTemplate site{"fast-arithmetic", state.rewrite.original, {}};
    for (const char *use : {"intrinsics", "single"}) {
      Params params = {{"use", use}};
      if (auto applied = apply(state, "", params))
        site.values.push_back(params);
      else
        llvm::consumeError(applied.takeError());
    }
    return site.values.empty() ? std::vector<ActionTemplate>() : std::vector<ActionTemplate>{site};
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override;
};
} // namespace

static bool isSingle(const Type &type) { return type.isFloat() && type.bytes == 4; }
static bool isDouble(const Type &type) { return type.isFloat() && type.bytes == 8; }

static Type singleType() {
  Type type;
  type.cls = Type::Class::Float;
  type.text = "float";
  type.bytes = 4;
  return type;
}

/// The function's own name, without namespaces.
static std::string plainName(const std::string &callee) {
  size_t scope = callee.rfind(':');
  return scope == std::string::npos ? callee : callee.substr(scope + 1);
}

//===----------------------------------------------------------------------===//
// Single precision
//===----------------------------------------------------------------------===//

/// Functions of double that have a sister for float, with an f at its end.
static bool hasSister(const std::string &callee) {
  static const std::set<std::string> names = {"sqrt", "rsqrt", "cbrt",  "exp",  "exp2", "exp10", "expm1", "log",  "log2", "log10", "log1p",
                                              "pow",  "sin",   "cos",   "tan",  "asin", "acos",  "atan",  "atan2", "sinh", "cosh",  "tanh",
                                              "erf",  "erfc",  "fabs",  "fmin", "fmax", "fma",   "fmod",  "floor", "ceil", "hypot"};
  return names.count(callee) != 0;
}

static ExprRef literalOf(double value, const Expr &from) {
  if (!std::isfinite(float(value)) || (value != 0 && std::fabs(value) < double(std::numeric_limits<float>::min())))
    return nullptr;
  auto e = std::make_shared<Expr>(from);
  e->text = from.text + "f";
  e->type = singleType();
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
    return of ? castTo(singleType(), of) : nullptr;
  }
  bool operation = (e->kind == ExprKind::Binary && (e->text == "+" || e->text == "-" || e->text == "*" || e->text == "/")) ||
                   (e->kind == ExprKind::Unary && (e->text == "-" || e->text == "+")) || e->kind == ExprKind::Cond;
  std::string callee = e->kind == ExprKind::Call ? plainName(e->text) : "";
  if (!operation && !(e->kind == ExprKind::Call && e->isLibrary && hasSister(callee)))
    return nullptr;
  auto made = std::make_shared<Expr>(*e);
  made->type = singleType();
  if (!operation)
    made->text = callee + "f";
  for (size_t i = e->kind == ExprKind::Cond ? 1 : 0; i < made->args.size(); ++i) {
    made->args[i] = inSingle(made->args[i]);
    if (!made->args[i])
      return nullptr;
    if (!operation && made->args[i]->type.isInt())
      made->args[i] = castTo(singleType(), made->args[i]);
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

//===----------------------------------------------------------------------===//
// Intrinsics
//===----------------------------------------------------------------------===//

static std::string intrinsicFor(std::string callee) {
  static const std::set<std::string> names = {"exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "pow"};
  if (!callee.empty() && callee.back() == 'f')
    callee.pop_back();
  return names.count(callee) ? "__" + callee + "f" : "";
}

static bool isSquareRoot(const ExprRef &e) {
  return e->kind == ExprKind::Call && e->isLibrary && isSingle(e->type) && e->args.size() == 1 && isSingle(e->args[0]->type) &&
         (plainName(e->text) == "sqrtf" || plainName(e->text) == "sqrt");
}

static bool isOne(const ExprRef &e) {
  if (e->kind == ExprKind::FloatLit)
    return std::strtod(e->text.c_str(), nullptr) == 1;
  return constantValue(e) == 1;
}

static bool isConstant(const ExprRef &e) {
  return e->kind == ExprKind::FloatLit || constantValue(e).has_value() || (e->kind == ExprKind::Unary && isConstant(e->args[0]));
}

/// The cheaper form of one operation, or null.
static ExprRef approximated(const ExprRef &e) {
  if (!isSingle(e->type))
    return nullptr;
  if (e->kind == ExprKind::Binary && e->text == "/" && !isConstant(e->args[1])) {
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
  std::string intrinsic = intrinsicFor(plainName(e->text));
  return intrinsic.empty() ? nullptr : callOf(intrinsic, e->args, e->type, true);
}

static unsigned toIntrinsics(Stmt &body) {
  unsigned changes = 0;
  rewriteExprs(body, [&](const ExprRef &e) -> ExprRef {
    ExprRef made = approximated(e);
    changes += made != nullptr;
    if (!made && e->kind == ExprKind::Assign && e->text == "/=" && isSingle(e->args[0]->type) && e->args[0]->kind == ExprKind::Var &&
        isSingle(e->args[1]->type) && !isConstant(e->args[1])) {
      ++changes;
      return assign("=", e->args[0], callOf("__fdividef", {e->args[0], e->args[1]}, e->args[0]->type, true));
    }
    return made;
  });
  return changes;
}

llvm::Expected<KernelState> FastArithmetic::apply(const KernelState &state, llvm::StringRef, const Params &params) const {
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
  KernelState result = state;
  result.tree = kernel;
  return result;
}

const Transform *optiml::makeFastArithmetic() {
  static const FastArithmetic transform;
  return &transform;
}
