//===- ReadHalf.cpp - numbers of 16 bits ----------------------------------===//
//
// __half and __nv_bfloat16 (and pairs of them) are classes in CUDA's headers, with operators and conversions that are
// inline assembly. Here they are read as the operators and casts that they stand for. Their class in the tree stays
// that of a record, so that nothing takes them for numbers that threads can exchange or add in another order.
//
//===----------------------------------------------------------------------===//
#include "KernelReader.h"
#include "clang/Basic/OperatorKinds.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace optiml;

bool KernelReader::isHalf(cl::QualType type) {
  static const llvm::StringSet<> names = {"__half", "__half2", "__nv_bfloat16", "__nv_bfloat162"};
  const cl::CXXRecordDecl *record = type.getNonReferenceType()->getAsCXXRecordDecl();
  return record && record->getIdentifier() && names.contains(record->getName()) &&
         isHalfHeader(record->getASTContext().getSourceManager(), record->getLocation());
}

bool KernelReader::copiesBits(const cl::CXXMethodDecl &method) {
  return method.isTrivial() || isHalf(method.getASTContext().getCanonicalTagType(method.getParent()));
}

static bool isInHeader(const cl::SourceManager &sm, cl::SourceLocation loc, const llvm::StringSet<> &files) {
  loc = sm.getExpansionLoc(loc);
  return sm.isInSystemHeader(loc) && files.contains(llvm::sys::path::filename(sm.getFilename(loc)));
}

bool optiml::isHalfHeader(const cl::SourceManager &sm, cl::SourceLocation loc) {
  static const llvm::StringSet<> files = {"cuda_fp16.h", "cuda_fp16.hpp", "cuda_bf16.h", "cuda_bf16.hpp"};
  return isInHeader(sm, loc, files);
}

bool optiml::isNumberHeader(const cl::SourceManager &sm, cl::SourceLocation loc) {
  static const llvm::StringSet<> files = {"cuda_fp8.h", "cuda_fp8.hpp", "cuda_fp6.h",         "cuda_fp6.hpp",
                                          "cuda_fp4.h", "cuda_fp4.hpp", "sm_61_intrinsics.h", "sm_61_intrinsics.hpp"};
  return isHalfHeader(sm, loc) || isInHeader(sm, loc, files);
}

ExprRef KernelReader::halfCast(const cl::ExplicitCastExpr *x) {
  const cl::Expr *value = strip(x->getSubExpr());
  if (isHalf(x->getType())) {
    if (auto *made = llvm::dyn_cast<cl::CXXConstructExpr>(value); made && isHalf(made->getType()))
      return construction(made);
    bool same = ast.hasSameUnqualifiedType(value->getType(), x->getType());
    return same ? expression(value) : nullptr;
  }
  if (!x->getType()->isArithmeticType())
    return nullptr;
  auto *call = llvm::dyn_cast<cl::CXXMemberCallExpr>(value);
  ExprRef converted = call ? halfConversion(call) : nullptr;
  if (!converted || ast.hasSameUnqualifiedType(call->getType(), x->getType()))
    return converted;
  return make(ExprKind::Cast, x, typeText(x->getTypeAsWritten()), {converted});
}

ExprRef KernelReader::halfConversion(const cl::CXXMemberCallExpr *x) {
  auto *conversion = llvm::dyn_cast_or_null<cl::CXXConversionDecl>(x->getMethodDecl());
  if (!conversion || !isHalf(x->getObjectType()) || !x->getType()->isArithmeticType() || !purity.isPure(conversion))
    return nullptr;
  return make(ExprKind::Cast, x, typeText(x->getType()), {expression(x->getImplicitObjectArgument())});
}

/// A class that is made from `value`, as a call of its constructor.
ExprRef KernelReader::halfFrom(const cl::Expr *value, cl::QualType type) {
  auto e = make(ExprKind::Call, value, typeText(type), {expression(value)});
  e->type = convert(type.getUnqualifiedType());
  return e;
}

ExprRef KernelReader::halfOperator(const cl::CXXOperatorCallExpr *x) {
  const cl::FunctionDecl *fn = x->getDirectCallee();
  if (!fn || !isHalfHeader(sm, fn->getLocation()) || !isHalf(x->getArg(0)->getType()))
    return nullptr;
  const cl::OverloadedOperatorKind kind = x->getOperator();
  const std::string spelling = cl::getOperatorSpelling(kind);
  if (x->isAssignmentOp()) {
    bool plain = kind == cl::OO_Equal; // y = 1.0f makes a half of the number
    ExprRef target = expression(x->getArg(0));
    if (target->kind != ExprKind::Var && target->kind != ExprKind::Subscript && target->kind != ExprKind::Member)
      return nullptr;
    if (plain && !x->getArg(1)->getType()->isArithmeticType())
      return nullptr;
    ExprRef value = plain ? halfFrom(x->getArg(1), x->getArg(0)->getType()) : expression(x->getArg(1));
    return make(ExprKind::Assign, x, spelling, {target, value});
  }
  if (!purity.isPure(fn))
    return nullptr;
  if (x->getNumArgs() == 1 && (kind == cl::OO_Minus || kind == cl::OO_Plus))
    return make(ExprKind::Unary, x, spelling, {expression(x->getArg(0))});
  static const llvm::StringSet<> binary = {"+", "-", "*", "/", "==", "!=", "<", ">", "<=", ">="};
  if (x->getNumArgs() != 2 || !binary.contains(spelling))
    return nullptr;
  return make(ExprKind::Binary, x, spelling, {expression(x->getArg(0)), expression(x->getArg(1))});
}
