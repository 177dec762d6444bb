//===- PointerFields.cpp - what kernels' pointers point to ----------------===//
#include "PointerFields.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/RecordLayout.h"
#include "llvm/ADT/STLFunctionalExtras.h"

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

enum class Then { Enter, Skip, Stop };

/// Shows `see` the parts of a type, with their offsets in bytes: arrays and structures before what they are made of.
/// Bit fields and virtual bases have no place of their own: they are shown as a null type. False where `see` stopped
/// it.
bool walk(const ASTContext &ast, QualType type, uint64_t offset, llvm::function_ref<Then(QualType, uint64_t)> see) {
  if (Then then = see(type, offset); then != Then::Enter)
    return then == Then::Skip;
  if (const ConstantArrayType *array = ast.getAsConstantArrayType(type)) {
    const QualType element = array->getElementType();
    const uint64_t size = uint64_t(ast.getTypeSizeInChars(element).getQuantity());
    for (uint64_t i = 0; i < array->getZExtSize(); ++i)
      if (!walk(ast, element, offset + i * size, see))
        return false;
    return true;
  }
  const CXXRecordDecl *record = type->getAsCXXRecordDecl()->getDefinition();
  const ASTRecordLayout &layout = ast.getASTRecordLayout(record);
  auto show = [&](bool hasPlace, QualType part, llvm::function_ref<uint64_t()> at) {
    return hasPlace ? walk(ast, part, offset + at(), see) : see(QualType(), 0) != Then::Stop;
  };
  for (const CXXBaseSpecifier &base : record->bases())
    if (!show(!base.isVirtual(), base.getType(), [&] {
          const CXXRecordDecl *of = base.getType()->getAsCXXRecordDecl()->getDefinition();
          return uint64_t(layout.getBaseClassOffset(of).getQuantity());
        }))
      return false;
  for (const FieldDecl *field : record->fields())
    if (!show(!field->isBitField(), field->getType(),
              [&] { return layout.getFieldOffset(field->getFieldIndex()) / 8; }))
      return false;
  return true;
}

/// Whether walk can enter it.
bool hasParts(const ASTContext &ast, QualType type) {
  const auto *record = type->getAsCXXRecordDecl();
  return ast.getAsConstantArrayType(type) ||
         (record && record->getDefinition() && !record->isUnion() && !record->isInvalidDecl());
}

/// The scalars of a structure, in recordLayout's words (Signature.h). Empty where it holds what has no such words:
/// pointers, unions, bit fields, or too many scalars.
std::string layoutOf(const ASTContext &ast, QualType record) {
  constexpr unsigned most = 512;
  std::string text = "{" + std::to_string(ast.getTypeSizeInChars(record).getQuantity()) + ":";
  unsigned number = 0;
  const bool fits = walk(ast, record, 0, [&](QualType type, uint64_t offset) {
    if (type.isNull())
      return Then::Stop;
    QualType scalar = scalarOf(ast, type);
    if (scalar.isNull() || !ast.hasSameType(scalar, type.getUnqualifiedType()))
      return hasParts(ast, type) ? Then::Enter : Then::Stop;
    text += " " + nameOf(ast, scalar) + "@" + std::to_string(offset);
    return ++number <= most ? Then::Skip : Then::Stop;
  });
  return fits ? text + "}" : "";
}

} // namespace

std::string optiml::elementName(const ASTContext &ast, QualType type) {
  if (QualType scalar = scalarOf(ast, type); !scalar.isNull())
    return nameOf(ast, scalar);
  std::string layout = type->isRecordType() && hasParts(ast, type) ? layoutOf(ast, type) : "";
  return layout.empty() ? nameOf(ast, type) : layout;
}

std::vector<PointerField> optiml::pointerFieldsOf(const FunctionDecl &kernel) {
  constexpr size_t most = 256; // in one kernel
  const ASTContext &ast = kernel.getASTContext();
  std::vector<PointerField> found;
  for (unsigned parameter = 0; parameter < kernel.getNumParams(); ++parameter)
    walk(ast, kernel.getParamDecl(parameter)->getType(), 0, [&](QualType type, uint64_t offset) {
      if (type.isNull())
        return Then::Skip;
      if (!type->isPointerType())
        return hasParts(ast, type) ? Then::Enter : Then::Skip;
      QualType pointee = type.getCanonicalType()->getPointeeType().getUnqualifiedType();
      if (found.size() < most && !pointee->isVoidType() && !pointee->isFunctionType())
        found.push_back({parameter, offset, elementName(ast, pointee)});
      return found.size() < most ? Then::Skip : Then::Stop;
    });
  return found;
}
