//===- TileCopy.cpp - from global to shared memory ------------------------===//
#include "TileCopy.h"
#include "Scalar/VectorPieces.h"
#include "optiml/Analysis/PolyTrees.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

namespace {

ExprRef zeroOf(const Type &type) {
  if (type.isHalf)
    return callOf(type.text, {zeroOf(Type::makeFloat(4))}, type, true);
  if (!type.isFloat())
    return intLit(0);
  return floatLit(type.bytes == 4 ? "0.0f" : "0.0", type);
}

/// A polynomial computed in a signed type, thread and block indices too, which are unsigned.
ExprRef signedExpr(const KernelModel &model, const Poly &p, const Type &type) {
  return rewrite(polyExpr(model, p),
                 [&](const ExprRef &e) { return e->kind == ExprKind::Builtin ? castTo(type, e) : nullptr; });
}

/// Condition text of c >= 0, with what is negative moved to the other side: "row + r < M".
ExprRef constraintExpr(const KernelModel &model, const Poly &constraint) {
  Poly negative, positive;
  for (const auto &[monomial, c] : constraint.terms) {
    Poly term(c);
    for (const std::string &atom : monomial)
      term = term * Poly::atom(atom);
    if (c < 0)
      negative = negative - term;
    else
      positive = positive + term;
  }
  // negative <= positive  as  negative < positive + 1, preferring to cancel the constant
  Poly left = negative, right = positive + Poly(1);
  int64_t constant = std::min(left.constantTerm(), right.constantTerm());
  left = left - Poly(constant);
  right = right - Poly(constant);
  // The indices are unsigned, a bound may be negative: compare as int.
  auto asInt = [&](const Poly &p) { return signedExpr(model, p, Type::makeInt()); };
  if (left.terms.empty() && right.constantTerm() == 1) // 0 < p + 1
    return binary(">=", asInt(right - Poly(1)), intLit(0));
  return lessThan(asInt(left), asInt(right));
}

ExprRef component(const ExprRef &vector, unsigned i, const Type &element) {
  return memberExpr(vector, std::string(1, "xyzw"[i]), element);
}

} // namespace

TileCopy::TileCopy(std::set<std::string> &taken, const KernelModel &model, const Tile &tile, ExprRef tid,
                   int64_t threads)
    : taken(taken), model(model), tile(tile), tid(std::move(tid)), threads(threads),
      pieces(tile.elements() / tile.vector), trips((pieces + threads - 1) / threads) {
  // Consecutive threads take consecutive elements of the array: the smallest stride runs fastest.
  std::vector<Poly> strides;
  for (const TileDim &dim : tile.dims)
    strides.push_back(dim.stride);
  order = bySize(strides);
  counter = freshName(taken, "i");
  taken.erase(counter); // sibling loops share it
}

/// What a boundary's rule is applied to, over the piece's coordinates.
static Poly placeOf(const TileBoundary &boundary) {
  return boundary.rule.coordinate + Poly(boundary.unit) * Poly::atom(coordinate(boundary.dim));
}

