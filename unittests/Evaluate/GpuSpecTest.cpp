//===- GpuSpecTest.cpp - descriptions of GPUs -----------------------------===//
#include "optiml/Evaluate/Predict/GpuSpec.h"
#include "optiml/Support/TempDir.h"
#include "gtest/gtest.h"
#include <set>

using namespace optiml;

TEST(GpuSpec, ArchitecturesHaveTheirStandIns) {
  EXPECT_EQ(GpuSpec::forArch(90).name, "H200");
  EXPECT_EQ(GpuSpec::forArch(80).name, "A100");
  EXPECT_EQ(GpuSpec::forArch(87).name, "A10"); // the nearest older
  EXPECT_EQ(GpuSpec::forArch(50).name, "T4");  // none is older
  EXPECT_EQ(GpuSpec::forArch(999).arch, 120u);
  std::set<unsigned> defaults;
  for (const GpuSpec &gpu : GpuSpec::all())
    if (gpu.isDefault)
      EXPECT_TRUE(defaults.insert(gpu.arch).second) << gpu.name << " is a second default";
}

TEST(GpuSpec, AreFoundByName) {
  ASSERT_TRUE(GpuSpec::find("h100"));
  EXPECT_EQ(GpuSpec::find("h100")->name, "H100");
  ASSERT_TRUE(GpuSpec::find("rtx-4090"));
  EXPECT_FALSE(GpuSpec::find("voodoo2"));
}

TEST(GpuSpec, FilesAreReadAndMistakesNamed) {
  TempDir dir = llvm::cantFail(TempDir::create("optiml-gpu-test"));
  std::string path = dir.file("gpu.json");
  auto message = [&](const char *text) {
    llvm::cantFail(writeFileAtomically(path, text));
    auto spec = GpuSpec::load(path);
    return spec ? std::string("read") : llvm::toString(spec.takeError());
  };
  EXPECT_NE(message("{").find(path), std::string::npos);
  EXPECT_NE(message("{}").find("lacks 'name'"), std::string::npos);
  std::string good = llvm::cantFail(readFile(OPTIML_SOURCE_DIR "/data/gpus/h200.json"));
  EXPECT_EQ(message(good.c_str()), "read");
  std::string zero = good;
  zero.replace(zero.find("\"sms\": 132"), 10, "\"sms\": 0");
  EXPECT_NE(message(zero.c_str()).find("above 0"), std::string::npos);
}
