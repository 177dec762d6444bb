//===- GenerateCommand.cpp - what optiml-gen does -------------------------===//
//
// A request comes formally, from a model that fills it in, or from retrieval. It becomes a program of the library,
// beside which models may write their own. What passes the gate is shown.
//
//===----------------------------------------------------------------------===//
#include "GenerateInvocation.h"
#include "optiml/Driver/Models.h"
#include "optiml/Driver/Programs.h"
#include "optiml/Generate/Author.h"
#include "optiml/Generate/Gate.h"
#include "optiml/Generate/ProgramText.h"
#include "optiml/Generate/Retrieve.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <nlohmann/json.hpp>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

namespace {

constexpr int unclear = 2; ///< the exit code for what is not offered or not clear

class Generation {
public:
  Generation(const GenerateInvocation &invocation, const char *argv0) : invocation(invocation), argv0(argv0) {}
  int run();

private:
  int list() const;
  int showCandidates() const;
  int answerFormally(const Request &request);
  int answerWords();
  int answerByModel(ModelSession &session);
  llvm::Error writeFromLibrary(const ProgramSpec &spec);
  llvm::Error writeWithModels(ModelSession &session, const ProgramSpec *spec);
  llvm::Error passGate(const ProgramSpec &spec, const std::string &text) const;
  llvm::Error deliver(const std::string &text) const;
  llvm::Error optimize() const;
  AuthorOptions authorOptions() const;
  /// What the program's head says it was asked for.
  std::string asked(const Request &request) const {
    return invocation.words.empty() ? commandLine(request) : invocation.words;
  }

  const GenerateInvocation &invocation;
  const char *argv0;
  const Library &library = Library::builtin();
};

int fail(llvm::Error error, int code = 1) {
  llvm::errs() << "optiml-gen: error: " << llvm::toString(std::move(error)) << "\n";
  return code;
}

int finish(llvm::Error error) { return error ? fail(std::move(error)) : 0; }

} // namespace

/// The operations by their groups, in the order in which the groups come first.
int Generation::list() const {
  std::vector<std::pair<std::string, std::vector<const Operation *>>> groups;
  for (const Operation &op : library.operations()) {
    if (!op.isPublic())
      continue;
    auto known = llvm::find_if(groups, [&](const auto &group) { return group.first == op.group; });
    if (known == groups.end())
      known = groups.insert(groups.end(), {op.group, {}});
    known->second.push_back(&op);
  }
  for (const auto &[group, operations] : groups) {
    llvm::outs() << (group == groups[0].first ? "" : "\n") << (invocation.markdown ? "### " : "") << group << "\n\n"
                 << (invocation.markdown ? "| operation | computes | types |\n|---|---|---|\n" : "");
    for (const Operation *op : operations)
      if (invocation.markdown)
        llvm::outs() << "| " << op->name << " | " << op->title << " | " << llvm::join(op->types, ", ") << " |\n";
      else
        llvm::outs() << "  " << llvm::left_justify(op->name, 24) << op->title << "\n";
  }
  return 0;
}

int Generation::showCandidates() const {
  llvm::Expected<Retrieval> found = retrieve(invocation.words, library);
  if (!found)
    return fail(found.takeError(), unclear);
  llvm::outs() << toJson(*found).dump(2) << "\n";
  return 0;
}

/// The search runs as the user would run it. Its emitted source takes the program's place.
llvm::Error Generation::optimize() const {
  llvm::Expected<TempDir> scratch = TempDir::create("optiml-gen");
  if (!scratch)
    return scratch.takeError();
  std::string beside = (llvm::sys::path::parent_path(argv0) + "/optiml-clang").str();
  std::string clang = StringRef(argv0).contains('/') ? beside : findOnPath("optiml-clang");
  std::vector<std::string> argv = {clang,
                                   invocation.budget.empty() ? "-O-search" : "-O-search=" + invocation.budget,
                                   "-std=c++17",
                                   invocation.output,
                                   "-o",
                                   scratch->file("program"),
                                   "--optiml-emit=" + scratch->file("optimized.cu")};
  argv.insert(argv.end(), invocation.searchFlags.begin(), invocation.searchFlags.end());
  ProcessOptions options;
  options.inheritOutput = true;
  llvm::Expected<ProcessResult> result = runProcess(argv, options);
  if (!result)
    return result.takeError();
  if (!result->ok())
    return makeError("{0}: {1}", shellQuote(argv), result->describe());
  llvm::Expected<std::string> text = readFile(scratch->file("optimized.cu"));
  if (!text) { // nothing was better than the original
    llvm::consumeError(text.takeError());
    return llvm::Error::success();
  }
  return writeFileAtomically(invocation.output, *text);
}

llvm::Error Generation::deliver(const std::string &text) const {
  if (invocation.output.empty()) {
    llvm::outs() << text;
    return llvm::Error::success();
  }
  if (llvm::Error error = writeFileAtomically(invocation.output, text))
    return error;
  return invocation.optimize ? optimize() : llvm::Error::success();
}

llvm::Error Generation::passGate(const ProgramSpec &spec, const std::string &text) const {
  llvm::Expected<Toolchain> toolchain = Toolchain::find(argv0);
  if (!toolchain)
    return toolchain.takeError();
  GateOptions options;
  options.runs = {smallArguments(spec)};
  options.nvcc = invocation.nvcc;
  llvm::Expected<GateReport> report = gateProgram(text, options, *toolchain);
  if (!report)
    return report.takeError();
  if (!report->passed())
    return makeError("the program for this request did not pass and is not shown; please report it\n{0}", report->why);
  return llvm::Error::success();
}

