//===- RecorderTest.cpp - which launches become a workload ----------------===//
#include "optiml/Workload/Recorder.h"
#include "optiml/Workload/Blob.h"
#include "optiml/Workload/Merge.h"
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>

using namespace optiml;
namespace fs = std::filesystem;

namespace {

class RecorderTest : public testing::Test {
protected:
  std::string dir;
  Recorder recorder;

  void SetUp() override {
    char pattern[] = "/tmp/optiml-recorder-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    dir = pattern;
  }
  void TearDown() override { fs::remove_all(dir); }
  void open(CaptureLimits limits) { ASSERT_TRUE(recorder.open(dir + "/a/b", limits)); }

  static constexpr uint64_t address = 0x10000, size = 64;

  static LaunchImage launchOf(const std::string &kernel) {
    LaunchImage l;
    l.kernel = l.name = kernel;
    uint64_t pointer = address + 8;
    l.arguments.push_back({std::string(reinterpret_cast<char *>(&pointer), 8), true, -1, 0});
    l.launchClass = launchClassOf(l, {size});
    return l;
  }

  /// A whole launch that changes its buffer from all `before` to all `after`. Whether it was recorded.
  bool launch(char before, char after, const std::string &kernel = "k") {
    std::string old(size, before), now(size, after);
    if (!recorder.begin(launchOf(kernel)) || !recorder.admit(size))
      return false;
    BufferImage b;
    b.address = address;
    b.bytes = size;
    EXPECT_TRUE(recorder.addBuffer(b, old.data()));
    recorder.linkArguments();
    EXPECT_TRUE(recorder.setAfter(0, now.data()));
    recorder.commit();
    return true;
  }
  Workload written() {
    EXPECT_TRUE(recorder.write());
    Workload w;
    std::string error;
    EXPECT_TRUE(Workload::read(dir + "/a/b", w, error)) << error;
    return w;
  }
  std::vector<uint64_t> keptNumbers() {
    std::vector<uint64_t> numbers;
    for (const LaunchImage &l : recorder.kept())
      numbers.push_back(l.sequence);
    return numbers;
  }
  size_t blobs() {
    size_t n = 0;
    for (const auto &entry : fs::directory_iterator(dir + "/a/b"))
      n += entry.path().extension() == ".bin";
    return n;
  }
};

} // namespace

TEST_F(RecorderTest, FirstLaunchesAreKeptWhateverTheyTake) {
  CaptureLimits limits;
  limits.timeShare = 1e-9; // recording one takes more
  open(limits);
  EXPECT_TRUE(launch('a', 'b', "one"));
  EXPECT_FALSE(launch('b', 'c', "one"));
  EXPECT_TRUE(launch('a', 'b', "other"));
  EXPECT_FALSE(launch('b', 'c', "other"));
  EXPECT_EQ(keptNumbers(), (std::vector<uint64_t>{0, 2}));
}

TEST_F(RecorderTest, KeepsTheFirstAndTheNewestPowersOfTwo) {
  open({3, 1 << 20, 100});
  for (int i = 0; i < 20; ++i)
    launch(char(i), char(100 + i));
  launch(1, 2, "other");
  EXPECT_EQ(keptNumbers(), (std::vector<uint64_t>{0, 7, 15, 20})) << "the 1st, 8th and 16th, and the other kernel's";
  Workload w = written();
  EXPECT_EQ(w.totalLaunches, 21u);
  ASSERT_EQ(w.launches.size(), 4u);
  EXPECT_DOUBLE_EQ(w.launches[0].weight, 20 / 3.0);
  EXPECT_DOUBLE_EQ(w.launches[3].weight, 1);
  EXPECT_EQ(w.launches[0].arguments[0].buffer, 0);
  EXPECT_EQ(w.launches[0].arguments[0].offset, 8u);
}

TEST_F(RecorderTest, OneOrAllOfAClass) {
  open({1, 1 << 20, 100});
  for (int i = 0; i < 5; ++i)
    launch(char(i), char(i));
  EXPECT_EQ(keptNumbers(), (std::vector<uint64_t>{0}));
  Recorder all;
  ASSERT_TRUE(all.open(dir + "/all", {0, 1 << 20, 100}));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(all.begin(launchOf("k")));
    all.commit();
  }
  EXPECT_EQ(all.kept().size(), 5u);
}

