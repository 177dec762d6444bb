//===- Fresh.cpp - other inputs for an unchanged program ------------------===//
#include "Fresh.h"
#include "CopyLog.h"
#include "Settings.h"
#include "optiml/Workload/Blob.h"
#include "optiml/Workload/Signature.h"
#include <cstring>

using namespace optiml;
using namespace optiml::emu;

void optiml::emu::freshBefore(const Launch &l) {
  if (!settings().freshSeed)
    return;
  std::vector<std::string> types = parameterTypes(l.kernel->symbol);
  if (types.size() != l.kernel->numParams)
    return;
  for (uint32_t i = 0; i < l.kernel->numParams; ++i) {
    if (!l.kernel->params[i].isPointer)
      continue;
    uint64_t address;
    memcpy(&address, l.args[i], 8);
    Allocation *a = Memory::get().find(address);
    if (!a || !a->fromHost)
      continue;
    a->fromHost = false;
    ElementType type = pointeeType(types[i]);
    if (type.kind == ElementKind::Unknown)
      continue;
    char *data = reinterpret_cast<char *>(a->address);
    uint64_t hash = strtoull(blobName(data, a->bytes).substr(0, 16).c_str(), nullptr, 16);
    if (refreshElements(data, a->bytes, type, settings().freshSeed ^ hash, !settings().freshIntegers))
      logFreshInput(hash);
  }
}