std::vector<StmtRef> TileCopy::forEachPiece(const std::function<std::vector<StmtRef>()> &body) {
  Type integer = Type::makeInt(), constInt = integer;
  constInt.isConst = true;
  std::string element = trips == 1 ? "" : freshName(taken, "e");
  ExprRef e = trips == 1 ? tid : var(element, integer);
  std::vector<StmtRef> decls;
  coordinates.clear();
  int64_t inner = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const TileDim &dim = tile.dims[order[i]];
    int64_t step = i + 1 == order.size() ? tile.vector : 1, extent = dim.extent / step;
    std::string name = freshName(taken, order.size() == 1 ? "c" : i == 0 ? "r" : i + 1 == order.size() ? "c" : "q");
    ExprRef at = inner == 1 ? e : binary("/", e, intLit(inner));
    if (i != 0)
      at = binary("%", at, intLit(extent));
    decls.insert(decls.begin(), declStmt(name, constInt, mul(at, intLit(step))));
    coordinates[coordinate(order[i])] = var(name, integer);
    inner *= extent;
  }
  places.clear();
  for (const TileBoundary &boundary : tile.boundaries) {
    places.push_back(freshName(taken, tile.boundaries.size() == 1 || boundary.unit == 0 ? "at"
                                      : boundary.dim == order.back()                    ? "column"
                                                                                        : "row"));
    Type type = boundary.rule.type.withConst(true);
    decls.push_back(declStmt(places.back(), type,
                             substitute(signedExpr(model, placeOf(boundary), boundary.rule.type), coordinates)));
  }
  llvm::append_range(decls, body());
  std::vector<StmtRef> result;
  if (trips > 1)
    result.push_back(declStmt(element, constInt, add(tid, mul(var(counter, integer), intLit(threads)))));
  if (pieces % threads != 0)
    result.push_back(ifStmt(lessThan(e, intLit(pieces)), block(decls)));
  else
    llvm::append_range(result, decls);
  if (trips == 1)
    return result;
  return {countedFor(counter, integer, intLit(0), intLit(trips), 1, block(result), FullUnroll)};
}

Type TileCopy::pieceType(const TilePart &part) const {
  return tile.vector * tile.numbers > 1 ? vectorType(part.type) : part.type;
}

std::vector<const TilePart *> TileCopy::pieceParts() const {
  std::vector<const TilePart *> result;
  for (const TilePart &part : tile.parts)
    if (result.empty() || !tile.copiesRecords())
      result.push_back(&part);
  return result;
}

ExprRef TileCopy::guardOf(const std::string &strip, const Poly &start) const {
  ExprRef guard;
  for (const std::vector<Poly> &conjunction : tile.guards) {
    ExprRef all;
    for (const Poly &constraint : conjunction)
      all = logicalAnd(all, substitute(constraintExpr(model, constraint.substitute(strip, start)), coordinates));
    if (!all) // every element
      return nullptr;
    guard = guard ? binary("||", guard, all) : all;
  }
  return guard;
}

ExprRef TileCopy::source(const std::string &strip, const Poly &start, unsigned along) const {
  Poly index = tile.base.substitute(strip, start) + Poly(along);
  for (size_t d = 0; d < tile.dims.size(); ++d)
    index = index + tile.dims[d].stride * Poly::atom(coordinate(d));
  for (const TileBoundary &boundary : tile.boundaries)
    index = index - boundary.rule.stride * placeOf(boundary);
  ExprRef place = substitute(polyExpr(model, index), coordinates);
  for (size_t i = 0; i < tile.boundaries.size(); ++i) {
    const BoundaryCondition &rule = tile.boundaries[i].rule;
    place = add(mul(rule.at(var(places[i], rule.type)), polyExpr(model, rule.stride)), place);
  }
  return subscript(tile.root, tile.wideIndex ? wideExpr(place) : place, tile.accesses[0]->node->type);
}

ExprRef TileCopy::memberOf(const ExprRef &element, const TilePart &part) {
  ExprRef value = element;
  for (const ExprRef &member : part.members)
    value = mapOperands(member, [&](const ExprRef &) { return value; });
  return value;
}

ExprRef TileCopy::target(const TilePart &part, unsigned along, const ExprRef &copy) const {
  ExprRef at = var(part.name, part.type);
  if (copy)
    at = subscript(at, copy, part.type);
  for (unsigned d : tile.layout) {
    ExprRef c = coordinates.at(coordinate(d));
    at = subscript(at, d == order.back() ? add(c, intLit(along)) : c, part.type);
  }
  return at;
}

