//===- FuseKernels.cpp - launches in a row, as one ------------------------===//
//
// fuse-launches[first+second+…]: launches that follow one another on the host become one launch of one kernel. What the
// first stores and the second loads stays in a register, and what both load is loaded once. The bodies stand one after
// the other, with names of their own. Indices that are computed alike are computed once, and equal guards become one.
//
// Example:
//   addBias<<<blocks, 256>>>(x, bias, y, rows, cols);  const auto addBias_relu_fused0 =
//   CHECK(cudaGetLastError());                             addBias_relu_fused_launch0(blocks, 256, 0, 0, x, …);
//   relu<<<blocks, 256>>>(y, n);                       CHECK(cudaGetLastError());
//                                                      addBias_relu_fused_launch(addBias_relu_fused0,
//                                                          addBias_relu_fused_launch1(blocks, 256, 0, 0, y, n));
//
//   __global__ void addBias_relu_fused(const float *x, const float *bias, float *y, int rows, int cols, int n) {
//     int at = blockIdx.x * blockDim.x + threadIdx.x;
//     if (at < rows * cols) {
//       float y_value = x[at] + bias[at % cols];
//       y[at] = y_value > 0 ? y_value : 0;
//     }
//   }
//
// Legal: these things are asked, each where it can be answered.
//  - Of the host's source: two to eight launches are statements of their own in one block. Between them stands only
//    what may stand between the launches of a loop (see `launch-loop`), and nothing leaves the block except after an
//    error.
//  - Of the kernels: an element that one kernel writes and another reads or writes belongs to the same thread in both.
//    Elements that neither writes may be read anywhere.
//  - Of the host's source again: where all that the function does with a buffer of its own (cudaMalloc) is seen, and
//    nothing looks at it after the launches, what only they read of it is not stored. Not within loops.
//  - Of the running program: streams are equal, and so are grids and blocks, or each launch has a thread for each of
//    the same elements. There is no dynamic shared memory. Parameters whose arguments are spelled alike are equal, and
//    so are the bounds of guards that became one. Arrays of which one is written do not overlap. Otherwise the launches
//    take place as they are.
//
// Blocks may fold something in shared memory of their own: all threads of a block come to each barrier. Atomic updates
// of two kernels by one function may meet, for their order does not matter.
//
// Refuses: calls that take pointers, and opaque statements; other atomics on what the other kernel reads or writes;
// barriers that some threads may pass by, and dynamic shared memory, but for blocks that have a row each (see "Over
// rows"). Elements that another thread may have written are refused as well, as in a stencil after its input, or in a
// normalization after a reduction over all threads. It also refuses kernels in different namespaces or from headers;
// launches in templates with several instantiations or in macros, with default arguments, or under an `if`; and
// functions with labels.
//
//===----------------------------------------------------------------------===//
#include "FuseParts.h"
#include "ThreadMapping.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;

namespace {

class Fuser : FuseParts {
public:
  using FuseParts::add;
  using FuseParts::FuseParts;

  /// After all parts: how the rows of a matrix may be shared among threads, with the part that does so.
  std::vector<std::pair<unsigned, RowSpace>> spaces() const {
    std::vector<std::pair<unsigned, RowSpace>> found;
    for (unsigned i = 0; i < parts.size(); ++i)
      for (const RowSpace &space : rowSpaces(*parts[i])) {
        bool known = llvm::any_of(found, [&](const auto &other) {
          return other.second.rows == space.rows && other.second.inner == space.inner &&
                 other.second.outer == space.outer;
        });
        if (!known)
          found.emplace_back(i, space);
      }
    return found;
  }

  /// Whose threads the other parts' elements can have: it has one axis, and all that work together.
  std::vector<unsigned> elementwise() const {
    const bool together = llvm::any_of(parts, [](const auto &part) { return threadsWorkTogether(*part); });
    std::vector<unsigned> found;
    for (unsigned i = 0; i < parts.size(); ++i)
      if (threadsWorkTogether(*parts[i]) == together && isAlongX(*parts[i]))
        found.push_back(i);
    return found;
  }

