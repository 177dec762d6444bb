//===- ReadExpressions.cpp - types and expressions ------------------------===//
#include "KernelReader.h"

using namespace optiml;

std::string KernelReader::typeText(cl::QualType type) {
  type = type.getUnqualifiedType();
  // Typedefs of the file keep their names; local and dependent ones are spelled out.
  if (auto *td = type->getAs<cl::TypedefType>())
    if (!td->getDecl()->getDeclContext()->isFileContext() || td->getDecl()->isTemplated())
      type = type.getCanonicalType().getUnqualifiedType();
  if (type->getAs<cl::AutoType>() || type->getAs<cl::DecltypeType>() || type->getAs<cl::SubstTemplateTypeParmType>())
    type = type.getCanonicalType().getUnqualifiedType();
  if (type->isPointerType()) {
    cl::QualType to = type->getPointeeType();
    std::string constant = to.isConstQualified() ? "const " : "",
                changing = to.isVolatileQualified() ? "volatile " : "";
    const std::string pointee = typeText(to);
    if (to->isPointerType()) // what is constant is the pointer to its left: float *const *
      return pointee + constant + changing + "*";
    return constant + changing + pointee + (pointee.back() == '*' ? "*" : " *");
  }
  return type.getAsString(policy);
}

Type KernelReader::convert(cl::QualType type) {
  Type result;
  result.isConst = type.isConstQualified();
  result.isVolatile = type.isVolatileQualified();
  result.isRestrict = type.isRestrictQualified();
  result.text = typeText(type);
  cl::QualType canonical = type.getCanonicalType();
  if (!canonical->isIncompleteType() && !canonical->isDependentType() && !canonical->isFunctionType())
    result.bytes = unsigned(ast.getTypeSizeInChars(canonical).getQuantity());
  if (canonical->isVoidType()) {
    result.cls = Type::Class::Void;
  } else if (canonical->isBooleanType()) {
    result.cls = Type::Class::Bool;
  } else if (canonical->isIntegralOrEnumerationType()) {
    result.cls = Type::Class::Int;
    result.isSigned = canonical->isSignedIntegerOrEnumerationType();
  } else if (canonical->isRealFloatingType()) {
    result.cls = Type::Class::Float;
  } else if (canonical->isPointerType()) {
    result.cls = Type::Class::Pointer;
    cl::QualType to = type->getPointeeType();
    result.pointee = std::make_shared<Type>(to->isFunctionType() ? Type() : convert(to));
  } else if (canonical->isArrayType()) {
    result.cls = Type::Class::Pointer;
    result.pointee = std::make_shared<Type>(convert(ast.getAsArrayType(type)->getElementType()));
  } else if (canonical->isRecordType()) {
    result.cls = Type::Class::Record;
    result.isHalf = result.bytes == 2 && isHalf(canonical);
    if (!result.isHalf)
      describe(type, result.text);
  }
  return result;
}

std::vector<Param::Field> KernelReader::fieldsOf(cl::QualType type) {
  std::vector<Param::Field> result;
  const cl::RecordDecl *record = type->getAsRecordDecl();
  if (!record || !record->getDefinition() || record->isUnion())
    return result;
  const cl::ASTRecordLayout &layout = ast.getASTRecordLayout(record->getDefinition());
  for (const cl::FieldDecl *field : record->getDefinition()->fields())
    if (!field->isBitField() && !field->getType()->isReferenceType() &&
        (field->getAccess() == cl::AS_public || field->getAccess() == cl::AS_none))
      addFields(field->getNameAsString(), field->getType(), unsigned(layout.getFieldOffset(field->getFieldIndex()) / 8),
                result);
  return result;
}

