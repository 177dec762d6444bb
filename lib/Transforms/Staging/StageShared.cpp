//===- StageShared.cpp - the operands of a loop in shared memory ----------===//
//
// stage-shared[kernel/loop:A+B]{tile=32,zeros=1}: strip-mines the loop. Before each strip the block's threads together
// copy what it reads of A and B into shared memory, and the strip reads it there.
//
// `zeros=1`: outside of the array a tile holds zeros, which are added in place of a test whether to add. Where the
// other factor is staged, too, and some element of its strip is not finite, a block tests as before.
//
// Example:
//   for (int k = 0; k < m; ++k)             for (int k0 = 0; k0 < m; k0 += 32) {
//     s += a[r * m + k] * x[k];               if (tid < 32) {
//                                               const int c = tid;
//                                               x_tile[c] = k0 + c < m ? x[k0 + c] : 0.0f;
//                                             }
//                                             __syncthreads();
//                                             #pragma unroll
//                                             for (int k = 0; k < 32; ++k) {
//                                               if (k0 + k < m) {
//                                                 if (r < n) {
//                                                   s += a[r * m + (k0 + k)] * x_tile[k];
//                                                 }
//                                               }
//                                             }
//                                             __syncthreads();
//                                           }
//
// Legal: the block shape is fixed. The loop has step 1 and runs the same for all threads of a block, so that its
// barriers are uniform; guards around it move inwards, onto what they guard. The kernel only reads the arrays, and they
// do not overlap what it writes (proved, or a condition).
//
// What a block reads of an array in a strip is a box: indices are affine in thread indices, in the loop, and in inner
// loops of constant trip count. The elements that the original really reads are one convex set, which isl finds by
// projecting guards and bounds. Only these are loaded, so nothing is read that the original would not read. The rest of
// the tile is zero.
//
// Refuses: a block shape that is not fixed; a loop that synchronizes, has impure calls or atomics, or differs between
// threads (`k < r`). It refuses an array that is written, or read at one place only; indices that depend on data, run
// backwards, or advance differently; guards that are not affine (`if (use[k])`); and a set that is not convex. With
// what the kernel has already, shared memory is limited to 48 KiB.
//
//===----------------------------------------------------------------------===//
#include "Distribute.h"
#include "ThreadMapping.h"
#include "TileCopy.h"
#include "TileGuards.h"
#include "Transforms.h"
#include "ZeroPadding.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/LoopBounds.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <algorithm>
#include <numeric>

using namespace optiml;

/// NotApplicable unless asynchronous copies can bring the tile: they move bytes, 4, 8 or 16 at a time, and change
/// nothing.
static llvm::Error requireBackground(const KernelModel &model, const Tile &tile) {
  if (tile.root->kind != ExprKind::Var || !model.param(tile.root->text))
    return notApplicable("{0} is no parameter, so it may not be in global memory, from which asynchronous copies come",
                         tile.array);
  for (const TilePart &part : tile.parts)
    if (tile.copiesRecords() || (part.type.bytes != 4 && part.type.bytes != 8))
      return notApplicable("the elements of {0} are not of 4 or 8 bytes, as asynchronous copies want them", tile.array);
  return llvm::Error::success();
}

/// Keeps the array's own order, so that 16 bytes go through as they are. Of the threads that multiply together, four
/// read neighbours along the loop and eight across it: gives the padding with which all 32 elements are in banks of
/// their own.
static int64_t layOutForFragments(Tile &tile) {
  std::vector<Poly> strides;
  for (const TileDim &d : tile.dims)
    strides.push_back(d.stride);
  tile.layout = bySize(strides);
  const TileDim &innermost = tile.dims[tile.layout.back()];
  int64_t period = innermost.alongLoop ? 8 : 16, pad = 0;
  while ((innermost.extent + pad) % period != period / 2)
    ++pad;
  return pad;
}

namespace {

/// Stages what a loop reads, strip by strip.
class TileStager {
public:
  TileStager(KernelState &state, Kernel &kernel, Stmt &loop, const std::array<int64_t, 3> &shape, int64_t tileSize,
             const Params &params)
      : state(state), kernel(kernel), loop(loop), counted(*asCountedLoop(loop)), model(kernel, shape), shape(shape),
        tileSize(tileSize), params(params), integer(counted.type.withConst(false)), taken(allNames(kernel)),
        strip(freshName(taken, counted.var + "0")) {}

