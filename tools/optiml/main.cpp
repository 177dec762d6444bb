//===- optiml - the front of OptiML's programs ----------------------------===//
//
//   optiml NAME [arguments]     runs optiml-NAME, beside this program or on the PATH
//   optiml help [NAME]          lists them, or shows the help of one
//
//===----------------------------------------------------------------------===//
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace {

struct Command {
  const char *name, *what;
};

constexpr Command commands[] = {
#define COMMAND(name, what) {name, what},
#include "Commands.def"
};

void printHelp(FILE *out) {
  std::fputs("usage: optiml NAME [arguments...]\n\nRuns optiml-NAME:\n\n", out);
  for (const Command &command : commands)
    std::fprintf(out, "  %-8s %s\n", command.name, command.what);
  std::fputs("\noptiml help NAME shows the options of one.\n", out);
}

/// Runs optiml-NAME in place of this program; returns only when there is none.
int become(const std::string &name, std::vector<char *> arguments) {
  const std::string program = "optiml-" + name;
  std::error_code error;
  const std::filesystem::path beside = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / program;
  arguments.push_back(nullptr);
  std::string first = beside.string();
  arguments[0] = first.data();
  if (!error && access(beside.c_str(), X_OK) == 0)
    execv(beside.c_str(), arguments.data());
  first = program;
  arguments[0] = first.data();
  execvp(program.c_str(), arguments.data());
  if (errno == ENOENT)
    std::fprintf(stderr, "optiml: error: there is no program %s; optiml help lists what there is\n", program.c_str());
  else
    std::fprintf(stderr, "optiml: error: cannot run %s: %s\n", program.c_str(), std::strerror(errno));
  return 2;
}

} // namespace

int main(int argc, char **argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name.empty()) {
    printHelp(stderr);
    return 2;
  }
  if (name != "help" && name != "--help" && name != "-h") {
    if (name[0] == '-' || name.find('/') != std::string::npos) {
      std::fprintf(stderr, "optiml: error: '%s' is no name of a program; optiml help lists what there is\n", argv[1]);
      return 2;
    }
    return become(name, {argv + 1, argv + argc});
  }
  if (argc == 2) {
    printHelp(stdout);
    return 0;
  }
  std::string help = "--help";
  return become(argv[2], {argv[2], help.data()});
}