void KernelReader::addFields(const std::string &name, cl::QualType type, unsigned offset,
                             std::vector<Param::Field> &into) {
  constexpr size_t mostFields = 64; // more are a table
  into.push_back({name, convert(type), offset});
  for (const Param::Field &inner : fieldsOf(type))
    if (into.size() < mostFields)
      into.push_back({name + "." + inner.name, inner.type, offset + inner.offset});
  if (const cl::ConstantArrayType *array = ast.getAsConstantArrayType(type)) {
    unsigned bytes = unsigned(ast.getTypeSizeInChars(array->getElementType()).getQuantity());
    for (uint64_t i = 0; i < array->getSize().getZExtValue() && into.size() < mostFields; ++i)
      addFields(name + "[" + std::to_string(i) + "]", array->getElementType(), offset + unsigned(i) * bytes, into);
  }
}

std::shared_ptr<Expr> KernelReader::make(ExprKind kind, const cl::Expr *source, std::string text,
                                         std::vector<ExprRef> args) {
  auto e = std::make_shared<Expr>();
  e->kind = kind;
  e->type = convert(source->getType());
  e->text = std::move(text);
  e->args = std::move(args);
  e->line = line(source->getExprLoc());
  return e;
}

ExprRef KernelReader::opaque(const cl::Expr *source) {
  Mentions mentions(purity);
  mentions.TraverseStmt(const_cast<cl::Expr *>(source));
  const std::set<std::string> names = opaqueNames(mentions, source->getExprLoc());
  std::string text = verbatim(source, mentions);
  auto e = make(ExprKind::Opaque, source, text);
  e->pure = !mentions.impure;
  e->isUnaware = mentions.impure && purity.isUnaware(static_cast<const cl::Stmt &>(*source));
  e->names = names;
  // Keep it whole wherever it is put.
  if (!llvm::isa<cl::ParenExpr>(source) && !llvm::isa<cl::CallExpr, cl::DeclRefExpr, cl::StringLiteral>(source))
    text = "(" + text + ")";
  e->text = text;
  return e;
}

std::set<std::string> KernelReader::opaqueNames(Mentions &mentions, cl::SourceLocation loc) {
  std::set<std::string> names;
  for (const cl::VarDecl *v : mentions.declared)
    if (v->isLocalVarDeclOrParm() && !nameOf.count(v))
      claim(v, v->getNameAsString());
  if (mentions.usesThis && !inlining.empty())
    note(loc, "the object of a function that is read in place is used in a construct that OptiML keeps verbatim");
  for (const cl::VarDecl *v : mentions.variables) {
    if (arguments.count(v))
      note(loc, "a parameter of a function that is read in place is used in a construct that OptiML keeps verbatim");
    auto it = nameOf.find(v);
    names.insert(it == nameOf.end() ? v->getNameAsString() : it->second);
  }
  return names;
}

namespace {
/// Prints variables by their names in the kernel. It is not asked about what stands in declarations.
class KernelNames : public cl::PrinterHelper {
public:
  explicit KernelNames(const std::map<const cl::VarDecl *, std::string> &nameOf) : nameOf(nameOf) {}
  unsigned printed = 0;
  const std::string *newName(const cl::VarDecl *v) const {
    auto it = nameOf.find(v);
    return it == nameOf.end() || it->second == v->getName() ? nullptr : &it->second;
  }
  bool handledStmt(cl::Stmt *s, llvm::raw_ostream &os) override {
    auto *ref = llvm::dyn_cast<cl::DeclRefExpr>(s);
    auto *v = ref ? llvm::dyn_cast<cl::VarDecl>(ref->getDecl()) : nullptr;
    const std::string *name = v ? newName(v) : nullptr;
    if (name)
      os << *name;
    printed += name != nullptr;
    return name;
  }

private:
  const std::map<const cl::VarDecl *, std::string> &nameOf;
};
} // namespace

std::string KernelReader::verbatim(const cl::Stmt *source, const Mentions &mentions) {
  std::string text;
  llvm::raw_string_ostream os(text);
  KernelNames names(nameOf);
  source->printPretty(os, &names, policy);
  unsigned renamed = 0;
  std::string example;
  for (const cl::VarDecl *v : mentions.variables)
    if (names.newName(v)) {
      ++renamed;
      example = v->getNameAsString();
    }
  for (const cl::VarDecl *v : mentions.declared)
    if (names.newName(v)) {
      renamed = unsigned(-1);
      example = v->getNameAsString();
    }
  if (renamed != names.printed)
    note(source->getBeginLoc(),
         "the name '" + example + "' is declared more than once and used in a construct that OptiML keeps verbatim");
  return text;
}

