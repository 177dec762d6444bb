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

namespace {
/// Writes the loop of one scan.
class GroupScan {
public:
  GroupScan(const RunningSum &scan, const CountedLoop &counted, const ThreadGroup &group, int64_t items,
            std::set<std::string> &taken);
  std::vector<StmtRef> write();

private:
  std::string name(const std::string &wish) { return freshName(taken, wish); }
  ExprRef asCounter(const ExprRef &e) const;
  ExprRef inOwnType(const ExprRef &e) const { return counter.text == counted.type.text ? e : castTo(counted.type, e); }
  ExprRef shuffle(const char *function, const ExprRef &e, const ExprRef &by) const;
  std::vector<StmtRef> valueAt(const ExprRef &place, const ExprRef &term) const;
  ExprRef ifActive(const ExprRef &term) const;
  std::vector<StmtRef> foldAmongThreads();
  std::vector<StmtRef> workOn(const ExprRef &folded, const ExprRef &sum);
  StmtRef forItems(std::vector<StmtRef> body) const;
  void oneEach(std::vector<StmtRef> &body);
  void severalEach(std::vector<StmtRef> &body);

  const RunningSum &scan;
  const CountedLoop &counted;
  const ThreadGroup &group;
  const int64_t items;
  std::set<std::string> &taken;
  const Fold &fold;
  const std::string &sum;
  const Type type, constant, counter;
  const int64_t width, warps;
  const ExprRef thread = builtin("threadIdx.x");
  ExprRef base, own, active, value, before, totals, item;
};
} // namespace

GroupScan::GroupScan(const RunningSum &scan, const CountedLoop &counted, const ThreadGroup &group, int64_t items,
                     std::set<std::string> &taken)
    : scan(scan), counted(counted), group(group), items(items), taken(taken), fold(scan.folded.fold),
      sum(scan.folded.variable), type(scan.folded.type.unqualified()), constant(type.withConst(true)),
      counter(counted.type.bytes == 8 ? counted.type.withConst(false) : Type::makeLong()),
      width(std::min<int64_t>(group.threads, 32)), warps(group.threads / 32) {
  base = var(name(counted.var + "_of_group"), counter);
  own = var(name(counted.var + "_of_thread"), counter);
  active = var(name("active"), Type::makeBool());
  value = var(name(sum + "_of_lanes"), type);
  before = var(name(sum + "_before"), type);
  totals = var(name(sum + "_of_warps"), type);
  if (items > 1)
    item = var(name("item"), Type::makeInt());
}

ExprRef GroupScan::asCounter(const ExprRef &e) const {
  auto known = constantValue(e);
  return known ? intLit(*known, counter) : e->type.text == counter.text ? e : castTo(counter, e);
}

ExprRef GroupScan::shuffle(const char *function, const ExprRef &e, const ExprRef &by) const {
  std::vector<ExprRef> arguments = {group.mask(), e, by};
  if (width < 32)
    arguments.push_back(intLit(width));
  return callOf(function, arguments, type, false);
}

static ExprRef compare(const char *op, const ExprRef &a, const ExprRef &b) {
  return binary(op, a, b, Type::makeBool());
}

/// Of `value`, each thread's own: `before` gets the scalar with those of the threads before it, the scalar those of
/// all.
std::vector<StmtRef> GroupScan::foldAmongThreads() {
  const ExprRef total = var(sum, type);
  const ExprRef lane = group.threads > 32 ? binary("%", thread, intLit(32), thread->type) : thread;
  const ExprRef warp = binary("/", thread, intLit(32), thread->type);
  const ExprRef offset = var(name("offset"), Type::makeInt()), w = var(name("warp"), Type::makeInt());
  const ExprRef other = var(name(sum + "_of_other"), constant), left = var(name(sum + "_of_left"), constant);
  std::vector<StmtRef> made;
  StmtRef up = countedFor(offset->text, Type::makeInt(), intLit(1), intLit(width), 1,
                          block({declStmt(other->text, constant, shuffle("__shfl_up_sync", value, offset)),
                                 ifStmt(compare(">=", lane, offset), block({fold.into(value, other)}))}),
                          NoUnroll);
  up->step = assign("*=", offset, intLit(2));
  made.push_back(up);
  auto ofWarp = [&](const ExprRef &i) { return subscript(totals, i, type); };
  auto overWarps = [&](const ExprRef &end, const ExprRef &into) {
    return countedFor(w->text, Type::makeInt(), intLit(0), end, 1, block({fold.into(into, ofWarp(w))}), NoUnroll);
  };
  if (warps > 1) {
    made.push_back(ifStmt(compare("==", lane, intLit(31)), block({exprStmt(assign("=", ofWarp(warp), value))})));
    made.push_back(barrierStmt());
  }
  made.push_back(declStmt(before->text, type, total));
  if (warps > 1)
    made.push_back(overWarps(warp, before));
  made.push_back(declStmt(left->text, constant, shuffle("__shfl_up_sync", value, intLit(1))));
  made.push_back(ifStmt(compare(">", lane, intLit(0)), block({fold.into(before, left)})));
  if (warps > 1) {
    made.push_back(overWarps(intLit(warps), total));
  } else {
    const ExprRef all = var(name(sum + "_of_all"), constant);
    made.push_back(declStmt(all->text, constant, shuffle("__shfl_sync", value, intLit(width - 1))));
    made.push_back(fold.into(total, all));
    made.push_back(groupBarrier(group)); // threads beyond the end have looked at what the last iteration may change now
  }
  return made;
}