TEST_F(RecorderTest, EqualBlobsAreStoredOnceAndGoWithTheirLastLaunch) {
  open({2, 1 << 20, 100});
  launch('a', 'b');
  EXPECT_EQ(blobs(), 2u);
  launch('b', 'c'); // the second
  EXPECT_EQ(blobs(), 3u);
  launch('x', 'y'); // the third: not wanted
  launch('c', 'd'); // the fourth takes the second's place
  EXPECT_EQ(keptNumbers(), (std::vector<uint64_t>{0, 3}));
  EXPECT_EQ(blobs(), 4u) << "b belongs to the first, c to the fourth";
  for (const LaunchImage &l : recorder.kept())
    EXPECT_TRUE(fs::exists(dir + "/a/b/" + l.buffers[0].before) && fs::exists(dir + "/a/b/" + l.buffers[0].after));
  recorder.write();
}

TEST_F(RecorderTest, AbandonedLaunchesLeaveNoBlobs) {
  open({2, 1 << 20, 100});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(recorder.begin(launchOf("k")));
    BufferImage b;
    b.address = address;
    b.bytes = size;
    std::string data(size, char('p' + i));
    ASSERT_TRUE(recorder.addBuffer(b, data.data()));
    EXPECT_EQ(blobs(), 1u);
    recorder.abandon("the kernel failed");
    EXPECT_EQ(blobs(), 0u);
  }
  Workload w = written();
  EXPECT_TRUE(w.launches.empty());
  EXPECT_EQ(w.leftOut, (std::vector<std::string>{"launch 0 (k): the kernel failed"})) << "once a kernel";
}

// Of a kernel that is there more is kept only while that is not too much data; another kernel's first launch is.
TEST_F(RecorderTest, OneLaunchOfAKernelStandsForOthers) {
  open({0, 8 * size, 8, 3 * size});
  EXPECT_TRUE(launch('a', 'b'));
  EXPECT_FALSE(launch('c', 'd'));
  EXPECT_FALSE(launch('e', 'f'));
  EXPECT_TRUE(launch('g', 'h', "second"));
  Workload w = written();
  ASSERT_EQ(w.launches.size(), 2u);
  EXPECT_EQ(w.launches[1].kernel, "second");
  EXPECT_EQ(w.leftOut,
            (std::vector<std::string>{"launch 1 (k): others of its kernel stand for it, as 128 bytes are stored"}))
      << "once a kernel";
}

// Also of launches that are not kept: nothing is known of an argument on which only the kept ones agree.
TEST_F(RecorderTest, DifferingArgumentsAreThoseOfAllLaunches) {
  open({0, 8 * size, 8, 3 * size});
  auto launchWith = [&](int left, int width) {
    LaunchImage l = launchOf("k");
    for (int value : {left, width})
      l.arguments.push_back({std::string(reinterpret_cast<char *>(&value), 4), false, -1, 0});
    if (!recorder.begin(std::move(l)) || !recorder.admit(size))
      return false;
    const std::string data(size, 'a');
    BufferImage b;
    b.address = address;
    b.bytes = size;
    EXPECT_TRUE(recorder.addBuffer(b, data.data()) && recorder.setAfter(0, data.data()));
    recorder.commit();
    return true;
  };
  EXPECT_TRUE(launchWith(23, 4));
  EXPECT_TRUE(launch('c', 'd', "second"));
  EXPECT_FALSE(launchWith(24, 4));
  Workload w = written();
  ASSERT_EQ(w.launches.size(), 2u);
  EXPECT_EQ(w.differing, (std::map<std::string, std::set<unsigned>>{{"k", {1}}}));
}

TEST_F(RecorderTest, SaysWhichLimitWasMet) {
  open({2, 2 * size, 2});
  EXPECT_EQ(recorder.room(), size);
  EXPECT_TRUE(launch('a', 'b'));
  EXPECT_EQ(recorder.room(), 0u);
  EXPECT_FALSE(launch('c', 'd', "second"));
  Workload w = written();
  ASSERT_EQ(w.leftOut.size(), 1u);
  EXPECT_EQ(w.leftOut[0], "launch 1 (second): its buffers take up to 128 bytes, and 128 of "
                          "OPTIML_CAPTURE_MAX_BYTES=128 are used");
  Recorder few;
  ASSERT_TRUE(few.open(dir + "/few", {2, 1 << 20, 1}));
  EXPECT_TRUE(few.begin(launchOf("first")));
  few.commit();
  EXPECT_FALSE(few.begin(launchOf("second")));
  few.skip();
  few.note("graphs");
  few.note("graphs");
  ASSERT_TRUE(few.write());
  std::string error;
  ASSERT_TRUE(Workload::read(dir + "/few", w, error)) << error;
  EXPECT_EQ(w.totalLaunches, 3u);
  EXPECT_EQ(w.leftOut, (std::vector<std::string>{"launch 1 (second): more than 1 launches; set "
                                                 "OPTIML_CAPTURE_MAX_LAUNCHES to keep more",
                                                 "graphs"}));
}

