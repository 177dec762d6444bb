//===- Transcript.h - every question and its outcome, on disk ---*- C++ -*-===//
#ifndef OPTIML_LIB_LANGUAGEMODELS_TRANSCRIPT_H
#define OPTIML_LIB_LANGUAGEMODELS_TRANSCRIPT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

namespace optiml {

class Secrets {
public:
  /// The key in environment variable `name`, which is taken out of this process's environment, so that no child
  /// inherits it and /proc does not show it. Taking it again gives it again. Call while there is one thread.
  llvm::Expected<std::string> take(const std::string &name);
  /// `text` with every key replaced, also where it is written as JSON writes it.
  std::string scrub(std::string text) const;

private:
  std::map<std::string, std::string> keys; ///< by variable
};

/// JSON lines, each written in one piece when its exchange is over. The file is created with the first line, for its
/// owner alone; an older file of that name is replaced.
class Transcript {
public:
  /// `path` empty: nothing is written.
  Transcript(std::string path, const Secrets &secrets) : path(std::move(path)), secrets(secrets) {}
  ~Transcript();
  Transcript(const Transcript &) = delete;
  Transcript &operator=(const Transcript &) = delete;
  /// After the first error nothing more is written, and later calls succeed.
  llvm::Error write(const nlohmann::json &line);
  const std::string &file() const { return path; }

private:
  llvm::Error fail(const std::string &why);
  std::string path;
  const Secrets &secrets;
  std::mutex mutex;
  int fd = -1;
};

} // namespace optiml

#endif
