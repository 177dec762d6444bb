//===- VerifyFiles.cpp - comparing two files -------------------------------===//
#include "optiml/Driver/VerifyCommand.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <regex>

using namespace optiml;

int VerifyOutcome::exitCode() const {
  if (!error.empty() || report.verdict == Verdict::Untested || report.verdict == Verdict::CompileError)
    return 2;
  return report.correct() ? 0 : 1;
}

int optiml::exitCodeOf(const std::vector<VerifyOutcome> &outcomes) {
  int worst = 0;
  for (const VerifyOutcome &outcome : outcomes) {
    if (outcome.exitCode() == 1)
      return 1;
    worst = std::max(worst, outcome.exitCode());
  }
  return worst;
}

void optiml::printNotes(llvm::raw_ostream &out, const VerifyReport &report, llvm::StringRef label) {
  for (const emu::ReplayFault &f : report.originalFaults)
    out << label << "note: the original itself: " << f.kind << ": " << f.message << "\n";
  for (const std::string &note : report.notes)
    out << label << "note: " << note << "\n";
}

llvm::Expected<double> optiml::positiveNumber(llvm::StringRef flag, llvm::StringRef value) {
  double number = 0;
  if (value.getAsDouble(number) || !(number > 0))
    return makeError("{0}={1}: expected a positive number", flag, value);
  return number;
}

/// Functions of the file that a harness can call, or an Error that says why there are none.
static llvm::Expected<std::vector<Callable>> callablesOf(const VerifyRequest &request, const FileFunctions &functions) {
  std::vector<Callable> all = functions.callables();
  if (!request.function.empty()) {
    llvm::erase_if(all, [&](const Callable &c) { return c.name != request.function; });
    if (all.empty())
      return makeError("{0}: there is no function '{1}' that launches kernels, and no such kernel that nothing here "
                       "launches",
                       request.original, request.function);
  }
  if (all.empty())
    return makeError("{0}: it has no main(), and no function that launches a kernel", request.original);
  return all;
}

/// The harness makes the buffers of the parameters first, in their order: its words for them become their names.
static void nameBuffers(std::string &text, const Callable &callable) {
  const std::vector<const CallableParameter *> buffers = callable.of(CallableParameter::Buffer);
  static const std::regex allocation("the [0-9]+-byte allocation from cudaMalloc[A-Za-z]* #([0-9]+)");
  std::string result;
  auto rest = text.cbegin();
  for (std::sregex_iterator it(text.begin(), text.end(), allocation), end; it != end; ++it) {
    const size_t number = std::stoul((*it)[1]);
    result.append(rest, (*it)[0].first);
    // One set of buffers for the first call, and one for the others.
    result += number <= 2 * buffers.size() ? "'" + buffers[(number - 1) % buffers.size()]->name + "'" : it->str();
    rest = (*it)[0].second;
  }
  text = result.append(rest, text.cend());
}

static VerifyOutcome verifyFunction(const Toolchain &toolchain, OriginalBuilds &originals, const VerifyRequest &request,
                                    const Callable &callable, const std::string &text, const std::string &changed,
                                    const FileFunctions *changedFunctions) {
  VerifyOutcome outcome;
  outcome.function = callable.name;
  if (std::string obstacle = callable.obstacle(); !obstacle.empty()) {
    outcome.error = "no host program can be written for it: " + obstacle;
    return outcome;
  }
  auto run = [&]() -> llvm::Error {
    if (llvm::Error e = inferCall(callable, request.call, request.original, text, request.compile, toolchain)
                            .moveInto(outcome.call))
      return e;
    CompareOptions options = request.compare;
    options.appended = harnessText(callable, outcome.call);
    if (changedFunctions) {
      options.reached = changedFunctions->reachableFrom(callable.name);
      options.reached.insert("main");
    }
    if (options.arguments.empty())
      for (int64_t size : outcome.call.sizes)
        options.arguments.push_back(std::to_string(size));
    return comparePrograms(originals, toolchain, request.original, changed, request.compile, options)
        .moveInto(outcome.report);
  };
  if (llvm::Error error = run())
    outcome.error = llvm::toString(std::move(error));
  nameBuffers(outcome.error, callable);
  nameBuffers(outcome.report.why, callable);
  for (std::string &note : outcome.report.notes)
    nameBuffers(note, callable);
  for (Finding &finding : outcome.report.findings)
    nameBuffers(finding.what, callable);
  return outcome;
}

llvm::Expected<std::vector<VerifyOutcome>> optiml::verifyFiles(const Toolchain &toolchain, OriginalBuilds &originals,
                                                               const VerifyRequest &request) {
  if (!request.compile.tooHard.empty())
    return makeError("{0}", request.compile.tooHard);
  llvm::Expected<std::string> original = readFile(request.original), changed = readFile(request.changed);
  if (!original || !changed)
    return llvm::joinErrors(original.takeError(), changed.takeError());
  // A program of several files has its main() elsewhere.
  const bool whole =
      request.compile.inputs.size() + request.compile.hostInputs.size() + request.compile.linkInputs.size() > 1;
  std::unique_ptr<Program> program;
  if (!whole || !request.function.empty())
    if (llvm::Error error =
            Program::parse(request.original, *original, request.compile, toolchain, View::Host).moveInto(program))
      return std::move(error);
  std::optional<FileFunctions> functions;
  if (program)
    functions.emplace(*program);
  const bool hasMain = functions && functions->haveMain();
  std::vector<VerifyOutcome> outcomes;
  if (!functions || (hasMain && request.function.empty())) {
    VerifyOutcome &outcome = outcomes.emplace_back();
    if (llvm::Error error =
            comparePrograms(originals, toolchain, request.original, *changed, request.compile, request.compare)
                .moveInto(outcome.report))
      outcome.error = llvm::toString(std::move(error));
    return outcomes;
  }
  if (hasMain)
    return makeError("{0}: it has a main(), which calls what it calls; --function is for files without one",
                     request.original);
  llvm::Expected<std::vector<Callable>> callables = callablesOf(request, *functions);
  if (!callables)
    return callables.takeError();
  std::unique_ptr<Program> changedProgram; // null where it has errors, which its build tells
  llvm::consumeError(
      Program::parse(request.original, *changed, request.compile, toolchain, View::Host).moveInto(changedProgram));
  std::optional<FileFunctions> changedFunctions;
  if (changedProgram)
    changedFunctions.emplace(*changedProgram);
  for (const Callable &callable : *callables)
    outcomes.push_back(verifyFunction(toolchain, originals, request, callable, *original, *changed,
                                      changedFunctions ? &*changedFunctions : nullptr));
  return outcomes;
}
