//===- Jumps.cpp - early exits as conditions ------------------------------===//
#include "optiml/Analysis/Jumps.h"
#include "optiml/Support/Error.h"

using namespace optiml;

/// A return, or a `continue` or `break` of the loop around.
static bool jumps(const Stmt &s, StmtKind kind) {
  if (s.kind == kind)
    return true;
  for (const StmtRef &child : s.body)
    if (!(kind != StmtKind::Return && isLoop(*child)) && jumps(*child, kind))
      return true;
  return false;
}

static llvm::Error removeJumps(Stmt &block, StmtKind kind) {
  llvm::StringRef what = kind == StmtKind::Return  ? "returns"
                         : kind == StmtKind::Break ? "goes on"
                                                   : "goes on with the next iteration";
  for (size_t i = 0; i < block.body.size(); ++i) {
    StmtRef s = block.body[i];
    if (s->kind == kind) {
      block.body.resize(i); // nothing after it runs
      return llvm::Error::success();
    }
    if ((kind != StmtKind::Return && isLoop(*s)) || !jumps(*s, kind))
      continue;
    if (s->kind != StmtKind::If)
      return notApplicable("it {0} from inside a loop (line {1})", what, s->line);
    // if (c) A else B; rest   where a branch jumps: move `rest` into the branches that go on.
    std::vector<StmtRef> rest(block.body.begin() + long(i) + 1, block.body.end());
    if (s->body.size() == 1)
      s->body.push_back(optiml::block());
    auto ends = [&](const Stmt &branch) { return !branch.body.empty() && branch.body.back()->kind == kind; };
    bool thenEnds = ends(*s->body[0]), elseEnds = ends(*s->body[1]);
    if (!thenEnds && !elseEnds) {
      if (s->body[1]->body.empty())
        s->body.pop_back();
      return notApplicable("it {0} from a nested place that does not end its branch (line {1})", what, s->line);
    }
    StmtRef onward = s->body[thenEnds ? 1 : 0];
    if (!(thenEnds && elseEnds))
      onward->body.insert(onward->body.end(), rest.begin(), rest.end());
    block.body.resize(i + 1);
    llvm::Error problem = llvm::Error::success();
    for (StmtRef &branch : s->body)
      problem = llvm::joinErrors(std::move(problem), removeJumps(*branch, kind));
    if (s->body[1]->body.empty())
      s->body.pop_back();
    else if (s->body[0]->body.empty()) {
      s->expr = logicalNot(s->expr);
      s->body.erase(s->body.begin());
    }
    return problem;
  }
  return llvm::Error::success();
}

llvm::Error optiml::removeReturns(Stmt &body) { return removeJumps(body, StmtKind::Return); }

void optiml::removeContinues(Stmt &s) {
  walk(s, [](Stmt &loop) {
    if (isLoop(loop))
      llvm::consumeError(removeJumps(*loop.body[0], StmtKind::Continue));
  });
}

bool optiml::runsOnce(Stmt &loop) {
  if (loop.kind != StmtKind::Do || constantValue(loop.expr) != 0)
    return false;
  llvm::consumeError(removeJumps(*loop.body[0], StmtKind::Continue));
  llvm::consumeError(removeJumps(*loop.body[0], StmtKind::Break));
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
