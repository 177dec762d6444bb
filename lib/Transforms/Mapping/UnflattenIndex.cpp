//===- UnflattenIndex.cpp - rows and columns for one index ----------------===//
//
// unflatten-index[kernel]: a thread that finds its cell of an array by `i % width`, `i / width` and so on gets the cell
// from the axes of a grid of threads. The divisions disappear, and what was one row becomes a plane or a box that can
// be tiled. A 1x1 convolution over NCHW becomes a matrix product.
//
// Example:
//   int i = blockIdx.x * blockDim.x + threadIdx.x;      int p = blockIdx.x * blockDim.x + threadIdx.x;
//   if (i >= N * O * hw) return;                        int o = blockIdx.y * blockDim.y + threadIdx.y;
//   int p = i % hw, o = i / hw % O, n = i / hw / O;     int n = blockIdx.z * blockDim.z + threadIdx.z;
//   …                                                   if (p < hw && o < O && n < N) { … }
//
// Legal: threads that do not work together run in any order and in any block. The index is compared with the product of
// the extents, and divided by the width or multiples of it. The conditions are that every extent is at least 1, that
// rows and planes are at most 65535, and that all cells are fewer than 2^31 and no more than the launch has threads.
// Where the index is compared with a number of its own (`i < total`), the rows and planes must be whole.
//
// Refuses: indices on several axes, other uses of the place in the block, and a fixed block shape. It also refuses
// divisors of which none divides all the others, and a launch that another transform has changed already.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/FlatIndex.h"
#include "optiml/Canonicalize/GlobalIndex.h"

using namespace optiml;

