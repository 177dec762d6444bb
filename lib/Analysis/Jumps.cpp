//===- Jumps.cpp - early exits as conditions ------------------------------===//
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// Control never falls out of the end of the list.
static bool leaves(const std::vector<StmtRef> &list) {
  if (list.empty())
    return false;
  const Stmt &last = *list.back();
  return last.kind == StmtKind::Return || (last.kind == StmtKind::If && last.body.size() == 2 &&
                                           leaves(last.body[0]->body) && leaves(last.body[1]->body));
}

/// Ends the list, at `i`, with what the return there does but leave the function.
static bool endWithReturn(std::vector<StmtRef> &list, size_t i, const ExprRef &target) {
  StmtRef s = list[i];
  list.resize(i); // nothing after it runs
  if (!target)
    return true;
  if (!s->expr || s->expr->kind == ExprKind::InitList)
    return false;
  list.push_back(atLine(s->line, exprStmt(assign("=", target, s->expr))));
  return true;
}

static StmtRef breakStmt(unsigned line) {
  auto s = std::make_shared<Stmt>();
  s->kind = StmtKind::Break;
  s->line = line;
  return s;
}

static StmtRef setTrue(const ExprRef &flag, unsigned line) {
  return atLine(line, exprStmt(assign("=", flag, intLit(1, Type::makeBool()))));
}

/// Returns in a loop's body leave the loop.
static bool returnsBecomeBreaks(std::vector<StmtRef> &list, const ExprRef &target, const ExprRef &returned) {
  for (size_t i = 0; i < list.size(); ++i) {
    StmtRef s = list[i];
    if (s->kind == StmtKind::Return) {
      if (!endWithReturn(list, i, target))
        return false;
      list.push_back(setTrue(returned, s->line));
      list.push_back(breakStmt(s->line));
      return true;
    }
    if (!holdsKind(*s, {StmtKind::Return}))
      continue;
    for (StmtRef &child : s->body)
      if (!returnsBecomeBreaks(child->body, target, returned))
        return false;
    if (isLoop(*s)) {
      list.insert(list.begin() + long(i) + 1, atLine(s->line, ifStmt(returned, block({breakStmt(s->line)}))));
      ++i;
    }
  }
  return true;
}

/// Sets `returned` before each return that is in no loop.
static void noteReturns(std::vector<StmtRef> &list, const ExprRef &returned) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i]->kind == StmtKind::Return) {
      list.insert(list.begin() + long(i), setTrue(returned, list[i]->line));
      ++i;
    } else if (!isLoop(*list[i])) {
      for (StmtRef &child : list[i]->body)
        noteReturns(child->body, returned);
    }
  }
}

bool optiml::structureReturns(std::vector<StmtRef> &list, const ExprRef &target, const ExprRef &returned) {
  // What follows statement i runs where that one did not return.
  auto guardRest = [&](size_t i) {
    std::vector<StmtRef> rest(list.begin() + long(i) + 1, list.end());
    list.resize(i + 1);
    if (rest.empty())
      return true;
    list.push_back(ifStmt(logicalNot(returned), block(rest)));
    return structureReturns(list.back()->body[0]->body, target, returned);
  };
  for (size_t i = 0; i < list.size(); ++i) {
    StmtRef s = list[i];
    if (s->kind == StmtKind::Return)
      return endWithReturn(list, i, target);
    if (!holdsKind(*s, {StmtKind::Return}))
      continue;
    if (isLoop(*s) && returned) {
      if (!returnsBecomeBreaks(s->body[0]->body, target, returned))
        return false;
      return guardRest(i);
    }
    if (s->kind != StmtKind::If)
      return false;
    if (returned && i + 1 < list.size() && !leaves(s->body[0]->body) &&
        (s->body.size() == 1 || !leaves(s->body[1]->body))) {
      for (StmtRef &branch : s->body) {
        noteReturns(branch->body, returned);
        if (!structureReturns(branch->body, target, returned))
          return false;
      }
      return guardRest(i);
    }
    std::vector<StmtRef> rest(list.begin() + long(i) + 1, list.end());
    list.resize(i + 1);
    if (s->body.size() == 1)
      s->body.push_back(block());
    bool moved = rest.empty();
    for (StmtRef &branch : s->body)
      if (!rest.empty() && !leaves(branch->body)) {
        if (moved)
          return false;
        branch->body.insert(branch->body.end(), rest.begin(), rest.end());
        moved = true;
      }
    for (StmtRef &branch : s->body)
      if (!structureReturns(branch->body, target, returned))
        return false;
    if (s->body[0]->body.empty()) {
      s->expr = logicalNot(s->expr);
      s->body.erase(s->body.begin());
    } else if (s->body[1]->body.empty()) {
      s->body.pop_back();
    }
    if (s->body[0]->body.empty()) { // the condition alone is left
      list.pop_back();
      if (hasEffects(s->expr))
        list.push_back(atLine(s->line, exprStmt(s->expr)));
    }
    return true;
  }
  return true;
}

