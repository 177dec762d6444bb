//===- SharedTile.cpp - what a block stages of one array ------------------===//
#include "SharedTile.h"
#include "TileReaders.h"
#include "optiml/Analysis/IntegerSet.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

namespace {

/// Orders strides by size: a product of parameters is larger than one of fewer.
std::pair<size_t, int64_t> strideSize(const Poly &stride) {
  std::pair<size_t, int64_t> size;
  for (const auto &[monomial, c] : stride.terms)
    size = std::max(size, std::pair(monomial.size(), std::abs(c)));
  return size;
}

/// Everything `condition`, one of those that apartFrom gives, says is among the facts that addFacts gives beside `facts`, which
/// it joins.
bool fullyUnderstood(const KernelModel &model, const ExprRef &condition, bool taken, std::vector<Poly> &facts) {
  size_t before = facts.size();
  model.addFacts(condition, taken, facts);
  if (facts.size() == before)
    return false;
  for (const Poly &fact : llvm::ArrayRef(facts).drop_front(before)) {
    if (!fact.isAffine())
      return false;
    for (const std::string &atom : fact.atoms())
      if (atom[0] == '{')
        return false;
  }
  return true;
}

/// The runners of an access: thread indices, and the loops of constant trip count between it and the strip-mined loop,
/// or all of them.
llvm::Expected<std::vector<Runner>> runnersOf(const KernelModel &model, const Access &access, const Poly &index, const Strip *strip) {
  std::vector<Runner> result;
  for (unsigned axis = 0; axis < 3; ++axis)
    if (model.blockExtent(axis) > 1)
      result.push_back({std::string("threadIdx.") + char('x' + axis), model.blockExtent(axis)});
  if (strip)
    result.push_back({strip->counted.var, strip->size});
  bool within = !strip;
  for (Stmt *s : access.path) {
    if (strip && s == strip->loop) {
      within = true;
      continue;
    }
    if (!within || s->kind == StmtKind::Block || s->kind == StmtKind::If)
      continue;
    auto inner = asCountedLoop(*s);
    if (!inner)
      return notApplicable("the loop around {0} is not counted (line {1})", access.array, s->line);
    auto trips = inner->tripCount(), lower = constantValue(inner->lower);
    if (trips && lower && (!strip || (*lower == 0 && inner->step == 1)))
      result.push_back({inner->var, *trips, *lower, inner->step});
    else if (strip || index.mentions(inner->var))
      return notApplicable("an inner loop around {0} has no constant trip count{1} (line {2})", access.array,
                           strip ? " from 0" : "", s->line);
  }
  return result;
}

/// Nothing but the conditions and the loops around the access decides whether it is made; their bounds are affine.
llvm::Error requireKnownControl(const KernelModel &model, const Access &access) {
  for (Stmt *s : access.path) {
    if (s->kind == StmtKind::Block || s->kind == StmtKind::If)
      continue;
    auto loop = asCountedLoop(*s); // any other kind was refused
    for (const ExprRef &bound : {loop->lower, loop->upper})
      if (!model.stable(bound) || !model.poly(bound).isAffine())
        return notApplicable("the bounds of the loop around {0} are not affine (line {1})", access.array, s->line);
    bool leaves = false;
    walk(*s, [&](Stmt &t) {
      leaves |= t.kind == StmtKind::Break || t.kind == StmtKind::Continue || t.kind == StmtKind::Return;
    });
    if (leaves)
      return notApplicable("the loop around {0} may be left early (line {1})", access.array, s->line);
  }
  return llvm::Error::success();
}

/// Splits a linear index into dimensions: first by parametric strides, then the rest by gaps between constant strides, or
/// (`apart`) also where one just continues the other, as rows without padding do.
/// Gives for each dimension (stride, varying part); the uniform part of the whole index is what remains.
llvm::Expected<std::vector<std::pair<Poly, Poly>>> splitIndex(const KernelModel &model, const Access &access, const Poly &index,
                                                              const std::vector<Runner> &runners, bool backwards, bool apart) {
  auto runs = [&](const std::string &atom) {
    return std::find_if(runners.begin(), runners.end(), [&](const Runner &r) { return r.atom == atom; });
  };
  std::map<Poly::Monomial, std::map<std::string, int64_t>> byStride; // stride monomial -> runner -> coefficient
  for (const auto &[monomial, c] : index.terms) {
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
      if (c < 0 && !backwards)
        return notApplicable("the index of {0} runs backwards (line {1})", access.array, access.stmt->line);
      sorted.emplace_back(std::abs(c), atom);
    }
    std::sort(sorted.begin(), sorted.end());
    int64_t unit = sorted[0].first, span = 0;
    Poly value;
    for (size_t i = 0; i < sorted.size(); ++i) {
      auto [c, atom] = sorted[i];
      auto runner = runs(atom);
      bool divides = std::all_of(sorted.begin() + long(i), sorted.end(), [&](const auto &s) { return s.first % c == 0; });
      if (c + apart > span + unit && span > 0 && divides) {
        dims.emplace_back(factor * Poly(unit), value);
        value = Poly();
        unit = c;
        span = 0;
      } else if (c % unit != 0) {
        return notApplicable("the index of {0} has strides that do not nest (line {1})", access.array, access.stmt->line);
      }
      value = value + Poly(coefficients[atom] / unit) * Poly::atom(atom);
      span += c * runner->step * (runner->count - 1);
    }
    dims.emplace_back(factor * Poly(unit), value);
  }
  return dims;
}

} // namespace

