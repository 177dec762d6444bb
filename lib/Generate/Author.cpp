//===- Author.cpp - language models write programs ------------------------===//
#include "optiml/Generate/Author.h"
#include "AuthorPrompts.h"
#include "optiml/Frontend/ProgramTextCheck.h"
#include "optiml/Generate/Gate.h"
#include "optiml/Generate/ProgramText.h"
#include "optiml/Generate/Retrieve.h"
#include "optiml/Propose/Answers.h"
#include "optiml/Propose/Prompt.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <future>
#include <mutex>
#include <random>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

std::string Candidate::describe() const {
  std::string text = strategy;
  if (!model.empty())
    text += " (" + model +
            (repairs == 0 ? "" : llvm::formatv(", {0} repair{1}", repairs, repairs == 1 ? "" : "s").str()) + ")";
  if (!passed)
    return text + ": refused: " + oneLine(why, 400);
  text += ": passed";
  if (compared)
    text += ", also against the library's reference";
  return text + (seconds ? llvm::formatv(", predicted {0:f2} us", *seconds * 1e6).str() : ", no prediction");
}

/// One comment line, whatever is in it.
static std::string comment(StringRef text) {
  std::string line = "// " + oneLine(text, 400);
  std::replace(line.begin(), line.end(), '\\', ' '); // would continue the comment
  return line + "\n";
}

std::string optiml::gen::headed(const Candidate &candidate, StringRef request) {
  if (candidate.model.empty())
    return candidate.text; // the library writes its own
  return comment(("Asked for: " + request).str()) + comment("Written by the language model " + candidate.model + ".") +
         comment(candidate.compared
                     ? "Tested on an emulator at small sizes, also with inputs of OptiML's against its own reference."
                     : "Tested on an emulator at small sizes by its own self-check only.") +
         "\n" + candidate.text;
}

static std::vector<std::string> argumentsOf(const ProgramTask &task, int64_t ProgramTask::Argument::*which) {
  std::vector<std::string> result;
  for (const ProgramTask::Argument &argument : task.arguments)
    result.push_back(std::to_string(argument.*which));
  return result;
}

/// Reasons go to models: without what differs from run to run, and not endless.
static std::string reason(StringRef why) {
  constexpr size_t most = 3000;
  std::string text = withoutFolders(why);
  return text.size() > most ? text.substr(0, most) + "\n[cut]" : text;
}

namespace {

class Author {
public:
  Author(llvm::ArrayRef<LanguageModel *> models, const AuthorOptions &options, const Toolchain &toolchain)
      : models(models), options(options), toolchain(toolchain) {}
  llvm::Expected<std::vector<Candidate>> run();

private:
  llvm::Error agreeOnTask();
  llvm::Error askForTask();
  Candidate libraryCandidate();
  Candidate follow(const char *strategy, LanguageModel &model);
  llvm::Expected<ChatRequest> firstQuestion(StringRef strategy, LanguageModel &model);
  /// What became of a program text.
  struct Examined {
    std::string why; ///< it is refused
    bool compared = false;
    std::optional<double> seconds;
  };
  Examined examine(const std::string &text);
  Examined examineOnce(const std::string &text);
  std::string compareWithLibrary(const WrittenProgram &program);
  std::optional<double> predict(const std::string &text);
  void finished(const Candidate &candidate);
  std::vector<std::vector<std::string>> runs() const;
  std::string example() const;

  llvm::ArrayRef<LanguageModel *> models;
  const AuthorOptions &options;
  const Toolchain &toolchain;
  const Library &library = Library::builtin();
  ProgramTask task;
  Harness harness;
  std::string verdict; ///< the harness's; whoever wrote a program does not know it
  std::string libraryText;
  std::vector<std::string> middle;
  std::mutex mutex;
  std::map<std::string, std::shared_future<Examined>> examined; ///< by text: strategies may come to the same
};

} // namespace

static std::string unguessable() {
  std::random_device device;
  return llvm::formatv("SAME-{0:x-}{1:x-}", device(), device());
}

/// What a model says of the task, mended when it cannot be read.
llvm::Error Author::askForTask() {
  llvm::Expected<ProgramTask> read =
      askUntil<ProgramTask>(*models.front(), taskQuestion(options), options.repairs, readTask);
  if (!read)
    return makeError("no answer to what the request means can be read: {0}", llvm::toString(read.takeError()));
  task = std::move(*read);
  return llvm::Error::success();
}