/// A derived object taken for its base: members of that name may be others there.
static bool toBase(const cl::CastExpr *x) {
  return x->getCastKind() == cl::CK_DerivedToBase || x->getCastKind() == cl::CK_UncheckedDerivedToBase;
}

const cl::Expr *KernelReader::strip(const cl::Expr *e) {
  for (;;) {
    const cl::Expr *next = e;
    if (auto *x = llvm::dyn_cast<cl::ParenExpr>(e))
      next = x->getSubExpr();
    else if (auto *x = llvm::dyn_cast<cl::ImplicitCastExpr>(e); x && !toBase(x))
      next = x->getSubExpr();
    else if (auto *x = llvm::dyn_cast<cl::FullExpr>(e))
      next = x->getSubExpr();
    else if (auto *x = llvm::dyn_cast<cl::MaterializeTemporaryExpr>(e))
      next = x->getSubExpr();
    else if (auto *x = llvm::dyn_cast<cl::CXXBindTemporaryExpr>(e))
      next = x->getSubExpr();
    else if (auto *x = llvm::dyn_cast<cl::SubstNonTypeTemplateParmExpr>(e))
      next = x->getReplacement();
    else if (auto *x = llvm::dyn_cast<cl::OpaqueValueExpr>(e); x && x->getSourceExpr())
      next = x->getSourceExpr();
    else if (auto *x = llvm::dyn_cast<cl::CXXDefaultArgExpr>(e))
      next = x->getExpr();
    else if (auto *x = llvm::dyn_cast<cl::CXXDefaultInitExpr>(e))
      next = x->getExpr();
    else if (auto *x = llvm::dyn_cast<cl::CXXConstructExpr>(e); x && x->getNumArgs() == 1 &&
                                                                x->getConstructor()->isCopyOrMoveConstructor() &&
                                                                copiesBits(*x->getConstructor()))
      next = x->getArg(0);
    if (next == e)
      return e;
    e = next;
  }
}

ExprRef KernelReader::intConstant(const cl::Expr *source) {
  cl::Expr::EvalResult result;
  if (!source->getType()->isIntegralOrEnumerationType() || source->isValueDependent() ||
      !source->EvaluateAsInt(result, ast) || result.HasSideEffects)
    return nullptr;
  auto e = make(ExprKind::IntLit, source, "");
  llvm::APSInt value = result.Val.getInt();
  e->value = value.isSigned() ? value.getSExtValue() : int64_t(value.getZExtValue());
  if (source->getType()->isEnumeralType() || e->type.bytes < 4)
    e->type = e->type.cls == Type::Class::Bool ? Type::makeBool() : Type::makeInt();
  if (source->getType()->isScopedEnumeralType()) // nothing converts between it and integers
    return castTo(convert(source->getType().getUnqualifiedType()), e);
  return e;
}

ExprRef KernelReader::reference(const cl::DeclRefExpr *ref) {
  const cl::ValueDecl *decl = ref->getDecl();
  if (llvm::isa<cl::EnumConstantDecl, cl::NonTypeTemplateParmDecl>(decl))
    if (ExprRef constant = intConstant(ref))
      return constant;
  auto *v = llvm::dyn_cast<cl::VarDecl>(decl);
  if (!v)
    return opaque(ref);
  if (auto it = arguments.find(v); it != arguments.end())
    return it->second;
  if (auto it = nameOf.find(v); it != nameOf.end())
    return make(ExprKind::Var, ref, it->second);
  if (v->isLocalVarDeclOrParm() && !v->hasGlobalStorage() && !inlining.empty())
    note(ref->getLocation(), "a variable of another function is used");
  // A named integer constant is its value.
  if (v->getType().isConstQualified() && v->getType()->isIntegralOrEnumerationType())
    if (ExprRef constant = intConstant(ref))
      return constant;
  std::string name = v->getQualifiedNameAsString();
  if (v->isStaticLocal() || v->isInAnonymousNamespace())
    name = v->getNameAsString();
  auto e = make(ExprKind::Var, ref, name);
  e->type.isConst |= v->hasAttr<cl::CUDAConstantAttr>();
  return e;
}

