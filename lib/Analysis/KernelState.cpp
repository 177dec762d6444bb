//===- KernelState.cpp - a kernel on its way through a recipe -------------===//
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"

using namespace optiml;

std::array<int64_t, 3> KernelState::pinnedBlock() const {
  std::array<int64_t, 3> result{0, 0, 0};
  if (rewrite.plan.steps.size() != 1)
    return result;
  for (unsigned axis = 0; axis < 3; ++axis)
    if (auto value = rewrite.plan.steps[0].block[axis].evaluate([](const std::string &) { return std::nullopt; }))
      result[axis] = *value;
  return result;
}

std::optional<int64_t> LaunchHints::evaluate(const IntExpr &e) const {
  return e.evaluate([&](const std::string &name) {
    auto it = scalars.find(name);
    return it == scalars.end() ? std::nullopt : std::optional(it->second);
  });
}

void KernelState::requireBlock(const std::array<int64_t, 3> &shape, const std::string &why) {
  for (unsigned axis = 0; axis < 3; ++axis)
    require(std::string("block.") + char('x' + axis) + " == " + std::to_string(shape[axis]), why);
}

KernelState KernelState::withTree(std::shared_ptr<const Kernel> tree) const {
  KernelState result = *this;
  result.tree = std::move(tree);
  return result;
}

IntExpr KernelState::overOriginal(const std::string &expression) const {
  return IntExpr::of(expression).substitute([&](const std::string &name) {
    size_t axis = size_t(name.back() - 'x');
    if (name.starts_with("grid."))
      return std::optional(blocks[axis]);
    return name.starts_with("block.") ? std::optional(extents[axis]) : std::nullopt;
  });
}

void KernelState::require(const IntExpr &expression, const std::string &why) {
  for (const Condition &condition : rewrite.conditions)
    if (condition.expression == expression)
      return;
  rewrite.conditions.push_back({expression, why});
}

KernelState optiml::originalState(std::shared_ptr<const Kernel> tree, const std::string &name,
                                  const std::string &symbol, const std::string &twin, const LaunchHints &hints) {
  KernelState state;
  auto renamed = tree->clone();
  renamed->name = twin;
  state.tree = renamed;
  state.hints = hints;
  state.rewrite.original = name;
  state.rewrite.originalSymbol = symbol;
  state.rewrite.twin = twin;
  state.rewrite.originalParameters = parametersOf(*tree);
  if (tree->maxThreads)
    state.rewrite.originalMaxThreads = tree->maxThreads;
  LaunchStep step;
  step.kernel = twin;
  step.grid = state.blocks;
  step.block = {IntExpr::of("block.x"), IntExpr::of("block.y"), IntExpr::of("block.z")};
  step.sharedBytes = IntExpr::of("shared");
  for (const Param &param : tree->params) {
    step.arguments.push_back(param.name);
    for (const Param::Field &field : param.fields)
      if (field.type.cls == Type::Class::Int || field.type.isPointer())
        state.rewrite.members[param.name + "." + field.name] = {field.offset, field.type.bytes,
                                                                field.type.isSigned && !field.type.isPointer()};
  }
  state.rewrite.plan.steps = {step};
  state.touched = touchedRanges(tree);
  state.original = std::move(tree);
  return state;
}
