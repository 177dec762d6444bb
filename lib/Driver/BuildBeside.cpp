//===- BuildBeside.cpp - programs built during the search -----------------===//
#include "BuildBeside.h"
#include "optiml/Support/Error.h"

using namespace optiml;

BuildBeside::~BuildBeside() {
  stop.raise();
  if (running.valid())
    running.wait();
}

void BuildBeside::want(const Variant &variant) {
  std::lock_guard lock(mutex);
  const std::string key = variant.key();
  if (stop.passed() || key == current || built.count(key))
    return;
  next = variant;
  if (std::exchange(isRunning, true))
    return;
  running = std::async(std::launch::async, [this] { buildAll(); });
}

void BuildBeside::buildAll() {
  for (;;) {
    std::unique_lock lock(mutex);
    std::optional<Variant> variant = std::exchange(next, std::nullopt);
    current = variant ? variant->key() : "";
    if (!variant || stop.passed()) {
      isRunning = false;
      return;
    }
    lock.unlock();
    auto executable = make(*variant, stop.flag());
    lock.lock();
    built[current] = executable ? *executable : "";
    if (!executable)
      llvm::consumeError(executable.takeError()); // it is built again, with a message
  }
}

std::string BuildBeside::take(const std::string &key) {
  {
    std::lock_guard lock(mutex);
    bool isComing = current == key || (next && next->key() == key);
    if (next && next->key() != key)
      next.reset();
    if (!isComing)
      stop.raise();
  }
  if (running.valid())
    running.wait();
  stop.raise();
  std::lock_guard lock(mutex);
  auto known = built.find(key);
  return known == built.end() ? "" : known->second;
}
