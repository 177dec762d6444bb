//===- ReadCalls.cpp - functions in place of their calls ------------------===//
//
// A helper that touches memory, and any method, is read where it is called. What only computes stays a call, but for
// index arithmetic. A body that is one expression takes the call's place; any other goes before the statement, when
// nothing in it that runs earlier has effects. What the helper itself writes must be all that the statement evaluates.
//
//===----------------------------------------------------------------------===//
#include "Choices.h"
#include "KernelReader.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Core/KernelName.h"

using namespace optiml;

ExprRef KernelReader::inPlace(const cl::Expr *source) {
  HoistPoint saved = std::exchange(hoist, {});
  ExprRef e = expression(source);
  hoist = saved;
  return e;
}

ExprRef KernelReader::hoisted(const cl::Expr *source, std::vector<StmtRef> &out) {
  HoistPoint saved = std::exchange(hoist, hoistPoint(source, out));
  ExprRef e = expression(source);
  hoist = saved;
  return e;
}

KernelReader::HoistPoint KernelReader::hoistPoint(const cl::Expr *source, std::vector<StmtRef> &out) {
  const cl::Expr *e = strip(source), *value = e;
  if (auto *op = llvm::dyn_cast<cl::BinaryOperator>(e); op && op->isAssignmentOp()) {
    // The right side runs first (C++17 [expr.ass]), or nothing of the left one shows in which order they run.
    const cl::Expr *left = strip(op->getLHS());
    auto *element = llvm::dyn_cast<cl::ArraySubscriptExpr>(left);
    const bool isVariable = llvm::isa<cl::DeclRefExpr>(left);
    const bool isApart = op->getOpcode() == cl::BO_Assign
                             ? isVariable || (element && keepsItsValue(element->getIdx()) &&
                                              llvm::isa<cl::DeclRefExpr>(element->getBase()->IgnoreParenImpCasts()))
                             : isVariable && keepsItsValue(left);
    value = isApart ? strip(op->getRHS()) : nullptr;
  }
  struct Effects : cl::DynamicRecursiveASTVisitor {
    KernelReader *reader;
    const cl::Expr *statement, *value;
    bool found = false;
    bool VisitBinaryOperator(cl::BinaryOperator *op) override {
      found |= op->isAssignmentOp() && op != statement;
      return true;
    }
    bool VisitUnaryOperator(cl::UnaryOperator *op) override {
      found |= op->isIncrementDecrementOp() && op != reader->counting;
      return true;
    }
    bool TraverseLambdaExpr(cl::LambdaExpr *) override { return true; } // what it does it does where it is called
    bool VisitCallExpr(cl::CallExpr *call) override {
      const cl::FunctionDecl *callee = call->getDirectCallee();
      const bool asksForPlace = // threadIdx.x
          callee && callee->getIdentifier() && callee->getName().starts_with("__fetch_builtin_");
      found |= call != statement && call != value && !asksForPlace && !reader->purity.isPure(callee) &&
               !reader->readable(call);
      return true;
    }
  } effects;
  effects.reader = this;
  effects.statement = e;
  effects.value = value;
  effects.TraverseStmt(const_cast<cl::Expr *>(e));
  if (effects.found)
    return {};
  return {&out, value, e};
}

bool KernelReader::keepsItsValue(const cl::Expr *e) {
  struct Parts : cl::DynamicRecursiveASTVisitor {
    KernelReader *reader;
    bool good = true;
    bool VisitExpr(cl::Expr *part) override {
      auto *unary = llvm::dyn_cast<cl::UnaryOperator>(part);
      auto *op = llvm::dyn_cast<cl::BinaryOperator>(part);
      auto *ref = llvm::dyn_cast<cl::DeclRefExpr>(part);
      good &=
          (unary && unary->isArithmeticOp()) || (op && !op->isAssignmentOp()) || (ref && isOwn(ref->getDecl())) ||
          llvm::isa<cl::CastExpr, cl::ParenExpr, cl::IntegerLiteral, cl::FloatingLiteral, cl::CXXBoolLiteralExpr>(part);
      return good;
    }
    bool isOwn(const cl::ValueDecl *d) {
      auto *v = llvm::dyn_cast<cl::VarDecl>(d);
      const cl::FunctionDecl *within = reader->inlining.empty() ? reader->kernelDecl : reader->inlining.back();
      return v && v->isLocalVarDeclOrParm() && !v->hasGlobalStorage() && !v->hasAttr<cl::CUDASharedAttr>() &&
             v->getType()->isArithmeticType() && !v->getType().isVolatileQualified() && !reader->arguments.count(v) &&
             !reader->factsOf(within).exposed.count(v);
    }
  } parts;
  parts.reader = this;
  parts.TraverseStmt(const_cast<cl::Expr *>(e));
  return parts.good || e->isEvaluatable(ast);
}

