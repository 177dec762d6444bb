//===- ReadStatements.cpp - statements ------------------------------------===//
#include "KernelReader.h"
#include "optiml/Analysis/Jumps.h"

using namespace optiml;

StmtRef KernelReader::newStmt(StmtKind kind, const cl::Stmt *source) {
  auto s = std::make_shared<Stmt>();
  s->kind = kind;
  s->line = line(source->getBeginLoc());
  return s;
}

StmtRef KernelReader::body(const cl::Stmt *source) {
  StmtRef b = block();
  if (source)
    statement(source, b->body);
  return b;
}

void KernelReader::declaration(const cl::VarDecl *v, const cl::Stmt *source, std::vector<StmtRef> &out) {
  if (groups.isKnown(v))
    return;
  if (v->getType()->isReferenceType() && (reference(v, out) || referenceCopy(v, out)))
    return;
  if (v->getType()->isReferenceType() || v->isStaticLocal() != v->hasAttr<cl::CUDASharedAttr>()) {
    if (!v->hasAttr<cl::CUDASharedAttr>())
      return opaqueStmt(source, out);
  }
  if (auto *record = v->getType()->getAsCXXRecordDecl(); record && record->isLambda())
    return closure(v, source, out);
  const bool isOfCallee = v->hasAttr<cl::CUDASharedAttr>() && !inlining.empty();
  if (isOfCallee && nameOf.count(v)) // one variable for all calls
    return;
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
  bool counts = false;
  if (const cl::Expr *init = v->getInit()) {
    const cl::Expr *stripped = strip(init);
    auto *construct = llvm::dyn_cast<cl::CXXConstructExpr>(stripped);
    bool trivialDefault = construct && construct->getNumArgs() == 0 && leavesUnset(construct);
    if (construct && !trivialDefault) {
      s->expr = construction(construct);
      bool isValue = s->expr && !records.constructors[constructorKey(s->expr->text, s->expr->args.size())].empty();
      if (!isValue && s->dims.empty()) {
        StmtRef declared = newStmt(StmtKind::Decl, source);
        declared->type = s->type;
        declared->align = s->align;
        if (!s->isShared && constructInPlace(v, construct, declared, out))
          return;
      }
      if (!s->expr)
        return opaqueStmt(source, out);
    }
    if (!construct)
      counts = readCounting(*s, init, out);
  }
  s->text = claim(v, v->getNameAsString());
  (isOfCallee ? sharedOfCallees : out).push_back(s);
  if (counts)
    countAfter(s, out);
}

namespace {
/// Variables that may change by other names: through pointers, references, or lambdas that captured them.
class Escapes : public cl::DynamicRecursiveASTVisitor {
public:
  std::set<const cl::VarDecl *> variables;
  Escapes() { ShouldVisitImplicitCode = true; }
  bool VisitUnaryOperator(cl::UnaryOperator *x) override {
    return x->getOpcode() != cl::UO_AddrOf || add(x->getSubExpr());
  }
  bool VisitVarDecl(cl::VarDecl *v) override {
    return !mutableReference(v->getType()) || !v->getInit() || add(v->getInit());
  }
  bool VisitLambdaExpr(cl::LambdaExpr *x) override {
    for (const cl::LambdaCapture &capture : x->captures())
      if (capture.capturesVariable() && capture.getCaptureKind() == cl::LCK_ByRef)
        if (auto *v = llvm::dyn_cast<cl::VarDecl>(capture.getCapturedVar()))
          variables.insert(v);
    return true;
  }
  bool VisitCallExpr(cl::CallExpr *x) override {
    for (const cl::Expr *argument : x->arguments())
      if (argument->isGLValue()) // bound to a reference
        add(argument);
    return true;
  }
  bool VisitInitListExpr(cl::InitListExpr *x) override {
    for (const cl::Expr *init : x->inits())
      if (init->isGLValue())
        add(init);
    return true;
  }

private:
  static bool mutableReference(cl::QualType type) {
    return type->isReferenceType() && !type->getPointeeType().isConstQualified();
  }
  bool add(const cl::Expr *e) {
    bool whole = true; // the variable itself, not what it points to
    e = e->IgnoreParenImpCasts();
    while (true) {
      if (auto *member = llvm::dyn_cast<cl::MemberExpr>(e); member && !member->isArrow())
        e = member->getBase()->IgnoreParenImpCasts();
      else if (auto *element = llvm::dyn_cast<cl::ArraySubscriptExpr>(e))
        e = element->getBase()->IgnoreParenImpCasts(), whole = false;
      else
        break;
    }
    if (auto *ref = llvm::dyn_cast<cl::DeclRefExpr>(e))
      if (auto *v = llvm::dyn_cast<cl::VarDecl>(ref->getDecl()); v && (whole || !v->getType()->isPointerType()))
        variables.insert(v);
    return true;
  }
};
} // namespace

