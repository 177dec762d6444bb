//===- OpenClasses.cpp - classes whose members kernels may name -----------===//
//
// A functor with private members is read as what its call does, and a kernel that is printed in its words names these
// members. Who may name a member changes nothing about an object: not where its members lie, nor what functions do.
//
//===----------------------------------------------------------------------===//
#include "OpenClasses.h"
#include "TextEdits.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclCXX.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"
#include <set>

using namespace clang;

namespace {

class Opener {
public:
  explicit Opener(const optiml::Program &program)
      : sm(program.ast().getSourceManager()), language(program.ast().getLangOpts()), text(program.text()) {
    for (const optiml::KernelDecl &kernel : program.kernels())
      for (const ParmVarDecl *parameter : kernel.decl->parameters())
        add(parameter->getType());
  }

  std::optional<std::string> run() const { return optiml::edited(text, edits); }

private:
  const SourceManager &sm;
  const LangOptions &language;
  const llvm::StringRef text;
  std::set<const CXXRecordDecl *> seen;
  optiml::TextEdits edits;

  /// A class, and those of its members.
  void add(QualType type) {
    type = type.getNonReferenceType().getCanonicalType();
    if (const auto *array = dyn_cast<ArrayType>(type))
      return add(array->getElementType());
    const auto *record = type->getAsCXXRecordDecl();
    record = record ? record->getDefinition() : nullptr;
    if (!record || record->isLambda() || !seen.insert(record).second)
      return;
    for (const CXXBaseSpecifier &base : record->bases())
      add(base.getType());
    for (const FieldDecl *field : record->fields())
      add(field->getType());
    if (const CXXRecordDecl *pattern = record->getTemplateInstantiationPattern())
      record = pattern;
    open(*record);
  }

  bool isInText(SourceLocation place) const { return place.isFileID() && sm.isInMainFile(place); }

  void open(const CXXRecordDecl &record) {
    auto isHidden = [](const Decl *member) {
      const bool isPart = isa<FieldDecl>(member) || (isa<CXXMethodDecl>(member) && !member->isImplicit());
      return isPart && (member->getAccess() == AS_private || member->getAccess() == AS_protected);
    };
    if (llvm::none_of(record.decls(), isHidden) || !isInText(record.getBraceRange().getBegin()))
      return;
    for (const Decl *member : record.decls())
      if (const auto *specifier = dyn_cast<AccessSpecDecl>(member);
          specifier && specifier->getAccess() != AS_public && isInText(specifier->getAccessSpecifierLoc())) {
        const size_t begin = sm.getFileOffset(specifier->getAccessSpecifierLoc());
        const unsigned length = Lexer::MeasureTokenLength(specifier->getAccessSpecifierLoc(), sm, language);
        edits[begin] = {begin + length, "public"};
      }
    bool isNamed = false; // who may name the first members
    for (const Decl *member : record.decls()) {
      isNamed |= isa<AccessSpecDecl>(member);
      if (isNamed || !isHidden(member))
        continue;
      const size_t behind = sm.getFileOffset(record.getBraceRange().getBegin()) + 1;
      edits[behind] = {behind, " public:"};
    }
  }
};

} // namespace

std::optional<std::string> optiml::withOpenClasses(const Program &program) { return Opener(program).run(); }