std::vector<unsigned> optiml::bySize(const std::vector<Poly> &strides) {
  std::vector<unsigned> order(strides.size());
  for (unsigned i = 0; i < order.size(); ++i)
    order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](unsigned a, unsigned b) { return strideSize(strides[a]) > strideSize(strides[b]); });
  return order;
}

/// The plane, the line and the column through a point: more conditions than that are not worth their evaluation.
constexpr unsigned largestUnion = 4;
/// Rows i and j, or the corners of a quadrilateral.
constexpr unsigned mostFamilies = 4;

/// Joins pieces that are apart by a constant along one dimension, with what lies between: where p[i] and p[j] exist, so do
/// the elements between them, and the projection is a box instead of two.
static std::vector<SetPiece> joined(std::vector<SetPiece> pieces, std::set<std::string> &hidden) {
  using Interval = std::pair<int64_t, int64_t>;
  std::vector<std::vector<Interval>> offsets; // to be added to what varies
  for (SetPiece &piece : pieces) {
    offsets.emplace_back();
    for (Poly &value : piece.values) {
      offsets.back().emplace_back(value.constantTerm(), value.constantTerm());
      value = value - Poly(value.constantTerm());
    }
  }
  auto join = [&](size_t a, size_t b) {
    if (pieces[a].values != pieces[b].values || pieces[a].facts != pieces[b].facts)
      return false;
    size_t along = 0, different = 0;
    for (size_t d = 0; d < offsets[a].size(); ++d)
      if (offsets[a][d] != offsets[b][d]) {
        along = d;
        ++different;
      }
    if (different > 1)
      return false;
    Interval &into = offsets[a][along];
    into = {std::min(into.first, offsets[b][along].first), std::max(into.second, offsets[b][along].second)};
    pieces.erase(pieces.begin() + long(b));
    offsets.erase(offsets.begin() + long(b));
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t a = 0; a < pieces.size() && !changed; ++a)
      for (size_t b = a + 1; b < pieces.size() && !changed; ++b)
        changed = join(a, b);
  }
  for (size_t i = 0; i < pieces.size(); ++i)
    for (size_t d = 0; d < offsets[i].size(); ++d) {
      auto [low, high] = offsets[i][d];
      if (low == high) {
        pieces[i].values[d] = pieces[i].values[d] + Poly(low);
        continue;
      }
      std::string name = "+" + std::to_string(d);
      hidden.insert(name);
      Poly offset = Poly::atom(name);
      pieces[i].values[d] = pieces[i].values[d] + offset;
      pieces[i].facts.push_back(offset - Poly(low));
      pieces[i].facts.push_back(Poly(high) - offset);
    }
  return pieces;
}

