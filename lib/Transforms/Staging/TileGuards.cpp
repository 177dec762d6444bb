//===- TileGuards.cpp - guards that staged zeros make needless ------------===//
#include "TileGuards.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <functional>

using namespace optiml;

namespace {
/// Elements of local arrays that exist whatever the guards say.
class LocalElements {
public:
  explicit LocalElements(const Kernel &kernel);
  /// Of the last variable with that name; null: there is none.
  const Stmt *declaration(const std::string &name) const {
    auto found = declarations.find(name);
    return found == declarations.end() ? nullptr : found->second;
  }
  /// Its indices are constants, or run over the array.
  bool surelyExists(const ExprRef &element) const;

private:
  /// What all loops over a variable have in common: sibling loops share its name.
  struct Range {
    bool isKnown = true;
    int64_t lower = INT64_MAX, upper = INT64_MIN;
  };
  std::map<std::string, const Stmt *> declarations;
  std::map<std::string, Range> ranges;
};
} // namespace

LocalElements::LocalElements(const Kernel &kernel) {
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl)
      declarations[s.text] = &s;
    auto loop = asCountedLoop(s);
    if (!loop)
      return;
    Range &range = ranges[loop->var];
    auto lower = constantValue(loop->lower), upper = constantValue(loop->upper);
    range.isKnown &= lower && upper;
    if (!range.isKnown)
      return;
    range.lower = std::min(range.lower, *lower);
    range.upper = std::max(range.upper, *upper);
  });
}

bool LocalElements::surelyExists(const ExprRef &element) const {
  const Stmt *array = declaration(rootName(element));
  std::vector<ExprRef> indices = indicesOf(element);
  if (!array || array->dims.size() != indices.size())
    return false;
  for (size_t d = 0; d < indices.size(); ++d) {
    auto extent = constantValue(array->dims[d]), index = constantValue(indices[d]);
    bool inside = extent && index && *index >= 0 && *index < *extent;
    if (extent && !index && indices[d]->kind == ExprKind::Var)
      if (auto range = ranges.find(indices[d]->text); range != ranges.end())
        inside = range->second.isKnown && range->second.lower >= 0 && range->second.upper <= *extent;
    if (!inside)
      return false;
  }
  return true;
}

/// How often variables or elements of these are changed under `s`, or handed to functions that may change them.
static std::map<std::string, unsigned> countElementChanges(Stmt &s) {
  std::map<std::string, unsigned> changes;
  walkExprs(s, [&](const ExprRef &e) {
    if (mayChange(e))
      ++changes[rootName(e->args[0])];
    else if (e->kind == ExprKind::Call)
      for (const ExprRef &argument : e->args)
        if (argument->kind == ExprKind::Var && !argument->type.isInt() && !argument->type.isFloat())
          ++changes[argument->text];
  });
  return changes;
}

namespace {
/// Whether statements do nothing but add zeros to private variables.
class ZeroAdder {
public:
  ZeroAdder(const Kernel &kernel, const std::set<std::string> &tiles, const std::string &counter,
            const std::set<std::string> &finite)
      : elements(kernel), tiles(tiles), counter(counter), finite(finite) {}
  bool addsZeros(Stmt &s) const {
    Locals known;
    return addsZeros(s, known);
  }

private:
  /// Declared under the statement: variables that are zero where the tiles are, and some that are finite.
  struct Locals {
    std::set<std::string> zeros, finite;
  };
  bool addsZeros(Stmt &s, Locals &known) const;
  bool declares(const Stmt &s, llvm::ArrayRef<StmtRef> after, Locals &known) const;
  /// A factor that is neither zero nor known to be finite may be infinite, and zero times that is no zero.
  bool isFinite(const ExprRef &e, const Locals &known) const {
    if (e->kind == ExprKind::Subscript && known.finite.count(rootName(e)))
      return elements.surelyExists(e);
    return e->kind == ExprKind::FloatLit || e->kind == ExprKind::IntLit ||
           (e->kind == ExprKind::Var && known.finite.count(e->text)) ||
           (e->kind == ExprKind::Subscript && finite.count(rootName(e)));
  }
  /// All that the variable gets is finite, and it gets it whatever the conditions say.
  bool becomesFinite(const std::string &name, Stmt &s, const Locals &known, bool &assigned) const;
  /// Its value is a zero where the elements of the tiles and the variables of that kind are.
  bool isZero(const ExprRef &e, const Locals &known) const;
  bool isZeroProduct(const ExprRef &a, const ExprRef &b, const Locals &known) const {
    const bool first = isZero(a, known), second = isZero(b, known);
    return (first && second) || (first && isFinite(b, known)) || (isFinite(a, known) && second);
  }
  bool addsZero(const ExprRef &assignment, const Locals &known) const;

