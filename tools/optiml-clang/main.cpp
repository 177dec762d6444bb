//===- optiml-clang - stands where nvcc stood -----------------------------===//
//
// Becomes nvcc, or (with -O-search) the search program, by exec: exit codes, signals and output are those programs'
// own.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/CompileLog.h"
#include "optiml/Driver/Launcher.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace optiml;

static int fail(const std::string &message) {
  std::fprintf(stderr, "optiml-clang: error: %s\n", message.c_str());
  return 1;
}

int main(int argc, char **argv) {
  LauncherContext context;
  context.env = processEnvironment();
  char self[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  context.self = length > 0 && length < PATH_MAX ? std::string(self, length) : std::string(argv[0]);

  LaunchDecision decision;
  std::string error;
  if (!decideLaunch(std::vector<std::string>(argv + 1, argv + argc), context, decision, error))
    return fail(error);
  if (!decision.output.empty()) {
    std::fputs(decision.output.c_str(), stdout);
    return std::fflush(stdout) == 0 ? 0 : fail(std::string("cannot write: ") + std::strerror(errno));
  }
  if (!decision.warning.empty())
    std::fprintf(stderr, "optiml-clang: warning: %s\n", decision.warning.c_str());
  if (const char *folder = getenv(envCompileLog);
      folder && *folder && !logCompile(folder, decision.nvccArguments, error))
    std::fprintf(stderr, "optiml-clang: warning: %s: the compilation is not logged: %s\n", envCompileLog,
                 error.c_str());
  for (const auto &[name, value] : decision.env)
    setenv(name.c_str(), value.c_str(), 1);

  std::vector<char *> arguments;
  for (std::string &argument : decision.argv)
    arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  execv(decision.program.c_str(), arguments.data());
  return fail("cannot run " + decision.program + ": " + std::strerror(errno));
}
