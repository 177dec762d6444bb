//===- SlideWindow.cpp - sums over a window that moves --------------------===//
//
// slide-window[kernel/loop]{rows=16}: of a kernel in which every thread sums integers over a window, a thread takes
// `rows` neighbouring outputs, and moves its window from one to the next: what leaves it is subtracted, what enters it
// is added. A box filter of 15 x 15 then adds 30 numbers an output in place of 225.
//
// Example:
//   int s = 0;                                  int s_of_window = 0, first = 0, end = 0;
//   for (int j = max(0, y - r);                 for (int row = 0; row < 16; ++row) {
//        j < min(h, y + r + 1); ++j)              … y stands for y + row …
//     s += in[j * w + x];                         const int from = max(0, y - r), to = min(h, y + r + 1);
//   out[y * w + x] = s;                           if (from < first || to < end || from > end) {
//                                                   s_of_window = 0; first = from; end = from;
//                                                 }
//                                                 for (int j = first; j < from; ++j) s_of_window -= in[j * w + x];
//                                                 for (int j = end; j < to; ++j) s_of_window += in[j * w + x];
//                                                 first = from; end = to;
//                                                 int s = 0;
//                                                 s += s_of_window;
//                                                 out[y * w + x] = s;
//                                               }
//
// Legal: as for `coarsen`, under the same conditions, and only for integers, whose sums modulo 2^32 or 2^64 do not
// depend on the order. An iteration only adds to variables from outside of the loop, and what it adds depends on its
// counter and on other axes, but not on the axis along which the outputs are neighbours. A counter that is relative to
// the output (`in[(y + d) * w + x]`, d from -r to r) becomes an absolute one. What the kernel writes does not overlap
// what the loop reads (a condition). Where windows do not move forward, or do not overlap, the sum starts anew.
//
// Refuses: floating-point sums, whose rounding errors would add up; loops within loops; a block shape that is not
// fixed; and what `coarsen` refuses.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/Transform.h"

using namespace optiml;

namespace {

/// The loop, and what moves its window.
class Window {
public:
  Window(KernelState &state, Kernel &kernel, const KernelModel &model, Stmt &loop, unsigned axis, int64_t rows)
      : state(state), kernel(kernel), model(model), loop(loop), index(axisName("globalIdx", axis)), axis(axis),
        rows(rows), taken(allNames(kernel)) {}
  llvm::Error slide();

private:
  struct Sum {
    std::string name;
    Type type;
    ExprRef slid; ///< in the window, of an unsigned type
  };
  void findFollowers();
  bool follows(const ExprRef &e) const {
    return anyNode(e, [&](const ExprRef &x) {
      return isBuiltin(x, index) || (x->kind == ExprKind::Var && followers.count(x->text));
    });
  }
  ExprRef absolute(const ExprRef &e) const;
  llvm::Error makeAbsolute();
  llvm::Error findSums();
  StmtRef part(bool enters, const ExprRef &from, const ExprRef &to);

