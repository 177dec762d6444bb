//===- WorkerProgram.cpp - optiml-worker ----------------------------------===//
#include "optiml/Gpu/WorkerProgram.h"
#include "RuntimeCompiler.h"
#include "Worker.h"
#include "optiml/Gpu/RangeProfiler.h"
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <string>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <vector>

using namespace optiml;
using namespace optiml::gpu;

static const char help[] = R"(usage: optiml-worker [--device=N]
       optiml-worker --replay JOB.json...
       optiml-worker --compile LIBNVRTC VERSION SOURCE CUBIN [OPTION...]

Evaluates variants of CUDA kernels on one GPU for optiml-clang: reads one request a line, answers each with one line.
  --device=N         the GPU, counted among those visible (default 0)
  --replay JOB.json  runs one captured launch once; the job's module is a cubin. More jobs may follow
  --compile ...      compiles one text with that NVRTC, if it has that version; options are NVRTC's. Needs no GPU
  --version, --help
)";

static int failed(const std::string &why) {
  fprintf(stderr, "optiml-worker: error: %s\n", why.c_str());
  return 1;
}

static bool writeLine(int fd, std::string line) {
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    ssize_t n = write(fd, line.data() + done, line.size() - done);
    if (n < 0 && errno != EINTR)
      return false;
    done += n > 0 ? size_t(n) : 0;
  }
  return true;
}

static int replay(const std::string &path, Device &device) {
  emu::ReplayJob job;
  std::string why;
  if (!emu::readJob(path, job, why))
    return failed(why);
  auto launches = std::make_unique<Launches>(device);
  if (!launches->loadExact(job.workload, job.launch)) {
    fprintf(stderr, "optiml-worker: note: memory is laid out as it was captured: %s\n", device.error.c_str());
    launches = std::make_unique<Launches>(device);
    if (!launches->load(job.workload))
      return failed(device.error);
  }
  std::unique_ptr<Module> module = Module::load(device, job.module);
  Run run;
  Failure failure;
  PlannedLaunch planned{job.launch, job.scratch, job.steps};
  if (!module || !launches->plan(planned, *module, run, failure) || !launches->putInPlace(run) ||
      !launches->enqueue(run, failure))
    return failed(device.error);
  switch (device.wait(job.seconds > 0 ? job.seconds : 600)) {
  case Device::Wait::Done: return 0;
  case Device::Wait::TimedOut:
    fprintf(stderr, "optiml-worker: error: the launch did not end\n");
    _exit(1); // the driver would wait for the kernel
  case Device::Wait::Failed: break;
  }
  return failed(device.error);
}

/// One after the other: what watches the program starts once for all of them.
static int replay(const std::vector<std::string> &paths, unsigned index) {
  std::string why;
  std::unique_ptr<Device> device = Device::open(index, why);
  if (!device)
    return failed(why);
  for (const std::string &path : paths)
    if (int code = replay(path, *device))
      return code;
  return 0;
}

/// `optiml-worker --compile LIBNVRTC VERSION SOURCE CUBIN [OPTION...]`
static int compile(int argc, char **argv) {
  if (argc < 6)
    return failed("--compile wants a library, its version, a source, and where the cubin goes");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A precompiled header is an image of memory: it is of use where NVRTC gets the same addresses again.
  const bool isPrecompiled = std::any_of(argv + 6, argv + argc, [](const char *o) { return strstr(o, "-pch="); });
  const int personal = personality(0xffffffff);
  if (isPrecompiled && personal != -1 && !(personal & ADDR_NO_RANDOMIZE) &&
      personality((unsigned long)personal | ADDR_NO_RANDOMIZE) != -1)
    execv("/proc/self/exe", argv);
  return compileAtRunTime({argv[2], argv[3], argv[4], argv[5], {argv + 6, argv + argc}});
}

int optiml::gpu::workerProgram(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--compile"))
    return compile(argc, argv);
  unsigned index = 0;
  std::vector<std::string> jobs;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--help" || word == "-h") {
      fputs(help, stdout);
      return 0;
    }
    if (word == "--version") {
      printf("optiml-worker, protocol %u\n", protocolVersion);
      return 0;
    }
    if (word.rfind("--device=", 0) == 0 && word.find_first_not_of("0123456789", 9) == std::string::npos &&
        word.size() > 9 && word.size() < 14)
      index = unsigned(std::stoul(word.substr(9)));
    else if (word == "--replay" && i + 1 < argc)
      jobs.push_back(argv[++i]);
    else if (!jobs.empty() && word.rfind("-", 0) != 0)
      jobs.push_back(word);
    else
      return failed("what is '" + word + "'? optiml-worker --help shows how it is called");
  }
  if (!jobs.empty())
    return replay(jobs, index);
  prctl(PR_SET_PDEATHSIG, SIGKILL); // no GPU is kept busy for a search that was killed
  signal(SIGPIPE, SIG_IGN);
  int out = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY);
  if (out < 0 || null < 0 || dup2(null, STDOUT_FILENO) < 0)
    return failed(std::string("cannot set up the output: ") + strerror(errno));
  std::string why;
  std::unique_ptr<Device> device = Device::open(index, why);
  if (!device)
    return failed(why);
  std::string noCounters;
  device->info.chip = chipName(index, noCounters);
  if (!writeLine(out, encode(device->info)))
    return 0;
  Worker worker(*device);
  for (std::string line, reply; std::getline(std::cin, line);) {
    bool usable = worker.answer(line, reply);
    if (!writeLine(out, reply) || !usable)
      _exit(usable ? 0 : 3); // with a broken context the driver's own clean-up may hang
  }
  return 0;
}
