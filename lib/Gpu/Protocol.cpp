//===- Protocol.cpp - what a GPU worker is asked and answers --------------===//
#include "optiml/Gpu/Protocol.h"
#include <nlohmann/json.hpp>

namespace optiml::emu {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReplayScratch, bytes, zeroed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReplayStep, kernel, grid, block, sharedBytes, arguments)
} // namespace optiml::emu

namespace optiml::gpu {

NLOHMANN_JSON_SERIALIZE_ENUM(Compare,
                             {{Compare::Bits, "bits"},
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
// What is not said of an evaluation is as in the struct.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(EvaluateRequest, candidates, verify, fewestRounds, leastRounds, mostRounds, precision, seconds,
                                   hopeless)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LaunchTiming, launch, seconds, baseline, ratio, low, high, rounds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CandidateReply, verdict, why, launches, runs, times)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EvaluateReply, why, candidates, lost)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProfileRequest, candidate)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProfileReply, why, launches)

// Texts of programs may hold bytes that are no UTF-8; those are replaced.
static std::string line(const nlohmann::json &value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <typename T> static std::string request(const char *name, const T &value) {
  nlohmann::json j = value;
  j["do"] = name;
  return line(j);
}

// The library reports a field of the wrong type by an exception; it goes no further than this.
template <typename T> static bool parse(const std::string &text, T &into, std::string &error) {
  try {
    into = nlohmann::json::parse(text).get<T>();
    return true;
  } catch (const nlohmann::json::exception &e) {
    error = e.what();
    return false;
  }
}

std::string encode(const DeviceInfo &value) {
  nlohmann::json j = value;
  j["worker"] = protocolVersion;
  return line(j);
}
std::string encode(const LoadRequest &value) { return request("load", value); }
std::string encode(const PrepareRequest &value) { return request("prepare", value); }
std::string encode(const EvaluateRequest &value) { return request("evaluate", value); }
std::string encode(const ProfileRequest &value) { return request("profile", value); }
std::string encode(const LoadReply &value) { return line(value); }
std::string encode(const PrepareReply &value) { return line(value); }
std::string encode(const EvaluateReply &value) { return line(value); }
std::string encode(const ProfileReply &value) { return line(value); }

bool decode(const std::string &text, DeviceInfo &into, std::string &error) {
  nlohmann::json j = nlohmann::json::parse(text, nullptr, false);
  if (!j.is_object() || j.value("worker", 0u) != protocolVersion) {
    error = "it is no worker of version " + std::to_string(protocolVersion);
    return false;
  }
  return parse(text, into, error);
}
bool decode(const std::string &text, LoadRequest &into, std::string &error) { return parse(text, into, error); }
bool decode(const std::string &text, PrepareRequest &into, std::string &error) { return parse(text, into, error); }
bool decode(const std::string &text, EvaluateRequest &into, std::string &error) { return parse(text, into, error); }
bool decode(const std::string &text, ProfileRequest &into, std::string &error) { return parse(text, into, error); }
bool decode(const std::string &text, LoadReply &into, std::string &error) { return parse(text, into, error); }
bool decode(const std::string &text, PrepareReply &into, std::string &error) { return parse(text, into, error); }
bool decode(const std::string &text, EvaluateReply &into, std::string &error) { return parse(text, into, error); }
bool decode(const std::string &text, ProfileReply &into, std::string &error) { return parse(text, into, error); }

std::string requestName(const std::string &text) {
  nlohmann::json j = nlohmann::json::parse(text, nullptr, false);
  if (!j.is_object() || !j.contains("do") || !j["do"].is_string())
    return "";
  return j["do"].get<std::string>();
}

} // namespace optiml::gpu
