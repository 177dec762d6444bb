//===- TempDirTest.cpp - scratch folders ------------------------------------===//
#include "optiml/Support/TempDir.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace optiml;

namespace {

/// Lets the folder look as if it had not changed for an hour.
void age(const std::string &folder) {
  timespec times[2];
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= 3600;
  times[1] = times[0];
  ASSERT_EQ(utimensat(AT_FDCWD, folder.c_str(), times, 0), 0);
}

/// A folder whose process was killed.
std::string abandoned() {
  int fds[2];
  EXPECT_EQ(pipe(fds), 0);
  pid_t child = fork();
  if (child == 0) {
    auto dir = TempDir::create("optiml-test");
    std::string path = dir ? dir->path() : "";
    [[maybe_unused]] ssize_t n = write(fds[1], path.data(), path.size());
    raise(SIGKILL);
  }
  char buffer[4096];
  ssize_t n = read(fds[0], buffer, sizeof buffer);
  waitpid(child, nullptr, 0);
  close(fds[0]);
  close(fds[1]);
  return std::string(buffer, size_t(std::max<ssize_t>(n, 0)));
}

TEST(TempDir, OfKilledProcessesIsRemovedAndNothingElse) {
  const char *old = getenv("TMPDIR");
  std::string saved = old ? old : "";
  {
    llvm::Expected<TempDir> root = TempDir::create("optiml-test");
    ASSERT_TRUE(bool(root));
    setenv("TMPDIR", root->path().c_str(), 1);
    llvm::Expected<TempDir> living = TempDir::create("optiml-test");
    ASSERT_TRUE(bool(living));
    std::string dead = abandoned(), young = abandoned(), users = root->file("optiml-search-result");
    ASSERT_FALSE(dead.empty() || young.empty());
    ASSERT_FALSE(llvm::sys::fs::create_directory(users));
    for (const std::string &folder : {living->path(), dead, users})
      age(folder);
    EXPECT_EQ(removeAbandonedTempDirs(), 1u);
    EXPECT_FALSE(llvm::sys::fs::exists(dead));
    for (const std::string &folder : {living->path(), young, users})
      EXPECT_TRUE(llvm::sys::fs::exists(folder)) << folder;
  }
  if (old)
    setenv("TMPDIR", saved.c_str(), 1);
  else
    unsetenv("TMPDIR");
}

} // namespace
