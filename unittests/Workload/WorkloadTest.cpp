//===- WorkloadTest.cpp - reading and writing workloads -------------------===//
#include "optiml/Workload/Workload.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/Blob.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace optiml;

namespace {

class WorkloadFile : public testing::Test {
protected:
  TempDir dir = llvm::cantFail(TempDir::create("optiml-workload-test"));
  Workload workload;
  nlohmann::json original;

  void SetUp() override {
    workload.directory = dir.path();
    workload.programArguments = {"-n", "12"};
    workload.totalLaunches = 7;
    workload.leftOut = {"launch 3: too big"};
    LaunchImage l;
    l.kernel = "_Z5scalePfi";
    l.name = "scale(float*, int)";
    l.grid = {4, 1, 1};
    l.block = {32, 2, 1};
    l.sharedBytes = 64;
    std::string before(16, 'a'), after(16, 'b'), error;
    BufferImage b{0x200000000100, 16, "", false, false, blobName(before.data(), 16), blobName(after.data(), 16)};
    ASSERT_TRUE(writeBlob(dir.path(), b.before, before.data(), 16, error)) << error;
    ASSERT_TRUE(writeBlob(dir.path(), b.after, after.data(), 16, error)) << error;
    l.buffers.push_back(b);
    l.buffers.back().element = "float";
    b.address = 0x5000;
    b.symbol = "table";
    b.constant = true;
    l.buffers.push_back(b);
    l.arguments.push_back({std::string("\0\1\0\0\0\x20\0\0", 8), true, 0, 0});
    l.arguments.push_back({std::string("\x0c\0\0\0", 4), false, -1, 0});
    l.launchClass = "c";
    l.weight = 3.5;
    l.sequence = 2;
    workload.launches.push_back(l);
    ASSERT_TRUE(workload.write(error)) << error;
    original = nlohmann::json::parse(llvm::cantFail(readFile(dir.file("workload.json"))));
  }

