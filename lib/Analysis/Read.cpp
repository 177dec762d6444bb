//===- Read.cpp - from Clang's AST to a kernel tree -----------------------===//
//
// One case a statement or expression class. What has no place in the tree becomes opaque text with the names it
// mentions; what cannot even be kept as text (a renamed variable inside opaque text) is NotApplicable.
//
//===----------------------------------------------------------------------===//
#include "optiml/Analysis/Read.h"
#include "Inlining.h"
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
  bool impure = false, usesThis = false;
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
    usesThis |= llvm::isa<cl::CXXThisExpr>(s);
    return true;
  }
};

class Reader {
public:
  /// `followReferences`: local references are read as what they refer to.
  Reader(cl::ASTContext &ast, bool followReferences)
      : followReferences(followReferences), ast(ast), sm(ast.getSourceManager()), purity(ast), policy(ast.getLangOpts()) {
    policy.SuppressTagKeyword = true;
    policy.FullyQualifiedName = true;
    policy.Bool = true;
    policy.PrintAsCanonical = false;
    policy.SuppressUnwrittenScope = true;
  }

  llvm::Expected<std::shared_ptr<Kernel>> read(const KernelDecl &source) {
    const cl::FunctionDecl *fn = kernelDecl = source.decl;
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
    removeUnusedClosures(*kernel);
    normalize(*kernel);
    return kernel;
  }

private:
  bool followReferences;
  cl::ASTContext &ast;
  cl::SourceManager &sm;
  PurityAnalysis purity;
  cl::PrintingPolicy policy;
  std::map<const cl::VarDecl *, std::string> nameOf;
  std::set<std::string> taken, closures;
  std::string problem, place;
  const cl::FunctionDecl *kernelDecl = nullptr;
  const cl::CompoundStmt *scope = nullptr; ///< what is being read stands in it
  // While functions are read in place of calls of them (the innermost last): what their parameters and `this` stand for.
  std::map<const cl::VarDecl *, ExprRef> arguments;
  ExprRef thisObject;
  std::vector<const cl::FunctionDecl *> inlining;
  /// Where the body of a called function may go.
  struct HoistPoint {
    std::vector<StmtRef> *before = nullptr; ///< the statement that holds the call comes next; null: nowhere
    const cl::Expr *whole = nullptr;        ///< what the statement evaluates last but for storing it in a local
  } hoist;

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
  std::string claim(const cl::VarDecl *v, const std::string &wish) { return nameOf[v] = uniqueName(wish); }
  std::string uniqueName(const std::string &wish) {
    std::string name = wish;
    for (unsigned i = 1; taken.count(name); ++i)
      name = wish + "_" + std::to_string(i);
    taken.insert(name);
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
    if (mentions.usesThis && !inlining.empty())
      note(loc, "the object of a function that is read in place is used in a construct that OptiML keeps verbatim");
    for (const cl::VarDecl *v : mentions.variables) {
      if (arguments.count(v))
        note(loc, "a parameter of a function that is read in place is used in a construct that OptiML keeps verbatim");
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
      ExprRef left = expression(x->getLHS());
      bool always = !x->isLogicalOp() && x->getOpcode() != cl::BO_Comma;
      ExprRef right = always ? expression(x->getRHS()) : inPlace(x->getRHS());
      return make(x->isAssignmentOp() ? ExprKind::Assign : ExprKind::Binary, e, x->getOpcodeStr().str(), {left, right});
    }
    if (auto *x = llvm::dyn_cast<cl::ConditionalOperator>(e))
      return make(ExprKind::Cond, e, "", {expression(x->getCond()), inPlace(x->getTrueExpr()), inPlace(x->getFalseExpr())});
    if (auto *x = llvm::dyn_cast<cl::ArraySubscriptExpr>(e)) {
      auto [base, offset] = splitPointer(expression(x->getBase()));
      return make(ExprKind::Subscript, e, "", {base, joinOffsets(offset, expression(x->getIdx()))});
    }
    if (auto *x = llvm::dyn_cast<cl::MemberExpr>(e)) {
      bool ofThis = llvm::isa<cl::CXXThisExpr>(strip(x->getBase()));
      bool hidden = x->getMemberDecl()->getAccess() != cl::AS_public && x->getMemberDecl()->getAccess() != cl::AS_none;
      if (hidden && !inlining.empty())
        note(x->getExprLoc(), "a private member cannot be named in the kernel");
      if (!llvm::isa<cl::FieldDecl>(x->getMemberDecl()) || (ofThis && !thisObject))
        return opaque(e);
      ExprRef object = ofThis ? thisObject : expression(x->getBase());
      if (x->isArrow())
        object = pointedTo(object);
      return make(ExprKind::Member, e, x->getMemberDecl()->getNameAsString(), {object});
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
    if (auto *x = llvm::dyn_cast<cl::CXXOperatorCallExpr>(e))
      if (ExprRef stored = recordAssignment(x))
        return stored;
    if (auto *x = llvm::dyn_cast<cl::CallExpr>(e); x && !x->getType()->isVoidType())
      if (auto value = inlined(x))
        return *value;
    if (auto *x = llvm::dyn_cast<cl::CallExpr>(e);
        x && !llvm::isa<cl::CXXMemberCallExpr, cl::CXXOperatorCallExpr, cl::UserDefinedLiteral>(e))
      return call(x);
    return opaque(e);
  }

  /// p + i or &p[i], as {p, i}; anything else as {it, null}.
  static std::pair<ExprRef, ExprRef> splitPointer(const ExprRef &e) {
    if (e->kind == ExprKind::Unary && e->text == "&" && e->args[0]->kind == ExprKind::Subscript &&
        e->args[0]->args[0]->kind == ExprKind::Var)
      return {e->args[0]->args[0], e->args[0]->args[1]};
    if (e->kind != ExprKind::Binary || e->text != "+" || !e->type.isPointer())
      return {e, nullptr};
    bool left = e->args[0]->type.isPointer();
    auto [base, offset] = splitPointer(e->args[left ? 0 : 1]);
    return {base, joinOffsets(offset, e->args[left ? 1 : 0])};
  }
  /// The index that is `offset` and `index` in sequence. Pointers are moved in 64 bits, where narrower types might wrap.
  static ExprRef joinOffsets(const ExprRef &offset, const ExprRef &index) {
    auto literal = [](const ExprRef &e) { return constantValue(e).value_or(-1); };
    if (!offset || literal(offset) == 0)
      return index;
    if (literal(index) == 0)
      return offset;
    bool wide = offset->type.bytes == 8 || index->type.bytes == 8;
    if (offset->kind == ExprKind::IntLit)
      return add(index, wide || literal(index) > 0 ? offset : intLit(offset->value, Type::makeLong()));
    return add(wide ? offset : castTo(Type::makeLong(), offset), index);
  }
  /// What a pointer leads to, where that can be said without following it: &a, or p + i. Else the pointer itself.
  ExprRef pointedTo(const ExprRef &pointer) {
    if (pointer->kind == ExprKind::Unary && pointer->text == "&")
      return pointer->args[0];
    auto [base, offset] = splitPointer(pointer);
    return offset && base->type.pointee ? subscript(base, offset, *base->type.pointee) : pointer;
  }

  ExprRef unaryOperator(const cl::UnaryOperator *x) {
    if (x->getOpcode() == cl::UO_Deref && thisObject && !thisObject->type.isPointer() &&
        llvm::isa<cl::CXXThisExpr>(strip(x->getSubExpr())))
      return thisObject; // *this
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
    case cl::UO_Deref: // *(p + i) is p[i], *p is p[0], *&a is a
      if (ExprRef place = pointedTo(operand); place != operand)
        return place;
      return make(ExprKind::Subscript, x, "", {operand, intLit(0)});
    case cl::UO_Extension:
      return operand;
    default:
      return make(ExprKind::Unary, x, cl::UnaryOperator::getOpcodeStr(x->getOpcode()).str(), {operand});
    }
  }

