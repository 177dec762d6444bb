//===- DoctorCommand.cpp - the program optiml-doctor ----------------------===//
#include "optiml/Driver/DoctorCommand.h"
#include "optiml/Evaluate/Measure/WorkerPool.h"
#include "optiml/Frontend/Toolchain.h"
#include "optiml/Gpu/Counters.h"
#include "optiml/Store/Store.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Sandbox.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <unistd.h>

using namespace optiml;

static constexpr const char *help = R"(usage: optiml doctor [--store=FOLDER]

Checks what OptiML needs on this machine by using it, and tells how to mend what is missing:

  ok        it works
  note      OptiML works without it, with less
  problem   no search is possible, or what it finds is lost

  --store=FOLDER   the store to look at (that of optiml-clang without --optiml-store)

Exit code 0: there is no problem; 1: there is one.
)";

// Runs in a moment, on the emulator, too.
static constexpr const char *smallProgram = R"(#include <cstdio>
__global__ void twice(int *a) { a[threadIdx.x] *= 2; }
int main() {
  int *a = nullptr, b[32] = {21};
  cudaMalloc(&a, sizeof b);
  cudaMemcpy(a, b, sizeof b, cudaMemcpyHostToDevice);
  twice<<<1, 32>>>(a);
  cudaMemcpy(b, a, sizeof b, cudaMemcpyDeviceToHost);
  std::printf("%d\n", b[0]);
}
)";

namespace {
class Doctor {
public:
  explicit Doctor(std::string self) : self(std::move(self)) {}
  bool problems = false;

  void checkToolchain();
  void checkGpu();
  void checkStore(const std::string &folder);
  void checkOthers();

private:
  void ok(const std::string &what, const std::string &how) { tell("ok", what, how); }
  void note(const std::string &what, const std::string &how) { tell("note", what, how); }
  void problem(const std::string &what, const std::string &how) {
    problems = true;
    tell("problem", what, how);
  }
  void tell(const char *state, const std::string &what, const std::string &how) {
    llvm::outs() << llvm::formatv("{0,-9} {1,-13} {2}\n", state, what, llvm::StringRef(how).trim());
    llvm::outs().flush();
  }
  /// Runs a command, which must end well.
  void use(const std::string &what, const std::vector<std::string> &command, const std::string &worked,
           const std::string &remedy);

  std::string self;
  std::string bin = "."; ///< beside this program
};
} // namespace

void Doctor::use(const std::string &what, const std::vector<std::string> &command, const std::string &worked,
                 const std::string &remedy) {
  ProcessOptions options;
  options.limits.seconds = 120;
  auto ran = runProcess(command, options);
  if (!ran)
    return problem(what, llvm::toString(ran.takeError()) + "; " + remedy);
  if (!ran->ok()) {
    const llvm::StringRef said = llvm::StringRef(ran->err.empty() ? ran->out : ran->err).trim();
    return problem(what, shellQuote(command) + ": " + ran->describe() + "; " + remedy +
                             (said.empty() ? "" : "\n" + said.take_front(600).str()));
  }
  ok(what, worked);
}

void Doctor::checkToolchain() {
  auto toolchain = Toolchain::find(self.c_str());
  if (!toolchain)
    return problem("toolchain", llvm::toString(toolchain.takeError()));
  bin = toolchain->libDir + "/../bin";
  auto folder = TempDir::create("optiml-doctor");
  if (!folder)
    return problem("scratch", llvm::toString(folder.takeError()) + "; set TMPDIR to a folder that can be written");
  const std::string source = folder->file("small.cu");
  if (llvm::Error error = writeFileAtomically(source, smallProgram))
    return problem("scratch", llvm::toString(std::move(error)));
  use("nvcc", {toolchain->nvcc, "-c", source, "-o", folder->file("small.o")},
      toolchain->nvcc + ", CUDA " + toolchain->cudaVersion(),
      "nvcc must find a host compiler that it supports (-ccbin names one), and its own toolkit");
  ok("Clang", "headers in " + toolchain->resourceDir + ", host compiler " + toolchain->hostCxx);
  use("emulator", {bin + "/optiml-run", source}, "runs programs without a GPU",
      "reinstall OptiML: its programs and lib belong together");
}

void Doctor::checkGpu() {
  WorkerPoolOptions options;
  options.command = WorkerPool::workerCommand(bin);
  auto pool = WorkerPool::create(std::move(options));
  if (!pool)
    return note("GPU", "none can be used, so times are predicted: " + llvm::toString(pool.takeError()));
  const gpu::DeviceInfo &device = (*pool)->device();
  ok("GPU", llvm::formatv("{0}, compute capability {1}.{2}, {3} in all, driver for CUDA {4}.{5}", device.name,
                          device.arch / 10, device.arch % 10, device.devices, device.driver / 1000,
                          device.driver % 1000 / 10));
  if (device.chip.empty())
    return note("CUPTI",
                "not found: searches use no hardware counters; it is part of the CUDA Toolkit, and OPTIML_CUPTI=FILE "
                "names libcupti");
  ok("CUPTI", "knows this GPU as " + device.chip);
  auto params = readFile("/proc/driver/nvidia/params");
  const bool restricted = params && llvm::StringRef(*params).contains("RmProfilingAdminOnly: 1");
  llvm::consumeError(params.takeError());
  if (restricted && geteuid() != 0)
    note("counters", gpu::counterPermissionHint());
  else
    ok("counters", "this user may read them");
}

void Doctor::checkStore(const std::string &folder) {
  if (folder.empty())
    return problem("store", "neither $XDG_CACHE_HOME nor $HOME is set; name one with --optiml-store=FOLDER");
  auto store = Store::open(folder + "/store.db");
  if (!store)
    return problem("store", llvm::toString(store.takeError()));
  auto space = llvm::sys::fs::disk_space(folder);
  const std::string free =
      space ? llvm::formatv(", {0:f1} GB free", double(space->available) / 1e9).str() : std::string();
  if (!(*store)->note().empty())
    note("store", folder + free + "; " + (*store)->note());
  else
    ok("store", folder + free);
  if (space && space->available < (1u << 30))
    note("disk", "less than 1 GB is free where the store is");
}

void Doctor::checkOthers() {
  if (findOnPath("diff").empty())
    note("diff", "not on PATH: reports and --optiml-diff need it (package diffutils)");
  else
    ok("diff", findOnPath("diff"));
  if (sandboxConfinesFiles())
    ok("sandbox", "kernels that a model wrote are kept from files and network");
  else
    note("sandbox", "this kernel has no Landlock (Linux 5.13): kernels that a model wrote are kept from the network, "
                    "and not from files of this user");
  if (findOnPath("ccache").empty())
    note("ccache", "not on PATH: only builds through ccache need it");
}

int optiml::runDoctorCommand(int argc, char **argv) {
  std::string store = userCacheFolder();
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      llvm::outs() << help;
      return 0;
    }
    if (!argument.consume_front("--store=") || argument.empty()) {
      llvm::errs() << "optiml-doctor: error: there is no option '" << argv[i] << "'; optiml doctor --help lists them\n";
      return 2;
    }
    store = argument.str();
  }
  Doctor doctor(argv[0]);
  doctor.checkToolchain();
  doctor.checkGpu();
  doctor.checkStore(store);
  doctor.checkOthers();
  return doctor.problems ? 1 : 0;
}
