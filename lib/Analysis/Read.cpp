//===- Read.cpp - from Clang's AST to a kernel tree -----------------------===//
//
// One case a statement or expression class. What has no place in the tree becomes opaque text with the names it
// mentions; what cannot even be kept as text (a renamed variable inside opaque text) is NotApplicable.
//
//===----------------------------------------------------------------------===//
#include "optiml/Analysis/Read.h"
#include "optiml/Analysis/Purity.h"
#include "optiml/Support/Error.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/RecordLayout.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/AST/StmtCXX.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"

using namespace optiml;
namespace cl = clang;

namespace {

/// Names an opaque piece mentions, and what it calls.
class Mentions : public cl::RecursiveASTVisitor<Mentions> {
public:
  std::vector<const cl::VarDecl *> variables;
  std::vector<const cl::VarDecl *> declared;
  bool impure = false;
  unsigned lambdas = 0;
  PurityAnalysis &purity;
  explicit Mentions(PurityAnalysis &purity) : purity(purity) {}
  bool VisitDeclRefExpr(cl::DeclRefExpr *ref) {
    if (auto *v = llvm::dyn_cast<cl::VarDecl>(ref->getDecl()))
      variables.push_back(v);
    return true;
  }
  bool VisitVarDecl(cl::VarDecl *v) {
    declared.push_back(v);
    return true;
  }
  bool TraverseLambdaExpr(cl::LambdaExpr *e) {
    ++lambdas;
    bool result = RecursiveASTVisitor::TraverseLambdaExpr(e);
    --lambdas;
    return result;
  }
  bool VisitStmt(cl::Stmt *s) {
    // What leaves the text by itself, or comes in.
    impure |= !lambdas && llvm::isa<cl::ReturnStmt, cl::GotoStmt, cl::IndirectGotoStmt, cl::LabelStmt>(s);
    impure |= llvm::isa<cl::GCCAsmStmt>(s);
    if (auto *call = llvm::dyn_cast<cl::CallExpr>(s))
      impure |= !purity.isPure(call->getDirectCallee());
    if (auto *op = llvm::dyn_cast<cl::BinaryOperator>(s))
      impure |= op->isAssignmentOp();
    if (auto *op = llvm::dyn_cast<cl::UnaryOperator>(s))
      impure |= op->isIncrementDecrementOp() || op->getOpcode() == cl::UO_Deref;
    // What is read from memory may be written by another thread.
    if (auto *member = llvm::dyn_cast<cl::MemberExpr>(s))
      impure |= member->isArrow() && !llvm::isa<cl::CXXThisExpr>(member->getBase()->IgnoreParenImpCasts());
    impure |= llvm::isa<cl::ArraySubscriptExpr>(s);
    return true;
  }
};

class Reader {
public:
  Reader(cl::ASTContext &ast) : ast(ast), sm(ast.getSourceManager()), purity(ast), policy(ast.getLangOpts()) {
    policy.SuppressTagKeyword = true;
    policy.FullyQualifiedName = true;
    policy.Bool = true;
    policy.PrintAsCanonical = false;
    policy.SuppressUnwrittenScope = true;
  }

