//===- StageShared.cpp - stage operands of a loop in shared memory --------===//
//
// stage-shared[kernel/loop:A+B]{tile=K,pad=P,wide=W,prefetch=F,stages=S,layout=L}: the loop is strip-mined by K; before each
// strip the block's threads together copy the elements of A and B that the strip reads into shared memory, and the strip
// reads them there. wide=1: 16 bytes at a time, under the condition that rows are aligned. prefetch=1: the next strip's
// elements are loaded into registers before this strip is computed, and go from there to shared memory after it. stages=S:
// they go to shared memory by asynchronous copies, S-1 strips ahead, into S copies of the tiles. layout=fragments: tiles
// keep the order of the arrays, padded for what tensor-core reads.
//
// Legal when
//  - the block shape is fixed, the loop runs the same for all threads of the block (guards around it are pushed inwards),
//    so that its barriers are uniform;
//  - the arrays are only read by the kernel, and do not overlap what it writes (proved, or a recorded condition);
//  - what the block reads of each array in a strip is an affine box (or a few: rows i and j of one matrix have a tile
//    each): its extents are constants, and the elements really
//    read by the original are one convex set, found by projecting guards and loop bounds (isl). Only those are loaded, so
//    that nothing is read that the original would not read; the rest of the tile is zero.
//
//===----------------------------------------------------------------------===//
#include "Distribute.h"
#include "TileCopy.h"
#include "TileGuards.h"
#include "Transforms.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <numeric>

using namespace optiml;

/// NotApplicable unless asynchronous copies can bring the tile: they move bytes, 4, 8 or 16 at a time, and change nothing.
static llvm::Error requireBackground(const KernelModel &model, const Tile &tile) {
  if (tile.root->kind != ExprKind::Var || !model.param(tile.root->text))
    return notApplicable("{0} is no parameter, so it may not be in global memory, from which asynchronous copies come", tile.array);
  for (const TilePart &part : tile.parts)
    if (tile.copiesRecords() || (part.type.bytes != 4 && part.type.bytes != 8))
      return notApplicable("the elements of {0} are not of 4 or 8 bytes, as asynchronous copies want them", tile.array);
  return llvm::Error::success();
}

/// Keeps the array's own order, so that 16 bytes go through as they are. Of the threads that multiply together, four read
/// neighbours along the loop and eight across it: gives the padding with which all 32 elements are in banks of their own.
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

class StageShared : public Transform {
public:
  llvm::StringRef name() const override { return "stage-shared"; }
  std::vector<ActionTemplate> sites(const KernelState &state) const override;
  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site, const Params &params) const override;
};

