//===- ReplayJson.cpp - jobs and results of optiml-replay as JSON ---------===//
#include "Fields.h"
#include "optiml/Workload/Replay.h"

using namespace optiml;
using namespace optiml::emu;
using nlohmann::json;

namespace optiml::emu {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReplayScratch, bytes, zeroed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReplayStep, kernel, grid, block, sharedBytes, arguments)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReplayJob, module, workload, launch, scratch, steps, outputDir, orderSeed, workers,
                                   seconds, beginSeconds, numbersOnly, onlyBlocks, tellsTouched, l1Bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SiteTrace, site, line, accessBytes, kind, shared, local, warpAccesses, lanes,
                                   sectors, lines128, l1Cycles, bankConflicts, lines, linesByBlock, atomicBlocks,
                                   l1Misses)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BasicBlockTrace, times, instructions, chain, waits)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LaunchTrace, tracedBlocks, totalBlocks, warpsPerBlock, fp32, fp64, int32, tensor,
                                   special, control, memory, barrier, other, activeLanes, l1Sectors, l2Sectors,
                                   uniqueSectors, storeSectors, footprintBytes, sites, basicBlocks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReplayFault, kind, message, file, line, kernel)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MissedCode, code, kernel, function, file, line, constants, functionHash)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReplayResult, ok, faults, seconds, begun, traces, missed, ran, dataDecides, touched)
} // namespace optiml::emu

static constexpr const char *jobFormat = "optiml-replay-job", *resultFormat = "optiml-replay-result";

static bool writeDocument(json j, const char *format, const std::string &path, std::string &error) {
  j["format"] = format;
  j["version"] = 1;
  return writeJson(j, path, error);
}

bool optiml::emu::writeJob(const ReplayJob &job, const std::string &path, std::string &error) {
  json j = job, &inputs = j["inputs"] = json::object();
  for (auto &[index, file] : job.inputs) // keys are strings in JSON
    inputs[std::to_string(index)] = file;
  return writeDocument(std::move(j), jobFormat, path, error);
}

bool optiml::emu::readJob(const std::string &path, ReplayJob &job, std::string &error) {
  job = ReplayJob();
  auto read = [&](const Field &root) {
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
    job.numbersOnly = root.at("numbersOnly").boolean();
    for (const Field &b : root.at("onlyBlocks").elements(1 << 20))
      job.onlyBlocks.push_back(uint32_t(b.integer(0, UINT32_MAX)));
    job.tellsTouched = root.at("tellsTouched").boolean();
    job.l1Bytes = root.at("l1Bytes").integer(128, 1 << 30);
  };
  return readDocument(path, jobFormat, read, error);
}

static constexpr std::pair<const char *, double LaunchTrace::*> traceNumbers[] = {
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
    {"footprintBytes", &LaunchTrace::footprintBytes}};

static constexpr std::pair<const char *, double SiteTrace::*> siteNumbers[] = {
    {"warpAccesses", &SiteTrace::warpAccesses},
    {"lanes", &SiteTrace::lanes},
    {"sectors", &SiteTrace::sectors},
    {"lines128", &SiteTrace::lines128},
    {"l1Cycles", &SiteTrace::l1Cycles},
    {"bankConflicts", &SiteTrace::bankConflicts},
    {"lines", &SiteTrace::lines},
    {"linesByBlock", &SiteTrace::linesByBlock},
    {"atomicBlocks", &SiteTrace::atomicBlocks}};

static LaunchTrace readTrace(const Field &f) {
  constexpr double most = 1e300;
  LaunchTrace t;
  t.tracedBlocks = f.at("tracedBlocks").integer(0, UINT64_MAX);
  t.totalBlocks = f.at("totalBlocks").integer(0, UINT64_MAX);
  t.warpsPerBlock = f.at("warpsPerBlock").integer(0, 32);
  for (auto [name, member] : traceNumbers)
    t.*member = f.at(name).number(0, most);
  for (const Field &s : f.at("sites").elements(1 << 20)) {
    SiteTrace site;
    site.site = uint32_t(s.at("site").integer(0, UINT32_MAX));
    site.line = uint32_t(s.at("line").integer(0, UINT32_MAX));
    site.accessBytes = uint32_t(s.at("accessBytes").integer(0, UINT32_MAX));
    site.kind = uint32_t(s.at("kind").integer(0, 8));
    site.shared = s.at("shared").boolean();
    site.local = s.at("local").boolean();
    for (auto [name, member] : siteNumbers)
      site.*member = s.at(name).number(0, most);
    site.l1Misses = s.at("l1Misses").number(0, 1);
    t.sites.push_back(site);
  }
  for (const Field &b : f.at("basicBlocks").elements(1 << 20)) {
    BasicBlockTrace block{
        b.at("times").number(0, most), b.at("instructions").number(0, most), b.at("chain").number(0, most), {}};
    for (const Field &wait : b.at("waits").elements(1 << 16)) {
      block.waits.emplace_back();
      for (const Field &site : wait.elements(1 << 20))
        block.waits.back().push_back(uint32_t(site.integer(0, UINT32_MAX)));
    }
    t.basicBlocks.push_back(std::move(block));
  }
  return t;
}

bool optiml::emu::writeResult(const ReplayResult &result, const std::string &path, std::string &error) {
  return writeDocument(result, resultFormat, path, error);
}

bool optiml::emu::readResult(const std::string &path, ReplayResult &result, std::string &error) {
  result = ReplayResult();
  auto read = [&](const Field &root) {
    result.ok = root.at("ok").boolean();
    result.seconds = root.at("seconds").number(0, 1e12);
    result.begun = root.at("begun").integer(0, UINT64_MAX);
    for (const Field &f : root.at("faults").elements(4096))
      result.faults.push_back({f.at("kind").text(), f.at("message").text(1 << 20), f.at("file").text(),
                               uint32_t(f.at("line").integer(0, UINT32_MAX)), f.at("kernel").text()});
    for (const Field &k : root.at("ran").elements(65536))
      result.ran.push_back(k.text());
    result.dataDecides = root.at("dataDecides").boolean();
    for (const Field &m : root.at("missed").elements(1 << 20))
      result.missed.push_back({uint32_t(m.at("code").integer(0, UINT32_MAX)), m.at("kernel").text(),
                               m.at("function").text(), m.at("file").text(),
                               uint32_t(m.at("line").integer(0, UINT32_MAX)), m.at("constants").text(),
                               m.at("functionHash").integer(0, UINT64_MAX)});
    for (const Field &b : root.at("touched").elements(65536))
      result.touched.push_back(b.integer(0, UINT64_MAX));
    for (const Field &t : root.at("traces").elements(65536))
      result.traces.push_back(readTrace(t));
  };
  return readDocument(path, resultFormat, read, error);
}
