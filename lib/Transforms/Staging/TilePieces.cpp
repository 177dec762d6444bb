//===- TilePieces.cpp - tiles that are copied 16 bytes at a time ----------===//
#include "Scalar/VectorPieces.h"
#include "TileCopy.h"
#include "optiml/Analysis/Bounds.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

/// Numbers of one type in a record of 8 or 16 bytes: gives how many, and tells each part its place.
static llvm::Expected<unsigned> numbersOf(const KernelModel &model, Tile &tile) {
  unsigned bytes = tile.parts[0].type.bytes, record = tile.accesses[0]->node->type.bytes;
  if (tile.parts[0].members.empty())
    return 1;
  for (TilePart &part : tile.parts) {
    unsigned offset = 0;
    for (const ExprRef &member : part.members)
      offset += unsigned(member->value);
    part.place = offset / bytes;
    if (part.type.text != tile.parts[0].type.text || offset % bytes != 0 || record % bytes != 0 || 16 % record != 0)
      return notApplicable("the elements of {0} are no records that a vector of 16 bytes holds", tile.array);
  }
  if (model.writesArray(tile.array))
    return notApplicable("members of {0} are written", tile.array);
  return record / bytes;
}

namespace {

/// Lets rows of a tile begin and end with whole pieces of 16 bytes: it grows by elements that nobody reads. Those
/// before the first one that is read exist, because allocations begin at multiples of 16 bytes. Those after the last
/// one do where the array is read up to the bound that they are below.
class PieceGrower {
public:
  /// `grid`: that the kernel is launched with.
  PieceGrower(const std::array<IntExpr, 3> &grid, const KernelModel &model, Tile &tile, size_t along, int64_t width)
      : grid(grid), model(model), tile(tile), dim(tile.dims[along]), name(coordinate(along)),
        before((tile.base.constantTerm() % width + width) % width), last(before + dim.extent),
        extent((last + width - 1) / width * width) {}

  llvm::Error run() {
    if (extent == dim.extent)
      return llvm::Error::success();
    if (dim.alongLoop && before != 0)
      return notApplicable("rows of {0} do not begin at multiples of 16 bytes", tile.array);
    if (dim.alongLoop)
      return notApplicable("the tile of {0} is not made of aligned pieces of 16 bytes", tile.array);
    for (std::vector<Poly> &conjunction : tile.guards) {
      for (Poly &guard : conjunction)
        guard = guard.substitute(name, Poly::atom(name) - Poly(before));
      if (extent > last && !isReadUpToBound(conjunction))
        return notApplicable("{0} may end where the last piece of 16 bytes does not", tile.array);
    }
    const size_t along = size_t(&dim - tile.dims.data());
    dim.low -= before;
    dim.extent = extent;
    tile.base = tile.base - Poly(before);
    for (auto &[access, coordinates] : tile.coordinates)
      coordinates[along] = coordinates[along] + Poly(before);
    return llvm::Error::success();
  }

  std::vector<IntExpr> conditions; ///< on the original launch, under which the array is read up to its bounds

private:
  /// The bound of the coordinate, if there is one.
  std::optional<Poly> boundOf(const std::vector<Poly> &conjunction) const {
    std::optional<Poly> end;
    for (const Poly &guard : conjunction) {
      const auto found = indexBound(guard, name);
      if (!found || (found->direction < 0 && end))
        return std::nullopt;
      if (found->direction < 0)
        end = found->bound;
    }
    return end;
  }

  /// Whether some block reads the element before the bound, wherever a block reads one below it.
  bool isReadUpToBound(const std::vector<Poly> &conjunction) {
    const std::optional<Poly> end = boundOf(conjunction);
    if (!end)
      return false;
    Poly first = *end; // in the first block
    std::string block, reached = std::to_string(last);
    for (unsigned axis = 0; axis < 3; ++axis)
      if (const std::string index = axisName("blockIdx", axis); end->mentions(index)) {
        const auto step = stepToBound(conjunction, *end, index);
        if (!block.empty() || !step)
          return false;
        block = index;
        first = first.substitute(block, Poly());
        reached = "((" + grid[axis].str() + ") - 1) * " + std::to_string(*step) + " + " + reached;
      }
    if (block.empty() && first.constant())
      return *first.constant() <= last;
    const auto text = planText(model, first);
    if (text)
      conditions.push_back(IntExpr::of(*text + " <= " + reached));
    return text.has_value();
  }

