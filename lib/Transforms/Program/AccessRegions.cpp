//===- AccessRegions.cpp - which cells of a grid a kernel accesses --------===//
#include "AccessRegions.h"
#include "Staging/SharedTile.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/PolyTrees.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

static constexpr unsigned mostPieces = 12;

std::optional<std::string> optiml::launchText(const KernelModel &model, Poly p) {
  for (std::string axis : {"x", "y", "z"})
    p = p.substitute("gridDim." + axis, Poly::atom("grid." + axis))
            .substitute("blockDim." + axis, Poly::atom("block." + axis));
  for (const std::string &atom : p.atoms())
    if (!llvm::StringRef(atom).starts_with("grid.") && !llvm::StringRef(atom).starts_with("block.") &&
        !planText(model, Poly::atom(atom)))
      return std::nullopt;
  return p.str();
}

/// The dimension that a global index counts along.
static const TimeStep::Dimension *dimensionOf(const ExprRef &e, const TimeStep &step) {
  if (e->kind != ExprKind::Builtin || !e->text.starts_with("globalIdx."))
    return nullptr;
  for (const TimeStep::Dimension &dim : step.dims)
    if (dim.axis == unsigned(e->text.back() - 'x'))
      return &dim;
  return nullptr;
}

ExprRef optiml::atCell(const ExprRef &e, const TimeStep &step, bool inIndex) {
  Type type = Type::makeInt();
  if (e->kind == ExprKind::Cast && e->type.isInt() && e->type.isSigned &&
      e->type.bytes == 4) // a cell's index is an int already
    if (const TimeStep::Dimension *dim = dimensionOf(e->args[0], step))
      return var(dim->cell, type);
  // Bottom-up, the index below has been replaced before: (int)(unsigned)cell.
  if (e->kind == ExprKind::Cast && e->type.isInt() && e->type.isSigned && e->type.bytes == 4 &&
      e->args[0]->kind == ExprKind::Cast && e->args[0]->args[0]->kind == ExprKind::Var &&
      llvm::any_of(step.dims, [&](const auto &d) { return d.cell == e->args[0]->args[0]->text; }))
    return e->args[0]->args[0];
  const TimeStep::Dimension *dim = dimensionOf(e, step);
  if (!dim)
    return nullptr;
  ExprRef cell = var(dim->cell, type);
  if (inIndex)
    return cell;
  return castTo(e->type.bytes == 8 ? e->type : Type::makeUnsigned(), cell);
}

ExprRef optiml::atCells(const ExprRef &e, const TimeStep &step, bool inIndex) {
  return rewrite(e, [&](const ExprRef &part) { return atCell(part, step, inIndex); });
}

bool AccessRegions::isIndex(const std::string &atom) const {
  return llvm::any_of(layout.dims, [&](const GridLayout::Dimension &d) { return d.index() == Poly::atom(atom); });
}

Poly AccessRegions::affine(const Poly &p) const {
  Poly result;
  for (const auto &[monomial, factor] : plain(p).terms) {
    Poly term(factor), product(1);
    bool uniform = llvm::all_of(monomial, [&](llvm::StringRef a) {
      return isParameter(model, a.str()) || a.starts_with("gridDim.") || a.starts_with("blockDim.");
    });
    for (const std::string &atom : monomial)
      product = product * Poly::atom(atom);
    if (monomial.size() > 1 && uniform) {
      std::string name = "{" + product.str() + "}";
      products[name] = product;
      product = Poly::atom(name);
    }
    result = result + term * product;
  }
  return result;
}

Poly AccessRegions::unaffine(Poly p) const {
  for (const auto &[name, product] : products)
    p = p.substitute(name, product);
  return p;
}

