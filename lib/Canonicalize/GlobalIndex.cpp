//===- GlobalIndex.cpp - which index of the launch a thread has -----------===//
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Analysis/TreeQueries.h"
#include <algorithm>

using namespace optiml;

ExprRef optiml::axisBuiltin(const char *base, unsigned axis) {
  return builtin(std::string(base) + "." + char('x' + axis));
}

ExprRef optiml::globalIndexExpr(unsigned axis, int64_t extent) {
  return add(mul(axisBuiltin("blockIdx", axis), intLit(extent)), axisBuiltin("threadIdx", axis));
}

ExprRef optiml::globalIndexExpr(unsigned axis) {
  return add(mul(axisBuiltin("blockIdx", axis), axisBuiltin("blockDim", axis)), axisBuiltin("threadIdx", axis));
}

static std::vector<ExprRef> sumTerms(const ExprRef &e) {
  if (!isBinary(e, "+") || !e->type.isInt())
    return {e};
  std::vector<ExprRef> terms = sumTerms(e->args[0]);
  llvm::append_range(terms, sumTerms(e->args[1]));
  return terms;
}

/// `e` as a value of integer type `type`: builtin indices are unsigned, and i - 1 < 0 holds for signed ones only.
static ExprRef asInteger(const Type &type, const ExprRef &e) {
  if (!type.isSigned && type.bytes == 4)
    return e;
  auto cast = std::make_shared<Expr>(*castTo(type, e));
  cast->line = e->line;
  return cast;
}

namespace {
/// Where the blocks of an axis begin: blockIdx.axis * blockDim.axis * times.
struct BlockOffset {
  unsigned axis;
  int64_t times;
};
} // namespace

/// Recognizes blockIdx.a * blockDim.a, with the pinned extent in place of blockDim, or a multiple of it.
static std::optional<BlockOffset> blockOffset(const ExprRef &term, const std::array<int64_t, 3> &block) {
  ExprRef e = withoutWideCasts(term);
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::string index = axisName("blockIdx", axis), extent = axisName("blockDim", axis);
    if (isBuiltin(e, index) && block[axis] == 1)
      return BlockOffset{axis, 1};
    if (!isBinary(e, "*"))
      continue;
    for (unsigned side = 0; side < 2; ++side) {
      ExprRef a = withoutWideCasts(e->args[side]), b = withoutWideCasts(e->args[1 - side]);
      if (!isBuiltin(a, index))
        continue;
      auto constant = constantValue(b);
      if (isBuiltin(b, extent))
        return BlockOffset{axis, 1};
      if (constant && block[axis] && *constant > 0 && *constant % block[axis] == 0 &&
          (*constant == block[axis] || e->type.bytes == term->type.bytes)) // a product of 32 bits may have wrapped
        return BlockOffset{axis, *constant / block[axis]};
    }
  }
  return std::nullopt;
}

/// `e` is `name`, `times` times; small numbers, so that casts change nothing.
static bool isMultipleOf(const ExprRef &e, const std::string &name, int64_t times) {
  const ExprRef plain = withoutWideCasts(e);
  if (times == 1)
    return isBuiltin(plain, name);
  return times <= 1024 && isBinary(plain, "*") && isBuiltin(withoutWideCasts(plain->args[0]), name) &&
         constantValue(plain->args[1]) == times;
}

/// threadIdx.a == 0 && blockIdx.a == 0, or its contrary with != and ||: the first thread along that axis; -1 for
/// others.
static int firstThreadAxis(const ExprRef &e) {
  const char *comparison = e->text == "&&" ? "==" : "!=";
  std::set<std::string> indices;
  for (const ExprRef &side : e->args) {
    if (!isBinary(side, comparison))
      return -1;
    for (unsigned i = 0; i < 2; ++i)
      if (ExprRef index = withoutWideCasts(side->args[i]);
          index->kind == ExprKind::Builtin && constantValue(side->args[1 - i]) == 0)
        indices.insert(index->text);
  }
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::string suffix = std::string(".") + char('x' + axis);
    if (indices == std::set<std::string>{"threadIdx" + suffix, "blockIdx" + suffix})
      return int(axis);
  }
  return -1;
}

