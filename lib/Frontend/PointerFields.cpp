//===- PointerFields.cpp - pointers in parameters by value ----------------===//
#include "PointerFields.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/RecordLayout.h"

using namespace clang;
using namespace optiml;

namespace {

class Finder {
public:
  explicit Finder(const ASTContext &ast) : ast(ast), policy(ast.getLangOpts()) { policy.SuppressTagKeyword = true; }

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
        found.push_back({parameter, offset, pointee.getAsString(policy)});
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
  PrintingPolicy policy;
};

} // namespace

std::vector<PointerField> optiml::pointerFieldsOf(const FunctionDecl &kernel) {
  Finder finder(kernel.getASTContext());
  for (const ParmVarDecl *parameter : kernel.parameters()) {
    if (parameter->getType()->isRecordType())
      finder.findIn(parameter->getType(), 0);
    ++finder.parameter;
  }
  return std::move(finder.found);
}
