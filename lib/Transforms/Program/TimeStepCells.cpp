//===- TimeStepCells.cpp - which cells a stencil's step accesses ----------===//
#include "Staging/SharedTile.h"
#include "TimeStepReader.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Support/Error.h"

using namespace optiml;

bool TimeStepReader::isStoreTo(const Stmt &s, const std::string &array) const {
  return s.kind == StmtKind::Expr &&
         llvm::any_of(model->accesses(), [&](const Access &a) { return a.stmt == &s && a.write && a.array == array; });
}

llvm::Error TimeStepReader::requireNoOverlap() {
  std::set<std::string> fields, others;
  for (const TimeStep::Field &field : step.fields) {
    fields.insert(field.in);
    fields.insert(field.out);
  }
  for (const Access &access : model->accesses()) {
    if (access.space != Space::Global || fields.count(access.array) || isConstantOfFile(*model, access))
      continue;
    others.insert(access.array);
  }
  // In the next launch the old buffers are the new ones: the conditions are asked of both.
  for (auto a = fields.begin(); a != fields.end(); ++a) {
    for (auto b = std::next(a); b != fields.end(); ++b)
      if (fieldWritten(*a) || fieldWritten(*b))
        if (llvm::Error e = requireFieldsApart(*a, *b))
          return e;
    for (const std::string &other : others)
      if (fieldWritten(*a))
        if (llvm::Error e = requireDisjoint(state, *model, *a, other))
          return e;
  }
  return llvm::Error::success();
}

/// The bytes that a launch touches of a field: where they begin, and how many they are, as a condition writes it.
llvm::Expected<std::string> TimeStepReader::rangeOf(const std::string &field) {
  std::string low, end;
  for (const auto &[access, distances] : places) {
    if (access->array != field)
      continue;
    Poly least, most;
    for (size_t d = 0; d < distances.size(); ++d) {
      const GridLayout::Dimension &dim = layout.dims[d];
      std::optional<Poly> from, to;
      if (rings.count(d)) {
        from = Poly(0);
        to = rings.at(d) - Poly(1);
      } else { // the index goes no farther than the step looks
        std::vector<Poly> facts = factsOf(*access);
        facts.insert(facts.end(), common.begin(), common.end());
        from = lowerBound(*model, dim.index(), facts);
        to = upperBound(*model, dim.index(), facts);
        if (from && to && !distances[d].rule) {
          from = lowerBound(*model, dim.index() + distances[d].distance, facts);
          to = upperBound(*model, dim.index() + distances[d].distance, facts);
        } else if (from && to) {
          bool stays = llvm::all_of(distances[d].cases, [&](const IndexCase &one) { // among the cells
            std::vector<Poly> below = facts;
            below.insert(below.end(), one.facts.begin(), one.facts.end());
            std::vector<Poly> above = below;
            below.push_back(*from - one.value - Poly(1));
            above.push_back(one.value - *to - Poly(1));
            return isEmptySet(below) && isEmptySet(above);
          });
          from = *from - Poly(stays ? 0 : distances[d].low);
          to = *to + Poly(stays ? 0 : distances[d].high);
        }
      }
      auto stride = launchText(*model, dim.stride);
      if (!from || !to || !stride)
        return notApplicable("line {0}: which part of '{1}' is accessed is not known", access->stmt->line, field);
      if (!dim.stride.constant())
        state.require("(" + *stride + ") >= 0", "index arithmetic assumes it");
      least = least + dim.stride * (*from + dim.shift);
      most = most + dim.stride * (*to + dim.shift);
    }
    auto first = launchText(*model, least), last = launchText(*model, most + Poly(1));
    if (!first || !last)
      return notApplicable("line {0}: which part of '{1}' is accessed is not known", access->stmt->line, field);
    low = low.empty() || low == *first ? *first : "min(" + low + ", " + *first + ")";
    end = end.empty() || end == *last ? *last : "max(" + end + ", " + *last + ")";
  }
  std::string bytes = std::to_string(model->param(field)->type.pointee->bytes);
  return field + " + " + bytes + " * (" + low + "), " + bytes + " * (" + end + " - (" + low + "))";
}

