//===- TransposeThroughShared.cpp - coalesced on both sides ---------------===//
//
// transpose-through-shared[kernel]{tile=32,rows=8}: for kernels whose result, or whose operands, lie across their
// threads, as in a transposition. A block of 32x8 threads computes a tile of 32x32 results into shared memory and
// stores it from there with x and y in exchanged roles. Or it computes them in exchanged roles and stores them as
// before. Both sides are then coalesced. The rows of the tile are one element longer, which avoids bank conflicts.
//
// Example:
//   int x = …, y = …;                __shared__ float out_tile[32][33];
//   if (x < w && y < h)              for (int k = 0; k < 32; k += 8) {
//     out[x * h + y] =                 int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y + k;
//         in[y * w + x];               if (x < w && y < h)
//                                        out_tile[threadIdx.y + k][threadIdx.x] = in[y * w + x];
//                                    }
//                                    __syncthreads();
//                                    for (int k = 0; k < 32; k += 8) {
//                                      int x1 = blockIdx.x * 32 + threadIdx.y + k, y1 = blockIdx.y * 32 + threadIdx.x;
//                                      if (x1 < w && y1 < h)
//                                        out[x1 * h + y1] = out_tile[threadIdx.x][threadIdx.y + k];
//                                    }
//
// Legal: as for `block-shape`, for the axes x and y. One assignment, the last statement, is the only effect. Where it
// goes depends on indices and parameters, through single assignments and the ifs around it. Each thread of a block
// stores what another one computed, under that one's guards. What an original thread reads it still reads before it
// writes; what two threads touch was a data race already.
//
// Refuses: a second effect, `+=`, elements of class type, and kernels that use z.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Canonicalize/GlobalIndex.h"

using namespace optiml;

namespace {

/// The store that ends a kernel, and what decides whether it happens.
struct FinalStore {
  Stmt *stmt = nullptr;
  std::vector<ExprRef> conditions; ///< of the ifs around it
};

/// How the tile is filled, and how it is written back.
struct Halves {
  int64_t tile, rows;
  std::string name, counter; ///< of the tile, and of the loop over what a thread has of it
  Type type;

