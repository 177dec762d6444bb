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
