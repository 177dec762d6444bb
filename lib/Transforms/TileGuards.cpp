//===- TileGuards.cpp - guards that staged zeros make needless ------------===//
#include "TileGuards.h"
#include "Distribute.h"
#include <algorithm>
#include <functional>

using namespace optiml;

static std::string rootName(const ExprRef &e) {
  const Expr *root = e.get();
  while (root->kind == ExprKind::Subscript)
    root = root->args[0].get();
  return root->kind == ExprKind::Var ? root->text : "";
}

static const Stmt *declarationOf(const Kernel &kernel, const std::string &name) {
  const Stmt *found = nullptr;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl && s.text == name)
      found = &s;
  });
  return found;
}

/// An element of a local array that exists whatever the guards say: its indices are constants, or run over the array.
static bool surelyExists(const Kernel &kernel, const ExprRef &element) {
  const Stmt *array = declarationOf(kernel, rootName(element));
  std::vector<ExprRef> indices;
  for (ExprRef e = element; e->kind == ExprKind::Subscript; e = e->args[0])
    indices.insert(indices.begin(), e->args[1]);
  if (!array || array->dims.size() != indices.size())
    return false;
  for (size_t d = 0; d < indices.size(); ++d) {
    auto extent = constantValue(array->dims[d]), index = constantValue(indices[d]);
    bool inside = extent && index && *index >= 0 && *index < *extent;
    if (extent && !index && indices[d]->kind == ExprKind::Var) {
      unsigned loops = 0, within = 0; // sibling loops share their variable's name
      walk(*kernel.body, [&](Stmt &s) {
        auto loop = asCountedLoop(s);
        if (!loop || loop->var != indices[d]->text)
          return;
        auto lower = constantValue(loop->lower), upper = constantValue(loop->upper);
        ++loops;
        within += lower && upper && *lower >= 0 && *upper <= *extent;
      });
      inside = loops > 0 && within == loops;
    }
    if (!inside)
      return false;
  }
  return true;
}

bool optiml::onlyAddsProducts(const Kernel &kernel, Stmt &s, const std::set<std::string> &tiles, const std::string &counter) {
  switch (s.kind) {
  case StmtKind::Block:
  case StmtKind::For:
    for (StmtRef &child : s.body)
      if (!onlyAddsProducts(kernel, *child, tiles, counter))
        return false;
    return s.kind == StmtKind::Block || asCountedLoop(s).has_value();
  case StmtKind::Expr:
    break;
  default:
    return false;
  }
  if (s.expr->kind != ExprKind::Assign)
    return false;
  const ExprRef &target = s.expr->args[0];
  const Stmt *own = declarationOf(kernel, rootName(target));
  if (!own || own->isShared || own->type.isPointer() || mentions(target, counter) ||
      (target->kind == ExprKind::Subscript && !surelyExists(kernel, target)))
    return false;
  ExprRef value = s.expr->args[1];
  if (s.expr->text == "=") { // acc = acc + product
    if (value->kind != ExprKind::Binary || value->text != "+")
      return false;
    if (equal(value->args[0], s.expr->args[0]))
      value = value->args[1];
    else if (equal(value->args[1], s.expr->args[0]))
      value = value->args[0];
    else
      return false;
  } else if (s.expr->text != "+=") {
    return false;
  }
  bool hasTile = false, plain = true;
  std::function<void(const ExprRef &)> factors = [&](const ExprRef &e) {
    if (e->kind == ExprKind::Binary && e->text == "*") {
      factors(e->args[0]);
      factors(e->args[1]);
      return;
    }
    bool tile = e->kind == ExprKind::Subscript && tiles.count(rootName(e));
    hasTile |= tile;
    // No other factor: beyond the end a tile's zero times an infinite parameter would be no zero.
    plain &= tile || e->kind == ExprKind::FloatLit || e->kind == ExprKind::IntLit;
  };
  factors(value);
  return hasTile && plain;
}

namespace {
class GuardDropper {
public:
  GuardDropper(Kernel &kernel, const std::set<std::string> &tiles) : kernel(kernel), tiles(tiles) {}

