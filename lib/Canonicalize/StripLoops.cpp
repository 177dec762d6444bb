//===- StripLoops.cpp - strip-mined loops as one --------------------------===//
#include "optiml/Canonicalize/StripLoops.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/KnownConditions.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"
#include <cstdlib>

using namespace optiml;

namespace {
class StripMerger {
public:
  StripMerger(KernelState &state, Kernel &kernel, const std::array<int64_t, 3> &block, CountedLoop outer,
              CountedLoop inner)
      : state(state), model(kernel, block), outer(std::move(outer)), inner(std::move(inner)) {}

  /// The one loop, or null.
  StmtRef run() {
    auto trips = inner.tripCount();
    if (!trips || *trips < 2 || inner.step != 1 || constantValue(inner.lower) != 0 || mentions(inner.upper, outer.var))
      return nullptr;
    strip = *trips;
    if ((outer.step != 1 && outer.step != strip) || !model.stable(outer.lower) || !model.stable(outer.upper) ||
        outer.type.bytes < 4)
      return nullptr;
    if (hasBarrier(*outer.stmt) || holdsKind(*outer.stmt, {StmtKind::Break, StmtKind::Continue, StmtKind::Return}))
      return nullptr;
    type = outer.type.withConst(false);
    StmtRef body = clone(inner.stmt->body[0]);
    if (!flatten(*body))
      return nullptr;
    ExprRef last = end(*body);
    return last ? countedFor(inner.var, type, intLit(0), last, 1, body, NoUnroll) : nullptr;
  }

private:
  bool flatten(Stmt &body) {
    if (opaqueMentions(body, {outer.var, inner.var}))
      return false;
    walk(body, [&](Stmt &s) { ownExprs(s, [&](ExprRef &e) { e = flattened(e); }); });
    return !failed;
  }

  /// A polynomial of both counters in terms of the one, "@whole"; nothing where something else is left of them.
  std::optional<Poly> inWhole(const Poly &p) const {
    Poly strips = Poly(strip / outer.step) * (Poly::atom(outer.var) - model.poly(outer.lower));
    Poly whole = p.substitute(inner.var, Poly::atom("@whole") - strips);
    for (const std::string &atom : whole.atoms())
      if (ExprRef e = model.atomExpr(atom);
          atom == outer.var || (e && (mentions(e, outer.var) || mentions(e, inner.var))))
        return std::nullopt;
    return whole;
  }

  /// k < n - t * 16   as   whole < n
  ExprRef flattenedComparison(const ExprRef &e) const {
    if (e->kind != ExprKind::Binary || inverseComparison(e->text).empty() || !type.isSigned)
      return nullptr;
    for (const ExprRef &side : e->args)
      if (!side->type.isInt() || !side->type.isSigned)
        return nullptr;
    auto whole = inWhole(model.poly(e->args[0]) - model.poly(e->args[1]));
    auto slope = whole ? whole->coefficient("@whole") : std::nullopt;
    if (!slope || !(*slope == Poly(1) || *slope == Poly(-1)))
      return nullptr;
    Poly rest = *whole - *slope * Poly::atom("@whole");
    ExprRef counter = var(inner.var, type);
    return *slope == Poly(1) ? binary(e->text, counter, polyExpr(model, Poly() - rest), e->type)
                             : binary(e->text, polyExpr(model, rest), counter, e->type);
  }

  /// `e` in terms of the one counter, which has the inner one's name.
  ExprRef flattened(const ExprRef &e) {
    auto concerns = [&](const ExprRef &x) { return mentions(x, outer.var) || mentions(x, inner.var); };
    if (!concerns(e))
      return e;
    bool arithmetic = e->type.isInt() && e->type.cls != Type::Class::Bool &&
                      (e->kind == ExprKind::Binary || e->kind == ExprKind::Cast);
    if (arithmetic) {
      std::vector<ExprRef> terms = operandsOf(e, "+");
      Poly sum;
      for (const ExprRef &term : terms)
        if (concerns(term))
          sum = sum + model.poly(term);
      if (auto whole = inWhole(sum)) {
        ExprRef counter = polyExpr(model, whole->substitute("@whole", Poly::atom(inner.var)));
        counter =
            rewrite(counter, [&](const ExprRef &n) { return isVar(n, inner.var) ? var(inner.var, type) : nullptr; });
        if (llvm::any_of(terms, [&](const ExprRef &term) { return concerns(term) && term->type.bytes == 8; }))
          counter = wideExpr(counter);
        ExprRef result;
        bool placed = false;
        for (const ExprRef &term : terms) {
          if (concerns(term) && std::exchange(placed, true))
            continue;
          ExprRef part = concerns(term) ? counter : term;
          result = result ? add(result, part) : part;
        }
        if (e->type.bytes == 8 && result->type.bytes < 8)
          return wideExpr(result);
        return e->type.isSigned == result->type.isSigned || e->type.bytes != result->type.bytes
                   ? result
                   : castTo(e->type, result);
      }
    }
    if (ExprRef comparison = flattenedComparison(e))
      return comparison;
    if (e->kind == ExprKind::Var || e->kind == ExprKind::Opaque)
      failed = true;
    auto copy = std::make_shared<Expr>(*e);
    for (ExprRef &arg : copy->args)
      arg = flattened(arg);
    if (e->kind == ExprKind::Subscript && copy->args[1]->kind == ExprKind::Cast && copy->args[1]->type.bytes == 4)
      copy->args[1] = copy->args[1]->args[0]; // an index is not negative
    return copy;
  }