  KernelState &state;
  Kernel &kernel;
  const KernelModel &model;
  Stmt &loop;
  std::string index;
  unsigned axis;
  int64_t rows;
  std::set<std::string> taken;
  std::set<std::string> followers; ///< names whose values depend on the index
  CountedLoop counted;
  std::vector<Sum> sums;
};

class SlideWindow : public Transform {
public:
  llvm::StringRef name() const override { return "slide-window"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    if (!state.pinnedBlock()[0])
      return result;
    std::vector<Params> values;
    for (const char *axis : {"y", "x"})
      for (const char *rows : {"16", "32", "8", "64"})
        values.push_back({{"axis", axis}, {"rows", rows}});
    for (const auto &[path, stmt] : countedLoops(*state.tree))
      offer(result, state, path, values);
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override {
    std::array<int64_t, 3> shape = state.pinnedBlock();
    if (!shape[0])
      return notApplicable("the block shape is not fixed yet (apply block-shape first)");
    int64_t rows = paramInt(params, "rows", 16);
    auto which = params.find("axis");
    unsigned axis = which != params.end() && which->second == "x" ? 0 : 1;
    if (rows < 2 || rows > 1024)
      return notApplicable("a thread takes 2 to 1024 outputs");
    auto kernel = state.tree->clone();
    Stmt *loop = findLoop(*kernel, site);
    if (!loop)
      return notApplicable("there is no counted loop '{0}'", site);
    std::array<CopyAxis, 3> copies;
    for (unsigned a = 0; a < 3; ++a)
      copies[a].axis = a;
    copies[axis].factor = rows;
    copies[axis].distance = 1;
    copies[axis].var = "row";
    KernelState result = state.withTree(kernel);
    auto merge = [&](KernelState &s, Kernel &k, const KernelModel &model) {
      return Window(s, k, model, *loop, axis, rows).slide();
    };
    if (llvm::Error e = remapThreads(result, *kernel, shape, copies, merge))
      return std::move(e);
    return result;
  }
};
} // namespace

/// Names that are assigned what follows the index, or assigned where it decides whether they are.
void Window::findFollowers() {
  std::set<std::string> declared;
  // `decided`: what was declared before the innermost condition that follows the index.
  std::function<void(const Stmt &, const std::set<std::string> &)> visit = [&](const Stmt &s,
                                                                               const std::set<std::string> &decided) {
    if (s.kind == StmtKind::Decl) {
      declared.insert(s.text);
      if (s.expr && follows(s.expr) && s.text != counted.var)
        followers.insert(s.text);
    }
    ownExprs(const_cast<Stmt &>(s), [&](ExprRef &e) {
      walk(e, [&](const ExprRef &x) {
        const Expr *changed = mayChange(x) ? objectOf(x->args[0]) : nullptr;
        if (changed && changed->kind == ExprKind::Var && changed->text != counted.var &&
            (decided.count(changed->text) || follows(x)))
          followers.insert(changed->text);
      });
    });
    if (s.init)
      visit(*s.init, decided);
    bool decides = (s.kind == StmtKind::If || isLoop(s)) && s.expr && follows(s.expr);
    const std::set<std::string> inside = decides ? declared : decided;
    for (const StmtRef &child : s.body)
      visit(*child, inside);
  };
  for (size_t known = SIZE_MAX; known != followers.size();) {
    known = followers.size();
    declared.clear();
    visit(*kernel.body, {});
  }
}

/// The expression by the absolute counter, of the same name, where it depends on no output any more; null where it
/// does.
ExprRef Window::absolute(const ExprRef &e) const {
  bool isSum = e->type.isInt() && (e->kind == ExprKind::Binary || e->kind == ExprKind::Cast) &&
               inverseComparison(e->text).empty() && (follows(e) || mentions(e, counted.var));
  if (isSum) {
    Poly p = model.poly(e).substitute(counted.var, Poly::atom(counted.var) - Poly::atom(index));
    ExprRef made = p.atoms().count(index) ? nullptr : polyExpr(model, p);
    if (made && !follows(made))
      return e->type.bytes == 8 ? wideExpr(made) : made;
  }
  if (e->kind == ExprKind::Var)
    return e->text == counted.var || followers.count(e->text) ? nullptr : e;
  if (isBuiltin(e, index))
    return nullptr;
  bool good = true;
  ExprRef result = mapOperands(e, [&](const ExprRef &operand) {
    ExprRef made = absolute(operand);
    good &= made != nullptr;
    return made ? made : operand;
  });
  return good ? result : nullptr;
}

/// "for (d = -r; …) in[y + d]" as "for (d = y - r; …) in[d]", where iterations depend on the output otherwise.
llvm::Error Window::makeAbsolute() {
  for (const Sum &sum : sums)
    followers.erase(sum.name); // they do, and are no part of what is added
  if (!anyExpr(*loop.body[0], [&](const ExprRef &e) {
        return isBuiltin(e, index) || (e->kind == ExprKind::Var && followers.count(e->text));
      }))
    return llvm::Error::success();
  bool good = true;
  StmtRef body = clone(loop.body[0]);
  walk(*body, [&](Stmt &s) {
    ownExprs(s, [&](ExprRef &e) {
      if (!e || (isAssignStmt(s, "+=") && s.expr == e))
        return;
      ExprRef made = absolute(e);
      good &= made != nullptr;
      e = made ? made : e;
    });
    if (isAssignStmt(s, "+=")) {
      ExprRef made = absolute(s.expr->args[1]);
      good &= made != nullptr;
      if (made)
        s.expr = assign("+=", s.expr->args[0], made);
    }
  });
  if (!good)
    return notApplicable("what an iteration adds depends on the output (line {0})", loop.line);
  loop.body[0] = body;
  ExprRef output = axisBuiltin("globalIdx", axis);
  Type type = Type::makeLong(); // the output's index may be anywhere
  counted.lower = add(castTo(type, counted.lower), output);
  counted.upper = add(castTo(type, counted.upper), output);
  substitute(*loop.body[0], {{counted.var, var(counted.var, type)}});
  counted.type = type;
  return llvm::Error::success();
}

llvm::Error Window::findSums() {
  std::set<std::string> inside = namesDeclaredIn(loop);
  std::map<std::string, unsigned> explained;
  bool good = !leavesIteration(*loop.body[0], {StmtKind::Break}) &&
              !holdsKind(loop, {StmtKind::Opaque, StmtKind::Barrier, StmtKind::Return}) &&
              !leavesIteration(*loop.body[0], {StmtKind::Continue});
  walk(*loop.body[0], [&](Stmt &s) {
    if (s.kind != StmtKind::Expr || !isChange(s.expr) || s.expr->args[0]->kind != ExprKind::Var ||
        inside.count(s.expr->args[0]->text))
      return;
    const ExprRef &v = s.expr->args[0];
    bool adds = (s.expr->kind == ExprKind::Assign && (s.expr->text == "+=" || s.expr->text == "-=")) ||
                s.expr->kind == ExprKind::IncDec;
    bool isNumber = v->type.cls == Type::Class::Int && !v->type.isVolatile && v->type.bytes >= 4 &&
                    (s.expr->kind == ExprKind::IncDec || s.expr->args[1]->type.isInt());
    good &= adds && isNumber;
    ++explained[v->text];
    if (good && llvm::none_of(sums, [&](const Sum &sum) { return sum.name == v->text; })) {
      Type type = v->type.unqualified();
      Type slid = type.bytes == 8 ? Type::makeLong() : Type::makeUnsigned();
      sums.push_back({v->text, type, var(freshName(taken, v->text + "_of_window"), slid)});
    }
  });
  walkExprs(*loop.body[0], [&](const ExprRef &e) {
    good &= e->pure;
    if (mayChange(e) && (e->args[0]->kind != ExprKind::Var || !inside.count(e->args[0]->text)))
      good &= e->args[0]->kind == ExprKind::Var && explained.count(e->args[0]->text);
  });
  std::map<std::string, unsigned> mentioned = countMentions(*loop.body[0]);
  for (const auto &[name, count] : explained)
    good &= mentioned[name] == count;
  if (!good || sums.empty())
    return notApplicable("the loop does more than to add integers (line {0})", loop.line);
  return llvm::Error::success();
}

/// for (counter = from; counter < to; ++counter) what enters or leaves
StmtRef Window::part(bool enters, const ExprRef &from, const ExprRef &to) {
  StmtRef body = clone(loop.body[0]);
  walk(*body, [&](Stmt &s) {
    if (s.kind != StmtKind::Expr || !isChange(s.expr) || s.expr->args[0]->kind != ExprKind::Var)
      return;
    for (const Sum &sum : sums)
      if (sum.name == s.expr->args[0]->text) {
        bool counts = s.expr->kind == ExprKind::IncDec;
        bool plus = (s.expr->text.find('+') != std::string::npos) == enters;
        ExprRef value = counts ? intLit(1) : s.expr->args[1];
        s.expr = assign(plus ? "+=" : "-=", sum.slid, counts ? value : castTo(sum.slid->type, value));
        return;
      }
  });
  StmtRef made = countedFor(counted.var, counted.type.unqualified(), from, to, 1, body, NoUnroll);
  renameDeclarations(*made->body[0], taken);
  return atLine(loop.line, made);
}

llvm::Error Window::slide() {
  auto found = asCountedLoop(loop);
  if (!found || found->step != 1 || loop.body[0]->kind != StmtKind::Block)
    return notApplicable("line {0}: the loop does not count in steps of one", loop.line);
  counted = *found;
  for (const Access &access : model.accesses())
    if (insideOf(access, &loop))
      for (const Stmt *s : access.path)
        if (s != &loop && isLoop(*s) && holdsStmt(*s, &loop))
          return notApplicable("the loop stands in another one (line {0})", s->line);
  removeContinues(loop);
  findFollowers();
  if (!follows(counted.lower) && !follows(counted.upper) && !anyExpr(*loop.body[0], [&](const ExprRef &e) {
        return isBuiltin(e, index) || (e->kind == ExprKind::Var && followers.count(e->text));
      }))
    return notApplicable("the window does not move along {0}", char('x' + axis));
  if (hasEffects(counted.lower) || hasEffects(counted.upper))
    return notApplicable("line {0}: the loop's bounds have effects", loop.line);
  if (llvm::Error e = findSums())
    return e;
  std::set<std::string> arrays;
  for (const Access &access : model.accesses())
    if (insideOf(access, &loop) && access.space == Space::Global)
      arrays.insert(access.array);
    else if (insideOf(access, &loop) && !namesDeclaredIn(loop).count(access.array))
      return notApplicable("the loop reads '{0}', which is a thread's own (line {1})", access.array, access.stmt->line);
  if (llvm::Error e = requireDisjointFromWritten(state, model, arrays))
    return e;
  if (llvm::Error e = makeAbsolute())
    return e;

  Type type = counted.type.unqualified();
  auto fresh = [&](const char *wish) { return var(freshName(taken, counted.var + wish), type); };
  ExprRef first = fresh("_first"), end = fresh("_end"), from = fresh("_from"), to = fresh("_to");
  auto set = [](const ExprRef &v, const ExprRef &value) { return exprStmt(assign("=", v, value)); };
  std::vector<StmtRef> start = {declStmt(first->text, type, intLit(0)), declStmt(end->text, type, intLit(0))};
  StmtRef anew = block({set(first, from), set(end, from)});
  for (const Sum &sum : sums) {
    start.push_back(declStmt(sum.slid->text, sum.slid->type, intLit(0)));
    anew->body.push_back(set(sum.slid, intLit(0)));
  }
  auto either = [](const ExprRef &a, const ExprRef &b) { return binary("||", a, b, Type::makeBool()); };
  std::vector<StmtRef> made = {
      declStmt(from->text, type.withConst(true), counted.lower),
      declStmt(to->text, type.withConst(true), counted.upper),
      ifStmt(either(either(lessThan(from, first), lessThan(to, end)), lessThan(end, from)), anew),
      part(/*enters=*/false, first, from),
      part(/*enters=*/true, end, to),
      set(first, from),
      ifStmt(lessThan(end, to), block({set(end, to)}))};
  for (const Sum &sum : sums)
    made.push_back(exprStmt(assign("+=", var(sum.name, sum.type), castTo(sum.type, sum.slid))));
  auto place = findPlace(*kernel.body, &loop);
  if (!place)
    return notApplicable("the loop is not found");
  std::vector<StmtRef> &list = place->block->body;
  list.erase(list.begin() + long(place->index));
  list.insert(list.begin() + long(place->index), made.begin(), made.end());

  std::string row = freshName(taken, "row");
  ExprRef output = add(axisBuiltin("globalIdx", axis), var(row, Type::makeInt()));
  StmtRef body = kernel.body;
  rewriteExprs(*body, [&](const ExprRef &e) -> ExprRef { return isBuiltin(e, index) ? output : nullptr; });
  start.push_back(countedFor(row, Type::makeInt(), intLit(0), intLit(rows), 1, body, NoUnroll));
  kernel.body = block(start);
  return llvm::Error::success();
}

DEFINE_TRANSFORM(SlideWindow)