  std::map<const cl::FunctionDecl *, CalleeFacts> calleeFacts;

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

  //===--------------------------------------------------------------------===//
  // Functions in place of their calls
  //
  // A helper that touches memory, and any method, is read where it is called: transforms then see its accesses. What
  // only computes stays a call, but for index arithmetic. A body that is one expression takes the call's place; any other
  // goes before the statement, which is right when nothing in that statement that runs earlier has effects. What the
  // helper itself writes must be all that the statement evaluates.
  //===--------------------------------------------------------------------===//

  /// `source` where it stands, as it may not run, or several times: no function's body can go before it.
  ExprRef inPlace(const cl::Expr *source) {
    HoistPoint saved = std::exchange(hoist, {});
    ExprRef e = expression(source);
    hoist = saved;
    return e;
  }

  /// The expression of a statement that is going to be appended to `out`.
  ExprRef hoisted(const cl::Expr *source, std::vector<StmtRef> &out) {
    HoistPoint saved = std::exchange(hoist, hoistPoint(source, out));
    ExprRef e = expression(source);
    hoist = saved;
    return e;
  }

  HoistPoint hoistPoint(const cl::Expr *source, std::vector<StmtRef> &out) {
    const cl::Expr *e = strip(source), *value = e;
    if (auto *op = llvm::dyn_cast<cl::BinaryOperator>(e); op && op->isAssignmentOp()) {
      bool plain = op->getOpcode() == cl::BO_Assign && llvm::isa<cl::DeclRefExpr>(strip(op->getLHS()));
      value = plain ? strip(op->getRHS()) : nullptr;
    }
    struct Effects : cl::RecursiveASTVisitor<Effects> {
      Reader *reader;
      const cl::Expr *statement, *value;
      bool found = false;
      bool VisitBinaryOperator(cl::BinaryOperator *op) {
        found |= op->isAssignmentOp() && op != statement;
        return true;
      }
      bool VisitUnaryOperator(cl::UnaryOperator *op) {
        found |= op->isIncrementDecrementOp();
        return true;
      }
      bool VisitCallExpr(cl::CallExpr *call) {
        found |= call != statement && call != value && !reader->purity.isPure(call->getDirectCallee()) && !reader->readable(call);
        return true;
      }
    } effects;
    effects.reader = this;
    effects.statement = e;
    effects.value = value;
    effects.TraverseStmt(const_cast<cl::Expr *>(e));
    if (effects.found)
      return {};
    return {&out, value};
  }

