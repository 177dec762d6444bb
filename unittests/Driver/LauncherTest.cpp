//===- LauncherTest.cpp - nvcc or the search ------------------------------===//
#include "optiml/Driver/Launcher.h"
#include "optiml/Driver/CompileLog.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace optiml;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

namespace {

/// A folder with a launcher and some programs named nvcc, and an environment that sees nothing else.
class Launcher : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "optiml-launcher-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root = name;
    program("own/optiml-clang");
    env["PATH"] = (root / "empty").string();
    context.env = [this](const std::string &name) -> std::optional<std::string> {
      auto it = env.find(name);
      return it == env.end() ? std::nullopt : std::optional<std::string>(it->second);
    };
    context.self = path("own/optiml-clang");
    context.usualNvcc = path("usual/nvcc");
  }
  void TearDown() override { fs::remove_all(root); }

  std::string path(const std::string &name) const { return (root / name).string(); }
  std::string program(const std::string &name) {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << "#!/bin/sh\n";
    fs::permissions(root / name, fs::perms::owner_all);
    return path(name);
  }
  bool decide(const Words &args) { return decideLaunch(args, context, decision, error); }

  fs::path root;
  std::map<std::string, std::string> env;
  LauncherContext context;
  LaunchDecision decision;
  std::string error;
};

TEST_F(Launcher, FindsNvccInTheDocumentedOrder) {
  std::string usual = program("usual/nvcc");
  EXPECT_EQ(findNvcc(context, error), usual);
  std::string onPath = program("bin/nvcc");
  env["PATH"] = path("empty") + ":" + path("bin");
  EXPECT_EQ(findNvcc(context, error), onPath);
  std::string cuda = program("cuda/bin/nvcc");
  env["CUDA_PATH"] = path("cuda");
  EXPECT_EQ(findNvcc(context, error), cuda);
  std::string named = program("other/my-nvcc");
  env["OPTIML_NVCC"] = named;
  EXPECT_EQ(findNvcc(context, error), named);
}

TEST_F(Launcher, MissingNvccIsOneLineWithWhatToDo) {
  EXPECT_FALSE(decide({"-c", "x.cu"}));
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_NE(error.find("install the CUDA Toolkit"), std::string::npos);
  EXPECT_NE(error.find("OPTIML_NVCC="), std::string::npos);
}

TEST_F(Launcher, WrongVariableIsNotSilentlyPassedOver) {
  program("usual/nvcc");
  env["OPTIML_NVCC"] = path("gone/nvcc");
  EXPECT_FALSE(decide({"-c", "x.cu"}));
  EXPECT_NE(error.find("OPTIML_NVCC="), std::string::npos);
}

TEST_F(Launcher, NeverFindsItselfUnderAnotherName) {
  std::string usual = program("usual/nvcc");
  fs::create_directories(root / "links");
  fs::create_symlink(context.self, root / "links" / "nvcc");
  env["PATH"] = path("links");
  EXPECT_EQ(findNvcc(context, error), usual);
}

TEST_F(Launcher, WithoutSearchExecsNvccWithItsArguments) {
  std::string nvcc = program("usual/nvcc");
  ASSERT_TRUE(decide({"--optiml-seed=1", "-c", "x.cu"})) << error;
  EXPECT_EQ(decision.program, nvcc);
  EXPECT_EQ(decision.argv, (Words{nvcc, "-c", "x.cu"}));
}

TEST_F(Launcher, SearchExecsTheSearchProgramWithAllArguments) {
  program("usual/nvcc");
  std::string search = program("own/optiml-search");
  ASSERT_TRUE(decide({"-O-search=5", "--optiml-seed=1", "x.cu"})) << error;
  EXPECT_EQ(decision.argv, (Words{search, "-O-search=5", "--optiml-seed=1", "x.cu"}));
}

TEST_F(Launcher, MissingSearchProgramIsAWarningAndStrictAnError) {
  std::string nvcc = program("usual/nvcc");
  ASSERT_TRUE(decide({"-O-search", "x.cu"}));
  EXPECT_EQ(decision.argv, (Words{nvcc, "x.cu"}));
  EXPECT_NE(decision.warning.find("optiml-search is missing"), std::string::npos);
  EXPECT_FALSE(decide({"-O-search", "--optiml-strict", "x.cu"}));
}

TEST_F(Launcher, AsACompilerLauncherTakesTheNamedCompiler) {
  std::string named = program("cuda/bin/nvcc");
  ASSERT_TRUE(decide({named, "-c", "x.cu"})) << error;
  EXPECT_EQ(decision.argv, (Words{named, "-c", "x.cu"}));
  std::string search = program("own/optiml-search");
  ASSERT_TRUE(decide({named, "-O-search", "-c", "x.cu"}));
  EXPECT_EQ(decision.argv, (Words{search, "-O-search", "-c", "x.cu"}));
  EXPECT_EQ(decision.env.at("OPTIML_NVCC"), named);
}

