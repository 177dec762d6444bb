//===- ReadArguments.cpp - what stands for a parameter in a call's place --===//
//
// A parameter that is not changed may be its argument itself, where that means the same wherever the parameter stands.
// Any other is a variable of its own.
//
//===----------------------------------------------------------------------===//
#include "KernelReader.h"
#include "optiml/Analysis/KernelModel.h"

using namespace optiml;

bool KernelReader::isTemporary(const cl::Expr *e) {
  while (auto *cast = llvm::dyn_cast<cl::ImplicitCastExpr>(e->IgnoreParens()))
    e = cast->getSubExpr();
  return e->isPRValue() || llvm::isa<cl::MaterializeTemporaryExpr>(e->IgnoreParens());
}

bool KernelReader::isSimple(const ExprRef &e) {
  if (e->type.isPointer() && e->kind != ExprKind::Var)
    return isOffset(e);
  if (e->kind == ExprKind::Cast || e->kind == ExprKind::Unary)
    return e->type.cls != Type::Class::Record && isSimple(e->args[0]);
  return e->kind == ExprKind::IntLit || e->kind == ExprKind::FloatLit || e->kind == ExprKind::Builtin ||
         (e->kind == ExprKind::Var && taken.count(e->text));
}

bool KernelReader::isOffset(const ExprRef &e) {
  auto [base, offset] = splitPointer(e);
  if (!offset || base->kind != ExprKind::Var || !taken.count(base->text))
    return false;
  unsigned size = 0;
  bool computes = true;
  walk(offset, [&](const ExprRef &n) {
    ++size;
    computes &= n->type.isInt() &&
                (n->kind == ExprKind::Unary || n->kind == ExprKind::Binary || n->kind == ExprKind::Cast || isSimple(n));
  });
  return computes && size <= 16;
}

bool KernelReader::isClosure(cl::QualType type, const cl::Expr *argument) {
  const cl::CXXRecordDecl *record = type->getAsCXXRecordDecl();
  if (!record || !record->isLambda())
    return false;
  auto *ref = llvm::dyn_cast<cl::DeclRefExpr>(strip(argument));
  return llvm::isa<cl::LambdaExpr>(strip(argument)) ||
         (ref && llvm::isa<cl::ParmVarDecl>(ref->getDecl()) && !nameOf.count(llvm::cast<cl::VarDecl>(ref->getDecl())));
}

/// An array of the caller, of whose elements the function gets a pointer to the first: it works on the array itself.
static bool isWholeArray(const cl::Expr *argument, cl::QualType parameter) {
  auto *ref = llvm::dyn_cast<cl::DeclRefExpr>(argument->IgnoreParenImpCasts());
  const cl::ArrayType *array = ref ? ref->getType()->getAsArrayTypeUnsafe() : nullptr;
  return array && llvm::isa<cl::VarDecl>(ref->getDecl()) && parameter->isPointerType() &&
         !array->getElementType()->isArrayType() &&
         array->getElementType().getCanonicalType().getUnqualifiedType() ==
             parameter->getPointeeType().getCanonicalType().getUnqualifiedType();
}

bool KernelReader::bindParameter(const cl::ParmVarDecl *param, const cl::Expr *argument, const CalleeFacts &facts,
                                 bool oneExpression, Binding &binding) {
  cl::QualType type = param->getType();
  auto use = facts.uses.find(param);
  bool changes = facts.modified.count(param);
  if (isClosure(type.getNonReferenceType(), argument)) // calls of the parameter find the lambda by its type
    return !changes || type.getNonReferenceType().isConstQualified();
  ExprRef value = expression(argument);
  if (hasEffects(value))
    return false;
  if (use == facts.uses.end())
    return true;
  if (type->isReferenceType() && !isTemporary(argument)) {
    if (!isPlace(value))
      return false;
    binding.loads |= placeLoads(value);
    if (changes)
      binding.changed.insert(placeRoot(value));
    binding.values[param] = value;
    return true;
  }
  type = type.getNonReferenceType();
  // An array, perhaps as the argument that the function around this one has for it.
  const bool isArrayItself = value->kind == ExprKind::Var && isArray(value->type) && type->isPointerType() &&
                             argument->getType()->isPointerType() &&
                             ast.hasSameUnqualifiedType(argument->getType()->getPointeeType(), type->getPointeeType());
  if (!changes && (isArrayItself || isWholeArray(argument, type))) {
    binding.values[param] = value;
    return true;
  }
  value = converted(value, type);
  // What is written at several places, or after something else ran, must be the same there.
  bool list = value->kind == ExprKind::InitList;
  bool brief = use->second <= 1 || type->isIntegralOrEnumerationType() || !hoist.before;
  if (!changes && !list && (isSimple(value) || (oneExpression && brief)))
    binding.values[param] = value;
  else if (hoist.before)
    binding.locals.emplace_back(param, value);
  else
    return false;
  return true;
}
