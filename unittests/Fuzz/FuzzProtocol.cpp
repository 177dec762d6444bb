//===- FuzzProtocol.cpp - the messages of a GPU worker ------------------------===//
#include "optiml/Gpu/Protocol.h"
#include <cstdint>

using namespace optiml;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  auto read = [&](auto into) {
    std::string error;
    gpu::decode(text, into, error);
  };
  read(gpu::DeviceInfo());
  read(gpu::LoadRequest());
  read(gpu::LoadReply());
  read(gpu::PrepareRequest());
  read(gpu::PrepareReply());
  read(gpu::EvaluateRequest());
  read(gpu::EvaluateReply());
  read(gpu::ProfileRequest());
  read(gpu::ProfileReply());
  return 0;
}
