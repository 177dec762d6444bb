//===- Registry.h - every transform -----------------------------*- C++ -*-===//
#ifndef OPTIML_ACTIONSPACE_REGISTRY_H
#define OPTIML_ACTIONSPACE_REGISTRY_H

#include "optiml/Transforms/Transform.h"

namespace optiml {

/// Every transform, in the order of lib/Transforms/Transforms.def.
const std::vector<const Transform *> &allTransforms();
const Transform *findTransform(llvm::StringRef name);

/// The kernel once the first of its block-shape actions has fixed the block, from which many transforms start; nothing
/// where there is none.
std::optional<KernelState> withFixedBlock(const KernelState &state);

} // namespace optiml

#endif
