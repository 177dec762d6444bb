//===- Hash.cpp - content keys --------------------------------------------===//
#include "optiml/Core/Hash.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

std::string optiml::contentHash(llvm::ArrayRef<std::string> parts) {
  std::string text;
  for (const std::string &part : parts)
    text += std::to_string(part.size()) + ":" + part;
  llvm::XXH128_hash_t hash =
      llvm::xxh3_128bits(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
  return llvm::utohexstr(hash.high64, /*LowerCase=*/true, 16) + llvm::utohexstr(hash.low64, /*LowerCase=*/true, 16);
}
