//===- RunningSum.cpp - scans along the loop of one thread ----------------===//
#include "RunningSum.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

static bool mentionsAny(Stmt &s, const std::set<std::string> &names) {
  return anyExpr(s, [&](const ExprRef &e) { return e->kind == ExprKind::Var && names.count(e->text); });
}

static bool loadsMemory(const ExprRef &value) {
  return anyNode(value, [](const ExprRef &e) { return isLoad(e) || isUnary(e, "*"); });
}

llvm::Expected<RunningSum> optiml::findRunningSum(Stmt &loop, const CountedLoop &counted, bool strictFloat) {
  const std::vector<StmtRef> &body = loop.body[0]->body;
  RunningSum scan;
  size_t at = body.size();
  for (size_t i = 0; i < body.size() && at == body.size(); ++i) {
    auto folded = asFold(*body[i]);
    if (!folded || folded->fold.kind == Fold::Kind::Compare)
      continue;
    bool seen = false, declared = false;
    for (const StmtRef &s : body) {
      seen |= s != body[i] && mentionsAny(*s, {folded->variable});
      declared |= s->kind == StmtKind::Decl && s->text == folded->variable;
    }
    if (seen && !declared) {
      at = i;
      scan.folded = *folded;
    }
  }
  if (at == body.size())
    return notApplicable("line {0}: no sum is followed along the loop", loop.line);
  const std::string &sum = scan.folded.variable;
  if (scan.folded.type.isFloat() && strictFloat)
    return notApplicable("line {0}: the order of a floating-point sum may not change (--optiml-fp=strict)", loop.line);
  const Type &type = scan.folded.type;
  if (!(type.isInt() || type.isFloat()) || type.isHalf || type.bytes < 4)
    return notApplicable("line {0}: threads cannot exchange '{1}'", loop.line, sum);
  if (mentions(counted.lower, sum) || mentions(counted.upper, sum) || counted.step != 1)
    return notApplicable("line {0}: the loop's head goes with its sum, or in steps", loop.line);
  // What the folded value needs comes first, by all threads; everything else waits until the scalar is known.
  std::set<std::string> late = {sum};
  bool lateWrites = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const StmtRef &s = body[i];
    if (i == at)
      continue;
    if (anyExpr(*s, [&](const ExprRef &e) { return mayChange(e) && isVar(e->args[0], sum); }))
      return notApplicable("line {0} changes the sum of the loop too", s->line);
    if (i > at) {
      scan.after.push_back(s);
      continue;
    }
    bool isFirst = s->kind == StmtKind::Decl && s->expr && s->dims.empty() && onlyComputes(s->expr) &&
                   !mentionsAny(*s, late) && !(lateWrites && loadsMemory(s->expr));
    if (isFirst) {
      scan.first.push_back(s);
      continue;
    }
    scan.before.push_back(s);
    walk(*s, [&](Stmt &t) {
      if (t.kind == StmtKind::Decl)
        late.insert(t.text);
      ownExprs(t, [&](ExprRef &whole) {
        walk(whole, [&](const ExprRef &e) {
          if (!isChange(e) && !e->isAtomic)
            return;
          lateWrites = true;
          if (!e->args.empty() && e->args[0]->kind == ExprKind::Var)
            late.insert(e->args[0]->text);
        });
      });
    });
  }
  bool dependent = !onlyComputes(scan.folded.value) || (lateWrites && loadsMemory(scan.folded.value));
  walk(scan.folded.value, [&](const ExprRef &e) { dependent |= e->kind == ExprKind::Var && late.count(e->text); });
  // What comes first must not change later in the iteration: the others' value is taken after it.
  for (const StmtRef &s : scan.first)
    for (const std::vector<StmtRef> *rest : {&scan.before, &scan.after})
      for (const StmtRef &t : *rest)
        walkExprs(*t, [&](const ExprRef &e) {
          dependent |= isChange(e) && isVar(e->args[0], s->text) && rest == &scan.before;
        });
  if (dependent)
    return notApplicable("line {0}: what is added to '{1}' depends on it", body[at]->line, sum);
  return scan;
}

static void rename(std::vector<StmtRef> &list, const std::string &name, const ExprRef &with) {
  for (StmtRef &s : list)
    substitute(*s, {{name, with}});
}

