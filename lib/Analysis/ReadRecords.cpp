//===- ReadRecords.cpp - what classes and constructors are made of --------===//
#include "Reader.h"

using namespace optiml;

bool Reader::describe(cl::QualType type, const std::string &text) {
  if (records.shapes.count(text))
    return true;
  const cl::CXXRecordDecl *record = type->getAsCXXRecordDecl();
  record = record ? record->getDefinition() : nullptr;
  if (!record || record->isUnion() || record->isLambda() || record->isDependentType() || record->getNumBases() ||
      !record->isTriviallyCopyable() || record->isEmpty() || isHalf(type))
    return false;
  RecordShape shape;
  shape.isAggregate = record->isAggregate();
  for (const cl::FieldDecl *field : record->fields()) {
    cl::QualType of = field->getType();
    bool hidden = field->getAccess() == cl::AS_private || field->getAccess() == cl::AS_protected;
    bool plain = of->isArithmeticType() || of->isObjectPointerType() || isHalf(of) ||
                 (of->isRecordType() && describe(of, typeText(of)));
    if (hidden || !plain || field->isBitField() || field->isAnonymousStructOrUnion() || of.isVolatileQualified() ||
        of.isConstQualified())
      return false;
    shape.fields.push_back({field->getNameAsString(), convert(of), unsigned(ast.getFieldOffset(field) / 8)});
  }
  records.shapes[text] = shape;
  return true;
}

void Reader::describe(const cl::CXXConstructExpr *x, size_t given) {
  std::string text = typeText(x->getType()), key = constructorKey(text, given);
  const cl::CXXConstructorDecl *constructor = x->getConstructor();
  auto [it, added] = constructorOf.try_emplace(key, constructor);
  std::vector<ExprRef> &result = records.constructors[key];
  if (!added && it->second != constructor)
    result.clear();
  if (!added || !describe(x->getType(), text))
    return;
  const cl::CXXRecordDecl *record = constructor->getParent()->getDefinition();
  std::map<const cl::FieldDecl *, const cl::Expr *> values;
  const cl::FunctionDecl *definition = nullptr;
  auto *body = constructor->hasBody(definition) ? llvm::dyn_cast<cl::CompoundStmt>(definition->getBody()) : nullptr;
  if (!body)
    return;
  auto *defined = llvm::cast<cl::CXXConstructorDecl>(definition);
  for (const cl::CXXCtorInitializer *init : defined->inits())
    if (init->isMemberInitializer())
      values[init->getMember()] = init->getInit();
  for (const cl::Stmt *s : body->body()) { // { re = a; im = b; }
    auto *e = llvm::dyn_cast<cl::Expr>(s);
    auto *assign = e ? llvm::dyn_cast<cl::BinaryOperator>(strip(e)) : nullptr;
    auto *member = assign && assign->getOpcode() == cl::BO_Assign
                       ? llvm::dyn_cast<cl::MemberExpr>(strip(assign->getLHS()))
                       : nullptr;
    auto *field = member && llvm::isa<cl::CXXThisExpr>(strip(member->getBase()))
                      ? llvm::dyn_cast<cl::FieldDecl>(member->getMemberDecl())
                      : nullptr;
    if (!field)
      return;
    values[field] = assign->getRHS();
  }
  auto outerArguments = arguments;
  ExprRef outerThis = std::exchange(thisObject, nullptr);
  std::string outerProblem = problem, outerPlace = place;
  for (unsigned i = 0; i < defined->getNumParams(); ++i) {
    const cl::ParmVarDecl *param = defined->getParamDecl(i);
    const cl::ParmVarDecl *declared = constructor->getParamDecl(i);
    arguments[param] =
        i < given ? var("$" + std::to_string(i), convert(param->getType().getNonReferenceType().getUnqualifiedType()))
        : declared->hasDefaultArg() ? inPlace(declared->getDefaultArg())
                                    : nullptr;
  }
  std::vector<ExprRef> made;
  for (const cl::FieldDecl *field : record->fields()) {
    ExprRef value = values.count(field) ? inPlace(values[field]) : nullptr;
    if (!value || !wholeTree(value) || hasEffects(value))
      break;
    made.push_back(value);
  }
  arguments = std::move(outerArguments);
  thisObject = outerThis;
  if (made.size() == size_t(std::distance(record->field_begin(), record->field_end())) && problem == outerProblem)
    result = made;
  problem = outerProblem;
  place = outerPlace;
}
