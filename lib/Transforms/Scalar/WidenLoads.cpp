//===- WidenLoads.cpp - a thread's adjacent inputs, 16 bytes at once ------===//
//
// widen-loads[kernel:A]: where a loop over a thread's copies loads neighbouring elements of A one by one, four of them
// are loaded at once before the loop. A warp then asks for whole lines with a quarter of the instructions.
//
// Example:
//   for (int ix = 0; ix < 4; ++ix) {        float a_lanes[4];
//     s[ix] += v * a[k * n + (j + ix)];     for (int piece = 0; piece < 4; piece += 4) {
//   }                                         float4 a_piece = *(const float4 *)&a[k * n + (j + piece)];
//                                             a_lanes[piece] = a_piece.x;
//                                             …
//                                           }
//                                           for (int ix = 0; ix < 4; ++ix) {
//                                             s[ix] += v * a_lanes[ix];
//                                           }
//                                           // when aligned(a, 16), n % 4 == 0
//
// Legal: all four elements are inside each bound, or none is, and they begin at a multiple of 16 bytes, as for
// `widen-stores`. The loop does not write A, and what it writes does not overlap A (proved, or a condition). Where the
// elements lie does not change within the loop.
//
// Refuses: elements that do not have 4 bytes; loads that an iteration may skip by other conditions than bounds of the
// index, or within an expression; pieces or bounds that begin elsewhere (`x[i + 1]`).
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "VectorPieces.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {
class WidenLoads : public Transform {
public:
  llvm::StringRef name() const override { return "widen-loads"; }
  std::vector<ActionTemplate> sites(const KernelState &state) const override;
  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override;
};
} // namespace

/// The counted loop over copies that an access stands in, directly or under one guard.
static std::optional<PieceLoop> loopAround(const Access &access) {
  for (const Stmt *s : llvm::reverse(access.path)) {
    Stmt &loop = const_cast<Stmt &>(*s);
    if (!isLoop(loop))
      continue;
    auto counted = asLoopOverPieces(loop);
    if (!counted)
      return std::nullopt;
    auto standsIn = [&](const Stmt &list) {
      return llvm::any_of(list.body, [&](const StmtRef &child) { return child.get() == access.stmt; });
    };
    if (standsIn(*loop.body[0]))
      return PieceLoop{&loop, *counted, &access, nullptr};
    const Stmt *inner = onlyStatement(*loop.body[0]);
    if (inner && inner->kind == StmtKind::If && inner->body.size() == 1 && standsIn(*inner->body[0]))
      return PieceLoop{&loop, *counted, &access, inner->expr};
    return std::nullopt;
  }
  return std::nullopt;
}

/// Loads of the array at elements that neighbour each other from copy to copy.
static std::vector<PieceLoop> findLoads(const KernelModel &model, llvm::StringRef array) {
  std::vector<PieceLoop> result;
  for (const Access &access : model.accesses()) {
    if (access.array != array || !access.read || access.write || access.subscripts.size() != 1)
      continue;
    auto found = loopAround(access);
    auto step = found ? access.subscripts[0].coefficient(found->counted.var) : std::nullopt;
    if (step && *step == Poly(1))
      result.push_back(*found);
  }
  return result;
}

/// That four loads may be one, before the loop.
static llvm::Error checkLoad(KernelState &state, const KernelModel &model, const PieceLoop &found,
                             Multiples &multiples) {
  const Access &load = *found.access;
  if (!isPieceElement(model, load) || load.node->args[0]->kind != ExprKind::Var)
    return notApplicable("{0} is no parameter with elements of 4 bytes", load.array);
  const std::string &variable = found.counted.var;
  if (hasBarrier(*found.loop) ||
      holdsKind(*found.loop, {StmtKind::Break, StmtKind::Continue, StmtKind::Return, StmtKind::Opaque}))
    return notApplicable("the loop may be left early, or threads meet in it (line {0})", found.loop->line);
  auto isPlain = [](const ExprRef &e) { return onlyComputes(e) && !anyNode(e, isLoad); };
  if (!isPlain(load.node->args[1]) || (found.guard && !isPlain(found.guard)) ||
      model.dependsOn(load.subscripts[0] - Poly::atom(variable), {variable}))
    return notApplicable("where {0} is loaded depends on more than the loop (line {1})", load.array, load.stmt->line);
  const bool isStatement = load.stmt->kind == StmtKind::Expr || load.stmt->kind == StmtKind::Decl;
  if (!isStatement || !load.stmt->expr || !isCertain(load.stmt->expr, load.node))
    return notApplicable("line {0} loads {1} only where it has to", load.stmt->line, load.array);
  if (llvm::Error e = requireWholePieces(model, found, multiples))
    return e;
  const std::set<std::string> declared = namesDeclaredIn(*found.loop->body[0]);
  const std::map<std::string, unsigned> changed = countChanges(*found.loop->body[0]);
  std::set<std::string> names = namesIn(load.node->args[1]);
  if (found.guard)
    names.merge(namesIn(found.guard));
  for (const std::string &name : names)
    if (declared.count(name) || changed.count(name))
      return notApplicable("'{0}', which says where {1} is loaded, changes in the loop", name, load.array);
  for (const Access &write : model.accesses()) {
    if (!write.write || write.space != Space::Global || !insideOf(write, found.loop))
      continue;
    if (write.array == load.array)
      return notApplicable("the loop writes {0} as well (line {1})", load.array, write.stmt->line);
    if (llvm::Error e = requireDisjoint(state, model, write.array, load.array))
      return e;
  }
  return llvm::Error::success();
}

