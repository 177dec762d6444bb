//===- SharedTile.cpp - what a block stages of one array ------------------===//
#include "SharedTile.h"
#include "optiml/Analysis/IntegerSet.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

namespace {

/// Everything `condition` says is among the facts that addFacts gives.
bool fullyUnderstood(const KernelModel &model, const ExprRef &condition, bool taken) {
  if (condition->kind == ExprKind::Unary && condition->text == "!")
    return fullyUnderstood(model, condition->args[0], !taken);
  if (condition->kind == ExprKind::Binary && condition->text == (taken ? "&&" : "||"))
    return fullyUnderstood(model, condition->args[0], taken) && fullyUnderstood(model, condition->args[1], taken);
  std::vector<Poly> facts;
  model.addFacts(condition, taken, facts);
  if (facts.empty())
    return false;
  for (const Poly &fact : facts) {
    if (!fact.isAffine())
      return false;
    for (const std::string &atom : fact.atoms())
      if (atom[0] == '{')
        return false;
  }
  return true;
}

/// The strip's runners: thread indices and the constant loops between the strip-mined loop and the access.
llvm::Expected<std::vector<Runner>> runnersOf(const KernelModel &model, const Access &access, const Stmt *loop,
                                              const std::string &loopVar, int64_t tile) {
  std::vector<Runner> result;
  for (unsigned axis = 0; axis < 3; ++axis)
    if (model.blockExtent(axis) > 1)
      result.push_back({std::string("threadIdx.") + char('x' + axis), model.blockExtent(axis)});
  result.push_back({loopVar, tile});
  bool within = false;
  for (Stmt *s : access.path) {
    if (s == loop) {
      within = true;
      continue;
    }
    if (!within || s->kind != StmtKind::For)
      continue;
    auto inner = asCountedLoop(*s);
    auto trips = inner ? inner->tripCount() : std::nullopt;
    if (!trips || constantValue(inner->lower) != std::optional<int64_t>(0) || inner->step != 1)
      return notApplicable("an inner loop around {0} has no constant trip count from 0 (line {1})", access.array, s->line);
    result.push_back({inner->var, *trips});
  }
  return result;
}

/// Splits a linear index into dimensions: first by parametric strides, then the rest by gaps between constant strides.
/// Gives for each dimension (stride, varying part); the uniform part of the whole index is what remains.
llvm::Expected<std::vector<std::pair<Poly, Poly>>> splitIndex(const KernelModel &model, const Access &access,
                                                              const std::vector<Runner> &runners) {
  auto runs = [&](const std::string &atom) {
    return std::find_if(runners.begin(), runners.end(), [&](const Runner &r) { return r.atom == atom; });
  };
  std::map<Poly::Monomial, std::map<std::string, int64_t>> byStride; // stride monomial -> runner -> coefficient
  for (const auto &[monomial, c] : access.subscripts[0].terms) {
    Poly::Monomial stride;
    std::string runner;
    for (const std::string &atom : monomial) {
      if (runs(atom) != runners.end()) {
        if (!runner.empty())
          return notApplicable("the index of {0} multiplies two varying values (line {1})", access.array, access.stmt->line);
        runner = atom;
      } else if (model.variesAtom(atom) & (AnyThread | FromMemory)) {
        return notApplicable("the index of {0} depends on '{1}', which is no affine index (line {2})", access.array, atom,
                             access.stmt->line);
      } else {
        stride.push_back(atom);
      }
    }
    if (!runner.empty())
      byStride[stride][runner] += c;
  }
  std::vector<std::pair<Poly, Poly>> dims;
  for (auto &[monomial, coefficients] : byStride) {
    Poly factor(1);
    for (const std::string &atom : monomial)
      factor = factor * Poly::atom(atom);
    // Ascending coefficients; a gap larger than what is spanned so far starts a new dimension.
    std::vector<std::pair<int64_t, std::string>> sorted;
    for (const auto &[atom, c] : coefficients) {
      if (c < 0)
        return notApplicable("the index of {0} runs backwards (line {1})", access.array, access.stmt->line);
      sorted.emplace_back(c, atom);
    }
    std::sort(sorted.begin(), sorted.end());
    int64_t unit = sorted[0].first, span = 0;
    Poly value;
    for (size_t i = 0; i < sorted.size(); ++i) {
      auto [c, atom] = sorted[i];
      int64_t count = runs(atom)->count;
      bool divides = std::all_of(sorted.begin() + long(i), sorted.end(), [&](const auto &s) { return s.first % c == 0; });
      if (c > span + unit && span > 0 && divides) {
        dims.emplace_back(factor * Poly(unit), value);
        value = Poly();
        unit = c;
        span = 0;
      } else if (c % unit != 0) {
        return notApplicable("the index of {0} has strides that do not nest (line {1})", access.array, access.stmt->line);
      }
      value = value + Poly(c / unit) * Poly::atom(atom);
      span += c * (count - 1);
    }
    dims.emplace_back(factor * Poly(unit), value);
  }
  return dims;
}

} // namespace