llvm::Error Generation::writeFromLibrary(const ProgramSpec &spec) {
  llvm::Expected<std::string> text = writeProgram(spec, asked(spec.request), library);
  if (!text)
    return text.takeError();
  if (invocation.gated)
    if (llvm::Error error = passGate(spec, *text))
      return error;
  return deliver(*text);
}

AuthorOptions Generation::authorOptions() const {
  AuthorOptions options;
  options.request = asked(invocation.request);
  options.repairs = invocation.repairs;
  options.seconds = invocation.seconds;
  options.nvcc = invocation.nvcc;
  options.done = [](const Candidate &candidate) { llvm::errs() << "optiml-gen: " << candidate.describe() << "\n"; };
  return options;
}

/// All candidates, the library's among them where it has one, and the best that passed.
llvm::Error Generation::writeWithModels(ModelSession &session, const ProgramSpec *spec) {
  llvm::Expected<Toolchain> toolchain = Toolchain::find(argv0);
  if (!toolchain)
    return toolchain.takeError();
  AuthorOptions options = authorOptions();
  options.spec = spec;
  llvm::Expected<std::vector<Candidate>> candidates = writeCandidates(session.models(), options, *toolchain);
  llvm::errs() << "optiml-gen: models: " << session.summary() << "\n";
  if (!candidates)
    return candidates.takeError();
  const Candidate &best = candidates->front();
  if (!best.passed)
    return makeError("no program for this request passed, and none is shown");
  if (!spec)
    llvm::errs()
        << "optiml-gen: note: the library has no reference for this request. That the program computes what you asked "
           "for rests on its own check, which noticed altered kernels and results.\n";
  llvm::errs() << "optiml-gen: shown: " << best.strategy << "\n";
  return deliver(headed(best, options.request));
}

/// A formal request needs no model to be understood; where there is one, it writes beside the library.
int Generation::answerFormally(const Request &request) {
  llvm::Expected<ProgramSpec> spec = resolve(request, library);
  if (!spec)
    return fail(spec.takeError(), unclear);
  if (invocation.mode == GenerateInvocation::Mode::Explain) {
    llvm::outs() << toJson(request).dump(2) << "\n";
    return 0;
  }
  return finish(writeFromLibrary(*spec));
}

int Generation::answerByModel(ModelSession &session) {
  llvm::Expected<ModelRequest> answer = invocation.words.empty()
                                            ? ModelRequest{invocation.request, ""}
                                            : askForRequest(*session.models().front(), authorOptions(), library);
  if (!answer)
    return fail(answer.takeError());
  if (!answer->request) {
    llvm::errs() << "optiml-gen: note: the library does not answer: " << answer->none << "\n";
    return invocation.mode == GenerateInvocation::Mode::Explain ? unclear : finish(writeWithModels(session, nullptr));
  }
  if (invocation.mode == GenerateInvocation::Mode::Explain)
    return answerFormally(*answer->request);
  llvm::Expected<ProgramSpec> spec = resolve(*answer->request, library);
  if (!spec)
    return fail(spec.takeError(), unclear);
  llvm::errs() << "optiml-gen: understood: " << commandLine(*answer->request) << "\n";
  return finish(writeWithModels(session, &*spec));
}

/// Retrieval: written where it is clear, else the candidates are told.
int Generation::answerWords() {
  llvm::Expected<Retrieval> found = retrieve(invocation.words, library);
  if (!found)
    return fail(found.takeError(), unclear);
  const Match &first = found->matches.front();
  if (found->doubt.empty()) {
    llvm::errs() << "optiml-gen: understood: " << commandLine(first.request) << "\n";
    for (const Match &other : llvm::ArrayRef(found->matches).drop_front())
      llvm::errs() << "optiml-gen: or else:    " << commandLine(other.request) << "\n";
    return answerFormally(first.request);
  }
  llvm::errs() << "optiml-gen: nothing is written: " << found->doubt << "\n";
  for (const std::string &stage : found->stages)
    llvm::errs() << "optiml-gen: '" << stage << "' may be a stage of it: --before=" << stage << " or --after=" << stage
                 << "\n";
  llvm::errs() << "optiml-gen: the nearest operations:\n";
  for (const Match &match : found->matches) {
    Request request = match.request;
    for (const std::string &name : match.missing)
      request.options[name] = "VALUE";
    llvm::errs() << "  " << commandLine(request) << "\n      " << match.operation->title << "\n";
  }
  return unclear;
}

int Generation::run() {
  using Mode = GenerateInvocation::Mode;
  switch (invocation.mode) {
  case Mode::Help: llvm::outs() << generateHelp(invocation.helpFor, library); return 0;
  case Mode::List: return list();
  case Mode::Schema: llvm::outs() << requestSchema(library).dump(2) << "\n"; return 0;
  case Mode::Candidates: return showCandidates();
  case Mode::Explain:
  case Mode::Write: break;
  }
  llvm::Expected<std::unique_ptr<ModelSession>> session = openModels(invocation.own, "optiml-gen", "the request");
  if (!session)
    return fail(session.takeError());
  bool isWords = !invocation.words.empty();
  if (!(*session)->models().empty() && (isWords || invocation.mode == Mode::Write))
    return answerByModel(**session);
  return isWords ? answerWords() : answerFormally(invocation.request);
}

int optiml::runGenerateCommand(int argc, char **argv) {
  if (argc <= 1) {
    llvm::errs() << generateHelp("", Library::builtin());
    return 1;
  }
  llvm::Expected<GenerateInvocation> invocation =
      parseGenerateInvocation(llvm::ArrayRef(argv + 1, argv + argc), Library::builtin());
  if (!invocation)
    return fail(invocation.takeError());
  return Generation(*invocation, argv[0]).run();
}