bool KernelReader::referenceCopy(const cl::VarDecl *v, std::vector<StmtRef> &out) {
  cl::QualType type = v->getType().getNonReferenceType();
  if (!followReferences || !scope || v->isStaticLocal() || !v->getInit() || !type.isConstQualified() ||
      type.isVolatileQualified() || !type->isArithmeticType())
    return false;
  const cl::Expr *init = strip(v->getInit());
  auto *element = llvm::dyn_cast<cl::ArraySubscriptExpr>(init);
  if (!element || !ast.hasSameUnqualifiedType(init->getType(), type) ||
      strip(element->getBase())->getType()->isArrayType())
    return false;
  struct Stores : cl::DynamicRecursiveASTVisitor {
    PurityAnalysis *purity;
    bool found = false;
    bool store(const cl::Expr *place) {
      auto *ref = llvm::dyn_cast<cl::DeclRefExpr>(strip(place));
      auto *variable = ref ? llvm::dyn_cast<cl::VarDecl>(ref->getDecl()) : nullptr;
      found |= !variable || !variable->hasLocalStorage() || variable->getType()->isReferenceType();
      return true;
    }
    bool VisitBinaryOperator(cl::BinaryOperator *x) override { return !x->isAssignmentOp() || store(x->getLHS()); }
    bool VisitUnaryOperator(cl::UnaryOperator *x) override {
      return !x->isIncrementDecrementOp() || store(x->getSubExpr());
    }
    bool VisitCallExpr(cl::CallExpr *x) override {
      found |= !purity->isPure(x->getDirectCallee());
      return true;
    }
    bool VisitStmt(cl::Stmt *s) override {
      found |= llvm::isa<cl::GCCAsmStmt, cl::CXXConstructExpr>(s);
      return true;
    }
  } stores;
  stores.purity = &purity;
  stores.TraverseStmt(const_cast<cl::CompoundStmt *>(scope));
  if (stores.found)
    return false;
  ExprRef value = hoisted(v->getInit(), out);
  out.push_back(local(claim(v, v->getNameAsString()), type, value, v->getInit()));
  return true;
}

/// The place with names for indices that are loaded: groups[kind[i]].
static ExprRef withNamedIndices(const ExprRef &place, const std::function<ExprRef(const ExprRef &)> &name) {
  if (place->kind != ExprKind::Subscript && (place->kind != ExprKind::Member || place->args[0]->type.isPointer()))
    return place;
  auto named = std::make_shared<Expr>(*place);
  named->args[0] = withNamedIndices(place->args[0], name);
  if (place->kind == ExprKind::Subscript && anyNode(place->args[1], isLoad))
    named->args[1] = name(place->args[1]);
  return named;
}

bool KernelReader::reference(const cl::VarDecl *v, std::vector<StmtRef> &out) {
  if (!followReferences || !scope || v->isStaticLocal() || !v->getInit() || isTemporary(v->getInit()))
    return false;
  ExprRef place = hoisted(v->getInit(), out);
  std::vector<StmtRef> indices;
  if (isPlace(place) && placeLoads(place) && referenceCopy(v, out))
    return true;
  if (isPlace(place))
    place = withNamedIndices(place, [&](const ExprRef &index) {
      const Type type = index->type.unqualified();
      indices.push_back(declStmt(uniqueName(v->getNameAsString() + "_index"), type, index));
      indices.back()->line = line(v->getBeginLoc());
      return var(indices.back()->text, type);
    });
  if (!isPlace(place) || placeLoads(place) || !wholeTree(place))
    return false;
  CalleeFacts facts = examineStatement(scope);
  for (const cl::VarDecl *changed : facts.modified) {
    auto it = nameOf.find(changed);
    if (it != nameOf.end() && mentions(place, it->second) && placeRoot(place) != it->second &&
        !changed->getType()->isArrayType())
      return false;
  }
  Escapes escapes;
  escapes.TraverseStmt(kernelDecl->getBody());
  for (const cl::VarDecl *escaped : escapes.variables) {
    auto it = nameOf.find(escaped);
    if (it != nameOf.end() && mentions(place, it->second) && placeRoot(place) != it->second)
      return false;
  }
  out.insert(out.end(), indices.begin(), indices.end());
  arguments[v] = place;
  return true;
}