llvm::Error Author::agreeOnTask() {
  if (!options.spec) {
    if (llvm::Error error = askForTask())
      return error;
  } else {
    verdict = unguessable();
    llvm::Expected<Harness> made = writeHarness(*options.spec, verdict, library);
    llvm::Expected<std::string> text = writeProgram(*options.spec, options.request, library);
    if (!made || !text)
      return llvm::joinErrors(made.takeError(), text.takeError());
    harness = std::move(*made);
    libraryText = std::move(*text);
    task.signature = harness.signature;
    task.definition = toJson(options.spec->request).dump() + "\n" + harness.reference;
    std::vector<std::string> small = smallArguments(*options.spec), other = otherArguments(*options.spec);
    for (size_t i = 0; i < small.size(); ++i) {
      const Size &size = options.spec->operation->sizes[i];
      task.arguments.push_back(
          {size.name, options.spec->sizes.at(size.name), std::stoll(small[i]), std::stoll(other[i])});
    }
    middle = middleArguments(*options.spec);
    return llvm::Error::success();
  }
  for (const ProgramTask::Argument &argument : task.arguments) {
    double mean = std::sqrt(double(argument.small) * double(argument.asked));
    middle.push_back(std::to_string(argument.asked <= argument.small ? argument.asked : int64_t(mean)));
  }
  return llvm::Error::success();
}

std::vector<std::vector<std::string>> Author::runs() const {
  std::vector<std::vector<std::string>> result = {argumentsOf(task, &ProgramTask::Argument::small)};
  std::vector<std::string> other = argumentsOf(task, &ProgramTask::Argument::other);
  if (other != result.front())
    result.push_back(std::move(other));
  return result;
}

/// The library's program for this request, or for the nearest operation that needs no further options.
std::string Author::example() const {
  if (options.spec) {
    llvm::Expected<std::string> text = writeExample(*options.spec, options.request, library);
    if (text)
      return *text;
    llvm::consumeError(text.takeError());
  }
  constexpr size_t tried = 4;
  llvm::Expected<Retrieval> nearest = retrieve(options.request, library, tried);
  if (!nearest) {
    llvm::consumeError(nearest.takeError());
    return "";
  }
  for (const Match &match : nearest->matches) {
    llvm::Expected<ProgramSpec> spec = resolve({match.operation->name, "", {}, {}, {}}, library);
    if (!spec) {
      llvm::consumeError(spec.takeError());
      continue;
    }
    llvm::Expected<std::string> text = writeProgram(*spec, match.operation->title, library);
    if (text)
      return *text;
    llvm::consumeError(text.takeError());
  }
  return "";
}

std::optional<double> Author::predict(const std::string &text) {
  for (const std::vector<std::string> &arguments : {middle, argumentsOf(task, &ProgramTask::Argument::other)}) {
    llvm::Expected<double> seconds = predictProgram(text, arguments, options.seconds, toolchain);
    if (seconds)
      return *seconds;
    llvm::consumeError(seconds.takeError()); // takes too long, or does not take these sizes; nvcc may be missing
  }
  return std::nullopt;
}

void Author::finished(const Candidate &candidate) {
  std::lock_guard lock(mutex);
  if (options.done)
    options.done(candidate);
}

Candidate Author::libraryCandidate() {
  Candidate candidate;
  candidate.strategy = "library";
  candidate.text = libraryText;
  GateOptions gate;
  gate.nvcc = options.nvcc;
  gate.runs = runs();
  llvm::Expected<GateReport> report = gateProgram(libraryText, gate, toolchain);
  if (!report) {
    candidate.why = llvm::toString(report.takeError());
    return candidate;
  }
  candidate.passed = report->passed();
  candidate.why = report->why;
  return candidate;
}

/// The program's `launch` on the library's inputs. An empty answer: the results are the reference's.
std::string Author::compareWithLibrary(const WrittenProgram &program) {
  // The harness comes first, so that no macro of the program reaches it.
  std::string text = harness.text + "\n#undef CUDA_CHECK\n";
  for (const std::string &header : program.includes)
    text += "#include <" + header + ">\n";
  text += "namespace written {\n#line 1 \"program.cu\"\n" + program.body + "\n}\n";
  GateOptions gate;
  gate.nvcc = false;
  gate.runs = runs();
  gate.seconds = options.seconds;
  gate.verdict = verdict;
  gate.isWritten = true;
  llvm::Expected<GateReport> report = gateProgram(text, gate, toolchain);
  if (!report)
    return llvm::toString(report.takeError());
  if (report->step == GateReport::Step::Emulator)
    return "it must define, in the global namespace, exactly " + task.signature +
           "; when somebody else calls it: " + report->why;
  return report->passed()
             ? ""
             : "its function launch, called with other inputs than its own, does not do what was asked for: " +
                   report->why;
}

Author::Examined Author::examine(const std::string &text) {
  llvm::Expected<WrittenProgram> program = checkWrittenProgram(text);
  if (!program)
    return {llvm::toString(program.takeError())};
  GateOptions gate;
  gate.nvcc = options.nvcc;
  gate.runs = runs();
  gate.seconds = options.seconds;
  gate.isWritten = true;
  gate.kernels = program->kernels;
  llvm::Expected<GateReport> report = gateProgram(text, gate, toolchain);
  if (!report)
    return {llvm::toString(report.takeError())};
  Examined result;
  result.why = report->why;
  if (report->passed() && options.spec) {
    result.compared = true;
    result.why = compareWithLibrary(*program);
  }
  if (result.why.empty())
    result.seconds = predict(text);
  return result;
}

