//===- Proofs.cpp - which rewrites were compared, and which are -----------===//
#include "Proofs.h"

using namespace optiml;

std::optional<unsigned> Proofs::find(const std::string &key) const {
  std::lock_guard lock(mutex);
  auto it = proven.find(key);
  return it == proven.end() ? std::nullopt : std::optional(it->second);
}

void Proofs::add(const std::string &key, unsigned runs) {
  std::lock_guard lock(mutex);
  proven.emplace(key, runs);
}

std::set<std::string> Proofs::take(const std::set<std::string> &keys) {
  std::unique_lock lock(mutex);
  for (;;) {
    std::set<std::string> ours;
    bool isOpen = false;
    for (const std::string &key : keys)
      if (!proven.count(key)) {
        isOpen = true;
        if (taken.insert(key).second)
          ours.insert(key);
      }
    if (!ours.empty() || !isOpen)
      return ours;
    changed.wait(lock);
  }
}

void Proofs::putBack(const std::set<std::string> &keys) {
  std::lock_guard lock(mutex);
  for (const std::string &key : keys)
    taken.erase(key);
  changed.notify_all();
}