ExprRef KernelReader::builtinOf(const cl::PseudoObjectExpr *e) {
  auto *property = llvm::dyn_cast<cl::MSPropertyRefExpr>(strip(e->getSyntacticForm()));
  if (!property)
    return nullptr;
  auto *base = llvm::dyn_cast<cl::DeclRefExpr>(strip(property->getBaseExpr()));
  if (!base)
    return nullptr;
  return make(ExprKind::Builtin, e,
              base->getDecl()->getNameAsString() + "." + property->getPropertyDecl()->getNameAsString());
}

ExprRef KernelReader::floatLiteral(const cl::FloatingLiteral *literal) {
  llvm::SmallString<32> buffer;
  cl::SourceLocation spelling = sm.getSpellingLoc(literal->getBeginLoc());
  bool invalid = false;
  std::string text = cl::Lexer::getSpelling(spelling, buffer, sm, ast.getLangOpts(), &invalid).str();
  if (invalid || text.empty() || (!isdigit(text[0]) && text[0] != '.')) {
    text.clear();
    llvm::raw_string_ostream os(text);
    literal->printPretty(os, nullptr, policy);
  }
  return make(ExprKind::FloatLit, literal, text);
}

ExprRef KernelReader::binaryOperator(const cl::BinaryOperator *x) {
  if (x->getOpcode() == cl::BO_PtrMemD || x->getOpcode() == cl::BO_PtrMemI)
    return opaque(x);
  ExprRef left = expression(x->getLHS());
  bool always = !x->isLogicalOp() && x->getOpcode() != cl::BO_Comma;
  ExprRef right = always ? expression(x->getRHS()) : inPlace(x->getRHS());
  // Of conditions without effects, i >= 4 & i < n is i >= 4 && i < n.
  if ((x->getOpcode() == cl::BO_And || x->getOpcode() == cl::BO_Or) && left->type.cls == Type::Class::Bool &&
      right->type.cls == Type::Class::Bool && !hasEffects(left) && !hasEffects(right))
    return binary(x->getOpcode() == cl::BO_And ? "&&" : "||", left, right, Type::makeBool());
  return make(x->isAssignmentOp() ? ExprKind::Assign : ExprKind::Binary, x, x->getOpcodeStr().str(), {left, right});
}

ExprRef KernelReader::member(const cl::MemberExpr *x) {
  bool ofThis = llvm::isa<cl::CXXThisExpr>(strip(x->getBase()));
  bool hidden = x->getMemberDecl()->getAccess() != cl::AS_public && x->getMemberDecl()->getAccess() != cl::AS_none;
  if (hidden && intoPrivate && !inlining.empty())
    records.hidden.insert(x->getMemberDecl()->getNameAsString());
  else if (hidden && !inlining.empty())
    note(x->getExprLoc(), "a private member cannot be named in the kernel");
  auto *cast = llvm::dyn_cast<cl::ImplicitCastExpr>(strip(x->getBase()));
  bool ofBase = x->hasQualifier() || (cast && toBase(cast));
  if (!llvm::isa<cl::FieldDecl>(x->getMemberDecl()) || (ofThis && !thisObject) || ofBase)
    return opaque(x);
  ExprRef object = ofThis ? thisObject : expression(x->getBase());
  if (x->isArrow())
    object = pointedTo(object);
  const std::string name = x->getMemberDecl()->getNameAsString();
  int64_t offset = int64_t(ast.getFieldOffset(x->getMemberDecl()) / 8);
  if (isOfParameter(object))
    return partOfParameter(x, object->args[0], object->text + "." + name, object->value + offset);
  if (object->kind == ExprKind::Var && memberPointers.count(object->text))
    return partOfParameter(x, object, name, offset);
  auto result = make(ExprKind::Member, x, name, {object});
  result->value = offset;
  return result;
}