  void run(Stmt &loop) {
    forEachList(loop, [&](std::vector<StmtRef> &list) {
      for (size_t i = 0; i < list.size(); ++i) {
        StmtRef s = list[i];
        if (s->kind != StmtKind::If || s->body.size() != 1 || !removable(*s))
          continue;
        std::vector<StmtRef> inner = s->body[0]->body;
        list.erase(list.begin() + long(i));
        list.insert(list.begin() + long(i), inner.begin(), inner.end());
        i += inner.size() - 1;
      }
    });
  }

private:
  Kernel &kernel;
  const std::set<std::string> &tiles;

  bool harmless(const ExprRef &value) {
    bool ok = true;
    std::function<void(const ExprRef &)> visit = [&](const ExprRef &e) {
      if (e->kind == ExprKind::Subscript) {
        const Stmt *d = declarationOf(kernel, rootName(e));
        ok &= tiles.count(rootName(e)) || (d && !d->isShared && surelyExists(kernel, e));
        for (ExprRef part = e; part->kind == ExprKind::Subscript; part = part->args[0])
          visit(part->args[1]);
        return;
      }
      ok &= e->pure && e->kind != ExprKind::Assign && e->kind != ExprKind::IncDec;
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

  /// Loops whose variables the guard mentions: a private value is under the same guard in all of them only when it is an
  /// element for each of their iterations.
  static bool elementOfItsLoops(const KernelModel &model, const ExprRef &target, const ExprRef &guard) {
    std::set<std::string> indices;
    for (ExprRef e = target; e->kind == ExprKind::Subscript; e = e->args[0])
      if (e->args[1]->kind == ExprKind::Var)
        indices.insert(e->args[1]->text);
    for (const std::string &name : namesIn(guard))
      if (model.loopOf(name) && !indices.count(name))
        return false;
    return true;
  }

  bool removable(Stmt &branch) {
    KernelModel model(kernel); // it changes with every guard that goes
    if (!sameEverywhere(model, branch.expr))
      return false;
    for (StmtRef &s : branch.body[0]->body) {
      if (s->kind != StmtKind::Expr || s->expr->kind != ExprKind::Assign)
        return false;
      std::string target = rootName(s->expr->args[0]);
      const Stmt *d = declarationOf(kernel, target);
      if (target.empty() || !d || d->isShared || !harmless(s->expr->args[1]))
        return false;
      const ExprRef &place = s->expr->args[0];
      if (place->kind == ExprKind::Subscript && !surelyExists(kernel, place))
        return false;
      if (!elementOfItsLoops(model, place, branch.expr) || !onlyUsedUnder(place, branch.expr))
        return false;
    }
    return true;
  }

  /// Outside of statements that only update the variable itself, it is used under `guard` alone, and there as `place`.
  bool onlyUsedUnder(const ExprRef &place, const ExprRef &guard) {
    bool ok = true;
    std::string name = rootName(place);
    std::function<void(Stmt &, bool)> visit = [&](Stmt &s, bool guarded) {
      auto uses = [&](const ExprRef &e) { return e && mentions(e, name); };
      if (guarded)
        ownExprs(s, [&](ExprRef &e) {
          ok &= !mentions(rewrite(e, [&](const ExprRef &x) { return equal(x, place) ? intLit(0) : nullptr; }), name);
        });
      if (!guarded && s.kind != StmtKind::Decl) {
        bool update = s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign && rootName(s.expr->args[0]) == name;
        if (s.kind == StmtKind::Opaque)
          ok &= !s.names.count(name);
        if (!update)
          ok &= !uses(s.expr) && !uses(s.step);
      } else if (!guarded && s.kind == StmtKind::Decl && s.text != name) {
        ok &= !uses(s.expr);
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
    return condition->kind == ExprKind::Binary && condition->text == "&&" &&
           (implies(condition->args[0], guard) || implies(condition->args[1], guard));
  }
};
} // namespace

void optiml::dropGuards(Kernel &kernel, Stmt &loop, const std::set<std::string> &tiles) {
  GuardDropper(kernel, tiles).run(loop);
}
