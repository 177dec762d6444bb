//===- Secrets.cpp - keys, and text without them --------------------------===//
#include "Transcript.h"
#include "optiml/Support/Error.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>

using namespace optiml;

llvm::Expected<std::string> Secrets::take(const std::string &name) {
  if (auto known = keys.find(name); known != keys.end())
    return known->second;
  char *value = getenv(name.c_str());
  if (!value || !*value)
    return makeError("the environment variable {0} is not set; it should hold the key", name);
  std::string key = llvm::StringRef(value).trim().str();
  memset(value, 0, strlen(value)); // it lies where /proc/PID/environ shows it
  unsetenv(name.c_str());
  bool printable = std::all_of(key.begin(), key.end(), [](unsigned char c) { return c > ' ' && c < 127; });
  // A short key could not be taken out of texts without spoiling them.
  if (key.size() < 8 || key.size() > 4096 || !printable)
    return makeError("what the environment variable {0} holds is no key: want 8 to 4096 printable characters", name);
  keys[name] = key;
#if !__has_feature(address_sanitizer) // whose search for leaks traces this process
  prctl(PR_SET_DUMPABLE, 0);          // nor does /proc/PID/mem show it to others of this user
#endif
  return key;
}

static void replaceAll(std::string &text, const std::string &what) {
  constexpr llvm::StringLiteral mark = "[key]";
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += mark.size())
    text.replace(at, what.size(), mark.data(), mark.size());
}

std::string Secrets::scrub(std::string text) const {
  for (const auto &[name, key] : keys) {
    replaceAll(text, key);
    std::string quoted = nlohmann::json(key).dump();
    replaceAll(text, quoted.substr(1, quoted.size() - 2));
  }
  return text;
}