ExprRef KernelReader::explicitCast(const cl::ExplicitCastExpr *x) {
  if (ExprRef half = halfCast(x))
    return half;
  if (ExprRef list = aggregate(x))
    return list;
  if (x->getType()->isRecordType() || x->getType()->isReferenceType() || x->getSubExpr()->getType()->isRecordType() ||
      llvm::isa<cl::InitListExpr>(strip(x->getSubExpr())))
    return opaque(x);
  std::string type = typeText(x->getTypeAsWritten());
  return make(ExprKind::Cast, x, type, {expression(x->getSubExpr())});
}

ExprRef KernelReader::initList(const cl::InitListExpr *x) {
  const cl::InitListExpr *form = x->isSemanticForm() && x->getSyntacticForm() ? x->getSyntacticForm() : x;
  std::vector<ExprRef> items;
  for (const cl::Expr *init : form->inits()) {
    if (llvm::isa<cl::DesignatedInitExpr>(init))
      return opaque(x);
    items.push_back(expression(init));
  }
  return make(ExprKind::InitList, x->getSemanticForm() ? x->getSemanticForm() : x, "", items);
}

ExprRef KernelReader::expression(const cl::Expr *source) {
  const cl::Expr *e = strip(source);
  if (llvm::isa<cl::IntegerLiteral, cl::CXXBoolLiteralExpr, cl::CharacterLiteral>(e))
    return intConstant(e);
  if (llvm::isa<cl::UnaryExprOrTypeTraitExpr>(e))
    if (ExprRef constant = intConstant(e))
      return constant;
  if (auto *x = llvm::dyn_cast<cl::FloatingLiteral>(e))
    return floatLiteral(x);
  if (auto *x = llvm::dyn_cast<cl::DeclRefExpr>(e))
    return reference(x);
  if (auto *x = llvm::dyn_cast<cl::PseudoObjectExpr>(e)) {
    if (ExprRef b = builtinOf(x))
      return b;
    return opaque(e);
  }
  if (auto *x = llvm::dyn_cast<cl::UnaryOperator>(e))
    return unaryOperator(x);
  if (auto *x = llvm::dyn_cast<cl::BinaryOperator>(e))
    return binaryOperator(x);
  if (auto *x = llvm::dyn_cast<cl::ConditionalOperator>(e)) {
    if (ExprRef constant = intConstant(x->getCond())) // as template arguments decide it
      return inPlace(constantValue(constant).value_or(0) ? x->getTrueExpr() : x->getFalseExpr());
    std::vector<ExprRef> parts = {expression(x->getCond()), inPlace(x->getTrueExpr()), inPlace(x->getFalseExpr())};
    bool lists = parts[1]->kind == ExprKind::InitList || parts[2]->kind == ExprKind::InitList; // they say no type
    return lists ? opaque(e) : make(ExprKind::Cond, e, "", parts);
  }
  if (auto *x = llvm::dyn_cast<cl::ArraySubscriptExpr>(e)) {
    if (ExprRef element = elementOfParameter(x))
      return element;
    auto [base, offset] = splitPointer(expression(x->getBase()));
    return make(ExprKind::Subscript, e, "", {base, joinOffsets(offset, expression(x->getIdx()))});
  }
  if (auto *x = llvm::dyn_cast<cl::MemberExpr>(e))
    return member(x);
  if (auto *x = llvm::dyn_cast<cl::ExplicitCastExpr>(e))
    return explicitCast(x);
  if (auto *x = llvm::dyn_cast<cl::CXXScalarValueInitExpr>(e))
    return make(ExprKind::Cast, e, typeText(x->getType()), {intLit(0)});
  if (auto *x = llvm::dyn_cast<cl::InitListExpr>(e))
    return initList(x);
  if (auto *x = llvm::dyn_cast<cl::CXXConstructExpr>(e))
    if (ExprRef made = construction(x))
      return made;
  if (auto *x = llvm::dyn_cast<cl::CallExpr>(e))
    if (ExprRef value = groupValue(x))
      return value;
  if (auto *x = llvm::dyn_cast<cl::CXXOperatorCallExpr>(e)) {
    if (ExprRef stored = recordAssignment(x))
      return stored;
    if (ExprRef computed = halfOperator(x))
      return computed;
  }
  if (auto *x = llvm::dyn_cast<cl::CXXMemberCallExpr>(e))
    if (ExprRef number = halfConversion(x))
      return number;
  if (auto *x = llvm::dyn_cast<cl::CallExpr>(e); x && !x->getType()->isVoidType()) {
    if (ExprRef load = cachedLoad(x))
      return load;
    if (auto value = inlined(x))
      return *value;
  }
  if (auto *x = llvm::dyn_cast<cl::CallExpr>(e);
      x && !llvm::isa<cl::CXXMemberCallExpr, cl::CXXOperatorCallExpr, cl::UserDefinedLiteral>(e))
    return call(x);
  return opaque(e);
}

