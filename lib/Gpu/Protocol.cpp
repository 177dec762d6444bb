//===- Protocol.cpp - what a GPU worker is asked and answers --------------===//
#include "optiml/Gpu/Protocol.h"
#include <nlohmann/json.hpp>

namespace optiml::emu {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReplayScratch, bytes, zeroed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReplayStep, kernel, grid, block, sharedBytes, arguments)
} // namespace optiml::emu

namespace optiml::gpu {

NLOHMANN_JSON_SERIALIZE_ENUM(Compare, {{Compare::Bits, "bits"},
                                       {Compare::Float, "float"},
                                       {Compare::Double, "double"},
                                       {Compare::Half, "half"},
                                       {Compare::BFloat16, "bfloat16"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceInfo, name, chip, arch, driver, devices, multiprocessors, memoryBytes, l2Bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BufferBound, buffer, compare, relative, typical, cells)

// Object keys are strings in JSON.
static nlohmann::json inputsToJson(const std::map<unsigned, std::string> &inputs) {
  nlohmann::json result = nlohmann::json::object();
  for (const auto &[buffer, file] : inputs)
    result[std::to_string(buffer)] = file;
  return result;
}

static void to_json(nlohmann::json &j, const CaseRequest &c) {
  j = {{"launch", c.launch}, {"name", c.name}, {"inputs", inputsToJson(c.inputs)}, {"bounds", c.bounds}};
}
static void from_json(const nlohmann::json &j, CaseRequest &c) {
  j.at("launch").get_to(c.launch);
  j.at("name").get_to(c.name);
  j.at("bounds").get_to(c.bounds);
  for (const auto &[buffer, file] : j.at("inputs").items())
    c.inputs[unsigned(std::strtoul(buffer.c_str(), nullptr, 10))] = file.get<std::string>();
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LoadRequest, workload, seed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LoadReply, why, unusable, notes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PrepareRequest, cubin, cases, careful, cold)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PreparedLaunch, launch, seconds, spread, writtenBytes, deterministic, poisoned)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PrepareReply, why, unusable, launches, notes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlannedLaunch, launch, scratch, steps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CandidateRequest, cubin, launches)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LaunchAim, launch, precision, rival)
// What is not said of an evaluation is as in the struct.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(EvaluateRequest, candidates, verify, fewestRounds, leastRounds,
                                                mostRounds, precision, seconds, hopeless, aims)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LaunchTiming, launch, seconds, baseline, ratio, low, high, rounds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CandidateReply, verdict, why, launches, runs, times)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EvaluateReply, why, candidates, lost)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProfileRequest, candidate)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProfileReply, why, launches)

template <typename T> std::string encode(const T &value) {
  nlohmann::json j = value;
  if constexpr (std::is_same_v<T, DeviceInfo>)
    j["worker"] = protocolVersion;
  else if constexpr (std::is_same_v<T, LoadRequest>)
    j["do"] = "load";
  else if constexpr (std::is_same_v<T, PrepareRequest>)
    j["do"] = "prepare";
  else if constexpr (std::is_same_v<T, EvaluateRequest>)
    j["do"] = "evaluate";
  else if constexpr (std::is_same_v<T, ProfileRequest>)
    j["do"] = "profile";
  // Texts of programs may hold bytes that are no UTF-8; those are replaced.
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <typename T> bool decode(const std::string &text, T &into, std::string &error) {
  if constexpr (std::is_same_v<T, DeviceInfo>) {
    nlohmann::json j = nlohmann::json::parse(text, nullptr, false);
    if (!j.is_object() || j.value("worker", 0u) != protocolVersion) {
      error = "it is no worker of version " + std::to_string(protocolVersion);
      return false;
    }
  }
  // The library reports a field of the wrong type by an exception; it goes no further than this.
  try {
    into = nlohmann::json::parse(text).get<T>();
    return true;
  } catch (const nlohmann::json::exception &e) {
    error = e.what();
    return false;
  }
}

#define OPTIML_MESSAGE(T)                                                                                              \
  template std::string encode(const T &);                                                                              \
  template bool decode(const std::string &, T &, std::string &);
OPTIML_MESSAGE(DeviceInfo)
OPTIML_MESSAGE(LoadRequest)
OPTIML_MESSAGE(LoadReply)
OPTIML_MESSAGE(PrepareRequest)
OPTIML_MESSAGE(PrepareReply)
OPTIML_MESSAGE(EvaluateRequest)
OPTIML_MESSAGE(EvaluateReply)
OPTIML_MESSAGE(ProfileRequest)
OPTIML_MESSAGE(ProfileReply)

std::string requestName(const std::string &text) {
  nlohmann::json j = nlohmann::json::parse(text, nullptr, false);
  if (!j.is_object() || !j.contains("do") || !j["do"].is_string())
    return "";
  return j["do"].get<std::string>();
}

} // namespace optiml::gpu