/// Replaces locals that only rename an index (int tx = threadIdx.x;) or where a block begins (int first = blockIdx.x *
/// blockDim.x;) by what they stand for.
static void propagateIndexCopies(Kernel &kernel) {
  KernelModel model(kernel);
  std::map<std::string, ExprRef> copies;
  auto isIndex = [](const ExprRef &e) { return withoutWideCasts(e)->kind == ExprKind::Builtin; };
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::Decl || !model.singleAssignment(s.text) || !s.type.isInt() || s.type.bytes < 4)
      return;
    const ExprRef value = substitute(s.expr, copies), e = withoutWideCasts(value);
    if (isIndex(e) || (isBinary(e, "*") && e->type.bytes == 4 && isIndex(e->args[0]) && isIndex(e->args[1]) &&
                       blockOffset(e, {0, 0, 0})))
      copies[s.text] = asInteger(s.type, e);
  });
  auto names = llvm::make_first_range(copies);
  if (copies.empty() || opaqueMentions(*kernel.body, {names.begin(), names.end()}))
    return;
  substitute(*kernel.body, copies);
  walk(*kernel.body, [&](Stmt &s) {
    std::erase_if(s.body, [&](const StmtRef &c) { return c->kind == StmtKind::Decl && copies.count(c->text); });
  });
}

ExprRef optiml::withoutPointerSum(const ExprRef &e) {
  if (e->kind != ExprKind::Subscript || !isBinary(e->args[0], "+"))
    return nullptr;
  const ExprRef &sum = e->args[0];
  bool left = sum->args[0]->type.isPointer();
  const ExprRef &base = sum->args[left ? 0 : 1], &offset = sum->args[left ? 1 : 0];
  ExprRef element =
      subscript(base, add(offset->type.bytes == 8 ? offset : castTo(Type::makeLong(), offset), e->args[1]), e->type);
  ExprRef simpler = withoutPointerSum(element);
  return simpler ? simpler : element;
}

void optiml::inlinePointerLocals(Kernel &kernel) {
  KernelModel model(kernel);
  std::map<std::string, ExprRef> pointers;
  auto isArray = [&](const ExprRef &e) { // whose place does not change, whatever it holds
    const Stmt *d = e->kind == ExprKind::Var ? model.declaration(e->text) : nullptr;
    return d && !d->dims.empty();
  };
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::Decl || !s.type.isPointer() || !s.dims.empty() || model.singleAssignment(s.text) != &s ||
        !s.expr)
      return;
    bool plain = true; // neither memory nor effects
    walk(s.expr, [&](const ExprRef &e) {
      plain &= e->kind != ExprKind::Var || isArray(e) || model.stable(e);
      bool arithmetic = e->kind == ExprKind::Var || e->kind == ExprKind::Builtin || e->kind == ExprKind::IntLit ||
                        e->kind == ExprKind::Binary || e->kind == ExprKind::Cast ||
                        (e->kind == ExprKind::Member && !e->args[0]->type.isPointer());
      plain &= arithmetic && (e->kind != ExprKind::Cast || e->type.isInt());
    });
    if (plain && s.expr->type.isPointer() && s.expr->type.pointee && s.type.pointee &&
        s.expr->type.pointee->text == s.type.pointee->text)
      pointers[s.text] = substitute(s.expr, pointers);
  });
  auto names = llvm::make_first_range(pointers);
  if (pointers.empty() || opaqueMentions(*kernel.body, {names.begin(), names.end()}))
    return;
  substitute(*kernel.body, pointers);
  rewriteExprs(*kernel.body, withoutPointerSum);
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    std::erase_if(list, [&](const StmtRef &c) { return c->kind == StmtKind::Decl && pointers.count(c->text); });
  });
}

std::set<std::string> optiml::builtinsOf(const Kernel &kernel, unsigned axis) {
  std::set<std::string> used;
  bool opaque = false;
  static const char *const bases[] = {"threadIdx", "blockIdx", "blockDim", "gridDim"};
  auto inText = [&](const std::string &text) {
    return std::any_of(std::begin(bases), std::end(bases),
                       [&](const char *base) { return text.find(base) != std::string::npos; });
  };
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (e->kind == ExprKind::Builtin && e->text.back() == char('x' + axis))
      used.insert(e->text.substr(0, e->text.find('.')));
    opaque |= e->kind == ExprKind::Opaque && inText(e->text);
  });
  walk(*kernel.body, [&](Stmt &s) { opaque |= s.kind == StmtKind::Opaque && inText(s.text); });
  if (opaque)
    used.insert(std::begin(bases), std::end(bases));
  return used;
}