llvm::Expected<Tile> optiml::planTile(const KernelModel &model, const std::string &array, const Stmt *loop,
                              const CountedLoop &counted, const std::string &stripVar, int64_t tileSize) {
  Tile tile;
  tile.array = array;
  std::vector<SetPiece> pieces;
  std::set<std::string> hidden;
  struct Shape {
    const Access *access;
    std::vector<std::pair<Poly, Poly>> dims;
    Poly uniform;
    std::vector<Runner> runners;
  };
  std::vector<Shape> shapes;
  for (const Access &access : model.accesses()) {
    if (access.array != array)
      continue;
    if (access.write)
      return notApplicable("{0} is written (line {1})", array, access.stmt->line);
    if (!insideOf(access, loop))
      continue;
    if (access.space != Space::Global || access.subscripts.size() != 1 || access.root->kind != ExprKind::Var)
      return notApplicable("{0} is not a plain global array (line {1})", array, access.stmt->line);
    if (!access.node->type.isFloat() && !access.node->type.isInt())
      return notApplicable("the elements of {0} are not numbers", array);
    if (!model.stable(access.subscripts[0]))
      return notApplicable("the index of {0} uses a variable that changes (line {1})", array, access.stmt->line);
    for (const auto &[condition, taken] : access.guards) {
      bool header = false; // loop headers come as bounds
      for (const Stmt *s : access.path)
        header |= s->kind == StmtKind::For && s->expr == condition;
      if (!header && !fullyUnderstood(model, condition, taken))
        return notApplicable("the condition around {0} is not affine (line {1})", array, access.stmt->line);
    }
    auto runners = runnersOf(model, access, loop, counted.var, tileSize);
    if (!runners)
      return runners.takeError();
    auto dims = splitIndex(model, access, *runners);
    if (!dims)
      return dims.takeError();
    Poly uniform = access.subscripts[0];
    for (const auto &[stride, value] : *dims)
      uniform = uniform - stride * value;
    shapes.push_back({&access, *dims, uniform, *runners});
    tile.element = access.node->type;
    tile.root = access.root;
    tile.wideIndex |= access.wideIndex;
  }
  if (shapes.empty())
    return notApplicable("{0} is not read in the loop", array);
  tile.element.isConst = tile.element.isVolatile = false;

  // All accesses must have the same strides; their offsets may differ by constants along each.
  const Shape &first = shapes.front();
  std::map<std::string, size_t> dimOf;
  std::vector<Poly> strides;
  for (const Shape &shape : shapes)
    for (const auto &[stride, value] : shape.dims)
      if (dimOf.emplace(stride.str(), strides.size()).second)
        strides.push_back(stride);
  if (strides.empty())
    return notApplicable("{0} is read at one place only", array);
  std::vector<std::vector<Poly>> values(shapes.size(), std::vector<Poly>(strides.size()));
  for (size_t s = 0; s < shapes.size(); ++s) {
    for (const auto &[stride, value] : shapes[s].dims)
      values[s][dimOf[stride.str()]] = value;
    Poly difference = shapes[s].uniform - first.uniform;
    // Take whole multiples of the strides out of the difference, the largest first; nothing may remain.
    for (size_t pass = 0; pass < 2; ++pass)
      for (size_t d = 0; d < strides.size(); ++d) {
        bool parametric = !strides[d].constant();
        if (parametric != (pass == 0))
          continue;
        const auto &[monomial, unit] = *strides[d].terms.begin();
        auto it = difference.terms.find(monomial);
        if (it == difference.terms.end())
          continue;
        int64_t steps = it->second / unit;
        if (!parametric && steps * unit != it->second) // a remainder goes to a smaller constant stride
          steps = it->second / unit;
        values[s][d] = values[s][d] + Poly(steps);
        difference = difference - Poly(steps) * strides[d];
      }
    if (!difference.terms.empty())
      return notApplicable("{0} is read at places whose distance is not constant (line {1})", array,
                           shapes[s].access->stmt->line);
  }
  // Bounding box.
  for (size_t d = 0; d < strides.size(); ++d) {
    TileDim dim;
    dim.stride = strides[d];
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (size_t s = 0; s < shapes.size(); ++s) {
      int64_t lo = values[s][d].constantTerm(), hi = lo;
      for (const auto &[monomial, c] : values[s][d].terms) {
        if (monomial.empty())
          continue;
        for (const Runner &r : shapes[s].runners)
          if (monomial[0] == r.atom)
            hi += c * (r.count - 1);
        dim.alongLoop |= monomial[0] == counted.var;
      }
      low = std::min(low, lo);
      high = std::max(high, hi);
    }
    dim.low = low;
    dim.extent = high - low + 1;
    tile.dims.push_back(dim);
  }
  tile.base = first.uniform.substitute(counted.var, Poly::atom(stripVar));
  for (const TileDim &dim : tile.dims) {
    tile.base = tile.base + dim.stride * Poly(dim.low);
    if (dim.alongLoop)
      tile.base = tile.base + dim.stride * Poly(0);
  }
  // The linear index counts the loop variable from the strip's start.
  Poly alongLoop;
  for (size_t d = 0; d < strides.size(); ++d)
    if (auto c = values[0][d].coefficient(counted.var))
      alongLoop = alongLoop + strides[d] * *c;
  for (size_t s = 1; s < shapes.size(); ++s) {
    Poly other;
    for (size_t d = 0; d < strides.size(); ++d)
      if (auto c = values[s][d].coefficient(counted.var))
        other = other + strides[d] * *c;
    if (!(other == alongLoop))
      return notApplicable("reads of {0} advance differently with '{1}'", array, counted.var);
  }
  tile.base = tile.base + alongLoop * Poly::atom(stripVar);

  // The elements that are really read: project guards and bounds on the local coordinates.
  std::vector<std::string> coordinates;
  std::vector<Poly> context;
  for (size_t d = 0; d < tile.dims.size(); ++d) {
    coordinates.push_back(coordinate(d));
    context.push_back(Poly::atom(coordinate(d)));
    context.push_back(Poly(tile.dims[d].extent - 1) - Poly::atom(coordinate(d)));
  }
  Poly strip = Poly::atom(stripVar), lower = model.poly(counted.lower), upper = model.poly(counted.upper);
  context.push_back(strip - lower);
  context.push_back(upper - strip - Poly(1));
  for (size_t s = 0; s < shapes.size(); ++s) {
    SetPiece piece;
    std::vector<Poly> local;
    for (size_t d = 0; d < tile.dims.size(); ++d)
      local.push_back(values[s][d] - Poly(tile.dims[d].low));
    piece.values = local;
    tile.coordinates[shapes[s].access] = local;
    tile.accesses.push_back(shapes[s].access);
    for (const Poly &fact : model.facts(*shapes[s].access))
      if (fact.isAffine()) // the loop variable is strip start + offset
        piece.facts.push_back(fact.substitute(counted.var, strip + Poly::atom(counted.var)));
    for (const Runner &r : shapes[s].runners) {
      hidden.insert(r.atom);
      piece.facts.push_back(Poly::atom(r.atom));
      piece.facts.push_back(Poly(r.count - 1) - Poly::atom(r.atom));
    }
    pieces.push_back(piece);
  }
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::string suffix(1, char('x' + axis));
    context.push_back(Poly::atom("blockIdx." + suffix));
    context.push_back(Poly::atom("gridDim." + suffix) - Poly::atom("blockIdx." + suffix) - Poly(1));
  }
  auto guard = projectSet(coordinates, {hidden.begin(), hidden.end()}, pieces, context);
  if (!guard)
    return notApplicable("the elements of {0} that a strip reads are not one convex set", array);
  tile.guard = *guard;

  // Largest stride first; parametric strides count as large. In shared memory the strip's own dimension goes outermost, so
  // that what a thread reads for one step lies together.
  std::vector<unsigned> order(tile.dims.size());
  for (unsigned i = 0; i < order.size(); ++i)
    order[i] = i;
  auto size = [&](unsigned d) { return tile.dims[d].stride.constant().value_or(INT64_MAX); };
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return size(a) > size(b); });
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return tile.dims[a].alongLoop > tile.dims[b].alongLoop; });
  tile.layout = order;
  return tile;
}
