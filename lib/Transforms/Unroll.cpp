//===- Unroll.cpp - unroll a counted loop ---------------------------------===//
//
// unroll[kernel/loop]{factor=N}: N iterations a trip, with a remainder loop unless the trip count is a known multiple of
// N; factor=full unrolls a loop of known trip count completely.
//
// Legal: iterations keep their order, so any counted loop whose body does not leave it early qualifies.
//
//===----------------------------------------------------------------------===//
#include "Common.h"
#include "Transforms.h"

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

class Unroll : public Transform {
public:
  llvm::StringRef name() const override { return "unroll"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    auto kernel = state.tree->clone();
    for (const auto &[path, stmt] : countedLoops(*kernel)) {
      if (stmt->unroll != NoUnroll)
        continue;
      auto loop = asCountedLoop(*stmt);
      auto trips = loop->tripCount();
      ActionTemplate site{"unroll", state.rewrite.original + path, {}};
      std::vector<Stmt *> around;
      findLoop(*kernel, path, &around);
      if (trips && *trips <= 64 && unrolledSize(*stmt) * copiesBy(around) <= largestBody)
        site.values.push_back({{"factor", "full"}});
      for (long factor : {4, 8, 2, 16}) {
        if (hasBarrier(*stmt) || (trips && *trips <= factor))
          continue;
        Params params = {{"factor", std::to_string(factor)}};
        auto applied = apply(state, path, params);
        if (applied)
          site.values.push_back(params);
        else
          llvm::consumeError(applied.takeError());
      }
      if (!site.values.empty())
        result.push_back(site);
    }
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site, const Params &params) const override {
    auto kernel = state.tree->clone();
    Stmt *stmt = findLoop(*kernel, site);
    if (!stmt)
      return notApplicable("there is no counted loop '{0}'", site);
    auto loop = asCountedLoop(*stmt);
    if (stmt->unroll != NoUnroll)
      return notApplicable("the loop already has an unroll pragma");
    KernelState result = state;
    result.tree = kernel;
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
    bool leaves = false;
    walk(*stmt->body[0], [&](Stmt &s) {
      leaves |= s.kind == StmtKind::Break || s.kind == StmtKind::Continue || s.kind == StmtKind::Return;
    });
    if (leaves)
      return notApplicable("the loop may be left early");
    if (opaqueMentions(*stmt->body[0], {loop->var}))
      return notApplicable("a construct that is kept verbatim uses '{0}'", loop->var);
    KernelModel model(*kernel);
    if (!model.stable(loop->upper))
      return notApplicable("its bound may change while it runs");

    // for (; k + (F-1)*step < upper; k += F*step) { for (u < F) body(k + u*step) }  for (; k < upper; k += step) body(k)
    auto trips = loop->tripCount();
    bool exact = trips && *trips % factor == 0;
    StmtRef body = clone(stmt->body[0]);
    std::string u = freshName(*kernel, "u");
    ExprRef v = var(loop->var, loop->type);
    StmtRef unrolled = clone(body);
    substitute(*unrolled, {{loop->var, add(v, mul(var(u, Type::makeInt()), intLit(loop->step)))}});
    StmtRef inner = countedFor(u, Type::makeInt(), intLit(0), intLit(factor), 1, unrolled, FullUnroll);
    auto place = findPlace(*kernel->body, stmt);
    if (exact) {
      StmtRef whole = clone(place->block->body[place->index]);
      whole->body = {block({inner})};
      whole->step = assign("+=", v, intLit(factor * loop->step));
      whole->unroll = 1; // not again by the compiler
      place->block->body[place->index] = whole;
      return result;
    }
    std::set<std::string> taken = allNames(*kernel);
    taken.insert(u);
    if (!renameDeclarations(*inner->body[0], taken))
      return notApplicable("a construct that is kept verbatim uses a variable of the loop");
    StmtRef main = clone(place->block->body[place->index]);
    StmtRef counter = main->init;
    counter->type.isConst = false;
    main->init = nullptr;
    // upper - k does not overflow where k + F might.
    main->expr = binary(">=", sub(loop->upper, v), intLit(factor * loop->step));
    if (!loop->upper->type.isSigned || !loop->type.isSigned)
      main->expr = logicalAnd(lessThan(v, loop->upper), main->expr);
    main->step = assign("+=", v, intLit(factor * loop->step));
    main->body = {block({inner})};
    main->unroll = 1;
    StmtRef rest = clone(place->block->body[place->index]);
    rest->init = nullptr;
    rest->unroll = 1;
    // The counter now stands in a block, where its name must be its own.
    unsigned declared = 0;
    walk(*kernel->body, [&](Stmt &s) { declared += s.kind == StmtKind::Decl && s.text == loop->var; });
    if (declared > 1) {
      counter->text = freshName(taken, loop->var);
      for (const StmtRef &part : {main, rest})
        substitute(*part, {{loop->var, var(counter->text, loop->type)}});
    }
    std::vector<StmtRef> &list = place->block->body;
    list[place->index] = counter;
    list.insert(list.begin() + long(place->index) + 1, {main, rest});
    return result;
  }
};
} // namespace

const Transform *optiml::makeUnroll() {
  static const Unroll transform;
  return &transform;
}
