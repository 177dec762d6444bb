//===- TimeSteps.cpp - steps in time of a stencil -------------------------===//
//
// Legal when
//  - threads do not work together, and each writes nothing but its own cell of the fields' new buffers, which it does not
//    read; all cells that are written have addresses of their own;
//  - the old buffers are read at distances that are the same for all cells (a loop may run over them), and no address that
//    is read is another cell's than the one at that distance (proved, or tested by the launch's numbers);
//  - which cells are written, and which cells are read, is known exactly: by affine conditions on the indices (isl), or
//    because a cell is written whatever a condition says;
//  - everything else that is read does not overlap the fields (requireDisjoint).
// Cells that no thread writes keep what is in the buffer in question. They are loaded from both buffers.
//
//===----------------------------------------------------------------------===//
#include "optiml/Transforms/TimeSteps.h"
#include "CellRules.h"
#include "CellSets.h"
#include "FlatIndex.h"
#include "GridLayout.h"
#include "SharedTile.h"
#include "ThreadMapping.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

class Recognizer {
public:
  explicit Recognizer(const KernelState &state) : state(state) {}
  llvm::Expected<TimeStep> run();

private:
  KernelState state; ///< gathers conditions
  std::shared_ptr<Kernel> kernel;
  std::optional<KernelModel> model;
  GridLayout layout;
  TimeStep step;
  std::map<const Access *, std::vector<CellDistance>> places; ///< of the fields' reads, along each dimension
  std::map<size_t, Poly> rings; ///< dimensions whose ends meet, and how many cells they have
  std::optional<FlatIndex> flat;
  std::vector<Poly> common;     ///< facts about all cells that are computed
  std::set<std::string> taken;

  llvm::Error prepare();
  llvm::Error findFields();
  llvm::Error findDistances();
  llvm::Error requireOwnAddresses(const Access &access, const std::vector<CellDistance> &distances, const std::vector<Poly> &facts);
  llvm::Error requireNotNegative(const Poly &p, const std::vector<Poly> &facts, const Access &access);
  llvm::Error requireNoOverlap();
  llvm::Error requireFieldsApart(const std::string &a, const std::string &b);
  llvm::Expected<std::string> rangeOf(const std::string &field);
  llvm::Error findCells();
  llvm::Error requireWholeRing(const std::vector<std::vector<Poly>> &cells, size_t d, const Poly &length);
  llvm::Error writeBody();
  void name();
  void holdReads(Stmt &body);
  std::vector<Poly> factsOf(const Access &access);
  Poly withoutWrapping(Poly p, const std::vector<Poly> &facts);
  const TimeStep::Field *fieldRead(const std::string &array) const {
    auto it = llvm::find_if(step.fields, [&](const TimeStep::Field &f) { return f.in == array; });
    return it == step.fields.end() ? nullptr : &*it;
  }
  const TimeStep::Field *fieldWritten(const std::string &array) const {
    auto it = llvm::find_if(step.fields, [&](const TimeStep::Field &f) { return f.out == array; });
    return it == step.fields.end() ? nullptr : &*it;
  }
};

bool isStoreTo(const Stmt &s, const std::string &array, const KernelModel &model) {
  return s.kind == StmtKind::Expr && llvm::any_of(model.accesses(), [&](const Access &a) { return a.stmt == &s && a.write && a.array == array; });
}

} // namespace

llvm::Error Recognizer::prepare() {
  kernel = state.original->clone();
  if (threadsWorkTogether(*kernel))
    return notApplicable("its threads work together");
  if (llvm::Error e = requireConstantParameters(*kernel))
    return e;
  if (llvm::Error e = removeReturns(*kernel->body))
    return e;
  adoptPlainIndices(state, *kernel);
  std::array<AxisUse, 3> axes = normalizeGlobalIndex(*kernel, {0, 0, 0});
  for (const AxisUse &axis : axes)
    if (axis.other)
      return notApplicable("line {0}: it uses a thread's place in its block", axis.otherLine);
  inlinePointerLocals(*kernel);
  if (!axes[1].global && !axes[2].global)
    flat = takeApartFlatIndex(*kernel);
  unsigned opaque = 0;
  walk(*kernel->body, [&](Stmt &s) {
    if (s.kind == StmtKind::Opaque && !opaque)
      opaque = std::max(1u, s.line);
  });
  if (opaque)
    return notApplicable("line {0} is not understood", opaque);
  model.emplace(*kernel);
  if (unsigned line = model->unknownEffectLine())
    return notApplicable("line {0} may access memory in ways that are not understood", line);
  return llvm::Error::success();
}

