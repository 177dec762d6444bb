//===- Transcript.cpp - every question and its outcome, on disk -----------===//
#include "Transcript.h"
#include "optiml/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace optiml;

Transcript::~Transcript() {
  if (fd >= 0)
    close(fd);
}

llvm::Error Transcript::fail(const std::string &why) {
  std::string file = std::move(path);
  path.clear();
  return makeError("the transcript '{0}' cannot be written: {1}", file, why);
}

llvm::Error Transcript::write(const nlohmann::json &line) {
  std::lock_guard lock(mutex);
  if (path.empty())
    return llvm::Error::success();
  if (fd < 0) {
    llvm::StringRef folder = llvm::sys::path::parent_path(path);
    if (std::error_code ec = folder.empty() ? std::error_code() : llvm::sys::fs::create_directories(folder))
      return fail(ec.message());
    fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
      return fail(strerror(errno));
    struct stat status; // what lay there before may be open to others
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && fchmod(fd, 0600) != 0)
      return fail(strerror(errno));
  }
  std::string text = secrets.scrub(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) + "\n";
  for (size_t done = 0; done < text.size();) {
    ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return fail(strerror(errno));
    done += size_t(n);
  }
  return llvm::Error::success();
}
