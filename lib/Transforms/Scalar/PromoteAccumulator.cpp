//===- PromoteAccumulator.cpp - a running sum in a register ---------------===//
//
// promote-accumulator[kernel/loop:array]: a loop that reads and writes the same element of a global array in every
// iteration works on a register instead. The register is loaded before the loop and stored after it.
//
// Example:
//   for (int k = 0; k < m; ++k)             if (0 < m) {
//     c[i] += a[i * m + k];                   float acc = c[i];
//                                             for (int k = 0; k < m; ++k) {
//                                               acc += a[i * m + k];
//                                             }
//                                             c[i] = acc;
//                                           }
//
// Legal: within the loop, every access to the array is to one element, whose index stays the same. The loop both reads
// and writes that element; or it only writes it, where a statement before the loop does too. No other global array in
// the loop overlaps it: `__restrict__` proves that, or a condition does. The loop does not synchronize, has no atomics
// or calls with unknown effects, does not return, and keeps its bounds.
//
// Load and store stand under "the loop runs at least once". They need no such guard where the trip count is a positive
// constant, or where a statement before the loop, in the same list, assigns the element. Where iterations may leave the
// element alone, or the loop is left by `break`, the first that changes it loads it, and what was loaded is stored.
//
// Refuses: an index that changes in the loop or in an inner one, and more than one index. Where iterations may leave
// the element alone, it refuses statements that only read it. Of a record, members that are changed apart from one
// another. Where the loop accesses other arrays too, it refuses arrays that are not plain pointer parameters.
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"

using namespace optiml;

namespace {
/// The one element of an array that a loop accesses.
struct Element {
  const Access *access = nullptr;
  bool unconditional = false; ///< in every iteration
  bool read = false;
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
        if (insideOf(access, loop) && access.write && access.space == Space::Global)
          arrays.insert(access.array);
      for (const std::string &array : arrays)
        offer(result, state, path + ":" + array, {{}});
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

    auto found = elementOf(model, *stmt, *loop, array);
    if (!found)
      return found.takeError();
    const Access &first = *found->access;
    if (holdsKind(*stmt, {StmtKind::Barrier}))
      return notApplicable("the loop synchronizes");
    if (unsigned line = impureLine(*stmt))
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    auto place = findPlace(*kernel->body, stmt);
    std::vector<StmtRef> &list = place->block->body;
    bool writtenBefore = isWrittenBefore(model, list, place->index, first);
    if (!found->read && !writtenBefore)
      return notApplicable("the loop only writes '{0}', which nothing before it does", array);
    const bool onDemand = !writtenBefore && !found->unconditional;
    if (holdsKind(*stmt->body[0], {StmtKind::Return}))
      return notApplicable("the loop may return");
    if (onDemand)
      if (unsigned line = onlyReading(model, *stmt, array))
        return notApplicable("line {0} may read '{1}' where no iteration changes it", line, array);
    auto before = elementBefore(model, *stmt, first);
    if (!before)
      return before.takeError();
    const ExprRef element = *before;

    const auto members = changedMembers(model, *stmt, array);
    if (!members)
      return notApplicable("members of '{0}' are changed apart from one another", array);
    std::set<std::string> others;
    for (const Access &access : model.accesses())
      if (insideOf(access, stmt) && access.space == Space::Global && access.array != array)
        others.insert(access.array);
    for (const std::string &other : others)
      if (llvm::Error e = requireDisjoint(result, model, array.str(), other))
        return e;
    if (!model.stable(loop->lower) || !model.stable(loop->upper))
      return notApplicable("the loop's bounds may change");