  const LocalElements elements;
  const std::set<std::string> &tiles;
  const std::string &counter;
  const std::set<std::string> &finite;
};
} // namespace

bool ZeroAdder::isZero(const ExprRef &e, const Locals &known) const {
  auto zero = [&](size_t i) { return isZero(e->args[i], known); };
  switch (e->kind) {
  case ExprKind::Subscript: return tiles.count(rootName(e)) || known.zeros.count(rootName(e));
  case ExprKind::Var: return known.zeros.count(e->text);
  case ExprKind::Unary: return (e->text == "-" || e->text == "+") && zero(0);
  case ExprKind::Cast: return (e->type.isFloat() || e->type.isInt()) && zero(0);
  case ExprKind::Binary:
    if (e->text == "+" || e->text == "-")
      return zero(0) && zero(1);
    return e->text == "*" && isZeroProduct(e->args[0], e->args[1], known);
  case ExprKind::Call: {
    bool converts = e->text == "__half2float" || e->text == "__bfloat162float";
    return converts && e->args.size() == 1 && e->args[0]->type.isHalf && zero(0);
  }
  default: return false;
  }
}

/// It may be computed wherever it stands: no memory is read, and nothing changes.
static bool onlyOfLocals(const ExprRef &e) {
  return !anyNode(e, [](const ExprRef &n) { return !n->pure || isLoad(n) || isChange(n) || isIntDivision(n); });
}

bool ZeroAdder::becomesFinite(const std::string &name, Stmt &s, const Locals &known, bool &assigned) const {
  if (s.kind == StmtKind::Block || asCountedLoop(s))
    return llvm::all_of(s.body, [&](const StmtRef &child) { return becomesFinite(name, *child, known, assigned); });
  const bool assigns = s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign && s.expr->text == "=";
  if (!assigns || rootName(s.expr->args[0]) != name)
    return !countElementChanges(s).count(name);
  assigned = true;
  return isFinite(s.expr->args[1], known);
}

/// Notes what the declaration's variable is, as the statements after it make it; false: it is nothing of use.
bool ZeroAdder::declares(const Stmt &s, llvm::ArrayRef<StmtRef> after, Locals &known) const {
  if (s.isShared || !(s.type.isFloat() || s.type.isInt()))
    return false;
  bool assigned = false;
  auto isGivenLater = [&] {
    return llvm::all_of(after, [&](const StmtRef &next) { return becomesFinite(s.text, *next, known, assigned); });
  };
  if (!finite.empty() && s.expr && s.dims.empty() && !isZero(s.expr, known) && isFinite(s.expr, known))
    known.finite.insert(s.text);
  else if (!finite.empty() && !s.expr && isGivenLater() && assigned)
    known.finite.insert(s.text);
  else if (!s.expr || isZero(s.expr, known)) // without a value: every one that it gets below is a zero
    known.zeros.insert(s.text);
  else if (!s.type.isInt() || !s.dims.empty() || !onlyOfLocals(s.expr)) // else an index
    return false;
  return true;
}

bool ZeroAdder::addsZeros(Stmt &s, Locals &known) const {
  switch (s.kind) {
  case StmtKind::Block:
  case StmtKind::If:
  case StmtKind::For:
    if ((s.kind == StmtKind::For && !asCountedLoop(s)) || (s.kind == StmtKind::If && !onlyOfLocals(s.expr)))
      return false;
    for (size_t i = 0; i < s.body.size(); ++i) {
      Locals inner = known; // its declarations end with it
      Stmt &child = *s.body[i];
      if (child.kind == StmtKind::Decl ? !declares(child, llvm::ArrayRef(s.body).drop_front(i + 1), inner)
                                       : !addsZeros(child, inner))
        return false;
      if (s.kind == StmtKind::Block)
        known = std::move(inner);
    }
    return true;
  case StmtKind::Expr: return s.expr->kind == ExprKind::Assign && addsZero(s.expr, known);
  default: return false;
  }
}

