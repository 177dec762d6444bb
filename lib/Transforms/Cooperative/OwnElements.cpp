//===- OwnElements.cpp - elements that belong to a thread -----------------===//
//
// float h[16];  for (t…) { for (n < 16) h[n] = a * h[n] + b[n * length + t]; … }  Thread n of a group of 16 keeps h[n].
//
//===----------------------------------------------------------------------===//
#include "OwnElements.h"
#include "ArrayFolds.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

OwnElements::OwnElements(Kernel &kernel, int64_t threads, bool strictFloat) : kernel(kernel) {
  std::map<std::string, unsigned> declared;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::Decl)
      return;
    ++declared[s.text];
    if (s.dims.size() == 1 && !s.isShared && !s.expr && !s.type.isVolatile && (s.type.isInt() || s.type.isFloat()) &&
        constantValue(s.dims[0]) == std::optional(threads))
      arrays[s.text] = {&s, {}};
  });
  std::erase_if(arrays, [&](const auto &array) {
    return declared[array.first] != 1 || opaqueMentions(*kernel.body, {array.first});
  });
  if (arrays.empty())
    return;
  // Every mention is the element of an iteration's number.
  std::set<std::string> others;
  std::vector<const Stmt *> around;
  std::function<void(Stmt &)> visit = [&](Stmt &s) {
    ownExprs(s, [&](ExprRef &top) {
      std::map<std::string, unsigned> named, elements;
      walk(top, [&](const ExprRef &e) {
        if (e->kind == ExprKind::Var && arrays.count(e->text))
          ++named[e->text];
        if (e->kind != ExprKind::Subscript || e->args[0]->kind != ExprKind::Var || !arrays.count(e->args[0]->text))
          return;
        auto loop =
            llvm::find_if(llvm::reverse(around), [&](const Stmt *l) { return isVar(e->args[1], l->init->text); });
        if (loop == around.rend())
          return;
        ++elements[e->args[0]->text];
        arrays[e->args[0]->text].loops.insert(*loop);
      });
      for (const auto &[name, count] : named)
        if (elements[name] != count)
          others.insert(name);
    });
    auto counted = asCountedLoop(s);
    const bool isWhole = counted && counted->step == 1 && constantValue(counted->lower) == std::optional<int64_t>(0) &&
                         counted->tripCount() == std::optional(threads) && !countChanges(*s.body[0])[counted->var];
    if (isWhole)
      around.push_back(&s);
    for (const StmtRef &child : s.body)
      visit(*child);
    if (isWhole)
      around.pop_back();
  };
  visit(*kernel.body);
  // What another loop folds into, threads that share that loop have whole.
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (const StmtRef &s : list)
      if (isLoop(*s))
        for (const ArrayFold &fold : findArrayFolds(kernel, s, strictFloat))
          if (auto array = arrays.find(fold.array); array != arrays.end() && !array->second.loops.count(s.get()))
            others.insert(fold.array);
  });
  std::erase_if(arrays, [&](const auto &array) { return others.count(array.first) || array.second.loops.empty(); });
}

std::set<std::string> OwnElements::in(const Stmt &loop) const {
  std::set<std::string> names;
  for (const auto &[name, array] : arrays)
    if (array.loops.count(&loop))
      names.insert(name);
  return names;
}

llvm::Error OwnElements::rewrite() {
  for (const auto &[name, array] : arrays) {
    const size_t own = size_t(llvm::count_if(array.loops, [&](const Stmt *loop) { return shared.count(loop) != 0; }));
    if (own == 0)
      continue;
    if (own != array.loops.size())
      return notApplicable("only some loops over the array '{0}' can be shared out", name);
    array.declaration->dims.clear();
    rewriteExprs(*kernel.body, [&, name = name](const ExprRef &e) -> ExprRef {
      const bool isElement = e->kind == ExprKind::Subscript && isVar(e->args[0], name);
      return isElement ? var(name, e->type.unqualified()) : nullptr;
    });
  }
  return llvm::Error::success();
}
