//===- Preamble.cpp - the #include block of a file, parsed once -----------===//
//
// A small cache of Clang's precompiled preambles, kept in memory. Parsing cuda_runtime.h takes about a second, loading
// it precompiled a tenth. Building one costs more than a parse, so that a file parsed once does without.
//
//===----------------------------------------------------------------------===//
#include "PrecompiledIncludes.h"
#include "clang/Basic/Diagnostic.h"
#include "clang/Frontend/CompilerInvocation.h"
#include "clang/Serialization/PCHContainerOperations.h"
#include <list>
#include <mutex>

using namespace optiml;

namespace {

struct Entry {
  std::string key;
  unsigned requests = 0;
  std::shared_ptr<clang::PrecompiledPreamble> preamble;
};

/// Most recently used first. A preamble takes some 50 MB, and one search uses two (host and device view).
constexpr size_t maxEntries = 6;
std::mutex cacheMutex;
std::list<Entry> cache;

} // namespace

std::shared_ptr<clang::PrecompiledPreamble> optiml::findPreamble(const std::string &key,
                                                                 const clang::CompilerInvocation &invocation,
                                                                 const llvm::MemoryBuffer &buffer,
                                                                 llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> vfs) {
  clang::PreambleBounds bounds = clang::ComputePreambleBounds(invocation.getLangOpts(), buffer.getMemBufferRef(), 0);
  if (bounds.Size == 0)
    return nullptr;

  std::lock_guard<std::mutex> lock(cacheMutex);
  auto entry = llvm::find_if(cache, [&](const Entry &e) { return e.key == key; });
  if (entry == cache.end()) {
    cache.push_front(Entry{key, 0, nullptr});
    if (cache.size() > maxEntries)
      cache.pop_back();
  } else {
    cache.splice(cache.begin(), cache, entry);
  }
  Entry &current = cache.front();
  ++current.requests;
  if (current.preamble && current.preamble->CanReuse(invocation, buffer.getMemBufferRef(), bounds, *vfs))
    return current.preamble;
  if (current.requests == 1)
    return nullptr;

  clang::DiagnosticOptions diagnosticOptions;
  clang::IgnoringDiagConsumer ignore;
  auto diagnostics = llvm::makeIntrusiveRefCnt<clang::DiagnosticsEngine>(clang::DiagnosticIDs::create(),
                                                                         diagnosticOptions, &ignore, false);
  clang::PreambleCallbacks callbacks;
  llvm::ErrorOr<clang::PrecompiledPreamble> built = clang::PrecompiledPreamble::Build(
      invocation, &buffer, bounds, diagnostics, vfs, std::make_shared<clang::PCHContainerOperations>(),
      /*StoreInMemory=*/true, /*StoragePath=*/"", callbacks);
  if (!built || diagnostics->hasErrorOccurred())
    return nullptr; // the plain parse reports what is wrong
  current.preamble = std::make_shared<clang::PrecompiledPreamble>(std::move(*built));
  return current.preamble;
}