bool ZeroAdder::addsZero(const ExprRef &assignment, const Locals &known) const {
  const ExprRef &target = assignment->args[0], &value = assignment->args[1];
  const Stmt *own = elements.declaration(rootName(target));
  if (!own || own->isShared || own->type.isPointer() || mentions(target, counter) ||
      (target->kind == ExprKind::Subscript && !elements.surelyExists(target)))
    return false;
  if (assignment->text == "+=" || assignment->text == "-=")
    return isZero(value, known);
  if (assignment->text != "=")
    return false;
  if (known.finite.count(rootName(target)))
    return isFinite(value, known);
  if (known.zeros.count(rootName(target)))
    return isZero(value, known);
  if (value->kind == ExprKind::Call && value->args.size() == 3 && // acc = fmaf(a, b, acc)
      (value->text == "fmaf" || value->text == "fma" || value->text == "__fmaf_rn"))
    return equal(value->args[2], target) && isZeroProduct(value->args[0], value->args[1], known);
  if (!isBinary(value, "+")) // acc = acc + product
    return false;
  return (equal(value->args[0], target) && isZero(value->args[1], known)) ||
         (equal(value->args[1], target) && isZero(value->args[0], known));
}

bool optiml::addsZerosWithTiles(const Kernel &kernel, Stmt &s, const std::set<std::string> &tiles,
                                const std::string &counter, const std::set<std::string> &finite) {
  return ZeroAdder(kernel, tiles, counter, finite).addsZeros(s);
}

namespace {
class GuardDropper {
public:
  GuardDropper(Kernel &kernel, const std::set<std::string> &tiles) : kernel(kernel), tiles(tiles), elements(kernel) {}

  void run(Stmt &loop) {
    forEachList(loop, [&](std::vector<StmtRef> &list) {
      for (size_t i = 0; i < list.size(); ++i) {
        StmtRef s = list[i];
        if (s->kind != StmtKind::If || s->body.size() != 1)
          continue;
        if (ExprRef rest = needed(*s, s->expr)) {
          if (rest != s->expr)
            model.reset();
          s->expr = rest;
          continue;
        }
        std::vector<StmtRef> inner = s->body[0]->body;
        list.erase(list.begin() + long(i));
        list.insert(list.begin() + long(i), inner.begin(), inner.end());
        i += inner.size() - 1;
        model.reset();
      }
    });
  }

  /// Locals that get an element of a tile, the same in all iterations that may give it, get it always.
  void loadAlways(Stmt &loop) {
    const std::map<std::string, unsigned> changes = countElementChanges(*kernel.body);
    std::set<std::string> inside = namesDeclaredIn(loop);
    std::vector<std::string> counters;      // of the loops around
    std::map<std::string, size_t> declared; // of a local without a value: the number of loops around it
    std::function<bool(Stmt &)> isLoad = [&](Stmt &s) {
      if (auto counted = asCountedLoop(s)) {
        counters.push_back(counted->var);
        const bool loads =
            counted->tripCount() && llvm::all_of(s.body[0]->body, [&](auto &inner) { return isLoad(*inner); });
        counters.pop_back();
        return loads;
      }
      if (s.kind != StmtKind::Expr || s.expr->kind != ExprKind::Assign || s.expr->text != "=")
        return false;
      const ExprRef &place = s.expr->args[0], &value = s.expr->args[1];
      auto own = declared.find(rootName(place));
      if (own == declared.end() || changes.at(own->first) != 1 || !harmless(value) ||
          (place->kind == ExprKind::Subscript && !elements.surelyExists(place)))
        return false;
      const std::set<std::string> indices = namesIn(place);
      return llvm::all_of(namesIn(value), [&](const std::string &name) {
        auto counter = llvm::find(counters, name);
        if (counter != counters.end())
          return size_t(counter - counters.begin()) < own->second || indices.count(name);
        return tiles.count(name) || (!inside.count(name) && !changes.count(name));
      });
    };
    std::function<void(Stmt &)> visit = [&](Stmt &s) {
      auto counted = asCountedLoop(s);
      if (counted)
        counters.push_back(counted->var);
      for (size_t i = 0; i < s.body.size(); ++i) {
        Stmt &child = *s.body[i];
        if (child.kind == StmtKind::Decl && !child.expr && !child.isShared && s.kind == StmtKind::Block)
          declared[child.text] = counters.size();
        const bool loads = child.kind == StmtKind::If && child.body.size() == 1 && s.kind == StmtKind::Block &&
                           !hasEffects(child.expr) &&
                           llvm::all_of(child.body[0]->body, [&](auto &inner) { return isLoad(*inner); });
        if (!loads) {
          visit(child);
          continue;
        }
        const std::vector<StmtRef> inner = child.body[0]->body;
        s.body.erase(s.body.begin() + long(i));
        s.body.insert(s.body.begin() + long(i), inner.begin(), inner.end());
        i += inner.size() - 1;
      }
      if (counted)
        counters.pop_back();
    };
    visit(loop);
  }

private:
  Kernel &kernel;
  const std::set<std::string> &tiles;
  const LocalElements elements;     ///< the same whatever goes
  std::optional<KernelModel> model; ///< until a guard goes

