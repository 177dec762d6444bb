//===- RowThreads.cpp - which threads of a launch belong to a row ---------===//
#include "FuseInBlocks.h"
#include "FuseKernels.h"
#include "ThreadMapping.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// Factors of the index in subscripts of global arrays that do not change during a launch.
static std::vector<Poly> stridesOf(const KernelModel &model, const std::string &index) {
  std::vector<Poly> found;
  for (const Access &access : model.accesses()) {
    if (access.space != Space::Global || access.subscripts.size() != 1)
      continue;
    auto factor = access.subscripts[0].coefficient(index);
    if (factor && !factor->terms.empty() && onlyLaunchConstants(model, *factor) && !llvm::is_contained(found, *factor))
      found.push_back(*factor);
  }
  return found;
}

std::vector<RowGuess> optiml::guessesOf(const Kernel &kernel) {
  std::shared_ptr<Kernel> part = kernel.clone();
  const std::set<std::string> turns = endTurns(*part);
  const std::array<AxisUse, 3> uses = normalizeGlobalIndex(*part, {0, 0, 0});
  const KernelModel model(*part);
  std::vector<RowGuess> found;
  auto add = [&](RowCount count, const Poly &inner) {
    if (RowGuess guess{std::move(count), inner}; !llvm::is_contained(found, guess))
      found.push_back(std::move(guess));
  };
  for (unsigned axis : {2u, 1u, 0u}) {
    const bool takesTurns = turns.count(axisName("globalTurn", axis)) != 0;
    if (!uses[axis].global && !takesTurns) {
      for (const Poly &stride : stridesOf(model, axisName("blockIdx", axis)))
        add({std::nullopt, std::nullopt, axis, false}, stride);
      continue;
    }
    const std::string index = axisName(takesTurns ? "globalTurn" : "globalIdx", axis);
    const auto bound = upperBoundOf(model, index, /*ofWrites=*/true);
    if (!bound)
      for (const Poly &stride : stridesOf(model, index))
        add({std::nullopt, std::nullopt, axis, true}, stride);
    walkExprs(*part->body, [&](const ExprRef &e) { // thread / (threads of a row)
      if (!isBinary(e, "/") && !isBinary(e, ">>"))
        return;
      Poly by = model.poly(e->args[1]);
      if (e->text == ">>")
        by = by.constant() && *by.constant() >= 0 && *by.constant() < 31 ? Poly(int64_t(1) << *by.constant()) : Poly();
      if (by.terms.empty() || by.constant().value_or(1) < 1 || !(model.poly(e->args[0]) == Poly::atom(index)))
        return;
      auto rows = bound ? quotientOf(*bound, by) : std::nullopt;
      if (rows)
        add({rows, std::nullopt, 0, false}, by);
      else if (planText(model, by) && (!bound || planText(model, *bound)))
        add({bound, by, bound ? 0 : axis, !bound}, by);
    });
    if (!bound)
      continue;
    if (axis)
      for (const Poly &stride : stridesOf(model, index))
        add({bound, std::nullopt, 0, false}, stride);
    else
      add({bound, std::nullopt, 0, false}, Poly(1)); // a thread for each row
  }
  return found;
}

std::string RowCount::text(const KernelModel &model) const {
  const std::string suffix(1, char('x' + axis));
  const std::string all = rows ? *planText(model, *rows) : "grid." + suffix + (ofThreads ? " * block." + suffix : "");
  return by ? "(" + all + ") / max(1, " + *planText(model, *by) + ")" : all;
}

StmtRef optiml::turnsOfThreads(const std::string &at, const Type &type, const ExprRef &upper, StmtRef body) {
  StmtRef loop = countedFor(at, type, axisBuiltin("threadIdx", 0), upper, 1, std::move(body), NoUnroll);
  loop->step = assign("+=", var(at, type), axisBuiltin("blockDim", 0));
  return loop;
}

std::vector<StmtRef> optiml::workOfBlock(const StmtRef &work, size_t loops, int64_t &most,
                                         std::set<const Stmt *> &all) {
  if (!loops)
    return {ifStmt(binary("==", axisBuiltin("threadIdx", 0), intLit(0), Type::makeBool()), work)};
  StmtRef innermost = work->body.front();
  all.insert(innermost.get());
  while (--loops) {
    innermost = innermost->body[0]->body.front();
    all.insert(innermost.get());
  }
  const ExprRef upper = innermost->expr->args[1];
  *innermost = *turnsOfThreads(innermost->init->text, innermost->init->type, upper, innermost->body[0]);
  most = std::max(most, constantValue(upper).value_or(0));
  return work->body;
}

