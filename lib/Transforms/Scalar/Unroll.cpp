//===- Unroll.cpp - several iterations a trip -----------------------------===//
//
// unroll[kernel/loop]{factor=4}: each trip runs several iterations, and a second loop runs what is left over. The
// second loop is not needed where the trip count is a known multiple of the factor. With `factor=full` the compiler
// unrolls a loop of constant trip count completely.
//
// Example:
//   for (int k = 0; k < n; ++k)             int k = 0;
//     s += a[k];                            #pragma unroll 1
//                                           for (; n - k >= 4; k += 4) {
//                                             #pragma unroll
//                                             for (int u = 0; u < 4; ++u) {
//                                               s += a[k + u];
//                                             }
//                                           }
//                                           #pragma unroll 1
//                                           for (; k < n; ++k) {
//                                             s += a[k];
//                                           }
//
// Legal: iterations keep their order, so no condition is needed. With a number for the factor, the body neither leaves
// the loop nor skips the rest of an iteration, and the bound does not change.
//
// Refuses: `full` where the trip count is not a constant, and a loop that already has an unroll pragma. With a number
// it also refuses `break`, `continue` and `return` in the body, and verbatim constructs that use the counter or a
// variable that the body declares.
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "optiml/Analysis/TreeQueries.h"

using namespace optiml;

