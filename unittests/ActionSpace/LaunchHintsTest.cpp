//===- LaunchHintsTest.cpp - what captured launches tell transforms -------===//
#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Support/TempDir.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace optiml;

// 300 counters behind a pointer in a structure, 40 behind a parameter: the first table offered holds all of them.
TEST(LaunchHints, TablesOfAtomicsHoldTheArrayFirst) {
  const char *text = "struct Counters { int n; unsigned *count; };\n"
                     "__global__ void k(const int *x, int n, Counters c, unsigned *few, unsigned *unknown) {\n"
                     "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                     "  if (i < n) {\n"
                     "    atomicAdd(&c.count[x[i]], 1u);\n"
                     "    atomicAdd(&few[x[i]], 1u);\n"
                     "    atomicAdd(&unknown[x[i]], 1u);\n"
                     "  }\n"
                     "}\n";
  TempDir dir = llvm::cantFail(TempDir::create("optiml-hints-test"));
  auto program = llvm::cantFail(Program::parse(dir.file("a.cu"), text, CompileOptions::parse({"a.cu"}),
                                               llvm::cantFail(Toolchain::find("x")), View::Device));
  LaunchHints hints;
  auto raw = [](uint64_t value, size_t bytes) { return std::string(reinterpret_cast<const char *>(&value), bytes); };
  hints.heaviest = {raw(0x10000, 8), raw(1000, 4), raw(300, 8) + raw(0x20040, 8), raw(0x30000, 8), raw(0, 8)};
  hints.buffers = {{0x10000, 4000}, {0x20000, 1264}, {0x30000, 160}};
  auto space = llvm::cantFail(KernelSpace::create(
      *program, [](const KernelDecl &) { return true; }, [&](const KernelDecl &) { return hints; }));
  auto shaped =
      llvm::cantFail(space->apply(llvm::cantFail(space->root()), {"block-shape", "k", {{"x", "256"}, {"y", "1"}}}));
  std::string found;
  for (const ActionTemplate &action : shaped.legal)
    if (action.transform == "privatize-atomic")
      found += action.site + "=" + action.values.front().at("bins") + "," + action.values[1].at("bins") + " ";
  EXPECT_EQ(found, "k:c.count=300,1024 k:few=40,64 k:unknown=256,1024 ");
}
