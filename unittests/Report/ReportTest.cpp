//===- ReportTest.cpp - trajectory and progress line ----------------------===//
#include "optiml/Report/Progress.h"
#include "optiml/Report/Trajectory.h"
#include "optiml/Support/TempDir.h"
#include "gtest/gtest.h"
#include <fcntl.h>
#include <fstream>
#include <pty.h>
#include <unistd.h>

using namespace optiml;
using nlohmann::json;

namespace {

EvaluationRecord record(unsigned number, double seconds) {
  EvaluationRecord r;
  r.number = number;
  r.recipe = llvm::cantFail(parseRecipe("coarsen[sgemm]{x=8,y=8};unroll[sgemm/k]{factor=4}"));
  r.key = "key" + std::to_string(number);
  r.measurement.verdict = Verdict::Correct;
  r.measurement.time.seconds = seconds;
  r.measurement.time.baseline = 1;
  r.measurement.why = "bytes \xff that are no UTF-8\n";
  r.improved = true;
  return r;
}

std::vector<json> linesOf(const std::string &path) {
  std::ifstream in(path);
  std::vector<json> lines;
  for (std::string line; std::getline(in, line);)
    lines.push_back(json::parse(line, nullptr, false));
  return lines;
}

} // namespace

TEST(Trajectory, HoldsEveryEventAsOneLine) {
  TempDir dir = llvm::cantFail(TempDir::create("optiml-report-test"));
  auto trajectory = llvm::cantFail(Trajectory::create(dir.file("deep/run.jsonl"), {{"file", "a.cu"}}));
  trajectory->evaluated(record(1, 0.25));
  trajectory->refused(record(2, 1).recipe, "no loop");
  // Written at once, not at the end.
  ASSERT_EQ(linesOf(trajectory->path()).size(), 3u);
  SearchResult result;
  result.stop = StopReason::Cancelled;
  EXPECT_FALSE(bool(trajectory->finish(toJson(result))));
  std::vector<json> lines = linesOf(trajectory->path());
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["event"], "search");
  EXPECT_EQ(lines[0]["file"], "a.cu");
  EXPECT_EQ(lines[1]["recipe"], "coarsen[sgemm]{x=8,y=8};unroll[sgemm/k]{factor=4}");
  EXPECT_EQ(lines[1]["speedup"], 4.0);
  EXPECT_EQ(lines[1]["verdict"], "correct");
  EXPECT_EQ(lines[2]["why"], "no loop");
  EXPECT_EQ(lines[3]["stop"], "cancelled");
}

TEST(Trajectory, FailuresNameTheFile) {
  TempDir dir = llvm::cantFail(TempDir::create("optiml-report-test"));
  auto failed = Trajectory::create(dir.path(), json::object());
  ASSERT_FALSE(bool(failed));
  EXPECT_NE(llvm::toString(failed.takeError()).find(dir.path()), std::string::npos);
  auto full = Trajectory::create("/dev/full", json::object());
  ASSERT_TRUE(bool(full));
  std::string message = llvm::toString((*full)->finish(toJson(SearchResult())));
  EXPECT_NE(message.find("/dev/full"), std::string::npos);
  EXPECT_NE(message.find("No space left"), std::string::npos);
}

TEST(Progress, SaysWhereTheSearchStands) {
  int null = open("/dev/null", O_WRONLY);
  Progress progress(null, {200});
  progress.phase("searching");
  progress.evaluated(record(12, 0.25));
  progress.started(record(13, 1).recipe, Fidelity::Verified);
  EXPECT_EQ(progress.line(300), "optiml: searching 6 %, 12 evaluations, best 4.00x (predicted), trying "
                                "coarsen[sgemm]{x=8,y=8};unroll[sgemm/k]{factor=4}");
  EXPECT_EQ(progress.line(20).size(), 20u);
  close(null);
}

TEST(Progress, TellsTheTimeThatIsLeft) {
  int null = open("/dev/null", O_WRONLY);
  Progress progress(null, {0, 100, std::chrono::steady_clock::now() - std::chrono::seconds(75)});
  progress.phase("searching");
  EXPECT_EQ(progress.line(300), "optiml: searching");
  progress.evaluated(record(3, 0.5));
  EXPECT_EQ(progress.line(300), "optiml: searching 75 %, 25 s left, 3 evaluations, best 2.00x (predicted)");
  close(null);
}

TEST(Progress, WritesALineForEachPhaseToAFile) {
  TempDir dir = llvm::cantFail(TempDir::create("optiml-report-test"));
  int file = open(dir.file("log").c_str(), O_WRONLY | O_CREAT, 0600);
  {
    Progress progress(file, {10});
    progress.phase("observing the program");
    progress.started({}, Fidelity::Verified);
    progress.evaluated(record(1, 0.5));
    progress.phase("settling");
  }
  close(file);
  EXPECT_EQ(llvm::cantFail(readFile(dir.file("log"))), "optiml-clang: observing the program\noptiml-clang: settling\n");
}

TEST(Progress, DrawsOnATerminalAndCleansUp) {
  int master, slave;
  if (openpty(&master, &slave, nullptr, nullptr, nullptr) != 0)
    GTEST_SKIP() << "no pseudo-terminals here";
  {
    Progress progress(slave, {10});
    progress.phase("searching");
    progress.evaluated(record(3, 0.5));
  }
  // The kernel hands over what was written in pieces of its own choice; with the other end closed, a read fails when
  // all of it has come.
  close(slave);
  std::string text;
  char buffer[1024];
  for (ssize_t n; (n = read(master, buffer, sizeof buffer)) > 0;)
    text.append(buffer, n);
  close(master);
  EXPECT_NE(text.find("searching 30 %, 3 evaluations"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\r\x1b[K")) << text;
}