  ExprRef end(Stmt &body) {
    if (auto trips = outer.tripCount())
      return intLit(*trips * strip);
    if (ExprRef e = endOfContributions(body))
      return e;
    if (ExprRef e = endOfWholeStrips())
      return e;
    if (constantValue(outer.lower) != 0)
      return nullptr;
    ExprRef strips = outer.step == 1 ? outer.upper : binary("/", add(outer.upper, intLit(strip - 1)), intLit(strip));
    return mul(strips, intLit(strip));
  }

  /// The end from which on the body adds nothing but zeros, if there is one and the strips reach it.
  ExprRef endOfContributions(Stmt &body) {
    if (state.hints.strictFloat)
      return nullptr;
    std::vector<Poly> ends;
    auto candidate = [&](const ExprRef &condition) {
      std::vector<Poly> says;
      model.addFacts(condition, true, says);
      for (const Poly &fact : says) { // end - 1 - k >= 0
        auto c = fact.coefficient(inner.var);
        if (!c || !(*c == Poly(-1)))
          continue;
        Poly end = fact + Poly::atom(inner.var) + Poly(1);
        bool fixed = !end.mentions(inner.var) && model.stable(end);
        for (const std::string &atom : end.atoms())
          fixed &= isParameter(model, atom);
        if (fixed && !llvm::is_contained(ends, end))
          ends.push_back(end);
      }
    };
    walk(body, [&](Stmt &s) {
      if (s.kind == StmtKind::If)
        candidate(s.expr);
    });
    walkExprs(body, [&](const ExprRef &e) {
      if (e->kind == ExprKind::Cond)
        candidate(e->args[0]);
    });
    for (const Poly &end : ends) {
      std::vector<Poly> beyond = {Poly::atom(inner.var) - end};
      model.addLoopFacts({}, beyond);
      Assumptions assume(state, model);
      if (!addsNothing(body, beyond, assume) || !reaches(end))
        continue;
      assume.record(state);
      return polyExpr(model, end);
    }
    return nullptr;
  }

  /// The size that the number of strips was made from, when that is a multiple of a strip.
  ExprRef endOfWholeStrips() {
    Poly length = model.poly(outer.upper) - model.poly(outer.lower), size;
    bool positive = false; // the size must be
    if (outer.step == strip) {
      size = length;
    } else {
      std::vector<std::string> quotients;
      for (const std::string &atom : length.atoms())
        if (ExprRef e = model.atomExpr(atom); e && isBinary(e, "/") && constantValue(e->args[1]) == strip)
          quotients.push_back(atom);
      if (quotients.size() != 1)
        return nullptr;
      auto extra = (length - Poly::atom(quotients[0])).constant();
      Poly numerator = model.poly(model.atomExpr(quotients[0])->args[0]);
      int64_t rest = numerator.constantTerm(), whole = rest >= 0 ? rest / strip : -((strip - 1 - rest) / strip);
      if (!extra || *extra != -whole) // (size + rest) / strip + extra is size / strip
        return nullptr;
      size = numerator - Poly(rest);
      positive = rest < 0;
    }
    auto text = planText(model, size);
    if (!text || size.constant())
      return nullptr;
    if (auto known = state.hints.scalars.find(*text); known != state.hints.scalars.end() && known->second % strip)
      return nullptr; // it would never be used
    state.require("(" + *text + ") % " + std::to_string(strip) + " == 0", "the loop has whole strips");
    if (positive)
      state.require(*text + " >= 1", "the loop has whole strips");
    return polyExpr(model, size);
  }

