//===- WidenStores.cpp - a thread's adjacent outputs, 16 bytes at once ----===//
//
// widen-stores[kernel:C]: where a loop over a thread's copies stores neighbouring elements of C one by one, it stores
// four of them at once. The results of a register tile then leave in whole sectors.
//
// Example:
//   for (int ix = 0; ix < 4; ++ix) {        for (int ix = 0; ix < 4; ix += 4) {
//     if (row < m && col + ix < n) {          if (row < m && col + ix < n) {
//       c[row * n + (col + ix)] = s[ix];        *(float4 *)&c[row * n + (col + ix)] = make_float4(s[ix], s[ix + 1], …);
//     }                                       }
//   }                                       }
//                                           // when aligned(c, 16), n % 4 == 0
//
// Legal: all four elements are inside each bound, or none is, and they begin at a multiple of 16 bytes. Bounds and the
// rest of the index are multiples of four, which is proved, or a condition on parameters and on the address of C. The
// values are pure. Of C they read the stored element alone, and the other arrays they read do not overlap C (proved, or
// a condition). So it changes nothing to compute all four values before the store.
//
// Refuses: elements that do not have 4 bytes; conditions that are not bounds of the index (`x[i] > 0`); pieces or
// bounds that begin elsewhere (`y[i + 1]`, `i > 0`).
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "VectorPieces.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

class WidenStores : public Transform {
public:
  llvm::StringRef name() const override { return "widen-stores"; }
  std::vector<ActionTemplate> sites(const KernelState &state) const override;
  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override;
};

/// for v: if (guard) element = value;
std::vector<PieceLoop> findStores(Kernel &kernel, const KernelModel &model, llvm::StringRef array) {
  std::vector<PieceLoop> result;
  walk(*kernel.body, [&](Stmt &s) {
    auto counted = asLoopOverPieces(s);
    if (!counted)
      return;
    const Stmt *inner = onlyStatement(*s.body[0]);
    ExprRef guard;
    if (inner && inner->kind == StmtKind::If && inner->body.size() == 1) {
      guard = inner->expr;
      inner = onlyStatement(*inner->body[0]);
    }
    if (!inner || inner->kind != StmtKind::Expr)
      return;
    for (const Access &access : model.accesses())
      if (access.stmt == inner && access.write && access.array == array && inner->expr->kind == ExprKind::Assign &&
          inner->expr->text == "=" && inner->expr->args[0] == access.node)
        result.push_back({&s, *counted, &access, guard});
  });
  return result;
}

class Widener {
public:
  Widener(KernelState &state, const KernelModel &model)
      : state(state), model(model), multiples(model, known, pieceWidth) {}

  llvm::Error check(const PieceLoop &found);
  const Multiples &allMultiples() const { return multiples; }

private:
  llvm::Error checkValue(const PieceLoop &found);

  KernelState &state;
  const KernelModel &model;
  const std::map<std::string, int64_t> known;
  Multiples multiples;
};

llvm::Error Widener::checkValue(const PieceLoop &found) {
  const Access &store = *found.access;
  if (anyNode(store.stmt->expr->args[1],
              [&](const ExprRef &e) { return !(e->pure && !isChange(e) && e->kind != ExprKind::Opaque); }))
    return notApplicable("what is stored has effects (line {0})", store.stmt->line);
  for (const Access &read : model.accesses()) {
    if (read.stmt != store.stmt || read.write || read.space != Space::Global)
      continue;
    if (read.array != store.array) {
      if (llvm::Error e = requireDisjoint(state, model, read.array, store.array))
        return e;
    } else if (read.subscripts != store.subscripts) {
      return notApplicable("what is stored depends on other elements of {0} (line {1})", store.array, store.stmt->line);
    }
  }
  return llvm::Error::success();
}

llvm::Error Widener::check(const PieceLoop &found) {
  const Access &store = *found.access;
  if (!isPieceElement(model, store))
    return notApplicable("{0} is no parameter with elements of 4 bytes", store.array);
  const std::string &variable = found.counted.var;
  auto step = store.subscripts[0].coefficient(variable);
  if (!step || !(*step == Poly(1)))
    return notApplicable("the loop over '{0}' does not store neighbouring elements of {1}", variable, store.array);
  if (llvm::Error e = requireWholePieces(model, found, multiples))
    return e;
  return checkValue(found);
}

llvm::Expected<KernelState> WidenStores::apply(const KernelState &state, llvm::StringRef site, const Params &) const {
  llvm::StringRef array = site;
  if (!array.consume_front(":") || array.empty())
    return notApplicable("no array is named");
  auto kernel = state.tree->clone();
  KernelModel model(*kernel, state.pinnedBlock());
  std::vector<PieceLoop> found = findStores(*kernel, model, array);
  if (found.empty())
    return notApplicable("no unrolled loop over a thread's outputs stores to {0} alone", array);
  KernelState result = state;
  Widener widener(result, model);
  for (const PieceLoop &loop : found)
    if (llvm::Error e = widener.check(loop))
      return std::move(e);
  requireAligned(result, array.str(), "written", widener.allMultiples());
  for (const PieceLoop &loop : found) {
    Expr store = *loop.access->stmt->expr;
    const Type element = store.args[0]->type;
    ExprRef variable = var(loop.counted.var, loop.counted.type);
    std::vector<ExprRef> values;
    for (int64_t i = 0; i < pieceWidth; ++i)
      values.push_back(substitute(store.args[1], {{loop.counted.var, add(variable, intLit(i))}}));
    Type type = vectorType(element);
    StmtRef stored = exprStmt(assign("=", reinterpreted(store.args[0], type, /*isConst=*/false),
                                     callOf("make_" + type.text, values, type, /*pure=*/true)));
    StmtRef body = loop.guard ? ifStmt(loop.guard, stored) : stored;
    auto place = findPlace(*kernel->body, loop.loop);
    place->block->body[place->index] = countedFor(loop.counted.var, loop.counted.type, intLit(0), loop.counted.upper,
                                                  pieceWidth, block({body}), FullUnroll);
  }
  result.tree = kernel;
  return result;
}

std::vector<ActionTemplate> WidenStores::sites(const KernelState &state) const {
  std::vector<ActionTemplate> result;
  if (!state.pinnedBlock()[0])
    return result;
  std::set<std::string> arrays;
  const KernelModel model(*state.tree, state.pinnedBlock());
  for (const Access &access : model.accesses())
    if (access.write && access.space == Space::Global)
      arrays.insert(access.array);
  for (const std::string &array : arrays)
    offer(result, state, ":" + array, {{}});
  return result;
}
} // namespace

DEFINE_TRANSFORM(WidenStores)