llvm::Error Recognizer::findFields() {
  std::vector<std::string> written;
  for (const Access &access : model->accesses()) {
    if (access.space != Space::Global || !access.write)
      continue;
    const Param *param = model->param(access.array);
    if (access.read)
      return notApplicable("line {0}: it reads what it writes", access.stmt->line);
    if (access.atomic || access.op != "=" || !param || !param->type.isPointer() || access.array.find('.') != std::string::npos)
      return notApplicable("line {0}: it writes more than cells of plain arrays", access.stmt->line);
    if (access.subscripts.size() != 1 || !access.members().empty())
      return notApplicable("line {0}: what it writes is no cell of a grid", access.stmt->line);
    if (!llvm::is_contained(written, access.array))
      written.push_back(access.array);
  }
  if (written.empty())
    return notApplicable("it writes nothing");
  // Buffers that change places are of one type. Those that are read elsewhere than at the own cell come first.
  std::vector<std::string> read, far;
  const Access *store = nullptr;
  for (const Access &access : model->accesses()) {
    if (access.write && access.space == Space::Global && !store)
      store = &access;
    if (!access.read || access.space != Space::Global)
      continue;
    if (llvm::is_contained(written, access.array))
      return notApplicable("line {0}: it reads what it writes", access.stmt->line);
  }
  auto layoutOf = gridLayout(*model, store->subscripts[0]);
  if (!layoutOf)
    return layoutOf.takeError();
  layout = std::move(*layoutOf);
  if (flat) {
    if (layout.dims.size() != 2 || layout.dims[0].axis != 0)
      return notApplicable("a row of threads, but no grid that it runs over");
    layout.dims[0].extent = flat->width;
    layout.dims[1].extent = flat->height;
  }
  for (const Access &access : model->accesses()) {
    if (!access.read || access.space != Space::Global || access.array.find('.') != std::string::npos || !model->param(access.array))
      continue;
    std::vector<std::string> &list = access.subscripts.size() == 1 && access.subscripts[0] == store->subscripts[0] ? read : far;
    if (!llvm::is_contained(list, access.array))
      list.push_back(access.array);
  }
  far.insert(far.end(), read.begin(), read.end());
  for (const Param &out : kernel->params) { // pairs in the order of the parameters
    if (!llvm::is_contained(written, out.name))
      continue;
    const Type &type = *out.type.pointee;
    if ((type.cls != Type::Class::Int && !type.isFloat()) || type.isVolatile)
      return notApplicable("'{0}' points to no numbers", out.name);
    TimeStep::Field field;
    field.out = out.name;
    field.element = type.text;
    field.bytes = type.bytes;
    std::vector<std::string> candidates;
    for (const std::string &name : far) {
      const Param *in = model->param(name);
      if (!fieldRead(name) && in->type.pointee && in->type.pointee->text == type.text && !in->type.pointee->isVolatile)
        candidates.push_back(name);
    }
    auto near = [&](const std::string &name) { return llvm::none_of(model->accesses(), [&](const Access &a) {
        return a.array == name && !(a.subscripts.size() == 1 && a.subscripts[0] == store->subscripts[0]); }); };
    auto order = [&](const std::string &name) { return llvm::find_if(kernel->params, [&](const Param &p) { return p.name == name; }); };
    llvm::sort(candidates, [&](const std::string &a, const std::string &b) { return std::pair(near(a), order(a)) < std::pair(near(b), order(b)); });
    if (candidates.empty())
      return notApplicable("it reads no array like '{0}', which it writes", out.name);
    field.in = candidates.front();
    step.fields.push_back(std::move(field));
  }
  return llvm::Error::success();
}