  /// What SetUp wrote.
  nlohmann::json load() { return original; }
  /// What reading says after the JSON was changed.
  std::string errorAfter(const nlohmann::json &j) {
    llvm::cantFail(writeFileAtomically(dir.file("workload.json"), j.dump()));
    Workload w;
    std::string error;
    EXPECT_FALSE(Workload::read(dir.path(), w, error));
    return error;
  }
};

bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_F(WorkloadFile, RoundTrips) {
  Workload w;
  std::string error;
  ASSERT_TRUE(Workload::read(dir.path(), w, error)) << error;
  EXPECT_EQ(w.programArguments, workload.programArguments);
  EXPECT_EQ(w.leftOut, workload.leftOut);
  EXPECT_EQ(w.totalLaunches, 7u);
  ASSERT_EQ(w.launches.size(), 1u);
  const LaunchImage &a = w.launches[0], &b = workload.launches[0];
  EXPECT_EQ(a.kernel, b.kernel);
  EXPECT_EQ(a.grid, b.grid);
  EXPECT_EQ(a.block, b.block);
  EXPECT_EQ(a.weight, 3.5);
  ASSERT_EQ(a.arguments.size(), 2u);
  EXPECT_EQ(a.arguments[0].bytes, b.arguments[0].bytes);
  EXPECT_EQ(a.arguments[0].buffer, 0);
  EXPECT_EQ(a.arguments[1].buffer, -1);
  ASSERT_EQ(a.buffers.size(), 2u);
  EXPECT_EQ(a.buffers[0].address, 0x200000000100u);
  EXPECT_EQ(a.buffers[0].element, "float");
  EXPECT_EQ(a.buffers[1].symbol, "table");
  EXPECT_TRUE(a.buffers[1].constant);
}

TEST_F(WorkloadFile, NamesTheBadField) {
  auto j = load();
  j["launches"][0]["grid"][1] = 0;
  EXPECT_TRUE(contains(errorAfter(j), "'launches[0].grid[1]': expected an integer from 1"));
  j = load();
  j["launches"][0]["block"] = {32, 33, 1};
  EXPECT_TRUE(contains(errorAfter(j), "'launches[0].block': expected at most 1024 threads"));
  j = load();
  j["launches"][0]["arguments"][0]["buffer"] = 2;
  EXPECT_TRUE(contains(errorAfter(j), "'launches[0].arguments[0].buffer'"));
  j = load();
  j["launches"][0].erase("weight");
  EXPECT_TRUE(contains(errorAfter(j), "'launches[0].weight': expected it to be there"));
  j = load();
  j["version"] = 2;
  EXPECT_TRUE(contains(errorAfter(j), "'version'"));
}

TEST_F(WorkloadFile, RefusesHostileFiles) {
  auto j = load();
  j["launches"][0]["buffers"][0]["before"] = "../../etc/passwd";
  EXPECT_TRUE(contains(errorAfter(j), "a plain file name without folders"));
  j = load();
  j["launches"][0]["buffers"][0]["bytes"] = 17;
  EXPECT_TRUE(contains(errorAfter(j), "'launches[0].buffers[0].before': expected a file of 17 bytes"));
  j = load();
  j["launches"][0]["buffers"][0]["address"] = "0xffffffffffffff00";
  EXPECT_TRUE(contains(errorAfter(j), "'launches[0].buffers[0].address'"));
  j = load();
  j["launches"][0]["buffers"][1]["address"] = "0x200000000108";
  EXPECT_TRUE(contains(errorAfter(j), "do not overlap"));
  j = load();
  j["launches"][0]["buffers"][0]["before"] = "missing.bin";
  EXPECT_TRUE(contains(errorAfter(j), "to be in the workload's folder"));
}

TEST_F(WorkloadFile, RefusesWhatIsNoJson) {
  llvm::cantFail(writeFileAtomically(dir.file("workload.json"), "{\"format\": "));
  Workload w;
  std::string error;
  EXPECT_FALSE(Workload::read(dir.path(), w, error));
  EXPECT_TRUE(contains(error, "is not valid JSON"));
  EXPECT_FALSE(Workload::read(dir.file("nowhere"), w, error));
  EXPECT_TRUE(contains(error, "cannot read"));
}

TEST(Blob, NamesDependOnContentAndLength) {
  std::string a(1000, '\0'), b(1001, '\0'), c = a;
  c[500] = 1;
  EXPECT_NE(blobName(a.data(), a.size()), blobName(b.data(), b.size()));
  EXPECT_NE(blobName(a.data(), a.size()), blobName(c.data(), c.size()));
  EXPECT_EQ(blobName(a.data(), a.size()), blobName(std::string(1000, '\0').data(), 1000));
  EXPECT_TRUE(validBlobName(blobName(a.data(), 0)));
  EXPECT_FALSE(validBlobName(".."));
  EXPECT_FALSE(validBlobName("a/b"));
}

TEST(Workload, LaunchesThatFindTheSameAreOne) {
  Workload workload;
  auto add = [&](const std::string &kernel, const std::string &before, const std::string &after) {
    LaunchImage launch;
    launch.kernel = kernel;
    launch.weight = 3;
    launch.sequence = workload.launches.size();
    launch.arguments.push_back({std::string("\x10\0\0\0\0\0\0\0", 8), true, 0, 0});
    BufferImage buffer;
    buffer.address = 16;
    buffer.bytes = 4;
    buffer.before = before;
    buffer.after = after;
    launch.buffers.push_back(buffer);
    workload.launches.push_back(launch);
  };
  add("k", "zeros", "ones");
  add("m", "zeros", "ones");
  add("k", "zeros", "ones");
  add("k", "ones", "twos"); // in place: it goes on
  add("k", "ones", "ones"); // what was written before is written again
  dropRepeats(workload);
  ASSERT_EQ(workload.launches.size(), 3u);
  EXPECT_EQ(workload.launches[0].weight, 9);
  EXPECT_EQ(workload.launches[1].kernel, "m");
  EXPECT_EQ(workload.launches[2].sequence, 3u);
}