const CalleeFacts &KernelReader::factsOf(const cl::FunctionDecl *definition) {
  auto [it, added] = calleeFacts.try_emplace(definition);
  if (added)
    it->second = examineCallee(definition);
  return it->second;
}

bool KernelReader::takesRecord(const cl::FunctionDecl *fn) {
  return llvm::any_of(fn->parameters(), [&](const cl::ParmVarDecl *p) { return isSplittable(p->getType()); });
}

const cl::FunctionDecl *KernelReader::readable(const cl::CallExpr *x) {
  const cl::FunctionDecl *fn = x->getDirectCallee();
  if (!fn || inlining.size() >= 8 || fn->isVariadic() || fn->getBuiltinID() || !fn->hasBody(fn) ||
      (sm.isInSystemHeader(sm.getExpansionLoc(fn->getLocation())) && !takesRecord(fn)) ||
      llvm::is_contained(inlining, fn) || fn->hasAttr<cl::NoInlineAttr>() || fn->hasAttr<cl::CUDAGlobalAttr>() ||
      !foldOfFunction(fn).empty())
    return nullptr;
  auto *method = llvm::dyn_cast<cl::CXXMethodDecl>(fn);
  bool copies =
      method && (method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator()) && method->isTrivial();
  if (method && (copies || method->isVirtual() ||
                 llvm::isa<cl::CXXConstructorDecl, cl::CXXDestructorDecl, cl::CXXConversionDecl>(fn)))
    return nullptr;
  // What it names must be declared where the new kernel stands.
  if (!sm.isBeforeInTranslationUnit(sm.getExpansionLoc(fn->getBody()->getBeginLoc()), stands))
    return nullptr;
  return factsOf(fn).refusal.empty() ? fn : nullptr;
}

std::vector<const cl::Expr *> KernelReader::returnedValues(const cl::FunctionDecl *fn) {
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
                                ? returned(branch->getThen())
                                : nullptr;
    if (!value)
      return {};
    result.insert(result.end(), {branch->getCond(), value});
    if (const cl::Stmt *otherwise = branch->getElse())
      list.insert(list.begin() + long(i) + 1, otherwise);
  }
  return {};
}

bool KernelReader::capturesHold(const cl::CXXRecordDecl *lambda) {
  for (const cl::LambdaCapture &capture : lambda->captures()) {
    if (!capture.capturesVariable())
      return false;
    auto *v = llvm::dyn_cast<cl::VarDecl>(capture.getCapturedVar());
    bool copy = capture.getCaptureKind() == cl::LCK_ByCopy;
    if (!v || v->isInitCapture() || (copy && (v->getType()->isReferenceType() || v->getType()->isArrayType())) ||
        (copy && factsOf(kernelDecl).modified.count(v)))
      return false;
  }
  return true;
}

std::optional<KernelReader::Binding> KernelReader::bindObject(const cl::CallExpr *x, const cl::FunctionDecl *fn,
                                                              unsigned &firstArgument) {
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
  if (binding.object && isUnary(binding.object, "&"))
    binding.object = binding.object->args[0];
  if (binding.object && hoist.before && binding.object->kind == ExprKind::Call && binding.object->pure &&
      method->isConst() && binding.object->type.cls == Type::Class::Record) { // (a - b).length(): the value gets a name
    std::string name = uniqueName("object");
    StmtRef named = declStmt(name, binding.object->type, binding.object);
    named->line = line(x->getBeginLoc());
    hoist.before->push_back(named);
    binding.object = var(name, named->type);
  }
  if (!binding.object ||
      (!isPlace(binding.object) && !(binding.object->type.isPointer() && !hasEffects(binding.object))))
    return std::nullopt;
  binding.loads = placeLoads(binding.object);
  if (!method->isConst())
    binding.changed.insert(placeRoot(binding.object));
  return binding;
}

