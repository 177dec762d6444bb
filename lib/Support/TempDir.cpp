//===- TempDir.cpp - scratch folders and whole-file I/O -------------------===//
#include "optiml/Support/TempDir.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <unistd.h>

using namespace optiml;

llvm::Expected<TempDir> TempDir::create(const std::string &prefix) {
  const char *base = getenv("TMPDIR");
  std::string pattern = std::string(base && *base ? base : "/tmp") + "/" + prefix + "-XXXXXX";
  if (!mkdtemp(pattern.data()))
    return makeError("cannot create a scratch folder '{0}': {1}; set TMPDIR to a writable folder", pattern,
                     std::generic_category().message(errno));
  return TempDir(pattern);
}

TempDir::TempDir(TempDir &&other) noexcept : dir(std::move(other.dir)) { other.dir.clear(); }

TempDir &TempDir::operator=(TempDir &&other) noexcept {
  if (this != &other) {
    remove();
    dir = std::move(other.dir);
    other.dir.clear();
  }
  return *this;
}

TempDir::~TempDir() { remove(); }

void TempDir::remove() {
  if (!dir.empty())
    llvm::sys::fs::remove_directories(dir);
}

std::string optiml::userCacheFolder() {
  for (auto [variable, below] : {std::pair("XDG_CACHE_HOME", "/optiml"), std::pair("HOME", "/.cache/optiml")})
    if (const char *folder = getenv(variable); folder && folder[0] == '/')
      return folder + std::string(below);
  return "";
}

llvm::Expected<std::string> optiml::readFile(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return makeError("cannot read '{0}': {1}", path, buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

llvm::Error optiml::writeFileAtomically(const std::string &path, llvm::StringRef content) {
  llvm::SmallString<128> temporary;
  int fd;
  if (std::error_code ec = llvm::sys::fs::createUniqueFile(path + ".%%%%%%.tmp", fd, temporary))
    return makeError("cannot write '{0}': {1}", path, ec.message());
  auto cleanup = llvm::scope_exit([&] { llvm::sys::fs::remove(temporary); });
  llvm::raw_fd_ostream os(fd, /*shouldClose=*/true);
  os << content;
  os.close();
  if (os.has_error()) {
    std::string message = os.error().message();
    os.clear_error();
    return makeError("cannot write '{0}': {1}", path, message);
  }
  llvm::sys::fs::setPermissions(temporary, llvm::sys::fs::perms(0644));
  if (std::error_code ec = llvm::sys::fs::rename(temporary, path))
    return makeError("cannot write '{0}': {1}", path, ec.message());
  cleanup.release();
  return llvm::Error::success();
}
