//===- main.cpp - optiml-gen: a CUDA program from plain words -------------===//
//
//   optiml-gen "row-wise softmax of a float matrix, 4096x1024" -o softmax.cu
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/Models.h"
#include "optiml/Generate/Author.h"
#include "optiml/Generate/Gate.h"
#include "optiml/Generate/ProgramText.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace optiml;
using namespace optiml::gen;

namespace {

const char *help = R"(usage: optiml-gen [options] "what it is to compute"

Writes a complete CUDA program for a request in plain words: kernels, host code, inputs, a reference in double precision and a self-check.
Before it is shown it is compiled, run on the CPU emulator under all checkers at small sizes, and must pass its own check.
A library of documented operations answers; with a language model (--optiml-llm=...) that one writes programs as well, and the
fastest that passes is shown.

  -o FILE              where the program goes (default: standard output)
  --optimize[=BUDGET]  then search for faster kernels (optiml-clang -O-search); FILE becomes the optimized source
  --explain            print what was understood, write nothing
  --explain=FILE       the same for every line of FILE
  --learn=FILE         print in which words FILE asks for operations (lib/Generate/operations/examples.txt)
  --list               the operations and stages of the library; --list=markdown as tables
  --no-nvcc            do not compile with nvcc as well
  --ungated            show the program without compiling or running it
  --repairs=N          how often a model may mend what was refused, in each of its strategies (default 3)
  --time=SECONDS       how long one run of a model's program on the emulator may take (default 30)
  --help               this text
  --optiml-*           language models and what the search of --optimize is given: as optiml-clang --optiml-help shows

Exit code: 0 written; 1 an error; 2 not understood or not offered (the nearest operations are named).
)";

struct Invocation {
  std::string request, requests, lists, output, budget;
  OwnFlags own;
  std::vector<std::string> searchFlags; ///< own flags that --optimize passes on
  unsigned repairs = 3;
  double seconds = 30;
  bool optimize = false, explain = false, list = false, markdown = false, nvcc = true, gated = true, help = false;
};

llvm::Expected<Invocation> parse(llvm::ArrayRef<char *> given) {
  Invocation result;
  std::vector<std::string> argv;
  std::string error;
  result.own.search = true; // so that the environment's settings count
  if (!parseOwnFlags({given.begin(), given.end()}, processEnvironment(), result.own, argv, error))
    return makeError(error);
  if (result.own.isMemoryCommand())
    return makeError("--optiml-memory=import, export and stats are optiml-clang's");
  for (llvm::StringRef flag : given) // a model's key is gone from the environment by then
    if (flag.starts_with("--optiml-") && !flag.starts_with("--optiml-llm"))
      result.searchFlags.push_back(flag.str());
  for (size_t i = 0; i < argv.size(); ++i) {
    llvm::StringRef arg = argv[i];
    if (arg == "--help" || arg == "-h")
      result.help = true;
    else if (arg == "-o") {
      if (++i == argv.size())
        return makeError("-o needs a file");
      result.output = argv[i];
    } else if (arg == "--optimize" || arg.starts_with("--optimize=")) {
      result.optimize = true;
      result.budget = arg.split('=').second.str();
    } else if (arg == "--explain")
      result.explain = true;
    else if (arg.starts_with("--learn="))
      result.lists = arg.substr(strlen("--learn="));
    else if (arg.starts_with("--explain="))
      result.requests = arg.split('=').second.str();
    else if (arg == "--list" || arg == "--list=markdown") {
      result.list = true;
      result.markdown = arg != "--list";
    } else if (arg == "--no-nvcc")
      result.nvcc = false;
    else if (arg == "--ungated")
      result.gated = false;
    else if (arg.consume_front("--repairs=")) {
      if (arg.getAsInteger(10, result.repairs) || result.repairs > 100)
        return makeError("--repairs={0}: want a number from 0 to 100", arg);
    } else if (arg.consume_front("--time=")) {
      if (arg.getAsDouble(result.seconds) || !(result.seconds > 0) || !(result.seconds <= 3600))
        return makeError("--time={0}: want a number of seconds, at most an hour", arg);
    } else if (arg.starts_with("-") && arg.size() > 1 && !llvm::isDigit(arg[1]))
      return makeError("unknown option {0}; --help shows them", arg);
    else
      result.request += (result.request.empty() ? "" : " ") + arg.str();
  }
  if (result.optimize && result.output.empty())
    return makeError("--optimize needs -o FILE");
  if (!result.gated && !result.own.llm.models.empty())
    return makeError("--ungated is for the library's programs: what a model writes is not shown before it passed");
  return result;
}

