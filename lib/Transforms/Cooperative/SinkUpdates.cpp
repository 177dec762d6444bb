//===- SinkUpdates.cpp - atomic updates by what a loop sums up ------------===//
#include "Reduction.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

/// What follows the loop: an update by a sum, under "if (s != 0)" or not.
struct Sink {
  std::string sum;
  const Stmt *update; ///< atomicAdd(place, s);
};

unsigned mentionsIn(Stmt &s, const std::string &name) {
  unsigned count = 0;
  walkExprs(s, [&](const ExprRef &e) { count += isVar(e, name) + e->names.count(name); });
  walk(s, [&](Stmt &t) { count += t.kind == StmtKind::Opaque && t.names.count(name); });
  return count;
}

bool isZero(const ExprRef &e) {
  return constantValue(e) == 0 || (e->kind == ExprKind::FloatLit && std::strtod(e->text.c_str(), nullptr) == 0);
}

/// The sum that the update adds: s, or s as a wider number of its kind.
std::optional<Sink> asSink(Stmt &s) {
  if (s.kind == StmtKind::If && s.body.size() == 1 && s.body[0]->body.size() == 1 && isBinary(s.expr, "!=") &&
      isZero(s.expr->args[1])) { // adding nothing does nothing
    auto inner = asSink(*s.body[0]->body[0]);
    bool adds = inner && inner->update->expr->folds == "+";
    return adds && isVar(s.expr->args[0], inner->sum) ? inner : std::nullopt;
  }
  if (!isAtomicUpdate(s) || s.expr->args.size() != 2)
    return std::nullopt;
  ExprRef value = s.expr->args[1];
  if (value->kind == ExprKind::Cast) {
    const Type &from = value->args[0]->type;
    if (value->type.cls != from.cls || value->type.bytes < from.bytes ||
        (value->type.bytes > from.bytes && from.isInt() && !from.isSigned))
      return std::nullopt;
    value = value->args[0];
  }
  if (value->kind != ExprKind::Var || mentions(s.expr->args[0], value->text))
    return std::nullopt;
  return Sink{value->text, &s};
}

/// Folding into the sum and updating by it are one operation.
bool sameOperation(const Fold &fold, const std::string &atomic) {
  if (fold.kind == Fold::Kind::Operator)
    return fold.op == atomic;
  bool largest = fold.kind == Fold::Kind::Compare ? fold.op[0] == '>' : llvm::StringRef(fold.op).contains("max");
  return atomic == (largest ? "max" : "min");
}

/// "s" right where the loop begins: what no update changes.
bool startsAtNothing(const Stmt &decl, const FoldedValue &folded) {
  if (folded.fold.kind == Fold::Kind::Operator)
    return startsAtIdentity(decl, {folded.variable, folded.type, folded.fold});
  bool largest = sameOperation(folded.fold, "max");
  auto start = decl.expr ? constantValue(decl.expr) : std::nullopt;
  if (!start || folded.type.cls != Type::Class::Int || folded.type.bytes != 4)
    return false;
  if (!folded.type.isSigned)
    return uint32_t(*start) == (largest ? 0 : UINT32_MAX);
  return *start == (largest ? INT32_MIN : INT32_MAX);
}

/// s += x, or ++s.
std::optional<FoldedValue> foldOf(const Stmt &s) {
  if (auto folded = asFold(s))
    return folded;
  if (s.kind != StmtKind::Expr || s.expr->kind != ExprKind::IncDec || s.expr->args[0]->kind != ExprKind::Var ||
      s.expr->text.find('+') == std::string::npos)
    return std::nullopt;
  return FoldedValue{s.expr->args[0]->text, s.expr->args[0]->type, {Fold::Kind::Operator, "+"}, intLit(1)};
}

class Sinking {
public:
  Sinking(std::vector<StmtRef> &list, size_t at, bool strictFloat)
      : list(list), loop(*list[at]), at(at), strictFloat(strictFloat) {}

  /// All of the updates after the loop, or none.
  void run() {
    std::vector<Sink> sinks;
    for (size_t i = at + 1; i < list.size(); ++i) {
      auto sink = asSink(*list[i]);
      if (!sink || !mayMove(*sink, *list[i]))
        return;
      sinks.push_back(*sink);
    }
    for (const Sink &sink : sinks)
      move(sink);
    list.resize(at + 1);
    std::erase_if(list, [&](const StmtRef &s) {
      return s->kind == StmtKind::Decl && llvm::any_of(sinks, [&](const Sink &k) { return k.sum == s->text; });
    });
  }

private:
  std::vector<StmtRef> &list;
  Stmt &loop;
  size_t at;
  bool strictFloat;

  bool mayMove(const Sink &sink, Stmt &whole) {
    const Stmt *decl = nullptr;
    unsigned elsewhere = 0;
    for (const StmtRef &s : list) {
      if (s->kind == StmtKind::Decl && s->text == sink.sum)
        decl = s.get();
      else if (s.get() != &loop && s.get() != &whole)
        elsewhere += mentionsIn(*s, sink.sum);
    }
    if (!decl || elsewhere || !decl->dims.empty() || (strictFloat && decl->type.isFloat()))
      return false;
    unsigned folds = 0, foldMentions = 0;
    bool same = true;
    walk(loop, [&](Stmt &s) {
      auto folded = foldOf(s);
      if (!folded || folded->variable != sink.sum)
        return;
      ++folds;
      foldMentions += mentionsIn(s, sink.sum);
      same &= sameOperation(folded->fold, sink.update->expr->folds) && startsAtNothing(*decl, *folded) &&
              folded->value->type.isFloat() <= folded->type.isFloat();
    });
    if (!folds || !same || foldMentions != mentionsIn(loop, sink.sum))
      return false;
    // The place is the same all the time: it is no matter of memory, nor of what the loop changes.
    std::set<std::string> changed;
    walkExprs(loop, [&](const ExprRef &e) {
      if (isChange(e) && e->args[0]->kind == ExprKind::Var)
        changed.insert(e->args[0]->text);
    });
    const ExprRef &place = sink.update->expr->args[0];
    bool fixed = true;
    walk(place, [&](const ExprRef &e) {
      fixed &= e->kind != ExprKind::Opaque && e->kind != ExprKind::Call &&
               !(e->kind == ExprKind::Var && changed.count(e->text));
      for (const ExprRef &arg : e->args) // &a[b[i]]
        if (e->kind == ExprKind::Subscript && arg == e->args[1])
          walk(arg, [&](const ExprRef &n) { fixed &= n->kind != ExprKind::Subscript; });
    });
    return fixed;
  }

  void move(const Sink &sink) {
    const Expr &update = *sink.update->expr;
    forEachList(loop, [&](std::vector<StmtRef> &inner) {
      for (StmtRef &s : inner) {
        auto folded = foldOf(*s);
        if (!folded || folded->variable != sink.sum)
          continue;
        ExprRef value = folded->value;
        const Type &type = update.args[1]->type;
        if (!value->type.sameNumber(type))
          value = castTo(
              update.args[1]->kind == ExprKind::Cast || value->kind != ExprKind::IntLit ? type : folded->type, value);
        auto call = std::make_shared<Expr>(update);
        call->args[1] = value;
        s = exprStmt(call);
      }
    });
  }
};

} // namespace

void optiml::sinkUpdates(Kernel &kernel, bool strictFloat) {
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (size_t i = 0; i + 1 < list.size(); ++i)
      if (list[i]->kind == StmtKind::For)
        Sinking(list, i, strictFloat).run();
  });
}