  /// The strip: load, barrier, compute, barrier.
  llvm::Error run(llvm::ArrayRef<llvm::StringRef> arrays) {
    if (llvm::Error e = requireUniform())
      return e;
    if (llvm::Error e = readParameters())
      return e;
    if (llvm::Error e = planAll(arrays))
      return e;
    const ZeroPadding padding = zeros ? ZeroPadding::find(model, tiles, &loop) : ZeroPadding();
    if (zeros && padding.isEmpty())
      return notApplicable("no test could go in favour of zeros in a tile");
    tid = freshName(taken, "tid");
    for (const Tile &tile : tiles)
      copies.emplace_back(taken, model, tile, var(tid, Type::makeInt()), shape[0] * shape[1] * shape[2]);
    if (stages > 1) {
      loadInBackground();
    } else if (prefetch) {
      loadThroughRegisters();
    } else {
      for (TileCopy &copy : copies)
        llvm::append_range(outer, copy.direct());
      outer.push_back(barrierStmt());
    }
    if (llvm::Error e = useTiles(loop.body[0]))
      return e;
    if (zeros) {
      loadAlways(kernel, loop, tileNames);
      auto tests = padding.drop(kernel, tiles, var(tid, Type::makeInt()), shape[0] * shape[1] * shape[2], taken);
      if (!tests)
        return tests.takeError();
      llvm::append_range(outer, *tests);
    }
    // Private accumulators of guarded sums need no guard any more: the tiles hold zeros where nothing may be read.
    dropGuards(kernel, loop, tileNames);
    hoistInvariantLoads(kernel, loop, tileNames);
    putTogether(loop.body[0]);
    if (zeros)
      removeUnused(kernel); // what only tests used
    return llvm::Error::success();
  }

private:
  llvm::Error requireUniform() const {
    if ((model.varies(counted.lower) | model.varies(counted.upper)) & (AnyThread | FromMemory))
      return notApplicable("the loop does not run the same for all threads of a block");
    if (!model.stable(counted.lower) || !model.stable(counted.upper))
      return notApplicable("the loop's bounds use a variable that changes");
    return llvm::Error::success();
  }

  llvm::Error readParameters() {
    stages = paramInt(params, "stages", 1);
    if (stages < 1 || stages > 4)
      return notApplicable("there may be 1 to 4 stages");
    if (stages > 1)
      if (llvm::Error e = AsyncCopy::requireSupport(state))
        return e;
    auto layout = params.find("layout");
    fragments = layout != params.end() && layout->second == "fragments";
    if (layout != params.end() && !fragments)
      return notApplicable("the layout may be 'fragments', or the usual one");
    stage = stages > 1 ? freshName(taken, "stage") : "";
    wide = paramInt(params, "wide", 0);
    zeros = paramInt(params, "zeros", 0) != 0;
    if (zeros && state.hints.strictFloat)
      return notApplicable("zeros may change the sign of a zero (--optiml-fp=strict)");
    prefetch = paramInt(params, "prefetch", 0);
    return llvm::Error::success();
  }

  llvm::Error planTile(Tile &tile, std::string &whyNarrow) {
    nameTile(tile, "_tile", taken, tileNames);
    int64_t usualPad = fragments ? layOutForFragments(tile) : 0;
    unsigned innermost = tile.layout.back();
    bool transposed = false; // the array's own fastest dimension is not innermost in shared memory
    for (const TileDim &d : tile.dims)
      transposed |= d.stride.constant() == 1 && &d != &tile.dims[innermost];
    tile.pad = paramInt(params, "pad", fragments ? usualPad : transposed ? tile.unit() : 0);
    if (tile.pad < 0 || tile.pad > 64)
      return notApplicable("the padding must be 0 to 64");
    if (wide) {
      // A strip starts whole tiles after the lower bound.
      std::map<std::string, int64_t> multiples;
      if (auto lower = model.poly(counted.lower).constant())
        multiples[strip] = std::gcd(tileSize, *lower);
      if (llvm::Error narrow = requireVectors(state, model, tile, multiples))
        whyNarrow = llvm::toString(std::move(narrow));
      else
        anyWide = true;
    }
    if (stages == 1)
      return llvm::Error::success();
    if (prefetch)
      return notApplicable("strips come through registers (prefetch) or by asynchronous copies (stages)");
    tile.copies = unsigned(stages);
    tile.copy = var(stage, counted.type);
    return requireBackground(model, tile);
  }

