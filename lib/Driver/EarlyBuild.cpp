//===- EarlyBuild.cpp - the program, before it is asked for ---------------===//
#include "EarlyBuild.h"
#include "GpuProgram.h"
#include "optiml/Gpu/Driver.h"
#include <chrono>
#include <cstdlib>

using namespace optiml;

EarlyBuild::~EarlyBuild() {
  stop.raise();
  if (executable.valid())
    if (auto built = executable.get(); !built)
      llvm::consumeError(built.takeError());
}

std::unique_ptr<EarlyBuild> EarlyBuild::start(const Toolchain &toolchain, const std::vector<std::string> &arguments,
                                              const std::atomic<bool> *cancel) {
  std::string missing;
  if (const char *remote = getenv("OPTIML_WORKER"); (remote && *remote) || !gpu::Driver::get(missing))
    return nullptr;
  auto dir = TempDir::create("optiml-program");
  if (!dir) {
    llvm::consumeError(dir.takeError()); // it is built later, with a message
    return nullptr;
  }
  auto early = std::make_unique<EarlyBuild>(std::move(*dir), cancel);
  early->executable = std::async(std::launch::async, [&toolchain, arguments, build = early.get()] {
    const auto began = std::chrono::steady_clock::now();
    auto built = buildOriginalProgram(toolchain, arguments, build->dir.file("program-gpu"), build->stop.flag());
    build->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return built;
  });
  return early;
}