/// Which axis of the blocks goes with which axis of their threads, where that is another one for some:
/// "blockIdx.x * blockDim.y + threadIdx.y". Nothing: each goes with its own, or with several.
static std::optional<std::array<unsigned, 3>> pairedAxes(const Kernel &kernel) {
  std::array<std::optional<unsigned>, 3> partner;
  std::array<unsigned, 3> inProducts = {0, 0, 0}, mentions = {0, 0, 0};
  bool several = false;
  for (unsigned a = 0; a < 3; ++a)
    if (builtinsOf(kernel, a).count("gridDim")) // also where verbatim text names an index
      return std::nullopt;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    for (unsigned a = 0; a < 3; ++a) {
      mentions[a] += isBuiltin(e, axisName("blockIdx", a));
      for (unsigned b = 0; b < 3 && isBinary(e, "*"); ++b)
        for (unsigned side : {0u, 1u})
          if (isBuiltin(withoutWideCasts(e->args[side]), axisName("blockIdx", a)) &&
              isBuiltin(withoutWideCasts(e->args[1 - side]), axisName("blockDim", b))) {
            several |= partner[a] && *partner[a] != b;
            partner[a] = b;
            ++inProducts[a];
          }
    }
  });
  std::array<unsigned, 3> result = {3, 3, 3};
  std::array<bool, 3> taken = {false, false, false};
  bool moves = false;
  for (unsigned a = 0; a < 3; ++a) {
    if (!partner[a])
      continue;
    several |= taken[*partner[a]] || inProducts[a] != mentions[a];
    taken[*partner[a]] = true;
    result[a] = *partner[a];
    moves |= result[a] != a;
  }
  if (several || !moves)
    return std::nullopt;
  // Those that have no threads go where there are none, or to the axis that is left.
  for (bool withoutThreads : {true, false})
    for (unsigned a = 0; a < 3; ++a)
      for (unsigned b = 0; b < 3 && result[a] == 3; ++b) {
        const bool hasThreads =
            anyExpr(*kernel.body, [&](const ExprRef &e) { return isBuiltin(e, axisName("threadIdx", b)); });
        if (taken[b] || (withoutThreads && (hasThreads || !mentions[a])))
          continue;
        result[a] = b;
        taken[b] = true;
      }
  return result;
}

void optiml::pairAxes(KernelState &state, Kernel &kernel) {
  std::array<IntExpr, 3> &grid = state.rewrite.plan.steps[0].grid;
  for (unsigned a = 0; a < 3; ++a)
    if (!(grid[a] == state.blocks[a]))
      return;
  auto axes = pairedAxes(kernel);
  if (!axes)
    return;
  const std::array<IntExpr, 3> before = state.blocks;
  const LaunchHints hints = state.hints;
  std::map<std::string, ExprRef> names;
  for (unsigned a = 0; a < 3; ++a) {
    const unsigned now = (*axes)[a];
    grid[now] = state.blocks[now] = before[a];
    state.hints.grid[now] = hints.grid[a];
    names[axisName("blockIdx", a)] = axisBuiltin("blockIdx", now);
    if (now > 0 && now != a)
      state.require(IntExpr::of("(" + before[a].str() + ") <= 65535"), "a grid cannot be larger");
  }
  substitute(*kernel.body, names);
}

/// max(first, 0), where `first` is made of indices: that it is not negative holds for launches whose indices fit.
static void dropNeedlessBounds(KernelState &state, Kernel &kernel) {
  auto isMax = [](const ExprRef &e) {
    return e->kind == ExprKind::Call && e->isLibrary && e->text == "max" && e->args.size() == 2 && e->type.isInt();
  };
  if (!anyExpr(*kernel.body, isMax))
    return;
  propagateIndexCopies(kernel);
  std::set<unsigned> axes;
  auto isCount = [&](const ExprRef &e) {
    const ExprRef plain = withoutWideCasts(e);
    const auto offset = plain->kind == ExprKind::Builtin ? BlockOffset{unsigned(plain->text.back() - 'x'), 1}
                                                         : blockOffset(plain, {0, 0, 0});
    if (offset)
      axes.insert(offset->axis);
    return offset.has_value();
  };
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    for (unsigned side = 0; isMax(e) && side < 2; ++side)
      if (auto bound = constantValue(e->args[1 - side]);
          bound && *bound <= 0 && e->args[side]->type.isSigned && isCount(e->args[side]))
        return asInteger(e->type, withoutWideCasts(e->args[side]));
    return nullptr;
  });
  for (unsigned axis : axes)
    state.require(threadsAlong(axis) + " <= " + std::to_string(INT32_MAX), "indices are not negative");
}

void optiml::adoptPlainIndices(KernelState &state, Kernel &kernel) {
  dropNeedlessBounds(state, kernel);
  pairAxes(state, kernel);
  flattenGrid(state, kernel);
  separateBlocks(state, kernel);
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::string suffix(1, char('x' + axis));
    std::set<std::string> used = builtinsOf(kernel, axis);
    bool blocks = used == std::set<std::string>{"blockIdx"} && (state.hints.block[axis] == 1 || !state.hints.block[0]);
    bool threads = used == std::set<std::string>{"threadIdx"} && state.hints.grid[axis] == 1;
    if (!blocks && !threads)
      continue;
    std::string plain = (blocks ? "blockIdx." : "threadIdx.") + suffix;
    substitute(*kernel.body, {{plain, globalIndexExpr(axis)}});
    state.require((blocks ? "block." : "grid.") + suffix + " == 1", plain + " is taken for the global index");
  }
}