/// What an iteration does beside folding `folded`, with `seen` in place of the scalar as it was when it began.
std::vector<StmtRef> GroupScan::workOn(const ExprRef &folded, const ExprRef &seen) {
  std::vector<StmtRef> work = scan.before, last = scan.after;
  rename(work, sum, seen);
  if (llvm::any_of(scan.after, [&](const StmtRef &s) { return mentionsAny(*s, {sum}); })) {
    const ExprRef after = var(name(sum + "_after"), type);
    work.push_back(declStmt(after->text, type, seen));
    work.push_back(fold.into(after, folded));
    rename(last, sum, after);
  }
  llvm::append_range(work, last);
  return work;
}

/// What the iteration at `place` folds, in `term`. Beyond the end that is what the last iteration does.
std::vector<StmtRef> GroupScan::valueAt(const ExprRef &place, const ExprRef &term) const {
  ExprRef index = conditional(active, own, binary("-", asCounter(counted.upper), intLit(1), counter));
  std::vector<StmtRef> made = {declStmt(own->text, counter, place),
                               declStmt(active->text, Type::makeBool(), lessThan(own, counted.upper)),
                               declStmt(counted.var, counted.type, inOwnType(index))};
  llvm::append_range(made, scan.first);
  made.push_back(declStmt(term->text, constant, scan.folded.value));
  return made;
}

/// Beyond the end nothing is added.
ExprRef GroupScan::ifActive(const ExprRef &term) const {
  return conditional(active, term, fold.isIdempotent() ? term : fold.identity(type));
}

void GroupScan::oneEach(std::vector<StmtRef> &body) {
  const ExprRef term = var(name(sum + "_term"), constant);
  llvm::append_range(body, valueAt(add(base, castTo(counter, thread)), term));
  body.push_back(declStmt(value->text, type, ifActive(term)));
  llvm::append_range(body, foldAmongThreads());
  body.push_back(ifStmt(active, block(workOn(term, before))));
}

StmtRef GroupScan::forItems(std::vector<StmtRef> body) const {
  return countedFor(item->text, Type::makeInt(), intLit(0), intLit(items), 1, block(std::move(body)), FullUnroll);
}

/// Neighbouring iterations: their values first, which the thread folds by itself, and the rest once the scalar is
/// known.
void GroupScan::severalEach(std::vector<StmtRef> &body) {
  const ExprRef terms = var(name(sum + "_terms"), type), term = subscript(terms, item, type);
  const ExprRef place = add(base, castTo(counter, add(mul(thread, intLit(items)), item)));
  body.push_back(declStmt(terms->text, type, nullptr, {intLit(items)}));
  const ExprRef known = var(name(sum + "_term"), constant);
  std::vector<StmtRef> values = valueAt(place, known);
  values.push_back(exprStmt(assign("=", term, ifActive(known))));

  std::vector<StmtRef> rest = {declStmt(counted.var, counted.type, inOwnType(own))};
  for (const StmtRef &s : scan.first) { // what the rest looks at is kept: elements may have changed
    auto isSeen = [&](const StmtRef &t) { return mentionsAny(*t, {s->text}); };
    if (llvm::none_of(scan.before, isSeen) && llvm::none_of(scan.after, isSeen))
      continue;
    const Type kept = s->type.unqualified();
    const ExprRef all = subscript(var(name(s->text + "_of_items"), kept), item, kept);
    body.push_back(declStmt(all->args[0]->text, kept, nullptr, {intLit(items)}));
    values.push_back(exprStmt(assign("=", all, var(s->text, s->type))));
    rest.push_back(declStmt(s->text, s->type, all));
  }
  body.push_back(forItems(values));
  body.push_back(declStmt(value->text, type, subscript(terms, intLit(0), type)));
  body.push_back(countedFor(item->text, Type::makeInt(), intLit(1), intLit(items), 1, block({fold.into(value, term)}),
                            FullUnroll));
  llvm::append_range(body, foldAmongThreads());
  llvm::append_range(rest, workOn(term, before));
  StmtRef again = forItems({declStmt(own->text, counter, place), ifStmt(lessThan(own, counted.upper), block(rest)),
                            fold.into(before, term)});
  renameDeclarations(*again, taken); // two loops declare them
  body.push_back(again);
}

std::vector<StmtRef> GroupScan::write() {
  std::vector<StmtRef> result, body;
  if (warps > 1)
    result.push_back(sharedArray(totals->text, type, {intLit(warps)}));
  if (items > 1)
    severalEach(body);
  else
    oneEach(body);
  if (warps > 1)
    body.push_back(barrierStmt());
  result.push_back(countedFor(base->text, counter, asCounter(counted.lower), counted.upper, group.threads * items,
                              block(body), NoUnroll));
  return result;
}

std::vector<StmtRef> optiml::scanByGroup(const RunningSum &scan, const CountedLoop &counted, const ThreadGroup &group,
                                         int64_t items, std::set<std::string> &taken) {
  return GroupScan(scan, counted, group, items, taken).write();
}