  /// Brings all parts to one thread a row; the fused kernel is launched as the part `geometry` is. Where a row is an
  /// element, that part stays as it is.
  llvm::Error bringTo(const RowSpace &given, unsigned geometry) {
    result.kernel.geometry = geometry;
    result.kernel.keepsThreads = given.ofElements;
    std::set<std::string> taken = mentioned;
    taken.insert(declared.begin(), declared.end());
    for (const Param &param : fused->params)
      taken.insert(param.name);
    RowSpace space = given;
    space.name = freshName(taken, given.name);
    std::vector<Condition> covers;
    for (const std::shared_ptr<Kernel> &part : parts) {
      KernelModel model(*part);
      if (given.ofElements && part == parts[geometry]) {
        if (llvm::Error e = requireVisible(*part, model, Meetings::OfAll))
          return e;
        result.kernel.launches.emplace_back();
        howBrought.emplace_back();
        continue;
      }
      if (llvm::Error e = requireVisible(*part, model, Meetings::None)) // whose threads can be one thread
        return e;
      part->params = fused->params; // the rows' extents may be those of another part
      auto brought = bringToRows(*part, space, taken);
      if (!brought)
        return brought.takeError();
      if (given.ofElements) {
        auto needed = coverRows(model, brought->rows);
        if (!needed)
          return needed.takeError();
        llvm::append_range(covers, *needed);
      }
      result.kernel.launches.push_back(brought->conditions);
      howBrought.push_back(std::move(*brought));
    }
    llvm::append_range(result.kernel.launches[geometry], covers);
    bool isFree = llvm::none_of(parts, [&](const auto &part) { return allNames(*part).count(given.name) != 0; });
    for (const std::shared_ptr<Kernel> &part : parts) {
      if (isFree && !(given.ofElements && part == parts[geometry])) {
        part->body->body.front()->text = given.name;
        substitute(*part->body, {{space.name, var(given.name, Type::makeInt())}});
      }
      declared.merge(declaredIn(*part));
    }
    result.kernel.launches[geometry].push_back(
        {IntExpr::of(threadsAlong(0) + " <= 2147483647"), "a row's number has 32 bits"});
    return llvm::Error::success();
  }

  llvm::Expected<FusedLaunches> finish(bool strictFloat) {
    for (unsigned i = 0; i < parts.size(); ++i)
      if (llvm::Error e = join(i))
        return std::move(e);
    if (!fused->maxThreads)
      fused->maxThreads = 1024; // with registers to spare for any block that its parts may be launched with
    result.kernel.names = names;
    result.kernel.sources = sources;
    result.state = originalState(fused, fused->name, fused->name, fused->name, {});
    for (const Condition &condition : conditions)
      result.state.require(condition.expression.str(), condition.why);
    KernelModel model(*fused);
    ArrayPairs disjoint;
    bool flows = false;
    if (llvm::Error e = requireSameThread(result.state, model, partOf, strides, howBrought, disjoint, flows))
      return std::move(e);
    if (flows && strictFloat)
      return notApplicable("a value that stays in a register may be rounded in other ways (--optiml-fp=strict)");
    auto forwarded = fused->clone();
    mergeLoops(*forwarded, strides,
               [&](const std::string &a, const std::string &b) { return disjoint.count(std::minmax(a, b)) != 0; });
    forwardStores(*forwarded, disjoint);
    const std::vector<std::string> left = dropDeadStores(*forwarded, dead);
    showStrides(*forwarded, strides);
    removeUnused(*forwarded);
    auto original = fused->clone();
    showStrides(*original, strides);
    result.state.original = original;
    result.state.tree = forwarded;
    result.kernel.name = fused->name;
    result.kernel.text = print(*forwarded);
    if (!left.empty())
      result.kernel.text = "// Nothing looks at " + llvm::join(left, ", ") +
                           " after the launches: what they would hold is not stored.\n" + result.kernel.text;
    result.kernel.parameters = parametersOf(*forwarded);
    result.kernel.conditions = result.state.rewrite.conditions;
    return std::move(result);
  }

private:
  unsigned current = 0;                ///< the part that is appended
  std::vector<BroughtPart> howBrought; ///< to one thread a row, by part
  FusedLaunches result;
  PartOf partOf;
  std::vector<StmtRef> alive; ///< statements are known by their addresses, also those that are left out
  std::vector<Condition> conditions;
  StrideLoops strides;
  std::set<const Stmt *> plain; ///< declarations of values that depend on arguments and indices alone

  /// Whether two conditions are about indices and arguments alone, so that nothing under them changes them, and say the
  /// same. Bounds that arguments give in different ways ("rows * cols" and "n") are taken for equal, which becomes a
  /// condition.
  bool sameGuard(const ExprRef &a, const ExprRef &b) {
    KernelModel model(*fused);
    if (!model.stable(a) || !model.stable(b))
      return false;
    if (equal(a, b))
      return true;
    auto factsOf = [&](const ExprRef &e) {
      std::vector<Poly> facts;
      model.addFacts(e, true, facts);
      return facts;
    };
    // As many facts as comparisons: nothing of the condition is lost in them.
    auto isConjunction = [](const ExprRef &e, size_t facts) {
      static const std::set<std::string> ordered = {"<", "<=", ">", ">="};
      std::vector<ExprRef> parts = operandsOf(e, "&&");
      return parts.size() == facts && llvm::all_of(parts, [](const ExprRef &part) {
               return part->kind == ExprKind::Binary && ordered.count(part->text);
             });
    };
    std::vector<Poly> x = factsOf(a), y = factsOf(b);
    if (x.size() != y.size() || !isConjunction(a, x.size()) || !isConjunction(b, y.size()))
      return false;
    std::vector<Condition> needed;
    for (size_t i = 0; i < x.size(); ++i) {
      Poly difference = x[i] - y[i];
      if (difference.terms.empty())
        continue;
      auto text = planText(model, difference);
      if (!text || difference.constant())
        return false;
      needed.push_back({IntExpr::of(*text + " == 0"), "they do as many elements each"});
    }
    conditions.insert(conditions.end(), needed.begin(), needed.end());
    return true;
  }

