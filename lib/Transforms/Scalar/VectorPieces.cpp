//===- VectorPieces.cpp - 16 bytes of an array at once --------------------===//
#include "VectorPieces.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Support/Error.h"

using namespace optiml;

std::string optiml::vectorName(const Type &element) {
  if (element.isFloat())
    return element.bytes == 4 ? "float4" : element.bytes == 8 ? "double2" : "";
  if (element.cls == Type::Class::Int && element.bytes == 4)
    return element.isSigned ? "int4" : "uint4";
  return "";
}

Type optiml::vectorType(const Type &element) {
  Type type;
  type.cls = Type::Class::Record;
  type.text = vectorName(element);
  type.bytes = 16;
  return type;
}

ExprRef optiml::reinterpreted(const ExprRef &element, Type type, bool isConst) {
  Type pointer = Type::makePointer(type.withConst(isConst));
  return subscript(castTo(pointer, addressOf(element)), intLit(0), type);
}

bool Multiples::require(const Poly &p) {
  for (const auto &[monomial, c] : p.terms) {
    bool given = c % width == 0;
    std::vector<std::string> candidates;
    for (const std::string &atom : monomial) {
      auto it = known.find(atom);
      given |= (it != known.end() && it->second % width == 0) || parameters.count(atom);
      if (planText(model, Poly::atom(atom)))
        candidates.push_back(atom);
    }
    if (given)
      continue;
    if (candidates.empty())
      return false;
    parameters.insert(candidates.back());
  }
  return true;
}

std::optional<IndexBound> optiml::indexBound(const Poly &fact, const std::string &index) {
  const auto factor = fact.coefficient(index);
  const auto direction = factor ? factor->constant() : std::nullopt;
  if (!direction || std::abs(*direction) > 1)
    return std::nullopt;
  return IndexBound{*direction, fact - Poly(*direction) * Poly::atom(index) + Poly(*direction < 0 ? 1 : 0)};
}

std::optional<CountedLoop> optiml::asLoopOverPieces(Stmt &s) {
  auto counted = s.kind == StmtKind::For && s.unroll == FullUnroll ? asCountedLoop(s) : std::nullopt;
  auto trips = counted ? counted->tripCount() : std::nullopt;
  if (!trips || *trips % pieceWidth != 0 || counted->step != 1 ||
      constantValue(counted->lower) != std::optional<int64_t>(0))
    return std::nullopt;
  return counted;
}

bool optiml::isPieceElement(const KernelModel &model, const Access &access) {
  const Type &type = access.node->type;
  return access.space == Space::Global && model.param(access.array) && access.subscripts.size() == 1 &&
         access.root->kind == ExprKind::Var && type.bytes == 4 && !type.isVolatile && !vectorName(type).empty();
}

llvm::Error optiml::requireWholePieces(const KernelModel &model, const PieceLoop &found, Multiples &multiples) {
  const std::string &variable = found.counted.var;
  if (!multiples.require(found.access->subscripts[0].substitute(variable, Poly(0))))
    return notApplicable("pieces of {0} do not begin at multiples of 16 bytes", found.access->array);
  for (const ExprRef &part : found.guard ? operandsOf(found.guard, "&&") : std::vector<ExprRef>()) {
    if (!mentions(part, variable))
      continue;
    std::vector<Poly> facts;
    model.addFacts(part, true, facts);
    const auto limit = facts.size() == 1 ? indexBound(facts[0], variable) : std::nullopt;
    bool order = part->kind == ExprKind::Binary &&
                 (part->text == "<" || part->text == "<=" || part->text == ">" || part->text == ">=");
    if (!order || !limit || !limit->direction)
      return notApplicable("the condition '{0}' is no bound of the index", str(part));
    // Alike for all of a piece where the bound is a multiple.
    if (model.dependsOn(limit->bound, {variable}) || !multiples.require(limit->bound))
      return notApplicable("the bound '{0}' is no multiple of {1}", str(part), pieceWidth);
  }
  return llvm::Error::success();
}

void optiml::requireAligned(KernelState &state, const std::string &array, const std::string &done,
                            const Multiples &multiples) {
  state.require("aligned(" + array + ", 16)", array + " is " + done + " 16 bytes at a time");
  for (const std::string &parameter : multiples.parameters)
    state.require(parameter + " % " + std::to_string(pieceWidth) + " == 0",
                  "what is " + done + " at once is inside of each bound, or outside");
}
