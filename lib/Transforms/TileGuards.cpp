//===- TileGuards.cpp - guards that staged zeros make needless ------------===//
#include "TileGuards.h"
#include "Distribute.h"
#include <algorithm>
#include <functional>

using namespace optiml;

bool optiml::onlyAddsProducts(Stmt &s, const std::set<std::string> &tiles) {
  switch (s.kind) {
  case StmtKind::Block:
  case StmtKind::For:
    for (StmtRef &child : s.body)
      if (!onlyAddsProducts(*child, tiles))
        return false;
    return s.kind == StmtKind::Block || asCountedLoop(s).has_value();
  case StmtKind::Expr:
    break;
  default:
    return false;
  }
  if (s.expr->kind != ExprKind::Assign)
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
    const Expr *root = e.get();
    while (root->kind == ExprKind::Subscript)
      root = root->args[0].get();
    bool tile = e->kind == ExprKind::Subscript && tiles.count(root->text);
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

  static std::string rootName(const ExprRef &e) {
    const Expr *root = e.get();
    while (root->kind == ExprKind::Subscript)
      root = root->args[0].get();
    return root->kind == ExprKind::Var ? root->text : "";
  }

  bool harmless(const ExprRef &value) {
    bool ok = true;
    std::function<void(const ExprRef &)> visit = [&](const ExprRef &e) {
      if (e->kind == ExprKind::Subscript) {
        const Stmt *d = declarationOf(rootName(e));
        ok &= tiles.count(rootName(e)) || (d && !d->dims.empty() && !d->isShared);
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
  const Stmt *declarationOf(const std::string &name) {
    const Stmt *found = nullptr;
    walk(*kernel.body, [&](Stmt &s) {
      if (s.kind == StmtKind::Decl && s.text == name)
        found = &s;
    });
    return found;
  }

  bool removable(Stmt &branch) {
    for (StmtRef &s : branch.body[0]->body) {
      if (s->kind != StmtKind::Expr || s->expr->kind != ExprKind::Assign)
        return false;
      std::string target = rootName(s->expr->args[0]);
      const Stmt *d = declarationOf(target);
      if (target.empty() || !d || d->isShared || !harmless(s->expr->args[1]))
        return false;
      if (!onlyUsedUnder(target, branch.expr))
        return false;
    }
    return true;
  }

  /// Outside of statements that only update `name` itself, `name` is used under `guard` alone.
  bool onlyUsedUnder(const std::string &name, const ExprRef &guard) {
    bool ok = true;
    std::function<void(Stmt &, bool)> visit = [&](Stmt &s, bool guarded) {
      auto uses = [&](const ExprRef &e) { return e && mentions(e, name); };
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