void KernelReader::closure(const cl::VarDecl *v, const cl::Stmt *source, std::vector<StmtRef> &out) {
  auto names = nameOf;
  auto claimed = taken;
  opaqueStmt(source, out);
  nameOf = std::move(names);
  taken = std::move(claimed);
  closures.insert(claim(v, v->getNameAsString()));
}

void KernelReader::removeUnusedClosures(Kernel &kernel) {
  for (const std::string &name : closures) {
    auto declares = [&](const StmtRef &s) { return s->kind == StmtKind::Opaque && s->names.count(name); };
    unsigned mentioned = 0, declared = 0;
    walkExprs(*kernel.body, [&](const ExprRef &e) { mentioned += e->names.count(name) || isVar(e, name); });
    walk(*kernel.body, [&](Stmt &s) { declared += s.kind == StmtKind::Opaque && s.names.count(name); });
    if (!mentioned && declared == 1)
      walk(*kernel.body, [&](Stmt &s) { std::erase_if(s.body, declares); });
  }
}

/// "union { float f; unsigned u; } v;": Clang prints the variable without its class.
static bool declaresUnnamedClass(const cl::Stmt *s) {
  auto *declares = llvm::dyn_cast<cl::DeclStmt>(s);
  return declares && llvm::any_of(declares->decls(), [](const cl::Decl *decl) {
           auto *tag = llvm::dyn_cast<cl::TagDecl>(decl);
           return tag && !tag->getIdentifier();
         });
}

void KernelReader::opaqueStmt(const cl::Stmt *source, std::vector<StmtRef> &out) {
  StmtRef s = newStmt(StmtKind::Opaque, source);
  Mentions mentions(purity);
  mentions.TraverseStmt(const_cast<cl::Stmt *>(source));
  s->names = opaqueNames(mentions, source->getBeginLoc());
  s->text = verbatim(source, mentions);
  if (declaresUnnamedClass(source))
    s->text =
        cl::Lexer::getSourceText(cl::CharSourceRange::getTokenRange(source->getSourceRange()), sm, ast.getLangOpts());
  while (!s->text.empty() && s->text.back() == '\n')
    s->text.pop_back();
  if (llvm::isa<cl::Expr>(source))
    s->text += ";";
  s->mayBarrier = mentions.impure;
  s->isUnaware = mentions.impure && purity.isUnaware(*source);
  for (const cl::VarDecl *v : mentions.declared)
    s->names.insert(v->getNameAsString());
  out.push_back(s);
}