  llvm::Error planAll(llvm::ArrayRef<llvm::StringRef> arrays) {
    const Strip strips{&loop, counted, strip, tileSize};
    std::string whyNarrow;
    int64_t bytes = sharedBytes(kernel);
    auto planned = planTiles(state, model, arrays, &strips);
    if (!planned)
      return planned.takeError();
    tiles = std::move(*planned);
    for (Tile &tile : tiles) {
      if (llvm::Error e = planTile(tile, whyNarrow))
        return e;
      bytes += tile.bytes();
    }
    if (tiles.empty())
      return notApplicable("no array is named");
    if (wide && !anyWide)
      return notApplicable("{0}", whyNarrow);
    if (bytes > int64_t(state.hints.maxSharedBytes))
      return notApplicable("{0} bytes of shared memory are too many", bytes);
    return llvm::Error::success();
  }

  /// What is read is known for strips within the loop only, so nothing is fetched beyond it.
  void loadInBackground() {
    const Type constStrip = integer.withConst(true);
    AsyncCopy async(state);
    auto fetch = [&](const ExprRef &first, const Poly &start, const ExprRef &into) {
      StmtRef statements = block();
      for (TileCopy &copy : copies)
        llvm::append_range(statements->body, copy.background(async, strip, start, into));
      return ifStmt(lessThan(first, counted.upper), statements);
    };
    for (int64_t s = 0; s + 1 < stages; ++s) {
      StmtRef first =
          fetch(add(counted.lower, intLit(s * tileSize)), model.poly(counted.lower) + Poly(s * tileSize), intLit(s));
      if (runsBeyond(s * tileSize))
        llvm::append_range(before, first->body[0]->body);
      else
        before.push_back(first);
      before.push_back(async.commit());
    }
    // This strip has arrived when all groups have but those of the strips after it, and what others copied of it behind
    // the barrier. The tiles that are filled then were read last before that barrier.
    ExprRef first = add(stripValue(), intLit((stages - 1) * tileSize)), number = sub(stripValue(), counted.lower);
    outer.push_back(declStmt(stage, constStrip, binary("%", binary("/", number, intLit(tileSize)), intLit(stages))));
    outer.push_back(async.wait(unsigned(stages - 2)));
    outer.push_back(barrierStmt());
    std::string next = freshName(taken, "next");
    StmtRef ahead = fetch(first, Poly::atom(strip) + Poly((stages - 1) * tileSize), var(next, integer));
    std::vector<StmtRef> &fetches = ahead->body[0]->body;
    fetches.insert(
        fetches.begin(),
        declStmt(next, constStrip, binary("%", add(var(stage, integer), intLit(stages - 1)), intLit(stages))));
    outer.push_back(ahead);
    outer.push_back(async.commit());
  }

  void loadThroughRegisters() {
    auto fetch = [&](const Poly &start) {
      StmtRef statements = block();
      for (TileCopy &copy : copies)
        llvm::append_range(statements->body, copy.fetch(strip, start));
      return statements;
    };
    for (TileCopy &copy : copies)
      llvm::append_range(before, copy.registers());
    StmtRef first = fetch(model.poly(counted.lower));
    if (runsBeyond(0))
      llvm::append_range(before, first->body);
    else
      before.push_back(ifStmt(lessThan(counted.lower, counted.upper), first));
    for (TileCopy &copy : copies)
      llvm::append_range(outer, copy.store());
    outer.push_back(barrierStmt());
    outer.push_back(ifStmt(lessThan(add(stripValue(), intLit(tileSize)), counted.upper),
                           fetch(Poly::atom(strip) + Poly(tileSize))));
  }

  /// Replaces the staged reads while the nodes are still those that the model has seen.
  llvm::Error useTiles(const StmtRef &body) const {
    std::map<const Expr *, ExprRef> replacement;
    for (const Tile &tile : tiles)
      for (const Access *access : tile.accesses)
        replacement[access->place.get()] = tileElement(model, tile, *access);
    // Where nothing is staged, the loop variable is the strip's start plus the offset.
    walkExprs(*body, [&](const ExprRef &e) {
      if (isVar(e, counted.var))
        replacement.emplace(e.get(), add(stripValue(), offset()));
    });
    if (opaqueMentions(*body, {counted.var}))
      return notApplicable("a construct that is kept verbatim uses '{0}'", counted.var);
    replaceNodes(*body, replacement);
    return llvm::Error::success();
  }