  /// Two grid-stride loops over the same elements.
  bool sameLoop(const Stmt &a, const Stmt &b) {
    auto isStride = [&](const Stmt &s) {
      return s.kind == StmtKind::For && s.init && strides.count(s.init->text) != 0;
    };
    if (!isStride(a) || !isStride(b) || a.init->type.text != b.init->type.text)
      return false;
    // An iteration of the first would end that of the second.
    if (leavesIteration(*a.body[0]) || leavesIteration(*b.body[0], {StmtKind::Break}))
      return false;
    return sameGuard(a.expr, substitute(b.expr, {{b.init->text, var(a.init->text, a.init->type)}}));
  }

  /// What a condition asks beyond the guard, which it asks first: c of "guard && c"; null: it is another condition.
  ExprRef restBehind(const ExprRef &guard, const ExprRef &condition) {
    if (!isBinary(condition, "&&"))
      return nullptr;
    if (sameGuard(guard, condition->args[0]))
      return condition->args[1];
    const ExprRef rest = restBehind(guard, condition->args[0]);
    return rest ? logicalAnd(rest, condition->args[1]) : nullptr;
  }

  static bool isLoneIf(const Stmt &s) { return s.kind == StmtKind::If && s.body.size() == 1; }

  /// Loops of one kernel stay apart: what the second needs of the first is not looked at.
  bool holdsOwn(const Stmt &last) {
    return anyStmt(last, [&](const Stmt &t) {
      auto part = partOf.find(&t);
      return part != partOf.end() && part->second == current;
    });
  }

  /// Whether joinWith would make one of them.
  bool belongsTo(const Stmt &last, const Stmt &s) {
    if (isLoneIf(last) && isLoneIf(s))
      return sameGuard(last.expr, s.expr) || restBehind(last.expr, s.expr);
    return sameLoop(last, s) && !holdsOwn(last);
  }

  /// Makes one of the last statement and `s`, which follows it and runs for the same elements; false: it does not.
  bool joinWith(Stmt &last, Stmt &s) {
    if (!belongsTo(last, s))
      return false;
    if (isLoop(s)) {
      substitute(*s.body[0], {{s.init->text, var(last.init->text, s.init->type)}});
      append(*last.body[0], s.body[0]->body);
      return true;
    }
    const ExprRef rest = restBehind(last.expr, s.expr);
    if (!rest) {
      append(*last.body[0], s.body[0]->body);
      return true;
    }
    StmtRef inner = ifStmt(rest, s.body[0]);
    partOf[inner.get()] = current;
    alive.push_back(inner);
    append(*last.body[0], {inner});
    return true;
  }

  /// The declaration at `at` stands between the last statement and one that is joined with it, and may stand before
  /// both.
  bool movesUp(const Stmt &into, const std::vector<StmtRef> &list, size_t at) {
    if (into.body.empty())
      return false;
    const StmtRef &last = into.body.back();
    size_t next = at;
    for (; next < list.size() && list[next]->kind == StmtKind::Decl; ++next) {
      const bool depends = list[next]->expr && anyNode(list[next]->expr, [](const ExprRef &e) {
                             static const std::set<ExprKind> alone = {ExprKind::IntLit, ExprKind::FloatLit,
                                                                      ExprKind::Unary, ExprKind::Cast};
                             return !alone.count(e->kind) && !(e->kind == ExprKind::Call && e->pure);
                           });
      if (depends)
        return false;
    }
    return next < list.size() && belongsTo(*last, *list[next]);
  }

