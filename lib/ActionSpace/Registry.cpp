//===- Registry.cpp - every transform -------------------------------------===//
#include "optiml/ActionSpace/Registry.h"
#include "Transforms.h"

using namespace optiml;

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

std::optional<KernelState> optiml::withFixedBlock(const KernelState &state) {
  const Transform *shape = findTransform("block-shape");
  std::vector<ActionTemplate> sites = shape->sites(state);
  if (sites.empty())
    return std::nullopt;
  const llvm::StringRef site = sites.front().site;
  auto fixed = shape->apply(state, site.drop_front(state.rewrite.original.size()), sites.front().values.front());
  if (fixed)
    return std::move(*fixed);
  llvm::consumeError(fixed.takeError());
  return std::nullopt;
}