  /// A thread's element: where the roles are exchanged, threadIdx.x is its row.
  ExprRef element(bool exchanged) const {
    ExprRef across = builtin("threadIdx.x"), along = builtin("threadIdx.y");
    if (tile != rows)
      along = add(along, var(counter, Type::makeInt()));
    ExprRef row = subscript(var(name, type), exchanged ? across : along, type);
    return subscript(row, exchanged ? along : across, type);
  }
  void lower(Kernel &half, bool exchanged) const {
    lowerGlobalIndex(half, [&](unsigned axis) {
      bool byThreadX = (axis == 0) != exchanged;
      ExprRef first =
          add(mul(axisBuiltin("blockIdx", axis), intLit(tile)), builtin(byThreadX ? "threadIdx.x" : "threadIdx.y"));
      return byThreadX || tile == rows ? first : add(first, var(counter, Type::makeInt()));
    });
  }
  StmtRef steps(StmtRef body) const {
    if (tile == rows)
      return body;
    return block({countedFor(counter, Type::makeInt(), intLit(0), intLit(tile), rows, std::move(body), FullUnroll)});
  }
};

class TransposeThroughShared : public Transform {
public:
  llvm::StringRef name() const override { return "transpose-through-shared"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    return kernelSite(
        *this, state,
        {{{"tile", "32"}, {"rows", "8"}}, {{"tile", "32"}, {"rows", "4"}}, {{"tile", "32"}, {"rows", "16"}}});
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    int64_t tile = paramInt(params, "tile", 32), rows = paramInt(params, "rows", 8);
    if (tile < 8 || tile > 64 || rows < 1 || tile % rows || tile * rows > state.hints.maxThreads)
      return notApplicable("a tile of {0}x{0} cannot be worked on by {0}x{1} threads", tile, rows);
    KernelState result = state;
    auto made = remappable(result, 2, tile * rows);
    if (!made)
      return made.takeError();
    std::shared_ptr<Kernel> kernel = *made;
    KernelModel model(*kernel, {0, 0, 0});
    if (unsigned line = model.unknownEffectLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    auto store = finalStore(*kernel->body);
    if (!store)
      return store.takeError();

    auto sides = sidesOf(model, *store->stmt);
    if (!sides)
      return sides.takeError();
    const ExprRef &assignment = store->stmt->expr;
    Type element = assignment->args[0]->type.unqualified();
    int64_t bytes = tile * (tile + 1) * element.bytes;
    if (element.cls == Type::Class::Record || element.cls == Type::Class::Other ||
        bytes > int64_t(state.hints.maxSharedBytes))
      return notApplicable("its results cannot be held in shared memory");

    setLaunch(result, model, tile, rows);
    // The two halves. x is what the tile's rows run along; where their roles are exchanged, a thread's x takes y's
    // place.
    std::set<std::string> taken = allNames(*kernel);
    bool named = sides->written->root->kind == ExprKind::Var;
    const Halves halves{tile, rows, freshName(taken, (named ? sides->written->array : "result") + "_tile"),
                        freshName(taken, "k"), element};
    auto secondBody = storing(*kernel, model, *store, assignment->args[0]);
    if (!secondBody)
      return secondBody.takeError();
    Kernel second = *kernel;
    second.body = *secondBody;
    if (!renameDeclarations(*second.body, taken))
      return notApplicable("its guards are not understood");
    store->stmt->expr = assign("=", halves.element(!sides->storeAcross), assignment->args[1]);
    walk(*second.body, [&](Stmt &s) {
      if (s.kind == StmtKind::Expr)
        s.expr = assign("=", s.expr->args[0], halves.element(sides->storeAcross));
    });
    halves.lower(*kernel, !sides->storeAcross);
    halves.lower(second, sides->storeAcross);
    std::vector<StmtRef> body = {sharedArray(halves.name, element, {intLit(tile), intLit(tile + 1)})};
    llvm::append_range(body, halves.steps(kernel->body)->body);
    body.push_back(barrierStmt());
    llvm::append_range(body, halves.steps(second.body)->body);
    kernel->body = block(std::move(body));
    kernel->maxThreads = unsigned(tile * rows);
    result.tree = kernel;
    return result;
  }

private:
  struct Sides {
    const Access *written = nullptr;
    bool storeAcross = false, loadAcross = false; ///< which side lies across the threads
  };
  /// The one effect is the store.
  static llvm::Expected<Sides> sidesOf(const KernelModel &model, const Stmt &store) {
    Sides sides;
    for (const Access &access : model.accesses()) {
      if (access.space == Space::Local)
        continue;
      if (access.write) {
        if (access.stmt != &store || sides.written || access.read)
          return notApplicable("line {0} is a second effect", access.stmt->line);
        sides.written = &access;
        sides.storeAcross = liesAcross(access);
      } else {
        sides.loadAcross |= liesAcross(access);
      }
    }
    if (!sides.written)
      return notApplicable("the kernel does not end with a store");
    if (!sides.storeAcross && !sides.loadAcross)
      return notApplicable("neighbouring threads access neighbouring elements already");
    return sides;
  }

  /// The geometry, and why the threads beyond the original ones are harmless.
  static void setLaunch(KernelState &state, const KernelModel &model, int64_t tile, int64_t rows) {
    LaunchStep &step = state.rewrite.plan.steps[0];
    for (unsigned axis = 0; axis < 2; ++axis) {
      step.grid[axis] = state.overOriginal("ceildiv(" + threadsAlong(axis) + ", " + std::to_string(tile) + ")");
      if (axis > 0)
        state.require(IntExpr::of(step.grid[axis].str() + " <= 65535"), "a grid cannot be larger");
      requireCover(state, model, axis, tile);
    }
    requireOneCopy(state, 2);
    step.grid[2] = IntExpr::literal(1);
    step.block = {IntExpr::literal(tile), IntExpr::literal(rows), IntExpr::literal(1)};
  }

  /// Neighbours along y access adjacent elements, neighbours along x do not.
  static bool liesAcross(const Access &access) {
    if (access.subscripts.size() != 1)
      return false;
    auto x = access.subscripts[0].coefficient("globalIdx.x"), y = access.subscripts[0].coefficient("globalIdx.y");
    if (!x || !y || x->terms.empty())
      return false;
    auto stepX = x->constant(), stepY = y->constant();
    return stepY && std::abs(*stepY) == 1 && !(stepX && std::abs(*stepX) <= 4);
  }

  /// The last statement of the body, inside of ifs without else.
  static llvm::Expected<FinalStore> finalStore(Stmt &body) {
    FinalStore result;
    Stmt *list = &body;
    while (!list->body.empty()) {
      Stmt &last = *list->body.back();
      if (last.kind == StmtKind::If && last.body.size() == 1) {
        result.conditions.push_back(last.expr);
        list = last.body[0].get();
        continue;
      }
      if (!isAssignStmt(last))
        break;
      result.stmt = &last;
      return result;
    }
    return notApplicable("the kernel does not end with a store");
  }

  /// What the store needs besides its value: index and guards, with the locals that these are made of.
  static llvm::Expected<StmtRef> storing(Kernel &kernel, const KernelModel &model, const FinalStore &store,
                                         const ExprRef &target) {
    ExprRef condition;
    for (const ExprRef &c : store.conditions)
      condition = logicalAnd(condition, c);
    std::set<std::string> needed = namesIn(target);
    needed.merge(namesIn(condition));
    std::vector<StmtRef> declarations;
    for (bool grown = true; grown;) {
      grown = false;
      declarations.clear();
      std::vector<std::string> more;
      bool bad = false;
      walk(*kernel.body, [&](Stmt &s) {
        if (s.kind != StmtKind::Decl || !needed.count(s.text))
          return;
        bad |= !model.singleAssignment(s.text) || !s.expr || !s.dims.empty();
        if (bad)
          return;
        walk(s.expr, [&](const ExprRef &e) { // it would be read without the guard around it
          bad |= e->kind == ExprKind::Subscript || !e->pure || isUnary(e, "*") ||
                 (e->kind == ExprKind::Member && e->args[0]->type.isPointer());
        });
        declarations.push_back(declStmt(s.text, s.type, s.expr));
        for (const std::string &name : namesIn(s.expr))
          more.push_back(name);
      });
      if (bad)
        return notApplicable("where the result goes depends on more than indices");
      for (const std::string &name : more)
        grown |= needed.insert(name).second;
    }
    StmtRef inner = exprStmt(assign("=", target, target));
    if (condition)
      inner = ifStmt(condition, block({inner}));
    declarations.push_back(inner);
    return block(std::move(declarations));
  }
};
} // namespace

DEFINE_TRANSFORM(TransposeThroughShared)
