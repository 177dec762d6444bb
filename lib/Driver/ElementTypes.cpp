//===- ElementTypes.cpp - what captured buffers hold ----------------------===//
#include "Workloads.h"
#include "optiml/Support/Error.h"
#include "optiml/Workload/Signature.h"
#include "llvm/ADT/STLExtras.h"
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
    const auto layout = recordLayout(p.pointee);
    const bool isInMiddle = layout && (address - buffer->address) % layout->bytes;
    if (isInMiddle || (!buffer->element.empty() && buffer->element != p.pointee))
      unclear.insert(buffer);
    buffer->element = p.pointee;
  }
  for (BufferImage *b : unclear)
    b->element = "?";
  return any;
}

/// A compiler may have appended to the name of a static variable.
static bool isNamed(llvm::StringRef symbol, const DeviceVariable &variable) {
  return symbol.consume_front(variable.symbol) &&
         (symbol.empty() || symbol.starts_with(".") || symbol.starts_with("__"));
}

static bool nameVariables(LaunchImage &launch, const std::vector<DeviceVariable> &variables) {
  bool any = false;
  for (BufferImage &b : launch.buffers)
    for (const DeviceVariable &v : variables)
      if (!b.symbol.empty() && isNamed(b.symbol, v)) {
        b.element = v.element;
        any = true;
      }
  return any;
}

llvm::Error optiml::nameElements(Workload &workload, const Program &program) {
  bool any = false;
  for (LaunchImage &launch : workload.launches) {
    any |= nameVariables(launch, program.variables());
    auto kernel =
        llvm::find_if(program.kernels(), [&](const KernelDecl &k) { return sameFunction(k.symbol, launch.kernel); });
    if (kernel == program.kernels().end())
      continue;
    any |= ::nameElements(launch, kernel->pointers);
    any |= launch.kernel != kernel->symbol;
    launch.kernel = kernel->symbol; // nvcc's name for it may be another one
  }
  std::string error;
  if (any && !workload.write(error))
    return makeError("{0}", error);
  return llvm::Error::success();
}
