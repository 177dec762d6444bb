//===- main.cpp - optiml-run: a CUDA program on the CPU emulator ----------===//
//
//   optiml-run [options] [nvcc flags] file.cu … [-- program arguments]
//
// Builds the program for the emulator, runs it in a scratch folder without standard input under limits, passes its
// output through and ends with its exit code. With --verify, compares two versions of a program.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/Recipes.h"
#include "optiml/Driver/VerifyCommand.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Emulator/Run.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/Support/raw_ostream.h"

using namespace optiml;
using namespace optiml::emu;

namespace {

const char *help = R"(usage: optiml-run [options] [nvcc flags] file.cu ... [-- program arguments]

Runs a CUDA program on the CPU emulator.

  --check=bounds   stop at accesses out of bounds, misaligned accesses and divergent barriers (default)
  --check=verify   also at data races and reads of shared memory that nothing wrote; slower
  --check=off      no checks
  --verify=FILE    does FILE, standing in place of the one CUDA source, compute the same? Runs both versions with the
                   same arguments, with odd sizes and with other inputs, checked for races too, and compares what
                   they copy back. Exit code 0: yes; 1: no, and the first difference is printed; 2: cannot tell
  --verify-list=FILE
                   many such comparisons in one process: each line of FILE is CHANGED ORIGINAL [ARGUMENTS...], quoted
                   as for a shell. Prints "CHANGED: " and the outcome; exit code 0: all are the same; 1: some are
                   not; 2: some cannot be told
  --coverage=SECONDS
                   with --verify: how long to look for arguments and data on which code runs that has not run yet (90);
                   code of the changed version that never ran makes the answer "cannot tell". off: it does not matter
  --fp=MODE        with --verify: strict (bit for bit), reassoc (sums may be reordered, default), fast
                   (approximate functions) or tf32 (inputs of products rounded, too); the last two with a
                   relative error: fast:ERROR
  --capture=DIR    write a workload of the program's kernel launches to DIR
  --time=SECONDS   stop the program after this long (default 300)
  --memory=GB      stop it when it uses more memory (default: three quarters of the machine's)
  -o FILE          keep the emulated program as FILE
  --no-run         build only; needs -o
  --help           this text
)";

struct Invocation {
  uint32_t mode = ModeBounds;
  RunOptions run;
  std::vector<std::string> nvccArgs;
  CompileOptions compile;
  bool showHelp = false, buildOnly = false;
  std::string changedFile; ///< --verify
  std::string listFile;    ///< --verify-list
  FloatRule floats;
  bool everyPath = true;                 ///< --coverage
  std::optional<double> coverageSeconds; ///< the same
};

llvm::Error parseOwnFlag(llvm::StringRef flag, llvm::StringRef value, Invocation &result) {
  if (flag == "--check") {
    if (value == "bounds")
      result.mode = ModeBounds;
    else if (value == "verify")
      result.mode = ModeVerify;
    else if (value == "off")
      result.mode = ModePlain;
    else
      return makeError("--check={0}: expected bounds, verify or off", value);
  } else if (flag == "--verify") {
    if (value.empty())
      return makeError("--verify= needs a file");
    result.changedFile = value.str();
  } else if (flag == "--verify-list") {
    if (value.empty())
      return makeError("--verify-list= needs a file");
    result.listFile = value.str();
  } else if (flag == "--fp") {
    std::string problem;
    if (!FloatRule::parse(value, result.floats, problem))
      return makeError("--fp={0}: {1}", value, problem);
  } else if (flag == "--coverage") {
    result.everyPath = value != "off";
    if (!result.everyPath || value == "on")
      return llvm::Error::success();
    llvm::Expected<double> seconds = positiveNumber(flag, value);
    if (!seconds)
      return seconds.takeError();
    result.coverageSeconds = *seconds;
  } else if (flag == "--capture") {
    if (value.empty())
      return makeError("--capture= needs a folder");
    result.run.captureDir = value.str();
  } else {
    llvm::Expected<double> number = positiveNumber(flag, value);
    if (!number)
      return number.takeError();
    if (flag == "--time")
      result.run.seconds = *number;
    else
      result.run.memoryBytes = uint64_t(*number * (1 << 30));
  }
  return llvm::Error::success();
}

llvm::Expected<Invocation> parse(llvm::ArrayRef<char *> argv) {
  Invocation result;
  for (size_t i = 0; i < argv.size(); ++i) {
    llvm::StringRef arg = argv[i];
    if (arg == "--") {
      result.run.args.assign(argv.begin() + long(i) + 1, argv.end());
      break;
    }
    auto [flag, value] = arg.split('=');
    if (arg == "--help" || arg == "-h")
      result.showHelp = true;
    else if (arg == "--no-run")
      result.buildOnly = true;
    else if (flag == "--check" || flag == "--verify" || flag == "--verify-list" || flag == "--fp" ||
             flag == "--coverage" || flag == "--capture" || flag == "--time" || flag == "--memory") {
      if (llvm::Error error = parseOwnFlag(flag, value, result))
        return std::move(error);
    } else
      result.nvccArgs.push_back(arg.str());
  }
  result.compile = CompileOptions::parse(result.nvccArgs);
  return result;
}

void print(const VerifyOutcome &outcome, llvm::StringRef label) {
  const VerifyReport &report = outcome.report;
  printNotes(llvm::outs(), report, label);
  llvm::outs() << label << (outcome.function.empty() ? "" : outcome.function + ": ");
  if (report.correct())
    llvm::outs() << "the same results in " << report.runs << " runs with " << report.launches << " inputs\n";
  else if (report.verdict == Verdict::Untested)
    llvm::outs() << "cannot tell: nothing differs in " << report.runs << " runs with " << report.launches
                 << " inputs, but " << report.why << "\n";
  else
    llvm::outs() << "not the same: " << report.why << "\n";
}

/// 0: the same, 1: not, 2: cannot tell. Everything that is printed stands after `label`.
llvm::Expected<int> verifyChanged(const Toolchain &toolchain, OriginalBuilds &originals, const Invocation &invocation,
                                  const std::string &original, const std::string &changedFile,
                                  const std::vector<std::string> &arguments, llvm::StringRef label) {
  VerifyRequest request;
  request.original = original;
  request.changed = changedFile;
  request.compile = invocation.compile;
  CompareOptions &options = request.compare;
  options.arguments = arguments;
  options.seconds = invocation.run.seconds;
  options.verify.floats = invocation.floats;
  options.everyPath = invocation.everyPath;
  if (invocation.coverageSeconds)
    options.coverageSeconds = *invocation.coverageSeconds;
  if (invocation.run.memoryBytes)
    options.verify.memoryBytes = invocation.run.memoryBytes;
  llvm::Expected<std::vector<VerifyOutcome>> outcomes = verifyFiles(toolchain, originals, request);
  if (!outcomes)
    return outcomes.takeError();
  for (const VerifyOutcome &outcome : *outcomes) {
    if (!outcome.error.empty())
      return makeError("{0}", outcome.error);
    if (outcome.report.verdict == Verdict::CompileError)
      return makeError("the changed version does not compile: {0}", outcome.report.why);
    print(outcome, label);
  }
  return exitCodeOf(*outcomes);
}

llvm::Expected<int> verifyOne(const Toolchain &toolchain, OriginalBuilds &originals, const Invocation &invocation) {
  const std::vector<std::string> &inputs = invocation.compile.inputs;
  if (inputs.size() != 1)
    return makeError("--verify wants one CUDA source on the command line, not {0}", inputs.size());
  return verifyChanged(toolchain, originals, invocation, inputs[0], invocation.changedFile, invocation.run.args, "");
}

/// Goes on after a comparison that cannot be made.
llvm::Expected<int> verifyList(const Toolchain &toolchain, OriginalBuilds &originals, Invocation &invocation) {
  if (!invocation.compile.inputs.empty())
    return makeError("--verify-list wants no CUDA source on the command line");
  llvm::Expected<std::string> list = readFile(invocation.listFile);
  if (!list)
    return list.takeError();
  int worst = 0;
  for (llvm::StringRef line : llvm::split(*list, '\n')) {
    llvm::BumpPtrAllocator memory;
    llvm::StringSaver saver(memory);
    llvm::SmallVector<const char *, 8> words;
    llvm::cl::TokenizeGNUCommandLine(line, saver, words);
    if (words.empty())
      continue;
    if (words.size() < 2)
      return makeError("{0}: a line is CHANGED ORIGINAL [ARGUMENTS...], not '{1}'", invocation.listFile, line);
    std::string label = std::string(words[0]) + ": ";
    std::vector<std::string> arguments = invocation.nvccArgs;
    arguments.push_back(words[1]);
    invocation.compile = CompileOptions::parse(arguments);
    llvm::Expected<int> code =
        verifyChanged(toolchain, originals, invocation, words[1], words[0], {words.begin() + 2, words.end()}, label);
    worst = std::max(worst, code ? *code : 2);
    if (!code)
      llvm::outs() << label << "error: " << llvm::toString(code.takeError()) << "\n";
    llvm::outs().flush();
  }
  return worst;
}

llvm::Expected<int> verify(const char *argv0, Invocation &invocation) {
  llvm::Expected<Toolchain> toolchain = Toolchain::find(argv0);
  if (!toolchain)
    return toolchain.takeError();
  llvm::Expected<OriginalBuilds> originals = OriginalBuilds::create();
  if (!originals)
    return originals.takeError();
  return invocation.listFile.empty() ? verifyOne(*toolchain, *originals, invocation)
                                     : verifyList(*toolchain, *originals, invocation);
}

llvm::Expected<int> runOnEmulator(const char *argv0, Invocation &invocation) {
  const CompileOptions &compile = invocation.compile;
  if (!compile.tooHard.empty())
    return makeError("{0}", compile.tooHard);
  if (compile.compileOnly)
    return makeError("-c and its like make no program to run; leave them out");
  llvm::Expected<Toolchain> toolchain = Toolchain::find(argv0);
  if (!toolchain)
    return toolchain.takeError();
  llvm::Expected<TempDir> scratch = TempDir::create("optiml-build");
  if (!scratch)
    return scratch.takeError();
  if (invocation.buildOnly && compile.output.empty())
    return makeError("--no-run needs -o FILE");
  std::string program = compile.output.empty() ? scratch->file("program") : compile.output;
  auto texts = textsByRecipes(compile, *toolchain,
                              [](const std::string &line) { llvm::errs() << "optiml-run: warning: " << line << "\n"; });
  if (!texts)
    return makeError("OPTIML_RECIPES: {0}", llvm::toString(texts.takeError()));
  if (llvm::Error error = buildProgram(compile, *texts, *toolchain, invocation.mode, program))
    return std::move(error);
  if (invocation.buildOnly)
    return 0;
  invocation.run.inheritOutput = true;
  llvm::Expected<ProcessResult> result = runProgram(program, invocation.run);
  if (!result)
    return result.takeError();
  if (result->timedOut || result->overMemory)
    return makeError("the program {0}", result->describe());
  if (result->signal) {
    llvm::errs() << "optiml-run: the program was " << result->describe() << "\n";
    return 128 + result->signal;
  }
  return result->exitCode;
}

} // namespace

int main(int argc, char **argv) {
  auto fail = [](llvm::Error error) {
    llvm::errs() << "optiml-run: error: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  };
  llvm::Expected<Invocation> invocation = parse(llvm::ArrayRef(argv + 1, argv + argc));
  if (!invocation)
    return fail(invocation.takeError());
  if (invocation->showHelp || argc == 1) {
    (argc == 1 ? llvm::errs() : llvm::outs()) << help;
    return argc == 1;
  }
  if (!invocation->changedFile.empty() || !invocation->listFile.empty()) {
    llvm::Expected<int> code = verify(argv[0], *invocation);
    if (code)
      return *code;
    fail(code.takeError());
    return 2; // not 1, which says that the results differ
  }
  llvm::Expected<int> code = runOnEmulator(argv[0], *invocation);
  return code ? *code : fail(code.takeError());
}
