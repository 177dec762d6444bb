//===- TempDir.cpp - scratch folders and whole-file I/O -------------------===//
#include "optiml/Support/TempDir.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace optiml;

static std::string tempRoot() {
  const char *base = getenv("TMPDIR");
  return base && *base ? base : "/tmp";
}

/// In each folder: tells it from a folder of the user's that happens to be called alike.
static constexpr llvm::StringLiteral lockName = "/.optiml-scratch";

/// A locked descriptor of the folder's lock; -1 when another process has locked it, or it cannot be opened.
static int lockFolder(const std::string &path, int flags) {
  int fd = open((path + lockName.str()).c_str(), flags | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

llvm::Expected<TempDir> TempDir::create(const std::string &prefix) {
  std::string pattern = tempRoot() + "/" + prefix + "-XXXXXX";
  if (!mkdtemp(pattern.data()))
    return makeError("cannot create a scratch folder '{0}': {1}; set TMPDIR to a writable folder", pattern,
                     std::generic_category().message(errno));
  return TempDir(pattern, lockFolder(pattern, O_CREAT));
}

TempDir::TempDir(TempDir &&other) noexcept : dir(std::move(other.dir)), lock(std::exchange(other.lock, -1)) {
  other.dir.clear();
}

TempDir &TempDir::operator=(TempDir &&other) noexcept {
  if (this != &other) {
    remove();
    dir = std::move(other.dir);
    other.dir.clear();
    lock = std::exchange(other.lock, -1);
  }
  return *this;
}

TempDir::~TempDir() { remove(); }

void TempDir::remove() {
  if (!dir.empty())
    llvm::sys::fs::remove_directories(dir);
  if (lock >= 0)
    close(lock);
}

unsigned optiml::removeAbandonedTempDirs() {
  constexpr time_t youngest = 60; // a folder is made before it is locked
  unsigned removed = 0;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(tempRoot(), error, /*follow_symlinks=*/false), end; at != end && !error;
       at.increment(error)) {
    struct stat status;
    if (!llvm::sys::path::filename(at->path()).starts_with("optiml-") || lstat(at->path().c_str(), &status) != 0 ||
        !S_ISDIR(status.st_mode) || status.st_uid != geteuid() || time(nullptr) - status.st_mtime < youngest)
      continue;
    int fd = lockFolder(at->path(), 0);
    if (fd < 0)
      continue;
    removed += !llvm::sys::fs::remove_directories(at->path());
    close(fd);
  }
  return removed;
}

std::string optiml::userCacheFolder() {
  for (auto [variable, below] : {std::pair("XDG_CACHE_HOME", "/optiml"), std::pair("HOME", "/.cache/optiml")})
    if (const char *folder = getenv(variable); folder && folder[0] == '/')
      return folder + std::string(below);
  return "";
}

std::string optiml::absolutePath(llvm::StringRef path) {
  llvm::SmallString<256> absolute(path);
  llvm::sys::fs::make_absolute(absolute);
  return absolute.str().str();
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
