//===- Inlining.cpp - reading functions in place of their calls -----------===//
#include "Inlining.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/TreeQueries.h"
#include "clang/AST/Attr.h"
#include "clang/AST/DynamicRecursiveASTVisitor.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/StmtCXX.h"
#include <algorithm>

using namespace optiml;
namespace cl = clang;

// The declaration

namespace {
/// Looks for what a method does with its object but read members of it and call methods that do no more.
class ObjectUse : public cl::DynamicRecursiveASTVisitor {
public:
  explicit ObjectUse(unsigned depth) : depth(depth) {}
  bool found = false;

  bool TraverseImplicitCastExpr(cl::ImplicitCastExpr *cast) override {
    std::vector<cl::Expr *> indices;
    if (cast->getCastKind() != cl::CK_LValueToRValue || !isOwnPlace(cast->getSubExpr(), indices))
      return cl::DynamicRecursiveASTVisitor::TraverseImplicitCastExpr(cast);
    return llvm::all_of(indices, [&](cl::Expr *index) { return TraverseStmt(index); });
  }
  bool TraverseCXXMemberCallExpr(cl::CXXMemberCallExpr *call) override {
    if (!readsOwn(call->getMethodDecl(), call->getImplicitObjectArgument()))
      return cl::DynamicRecursiveASTVisitor::TraverseCXXMemberCallExpr(call);
    return llvm::all_of(call->arguments(), [&](cl::Expr *argument) { return TraverseStmt(argument); });
  }
  bool TraverseCXXOperatorCallExpr(cl::CXXOperatorCallExpr *call) override {
    auto *method = llvm::dyn_cast_or_null<cl::CXXMethodDecl>(call->getDirectCallee());
    if (!method || !readsOwn(method, call->getArg(0)))
      return cl::DynamicRecursiveASTVisitor::TraverseCXXOperatorCallExpr(call);
    return llvm::all_of(llvm::drop_begin(call->arguments()),
                        [&](cl::Expr *argument) { return TraverseStmt(argument); });
  }
  bool VisitCXXThisExpr(cl::CXXThisExpr *) override {
    found = true;
    return true;
  }
  /// A method that is const, or could be: T &operator()(int i) { return data[i]; }
  static bool onlyReads(const cl::CXXMethodDecl *method, unsigned depth = 0) {
    const cl::FunctionDecl *definition = nullptr;
    if (method->isConst())
      return true;
    if (depth > 8 || !method->hasBody(definition) || method->isVirtual())
      return false;
    ObjectUse use(depth + 1);
    use.TraverseStmt(definition->getBody());
    return !use.found;
  }

private:
  unsigned depth;
  bool readsOwn(const cl::CXXMethodDecl *method, cl::Expr *object) {
    std::vector<cl::Expr *> indices;
    bool own =
        llvm::isa<cl::CXXThisExpr>(object->IgnoreParenImpCasts()) || (isOwnPlace(object, indices) && indices.empty());
    return own && method && method->isInstance() && onlyReads(method, depth);
  }
  /// this->a.b[i]: in the object itself.
  static bool isOwnPlace(cl::Expr *e, std::vector<cl::Expr *> &indices) {
    for (;;) {
      e = e->IgnoreParenImpCasts();
      if (auto *element = llvm::dyn_cast<cl::ArraySubscriptExpr>(e);
          element && element->getBase()->IgnoreParenImpCasts()->getType()->isArrayType()) {
        indices.push_back(element->getIdx());
        e = element->getBase();
        continue;
      }
      auto *member = llvm::dyn_cast<cl::MemberExpr>(e);
      if (!member || !llvm::isa<cl::FieldDecl>(member->getMemberDecl()) ||
          member->getMemberDecl()->getType()->isReferenceType())
        return false;
      if (llvm::isa<cl::CXXThisExpr>(member->getBase()->IgnoreParenImpCasts()))
        return true;
      if (member->isArrow())
        return false;
      e = member->getBase();
    }
  }
};

class Examination : public cl::DynamicRecursiveASTVisitor {
public:
  CalleeFacts facts;