std::optional<std::vector<std::vector<Poly>>> AccessRegions::alternatives(const ExprRef &condition, bool taken) const {
  using Alternatives = std::vector<std::vector<Poly>>;
  if (isUnary(condition, "!"))
    return alternatives(condition->args[0], !taken);
  if (condition->kind == ExprKind::Var)
    if (const Stmt *d = model.singleAssignment(condition->text);
        d && d->type.cls == Type::Class::Bool && d->expr && model.stable(d->expr))
      return alternatives(d->expr, taken);
  if (condition->kind != ExprKind::Binary)
    return std::nullopt;
  if (condition->text == "&&" || condition->text == "||") {
    auto a = alternatives(condition->args[0], taken), b = alternatives(condition->args[1], taken);
    if (!a || !b)
      return std::nullopt;
    Alternatives result;
    if ((condition->text == "||") == taken) {
      result = *a;
      result.insert(result.end(), b->begin(), b->end());
    } else {
      for (const std::vector<Poly> &x : *a)
        for (const std::vector<Poly> &y : *b) {
          result.push_back(x);
          result.back().insert(result.back().end(), y.begin(), y.end());
        }
    }
    return result.size() <= mostPieces ? std::optional(result) : std::nullopt;
  }
  static const std::map<std::string, std::string> inverse = {{"<", ">="}, {">=", "<"},  {">", "<="},
                                                             {"<=", ">"}, {"==", "!="}, {"!=", "=="}};
  const ExprRef &left = condition->args[0], &right = condition->args[1];
  if (!inverse.count(condition->text) || !left->type.isInt() || !right->type.isInt())
    return std::nullopt;
  Poly difference = affine(model.poly(left) - model.poly(right));
  std::set<std::string> atoms = difference.atoms();
  bool known = difference.isAffine() && model.stable(model.poly(left)) && model.stable(model.poly(right)) &&
               llvm::all_of(atoms, [&](const std::string &a) {
                 return isIndex(a) || products.count(a) || isParameter(model, a) || model.loopOf(a);
               });
  if (!known)
    return std::nullopt;
  std::string op = taken ? condition->text : inverse.at(condition->text);
  Poly less = Poly(-1) - difference, more = difference - Poly(1), reverse = Poly(0) - difference;
  if (op == "<" || op == ">")
    return Alternatives{{op == "<" ? less : more}};
  if (op == "<=" || op == ">=")
    return Alternatives{{op == "<=" ? reverse : difference}};
  if (op == "==")
    return Alternatives{{difference, reverse}};
  Alternatives result;
  for (const Poly &side : {less, more}) { // no index is negative
    std::vector<Poly> facts = {side};
    for (const GridLayout::Dimension &dim : layout.dims)
      facts.push_back(dim.index());
    if (!isEmptySet(facts))
      result.push_back({side});
  }
  return result;
}

AccessRegions::Stored AccessRegions::stored(Stmt &s, const std::function<bool(const Stmt &)> &stores) const {
  if (stores(s))
    return Stored::Always;
  Stored most = Stored::Never;
  if (s.kind == StmtKind::Block) {
    for (StmtRef &child : s.body) {
      Stored one = stored(*child, stores);
      if (one == Stored::Unknown)
        return one;
      most = std::max(most, one);
    }
    return most;
  }
  if (s.kind == StmtKind::If) {
    bool exactThen = alternatives(s.expr, true).has_value(), exactOther = alternatives(s.expr, false).has_value();
    Stored then = stored(*s.body[0], stores), other = s.body.size() > 1 ? stored(*s.body[1], stores) : Stored::Never;
    if (then == Stored::Unknown || other == Stored::Unknown)
      return Stored::Unknown;
    if (then == other && (then == Stored::Never || then == Stored::Always))
      return then;
    // Beside a set that is stored whole, it does not matter whether the other branch is taken for its cells.
    bool knownThen = then == Stored::Never || exactThen || (other == Stored::Always && exactOther);
    bool knownOther = other == Stored::Never || exactOther || (then == Stored::Always && exactThen);
    return knownThen && knownOther ? Stored::Known : Stored::Unknown;
  }
  for (StmtRef &child : s.body)
    if (stored(*child, stores) != Stored::Never)
      return Stored::Unknown; // a loop
  return most;
}

llvm::Error AccessRegions::requireKnownStores(Stmt &body, const std::function<bool(const Stmt &)> &stores) const {
  if (stored(body, stores) == Stored::Unknown)
    return notApplicable("which cells it writes depends on more than their indices");
  return llvm::Error::success();
}

SetPiece AccessRegions::piece(const std::vector<Poly> &facts, const std::vector<Poly> &indices) const {
  SetPiece result;
  for (size_t d = 0; d < layout.dims.size(); ++d)
    result.values.push_back(affine(indices[d]));
  for (const Poly &fact : facts)
    if (Poly p = affine(fact); p.isAffine())
      result.facts.push_back(p);
  return result;
}

