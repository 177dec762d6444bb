//===- DiagnoseCommand.cpp - the program optiml-diagnose ------------------===//
#include "optiml/Driver/DiagnoseCommand.h"
#include "Diagnosis.h"
#include "optiml/Driver/Workbench.h"
#include "optiml/Support/Deadline.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Interrupt.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <regex>

using namespace optiml;
using nlohmann::json;

static constexpr const char *help = R"(usage: optiml diagnose [options] [nvcc flags] file.cu [-- program arguments]

What limits the kernels of a program, what may be done to them and what not, and what a search would try first. There
is no search, and nothing is compiled into a file.

  --backend=B      auto, gpu or cpu: where the program runs (auto)
  --kernel=REGEX   only kernels whose name has a match
  --seconds=S      what the program's run may take (8.5); then its text alone is diagnosed
  --text           do not run the program at all
  --json           print JSON

Exit code 0: diagnosed; 2: the file cannot be read.
)";

namespace {
struct Options {
  WorkbenchRequest program;
  double seconds = 8.5;
  bool text = false, json = false, showHelp = false;
};
} // namespace

static llvm::Expected<bool> readFlag(llvm::StringRef argument, Options &options) {
  auto [flag, value] = argument.split('=');
  if (argument == "--help" || argument == "-h") {
    options.showHelp = true;
  } else if (argument == "--text") {
    options.text = true;
  } else if (argument == "--json") {
    options.json = true;
  } else if (flag == "--backend") {
    if (value != "auto" && value != "gpu" && value != "cpu")
      return makeError("--backend={0}: expected auto, gpu or cpu", value);
    options.program.backend = value == "gpu"   ? BackendChoice::Gpu
                              : value == "cpu" ? BackendChoice::Cpu
                                               : BackendChoice::Auto;
  } else if (flag == "--kernel") {
    try {
      std::regex checked(value.str(), std::regex::extended);
    } catch (const std::regex_error &) {
      return makeError("--kernel={0}: expected a POSIX extended regular expression", value);
    }
    options.program.kernel = value.str();
  } else if (flag == "--seconds") {
    if (value.getAsDouble(options.seconds) || !(options.seconds > 0))
      return makeError("--seconds={0}: expected a positive number", value);
  } else {
    return false;
  }
  return true;
}

static llvm::Expected<Options> parse(llvm::ArrayRef<char *> arguments) {
  Options options;
  std::vector<std::string> nvcc;
  for (size_t i = 0; i < arguments.size(); ++i) {
    llvm::StringRef argument = arguments[i];
    if (argument == "--") {
      options.program.programArguments =
          shellQuote(std::vector<std::string>(arguments.begin() + long(i) + 1, arguments.end()));
      break;
    }
    auto own = readFlag(argument, options);
    if (!own)
      return own.takeError();
    if (!*own)
      nvcc.push_back(argument.str());
  }
  if (options.showHelp)
    return options;
  const CompileOptions compile = CompileOptions::parse(nvcc);
  if (compile.inputs.size() != 1)
    return makeError("name one CUDA source; optiml diagnose --help tells how");
  options.program.path = compile.inputs.front();
  options.program.nvccFlags = nvcc;
  llvm::erase(options.program.nvccFlags, options.program.path);
  return options;
}

/// Of the program's run: its times, and what limits it.
static llvm::Expected<json> withRun(const Options &options, const Toolchain &toolchain) {
  const Deadline deadline(options.seconds, &interrupted());
  WorkbenchRequest request = options.program;
  request.seconds = options.seconds;
  auto bench = Workbench::open(request, toolchain, deadline.flag(), [](const std::string &) {});
  if (!bench)
    return deadline.passed() && !interrupted()
               ? (llvm::consumeError(bench.takeError()),
                  makeError("the program's run, which takes longer than {0:f1} s here (--seconds)", options.seconds))
               : bench.takeError();
  json diagnosis = (*bench)->diagnosis();
  const Measurement &baseline = (*bench)->baseline();
  diagnosis["seconds"] = baseline.time.seconds;
  diagnosis["times"] = baseline.time.predicted ? "predicted for" : "measured on";
  diagnosis["bottleneck"] = baseline.bottleneck;
  if (auto share = baseline.counters.find("roofline"); share != baseline.counters.end())
    diagnosis["roofline"] = share->second;
  return diagnosis;
}

static llvm::Expected<json> ofText(const Options &options, const Toolchain &toolchain) {
  auto text = readFile(options.program.path);
  if (!text)
    return text.takeError();
  std::vector<std::string> arguments = options.program.nvccFlags;
  arguments.push_back(options.program.path);
  const CompileOptions compile = CompileOptions::parse(arguments);
  auto device = Program::parseWithLaunches(absolutePath(options.program.path), options.program.path, *text, compile,
                                           toolchain, View::Device);
  if (!device)
    return device.takeError();
  auto space = spaceFromText(**device, options.program.kernel);
  if (!space)
    return space.takeError();
  return diagnosisOf(**space, **device, nullptr);
}

static llvm::Error diagnose(const Options &options, const Toolchain &toolchain) {
  auto diagnosis = options.text ? ofText(options, toolchain) : withRun(options, toolchain);
  if (!diagnosis && !options.text && !interrupted()) {
    const std::string missing = llvm::toString(diagnosis.takeError());
    diagnosis = ofText(options, toolchain);
    if (diagnosis)
      (*diagnosis)["missing"] = "times and what limits them: " + missing;
  }
  if (!diagnosis)
    return diagnosis.takeError();
  (*diagnosis)["file"] = options.program.path;
  llvm::outs() << (options.json ? diagnosis->dump(1) + "\n" : diagnosisText(*diagnosis));
  return llvm::Error::success();
}

int optiml::runDiagnoseCommand(int argc, char **argv) {
  auto options = parse({argv + 1, argv + argc});
  if (options && options->showHelp) {
    llvm::outs() << help;
    return 0;
  }
  llvm::Error error = options.takeError();
  if (!error) {
    interrupted(); // from here on Ctrl-C ends the work
    auto toolchain = Toolchain::find(argv[0]);
    error = toolchain ? diagnose(*options, *toolchain) : toolchain.takeError();
  }
  if (!error)
    return 0;
  llvm::errs() << "optiml-diagnose: error: " << llvm::toString(std::move(error)) << "\n";
  return 2;
}