  bool VisitDeclRefExpr(cl::DeclRefExpr *ref) override {
    if (auto *v = llvm::dyn_cast<cl::VarDecl>(ref->getDecl()))
      ++facts.uses[v];
    return true;
  }
  bool VisitVarDecl(cl::VarDecl *v) override {
    cl::QualType type = v->getType();
    const bool isShared = v->hasAttr<cl::CUDASharedAttr>();
    if (isShared ? v->hasExternalStorage() : v->isStaticLocal())
      refuse("it has variables of its own that live on");
    if (type.isVolatileQualified() ||
        (!type->getPointeeType().isNull() && type->getPointeeType().isVolatileQualified()))
      refuse("it accesses volatile memory");
    if (type->isReferenceType() && !type->getPointeeType().isConstQualified() && v->getInit())
      expose(v->getInit());
    return true;
  }
  bool VisitStmt(cl::Stmt *s) override {
    if (llvm::isa<cl::GCCAsmStmt, cl::MSAsmStmt>(s))
      refuse("it contains inline assembly");
    if (llvm::isa<cl::GotoStmt, cl::IndirectGotoStmt, cl::LabelStmt, cl::CXXTryStmt, cl::CXXForRangeStmt>(s))
      refuse("its control flow is not structured");
    if (llvm::isa<cl::LambdaExpr, cl::VAArgExpr, cl::CXXNewExpr, cl::CXXDeleteExpr, cl::CXXThrowExpr>(s))
      refuse("it contains a construct that is kept verbatim");
    return true;
  }
  bool VisitBinaryOperator(cl::BinaryOperator *op) override {
    if (op->isAssignmentOp())
      modify(op->getLHS());
    return true;
  }
  bool VisitUnaryOperator(cl::UnaryOperator *op) override {
    if (op->isIncrementDecrementOp())
      modify(op->getSubExpr());
    if (op->getOpcode() == cl::UO_AddrOf) {
      auto *v = llvm::dyn_cast_or_null<cl::ParmVarDecl>(root(op->getSubExpr()));
      if (v && !v->getType()->isReferenceType())
        refuse("it takes the address of a parameter");
      expose(op->getSubExpr());
    }
    return true;
  }
  bool VisitLambdaExpr(cl::LambdaExpr *lambda) override {
    for (const cl::LambdaCapture &capture : lambda->captures())
      if (capture.capturesVariable() && capture.getCaptureKind() == cl::LCK_ByRef)
        if (auto *v = llvm::dyn_cast<cl::VarDecl>(capture.getCapturedVar()))
          facts.exposed.insert(v);
    return true;
  }
  bool VisitCallExpr(cl::CallExpr *call) override {
    const cl::FunctionDecl *fn = call->getDirectCallee();
    auto *method = llvm::dyn_cast_or_null<cl::CXXMethodDecl>(fn);
    bool changes = method && method->isInstance() && !ObjectUse::onlyReads(method);
    unsigned first = 0;
    if (auto *member = llvm::dyn_cast<cl::CXXMemberCallExpr>(call)) {
      auto *callee = llvm::dyn_cast<cl::MemberExpr>(member->getCallee()->IgnoreParens());
      if (changes && !(callee && callee->isArrow()))
        expose(member->getImplicitObjectArgument());
    } else if (llvm::isa<cl::CXXOperatorCallExpr>(call) && method) {
      if (changes)
        expose(call->getArg(0));
      first = 1;
    }
    for (unsigned i = first; fn && i < call->getNumArgs() && i - first < fn->getNumParams(); ++i)
      bind(fn->getParamDecl(i - first)->getType(), call->getArg(i));
    return true;
  }
  bool VisitCXXConstructExpr(cl::CXXConstructExpr *e) override {
    for (unsigned i = 0; i < e->getNumArgs() && i < e->getConstructor()->getNumParams(); ++i)
      bind(e->getConstructor()->getParamDecl(i)->getType(), e->getArg(i));
    return true;
  }

private:
  void refuse(const char *why) {
    if (facts.refusal.empty())
      facts.refusal = why;
  }
  void bind(cl::QualType parameter, const cl::Expr *argument) {
    if (parameter->isReferenceType() && !parameter->getPointeeType().isConstQualified())
      expose(argument);
  }
  static const cl::VarDecl *root(const cl::Expr *e) {
    for (;;) {
      e = e->IgnoreParenImpCasts();
      if (auto *member = llvm::dyn_cast<cl::MemberExpr>(e); member && !member->isArrow())
        e = member->getBase();
      else if (auto *element = llvm::dyn_cast<cl::ArraySubscriptExpr>(e);
               element && element->getBase()->IgnoreParenImpCasts()->getType()->isArrayType())
        e = element->getBase();
      else
        break;
    }
    auto *ref = llvm::dyn_cast<cl::DeclRefExpr>(e);
    return ref ? llvm::dyn_cast<cl::VarDecl>(ref->getDecl()) : nullptr;
  }
  void expose(const cl::Expr *place) {
    modify(place);
    if (const cl::VarDecl *v = root(place))
      facts.exposed.insert(v);
  }
  void modify(const cl::Expr *place) {
    if (const cl::VarDecl *v = root(place))
      facts.modified.insert(v);
  }
};
} // namespace

