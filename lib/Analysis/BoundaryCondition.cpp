//===- BoundaryCondition.cpp - indices at the edges of an array -----------===//
#include "optiml/Analysis/BoundaryCondition.h"
#include "optiml/Analysis/PolyTrees.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

std::string BoundaryCondition::signature() const { return stride.str() + " * " + str(rule) + " of " + type.text; }

ExprRef BoundaryCondition::at(const ExprRef &at) const {
  return rewrite(rule, [&](const ExprRef &e) -> ExprRef { return isVar(e, name()) ? at : nullptr; });
}

namespace {

/// Reads one expression as a rule over a coordinate.
class RuleReader {
public:
  explicit RuleReader(const KernelModel &model) : model(model) {}

  /// Null when it is none.
  ExprRef read(const ExprRef &e) {
    if (model.varies(e) & FromMemory)
      return nullptr;
    if (!runs(e))
      return e;
    Poly p = model.poly(e);
    if (isCoordinate(e, p))
      return readCoordinate(e, p);
    if (e->kind == ExprKind::Var) {
      const Stmt *decl = model.singleAssignment(e->text);
      return decl && decl->expr ? read(decl->expr) : nullptr;
    }
    bool pure = e->kind == ExprKind::Cond || e->kind == ExprKind::Binary ||
                (e->kind == ExprKind::Unary && e->text != "*" && e->text != "&") ||
                (e->kind == ExprKind::Cast && e->type.isInt()) ||
                (e->kind == ExprKind::Call && e->isLibrary && e->pure);
    if (!pure)
      return nullptr;
    auto copy = std::make_shared<Expr>(*e);
    for (ExprRef &arg : copy->args)
      if (!(arg = read(arg)))
        return nullptr;
    return copy;
  }

  std::optional<Poly> coordinate;
  Type type;

private:
  /// Differs between threads, or between iterations of a loop.
  bool runs(const ExprRef &e) const {
    if (model.varies(e) & AnyThread)
      return true;
    Poly p = model.poly(e);
    for (const std::string &atom : p.atoms())
      for (const std::string &name : model.atomNames(atom))
        if (model.loopOf(name))
          return true;
    return false;
  }

  bool isCoordinate(const ExprRef &e, const Poly &p) const {
    return e->type.isInt() && p.isAffine() &&
           llvm::none_of(p.atoms(), [](const std::string &atom) { return atom[0] == '{'; });
  }

  ExprRef readCoordinate(const ExprRef &e, const Poly &p) {
    if (!e->type.isSigned || e->type.bytes < 4)
      return nullptr;
    ExprRef at = var(BoundaryCondition::name(), e->type);
    if (!coordinate) {
      coordinate = p;
      type = e->type;
      return at;
    }
    if (type.bytes != e->type.bytes)
      return nullptr;
    // The same one, a fixed distance from it, or mirrored.
    auto fixed = [&](const Poly &distance) {
      return llvm::none_of(distance.atoms(),
                           [&](const std::string &atom) { return model.variesAtom(atom) != 0 || model.loopOf(atom); });
    };
    Poly distance = p - *coordinate, mirrored = p + *coordinate;
    if (distance.terms.empty())
      return at;
    if (fixed(distance))
      return add(at, polyExpr(model, distance));
    return fixed(mirrored) ? binary("-", polyExpr(model, mirrored), at) : nullptr;
  }

  const KernelModel &model;
};

} // namespace

std::vector<BoundaryCondition> optiml::takeBoundaryConditions(const KernelModel &model, Poly &index) {
  std::vector<BoundaryCondition> result;
  for (const std::string &atom : index.atoms()) {
    ExprRef tree = model.atomExpr(atom);
    auto stride = index.coefficient(atom);
    if (!tree || !stride)
      continue;
    RuleReader reader(model);
    ExprRef rule = reader.read(tree);
    if (!rule || !reader.coordinate)
      continue;
    result.push_back({*stride, *reader.coordinate, rule, reader.type});
    index = index.substitute(atom, *reader.coordinate);
  }
  llvm::sort(result,
             [](const BoundaryCondition &a, const BoundaryCondition &b) { return a.signature() < b.signature(); });
  return result;
}