namespace {

/// A read of the array, its index split into dimensions.
struct Shape {
  const Access *access;
  std::vector<std::pair<Poly, Poly>> dims; ///< stride, what varies along it
  Poly uniform;                            ///< the rest of the index
  std::vector<Runner> runners;
  std::vector<BoundaryRule> rules;
};

/// Reads whose distances are constant along the strides.
struct Family {
  std::vector<Shape> shapes;
  std::vector<std::vector<int64_t>> steps; ///< of each shape along each stride, from the first one
};

} // namespace

using Guard = std::pair<ExprRef, bool>;

/// Conditions with what they are made of apart: a && b holds where a and b do.
static std::vector<Guard> apartFrom(const std::vector<Guard> &guards) {
  std::vector<Guard> result;
  for (const auto &[condition, taken] : guards) {
    std::vector<Guard> inner;
    if (condition->kind == ExprKind::Binary && condition->text == (taken ? "&&" : "||"))
      inner = apartFrom({{condition->args[0], taken}, {condition->args[1], taken}});
    else if (condition->kind == ExprKind::Unary && condition->text == "!")
      inner = apartFrom({{condition->args[0], !taken}});
    else
      inner = {{condition, taken}};
    result.insert(result.end(), inner.begin(), inner.end());
  }
  return result;
}

/// "j != i" around a read of p[j] whose thread reads p[i] anyway, or a member of it: no element is left out.
static bool readsWhatIsLeftOut(const KernelModel &model, const Access &access, const Guard &guard) {
  const auto &[condition, taken] = guard;
  if (condition->kind != ExprKind::Binary || condition->text != (taken ? "!=" : "==") || !condition->args[0]->type.isInt() ||
      !condition->args[1]->type.isInt())
    return false;
  Poly between = model.poly(condition->args[0]) - model.poly(condition->args[1]);
  if (!model.stable(between) || between.terms.empty())
    return false;
  std::vector<Guard> around = apartFrom(access.guards);
  auto alsoAround = [&](const Guard &other) {
    return llvm::any_of(around, [&](const Guard &own) { return own != guard && own.second == other.second && equal(own.first, other.first); });
  };
  return llvm::any_of(model.accesses(), [&](const Access &other) {
    if (other.array != access.array || !other.read || other.bytes != access.bytes || other.subscripts.size() != 1 || !model.stable(other.subscripts[0]) || !llvm::all_of(apartFrom(other.guards), alsoAround))
      return false;
    Poly distance = access.subscripts[0] - other.subscripts[0];
    int64_t times = distance.terms.empty() ? 0 : distance.terms.begin()->second / between.terms.begin()->second;
    return times != 0 && distance == Poly(times) * between;
  });
}