int KernelReader::unrollHint(const cl::AttributedStmt *attributed) {
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

void KernelReader::loop(const cl::ForStmt *source, std::vector<StmtRef> &out, int unroll) {
  std::vector<StmtRef> init;
  if (source->getInit())
    statement(source->getInit(), init);
  if (source->getConditionVariable())
    return opaqueStmt(source, out);
  // Sibling loops may share the name of their variable: it is free again when the loop ends.
  struct Release {
    KernelReader &reader;
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

void KernelReader::declarations(const cl::DeclStmt *x, std::vector<StmtRef> &out) {
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
}

void KernelReader::branch(const cl::IfStmt *x, std::vector<StmtRef> &out) {
  if (x->getInit() || x->getConditionVariable())
    return opaqueStmt(x, out);
  if (x->isConstexpr()) { // an instantiation has only the branch that was taken
    if (auto taken = x->getNondiscardedCase(ast)) {
      if (*taken)
        statement(*taken, out);
      return;
    }
  }
  StmtRef s = newStmt(StmtKind::If, x);
  s->expr = hoisted(x->getCond(), out);
  s->body = {body(x->getThen())};
  if (x->getElse())
    s->body.push_back(body(x->getElse()));
  out.push_back(s);
}

void KernelReader::expressionStatement(const cl::Expr *x, std::vector<StmtRef> &out) {
  const cl::Expr *e = strip(x);
  if (auto *c = llvm::dyn_cast<cl::CallExpr>(e)) {
    if (const cl::FunctionDecl *fn = c->getDirectCallee(); fn && fn->getNameAsString() == "__syncthreads") {
      out.push_back(newStmt(StmtKind::Barrier, e));
      return;
    }
    if (groupBarrier(c, out))
      return;
  }
  StmtRef s = newStmt(StmtKind::Expr, x);
  if (auto *c = llvm::dyn_cast<cl::CallExpr>(e)) {
    if (inlinedStatement(c, s, out) || sineAndCosine(c, out) || cachedStore(c, out))
      return;
  }
  const bool counts = readCounting(*s, e, out);
  out.push_back(s);
  if (counts)
    countAfter(s, out);
}

/// A while or do loop.
StmtRef KernelReader::loop(StmtKind kind, const cl::Stmt *source, const cl::Expr *condition, const cl::Stmt *inner) {
  StmtRef s = newStmt(kind, source);
  s->expr = inPlace(condition);
  s->body = {body(inner)};
  return s;
}

void KernelReader::statement(const cl::Stmt *source, std::vector<StmtRef> &out) {
  if (auto *x = llvm::dyn_cast<cl::CompoundStmt>(source)) {
    // Names are unique within the kernel, so inner scopes need no braces of their own.
    const cl::CompoundStmt *outer = std::exchange(scope, x);
    for (const cl::Stmt *child : x->body())
      statement(child, out);
    scope = outer;
    return;
  }
  if (llvm::isa<cl::NullStmt>(source))
    return;
  if (auto *x = llvm::dyn_cast<cl::DeclStmt>(source))
    return declarations(x, out);
  if (auto *x = llvm::dyn_cast<cl::AttributedStmt>(source)) {
    int unroll = unrollHint(x);
    if (auto *f = llvm::dyn_cast<cl::ForStmt>(x->getSubStmt()); f && unroll > -2)
      return loop(f, out, unroll);
    return statement(x->getSubStmt(), out);
  }
  if (auto *x = llvm::dyn_cast<cl::ForStmt>(source))
    return loop(x, out, NoUnroll);
  if (auto *x = llvm::dyn_cast<cl::WhileStmt>(source)) {
    if (x->getConditionVariable())
      return opaqueStmt(source, out);
    return out.push_back(loop(StmtKind::While, x, x->getCond(), x->getBody()));
  }
  if (auto *x = llvm::dyn_cast<cl::DoStmt>(source)) {
    StmtRef s = loop(StmtKind::Do, x, x->getCond(), x->getBody());
    if (runsOnce(*s)) {
      out.insert(out.end(), s->body[0]->body.begin(), s->body[0]->body.end());
      return;
    }
    return out.push_back(s);
  }
  if (auto *x = llvm::dyn_cast<cl::IfStmt>(source))
    return branch(x, out);
  if (auto *x = llvm::dyn_cast<cl::SwitchStmt>(source))
    return readSwitch(x, out) ? void() : opaqueStmt(source, out);
  if (auto *x = llvm::dyn_cast<cl::ReturnStmt>(source)) {
    if (!inlining.empty() && x->getRetValue())
      return returnValue(x, out);
    if (x->getRetValue()) // "return f();" of a kernel
      statement(x->getRetValue(), out);
    out.push_back(newStmt(StmtKind::Return, x));
    return;
  }
  if (llvm::isa<cl::BreakStmt>(source))
    return out.push_back(newStmt(StmtKind::Break, source));
  if (llvm::isa<cl::ContinueStmt>(source))
    return out.push_back(newStmt(StmtKind::Continue, source));
  if (auto *x = llvm::dyn_cast<cl::Expr>(source))
    return expressionStatement(x, out);
  opaqueStmt(source, out);
}

bool KernelReader::simple(const cl::VarDecl *v) {
  if ((v->getType()->isReferenceType() && !followReferences) ||
      (v->isStaticLocal() && !v->hasAttr<cl::CUDASharedAttr>()))
    return false;
  auto *construct = v->getInit() ? llvm::dyn_cast<cl::CXXConstructExpr>(strip(v->getInit())) : nullptr;
  return !construct || (construct->getNumArgs() == 0 && leavesUnset(construct));
}
