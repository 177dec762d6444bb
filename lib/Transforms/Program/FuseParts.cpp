//===- FuseParts.cpp - kernels with names of their own --------------------===//
#include "FuseParts.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

std::set<std::string> optiml::declaredIn(const Kernel &kernel) {
  std::set<std::string> result;
  for (const Param &param : kernel.params)
    result.insert(param.name);
  result.merge(namesDeclaredIn(*kernel.body));
  return result;
}

/// A barrier that some of a block's threads may pass by; its line, or nothing.
static std::optional<unsigned> unsharedBarrier(const Stmt &s, const KernelModel &model, bool isShared = true) {
  if (s.kind == StmtKind::Barrier)
    return isShared ? std::nullopt : std::optional(s.line);
  const bool isConditional = s.kind == StmtKind::If || isLoop(s);
  if (isConditional) {
    isShared &= !s.expr || !(model.varies(s.expr) & AnyThread);
    // A thread may leave before the others do.
    isShared &= !isLoop(s) || !holdsKind(*s.body[0], {StmtKind::Break, StmtKind::Continue, StmtKind::Return});
  }
  for (const StmtRef &child : s.body)
    if (auto line = unsharedBarrier(*child, model, isShared))
      return line;
  return std::nullopt;
}

/// What other threads wait for, or may: barriers that do nothing else aside, and what exchanges values within a warp.
static bool mayWaitOtherwise(const Kernel &kernel) {
  const std::shared_ptr<Kernel> rest = kernel.clone();
  forEachList(*rest->body, [](std::vector<StmtRef> &list) {
    std::erase_if(list, [](const StmtRef &s) { return s->kind == StmtKind::Barrier; });
  });
  rewriteExprs(*rest->body, [](const ExprRef &e) -> ExprRef {
    const bool isOfWarp = e->kind == ExprKind::Call && onlyExchangesRegisters(*e) &&
                          !llvm::StringRef(e->text).starts_with("__syncthreads");
    return isOfWarp ? intLit(0) : nullptr;
  });
  return hasBarrier(*rest->body);
}

llvm::Error optiml::requireVisible(const Kernel &kernel, const KernelModel &model, Meetings meetings) {
  for (const Param &param : kernel.params)
    if (param.type.isPointer() && (!param.type.pointee || param.type.pointee->isVolatile))
      return notApplicable("'{0}' points to volatile memory", param.name);
  const bool mayMeet = meetings == Meetings::OfAll;
  if (mayMeet ? mayWaitOtherwise(kernel) : hasBarrier(*kernel.body))
    return notApplicable("its threads wait for each other");
  if (auto line = unsharedBarrier(*kernel.body, model))
    return notApplicable("not all threads of a block may meet at line {0}", *line);
  if (unsigned line = mayMeet ? model.unknownMemoryLine() : model.unknownEffectLine())
    return notApplicable("it may write memory in ways that are not understood (line {0})", line);
  std::optional<unsigned> hidden;
  auto hide = [&](unsigned line) { hidden = hidden.value_or(line); };
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Opaque || (s.isShared && (!mayMeet || s.isExtern)))
      hide(s.line);
  });
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    bool calls = e->kind == ExprKind::Call && !e->isAtomic;
    if (isUnary(e, "*") || (calls && llvm::any_of(e->args, [](const ExprRef &a) { return a->type.isPointer(); })))
      hide(e->line);
    if (e->kind == ExprKind::Opaque)
      for (const std::string &name : e->names)
        if (const Param *param = model.param(name);
            (param && (param->type.isPointer() || !param->fields.empty())) || !e->pure)
          hide(e->line);
  });
  if (hidden)
    return notApplicable("what it accesses is not understood (line {0})", *hidden);
  return llvm::Error::success();
}

static bool sameValue(const Type &a, const Type &b) {
  auto element = [](const Type &pointer) {
    llvm::StringRef text = pointer.pointee->text;
    text.consume_front("const ");
    return text;
  };
  if (a.isPointer() && b.isPointer() && a.pointee && b.pointee)
    return element(a) == element(b);
  return (a.isInt() || a.isFloat() || a.cls == Type::Class::Record) && a.text == b.text;
}

/// Whether a pointer can be used in the place of another one that has the same value.
static bool canStandFor(const Type &pointer, const Type &other) {
  return pointer.isPointer() && pointer.pointee && other.isPointer() && other.pointee && sameValue(pointer, other) &&
         (!pointer.pointee->isConst || other.pointee->isConst);
}

FuseParts::FuseParts(const std::string &name) : fused(std::make_shared<Kernel>()) {
  fused->name = name;
  fused->body = block();
}

llvm::Error FuseParts::add(const KernelPart &given) {
  std::shared_ptr<Kernel> part = given.tree->clone();
  part->least.clear(); // its conditions are not those of the fused kernel
  if (given.arguments.size() != part->params.size())
    return notApplicable("its launch relies on default arguments");
  if (llvm::Error e = requireConstantParameters(*part))
    return e;
  if (llvm::Error e = removeReturns(*part))
    return e;
  if (llvm::Error e = rename(*part, given.arguments))
    return e;
  for (size_t i = 0; i < given.arguments.size(); ++i)
    for (auto [buffers, own] : {std::pair(&given.dead, &dead), std::pair(&given.fresh, &fresh)})
      if (buffers->count(given.arguments[i]))
        own->insert(names.back()[i]);
  mentioned.merge(allNames(*part));
  parts.push_back(part);
  return llvm::Error::success();
}