  /// Beyond the loop's end a tile is zero where its elements end with the loop: at one coordinate that is the loop's
  /// own.
  bool addsZerosBeyondEnd(Stmt &body) const {
    auto endsWithLoop = [&](const Tile &tile) {
      return llvm::any_of(llvm::seq<size_t>(0, tile.dims.size()), [&](size_t d) {
        const Poly &own = tile.coordinates.at(tile.accesses[0])[d];
        return own.atoms() == std::set<std::string>{counted.var} &&
               llvm::all_of(tile.accesses, [&](const Access *a) { return tile.coordinates.at(a)[d] == own; });
      });
    };
    return !state.hints.strictFloat && addsZerosWithTiles(kernel, body, tileNames, counted.var) &&
           llvm::all_of(tiles, endsWithLoop);
  }

  void putTogether(StmtRef body) {
    auto place = findPlace(*kernel.body, &loop);
    auto trips = counted.tripCount();
    bool even = trips && *trips % tileSize == 0;
    if (!even && !addsZerosBeyondEnd(*body))
      body = block({ifStmt(lessThan(add(stripValue(), offset()), counted.upper), body)});
    outer.push_back(countedFor(counted.var, Type::makeInt(), intLit(0), intLit(tileSize), 1, body, FullUnroll));
    if (stages == 1)
      outer.push_back(barrierStmt());
    std::vector<StmtRef> &list = place->block->body;
    list[place->index] = countedFor(strip, integer, counted.lower, counted.upper, tileSize, block(outer), NoUnroll);
    auto at = list.begin() + long(place->index);
    if (stages > 1 && place->block != kernel.body.get()) // the loop may run again, and fills what was read last
      at = list.insert(at + 1, barrierStmt()) - 1;
    list.insert(at, before.begin(), before.end());

    std::vector<StmtRef> head;
    for (const Tile &tile : tiles)
      llvm::append_range(head, tileDeclarations(tile));
    head.push_back(declStmt(tid, Type::makeInt().withConst(true), linearThread(shape)));
    kernel.body->body.insert(kernel.body->body.begin(), head.begin(), head.end());
  }

  /// The loop has iterations beyond so many, whatever its bounds turn out to be.
  bool runsBeyond(int64_t iterations) const { return counted.tripCount().value_or(0) > iterations; }
  ExprRef stripValue() const { return var(strip, integer); }
  ExprRef offset() const { return var(counted.var, Type::makeInt()); }