CalleeFacts optiml::examineCallee(const cl::FunctionDecl *definition) {
  Examination examination;
  for (cl::ParmVarDecl *param : definition->parameters())
    examination.VisitVarDecl(const_cast<cl::ParmVarDecl *>(param));
  if (auto *constructor = llvm::dyn_cast<cl::CXXConstructorDecl>(definition))
    for (const cl::CXXCtorInitializer *init : constructor->inits())
      examination.TraverseStmt(init->getInit());
  examination.TraverseStmt(definition->getBody());
  return examination.facts;
}

CalleeFacts optiml::examineStatement(const cl::Stmt *statement) {
  Examination examination;
  examination.TraverseStmt(const_cast<cl::Stmt *>(statement));
  return examination.facts;
}

namespace {
/// Floats that become doubles for a while, and square roots.
class OtherForms : public cl::DynamicRecursiveASTVisitor {
public:
  bool found = false;
  bool VisitImplicitCastExpr(cl::ImplicitCastExpr *cast) override {
    found |= cast->getCastKind() == cl::CK_FloatingCast &&
             isOf(cast->getSubExpr()->getType(), cl::BuiltinType::Float) &&
             isOf(cast->getType(), cl::BuiltinType::Double);
    return true;
  }
  bool VisitCallExpr(cl::CallExpr *call) override {
    const cl::FunctionDecl *fn = call->getDirectCallee();
    found |= fn && fn->getIdentifier() && (fn->getName() == "sqrt" || fn->getName() == "sqrtf");
    return true;
  }

private:
  static bool isOf(cl::QualType type, cl::BuiltinType::Kind kind) { return type->isSpecificBuiltinType(kind); }
};
} // namespace

bool optiml::hasOtherForms(const cl::Expr *value) {
  OtherForms forms;
  forms.TraverseStmt(const_cast<cl::Expr *>(value));
  return value->getType()->isRealFloatingType() && forms.found;
}

// The tree

bool optiml::letsThreadsMeet(const std::vector<StmtRef> &list) {
  return llvm::any_of(list, [](const StmtRef &s) {
    return holdsKind(*s, {StmtKind::Barrier, StmtKind::Opaque}) ||
           anyExpr(*s, [](const ExprRef &e) { return !e->pure && !e->isAtomic; });
  });
}