llvm::Error TimeStepReader::requireFieldsApart(const std::string &a, const std::string &b) {
  if (model->param(a)->type.isRestrict && model->param(b)->type.isRestrict)
    return llvm::Error::success();
  auto first = rangeOf(a), second = rangeOf(b);
  if (!first || !second)
    return llvm::joinErrors(first ? llvm::Error::success() : first.takeError(),
                            second ? llvm::Error::success() : second.takeError());
  state.require("disjoint(" + *first + ", " + *second + ")", a + " and " + b + " must not overlap");
  return llvm::Error::success();
}

static Poly atValues(Poly p, const std::map<std::string, int64_t> &values) {
  for (const auto &[name, value] : values)
    p = p.substitute(name, Poly(value));
  return p;
}

/// The value of a condition on variables of loops alone.
static std::optional<int64_t> evaluate(const ExprRef &e, const std::map<std::string, int64_t> &values) {
  if (e->kind == ExprKind::IntLit)
    return e->value;
  if (auto it = values.find(e->text); e->kind == ExprKind::Var && it != values.end())
    return it->second;
  std::vector<int64_t> args;
  for (const ExprRef &arg : e->args) {
    auto value = evaluate(arg, values);
    if (!value)
      return std::nullopt;
    args.push_back(*value);
  }
  const std::string &op = e->text;
  if (e->kind == ExprKind::Unary && args.size() == 1)
    return op == "!" ? std::optional<int64_t>(!args[0]) : op == "-" ? std::optional(-args[0]) : std::nullopt;
  if (e->kind == ExprKind::Call && e->isLibrary && op == "abs" && args.size() == 1)
    return std::abs(args[0]);
  if (e->kind != ExprKind::Binary)
    return std::nullopt;
  static const std::map<std::string, int64_t (*)(int64_t, int64_t)> operators = {
      {"+", [](int64_t a, int64_t b) { return a + b; }},
      {"-", [](int64_t a, int64_t b) { return a - b; }},
      {"*", [](int64_t a, int64_t b) { return a * b; }},
      {"<", [](int64_t a, int64_t b) { return int64_t(a < b); }},
      {"<=", [](int64_t a, int64_t b) { return int64_t(a <= b); }},
      {">", [](int64_t a, int64_t b) { return int64_t(a > b); }},
      {">=", [](int64_t a, int64_t b) { return int64_t(a >= b); }},
      {"==", [](int64_t a, int64_t b) { return int64_t(a == b); }},
      {"!=", [](int64_t a, int64_t b) { return int64_t(a != b); }},
      {"&&", [](int64_t a, int64_t b) { return int64_t(a && b); }},
      {"||", [](int64_t a, int64_t b) { return int64_t(a || b); }}};
  auto it = operators.find(op);
  return it == operators.end() ? std::nullopt : std::optional(it->second(args[0], args[1]));
}

/// The iterations of the loops around a read, one after the other where a guard asks which one it is; else all at once.
std::vector<std::map<std::string, int64_t>> TimeStepReader::loopValues(const Access &access) const {
  constexpr size_t most = 64;
  std::vector<std::map<std::string, int64_t>> result = {{}};
  bool asks = false;
  for (const auto &[condition, taken] : access.guards)
    for (Stmt *s : access.path)
      if (auto loop = asCountedLoop(*s))
        asks |= mentions(condition, loop->var) && condition != s->expr;
  for (Stmt *s : access.path) {
    auto loop = asCountedLoop(*s);
    auto count = loop ? loop->tripCount() : std::nullopt;
    auto lower = loop ? constantValue(loop->lower) : std::nullopt;
    if (!asks || !count || !lower || *count < 1 || int64_t(result.size()) * *count > int64_t(most))
      continue;
    std::vector<std::map<std::string, int64_t>> more;
    for (const auto &values : result)
      for (int64_t i = 0; i < *count; ++i) {
        more.push_back(values);
        more.back()[loop->var] = *lower + i * loop->step;
      }
    result = std::move(more);
  }
  return result;
}

