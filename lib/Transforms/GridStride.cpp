//===- GridStride.cpp - a fixed grid whose threads take turns -------------===//
//
// grid-stride[kernel]{x=256,blocks=1056}: launches so many blocks of x threads, and each thread does the work of every
// (blocks * x)-th original one, in a loop. Fewer, longer threads: what a block does once (a shared table, one atomic for
// many) is shared by more work, and the loop can be unrolled.
//
// Legal: as for block-shape, along x alone, when every effect stands under `global index < U`; the loop then ends at U.
// Under `c * global index < U` it ends at U / c, rounded up, for launches where the product does not overflow.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"
#include <algorithm>

using namespace optiml;

namespace {
class GridStride : public Transform {
public:
  llvm::StringRef name() const override { return "grid-stride"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    static const std::vector<std::array<int64_t, 2>> shapes = {{256, 8}, {512, 4}, {256, 16}, {1024, 2}, {256, 4}, {128, 8}};
    std::vector<Params> offers;
    for (auto [x, blocks] : shapes)
      offers.push_back({{"x", std::to_string(x)}, {"blocks", std::to_string(blocks * state.hints.multiprocessors)}});
    return kernelSite(*this, state, offers);
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    int64_t x = paramInt(params, "x", 256), blocks = paramInt(params, "blocks", 8 * state.hints.multiprocessors);
    if (x < 1 || x > state.hints.maxThreads || blocks < 1 || blocks > 1 << 20)
      return notApplicable("{0} blocks of {1} threads cannot be launched", blocks, x);
    KernelState result = state;
    auto made = remappable(result, 1, x);
    if (!made)
      return made.takeError();
    std::shared_ptr<Kernel> kernel = *made;
    KernelModel model(*kernel, {0, 0, 0});
    auto found = boundOf(model, result);
    if (!found)
      return notApplicable("nothing bounds the global index of all that the kernel does");
    const auto &[text, end, guard, constant, product] = *found;

    // The loop's variable: the local that holds the index, if it stays what it is.
    Type type = Type::makeInt();
    std::string index;
    std::vector<StmtRef> &body = kernel->body->body;
    bool wide = false;
    walkExprs(*kernel->body, [&](const ExprRef &e) {
      wide |= e->kind == ExprKind::Builtin && e->text == "globalIdx.x" && e->type.bytes == 8;
    });
    for (size_t i = 0; i < body.size(); ++i)
      if (body[i]->kind == StmtKind::Decl && body[i]->type.isInt() && body[i]->type.bytes >= 4 && body[i]->expr && holdsIndex(body[i]->expr) &&
          model.singleAssignment(body[i]->text)) {
        if (wide && body[i]->type.bytes != 8)
          continue;
        index = body[i]->text;
        type = body[i]->type;
        type.isConst = false;
        body.erase(body.begin() + long(i));
        break;
      }
    if (index.empty()) {
      index = freshName(*kernel, "index");
      type = wide ? Type::makeLong() : Type::makeInt();
      if (!wide)
        type = Type::makeUnsigned();
    }
    int64_t step = x * blocks;
    if (!constant)
      result.require(text + " >= 0", "an empty range stays empty, whatever the signs of the types");
    if (type.bytes == 8 && product)
      result.require(text + " <= " + std::to_string(INT32_MAX), "the bound does not overflow in the types of its factors");
    if (type.bytes == 4)
      result.require(text + " <= " + std::to_string((type.isSigned ? INT32_MAX : int64_t(UINT32_MAX)) - step),
                     "the loop's counter does not overflow");
    ExprRef variable = var(index, type);
    ExprRef start = globalIndexExpr(0, x);
    if (type.bytes == 8) {
      start = add(mul(castTo(type, builtin("blockIdx.x")), intLit(x)), builtin("threadIdx.x"));
    }
    // The guard that becomes the loop's condition.
    std::vector<StmtRef> inner = std::move(body);
    bool implied = !inner.empty() && inner.back()->kind == StmtKind::If && inner.back()->body.size() == 1 && guard &&
                   equal(inner.back()->expr, guard) && onlyDeclarations(inner);
    kernel->body->body = inner;
    rewriteExprs(*kernel->body, [&](const ExprRef &e) -> ExprRef {
      if (e->kind != ExprKind::Builtin || e->text != "globalIdx.x")
        return nullptr;
      if (e->type.bytes == type.bytes && e->type.isSigned == type.isSigned)
        return variable;
      return castTo(e->type, variable); // the index was of another type here
    });
    inner = kernel->body->body;
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
    launch.grid = {IntExpr::literal(blocks), IntExpr::literal(1), IntExpr::literal(1)};
    launch.block = {IntExpr::literal(x), IntExpr::literal(1), IntExpr::literal(1)};
    kernel->maxThreads = unsigned(x);
    result.tree = kernel;
    return result;
  }

private:
  struct Bound {
    std::string text;
    ExprRef end, guard; ///< `guard` says no more than that the index is below `end`; null when it may say more
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
    state.require(threadsAlong(0) + " <= " + std::to_string(most / scaled->scale), "the scaled index does not overflow");
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

  static bool holdsIndex(ExprRef e) {
    while (e->kind == ExprKind::Cast && e->type.isInt() && e->type.bytes >= 4)
      e = e->args[0];
    return e->kind == ExprKind::Builtin && e->text == "globalIdx.x";
  }
  /// What precedes the guard computes nothing that the loop's bound would leave out.
  static bool onlyDeclarations(const std::vector<StmtRef> &list) {
    for (size_t i = 0; i + 1 < list.size(); ++i)
      if (list[i]->kind != StmtKind::Decl)
        return false;
    return true;
  }
};
} // namespace

const Transform *optiml::makeGridStride() {
  static const GridStride transform;
  return &transform;
}
