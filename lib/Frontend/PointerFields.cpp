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

static std::string nameOf(const ASTContext &ast, QualType type) {
  PrintingPolicy policy(ast.getLangOpts());
  policy.SuppressTagKeyword = true;
  return type.getCanonicalType().getUnqualifiedType().getAsString(policy);
}

namespace {

/// The scalars of a structure, in recordLayout's words (Signature.h).
class LayoutText {
public:
  explicit LayoutText(const ASTContext &ast) : ast(ast) {}

  /// Empty where it holds what has no such words: pointers, unions, bit fields, or too many scalars.
  std::string of(QualType record) {
    add(record, 0);
    return fits ? "{" + std::to_string(ast.getTypeSizeInChars(record).getQuantity()) + ":" + text + "}" : "";
  }

private:
  static constexpr unsigned most = 64;
  const ASTContext &ast;
  std::string text;
  unsigned number = 0;
  bool fits = true;

  void add(QualType type, int64_t offset) {
    if (const ConstantArrayType *array = ast.getAsConstantArrayType(type)) {
      const int64_t size = ast.getTypeSizeInChars(array->getElementType()).getQuantity();
      for (uint64_t i = 0; fits && i < array->getZExtSize(); ++i)
        add(array->getElementType(), offset + int64_t(i) * size);
      return;
    }
    if (QualType scalar = scalarOf(ast, type); !scalar.isNull() && ast.hasSameType(scalar, type.getUnqualifiedType())) {
      fits = fits && ++number <= most;
      text += " " + nameOf(ast, scalar) + "@" + std::to_string(offset);
      return;
    }
    const auto *record = type->getAsCXXRecordDecl();
    fits = fits && record && record->getDefinition() && !record->isUnion() && !record->isInvalidDecl();
    if (!fits)
      return;
    record = record->getDefinition();
    const ASTRecordLayout &layout = ast.getASTRecordLayout(record);
    for (const CXXBaseSpecifier &base : record->bases()) {
      fits = fits && !base.isVirtual();
      if (fits)
        add(base.getType(), offset + layout.getBaseClassOffset(base.getType()->getAsCXXRecordDecl()).getQuantity());
    }
    for (const FieldDecl *field : record->fields()) {
      fits = fits && !field->isBitField();
      if (fits)
        add(field->getType(), offset + int64_t(layout.getFieldOffset(field->getFieldIndex()) / 8));
    }
  }
};

} // namespace

std::string optiml::elementName(const ASTContext &ast, QualType type) {
  if (QualType scalar = scalarOf(ast, type); !scalar.isNull())
    return nameOf(ast, scalar);
  std::string layout = type->isRecordType() ? LayoutText(ast).of(type) : "";
  return layout.empty() ? nameOf(ast, type) : layout;
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
    finder.findIn(parameter->getType(), 0);
    ++finder.parameter;
  }
  return std::move(finder.found);
}