/// The shapes of all reads of the array (in the strip's loop); they can be told one by one what they read.
static llvm::Expected<std::vector<Shape>> readsOf(const KernelModel &model, const std::string &array, const Strip *strip, bool apart) {
  std::vector<Shape> shapes;
  auto staged = [&](const Access &access) { return access.read && !access.write && (!strip || insideOf(access, strip->loop)); };
  for (const Access &access : model.accesses()) {
    if (access.array != array)
      continue;
    if (access.write && llvm::any_of(model.accesses(), [&](const Access &other) {
          return other.array == array && staged(other) && sameMember(access, other);
        }))
      return notApplicable("{0} is written (line {1})", array, access.stmt->line);
    if (!staged(access))
      continue;
    if (access.space != Space::Global || access.subscripts.size() != 1 || access.root->kind != ExprKind::Var)
      return notApplicable("{0} is not a plain global array (line {1})", array, access.stmt->line);
    const Type &type = access.place->type;
    if (!type.isFloat() && !type.isInt() && !type.isHalf)
      return notApplicable("the elements of {0} are not numbers", array);
    if (!model.stable(access.root))
      return notApplicable("'{0}' is moved by the kernel (line {1})", array, access.stmt->line);
    if (!model.stable(access.subscripts[0]))
      return notApplicable("the index of {0} uses a variable that changes (line {1})", array, access.stmt->line);
    std::vector<Poly> facts;
    for (const auto &[condition, taken] : apartFrom(access.guards)) {
      bool header = false; // loop headers come as bounds
      for (const Stmt *s : access.path)
        header |= s->kind == StmtKind::For && s->expr == condition;
      if (!header && !readsWhatIsLeftOut(model, access, {condition, taken}) && !fullyUnderstood(model, condition, taken, facts))
        return notApplicable("the condition around {0} is not affine (line {1})", array, access.stmt->line);
    }
    Poly index = access.subscripts[0];
    std::vector<BoundaryRule> rules;
    if (!strip)
      rules = takeBoundaryRules(model, index);
    auto runners = runnersOf(model, access, index, strip);
    if (!runners)
      return runners.takeError();
    if (!strip)
      if (llvm::Error e = requireKnownControl(model, access))
        return e;
    // Differences of unsigned indices come out right only where all of them have the same width.
    bool backwards = !strip && llvm::none_of(*runners, [&](const Runner &r) {
      auto around = model.loopOf(r.atom);
      return around && around->type.bytes > 4;
    });
    auto dims = splitIndex(model, access, index, *runners, backwards, apart);
    if (!dims)
      return dims.takeError();
    Poly uniform = index;
    for (const auto &[stride, value] : *dims)
      uniform = uniform - stride * value;
    shapes.push_back({&access, *dims, uniform, *runners, std::move(rules)});
  }
  if (shapes.empty())
    return strip ? notApplicable("{0} is not read in the loop", array) : notApplicable("{0} is not read", array);
  return shapes;
}

static std::vector<Poly> stridesOf(const std::vector<Shape> &shapes) {
  std::vector<Poly> strides;
  std::set<std::string> seen;
  for (const Shape &shape : shapes)
    for (const auto &[stride, value] : shape.dims)
      if (seen.insert(stride.str()).second)
        strides.push_back(stride);
  return strides;
}

/// `distance` in whole multiples of the strides, the largest first; nothing when something remains.
static std::optional<std::vector<int64_t>> stepsAlong(const std::vector<Poly> &strides, Poly distance) {
  std::vector<int64_t> result(strides.size());
  for (unsigned d : bySize(strides)) {
    const auto &[monomial, unit] = *strides[d].terms.begin();
    auto it = distance.terms.find(monomial);
    if (it == distance.terms.end())
      continue;
    // A remainder goes to a smaller stride: one row up and one column right is -n + 1.
    int64_t half = it->second < 0 ? -(unit / 2) : unit / 2;
    result[d] = (it->second + half) / unit;
    distance = distance - Poly(result[d]) * strides[d];
  }
  if (!distance.terms.empty())
    return std::nullopt;
  return result;
}

static bool sameRules(const Shape &a, const Shape &b) {
  auto same = [](const BoundaryRule &x, const BoundaryRule &y) { return x.signature() == y.signature(); };
  return std::equal(a.rules.begin(), a.rules.end(), b.rules.begin(), b.rules.end(), same);
}