  llvm::Expected<std::shared_ptr<Kernel>> read(const KernelDecl &source) {
    const cl::FunctionDecl *fn = source.decl;
    auto kernel = std::make_shared<Kernel>();
    kernel->name = fn->getNameAsString();
    kernel->line = source.line;
    for (const cl::ParmVarDecl *param : fn->parameters()) {
      if (param->getType()->isReferenceType())
        return fail(param->getLocation(), "a parameter is a reference");
      std::string name = param->getNameAsString();
      if (name.empty())
        name = "unused" + std::to_string(param->getFunctionScopeIndex());
      kernel->params.push_back({claim(param, name), convert(param->getType()), fieldsOf(param->getType())});
    }
    if (auto *bounds = fn->getAttr<cl::CUDALaunchBoundsAttr>()) {
      kernel->maxThreads = evaluate(bounds->getMaxThreads());
      kernel->minBlocks = evaluate(bounds->getMinBlocks());
    }
    kernel->body = block();
    statement(fn->getBody(), kernel->body->body, /*flatten=*/true);
    if (!problem.empty())
      return llvm::make_error<NotApplicable>(problem, place);
    normalize(*kernel);
    return kernel;
  }

private:
  cl::ASTContext &ast;
  cl::SourceManager &sm;
  PurityAnalysis purity;
  cl::PrintingPolicy policy;
  std::map<const cl::VarDecl *, std::string> nameOf;
  std::set<std::string> taken;
  std::string problem, place;
  // While a function is read in place of a call of it: what its parameters and `this` stand for.
  std::map<const cl::VarDecl *, ExprRef> arguments;
  ExprRef thisObject;
  unsigned inlining = 0;

  unsigned line(cl::SourceLocation loc) { return sm.getPresumedLoc(sm.getExpansionLoc(loc)).getLine(); }

  llvm::Error fail(cl::SourceLocation loc, const std::string &why) {
    note(loc, why);
    return llvm::make_error<NotApplicable>(problem, place);
  }
  void note(cl::SourceLocation loc, const std::string &why) {
    if (!problem.empty())
      return;
    problem = why;
    cl::PresumedLoc p = sm.getPresumedLoc(sm.getExpansionLoc(loc));
    if (p.isValid())
      place = llvm::formatv("{0}:{1}", p.getFilename(), p.getLine());
  }
  unsigned evaluate(const cl::Expr *e) {
    cl::Expr::EvalResult result;
    if (!e || !e->EvaluateAsInt(result, ast))
      return 0;
    return unsigned(result.Val.getInt().getZExtValue());
  }

  /// The kernel-wide unique name of a local or parameter.
  std::string claim(const cl::VarDecl *v, const std::string &wish) {
    std::string name = wish;
    for (unsigned i = 1; taken.count(name); ++i)
      name = wish + "_" + std::to_string(i);
    taken.insert(name);
    nameOf[v] = name;
    return name;
  }

  //===--------------------------------------------------------------------===//
  // Types
  //===--------------------------------------------------------------------===//

  std::string typeText(cl::QualType type) {
    type = type.getUnqualifiedType();
    // Typedefs of the file keep their names; local and dependent ones are spelled out.
    if (auto *td = type->getAs<cl::TypedefType>())
      if (!td->getDecl()->getDeclContext()->isFileContext() || td->getDecl()->isTemplated())
        type = type.getCanonicalType().getUnqualifiedType();
    if (type->getAs<cl::AutoType>() || type->getAs<cl::DecltypeType>() || type->getAs<cl::SubstTemplateTypeParmType>())
      type = type.getCanonicalType().getUnqualifiedType();
    if (type->isPointerType()) {
      cl::QualType to = type->getPointeeType();
      std::string pointee = (to.isConstQualified() ? "const " : "") + std::string(to.isVolatileQualified() ? "volatile " : "") +
                            typeText(to);
      return pointee + (pointee.back() == '*' ? "*" : " *");
    }
    return type.getAsString(policy);
  }

  Type convert(cl::QualType type) {
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
    }
    return result;
  }

  std::vector<Param::Field> fieldsOf(cl::QualType type) {
    std::vector<Param::Field> result;
    const cl::RecordDecl *record = type->getAsRecordDecl();
    if (!record || !record->getDefinition() || record->isUnion())
      return result;
    const cl::ASTRecordLayout &layout = ast.getASTRecordLayout(record->getDefinition());
    for (const cl::FieldDecl *field : record->getDefinition()->fields())
      if (!field->isBitField() && !field->getType()->isReferenceType() &&
          (field->getAccess() == cl::AS_public || field->getAccess() == cl::AS_none))
        result.push_back({field->getNameAsString(), convert(field->getType()),
                          unsigned(layout.getFieldOffset(field->getFieldIndex()) / 8)});
    return result;
  }

