//===- SpecializeScalar.cpp - an argument that is always the same ---------===//
//
// specialize-scalar[kernel:n]{value=24}: an integer parameter, or a public member of one (`p.n`), becomes a constant of
// the kernel. Loops over it can then be unrolled completely, divisions by it become multiplications, and it can size
// the arrays that `stage-window` declares. Locals that thereby keep one constant value give way to it.
//
// Example:
//   for (int k = 0; k < width; ++k)         for (int k = 0; k < 5; ++k) {
//     s += in[x + k] * w[width - 1 - k];      s += in[x + k] * w[4 - k];
//                                           }
//
// Legal: the argument has this value, which becomes a condition of the launch. The kernel does not change the
// parameter.
//
// Refuses: parameters that are not integers, and parameters that the kernel changes or whose address it takes.
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/TreeQueries.h"

using namespace optiml;

namespace {

/// Above these a constant says little: a loop is not unrolled completely, a stride is no small offset.
constexpr int64_t largestBound = 256, largestFactor = 64;

class SpecializeScalar : public Transform {
public:
  llvm::StringRef name() const override { return "specialize-scalar"; }
  bool onlyTunes() const override { return true; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    std::set<std::string> useful = worthKnowing(*state.tree, state.hints.scalars);
    for (const std::string &name : useful)
      offer(result, state, ":" + name, {{{"value", std::to_string(state.hints.scalars.at(name))}}});
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override {
    std::string name = site.ltrim(':').str();
    auto text = params.find("value");
    int64_t value = 0;
    if (text == params.end() || llvm::StringRef(text->second).getAsInteger(10, value))
      return notApplicable("the value of '{0}' is not given", name);
    const Type *type = typeOfArgument(*state.tree, name);
    if (!type || type->cls != Type::Class::Int)
      return notApplicable("there is no integer parameter '{0}'", name);
    if (!fits(value, *type) || value < -INT32_MAX || value > INT32_MAX)
      return notApplicable("{0} is no value of '{1}'", value, name);
    std::string param = llvm::StringRef(name).split('.').first.str();
    if (changedParameters(*state.tree).count(param))
      return notApplicable("the kernel changes its parameter '{0}'", param);
    auto kernel = state.tree->clone();
    if (!anyExpr(*kernel->body, [&](const ExprRef &e) { return isRead(e, name); }))
      return notApplicable("the kernel does not use '{0}'", name);
    const std::map<std::string, ExprRef> before = constantLocals(*kernel);
    ExprRef constant = constantOf(*type, value);
    rewriteExprs(*kernel->body, [&](const ExprRef &e) -> ExprRef {
      if (isRead(e, name))
        return constant;
      return folded(e);
    });
    propagate(*kernel, before);
    KernelState result = state;
    result.require(name + " == " + std::to_string(value), "the kernel is written for this value");
    result.tree = kernel;
    return result;
  }

private:
  static bool isRead(const ExprRef &e, const std::string &name) {
    return isVar(e, name) || (e->kind == ExprKind::Member && e->args[0]->kind == ExprKind::Var &&
                              !e->args[0]->type.isPointer() && str(e) == name);
  }

  static bool fits(int64_t value, const Type &type) {
    if (type.bytes >= 8)
      return type.isSigned || value >= 0;
    int64_t range = int64_t(1) << (8 * type.bytes);
    return type.isSigned ? value >= -range / 2 && value < range / 2 : value >= 0 && value < range;
  }

  static ExprRef constantOf(Type type, int64_t value) {
    ExprRef literal = value < 0 ? unary("-", intLit(-value), Type::makeInt()) : intLit(value);
    if (type.text == "int")
      return literal;
    type.isConst = type.isVolatile = false;
    return castTo(type, literal); // arithmetic with it keeps its type
  }

  /// Integer locals that are declared with a constant and keep it, with their values.
  static std::map<std::string, ExprRef> constantLocals(const Kernel &kernel) {
    std::map<std::string, ExprRef> found;
    const std::map<std::string, unsigned> changes = countChanges(*kernel.body);
    walk(*kernel.body, [&](Stmt &s) {
      if (s.kind != StmtKind::Decl || !s.type.isInt() || s.type.isVolatile || s.isShared || !s.dims.empty() || !s.expr)
        return;
      auto value = constantValue(s.expr);
      if (value && *value > INT32_MIN && *value <= INT32_MAX && fits(*value, s.type) && !changes.count(s.text) &&
          !opaqueMentions(*kernel.body, {s.text}))
        found[s.text] = constantOf(s.type, *value);
    });
    return found;
  }

  /// Puts constants in the place of locals, but for those that were constant `before`: a person named these.
  static void propagate(Kernel &kernel, const std::map<std::string, ExprRef> &before) {
    while (true) {
      std::map<std::string, ExprRef> constants = constantLocals(kernel);
      std::erase_if(constants, [&](const auto &local) { return before.count(local.first) != 0; });
      if (constants.empty())
        return;
      forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
        std::erase_if(list,
                      [&](const StmtRef &s) { return s->kind == StmtKind::Decl && constants.count(s->text) != 0; });
      });
      rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
        auto local = e->kind == ExprKind::Var ? constants.find(e->text) : constants.end();
        return local == constants.end() ? folded(e) : local->second;
      });
    }
  }

  /// Sums and products of constants, as a person would write them; null for all else.
  static ExprRef folded(const ExprRef &e) {
    if (e->kind != ExprKind::Binary || e->type.bytes != 4 || !e->type.isSigned)
      return nullptr;
    const ExprRef &a = e->args[0], &b = e->args[1];
    if (a->kind == ExprKind::IntLit && b->kind == ExprKind::IntLit &&
        (e->text == "+" || e->text == "-" || e->text == "*"))
      return e->text == "+" ? add(a, b) : e->text == "-" ? sub(a, b) : mul(a, b);
    // n - 24 + 1
    if ((e->text != "+" && e->text != "-") || a->kind != ExprKind::Binary || (a->text != "+" && a->text != "-") ||
        !a->type.isSigned || a->type.bytes != 4)
      return nullptr;
    const ExprRef &inner = a->args[1];
    if (inner->kind != ExprKind::IntLit || b->kind != ExprKind::IntLit)
      return nullptr;
    int64_t sum = (a->text == "+" ? inner->value : -inner->value) + (e->text == "+" ? b->value : -b->value);
    return add(a->args[0], intLit(sum));
  }

  /// Parameters that bound loops, divide, are small factors of indices, or say how far around a thread's index a loop
  /// goes.
  static std::set<std::string> worthKnowing(const Kernel &kernel, const std::map<std::string, int64_t> &values) {
    std::set<std::string> result;
    if (values.empty())
      return result;
    KernelModel model(kernel);
    auto noteAll = [&](const Poly &p, int64_t largest) {
      for (const std::string &atom : p.atoms())
        if (auto it = values.find(atom); it != values.end() && it->second >= 0 && it->second <= largest)
          result.insert(atom);
    };
    auto note = [&](const ExprRef &e, int64_t largest) { noteAll(model.poly(e), largest); };
    // "half = dim / 2" is known where `dim` is.
    std::function<void(const ExprRef &, unsigned)> noteDivisor = [&](const ExprRef &e, unsigned depth) {
      note(e, INT64_MAX);
      for (const std::string &name : namesIn(e))
        if (const Stmt *local = depth ? model.singleAssignment(name) : nullptr; local && local->expr)
          noteDivisor(local->expr, depth - 1);
        else if (values.count(name) && !(model.varies(e) & (AnyThread | AnyBlock | FromMemory)))
          noteAll(Poly::atom(name), INT64_MAX);
    };
    auto noteRadius = [&](const ExprRef &bound, bool fromBelow) {
      for (const Poly &p : model.boundsOf(bound, fromBelow))
        if (llvm::any_of(p.atoms(), [&](const std::string &atom) { return model.variesAtom(atom) & AnyThread; }))
          noteAll(p, largestFactor);
    };
    for (const auto &[path, stmt] : countedLoops(kernel)) {
      auto loop = asCountedLoop(*stmt);
      // A bound that differs between threads does not become constant.
      if (!(model.varies(loop->upper) & (AnyThread | AnyBlock | FromMemory)))
        note(loop->upper, largestBound);
      noteRadius(loop->lower, true);
      noteRadius(loop->upper, false);
    }
    walkExprs(*kernel.body, [&](const ExprRef &e) {
      if (e->kind != ExprKind::Binary || !e->type.isInt())
        return;
      if (e->text == "/" || e->text == "%")
        noteDivisor(e->args[1], 4);
      if (e->text == "*")
        for (const ExprRef &factor : e->args)
          if (factor->kind == ExprKind::Var || factor->kind == ExprKind::Member)
            note(factor, largestFactor);
    });
    return result;
  }
};
} // namespace

DEFINE_TRANSFORM(SpecializeScalar)