std::optional<KernelReader::Binding> KernelReader::bindArguments(const cl::CallExpr *x, const cl::FunctionDecl *fn,
                                                                 bool oneExpression) {
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

ExprRef KernelReader::valueOfReturns(const std::vector<const cl::Expr *> &parts, cl::QualType type) {
  auto result = [&](const cl::Expr *e, bool always) {
    ExprRef value = always ? expression(e) : inPlace(e);
    return type->isReferenceType() || type->isRecordType() ? value : converted(value, type);
  };
  if (parts.size() == 1) {
    HoistPoint saved = hoist;
    if (hoist.before)
      hoist = hoistPoint(parts[0], *hoist.before);
    ExprRef value = result(parts[0], true);
    hoist = saved;
    return value;
  }
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

void KernelReader::returnValue(const cl::ReturnStmt *source, std::vector<StmtRef> &out) {
  cl::QualType type = inlining.back()->getReturnType();
  if (type->isVoidType()) { // return f();
    statement(source->getRetValue(), out);
    out.push_back(newStmt(StmtKind::Return, source));
    return;
  }
  ExprRef value = hoisted(source->getRetValue(), out);
  StmtRef s = newStmt(StmtKind::Return, source);
  s->expr = type->isRecordType() || type->isReferenceType() ? value : converted(value, type);
  out.push_back(s);
}

StmtRef KernelReader::local(const std::string &name, cl::QualType type, ExprRef value, const cl::Stmt *source) {
  StmtRef s = declStmt(name, convert(type), std::move(value));
  s->line = line(source->getBeginLoc());
  return s;
}

std::optional<ExprRef> KernelReader::bodyInPlace(const cl::CallExpr *x, const cl::FunctionDecl *fn,
                                                 std::vector<StmtRef> &out) {
  std::vector<StmtRef> list;
  statement(fn->getBody(), list);
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
    if (fn->getReturnType()->isReferenceType())
      return std::nullopt;
    if (!fn->getReturnType()->isVoidType()) {
      cl::QualType type = fn->getReturnType().getUnqualifiedType();
      std::string name = uniqueName("result");
      value = var(name, convert(type));
      out.push_back(local(name, type, nullptr, x));
    }
    // What only computes had better stay a call than become a loop that is left early.
    ExprRef returned = purity.isPure(fn) ? nullptr : var(uniqueName("returned"), Type::makeBool());
    if (!structureReturns(list, value, returned))
      return std::nullopt;
    if (returned && llvm::any_of(list, [&](const StmtRef &s) { return countMentions(*s).count(returned->text) != 0; }))
      out.push_back(
          atLine(line(x->getBeginLoc()), declStmt(returned->text, returned->type, intLit(0, returned->type))));
  }
  out.insert(out.end(), list.begin(), list.end());
  return value;
}

std::optional<ExprRef> KernelReader::readInPlace(const cl::CallExpr *x, const cl::FunctionDecl *fn,
                                                 std::vector<StmtRef> &made, std::set<std::string> &changed) {
  std::vector<const cl::Expr *> parts = returnedValues(fn);
  auto binding = bindArguments(x, fn, !parts.empty());
  if (!binding || (parts.empty() && !hoist.before))
    return std::nullopt;
  changed = binding->changed;
  for (auto &[param, value] : binding->locals) {
    cl::QualType type = param->getType().getNonReferenceType();
    if (auto *record = type->getAsCXXRecordDecl();
        record && (!record->getIdentifier() || !record->isTriviallyCopyable()))
      return std::nullopt;
    made.push_back(local(claim(param, param->getNameAsString()), type, value, x));
  }
  auto outerArguments = arguments;
  for (auto &[param, value] : binding->values)
    arguments[param] = value;
  std::swap(thisObject, binding->object);
  inlining.push_back(fn);
  std::set<std::string> changedInside;
  auto *outerChanges = std::exchange(changedByCallees, &changedInside);
  std::optional<ExprRef> value =
      parts.empty() ? bodyInPlace(x, fn, made) : std::optional(valueOfReturns(parts, fn->getReturnType()));
  // c ? {a, b} : {c, d} is no expression
  bool lists = value && *value && parts.size() > 1 &&
               anyNode(*value, [](const ExprRef &e) { return e->kind == ExprKind::InitList; });
  inlining.pop_back();
  changedByCallees = outerChanges;
  std::swap(thisObject, binding->object);
  arguments = outerArguments;
  if (lists)
    return std::nullopt;
  for (const std::string &name : changedInside)
    for (const auto &[param, value] : binding->values) {
      bool isVariable = (param->getType()->isReferenceType() && placeRoot(value) == name) ||
                        (isUnary(value, "&") && placeRoot(value->args[0]) == name);
      if (mentions(value, name) && !isVariable)
        return std::nullopt;
    }
  changed.insert(changedInside.begin(), changedInside.end());
  if (value && *value && fn->getReturnType()->isReferenceType() && !isPlace(*value))
    return std::nullopt;
  if (binding->loads && writesOutside(made))
    return std::nullopt;
  return value;
}

bool KernelReader::runsFirst(const cl::CallExpr *x, const cl::Expr *value) {
  const cl::Expr *e = value;
  while (e && (e = e->IgnoreParenImpCasts()) != x) {
    if (auto *cast = llvm::dyn_cast<cl::ExplicitCastExpr>(e))
      e = cast->getSubExpr();
    else if (auto *op = llvm::dyn_cast<cl::UnaryOperator>(e))
      e = op->isArithmeticOp() ? op->getSubExpr() : nullptr;
    else if (auto *op = llvm::dyn_cast<cl::BinaryOperator>(e); op && !op->isAssignmentOp())
      e = op->isLogicalOp() || keepsItsValue(op->getRHS()) ? op->getLHS()
          : keepsItsValue(op->getLHS())                    ? op->getRHS()
                                                           : nullptr;
    else
      return false;
  }
  return e == x;
}

/// An argument is a variable that other threads may change before the function uses it.
static bool takesShared(const cl::CallExpr *x) {
  return llvm::any_of(x->arguments(), [](const cl::Expr *argument) {
    auto *ref = llvm::dyn_cast<cl::DeclRefExpr>(argument->IgnoreParenImpCasts());
    auto *v = ref ? llvm::dyn_cast<cl::VarDecl>(ref->getDecl()) : nullptr;
    return v && !v->getType()->isArrayType() && (!v->isLocalVarDeclOrParm() || v->hasAttr<cl::CUDASharedAttr>());
  });
}

std::optional<ExprRef> KernelReader::inlined(const cl::CallExpr *x) {
  const cl::FunctionDecl *fn = problem.empty() ? readable(x) : nullptr;
  bool method = llvm::isa<cl::CXXMemberCallExpr, cl::CXXOperatorCallExpr>(x);
  bool computes = fn && purity.isPure(fn) && !method && !takesRecord(fn) && !isSplittable(fn->getReturnType()) &&
                  llvm::none_of(fn->parameters(), [](auto *p) { return p->getType()->isReferenceType(); });
  const std::vector<const cl::Expr *> values = computes ? returnedValues(fn) : std::vector<const cl::Expr *>();
  if (!fn || (computes && !(values.size() == 1 && hasOtherForms(values.front())) &&
              (!fn->getReturnType()->isIntegralOrEnumerationType() || fn->getReturnType()->isBooleanType())))
    return std::nullopt;
  auto names = nameOf;
  auto claimed = taken;
  const size_t shared = sharedOfCallees.size();
  std::vector<StmtRef> made;
  HoistPoint outer = std::exchange(hoist, {});
  bool chooses = computes && values.empty(); // clamps its argument step by step, say
  if (outer.before && (!computes || chooses))
    hoist.before = &made;
  std::set<std::string> changed;
  auto value = readInPlace(x, fn, made, changed);
  hoist = outer;
  bool good =
      value && problem.empty() && wholeTree(made) && (!*value || wholeTree(*value)) && (!chooses || foldChoices(made));
  // A helper that writes stays a call, unless it is a variable that nothing else in the statement names: its arguments
  // may be what it writes, or depend on it.
  std::set<std::string> everyChange = changed;
  if (!outer.before || !outer.statement ||
      !llvm::all_of(changed, [&](const std::string &name) { return changesAlone(name, outer.statement); }))
    changed.clear();
  // Several such calls run in their order from left to right; what one computes must not wait for the next.
  bool waits =
      llvm::any_of(changed, [&](const std::string &name) { return callsThatChange(name, outer.statement) > 1; });
  bool writes = good && (writesOutside(made, changed) || (*value && hasEffects(*value)));
  // As a statement of its own, or as all that a statement stores in a local, its body is what runs there: its values
  // were taken before, its references are what they name.
  if (writes && outer.before && (x == outer.statement || runsFirst(x, outer.whole)) && returnedValues(fn).empty())
    writes = (*value && hasEffects(*value)) || (letsThreadsMeet(made) && takesShared(x));
  if (!good || writes) {
    nameOf = std::move(names);
    taken = std::move(claimed);
    sharedOfCallees.resize(shared);
    problem.clear();
    place.clear();
    return std::nullopt;
  }
  if (*value && (waits || ((*value)->kind == ExprKind::InitList && x != outer.whole))) {
    std::string name = uniqueName("result");
    made.push_back(local(name, fn->getReturnType().getUnqualifiedType(), *value, x));
    value = var(name, made.back()->type);
  }
  if (outer.before)
    outer.before->insert(outer.before->end(), made.begin(), made.end());
  if (changedByCallees)
    changedByCallees->insert(everyChange.begin(), everyChange.end());
  return value;
}

bool KernelReader::inlinedStatement(const cl::CallExpr *x, const StmtRef &statement, std::vector<StmtRef> &out) {
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

std::string KernelReader::nameInKernel(const cl::FunctionDecl *fn, const std::string &written) {
  const cl::DeclContext *scope = fn->getDeclContext()->getRedeclContext();
  if (fn->getAccess() == cl::AS_private || fn->getAccess() == cl::AS_protected)
    note(fn->getLocation(), "a private function cannot be called in the kernel");
  if (scope->isTranslationUnit() || fn->isExternC())
    return written;
  const std::string name = withoutNameless(fn->getQualifiedNameAsString());
  size_t arguments = written.find('<');
  return arguments == std::string::npos ? name : name + written.substr(arguments);
}

ExprRef KernelReader::call(const cl::CallExpr *x) {
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
    if (!llvm::isa<cl::CXXDefaultArgExpr>(arg)) {
      args.push_back(expression(arg));
      if (args.back()->kind == ExprKind::InitList &&
          llvm::isa<cl::ExplicitCastExpr>(strip(arg))) // it may decide which function
        return opaque(x);
    }
  auto e = make(ExprKind::Call, x, name, args);
  e->pure = purity.isPure(*x);
  e->isConfined = !e->pure && purity.isConfined(*x);
  e->isUnaware = !e->pure && purity.isUnaware(*x);
  e->isOfAnyBlock = !e->pure && purity.isOfAnyBlock(*x);
  e->isLibrary = fn->getIdentifier() && sm.isInSystemHeader(sm.getExpansionLoc(fn->getLocation()));
  e->folds = e->isLibrary ? foldOfAtomic(fn->getName().str()) : foldOfFunction(fn);
  e->isAtomic = (e->isLibrary && fn->getName().starts_with("atomic")) || !e->folds.empty();
  if (e->isAtomic && !e->args.empty()) // atomicAdd(p + i, x) is atomicAdd(&p[i], x)
    if (ExprRef place = pointedTo(e->args[0]); place->kind == ExprKind::Subscript && place != e->args[0])
      e->args[0] = addressOf(place);
  return e;
}