/// Differences of unsigned numbers are kept as atoms, for they may wrap around. Where the facts say that one does not, it
/// is a difference of integers.
Poly Recognizer::withoutWrapping(Poly p, const std::vector<Poly> &facts) {
  for (const std::string &atom : p.atoms()) {
    ExprRef e = model->atomExpr(atom);
    if (!e || e->kind != ExprKind::Binary || e->text != "-" || !e->type.isInt() || e->type.isSigned)
      continue;
    Poly difference = withoutWrapping(model->poly(e->args[0]), facts) - withoutWrapping(model->poly(e->args[1]), facts);
    std::vector<Poly> violated = facts;
    violated.push_back(Poly(-1) - difference);
    if (!isEmptySet(violated)) {
      auto text = planText(*model, difference); // the same for all threads: a launch's own numbers tell
      if (!text)
        continue;
      state.require(*text + " >= 0", "an unsigned difference is one of integers");
    }
    p = p.substitute(atom, difference);
  }
  return p;
}

/// What is known where an access runs: of the global indices, variables of loops, and arguments.
std::vector<Poly> Recognizer::factsOf(const Access &access) {
  std::vector<Poly> facts;
  for (const Poly &fact : model->facts(access)) {
    std::set<std::string> atoms = fact.atoms();
    bool other = llvm::any_of(atoms, [&](llvm::StringRef a) { // the launch's shape is said below
      return a.starts_with("blockIdx.") || a.starts_with("threadIdx.") ||
             (a.starts_with("globalIdx.") && llvm::none_of(layout.dims, [&](const GridLayout::Dimension &d) { return d.index() == Poly::atom(a.str()); }));
    });
    if (!other)
      facts.push_back(fact);
  }
  for (const GridLayout::Dimension &dim : layout.dims)
    facts.push_back(dim.extent - dim.index() - Poly(1));
  for (unsigned round = 0; round < 2; ++round)
    for (Poly &fact : facts)
      fact = withoutWrapping(fact, facts);
  return facts;
}

llvm::Error Recognizer::requireNotNegative(const Poly &p, const std::vector<Poly> &facts, const Access &access) {
  std::vector<Poly> violated = facts;
  violated.push_back(Poly(-1) - p);
  if (isEmptySet(violated))
    return llvm::Error::success();
  auto least = lowerBound(*model, p, facts);
  if (auto text = least && !least->constant() ? launchText(*model, *least) : std::nullopt) {
    state.require("(" + *text + ") >= 0", "rows of the grid do not run into each other");
    return llvm::Error::success();
  }
  return notApplicable("line {0}: it may access a cell of another row", access.stmt->line);
}

/// Two cells whose indices differ have different addresses: all but the slowest index stay inside of a row.
llvm::Error Recognizer::requireOwnAddresses(const Access &access, const std::vector<CellDistance> &distances, const std::vector<Poly> &facts) {
  for (size_t d = 0; d + 1 < layout.dims.size(); ++d)
    for (const IndexCase &one : distances[d].cases) {
      const GridLayout::Dimension &dim = layout.dims[d];
      std::vector<Poly> where = facts;
      where.insert(where.end(), one.facts.begin(), one.facts.end());
      Poly at = one.value + dim.shift;
      for (const Poly &p : {at, *dim.length - at - Poly(1)})
        if (llvm::Error e = requireNotNegative(p, where, access))
          return e;
    }
  return llvm::Error::success();
}