std::vector<RowSpace> optiml::rowSpaces(const Kernel &kernel) {
  std::shared_ptr<Kernel> part = kernel.clone();
  std::array<AxisUse, 3> uses = normalizeGlobalIndex(*part, {0, 0, 0});
  if (!uses[0].global || llvm::any_of(uses, [](const AxisUse &use) { return use.other; }) || uses[1].global ||
      uses[2].global)
    return {};
  KernelModel model(*part);
  const Poly thread = Poly::atom("globalIdx.x");
  auto rows = upperBoundOf(model, "globalIdx.x");
  if (!rows || rows->terms.size() != 1)
    return {};
  std::string name = "row";
  walk(*part->body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl && model.singleAssignment(s.text) == &s && s.type.isInt() &&
        model.poly(s.expr) == thread)
      name = s.text;
  });
  std::vector<RowSpace> found;
  for (const Access &access : model.accesses()) {
    if (access.space != Space::Global || access.subscripts.size() != 1)
      continue;
    const Poly &index = access.subscripts[0];
    auto inner = index.coefficient(thread.str());
    if (!inner || inner->terms.size() != 1 ||
        llvm::any_of(inner->atoms(), [&](const std::string &atom) { return !isParameter(model, atom); }))
      continue;
    RowSpace space{name, *rows, *inner, Poly(1), {}};
    for (const std::string &atom : index.atoms())
      if (auto loop = model.loopOf(atom); loop && index.coefficient(atom) == std::optional(*inner * *rows))
        space.outer = model.poly(loop->upper);
    bool known =
        llvm::any_of(found, [&](const RowSpace &s) { return s.inner == space.inner && s.outer == space.outer; });
    if (!known && !(space.inner * space.outer == Poly(1)))
      found.push_back(space);
  }
  return found;
}

/// Text that is kept as it is may ask for the thread's place.
static bool asksForPlace(const std::string &text) {
  return llvm::any_of(std::initializer_list<const char *>{"Idx", "Dim"},
                      [&](const char *word) { return text.find(word) != std::string::npos; });
}

bool optiml::hidesPlace(const Kernel &kernel) {
  bool hides = false;
  walkExprs(*kernel.body, [&](const ExprRef &e) { hides |= e->kind == ExprKind::Opaque && asksForPlace(e->text); });
  walk(*kernel.body, [&](Stmt &s) { hides |= s.kind == StmtKind::Opaque && asksForPlace(s.text); });
  return hides;
}

RowSpace optiml::elementSpace(const Poly &rows) {
  RowSpace space{"at", rows, Poly(1), Poly(1), {}};
  space.ofElements = true;
  return space;
}

bool optiml::isAlongX(const Kernel &kernel) {
  const std::set<std::string> ofX = builtinsOf(kernel, 0);
  return !ofX.empty() && !ofX.count("gridDim") && builtinsOf(kernel, 1).empty() && builtinsOf(kernel, 2).empty();
}

std::optional<Poly> optiml::elementsAlongX(const Kernel &kernel) {
  const std::shared_ptr<Kernel> part = kernel.clone();
  normalizeGlobalIndex(*part, {0, 0, 0});
  return upperBoundOf(KernelModel(*part), "globalIdx.x", /*ofWrites=*/true);
}

bool optiml::hasOtherElements(const Kernel &kernel, const std::optional<Poly> &elements) {
  return isAlongX(kernel) && (!elements || elementsAlongX(kernel) != elements);
}

llvm::Expected<std::vector<Condition>> optiml::coverRows(const KernelModel &model, const Poly &rows) {
  auto text = planText(model, rows);
  if (!text)
    return notApplicable("'{0}' cannot be tested before the launch", rows.str());
  std::vector<Condition> conditions = {{IntExpr::of(*text + " <= " + threadsAlong(0)), "no element is left out"},
                                       {IntExpr::of(threadsAlong(0) + " <= 2147483647"), "indices of 32 bits"}};
  for (const char *extent : {"grid.y", "grid.z", "block.y", "block.z"})
    conditions.push_back({IntExpr::of(std::string(extent) + " == 1"), "no thread does what another one does"});
  return conditions;
}

/// Takes the one whose elements lie closest out of the list; nothing where that is not seen.
static std::optional<IndexStride> takeClosest(std::vector<IndexStride> &from, const Poly &unit) {
  for (auto it = from.begin(); it != from.end(); ++it)
    if (quotientOf(it->elements, unit) && llvm::all_of(from, [&](const IndexStride &other) {
          return quotientOf(other.elements, it->elements).has_value();
        })) {
      IndexStride found = *it;
      from.erase(it);
      return found;
    }
  return std::nullopt;
}

std::vector<IndexStride> optiml::elementStrides(const KernelModel &model, const Access &access,
                                                llvm::ArrayRef<std::string> indices, const Poly &plane) {
  if (access.space != Space::Global || access.subscripts.size() != 1)
    return {};
  std::vector<IndexStride> found, sorted;
  for (const std::string &index : indices)
    if (auto stride = access.subscripts[0].coefficient(index);
        stride && !(*stride == plane) && !stride->terms.empty() && onlyLaunchConstants(model, *stride))
      found.push_back({index, *stride});
  while (auto next = takeClosest(found, sorted.empty() ? Poly(1) : sorted.back().elements))
    sorted.push_back(std::move(*next));
  const bool good = found.empty() && !sorted.empty() && sorted.front().elements == Poly(1);
  return good ? sorted : std::vector<IndexStride>();
}