  const CalleeFacts &factsOf(const cl::FunctionDecl *definition) {
    auto [it, added] = calleeFacts.try_emplace(definition);
    if (added)
      it->second = examineCallee(definition);
    return it->second;
  }

  /// The definition that could be read in place of the call, as far as it alone decides; or null.
  const cl::FunctionDecl *readable(const cl::CallExpr *x) {
    const cl::FunctionDecl *fn = x->getDirectCallee();
    if (!fn || inlining.size() >= 8 || fn->isVariadic() || fn->getBuiltinID() || !fn->hasBody(fn) ||
        sm.isInSystemHeader(sm.getExpansionLoc(fn->getLocation())) || llvm::is_contained(inlining, fn) ||
        fn->hasAttr<cl::NoInlineAttr>() || fn->hasAttr<cl::CUDAGlobalAttr>())
      return nullptr;
    auto *method = llvm::dyn_cast<cl::CXXMethodDecl>(fn);
    if (method && (method->isVirtual() || llvm::isa<cl::CXXConstructorDecl, cl::CXXDestructorDecl, cl::CXXConversionDecl>(fn)))
      return nullptr;
    // What it names must be declared where the new kernel stands.
    if (!sm.isBeforeInTranslationUnit(sm.getExpansionLoc(fn->getBody()->getBeginLoc()), sm.getExpansionLoc(kernelDecl->getBody()->getEndLoc())))
      return nullptr;
    return factsOf(fn).refusal.empty() ? fn : nullptr;
  }