/// What is known where an access runs, in the iterations `loops`, case by case. Guards on memory say nothing of a store
/// (it takes place either way); of a read, there is no answer.
std::optional<std::vector<std::vector<Poly>>> TimeStepReader::guardsOf(const AccessRegions &sets, const Access &access,
                                                                       const std::map<std::string, int64_t> &loops) {
  std::vector<Poly> always;
  for (const Poly &fact : factsOf(access))
    always.push_back(atValues(fact, loops));
  std::vector<std::vector<Poly>> result = {always};
  for (const auto &[condition, taken] : access.guards) {
    if (auto value = evaluate(condition, loops)) {
      if ((*value != 0) != taken)
        return std::vector<std::vector<Poly>>();
      continue;
    }
    auto known = sets.alternatives(condition, taken);
    if (!known && !access.write)
      return std::nullopt;
    if (!known)
      continue;
    std::vector<std::vector<Poly>> more;
    for (const std::vector<Poly> &facts : result)
      for (const std::vector<Poly> &alternative : *known) {
        std::vector<Poly> both = facts;
        for (const Poly &p : alternative)
          both.push_back(atValues(p, loops));
        if (!isEmptySet(both))
          more.push_back(std::move(both));
      }
    result = std::move(more);
  }
  return result;
}

/// Where a read goes around a ring, all indices there are read: none of the facts says otherwise.
bool TimeStepReader::wholeRings(const std::vector<CellDistance> &distances, const std::vector<Poly> &facts) const {
  for (size_t d = 0; d < distances.size(); ++d) {
    if (!distances[d].ring)
      continue;
    const Poly at = layout.dims[d].index();
    const std::string name = *at.atoms().begin();
    std::vector<Poly> others = {at, *distances[d].ring - at - Poly(1)};
    llvm::copy_if(facts, std::back_inserter(others), [&](const Poly &fact) { return !fact.mentions(name); });
    // That each of these cells has a thread is asked of the launch.
    others.push_back(layout.dims[d].extent - *distances[d].ring);
    for (const Poly &fact : facts) {
      std::vector<Poly> violated = others;
      violated.push_back(Poly(-1) - fact);
      if (fact.mentions(name) && !isEmptySet(violated))
        return false;
    }
  }
  return true;
}