  /// By how much a block is nearer to the bound than the one before: by what one of them reads at most. Nothing where
  /// the last block that may read anything, by the conditions on the block, does not read up to the bound.
  std::optional<int64_t> stepToBound(const std::vector<Poly> &conjunction, const Poly &end,
                                     const std::string &block) const {
    const auto coefficient = end.coefficient(block);
    const int64_t step = coefficient && coefficient->constant() ? -*coefficient->constant() : 0;
    if (step <= 0 || step > dim.extent)
      return std::nullopt;
    const bool reaches = llvm::all_of(conjunction, [&](const Poly &guard) {
      const auto c = guard.coefficient(name), b = guard.coefficient(block);
      if (!c || !b || !c->constant() || !b->constant())
        return false;
      if (*c->constant() != 0)
        return *b->constant() == *c->constant() * step; // a condition on the element
      if (*b->constant() == 0)
        return true;
      const auto least = (end - guard).constant(); // of `end`, in a block that may read anything
      return least && *least + step - 1 <= last;
    });
    return reaches ? std::optional(step) : std::nullopt;
  }

  const std::array<IntExpr, 3> &grid;
  const KernelModel &model;
  Tile &tile;
  TileDim &dim;
  const std::string name;
  const int64_t before; ///< elements that the tile grows by at its begin
  const int64_t last;   ///< where it ends that is read
  const int64_t extent;
};

} // namespace

/// That every piece is aligned, and inside of each bound whole or not at all: bounds are multiples of the width, too.
static llvm::Error requireAlignedPieces(const Tile &tile, size_t along, Multiples &multiple) {
  auto refuse = [&] { return notApplicable("rows of {0} do not begin at multiples of 16 bytes", tile.array); };
  for (size_t d = 0; d < tile.dims.size(); ++d)
    if (d != along && !multiple.require(tile.dims[d].stride))
      return refuse();
  if (!multiple.require(tile.base))
    return refuse();
  for (const std::vector<Poly> &conjunction : tile.guards)
    for (const Poly &guard : conjunction) {
      const auto found = indexBound(guard, coordinate(along));
      if (!found)
        return notApplicable("what is read of {0} is no range of whole pieces of 16 bytes", tile.array);
      if (found->direction && !multiple.require(found->bound))
        return refuse();
    }
  return llvm::Error::success();
}

llvm::Error optiml::requireVectors(KernelState &state, const KernelModel &model, Tile &tile,
                                   const std::map<std::string, int64_t> &multiples) {
  if (!tile.boundaries.empty())
    return notApplicable("{0} is read by a rule at its edges, not 16 bytes at a time", tile.array);
  if (vectorName(tile.parts[0].type).empty())
    return notApplicable("there is no vector type of 16 bytes for the elements of {0}", tile.array);
  auto numbers = numbersOf(model, tile);
  if (!numbers)
    return numbers.takeError();
  int64_t width = tile.unit() / *numbers;
  if (tile.root->kind != ExprKind::Var || !model.param(tile.root->text))
    return notApplicable("{0} is no parameter, so its alignment cannot be tested", tile.array);
  std::optional<size_t> contiguous;
  for (size_t d = 0; d < tile.dims.size(); ++d)
    if (tile.dims[d].stride == Poly(1))
      contiguous = d;
  if (!contiguous || (tile.layout.back() == *contiguous && tile.pad % width != 0))
    return notApplicable("the tile of {0} is not made of aligned pieces of 16 bytes", tile.array);
  Tile wide = tile;
  PieceGrower grower(state.rewrite.plan.steps[0].grid, model, wide, *contiguous, width);
  if (llvm::Error e = grower.run())
    return e;
  Multiples multiple(model, multiples, width);
  if (llvm::Error e = requireAlignedPieces(wide, *contiguous, multiple))
    return e;
  state.require("aligned(" + tile.array + ", 16)", tile.array + " is read 16 bytes at a time");
  for (const IntExpr &condition : grower.conditions)
    state.require(condition, "what is read 16 bytes at a time ends where " + tile.array + " does");
  for (const std::string &parameter : multiple.parameters)
    state.require(parameter + " % " + std::to_string(width) + " == 0", "rows are read 16 bytes at a time");
  tile = std::move(wide);
  tile.vector = unsigned(width);
  tile.numbers = *numbers;
  return llvm::Error::success();
}