  /// The body as [if (c) return a;]… return b;  with the conditions and values in order. Empty when it is anything else.
  static std::vector<const cl::Expr *> returnedValues(const cl::FunctionDecl *fn) {
    std::vector<const cl::Expr *> result;
    auto returned = [](const cl::Stmt *s) -> const cl::Expr * {
      if (auto *b = llvm::dyn_cast_or_null<cl::CompoundStmt>(s); b && b->size() == 1)
        s = b->body_front();
      auto *r = llvm::dyn_cast_or_null<cl::ReturnStmt>(s);
      return r ? r->getRetValue() : nullptr;
    };
    auto *body = llvm::dyn_cast<cl::CompoundStmt>(fn->getBody());
    if (!body || fn->getReturnType()->isVoidType())
      return {};
    std::vector<const cl::Stmt *> list(body->body_begin(), body->body_end());
    for (size_t i = 0; i < list.size(); ++i) {
      if (const cl::Expr *value = returned(list[i])) {
        result.push_back(value);
        return i + 1 == list.size() ? result : std::vector<const cl::Expr *>();
      }
      auto *branch = llvm::dyn_cast<cl::IfStmt>(list[i]);
      const cl::Expr *value = branch && !branch->isConstexpr() && !branch->getInit() && !branch->getConditionVariable()
                                  ? returned(branch->getThen()) : nullptr;
      if (!value)
        return {};
      result.insert(result.end(), {branch->getCond(), value});
      if (const cl::Stmt *otherwise = branch->getElse())
        list.insert(list.begin() + long(i) + 1, otherwise);
    }
    return {};
  }

  /// A call's arguments: the object, and an expression or a new local for every parameter.
  struct Binding {
    ExprRef object;
    std::map<const cl::VarDecl *, ExprRef> values;
    std::vector<std::pair<const cl::ParmVarDecl *, ExprRef>> locals;
    std::set<std::string> changed; ///< variables of the caller that the function changes
    bool loads = false;            ///< it takes a load to find a place that a reference stands for
  };

  /// The lambda's copies of variables equal the variables.
  bool capturesHold(const cl::CXXRecordDecl *lambda) {
    for (const cl::LambdaCapture &capture : lambda->captures()) {
      if (!capture.capturesVariable())
        return false;
      auto *v = llvm::dyn_cast<cl::VarDecl>(capture.getCapturedVar());
      bool copy = capture.getCaptureKind() == cl::LCK_ByCopy;
      if (!v || v->isInitCapture() || (copy && v->getType()->isReferenceType()) ||
          (copy && factsOf(kernelDecl).modified.count(v)))
        return false;
    }
    return true;
  }

  std::optional<Binding> bindObject(const cl::CallExpr *x, const cl::FunctionDecl *fn, unsigned &firstArgument) {
    Binding binding;
    auto *method = llvm::dyn_cast<cl::CXXMethodDecl>(fn);
    firstArgument = method && llvm::isa<cl::CXXOperatorCallExpr>(x);
    if (!method || !method->isInstance())
      return binding;
    if (method->getParent()->isLambda())
      return capturesHold(method->getParent()) ? std::optional(binding) : std::nullopt;
    const cl::Expr *object = firstArgument ? x->getArg(0) : nullptr;
    if (auto *member = llvm::dyn_cast<cl::CXXMemberCallExpr>(x))
      object = member->getImplicitObjectArgument();
    if (!object)
      return std::nullopt;
    if (method->getParent()->isEmpty())
      return binding;
    binding.object = llvm::isa<cl::CXXThisExpr>(strip(object)) ? thisObject : expression(object);
    if (binding.object && binding.object->kind == ExprKind::Unary && binding.object->text == "&")
      binding.object = binding.object->args[0];
    if (!binding.object || (!isPlace(binding.object) && !(binding.object->type.isPointer() && !hasEffects(binding.object))))
      return std::nullopt;
    binding.loads = placeLoads(binding.object);
    if (!method->isConst())
      binding.changed.insert(placeRoot(binding.object));
    return binding;
  }

  static bool isTemporary(const cl::Expr *e) {
    while (auto *cast = llvm::dyn_cast<cl::ImplicitCastExpr>(e->IgnoreParens()))
      e = cast->getSubExpr();
    return e->isPRValue() || llvm::isa<cl::MaterializeTemporaryExpr>(e->IgnoreParens());
  }

