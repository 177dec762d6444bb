//===- GpuSpec.cpp - what the performance model knows of a GPU ------------===//
#include "optiml/Evaluate/GpuSpec.h"
#include "optiml/Core/JsonFields.h"
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
  in.number("sms", spec.sms);
  in.number("clockHz", spec.clockHz);
  in.number("dramBytesPerSecond", spec.dramBytesPerSecond);
  in.number("l2BytesPerSecond", spec.l2BytesPerSecond);
  in.number("l2BytesPerSMPerCycle", spec.l2BytesPerSMPerCycle);
  in.number("l2Bytes", spec.l2Bytes);
  in.number("l1Bytes", spec.l1Bytes);
  in.number("sharedPerSM", spec.sharedPerSM);
  in.number("sharedPerBlock", spec.sharedPerBlock);
  in.number("sharedPerBlockOptin", spec.sharedPerBlockOptin);
  in.number("reservedSharedPerBlock", spec.reservedSharedPerBlock);
  in.number("registersPerSM", spec.registersPerSM);
  in.number("registersPerBlock", spec.registersPerBlock);
  in.number("maxThreadsPerSM", spec.maxThreadsPerSM);
  in.number("maxThreadsPerBlock", spec.maxThreadsPerBlock);
  in.number("warpSize", spec.warpSize);
  in.number("launchSeconds", spec.launchSeconds);
  JsonFields rates(in.object("rates"), "a GPU's rates"), latencies(in.object("latencies"), "a GPU's latencies");
  if (llvm::Error error = in.take())
    return std::move(error);
  rates.number("issue", spec.rates.issue);
  rates.number("fp32", spec.rates.fp32);
  rates.number("fp64", spec.rates.fp64);
  rates.number("int32", spec.rates.int32);
  rates.number("special", spec.rates.special);
  rates.number("tensor", spec.rates.tensor, /*required=*/false);
  if (llvm::Error error = rates.take())
    return std::move(error);
  latencies.number("alu", spec.latencies.alu);
  latencies.number("shared", spec.latencies.shared);
  latencies.number("l1", spec.latencies.l1);
  latencies.number("l2", spec.latencies.l2);
  latencies.number("dram", spec.latencies.dram);
  latencies.number("barrier", spec.latencies.barrier);
  if (llvm::Error error = latencies.take())
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
/// The texts of data/gpus/*.json, null-terminated; written by CMake.
extern const char *const embeddedGpuSpecs[];
} // namespace optiml

const std::vector<GpuSpec> &GpuSpec::all() {
  static const std::vector<GpuSpec> specs = [] {
    std::vector<GpuSpec> result;
    for (const char *const *text = embeddedGpuSpecs; *text; ++text)
      result.push_back(llvm::cantFail(fromJson(json::parse(*text)), "a file in data/gpus is wrong"));
    std::sort(result.begin(), result.end(), [](const GpuSpec &a, const GpuSpec &b) { return a.name < b.name; });
    return result;
  }();
  return specs;
}

static std::string plainName(llvm::StringRef name) {
  std::string plain;
  for (char c : name.lower())
    if (llvm::isAlnum(c))
      plain += c;
  return plain;
}

const GpuSpec *GpuSpec::find(llvm::StringRef name) {
  for (const GpuSpec &spec : all())
    if (plainName(spec.name) == plainName(name))
      return &spec;
  return nullptr;
}

const GpuSpec *GpuSpec::findOn(llvm::StringRef deviceName) {
  std::string plain = plainName(deviceName);
  const GpuSpec *best = nullptr;
  for (const GpuSpec &spec : all())
    if (llvm::StringRef(plain).contains(plainName(spec.name)) && (!best || spec.name.size() > best->name.size()))
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
