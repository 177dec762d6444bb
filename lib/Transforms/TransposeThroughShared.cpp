//===- TransposeThroughShared.cpp - coalesced on both sides ---------------===//
//
// transpose-through-shared[kernel]{tile=32,rows=8}: a kernel whose result lies across its threads (neighbours along x write
// elements that are far apart, neighbours along y adjacent ones), or whose operands do while its result does not. A block of
// tile x rows threads computes tile x tile results into shared memory, and stores them from there with x and y in exchanged
// roles; or computes them in exchanged roles and stores them as before.
//
// Legal: as for block-shape, for both axes. The kernel ends with one store per thread and nothing else has an effect; a
// block's threads compute their results, meet, and store what another of them computed, under that one's guards.
// What an original thread reads it still reads before it writes; what two threads touch was a data race already.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"

using namespace optiml;

namespace {

/// The store that ends a kernel, and what decides whether it happens.
struct FinalStore {
  Stmt *stmt = nullptr;
  std::vector<ExprRef> conditions; ///< of the ifs around it
};

class TransposeThroughShared : public Transform {
public:
  llvm::StringRef name() const override { return "transpose-through-shared"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    return kernelSite(*this, state, {{{"tile", "32"}, {"rows", "8"}}, {{"tile", "32"}, {"rows", "4"}}, {{"tile", "32"}, {"rows", "16"}}});
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

    // One effect: the store. Which side lies across the threads?
    bool storeAcross = false, loadAcross = false;
    const Access *written = nullptr;
    for (const Access &access : model.accesses()) {
      if (access.space == Space::Local)
        continue;
      if (access.write) {
        if (access.stmt != store->stmt || written || access.read)
          return notApplicable("line {0} is a second effect", access.stmt->line);
        written = &access;
        storeAcross = liesAcross(access);
      } else {
        loadAcross |= liesAcross(access);
      }
    }
    if (!written)
      return notApplicable("the kernel does not end with a store");
    if (!storeAcross && !loadAcross)
      return notApplicable("neighbouring threads access neighbouring elements already");
    const ExprRef &assignment = store->stmt->expr;
    Type element = assignment->args[0]->type;
    element.isConst = element.isVolatile = false;
    int64_t bytes = tile * (tile + 1) * element.bytes;
    if (element.cls == Type::Class::Record || element.cls == Type::Class::Other || bytes > int64_t(state.hints.maxSharedBytes))
      return notApplicable("its results cannot be held in shared memory");

    // The geometry, and why the threads beyond the original ones are harmless.
    LaunchStep &step = result.rewrite.plan.steps[0];
    for (unsigned axis = 0; axis < 2; ++axis) {
      step.grid[axis] = result.overOriginal("ceildiv(" + threadsAlong(axis) + ", " + std::to_string(tile) + ")");
      if (axis > 0)
        result.require(IntExpr::of(step.grid[axis].str() + " <= 65535"), "a grid cannot be larger");
      requireCover(result, model, axis, tile);
    }
    requireOneCopy(result, 2);
    step.grid[2] = IntExpr::literal(1);
    step.block = {IntExpr::literal(tile), IntExpr::literal(rows), IntExpr::literal(1)};

    // The two halves.
    std::set<std::string> taken = allNames(*kernel);
    std::string tileName = freshName(taken, (written->root->kind == ExprKind::Var ? written->array : "result") + "_tile"), k = freshName(taken, "k");
    ExprRef offset = var(k, Type::makeInt());
    ExprRef across = builtin("threadIdx.x"), along = builtin("threadIdx.y");
    if (tile != rows)
      along = add(along, offset);
    auto place = [&](const ExprRef &row, const ExprRef &column) {
      ExprRef base = var(tileName, element);
      return subscript(subscript(base, row, element), column, element);
    };
    auto secondBody = storing(*kernel, model, *store, assignment->args[0]);
    if (!secondBody)
      return secondBody.takeError();
    Kernel second = *kernel;
    second.body = *secondBody;
    if (!renameDeclarations(*second.body, taken))
      return notApplicable("its guards are not understood");
    // x is what the tile's rows run along. Where the halves' roles are exchanged, a thread's x takes y's place.
    auto lower = [&](Kernel &half, bool exchanged) {
      lowerGlobalIndex(half, [&](unsigned axis) {
        bool byThreadX = (axis == 0) != exchanged;
        ExprRef first = add(mul(axisBuiltin("blockIdx", axis), intLit(tile)), builtin(byThreadX ? "threadIdx.x" : "threadIdx.y"));
        return byThreadX || tile == rows ? first : add(first, offset);
      });
    };
    bool firstExchanged = !storeAcross, secondExchanged = storeAcross;
    auto at = [&](bool exchanged) { return exchanged ? place(across, along) : place(along, across); };
    store->stmt->expr = assign("=", at(firstExchanged), assignment->args[1]);
    walk(*second.body, [&](Stmt &s) {
      if (s.kind == StmtKind::Expr)
        s.expr = assign("=", s.expr->args[0], at(secondExchanged));
    });
    lower(*kernel, firstExchanged);
    lower(second, secondExchanged);
    auto steps = [&](StmtRef body) {
      if (tile == rows)
        return body;
      return block({countedFor(k, Type::makeInt(), intLit(0), intLit(tile), rows, std::move(body), FullUnroll)});
    };
    StmtRef declaration = declStmt(tileName, element, nullptr, {intLit(tile), intLit(tile + 1)});
    declaration->isShared = true;
    std::vector<StmtRef> body = {declaration};
    StmtRef computing = steps(kernel->body), storingLoop = steps(second.body);
    body.insert(body.end(), computing->body.begin(), computing->body.end());
    body.push_back(barrierStmt());
    body.insert(body.end(), storingLoop->body.begin(), storingLoop->body.end());
    kernel->body = block(std::move(body));
    kernel->maxThreads = unsigned(tile * rows);
    result.tree = kernel;
    return result;
  }

private:
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
      if (last.kind != StmtKind::Expr || last.expr->kind != ExprKind::Assign || last.expr->text != "=")
        break;
      result.stmt = &last;
      return result;
    }
    return notApplicable("the kernel does not end with a store");
  }

  /// What the store needs besides its value: index and guards, with the locals that these are made of.
  static llvm::Expected<StmtRef> storing(Kernel &kernel, const KernelModel &model, const FinalStore &store, const ExprRef &target) {
    ExprRef condition;
    for (const ExprRef &c : store.conditions)
      condition = logicalAnd(condition, c);
    std::set<std::string> needed = namesIn(target);
    if (condition)
      for (const std::string &name : namesIn(condition))
        needed.insert(name);
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
          bad |= e->kind == ExprKind::Subscript || !e->pure || (e->kind == ExprKind::Unary && e->text == "*") ||
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

const Transform *optiml::makeTransposeThroughShared() {
  static const TransposeThroughShared transform;
  return &transform;
}