  /// The same whenever it is evaluated while the function runs, and short enough to be written several times.
  bool isSimple(const ExprRef &e) {
    if (e->type.isPointer() && e->kind != ExprKind::Var)
      return isOffset(e);
    if (e->kind == ExprKind::Cast || e->kind == ExprKind::Unary)
      return e->type.cls != Type::Class::Record && isSimple(e->args[0]);
    return e->kind == ExprKind::IntLit || e->kind == ExprKind::FloatLit || e->kind == ExprKind::Builtin ||
           (e->kind == ExprKind::Var && taken.count(e->text));
  }

  /// p + i with an i that only computes: a[k] is then p[i + k].
  bool isOffset(const ExprRef &e) {
    auto [base, offset] = splitPointer(e);
    if (!offset || base->kind != ExprKind::Var || !taken.count(base->text))
      return false;
    unsigned size = 0;
    bool computes = true;
    walk(offset, [&](const ExprRef &n) {
      ++size;
      computes &= n->type.isInt() && (n->kind == ExprKind::Unary || n->kind == ExprKind::Binary || n->kind == ExprKind::Cast || isSimple(n));
    });
    return computes && size <= 16;
  }

  bool bindParameter(const cl::ParmVarDecl *param, const cl::Expr *argument, const CalleeFacts &facts, bool oneExpression,
                     Binding &binding) {
    cl::QualType type = param->getType();
    auto use = facts.uses.find(param);
    bool changes = facts.modified.count(param);
    ExprRef value = expression(argument);
    if (hasEffects(value))
      return false;
    if (use == facts.uses.end())
      return true;
    if (type->isReferenceType() && !isTemporary(argument)) {
      if (!isPlace(value))
        return false;
      binding.loads |= placeLoads(value);
      if (changes)
        binding.changed.insert(placeRoot(value));
      binding.values[param] = value;
      return true;
    }
    type = type.getNonReferenceType();
    value = converted(value, type);
    // What is written at several places, or after something else ran, must be the same there.
    bool list = value->kind == ExprKind::InitList;
    bool brief = use->second <= 1 || type->isIntegralOrEnumerationType() || !hoist.before;
    if (!changes && !list && (isSimple(value) || (oneExpression && brief)))
      binding.values[param] = value;
    else if (hoist.before)
      binding.locals.emplace_back(param, value);
    else
      return false;
    return true;
  }

  std::optional<Binding> bindArguments(const cl::CallExpr *x, const cl::FunctionDecl *fn, bool oneExpression) {
    unsigned first = 0;
    auto binding = bindObject(x, fn, first);
    if (!binding || x->getNumArgs() - first < fn->getNumParams())
      return std::nullopt;
    const CalleeFacts &facts = factsOf(fn);
    for (unsigned i = 0; i < fn->getNumParams(); ++i)
      if (!bindParameter(fn->getParamDecl(i), x->getArg(first + i), facts, oneExpression, *binding))
        return std::nullopt;
    for (const cl::VarDecl *v : facts.modified) // by a lambda
      if (auto alias = arguments.find(v); alias != arguments.end())
        binding->changed.insert(placeRoot(alias->second));
      else if (auto it = nameOf.find(v); it != nameOf.end() && !llvm::is_contained(fn->parameters(), v))
        binding->changed.insert(it->second);
    // A value that names a changed variable would change as well; a reference to the variable itself does so anyway.
    for (const auto &[param, value] : binding->values)
      for (const std::string &name : binding->changed)
        if (mentions(value, name) && !(param->getType()->isReferenceType() && placeRoot(value) == name))
          return std::nullopt;
    return binding;
  }

  /// [if (c) return a;]… return b;  as  c ? a : b
  ExprRef valueOfReturns(const std::vector<const cl::Expr *> &parts, cl::QualType type) {
    auto result = [&](const cl::Expr *e, bool always) {
      ExprRef value = always ? expression(e) : inPlace(e);
      return type->isReferenceType() || type->isRecordType() ? value : converted(value, type);
    };
    if (parts.size() == 1)
      return result(parts[0], true);
    ExprRef first = expression(parts[0]), value = result(parts.back(), false);
    for (size_t i = parts.size() - 1; i >= 2; i -= 2) {
      ExprRef chosen = result(parts[i - 1], false), condition = i == 2 ? first : inPlace(parts[i - 2]);
      auto e = std::make_shared<Expr>(*conditional(condition, chosen, value));
      e->type = value->type;
      e->line = condition->line;
      value = e;
    }
    return value;
  }