bool KernelReader::isOfParameter(const ExprRef &e) const {
  return e->kind == ExprKind::Member && e->args[0]->kind == ExprKind::Var && memberPointers.count(e->args[0]->text);
}

ExprRef KernelReader::partOfParameter(const cl::Expr *source, const ExprRef &param, const std::string &name,
                                      int64_t offset) {
  if (source->getType()->isPointerType())
    return make(ExprKind::Var, source, param->text + "." + name); // an array like a parameter
  auto part = make(ExprKind::Member, source, name, {param});
  part->value = offset;
  return part;
}

ExprRef KernelReader::elementOfParameter(const cl::ArraySubscriptExpr *x) {
  const cl::ConstantArrayType *array = ast.getAsConstantArrayType(strip(x->getBase())->getType());
  if (!array)
    return nullptr;
  ExprRef base = inPlace(x->getBase()), index = inPlace(x->getIdx());
  auto at = isOfParameter(base) ? constantValue(index) : std::nullopt;
  if (!at || *at < 0 || uint64_t(*at) >= array->getSize().getZExtValue())
    return nullptr;
  int64_t bytes = ast.getTypeSizeInChars(array->getElementType()).getQuantity();
  return partOfParameter(x, base->args[0], base->text + "[" + std::to_string(*at) + "]", base->value + *at * bytes);
}

ExprRef KernelReader::unaryOperator(const cl::UnaryOperator *x) {
  if (x->getOpcode() == cl::UO_Deref && thisObject && !thisObject->type.isPointer() &&
      llvm::isa<cl::CXXThisExpr>(strip(x->getSubExpr())))
    return thisObject; // *this
  ExprRef operand = expression(x->getSubExpr());
  switch (x->getOpcode()) {
  case cl::UO_PreInc: return make(ExprKind::IncDec, x, "++x", {operand});
  case cl::UO_PostInc: return make(ExprKind::IncDec, x, "x++", {operand});
  case cl::UO_PreDec: return make(ExprKind::IncDec, x, "--x", {operand});
  case cl::UO_PostDec: return make(ExprKind::IncDec, x, "x--", {operand});
  case cl::UO_Deref: // *(p + i) is p[i], *p is p[0], *&a is a
    if (ExprRef place = pointedTo(operand); place != operand)
      return place;
    return make(ExprKind::Subscript, x, "", {operand, intLit(0)});
  case cl::UO_Extension: return operand;
  default: return make(ExprKind::Unary, x, cl::UnaryOperator::getOpcodeStr(x->getOpcode()).str(), {operand});
  }
}

ExprRef KernelReader::converted(const ExprRef &e, cl::QualType to) {
  Type type = convert(to.getUnqualifiedType());
  const bool areBool = e->type.cls == Type::Class::Bool && type.cls == Type::Class::Bool;
  if (areBool || e->type.sameNumber(type))
    return e;
  auto cast = std::make_shared<Expr>(*castTo(type, e));
  cast->line = e->line;
  return cast;
}
