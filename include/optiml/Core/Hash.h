//===- Hash.h - content keys ------------------------------------*- C++ -*-===//
#ifndef OPTIML_CORE_HASH_H
#define OPTIML_CORE_HASH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace optiml {

/// 128 bits of XXH3 over the parts, as 32 hexadecimal digits. Parts are told apart: {"ab","c"} and {"a","bc"} differ.
/// Stable across machines and versions; for keys, not for security.
std::string contentHash(llvm::ArrayRef<std::string> parts);

} // namespace optiml

#endif