  void returnValue(const cl::ReturnStmt *source, std::vector<StmtRef> &out) {
    cl::QualType type = inlining.back()->getReturnType();
    if (type->isVoidType()) { // return f();
      statement(source->getRetValue(), out, true);
      out.push_back(newStmt(StmtKind::Return, source));
      return;
    }
    ExprRef value = hoisted(source->getRetValue(), out);
    StmtRef s = newStmt(StmtKind::Return, source);
    s->expr = type->isRecordType() ? value : converted(value, type);
    out.push_back(s);
  }

  StmtRef local(const std::string &name, cl::QualType type, ExprRef value, const cl::Stmt *source) {
    StmtRef s = declStmt(name, convert(type), std::move(value));
    s->line = line(source->getBeginLoc());
    return s;
  }

  /// The statements of the function's body into `out`, and its value (null for none).
  std::optional<ExprRef> bodyInPlace(const cl::CallExpr *x, const cl::FunctionDecl *fn, std::vector<StmtRef> &out) {
    std::vector<StmtRef> list;
    statement(fn->getBody(), list, true);
    unsigned returns = 0, size = 0;
    for (const StmtRef &s : list)
      walk(*s, [&](Stmt &t) {
        ++size;
        returns += t.kind == StmtKind::Return;
      });
    if (size > 200)
      return std::nullopt;
    ExprRef value;
    if (returns == 1 && list.back()->kind == StmtKind::Return) {
      value = list.back()->expr;
      list.pop_back();
    } else if (returns || !fn->getReturnType()->isVoidType()) {
      if (!fn->getReturnType()->isVoidType()) {
        cl::QualType type = fn->getReturnType().getUnqualifiedType();
        std::string name = uniqueName("result");
        value = var(name, convert(type));
        out.push_back(local(name, type, nullptr, x));
      }
      if (!structureReturns(list, value))
        return std::nullopt;
    }
    out.insert(out.end(), list.begin(), list.end());
    return value;
  }

  std::optional<ExprRef> readInPlace(const cl::CallExpr *x, const cl::FunctionDecl *fn, std::vector<StmtRef> &made) {
    std::vector<const cl::Expr *> parts = returnedValues(fn);
    auto binding = bindArguments(x, fn, !parts.empty());
    if (!binding || (parts.empty() && (!hoist.before || fn->getReturnType()->isReferenceType())))
      return std::nullopt;
    for (auto &[param, value] : binding->locals) {
      cl::QualType type = param->getType().getNonReferenceType();
      if (auto *record = type->getAsCXXRecordDecl(); record && (!record->getIdentifier() || !record->isTriviallyCopyable()))
        return std::nullopt;
      made.push_back(local(claim(param, param->getNameAsString()), type, value, x));
    }
    auto outerArguments = arguments;
    for (auto &[param, value] : binding->values)
      arguments[param] = value;
    std::swap(thisObject, binding->object);
    inlining.push_back(fn);
    std::optional<ExprRef> value;
    if (parts.empty())
      value = bodyInPlace(x, fn, made);
    else
      value = valueOfReturns(parts, fn->getReturnType());
    inlining.pop_back();
    std::swap(thisObject, binding->object);
    arguments = outerArguments;
    if (value && *value && fn->getReturnType()->isReferenceType() && !isPlace(*value))
      return std::nullopt;
    if (binding->loads && writesOutside(made))
      return std::nullopt;
    return value;
  }

