//===- FuzzMeasurement.cpp - what the store keeps -----------------------------===//
#include "optiml/Core/Interfaces.h"
#include <cstdint>
#include <nlohmann/json.hpp>

using namespace optiml;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  nlohmann::json value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  auto measurement = measurementFromJson(value);
  if (!measurement)
    llvm::consumeError(measurement.takeError());
  return 0;
}
