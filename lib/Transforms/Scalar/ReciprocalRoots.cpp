//===- ReciprocalRoots.cpp - products in place of divisions by square roots ===//
//
// reciprocal-roots[kernel]: a division by square roots of floats becomes a product with `rsqrtf`. A division that is
// rounded exactly takes some ten instructions and a root as many; `rsqrtf` is one of the special function unit's.
//
// Example:
//   float r2 = dx * dx + dy * dy + eps;          float r2 = dx * dx + dy * dy + eps;
//   float r = sqrtf(r2);                         float r_inverse = rsqrtf(r2);
//   float f = m / (r * r * r);                   float f = m * r_inverse * r_inverse * r_inverse;
//   a += dx / r;                                 a += dx * r_inverse;
//   float g = m / (r2 * sqrtf(r2));              float root_inverse = rsqrtf(r2);
//                                                float g = m * root_inverse * root_inverse * root_inverse;
//
// Legal: floating point need not be strict. `rsqrtf` errs by two units in the last place at most, over all floats (CUDA
// Programming Guide, "Mathematical Functions", where it stands among the standard functions). For a quotient of a root,
// zeros, infinities and NaN give the same. Elsewhere the two may be apart where the divisor, or a part of either,
// leaves the range of floats, and in the sign of what is divided by a negative zero. The verifier judges the error.
//
// Refuses: everything under `--optiml-fp=strict`; doubles; more than the third power; roots of constants, which the
// compiler takes; roots whose argument may change before the division; functions of that name that are not CUDA's or
// the standard library's.
//
//===----------------------------------------------------------------------===//
#include "SingleFloats.h"
#include "Transforms.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Core/KernelName.h"

using namespace optiml;

namespace {
class ReciprocalRoots : public Transform {
public:
  llvm::StringRef name() const override { return "reciprocal-roots"; }
  bool onlyTunes() const override { return true; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override { return kernelSite(*this, state, {{}}); }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override;
};

/// A divisor as a product: of powers of roots, and of what is left.
struct Divisor {
  struct Root {
    ExprRef variable, radicand; ///< variable: that holds the root; null: the root stands there itself
    unsigned times = 0;
  };
  std::vector<Root> roots;
  std::vector<ExprRef> rest;
};

class RootFinder {
public:
  explicit RootFinder(Kernel &kernel) : kernel(kernel), model(kernel), taken(allNames(kernel)) {}
  /// The number of divisions that are gone.
  unsigned run();

private:
  std::optional<Divisor> divisorOf(const ExprRef &e) const;
  /// The quotient as a product; null: nothing in the divisor is a root.
  ExprRef quotient(const ExprRef &above, const ExprRef &below, const Type &type);
  ExprRef inverseOf(const Divisor::Root &root, const Type &type);
  ExprRef rewritten(const ExprRef &e);
  void declareInverses();

