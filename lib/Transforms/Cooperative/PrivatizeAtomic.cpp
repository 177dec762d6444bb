//===- PrivatizeAtomic.cpp - fewer atomics on global memory ---------------===//
//
// privatize-atomic[kernel:array]: every thread sums in registers what it adds to elements that are the same for all
// threads: `*total`, `out[blockIdx.x]`, `eq->xtx[3]`. The block combines the sums, and one thread adds the results to
// the elements. Loops of at most 16 iterations over such elements (`eq->xtx[a * 6 + b]`) are written out.
//
// privatize-atomic[kernel:array]{bins=256}: for elements that depend on data. A table of the first 256 elements in
// shared memory collects the block's updates and is added to the array at the end. Updates of other elements go
// straight to the array, as before.
//
// privatize-atomic[kernel:array]{bins=256,copies=4}: as many tables, which a warp's threads take by turns, so that
// fewer of them meet at one element. A gap after each 32 elements keeps elements apart that are 32 or 64 away from each
// other, as the same column of different rows is. The tables are added up at the end.
//
// Of an array of records every member that is updated has a table, but for the largest where there is no room for all:
// `bins` counts the records. Pointers to a record or a row that data choose (`float *row = sums + label[i] * 12`) are
// read as the array with an index.
//
// Example:
//   if (i < n)                             unsigned counts_of_block[256] = 0, by all threads; __syncthreads();
//     atomicAdd(&counts[x[i]], 1);         if (i < n) {
//                                            int bin = x[i];
//                                            if (bin >= 0 && bin < 256) {
//                                              atomicAdd(&counts_of_block[bin], 1);
//                                            } else {
//                                              atomicAdd(&counts[bin], 1);
//                                            }
//                                          }
//                                          __syncthreads();
//                                          for (int k = threadIdx.x; k < 256; k += 256) {
//                                            if (counts_of_block[k] != 0) {
//                                              atomicAdd(&counts[k], counts_of_block[k]);
//                                            }
//                                          }
//
// Legal: every access to the array is an `atomicAdd`, `Sub`, `Min`, `Max`, `And`, `Or` or `Xor` whose result is not
// used, or a function of the program that adds or takes an extreme in a loop around `atomicCAS`. All that update one
// member are of one kind. Such updates commute, so they may come later and together, unless the thread itself could
// notice. It cannot where nothing it accesses follows its update, or where other arrays do not overlap the element or
// the table's elements (a condition). An element that no thread would update is not touched: a sum that stayed neutral
// is not added. Floating-point sums change their order, which `--optiml-fp=strict` forbids.
//
// Refuses: old values that are used; an element that differs between threads (without `bins`); updates that one thread
// of a block does alone already; tables larger than shared memory.
//
//===----------------------------------------------------------------------===//
#include "ExpandUpdates.h"
#include "ManySums.h"
#include "PrivateTable.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/Pointees.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

/// Bytes of one thread's sums: more do not stay in registers.
constexpr size_t mostBytes = 512;
/// Elements of the largest table.
constexpr int64_t mostBins = 4096;

/// No table, and tables: first one for the elements that the array had when it was launched. A larger one may reach
/// into what the kernel uses otherwise.
static std::vector<Params> offers(const LaunchHints &hints, const std::string &array, int64_t elementBytes,
                                  bool isRecord) {
  std::vector<int64_t> bins = {256, 1024, 64, mostBins};
  if (isRecord)
    bins.push_back(1);
  if (auto reach = hints.reach.find(array); reach != hints.reach.end() && elementBytes > 0) {
    auto tooSmall = [&](int64_t n) { return n * elementBytes < reach->second; };
    std::stable_sort(bins.begin(), bins.end(), [&](int64_t a, int64_t b) {
      return tooSmall(a) != tooSmall(b) ? tooSmall(b) : !tooSmall(a) && a < b;
    });
    const int64_t elements = reach->second / elementBytes;
    if (elements > 1 && elements <= mostBins && !llvm::is_contained(bins, elements))
      bins.insert(bins.begin(), elements);
  }
  std::vector<Params> result = {{}};
  for (const char *copies : {"", "1", "4", "8"})
    for (int64_t n : bins) {
      Params params = {{"bins", std::to_string(n)}};
      if (*copies)
        params["copies"] = copies;
      result.push_back(std::move(params));
    }
  return result;
}

