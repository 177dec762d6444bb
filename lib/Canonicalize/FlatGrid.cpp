//===- FlatGrid.cpp - blocks that are numbered across two axes ------------===//
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {
/// Finds the number of a block, and of all blocks, in a kernel's expressions.
class FlatNumbers {
public:
  explicit FlatNumbers(const Kernel &kernel) : model(kernel, {0, 0, 0}) {}
  /// Names that stand for them until nothing else is left.
  static constexpr const char *number = "#block", *count = "#blocks";

  ExprRef replace(const ExprRef &e) const {
    auto within = [&] { return mapOperands(e, [&](const ExprRef &operand) { return replace(operand); }); };
    if (!e->type.isInt() || e->kind != ExprKind::Binary)
      return within();
    const Poly width = Poly::atom("gridDim.x"), x = Poly::atom("blockIdx.x"), y = Poly::atom("blockIdx.y");
    const Poly p = model.poly(e).substitute("globalIdx.x", x * Poly::atom("blockDim.x") + Poly::atom("threadIdx.x"));
    for (const auto &[high, low, name] : {std::tuple(y, x, number), {Poly::atom("gridDim.y"), Poly(0), count}}) {
      auto ofHigh = p.coefficient(*high.atoms().begin());
      auto factor = ofHigh ? quotientOf(*ofHigh, width) : std::nullopt;
      if (!factor || factor->terms.empty())
        continue;
      const Poly rest = p - *factor * (width * high + low);
      if (asksForBlocks(*factor) || asksForBlocks(rest))
        continue;
      ExprRef flat = mul(castTo(e->type, var(name, Type::makeInt())), polyExpr(model, *factor));
      return castTo(e->type, rest.terms.empty() ? flat : add(flat, polyExpr(model, rest)));
    }
    return within();
  }

private:
  static bool asksForBlocks(const Poly &p) {
    return llvm::any_of(p.atoms(), [](const std::string &atom) {
      return atom.find("blockIdx.") != std::string::npos || atom.find("gridDim.") != std::string::npos ||
             atom.find("globalIdx.") != std::string::npos;
    });
  }
  KernelModel model;
};
} // namespace

void optiml::flattenGrid(KernelState &state, Kernel &kernel) {
  std::array<IntExpr, 3> &grid = state.rewrite.plan.steps[0].grid;
  const bool isLaunched = grid[0] == state.blocks[0] && grid[1] == state.blocks[1];
  if (!isLaunched || !builtinsOf(kernel, 1).count("blockIdx") || !builtinsOf(kernel, 0).count("gridDim"))
    return;
  auto flat = kernel.clone();
  const FlatNumbers numbers(kernel);
  walk(*flat->body, [&](Stmt &s) { ownExprs(s, [&](ExprRef &e) { e = numbers.replace(e); }); });
  for (unsigned axis : {0, 1})
    for (const char *base : {"blockIdx", "gridDim"})
      if (builtinsOf(*flat, axis).count(base))
        return;
  substitute(*flat->body,
             {{FlatNumbers::number, axisBuiltin("blockIdx", 0)}, {FlatNumbers::count, axisBuiltin("gridDim", 0)}});
  kernel.body = flat->body;
  grid[0] = state.blocks[0] = IntExpr::of("(" + grid[0].str() + ") * (" + grid[1].str() + ")");
  grid[1] = state.blocks[1] = IntExpr::literal(1);
  state.hints.grid[0] *= state.hints.grid[1];
  state.hints.grid[1] = state.hints.grid[1] ? 1 : 0;
  state.require(IntExpr::of("(" + grid[0].str() + ") <= " + std::to_string(INT32_MAX)), "a grid cannot be larger");
  state.require(threadsAlong(0) + " <= " + std::to_string(UINT32_MAX), "the threads' numbers do not wrap around");
}
