//===- GridStride.cpp - a fixed grid whose threads take turns -------------===//
//
// grid-stride[kernel]{x=256,blocks=1056}: launches so many blocks at most. Each thread does the work of every
// `blocks * x`-th original one, in a loop. More work then shares what a block does once, such as a table in shared
// memory or one atomic for many, and `unroll` can have several loads in flight.
//
// Example:
//   int i = blockIdx.x * blockDim.x + threadIdx.x;  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 270336) {
//   if (i < n)                                        y[i] = f(x[i]);
//     y[i] = f(x[i]);                               }
//   // plan: map_optiml<<<(min(1056, ceildiv(grid.x * block.x, 256)), 1, 1), (256, 1, 1), shared>>>
//   // when n <= grid.x * block.x
//   // when n <= 2147213311
//
// Legal: as for `block-shape`, for the x axis alone; after it (and `vectorize-access`, say) the blocks stay as they
// are. Every effect stands under `global index < U`, U being a polynomial of parameters, and the loop ends there. `U <=
// grid.x * block.x` is a condition, and so is that a counter of 32 bits does not overflow. Under a guard `c * global
// index < U`, as of threads that have a piece of c elements each, the loop ends at `U / c`, rounded up. Launches where
// the product could wrap around keep the original.
//
// What a thread does stays as it is, and in order. So calls and verbatim text may do what they like, if they neither
// ask which thread runs them nor meet others; all that the kernel does then stands under one `if`.
//
// Refuses: kernels that synchronize, that wait in a loop for the value of an atomic, other uses of the launch's axes,
// and effects that nothing bounds.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include <algorithm>

using namespace optiml;