std::vector<StmtRef> optiml::scanByGroup(const RunningSum &scan, const CountedLoop &counted, const ThreadGroup &group,
                                         std::set<std::string> &taken) {
  const Type type = scan.folded.type.unqualified(), constant = type.withConst(true),
             counter = counted.type.bytes == 8 ? counted.type.withConst(false) : Type::makeLong();
  const Fold &fold = scan.folded.fold;
  const std::string &sum = scan.folded.variable;
  const int64_t width = std::min<int64_t>(group.threads, 32), warps = group.threads / 32;
  auto name = [&](const std::string &wish) { return freshName(taken, wish); };
  ExprRef thread = builtin("threadIdx.x"), total = var(sum, type);
  ExprRef lane = group.threads > 32 ? binary("%", thread, intLit(32), thread->type) : thread;
  ExprRef warp = binary("/", thread, intLit(32), thread->type);
  auto shuffle = [&](const char *function, const ExprRef &value, const ExprRef &by) {
    std::vector<ExprRef> arguments = {group.mask(), value, by};
    if (width < 32)
      arguments.push_back(intLit(width));
    return callOf(function, arguments, type, false);
  };
  ExprRef base = var(name(counted.var + "_of_group"), counter), own = var(name(counted.var + "_of_thread"), counter);
  ExprRef active = var(name("active"), Type::makeBool()), term = var(name(sum + "_term"), constant);
  ExprRef value = var(name(sum + "_of_lanes"), type), other = var(name(sum + "_of_other"), constant),
          left = var(name(sum + "_of_left"), constant);
  ExprRef before = var(name(sum + "_before"), type), after = var(name(sum + "_after"), type),
          offset = var(name("offset"), Type::makeInt());
  ExprRef totals = var(name(sum + "_of_warps"), type), w = var(name("warp"), Type::makeInt());

  std::vector<StmtRef> result, body;
  if (warps > 1)
    result.push_back(sharedArray(totals->text, type, {intLit(warps)}));
  // Threads beyond the end look at the last iteration and add nothing.
  ExprRef mine = add(base, castTo(counter, thread));
  body.push_back(declStmt(own->text, counter, mine));
  body.push_back(declStmt(active->text, Type::makeBool(), lessThan(own, counted.upper)));
  auto asCounter = [&](const ExprRef &e) {
    auto known = constantValue(e);
    return known ? intLit(*known, counter) : e->type.text == counter.text ? e : castTo(counter, e);
  };
  ExprRef index = conditional(active, own, binary("-", asCounter(counted.upper), intLit(1), counter));
  body.push_back(
      declStmt(counted.var, counted.type, counter.text == counted.type.text ? index : castTo(counted.type, index)));
  body.insert(body.end(), scan.first.begin(), scan.first.end());
  body.push_back(declStmt(term->text, constant, scan.folded.value));
  ExprRef nothing = fold.isIdempotent() ? term : fold.identity(type);
  body.push_back(declStmt(value->text, type, conditional(active, term, nothing)));
  auto isAt = [&](const char *op, const ExprRef &a, const ExprRef &b) { return binary(op, a, b, Type::makeBool()); };
  StmtRef up = countedFor(offset->text, Type::makeInt(), intLit(1), intLit(width), 1,
                          block({declStmt(other->text, constant, shuffle("__shfl_up_sync", value, offset)),
                                 ifStmt(isAt(">=", lane, offset), block({fold.into(value, other)}))}),
                          NoUnroll);
  up->step = assign("*=", offset, intLit(2));
  body.push_back(up);
  auto ofWarp = [&](const ExprRef &i) { return subscript(totals, i, type); };
  auto overWarps = [&](const ExprRef &end, const ExprRef &into) {
    return countedFor(w->text, Type::makeInt(), intLit(0), end, 1, block({fold.into(into, ofWarp(w))}), NoUnroll);
  };
  if (warps > 1) {
    body.push_back(ifStmt(isAt("==", lane, intLit(31)), block({exprStmt(assign("=", ofWarp(warp), value))})));
    body.push_back(barrierStmt());
  }
  body.push_back(declStmt(before->text, type, total));
  if (warps > 1)
    body.push_back(overWarps(warp, before));
  body.push_back(declStmt(left->text, constant, shuffle("__shfl_up_sync", value, intLit(1))));
  body.push_back(ifStmt(isAt(">", lane, intLit(0)), block({fold.into(before, left)})));
  if (warps > 1)
    body.push_back(overWarps(intLit(warps), total));
  else {
    ExprRef all = var(name(sum + "_of_all"), constant);
    body.push_back(declStmt(all->text, constant, shuffle("__shfl_sync", value, intLit(width - 1))));
    body.push_back(fold.into(total, all));
    body.push_back(groupBarrier(group)); // threads beyond the end have looked at what the last iteration may change now
  }
  std::vector<StmtRef> work = scan.before;
  rename(work, sum, before);
  if (llvm::any_of(scan.after, [&](const StmtRef &s) { return mentionsAny(*s, {sum}); })) {
    work.push_back(declStmt(after->text, type, before));
    work.push_back(fold.into(after, term));
  }
  std::vector<StmtRef> last = scan.after;
  rename(last, sum, after);
  work.insert(work.end(), last.begin(), last.end());
  body.push_back(ifStmt(active, block(work)));
  if (warps > 1)
    body.push_back(barrierStmt());
  StmtRef loop =
      countedFor(base->text, counter, asCounter(counted.lower), counted.upper, group.threads, block(body), NoUnroll);
  result.push_back(loop);
  return result;
}