/// Reads at places whose distance is not constant (rows i and j of one matrix) are families of their own.
static std::vector<Family> familiesOf(std::vector<Shape> shapes, const std::vector<Poly> &strides) {
  std::vector<Family> result;
  for (Shape &shape : shapes) {
    bool joined = false;
    for (Family &family : result) {
      const Shape &first = family.shapes.front();
      if (auto steps = sameRules(shape, first) ? stepsAlong(strides, shape.uniform - first.uniform) : std::nullopt) {
        family.steps.push_back(*steps);
        family.shapes.push_back(std::move(shape));
        joined = true;
        break;
      }
    }
    if (!joined) {
      result.emplace_back();
      result.back().steps.push_back(std::vector<int64_t>(strides.size()));
      result.back().shapes.push_back(std::move(shape));
    }
  }
  return result;
}

static bool isOnePlace(const Family &family) {
  return llvm::all_of(family.shapes, [](const Shape &s) { return s.dims.empty(); }) &&
         llvm::all_of(family.steps, [&](const std::vector<int64_t> &s) { return s == family.steps.front(); });
}

/// What varies of each read of a family along the strides that the family has, which `strides` shrinks to.
static std::vector<std::vector<Poly>> coordinatesOf(const Family &family, std::vector<Poly> &strides) {
  std::vector<std::vector<Poly>> values(family.shapes.size());
  std::vector<Poly> own;
  for (size_t d = 0; d < strides.size(); ++d) {
    std::vector<Poly> along;
    bool has = false;
    for (size_t s = 0; s < family.shapes.size(); ++s) {
      along.push_back(Poly(family.steps[s][d]));
      has |= family.steps[s][d] != 0;
      for (const auto &[stride, value] : family.shapes[s].dims)
        if (stride == strides[d]) {
          along.back() = value + along.back();
          has = true;
        }
    }
    if (!has)
      continue;
    own.push_back(strides[d]);
    for (size_t s = 0; s < values.size(); ++s)
      values[s].push_back(along[s]);
  }
  strides = std::move(own);
  return values;
}

static const TilePart *partOf(const Tile &tile, const Access &access) {
  std::vector<ExprRef> members = access.members();
  auto same = [](const ExprRef &a, const ExprRef &b) { return a->text == b->text; };
  for (const TilePart &part : tile.parts)
    if (std::equal(part.members.begin(), part.members.end(), members.begin(), members.end(), same))
      return &part;
  return nullptr;
}

/// How the coordinate of rule `r` of the family's reads follows from the tile's, whose values are given for each read; nothing
/// when it does not.
static std::optional<TileBoundary> boundaryOf(const Family &family, size_t r, const Tile &tile, const std::vector<std::vector<Poly>> &values) {
  TileBoundary result{family.shapes.front().rules[r]};
  // Along `dim`, the coordinate is the same for all reads but for unit times the tile's.
  auto follows = [&](unsigned dim, int64_t unit) {
    std::optional<Poly> rest;
    for (size_t s = 0; s < family.shapes.size(); ++s) {
      Poly own = family.shapes[s].rules[r].coordinate - (unit ? Poly(unit) * values[s][dim] : Poly());
      for (const Runner &runner : family.shapes[s].runners)
        if (own.mentions(runner.atom))
          return false;
      if (rest && !(own == *rest))
        return false;
      rest = own;
    }
    result.rule.coordinate = unit ? *rest + Poly(unit * tile.dims[dim].low) : *rest;
    result.dim = dim;
    result.unit = unit;
    return true;
  };
  if (follows(0, 0))
    return result;
  const auto &[monomial, c] = *result.rule.stride.terms.begin();
  for (unsigned d = 0; d < tile.dims.size(); ++d) {
    auto it = tile.dims[d].stride.terms.find(monomial);
    int64_t unit = it == tile.dims[d].stride.terms.end() ? 0 : it->second / c;
    if (unit && tile.dims[d].stride == Poly(unit) * result.rule.stride && follows(d, unit))
      return result;
  }
  return std::nullopt;
}