namespace {
class GridStride : public Transform {
public:
  llvm::StringRef name() const override { return "grid-stride"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    static const std::vector<std::array<int64_t, 2>> shapes = {{256, 8},  {512, 4}, {256, 16},
                                                               {1024, 2}, {256, 4}, {128, 8}};
    // Each block has the sums to combine that its threads will keep: fewer blocks, where these are many.
    static const std::vector<std::array<int64_t, 2>> few = {{256, 1}, {256, 2}, {512, 1}, {128, 2}, {256, 4}, {256, 8}};
    std::vector<Params> offers;
    const int64_t fixed = state.pinnedBlock()[0];
    if (fixed && !hasSeveralElements(*state.tree, fixed)) // the same as without block-shape
      return {};
    for (auto [x, blocks] : updatesOf(*state.tree->body) < 8 ? shapes : few)
      if (!fixed || x == fixed)
        offers.push_back({{"x", std::to_string(x)}, {"blocks", std::to_string(blocks * state.hints.multiprocessors)}});
    return offers.empty() ? std::vector<ActionTemplate>() : kernelSite(*this, state, offers);
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    int64_t x = paramInt(params, "x", 256), blocks = paramInt(params, "blocks", 8 * state.hints.multiprocessors);
    if (x < 1 || x > state.hints.maxThreads || blocks < 1 || blocks > 1 << 20)
      return notApplicable("{0} blocks of {1} threads cannot be launched", blocks, x);
    KernelState result = state;
    auto made = state.isPinned() ? asPinned(result, x) : remappable(result, 1, x, /*batches=*/false, Kept::Statements);
    if (!made)
      return made.takeError();
    std::shared_ptr<Kernel> kernel = *made;
    KernelModel model(*kernel, {0, 0, 0});
    auto found = boundOf(model, result);
    if (!found)
      return notApplicable("nothing bounds the global index of all that the kernel does");
    const auto &[text, end, guard, constant, product] = *found;

    auto [index, type] = takeIndex(*kernel, model);
    int64_t step = x * blocks;
    if (!constant)
      result.require(text + " >= 0", "an empty range stays empty, whatever the signs of the types");
    if (type.bytes == 8 && product)
      result.require(text + " <= " + std::to_string(INT32_MAX),
                     "the bound does not overflow in the types of its factors");
    if (type.bytes == 4)
      result.require(text + " <= " + std::to_string((type.isSigned ? INT32_MAX : int64_t(UINT32_MAX)) - step),
                     "the loop's counter does not overflow");
    ExprRef variable = var(index, type);
    ExprRef start = globalIndexExpr(0, x);
    if (type.bytes == 8)
      start = add(mul(castTo(type, builtin("blockIdx.x")), intLit(x)), builtin("threadIdx.x"));
    // The guard that becomes the loop's condition.
    std::vector<StmtRef> inner = kernel->body->body;
    bool implied = !inner.empty() && inner.back()->kind == StmtKind::If && inner.back()->body.size() == 1 && guard &&
                   equal(inner.back()->expr, guard) && onlyDeclarations(inner);
    rewriteExprs(*kernel->body, [&](const ExprRef &e) -> ExprRef {
      if (!isBuiltin(e, "globalIdx.x"))
        return nullptr;
      if (e->type.bytes == type.bytes && e->type.isSigned == type.isSigned)
        return variable;
      return castTo(e->type, variable); // the index was of another type here
    });
    if (implied || (!inner.empty() && inner.back()->kind == StmtKind::If && inner.back()->body.size() == 1 &&
                    equal(inner.back()->expr, lessThan(variable, end)) && onlyDeclarations(inner))) {
      StmtRef guarded = inner.back()->body[0];
      inner.pop_back();
      inner.insert(inner.end(), guarded->body.begin(), guarded->body.end());
    }
    StmtRef loop = countedFor(index, type, start, end, step, block(std::move(inner)), NoUnroll);
    kernel->body = block({loop});

    for (unsigned axis : {1, 2})
      requireOneCopy(result, axis);
    result.require(text + " <= " + threadsAlong(0), "the launch covers every index");
    LaunchStep &launch = result.rewrite.plan.steps[0];
    // No more than have something to do: what a block sets up is not free.
    const std::string most =
        "min(" + std::to_string(blocks) + ", ceildiv(" + threadsAlong(0) + ", " + std::to_string(x) + "))";
    launch.grid = {result.overOriginal(most), IntExpr::literal(1), IntExpr::literal(1)};
    launch.block = {IntExpr::literal(x), IntExpr::literal(1), IntExpr::literal(1)};
    kernel->maxThreads = unsigned(x);
    result.tree = kernel;
    return result;
  }

private:
  /// The kernel over its global index, whose blocks have been fixed: they stay as they are.
  static llvm::Expected<std::shared_ptr<Kernel>> asPinned(const KernelState &state, int64_t x) {
    const std::array<int64_t, 3> shape = state.pinnedBlock();
    if (shape != std::array<int64_t, 3>{x, 1, 1})
      return notApplicable("the block shape is fixed already, and it is not {0} threads along x", x);
    auto kernel = state.tree->clone();
    if (llvm::Error e = requireConstantParameters(*kernel))
      return std::move(e);
    if (llvm::Error e = requireApart(*kernel, Kept::Statements))
      return std::move(e);
    if (llvm::Error e = removeReturns(*kernel))
      return std::move(e);
    const std::array<AxisUse, 3> uses = normalizeGlobalIndex(*kernel, shape);
    if (!uses[0].global || llvm::any_of(uses, [](const AxisUse &use) { return use.other; }) || uses[1].global ||
        uses[2].global)
      return notApplicable("the kernel uses more than its global index along x");
    return kernel;
  }

  /// Each thread of these blocks has several elements that neighbour each other.
  static bool hasSeveralElements(const Kernel &kernel, int64_t threads) {
    return anyExpr(*kernel.body, [&](const ExprRef &e) {
      return isBinary(e, "*") && constantValue(e->args[1]).value_or(0) > threads &&
             anyNode(e->args[0], [](const ExprRef &n) { return isBuiltin(n, "blockIdx.x"); });
    });
  }