  /// The value of a call whose function is read in its place (null for none); nothing where it stays a call.
  std::optional<ExprRef> inlined(const cl::CallExpr *x) {
    const cl::FunctionDecl *fn = problem.empty() ? readable(x) : nullptr;
    bool method = llvm::isa<cl::CXXMemberCallExpr, cl::CXXOperatorCallExpr>(x);
    bool computes = fn && purity.isPure(fn) && !method &&
                    llvm::none_of(fn->parameters(), [](auto *p) { return p->getType()->isReferenceType(); });
    if (!fn || (computes && (!fn->getReturnType()->isIntegralOrEnumerationType() || fn->getReturnType()->isBooleanType())))
      return std::nullopt;
    auto names = nameOf;
    auto claimed = taken;
    std::vector<StmtRef> made;
    HoistPoint outer = std::exchange(hoist, {});
    if (outer.before && !computes)
      hoist.before = &made;
    auto value = readInPlace(x, fn, made);
    hoist = outer;
    bool good = value && problem.empty() && wholeTree(made) && (!*value || wholeTree(*value));
    bool writes = good && (writesOutside(made) || (*value && hasEffects(*value)));
    if (!good || (writes && x != outer.whole)) {
      nameOf = std::move(names);
      taken = std::move(claimed);
      problem.clear();
      place.clear();
      return std::nullopt;
    }
    if (*value && (*value)->kind == ExprKind::InitList && x != outer.whole) {
      std::string name = uniqueName("result");
      made.push_back(local(name, fn->getReturnType().getUnqualifiedType(), *value, x));
      value = var(name, made.back()->type);
    }
    if (outer.before)
      outer.before->insert(outer.before->end(), made.begin(), made.end());
    return value;
  }

  /// A call as a statement of its own, whose value nobody uses.
  bool inlinedStatement(const cl::CallExpr *x, const StmtRef &statement, std::vector<StmtRef> &out) {
    HoistPoint saved = std::exchange(hoist, hoistPoint(x, out));
    auto value = inlined(x);
    hoist = saved;
    if (!value)
      return false;
    statement->expr = *value;
    if (*value && hasEffects(*value))
      out.push_back(statement);
    return true;
  }

  /// a = b of structs that are copied byte by byte.
  ExprRef recordAssignment(const cl::CXXOperatorCallExpr *x) {
    auto *method = llvm::dyn_cast_or_null<cl::CXXMethodDecl>(x->getDirectCallee());
    if (!method || !(method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator()) || !method->isTrivial())
      return nullptr;
    ExprRef target = expression(x->getArg(0)), value = expression(x->getArg(1));
    if (!isPlace(target) || value->kind == ExprKind::InitList || value->kind == ExprKind::Opaque)
      return nullptr;
    return make(ExprKind::Assign, x, "=", {target, value});
  }

