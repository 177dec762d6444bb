//===- Launcher.cpp - optiml-clang's choice: nvcc or the search -----------===//
//
// Uses POSIX only. Nothing of what it does may cost more than a few system calls: builds call it for every file.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/Launcher.h"

#include <algorithm>
#include <cstdio>
#include <sys/stat.h>
#include <unistd.h>

using namespace optiml;

namespace {

bool isExecutable(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

bool isSameFile(const std::string &a, const std::string &b) {
  struct stat sa, sb;
  return stat(a.c_str(), &sa) == 0 && stat(b.c_str(), &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

std::string fileName(const std::string &path) { return path.substr(path.rfind('/') + 1); }

std::string folder(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// The first executable `name` on PATH that is not this program.
std::string searchPath(const std::string &name, const LauncherContext &context) {
  std::string path = context.env("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = path.find(':', begin);
    if (end == std::string::npos)
      end = path.size();
    std::string entry = path.substr(begin, end - begin);
    std::string candidate = (entry.empty() ? "." : entry) + "/" + name;
    if (isExecutable(candidate) && !isSameFile(candidate, context.self))
      return candidate;
    begin = end + 1;
  }
  return "";
}

/// A name with a slash is a file, any other is looked up on PATH.
std::string resolve(const std::string &name, const LauncherContext &context) {
  if (name.find('/') == std::string::npos)
    return searchPath(name, context);
  return isExecutable(name) && !isSameFile(name, context.self) ? name : "";
}

/// "nvcc", "nvcc-13.0" and the like, but not "nvcc.cu".
bool isCompilerName(const std::string &argument) {
  std::string name = fileName(argument);
  if (!name.starts_with("nvcc"))
    return false;
  return name.size() == 4 || name == "nvcc.exe" || name.find_first_not_of("-0123456789.", 4) == std::string::npos;
}

/// Whether the file names a source of the command line; one that cannot be read may, so that somebody says so. No more
/// is looked at here.
bool mayApply(const std::string &recipes, const std::vector<std::string> &arguments) {
  std::string text;
  if (FILE *file = fopen(recipes.c_str(), "r")) {
    char part[1 << 16];
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
      text.append(part, n);
    fclose(file);
  } else {
    return true;
  }
  for (const std::string &argument : arguments)
    if (std::string name = fileName(argument); name.size() > 3 && text.find(name + "\"") != std::string::npos)
      return true;
  return false;
}

/// Whether the argument after this one is its value, and for another program.
bool passesOn(const std::string &argument) {
  return argument.starts_with("-X") || argument == "--compiler-options" || argument == "--linker-options" ||
         argument == "--archive-options" || argument == "--ptxas-options" || argument == "--nvlink-options";
}

/// Without the flag that ccache adds for compilers that it takes for Clang, as it does by this program's name.
std::vector<std::string> withoutColorFlag(const std::vector<std::string> &arguments) {
  std::vector<std::string> result;
  const bool forwards = std::any_of(arguments.begin(), arguments.end(), [](const std::string &a) {
    return a.find("forward-unknown") != std::string::npos;
  });
  for (size_t i = 0; i < arguments.size(); ++i)
    if (forwards || arguments[i] != "-fcolor-diagnostics" || (i > 0 && passesOn(arguments[i - 1])))
      result.push_back(arguments[i]);
  return result;
}

} // namespace

bool optiml::hasFlag(const std::vector<std::string> &arguments, std::initializer_list<const char *> names) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (std::find(names.begin(), names.end(), arguments[i]) != names.end() && !(i > 0 && passesOn(arguments[i - 1])))
      return true;
  return false;
}

bool optiml::onlyPreprocesses(const std::vector<std::string> &arguments) {
  return hasFlag(arguments, {"-E", "--preprocess"});
}

std::string optiml::findNvcc(const LauncherContext &context, std::string &error) {
  if (std::optional<std::string> named = context.env("OPTIML_NVCC"); named && !named->empty()) {
    std::string path = resolve(*named, context);
    if (path.empty())
      error = "OPTIML_NVCC='" + *named + "' is no executable file; let it name nvcc, or unset it";
    return path;
  }
  if (std::optional<std::string> cuda = context.env("CUDA_PATH"); cuda && !cuda->empty()) {
    std::string path = *cuda + "/bin/nvcc";
    if (isExecutable(path) && !isSameFile(path, context.self))
      return path;
  }
  if (std::string path = searchPath("nvcc", context); !path.empty())
    return path;
  if (isExecutable(context.usualNvcc) && !isSameFile(context.usualNvcc, context.self))
    return context.usualNvcc;
  error = "nvcc was not found in $CUDA_PATH/bin, on PATH, or as " + context.usualNvcc +
          "; install the CUDA Toolkit (https://developer.nvidia.com/cuda-downloads) or set OPTIML_NVCC=/path/to/nvcc";
  return "";
}

bool optiml::decideLaunch(const std::vector<std::string> &args, const LauncherContext &context,
                          LaunchDecision &decision, std::string &error) {
  std::vector<std::string> own = withoutColorFlag(args), nvccArgs;
  std::string nvcc;
  std::vector<std::string> before; // the command that shall start nvcc, such as ccache
  const auto named = std::find_if(args.begin(), args.end(), isCompilerName);
  if (named != args.end() && !args[0].starts_with("-")) {
    before.assign(args.begin(), named);
    if (!before.empty())
      before[0] = resolve(before[0], context);
    if (before.empty() || !before[0].empty())
      nvcc = resolve(*named, context);
    if (nvcc.empty())
      before.clear();
    else
      own.erase(own.begin(), own.begin() + (named - args.begin()) + 1);
  }

  OwnFlags flags;
  if (!parseOwnFlags(own, context.env, flags, nvccArgs, error))
    return false;
  decision.nvccArguments = nvccArgs;
  if (flags.help) {
    decision.output = ownFlagsHelp();
    return true;
  }
  const std::string search = folder(context.self) + "/optiml-search";
  /// Goes on there with the same arguments, where it is installed.
  auto becomeSearch = [&] {
    if (!isExecutable(search))
      return false;
    decision.program = search;
    decision.argv = {search};
    decision.argv.insert(decision.argv.end(), own.begin(), own.end());
    return true;
  };
  if (flags.isMemoryCommand()) { // needs no nvcc
    if (becomeSearch())
      return true;
    error = search + " is missing; reinstall OptiML";
    return false;
  }
  const bool launcherMode = !nvcc.empty();
  if (nvcc.empty())
    nvcc = findNvcc(context, error);
  if (nvcc.empty())
    return false;

  // Preprocessed text tells which recipes apply, for those who cache by it.
  const bool applies =
      !flags.search && !flags.recipes.empty() &&
      (onlyPreprocesses(nvccArgs) ? access(flags.recipes.c_str(), R_OK) == 0 : mayApply(flags.recipes, nvccArgs));
  if ((flags.search || applies) && becomeSearch()) {
    if (launcherMode)
      decision.env["OPTIML_NVCC"] = nvcc;
    return true;
  }
  if (flags.search) {
    error = search + " is missing, so nothing can be searched; reinstall OptiML";
    if (flags.strict)
      return false;
    decision.warning = error + "; compiling as nvcc would";
    error.clear();
  } else if (applies) {
    decision.warning = search + " is missing, so no recipe is applied; reinstall OptiML";
  }
  decision.argv = before;
  decision.argv.push_back(nvcc);
  decision.program = decision.argv[0];
  decision.argv.insert(decision.argv.end(), nvccArgs.begin(), nvccArgs.end());
  return true;
}