TEST_F(RecorderTest, ClassesAreOfKernelGeometryAndMagnitudes) {
  auto classWith = [](int32_t n, uint64_t bufferBytes) {
    LaunchImage l = launchOf("k");
    l.arguments.push_back({std::string(reinterpret_cast<char *>(&n), 4), false, -1, 0});
    l.arguments.push_back({std::string(16, 'x'), false, -1, 0}); // a struct: no part of the class
    return launchClassOf(l, {bufferBytes, 0, 0});
  };
  EXPECT_EQ(classWith(1000, 64), "k,1,1,1,1,1,1,0,b64,s10");
  EXPECT_EQ(classWith(1000, 64), classWith(1023, 64));
  EXPECT_EQ(classWith(1000, 64), classWith(-1000, 64));
  EXPECT_NE(classWith(1000, 64), classWith(1024, 64));
  EXPECT_NE(classWith(1000, 64), classWith(1000, 128));
}

TEST(EnvironmentNumber, HasSuffixes) {
  auto of = [](const char *text) {
    setenv("OPTIML_TEST_NUMBER", text, 1);
    return environmentNumber("OPTIML_TEST_NUMBER", 7);
  };
  EXPECT_EQ(of("12"), 12u);
  EXPECT_EQ(of("3K"), 3072u);
  EXPECT_EQ(of("2G"), uint64_t(2) << 30);
  EXPECT_EQ(of(""), 7u);
  EXPECT_EQ(of("-1"), 7u);
  EXPECT_EQ(of("12X"), 7u);
}

TEST_F(RecorderTest, SkipsTheFirstOfEachKernel) {
  open({2, 1 << 20, 100, 1 << 20, 2});
  for (int i = 0; i < 4; ++i)
    launch(char(i), char(100 + i));
  launch(1, 2, "other");
  EXPECT_EQ(keptNumbers(), (std::vector<uint64_t>{2, 3}));
}

TEST(PathOfProcess, NamesHostRankAndProcess) {
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    unsetenv(name);
  const std::string pid = std::to_string(getpid());
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  EXPECT_EQ(pathOfProcess("a/%h.%r.%p"), "a/" + std::string(host) + ".0." + pid);
  setenv("PMI_RANK", "3", 1);
  EXPECT_EQ(pathOfProcess("%r"), "3");
  unsetenv("PMI_RANK");
  EXPECT_EQ(pathOfProcess(patternOfPath("100%p/%/x%")), "100%p/%/x%");
  EXPECT_EQ(pathOfProcess("%q%"), "%q%");
}

// Two processes with the same class: two launches are kept of it, and stand for all; the second one's other kernel too.
TEST_F(RecorderTest, WorkloadsOfProcessesBecomeOne) {
  open({2, 1 << 20, 100});
  launch('a', 'b');
  ASSERT_TRUE(recorder.write());
  Recorder second;
  const std::string other = dir + "/second", merged = dir + "/merged";
  ASSERT_TRUE(second.open(other, {2, 1 << 20, 100}));
  for (auto [kernel, before] : {std::pair{"k", 'a'}, {"k", 'c'}, {"k", 'd'}, {"other", 'e'}}) {
    if (!second.begin(launchOf(kernel)))
      continue;
    const std::string data(size, before);
    BufferImage b;
    b.address = address;
    b.bytes = size;
    ASSERT_TRUE(second.addBuffer(b, data.data()) && second.setAfter(0, data.data()));
    second.commit();
  }
  second.note("graphs");
  ASSERT_TRUE(second.write());
  fs::create_directory(merged);
  std::string error;
  ASSERT_TRUE(mergeWorkloads({recorder.kept().empty() ? "" : dir + "/a/b", other}, merged, 2, error)) << error;
  Workload w;
  ASSERT_TRUE(Workload::read(merged, w, error)) << error; // with all blobs
  EXPECT_EQ(w.totalLaunches, 5u);
  EXPECT_EQ(w.leftOut, (std::vector<std::string>{"graphs"}));
  ASSERT_EQ(w.launches.size(), 3u);
  EXPECT_DOUBLE_EQ(w.launches[0].weight, 2) << "four launches of the class";
  EXPECT_DOUBLE_EQ(w.launches[1].weight, 2);
  EXPECT_EQ(w.launches[1].sequence, 1u);
  EXPECT_EQ(w.launches[2].kernel, "other");
  EXPECT_DOUBLE_EQ(w.launches[2].weight, 1);
  EXPECT_FALSE(mergeWorkloads({dir + "/none"}, merged, 2, error));
  EXPECT_NE(error.find("none"), std::string::npos) << error;
}