llvm::Error optiml::removeReturns(Kernel &kernel) {
  if (!holdsKind(*kernel.body, {StmtKind::Return}))
    return llvm::Error::success();
  const ExprRef returned = var(freshName(kernel, "returned"), Type::makeBool());
  std::vector<StmtRef> &list = kernel.body->body;
  if (!structureReturns(list, nullptr, returned))
    return notApplicable("it returns from a place that cannot become a condition");
  if (countMentions(*kernel.body).count(returned->text))
    list.insert(list.begin(), declStmt(returned->text, returned->type, intLit(0, returned->type)));
  return llvm::Error::success();
}

/// A `continue` or `break` of the loop around.
static bool jumps(const Stmt &s, StmtKind kind) {
  return s.kind == kind ||
         llvm::any_of(s.body, [&](const StmtRef &child) { return !isLoop(*child) && jumps(*child, kind); });
}

/// Takes away such jumps where they end a branch; the rest stays.
static void removeJumps(Stmt &block, StmtKind kind) {
  for (size_t i = 0; i < block.body.size(); ++i) {
    StmtRef s = block.body[i];
    if (s->kind == kind) {
      block.body.resize(i); // nothing after it runs
      return;
    }
    if (isLoop(*s) || !jumps(*s, kind))
      continue;
    if (s->kind != StmtKind::If)
      return;
    // if (c) A else B; rest   where a branch jumps: move `rest` into the branches that go on.
    std::vector<StmtRef> rest(block.body.begin() + long(i) + 1, block.body.end());
    if (s->body.size() == 1)
      s->body.push_back(optiml::block());
    auto ends = [&](const Stmt &branch) { return !branch.body.empty() && branch.body.back()->kind == kind; };
    bool thenEnds = ends(*s->body[0]), elseEnds = ends(*s->body[1]);
    if (!thenEnds && !elseEnds) {
      if (s->body[1]->body.empty())
        s->body.pop_back();
      return;
    }
    StmtRef onward = s->body[thenEnds ? 1 : 0];
    if (!(thenEnds && elseEnds))
      onward->body.insert(onward->body.end(), rest.begin(), rest.end());
    block.body.resize(i + 1);
    for (StmtRef &branch : s->body)
      removeJumps(*branch, kind);
    if (s->body[1]->body.empty())
      s->body.pop_back();
    else if (s->body[0]->body.empty()) {
      s->expr = logicalNot(s->expr);
      s->body.erase(s->body.begin());
    }
    return;
  }
}

void optiml::removeContinues(Stmt &s) {
  walk(s, [](Stmt &loop) {
    if (isLoop(loop))
      removeJumps(*loop.body[0], StmtKind::Continue);
  });
}

bool optiml::runsOnce(Stmt &loop) {
  if (loop.kind != StmtKind::Do || constantValue(loop.expr) != 0)
    return false;
  removeJumps(*loop.body[0], StmtKind::Continue);
  removeJumps(*loop.body[0], StmtKind::Break);
  return !leavesIteration(*loop.body[0]);
}

bool optiml::leavesEarly(const Stmt &s, bool isNested) {
  if (s.kind == StmtKind::Return || (s.kind == StmtKind::Break && !isNested))
    return true;
  return llvm::any_of(s.body, [&](const StmtRef &child) { return leavesEarly(*child, isNested || isLoop(s)); });
}

bool optiml::jumpsOut(const Stmt &s, bool breaks) {
  if (s.kind == StmtKind::Return || (breaks && (s.kind == StmtKind::Break || s.kind == StmtKind::Continue)))
    return true;
  return llvm::any_of(s.body, [&](const StmtRef &child) { return jumpsOut(*child, breaks && !isLoop(s)); });
}