/// The statement of the access has a private array with the loop's variable as an index: one for each copy of a thread.
static bool indexesRegisters(const KernelModel &model, const Access &access, const std::string &variable) {
  bool found = false;
  walkExprs(*access.stmt, [&](const ExprRef &e) {
    if (e->kind != ExprKind::Subscript || e->args[1]->kind != ExprKind::Var || e->args[1]->text != variable)
      return;
    ExprRef root = e;
    while (root->kind == ExprKind::Subscript)
      root = root->args[0];
    const Stmt *d = root->kind == ExprKind::Var ? model.declaration(root->text) : nullptr;
    found |= d && !d->isShared && !d->dims.empty();
  });
  return found;
}

static llvm::Expected<Tile> planFamily(KernelState &state, const KernelModel &model, const std::string &array, const Strip *strip,
                                       const Family &family, std::vector<Poly> strides) {
  const std::vector<Shape> &shapes = family.shapes;
  const Shape &first = shapes.front();
  Tile tile;
  tile.array = array;
  for (const Shape &shape : shapes)
    if (!partOf(tile, *shape.access)) {
      Type type = shape.access->place->type;
      type.isConst = type.isVolatile = false;
      tile.parts.push_back({"", shape.access->members(), type});
    }
  tile.root = first.access->root;
  for (const Shape &shape : shapes)
    tile.wideIndex |= shape.access->wideIndex;
  std::vector<SetPiece> pieces;
  std::set<std::string> hidden;
  std::vector<std::vector<Poly>> values = coordinatesOf(family, strides);
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
          if (monomial[0] == r.atom) {
            int64_t first = c * r.low, last = c * (r.low + r.step * (r.count - 1));
            lo += std::min(first, last);
            hi += std::max(first, last);
          }
        dim.alongLoop |= strip && monomial[0] == strip->counted.var;
      }
      low = std::min(low, lo);
      high = std::max(high, hi);
    }
    dim.low = low;
    dim.extent = high - low + 1;
    tile.dims.push_back(dim);
  }
  tile.base = first.uniform;
  for (const TileDim &dim : tile.dims)
    tile.base = tile.base + dim.stride * Poly(dim.low);
  for (size_t r = 0; r < first.rules.size(); ++r) {
    bool twice = r && first.rules[r].signature() == first.rules[r - 1].signature();
    auto boundary = twice ? std::nullopt : boundaryOf(family, r, tile, values);
    if (!boundary)
      return notApplicable("what the index of {0} does at the edges is not understood (line {1})", array, first.access->stmt->line);
    tile.boundaries.push_back(*boundary);
  }
  if (strip) {
    // The linear index counts the loop variable from the strip's start.
    auto alongLoop = [&](size_t s) {
      Poly result;
      for (size_t d = 0; d < strides.size(); ++d)
        if (auto c = values[s][d].coefficient(strip->counted.var))
          result = result + strides[d] * *c;
      return result;
    };
    for (size_t s = 1; s < shapes.size(); ++s)
      if (!(alongLoop(s) == alongLoop(0)))
        return notApplicable("reads of {0} advance differently with '{1}'", array, strip->counted.var);
    tile.base = tile.base.substitute(strip->counted.var, Poly::atom(strip->var)) + alongLoop(0) * Poly::atom(strip->var);
  }

  // The elements that are really read: project guards and bounds on the local coordinates.
  std::vector<std::string> coordinates;
  std::vector<Poly> context;
  for (size_t d = 0; d < tile.dims.size(); ++d) {
    coordinates.push_back(coordinate(d));
    context.push_back(Poly::atom(coordinate(d)));
    context.push_back(Poly(tile.dims[d].extent - 1) - Poly::atom(coordinate(d)));
  }
  Poly start;
  if (strip) {
    start = Poly::atom(strip->var);
    context.push_back(start - model.poly(strip->counted.lower));
    context.push_back(model.poly(strip->counted.upper) - start - Poly(1));
  }
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
        piece.facts.push_back(!strip ? fact : fact.substitute(strip->counted.var, start + Poly::atom(strip->counted.var)));
    std::vector<Poly> places = local;
    places.push_back(tile.base);
    dropFactsOfReaders(state, model, places, shapes[s].runners, piece.facts);
    int64_t reads = 1;
    for (const Runner &r : shapes[s].runners) {
      hidden.insert(r.atom);
      reads *= r.count;
      Poly number = Poly::atom(r.atom);
      if (r.step > 1) { // the how manieth value it is
        number = Poly::atom("#" + r.atom);
        hidden.insert("#" + r.atom);
        Poly value = Poly(r.low) + Poly(r.step) * number - Poly::atom(r.atom);
        piece.facts.push_back(value);
        piece.facts.push_back(Poly(0) - value);
      } else {
        number = number - Poly(r.low);
      }
      piece.facts.push_back(number);
      piece.facts.push_back(Poly(r.count - 1) - number);
    }
    tile.reads += reads;
    if (!strip) // loops that only repeat the reads
      for (const Stmt *around : shapes[s].access->path)
        if (around->kind == StmtKind::For)
          hidden.insert(around->init->text);
    // Whoever loads an element decides for whoever reads it.
    for (const Poly &fact : piece.facts)
      for (const std::string &atom : fact.atoms())
        if (!hidden.count(atom) && model.variesAtom(atom) & (AnyThread | FromMemory))
          return notApplicable("which elements of {0} are read depends on '{1}', which differs between threads (line {2})",
                               array, atom, shapes[s].access->stmt->line);
    pieces.push_back(piece);
  }
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::string suffix(1, char('x' + axis));
    context.push_back(Poly::atom("blockIdx." + suffix));
    context.push_back(Poly::atom("gridDim." + suffix) - Poly::atom("blockIdx." + suffix) - Poly(1));
  }
  if (!strip)
    pieces = joined(pieces, hidden);
  auto guards = projectSets(coordinates, {hidden.begin(), hidden.end()}, pieces, context, strip ? 1 : largestUnion);
  if (!guards)
    return strip ? notApplicable("the elements of {0} that a strip reads are not one convex set", array)
                 : notApplicable("the elements of {0} that a block reads are not a few convex sets", array);
  if (guards->empty())
    return notApplicable("no element of {0} is read", array);
  tile.guards = *guards;

  // Largest stride first; parametric strides count as large. In shared memory the strip's own dimension goes outermost, then
  // those of loops within it, so that what the threads read for one step lies together, and what one of them does.
  std::vector<unsigned> order = bySize(strides);
  auto steps = [&](unsigned d) {
    return llvm::all_of(llvm::enumerate(shapes), [&](const auto &s) {
      return llvm::none_of(values[s.index()][d].atoms(), [&](const std::string &atom) {
        return !model.loopOf(atom) || indexesRegisters(model, *s.value().access, atom);
      });
    });
  };
  auto rank = [&](unsigned d) { return tile.dims[d].alongLoop ? 0 : steps(d) ? 1 : 2; };
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return rank(a) < rank(b); });
  tile.layout = order;
  return tile;
}