/// Of the phrases that ask for an operation the one that has most in common with its name and title.
llvm::StringRef plainest(const Operation &op) {
  auto wordsOf = [](llvm::StringRef text) {
    std::string words = " " + text.lower();
    std::replace_if(words.begin(), words.end(), [](char c) { return !llvm::isAlnum(c); }, ' ');
    return words;
  };
  std::string name = wordsOf(op.name), title = wordsOf(op.title);
  auto shared = [&](const std::string &phrase) {
    llvm::SmallVector<llvm::StringRef, 8> words;
    llvm::StringRef(phrase).split(words, ' ', -1, /*KeepEmpty=*/false);
    long sum = 0;
    for (llvm::StringRef word : words) {
      std::string start = (" " + word).str();
      sum += (name.find(start) != std::string::npos ? 3 : 0) + (title.find(start) != std::string::npos ? 1 : 0) - 1;
    }
    return sum;
  };
  return *std::max_element(op.says.begin(), op.says.end(),
                           [&](const std::string &a, const std::string &b) { return shared(a) < shared(b); });
}

/// The operations by their groups, in the order in which the groups come first.
void list(bool markdown) {
  std::vector<std::pair<std::string, std::vector<const Operation *>>> groups;
  for (const Operation &op : Library::builtin().operations()) {
    if (op.isFamily || op.isSnippet || op.says.empty())
      continue;
    auto known = llvm::find_if(groups, [&](const auto &group) { return group.first == op.group; });
    if (known == groups.end())
      known = groups.insert(groups.end(), {op.group, {}});
    known->second.push_back(&op);
  }
  for (const auto &[group, operations] : groups) {
    llvm::outs() << (group == groups[0].first ? "" : "\n") << (markdown ? "### " : "") << group << "\n\n"
                 << (markdown ? "| operation | does | types | say for example |\n|---|---|---|---|\n" : "");
    for (const Operation *op : operations)
      if (markdown)
        llvm::outs() << "| " << op->name << " | " << op->title << " | " << llvm::join(op->types, ", ") << " | "
                     << plainest(*op) << " |\n";
      else
        llvm::outs() << "  " << llvm::left_justify(op->name, 24) << op->title << "\n";
  }
}

std::string explain(const Understood &understood) {
  return understood.explain() + "gate: " + llvm::join(smallArguments(understood), " ") + "\n";
}

/// For every line of a file its request, what was understood or why it is refused, and an empty line.
llvm::Error explainAll(const std::string &file) {
  llvm::Expected<std::string> text = readFile(file);
  if (!text)
    return text.takeError();
  llvm::SmallVector<llvm::StringRef, 0> lines;
  llvm::StringRef(*text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines) {
    llvm::Expected<Understood> understood = understand(line, Library::builtin(), Vocabulary::builtin());
    llvm::outs() << "request: " << line << "\n";
    if (understood)
      llvm::outs() << explain(*understood) << "\n";
    else
      llvm::outs() << "refused: " << llvm::toString(understood.takeError()) << "\n\n";
  }
  return llvm::Error::success();
}