/// Gives what the part declares names that nothing else in the fused kernel has.
llvm::Error FuseParts::rename(Kernel &part, const std::vector<std::string> &arguments) {
  std::set<std::string> own = declaredIn(part), all = allNames(part), taken = allNames(*fused);
  taken.insert(declared.begin(), declared.end());
  taken.insert(mentioned.begin(), mentioned.end());
  for (const std::string &name : all)
    if (!own.count(name) && declared.count(name))
      return notApplicable("'{0}' is a local name in one and a name of the file in the other", name);
  std::map<std::string, ExprRef> renamed;
  names.emplace_back();
  std::set<std::string> inUse = taken; // a parameter's name must not be one of the part's other names either
  for (const std::string &name : all)
    if (!llvm::any_of(part.params, [&](const Param &p) { return p.name == name; }))
      inUse.insert(name);
  for (size_t i = 0; i < part.params.size(); ++i) {
    const Param &param = part.params[i];
    const std::string name = parameterFor(param, arguments[i], inUse);
    names.back().push_back(name);
    if (name != param.name)
      renamed[param.name] = var(name, param.type);
    for (const Param::Field &field : param.fields) { // p.data is a name of its own
      if (!field.type.isPointer())
        continue;
      std::string place = name + "." + field.name;
      if (auto shared = pointerFor(field.type, arguments[i] + "." + field.name)) {
        same.push_back({IntExpr::of(place + " == " + *shared), "the same argument"});
        place = *shared;
      }
      if (place != param.name + "." + field.name)
        renamed[param.name + "." + field.name] = var(place, field.type);
    }
  }
  for (const Param &param : fused->params)
    taken.insert(param.name);
  std::map<std::string, std::string> locals;
  walk(*part.body, [&](Stmt &s) {
    if (s.kind != StmtKind::Decl || (!taken.count(s.text) && !locals.count(s.text)))
      return;
    if (auto known = locals.find(s.text); known == locals.end()) {
      std::set<std::string> avoid = taken;
      avoid.insert(all.begin(), all.end());
      locals[s.text] = freshName(avoid, s.text);
      taken.insert(locals[s.text]);
    }
    Type type = s.type;
    renamed[s.text] = var(locals[s.text], type);
    s.text = locals[s.text];
  });
  auto changed = llvm::make_first_range(renamed);
  if (opaqueMentions(*part.body, {changed.begin(), changed.end()}))
    return notApplicable("text that is kept as it is mentions a name that both have");
  rewriteExprs(*part.body, [&](const ExprRef &e) -> ExprRef { // keeps each use's own type
    auto it = e->kind == ExprKind::Var ? renamed.find(e->text) : renamed.end();
    return it == renamed.end() ? nullptr : var(it->second->text, e->type);
  });
  for (size_t i = 0; i < part.params.size(); ++i) {
    const std::string record = llvm::StringRef(names.back()[i]).split('.').first.str();
    if (record != names.back()[i])
      part.params[i] = *llvm::find_if(fused->params, [&](const Param &p) { return p.name == record; });
    part.params[i].name = record;
  }
  declared.merge(declaredIn(part));
  return llvm::Error::success();
}

/// The parameter that is given a pointer, "image.data", of a record.
std::optional<std::string> FuseParts::pointerFor(const Type &field, const std::string &argument) const {
  for (const Param &other : fused->params)
    if (sharesFields && canStandFor(other.type, field) && llvm::is_contained(argumentsOf.at(other.name), argument))
      return other.name;
  return std::nullopt;
}

/// The pointer of a record that the argument, "image.data", is.
std::optional<std::string> FuseParts::fieldFor(const Type &pointer, const std::string &argument) const {
  for (const Param &other : fused->params)
    for (const Param::Field &field : other.fields)
      if (sharesFields && canStandFor(field.type, pointer) &&
          llvm::any_of(argumentsOf.at(other.name),
                       [&](const std::string &record) { return record + "." + field.name == argument; }))
        return other.name + "." + field.name;
  return std::nullopt;
}

/// The fused kernel's parameter for one of a part: one that is given the same argument, or a new one.
std::string FuseParts::parameterFor(const Param &param, const std::string &argument, std::set<std::string> &taken) {
  for (Param &other : fused->params)
    if (llvm::is_contained(argumentsOf[other.name], argument) && sameValue(param.type, other.type)) {
      if (other.type.isPointer() && other.type.pointee->isConst && !param.type.pointee->isConst) {
        other.type = param.type;
        other.type.isRestrict = false;
        sources[other.name] = {unsigned(names.size() - 1), unsigned(names.back().size())};
      }
      return other.name;
    }
  if (auto field = fieldFor(param.type, argument))
    return *field;
  Param own = param;
  own.name = freshName(taken, param.name);
  own.type.isRestrict = false; // nothing is promised about the other parts' arrays
  fused->params.push_back(own);
  argumentsOf[own.name].push_back(argument);
  sources[own.name] = {unsigned(names.size() - 1), unsigned(names.back().size())};
  return own.name;
}
