//===- SharedTile.cpp - what a block stages of one array ------------------===//
#include "SharedTile.h"
#include "TileReads.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/IntegerSet.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

/// Orders strides by size: a product of parameters is larger than one of fewer.
static std::pair<size_t, int64_t> strideSize(const Poly &stride) {
  std::pair<size_t, int64_t> size;
  for (const auto &[monomial, c] : stride.terms)
    size = std::max(size, std::pair(monomial.size(), std::abs(c)));
  return size;
}

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

/// Joins pieces that are apart by a constant along one dimension, with what lies between: where p[i] and p[j] exist, so
/// do the elements between them, and the projection is a box instead of two.
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

static const TilePart *partOf(const Tile &tile, const Access &access) {
  std::vector<ExprRef> members = access.members();
  auto same = [](const ExprRef &a, const ExprRef &b) { return a->text == b->text; };
  for (const TilePart &part : tile.parts)
    if (std::equal(part.members.begin(), part.members.end(), members.begin(), members.end(), same))
      return &part;
  return nullptr;
}

/// How the coordinate of rule `r` of the family's reads follows from the tile's, whose values are given for each read;
/// nothing when it does not.
static std::optional<TileBoundary> boundaryOf(const ReadFamily &family, size_t r, const Tile &tile,
                                              const std::vector<std::vector<Poly>> &values) {
  TileBoundary result{family.reads.front().rules[r]};
  // Along `dim`, the coordinate is the same for all reads but for unit times the tile's.
  auto follows = [&](unsigned dim, int64_t unit) {
    std::optional<Poly> rest;
    for (size_t s = 0; s < family.reads.size(); ++s) {
      Poly own = family.reads[s].rules[r].coordinate - (unit ? Poly(unit) * values[s][dim] : Poly());
      for (const Runner &runner : family.reads[s].runners)
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
  return anyExpr(*access.stmt, [&](const ExprRef &e) {
    const Stmt *d =
        e->kind == ExprKind::Subscript && isVar(e->args[1], variable) ? model.declaration(rootName(e)) : nullptr;
    return d && !d->isShared && !d->dims.empty();
  });
}

namespace {

/// The tile of the reads of one family.
class FamilyPlanner {
public:
  FamilyPlanner(KernelState &state, const KernelModel &model, const Strip *strip, const ReadFamily &family,
                const std::vector<Poly> &allStrides)
      : state(state), model(model), strip(strip), family(family), reads(family.reads), strides(allStrides),
        values(coordinatesOf(family, strides)) {}

  llvm::Expected<Tile> plan(const std::string &array) {
    tile.array = array;
    tile.root = reads.front().access->root;
    for (const StagedRead &read : reads) {
      if (!partOf(tile, *read.access))
        tile.parts.push_back({"", read.access->members(), read.access->place->type.unqualified()});
      tile.wideIndex |= read.access->wideIndex;
    }
    tile.base = reads.front().uniform;
    for (size_t d = 0; d < strides.size(); ++d) {
      tile.dims.push_back(boxAlong(d));
      tile.base = tile.base + strides[d] * Poly(tile.dims[d].low);
    }
    if (llvm::Error e = findBoundaries())
      return std::move(e);
    if (strip)
      if (llvm::Error e = countFromStrip())
        return std::move(e);
    for (size_t r = 0; r < reads.size(); ++r)
      if (llvm::Error e = addPiece(r))
        return std::move(e);
    if (llvm::Error e = findGuards())
      return std::move(e);
    layOut();
    return std::move(tile);
  }

private:
  /// The least range that holds all values along a stride.
  TileDim boxAlong(size_t d) const {
    TileDim dim;
    dim.stride = strides[d];
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (size_t r = 0; r < reads.size(); ++r) {
      int64_t lo = values[r][d].constantTerm(), hi = lo;
      for (const auto &[monomial, c] : values[r][d].terms) {
        if (monomial.empty())
          continue;
        for (const Runner &runner : reads[r].runners)
          if (monomial[0] == runner.atom) {
            int64_t first = c * runner.low, last = c * (runner.low + runner.step * (runner.count - 1));
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
    return dim;
  }

  llvm::Error findBoundaries() {
    const StagedRead &first = reads.front();
    for (size_t r = 0; r < first.rules.size(); ++r) {
      bool twice = r && first.rules[r].signature() == first.rules[r - 1].signature();
      auto boundary = twice ? std::nullopt : boundaryOf(family, r, tile, values);
      if (!boundary)
        return notApplicable("what the index of {0} does at the edges is not understood (line {1})", tile.array,
                             first.access->stmt->line);
      tile.boundaries.push_back(*boundary);
    }
    return llvm::Error::success();
  }

  /// The linear index counts the loop variable from the strip's start.
  llvm::Error countFromStrip() {
    auto alongLoop = [&](size_t r) {
      Poly result;
      for (size_t d = 0; d < strides.size(); ++d)
        if (auto c = values[r][d].coefficient(strip->counted.var))
          result = result + strides[d] * *c;
      return result;
    };
    for (size_t r = 1; r < reads.size(); ++r)
      if (!(alongLoop(r) == alongLoop(0)))
        return notApplicable("reads of {0} advance differently with '{1}'", tile.array, strip->counted.var);
    Poly start = Poly::atom(strip->var);
    tile.base = tile.base.substitute(strip->counted.var, start) + alongLoop(0) * start;
    return llvm::Error::success();
  }

  /// The guards and bounds under which a read runs, on its local coordinates.
  llvm::Error addPiece(size_t r) {
    const StagedRead &read = reads[r];
    SetPiece piece;
    for (size_t d = 0; d < tile.dims.size(); ++d)
      piece.values.push_back(values[r][d] - Poly(tile.dims[d].low));
    tile.coordinates[read.access] = piece.values;
    tile.accesses.push_back(read.access);
    for (const Poly &fact : model.facts(*read.access))
      if (fact.isAffine()) // the loop variable is strip start + offset
        piece.facts.push_back(
            !strip ? fact
                   : fact.substitute(strip->counted.var, Poly::atom(strip->var) + Poly::atom(strip->counted.var)));
    std::vector<Poly> places = piece.values;
    places.push_back(tile.base);
    dropFactsOfReaders(state, model, places, read.runners, piece.facts);
    int64_t count = 1;
    for (const Runner &runner : read.runners) {
      hidden.insert(runner.atom);
      count *= runner.count;
      Poly number = Poly::atom(runner.atom);
      if (runner.step > 1) { // the how manieth value it is
        number = Poly::atom("#" + runner.atom);
        hidden.insert("#" + runner.atom);
        Poly value = Poly(runner.low) + Poly(runner.step) * number - Poly::atom(runner.atom);
        piece.facts.push_back(value);
        piece.facts.push_back(Poly(0) - value);
      } else {
        number = number - Poly(runner.low);
      }
      piece.facts.push_back(number);
      piece.facts.push_back(Poly(runner.count - 1) - number);
    }
    tile.reads += count;
    if (!strip) // loops that only repeat the reads
      for (const Stmt *around : read.access->path)
        if (around->kind == StmtKind::For)
          hidden.insert(around->init->text);
    // Whoever loads an element decides for whoever reads it.
    for (const Poly &fact : piece.facts)
      for (const std::string &atom : fact.atoms())
        if (!hidden.count(atom) &&
            (model.variesAtom(atom) & (AnyThread | FromMemory) || model.dependsOn(Poly::atom(atom), hidden)))
          return notApplicable(
              "which elements of {0} are read depends on '{1}', which differs between threads (line {2})", tile.array,
              atom, read.access->stmt->line);
    pieces.push_back(std::move(piece));
    return llvm::Error::success();
  }

  /// What is known of the local coordinates and the launch without looking at the reads.
  std::vector<Poly> context() const {
    std::vector<Poly> result;
    for (size_t d = 0; d < tile.dims.size(); ++d) {
      result.push_back(Poly::atom(coordinate(d)));
      result.push_back(Poly(tile.dims[d].extent - 1) - Poly::atom(coordinate(d)));
    }
    if (strip) {
      Poly start = Poly::atom(strip->var);
      result.push_back(start - model.poly(strip->counted.lower));
      result.push_back(model.poly(strip->counted.upper) - start - Poly(1));
    }
    for (unsigned axis = 0; axis < 3; ++axis) {
      Poly block = Poly::atom(axisName("blockIdx", axis));
      result.push_back(block);
      result.push_back(Poly::atom(axisName("gridDim", axis)) - block - Poly(1));
    }
    return result;
  }

  llvm::Error findGuards() {
    std::vector<std::string> coordinates;
    for (size_t d = 0; d < tile.dims.size(); ++d)
      coordinates.push_back(coordinate(d));
    if (!strip)
      pieces = joined(pieces, hidden);
    auto guards = projectSets(coordinates, {hidden.begin(), hidden.end()}, pieces, context(), strip ? 1 : largestUnion);
    if (!guards)
      return strip ? notApplicable("the elements of {0} that a strip reads are not one convex set", tile.array)
                   : notApplicable("the elements of {0} that a block reads are not a few convex sets", tile.array);
    if (guards->empty())
      return notApplicable("no element of {0} is read", tile.array);
    tile.guards = *guards;
    return llvm::Error::success();
  }

  /// Largest stride first; parametric strides count as large. In shared memory the strip's own dimension goes
  /// outermost, then those of loops within it, so that what the threads read for one step lies together, and what one
  /// of them does.
  void layOut() {
    tile.layout = bySize(strides);
    auto steps = [&](unsigned d) {
      return llvm::all_of(llvm::enumerate(reads), [&](const auto &r) {
        return llvm::none_of(values[r.index()][d].atoms(), [&](const std::string &atom) {
          return !model.loopOf(atom) || indexesRegisters(model, *r.value().access, atom);
        });
      });
    };
    auto rank = [&](unsigned d) { return tile.dims[d].alongLoop ? 0 : steps(d) ? 1 : 2; };
    llvm::stable_sort(tile.layout, [&](unsigned a, unsigned b) { return rank(a) < rank(b); });
  }

  KernelState &state;
  const KernelModel &model;
  const Strip *strip;
  const ReadFamily &family;
  const std::vector<StagedRead> &reads;
  std::vector<Poly> strides;             ///< that the family has
  std::vector<std::vector<Poly>> values; ///< of each read along each of them
  Tile tile;
  std::vector<SetPiece> pieces; ///< the elements that are really read
  std::set<std::string> hidden; ///< what tells these apart, and no tile from another
};

} // namespace

/// One for each family of reads.
static llvm::Expected<std::vector<Tile>> tilesOf(KernelState &state, const KernelModel &model, const std::string &array,
                                                 const Strip *strip, bool apart) {
  auto shapes = readsOf(model, array, strip, apart);
  if (!shapes)
    return shapes.takeError();
  std::vector<Poly> strides = stridesOf(*shapes);
  std::vector<Tile> result;
  for (const ReadFamily &family : familiesOf(std::move(*shapes), strides)) {
    if (isOnePlace(family))
      continue; // a cache does as well
    if (result.size() == mostFamilies)
      return notApplicable("{0} is read at more than {1} places whose distance is not constant (line {2})", array,
                           mostFamilies, family.reads.front().access->stmt->line);
    auto tile = FamilyPlanner(state, model, strip, family, strides).plan(array);
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

/// What a thread's copies read lies apart along a dimension that loops run along, too: they cannot read it at once.
static bool spreadsCopies(const KernelModel &model, const Tile &tile) {
  return llvm::any_of(tile.coordinates, [&](const auto &read) {
    const auto &[access, coordinates] = read;
    const Poly &inner = coordinates[tile.layout.back()];
    bool spreads = false, runs = false;
    for (const std::string &atom : inner.atoms()) {
      const bool isCopy = indexesRegisters(model, *access, atom);
      const auto factor = inner.coefficient(atom);
      spreads |= isCopy && factor && factor->constant() && std::abs(*factor->constant()) > 1;
      runs |= !isCopy && model.loopOf(atom);
    }
    return spreads && runs;
  });
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
    KernelState other = state;
    auto tiles = tilesOf(state, model, array.str(), strip, /*apart=*/false);
    // Conditions on rows and on columns are convex where these are dimensions of their own.
    if (!tiles || (!strip && llvm::any_of(*tiles, [&](const Tile &tile) { return spreadsCopies(model, tile); }))) {
      if (auto others = tilesOf(other, model, array.str(), strip, /*apart=*/true)) {
        if (!tiles)
          llvm::consumeError(tiles.takeError());
        tiles = std::move(others);
        state = std::move(other);
      } else {
        llvm::consumeError(others.takeError());
      }
    }
    if (!tiles)
      return tiles.takeError();
    if (llvm::Error e = requireUnwritten(state, model, array.str()))
      return std::move(e);
    llvm::move(*tiles, std::back_inserter(result));
  }
  return result;
}

void optiml::nameTile(Tile &tile, const std::string &suffix, std::set<std::string> &taken,
                      std::set<std::string> &names) {
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
  for (const TilePart &part : tile.parts)
    result.push_back(sharedArray(part.name, part.type, dims, 16));
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

StmtRef optiml::sharedLoop(const std::string &counter, int64_t count, const std::array<int64_t, 3> &shape,
                           StmtRef body) {
  return countedFor(counter, Type::makeInt(), linearThread(shape), intLit(count), shape[0] * shape[1] * shape[2],
                    block({std::move(body)}), NoUnroll);
}
