//===- ReadRecords.cpp - what classes and constructors are made of --------===//
#include "KernelReader.h"
#include "llvm/ADT/ScopeExit.h"

using namespace optiml;

bool KernelReader::describe(cl::QualType type, const std::string &text) {
  if (records.shapes.count(text))
    return true;
  const cl::CXXRecordDecl *record = type->getAsCXXRecordDecl();
  record = record ? record->getDefinition() : nullptr;
  if (!record || record->isUnion() || record->isLambda() || record->isDependentType() || record->getNumBases() ||
      !record->isTriviallyCopyable() || record->isEmpty() || isHalf(type))
    return false;
  if (!underway.insert(text).second) // a node of a list, behind its own pointer
    return false;
  auto done = llvm::scope_exit([&] { underway.erase(text); });
  RecordShape shape;
  shape.isAggregate = record->isAggregate();
  for (const cl::FieldDecl *field : record->fields()) {
    cl::QualType of = field->getType();
    std::vector<ExprRef> dims;
    for (; auto *array = ast.getAsConstantArrayType(of); of = array->getElementType())
      dims.push_back(intLit(int64_t(array->getSize().getZExtValue())));
    if (auto *inner = of->getAsCXXRecordDecl();
        inner && inner->hasDefinition() && inner->isEmpty() && inner->isTriviallyCopyable()) {
      shape.isWhole = false; // a functor
      continue;
    }
    bool hidden = field->getAccess() == cl::AS_private || field->getAccess() == cl::AS_protected;
    bool plain = of->isArithmeticType() || of->isObjectPointerType() || isHalf(of) ||
                 (of->isRecordType() && describe(of, typeText(of)));
    if ((hidden && !intoPrivate) || !plain || field->isBitField() || field->isAnonymousStructOrUnion() ||
        of.isVolatileQualified() || of.isConstQualified())
      return false;
    shape.fields.push_back({field->getNameAsString(), convert(of), unsigned(ast.getFieldOffset(field) / 8), dims});
    auto inner = records.shapes.find(shape.fields.back().type.text);
    shape.isWhole &= dims.empty() && (inner == records.shapes.end() || inner->second.isWhole);
  }
  records.shapes[text] = shape;
  return true;
}

