//===- UnswitchGuards.cpp - one test before a loop in place of many in it -===//
//
// unswitch-guards[kernel/loop]: guards in a loop that say the same in all of its iterations are tested once before it.
// Where all of them hold, a copy of the loop without them runs. Threads that compute several outputs guard each of them
// where the last block may reach beyond the end; all other blocks then compute straight on, and the compiler moves
// loads out of the loop and groups them.
//
// Example:
//   for (int k = 0; k < m; ++k)             if (i < n && i + 256 < n) {
//     for (int ix = 0; ix < 2; ++ix)          for (int k = 0; k < m; ++k)
//       if (i + ix * 256 < n)                   for (int ix = 0; ix < 2; ++ix)
//         s[ix] += a[i + ix * 256] * x[k];        s[ix] += a[i + ix * 256] * x[k];
//                                           } else {
//                                             for (int k = 0; k < m; ++k)
//                                               …, as before
//                                           }
//
// Legal: a guard has no other branch, and its condition only computes: from parameters, from variables that the loop
// does not change, and from counters of inner loops with a constant trip count, for all of whose values it is tested.
// Conditions that stand before others with && are looked at one by one.
//
// Refuses: loops without such guards, loops in which threads meet, and more than 32 tests.
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "optiml/Analysis/Conjuncts.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/TreeQueries.h"

using namespace optiml;

namespace {
constexpr size_t mostTests = 32;

/// The guards of a loop that are tested before it.
class GuardTests {
public:
  explicit GuardTests(Stmt &loop) : changes(countChanges(loop)), inside(namesDeclaredIn(loop)) { visit(*loop.body[0]); }
  /// The guards, with the parts of their conditions that go.
  std::vector<std::pair<Stmt *, std::vector<ExprRef>>> guards;
  std::vector<ExprRef> tests; ///< that all have to hold

private:
  void visit(Stmt &s) {
    auto counted = asCountedLoop(s);
    if (counted)
      counters.push_back(*counted);
    if (s.kind == StmtKind::If && s.body.size() == 1) {
      std::vector<ExprRef> all, needless;
      addConjuncts(s.expr, all);
      for (const ExprRef &part : all)
        if (addTests(part))
          needless.push_back(part);
      if (!needless.empty())
        guards.push_back({&s, needless});
    }
    for (const StmtRef &child : s.body)
      visit(*child);
    if (counted)
      counters.pop_back();
  }

  /// The condition for all values of the counters in it. False: it may change within the loop, or does not only
  /// compute.
  bool addTests(const ExprRef &condition) {
    const bool computes = onlyComputes(condition) && !anyNode(condition, [](const ExprRef &e) {
                            return isLoad(e) || isIntDivision(e) || e->kind == ExprKind::Call;
                          });
    if (!computes)
      return false;
    std::vector<ExprRef> instances = {condition};
    for (const std::string &name : namesIn(condition)) {
      auto counter = llvm::find_if(counters, [&](const CountedLoop &loop) { return loop.var == name; });
      if (counter == counters.end()) {
        if (changes.count(name) || inside.count(name))
          return false;
        continue;
      }
      auto trips = counter->tripCount(), lower = constantValue(counter->lower);
      if (!trips || !lower || size_t(*trips) * instances.size() > mostTests)
        return false;
      std::vector<ExprRef> next;
      for (const ExprRef &instance : instances)
        for (int64_t k = 0; k < *trips; ++k)
          next.push_back(rewrite(substitute(instance, {{name, intLit(*lower + k * counter->step)}}), withoutZeros));
      instances = std::move(next);
    }
    for (const ExprRef &instance : instances)
      if (llvm::none_of(tests, [&](const ExprRef &known) { return equal(known, instance); }))
        tests.push_back(instance);
    return true;
  }

  /// i + 0 * 256, as a person would write it; null for all else.
  static ExprRef withoutZeros(const ExprRef &e) {
    if (!isBinary(e, "*") && !isBinary(e, "+"))
      return nullptr;
    ExprRef simple = isBinary(e, "*") ? mul(e->args[0], e->args[1]) : add(e->args[0], e->args[1]);
    return simple->type.text == e->type.text ? simple : nullptr;
  }

  const std::map<std::string, unsigned> changes;
  const std::set<std::string> inside;
  std::vector<CountedLoop> counters; ///< of the inner loops around
};

class UnswitchGuards : public Transform {
public:
  llvm::StringRef name() const override { return "unswitch-guards"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    std::set<const Stmt *> within; // of loops that are sites
    for (const auto &[path, loop] : countedLoops(*state.tree)) {
      if (within.count(loop) || !offer(result, state, path, {{}}))
        continue;
      walk(*loop, [&](Stmt &s) { within.insert(&s); });
    }
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site, const Params &) const override {
    auto kernel = state.tree->clone();
    Stmt *loop = findLoop(*kernel, site);
    if (!loop)
      return notApplicable("there is no counted loop '{0}'", site);
    if (hasBarrier(*loop) || anyExpr(*loop, [](const ExprRef &e) { return e->kind == ExprKind::Call && !e->pure; }))
      return notApplicable("threads may meet in the loop");
    GuardTests found(*loop);
    if (found.guards.empty())
      return notApplicable("no guard says the same in all iterations of the loop");
    if (found.tests.size() > mostTests)
      return notApplicable("the loop has {0} guards; at most {1} are tested before it", found.tests.size(), mostTests);
    auto place = findPlace(*kernel->body, loop);
    if (!place)
      return notApplicable("the loop stands where it cannot be repeated");
    std::set<std::string> taken = allNames(*kernel);
    const StmtRef straight = place->block->body[place->index], careful = clone(straight);
    renameDeclarations(*careful, taken);
    for (auto &[guard, needless] : found.guards)
      if (ExprRef rest = withoutConjuncts(guard->expr, needless)) {
        guard->expr = rest;
      } else {
        if (!namesDeclaredIn(*guard->body[0]).empty()) // which may be those of its neighbours
          renameDeclarations(*guard->body[0], taken);
        *guard = *block(std::vector<StmtRef>(guard->body[0]->body));
      }
    flattenBlocks(*straight);
    ExprRef all;
    for (const ExprRef &test : found.tests)
      all = all ? logicalAnd(all, test) : test;
    place->block->body[place->index] = ifStmt(all, block({straight}), block({careful}));
    return state.withTree(kernel);
  }

private:
  /// What stood under a guard joins the list around it.
  static void flattenBlocks(Stmt &root) {
    forEachList(root, [](std::vector<StmtRef> &list) {
      for (size_t i = 0; i < list.size();) {
        if (list[i]->kind != StmtKind::Block) {
          ++i;
          continue;
        }
        const std::vector<StmtRef> inner = list[i]->body;
        list.erase(list.begin() + long(i));
        list.insert(list.begin() + long(i), inner.begin(), inner.end());
      }
    });
  }
};
} // namespace

DEFINE_TRANSFORM(UnswitchGuards)
