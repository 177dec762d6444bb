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

std::string KernelState::gridAlong(unsigned axis) const { return std::string("grid.") + char('x' + axes[axis]); }
std::string KernelState::blockAlong(unsigned axis) const { return std::string("block.") + char('x' + axes[axis]); }
std::string KernelState::threadsAlong(unsigned axis) const { return gridAlong(axis) + " * " + blockAlong(axis); }

void KernelState::require(const std::string &expression, const std::string &why) {
  IntExpr parsed = IntExpr::of(expression);
  for (const Condition &condition : rewrite.conditions)
    if (condition.expression == parsed)
      return;
  rewrite.conditions.push_back({parsed, why});
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
  step.grid = {IntExpr::of("grid.x"), IntExpr::of("grid.y"), IntExpr::of("grid.z")};
  step.block = {IntExpr::of("block.x"), IntExpr::of("block.y"), IntExpr::of("block.z")};
  step.sharedBytes = IntExpr::of("shared");
  for (const Param &param : tree->params) {
    step.arguments.push_back(param.name);
    for (const Param::Field &field : param.fields)
      if (field.type.cls == Type::Class::Int)
        state.rewrite.members[param.name + "." + field.name] = {field.offset, field.type.bytes, field.type.isSigned};
  }
  state.rewrite.plan.steps = {step};
  state.original = std::move(tree);
  return state;
}