  Kernel &kernel;
  KernelModel model;
  std::set<std::string> taken;
  std::map<std::string, std::string> inverses; ///< of variables that hold roots
  std::vector<StmtRef> *before = nullptr;      ///< where a root may be computed first; null: nowhere
  unsigned changes = 0;
};
} // namespace

/// Each factor brings its error.
static constexpr unsigned mostTimes = 3;

/// Of literals alone: compilers divide by it once and for all.
static bool isConstantOfText(const ExprRef &e) {
  return !anyNode(e, [](const ExprRef &n) {
    return n->kind != ExprKind::FloatLit && n->kind != ExprKind::IntLit && n->kind != ExprKind::Unary &&
           n->kind != ExprKind::Binary && n->kind != ExprKind::Cast;
  });
}

/// What the square root is taken of; null: the expression is none.
static ExprRef radicandOf(const ExprRef &e) {
  if (e->kind != ExprKind::Call || !e->isLibrary || !e->pure || e->args.size() != 1 || !isSingle(e->type) ||
      !isSingle(e->args[0]->type) || isConstantOfText(e->args[0]))
    return nullptr;
  const llvm::StringRef name = unqualified(e->text);
  return name == "sqrtf" || name == "sqrt" || name == "__fsqrt_rn" ? e->args[0] : nullptr;
}

static void addFactors(const ExprRef &e, std::vector<ExprRef> &into) {
  if (!isBinary(e, "*") || !isSingle(e->type))
    return into.push_back(e);
  addFactors(e->args[0], into);
  addFactors(e->args[1], into);
}

std::optional<Divisor> RootFinder::divisorOf(const ExprRef &e) const {
  std::vector<ExprRef> factors;
  addFactors(e, factors);
  Divisor divisor;
  auto add = [&](const ExprRef &variable, const ExprRef &radicand) {
    for (Divisor::Root &root : divisor.roots)
      if (equal(root.radicand, radicand) && model.stable(radicand))
        return void(++root.times);
    divisor.roots.push_back({variable, radicand, 1});
  };
  for (const ExprRef &factor : factors) {
    if (ExprRef radicand = radicandOf(factor)) {
      add(nullptr, radicand);
      continue;
    }
    const Stmt *held = factor->kind == ExprKind::Var ? model.singleAssignment(factor->text) : nullptr;
    if (ExprRef radicand =
            held && held->kind == StmtKind::Decl && isSingle(held->type) && held->expr && findPlace(*kernel.body, held)
                ? radicandOf(held->expr)
                : nullptr)
      add(factor, radicand);
    else // an integer among them must not make a division of integers
      divisor.rest.push_back(isSingle(factor->type) ? factor : castTo(Type::makeFloat(4), factor));
  }
  if (divisor.roots.empty())
    return std::nullopt;
  for (Divisor::Root &root : divisor.roots) // the root of x, times x, is its third power
    if (model.stable(root.radicand))
      llvm::erase_if(divisor.rest, [&](const ExprRef &factor) {
        const bool isRadicand = equal(factor, root.radicand);
        root.times += 2 * isRadicand;
        return isRadicand;
      });
  return divisor;
}

/// It may be computed where nobody asks for it: nothing in it reads memory.
static bool isCheapAnywhere(const ExprRef &e) {
  bool result = onlyComputes(e);
  walk(e, [&](const ExprRef &part) {
    result &= part->kind != ExprKind::Subscript && part->kind != ExprKind::Call &&
              !(part->kind == ExprKind::Unary && part->text == "*");
  });
  return result;
}

ExprRef RootFinder::inverseOf(const Divisor::Root &root, const Type &type) {
  if (root.variable) {
    std::string &name = inverses[root.variable->text];
    if (name.empty())
      name = freshName(taken, root.variable->text + "_inverse");
    return var(name, type);
  }
  ExprRef inverse = callOf("rsqrtf", {root.radicand}, type, true);
  if (root.times == 1)
    return inverse;
  const std::string name = freshName(taken, "root_inverse");
  before->push_back(declStmt(name, type, inverse));
  return var(name, type);
}

ExprRef RootFinder::quotient(const ExprRef &above, const ExprRef &below, const Type &type) {
  const auto divisor = divisorOf(below);
  auto isFine = [&](const Divisor::Root &root) {
    const bool mayBeHeld = root.variable || root.times == 1 || (before && isCheapAnywhere(root.radicand));
    return mayBeHeld && root.times <= mostTimes;
  };
  if (!divisor || !llvm::all_of(divisor->roots, isFine))
    return nullptr;
  ExprRef result = isOne(above) && divisor->rest.empty() ? nullptr : above;
  if (!divisor->rest.empty()) {
    ExprRef rest = divisor->rest.front();
    for (const ExprRef &factor : llvm::drop_begin(divisor->rest))
      rest = binary("*", rest, factor, type);
    result = binary("/", above, rest, type);
  }
  for (const Divisor::Root &root : divisor->roots) {
    const ExprRef inverse = inverseOf(root, type);
    for (unsigned i = 0; i < root.times; ++i)
      result = result ? binary("*", result, inverse, type) : inverse;
  }
  return result;
}

ExprRef RootFinder::rewritten(const ExprRef &e) {
  ExprRef now = e;
  for (size_t i = 0; i < e->args.size(); ++i)
    if (ExprRef arg = rewritten(e->args[i]); arg != e->args[i]) {
      auto made = std::make_shared<Expr>(*now);
      made->args[i] = arg;
      now = made;
    }
  if (!isSingle(e->type))
    return now;
  ExprRef made;
  if (isBinary(now, "/"))
    made = quotient(now->args[0], now->args[1], now->type);
  else if (now->kind == ExprKind::Assign && now->text == "/=" && now->args[0]->kind == ExprKind::Var)
    if (ExprRef value = quotient(now->args[0], now->args[1], now->type))
      made = assign("=", now->args[0], value);
  changes += made != nullptr;
  return made ? made : now;
}

/// The inverse of a root stands where the root did; the root goes where nobody asks for it any more.
void RootFinder::declareInverses() {
  std::map<std::string, unsigned> uses;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (e->kind == ExprKind::Var)
      ++uses[e->text];
  });
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i]->kind != StmtKind::Decl || !inverses.count(list[i]->text))
        continue;
      const StmtRef root = list[i];
      auto inverse = declStmt(inverses.at(root->text), root->type.unqualified(),
                              callOf("rsqrtf", {radicandOf(root->expr)}, root->type.unqualified(), true));
      if (uses[root->text])
        list.insert(list.begin() + std::ptrdiff_t(++i), inverse);
      else
        list[i] = inverse;
    }
  });
}

unsigned RootFinder::run() {
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    std::vector<StmtRef> made;
    for (const StmtRef &s : list) {
      before =
          s->kind == StmtKind::Expr || (s->kind == StmtKind::Decl && s->dims.empty() && !s->isShared) ? &made : nullptr;
      ownExprs(*s, [&](ExprRef &e) {
        if (e)
          e = rewritten(e);
      });
      made.push_back(s);
    }
    list = std::move(made);
  });
  if (changes)
    declareInverses();
  return changes;
}

llvm::Expected<KernelState> ReciprocalRoots::apply(const KernelState &state, llvm::StringRef, const Params &) const {
  if (state.hints.strictFloat)
    return notApplicable("results may not be rounded otherwise (--optiml-fp=strict)");
  auto kernel = state.tree->clone();
  if (!RootFinder(*kernel).run())
    return notApplicable("no float is divided by a square root");
  return state.withTree(kernel);
}

DEFINE_TRANSFORM(ReciprocalRoots)