  bool harmless(const ExprRef &value) {
    bool ok = true;
    std::function<void(const ExprRef &)> visit = [&](const ExprRef &e) {
      if (e->kind == ExprKind::Subscript) {
        const Stmt *d = elements.declaration(rootName(e));
        ok &= tiles.count(rootName(e)) || (d && !d->isShared && elements.surelyExists(e));
        llvm::for_each(indicesOf(e), visit);
        return;
      }
      ok &= e->pure && !isChange(e);
      ok &= !(e->kind == ExprKind::Binary && (e->text == "/" || e->text == "%") && e->type.isInt());
      ok &= !(e->kind == ExprKind::Member && e->args[0]->type.isPointer());
      for (const ExprRef &arg : e->args)
        visit(arg);
    };
    visit(value);
    return ok;
  }
  /// The guard says the same wherever it stands with the same variables of loops: all else in it is assigned once.
  static bool sameEverywhere(const KernelModel &model, const ExprRef &guard) {
    for (const std::string &name : namesIn(guard)) {
      const Stmt *d = model.declaration(name);
      if (!model.loopOf(name) && d && (!model.singleAssignment(name) || !model.stable(d->expr)))
        return false;
      if (!d && !model.loopOf(name) && !model.stable(var(name, Type::makeInt())))
        return false;
    }
    return true;
  }

  /// Loops whose variables the guard mentions: a private value is under the same guard in all of them only when it is
  /// an element for each of their iterations.
  static bool elementOfItsLoops(const KernelModel &model, const ExprRef &target, const ExprRef &guard) {
    std::set<std::string> indices;
    for (const ExprRef &index : indicesOf(target))
      if (index->kind == ExprKind::Var)
        indices.insert(index->text);
    for (const std::string &name : namesIn(guard))
      if (model.loopOf(name) && !indices.count(name))
        return false;
    return true;
  }

  /// What has to be left of `condition`, which is the branch's or a part of it; null: nothing.
  ExprRef needed(Stmt &branch, const ExprRef &condition) {
    if (removable(branch, condition))
      return nullptr;
    if (!isBinary(condition, "&&"))
      return condition;
    ExprRef left = needed(branch, condition->args[0]), right = needed(branch, condition->args[1]);
    return left == condition->args[0] && right == condition->args[1] ? condition : logicalAnd(left, right);
  }

  bool removable(Stmt &branch, const ExprRef &guard) {
    if (!model)
      model.emplace(kernel);
    if (!sameEverywhere(*model, guard))
      return false;
    return llvm::all_of(branch.body[0]->body, [&](const StmtRef &s) { return onlyMakesWorthless(*model, *s, guard); });
  }