/// The search runs as the user would run it; its emitted source takes the program's place.
llvm::Error optimize(const Invocation &invocation, const char *argv0) {
  llvm::Expected<TempDir> scratch = TempDir::create("optiml-gen");
  if (!scratch)
    return scratch.takeError();
  std::string beside = (llvm::sys::path::parent_path(argv0) + "/optiml-clang").str();
  std::string clang = llvm::StringRef(argv0).contains('/') ? beside : findOnPath("optiml-clang");
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

llvm::Error gate(const Invocation &invocation, const Understood &understood, const std::string &text,
                 const char *argv0) {
  llvm::Expected<Toolchain> toolchain = Toolchain::find(argv0);
  if (!toolchain)
    return toolchain.takeError();
  GateOptions options;
  options.runs = {smallArguments(understood)};
  options.nvcc = invocation.nvcc;
  llvm::Expected<GateReport> report = gateProgram(text, options, *toolchain);
  if (!report)
    return report.takeError();
  if (!report->passed())
    return makeError("the program for this request did not pass and is not shown; please report it\n{0}", report->why);
  return llvm::Error::success();
}

void tellNotes(const Understood &understood) {
  if (!understood.ignored.empty())
    llvm::errs() << "optiml-gen: note: these words had no influence: " << llvm::join(understood.ignored, ", ") << "\n";
  for (const std::string &note : understood.notes)
    llvm::errs() << "optiml-gen: note: " << note << "\n";
}

llvm::Error deliver(const Invocation &invocation, const std::string &text, const char *argv0) {
  if (invocation.output.empty()) {
    llvm::outs() << text;
    return llvm::Error::success();
  }
  if (llvm::Error error = writeFileAtomically(invocation.output, text))
    return error;
  return invocation.optimize ? optimize(invocation, argv0) : llvm::Error::success();
}

llvm::Error generate(const Invocation &invocation, const Understood &understood, const char *argv0) {
  llvm::Expected<std::string> text = writeProgram(understood, invocation.request, Library::builtin());
  if (!text)
    return text.takeError();
  if (invocation.gated)
    if (llvm::Error error = gate(invocation, understood, *text, argv0))
      return error;
  tellNotes(understood);
  return deliver(invocation, *text, argv0);
}

/// With models: all candidates, and the best that passed.
llvm::Error generateWithModels(const Invocation &invocation, ModelSession &session, const Understood *understood,
                               const char *argv0) {
  llvm::Expected<Toolchain> toolchain = Toolchain::find(argv0);
  if (!toolchain)
    return toolchain.takeError();
  AuthorOptions options;
  options.request = invocation.request;
  options.understood = understood;
  options.repairs = invocation.repairs;
  options.seconds = invocation.seconds;
  options.nvcc = invocation.nvcc;
  options.done = [](const Candidate &candidate) { llvm::errs() << "optiml-gen: " << candidate.describe() << "\n"; };
  llvm::Expected<std::vector<Candidate>> candidates = writeCandidates(session.models(), options, *toolchain);
  llvm::errs() << "optiml-gen: models: " << session.summary() << "\n";
  if (!candidates)
    return candidates.takeError();
  const Candidate &best = candidates->front();
  if (!best.passed)
    return makeError("no program for this request passed, and none is shown");
  if (understood)
    tellNotes(*understood);
  else
    llvm::errs()
        << "optiml-gen: note: no reference of the library knows this request: that the program computes what was asked "
           "for rests on its own check, which did notice altered kernels and results\n";
  llvm::errs() << "optiml-gen: shown: " << best.strategy << "\n";
  return deliver(invocation, headed(best, invocation.request), argv0);
}

} // namespace

int main(int argc, char **argv) {
  auto fail = [](llvm::Error error, int code) {
    llvm::errs() << "optiml-gen: error: " << llvm::toString(std::move(error)) << "\n";
    return code;
  };
  llvm::Expected<Invocation> invocation = parse(llvm::ArrayRef(argv + 1, argv + argc));
  if (!invocation)
    return fail(invocation.takeError(), 1);
  if (invocation->help || argc == 1) {
    (argc == 1 ? llvm::errs() : llvm::outs()) << help;
    return argc == 1;
  }
  if (invocation->list) {
    list(invocation->markdown);
    return 0;
  }
  if (!invocation->lists.empty()) {
    llvm::Expected<std::string> text = readFile(invocation->lists);
    if (!text)
      return fail(text.takeError(), 1);
    llvm::outs() << learnWords(*text, Vocabulary::builtin());
    return 0;
  }
  if (!invocation->requests.empty()) {
    llvm::Error error = explainAll(invocation->requests);
    return error ? fail(std::move(error), 1) : 0;
  }
  llvm::Expected<std::unique_ptr<ModelSession>> session = openModels(invocation->own, "optiml-gen", "the request");
  if (!session)
    return fail(session.takeError(), 1);
  llvm::Expected<Understood> understood = understand(invocation->request, Library::builtin(), Vocabulary::builtin());
  bool asks = !(*session)->models().empty() && !invocation->explain;
  if (!understood && !asks)
    return fail(understood.takeError(), 2);
  if (invocation->explain) {
    llvm::outs() << explain(*understood);
    return 0;
  }
  if (!understood) {
    llvm::errs() << "optiml-gen: note: the library does not answer: " << llvm::toString(understood.takeError()) << "\n";
    llvm::Error error = generateWithModels(*invocation, **session, nullptr, argv[0]);
    return error ? fail(std::move(error), 1) : 0;
  }
  if (llvm::Error error = asks ? generateWithModels(*invocation, **session, &*understood, argv[0])
                               : generate(*invocation, *understood, argv[0]))
    return fail(std::move(error), 1);
  return 0;
}