void KernelReader::describe(const cl::CXXConstructExpr *x, size_t given) {
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

bool KernelReader::leavesUnset(const cl::CXXConstructExpr *made) {
  const cl::CXXConstructorDecl *constructor = made->getConstructor();
  if (made->requiresZeroInitialization())
    return false;
  if (constructor->isTrivial())
    return true;
  auto *body = llvm::dyn_cast_or_null<cl::CompoundStmt>(constructor->getBody());
  return body && body->body_empty() && constructor->getNumParams() == 0 &&
         llvm::all_of(constructor->inits(), [](const cl::CXXCtorInitializer *init) {
           auto *member = llvm::dyn_cast<cl::CXXConstructExpr>(init->getInit()->IgnoreImplicit());
           return member && member->getNumArgs() == 0 && leavesUnset(member);
         });
}

bool KernelReader::constructInPlace(const cl::VarDecl *v, const cl::CXXConstructExpr *x, const StmtRef &declared,
                                    std::vector<StmtRef> &out) {
  const cl::FunctionDecl *definition = nullptr;
  if (!describe(v->getType(), typeText(v->getType())) || !x->getConstructor()->hasBody(definition) ||
      sm.isInSystemHeader(sm.getExpansionLoc(definition->getLocation())) || inlining.size() >= 8 ||
      llvm::is_contained(inlining, definition) || !factsOf(definition).refusal.empty())
    return false;
  auto names = nameOf;
  auto claimed = taken;
  auto outerArguments = arguments;
  ExprRef outerThis = thisObject, object = var(claim(v, v->getNameAsString()), declared->type);
  std::vector<StmtRef> made;
  HoistPoint outer = std::exchange(hoist, {&made, nullptr, nullptr});
  auto *constructor = llvm::cast<cl::CXXConstructorDecl>(definition);
  Binding binding;
  bool good = problem.empty() && x->getNumArgs() == constructor->getNumParams();
  for (unsigned i = 0; good && i < x->getNumArgs(); ++i) {
    const cl::Expr *argument = x->getArg(i);
    if (auto *standard = llvm::dyn_cast<cl::CXXDefaultArgExpr>(argument))
      argument = standard->getExpr();
    good =
        bindParameter(constructor->getParamDecl(i), argument, factsOf(definition), /*oneExpression=*/false, binding) &&
        binding.changed.empty();
  }
  for (auto &[param, value] : binding.locals)
    made.push_back(local(claim(param, param->getNameAsString()), param->getType().getNonReferenceType(), value, x));
  for (auto &[param, value] : binding.values)
    arguments[param] = value;
  thisObject = object;
  inlining.push_back(definition);
  auto *outerChanges = std::exchange(changedByCallees, nullptr);
  for (const cl::CXXCtorInitializer *init : constructor->inits()) {
    const cl::FieldDecl *field = good ? init->getMember() : nullptr;
    const cl::Expr *value = init->getInit();
    if (auto *standard = llvm::dyn_cast<cl::CXXDefaultInitExpr>(value))
      value = standard->getExpr();
    auto *nothing = llvm::dyn_cast<cl::CXXConstructExpr>(strip(value));
    if (field && !init->isWritten() && nothing && !nothing->getNumArgs() && nothing->getConstructor()->isTrivial())
      continue;
    if (!(good = field && !llvm::isa<cl::ImplicitValueInitExpr, cl::CXXConstructExpr>(strip(value))))
      break;
    ExprRef member =
        memberExpr(object, field->getNameAsString(), convert(field->getType()), int64_t(ast.getFieldOffset(field) / 8));
    if (field->getAccess() != cl::AS_public)
      records.hidden.insert(member->text);
    ExprRef given = hoisted(value, made);
    good = given->kind != ExprKind::InitList && !hasEffects(given);
    made.push_back(atLine(line(x->getBeginLoc()), exprStmt(assign("=", member, converted(given, field->getType())))));
  }
  if (good)
    statement(constructor->getBody(), made);
  inlining.pop_back();
  changedByCallees = outerChanges;
  thisObject = outerThis;
  arguments = std::move(outerArguments);
  hoist = outer;
  for (const StmtRef &s : made)
    walk(*s, [&](Stmt &t) { good &= t.kind != StmtKind::Return; });
  if (!good || !problem.empty() || !wholeTree(made) || letsThreadsMeet(made)) {
    nameOf = std::move(names);
    taken = std::move(claimed);
    problem.clear();
    place.clear();
    return false;
  }
  declared->text = object->text;
  out.push_back(declared);
  out.insert(out.end(), made.begin(), made.end());
  return true;
}

ExprRef KernelReader::construction(const cl::CXXConstructExpr *x) {
  const cl::CXXConstructorDecl *constructor = x->getConstructor();
  const cl::CXXRecordDecl *record = constructor->getParent();
  bool named = record->getIdentifier() && !record->isLambda() && !record->isUnion();
  const bool isValue = record->isTriviallyCopyable() || isHalf(x->getType());
  if (!x->getType()->isRecordType() || !named || !isValue || x->isStdInitListInitialization() ||
      constructor->getAccess() != cl::AS_public || !purity.isPure(constructor))
    return nullptr;
  std::vector<ExprRef> args;
  for (const cl::Expr *arg : x->arguments())
    if (!llvm::isa<cl::CXXDefaultArgExpr>(arg)) {
      args.push_back(expression(arg));
      if (args.back()->kind == ExprKind::InitList)
        return nullptr;
    }
  describe(x, args.size());
  return make(ExprKind::Call, x, typeText(x->getType()), args);
}

ExprRef KernelReader::aggregate(const cl::ExplicitCastExpr *x) {
  const cl::CXXRecordDecl *record = x->getType()->getAsCXXRecordDecl();
  auto *list = llvm::dyn_cast<cl::InitListExpr>(strip(x->getSubExpr()));
  if (!record || !list || !record->isAggregate() || !describe(x->getType(), typeText(x->getType())) ||
      !records.shapes.at(typeText(x->getType())).isWhole)
    return nullptr;
  ExprRef value = expression(list);
  return value->kind == ExprKind::InitList ? value : nullptr;
}

ExprRef KernelReader::recordAssignment(const cl::CXXOperatorCallExpr *x) {
  auto *method = llvm::dyn_cast_or_null<cl::CXXMethodDecl>(x->getDirectCallee());
  if (!method || !(method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator()) || !copiesBits(*method))
    return nullptr;
  ExprRef target = expression(x->getArg(0)), value = expression(x->getArg(1));
  bool list = value->kind == ExprKind::InitList && !method->getParent()->isAggregate();
  if (!isPlace(target) || list || value->kind == ExprKind::Opaque)
    return nullptr;
  return make(ExprKind::Assign, x, "=", {target, value});
}

bool KernelReader::isSplittable(cl::QualType type) {
  std::string text = typeText(type);
  return type->isRecordType() && describe(type, text) && records.shapes.at(text).isWhole;
}
