//===- TempDir.h - a scratch folder that cleans up after itself -*- C++ -*-===//
#ifndef OPTIML_SUPPORT_TEMPDIR_H
#define OPTIML_SUPPORT_TEMPDIR_H

#include "llvm/Support/Error.h"
#include <string>

namespace optiml {

/// A private folder under $TMPDIR (or /tmp), removed with everything in it when the object goes. A file in it,
/// `.optiml-scratch`, is locked (flock) while it exists, which tells it from one whose process was killed.
class TempDir {
public:
  /// `prefix` makes the folder's name recognizable, e.g. "optiml-search".
  static llvm::Expected<TempDir> create(const std::string &prefix);
  TempDir(TempDir &&other) noexcept;
  TempDir &operator=(TempDir &&other) noexcept;
  TempDir(const TempDir &) = delete;
  ~TempDir();
  const std::string &path() const { return dir; }
  std::string file(const std::string &name) const { return dir + "/" + name; }

private:
  TempDir(std::string dir, int lock) : dir(std::move(dir)), lock(lock) {}
  void remove();
  std::string dir;
  int lock = -1;
};

/// Removes what killed processes of this user left: folders of TempDir that nobody has locked and that are older than
/// a minute. Gives their number.
unsigned removeAbandonedTempDirs();

/// Where the XDG specification has a program's caches: $XDG_CACHE_HOME/optiml, else ~/.cache/optiml; empty where
/// neither variable is an absolute path.
std::string userCacheFolder();
/// Of a path that may be relative to the current folder.
std::string absolutePath(llvm::StringRef path);
/// The whole file, or an error that names it.
llvm::Expected<std::string> readFile(const std::string &path);
/// Writes by way of a temporary file in the same folder and a rename, so that a reader never sees half a file and a
/// full disk loses nothing that was there before.
llvm::Error writeFileAtomically(const std::string &path, llvm::StringRef content);

} // namespace optiml

#endif
