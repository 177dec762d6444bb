//===- VerifyCommand.cpp - the program optiml-verify -----------------------===//
#include "optiml/Driver/VerifyCommand.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>
#include <nlohmann/json.hpp>

using namespace optiml;

static constexpr const char *help = R"(usage: optiml verify [options] [nvcc flags] original.cu changed.cu [-- arguments]

Does the changed file compute the same as the original? Both run on the CPU emulator, with the given arguments and with
sizes that are looked for, on many inputs. A file without main() gets a host program for each of its functions that
launch kernels, or for its kernels.

  --fp=MODE        strict (bit for bit), reassoc (sums may be reordered, default), fast (approximate functions) or tf32
                   (inputs of products rounded, too); the last two with a relative error: fast:ERROR
  --coverage=SECONDS
                   how long to look for arguments and data on which code runs that has not run yet (90); code of the
                   changed version that never ran makes the answer "cannot tell". off: it does not matter
  --first          stop at the first fault
  --json=FILE      write the report to FILE
  --time=SECONDS   stop a run of a program after this long (300)
  --memory=GB      stop it when it uses more memory (4)

For files without main():
  --function=NAME  verify this function or kernel alone
  --extent=BUFFER=EXPRESSION
                   how many elements the buffer of that parameter has; where it is left out, the original tells
  --launch=GRID;BLOCK[;SHARED]
                   how the kernel is launched
                   Expressions are C++ over the function's integer parameters, which are the program's arguments.

Exit code 0: the same; 1: not the same; 2: cannot tell, or something failed.
)";

