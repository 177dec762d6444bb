//===- ReplayJson.cpp - jobs and results of optiml-replay as JSON ---------===//
#include "Fields.h"
#include "optiml/Emulator/Replay.h"

using namespace optiml;
using namespace optiml::emu;
using nlohmann::json;

bool optiml::emu::writeJob(const ReplayJob &job, const std::string &path, std::string &error) {
  json scratch = json::array(), steps = json::array(), inputs = json::object();
  for (const ReplayScratch &s : job.scratch)
    scratch.push_back({{"bytes", s.bytes}, {"zeroed", s.zeroed}});
  for (const ReplayStep &s : job.steps)
    steps.push_back({{"kernel", s.kernel},
                     {"grid", s.grid},
                     {"block", s.block},
                     {"sharedBytes", s.sharedBytes},
                     {"arguments", s.arguments}});
  for (auto &[index, file] : job.inputs)
    inputs[std::to_string(index)] = file;
  json j{{"format", "optiml-replay-job"},
         {"version", 1},
         {"module", job.module},
         {"workload", job.workload},
         {"launch", job.launch},
         {"scratch", scratch},
         {"steps", steps},
         {"inputs", inputs},
         {"outputDir", job.outputDir},
         {"orderSeed", job.orderSeed},
         {"workers", job.workers},
         {"seconds", job.seconds},
         {"beginSeconds", job.beginSeconds},
         {"storedOnly", job.storedOnly},
         {"onlyBlocks", job.onlyBlocks},
         {"l1Bytes", job.l1Bytes}};
  return writeJson(j, path, error);
}

bool optiml::emu::readJob(const std::string &path, ReplayJob &job, std::string &error) {
  error.clear();
  job = ReplayJob();
  json j;
  if (!readJson(path, j, error))
    return false;
  Field root(&j, "", error);
  if (root.at("format").text() != "optiml-replay-job" && root.good())
    root.at("format").fail("\"optiml-replay-job\"");
  root.at("version").integer(1, 1);
  job.module = root.at("module").text();
  job.workload = root.at("workload").text();
  job.launch = unsigned(root.at("launch").integer(0, UINT32_MAX));
  for (const Field &s : root.at("scratch").elements(1024))
    job.scratch.push_back({s.at("bytes").integer(0, uint64_t(1) << 40), s.at("zeroed").boolean()});
  for (const Field &s : root.at("steps").elements(65536)) {
    ReplayStep step;
    step.kernel = s.at("kernel").text();
    step.grid = s.at("grid").triple(0x7fffffff);
    step.block = s.at("block").triple(1024);
    step.sharedBytes = uint32_t(s.at("sharedBytes").integer(0, 1 << 20));
    for (const Field &a : s.at("arguments").elements(4096))
      step.arguments.push_back(int(a.signedInteger(-int64_t(job.scratch.size()), 4095)));
    job.steps.push_back(std::move(step));
  }
  for (auto &[key, file] : root.at("inputs").members()) {
    if (key.empty() || key.size() > 6 || key.find_first_not_of("0123456789") != std::string::npos)
      file.fail("buffer indices as names");
    else
      job.inputs[unsigned(std::stoul(key))] = file.text();
  }
  job.outputDir = root.at("outputDir").text();
  job.orderSeed = root.at("orderSeed").integer(0, UINT64_MAX);
  job.workers = unsigned(root.at("workers").integer(1, 256));
  job.seconds = root.at("seconds").number(0, 1e9);
  job.beginSeconds = root.at("beginSeconds").number(0, 1e9);
  job.storedOnly = root.at("storedOnly").boolean();
  for (const Field &b : root.at("onlyBlocks").elements(1 << 20))
    job.onlyBlocks.push_back(uint32_t(b.integer(0, UINT32_MAX)));
  job.l1Bytes = root.at("l1Bytes").integer(128, 1 << 30);
  if (!root.good())
    error = path + ": " + error;
  return error.empty();
}

static json toJson(const SiteTrace &s) {
  return {{"site", s.site},
          {"line", s.line},
          {"accessBytes", s.accessBytes},
          {"kind", s.kind},
          {"shared", s.shared},
          {"local", s.local},
          {"warpAccesses", s.warpAccesses},
          {"lanes", s.lanes},
          {"sectors", s.sectors},
          {"lines128", s.lines128},
          {"l1Cycles", s.l1Cycles},
          {"bankConflicts", s.bankConflicts},
          {"lines", s.lines},
          {"linesByBlock", s.linesByBlock},
          {"atomicBlocks", s.atomicBlocks},
          {"l1Misses", s.l1Misses}};
}

namespace {
struct TraceField {
  const char *name;
  double LaunchTrace::*member;
};
} // namespace