  KernelState &state;
  Kernel &kernel;
  Stmt &loop;
  const CountedLoop counted;
  const KernelModel model;
  const std::array<int64_t, 3> shape;
  const int64_t tileSize;
  const Params &params;
  const Type integer; ///< of the loop over the strips
  std::set<std::string> taken, tileNames;
  const std::string strip; ///< its variable
  long stages = 1;
  bool fragments = false, wide = false, prefetch = false, zeros = false, anyWide = false;
  std::string stage, tid;
  std::vector<Tile> tiles;
  std::vector<TileCopy> copies;
  std::vector<StmtRef> before, outer; ///< the loop over the strips, the strip's computation
};

/// The loop, once all threads of a block come to it together: guards around it go to what they guard.
llvm::Expected<Stmt *> reachTogether(Kernel &kernel, llvm::StringRef path, const std::array<int64_t, 3> &shape) {
  if (llvm::Error e = removeReturns(kernel))
    return std::move(e);
  Stmt *loop = findLoop(kernel, path);
  if (!loop)
    return notApplicable("there is no counted loop '{0}'", path);
  if (hasBarrier(*loop))
    return notApplicable("the loop already synchronizes");
  KernelModel before(kernel, shape);
  if (unsigned line = before.unknownOutsideLine())
    return notApplicable("line {0} may access memory in ways that are not understood", line);
  auto body = Distributor(kernel, before, {}, AnyThread, [&](Stmt &s) { return holdsStmt(s, loop); }).run();
  if (!body)
    return body.takeError();
  kernel.body = *body;
  loop = findLoop(kernel, path);
  if (!loop)
    return notApplicable("the loop cannot be reached by all threads of a block");
  return loop;
}

/// The first are tiles alone, which any other needs as well.
constexpr size_t plainTiles = 5;
std::vector<Params> parametersFor(const LaunchHints &hints) {
  std::vector<Params> values;
  for (const char *tile : {"8", "16", "32", "4", "2"})
    values.push_back({{"tile", tile}});
  for (const char *tile : {"16", "8", "32"})
    values.push_back({{"tile", tile}, {"wide", "1"}, {"prefetch", "1"}});
  for (const char *tile : {"16", "8"}) {
    values.push_back({{"tile", tile}, {"wide", "1"}});
    values.push_back({{"tile", tile}, {"prefetch", "1"}});
  }
  if (hints.arch < 80)
    return values;
  for (const auto &[tile, stages] : {std::pair("16", "2"), {"16", "3"}, {"8", "3"}, {"8", "4"}, {"32", "2"}})
    values.push_back({{"tile", tile}, {"wide", "1"}, {"stages", stages}});
  values.push_back({{"tile", "16"}, {"stages", "2"}});
  if (hints.tensorFloat) // reads by tensor-core meet in no bank
    for (const char *tile : {"16", "32"})
      values.push_back({{"tile", tile}, {"wide", "1"}, {"layout", "fragments"}, {"stages", "2"}});
  return values;
}

/// The same for tiles whose zeros stand for tests, the usual one first.
std::vector<Params> parametersWithZeros(const LaunchHints &hints) {
  std::vector<Params> values = {{{"tile", "4"}, {"zeros", "1"}}, {{"tile", "2"}, {"zeros", "1"}}};
  if (hints.arch >= 80)
    for (const auto &[tile, wide] : {std::pair("4", true), {"4", false}, {"2", false}}) {
      values.push_back({{"tile", tile}, {"stages", "2"}, {"zeros", "1"}});
      if (wide)
        values.back()["wide"] = "1";
    }
  return values;
}

class StageShared : public Transform {
public:
  llvm::StringRef name() const override { return "stage-shared"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    if (!state.pinnedBlock()[0])
      return result;
    const std::vector<Params> values = parametersFor(state.hints);
    KernelModel model(*state.tree, state.pinnedBlock());
    for (const auto &[path, loop] : countedLoops(*state.tree)) {
      if (loop->unroll != NoUnroll)
        continue;
      std::vector<std::string> arrays;
      for (const Access &access : model.accesses())
        if (insideOf(access, loop) && access.read && !access.write && access.space == Space::Global &&
            !model.writesWhatIsRead(access) && !llvm::is_contained(arrays, access.array))
          arrays.push_back(access.array);
      std::string joint;
      size_t before = result.size(), usable = 0;
      for (const std::string &array : arrays)
        if (offer(result, state, path + ":" + array, values, plainTiles))
          joint += (usable++ ? "+" : "") + array;
      if (usable > 1) { // all of them together first
        std::vector<Params> all = values;
        if (const std::vector<Params> withZeros = parametersWithZeros(state.hints);
            applies(state, path + ":" + joint, withZeros.front()))
          llvm::append_range(all, withZeros);
        offer(result, state, path + ":" + joint, all);
        std::rotate(result.begin() + long(before), result.end() - 1, result.end());
      }
    }
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override {
    std::array<int64_t, 3> shape = state.pinnedBlock();
    if (!shape[0] || !shape[1] || !shape[2])
      return notApplicable("{0}", shapeIsOpen);
    long tileSize = paramInt(params, "tile", 8);
    if (tileSize < 1 || tileSize > 256)
      return notApplicable("the tile must be 1 to 256");
    auto [path, arrayList] = site.rsplit(':');
    auto kernel = state.tree->clone();
    countFromZero(*kernel);
    auto loop = reachTogether(*kernel, path, shape);
    if (!loop)
      return loop.takeError();
    auto counted = asCountedLoop(**loop);
    if (counted->step != 1)
      return notApplicable("the loop's step is not 1");
    if (counted->type.bytes < 4)
      return notApplicable("the loop's counter is too narrow to count strips");
    llvm::SmallVector<llvm::StringRef, 4> arrays;
    arrayList.split(arrays, '+', -1, /*KeepEmpty=*/false);
    KernelState result = state.withTree(kernel);
    if (llvm::Error e = TileStager(result, *kernel, **loop, shape, tileSize, params).run(arrays))
      return std::move(e);
    return result;
  }
};

} // namespace

DEFINE_TRANSFORM(StageShared)