namespace {

struct Options {
  VerifyRequest request;
  std::string jsonFile;
  bool showHelp = false;
};

llvm::Error badFlag(llvm::StringRef flag, llvm::StringRef value, llvm::StringRef wanted) {
  return makeError("{0}={1}: expected {2}", flag, value, wanted);
}

/// Whether `flag` is one of optiml-verify's own.
llvm::Expected<bool> parseFlag(llvm::StringRef flag, llvm::StringRef value, Options &result) {
  VerifyRequest &request = result.request;
  auto number = [&](double &to) { return positiveNumber(flag, value).moveInto(to); };
  if (flag == "--help" || flag == "-h") {
    result.showHelp = true;
  } else if (flag == "--first") {
    request.compare.findAll = false;
  } else if (flag == "--json") {
    result.jsonFile = value.str();
  } else if (flag == "--function") {
    request.function = value.str();
  } else if (flag == "--extent") {
    auto [buffer, expression] = value.split('=');
    if (buffer.empty() || expression.empty())
      return badFlag(flag, value, "BUFFER=EXPRESSION");
    request.call.extents[buffer.str()] = expression.str();
  } else if (flag == "--launch") {
    llvm::SmallVector<llvm::StringRef, 3> parts;
    value.split(parts, ';');
    if (parts.size() < 2 || parts.size() > 3)
      return badFlag(flag, value, "GRID;BLOCK or GRID;BLOCK;SHARED");
    request.call.grid = parts[0].str();
    request.call.block = parts[1].str();
    request.call.shared = parts.size() > 2 ? parts[2].str() : "";
  } else if (flag == "--fp") {
    std::string problem;
    if (!FloatRule::parse(value, request.compare.verify.floats, problem))
      return badFlag(flag, value, problem);
  } else if (flag == "--coverage") {
    request.compare.everyPath = value != "off";
    if (value != "off" && value != "on")
      if (llvm::Error error = number(request.compare.coverageSeconds))
        return std::move(error);
  } else if (flag == "--time") {
    if (llvm::Error error = number(request.compare.seconds))
      return std::move(error);
  } else if (flag == "--memory") {
    double gigabytes = 0;
    if (llvm::Error error = number(gigabytes))
      return std::move(error);
    request.compare.verify.memoryBytes = uint64_t(gigabytes * (1 << 30));
  } else {
    return false;
  }
  return true;
}

llvm::Expected<Options> parse(llvm::ArrayRef<char *> argv) {
  Options result;
  VerifyRequest &request = result.request;
  request.compare.findAll = true;
  request.compare.seconds = 300;
  std::vector<std::string> nvcc, files;
  for (size_t i = 0; i < argv.size(); ++i) {
    llvm::StringRef argument = argv[i];
    if (argument == "--") {
      request.compare.arguments.assign(argv.begin() + long(i) + 1, argv.end());
      break;
    }
    auto [flag, value] = argument.split('=');
    llvm::Expected<bool> own = parseFlag(flag, value, result);
    if (!own)
      return own.takeError();
    if (!*own)
      nvcc.push_back(argument.str());
  }
  if (result.showHelp)
    return result;
  request.compile = CompileOptions::parse(nvcc);
  files = request.compile.inputs;
  if (files.size() != 2)
    return makeError("two CUDA files are wanted, the original and the changed one, not {0}; --help tells more",
                     files.size());
  request.original = files[0];
  request.changed = files[1];
  // The second one stands in place of the first.
  nvcc.erase(std::find(nvcc.rbegin(), nvcc.rend(), files[1]).base() - 1);
  request.compile = CompileOptions::parse(nvcc);
  return result;
}

/// Without what only makes it 64 bits wide.
std::string plain(std::string expression) {
  for (const char *wide : {"1LL * ", "std::max<long long>"})
    for (size_t at = 0; (at = expression.find(wide)) != std::string::npos;)
      expression.replace(at, std::strlen(wide), *wide == 's' ? "max" : "");
  return expression;
}

const char *verdictOf(const VerifyOutcome &outcome) {
  static constexpr const char *words[] = {"the same", "not the same", "cannot tell"};
  return words[outcome.exitCode()];
}

void print(const VerifyOutcome &outcome) {
  llvm::raw_ostream &out = llvm::outs();
  if (!outcome.function.empty()) {
    out << outcome.function << ":";
    for (const auto &[buffer, extent] : outcome.call.extents)
      out << " " << buffer << "[" << plain(extent) << "]";
    if (!outcome.call.grid.empty())
      out << " <<<" << plain(outcome.call.grid) << ", " << plain(outcome.call.block) << ">>>";
    out << "\n";
  }
  if (!outcome.error.empty()) {
    out << "cannot tell: " << outcome.error << "\n";
    return;
  }
  const VerifyReport &report = outcome.report;
  printNotes(out, report);
  constexpr size_t mostShown = 4;
  unsigned number = 0;
  if (outcome.exitCode() == 1)
    for (const Finding &finding : report.findings) {
      out << ++number << ". " << finding.what << "\n";
      if (!finding.inputs.empty())
        out << "   on " << someOf(finding.inputs, mostShown) << "\n";
    }
  out << verdictOf(outcome) << ": ";
  if (report.verdict == Verdict::CompileError)
    out << "the changed version does not compile: " << report.why << "\n";
  else if (outcome.exitCode() == 2)
    out << "nothing differs in " << report.runs << " runs with " << report.launches << " inputs, but " << report.why
        << "\n";
  else if (number)
    out << number << (number == 1 ? " fault" : " faults") << " in " << report.runs << " runs\n";
  else
    out << report.runs << " runs with " << report.launches << " inputs\n";
}

nlohmann::json jsonOf(const VerifyOutcome &outcome) {
  static constexpr const char *verdicts[] = {"same", "different", "cannot-tell"};
  const VerifyReport &report = outcome.report;
  nlohmann::json faults = nlohmann::json::array();
  if (outcome.exitCode() == 1)
    for (const Finding &f : report.findings)
      faults.push_back({{"what", f.what}, {"kind", verdictName(f.verdict)}, {"inputs", f.inputs}});
  nlohmann::json result = {{"verdict", verdicts[outcome.exitCode()]},
                           {"faults", faults},
                           {"notes", report.notes},
                           {"runs", report.runs},
                           {"inputs", report.launches},
                           {"why", outcome.error.empty() ? report.why : outcome.error}};
  if (!outcome.function.empty()) {
    result["function"] = outcome.function;
    result["extents"] = outcome.call.extents;
    if (!outcome.call.grid.empty())
      result["launch"] = {{"grid", outcome.call.grid}, {"block", outcome.call.block}, {"shared", outcome.call.shared}};
  }
  return result;
}

llvm::Expected<int> verify(const char *argv0, const Options &options) {
  llvm::Expected<Toolchain> toolchain = Toolchain::find(argv0);
  if (!toolchain)
    return toolchain.takeError();
  llvm::Expected<OriginalBuilds> originals = OriginalBuilds::create();
  if (!originals)
    return originals.takeError();
  llvm::Expected<std::vector<VerifyOutcome>> outcomes = verifyFiles(*toolchain, *originals, options.request);
  if (!outcomes)
    return outcomes.takeError();
  nlohmann::json json = {{"original", options.request.original}, {"changed", options.request.changed}};
  for (const VerifyOutcome &outcome : *outcomes) {
    print(outcome);
    json["results"].push_back(jsonOf(outcome));
  }
  if (!options.jsonFile.empty())
    if (llvm::Error error = writeFileAtomically(options.jsonFile, json.dump(2) + "\n"))
      return std::move(error);
  return exitCodeOf(*outcomes);
}

} // namespace

int optiml::runVerifyCommand(int argc, char **argv) {
  auto fail = [](llvm::Error error) {
    llvm::errs() << "optiml-verify: error: " << llvm::toString(std::move(error)) << "\n";
    return 2; // not 1, which says that the results differ
  };
  llvm::Expected<Options> options = parse(llvm::ArrayRef(argv + 1, argv + argc));
  if (!options)
    return fail(options.takeError());
  if (options->showHelp) {
    llvm::outs() << help;
    return 0;
  }
  llvm::Expected<int> code = verify(argv[0], *options);
  return code ? *code : fail(code.takeError());
}
