//===- Sanitizer.cpp - compute-sanitizer on finalists ---------------------===//
#include "optiml/Evaluate/Measure/Sanitizer.h"
#include "Verify/ReplayProcess.h"
#include <chrono>
#include <future>

using namespace optiml;

static constexpr int foundSomething = 77;

std::string Sanitizer::run(const std::string &tool, llvm::ArrayRef<SanitizerJob> jobs, double limit,
                           std::string &failed) {
  std::vector<std::string> argv = {program, "--tool", tool, "--error-exitcode", std::to_string(foundSomething)};
  argv.insert(argv.end(), worker.begin(), worker.end());
  for (const SanitizerJob &job : jobs) {
    std::string path = folder + "/sanitize" + std::to_string(counter++) + ".json";
    emu::ReplayJob replay =
        replayJob(job.cubin, job.workload, job.launch.launch, {job.launch.scratch, job.launch.steps});
    replay.seconds = limit;
    if (!emu::writeJob(replay, path, failed))
      return "";
    argv.insert(argv.end(), {"--replay", path});
  }
  ProcessOptions options;
  options.limits.seconds = limit;
  options.limits.outputBytes = 1 << 20;
  options.cancel = cancel;
  auto result = runProcess(argv, options);
  if (!result) {
    failed = llvm::toString(result.takeError());
    return "";
  }
  if (result->ok())
    return "";
  if (cancel && *cancel) { // its target was stopped, which it calls an error
    failed = tool + " was cancelled";
    return "";
  }
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(result->out).split(lines, '\n');
  for (llvm::StringRef line : lines) {
    line.consume_front("=========");
    line = line.trim();
    if (line.contains(" SUMMARY: ")) // it counts what came before
      continue;
    if (line.starts_with("Invalid") || line.contains("ace reported") || line.contains("hazard") ||
        line.starts_with("Uninitialized") || line.starts_with("Misaligned") || line.starts_with("Error: ") ||
        line.starts_with("Program hit"))
      return tool + ": " + line.str();
  }
  if (result->exitCode == foundSomething)
    return tool + ": it found an error";
  failed =
      "compute-sanitizer " + result->describe() + ": " +
      (llvm::StringRef(result->err).trim().take_back(300) + llvm::StringRef(result->out).trim().take_back(300)).str();
  return "";
}

SanitizerReport Sanitizer::check(const std::vector<SanitizerJob> &jobs, const std::vector<SanitizerJob> &originals) {
  SanitizerReport report;
  if (findOnPath(program).empty()) {
    report.notes.push_back("compute-sanitizer is not installed: the winner was not checked with it");
    return report;
  }
  struct Run {
    std::string tool, finding, failed;
  };
  const auto begin = std::chrono::steady_clock::now();
  auto left = [&] { return seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  auto runOne = [&](std::string tool, size_t i) {
    Run r{tool, "", ""};
    std::string ignored;
    r.finding = run(tool, jobs[i], std::max(1.0, left()), r.failed);
    if (!r.finding.empty() && i < originals.size() && !run(tool, originals[i], std::max(1.0, left()), ignored).empty())
      r.finding.clear(); // so does the original
    return r;
  };
  // To begin is most of what a tool takes, so it looks at all jobs at once first.
  std::vector<std::future<Run>> all, running;
  for (const char *tool : {"memcheck", "racecheck", "initcheck"})
    all.push_back(std::async(std::launch::async, [&, tool] {
      Run r{tool, "", ""};
      if (jobs.size() > 1)
        r.finding = run(tool, jobs, left(), r.failed);
      return r;
    }));
  for (std::future<Run> &future : all) {
    const Run r = future.get();
    if (jobs.size() == 1 || !r.finding.empty() || !r.failed.empty())
      for (size_t i = 0; i < jobs.size(); ++i)
        running.push_back(std::async(std::launch::async, runOne, r.tool, i));
  }
  for (std::future<Run> &future : running) {
    Run r = future.get();
    if (!r.finding.empty()) {
      report.clean = false;
      report.notes.push_back("compute-sanitizer rejects a variant: " + r.finding);
    } else if (!r.failed.empty()) {
      report.notes.push_back("a check with compute-sanitizer could not be made: " + r.failed);
    }
  }
  return report;
}
