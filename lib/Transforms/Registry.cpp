//===- Registry.cpp - every transform -------------------------------------===//
#include "Transforms.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/Transform.h"

using namespace optiml;

Transform::~Transform() = default;

const std::vector<const Transform *> &optiml::allTransforms() {
  static const std::vector<const Transform *> all = {
#define TRANSFORM(CLASS) make##CLASS(),
#include "Transforms.def"
  };
  return all;
}

const Transform *optiml::findTransform(llvm::StringRef name) {
  for (const Transform *transform : allTransforms())
    if (transform->name() == name)
      return transform;
  return nullptr;
}

std::array<int64_t, 3> KernelState::pinnedBlock() const {
  std::array<int64_t, 3> result{0, 0, 0};
  if (rewrite.plan.steps.size() != 1)
    return result;
  for (unsigned axis = 0; axis < 3; ++axis)
    if (auto value = rewrite.plan.steps[0].block[axis].evaluate([](const std::string &) { return std::nullopt; }))
      result[axis] = *value;
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
  state.rewrite.originalParameters = paramText(*tree);
  LaunchStep step;
  step.kernel = twin;
  step.grid = state.blocks;
  step.block = {IntExpr::of("block.x"), IntExpr::of("block.y"), IntExpr::of("block.z")};
  step.sharedBytes = IntExpr::of("shared");
  for (const Param &param : tree->params) {
    step.arguments.push_back(param.name);
    for (const Param::Field &field : param.fields)
      if (field.type.cls == Type::Class::Int || field.type.isPointer())
        state.rewrite.members[param.name + "." + field.name] = {field.offset, field.type.bytes, field.type.isSigned && !field.type.isPointer()};
  }
  state.rewrite.plan.steps = {step};
  state.original = std::move(tree);
  return state;
}
