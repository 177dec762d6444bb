//===- Transforms.h - one maker a transform ---------------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_TRANSFORMS_H
#define OPTIML_LIB_TRANSFORMS_TRANSFORMS_H

#include "optiml/Support/Error.h"
#include "optiml/Transforms/Transform.h"

namespace optiml {
#define TRANSFORM(CLASS) const Transform *make##CLASS();
#include "Transforms.def"
} // namespace optiml

/// The maker of a transform, of which there is one.
#define DEFINE_TRANSFORM(CLASS)                                                                                        \
  const Transform *optiml::make##CLASS() {                                                                             \
    static const CLASS transform;                                                                                      \
    return &transform;                                                                                                 \
  }

#endif