    const std::vector<HeldPart> parts = partsOf(*kernel, first, element, *members);
    holdParts(*stmt->body[0], model, stmt, array, parts);
    std::vector<StmtRef> loads, stores;
    for (const HeldPart &part : parts) {
      loads.push_back(declStmt(part.acc->text, part.acc->type, onDemand ? nullptr : part.place));
      stores.push_back(exprStmt(assign("=", part.place, part.acc)));
    }
    auto trips = loop->tripCount();
    if (onDemand) {
      const ExprRef loaded = var(freshName(*kernel, "loaded"), Type::makeBool());
      loadOnDemand(*stmt->body[0], parts, loaded);
      loads.push_back(declStmt(loaded->text, loaded->type, intLit(0, Type::makeBool())));
      stores = {ifStmt(loaded, block(std::move(stores)))};
    }
    std::vector<StmtRef> made = std::move(loads);
    made.push_back(list[place->index]);
    llvm::append_range(made, stores);
    if (!onDemand && !(trips && *trips > 0) && !writtenBefore)
      made = {ifStmt(lessThan(loop->lower, loop->upper), block(std::move(made)))};
    const auto at = list.erase(list.begin() + long(place->index));
    list.insert(at, made.begin(), made.end());
    result.tree = kernel;
    return result;
  }

private:
  /// The element as it is written before the loop, where nothing is known that is declared in it.
  static llvm::Expected<ExprRef> elementBefore(const KernelModel &model, Stmt &loop, const Access &first) {
    const std::set<std::string> declared = namesDeclaredIn(loop);
    auto isOfLoop = [&](const ExprRef &e) { return e->kind == ExprKind::Var && declared.count(e->text); };
    if (!anyNode(first.node, isOfLoop))
      return first.node;
    const ExprRef element = rewrite(elementExpr(model, first, first.subscripts[0]), [](const ExprRef &e) -> ExprRef {
      for (unsigned axis = 0; axis < 3; ++axis)
        if (isBuiltin(e, axisName("globalIdx", axis)))
          return globalIndexExpr(axis);
      return nullptr;
    });
    if (anyNode(element, isOfLoop))
      return notApplicable("the index of '{0}' is not known before the loop", first.array);
    return element;
  }

  /// A[i] of A[i].x.
  static ExprRef elementIn(ExprRef place) { return place->kind == ExprKind::Member ? place->args[0] : place; }

  /// What is stored behind the loop: the element, under an empty name, or the members that all who change it change
  /// together; others of them may be somebody else's. Nothing: they are changed apart.
  static std::optional<std::map<std::string, Type>> changedMembers(const KernelModel &model, Stmt &stmt,
                                                                   llvm::StringRef array) {
    std::optional<std::map<std::string, Type>> all;
    bool alike = true;
    forEachList(stmt, [&](std::vector<StmtRef> &list) {
      std::map<std::string, Type> own;
      for (const StmtRef &s : list)
        for (const Access &access : model.accesses())
          if (access.stmt == s.get() && access.array == array && access.write) {
            const bool isMember = s->kind == StmtKind::Expr && isChange(s->expr) &&
                                  s->expr->args[0]->kind == ExprKind::Member &&
                                  equal(s->expr->args[0]->args[0], access.node);
            own[isMember ? s->expr->args[0]->text : ""] = access.place->type.unqualified();
          }
      if (own.empty())
        return;
      if (own.count("")) // as a whole
        own = {*own.find("")};
      alike &= !all || llvm::equal(llvm::make_first_range(*all), llvm::make_first_range(own));
      all = own;
    });
    const bool ofMembers = all && !all->count("");
    for (const Access &access : model.accesses()) // whoever takes the whole would miss what registers hold
      if (ofMembers && access.array == array && insideOf(access, &stmt))
        alike &= access.place->kind == ExprKind::Member && equal(access.place->args[0], access.node);
    return alike ? all : std::nullopt;
  }

  /// The line of a statement that accesses the array without being a change of the element, or that stands in a loop's
  /// head. 0: there is none. Only what is changed may be stored: others may have changed what is only read.
  static unsigned onlyReading(const KernelModel &model, Stmt &stmt, llvm::StringRef array) {
    for (const Access &access : model.accesses()) {
      if (access.array != array || !insideOf(access, &stmt))
        continue;
      const Stmt &s = *access.stmt;
      const bool changes =
          s.kind == StmtKind::Expr && isChange(s.expr) && equal(elementIn(s.expr->args[0]), access.node);
      if (!changes || !findPlace(stmt, &s))
        return std::max(1u, s.line);
    }
    return 0;
  }

  /// What a register takes the place of: the element, or a member of it.
  struct HeldPart {
    std::string member; ///< empty: the element
    ExprRef acc, place;
  };
  static std::vector<HeldPart> partsOf(Kernel &kernel, const Access &first, const ExprRef &element,
                                       const std::map<std::string, Type> &members) {
    std::vector<HeldPart> parts;
    std::set<std::string> taken = allNames(kernel);
    for (const auto &[member, type] : members)
      parts.push_back({member,
                       var(freshName(taken, member.empty() ? "acc" : "acc_" + member),
                           member.empty() ? first.node->type.unqualified() : type),
                       member.empty() ? element : memberExpr(element, member, type)});
    return parts;
  }