TEST_F(Launcher, WhatStartsTheCompilerGoesOnToStartIt) {
  std::string named = program("cuda/bin/nvcc"), cache = program("bin/ccache");
  ASSERT_TRUE(decide({cache, named, "-c", "x.cu"})) << error;
  EXPECT_EQ(decision.program, cache);
  EXPECT_EQ(decision.argv, (Words{cache, named, "-c", "x.cu"}));
  ASSERT_TRUE(decide({cache, "-E", "env", "A=1", named, "-c", "x.cu"})) << error;
  EXPECT_EQ(decision.argv, (Words{cache, "-E", "env", "A=1", named, "-c", "x.cu"}));
  std::string search = program("own/optiml-search");
  ASSERT_TRUE(decide({cache, named, "-O-search", "-c", "x.cu"}));
  EXPECT_EQ(decision.argv, (Words{search, "-O-search", "-c", "x.cu"}));
  EXPECT_EQ(decision.env.at("OPTIML_NVCC"), named);
}

TEST_F(Launcher, AFileNamedLikeTheCompilerIsAnInput) {
  std::string nvcc = program("usual/nvcc");
  program("nvcc.cu");
  ASSERT_TRUE(decide({path("nvcc.cu")}));
  EXPECT_EQ(decision.argv, (Words{nvcc, path("nvcc.cu")}));
}

TEST_F(Launcher, HelpNeedsNoNvcc) {
  ASSERT_TRUE(decide({"--optiml-help"})) << error;
  EXPECT_NE(decision.output.find("--optiml-backend=auto|gpu|cpu"), std::string::npos);
}

} // namespace

TEST_F(Launcher, CompilationsOfCudaSourcesAreLogged) {
  const fs::path log = root / "log";
  std::string error;
  auto written = [&] {
    std::vector<std::string> texts;
    for (const fs::directory_entry &entry : fs::directory_iterator(log)) {
      EXPECT_TRUE(entry.path().string().ends_with(compileLogEnd)) << entry.path();
      std::ifstream in(entry.path());
      texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    return texts;
  };
  for (int i = 0; i < 2; ++i) // the same one takes the same place
    ASSERT_TRUE(logCompile(log, {"-DNAME=\"a b\"", "-c", "k.cu", "-o", "k.o"}, error)) << error;
  ASSERT_EQ(written().size(), 1u);
  EXPECT_EQ(written()[0], "[{\"directory\": \"" + fs::current_path().string() +
                              "\", \"file\": \"k.cu\", \"arguments\": [\"nvcc\", \"-DNAME=\\\"a b\\\"\", "
                              "\"-c\", \"k.cu\", \"-o\", \"k.o\"]}]\n");
  ASSERT_TRUE(logCompile(log, {"a.o", "-o", "app"}, error));
  ASSERT_TRUE(logCompile(log, {"host.cpp", "-c"}, error));
  ASSERT_EQ(written().size(), 1u) << "no CUDA source";
  ASSERT_TRUE(logCompile(log, {"-x", "cu", "host.cpp", "k.cu", "-o", "app"}, error));
  ASSERT_EQ(written().size(), 2u);
  EXPECT_FALSE(logCompile("/proc/none", {"k.cu"}, error));
  EXPECT_NE(error.find("/proc/none"), std::string::npos);
}

TEST_F(Launcher, TheColourFlagOfCcacheIsDroppedWhereItIsNvccs) {
  env["PATH"] = fs::path(program("bin/nvcc")).parent_path().string();
  ASSERT_TRUE(decide({"-fcolor-diagnostics", "-c", "x.cu"})) << error;
  EXPECT_EQ(decision.argv, (Words{path("bin/nvcc"), "-c", "x.cu"}));
  decision = LaunchDecision();
  ASSERT_TRUE(decide({"-Xcompiler", "-fcolor-diagnostics", "-c", "x.cu"})) << error;
  EXPECT_EQ(decision.argv, (Words{path("bin/nvcc"), "-Xcompiler", "-fcolor-diagnostics", "-c", "x.cu"}));
  decision = LaunchDecision();
  ASSERT_TRUE(decide({"--forward-unknown-to-host-compiler", "-fcolor-diagnostics", "x.cu"})) << error;
  EXPECT_EQ(decision.argv.size(), 4u);
}

TEST(OnlyPreprocesses, IsAFlagAndNoValue) {
  EXPECT_TRUE(onlyPreprocesses({"-E", "x.cu"}));
  EXPECT_TRUE(onlyPreprocesses({"x.cu", "--preprocess"}));
  EXPECT_FALSE(onlyPreprocesses({"x.o", "-Xlinker", "-E", "-o", "app"}));
}
