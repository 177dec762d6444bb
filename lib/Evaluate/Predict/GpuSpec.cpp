//===- GpuSpec.cpp - what the performance model knows of a GPU ------------===//
#include "optiml/Evaluate/Predict/GpuSpec.h"
#include "optiml/Core/JsonFields.h"
#include "optiml/Support/EmbeddedFile.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace optiml;
using nlohmann::json;

llvm::Expected<GpuSpec> GpuSpec::fromJson(const json &value) {
  GpuSpec spec;
  JsonFields in(value, "a GPU description");
  in.text("name", spec.name);
  in.number("arch", spec.arch);
  in.boolean("default", spec.isDefault, /*required=*/false);
#define GPU_NUMBER(type, name, initial) in.number(#name, spec.name);
#include "optiml/Evaluate/Predict/GpuSpec.def"
  in.inside("rates", "a GPU's rates", [&](JsonFields &rates) {
#define GPU_RATE(name) rates.number(#name, spec.rates.name);
#include "optiml/Evaluate/Predict/GpuSpec.def"
    rates.number("tensor", spec.rates.tensor, /*required=*/false);
  });
  in.inside("latencies", "a GPU's latencies", [&](JsonFields &latencies) {
#define GPU_LATENCY(name) latencies.number(#name, spec.latencies.name);
#include "optiml/Evaluate/Predict/GpuSpec.def"
  });
  if (llvm::Error error = in.take())
    return std::move(error);
  // The model divides by these.
  for (double positive : {double(spec.sms), spec.clockHz, spec.dramBytesPerSecond, spec.l2BytesPerSecond,
                          spec.l2BytesPerSMPerCycle, double(spec.l2Bytes), double(spec.l1Bytes), spec.rates.issue,
                          spec.rates.fp32, spec.rates.fp64, spec.rates.int32, spec.rates.special,
                          double(spec.maxThreadsPerSM), double(spec.maxThreadsPerBlock), double(spec.registersPerSM)})
    if (!(positive > 0))
      return makeError("GPU '{0}': rates, bandwidths, sizes and limits must be above 0", spec.name);
  if (spec.warpSize != 32)
    return makeError("GPU '{0}': only a warp size of 32 is known", spec.name);
  return spec;
}

llvm::Expected<GpuSpec> GpuSpec::load(const std::string &path) {
  auto text = readFile(path);
  if (!text)
    return text.takeError();
  json value = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded())
    return makeError("'{0}' is no JSON file", path);
  auto spec = fromJson(value);
  if (!spec)
    return makeError("'{0}': {1}", path, llvm::toString(spec.takeError()));
  return spec;
}

namespace optiml {
extern const EmbeddedFile embeddedGpuSpecs[]; // data/gpus/*.json
} // namespace optiml

const std::vector<GpuSpec> &GpuSpec::all() {
  static const std::vector<GpuSpec> specs = [] {
    std::vector<GpuSpec> result;
    for (const EmbeddedFile *file = embeddedGpuSpecs; file->name; ++file)
      result.push_back(llvm::cantFail(fromJson(json::parse(file->text)), "a file in data/gpus is wrong"));
    std::sort(result.begin(), result.end(), [](const GpuSpec &a, const GpuSpec &b) { return a.name < b.name; });
    return result;
  }();
  return specs;
}

static std::string bareName(llvm::StringRef name) {
  std::string plain;
  for (char c : name.lower())
    if (llvm::isAlnum(c))
      plain += c;
  return plain;
}

const GpuSpec *GpuSpec::find(llvm::StringRef name) {
  for (const GpuSpec &spec : all())
    if (bareName(spec.name) == bareName(name))
      return &spec;
  return nullptr;
}

const GpuSpec *GpuSpec::findOn(llvm::StringRef deviceName) {
  std::string plain = bareName(deviceName);
  const GpuSpec *best = nullptr;
  for (const GpuSpec &spec : all())
    if (llvm::StringRef(plain).contains(bareName(spec.name)) && (!best || spec.name.size() > best->name.size()))
      best = &spec;
  return best;
}

const GpuSpec &GpuSpec::forArch(unsigned arch) {
  const GpuSpec *best = nullptr, *oldest = nullptr;
  for (const GpuSpec &spec : all()) {
    if (!spec.isDefault)
      continue;
    if (spec.arch <= arch && (!best || spec.arch > best->arch))
      best = &spec;
    if (!oldest || spec.arch < oldest->arch)
      oldest = &spec;
  }
  return best ? *best : *oldest;
}