  /// The registers in place of what they hold.
  static void holdParts(Stmt &body, const KernelModel &model, const Stmt *loop, llvm::StringRef array,
                        const std::vector<HeldPart> &parts) {
    auto isElement = [&](const ExprRef &e) {
      return e->kind == ExprKind::Subscript && llvm::any_of(model.accesses(), [&](const Access &access) {
               return access.array == array && insideOf(access, loop) && equal(access.node, e);
             });
    };
    rewriteExprs(body, [&](const ExprRef &e) -> ExprRef {
      for (const HeldPart &part : parts)
        if (part.member.empty() ? isElement(e)
                                : e->kind == ExprKind::Member && e->text == part.member && isElement(e->args[0]))
          return part.acc;
      return nullptr;
    });
  }

  /// Loads before the first statement of each list that uses a register itself, unless that has been done.
  static void loadOnDemand(Stmt &s, const std::vector<HeldPart> &parts, const ExprRef &loaded) {
    auto uses = [&](const Stmt &t) {
      return t.expr && anyNode(t.expr, [&](const ExprRef &e) {
               return llvm::any_of(parts, [&](const HeldPart &part) { return isVar(e, part.acc->text); });
             });
    };
    for (const StmtRef &child : s.body)
      loadOnDemand(*child, parts, loaded);
    if (s.kind != StmtKind::Block)
      return;
    auto first = llvm::find_if(s.body, [&](const StmtRef &child) { return uses(*child); });
    if (first == s.body.end())
      return;
    std::vector<StmtRef> loads;
    for (const HeldPart &part : parts)
      loads.push_back(exprStmt(assign("=", part.acc, part.place)));
    loads.push_back(exprStmt(assign("=", loaded, intLit(1, Type::makeBool()))));
    s.body.insert(first, ifStmt(logicalNot(loaded), block(std::move(loads))));
  }

  static bool insideLoop(const Stmt &outer, const Stmt *s) { return &outer != s && holdsStmt(outer, s); }

  static llvm::Expected<Element> elementOf(const KernelModel &model, const Stmt &stmt, const CountedLoop &loop,
                                           llvm::StringRef array) {
    Element result;
    bool written = false;
    for (const Access &access : model.accesses()) {
      if (!insideOf(access, &stmt) || access.array != array)
        continue;
      if (access.space != Space::Global || access.atomic || access.subscripts.size() != 1 ||
          access.root->kind != ExprKind::Var)
        return notApplicable("'{0}' is not accessed as a plain global array (line {1})", array, access.stmt->line);
      const Poly &index = access.subscripts[0];
      if (!model.stable(index) || index.mentions(loop.var))
        return notApplicable("the index of '{0}' changes within the loop (line {1})", array, access.stmt->line);
      for (Stmt *inner : access.path)
        if (auto other = asCountedLoop(*inner); other && index.mentions(other->var) && insideLoop(stmt, inner))
          return notApplicable("the index of '{0}' changes in an inner loop (line {1})", array, access.stmt->line);
      if (!result.access)
        result.access = &access;
      if (!(index == result.access->subscripts[0]))
        return notApplicable("'{0}' is accessed at more than one index in the loop (line {1})", array,
                             access.stmt->line);
      written |= access.write;
      result.read |= access.read;
      bool conditional = llvm::any_of(access.path, [&](const Stmt *s) {
        return (s->kind == StmtKind::If || s->kind == StmtKind::While || s->kind == StmtKind::For) &&
               insideLoop(stmt, s);
      });
      result.unconditional |= !conditional && plainlyExecuted(access, stmt);
    }
    if (!result.access || !written)
      return notApplicable("the loop does not write '{0}'", array);
    return result;
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
    if (holdsKind(loop, {StmtKind::Continue}) || leavesIteration(*loop.body[0], {StmtKind::Break}) ||
        access.stmt->kind != StmtKind::Expr)
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
            equal(list[i]->expr->args[0], access.node) && access.subscripts == element.subscripts)
          return true;
    return false;
  }
};
} // namespace

DEFINE_TRANSFORM(PromoteAccumulator)