llvm::Error Recognizer::findDistances() {
  for (const GridLayout::Dimension &dim : layout.dims)
    step.dims.push_back({dim.axis, 0, 0, launchText(*model, dim.extent).value_or(""), "", "", "", "", ""});
  std::vector<const Access *> stores;
  for (const Access &access : model->accesses())
    if (access.space == Space::Global && access.write)
      stores.push_back(&access);
  const Poly own = stores.front()->subscripts[0];
  if (flat) {
    auto width = launchText(*model, flat->width), height = launchText(*model, flat->height);
    for (const Access *store : stores) {
      std::vector<Poly> beyond = model->facts(*store);
      beyond.push_back(layout.dims[1].index() - flat->height);
      if (!width || !height || !isEmptySet(beyond))
        return notApplicable("line {0}: how many cells it writes is not known", store->stmt->line);
    }
    state.require("(" + *width + ") >= 1 && (" + *height + ") >= 1 && (" + *width + ") * (" + *height + ") <= " + threadsAlong(0), "every cell has a thread");
  }
  // What is known of all cells that are computed; other threads need not read.
  common = factsOf(*stores.front());
  for (const Access *store : stores)
    if (factsOf(*store) != common)
      common.clear();
  std::vector<std::optional<Poly>> cells(layout.dims.size());
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    auto least = lowerBound(*model, layout.dims[d].index(), common), most = upperBound(*model, layout.dims[d].index(), common);
    if (least && most && *least == Poly(0))
      cells[d] = *most + Poly(1);
  }
  for (const Access &access : model->accesses()) {
    if (access.space != Space::Global)
      continue;
    bool writes = fieldWritten(access.array);
    if (!writes && !fieldRead(access.array))
      continue;
    if (access.subscripts.size() != 1 || !access.members().empty())
      return notApplicable("line {0}: '{1}' is accessed in a way that is not understood", access.stmt->line, access.array);
    std::vector<Poly> facts = factsOf(access);
    facts.insert(facts.end(), common.begin(), common.end());
    if (writes && !(access.subscripts[0] == own))
      return notApplicable("line {0}: it writes other cells than its own", access.stmt->line);
    auto distances = cellDistances(*model, layout, own, withoutWrapping(access.subscripts[0], facts), facts, cells);
    if (!distances)
      return notApplicable("line {0}: '{1}' is read {2} from the cell that is written", access.stmt->line, access.array, llvm::toString(distances.takeError()));
    for (size_t d = 0; d < distances->size(); ++d) {
      const CellDistance &one = (*distances)[d];
      step.dims[d].low = std::max(step.dims[d].low, one.low);
      step.dims[d].high = std::max(step.dims[d].high, one.high);
      if (!one.ring)
        continue;
      if (rings.count(d) && !(rings.at(d) == *one.ring))
        return notApplicable("line {0}: rings of different lengths", access.stmt->line);
      rings[d] = *one.ring;
    }
    if (llvm::Error e = requireOwnAddresses(access, *distances, facts))
      return e;
    places[&access] = std::move(*distances);
  }
  return llvm::Error::success();
}

