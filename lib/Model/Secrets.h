//===- Secrets.h - keys, and text without them ------------------*- C++ -*-===//
#ifndef OPTIML_LIB_MODEL_SECRETS_H
#define OPTIML_LIB_MODEL_SECRETS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
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

} // namespace optiml

#endif