llvm::Expected<std::vector<std::vector<Poly>>> AccessRegions::project(const std::vector<SetPiece> &pieces,
                                                                      bool ofThreads) const {
  std::vector<std::string> coordinates, hidden;
  std::vector<Poly> context;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    coordinates.push_back(coordinate(d));
    if (ofThreads) {
      context.push_back(Poly::atom(coordinate(d)));
      context.push_back(affine(layout.dims[d].extent) - Poly::atom(coordinate(d)) - Poly(1));
    }
  }
  std::set<std::string> varying;
  for (const SetPiece &piece : pieces)
    for (const std::vector<Poly> *list : {&piece.values, &piece.facts})
      for (const Poly &p : *list)
        for (const std::string &atom : p.atoms())
          if (isIndex(atom) || model.loopOf(atom))
            varying.insert(atom);
  hidden.assign(varying.begin(), varying.end());
  auto sets = projectSets(coordinates, hidden, pieces, context, mostPieces);
  if (!sets)
    return notApplicable("which cells it accesses is no union of a few boxes");
  for (std::vector<Poly> &set : *sets)
    for (Poly &p : set) {
      p = unaffine(p);
      for (const std::string &atom : p.atoms())
        if (atom[0] == '{')
          return notApplicable("which cells it accesses depends on more than indices");
    }
  return std::move(*sets);
}

bool AccessRegions::within(const std::vector<Poly> &cells, std::vector<Poly> of) const {
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    of.push_back(Poly::atom(coordinate(d)));
    of.push_back(layout.dims[d].extent - Poly::atom(coordinate(d)) - Poly(1));
  }
  return llvm::all_of(of, [&](const Poly &p) {
    std::vector<Poly> outside = cells;
    outside.push_back(Poly(-1) - p);
    return isEmptySet(outside);
  });
}

std::string AccessRegions::cxx(const std::vector<std::vector<Poly>> &set, const TimeStep &step) const {
  std::map<std::string, ExprRef> names;
  for (size_t d = 0; d < step.dims.size(); ++d)
    names[coordinate(d)] = var(step.dims[d].cell, Type::makeInt());
  auto side = [&](const Poly &p) {
    Poly shorter = p;
    for (size_t d = 0; d < step.dims.size(); ++d) { // one name for a product of two
      const Poly &extent = layout.dims[d].extent;
      if (extent.atoms().empty() || !llvm::StringRef(*extent.atoms().begin()).starts_with("blockDim."))
        continue;
      auto it = shorter.terms.find(extent.terms.begin()->first);
      if (it != shorter.terms.end())
        shorter = shorter + Poly(it->second) * (Poly::atom("@extent" + step.dims[d].extent) - extent);
    }
    ExprRef e = substitute(polyExpr(model, shorter), names);
    return str(rewrite(e, [&](const ExprRef &part) -> ExprRef {
      if (part->kind != ExprKind::Var)
        return nullptr;
      if (llvm::StringRef(part->text).starts_with("@extent"))
        return var(part->text.substr(7), Type::makeInt());
      return part->type.isInt() && !(part->type.bytes == 4 && part->type.isSigned) ? castTo(Type::makeLong(), part)
                                                                                   : nullptr;
    }));
  };
  std::string text;
  for (const std::vector<Poly> &conjunction : set) {
    std::string all;
    for (const Poly &p : conjunction) { // what is negative moves to the other side
      Poly left, right;
      for (const auto &[monomial, factor] : p.terms) {
        Poly term(factor < 0 ? -factor : factor);
        for (const std::string &atom : monomial)
          term = term * Poly::atom(atom);
        (factor < 0 ? left : right) = (factor < 0 ? left : right) + term;
      }
      all += (all.empty() ? "" : " && ") + side(right) + " >= " + side(left);
    }
    if (all.empty())
      return "true";
    text += text.empty() ? all : " || " + all;
  }
  return text.empty() ? "false" : text;
}

void AccessRegions::dropGuards(Stmt &body, const std::function<bool(const Stmt &)> &stores) const {
  auto never = [&](Stmt &s) { return stored(s, stores) == Stored::Never; };
  for (size_t i = 0; i < body.body.size(); ++i) {
    StmtRef guard = body.body[i];
    if (guard->kind != StmtKind::If || never(*guard) || !alternatives(guard->expr, true) ||
        (guard->body.size() > 1 && !never(*guard->body[1])))
      continue;
    bool only = true;
    for (size_t k = 0; k < body.body.size(); ++k)
      only &= k == i || never(*body.body[k]);
    if (!only)
      continue;
    std::vector<StmtRef> inner = guard->body[0]->body;
    body.body.erase(body.body.begin() + long(i));
    body.body.insert(body.body.begin() + long(i), inner.begin(), inner.end());
    --i;
  }
}