static constexpr const char *const indexBases[] = {"threadIdx", "blockIdx", "blockDim", "gridDim"};

/// How each axis is used in the kernel.
static std::array<AxisUse, 3> usesOf(const Kernel &kernel) {
  std::array<AxisUse, 3> uses;
  auto other = [&](unsigned axis, unsigned line) {
    uses[axis].other = true;
    if (!uses[axis].otherLine)
      uses[axis].otherLine = line;
  };
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (e->kind == ExprKind::Builtin) {
      auto [base, suffix] = llvm::StringRef(e->text).split('.');
      for (unsigned axis = 0; axis < 3; ++axis)
        if (suffix[0] == char('x' + axis) && base == "globalIdx")
          uses[axis].global = true;
        else if (suffix[0] == char('x' + axis) && llvm::is_contained(indexBases, base))
          other(axis, e->line);
    }
    if (e->kind == ExprKind::Opaque)
      for (const char *base : indexBases)
        if (e->text.find(base) != std::string::npos || e->names.count(base))
          for (unsigned axis = 0; axis < 3; ++axis)
            other(axis, e->line);
  });
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Opaque)
      for (const char *base : indexBases)
        if (s.text.find(base) != std::string::npos)
          for (AxisUse &u : uses) {
            u.other = true;
            u.otherLine = s.line;
          }
  });
  return uses;
}

std::array<AxisUse, 3> optiml::normalizeGlobalIndex(Kernel &kernel, const std::array<int64_t, 3> &block) {
  propagateIndexCopies(kernel);
  auto combine = [&](const ExprRef &e) -> ExprRef {
    if (e->kind == ExprKind::Builtin && e->text.starts_with("blockIdx."))
      return nullptr;
    if (int axis = e->kind == ExprKind::Binary && (e->text == "&&" || e->text == "||") ? firstThreadAxis(e) : -1;
        axis >= 0)
      return binary(e->text == "&&" ? "==" : "!=", axisBuiltin("globalIdx", unsigned(axis)), intLit(0),
                    Type::makeBool());
    if (!isBinary(e, "+"))
      return nullptr;
    std::vector<ExprRef> terms = sumTerms(e);
    for (size_t i = 0; i < terms.size(); ++i) {
      auto offset = blockOffset(terms[i], block);
      if (!offset || (offset->times > 1 && terms[i]->type.bytes != e->type.bytes))
        continue;
      std::string thread = axisName("threadIdx", offset->axis);
      for (size_t j = 0; j < terms.size(); ++j) {
        if (!isMultipleOf(terms[j], thread, offset->times))
          continue;
        auto index = std::make_shared<Expr>(*axisBuiltin("globalIdx", offset->axis));
        index->type = e->type.bytes == 8 ? e->type : Type::makeUnsigned();
        index->line = e->line;
        ExprRef sum = mul(e->type.bytes == 4 ? asInteger(e->type, index) : index, intLit(offset->times));
        for (size_t k = 0; k < terms.size(); ++k)
          if (k != i && k != j)
            sum = add(sum, terms[k]);
        return sum;
      }
    }
    return nullptr;
  };
  rewriteExprs(*kernel.body, combine);
  // With one thread along an axis the block index is the global index.
  for (unsigned axis = 0; axis < 3; ++axis)
    if (block[axis] == 1)
      substitute(*kernel.body, {{axisName("threadIdx", axis), intLit(0)},
                                {axisName("blockIdx", axis), axisBuiltin("globalIdx", axis)}});
  return usesOf(kernel);
}

/// The first factor is cast.
ExprRef optiml::widenedIndex(const ExprRef &index, const Type &type) {
  if (isBinary(index, "+"))
    return binary("+", widenedIndex(index->args[0], type), index->args[1]);
  if (isBinary(index, "*"))
    return binary("*", widenedIndex(index->args[0], type), index->args[1]);
  return castTo(type, index);
}

void optiml::lowerGlobalIndex(Kernel &kernel, const std::function<ExprRef(unsigned)> &make) {
  // int x = (int)index; says the same as int x = index;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl && s.expr && s.expr->kind == ExprKind::Cast && s.type.isInt() && s.type.bytes == 4 &&
        s.expr->type.isInt() && s.expr->type.bytes == 4 && s.expr->args[0]->type.isInt())
      s.expr = s.expr->args[0];
  });
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    if (e->kind != ExprKind::Builtin || !e->text.starts_with("globalIdx."))
      return nullptr;
    ExprRef index = make(unsigned(e->text.back() - 'x'));
    if (e->type.bytes != 8)
      return index;
    return widenedIndex(index, e->type); // a 64-bit global index stays one
  });
}

void optiml::lowerGlobalIndex(Kernel &kernel) {
  lowerGlobalIndex(kernel, [](unsigned axis) { return globalIndexExpr(axis); });
}
