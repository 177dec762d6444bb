//===- Ptxas.cpp - registers, spills and shared memory from nvcc ----------===//
#include "optiml/Evaluate/Predict/Ptxas.h"
#include "optiml/Support/Words.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Path.h"

using namespace optiml;
using llvm::StringRef;

/// The number before `unit` in a line such as "Used 32 registers, 2048 bytes smem".
static bool numberBefore(StringRef line, StringRef unit, unsigned &into) {
  size_t at = line.find(unit);
  if (at == StringRef::npos)
    return false;
  StringRef before = line.take_front(at).rtrim();
  size_t start = before.find_last_not_of("0123456789");
  return !before.substr(start == StringRef::npos ? 0 : start + 1).getAsInteger(10, into);
}

PtxasReport optiml::parsePtxasOutput(StringRef text) {
  PtxasReport report;
  std::string compiled, described; // the entry being compiled; the function whose properties follow
  while (!text.empty()) {
    StringRef line;
    std::tie(line, text) = text.split('\n');
    if (size_t at = line.find("Compiling entry function '"); at != StringRef::npos) {
      compiled = line.substr(at).split('\'').second.split('\'').first.str();
      described.clear();
      report.try_emplace(compiled);
    } else if (size_t props = line.find("Function properties for "); props != StringRef::npos) {
      described = line.substr(props + strlen("Function properties for ")).trim().str();
    } else if (line.contains("bytes spill stores")) {
      // Device functions that are not inlined have properties too, and count for whoever calls them: unknown, so all.
      auto it = report.find(described.empty() ? compiled : described);
      if (it == report.end())
        it = report.find(compiled);
      if (it == report.end())
        continue;
      unsigned stores = 0, loads = 0;
      numberBefore(line, "bytes spill stores", stores);
      numberBefore(line, "bytes spill loads", loads);
      it->second.spillStores += stores;
      it->second.spillLoads += loads;
    } else if (line.contains("Used ") && line.contains(" registers")) {
      auto it = report.find(compiled);
      if (it == report.end())
        continue;
      numberBefore(line, "registers", it->second.registers);
      numberBefore(line, "bytes smem", it->second.staticShared);
    }
  }
  return report;
}

std::vector<std::string> optiml::cubinFlags(const std::vector<std::string> &nvccArgs) {
  // Without dashes. Those of the first kind stand alone or carry "=value"; those of the second take a value.
  static const std::set<StringRef> alone =
      words("G device-debug lineinfo generate-line-info use_fast_math expt-relaxed-constexpr expt-extended-lambda "
            "extended-lambda restrict extra-device-vectorization w disable-warnings allow-unsupported-compiler "
            "no-exceptions dlto");
  static const std::set<StringRef> valued =
      words("D define-macro U undefine-macro I include-path isystem system-include include pre-include std "
            "maxrregcount ftz prec-div prec-sqrt fmad Xptxas ptxas-options ccbin compiler-bindir default-stream "
            "Xcudafe diag-suppress ftemplate-depth");
  std::vector<std::string> result;
  for (size_t i = 0; i < nvccArgs.size(); ++i) {
    StringRef arg = nvccArgs[i];
    if (!arg.starts_with("-"))
      continue;
    StringRef name = arg.ltrim('-').split('=').first;
    if (alone.count(name) || (valued.count(name) && arg.contains('='))) {
      result.push_back(arg.str());
    } else if (valued.count(name)) {
      result.push_back(arg.str());
      if (++i < nvccArgs.size())
        result.push_back(nvccArgs[i]);
    } else if (arg.size() > 2 && StringRef("DUI").contains(arg[1])) {
      result.push_back(arg.str()); // -DNAME, -Ipath
    } else if (arg == "-o" || arg == "-Xcompiler" || arg == "-x" || arg == "-MF" || arg == "-MT" || arg == "-MQ") {
      ++i; // a value that might look like a flag
    }
  }
  return result;
}

/// The first few lines that say "error"; all of it would bury a user.
static std::string firstErrors(StringRef text) {
  llvm::SmallVector<StringRef, 32> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::string result;
  unsigned count = 0;
  for (StringRef line : lines)
    if (line.contains("error") && count++ < 5)
      result += (result.empty() ? "" : "\n") + line.str();
  return result.empty() ? text.take_back(500).trim().str() : result;
}

llvm::Expected<CubinResult> optiml::compileCubin(const CubinRequest &request) {
  std::vector<std::string> command{request.nvcc, "-arch=" + request.architecture};
  if (request.onlyPtx)
    command.push_back("-ptx");
  else
    command.insert(command.end(), {"-cubin", "-Xptxas", "-v"});
  command.insert(command.end(), request.flags.begin(), request.flags.end());
  if (!request.includeDirectory.empty())
    command.push_back("-I" + request.includeDirectory);
  command.insert(command.end(), {"-x", "cu", "-o"});
  command.push_back(request.cubin);
  command.push_back(request.source);
  return cubinOf(request, command);
}

llvm::Expected<CubinResult> optiml::cubinOf(const CubinRequest &request, const std::vector<std::string> &command) {
  ProcessOptions options;
  options.limits = request.limits;
  options.cancel = request.cancel;
  options.givesWay = request.givesWay;
  // Flags meant for whole builds must not change what is compiled here.
  // nvcc leaves its scratch files behind when it is killed: they go where the cubin's folder goes.
  options.env = {{"NVCC_APPEND_FLAGS", ""},
                 {"NVCC_PREPEND_FLAGS", ""},
                 {"TMPDIR", llvm::sys::path::parent_path(request.cubin).str()}};
  auto process = runProcess(command, options);
  if (!process)
    return process.takeError();
  CubinResult result;
  result.ok = process->ok();
  result.timedOut = process->timedOut;
  result.processorSeconds = process->cpuSeconds;
  if (result.ok)
    result.report = parsePtxasOutput(process->err + process->out);
  else
    result.diagnostics = process->exitCode > 0 && !process->timedOut && !process->overMemory && !process->cancelled
                             ? firstErrors(process->err + process->out)
                             : llvm::sys::path::filename(command[0]).str() + " " + process->describe();
  return result;
}
