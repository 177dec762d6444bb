//===- CompileOptionsTest.cpp - nvcc command lines, understood ------------===//
#include "optiml/Frontend/CompileOptions.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace optiml;

namespace {

using Words = std::vector<std::string>;

CompileOptions parse(const Words &args) { return CompileOptions::parse(args); }

TEST(CompileOptions, DefaultsAreNvccs) {
  CompileOptions o = parse({"a.cu"});
  EXPECT_EQ(o.tooHard, "");
  EXPECT_EQ(o.inputs, Words{"a.cu"});
  EXPECT_EQ(o.frontendFlags, Words{"-std=c++17"});
  EXPECT_EQ(o.archName, "sm_90");
  EXPECT_FALSE(o.compileOnly);
}

TEST(CompileOptions, ListsAreSplitAtCommas) {
  CompileOptions o = parse({"-std=c++14", "-Iinc,other", "-D", "N=3,M", "-isystem=sys", "a.cu"});
  EXPECT_EQ(o.frontendFlags, (Words{"-std=c++14", "-Iinc", "-Iother", "-DN=3", "-DM", "-isystem", "sys"}));
}

TEST(CompileOptions, EscapedAndQuotedCommasStay) {
  CompileOptions o = parse({"-std=c++14", "-DPAIR=1\\,2", "-DTEXT=\"a,b\"", "a.cu"});
  EXPECT_EQ(o.frontendFlags, (Words{"-std=c++14", "-DPAIR=1,2", "-DTEXT=\"a,b\""}));
}

TEST(CompileOptions, ArchitectureInEverySpelling) {
  EXPECT_EQ(parse({"-arch=sm_80", "a.cu"}).archName, "sm_80");
  EXPECT_EQ(parse({"-arch", "compute_89", "a.cu"}).arch, 89u);
  EXPECT_EQ(parse({"--gpu-architecture=sm_90a", "a.cu"}).archName, "sm_90a");
  EXPECT_EQ(parse({"-gencode", "arch=compute_75,code=sm_75", "-gencode=arch=compute_90,code=sm_90", "a.cu"}).arch, 75u);
  EXPECT_EQ(parse({"--generate-code=arch=compute_90,code=[compute_90,sm_90]", "a.cu"}).archName, "sm_90");
  EXPECT_EQ(parse({"-arch=native", "a.cu"}).archName, "sm_90");
  EXPECT_EQ(parse({"-arch=sm_110", "a.cu"}).archName, "sm_103"); // the nearest that Clang knows
  EXPECT_NE(parse({"-arch=gfx90", "a.cu"}).tooHard, "");
}

TEST(CompileOptions, AllArchitecturesOfTheObject) {
  CompileOptions both =
      parse({"-gencode", "arch=compute_90,code=sm_90", "-gencode=arch=compute_80,code=sm_80", "a.cu"});
  EXPECT_EQ(both.archs, (std::vector<unsigned>{90, 80}));
  EXPECT_EQ(both.leastArch, 80u);
  EXPECT_EQ(both.only(80).archName, "sm_80");
  EXPECT_EQ(both.only(90).leastArch, 90u);
  EXPECT_EQ(parse({"-arch=sm_90a", "a.cu"}).only(90).archName, "sm_90a");
  EXPECT_TRUE(parse({"a.cu"}).archs.empty());
  EXPECT_TRUE(parse({"-arch=all-major", "a.cu"}).everyArch);
}

TEST(CompileOptions, LibrariesAreCompiledOnly) {
  for (const char *flag : {"-shared", "--lib", "-c"}) {
    CompileOptions o = parse({flag, "-v", "-odir", "out", "-Xcudafe", "--display_error_number", "a.cu"});
    EXPECT_EQ(o.tooHard, "") << flag;
    EXPECT_TRUE(o.compileOnly) << flag;
  }
  EXPECT_TRUE(parse({"-G", "-c", "a.cu"}).deviceDebug);
}

TEST(CompileOptions, OutputLibrariesAndHostFlags) {
  CompileOptions o = parse({"-O3", "-lineinfo", "-Xcompiler", "-Wall,-DHOST", "-o", "app", "a.cu", "b.cpp", "c.o",
                            "-lm", "-L/x", "--use_fast_math", "-Xptxas=-v"});
  EXPECT_EQ(o.tooHard, "");
  EXPECT_EQ(o.output, "app");
  EXPECT_EQ(o.inputs, Words{"a.cu"});
  EXPECT_EQ(o.hostInputs, Words{"b.cpp"});
  EXPECT_EQ(o.linkInputs, Words{"c.o"});
  EXPECT_EQ(o.libraries, (Words{"-lm", "-L/x"}));
  EXPECT_TRUE(llvm::is_contained(o.frontendFlags, "-DHOST"));
  EXPECT_TRUE(o.fastMath);
}

TEST(CompileOptions, LanguageAppliesToWhatFollows) {
  CompileOptions o = parse({"-x", "cu", "-c", "a.cpp"});
  EXPECT_EQ(o.inputs, Words{"a.cpp"});
  EXPECT_TRUE(o.compileOnly);
}

TEST(CompileOptions, UnknownFlagsAreTooHardUnlessForwarded) {
  EXPECT_EQ(parse({"-fPIC", "a.cu"}).tooHard, "unknown flag -fPIC");
  EXPECT_EQ(parse({"-forward-unknown-to-host-compiler", "-fPIC", "a.cu"}).tooHard, "");
}

TEST(CompileOptions, OtherProductsAreTooHard) {
  for (const char *flag : {"-E", "-M", "-ptx", "-cubin", "--version", "-dlink", "--dryrun"})
    EXPECT_NE(parse({flag, "a.cu"}).tooHard, "") << flag;
  EXPECT_NE(parse({"a.o"}).tooHard, "");
}

TEST(CompileOptions, ClangArgsChooseTheView) {
  Toolchain t;
  t.cudaPath = "/cuda";
  Words device = parse({"a.cu"}).clangArgs(t, View::Device), host = parse({"a.cu"}).clangArgs(t, View::Host);
  EXPECT_TRUE(llvm::is_contained(device, "--cuda-device-only"));
  EXPECT_TRUE(llvm::is_contained(host, "--cuda-host-only"));
  EXPECT_TRUE(llvm::is_contained(host, "--cuda-gpu-arch=sm_90"));
}

} // namespace