namespace {
class UnflattenIndex : public Transform {
public:
  llvm::StringRef name() const override { return "unflatten-index"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    auto applied = apply(state, "", {});
    if (!applied) {
      llvm::consumeError(applied.takeError());
      return {};
    }
    // Columns that do not fill a warp leave threads without work.
    int64_t columns = applied->hints.grid[0] ? applied->hints.grid[0] * applied->hints.block[0] : 32;
    return columns >= 32 ? std::vector<ActionTemplate>{{"unflatten-index", state.rewrite.original, {{}}}}
                         : std::vector<ActionTemplate>();
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override;
};
} // namespace

/// With the places that a flat index stands for as global indices: columns first, then rows, then planes where the rows
/// are taken apart as well. NotApplicable where the index is another.
static llvm::Expected<std::vector<FlatIndex>> takeApart(KernelState &state, Kernel &kernel) {
  if (llvm::Error e = requireApart(kernel))
    return std::move(e);
  if (llvm::Error e = requireConstantParameters(kernel))
    return std::move(e);
  if (llvm::Error e = removeReturns(kernel))
    return std::move(e);
  adoptPlainIndices(state, kernel);
  std::array<AxisUse, 3> uses = normalizeGlobalIndex(kernel, {0, 0, 0});
  for (unsigned axis = 0; axis < 3; ++axis)
    if (uses[axis].other || (axis > 0 && uses[axis].global))
      return notApplicable("axis {0} is used other than through one global index", char('x' + axis));
  bool opaque = holdsKind(*kernel.body, {StmtKind::Opaque});
  std::vector<FlatIndex> found;
  for (unsigned axis = 0; axis < 2 && uses[0].global && !opaque; ++axis) {
    auto flat = takeApartFlatIndex(kernel, axis, /*anyEnd=*/true);
    if (!flat)
      break;
    found.push_back(*flat);
  }
  if (found.empty())
    return notApplicable("no index i < width * height is taken apart by / and % of one width and its multiples");
  return found;
}

/// An integer that is computed without memory. Divisors become conditions: where nothing guards it, it is computed
/// anyway.
static bool isIndex(KernelState &state, const KernelModel &model, const Stmt &s) {
  if (s.kind != StmtKind::Decl || s.isShared || !s.dims.empty() || !s.expr || !s.type.isInt() ||
      !model.singleAssignment(s.text))
    return false;
  bool plain = true;
  std::vector<std::string> divisors;
  walk(s.expr, [&](const ExprRef &e) {
    plain &= e->pure && e->type.isInt() && !isChange(e) && e->kind != ExprKind::Call;
    if (e->kind != ExprKind::Binary || (e->text != "/" && e->text != "%"))
      return;
    Poly divisor = model.poly(e->args[1]);
    auto text = planText(model, divisor);
    plain &= text.has_value();
    if (text && !(divisor.constant() && *divisor.constant() >= 1))
      divisors.push_back(*text);
  });
  if (plain)
    for (const std::string &divisor : divisors)
      state.require(divisor + " >= 1", "an index is divided by it");
  return plain;
}

/// "if (a) { int i = …; if (b) { int j = …; rest } }" as "int i = …; int j = …; if (a && b) { rest }", which tiles can
/// share.
static void indicesFirst(KernelState &state, Kernel &kernel) {
  KernelModel model(kernel, {0, 0, 0});
  std::vector<StmtRef> indices, rest = kernel.body->body;
  ExprRef guard;
  while (true) {
    size_t first = 0;
    while (first < rest.size() && isIndex(state, model, *rest[first]))
      indices.push_back(rest[first++]);
    rest.erase(rest.begin(), rest.begin() + long(first));
    if (rest.size() != 1 || rest[0]->kind != StmtKind::If || rest[0]->body.size() != 1 || !model.stable(rest[0]->expr))
      break;
    guard = logicalAnd(guard, rest[0]->expr);
    rest = std::vector<StmtRef>(rest[0]->body[0]->body); // a copy: `rest` owns the block
  }
  if (guard)
    rest = {ifStmt(guard, block(std::move(rest)))};
  indices.insert(indices.end(), rest.begin(), rest.end());
  kernel.body->body = std::move(indices);
}

/// `extents`: of columns, rows and perhaps planes.
static void setLaunch(KernelState &state, const std::vector<std::string> &extents) {
  std::string cells;
  for (const std::string &extent : extents) {
    state.require(extent + " >= 1", "an index is divided by it");
    cells += (cells.empty() ? "(" : " * (") + extent + ")";
  }
  state.require(cells + " <= 2147483647", "its index is an int");
  state.require(cells + " <= " + threadsAlong(0), "the launch has a thread for every cell");
  for (unsigned axis = 0; axis < extents.size(); ++axis) {
    if (axis > 0)
      requireOneCopy(state, axis);
    setBlocks(state, axis, state.overOriginal(axis ? extents[axis] : "ceildiv(" + extents[axis] + ", block.x)"));
  }
}

/// How many rows, or planes, there are. `extents`: of the axes before that.
static std::optional<std::string> lastExtent(KernelState &state, const KernelModel &model,
                                             const std::vector<FlatIndex> &flat,
                                             const std::vector<std::string> &extents) {
  std::optional<std::string> cells; // along the axis that is taken apart
  for (size_t level = 0; level < flat.size(); ++level) {
    if (!flat[level].end) {
      cells = planText(model, flat[level].height);
      continue;
    }
    if (level == 0 || !flat[level - 1].end)
      cells = planText(model, model.poly(flat[level].end));
    if (!cells)
      return std::nullopt;
    state.require("(" + *cells + ") % (" + extents[level] + ") == 0", "the cells are whole rows");
    cells = "(" + *cells + ") / (" + extents[level] + ")";
  }
  return cells;
}

llvm::Expected<KernelState> UnflattenIndex::apply(const KernelState &state, llvm::StringRef, const Params &) const {
  if (state.isPinned())
    return notApplicable("{0}", shapeIsFixed);
  if (!(state.blocks[0] == IntExpr::of("grid.x")) || !(state.blocks[1] == IntExpr::of("grid.y")) ||
      !(state.extents[0] == IntExpr::of("block.x")))
    return notApplicable("the launch has changed already");
  KernelState result = state;
  auto kernel = state.tree->clone();
  auto flat = takeApart(result, *kernel);
  if (!flat)
    return flat.takeError();
  KernelModel model(*kernel, {0, 0, 0});
  std::vector<std::string> extents;
  ExprRef inside; // of the axes that the kernel's own test says nothing of any more
  for (const FlatIndex &index : *flat) {
    ExprRef own = castTo(Type::makeInt(), axisBuiltin("globalIdx", unsigned(extents.size())));
    inside = logicalAnd(inside, lessThan(own, polyExpr(model, index.width)));
    auto text = planText(model, index.width);
    if (!text)
      return notApplicable("the grid's extents cannot be computed before the launch");
    extents.push_back(*text);
  }
  auto last = lastExtent(result, model, *flat, extents);
  if (!last)
    return notApplicable("the grid's extents cannot be computed before the launch");
  extents.push_back(*last);
  setLaunch(result, extents);
  kernel->body->body = {ifStmt(inside, block(std::move(kernel->body->body)))};
  indicesFirst(result, *kernel);
  lowerGlobalIndex(*kernel);
  removeUnused(*kernel);
  result.tree = kernel;
  return result;
}

DEFINE_TRANSFORM(UnflattenIndex)