std::vector<StmtRef>
TileCopy::load(const std::string &strip, const Poly &start,
               const std::function<std::vector<StmtRef>(const TilePart &, const ExprRef &)> &put) const {
  ExprRef guard = guardOf(strip, start), element = source(strip, start, 0);
  std::vector<StmtRef> loaded, zeros;
  std::vector<const TilePart *> pieces = pieceParts();
  for (const TilePart *part : pieces) {
    ExprRef value = tile.copiesRecords() ? element : memberOf(element, *part), zero = zeroOf(part->type);
    if (unsigned numbers = tile.vector * tile.numbers; numbers > 1) {
      value = reinterpreted(value, pieceType(*part), true);
      zero = callOf("make_" + pieceType(*part).text, std::vector<ExprRef>(numbers, zero), pieceType(*part), true);
    }
    bool alone = pieces.size() == 1;
    llvm::append_range(loaded, put(*part, alone && guard ? conditional(guard, value, zero) : value));
    if (!alone && guard)
      llvm::append_range(zeros, put(*part, zero));
  }
  if (zeros.empty())
    return loaded;
  return {ifStmt(guard, block(loaded), block(zeros))}; // together, members are loaded at once where they are aligned
}

std::vector<StmtRef> TileCopy::put(const TilePart &part, const ExprRef &value) {
  if (tile.vector * tile.numbers == 1)
    return {exprStmt(assign("=", target(part, 0, nullptr), value))};
  if (tile.layout.back() == order.back() && !tile.copiesRecords())
    return {exprStmt(assign("=", reinterpreted(target(part, 0, nullptr), pieceType(part), false), value))};
  std::vector<StmtRef> result;
  ExprRef piece = value;
  if (value->kind != ExprKind::Var && value->kind != ExprKind::Subscript) {
    std::string name = freshName(taken, "v");
    Type type = pieceType(part).withConst(true);
    result.push_back(declStmt(name, type, value));
    piece = var(name, pieceType(part));
  }
  for (unsigned i = 0; i < tile.vector; ++i) {
    if (!tile.copiesRecords())
      result.push_back(exprStmt(assign("=", target(part, i, nullptr), component(piece, i, part.type))));
    else
      for (const TilePart &member : tile.parts)
        result.push_back(exprStmt(
            assign("=", target(member, i, nullptr), component(piece, i * tile.numbers + member.place, member.type))));
  }
  return result;
}

std::vector<StmtRef> TileCopy::direct() {
  return forEachPiece(
      [&] { return load("", Poly(), [&](const TilePart &part, const ExprRef &value) { return put(part, value); }); });
}

std::vector<StmtRef> TileCopy::registers() {
  std::vector<StmtRef> result;
  for (const TilePart *part : pieceParts()) {
    std::string wish = tile.array;
    for (const ExprRef &member : part->members)
      if (!tile.copiesRecords())
        wish += "_" + member->text;
    held[part] = freshName(taken, wish + "_next");
    result.push_back(declStmt(held[part], pieceType(*part), nullptr, {intLit(trips)}));
  }
  return result;
}

ExprRef TileCopy::heldPiece(const TilePart &part) const {
  return subscript(var(held.at(&part), pieceType(part)), trips == 1 ? intLit(0) : var(counter, Type::makeInt()),
                   pieceType(part));
}

std::vector<StmtRef> TileCopy::fetch(const std::string &strip, const Poly &start) {
  auto hold = [&](const TilePart &part, const ExprRef &value) {
    return std::vector<StmtRef>{exprStmt(assign("=", heldPiece(part), value))};
  };
  return forEachPiece([&] { return load(strip, start, hold); });
}

std::vector<StmtRef> TileCopy::store() {
  return forEachPiece([&] {
    std::vector<StmtRef> result;
    for (const TilePart *part : pieceParts())
      llvm::append_range(result, put(*part, heldPiece(*part)));
    return result;
  });
}

std::vector<StmtRef> TileCopy::background(AsyncCopy &async, const std::string &strip, const Poly &start,
                                          const ExprRef &copy) {
  bool whole = tile.vector > 1 && tile.layout.back() == order.back();
  return forEachPiece([&] {
    ExprRef guard = guardOf(strip, start);
    std::vector<StmtRef> result;
    for (const TilePart &part : tile.parts)
      for (unsigned i = 0; i < (whole ? 1 : tile.vector); ++i)
        result.push_back(async.copy(target(part, i, copy), memberOf(source(strip, start, i), part),
                                    whole ? 16 : part.type.bytes, guard));
    return result;
  });
}
