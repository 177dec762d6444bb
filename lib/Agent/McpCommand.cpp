//===- McpCommand.cpp - the program optiml-mcp ----------------------------===//
#include "optiml/Agent/AgentTools.h"
#include "optiml/Driver/Workbench.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

using namespace optiml;
using namespace optiml::agent;

static constexpr const char *help = R"(usage: optiml mcp [options]

Serves OptiML's tools to a coding agent, by the Model Context Protocol on standard input and output: open a CUDA
program, look at kernels and legal transforms, try recipes and kernel texts, search, submit what is verified.

  --root=FOLDER       sources and include folders must lie below it (the current folder)
  --workspaces=FOLDER where workspaces are kept ($XDG_DATA_HOME/optiml/workspaces)
  --evaluations=N     how many variants a new workspace may evaluate (200)
  --backend=B         auto, gpu or cpu (auto)
  --answer-within=S   a call that takes longer answers with a handle after so many seconds (15)
  --help              this text
)";

namespace {
struct Options {
  AgentSettings settings;
  bool showHelp = false;
};
} // namespace

static std::string defaultWorkspaces() {
  const char *data = std::getenv("XDG_DATA_HOME"), *home = std::getenv("HOME");
  if (data && *data)
    return std::string(data) + "/optiml/workspaces";
  return home && *home ? std::string(home) + "/.local/share/optiml/workspaces" : "";
}

static llvm::Error readFlag(llvm::StringRef argument, Options &options) {
  AgentSettings &settings = options.settings;
  auto [flag, value] = argument.split('=');
  if (argument == "--help" || argument == "-h") {
    options.showHelp = true;
  } else if (flag == "--root") {
    settings.root = value.str();
  } else if (flag == "--workspaces") {
    settings.workspaces = value.str();
  } else if (flag == "--evaluations") {
    if (value.getAsInteger(10, settings.evaluations) || !settings.evaluations)
      return makeError("--evaluations={0}: expected a positive integer", value);
  } else if (flag == "--backend") {
    if (value != "auto" && value != "gpu" && value != "cpu")
      return makeError("--backend={0}: expected auto, gpu or cpu", value);
    settings.backend = value == "gpu" ? BackendChoice::Gpu : value == "cpu" ? BackendChoice::Cpu : BackendChoice::Auto;
  } else if (flag == "--answer-within") {
    if (value.getAsDouble(settings.callSeconds) || !(settings.callSeconds > 0 && settings.callSeconds <= 3600))
      return makeError("--answer-within={0}: expected a number of seconds, at most 3600", value);
  } else {
    return makeError("there is no option '{0}'; --help tells which there are", argument);
  }
  return llvm::Error::success();
}

static llvm::Expected<Options> parse(int argc, char **argv) {
  Options options;
  options.settings.root = ".";
  options.settings.workspaces = defaultWorkspaces();
  for (int i = 1; i < argc; ++i)
    if (llvm::Error e = readFlag(argv[i], options))
      return std::move(e);
  llvm::SmallString<256> real;
  if (llvm::sys::fs::real_path(options.settings.root, real) || !llvm::sys::fs::is_directory(real))
    return makeError("--root={0}: there is no such folder", options.settings.root);
  options.settings.root = real.str().str();
  if (options.settings.workspaces.empty())
    return makeError("HOME is not set; --workspaces=FOLDER tells where to keep workspaces");
  return options;
}

int optiml::agent::runMcpCommand(int argc, char **argv) {
  auto options = parse(argc, argv);
  if (!options) {
    llvm::errs() << "optiml-mcp: error: " << llvm::toString(options.takeError()) << "\n";
    return 2;
  }
  if (options->showHelp) {
    llvm::outs() << help;
    return 0;
  }
  auto toolchain = Toolchain::find(argv[0]);
  if (!toolchain) {
    llvm::errs() << "optiml-mcp: error: " << llvm::toString(toolchain.takeError()) << "\n";
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  // The client's pipe is ours alone: nothing that runs below us can write to it, nor a library by mistake.
  const int out = fcntl(1, F_DUPFD_CLOEXEC, 3);
  if (out < 0 || dup2(2, 1) < 0) {
    llvm::errs() << "optiml-mcp: error: standard output cannot be used\n";
    return 2;
  }
  AgentTools tools(std::move(options->settings), std::move(*toolchain));
  McpServer server({"optiml", Workbench::version(), AgentTools::instructions()}, tools.tools(), tools.resources());
  server.serve(0, out);
  return 0;
}
