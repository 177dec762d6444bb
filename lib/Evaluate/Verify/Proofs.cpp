//===- Proofs.cpp - which rewrites were compared, and which are -----------===//
#include "Proofs.h"

using namespace optiml;

template <typename T> static std::optional<T> valueAt(const std::map<std::string, T> &values, const std::string &key) {
  auto it = values.find(key);
  return it == values.end() ? std::nullopt : std::optional(it->second);
}

std::optional<Proof> Proofs::find(const std::string &key) const {
  std::lock_guard lock(mutex);
  return valueAt(proven, key);
}

std::optional<Unreached> Proofs::unreached(const std::string &key) const {
  std::lock_guard lock(mutex);
  return valueAt(unproven, key);
}

void Proofs::addUnreached(const std::string &key, Unreached unreached) {
  std::lock_guard lock(mutex);
  unproven.emplace(key, std::move(unreached));
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
