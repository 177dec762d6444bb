//===- PromoteAccumulator.cpp - keep a running sum in a register ----------===//
//
// promote-accumulator[kernel/loop:array]: a loop that reads, changes and writes the same element of a global array in
// every iteration works on a register instead, loaded before and stored after the loop.
//
// Legal when, within the loop: the element's index is the same in every iteration; every access to that array is to that
// element; no other array that is accessed may overlap it (proved by __restrict__, or a recorded run-time condition);
// nothing synchronizes or has unknown effects. The element must be touched whenever the loop runs, so load and store stand
// under "the loop runs at least once" unless the element is written before it; then iterations may also leave it alone.
//
//===----------------------------------------------------------------------===//
#include "Common.h"
#include "Transforms.h"

using namespace optiml;

namespace {
struct Found {
  Stmt *loop;
  std::string path, array;
};

class PromoteAccumulator : public Transform {
public:
  llvm::StringRef name() const override { return "promote-accumulator"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    KernelModel model(*state.tree, state.pinnedBlock());
    for (const auto &[path, loop] : countedLoops(*state.tree)) {
      std::set<std::string> arrays;
      for (const Access &access : model.accesses())
        if (insideOf(access, loop) && access.write && access.read && access.space == Space::Global)
          arrays.insert(access.array);
        else if (insideOf(access, loop) && access.write && access.space == Space::Global)
          arrays.insert(access.array); // a[i] = a[i] + x
      for (const std::string &array : arrays) {
        std::string site = path + ":" + array;
        auto applied = apply(state, site, {});
        if (applied)
          result.push_back({"promote-accumulator", state.rewrite.original + site, {{}}});
        else
          llvm::consumeError(applied.takeError());
      }
    }
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site, const Params &) const override {
    auto [path, array] = site.rsplit(':');
    auto kernel = state.tree->clone();
    Stmt *stmt = findLoop(*kernel, path);
    if (!stmt)
      return notApplicable("there is no counted loop '{0}'", path);
    auto loop = asCountedLoop(*stmt);
    KernelModel model(*kernel, state.pinnedBlock());
    KernelState result = state;

    const Access *first = nullptr;
    bool written = false, readElsewhere = false, unconditional = false;
    for (const Access &access : model.accesses()) {
      if (!insideOf(access, stmt) || access.array != array)
        continue;
      if (access.space != Space::Global || access.atomic || access.subscripts.size() != 1 ||
          access.root->kind != ExprKind::Var)
        return notApplicable("'{0}' is not accessed as a plain global array (line {1})", array, access.stmt->line);
      if (!model.stable(access.subscripts[0]) || access.subscripts[0].mentions(loop->var))
        return notApplicable("the index of '{0}' changes within the loop (line {1})", array, access.stmt->line);
      for (const std::string &atom : access.subscripts[0].atoms())
        for (const Stmt *inner : access.path)
          if (auto other = asCountedLoop(*const_cast<Stmt *>(inner)); other && other->var == atom && insideLoop(stmt, inner))
            return notApplicable("the index of '{0}' changes in an inner loop (line {1})", array, access.stmt->line);
      if (first && !(access.subscripts[0] == first->subscripts[0]))
        return notApplicable("'{0}' is accessed at more than one index in the loop (line {1})", array, access.stmt->line);
      if (!first)
        first = &access;
      written |= access.write;
      readElsewhere |= access.read;
      bool conditional = false;
      for (const Stmt *s : access.path)
        conditional |= (s->kind == StmtKind::If || s->kind == StmtKind::While || s->kind == StmtKind::For) &&
                       insideLoop(stmt, s);
      unconditional |= !conditional && plainlyExecuted(access, *stmt);
    }
    if (!first || !written || !readElsewhere)
      return notApplicable("the loop does not both read and write '{0}'", array);
    if (hasBarrierStmt(*stmt))
      return notApplicable("the loop synchronizes");
    if (unsigned line = impureLine(*stmt))
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    auto place = findPlace(*kernel->body, stmt);
    std::vector<StmtRef> &list = place->block->body;
    bool writtenBefore = isWrittenBefore(model, list, place->index, *first);
    if (!unconditional && !writtenBefore)
      return notApplicable("'{0}' is not accessed in every iteration, nor written before the loop", array);
    bool leaves = false;
    walk(*stmt->body[0], [&](Stmt &s) { leaves |= s.kind == StmtKind::Return || s.kind == StmtKind::Break; });
    if (leaves)
      return notApplicable("the loop may be left early");
    // The index must not depend on anything declared inside the loop.
    bool inner = false;
    walk(*stmt->body[0], [&](Stmt &s) { inner |= s.kind == StmtKind::Decl && mentions(first->node, s.text); });
    ExprRef element = first->node;
    if (inner)
      element = elementExpr(model, *first, first->subscripts[0]);

    std::set<std::string> others;
    for (const Access &access : model.accesses())
      if (insideOf(access, stmt) && access.space == Space::Global && access.array != array)
        others.insert(access.array);
    for (const std::string &other : others)
      if (llvm::Error e = requireDisjoint(result, model, array.str(), other))
        return e;
    if (!model.stable(loop->lower) || !model.stable(loop->upper))
      return notApplicable("the loop's bounds may change");

    std::string accName = freshName(*kernel, "acc");
    Type type = first->node->type;
    type.isConst = type.isVolatile = false;
    ExprRef acc = var(accName, type);
    rewriteExprs(*stmt->body[0], [&](const ExprRef &e) -> ExprRef {
      if (e->kind != ExprKind::Subscript)
        return nullptr;
      for (const Access &access : model.accesses())
        if (access.array == array && insideOf(access, stmt) && equal(access.node, e))
          return acc;
      return nullptr;
    });
    StmtRef loopRef = list[place->index];
    StmtRef load = declStmt(accName, type, element), store = exprStmt(assign("=", element, acc));
    auto trips = loop->tripCount();
    if ((trips && *trips > 0) || writtenBefore) {
      list.insert(list.begin() + long(place->index) + 1, store);
      list.insert(list.begin() + long(place->index), load);
    } else {
      ExprRef runs = lessThan(loop->lower, loop->upper);
      list[place->index] = ifStmt(runs, block({load, loopRef, store}));
    }
    result.tree = kernel;
    return result;
  }

private:
  static bool insideLoop(const Stmt *outer, const Stmt *s) {
    if (outer == s)
      return false;
    bool found = false;
    walk(*const_cast<Stmt *>(outer), [&](Stmt &t) { found |= &t == s; });
    return found;
  }
  static bool hasBarrierStmt(Stmt &s) {
    bool found = false;
    walk(s, [&](Stmt &t) { found |= t.kind == StmtKind::Barrier; });
    return found;
  }
  static unsigned impureLine(Stmt &s) {
    unsigned line = 0;
    walk(s, [&](Stmt &t) {
      if (t.kind == StmtKind::Opaque && t.mayBarrier)
        line = std::max(1u, t.line);
    });
    walkExprs(s, [&](const ExprRef &e) {
      if (!e->pure)
        line = std::max(1u, e->line);
    });
    return line;
  }
  /// It is what a statement assigns to, and no iteration skips statements.
  static bool plainlyExecuted(const Access &access, const Stmt &loop) {
    bool skips = false;
    walk(const_cast<Stmt &>(loop), [&](Stmt &s) { skips |= s.kind == StmtKind::Continue; });
    if (skips || access.stmt->kind != StmtKind::Expr)
      return false;
    const Expr &e = *access.stmt->expr;
    return (e.kind == ExprKind::Assign || e.kind == ExprKind::IncDec) && equal(e.args[0], access.node);
  }
  /// An earlier statement of the same list writes the same element whenever the loop is reached.
  static bool isWrittenBefore(const KernelModel &model, const std::vector<StmtRef> &list, size_t index,
                              const Access &element) {
    for (size_t i = 0; i < index; ++i)
      for (const Access &access : model.accesses())
        if (access.stmt == list[i].get() && access.array == element.array && access.write &&
            list[i]->kind == StmtKind::Expr && list[i]->expr->kind == ExprKind::Assign &&
            access.subscripts == element.subscripts)
          return true;
    return false;
  }
};
} // namespace

const Transform *optiml::makePromoteAccumulator() {
  static const PromoteAccumulator transform;
  return &transform;
}
