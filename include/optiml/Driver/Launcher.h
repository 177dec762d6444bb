//===- Launcher.h - optiml-clang's choice: nvcc or the search ---*- C++ -*-===//
//
// optiml-clang links no LLVM: it looks at its arguments, decides which program to become, and execs it. Everything here
// is plain functions of arguments and environment, so that it can be tested without running anything.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_DRIVER_LAUNCHER_H
#define OPTIML_DRIVER_LAUNCHER_H

#include "optiml/Driver/Flags.h"
#include <map>
#include <string>
#include <vector>

namespace optiml {

/// What the launcher is going to do.
struct LaunchDecision {
  std::string output;                     ///< print this and end with exitCode 0; empty: exec
  std::string warning;                    ///< one line for stderr before the exec; empty: none
  std::string program;                    ///< the file to exec
  std::vector<std::string> argv;          ///< argv[0] included
  std::map<std::string, std::string> env; ///< set before the exec
  std::vector<std::string> nvccArguments; ///< those of the compilation that it stands for
};

struct LauncherContext {
  EnvLookup env;
  std::string self; ///< this program's own file, resolved
  std::string usualNvcc = "/usr/local/cuda/bin/nvcc";
};

/// nvcc by $OPTIML_NVCC (a file or a name on PATH), $CUDA_PATH/bin/nvcc, PATH, and the usual folder; never this program
/// itself under another name. Empty on failure, with `error` saying what to do.
std::string findNvcc(const LauncherContext &context, std::string &error);

/// Whether one of these flags is among nvcc's arguments, and is not what another one passes on to another program.
bool hasFlag(const std::vector<std::string> &arguments, std::initializer_list<const char *> names);
/// Whether nvcc does no more than that with these arguments.
bool onlyPreprocesses(const std::vector<std::string> &arguments);

/// `args` are those after the program's name. A first argument that names nvcc (`optiml-clang /usr/bin/nvcc -c x.cu`,
/// as a compiler launcher is called) is the nvcc to use. On failure returns false and sets `error`.
bool decideLaunch(const std::vector<std::string> &args, const LauncherContext &context, LaunchDecision &decision,
                  std::string &error);

} // namespace optiml

#endif
