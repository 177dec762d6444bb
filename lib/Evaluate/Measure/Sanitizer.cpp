//===- Sanitizer.cpp - compute-sanitizer on finalists ---------------------===//
#include "optiml/Evaluate/Measure/Sanitizer.h"
#include "Verify/ReplayProcess.h"
#include <future>

using namespace optiml;

static constexpr int foundSomething = 77;

std::string Sanitizer::run(const std::string &tool, llvm::ArrayRef<SanitizerJob> jobs, const Deadline &end,
                           std::string &failed) {
  const double seconds = end.remaining();
  if (end.passed() || !(seconds > 0)) {
    failed = "no time was left for " + tool;
    return "";
  }
  std::vector<std::string> argv = {program, "--tool", tool, "--error-exitcode", std::to_string(foundSomething)};
  argv.insert(argv.end(), worker.begin(), worker.end());
  argv.push_back("--replay");
  for (const SanitizerJob &job : jobs) {
    std::string path = folder + "/sanitize" + std::to_string(counter++) + ".json", error;
    emu::ReplayJob replay =
        replayJob(job.cubin, job.workload, job.launch.launch, {job.launch.scratch, job.launch.steps});
    replay.seconds = seconds;
    if (!emu::writeJob(replay, path, error)) {
      failed = error;
      return "";
    }
    argv.push_back(path);
  }
  ProcessOptions options;
  options.limits.seconds = seconds;
  options.limits.outputBytes = 1 << 20;
  options.env = {{"TMPDIR", folder}}; // it leaves folders of pipes where it is stopped
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
  // The worker asks for parameters until there are no more, which memcheck calls an error.
  auto isOurs = [](llvm::StringRef line) {
    return line.starts_with("Program hit") && line.contains("cuFuncGetParamInfo");
  };
  unsigned ours = 0, all = 0;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(result->out).split(lines, '\n');
  for (llvm::StringRef line : lines) {
    line.consume_front("=========");
    line = line.trim();
    if (line.consume_front("ERROR SUMMARY: "))
      line.consumeInteger(10, all);
    if (line.contains(" SUMMARY: ") || isOurs(line)) { // it counts what came before
      ours += isOurs(line);
      continue;
    }
    if (line.starts_with("Invalid") || line.contains("ace reported") || line.contains("hazard") ||
        line.starts_with("Uninitialized") || line.starts_with("Misaligned") || line.starts_with("Error: ") ||
        line.starts_with("Program hit"))
      return tool + ": " + line.str();
  }
  if (result->exitCode == foundSomething)
    return ours && ours == all ? "" : tool + ": it found an error";
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
    std::string finding, failed;
  };
  // All launches in one process, as starting takes a second; one by one where it finds something.
  std::vector<std::future<Run>> running;
  for (const char *tool : {"memcheck", "racecheck", "initcheck"})
    running.push_back(std::async(std::launch::async, [this, tool, &jobs, &originals] {
      Run r;
      const Deadline end(seconds, cancel);
      const std::string joint = run(tool, jobs, end, r.failed);
      const bool isAlone = jobs.size() == 1;
      if (joint.empty() && (r.failed.empty() || isAlone || (cancel && *cancel)))
        return r;
      r.failed.clear();
      for (size_t i = 0; i < jobs.size() && r.finding.empty(); ++i) {
        r.finding = isAlone ? joint : run(tool, jobs[i], end, r.failed);
        std::string ignored;
        if (!r.finding.empty() && i < originals.size() && !run(tool, originals[i], end, ignored).empty())
          r.finding.clear(); // so does the original
      }
      if (r.finding.empty() && !r.failed.empty())
        r.finding = joint; // whose it is could not be found out
      return r;
    }));
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
