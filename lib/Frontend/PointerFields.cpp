//===- PointerFields.cpp - what kernels' pointers point to ----------------===//
#include "PointerFields.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/RecordLayout.h"

using namespace clang;
using namespace optiml;

/// The one scalar type that all of `type` is made of, without gaps; null where there are several, or none.
static QualType scalarOf(const ASTContext &ast, QualType type) {
  type = ast.getBaseElementType(type).getCanonicalType().getUnqualifiedType();
  const auto *record = type->getAsCXXRecordDecl();
  bool isNumber = record && (record->getName() == "__half" || record->getName() == "__nv_bfloat16");
  if (!record || isNumber)
    return type->isArithmeticType() || type->isEnumeralType() || isNumber ? type : QualType();
  if (!record->getDefinition() || record->isUnion() || record->isInvalidDecl())
    return {};
  record = record->getDefinition();
  QualType scalar;
  uint64_t held = 0;
  auto add = [&](QualType part) {
    QualType own = scalarOf(ast, part);
    bool fits = !own.isNull() && (scalar.isNull() || ast.hasSameType(own, scalar));
    scalar = own;
    held += uint64_t(ast.getTypeSizeInChars(part).getQuantity());
    return fits;
  };
  for (const CXXBaseSpecifier &base : record->bases())
    if (base.isVirtual() || !add(base.getType()))
      return {};
  for (const FieldDecl *field : record->fields())
    if (field->isBitField() || !add(field->getType()))
      return {};
  return held == uint64_t(ast.getTypeSizeInChars(type).getQuantity()) ? scalar : QualType();
}

std::string optiml::elementName(const ASTContext &ast, QualType type) {
  PrintingPolicy policy(ast.getLangOpts());
  policy.SuppressTagKeyword = true;
  QualType scalar = scalarOf(ast, type);
  return (scalar.isNull() ? type.getCanonicalType().getUnqualifiedType() : scalar).getAsString(policy);
}

namespace {

class Finder {
public:
  explicit Finder(const ASTContext &ast) : ast(ast) {}

  void findIn(QualType type, uint64_t offset) {
    type = type.getCanonicalType();
    if (const ConstantArrayType *array = ast.getAsConstantArrayType(type)) {
      uint64_t n = array->getZExtSize(), size = uint64_t(ast.getTypeSizeInChars(array->getElementType()).getQuantity());
      for (uint64_t i = 0; i < n && found.size() < most; ++i)
        findIn(array->getElementType(), offset + i * size);
      return;
    }
    if (type->isPointerType()) {
      QualType pointee = type->getPointeeType().getUnqualifiedType();
      if (found.size() < most && !pointee->isVoidType() && !pointee->isFunctionType())
        found.push_back({parameter, offset, elementName(ast, pointee)});
      return;
    }
    const auto *record = type->getAsCXXRecordDecl();
    if (!record || !record->getDefinition() || record->isUnion() || record->isInvalidDecl())
      return;
    const ASTRecordLayout &layout = ast.getASTRecordLayout(record->getDefinition());
    for (const CXXBaseSpecifier &base : record->getDefinition()->bases())
      if (const CXXRecordDecl *of = base.getType()->getAsCXXRecordDecl(); of && !base.isVirtual())
        findIn(base.getType(), offset + uint64_t(layout.getBaseClassOffset(of->getDefinition()).getQuantity()));
    for (const FieldDecl *field : record->getDefinition()->fields())
      findIn(field->getType(), offset + layout.getFieldOffset(field->getFieldIndex()) / 8);
  }

  unsigned parameter = 0;
  std::vector<PointerField> found;

private:
  static constexpr size_t most = 256;
  const ASTContext &ast;
};

} // namespace

std::vector<PointerField> optiml::pointerFieldsOf(const FunctionDecl &kernel) {
  Finder finder(kernel.getASTContext());
  for (const ParmVarDecl *parameter : kernel.parameters()) {
    QualType type = parameter->getType();
    if (type->isRecordType() || (type->isPointerType() && type->getPointeeType()->isRecordType()))
      finder.findIn(type, 0);
    ++finder.parameter;
  }
  return std::move(finder.found);
}
