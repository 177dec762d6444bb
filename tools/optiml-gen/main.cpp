//===- main.cpp - optiml-gen: a CUDA program from plain words -------------===//
//
//   optiml-gen "row-wise softmax of a float matrix, 4096x1024" -o softmax.cu
//
//===----------------------------------------------------------------------===//
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

  -o FILE              where the program goes (default: standard output)
  --optimize[=BUDGET]  then search for faster kernels (optiml-clang -O-search); FILE becomes the optimized source
  --explain            print what was understood, write nothing
  --list               the operations and stages of the library; --list=markdown as tables
  --no-nvcc            do not compile with nvcc as well
  --ungated            show the program without compiling or running it
  --help               this text

Exit code: 0 written; 1 an error; 2 not understood or not offered (the nearest operations are named).
)";

struct Invocation {
  std::string request, output, budget;
  bool optimize = false, explain = false, list = false, markdown = false, nvcc = true, gated = true, help = false;
};

llvm::Expected<Invocation> parse(llvm::ArrayRef<char *> argv) {
  Invocation result;
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
    else if (arg == "--list" || arg == "--list=markdown") {
      result.list = true;
      result.markdown = arg != "--list";
    } else if (arg == "--no-nvcc")
      result.nvcc = false;
    else if (arg == "--ungated")
      result.gated = false;
    else if (arg.starts_with("-") && arg.size() > 1 && !llvm::isDigit(arg[1]))
      return makeError("unknown option {0}; --help shows them", arg);
    else
      result.request += (result.request.empty() ? "" : " ") + arg.str();
  }
  if (result.optimize && result.output.empty())
    return makeError("--optimize needs -o FILE");
  return result;
}

void list(bool markdown) {
  std::string group;
  for (const Operation &op : Library::builtin().operations()) {
    if (op.isFamily || op.isSnippet || op.says.empty())
      continue;
    if (op.group != group)
      llvm::outs() << (group.empty() ? "" : "\n") << (markdown ? "### " : "") << op.group << "\n\n"
                   << (markdown ? "| operation | does | types | say for example |\n|---|---|---|---|\n" : "");
    group = op.group;
    if (markdown)
      llvm::outs() << "| " << op.name << " | " << op.title << " | " << llvm::join(op.types, ", ") << " | " << op.says[0] << " |\n";
    else
      llvm::outs() << "  " << llvm::left_justify(op.name, 24) << op.title << "\n";
  }
}

/// The search runs as the user would run it; its emitted source takes the program's place.
llvm::Error optimize(const Invocation &invocation, const char *argv0) {
  llvm::Expected<TempDir> scratch = TempDir::create("optiml-gen");
  if (!scratch)
    return scratch.takeError();
  std::string beside = (llvm::sys::path::parent_path(argv0) + "/optiml-clang").str();
  std::string clang = llvm::StringRef(argv0).contains('/') ? beside : findOnPath("optiml-clang");
  std::vector<std::string> argv = {clang, invocation.budget.empty() ? "-O-search" : "-O-search=" + invocation.budget,
                                   "-std=c++17", invocation.output, "-o", scratch->file("program"),
                                   "--optiml-emit=" + scratch->file("optimized.cu")};
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

llvm::Error gate(const Invocation &invocation, const Understood &understood, const std::string &text, const char *argv0) {
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

llvm::Error generate(const Invocation &invocation, const Understood &understood, const char *argv0) {
  llvm::Expected<std::string> text = writeProgram(understood, invocation.request, Library::builtin());
  if (!text)
    return text.takeError();
  if (invocation.gated)
    if (llvm::Error error = gate(invocation, understood, *text, argv0))
      return error;
  if (!understood.ignored.empty())
    llvm::errs() << "optiml-gen: note: these words had no influence: " << llvm::join(understood.ignored, ", ") << "\n";
  for (const std::string &note : understood.notes)
    llvm::errs() << "optiml-gen: note: " << note << "\n";
  if (invocation.output.empty()) {
    llvm::outs() << *text;
    return llvm::Error::success();
  }
  if (llvm::Error error = writeFileAtomically(invocation.output, *text))
    return error;
  return invocation.optimize ? optimize(invocation, argv0) : llvm::Error::success();
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
  llvm::Expected<Understood> understood = understand(invocation->request, Library::builtin(), Vocabulary::builtin());
  if (!understood)
    return fail(understood.takeError(), 2);
  if (invocation->explain) {
    llvm::outs() << understood->explain() << "gate: " << llvm::join(smallArguments(*understood), " ") << "\n";
    return 0;
  }
  if (llvm::Error error = generate(*invocation, *understood, argv[0]))
    return fail(std::move(error), 1);
  return 0;
}
