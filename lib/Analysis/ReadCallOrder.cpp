//===- ReadCallOrder.cpp - calls that change variables of their caller ----===//
//
// A function's body goes before the statement of its call. What it changes there must be seen by nothing else in the
// statement, or the order of evaluation would be another one.
//
//===----------------------------------------------------------------------===//
#include "KernelReader.h"

using namespace optiml;

bool KernelReader::names(const cl::Expr *e, const std::string &name) {
  if (llvm::isa<cl::CXXThisExpr>(e))
    return thisObject && mentions(thisObject, name);
  auto *ref = llvm::dyn_cast<cl::DeclRefExpr>(e);
  auto *v = ref ? llvm::dyn_cast<cl::VarDecl>(ref->getDecl()) : nullptr;
  if (!v)
    return false;
  auto alias = arguments.find(v);
  auto own = nameOf.find(v);
  return alias != arguments.end() ? mentions(alias->second, name) : own != nameOf.end() && own->second == name;
}

unsigned KernelReader::callsThatChange(const std::string &name, const cl::Expr *statement) {
  struct Count : cl::DynamicRecursiveASTVisitor {
    KernelReader *reader;
    const std::string *name;
    unsigned calls = 0, others = 0;
    bool mentioned(const cl::Expr *e) {
      Count inner;
      inner.reader = reader;
      inner.name = name;
      inner.TraverseStmt(const_cast<cl::Expr *>(e));
      return inner.calls + inner.others;
    }
    bool changes(cl::CallExpr *call) {
      const cl::FunctionDecl *fn = call->getDirectCallee();
      if (!fn || !reader->readable(call))
        return false;
      auto *method = llvm::dyn_cast<cl::CXXMethodDecl>(fn);
      bool isOperator = method && llvm::isa<cl::CXXOperatorCallExpr>(call);
      if (method && method->isInstance() && !method->isConst()) {
        auto *member = llvm::dyn_cast<cl::CXXMemberCallExpr>(call);
        const cl::Expr *object = isOperator ? call->getArg(0) : member ? member->getImplicitObjectArgument() : nullptr;
        if (object && mentioned(object))
          return true;
      }
      for (unsigned i = isOperator; i < call->getNumArgs() && i - isOperator < fn->getNumParams(); ++i) {
        cl::QualType type = fn->getParamDecl(i - isOperator)->getType(), to = type->getPointeeType();
        if (!to.isNull() && !to.isConstQualified() && mentioned(call->getArg(i)))
          return true;
      }
      return false;
    }
    bool TraverseStmt(cl::Stmt *s) override {
      if (auto *call = llvm::dyn_cast_or_null<cl::CallExpr>(s); call && changes(call)) {
        ++calls;
        return true;
      }
      if (auto *e = llvm::dyn_cast_or_null<cl::Expr>(s))
        others += reader->names(e, *name);
      return cl::DynamicRecursiveASTVisitor::TraverseStmt(s);
    }
  } count;
  count.reader = this;
  count.name = &name;
  count.TraverseStmt(const_cast<cl::Expr *>(statement));
  // The right side of an assignment runs before the left one.
  auto *assignment = llvm::dyn_cast<cl::BinaryOperator>(statement);
  auto *overloaded = llvm::dyn_cast<cl::CXXOperatorCallExpr>(statement);
  const cl::Expr *left = assignment && assignment->isAssignmentOp()   ? assignment->getLHS()
                         : overloaded && overloaded->isAssignmentOp() ? overloaded->getArg(0)
                                                                      : nullptr;
  return count.others || (left && count.calls > 1 && count.mentioned(left)) ? 0 : count.calls;
}

bool KernelReader::changesAlone(const std::string &name, const cl::Expr *statement) {
  const cl::VarDecl *v = nullptr;
  for (const auto &[declared, called] : nameOf)
    v = called == name ? declared : v;
  return v && v->isLocalVarDecl() && !v->hasGlobalStorage() && !v->hasAttr<cl::CUDASharedAttr>() &&
         !v->getType()->isReferenceType() && !v->getType()->isPointerType() && !v->getType().isVolatileQualified() &&
         callsThatChange(name, statement);
}
