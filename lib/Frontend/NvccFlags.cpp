//===- NvccFlags.cpp - the table of nvcc's flags --------------------------===//
#include "NvccFlags.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>

using namespace optiml;

static const NvccFlag table[] = {
#define NVCC_FLAG(name, shape, meaning) {name, NvccFlag::Shape::shape, NvccFlag::Meaning::meaning},
#include "optiml/Support/NvccFlags.def"
};

const NvccFlag *optiml::findNvccFlag(llvm::StringRef name) {
  assert(llvm::is_sorted(table, [](const NvccFlag &a, const NvccFlag &b) { return a.name < b.name; }));
  const NvccFlag *row = llvm::lower_bound(table, name, [](const NvccFlag &a, llvm::StringRef n) { return a.name < n; });
  return row != std::end(table) && row->name == name ? row : nullptr;
}
