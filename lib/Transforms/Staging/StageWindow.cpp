//===- StageWindow.cpp - a block's whole input in shared memory -----------===//
//
// stage-window[kernel:A+B]{pad=0,wide=1,zeros=1}: before anything else, the block's threads together copy all that the
// block reads of A and B into shared memory, meet, and read it there. It serves stencils and convolutions, and small
// operands that every thread reads, such as a filter.
//
// `wide=1`: copies 16 bytes at a time. The tile grows by elements that nobody reads, so that its rows begin and end
// with whole pieces, and the launch must have sizes with which every piece is inside of the array, or outside.
//
// `zeros=1`: outside of the array the tile holds zeros, which are added in place of a test whether to add. Where the
// other factor is staged, too, and some element of it is not finite, a block tests as before.
//
// Example:
//   if (x >= width - 4)              __shared__ __align__(16) float in_window[68];
//     return;                        const int tid = threadIdx.x;
//   float s = 0;                     #pragma unroll
//   for (int k = 0; k < 5; ++k)      for (int i = 0; i < 2; ++i) {
//     s += in[x + k];                  const int e = tid + i * 64;
//   out[x] = s;                        if (e < 68) {
//                                        const int c = e;
//                                        in_window[c] = blockIdx.x * 64 + c < width ? in[blockIdx.x * 64 + c] : 0.0f;
//                                      }
//                                    }
//                                    __syncthreads();
//                                    if (x < width - 4) {
//                                      float s = 0;
//                                      for (int k = 0; k < 5; ++k) {
//                                        s += in_window[k + threadIdx.x];
//                                      }
//                                      out[x] = s;
//                                    }
//
// Legal: the block shape is fixed. The copy stands in the kernel's own list of statements, before the first one that
// reads the arrays, so that threads without work of their own take part. The kernel only reads the arrays, and they do
// not overlap what it writes (proved, or a condition).
//
// What a block reads is a box. Indices are affine in thread indices and in loops of constant trip count, which may run
// backwards and in steps. Conditions and bounds around the reads are affine too, and the same for whoever loads an
// element. Only what the original reads is loaded, and the rest of the box is zero.
//
// Refuses: loops around a read that may be left early or have no constant trip count (`specialize-scalar` may give them
// one); indices and conditions that depend on data; an array whose elements are hardly read twice. With what the kernel
// has already, shared memory is limited to 48 KiB. `wide` is refused where it is not known how far the array goes on
// beyond what is read.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "TileCopy.h"
#include "TileGuards.h"
#include "Transforms.h"
#include "ZeroPadding.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/LoopBounds.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

/// The first statement of the kernel's own list that holds a staged read; threads pass it together.
size_t firstUse(const Kernel &kernel, const std::vector<Tile> &tiles) {
  std::set<const Stmt *> readers;
  for (const Tile &tile : tiles)
    for (const Access *access : tile.accesses)
      readers.insert(access->stmt);
  for (size_t i = 0; i < kernel.body->body.size(); ++i) {
    if (anyStmt(*kernel.body->body[i], [&](const Stmt &s) { return readers.count(&s) != 0; }))
      return i;
  }
  return 0;
}

/// A name in `p` that is not known yet at statement `place` of the kernel's own list.
std::optional<std::string> unknownName(const KernelModel &model, const Kernel &kernel, size_t place, const Poly &p) {
  std::set<std::string> known;
  for (size_t i = 0; i < place; ++i)
    if (kernel.body->body[i]->kind == StmtKind::Decl)
      known.insert(kernel.body->body[i]->text);
  for (const std::string &atom : p.atoms()) {
    if (atom[0] == '@')
      continue;
    ExprRef tree = model.atomExpr(atom);
    for (const std::string &name : tree ? namesIn(tree) : std::set<std::string>{atom})
      if (model.declaration(name) && !known.count(name))
        return name;
  }
  return std::nullopt;
}