  /// Where the facts hold, `s` only adds zeros to the thread's own variables.
  bool addsNothing(Stmt &s, const std::vector<Poly> &facts, Assumptions &assume) const {
    auto all = [&](const Stmt &list) {
      return llvm::all_of(list.body, [&](const StmtRef &c) { return addsNothing(*c, facts, assume); });
    };
    switch (s.kind) {
    case StmtKind::Block: return all(s);
    case StmtKind::For: return asCountedLoop(s) && all(s);
    case StmtKind::If: {
      auto known = truth(model, s.expr, facts, &assume);
      if (known)
        return *known ? addsNothing(*s.body[0], facts, assume)
                      : s.body.size() < 2 || addsNothing(*s.body[1], facts, assume);
      return all(s);
    }
    case StmtKind::Decl: return !s.isShared;
    case StmtKind::Expr: break;
    default: return false;
    }
    if (s.expr->kind != ExprKind::Assign)
      return false;
    const ExprRef &target = s.expr->args[0];
    ExprRef root = subscriptRoot(target);
    const Stmt *own = root->kind == ExprKind::Var ? model.declaration(root->text) : nullptr;
    if (!own || own->isShared || own->type.isPointer())
      return false;
    ExprRef value = simplified(model, s.expr->args[1], facts, &assume);
    if (s.expr->text == "+=" || s.expr->text == "-=")
      return isZero(value);
    if (s.expr->text != "=")
      return false;
    if (isBinary(value, "+"))
      return (equal(value->args[0], target) && isZero(value->args[1])) ||
             (equal(value->args[1], target) && isZero(value->args[0]));
    bool fma =
        value->kind == ExprKind::Call && value->isLibrary && value->args.size() == 3 &&
        (value->text == "fma" || value->text == "fmaf" || value->text == "__fmaf_rn" || value->text == "std::fma");
    return fma && isZero(value->args[0]) && isZero(value->args[1]) && equal(value->args[2], target);
  }

  bool isZero(const ExprRef &e) const {
    if (auto value = constantValue(e))
      return *value == 0;
    switch (e->kind) {
    case ExprKind::FloatLit: return std::strtod(e->text.c_str(), nullptr) == 0;
    case ExprKind::Cast: return (e->type.isFloat() || e->type.isInt()) && isZero(e->args[0]);
    case ExprKind::Unary: return (e->text == "-" || e->text == "+") && isZero(e->args[0]);
    case ExprKind::Cond: return isZero(e->args[1]) && isZero(e->args[2]);
    case ExprKind::Binary: // zero times something that may be infinite is no zero
      return (e->text == "*" || e->text == "+" || e->text == "-") && isZero(e->args[0]) && isZero(e->args[1]);
    default: return false;
    }
  }

  /// The strips have at least `last` iterations together: proved, or a condition.
  bool reaches(const Poly &last) {
    Poly length = model.poly(outer.upper) - model.poly(outer.lower);
    if (outer.step == strip) { // strips until the length is covered
      if (follows(length - last, {}))
        return true;
    } else {
      std::vector<Poly> facts; // d * (n / d) >= n - (d - 1)
      for (const std::string &atom : length.atoms())
        if (ExprRef e = model.atomExpr(atom); e && isBinary(e, "/"))
          if (auto d = constantValue(e->args[1]); d && *d > 0)
            facts.push_back(Poly(*d) * Poly::atom(atom) - model.poly(e->args[0]) + Poly(*d - 1));
      std::optional<Poly> exact; // float holds such quotients well enough
      for (const std::string &atom : length.atoms())
        if (auto quotient = ceiling(atom)) {
          facts.push_back(Poly(quotient->second) * Poly::atom(atom) - quotient->first);
          exact = quotient->first;
        }
      length = Poly(strip) * length;
      if (follows(length - last, facts)) {
        if (auto text = exact ? planText(model, *exact) : std::nullopt)
          state.require(*text + " <= 1048576", "the number of strips is computed in float");
        else if (exact)
          return false;
        return true;
      }
    }
    auto all = launchText(length), needed = launchText(last);
    if (!all || !needed)
      return false;
    state.require(*needed + " <= " + *all, "the strips cover the whole loop");
    return true;
  }

