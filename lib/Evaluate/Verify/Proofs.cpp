//===- Proofs.cpp - which rewrites were compared, and which are -----------===//
#include "Proofs.h"

using namespace optiml;

std::optional<Proof> Proofs::find(const std::string &key) const {
  std::lock_guard lock(mutex);
  auto it = proven.find(key);
  return it == proven.end() ? std::nullopt : std::optional(it->second);
}

void Proofs::add(const std::string &key, Proof proof) {
  std::lock_guard lock(mutex);
  proven.emplace(key, std::move(proof));
}

std::optional<std::string> Proofs::take(const std::set<std::string> &keys) {
  std::unique_lock lock(mutex);
  for (;;) {
    bool isOpen = false;
    for (const std::string &key : keys) {
      if (proven.count(key))
        continue;
      isOpen = true;
      if (taken.insert(key).second)
        return key;
    }
    if (!isOpen)
      return std::nullopt;
    changed.wait(lock);
  }
}

void Proofs::putBack(const std::string &key) {
  std::lock_guard lock(mutex);
  taken.erase(key);
  changed.notify_all();
}
