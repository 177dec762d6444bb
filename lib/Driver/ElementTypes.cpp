//===- ElementTypes.cpp - what captured buffers hold ----------------------===//
#include "ElementTypes.h"
#include "optiml/Support/Error.h"
#include <cstring>
#include <set>

using namespace optiml;

/// The allocation that the address lies in; null where it lies in none.
static BufferImage *bufferAt(LaunchImage &launch, uint64_t address) {
  for (BufferImage &b : launch.buffers)
    if (b.symbol.empty() && address >= b.address && address - b.address < b.bytes)
      return &b;
  return nullptr;
}

static bool nameElements(LaunchImage &launch, const std::vector<PointerField> &pointers) {
  std::set<BufferImage *> unclear;
  bool any = false;
  for (const PointerField &p : pointers) {
    uint64_t address = 0;
    if (p.parameter >= launch.arguments.size() || launch.arguments[p.parameter].bytes.size() < sizeof address ||
        launch.arguments[p.parameter].bytes.size() - sizeof address < p.offset)
      continue;
    memcpy(&address, launch.arguments[p.parameter].bytes.data() + p.offset, sizeof address);
    BufferImage *buffer = bufferAt(launch, address);
    if (!buffer)
      continue;
    any = true;
    if (!buffer->element.empty() && buffer->element != p.pointee)
      unclear.insert(buffer);
    buffer->element = p.pointee;
  }
  for (BufferImage *b : unclear)
    b->element = "?";
  return any;
}

llvm::Error optiml::nameElements(Workload &workload, const std::vector<KernelDecl> &kernels) {
  bool any = false;
  for (LaunchImage &launch : workload.launches)
    for (const KernelDecl &kernel : kernels)
      if (kernel.symbol == launch.kernel)
        any |= ::nameElements(launch, kernel.pointers);
  std::string error;
  if (any && !workload.write(error))
    return makeError("{0}", error);
  return llvm::Error::success();
}