llvm::Expected<KernelState> WidenLoads::apply(const KernelState &state, llvm::StringRef site, const Params &) const {
  llvm::StringRef array = site;
  if (!array.consume_front(":") || array.empty())
    return notApplicable("no array is named");
  auto kernel = state.tree->clone();
  KernelModel model(*kernel, state.pinnedBlock());
  if (unsigned line = model.unknownOutsideLine())
    return notApplicable("line {0} may access memory in ways that are not understood", line);
  std::vector<PieceLoop> found = findLoads(model, array);
  if (found.empty())
    return notApplicable("no unrolled loop over a thread's outputs loads neighbouring elements of {0}", array);
  KernelState result = state;
  const std::map<std::string, int64_t> none;
  Multiples multiples(model, none, pieceWidth);
  for (const PieceLoop &load : found)
    if (llvm::Error e = checkLoad(result, model, load, multiples))
      return std::move(e);
  requireAligned(result, array.str(), "read", multiples);

  std::set<std::string> taken = allNames(*kernel);
  std::vector<std::pair<const PieceLoop *, ExprRef>> made; // with what stands for the load in the loop
  for (const PieceLoop &one : found) {
    const auto &[loop, counted, load, guard] = one;
    const ExprRef element = load->node;
    auto known = llvm::find_if(made, [&, &loop = loop](const auto &other) {
      return other.first->loop == loop && equal(other.first->access->node, element);
    });
    if (known != made.end()) {
      replaceNodes(*loop, {{element.get(), known->second}});
      continue;
    }
    const Type type = element->type.unqualified(), vector = vectorType(type);
    const std::string lanes = freshName(taken, array.str() + "_lanes"),
                      piece = freshName(taken, array.str() + "_piece"), first = freshName(taken, "first");
    const ExprRef from = var(first, counted.type);
    auto atFirst = [&, &counted = counted](const ExprRef &e) { return substitute(e, {{counted.var, from}}); };
    std::vector<StmtRef> stmts = {declStmt(piece, vector, reinterpreted(atFirst(element), vector, /*isConst=*/true))};
    for (int64_t lane = 0; lane < pieceWidth; ++lane)
      stmts.push_back(exprStmt(assign("=", subscript(var(lanes, type), add(from, intLit(lane)), type),
                                      memberExpr(var(piece, vector), std::string(1, "xyzw"[lane]), type, 4 * lane))));
    StmtRef body = guard ? block({ifStmt(atFirst(guard), block(stmts))}) : block(stmts);
    StmtRef loads = countedFor(first, counted.type, intLit(0), counted.upper, pieceWidth, body, FullUnroll);
    auto place = findPlace(*kernel->body, loop);
    std::vector<StmtRef> &list = place->block->body;
    list.insert(list.begin() + ptrdiff_t(place->index), {declStmt(lanes, type, nullptr, {counted.upper}), loads});
    made.push_back({&one, subscript(var(lanes, type), var(counted.var, counted.type), type)});
    replaceNodes(*loop, {{element.get(), made.back().second}});
  }
  result.tree = kernel;
  return result;
}

std::vector<ActionTemplate> WidenLoads::sites(const KernelState &state) const {
  std::vector<ActionTemplate> result;
  if (!state.pinnedBlock()[0])
    return result;
  std::set<std::string> arrays;
  const KernelModel model(*state.tree, state.pinnedBlock());
  for (const Access &access : model.accesses())
    if (access.read && !access.write && access.space == Space::Global && loopAround(access))
      arrays.insert(access.array);
  for (const std::string &array : arrays)
    offer(result, state, ":" + array, {{}});
  return result;
}

DEFINE_TRANSFORM(WidenLoads)
