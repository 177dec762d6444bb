//===- StageStrips.cpp - a loop along each thread's own row, strip by strip ===//
//
// stage-strips[kernel/loop]{tile=16}: a loop in which every thread walks along rows of its own, one element after the
// other, as in a recurrence or a scan of each row. Threads of a warp that do so touch as many lines as there are
// threads. So the block's threads copy a strip of all their rows into shared memory together, each goes on along its
// own there, and what they wrote goes back together.
//
// Example:
//   if (i < n) {                            __shared__ float x_strip[64][17];
//     float s = 0;                          if (i < n) {
//     for (int k = 0; k < m; k++) {           float s = 0;
//       s = 0.9f * s + x[i * m + k];          if (blockIdx.x * 64 + 64 <= n) {
//       x[i * m + k] = s;                       for (int k0 = 0; k0 < m; k0 += 16) {
//     }                                           __syncthreads();
//   }                                             … x_strip[r][c] = x[… + k0 + c]; …
//                                                 __syncthreads();
//                                                 … s = 0.9f * s + x_strip[threadIdx.x][lane];
//                                                 x_strip[threadIdx.x][lane] = s; …
//                                                 __syncthreads();
//                                                 … x[… + k0 + c] = x_strip[r][c]; …
//                                               }
//                                               __syncthreads();
//                                             } else {
//                                               …
//
// Legal: the block shape is fixed. The loop has step 1, threads do not meet in it, it is not left early, and its bounds
// are the same for all threads of a block. No loop is around it; the ifs around it are bounds on the indices of
// threads. Blocks of which all threads pass them take strips, other blocks run the loop as it was.
//
// An array is staged where every iteration makes all of the loop's accesses to it, at constant distances from the
// counter, in a row whose place is a parameter or constant times threadIdx.x. So a strip holds just what its
// iterations read, and what they write. An element that an earlier iteration of the strip has written is not copied
// in. The array does not overlap others of which one is written (proved, or a condition).
//
// Refuses: loops without such an array; elements of other sizes than 4 and 8 bytes; rows along which the threads of a
// warp have neighbouring elements. With what the kernel has already, shared memory is limited to 48 KiB.
//
//===----------------------------------------------------------------------===//
#include "OwnSlices.h"
#include "SharedTile.h"
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/PolyTrees.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

/// What the loop does along one array's rows. Iteration k accesses column k + distance, at `direction` times that.
struct Rows {
  std::string array, name; ///< `name`: in shared memory
  ExprRef root;
  Type type, element;
  ThreadIndex index;
  int64_t direction = 1;
  bool wideIndex = false;
  std::vector<std::pair<const Access *, int64_t>> accesses; ///< with their distances
  std::vector<int64_t> reads;
  std::optional<int64_t> write;
  int64_t first() const {
    int64_t least = INT64_MAX;
    for (const auto &[access, distance] : accesses)
      least = std::min(least, distance);
    return least;
  }
  int64_t last() const {
    int64_t greatest = INT64_MIN;
    for (const auto &[access, distance] : accesses)
      greatest = std::max(greatest, distance);
    return greatest;
  }
  int64_t lastRead() const { return *llvm::max_element(reads); }
  int64_t width(int64_t tile) const { return tile + last() - first(); }
  int64_t padded(int64_t tile) const { return width(tile) | 1; } // threads of a warp in banks of their own
  /// Columns of a strip that are copied in: none that the strip writes before it reads them.
  int64_t copiedIn(int64_t tile) const {
    int64_t columns = 0;
    for (int64_t read : reads)
      columns = std::max(columns, write && read < *write ? *write - first() : tile + read - first());
    return columns;
  }
};

class StripStager {
public:
  StripStager(KernelState &state, Kernel &kernel, Stmt &loop, const CountedLoop &counted, int64_t tile)
      : state(state), kernel(kernel), loop(loop), counted(counted), tile(tile), shape(state.pinnedBlock()),
        model(kernel, shape), taken(allNames(kernel)) {}

