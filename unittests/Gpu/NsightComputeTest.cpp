//===- NsightComputeTest.cpp - hardware counters from ncu -----------------===//
#include "optiml/Gpu/NsightCompute.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace optiml::gpu;

TEST(NsightCompute, TheCommandAsksForOurMetrics) {
  NcuOptions options;
  options.ncu = "/opt/nsight/ncu";
  options.program = {"./app", "--size", "1024"};
  options.kernels = {"mm", "scale"};
  options.skip = 2;
  options.count = 1;
  options.logFile = "/tmp/x.csv";
  options.metrics = {"gpu__time_duration.sum", "dram__bytes.sum"};
  EXPECT_EQ(ncuCommand(options),
            (std::vector<std::string>{"/opt/nsight/ncu", "--clock-control", "none", "--metrics",
                                      "gpu__time_duration.sum,dram__bytes.sum", "--csv", "--page", "raw",
                                      "--kernel-name", "regex:^(mm|scale)$", "--launch-skip", "2", "--launch-count",
                                      "1", "--log-file", "/tmp/x.csv", "./app", "--size", "1024"}));
  NcuOptions all;
  all.program = {"./app"};
  std::vector<std::string> command = ncuCommand(all);
  EXPECT_EQ(command.front(), "ncu");
  EXPECT_EQ(command.back(), "./app");
  EXPECT_EQ(std::count(command[4].begin(), command[4].end(), ',') + 1, long(counterMetrics().size()));
  EXPECT_EQ(command.size(), 9u);
}

TEST(NsightCompute, ReadsTheRawPage) {
  const char *text =
      R"csv(==PROF== Connected to process 4242 (/home/u/app)
max error 1.2e-06, "quoted", words
"a","line","of","the","program"
==PROF== Profiling "mm" - 0: 0%....50%....100% - 7 passes
==PROF== Profiling "scale" - 1: 0%....50%....100% - 7 passes
==PROF== Disconnected from process 4242
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",)csv"
      R"csv("Device","CC","dram__bytes.sum","gpu__time_duration.sum",)csv"
      R"csv("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",)csv"
      R"csv("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed","smsp__inst_executed.sum"
"","","","","","","","","","","","Mbyte","us","sector","%","inst"
"0","4242","app","127.0.0.1","void mm<float, (int)16>(const T1 *, const T1 *, T1 *, int)",)csv"
      R"csv("1","7","(16, 16, 1)","(64, 64, 1)","0","9.0","13.631488","427.36","184,549,376","n/a","140,509,184"
"1","4242","app","127.0.0.1","scale(float *, ""s"")","1","7","(256, 1, 1)","(4096, 1, 1)","0","9.0",)csv"
      R"csv("8.5","3.2","131,072","0","1,048,576"
)csv";
  std::vector<NcuKernel> kernels;
  std::string why;
  ASSERT_TRUE(parseNcuCsv(text, kernels, why)) << why;
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "void mm<float, (int)16>(const T1 *, const T1 *, T1 *, int)");
  EXPECT_EQ(kernels[1].name, "scale(float *, \"s\")");
  EXPECT_DOUBLE_EQ(kernels[0].raw.at("dram__bytes.sum"), 13631488);
  EXPECT_DOUBLE_EQ(kernels[0].raw.at("gpu__time_duration.sum"), 427360);
  EXPECT_EQ(kernels[0].raw.at("smsp__inst_executed.sum"), 140509184);
  EXPECT_FALSE(kernels[0].raw.contains("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"));
  EXPECT_EQ(kernels[0].raw.size(), 4u);
  RawCounters both = combine(kernels);
  EXPECT_DOUBLE_EQ(both["gpu__time_duration.sum"], 430560);
  EXPECT_EQ(both[kernelsKey], 2);
}

