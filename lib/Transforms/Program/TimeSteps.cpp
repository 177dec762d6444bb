//===- TimeSteps.cpp - steps in time of a stencil -------------------------===//
//
// Legal when
//  - threads do not work together, and each writes nothing but its own cell of the fields' new buffers, which it does
//  not
//    read; all cells that are written have addresses of their own;
//  - the old buffers are read at distances that are the same for all cells (a loop may run over them), and no address
//  that
//    is read is another cell's than the one at that distance (proved, or tested by the launch's numbers);
//  - which cells are written, and which cells are read, is known exactly: by affine conditions on the indices (isl), or
//    because a cell is written whatever a condition says;
//  - everything else that is read does not overlap the fields (requireDisjoint).
// Cells that no thread writes keep what is in the buffer in question. They are loaded from both buffers.
//
//===----------------------------------------------------------------------===//
#include "TimeStepReader.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"

using namespace optiml;

llvm::Error TimeStepReader::prepare() {
  kernel = state.original->clone();
  if (threadsWorkTogether(*kernel))
    return notApplicable("its threads work together");
  if (llvm::Error e = requireConstantParameters(*kernel))
    return e;
  if (llvm::Error e = removeReturns(*kernel))
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

llvm::Error TimeStepReader::findFields() {
  std::vector<std::string> written;
  for (const Access &access : model->accesses()) {
    if (access.space != Space::Global || !access.write)
      continue;
    const Param *param = model->param(access.array);
    if (access.read)
      return notApplicable("line {0}: it reads what it writes", access.stmt->line);
    if (access.atomic || access.op != "=" || !param || !param->type.isPointer() ||
        access.array.find('.') != std::string::npos)
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
    if (!access.read || access.space != Space::Global || access.array.find('.') != std::string::npos ||
        !model->param(access.array))
      continue;
    std::vector<std::string> &list =
        access.subscripts.size() == 1 && access.subscripts[0] == store->subscripts[0] ? read : far;
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
    auto near = [&](const std::string &name) {
      return llvm::none_of(model->accesses(), [&](const Access &a) {
        return a.array == name && !(a.subscripts.size() == 1 && a.subscripts[0] == store->subscripts[0]);
      });
    };
    auto order = [&](const std::string &name) {
      return llvm::find_if(kernel->params, [&](const Param &p) { return p.name == name; });
    };
    llvm::sort(candidates, [&](const std::string &a, const std::string &b) {
      return std::pair(near(a), order(a)) < std::pair(near(b), order(b));
    });
    if (candidates.empty())
      return notApplicable("it reads no array like '{0}', which it writes", out.name);
    field.in = candidates.front();
    step.fields.push_back(std::move(field));
  }
  return llvm::Error::success();
}

/// Differences of unsigned numbers are kept as atoms, for they may wrap around. Where the facts say that one does not,
/// it is a difference of integers.
Poly TimeStepReader::withoutWrapping(Poly p, const std::vector<Poly> &facts) {
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
std::vector<Poly> TimeStepReader::factsOf(const Access &access) {
  std::vector<Poly> facts, all = model->facts(access);
  for (const auto &[condition, taken] :
       access.guards) // "not the last one" says more where it is known that none comes after that
    model->addFacts(condition, taken, all);
  for (const Poly &fact : all) {
    std::set<std::string> atoms = fact.atoms();
    bool other = llvm::any_of(atoms, [&](llvm::StringRef a) { // the launch's shape is said below
      return a.starts_with("blockIdx.") || a.starts_with("threadIdx.") ||
             (a.starts_with("globalIdx.") && llvm::none_of(layout.dims, [&](const GridLayout::Dimension &d) {
                return d.index() == Poly::atom(a.str());
              }));
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

llvm::Error TimeStepReader::requireNotNegative(const Poly &p, const std::vector<Poly> &facts, const Access &access) {
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
llvm::Error TimeStepReader::requireOwnAddresses(const Access &access, const std::vector<CellDistance> &distances,
                                                const std::vector<Poly> &facts) {
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

llvm::Error TimeStepReader::findDistances() {
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
    state.require("(" + *width + ") >= 1 && (" + *height + ") >= 1 && (" + *width + ") * (" + *height +
                      ") <= " + threadsAlong(0),
                  "every cell has a thread");
  }
  // What is known of all cells that are computed; other threads need not read.
  common = factsOf(*stores.front());
  for (const Access *store : stores)
    if (factsOf(*store) != common)
      common.clear();
  std::vector<std::optional<Poly>> cells(layout.dims.size());
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    auto least = lowerBound(*model, layout.dims[d].index(), common),
         most = upperBound(*model, layout.dims[d].index(), common);
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
      return notApplicable("line {0}: '{1}' is accessed in a way that is not understood", access.stmt->line,
                           access.array);
    std::vector<Poly> facts = factsOf(access);
    facts.insert(facts.end(), common.begin(), common.end());
    if (writes && !(access.subscripts[0] == own))
      return notApplicable("line {0}: it writes other cells than its own", access.stmt->line);
    auto distances = cellDistances(*model, layout, own, withoutWrapping(access.subscripts[0], facts), facts, cells);
    if (!distances)
      return notApplicable("line {0}: '{1}' is read {2} from the cell that is written", access.stmt->line, access.array,
                           llvm::toString(distances.takeError()));
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

llvm::Expected<TimeStep> TimeStepReader::run() {
  for (auto part : {&TimeStepReader::prepare, &TimeStepReader::findFields, &TimeStepReader::findDistances,
                    &TimeStepReader::requireNoOverlap})
    if (llvm::Error e = (this->*part)())
      return std::move(e);
  name();
  step.copies = onlyCopies();
  for (auto part : {&TimeStepReader::findCells, &TimeStepReader::writeBody})
    if (llvm::Error e = (this->*part)())
      return std::move(e);
  for (unsigned axis = 0; axis < 3; ++axis) {
    bool used =
        flat ? axis == 0 : llvm::any_of(layout.dims, [&](const GridLayout::Dimension &d) { return d.axis == axis; });
    state.require(threadsAlong(axis) + (used ? " <= 1073741824" : " == 1"),
                  used ? "indices are ints" : "one thread a cell");
  }
  // A launch that the device refuses does nothing.
  state.require("block.x * block.y * block.z >= 1 && block.x * block.y * block.z <= 1024 && block.z <= 64",
                "the blocks are launched");
  state.require("grid.x >= 1 && grid.y >= 1 && grid.z >= 1 && grid.y <= 65535 && grid.z <= 65535",
                "the grid is launched");
  step.conditions = state.rewrite.conditions;
  return std::move(step);
}

llvm::Expected<TimeStep> optiml::recognizeTimeStep(const KernelState &state) { return TimeStepReader(state).run(); }