  /// All that it does is to change private values that only matter where `guard` holds.
  bool onlyMakesWorthless(const KernelModel &model, Stmt &s, const ExprRef &guard) {
    if (auto loop = asCountedLoop(s); loop && loop->tripCount())
      return llvm::all_of(s.body[0]->body,
                          [&](const StmtRef &inner) { return onlyMakesWorthless(model, *inner, guard); });
    if (s.kind != StmtKind::Expr || s.expr->kind != ExprKind::Assign)
      return false;
    std::string target = rootName(s.expr->args[0]);
    const Stmt *d = elements.declaration(target);
    if (target.empty() || !d || d->isShared || !harmless(s.expr->args[1]))
      return false;
    const ExprRef &place = s.expr->args[0];
    if (place->kind == ExprKind::Subscript && !elements.surelyExists(place))
      return false;
    std::set<std::string> seen;
    return elementOfItsLoops(model, place, guard) && onlyUsedUnder(model, place, guard, seen);
  }

  /// Outside of statements that only update the variable itself, or others of which the same holds, it is used under
  /// `guard` alone, and there as `place`.
  bool onlyUsedUnder(const KernelModel &model, const ExprRef &place, const ExprRef &guard,
                     std::set<std::string> &seen) {
    bool ok = true;
    std::string name = rootName(place);
    seen.insert(name);
    auto isPlaceOnly = [&](const ExprRef &e) {
      return !mentions(rewrite(e, [&](const ExprRef &x) { return equal(x, place) ? intLit(0) : nullptr; }), name);
    };
    // Where the guard differs between elements, one must not go into another.
    bool perElement = llvm::any_of(namesIn(guard), [&](const std::string &n) { return model.loopOf(n).has_value(); });
    // `to` may take a worthless value where the guard does not hold.
    auto mayFlow = [&](const ExprRef &to, const ExprRef &value) {
      std::string other = rootName(to);
      const Stmt *d = elements.declaration(other);
      if (!d || d->isShared || d->type.isPointer() || !harmless(value) || !isPlaceOnly(value) ||
          (to->kind == ExprKind::Subscript && (!elements.surelyExists(to) || mentions(to, name))) ||
          !elementOfItsLoops(model, to, guard))
        return false;
      return seen.count(other) || onlyUsedUnder(model, to, guard, seen);
    };
    std::function<void(Stmt &, bool)> visit = [&](Stmt &s, bool guarded) {
      auto uses = [&](const ExprRef &e) { return e && mentions(e, name); };
      if (guarded)
        ownExprs(s, [&](ExprRef &e) { ok &= isPlaceOnly(e); });
      if (!guarded && s.kind != StmtKind::Decl) {
        bool assigns = s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign;
        bool update = assigns && rootName(s.expr->args[0]) == name;
        if (s.kind == StmtKind::Opaque)
          ok &= !s.names.count(name);
        if (update)
          ok &= !perElement || (elementOfItsLoops(model, s.expr->args[0], guard) && isPlaceOnly(s.expr->args[1]));
        else if (uses(s.expr) || uses(s.step))
          ok &= assigns && mayFlow(s.expr->args[0], s.expr->args[1]);
      } else if (!guarded && s.kind == StmtKind::Decl && s.text != name && uses(s.expr)) {
        ok &= s.dims.empty() && !s.isShared && mayFlow(var(s.text, s.type), s.expr);
      }
      if (s.init)
        visit(*s.init, guarded);
      for (size_t i = 0; i < s.body.size(); ++i)
        visit(*s.body[i], guarded || (s.kind == StmtKind::If && i == 0 && implies(s.expr, guard)));
    };
    visit(*kernel.body, false);
    return ok;
  }
  static bool implies(const ExprRef &condition, const ExprRef &guard) {
    if (equal(condition, guard))
      return true;
    return isBinary(condition, "&&") && (implies(condition->args[0], guard) || implies(condition->args[1], guard));
  }
};
} // namespace

void optiml::loadAlways(Kernel &kernel, Stmt &loop, const std::set<std::string> &tiles) {
  GuardDropper(kernel, tiles).loadAlways(loop);
}

void optiml::dropGuards(Kernel &kernel, Stmt &loop, const std::set<std::string> &tiles) {
  GuardDropper(kernel, tiles).run(loop);
  normalize(kernel); // "float d; if (c) d = value;" has become a declaration with a value
}
