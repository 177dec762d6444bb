//===- FuzzWorkload.cpp - recorded launches -----------------------------------===//
#include "optiml/Workload/Workload.h"
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace optiml;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  static const std::string folder = [] {
    std::string path = "/dev/shm/optiml-fuzz-workload-" + std::to_string(getpid());
    std::filesystem::create_directories(path);
    static const std::string own = path;
    atexit([] { std::filesystem::remove_all(own); });
    return path;
  }();
  std::ofstream(folder + "/workload.json") << text;
  Workload workload;
  std::string error;
  Workload::read(folder, workload, error);
  return 0;
}