  //===--------------------------------------------------------------------===//
  // Expressions
  //===--------------------------------------------------------------------===//

  std::shared_ptr<Expr> make(ExprKind kind, const cl::Expr *source, std::string text, std::vector<ExprRef> args = {}) {
    auto e = std::make_shared<Expr>();
    e->kind = kind;
    e->type = convert(source->getType());
    e->text = std::move(text);
    e->args = std::move(args);
    e->line = line(source->getExprLoc());
    return e;
  }

  ExprRef opaque(const cl::Expr *source) {
    std::string text;
    llvm::raw_string_ostream os(text);
    source->printPretty(os, nullptr, policy);
    auto e = make(ExprKind::Opaque, source, text);
    Mentions mentions(purity);
    mentions.TraverseStmt(const_cast<cl::Expr *>(source));
    e->pure = !mentions.impure;
    e->names = opaqueNames(mentions, source->getExprLoc());
    // Keep it whole wherever it is put.
    if (!llvm::isa<cl::ParenExpr>(source) && !llvm::isa<cl::CallExpr, cl::DeclRefExpr, cl::StringLiteral>(source))
      text = "(" + text + ")";
    e->text = text;
    return e;
  }

  std::set<std::string> opaqueNames(Mentions &mentions, cl::SourceLocation loc) {
    std::set<std::string> names;
    for (const cl::VarDecl *v : mentions.declared)
      if (v->isLocalVarDeclOrParm() && !nameOf.count(v))
        claim(v, v->getNameAsString());
    for (const cl::VarDecl *v : mentions.variables) {
      auto it = nameOf.find(v);
      if (it != nameOf.end() && it->second != v->getNameAsString())
        note(loc, "the name '" + v->getNameAsString() + "' is declared more than once and used in a construct that OptiML keeps verbatim");
      names.insert(v->getNameAsString());
    }
    return names;
  }

  static const cl::Expr *strip(const cl::Expr *e) {
    for (;;) {
      const cl::Expr *next = e;
      if (auto *x = llvm::dyn_cast<cl::ParenExpr>(e))
        next = x->getSubExpr();
      else if (auto *x = llvm::dyn_cast<cl::ImplicitCastExpr>(e))
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
      else if (auto *x = llvm::dyn_cast<cl::CXXConstructExpr>(e);
               x && x->getNumArgs() == 1 && x->getConstructor()->isCopyOrMoveConstructor() &&
               x->getConstructor()->isTrivial())
        next = x->getArg(0);
      if (next == e)
        return e;
      e = next;
    }
  }

  ExprRef intConstant(const cl::Expr *source) {
    cl::Expr::EvalResult result;
    if (!source->getType()->isIntegralOrEnumerationType() || source->isValueDependent() ||
        !source->EvaluateAsInt(result, ast) || result.HasSideEffects)
      return nullptr;
    auto e = make(ExprKind::IntLit, source, "");
    llvm::APSInt value = result.Val.getInt();
    e->value = value.isSigned() ? value.getSExtValue() : int64_t(value.getZExtValue());
    if (source->getType()->isEnumeralType() || e->type.bytes < 4)
      e->type = e->type.cls == Type::Class::Bool ? Type::makeBool() : Type::makeInt();
    return e;
  }