llvm::Error requireKnownBefore(const KernelModel &model, const Kernel &kernel, size_t place, const Tile &tile) {
  std::vector<Poly> needed = {tile.base};
  for (const TileDim &d : tile.dims)
    needed.push_back(d.stride);
  for (const std::vector<Poly> &guard : tile.guards)
    llvm::append_range(needed, guard);
  for (const TileBoundary &boundary : tile.boundaries) {
    needed.push_back(boundary.rule.stride);
    needed.push_back(boundary.rule.coordinate);
    for (const std::string &name : namesIn(boundary.rule.rule))
      if (name != BoundaryCondition::name())
        needed.push_back(Poly::atom(name));
  }
  for (const Poly &p : needed)
    if (auto name = unknownName(model, kernel, place, p))
      return notApplicable("what the block reads of {0} depends on '{1}', which is not known before", tile.array,
                           *name);
  return llvm::Error::success();
}

/// Rows start at multiples of 16 bytes, so that neighbouring elements can be read at once.
int64_t defaultPad(const Tile &tile) {
  int64_t unit = tile.unit();
  return tile.dims.size() < 2 || unit < 2 ? 0 : (unit - tile.dims[tile.layout.back()].extent % unit) % unit;
}

llvm::Error requireNoOpaqueText(const Kernel &kernel) {
  unsigned line = 0;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Opaque && !line)
      line = std::max(1u, s.line);
  });
  return line ? notApplicable("line {0} is not understood", line) : llvm::Error::success();
}