  /// How many sums a thread makes updates of: those that a loop makes are of one sum each, unless its counter tells
  /// which. Loops of unknown length count as four iterations.
  static int64_t updatesOf(const Stmt &s) {
    if (isAtomicUpdate(s))
      return 1;
    int64_t result = 0;
    for (const StmtRef &child : s.body)
      result += updatesOf(*child);
    if (!isLoop(s) || result == 0)
      return result;
    auto counted = s.kind == StmtKind::For ? asCountedLoop(const_cast<Stmt &>(s)) : std::nullopt;
    if (!counted)
      return result * 4;
    const bool tells = anyStmt(s, [&](const Stmt &update) {
      return isAtomicUpdate(update) && namesPlace(update.expr->args[0], counted->var);
    });
    return tells ? result * std::min<int64_t>(counted->tripCount().value_or(4), 64) : result;
  }
  /// The address depends on the variable, and not only by a number that is read at an index of it.
  static bool namesPlace(const ExprRef &address, const std::string &variable) {
    const ExprRef &place = isUnary(address, "&") ? address->args[0] : address;
    const ExprRef &index = place->kind == ExprKind::Subscript ? place->args[1] : place;
    return mentions(rewrite(index, [](const ExprRef &e) { return isLoad(e) ? intLit(0) : nullptr; }), variable);
  }
  /// The loop's variable: the local that holds the index, if it stays what it is; its declaration goes.
  static std::pair<std::string, Type> takeIndex(Kernel &kernel, const KernelModel &model) {
    std::vector<StmtRef> &body = kernel.body->body;
    bool wide =
        anyExpr(*kernel.body, [](const ExprRef &e) { return isBuiltin(e, "globalIdx.x") && e->type.bytes == 8; });
    auto local = llvm::find_if(body, [&](const StmtRef &s) {
      return s->kind == StmtKind::Decl && s->type.isInt() && s->type.bytes >= 4 && s->expr && holdsIndex(s->expr) &&
             model.singleAssignment(s->text) && (!wide || s->type.bytes == 8);
    });
    if (local == body.end())
      return {freshName(kernel, "index"), wide ? Type::makeLong() : Type::makeUnsigned()};
    std::pair<std::string, Type> result = {(*local)->text, (*local)->type.withConst(false)};
    body.erase(local);
    return result;
  }

  struct Bound {
    std::string text;
    ExprRef end, guard;     ///< `guard` says no more than that the index is below `end`; null when it may say more
    bool constant, product; ///< it need not be tested that it is not negative; it is computed from factors
  };
  static bool hasProduct(const Poly &p) {
    return std::any_of(p.terms.begin(), p.terms.end(), [](const auto &term) { return term.first.size() > 1; });
  }

  /// The bound of all effects, and in `state` what makes it one.
  static std::optional<Bound> boundOf(const KernelModel &model, KernelState &state) {
    auto bound = globalUpperBound(model, 0);
    if (auto text = bound ? planText(model, *bound) : std::nullopt)
      return Bound{*text, polyExpr(model, *bound), nullptr, bound->constant().has_value(), hasProduct(*bound)};
    auto scaled = scaledUpperBound(model, 0);
    if (!scaled)
      return std::nullopt;
    Poly limit = model.poly(scaled->end);
    std::string end = *planText(model, limit), scale = std::to_string(scaled->scale);
    int64_t most = INT32_MAX - scaled->scale;
    state.require(threadsAlong(0) + " <= " + std::to_string(most / scaled->scale),
                  "the scaled index does not overflow");
    if (!limit.constant()) {
      state.require(end + " >= 0", "an empty range stays empty, whatever the signs of the types");
      state.require(end + " <= " + std::to_string(most), "rounding up does not overflow");
    }
    for (const std::string &name : namesIn(scaled->end))
      if (model.declaration(name)) // it would not be known before the loop
        return std::nullopt;
    ExprRef roundedUp = binary("/", add(scaled->end, intLit(scaled->scale - 1)), intLit(scaled->scale));
    return Bound{"ceildiv(" + end + ", " + scale + ")", roundedUp, scaled->guard, true, hasProduct(limit)};
  }

  static bool holdsIndex(const ExprRef &e) { return isBuiltin(withoutWideCasts(e), "globalIdx.x"); }
  /// What precedes the guard computes nothing that the loop's bound would leave out.
  static bool onlyDeclarations(const std::vector<StmtRef> &list) {
    return llvm::all_of(llvm::drop_end(list), [](const StmtRef &s) { return s->kind == StmtKind::Decl; });
  }
};
} // namespace

DEFINE_TRANSFORM(GridStride)