  ExprRef reference(const cl::DeclRefExpr *ref) {
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

  /// threadIdx.x and friends, which Clang's headers make properties.
  ExprRef builtinOf(const cl::PseudoObjectExpr *e) {
    auto *property = llvm::dyn_cast<cl::MSPropertyRefExpr>(strip(e->getSyntacticForm()));
    if (!property)
      return nullptr;
    auto *base = llvm::dyn_cast<cl::DeclRefExpr>(strip(property->getBaseExpr()));
    if (!base)
      return nullptr;
    return make(ExprKind::Builtin, e, base->getDecl()->getNameAsString() + "." + property->getPropertyDecl()->getNameAsString());
  }

  ExprRef floatLiteral(const cl::FloatingLiteral *literal) {
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

  ExprRef expression(const cl::Expr *source) {
    const cl::Expr *e = strip(source);
    if (auto *x = llvm::dyn_cast<cl::IntegerLiteral>(e))
      return intConstant(x);
    if (auto *x = llvm::dyn_cast<cl::CXXBoolLiteralExpr>(e))
      return intConstant(x);
    if (auto *x = llvm::dyn_cast<cl::CharacterLiteral>(e))
      return intConstant(x);
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
    if (auto *x = llvm::dyn_cast<cl::BinaryOperator>(e)) {
      if (x->getOpcode() == cl::BO_PtrMemD || x->getOpcode() == cl::BO_PtrMemI)
        return opaque(e);
      ExprRef left = expression(x->getLHS()), right = expression(x->getRHS());
      return make(x->isAssignmentOp() ? ExprKind::Assign : ExprKind::Binary, e, x->getOpcodeStr().str(), {left, right});
    }
    if (auto *x = llvm::dyn_cast<cl::ConditionalOperator>(e))
      return make(ExprKind::Cond, e, "", {expression(x->getCond()), expression(x->getTrueExpr()), expression(x->getFalseExpr())});
    if (auto *x = llvm::dyn_cast<cl::ArraySubscriptExpr>(e))
      return make(ExprKind::Subscript, e, "", {expression(x->getBase()), expression(x->getIdx())});
    if (auto *x = llvm::dyn_cast<cl::MemberExpr>(e)) {
      bool ofThis = llvm::isa<cl::CXXThisExpr>(strip(x->getBase()));
      if (!llvm::isa<cl::FieldDecl>(x->getMemberDecl()) || (ofThis && (!thisObject || x->getMemberDecl()->getAccess() != cl::AS_public)))
        return opaque(e); // a private member cannot be named in the kernel
      if (ofThis)
        return make(ExprKind::Member, e, x->getMemberDecl()->getNameAsString(), {thisObject});
      return make(ExprKind::Member, e, x->getMemberDecl()->getNameAsString(), {expression(x->getBase())});
    }
    if (auto *x = llvm::dyn_cast<cl::ExplicitCastExpr>(e)) {
      if (x->getType()->isRecordType() || x->getType()->isReferenceType() || x->getSubExpr()->getType()->isRecordType() ||
          llvm::isa<cl::InitListExpr>(strip(x->getSubExpr())))
        return opaque(e);
      std::string type = typeText(x->getTypeAsWritten());
      return make(ExprKind::Cast, e, type, {expression(x->getSubExpr())});
    }
    if (auto *x = llvm::dyn_cast<cl::CXXScalarValueInitExpr>(e))
      return make(ExprKind::Cast, e, typeText(x->getType()), {intLit(0)});
    if (auto *x = llvm::dyn_cast<cl::InitListExpr>(e)) {
      const cl::InitListExpr *form = x->isSemanticForm() && x->getSyntacticForm() ? x->getSyntacticForm() : x;
      std::vector<ExprRef> items;
      for (const cl::Expr *init : form->inits()) {
        if (llvm::isa<cl::DesignatedInitExpr>(init))
          return opaque(e);
        items.push_back(expression(init));
      }
      return make(ExprKind::InitList, x, "", items);
    }
    if (auto *x = llvm::dyn_cast<cl::CXXOperatorCallExpr>(e); x && x->getOperator() == cl::OO_Equal)
      if (auto *method = llvm::dyn_cast_or_null<cl::CXXMethodDecl>(x->getDirectCallee());
          method && method->isTrivial() && (method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator()))
        return make(ExprKind::Assign, e, "=", {expression(x->getArg(0)), expression(x->getArg(1))});
    if (auto *x = llvm::dyn_cast<cl::CallExpr>(e))
      if (ExprRef value = inlined(x))
        return value;
    if (auto *x = llvm::dyn_cast<cl::CallExpr>(e);
        x && !llvm::isa<cl::CXXMemberCallExpr, cl::CXXOperatorCallExpr, cl::UserDefinedLiteral>(e))
      return call(x);
    return opaque(e);
  }

  ExprRef unaryOperator(const cl::UnaryOperator *x) {
    ExprRef operand = expression(x->getSubExpr());
    switch (x->getOpcode()) {
    case cl::UO_PreInc:
      return make(ExprKind::IncDec, x, "++x", {operand});
    case cl::UO_PostInc:
      return make(ExprKind::IncDec, x, "x++", {operand});
    case cl::UO_PreDec:
      return make(ExprKind::IncDec, x, "--x", {operand});
    case cl::UO_PostDec:
      return make(ExprKind::IncDec, x, "x--", {operand});
    case cl::UO_Deref: // *(p + i) is p[i], *p is p[0]
      if (operand->kind == ExprKind::Binary && operand->text == "+") {
        bool left = operand->args[0]->type.isPointer();
        return make(ExprKind::Subscript, x, "", {operand->args[left ? 0 : 1], operand->args[left ? 1 : 0]});
      }
      return make(ExprKind::Subscript, x, "", {operand, intLit(0)});
    case cl::UO_Extension:
      return operand;
    default:
      return make(ExprKind::Unary, x, cl::UnaryOperator::getOpcodeStr(x->getOpcode()).str(), {operand});
    }
  }

  static bool sameValues(const Type &a, const Type &b) {
    return a.cls == b.cls && a.bytes == b.bytes && a.isSigned == b.isSigned;
  }

  /// `e` converted to the type of a parameter or result.
  ExprRef converted(const ExprRef &e, cl::QualType to) {
    Type type = convert(to.getUnqualifiedType());
    if (sameValues(e->type, type))
      return e;
    auto cast = std::make_shared<Expr>();
    cast->kind = ExprKind::Cast;
    cast->type = type;
    cast->text = type.text;
    cast->args = {e};
    cast->line = e->line;
    return cast;
  }

  /// Functions that compute an index ("return y * width + x;") are read as that expression, so that transforms see the
  /// arithmetic. Null for any other call.
  ExprRef inlined(const cl::CallExpr *x) {
    const cl::FunctionDecl *fn = x->getDirectCallee();
    if (!fn || inlining >= 8 || !fn->getReturnType()->isIntegralOrEnumerationType() || fn->getReturnType()->isBooleanType() ||
        fn->isVariadic() || fn->getBuiltinID() || sm.isInSystemHeader(fn->getLocation()) || !fn->hasBody(fn) ||
        !purity.isPure(fn))
      return nullptr;
    auto *body = llvm::dyn_cast<cl::CompoundStmt>(fn->getBody());
    auto *result = body && body->size() == 1 ? llvm::dyn_cast<cl::ReturnStmt>(body->body_front()) : nullptr;
    if (!result || !result->getRetValue() || x->getNumArgs() < fn->getNumParams())
      return nullptr;
    ExprRef object;
    if (auto *member = llvm::dyn_cast<cl::CXXMemberCallExpr>(x)) {
      object = expression(member->getImplicitObjectArgument());
      if (object->kind != ExprKind::Var && object->kind != ExprKind::Member)
        return nullptr;
    } else if (llvm::isa<cl::CXXOperatorCallExpr>(x) || fn->isCXXInstanceMember()) {
      return nullptr;
    }
    std::map<const cl::VarDecl *, ExprRef> values;
    for (unsigned i = 0; i < fn->getNumParams(); ++i) {
      cl::QualType type = fn->getParamDecl(i)->getType();
      if (!type->isIntegralOrEnumerationType())
        return nullptr;
      ExprRef value = expression(x->getArg(i));
      bool plain = true; // it may be evaluated several times, or not at all
      walk(value, [&](const ExprRef &e) {
        plain &= e->pure && e->kind != ExprKind::Assign && e->kind != ExprKind::IncDec;
      });
      if (!plain)
        return nullptr;
      values[fn->getParamDecl(i)] = converted(value, type);
    }
    std::swap(arguments, values);
    std::swap(thisObject, object);
    ++inlining;
    ExprRef e = converted(expression(result->getRetValue()), fn->getReturnType());
    --inlining;
    std::swap(arguments, values);
    std::swap(thisObject, object);
    bool whole = true; // text that is kept verbatim has the function's names
    walk(e, [&](const ExprRef &part) { whole &= part->kind != ExprKind::Opaque; });
    return whole ? e : nullptr;
  }

  ExprRef call(const cl::CallExpr *x) {
    const cl::FunctionDecl *fn = x->getDirectCallee();
    if (!fn)
      return opaque(x);
    for (const cl::ParmVarDecl *param : fn->parameters()) // a reference binds to the variable itself
      if (param->getType()->isReferenceType() && !param->getType()->getPointeeType().isConstQualified())
        return opaque(x);
    std::string name;
    llvm::raw_string_ostream os(name);
    strip(x->getCallee())->printPretty(os, nullptr, policy);
    std::vector<ExprRef> args;
    for (const cl::Expr *arg : x->arguments())
      if (!llvm::isa<cl::CXXDefaultArgExpr>(arg))
        args.push_back(expression(arg));
    auto e = make(ExprKind::Call, x, name, args);
    e->pure = purity.isPure(fn);
    e->isAtomic = fn->getIdentifier() && fn->getName().starts_with("atomic") && sm.isInSystemHeader(sm.getExpansionLoc(fn->getLocation()));
    return e;
  }

  //===--------------------------------------------------------------------===//
  // Statements
  //===--------------------------------------------------------------------===//

  StmtRef newStmt(StmtKind kind, const cl::Stmt *source) {
    auto s = std::make_shared<Stmt>();
    s->kind = kind;
    s->line = line(source->getBeginLoc());
    return s;
  }

  StmtRef body(const cl::Stmt *source) {
    StmtRef b = block();
    if (source)
      statement(source, b->body, /*flatten=*/true);
    return b;
  }

  void declaration(const cl::VarDecl *v, const cl::Stmt *source, std::vector<StmtRef> &out) {
    if (v->getType()->isReferenceType() || v->isStaticLocal() != v->hasAttr<cl::CUDASharedAttr>()) {
      if (!v->hasAttr<cl::CUDASharedAttr>())
        return opaqueStmt(source, out);
    }
    StmtRef s = newStmt(StmtKind::Decl, source);
    s->isShared = v->hasAttr<cl::CUDASharedAttr>();
    s->isExtern = s->isShared && v->hasExternalStorage();
    cl::QualType type = v->getType();
    while (const cl::ArrayType *array = ast.getAsArrayType(type)) {
      if (auto *constant = llvm::dyn_cast<cl::ConstantArrayType>(array))
        s->dims.push_back(intLit(int64_t(constant->getSize().getZExtValue())));
      else if (llvm::isa<cl::IncompleteArrayType>(array))
        s->dims.push_back(nullptr);
      else
        return opaqueStmt(source, out);
      type = array->getElementType();
    }
    s->type = convert(type);
    if (auto *aligned = v->getAttr<cl::AlignedAttr>())
      s->align = aligned->getAlignment(ast) / 8;
    if (const cl::Expr *init = v->getInit()) {
      const cl::Expr *stripped = strip(init);
      auto *construct = llvm::dyn_cast<cl::CXXConstructExpr>(stripped);
      bool trivialDefault = construct && construct->getNumArgs() == 0 && construct->getConstructor()->isTrivial();
      if (construct && !trivialDefault)
        return opaqueStmt(source, out);
      if (!trivialDefault)
        s->expr = expression(init);
    }
    s->text = claim(v, v->getNameAsString());
    out.push_back(s);
  }

  void opaqueStmt(const cl::Stmt *source, std::vector<StmtRef> &out) {
    StmtRef s = newStmt(StmtKind::Opaque, source);
    llvm::raw_string_ostream os(s->text);
    source->printPretty(os, nullptr, policy);
    while (!s->text.empty() && s->text.back() == '\n')
      s->text.pop_back();
    if (llvm::isa<cl::Expr>(source))
      s->text += ";";
    Mentions mentions(purity);
    mentions.TraverseStmt(const_cast<cl::Stmt *>(source));
    s->mayBarrier = mentions.impure;
    s->names = opaqueNames(mentions, source->getBeginLoc());
    for (const cl::VarDecl *v : mentions.declared)
      s->names.insert(v->getNameAsString());
    out.push_back(s);
  }

  static int unrollHint(const cl::AttributedStmt *attributed) {
    for (const cl::Attr *attr : attributed->getAttrs())
      if (auto *hint = llvm::dyn_cast<cl::LoopHintAttr>(attr)) {
        if (hint->getOption() == cl::LoopHintAttr::Unroll)
          return hint->getState() == cl::LoopHintAttr::Disable ? 1 : FullUnroll;
        if (hint->getOption() == cl::LoopHintAttr::UnrollCount)
          if (const cl::Expr *value = hint->getValue())
            if (auto *literal = llvm::dyn_cast<cl::IntegerLiteral>(strip(value)))
              return int(literal->getValue().getZExtValue());
      }
    return -2;
  }

  void loop(const cl::ForStmt *source, std::vector<StmtRef> &out, int unroll) {
    std::vector<StmtRef> init;
    if (source->getInit())
      statement(source->getInit(), init, false);
    if (source->getConditionVariable())
      return opaqueStmt(source, out);
    // Sibling loops may share the name of their variable: it is free again when the loop ends.
    struct Release {
      Reader &reader;
      std::string name;
      ~Release() {
        if (!name.empty())
          reader.taken.erase(name);
      }
    } release{*this, ""};
    if (init.size() == 1 && init[0]->kind == StmtKind::Decl)
      release.name = init[0]->text;
    StmtRef s = newStmt(StmtKind::For, source);
    s->unroll = unroll;
    if (init.size() == 1 && (init[0]->kind == StmtKind::Decl || init[0]->kind == StmtKind::Expr)) {
      s->init = init[0];
      init.clear();
    }
    if (source->getCond())
      s->expr = expression(source->getCond());
    if (source->getInc())
      s->step = expression(source->getInc());
    s->body = {body(source->getBody())};
    out.insert(out.end(), init.begin(), init.end()); // names are unique, so the scope may widen
    out.push_back(s);
  }

  void statement(const cl::Stmt *source, std::vector<StmtRef> &out, bool flatten) {
    if (auto *x = llvm::dyn_cast<cl::CompoundStmt>(source)) {
      // Names are unique within the kernel, so inner scopes need no braces of their own.
      for (const cl::Stmt *child : x->body())
        statement(child, out, true);
      return;
    }
    if (llvm::isa<cl::NullStmt>(source))
      return;
    if (auto *x = llvm::dyn_cast<cl::DeclStmt>(source)) {
      for (const cl::Decl *decl : x->decls()) {
        if (auto *v = llvm::dyn_cast<cl::VarDecl>(decl)) {
          if (x->isSingleDecl() || simple(v)) {
            declaration(v, x, out);
            continue;
          }
          return opaqueStmt(x, out);
        }
        if (llvm::isa<cl::TypedefNameDecl, cl::UsingDecl, cl::UsingDirectiveDecl, cl::StaticAssertDecl>(decl))
          continue; // types are spelled out where they are used
        return opaqueStmt(x, out);
      }
      return;
    }
    if (auto *x = llvm::dyn_cast<cl::AttributedStmt>(source)) {
      int unroll = unrollHint(x);
      if (auto *f = llvm::dyn_cast<cl::ForStmt>(x->getSubStmt()); f && unroll > -2)
        return loop(f, out, unroll);
      return statement(x->getSubStmt(), out, flatten);
    }
    if (auto *x = llvm::dyn_cast<cl::ForStmt>(source))
      return loop(x, out, NoUnroll);
    if (auto *x = llvm::dyn_cast<cl::WhileStmt>(source)) {
      if (x->getConditionVariable())
        return opaqueStmt(source, out);
      StmtRef s = newStmt(StmtKind::While, x);
      s->expr = expression(x->getCond());
      s->body = {body(x->getBody())};
      out.push_back(s);
      return;
    }
    if (auto *x = llvm::dyn_cast<cl::DoStmt>(source)) {
      StmtRef s = newStmt(StmtKind::Do, x);
      s->expr = expression(x->getCond());
      s->body = {body(x->getBody())};
      out.push_back(s);
      return;
    }
    if (auto *x = llvm::dyn_cast<cl::IfStmt>(source)) {
      if (x->getInit() || x->getConditionVariable())
        return opaqueStmt(source, out);
      if (x->isConstexpr()) { // an instantiation has only the branch that was taken
        if (auto taken = x->getNondiscardedCase(ast)) {
          if (*taken)
            statement(*taken, out, true);
          return;
        }
      }
      StmtRef s = newStmt(StmtKind::If, x);
      s->expr = expression(x->getCond());
      s->body = {body(x->getThen())};
      if (x->getElse())
        s->body.push_back(body(x->getElse()));
      out.push_back(s);
      return;
    }
    if (auto *x = llvm::dyn_cast<cl::ReturnStmt>(source)) {
      out.push_back(newStmt(StmtKind::Return, x));
      return;
    }
    if (llvm::isa<cl::BreakStmt>(source)) {
      out.push_back(newStmt(StmtKind::Break, source));
      return;
    }
    if (llvm::isa<cl::ContinueStmt>(source)) {
      out.push_back(newStmt(StmtKind::Continue, source));
      return;
    }
    if (auto *x = llvm::dyn_cast<cl::Expr>(source)) {
      const cl::Expr *e = strip(x);
      if (auto *c = llvm::dyn_cast<cl::CallExpr>(e))
        if (const cl::FunctionDecl *fn = c->getDirectCallee(); fn && fn->getNameAsString() == "__syncthreads") {
          out.push_back(newStmt(StmtKind::Barrier, e));
          return;
        }
      StmtRef s = newStmt(StmtKind::Expr, source);
      s->expr = expression(e);
      out.push_back(s);
      return;
    }
    opaqueStmt(source, out);
  }

  /// A declaration that `declaration` keeps as a tree (so that one of several in a statement can stand alone).
  bool simple(const cl::VarDecl *v) {
    if (v->getType()->isReferenceType() || (v->isStaticLocal() && !v->hasAttr<cl::CUDASharedAttr>()))
      return false;
    auto *construct = v->getInit() ? llvm::dyn_cast<cl::CXXConstructExpr>(strip(v->getInit())) : nullptr;
    return !construct || (construct->getNumArgs() == 0 && construct->getConstructor()->isTrivial());
  }
};
} // namespace

llvm::Expected<std::shared_ptr<Kernel>> optiml::readKernel(const Program &program, const KernelDecl &kernel) {
  if (!kernel.decl || !kernel.decl->getBody())
    return llvm::make_error<NotApplicable>("kernel '" + kernel.name + "' has no body here",
                                           llvm::formatv("{0}:{1}", kernel.file, kernel.line).str());
  return Reader(program.ast()).read(kernel);
}