Author::Examined Author::examineOnce(const std::string &text) {
  std::promise<Examined> promise;
  std::shared_future<Examined> known;
  {
    std::lock_guard lock(mutex);
    auto [at, isNew] = examined.try_emplace(text);
    if (isNew)
      at->second = promise.get_future().share();
    else
      known = at->second;
  }
  if (known.valid())
    return known.get();
  Examined result = examine(text);
  promise.set_value(result);
  return result;
}

llvm::Expected<ChatRequest> Author::firstQuestion(StringRef strategy, LanguageModel &model) {
  if (strategy == "straight")
    return programQuestion(task, options, "", "");
  if (strategy == "example")
    return programQuestion(task, options, example(), "");
  llvm::Expected<ChatReply> plan = model.ask(planQuestion(task, options));
  if (!plan)
    return plan.takeError();
  return programQuestion(task, options, "", StringRef(plan->text).take_front(8000));
}

Candidate Author::follow(const char *strategy, LanguageModel &model) {
  Candidate candidate;
  candidate.strategy = strategy;
  candidate.model = model.name();
  llvm::Expected<ChatRequest> request = firstQuestion(strategy, model);
  if (!request) {
    candidate.why = llvm::toString(request.takeError());
    return candidate;
  }
  for (;;) {
    llvm::Expected<ChatReply> reply = model.ask(*request);
    if (!reply) {
      std::string failed = "no answer: " + llvm::toString(reply.takeError());
      candidate.why = candidate.why.empty() ? failed : candidate.why + "; then " + failed;
      return candidate;
    }
    Examined outcome;
    if (llvm::Expected<std::string> text = readProgram(reply->text)) {
      candidate.text = *text;
      outcome = examineOnce(*text);
    } else {
      outcome.why = "the answer cannot be read: " + llvm::toString(text.takeError());
    }
    candidate.why = reason(outcome.why);
    candidate.passed = candidate.why.empty();
    candidate.compared = outcome.compared;
    candidate.seconds = outcome.seconds;
    if (candidate.passed || candidate.repairs == options.repairs)
      return candidate;
    ++candidate.repairs;
    request = repairQuestion(std::move(*request), reply->text, candidate.why);
  }
}

llvm::Expected<std::vector<Candidate>> Author::run() {
  if (llvm::Error error = agreeOnTask())
    return std::move(error);
  std::vector<Candidate> result;
  if (options.spec) {
    result.push_back(libraryCandidate());
    // Sizes may have to fit together in ways that only the operation knows.
    if (!result.back().passed)
      for (ProgramTask::Argument &argument : task.arguments)
        argument.other = argument.small;
    if (!result.back().passed)
      result.back() = libraryCandidate();
  }
  std::vector<std::future<Candidate>> writing;
  unsigned number = 0;
  for (const char *strategy : {"straight", "example", "plan"}) {
    LanguageModel &model = *models[number++ % models.size()];
    writing.push_back(std::async(std::launch::async, [this, strategy, &model] {
      Candidate candidate = follow(strategy, model);
      finished(candidate);
      return candidate;
    }));
  }
  if (!result.empty()) {
    if (result.front().passed)
      result.front().seconds = predict(libraryText);
    finished(result.front());
  }
  for (std::future<Candidate> &candidate : writing)
    result.push_back(candidate.get());
  // Insertion: candidates that are equal keep their order, the library's first.
  auto isBetter = [](const Candidate &a, const Candidate &b) {
    return a.passed != b.passed ? a.passed : a.seconds.value_or(1e30) < b.seconds.value_or(1e30);
  };
  for (size_t i = 1; i < result.size(); ++i)
    for (size_t at = i; at > 0 && isBetter(result[at], result[at - 1]); --at)
      std::swap(result[at], result[at - 1]);
  return result;
}

llvm::Expected<std::vector<Candidate>> optiml::gen::writeCandidates(llvm::ArrayRef<LanguageModel *> models,
                                                                    const AuthorOptions &options,
                                                                    const Toolchain &toolchain) {
  if (models.empty())
    return makeError("there is no language model to ask");
  return Author(models, options, toolchain).run();
}

llvm::Expected<ModelRequest> optiml::gen::askForRequest(LanguageModel &model, const AuthorOptions &options,
                                                        const Library &library) {
  auto read = [&](StringRef answer) -> llvm::Expected<ModelRequest> {
    llvm::Expected<ModelRequest> result = readModelRequest(answer);
    if (!result || !result->request)
      return result;
    if (llvm::Expected<ProgramSpec> spec = resolve(*result->request, library); !spec)
      return spec.takeError();
    return result;
  };
  return askUntil<ModelRequest>(model, requestQuestion(options, library), options.repairs, read);
}