class PrivatizeAtomic : public Transform {
public:
  llvm::StringRef name() const override { return "privatize-atomic"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    KernelModel model(*state.tree, state.pinnedBlock());
    struct Elements {
      int64_t bytes;
      bool areRecords;
    };
    std::map<std::string, Elements> arrays;
    for (const Access &access : model.accesses())
      if (access.atomic && access.space == Space::Global) {
        const std::string array = nameOf(model, access);
        const Param *param = model.param(array);
        const bool isKnown = param && param->type.pointee && param->type.pointee->bytes;
        const Type &type = isKnown ? *param->type.pointee : access.place->type;
        arrays.emplace(array, Elements{type.bytes, type.cls == Type::Class::Record});
      }
    for (const auto &[array, elements] : arrays) {
      ActionTemplate site{"privatize-atomic", state.rewrite.original + ":" + array, {}};
      for (const Params &params : offers(state.hints, array, elements.bytes, elements.areRecords)) {
        if (applies(state, ":" + array, params))
          site.values.push_back(params);
        if (params.empty() && !site.values.empty())
          break; // one element: no table is needed
      }
      if (!site.values.empty())
        result.push_back(std::move(site));
    }
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override {
    std::string array = site.rsplit(':').second.str();
    int64_t bins = paramInt(params, "bins", 0);
    std::array<int64_t, 3> shape = state.pinnedBlock();
    if (!shape[0])
      return notApplicable("{0}", shapeIsOpen);
    ThreadGroup group = ThreadGroup::ofBlock(shape);
    if (group.threads % 32)
      return notApplicable("a block of {0}x{1}x{2} threads holds no whole warps", shape[0], shape[1], shape[2]);
    KernelState result = state;
    auto kernel = state.tree->clone();
    if (llvm::Error e = requireConstantParameters(*kernel))
      return std::move(e);
    if (llvm::Error e = removeReturns(*kernel))
      return std::move(e);
    if (!bins)
      expandUpdates(*kernel, array, mostBytes);
    if (std::set<std::string> taken = allNames(*kernel); bins)
      nameRows(*kernel, taken, [&](const std::string &of, const ExprRef &) { return of == array; });
    KernelModel model(*kernel, shape);
    if (!model.param(array))
      return notApplicable("'{0}' is no parameter", array);
    std::vector<Update> updates;
    std::set<std::string> others;
    for (const Access &access : model.accesses()) {
      if (access.space != Space::Global)
        continue;
      if (nameOf(model, access) != array) {
        others.insert(access.array);
        continue;
      }
      const auto place = bins ? tablePlace(access.place, array) : std::nullopt;
      const bool isFixed = !bins && isFixedPlace(access.place);
      if (!access.atomic || !isAtomicUpdate(*access.stmt) || (access.subscripts.size() != 1 && !isFixed && !place))
        return notApplicable("'{0}' is accessed other than by atomic updates (line {1})", array, access.stmt->line);
      if (isPrivate(model, access))
        return notApplicable("'{0}' is updated by one thread of a block already (line {1})", array, access.stmt->line);
      updates.push_back({access.stmt, &access, access.stmt->expr->folds, access.stmt->expr->args.at(1), place});
      for (const Update &u : updates)
        if (!sameFold(updates.back().fold, u.fold) && meet(updates.back(), u))
          return notApplicable("'{0}' is updated in different ways (line {1})", array, access.stmt->line);
      const Type &type = access.place->type;
      if ((type.bytes != 4 && type.bytes != 8) || !(type.cls == Type::Class::Int || type.isFloat()))
        return notApplicable("'{0}' holds elements that threads cannot exchange", array);
      if (state.hints.strictFloat && type.isFloat())
        return notApplicable("the order of the sum may not change (--optiml-fp=strict)");
      if (bins && !place)
        return notApplicable("line {0} does not name an element of '{1}'", access.stmt->line, array);
    }
    if (updates.empty())
      return notApplicable("'{0}' is not updated by atomics", array);
    if (model.unknownOutsideLine() && !hasOwnCombination(*kernel))
      return notApplicable("line {0} may access memory in ways that are not understood", model.unknownOutsideLine());
    Type type = updates.front().access->node->type.unqualified();
    auto first = bins ? llvm::Expected<int64_t>(bins) : firstOf(updates, array);
    if (!first)
      return first.takeError();
    // Updates of elements behind the table take place where they did.
    if (!updatedLast(*state.original, array))
      for (const std::string &other : others)
        if (!updatedAlike(model, other, updates.front().fold, type))
          if (llvm::Error e = requireDisjoint(result, model, array, other, /*byType=*/true, *first))
            return std::move(e);
    const bool isWhole = bins && requireWhole(result, model, array, bins);
    llvm::Error e =
        bins ? intoTable(result, *kernel, model, updates, array, {bins, paramInt(params, "copies", 0), isWhole}, group)
             : intoRegisters(result, *kernel, model, updates, array, group);
    if (e)
      return std::move(e);
    result.tree = kernel;
    return result;
  }

private:
  /// The parameter that an update is made through, or the array.
  static std::string nameOf(const KernelModel &model, const Access &access) {
    std::string parameter = access.atomic ? parameterOf(model, access) : "";
    return parameter.empty() ? access.array : parameter;
  }
  /// How many elements are updated, from the first on, where they are named by constants; 0: as the accesses say.
  static llvm::Expected<int64_t> firstOf(const std::vector<Update> &updates, const std::string &array) {
    int64_t first = 0;
    bool allFixed = true, throughMembers = false;
    for (const Update &u : updates) {
      bool isFixed = isFixedPlace(u.access->place);
      int64_t element = isFixed ? elementOfPlace(u.access->place) : 0;
      allFixed &= isFixed && element >= 0;
      throughMembers |= u.access->array != array;
      first = std::max(first, element + 1);
    }
    if (throughMembers && !allFixed)
      return notApplicable("what is updated of '{0}' is not named by constants alone", array);
    return throughMembers ? first : 0;
  }
  /// Whether the launch that is known has no more rows than the table; the launches that the kernel is for then have
  /// not either. No index leads out of the allocation.
  static bool requireWhole(KernelState &state, const KernelModel &model, const std::string &array, int64_t bins) {
    const Param *param = model.param(array);
    auto reach = state.hints.reach.find(array);
    if (!param->type.pointee || !param->type.pointee->bytes || reach == state.hints.reach.end() ||
        !state.hints.whole.count(array) || bins * int64_t(param->type.pointee->bytes) < reach->second)
      return false;
    state.require(IntExpr::of("within(" + array + ", " + std::to_string(bins * param->type.pointee->bytes) + ")"),
                  "all elements have a place in the table");
    return true;
  }
  /// Two updates may be of one number.
  static bool meet(const Update &a, const Update &b) {
    if (a.place && b.place)
      return a.place->path == b.place->path;
    return a.access->array == b.access->array && sameMember(*a.access, *b.access);
  }
  static bool sameFold(const std::string &a, const std::string &b) {
    auto sum = [](const std::string &f) { return f == "+" || f == "-"; };
    return a == b || (sum(a) && sum(b));
  }
  /// Shuffles and barriers of an earlier combination are no unknown effects.
  static bool hasOwnCombination(Kernel &kernel) {
    return !anyStmt(*kernel.body, [](const Stmt &s) { return s.kind == StmtKind::Opaque && s.mayBarrier; }) &&
           !anyExpr(*kernel.body, [](const ExprRef &e) {
             return !e->pure && !(e->kind == ExprKind::Call && (e->text == "__shfl_xor_sync" || e->isAtomic));
           });
  }

  /// One thread a block does it, or its value comes from shared memory.
  static bool isPrivate(const KernelModel &model, const Access &access) {
    return llvm::any_of(access.guards,
                        [](const auto &guard) {
                          return guard.second && anyNode(guard.first, [](const ExprRef &e) {
                                   return isBinary(e, "==") && isBuiltin(e->args[0], "threadIdx.x");
                                 });
                        }) ||
           llvm::any_of(access.stmt->expr->args, [&](const ExprRef &argument) {
             return anyNode(argument, [&](const ExprRef &e) {
               auto isShared = [&](const ExprRef &x) {
                 const Stmt *declared = x->kind == ExprKind::Var ? model.declaration(x->text) : nullptr;
                 return declared && declared->isShared;
               };
               const Stmt *declared = e->kind == ExprKind::Var ? model.declaration(e->text) : nullptr;
               return isShared(e) || (declared && declared->expr && anyNode(declared->expr, isShared));
             });
           });
  }

  /// Whether an original thread accesses nothing else after its update. Then nobody notices that updates come later,
  /// even where arrays overlap: another thread's plain access to what is updated would be a data race already.
  static bool updatedLast(const Kernel &original, const std::string &array) {
    KernelModel model(original, {0, 0, 0});
    std::map<const Stmt *, unsigned> position;
    unsigned count = 0;
    walk(*original.body, [&](Stmt &s) { position[&s] = ++count; });
    unsigned first = UINT_MAX;
    for (const Access &access : model.accesses()) {
      if (nameOf(model, access) != array)
        continue;
      first = std::min(first, position[access.stmt]);
      for (const Stmt *s : access.path)
        if (isLoop(*s))
          return false;
    }
    for (const Access &access : model.accesses())
      if (nameOf(model, access) != array && access.space == Space::Global && position[access.stmt] > first)
        return false;
    return true;
  }

  /// All that is done to the array are updates that come to the same in any order with those of `fold`, even where
  /// arrays overlap.
  static bool updatedAlike(const KernelModel &model, const std::string &array, const std::string &fold,
                           const Type &type) {
    for (const Access &access : model.accesses()) {
      if (access.array != array || access.space != Space::Global)
        continue;
      const Type &own = access.place->type;
      if (!access.atomic || !isAtomicUpdate(*access.stmt) || !sameFold(access.stmt->expr->folds, fold) ||
          !own.sameNumber(type))
        return false;
    }
    return true;
  }

  static std::vector<StmtRef> foldUpdate(const Update &u, const ExprRef &target, std::set<std::string> &taken) {
    ExprRef value = asNumber(target->type, u.value); // as the atomic takes it
    if (u.fold != "min" && u.fold != "max")
      return {foldInto(u.fold, target, value)};
    ExprRef local = var(freshName(taken, "value"), target->type); // it is used twice
    return {declStmt(local->text, target->type, value), foldInto(u.fold, target, local)};
  }

  /// What every update's value is divided by, where the sum may be divided instead: a division for each element takes
  /// longer than reading it. A parameter or a constant, an integer, and the quotient is a double: then no sum of what
  /// is divided overflows where the quotients' did not, short of 1e298. Null: there is none.
  static ExprRef commonDivisor(const KernelModel &model, const std::vector<Update> &updates) {
    ExprRef common;
    for (const Update &u : updates) {
      const ExprRef &v = u.value;
      bool isQuotient = isBinary(v, "/") && v->type.cls == Type::Class::Float && v->type.bytes == 8;
      if (!isQuotient || (u.fold != "+" && u.fold != "-") || (common && !equal(common, v->args[1])))
        return nullptr;
      common = v->args[1];
    }
    ExprRef divisor = common;
    while (divisor->kind == ExprKind::Cast)
      divisor = divisor->args[0];
    bool isInt = divisor->type.cls == Type::Class::Int;
    return isInt && (divisor->kind == ExprKind::Var ? isParameter(model, divisor->text)
                                                    : constantValue(divisor).value_or(0) > 0)
               ? common
               : nullptr;
  }

  /// A register for each element (or member of one) that is updated.
  static llvm::Error intoRegisters(KernelState &state, Kernel &kernel, const KernelModel &model,
                                   const std::vector<Update> &updates, const std::string &array,
                                   const ThreadGroup &group) {
    std::vector<std::vector<Update>> places;
    for (const Update &u : updates) {
      auto same = llvm::find_if(places, [&](const std::vector<Update> &p) {
        return p[0].access->array == u.access->array && p[0].access->subscripts == u.access->subscripts &&
               sameMember(*p[0].access, *u.access) && p[0].access->place->text == u.access->place->text;
      });
      if (same != places.end())
        same->push_back(u);
      else
        places.push_back({u});
      if (places.size() * u.access->place->type.bytes > mostBytes)
        return notApplicable("'{0}' is updated at too many elements for registers (line {1})", array, u.stmt->line);
    }
    std::vector<StmtRef> before, after;
    std::set<std::string> taken = allNames(kernel);
    std::vector<BlockSum> sums;
    for (const std::vector<Update> &place : places)
      if (llvm::Error e = intoRegister(state, kernel, model, place, array, taken, before, sums))
        return e;
    std::vector<BlockSum> many; // of the first one's type
    for (const BlockSum &sum : sums)
      if (sum.reduction.fold == Fold{Fold::Kind::Operator, "+"} &&
          sum.reduction.type.sameNumber(sums.front().reduction.type))
        many.push_back(sum);
    if (many.size() >= manySums)
      llvm::append_range(after, combineMany(group, many, taken));
    Combiner combiner(group, taken);
    for (const BlockSum &sum : sums) {
      auto isDone = [&](const BlockSum &other) { return other.reduction.variable == sum.reduction.variable; };
      if (many.size() >= manySums && llvm::any_of(many, isDone))
        continue;
      const Type &type = sum.reduction.type;
      ExprRef total = var(sum.reduction.variable, type);
      llvm::append_range(after, combiner.combine(sum.reduction));
      ExprRef any = binary("!=", total, neutral(sum.update->folds, type));
      StmtRef update = exprStmt(updateLike(sum.update, sum.address, sum.whole(total)));
      after.push_back(ifStmt(logicalAnd(group.isFirst(), any), block({update})));
    }
    std::vector<StmtRef> &body = kernel.body->body;
    body.insert(body.begin(), before.begin(), before.end());
    body.insert(body.end(), after.begin(), after.end());
    return llvm::Error::success();
  }

  static llvm::Error intoRegister(KernelState &state, Kernel &kernel, const KernelModel &model,
                                  std::vector<Update> updates, const std::string &array, std::set<std::string> &taken,
                                  std::vector<StmtRef> &before, std::vector<BlockSum> &sums) {
    const ExprRef &place = updates.front().access->place;
    Type type = place->type.unqualified();
    const bool isFixed = isFixedPlace(place) && updates.front().access->root->kind != ExprKind::Var;
    const Poly index = isFixed ? Poly(0) : updates.front().access->subscripts[0];
    for (const Update &u : isFixed ? decltype(updates)() : updates) {
      for (const auto &[monomial, coefficient] : u.access->subscripts[0].terms)
        if (monomial.size() > 1)
          return notApplicable("the element of '{0}' is a product, which may overflow in another type (line {1})",
                               array, u.stmt->line);
      for (const std::string &atom : u.access->subscripts[0].atoms())
        if (!isParameter(model, atom) && !atom.starts_with("blockIdx."))
          return notApplicable("the element of '{0}' differs between threads (line {1})", array, u.stmt->line);
    }
    std::string parts;
    for (ExprRef e = place; e->kind == ExprKind::Member || (isFixed && e->kind == ExprKind::Subscript); e = e->args[0])
      parts = "_" + (e->kind == ExprKind::Member ? e->text : std::to_string(*constantValue(e->args[1]))) + parts;
    std::string wish = array + parts;
    Reduction reduction{freshName(taken, wish + "_of_thread"), type, {Fold::Kind::Operator, "+"}};
    const std::string &fold = updates.front().fold;
    if (fold == "min" || fold == "max")
      reduction.fold = {Fold::Kind::Compare, fold == "min" ? "<" : ">"};
    else if (fold != "-")
      reduction.fold.op = fold;
    ExprRef sum = var(reduction.variable, type), start = neutral(fold, type);
    ExprRef element = place; // of a pointer to a record: parameters alone
    if (isFixed) {
      // it names itself
    } else if (updates.front().access->node->kind == ExprKind::Subscript) {
      element = elementExpr(model, *updates.front().access, index);
      for (const ExprRef &member : updates.front().access->members())
        element = mapOperands(member, [&](const ExprRef &) { return element; });
    } else if (place != updates.front().access->node || place->args[0]->kind != ExprKind::Var ||
               !model.param(place->args[0]->text)) {
      return notApplicable("the place of the update is not understood (line {0})", updates.front().stmt->line);
    }
    const ExprRef update = updates.front().stmt->expr;
    ExprRef divisor = commonDivisor(model, updates);
    std::function<ExprRef(const ExprRef &)> whole = [](const ExprRef &total) { return total; };
    if (divisor && type.cls == Type::Class::Float && type.bytes == 8) {
      for (Update &u : updates)
        u.value = u.value->args[0];
      ExprRef value = divisor;
      while (value->kind == ExprKind::Cast)
        value = value->args[0];
      if (value->kind == ExprKind::Var)
        state.require(value->text + " >= 1", "the sum is divided in place of its terms");
      whole = [divisor, type](const ExprRef &total) { return binary("/", total, divisor, type); };
    }
    for (const Update &u : updates)
      replaceUpdate(kernel, u, foldUpdate(u, sum, taken));
    before.push_back(declStmt(reduction.variable, type, start));
    bool isElement = element->kind == ExprKind::Subscript;
    ExprRef address = isElement && constantValue(element->args[1]) == 0 ? element->args[0] : addressOf(element);
    sums.push_back({reduction, update, address, whole});
    return llvm::Error::success();
  }
};
} // namespace

DEFINE_TRANSFORM(PrivatizeAtomic)