  /// How the kernel calls a function that one of another scope calls `written`.
  std::string nameInKernel(const cl::FunctionDecl *fn, const std::string &written) {
    const cl::DeclContext *scope = fn->getDeclContext()->getRedeclContext();
    if (fn->getAccess() == cl::AS_private || fn->getAccess() == cl::AS_protected)
      note(fn->getLocation(), "a private function cannot be called in the kernel");
    if (scope->isTranslationUnit() || fn->isExternC())
      return written;
    std::string name = fn->getQualifiedNameAsString();
    static const std::string anonymous = "(anonymous namespace)::";
    for (size_t at; (at = name.find(anonymous)) != std::string::npos;)
      name.erase(at, anonymous.size());
    size_t arguments = written.find('<');
    return arguments == std::string::npos ? name : name + written.substr(arguments);
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
    if (!inlining.empty())
      name = nameInKernel(fn, name);
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
    if (v->getType()->isReferenceType() && reference(v, out))
      return;
    if (v->getType()->isReferenceType() || v->isStaticLocal() != v->hasAttr<cl::CUDASharedAttr>()) {
      if (!v->hasAttr<cl::CUDASharedAttr>())
        return opaqueStmt(source, out);
    }
    if (auto *record = v->getType()->getAsCXXRecordDecl(); record && record->isLambda())
      return closure(v, source, out);
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
        s->expr = hoisted(init, out);
    }
    s->text = claim(v, v->getNameAsString());
    out.push_back(s);
  }

  /// "const T &r = a[i];" where a[i] is the same element as long as r lives: r is read as a[i].
  bool reference(const cl::VarDecl *v, std::vector<StmtRef> &out) {
    if (!followReferences || !scope || v->isStaticLocal() || !v->getInit() || isTemporary(v->getInit()))
      return false;
    ExprRef place = hoisted(v->getInit(), out);
    if (!isPlace(place) || placeLoads(place) || !wholeTree(place))
      return false;
    CalleeFacts facts = examineStatement(scope);
    for (const cl::VarDecl *changed : facts.modified) {
      auto it = nameOf.find(changed);
      if (it != nameOf.end() && mentions(place, it->second) && placeRoot(place) != it->second && !changed->getType()->isArrayType())
        return false;
    }
    arguments[v] = place;
    return true;
  }

  /// A lambda, kept verbatim as long as something names it. Its own names stay within it.
  void closure(const cl::VarDecl *v, const cl::Stmt *source, std::vector<StmtRef> &out) {
    auto names = nameOf;
    auto claimed = taken;
    opaqueStmt(source, out);
    nameOf = std::move(names);
    taken = std::move(claimed);
    closures.insert(claim(v, v->getNameAsString()));
  }
  void removeUnusedClosures(Kernel &kernel) {
    for (const std::string &name : closures) {
      auto declares = [&](const StmtRef &s) { return s->kind == StmtKind::Opaque && s->names.count(name); };
      unsigned mentioned = 0, declared = 0;
      walkExprs(*kernel.body, [&](const ExprRef &e) { mentioned += e->names.count(name) || (e->kind == ExprKind::Var && e->text == name); });
      walk(*kernel.body, [&](Stmt &s) { declared += s.kind == StmtKind::Opaque && s.names.count(name); });
      if (!mentioned && declared == 1)
        walk(*kernel.body, [&](Stmt &s) { std::erase_if(s.body, declares); });
    }
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
      s->expr = inPlace(source->getCond());
    if (source->getInc())
      s->step = inPlace(source->getInc());
    s->body = {body(source->getBody())};
    out.insert(out.end(), init.begin(), init.end()); // names are unique, so the scope may widen
    out.push_back(s);
  }

  void statement(const cl::Stmt *source, std::vector<StmtRef> &out, bool flatten) {
    if (auto *x = llvm::dyn_cast<cl::CompoundStmt>(source)) {
      // Names are unique within the kernel, so inner scopes need no braces of their own.
      const cl::CompoundStmt *outer = std::exchange(scope, x);
      for (const cl::Stmt *child : x->body())
        statement(child, out, true);
      scope = outer;
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
      s->expr = inPlace(x->getCond());
      s->body = {body(x->getBody())};
      out.push_back(s);
      return;
    }
    if (auto *x = llvm::dyn_cast<cl::DoStmt>(source)) {
      StmtRef s = newStmt(StmtKind::Do, x);
      s->expr = inPlace(x->getCond());
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
      s->expr = hoisted(x->getCond(), out);
      s->body = {body(x->getThen())};
      if (x->getElse())
        s->body.push_back(body(x->getElse()));
      out.push_back(s);
      return;
    }
    if (auto *x = llvm::dyn_cast<cl::ReturnStmt>(source)) {
      if (!inlining.empty() && x->getRetValue())
        return returnValue(x, out);
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
      if (auto *c = llvm::dyn_cast<cl::CallExpr>(e)) {
        if (inlinedStatement(c, s, out))
          return;
      }
      s->expr = hoisted(e, out);
      out.push_back(s);
      return;
    }
    opaqueStmt(source, out);
  }

  /// A declaration that `declaration` keeps as a tree (so that one of several in a statement can stand alone).
  bool simple(const cl::VarDecl *v) {
    if ((v->getType()->isReferenceType() && !followReferences) || (v->isStaticLocal() && !v->hasAttr<cl::CUDASharedAttr>()))
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
  auto tree = Reader(program.ast(), /*followReferences=*/true).read(kernel);
  if (tree)
    return tree;
  // A reference may be used in a construct that is kept verbatim.
  llvm::consumeError(tree.takeError());
  return Reader(program.ast(), /*followReferences=*/false).read(kernel);
}