  /// ceil(n / (float)d): n and d.
  std::optional<std::pair<Poly, int64_t>> ceiling(const std::string &atom) const {
    ExprRef e = model.atomExpr(atom);
    while (e && e->kind == ExprKind::Cast && e->type.isInt())
      e = e->args[0];
    bool calls = e && e->kind == ExprKind::Call && e->isLibrary && e->args.size() == 1 &&
                 (e->text == "ceil" || e->text == "ceilf" || e->text == "std::ceil");
    if (!calls)
      return std::nullopt;
    ExprRef q = e->args[0];
    while (q->kind == ExprKind::Cast && q->type.isFloat() && q->args[0]->type.isFloat())
      q = q->args[0];
    if (!isBinary(q, "/") || !q->type.isFloat() || q->type.bytes < 4)
      return std::nullopt;
    auto integer = [](ExprRef x) {
      while (x->kind == ExprKind::Cast && x->type.isFloat())
        x = x->args[0];
      return x;
    };
    ExprRef n = integer(q->args[0]), d = integer(q->args[1]);
    auto divisor = d->kind == ExprKind::FloatLit
                       ? std::optional<int64_t>(int64_t(std::strtod(d->text.c_str(), nullptr)))
                       : constantValue(d);
    if (d->kind == ExprKind::FloatLit && double(*divisor) != std::strtod(d->text.c_str(), nullptr))
      return std::nullopt;
    if (!n->type.isInt() || !divisor || *divisor < 1 || *divisor > 1024)
      return std::nullopt;
    return std::pair(model.poly(n), *divisor);
  }

  /// `p` over the original launch.
  std::optional<std::string> launchText(Poly p) const {
    for (const char *axis : {"x", "y", "z"})
      p = p.substitute(std::string("gridDim.") + axis, Poly::atom(std::string("grid.") + axis));
    for (const std::string &atom : p.atoms())
      if (!atom.starts_with("grid.") && !planText(model, Poly::atom(atom)))
        return std::nullopt;
    return p.str();
  }

  KernelState &state;
  KernelModel model;
  CountedLoop outer, inner;
  int64_t strip = 0;
  Type type; ///< of the counter
  bool failed = false;
};
} // namespace

/// for (…) if (c) body   becomes   if (c) for (…) body,  where c stays what it is.
static void unswitch(Kernel &kernel, const std::array<int64_t, 3> &block) {
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (StmtRef &s : list) {
      auto loop = asCountedLoop(*s);
      if (!loop || s->body[0]->body.size() != 1)
        continue;
      StmtRef branch = s->body[0]->body[0];
      KernelModel model(kernel, block);
      if (branch->kind != StmtKind::If || branch->body.size() != 1 || mentions(branch->expr, loop->var) ||
          !model.stable(branch->expr))
        continue;
      bool inside = anyStmt(*s, [&](const Stmt &t) {
        return t.kind == StmtKind::Decl && mentions(branch->expr, t.text);
      }); // its variables are the loop's own
      if (inside)
        continue;
      s->body[0] = branch->body[0];
      branch->body[0] = optiml::block({s});
      s = branch;
    }
  });
}

/// Puts integers that a strip computes once in where they are used, so that nothing stands before its inner loop.
static void inlineIntegers(Kernel &kernel, Stmt &strip, const std::array<int64_t, 3> &block) {
  KernelModel model(kernel, block);
  std::vector<StmtRef> rest;
  std::map<std::string, ExprRef> values;
  for (const StmtRef &s : strip.body) {
    bool same = s->kind == StmtKind::Decl && s->type.isInt() && model.singleAssignment(s->text) &&
                model.stable(s->expr) && s->expr->type.isInt() && s->expr->type.bytes == s->type.bytes &&
                s->expr->type.isSigned == s->type.isSigned;
    if (same)
      values[s->text] = substitute(s->expr, values);
    else
      rest.push_back(s);
  }
  if (rest.size() != 1 || values.empty() || !asCountedLoop(*rest[0]))
    return;
  for (const auto &[name, value] : values)
    if (opaqueMentions(*rest[0], {name}))
      return;
  substitute(*rest[0], values);
  strip.body = rest;
}

void optiml::mergeStrips(KernelState &state, Kernel &kernel, const std::array<int64_t, 3> &block) {
  unswitch(kernel, block);
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    for (StmtRef &s : list) {
      if (!asCountedLoop(*s))
        continue;
      inlineIntegers(kernel, *s->body[0], block);
      auto outer = asCountedLoop(*s);
      if (s->body[0]->body.size() != 1)
        continue;
      if (auto inner = asCountedLoop(*s->body[0]->body[0]))
        if (StmtRef merged = StripMerger(state, kernel, block, *outer, *inner).run())
          s = merged;
    }
  });
}