bool optiml::writesOutside(const std::vector<StmtRef> &list, const std::set<std::string> &own) {
  std::set<std::string> scalars = own, arrays;
  bool outside = false;
  for (const StmtRef &s : list)
    walk(*s, [&](Stmt &t) {
      if (t.kind == StmtKind::Decl)
        (t.dims.empty() ? scalars : arrays).insert(t.text);
      outside |= t.kind == StmtKind::Barrier || t.kind == StmtKind::Opaque;
    });
  for (const StmtRef &s : list)
    walkExprs(*s, [&](const ExprRef &e) {
      outside |= !e->pure;
      if (!isChange(e))
        return;
      // An element may be of an array, or of an array that is a member; a pointer leads elsewhere.
      const Expr *place = e->args[0].get();
      bool isElement = false, follows = false;
      while (place->kind == ExprKind::Subscript ||
             (place->kind == ExprKind::Member && !place->args[0]->type.isPointer())) {
        isElement = place->kind == ExprKind::Subscript;
        place = place->args[0].get();
        follows |= isElement && place->kind == ExprKind::Member && !isArray(place->type);
      }
      outside |= place->kind != ExprKind::Var || follows ||
                 !(arrays.count(place->text) || (!isElement && scalars.count(place->text)));
    });
  return outside;
}

/// A node that is no opaque text, nor a call that might do anything.
static bool isWhole(const ExprRef &e) {
  const bool isFence = e->isLibrary && llvm::StringRef(e->text).starts_with("__threadfence");
  return e->kind != ExprKind::Opaque &&
         (e->kind != ExprKind::Call || e->pure || e->isAtomic || isFence || onlyExchangesRegisters(*e));
}

bool optiml::wholeTree(const ExprRef &e) {
  return !anyNode(e, [](const ExprRef &n) { return !isWhole(n); });
}

bool optiml::wholeTree(const std::vector<StmtRef> &list) {
  return llvm::none_of(list, [](const StmtRef &s) {
    return holdsKind(*s, {StmtKind::Opaque}) || anyExpr(*s, [](const ExprRef &e) { return !isWhole(e); });
  });
}

bool optiml::isPlace(const ExprRef &e) {
  switch (e->kind) {
  case ExprKind::Var: return true;
  case ExprKind::Member: return e->args[0]->type.isPointer() ? !hasEffects(e->args[0]) : isPlace(e->args[0]);
  case ExprKind::Subscript: return !hasEffects(e);
  default: return false;
  }
}

bool optiml::placeLoads(const ExprRef &place) {
  return llvm::any_of(place->args, [](const ExprRef &arg) { return anyNode(arg, isLoad); });
}

std::string optiml::placeRoot(const ExprRef &place) {
  const Expr *e = place.get();
  while (e->kind == ExprKind::Member && !e->args[0]->type.isPointer())
    e = e->args[0].get();
  return e->kind == ExprKind::Var ? e->text : "";
}

std::pair<ExprRef, ExprRef> optiml::splitPointer(const ExprRef &e) {
  if (isUnary(e, "&") && e->args[0]->kind == ExprKind::Subscript && e->args[0]->args[0]->kind == ExprKind::Var)
    return {e->args[0]->args[0], e->args[0]->args[1]};
  if (!isBinary(e, "+") || !e->type.isPointer())
    return {e, nullptr};
  bool left = e->args[0]->type.isPointer();
  auto [base, offset] = splitPointer(e->args[left ? 0 : 1]);
  return {base, joinOffsets(offset, e->args[left ? 1 : 0])};
}

ExprRef optiml::joinOffsets(const ExprRef &offset, const ExprRef &index) {
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

ExprRef optiml::pointedTo(const ExprRef &pointer) {
  if (isUnary(pointer, "&"))
    return pointer->args[0];
  auto [base, offset] = splitPointer(pointer);
  return offset && base->type.pointee ? subscript(base, offset, *base->type.pointee) : pointer;
}

ExprRef optiml::placeAt(const ExprRef &pointer) {
  ExprRef place = pointedTo(pointer);
  if (place != pointer)
    return place;
  return pointer->type.pointee ? subscript(pointer, intLit(0), *pointer->type.pointee) : nullptr;
}