llvm::Error Recognizer::requireNoOverlap() {
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
llvm::Expected<std::string> Recognizer::rangeOf(const std::string &field) {
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

llvm::Error Recognizer::requireFieldsApart(const std::string &a, const std::string &b) {
  if (model->param(a)->type.isRestrict && model->param(b)->type.isRestrict)
    return llvm::Error::success();
  auto first = rangeOf(a), second = rangeOf(b);
  if (!first || !second)
    return llvm::joinErrors(first ? llvm::Error::success() : first.takeError(), second ? llvm::Error::success() : second.takeError());
  state.require("disjoint(" + *first + ", " + *second + ")", a + " and " + b + " must not overlap");
  return llvm::Error::success();
}

llvm::Error Recognizer::findCells() {
  CellSets sets(*model, layout, [&](const Poly &p) { return withoutWrapping(p, {}); });
  std::vector<Poly> self;
  std::vector<std::vector<Poly>> computed;
  for (const GridLayout::Dimension &dim : layout.dims)
    self.push_back(dim.index());
  for (const TimeStep::Field &field : step.fields) {
    auto stores = [&](const Stmt &s) { return isStoreTo(s, field.out, *model); };
    if (llvm::Error e = sets.requireKnownStores(*kernel->body, stores))
      return e;
    std::vector<SetPiece> pieces;
    for (const Access &access : model->accesses())
      if (access.write && access.array == field.out)
        pieces.push_back(sets.piece(factsOf(access), self));
    auto inside = sets.project(pieces, true);
    if (!inside)
      return inside.takeError();
    for (const auto &[d, length] : rings)
      if (llvm::Error e = requireWholeRing(*inside, d, length))
        return e;
    std::string text = sets.cxx(*inside, step);
    computed = *inside;
    if (&field == &step.fields.front())
      step.inside = text;
    else if (step.inside != text)
      return notApplicable("it writes more cells of one array than of another");
  }
  std::vector<SetPiece> reads;
  for (const auto &[access, distances] : places) {
    bool isOwn = access->write || llvm::all_of(distances, [](const CellDistance &one) { return one.distance.terms.empty() && !one.rule && !one.ring; });
    if (isOwn) // it is there where the cell is computed
      continue;
    std::vector<Poly> known;
    for (const auto &[condition, taken] : access->guards)
      if (!sets.addExact(condition, taken, known))
        return notApplicable("line {0}: which cells are read depends on more than indices", access->stmt->line);
    std::vector<Poly> facts = factsOf(*access);
    facts.insert(facts.end(), common.begin(), common.end());
    std::vector<std::pair<std::vector<Poly>, std::vector<Poly>>> products = {{{}, facts}}; // values, facts
    for (const CellDistance &one : distances) {
      std::vector<std::pair<std::vector<Poly>, std::vector<Poly>>> more;
      for (const auto &[values, known] : products)
        for (const IndexCase &c : one.cases) {
          more.push_back({values, known});
          more.back().first.push_back(c.value);
          more.back().second.insert(more.back().second.end(), c.facts.begin(), c.facts.end());
        }
      products = std::move(more);
    }
    for (const auto &[values, known] : products)
      reads.push_back(sets.piece(known, values));
  }
  if (reads.empty()) {
    step.needed = "false";
    return llvm::Error::success();
  }
  auto needed = sets.project(reads, false);
  if (!needed)
    return needed.takeError();
  std::erase_if(*needed, [&](const std::vector<Poly> &read) { return llvm::any_of(computed, [&](const std::vector<Poly> &cells) { return sets.within(read, cells); }); });
  step.needed = sets.cxx(*needed, step);
  return llvm::Error::success();
}

/// Every cell of the ring is computed, whatever the other indices are.
llvm::Error Recognizer::requireWholeRing(const std::vector<std::vector<Poly>> &cells, size_t d, const Poly &length) {
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

void Recognizer::name() {
  taken = allNames(*kernel);
  for (const char *wish : {"steps", "step", "most", "cell", "cells", "from", "first", "second", "to", "inside", "width", "height", "cellIndex", "tile", "planes", "slots", "front"})
    step.names[wish] = freshName(taken, wish);
  const char *cells[] = {"cellX", "cellY", "cellZ"}, *locals[] = {"column", "row", "plane"}, *extents[] = {"cellsX", "cellsY", "cellsZ"};
  for (size_t d = 0; d < step.dims.size(); ++d) {
    step.dims[d].cell = freshName(taken, cells[d]);
    step.dims[d].local = freshName(taken, locals[d]);
    step.dims[d].extent = freshName(taken, extents[d]);
    step.dims[d].placed = !rings.count(d) ? step.dims[d].cell : freshName(taken, std::string("placed") + char('X' + d));
  }
  for (TimeStep::Field &field : step.fields) {
    field.now = freshName(taken, field.in + "_now");
    field.result = freshName(taken, field.out + "_value");
  }
}

/// Reads of other arrays that every step repeats are done once for a cell.
void Recognizer::holdReads(Stmt &body) {
  std::map<const Expr *, ExprRef> held;
  for (const Access &access : model->accesses()) {
    bool always = llvm::any_of(body.body, [&](const StmtRef &s) {
      return s.get() == access.stmt && (s->kind == StmtKind::Decl || s->kind == StmtKind::Expr);
    });
    if (!always || !access.read || access.write || access.space != Space::Global || fieldRead(access.array) || !access.members().empty() ||
        access.subscripts.size() != 1 || !model->stable(access.subscripts[0]) || step.held.size() == 4)
      continue;
    const Type &type = access.node->type;
    bool plain = (type.cls == Type::Class::Int || type.isFloat()) && model->param(access.array);
    for (const std::string &atom : access.subscripts[0].atoms())
      plain &= isParameter(*model, atom) || llvm::any_of(layout.dims, [&](const GridLayout::Dimension &d) { return d.index() == Poly::atom(atom); });
    // ?: and && may leave it out.
    walk(access.stmt->expr, [&](const ExprRef &e) {
      bool chooses = e->kind == ExprKind::Cond || (e->kind == ExprKind::Binary && (e->text == "&&" || e->text == "||"));
      for (size_t i = 1; chooses && i < e->args.size(); ++i)
        walk(e->args[i], [&](const ExprRef &inner) { plain &= inner != access.node; });
    });
    if (!plain)
      continue;
    ExprRef value = elementExpr(*model, access, access.subscripts[0]);
    std::string text = str(atCells(value, step, true));
    auto known = llvm::find_if(step.held, [&](const TimeStep::Held &h) { return h.value == text; });
    if (known == step.held.end())
      known = step.held.insert(known, {type.text, freshName(taken, access.array + "_held"), text});
    held[access.node.get()] = subscript(var(known->name, type), var(step.names["cell"], Type::makeInt()), type);
  }
  replaceNodes(body, held);
}

llvm::Error Recognizer::writeBody() {
  std::map<const Expr *, ExprRef> replaced;
  for (const Access &access : model->accesses()) {
    if (const TimeStep::Field *field = access.write ? fieldWritten(access.array) : nullptr; field && access.space == Space::Global) {
      replaced[access.node.get()] = var(field->result, access.node->type);
      continue;
    }
    auto it = places.find(&access);
    if (it == places.end())
      continue;
    ExprRef element = var(fieldRead(access.array)->now, access.root->type);
    for (size_t d = step.dims.size(); d-- > 0;) {
      const CellDistance &one = it->second[d];
      ExprRef at = add(var(step.dims[d].local, Type::makeInt()), polyExpr(*model, one.distance));
      if (one.rule) // as far from the own cell as the rule says
        at = sub(add(at, atCells(one.rule->at(polyExpr(*model, one.rule->coordinate)), step, true)), var(step.dims[d].cell, Type::makeInt()));
      if (d == 2) // few planes are kept
        at = binary("%", at, var(step.names.at("slots"), Type::makeInt()));
      element = subscript(element, at, access.node->type);
    }
    replaced[access.node.get()] = element;
  }
  const Access *store = nullptr;
  bool wide = false;
  for (const Access &access : model->accesses())
    if (access.space == Space::Global && (fieldRead(access.array) || fieldWritten(access.array))) {
      if (access.write)
        store = &access;
      wide |= access.wideIndex;
      walk(access.node->args.back(), [&](const ExprRef &e) { wide |= e->type.isInt() && e->type.bytes == 4 && !e->type.isSigned && e->kind != ExprKind::Builtin; });
    }
  ExprRef index = polyExpr(*model, store->subscripts[0]);
  step.index = str(atCells(wide ? wideExpr(index) : index, step, true));
  // Guards that say which cells are computed are known to hold.
  StmtRef body = kernel->body;
  CellSets sets(*model, layout, [&](const Poly &p) { return withoutWrapping(p, {}); });
  auto storesAll = [&](const Stmt &s) { return llvm::any_of(step.fields, [&](const TimeStep::Field &f) { return isStoreTo(s, f.out, *model); }); };
  sets.dropGuards(*body, storesAll);
  if (step.dims.size() < 3) // where a thread stays with its cells
    holdReads(*body);
  replaceNodes(*body, replaced);
  rewriteExprs(*body, [&](const ExprRef &e) { return atCell(e, step, false); });
  walk(*body, [&](Stmt &s) { // int x = (unsigned)cell; says the same as int x = cell;
    if (s.kind == StmtKind::Decl && s.expr && s.expr->kind == ExprKind::Cast && s.type.isInt() && s.type.bytes == 4 && s.expr->type.isInt() &&
        s.expr->type.bytes == 4 && s.expr->args[0]->kind == ExprKind::Var)
      s.expr = s.expr->args[0];
  });
  for (const TimeStep::Field &field : step.fields) {
    bool left = false;
    walkExprs(*body, [&](const ExprRef &e) { left |= e->kind == ExprKind::Var && (e->text == field.in || e->text == field.out); });
    if (left || opaqueMentions(*body, {field.in, field.out}))
      return notApplicable("'{0}' is used in other ways than by its elements", field.in);
  }
  Kernel alone;
  alone.name = "body";
  alone.body = body;
  removeUnused(alone);
  std::string text = print(alone);
  size_t begin = text.find("{\n") + 2, end = text.rfind('}');
  step.body = text.substr(begin, end - begin);
  Kernel others;
  for (Param param : kernel->params) {
    if (fieldRead(param.name) || fieldWritten(param.name))
      continue;
    step.constants.push_back(param.name);
    if (param.type.isPointer() && !model->writesArray(param.name))
      param.type.isRestrict = param.type.pointee->isConst || param.type.isRestrict;
    others.params.push_back(param);
  }
  step.parameters = others.params.empty() ? "" : ", " + paramText(others);
  return llvm::Error::success();
}

llvm::Expected<TimeStep> Recognizer::run() {
  for (auto part : {&Recognizer::prepare, &Recognizer::findFields, &Recognizer::findDistances, &Recognizer::requireNoOverlap})
    if (llvm::Error e = (this->*part)())
      return std::move(e);
  name();
  for (auto part : {&Recognizer::findCells, &Recognizer::writeBody})
    if (llvm::Error e = (this->*part)())
      return std::move(e);
  for (unsigned axis = 0; axis < 3; ++axis) {
    bool used = flat ? axis == 0 : llvm::any_of(layout.dims, [&](const GridLayout::Dimension &d) { return d.axis == axis; });
    state.require(threadsAlong(axis) + (used ? " <= 1073741824" : " == 1"), used ? "indices are ints" : "one thread a cell");
  }
  step.conditions = state.rewrite.conditions;
  return std::move(step);
}

llvm::Expected<TimeStep> optiml::recognizeTimeStep(const KernelState &state) { return Recognizer(state).run(); }

std::vector<TimeTile> optiml::timeTiles(const TimeStep &step) {
  const size_t dims = step.dims.size();
  unsigned bytes = 0;
  for (const TimeStep::Field &field : step.fields)
    bytes += field.bytes;
  std::vector<TimeTile> candidates;
  if (dims == 1)
    candidates = {{8, {256, 1}, 4}, {32, {256, 1}, 4}, {16, {128, 1}, 4}, {4, {256, 1}, 4}};
  else if (dims == 2)
    candidates = {{4, {64, 8}, 8}, {6, {64, 8}, 8}, {2, {64, 8}, 4}, {8, {64, 8}, 8}, {4, {32, 8}, 6}, {3, {32, 16}, 4}, {2, {32, 8}, 4}};
  else
    candidates = {{2, {64, 8}, 3, 64}, {2, {64, 8}, 2, 32}, {3, {64, 8}, 2, 64}, {2, {32, 8}, 3, 32}, {2, {32, 8}, 2, 16}};
  std::vector<TimeTile> result;
  for (const TimeTile &tile : candidates) {
    unsigned extent[2] = {tile.threads[0] * (dims == 1 ? tile.cells : 1), tile.threads[1] * (dims == 1 ? 1 : tile.cells)};
    unsigned versions = dims < 3 ? 2 : unsigned(tile.steps * (step.dims[2].low + step.dims[2].high + 2));
    double share = 1;
    for (size_t d = 0; d < std::min<size_t>(2, dims); ++d)
      share *= 1 - double(tile.steps * (step.dims[d].low + step.dims[d].high)) / extent[d];
    bool some = true;
    for (size_t d = 0; d < std::min<size_t>(2, dims); ++d)
      some &= tile.steps * (step.dims[d].low + step.dims[d].high) < extent[d];
    // Cells that several blocks compute are lost: less than half of a tile is not worth it.
    if (some && share >= 0.4 && extent[0] * extent[1] * versions * bytes <= 48 * 1024)
      result.push_back(tile);
  }
  return result;
}