static constexpr TraceField traceFields[] = {
    {"fp32", &LaunchTrace::fp32},
    {"fp64", &LaunchTrace::fp64},
    {"int32", &LaunchTrace::int32},
    {"tensor", &LaunchTrace::tensor},
    {"special", &LaunchTrace::special},
    {"control", &LaunchTrace::control},
    {"memory", &LaunchTrace::memory},
    {"barrier", &LaunchTrace::barrier},
    {"other", &LaunchTrace::other},
    {"activeLanes", &LaunchTrace::activeLanes},
    {"l1Sectors", &LaunchTrace::l1Sectors},
    {"l2Sectors", &LaunchTrace::l2Sectors},
    {"uniqueSectors", &LaunchTrace::uniqueSectors},
    {"storeSectors", &LaunchTrace::storeSectors},
    {"footprintBytes", &LaunchTrace::footprintBytes},
};

static json toJson(const LaunchTrace &t) {
  json sites = json::array(), blocks = json::array();
  for (const SiteTrace &s : t.sites)
    sites.push_back(toJson(s));
  for (const BasicBlockTrace &b : t.basicBlocks)
    blocks.push_back({{"times", b.times}, {"instructions", b.instructions}, {"chain", b.chain}, {"waits", b.waits}});
  json j{{"tracedBlocks", t.tracedBlocks},
         {"totalBlocks", t.totalBlocks},
         {"warpsPerBlock", t.warpsPerBlock},
         {"sites", sites},
         {"basicBlocks", blocks}};
  for (const TraceField &f : traceFields)
    j[f.name] = t.*f.member;
  return j;
}

bool optiml::emu::writeResult(const ReplayResult &result, const std::string &path, std::string &error) {
  json faults = json::array(), traces = json::array();
  for (const ReplayFault &f : result.faults)
    faults.push_back(
        {{"kind", f.kind}, {"message", f.message}, {"file", f.file}, {"line", f.line}, {"kernel", f.kernel}});
  for (const LaunchTrace &t : result.traces)
    traces.push_back(toJson(t));
  json j{{"format", "optiml-replay-result"}, {"version", 1},    {"ok", result.ok}, {"faults", faults},
         {"seconds", result.seconds},        {"begun", result.begun},  {"traces", traces}};
  return writeJson(j, path, error);
}

static LaunchTrace readTrace(const Field &f) {
  constexpr double most = 1e300;
  LaunchTrace t;
  t.tracedBlocks = f.at("tracedBlocks").integer(0, UINT64_MAX);
  t.totalBlocks = f.at("totalBlocks").integer(0, UINT64_MAX);
  t.warpsPerBlock = f.at("warpsPerBlock").integer(0, 32);
  for (const TraceField &field : traceFields)
    t.*field.member = f.at(field.name).number(0, most);
  for (const Field &s : f.at("sites").elements(1 << 20)) {
    SiteTrace site;
    site.site = uint32_t(s.at("site").integer(0, UINT32_MAX));
    site.line = uint32_t(s.at("line").integer(0, UINT32_MAX));
    site.accessBytes = uint32_t(s.at("accessBytes").integer(0, UINT32_MAX));
    site.kind = uint32_t(s.at("kind").integer(0, 8));
    site.shared = s.at("shared").boolean();
    site.local = s.at("local").boolean();
    site.warpAccesses = s.at("warpAccesses").number(0, most);
    site.lanes = s.at("lanes").number(0, most);
    site.sectors = s.at("sectors").number(0, most);
    site.lines128 = s.at("lines128").number(0, most);
    site.l1Cycles = s.at("l1Cycles").number(0, most);
    site.bankConflicts = s.at("bankConflicts").number(0, most);
    site.lines = s.at("lines").number(0, most);
    site.linesByBlock = s.at("linesByBlock").number(0, most);
    site.atomicBlocks = s.at("atomicBlocks").number(0, most);
    site.l1Misses = s.at("l1Misses").number(0, 1);
    t.sites.push_back(site);
  }
  for (const Field &b : f.at("basicBlocks").elements(1 << 20)) {
    BasicBlockTrace block{b.at("times").number(0, most), b.at("instructions").number(0, most), b.at("chain").number(0, most), {}};
    for (const Field &wait : b.at("waits").elements(1 << 16)) {
      block.waits.emplace_back();
      for (const Field &site : wait.elements(1 << 20))
        block.waits.back().push_back(uint32_t(site.integer(0, UINT32_MAX)));
    }
    t.basicBlocks.push_back(std::move(block));
  }
  return t;
}

bool optiml::emu::readResult(const std::string &path, ReplayResult &result, std::string &error) {
  error.clear();
  result = ReplayResult();
  json j;
  if (!readJson(path, j, error))
    return false;
  Field root(&j, "", error);
  if (root.at("format").text() != "optiml-replay-result" && root.good())
    root.at("format").fail("\"optiml-replay-result\"");
  root.at("version").integer(1, 1);
  result.ok = root.at("ok").boolean();
  result.seconds = root.at("seconds").number(0, 1e12);
  result.begun = root.at("begun").integer(0, UINT64_MAX);
  for (const Field &f : root.at("faults").elements(4096))
    result.faults.push_back({f.at("kind").text(), f.at("message").text(1 << 20), f.at("file").text(),
                             uint32_t(f.at("line").integer(0, UINT32_MAX)), f.at("kernel").text()});
  for (const Field &t : root.at("traces").elements(65536))
    result.traces.push_back(readTrace(t));
  if (!root.good())
    error = path + ": " + error;
  return error.empty();
}