namespace {
/// Statements that a completely unrolled loop may become before it no longer fits into the instruction cache.
constexpr int64_t largestBody = 1024;

/// Statements of `s` with all its loops of constant trip count unrolled; the compiler unrolls small ones by itself.
int64_t unrolledSize(Stmt &s) {
  int64_t size = s.kind == StmtKind::Expr ? 1 : 0;
  for (StmtRef &child : s.body)
    size += unrolledSize(*child);
  auto loop = asCountedLoop(s);
  auto trips = loop ? loop->tripCount() : std::nullopt;
  return trips && *trips > 0 ? std::min(size, largestBody + 1) * std::min(*trips, largestBody + 1) : size;
}

/// How many copies unrolled loops make of what they hold.
int64_t copiesBy(const std::vector<Stmt *> &around) {
  int64_t copies = 1;
  for (Stmt *s : around)
    if (auto loop = asCountedLoop(*s); loop && s->unroll == FullUnroll)
      copies = std::min<int64_t>(copies * std::max<int64_t>(1, loop->tripCount().value_or(1)), largestBody + 1);
  return copies;
}

/// Made of indices of threads and of numbers that are not negative.
bool isNotNegative(const ExprRef &e) {
  if (auto value = constantValue(e))
    return *value >= 0;
  bool keepsSign = e->kind == ExprKind::Cast || isBinary(e, "+") || isBinary(e, "*") || isBinary(e, "/");
  return e->kind == ExprKind::Builtin || (keepsSign && llvm::all_of(e->args, isNotNegative));
}

/// That so many iterations are left. `counter + iterations < upper` might overflow.
ExprRef roomFor(const CountedLoop &loop, const ExprRef &counter, int64_t iterations) {
  ExprRef from = loop.upper, by = counter;
  const bool isSigned = from->type.isSigned && loop.type.isSigned;
  if (isSigned && constantValue(loop.lower) == std::optional<int64_t>(0))
    return binary(">=", sub(from, by), intLit(iterations)); // nothing is larger than what was left at first
  if (isSigned && !isNotNegative(loop.lower)) {             // their distance may be more than the largest signed number
    Type wide = from->type.bytes == 8 || by->type.bytes == 8 ? Type::makeLong() : Type::makeUnsigned();
    wide.text = wide.bytes == 8 ? "unsigned long long" : wide.text;
    wide.isSigned = false;
    from = castTo(wide, from);
    by = castTo(wide, by);
  }
  return logicalAnd(lessThan(counter, loop.upper), binary(">=", sub(from, by), intLit(iterations)));
}

/// The most iterations that a thread has in the launches that are known; nothing where that cannot be told.
std::optional<int64_t> mostTrips(const CountedLoop &loop, const KernelModel &model, const LaunchHints &hints) {
  if (!isNotNegative(loop.lower))
    return std::nullopt;
  Poly upper = model.poly(loop.upper);
  for (const std::string &atom : upper.atoms())
    if (auto known = hints.scalars.find(atom); known != hints.scalars.end())
      upper = upper.substitute(atom, Poly(known->second));
  auto end = upper.constant();
  return end && *end >= 0 ? std::optional((*end + loop.step - 1) / loop.step) : std::nullopt;
}

class Unroll : public Transform {
public:
  llvm::StringRef name() const override { return "unroll"; }
  bool onlyTunes() const override { return true; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    auto kernel = state.tree->clone();
    const KernelModel model(*kernel, state.pinnedBlock());
    for (const auto &[path, stmt] : countedLoops(*kernel)) {
      if (stmt->unroll != NoUnroll)
        continue;
      auto loop = asCountedLoop(*stmt);
      auto trips = loop->tripCount();
      ActionTemplate site{"unroll", state.rewrite.original + path, {}};
      // Threads of a large grid may have one element each: no copies of the body would ever run.
      const std::optional<int64_t> most = mostTrips(*loop, model, state.hints);
      std::vector<Stmt *> around;
      findLoop(*kernel, path, &around);
      if (trips && *trips <= 64 && unrolledSize(*stmt) * copiesBy(around) <= largestBody)
        site.values.push_back({{"factor", "full"}});
      for (long factor : {4, 8, 2, 16}) {
        Params params = {{"factor", std::to_string(factor)}};
        if (!hasBarrier(*stmt) && !(trips && *trips <= factor) && !(most && *most < factor) &&
            applies(state, path, params))
          site.values.push_back(params);
      }
      if (!site.values.empty())
        result.push_back(site);
    }
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override {
    auto kernel = state.tree->clone();
    Stmt *stmt = findLoop(*kernel, site);
    if (!stmt)
      return notApplicable("there is no counted loop '{0}'", site);
    auto loop = asCountedLoop(*stmt);
    if (stmt->unroll != NoUnroll)
      return notApplicable("the loop already has an unroll pragma");
    KernelState result = state.withTree(kernel);
    auto factorText = params.find("factor");
    if (factorText != params.end() && factorText->second == "full") {
      if (!loop->tripCount())
        return notApplicable("its trip count is not known at compile time");
      stmt->unroll = FullUnroll;
      return result;
    }
    long factor = paramInt(params, "factor", 0);
    if (factor < 2 || factor > 1024)
      return notApplicable("the factor must be 'full' or 2 to 1024");
    if (holdsKind(*stmt->body[0], {StmtKind::Break, StmtKind::Continue, StmtKind::Return}))
      return notApplicable("the loop may be left early");
    if (opaqueMentions(*stmt->body[0], {loop->var}))
      return notApplicable("a construct that is kept verbatim uses '{0}'", loop->var);
    KernelModel model(*kernel);
    if (!model.stable(loop->upper))
      return notApplicable("its bound may change while it runs");

    auto trips = loop->tripCount();
    if (!trips)
      trips = tripsOfEach(*loop, model, state.pinnedBlock()[0]);
    if (llvm::Error e = unroll(*kernel, *loop, factor, trips && *trips % factor == 0))
      return std::move(e);
    return result;
  }

private:
  /// The iterations of every thread of a block of `threads`, where they take turns and each has as many: from
  /// `threadIdx.x + c` on, in steps of no fewer than there are threads.
  static std::optional<int64_t> tripsOfEach(const CountedLoop &loop, const KernelModel &model, int64_t threads) {
    auto first = (model.poly(loop.lower) - Poly::atom("threadIdx.x")).constant();
    auto end = constantValue(loop.upper);
    if (!first || !end || !threads || threads > loop.step || *first < 0 || *end <= *first ||
        (*end - *first) % loop.step != 0)
      return std::nullopt;
    return (*end - *first) / loop.step;
  }

  /// for (; k + (F-1)*step < upper; k += F*step) { for (u < F) body(k + u*step) }  for (; k < upper; k += step) body(k)
  /// `exact`: no iterations remain.
  static llvm::Error unroll(Kernel &kernel, const CountedLoop &loop, int64_t factor, bool exact) {
    std::string u = freshName(kernel, "u");
    ExprRef v = var(loop.var, loop.type);
    StmtRef unrolled = clone(loop.stmt->body[0]);
    substitute(*unrolled, {{loop.var, add(v, mul(var(u, Type::makeInt()), intLit(loop.step)))}});
    StmtRef inner = countedFor(u, Type::makeInt(), intLit(0), intLit(factor), 1, unrolled, FullUnroll);
    auto place = findPlace(*kernel.body, loop.stmt);
    std::vector<StmtRef> &list = place->block->body;
    StmtRef main = clone(list[place->index]), rest = clone(list[place->index]);
    main->body = {block({inner})};
    main->step = assign("+=", v, intLit(factor * loop.step));
    main->unroll = 1; // not again by the compiler
    if (exact) {
      list[place->index] = main;
      return llvm::Error::success();
    }
    std::set<std::string> taken = allNames(kernel);
    taken.insert(u);
    if (!renameDeclarations(*inner->body[0], taken))
      return notApplicable("a construct that is kept verbatim uses a variable of the loop");
    StmtRef counter = std::exchange(main->init, nullptr);
    counter->type.isConst = false;
    main->expr = roomFor(loop, v, (factor - 1) * loop.step + 1); // the last of them is below the bound
    rest->init = nullptr;
    rest->unroll = 1;
    // The counter now stands in a block, where its name must be its own.
    unsigned declared = 0;
    walk(*kernel.body, [&](Stmt &s) { declared += s.kind == StmtKind::Decl && s.text == loop.var; });
    if (declared > 1) {
      counter->text = freshName(taken, loop.var);
      for (const StmtRef &part : {main, rest})
        substitute(*part, {{loop.var, var(counter->text, loop.type)}});
    }
    list[place->index] = counter;
    list.insert(list.begin() + long(place->index) + 1, {main, rest});
    return llvm::Error::success();
  }
};
} // namespace

DEFINE_TRANSFORM(Unroll)