/// One for each family of reads.
static llvm::Expected<std::vector<Tile>> tilesOf(KernelState &state, const KernelModel &model, const std::string &array, const Strip *strip, bool apart) {
  auto shapes = readsOf(model, array, strip, apart);
  if (!shapes)
    return shapes.takeError();
  std::vector<Poly> strides = stridesOf(*shapes);
  std::vector<Tile> result;
  for (const Family &family : familiesOf(std::move(*shapes), strides)) {
    if (isOnePlace(family))
      continue; // a cache does as well
    if (result.size() == mostFamilies)
      return notApplicable("{0} is read at more than {1} places whose distance is not constant (line {2})", array,
                           mostFamilies, family.shapes.front().access->stmt->line);
    auto tile = planFamily(state, model, array, strip, family, strides);
    if (!tile)
      return tile.takeError();
    result.push_back(std::move(*tile));
  }
  // What each thread reads for itself all the time needs no tile beside what they share.
  auto shared = [&](const Tile &tile) {
    bool alongLoop = llvm::any_of(tile.dims, [](const TileDim &d) { return d.alongLoop; });
    return alongLoop || tile.reads > tile.elements() * int64_t(tile.accesses.size()) * strip->size;
  };
  if (strip && llvm::any_of(result, shared))
    llvm::erase_if(result, [&](const Tile &tile) { return !shared(tile); });
  if (result.empty())
    return notApplicable("{0} is read at one place only", array);
  return result;
}