  llvm::Error run() {
    if (threadsMayMeet(loop, Kept::Order))
      return notApplicable("threads meet in the loop, or wait for each other");
    if (unsigned line = model.unknownOutsideLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    if (holdsKind(loop, {StmtKind::Break, StmtKind::Continue, StmtKind::Return}))
      return notApplicable("the loop may be left early");
    for (const ExprRef &bound : {counted.lower, counted.upper})
      if (!model.stable(bound) || model.varies(bound) & (AnyThread | FromMemory))
        return notApplicable("the loop's bounds differ between threads, or depend on data");
    findRows();
    if (all.empty())
      return notApplicable("threads walk along no rows of their own in every iteration{0}",
                           reason.empty() ? "" : ": " + reason);
    auto gate = findGate();
    if (!gate)
      return gate.takeError();
    std::map<std::string, bool> staged;
    for (const Rows &rows : all)
      staged[rows.array] = rows.write.has_value();
    if (llvm::Error e = requireStagedApart(state, model, &loop, staged))
      return e;
    int64_t bytes = sharedBytes(kernel);
    for (const Rows &rows : all)
      bytes += threads() * rows.padded(tile) * rows.type.bytes;
    if (bytes > int64_t(state.hints.maxSharedBytes))
      return notApplicable("{0} bytes of shared memory are too many", bytes);
    return rewrite(*gate);
  }

private:
  int64_t threads() const { return shape[0] * shape[1]; }
  /// Every strip has `tile` iterations.
  bool isWhole() const { return counted.tripCount().value_or(1) % tile == 0; }

  void findRows() {
    std::set<std::string> tried;
    for (const Access &access : model.accesses()) {
      if (!insideOf(access, &loop) || access.space != Space::Global || !tried.insert(access.array).second)
        continue;
      if (llvm::Error e = addRows(access.array))
        reason = llvm::toString(std::move(e));
    }
  }

  llvm::Error addRows(const std::string &array) {
    Rows rows;
    rows.array = array;
    for (const Access &access : model.accesses())
      if (access.array == array && insideOf(access, &loop))
        if (llvm::Error e = addAccess(rows, access))
          return e;
    if (rows.last() - rows.first() > tile)
      return notApplicable("the loop accesses elements of {0} that are far apart", array);
    all.push_back(std::move(rows));
    return llvm::Error::success();
  }

  llvm::Error addAccess(Rows &rows, const Access &access) {
    const unsigned line = access.stmt->line;
    const Type type = access.node->type.unqualified();
    if (!model.param(access.array) || access.subscripts.size() != 1 || access.place != access.node || access.atomic ||
        access.node->kind != ExprKind::Subscript || access.node->type.isVolatile ||
        (!type.isInt() && !type.isFloat()) || type.isHalf || (type.bytes != 4 && type.bytes != 8))
      return notApplicable("{0} is no array of numbers of 4 or 8 bytes (line {1})", access.array, line);
    const bool isStatement = access.stmt->kind == StmtKind::Expr || access.stmt->kind == StmtKind::Decl;
    if (!isStatement || access.path.back() != loop.body[0].get() || !access.stmt->expr ||
        !isCertain(access.stmt->expr, access.node))
      return notApplicable("not every iteration accesses {0} (line {1})", access.array, line);
    const auto index = splitByThread(model, access.subscripts[0]);
    const auto along = index ? index->rest.coefficient(counted.var) : std::nullopt;
    const auto direction = along ? along->constant() : std::nullopt;
    const auto offset =
        direction ? (index->rest - Poly(*direction) * Poly::atom(counted.var)).constant() : std::nullopt;
    if (!offset || std::abs(*direction) != 1 || index->ofBlock.mentions(counted.var))
      return notApplicable("{0} is not accessed along a row (line {1})", access.array, line);
    if (index->perThread.constant() && std::abs(*index->perThread.constant()) < 2)
      return notApplicable("neighbouring threads access neighbouring elements of {0} (line {1})", access.array, line);
    if (!rows.accesses.empty() && (*direction != rows.direction || !(index->perThread == rows.index.perThread) ||
                                   !(index->perRow == rows.index.perRow) || !(index->ofBlock == rows.index.ofBlock)))
      return notApplicable("a thread walks along several rows of {0} (line {1})", access.array, line);
    const int64_t distance = *direction * *offset;
    if (access.write && rows.write && *rows.write != distance)
      return notApplicable("an iteration writes several elements of {0} (line {1})", access.array, line);
    rows.root = access.root;
    rows.type = type;
    rows.element = access.node->type;
    rows.index = *index;
    rows.direction = *direction;
    rows.wideIndex |= access.wideIndex;
    rows.accesses.emplace_back(&access, distance);
    if (access.read)
      rows.reads.push_back(distance);
    if (access.write)
      rows.write = distance;
    return llvm::Error::success();
  }

  /// Whether all threads of a block come to the loop.
  llvm::Expected<ExprRef> findGate() const {
    const Access &access = *all.front().accesses.front().first;
    for (const Stmt *s : access.path) {
      if (s == &loop)
        break;
      if (s->kind != StmtKind::Block && s->kind != StmtKind::If)
        return notApplicable("a loop is around it (line {0})", s->line);
    }
    std::vector<Poly> facts;
    for (const Guard &guard : conjunctsOf(access.guards)) {
      if (guard.second && isLoopHeader(access, guard.first))
        continue;
      auto own = factsOfBlock(model, guard);
      if (!own)
        return notApplicable("a condition around the loop is no bound on the indices of threads");
      llvm::append_range(facts, *own);
    }
    return holdsForBlock(model, facts, /*next=*/false);
  }

  ExprRef shared(const Rows &rows, const ExprRef &thread, const ExprRef &column) const {
    return subscript(subscript(var(rows.name, rows.type), thread, rows.type), column, rows.type);
  }

  /// Copies `columns` columns of the strip, from `from` on: into shared memory, or back.
  StmtRef copy(const Rows &rows, bool back, const std::string &tid, const std::string &strip) {
    const int64_t columns = back ? tile : rows.copiedIn(tile), from = back ? *rows.write - rows.first() : 0;
    const Poly start = Poly::atom(strip) + Poly(rows.first() + from);
    return takeTurns(model, taken, tid, columns, FullUnroll, [&](const std::string &row, const std::string &column) {
      const ExprRef c = var(column, Type::makeInt());
      const ExprRef index = indexInRow(model, rows.index.ofBlock + Poly(rows.direction) * (start + Poly::atom(column)),
                                       rows.index.perThread, rows.index.perRow, row);
      const ExprRef global = subscript(rows.root, rows.wideIndex ? wideExpr(index) : index, rows.element);
      const ExprRef there = shared(rows, var(row, Type::makeInt()), add(c, intLit(from)));
      StmtRef move = exprStmt(back ? assign("=", global, there) : assign("=", there, global));
      if (isWhole())
        return move;
      // No more than iterations access.
      const int64_t span = back ? 0 : rows.lastRead() - rows.first();
      return ifStmt(lessThan(add(var(strip, counted.type), c), add(counted.upper, intLit(span))), block({move}));
    });
  }

  llvm::Error rewrite(const ExprRef &gate) {
    const auto place = findPlace(*kernel.body, &loop);
    const StmtRef original = place->block->body[place->index], plain = gate ? clone(original) : nullptr;
    if (plain && !renameDeclarations(*plain, taken))
      return notApplicable("verbatim text names a variable of the loop, which is needed twice");
    const std::string strip = freshName(taken, counted.var + "0"), lane = freshName(taken, "lane"),
                      tid = freshName(taken, "tid");
    // Loops may share a counter's name, as those that copy strips do; a declaration may not.
    const std::string counter = freshName(taken, counted.var);
    const ExprRef thread = linearThread(shape), first = var(strip, counted.type), at = var(lane, Type::makeInt());
    std::vector<StmtRef> declarations, in, out;
    std::map<const Expr *, ExprRef> replacement;
    for (Rows &rows : all) {
      rows.name = stagedName(taken, rows.array, "_strip");
      declarations.push_back(sharedArray(rows.name, rows.type, {intLit(threads()), intLit(rows.padded(tile))}));
      if (!rows.reads.empty())
        in.push_back(copy(rows, /*back=*/false, tid, strip));
      if (rows.write)
        out.push_back(copy(rows, /*back=*/true, tid, strip));
      for (const auto &[access, distance] : rows.accesses)
        replacement[access->place.get()] = shared(rows, thread, add(at, intLit(distance - rows.first())));
    }
    const ExprRef k = var(counter, counted.type);
    replaceNodes(*loop.body[0], replacement);
    substitute(*loop.body[0], {{counted.var, k}});
    std::vector<StmtRef> iteration = loop.body[0]->body;
    if (anyExpr(*loop.body[0], [&](const ExprRef &e) { return isVar(e, counter); }))
      iteration.insert(iteration.begin(), declStmt(counter, counted.type.withConst(true), add(first, at)));
    if (!isWhole())
      iteration = {ifStmt(lessThan(add(first, at), counted.upper), block(std::move(iteration)))};
    std::vector<StmtRef> body = {barrierStmt()};
    if (!in.empty()) {
      llvm::append_range(body, in);
      body.push_back(barrierStmt());
    }
    body.push_back(
        countedFor(lane, Type::makeInt(), intLit(0), intLit(tile), 1, block(std::move(iteration)), NoUnroll));
    if (!out.empty()) {
      body.push_back(barrierStmt());
      llvm::append_range(body, out);
    }
    StmtRef strips =
        countedFor(strip, counted.type, counted.lower, counted.upper, tile, block(std::move(body)), NoUnroll);
    strips->line = loop.line;
    std::vector<StmtRef> staged = {declStmt(tid, Type::makeInt().withConst(true), thread), strips};
    if (!out.empty())
      staged.push_back(barrierStmt()); // what the thread reads of it later, another one wrote
    if (gate)
      staged = {ifStmt(gate, block(std::move(staged)), block({plain}))};
    std::vector<StmtRef> &list = place->block->body;
    const auto here = list.erase(list.begin() + long(place->index));
    list.insert(here, staged.begin(), staged.end());
    kernel.body->body.insert(kernel.body->body.begin(), declarations.begin(), declarations.end());
    return llvm::Error::success();
  }

  KernelState &state;
  Kernel &kernel;
  Stmt &loop;
  const CountedLoop counted;
  const int64_t tile; ///< iterations of a strip
  const std::array<int64_t, 3> shape;
  const KernelModel model;
  std::set<std::string> taken;
  std::vector<Rows> all;
  std::string reason;
};

class StageStrips : public Transform {
public:
  llvm::StringRef name() const override { return "stage-strips"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    if (state.isPinned())
      for (const auto &[path, loop] : countedLoops(*state.tree))
        offer(result, state, path, {{{"tile", "16"}}, {{"tile", "32"}}, {{"tile", "8"}}});
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override {
    const std::array<int64_t, 3> shape = state.pinnedBlock();
    if (!shape[0] || !shape[1] || shape[2] != 1)
      return notApplicable("{0}", shapeIsOpen);
    const int64_t tile = paramInt(params, "tile", 16);
    if (tile < 4 || tile > 64)
      return notApplicable("the tile must be 4 to 64");
    auto kernel = state.tree->clone();
    if (llvm::Error e = requireConstantParameters(*kernel))
      return std::move(e);
    if (llvm::Error e = removeReturns(*kernel))
      return std::move(e);
    Stmt *loop = findLoop(*kernel, site);
    auto counted = loop ? asCountedLoop(*loop) : std::nullopt;
    if (!counted || counted->step != 1 || loop->unroll != NoUnroll)
      return notApplicable("there is no counted loop '{0}' of step 1 that is not unrolled", site);
    if (counted->type.bytes < 4)
      return notApplicable("the loop's counter is too narrow");
    if (counted->tripCount().value_or(tile) < tile)
      return notApplicable("the loop has no whole strip");
    KernelState result = state.withTree(kernel);
    if (llvm::Error e = StripStager(result, *kernel, *loop, *counted, tile).run())
      return std::move(e);
    return result;
  }
};

} // namespace

DEFINE_TRANSFORM(StageStrips)