llvm::Expected<KernelState> StageShared::apply(const KernelState &state, llvm::StringRef site, const Params &params) const {
  std::array<int64_t, 3> shape = state.pinnedBlock();
  if (!shape[0] || !shape[1] || !shape[2])
    return notApplicable("the block shape is not fixed yet (apply block-shape first)");
  int64_t threads = shape[0] * shape[1] * shape[2];
  long tileSize = paramInt(params, "tile", 8);
  if (tileSize < 1 || tileSize > 256)
    return notApplicable("the tile must be 1 to 256");
  auto [path, arrayList] = site.rsplit(':');
  auto kernel = state.tree->clone();
  if (llvm::Error e = removeReturns(*kernel->body))
    return e;
  Stmt *loop = findLoop(*kernel, path);
  if (!loop)
    return notApplicable("there is no counted loop '{0}'", path);
  if (hasBarrier(*loop))
    return notApplicable("the loop already synchronizes");
  {
    KernelModel before(*kernel, shape);
    if (unsigned line = before.unknownEffectLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    auto contains = [&](Stmt &s) {
      bool found = false;
      walk(s, [&](Stmt &t) { found |= &t == loop; });
      return found;
    };
    Distributor distributor(*kernel, before, {}, AnyThread, contains);
    auto body = distributor.run();
    if (!body)
      return body.takeError();
    kernel->body = *body;
  }
  loop = findLoop(*kernel, path);
  if (!loop)
    return notApplicable("the loop cannot be reached by all threads of a block");
  auto counted = asCountedLoop(*loop);
  if (counted->step != 1)
    return notApplicable("the loop's step is not 1");
  if (counted->type.bytes < 4)
    return notApplicable("the loop's counter is too narrow to count strips");
  KernelModel model(*kernel, shape);
  KernelState result = state;
  unsigned headerVaries = model.varies(counted->lower) | model.varies(counted->upper);
  if (headerVaries & (AnyThread | FromMemory))
    return notApplicable("the loop does not run the same for all threads of a block");
  if (!model.stable(counted->lower) || !model.stable(counted->upper))
    return notApplicable("the loop's bounds use a variable that changes");

  std::set<std::string> taken = allNames(*kernel);
  std::string strip = freshName(taken, counted->var + "0");
  const Strip strips{loop, *counted, strip, tileSize};
  llvm::SmallVector<llvm::StringRef, 4> arrays;
  arrayList.split(arrays, '+', -1, /*KeepEmpty=*/false);
  std::set<std::string> tileNames;
  long stages = paramInt(params, "stages", 1);
  if (stages < 1 || stages > 4)
    return notApplicable("there may be 1 to 4 stages");
  if (stages > 1)
    if (llvm::Error e = AsyncCopy::requireSupport(state))
      return std::move(e);
  auto layout = params.find("layout");
  bool fragments = layout != params.end() && layout->second == "fragments";
  if (layout != params.end() && !fragments)
    return notApplicable("the layout may be 'fragments', or the usual one");
  std::string stage = stages > 1 ? freshName(taken, "stage") : "";
  bool wide = paramInt(params, "wide", 0), prefetch = paramInt(params, "prefetch", 0), anyWide = false;
  std::string whyNarrow;
  int64_t bytes = sharedBytes(*kernel);
  auto planned = planTiles(result, model, arrays, &strips);
  if (!planned)
    return planned.takeError();
  std::vector<Tile> tiles = std::move(*planned);
  for (Tile &tile : tiles) {
    nameTile(tile, "_tile", taken, tileNames);
    int64_t usualPad = fragments ? layOutForFragments(tile) : 0;
    unsigned innermost = tile.layout.back();
    bool transposed = false; // the array's own fastest dimension is not innermost in shared memory
    for (const TileDim &d : tile.dims)
      transposed |= d.stride.constant() == std::optional<int64_t>(1) && &d != &tile.dims[innermost];
    tile.pad = paramInt(params, "pad", fragments ? usualPad : transposed ? tile.unit() : 0);
    if (tile.pad < 0 || tile.pad > 64)
      return notApplicable("the padding must be 0 to 64");
    if (wide) {
      // A strip starts whole tiles after the lower bound.
      std::map<std::string, int64_t> multiples;
      if (auto lower = model.poly(counted->lower).constant())
        multiples[strip] = std::gcd(int64_t(tileSize), *lower);
      llvm::Error narrow = requireVectors(result, model, tile, multiples);
      if (!narrow)
        anyWide = true;
      else
        whyNarrow = llvm::toString(std::move(narrow));
    }
    if (stages > 1) {
      if (prefetch)
        return notApplicable("strips come through registers (prefetch) or by asynchronous copies (stages)");
      if (llvm::Error e = requireBackground(model, tile))
        return std::move(e);
      tile.copies = unsigned(stages);
      tile.copy = var(stage, counted->type);
    }
    bytes += tile.bytes();
  }
  if (tiles.empty())
    return notApplicable("no array is named");
  if (wide && !anyWide)
    return notApplicable("{0}", whyNarrow);
  if (bytes > int64_t(state.hints.maxSharedBytes))
    return notApplicable("{0} bytes of shared memory are too many", bytes);

  // The strip: load, barrier, compute, barrier.
  Type integer = counted->type;
  integer.isConst = false;
  ExprRef stripValue = var(strip, integer), offset = var(counted->var, Type::makeInt());
  std::string tidName = freshName(taken, "tid");
  std::vector<StmtRef> before, outer;
  std::vector<TileCopy> copies;
  for (const Tile &tile : tiles)
    copies.emplace_back(taken, model, tile, var(tidName, Type::makeInt()), threads);
  auto trips = counted->tripCount();
  // What is read is known for strips within the loop only, so nothing is fetched beyond it.
  if (stages > 1) {
    Type constStrip = integer;
    constStrip.isConst = true;
    AsyncCopy async(result);
    auto fetch = [&](const ExprRef &first, const Poly &start, const ExprRef &into) {
      StmtRef statements = block();
      for (TileCopy &copy : copies)
        llvm::append_range(statements->body, copy.background(async, strip, start, into));
      return ifStmt(lessThan(first, counted->upper), statements);
    };
    for (int64_t s = 0; s + 1 < stages; ++s) {
      bool within = trips && *trips > s * tileSize;
      StmtRef first = fetch(add(counted->lower, intLit(s * tileSize)), model.poly(counted->lower) + Poly(s * tileSize), intLit(s));
      if (within)
        llvm::append_range(before, first->body[0]->body);
      else
        before.push_back(first);
      before.push_back(async.commit());
    }
    // This strip has arrived when all groups have but those of the strips after it, and what others copied of it behind the
    // barrier. The tiles that are filled then were read last before that barrier.
    ExprRef first = add(stripValue, intLit((stages - 1) * tileSize)), number = sub(stripValue, counted->lower);
    outer.push_back(declStmt(stage, constStrip, binary("%", binary("/", number, intLit(tileSize)), intLit(stages))));
    outer.push_back(async.wait(unsigned(stages - 2)));
    outer.push_back(barrierStmt());
    std::string next = freshName(taken, "next");
    StmtRef ahead = fetch(first, Poly::atom(strip) + Poly((stages - 1) * tileSize), var(next, integer));
    ahead->body[0]->body.insert(
        ahead->body[0]->body.begin(),
        declStmt(next, constStrip, binary("%", add(var(stage, integer), intLit(stages - 1)), intLit(stages))));
    outer.push_back(ahead);
    outer.push_back(async.commit());
  } else if (prefetch) {
    auto fetch = [&](const Poly &start) {
      StmtRef statements = block();
      for (TileCopy &copy : copies)
        llvm::append_range(statements->body, copy.fetch(strip, start));
      return statements;
    };
    for (TileCopy &copy : copies)
      llvm::append_range(before, copy.registers());
    StmtRef first = fetch(model.poly(counted->lower));
    if (trips && *trips > 0)
      llvm::append_range(before, first->body);
    else
      before.push_back(ifStmt(lessThan(counted->lower, counted->upper), first));
    for (TileCopy &copy : copies)
      llvm::append_range(outer, copy.store());
    outer.push_back(barrierStmt());
    outer.push_back(ifStmt(lessThan(add(stripValue, intLit(tileSize)), counted->upper),
                           fetch(Poly::atom(strip) + Poly(tileSize))));
  } else {
    for (TileCopy &copy : copies)
      llvm::append_range(outer, copy.direct());
    outer.push_back(barrierStmt());
  }

  StmtRef body = clone(loop->body[0]);
  {
    // Replace the staged reads while the nodes are still those the model has seen.
    std::map<const Expr *, ExprRef> replacement;
    for (const Tile &tile : tiles)
      for (const Access *access : tile.accesses)
        replacement[access->place.get()] = tileElement(model, tile, *access);
    // Where nothing is staged, the loop variable is the strip's start plus the offset.
    walkExprs(*body, [&](const ExprRef &e) {
      if (e->kind == ExprKind::Var && e->text == counted->var)
        replacement.emplace(e.get(), add(stripValue, offset));
    });
    if (opaqueMentions(*body, {counted->var}))
      return notApplicable("a construct that is kept verbatim uses '{0}'", counted->var);
    replaceNodes(*body, replacement);
  }
  // Private accumulators of guarded sums need no guard any more: the tiles hold zeros where nothing may be read.
  loop->body = {body}; // so that uses are seen in the new form
  dropGuards(*kernel, *loop, tileNames);
  holdSharedReads(*kernel, *loop, tileNames);
  body = loop->body[0];
  auto place = findPlace(*kernel->body, loop);
  // Beyond the loop's end a tile is zero where its elements end with the loop: at one coordinate that is the loop's own.
  auto endsWithLoop = [&](const Tile &tile) {
    for (size_t d = 0; d < tile.dims.size(); ++d) {
      const Poly &own = tile.coordinates.at(tile.accesses[0])[d];
      bool only = own.atoms() == std::set<std::string>{counted->var};
      for (const Access *access : tile.accesses)
        only &= tile.coordinates.at(access)[d] == own;
      if (only)
        return true;
    }
    return false;
  };
  bool zeroSafe = !state.hints.strictFloat && addsZerosWithTiles(*kernel, *body, tileNames, counted->var) &&
                  llvm::all_of(tiles, endsWithLoop);
  bool even = trips && *trips % tileSize == 0;
  if (!even && !zeroSafe)
    body = block({ifStmt(lessThan(add(stripValue, offset), counted->upper), body)});
  outer.push_back(countedFor(counted->var, Type::makeInt(), intLit(0), intLit(tileSize), 1, body, FullUnroll));
  if (stages == 1)
    outer.push_back(barrierStmt());
  place->block->body[place->index] = countedFor(strip, integer, counted->lower, counted->upper, tileSize, block(outer), NoUnroll);
  auto at = place->block->body.begin() + long(place->index);
  if (stages > 1 && place->block != kernel->body.get()) // the loop may run again, and fills what was read last
    at = place->block->body.insert(at + 1, barrierStmt()) - 1;
  place->block->body.insert(at, before.begin(), before.end());

  std::vector<StmtRef> head;
  for (const Tile &tile : tiles)
    llvm::append_range(head, tileDeclarations(tile));
  Type constInt = Type::makeInt();
  constInt.isConst = true;
  head.push_back(declStmt(tidName, constInt, linearThread(shape)));
  kernel->body->body.insert(kernel->body->body.begin(), head.begin(), head.end());
  result.tree = kernel;
  return result;
}

std::vector<ActionTemplate> StageShared::sites(const KernelState &state) const {
  std::vector<ActionTemplate> result;
  if (!state.pinnedBlock()[0])
    return result;
  KernelModel model(*state.tree, state.pinnedBlock());
  for (const auto &[path, loop] : countedLoops(*state.tree)) {
    if (loop->unroll != NoUnroll)
      continue;
    std::vector<std::string> arrays;
    for (const Access &access : model.accesses())
      if (insideOf(access, loop) && access.read && !access.write && access.space == Space::Global &&
          !model.writesWhatIsRead(access) && std::find(arrays.begin(), arrays.end(), access.array) == arrays.end())
        arrays.push_back(access.array);
    std::vector<std::string> usable;
    std::string joint;
    auto offer = [&](const std::string &list) {
      ActionTemplate site{"stage-shared", state.rewrite.original + path + ":" + list, {}};
      std::vector<Params> values;
      for (const char *tile : {"8", "16", "32", "4", "2"})
        values.push_back({{"tile", tile}});
      for (const char *tile : {"16", "8", "32"})
        values.push_back({{"tile", tile}, {"wide", "1"}, {"prefetch", "1"}});
      for (const char *tile : {"16", "8"}) {
        values.push_back({{"tile", tile}, {"wide", "1"}});
        values.push_back({{"tile", tile}, {"prefetch", "1"}});
      }
      if (state.hints.arch >= 80) {
        for (const auto &[tile, stages] : {std::pair("16", "2"), {"16", "3"}, {"8", "3"}, {"8", "4"}, {"32", "2"}})
          values.push_back({{"tile", tile}, {"wide", "1"}, {"stages", stages}});
        values.push_back({{"tile", "16"}, {"stages", "2"}});
        if (state.hints.tensorFloat) // reads by tensor-core meet in no bank
          for (const char *tile : {"16", "32"})
            values.push_back({{"tile", tile}, {"wide", "1"}, {"layout", "fragments"}, {"stages", "2"}});
      }
      for (const Params &params : values) {
        auto applied = apply(state, path + ":" + list, params);
        if (applied)
          site.values.push_back(params);
        else
          llvm::consumeError(applied.takeError());
      }
      if (!site.values.empty())
        result.push_back(site);
      return !site.values.empty();
    };
    size_t before = result.size();
    for (const std::string &array : arrays)
      if (offer(array))
        joint += (joint.empty() ? "" : "+") + array, usable.push_back(array);
    if (usable.size() > 1) { // all of them together first
      offer(joint);
      std::rotate(result.begin() + long(before), result.end() - 1, result.end());
    }
  }
  return result;
}
} // namespace

const Transform *optiml::makeStageShared() {
  static const StageShared transform;
  return &transform;
}