llvm::Error TimeStepReader::findCells() {
  AccessRegions sets(*model, layout, [&](const Poly &p) { return withoutWrapping(p, {}); });
  std::vector<Poly> self;
  std::vector<std::vector<Poly>> computed, first;
  for (const GridLayout::Dimension &dim : layout.dims)
    self.push_back(dim.index());
  for (const TimeStep::Field &field : step.fields) {
    auto stores = [&](const Stmt &s) { return isStoreTo(s, field.out); };
    if (llvm::Error e = sets.requireKnownStores(*kernel->body, stores))
      return e;
    std::vector<SetPiece> pieces;
    for (const Access &access : model->accesses())
      if (access.write && access.array == field.out) {
        auto guarded = guardsOf(sets, access, {});
        for (const std::vector<Poly> &facts : *guarded)
          pieces.push_back(sets.piece(facts, self));
      }
    auto inside = sets.project(pieces, true);
    if (!inside)
      return inside.takeError();
    for (const auto &[d, length] : rings)
      if (llvm::Error e = requireWholeRing(*inside, d, length))
        return e;
    std::string text = sets.cxx(*inside, step);
    computed = *inside;
    step.insideLast = "true";
    if (step.dims.size() == 3 && inside->size() == 1) { // told apart, for the last index changes as a block moves on
      auto last = [](const Poly &p) { return p.mentions(coordinate(2)); };
      std::vector<Poly> moving, fixed;
      llvm::copy_if(inside->front(), std::back_inserter(moving), last);
      llvm::copy_if(inside->front(), std::back_inserter(fixed), [&](const Poly &p) { return !last(p); });
      step.insideLast = sets.cxx({moving}, step);
      text = sets.cxx({fixed}, step);
    } else if (step.dims.size() == 3) {
      step.insideLast = text;
      text = "true";
    }
    if (&field == &step.fields.front())
      step.inside = text, first = *inside;
    else if (first != *inside)
      return notApplicable("it writes more cells of one array than of another");
  }
  std::vector<SetPiece> reads;
  for (const auto &[access, distances] : places) {
    bool isOwn = access->write || llvm::all_of(distances, [](const CellDistance &one) {
                   return one.distance.terms.empty() && !one.rule && !one.ring;
                 });
    if (isOwn) // it is there where the cell is computed
      continue;
    for (const std::map<std::string, int64_t> &loops : loopValues(*access)) {
      auto guarded = guardsOf(sets, *access, loops);
      if (!guarded)
        return notApplicable("line {0}: which cells are read depends on more than indices", access->stmt->line);
      std::vector<std::pair<std::vector<Poly>, std::vector<Poly>>> products; // indices, facts
      for (std::vector<Poly> &facts : *guarded) {
        if (!wholeRings(distances, facts))
          return notApplicable("line {0}: only some cells look around the grid", access->stmt->line);
        facts.insert(facts.end(), common.begin(), common.end());
        products.push_back({{}, facts});
      }
      for (const CellDistance &one : distances) {
        std::vector<std::pair<std::vector<Poly>, std::vector<Poly>>> more;
        for (const auto &[indices, facts] : products)
          for (const IndexCase &c : one.cases) {
            more.push_back({indices, facts});
            more.back().first.push_back(atValues(c.value, loops));
            for (const Poly &fact : c.facts)
              more.back().second.push_back(atValues(fact, loops));
          }
        products = std::move(more);
      }
      for (const auto &[indices, facts] : products)
        reads.push_back(sets.piece(facts, indices));
    }
  }
  if (reads.empty()) {
    step.needed = "false";
    return llvm::Error::success();
  }
  auto needed = sets.project(reads, false);
  if (!needed)
    return needed.takeError();
  std::erase_if(*needed, [&](const std::vector<Poly> &read) {
    return llvm::any_of(computed, [&](const std::vector<Poly> &cells) { return sets.within(read, cells); });
  });
  step.needed = sets.cxx(*needed, step);
  return llvm::Error::success();
}

/// All that it does is to copy cells.
bool TimeStepReader::onlyCopies() const {
  for (const auto &[access, distances] : places)
    if (access->write) {
      const ExprRef &store = access->stmt->expr;
      bool copied = store && store->kind == ExprKind::Assign && llvm::any_of(places, [&](const auto &place) {
                      const auto &[read, there] = place;
                      bool own = llvm::all_of(there, [](const CellDistance &one) {
                        return one.distance.terms.empty() && !one.rule && !one.ring;
                      });
                      const TimeStep::Field *field = fieldRead(read->array);
                      return own && store->args[1] == read->node && field && field->out == access->array;
                    });
      if (!copied)
        return false;
    }
  return true;
}

/// Every cell of the ring is computed, whatever the other indices are.
llvm::Error TimeStepReader::requireWholeRing(const std::vector<std::vector<Poly>> &cells, size_t d,
                                             const Poly &length) {
  Poly at = Poly::atom(coordinate(d));
  for (const std::vector<Poly> &conjunction : cells)
    for (const Poly &p : conjunction)
      if (p.mentions(coordinate(d)) && !isEmptySet({at, length - at - Poly(1), Poly(-1) - p}))
        return notApplicable("what it reads around the grid is not all computed");
  auto text = launchText(*model, layout.dims[d].extent - length);
  auto positive = planText(*model, length - Poly(1));
  if (!text || !positive)
    return notApplicable("how many cells there are around the grid is not known");
  state.require("(" + *text + ") >= 0", "every cell around the grid has a thread");
  state.require("(" + *positive + ") >= 0", "there are cells around the grid");
  step.dims[d].ring = str(polyExpr(*model, length));
  return llvm::Error::success();
}