TEST(NsightCompute, ReadsTheDetailsPage) {
  const char *text =
      R"csv(==PROF== Connected to process 77 (/home/u/app)
==PROF== Disconnected from process 77
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",)csv"
      R"csv("Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","77","app","127.0.0.1","mm(float *)","1","7","(16, 16, 1)","(64, 64, 1)","0","9.0",)csv"
      R"csv("Command line profiler metrics","dram__bytes.sum","Kbyte","512.5"
"0","77","app","127.0.0.1","mm(float *)","1","7","(16, 16, 1)","(64, 64, 1)","0","9.0",)csv"
      R"csv("Command line profiler metrics","gpu__time_duration.sum","msecond","1.25"
"0","77","app","127.0.0.1","mm(float *)","1","7","(16, 16, 1)","(64, 64, 1)","0","9.0",)csv"
      R"csv("GPU Speed Of Light Throughput","Duration","msecond","1.25"
"1","77","app","127.0.0.1","mm(float *)","1","7","(16, 16, 1)","(64, 64, 1)","0","9.0",)csv"
      R"csv("Command line profiler metrics","dram__bytes.sum","byte","96"
"1","77","app","127.0.0.1","mm(float *)","1","7","(16, 16, 1)","(64, 64, 1)","0","9.0",)csv"
      R"csv("Command line profiler metrics","gpu__time_duration.sum","nsecond","1,600"
)csv";
  std::vector<NcuKernel> kernels;
  std::string why;
  ASSERT_TRUE(parseNcuCsv(text, kernels, why)) << why;
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].raw, (RawCounters{{"dram__bytes.sum", 512500}, {"gpu__time_duration.sum", 1250000}}));
  EXPECT_EQ(kernels[1].raw, (RawCounters{{"dram__bytes.sum", 96}, {"gpu__time_duration.sum", 1600}}));
}

TEST(NsightCompute, UnitsBecomeBaseUnits) {
  const std::vector<std::pair<const char *, double>> units = {
      {"s", 2e9},     {"second", 2e9}, {"ms", 2e6},           {"us", 2e3},  {"usecond", 2e3}, {"ns", 2}, {"byte", 2},
      {"Gbyte", 2e9}, {"Tbyte", 2e12}, {"Mbyte/second", 2e6}, {"Ghz", 2e9}, {"inst", 2},      {"%", 2},  {"", 2}};
  for (const auto &[unit, value] : units) {
    std::string text =
        "\"ID\",\"Kernel Name\",\"a__b.sum\"\r\n\"\",\"\",\"" + std::string(unit) + "\"\r\n\"0\",\"k\",\"2.0\"\r\n";
    std::vector<NcuKernel> kernels;
    std::string why;
    ASSERT_TRUE(parseNcuCsv(text, kernels, why)) << unit << why;
    EXPECT_DOUBLE_EQ(kernels[0].raw.at("a__b.sum"), value) << unit;
  }
}

static std::string reasonFor(const std::string &text) {
  std::vector<NcuKernel> kernels;
  std::string why;
  EXPECT_FALSE(parseNcuCsv(text, kernels, why));
  EXPECT_TRUE(kernels.empty());
  return why;
}

TEST(NsightCompute, SaysWhyThereIsNothing) {
  EXPECT_EQ(reasonFor("==PROF== Connected to process 5 (/home/u/app)\n"
                      "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
                      "Counters on the target device 0. For instructions on enabling permissions and to get more "
                      "information see https://developer.nvidia.com/ERR_NVGPUCTRPERM\n"),
            counterPermissionHint());
  EXPECT_EQ(reasonFor("==PROF== Connected to process 5 (/home/u/app)\n==WARNING== No kernels were profiled.\n"),
            "ncu: no kernels were profiled");
  EXPECT_EQ(reasonFor("==ERROR== Failed to prepare kernel for profiling\n==ERROR== again\n"),
            "ncu: Failed to prepare kernel for profiling");
  EXPECT_EQ(reasonFor(""), "ncu printed no table of metrics");
  EXPECT_EQ(reasonFor("\"ID\",\"Kernel Name\",\"a__b.sum\"\n\"\",\"\",\"\"\n\"0\",\"k\",\"n/a\"\n"),
            "ncu has no value for any metric");
}