/// Records that the kernel writes nothing that overlaps the array.
static llvm::Error requireUnwritten(KernelState &state, const KernelModel &model, const std::string &array) {
  std::set<std::string> written;
  for (const Access &access : model.accesses())
    if (access.write && access.space == Space::Global)
      written.insert(access.array);
  written.erase(array); // in other members
  for (const std::string &other : written)
    if (llvm::Error e = requireDisjoint(state, model, array, other))
      return e;
  return llvm::Error::success();
}

llvm::Expected<std::vector<Tile>> optiml::planTiles(KernelState &state, const KernelModel &model,
                                                    llvm::ArrayRef<llvm::StringRef> arrays, const Strip *strip) {
  std::vector<Tile> result;
  for (llvm::StringRef array : arrays) {
    auto tiles = tilesOf(state, model, array.str(), strip, /*apart=*/false);
    if (!tiles) // conditions on rows and on columns are convex where these are dimensions of their own
      if (auto others = tilesOf(state, model, array.str(), strip, /*apart=*/true)) {
        llvm::consumeError(tiles.takeError());
        tiles = std::move(others);
      } else {
        llvm::consumeError(others.takeError());
      }
    if (!tiles)
      return tiles.takeError();
    if (llvm::Error e = requireUnwritten(state, model, array.str()))
      return std::move(e);
    llvm::move(*tiles, std::back_inserter(result));
  }
  return result;
}

void optiml::nameTile(Tile &tile, const std::string &suffix, std::set<std::string> &taken, std::set<std::string> &names) {
  for (TilePart &part : tile.parts) {
    std::string wish = tile.array;
    for (const ExprRef &member : part.members)
      wish += "_" + member->text;
    part.name = freshName(taken, wish + suffix);
    names.insert(part.name);
  }
}

std::vector<StmtRef> optiml::tileDeclarations(const Tile &tile) {
  std::vector<ExprRef> dims;
  if (tile.copy)
    dims.push_back(intLit(tile.copies));
  for (unsigned d : tile.layout)
    dims.push_back(intLit(tile.dims[d].extent + (d == tile.layout.back() ? tile.pad : 0)));
  std::vector<StmtRef> result;
  for (const TilePart &part : tile.parts) {
    StmtRef decl = declStmt(part.name, part.type, nullptr, dims);
    decl->isShared = true;
    decl->align = 16;
    result.push_back(decl);
  }
  return result;
}

ExprRef optiml::tileElement(const KernelModel &model, const Tile &tile, const Access &access) {
  const TilePart &part = *partOf(tile, access);
  ExprRef element = var(part.name, part.type);
  if (tile.copy)
    element = subscript(element, tile.copy, part.type);
  for (unsigned d : tile.layout)
    element = subscript(element, polyExpr(model, tile.coordinates.at(&access)[d]), part.type);
  return element;
}

ExprRef optiml::linearThread(const std::array<int64_t, 3> &shape) {
  ExprRef linear = axisBuiltin("threadIdx", 0);
  if (shape[1] > 1)
    linear = add(linear, mul(axisBuiltin("threadIdx", 1), intLit(shape[0])));
  if (shape[2] > 1)
    linear = add(linear, mul(axisBuiltin("threadIdx", 2), intLit(shape[0] * shape[1])));
  return linear;
}
