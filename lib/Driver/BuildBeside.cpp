//===- BuildBeside.cpp - programs built during the search -----------------===//
#include "BuildBeside.h"
#include "optiml/Support/Error.h"

using namespace optiml;

BuildBeside::~BuildBeside() {
  stop.raise();
  for (std::future<void> &builder : running)
    builder.wait();
}

void BuildBeside::want(const Variant &variant) {
  std::lock_guard lock(mutex);
  const std::string key = variant.key();
  if (stop.passed() || current.count(key) || built.count(key))
    return;
  next = variant;
  if (builders == most)
    return;
  ++builders;
  running.push_back(std::async(std::launch::async, [this] { buildAll(); }));
}

void BuildBeside::buildAll() {
  std::unique_lock lock(mutex);
  while (next && !stop.passed()) {
    const Variant variant = *std::exchange(next, std::nullopt);
    const std::string key = variant.key();
    current.insert(key);
    lock.unlock();
    auto executable = make(variant, stop.flag());
    lock.lock();
    built[key] = executable ? *executable : "";
    current.erase(key);
    if (!executable)
      llvm::consumeError(executable.takeError()); // it is built again, with a message
    changed.notify_all();
  }
  --builders;
  changed.notify_all();
}

std::string BuildBeside::take(const std::string &key) {
  std::string executable;
  {
    std::unique_lock lock(mutex);
    if (next && next->key() != key)
      next.reset();
    changed.wait(lock, [&] { return !current.count(key) && !(next && builders); });
    if (auto known = built.find(key); known != built.end())
      executable = known->second;
    stop.raise();
  }
  for (std::future<void> &builder : running)
    builder.wait();
  return executable;
}