class StageWindow : public Transform {
public:
  llvm::StringRef name() const override { return "stage-window"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    if (!state.pinnedBlock()[0])
      return {};
    KernelModel model(*state.tree, state.pinnedBlock());
    std::vector<std::string> arrays;
    for (const Access &access : model.accesses())
      if (access.read && !access.write && access.space == Space::Global && !model.writesWhatIsRead(access) &&
          !llvm::is_contained(arrays, access.array))
        arrays.push_back(access.array);
    std::vector<ActionTemplate> result;
    std::string joint;
    auto addSite = [&](const std::string &list) {
      llvm::SmallVector<llvm::StringRef, 4> names;
      llvm::StringRef(list).split(names, '+');
      ActionTemplate site{"stage-window", state.rewrite.original + ":" + list, {}};
      auto applies = [&](const Params &params) {
        auto applied = stage(state, names, params, 2);
        llvm::consumeError(applied.takeError());
        return bool(applied);
      };
      // What holds with zeros, or in wide pieces, holds without.
      const Params plain, wide = {{"wide", "1"}}, zeros = {{"zeros", "1"}}, both = {{"wide", "1"}, {"zeros", "1"}};
      if (applies(plain)) {
        if (applies(both))
          site.values = {both, zeros, wide};
        else if (applies(zeros))
          site.values = {zeros};
        else if (applies(wide))
          site.values = {wide};
        site.values.push_back(plain);
      }
      if (!site.values.empty())
        result.push_back(site);
      return !site.values.empty();
    };
    for (const std::string &array : arrays)
      if (addSite(array))
        joint += (joint.empty() ? "" : "+") + array;
    if (result.size() > 1 && addSite(joint)) // all of them together first
      std::rotate(result.begin(), result.end() - 1, result.end());
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override {
    llvm::SmallVector<llvm::StringRef, 4> arrays;
    site.ltrim(':').split(arrays, '+', -1, /*KeepEmpty=*/false);
    return stage(state, arrays, params, 1);
  }

private:
  /// The tiles of what a block reads of the arrays, each at least `leastReuse` times.
  static llvm::Expected<std::vector<Tile>> plan(KernelState &state, const KernelModel &model,
                                                llvm::ArrayRef<llvm::StringRef> arrays, const Params &params,
                                                int64_t leastReuse, std::set<std::string> &taken,
                                                std::set<std::string> &tileNames) {
    auto tiles = planTiles(state, model, arrays, nullptr);
    if (!tiles)
      return tiles.takeError();
    std::string whyNarrow;
    bool isWide = false;
    for (Tile &tile : *tiles) {
      if (tile.reads < leastReuse * tile.elements() || tile.reads <= tile.elements())
        return notApplicable("the block reads hardly an element of {0} more than once", tile.array);
      nameTile(tile, "_window", taken, tileNames);
      tile.pad = paramInt(params, "pad", 0);
      if (tile.pad < 0 || tile.pad > 64)
        return notApplicable("the padding must be 0 to 64");
      if (paramInt(params, "wide", 0)) {
        if (llvm::Error e = requireVectors(state, model, tile, {}))
          whyNarrow = llvm::toString(std::move(e));
        else
          isWide = true;
      }
      if (!params.count("pad"))
        tile.pad = defaultPad(tile);
    }
    if (!isWide && !whyNarrow.empty())
      return notApplicable("{0}", whyNarrow);
    return tiles;
  }

  llvm::Expected<KernelState> stage(const KernelState &state, llvm::ArrayRef<llvm::StringRef> arrays,
                                    const Params &params, int64_t leastReuse) const {
    std::array<int64_t, 3> shape = state.pinnedBlock();
    if (!shape[0] || !shape[1] || !shape[2])
      return notApplicable("{0}", shapeIsOpen);
    if (arrays.empty())
      return notApplicable("no array is named");
    auto kernel = state.tree->clone();
    countFromZero(*kernel);
    if (llvm::Error e = removeReturns(*kernel))
      return e;
    if (llvm::Error e = requireNoOpaqueText(*kernel))
      return std::move(e);
    KernelModel model(*kernel, shape);
    if (unsigned line = model.unknownOutsideLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);

    KernelState result = state;
    const int64_t threads = shape[0] * shape[1] * shape[2];
    std::set<std::string> taken = allNames(*kernel), tileNames;
    auto planned = plan(result, model, arrays, params, leastReuse, taken, tileNames);
    if (!planned)
      return planned.takeError();
    const std::vector<Tile> tiles = std::move(*planned);
    int64_t bytes = sharedBytes(*kernel);
    for (const Tile &tile : tiles)
      bytes += tile.bytes();
    if (bytes > int64_t(state.hints.maxSharedBytes))
      return notApplicable("{0} bytes of shared memory are too many", bytes);
    size_t place = firstUse(*kernel, tiles);
    for (const Tile &tile : tiles)
      if (llvm::Error e = requireKnownBefore(model, *kernel, place, tile))
        return e;

    std::vector<StmtRef> load;
    std::string tid = freshName(taken, "tid");
    for (const Tile &tile : tiles)
      llvm::append_range(load, tileDeclarations(tile));
    load.push_back(declStmt(tid, Type::makeInt().withConst(true), linearThread(shape)));
    std::map<const Expr *, ExprRef> staged;
    for (const Tile &tile : tiles) {
      llvm::append_range(load, TileCopy(taken, model, tile, var(tid, Type::makeInt()), threads).direct());
      for (const Access *access : tile.accesses)
        staged[access->place.get()] = tileElement(model, tile, *access);
    }
    load.push_back(barrierStmt());
    const bool hasZeros = paramInt(params, "zeros", 0) != 0;
    const ZeroPadding padding = hasZeros ? ZeroPadding::find(model, tiles) : ZeroPadding();

    // The nodes are still those that the model has seen: nothing else is replaced.
    replaceNodes(*kernel->body, staged);
    std::vector<StmtRef> &list = kernel->body->body;
    if (hasZeros) {
      if (state.hints.strictFloat)
        return notApplicable("zeros may change the sign of a zero (--optiml-fp=strict)");
      loadAlways(*kernel, *kernel->body, tileNames);
      auto tests = padding.drop(*kernel, tiles, var(tid, Type::makeInt()), threads, taken);
      if (!tests)
        return tests.takeError();
      llvm::append_range(load, *tests);
    }
    list.insert(list.begin() + long(place), load.begin(), load.end());
    // Threads without a result of their own may compute one from zeros.
    dropGuards(*kernel, *kernel->body, tileNames);
    hoistInvariantLoads(*kernel, *kernel->body, tileNames);
    removeUnused(*kernel); // what only tests used
    result.tree = kernel;
    return result;
  }
};

} // namespace

DEFINE_TRANSFORM(StageWindow)
