//===- ReadSineAndCosine.cpp - sincosf and its like as two assignments ----===//
#include "KernelReader.h"

using namespace optiml;

/// A variable, an element whose index is computed from variables alone, or a member of one: the same before and after a
/// store.
static bool isSteady(const ExprRef &place) {
  if (place->kind == ExprKind::Member)
    return !place->args[0]->type.isPointer() && isSteady(place->args[0]);
  bool loads =
      place->kind == ExprKind::Subscript && (place->args[0]->kind != ExprKind::Var || hasEffects(place->args[1]));
  if (place->kind == ExprKind::Subscript)
    walk(place->args[1],
         [&](const ExprRef &e) { loads |= e->kind == ExprKind::Subscript || e->kind == ExprKind::Member; });
  return !loads && (place->kind == ExprKind::Var || place->kind == ExprKind::Subscript);
}

bool KernelReader::sineAndCosine(const cl::CallExpr *x, std::vector<StmtRef> &out) {
  static const std::map<llvm::StringRef, std::pair<const char *, const char *>> known = {
      {"sincosf", {"sinf", "cosf"}},
      {"sincos", {"sin", "cos"}},
      {"__sincosf", {"__sinf", "__cosf"}},
      {"sincospif", {"sinpif", "cospif"}},
      {"sincospi", {"sinpi", "cospi"}}};
  const cl::FunctionDecl *fn = x->getDirectCallee();
  if (!fn || !fn->getIdentifier() || !sm.isInSystemHeader(sm.getExpansionLoc(fn->getLocation())) ||
      fn->getNumParams() != 3)
    return false;
  auto functions = known.find(fn->getName());
  if (functions == known.end())
    return false;
  auto [sine, cosine] = functions->second;
  cl::QualType type = fn->getParamDecl(0)->getType();
  if (ast.hasSameUnqualifiedType(type, ast.FloatTy) && fn->getName() == "sincos")
    std::tie(sine, cosine) = std::pair("sinf", "cosf"); // the overload for float
  std::vector<StmtRef> before;
  ExprRef angle = converted(hoisted(x->getArg(0), before), type), places[2];
  for (unsigned i : {0, 1}) {
    ExprRef pointer = inPlace(x->getArg(i + 1));
    places[i] = placeAt(pointer);
    if (!places[i] || !isSteady(places[i]) || !wholeTree(places[i]) ||
        !ast.hasSameUnqualifiedType(x->getArg(i + 1)->getType()->getPointeeType(), type))
      return false;
  }
  if (hasEffects(angle) || !wholeTree(angle))
    return false;
  out.insert(out.end(), before.begin(), before.end());
  bool stays = angle->kind == ExprKind::FloatLit || (angle->kind == ExprKind::Var && !mentions(places[0], angle->text));
  if (!stays) {
    out.push_back(local(uniqueName("angle"), type.getUnqualifiedType(), angle, x));
    angle = var(out.back()->text, out.back()->type);
  }
  for (unsigned i : {0, 1}) {
    out.push_back(newStmt(StmtKind::Expr, x));
    out.back()->expr =
        assign("=", places[i], callOf(i ? cosine : sine, {angle}, convert(type.getUnqualifiedType()), true));
  }
  return true;
}