  /// Appends a part's statements to what is there.
  void append(Stmt &into, std::vector<StmtRef> list) {
    auto isPlain = [&](const StmtRef &s) { return plain.count(s.get()) != 0; };
    for (size_t i = 0; i < list.size(); ++i) {
      const StmtRef &s = list[i];
      if (isPlain(s)) {
        auto end = std::find_if_not(into.body.begin(), into.body.end(), isPlain);
        KernelModel model(*fused);
        auto same = std::find_if(into.body.begin(), end, [&](const StmtRef &d) {
          bool alike = equal(d->expr, s->expr) || (s->type.isInt() && model.poly(d->expr) == model.poly(s->expr));
          return d->type.text == s->type.text && alike;
        });
        if (same == end) {
          into.body.insert(end, s);
          continue;
        }
        const std::map<std::string, ExprRef> named = {{s->text, var((*same)->text, s->type)}};
        for (size_t j = i + 1; j < list.size(); ++j)
          substitute(*list[j], named);
        for (auto &[counter, real] : strides) { // what is hidden has these names, too
          real.first = substitute(real.first, named);
          real.step = substitute(real.step, named);
        }
        continue;
      }
      if (s->kind == StmtKind::Decl && movesUp(into, list, i)) {
        into.body.insert(into.body.end() - 1, s);
        continue;
      }
      if (!into.body.empty() && joinWith(*into.body.back(), *s))
        continue;
      into.body.push_back(s);
    }
  }

  /// Appends a part to the fused kernel.
  llvm::Error join(unsigned index) {
    current = index;
    const std::shared_ptr<Kernel> &part = parts[index];
    const bool isAsItWas = howBrought.empty() || (result.kernel.keepsThreads && index == result.kernel.geometry);
    if (llvm::Error e = requireVisible(*part, KernelModel(*part), isAsItWas ? Meetings::OfAll : Meetings::None))
      return e;
    hideStrides(*part, strides);
    KernelModel model(*part);
    walk(*part->body, [&](Stmt &s) {
      partOf[&s] = index;
      if (s.kind != StmtKind::Decl || !s.dims.empty() || !s.expr || s.type.isPointer() ||
          model.singleAssignment(s.text) != &s || !model.stable(s.expr) || model.loopOf(s.text))
        return;
      bool known = true; // through declarations of the same kind
      for (const std::string &name : namesIn(s.expr))
        if (const Stmt *d = model.declaration(name))
          known &= plain.count(d) != 0;
      if (known)
        plain.insert(&s);
    });
    if (part->maxThreads && (result.kernel.launches.empty() || index == result.kernel.geometry))
      fused->maxThreads = fused->maxThreads ? std::min(fused->maxThreads, part->maxThreads) : part->maxThreads;
    fused->line = fused->line ? fused->line : part->line;
    append(*fused->body, part->body->body);
    alive.push_back(part->body);
    return llvm::Error::success();
  }
};

} // namespace

llvm::Expected<FusedLaunches> optiml::fuseKernels(const std::vector<KernelPart> &parts, const std::string &name,
                                                  bool strictFloat) {
  Fuser fuser(name);
  for (const KernelPart &part : parts)
    if (llvm::Error e = fuser.add(part))
      return std::move(e);
  return fuser.finish(strictFloat);
}

// Of ways to share rows among threads; each costs what fusing costs.
static constexpr size_t mostSpaces = 6;

llvm::Expected<FusedLaunches> optiml::fuseOverRows(const std::vector<KernelPart> &parts, const std::string &name,
                                                   bool strictFloat) {
  Fuser first(name);
  for (const KernelPart &part : parts)
    if (llvm::Error e = first.add(part))
      return std::move(e);
  std::optional<std::string> refused;
  auto spaces = first.spaces();
  for (size_t i = 0; i < std::min(spaces.size(), mostSpaces); ++i) {
    Fuser fuser(name);
    for (const KernelPart &part : parts)
      if (llvm::Error e = fuser.add(part))
        return std::move(e);
    llvm::Error brought = fuser.bringTo(spaces[i].second, spaces[i].first);
    auto fused = brought ? llvm::Expected<FusedLaunches>(std::move(brought)) : fuser.finish(strictFloat);
    if (fused)
      return fused;
    std::string why = llvm::toString(fused.takeError());
    refused = refused.value_or(why);
  }
  return notApplicable("{0}", refused.value_or("none of them has a thread for each row"));
}

llvm::Expected<FusedLaunches> optiml::fuseOverElements(const std::vector<KernelPart> &parts, const std::string &name,
                                                       bool strictFloat) {
  std::optional<std::string> refused;
  Fuser first(name);
  for (const KernelPart &part : parts)
    if (llvm::Error e = first.add(part))
      return std::move(e);
  for (unsigned geometry : first.elementwise()) {
    Fuser fuser(name);
    for (const KernelPart &part : parts)
      if (llvm::Error e = fuser.add(part))
        return std::move(e);
    RowSpace space;
    space.name = "at";
    space.inner = space.outer = Poly(1);
    space.ofElements = true;
    llvm::Error brought = fuser.bringTo(space, geometry);
    auto fused = brought ? llvm::Expected<FusedLaunches>(std::move(brought)) : fuser.finish(strictFloat);
    if (fused)
      return fused;
    std::string why = llvm::toString(fused.takeError());
    refused = refused.value_or(why);
  }
  return notApplicable("{0}", refused.value_or("none of them has its elements along one axis alone"));
}
