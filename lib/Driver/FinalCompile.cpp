//===- FinalCompile.cpp - handing the result to nvcc ----------------------===//
#include "FinalCompile.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Support/Words.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace optiml;

std::vector<std::string> optiml::withoutOutputs(const std::vector<std::string> &arguments) {
  static const std::set<llvm::StringRef> alone =
      words("-MD -MMD -MP --generate-dependencies-with-compile --generate-nonsystem-dependencies-with-compile");
  static const std::set<llvm::StringRef> withValue =
      words("-o --output-file -MF --dependency-output -MT -MQ --dependency-target-name -odir --output-directory");
  std::vector<std::string> result;
  for (size_t i = 0; i < arguments.size(); ++i) {
    llvm::StringRef a = arguments[i];
    if (withValue.count(a.split('=').first))
      i += !a.contains('=');
    else if (!alone.count(a))
      result.push_back(a.str());
  }
  return result;
}

static llvm::Expected<int> runNvcc(const Toolchain &toolchain, const std::vector<std::string> &arguments,
                                   std::string *output, const std::atomic<bool> *cancel) {
  std::vector<std::string> argv = {toolchain.nvcc};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  ProcessOptions options;
  options.cancel = cancel;
  options.inheritOutput = !output;
  auto result = runProcess(argv, options);
  if (!result)
    return result.takeError();
  if (result->cancelled)
    return makeError("nvcc was stopped for lack of time");
  if (output)
    *output = result->out + result->err;
  return result->signal ? 128 + result->signal : result->exitCode;
}

llvm::Expected<int> optiml::compileOriginal(const Toolchain &toolchain, const std::vector<std::string> &arguments,
                                            std::string *output, const std::atomic<bool> *cancel) {
  return runNvcc(toolchain, arguments, output, cancel);
}

int optiml::compileAsGiven(const Toolchain &toolchain, const std::vector<std::string> &arguments) {
  auto code = compileOriginal(toolchain, arguments);
  if (code)
    return *code;
  llvm::errs() << "optiml-clang: error: " << llvm::toString(code.takeError()) << "\n";
  return 1;
}

/// The dependency file named by -MF, or by -MD/-MMD beside the output; empty when none is written.
static std::string dependencyFile(const std::vector<std::string> &arguments, const std::string &path) {
  std::string named, output;
  bool wanted = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    llvm::StringRef a = arguments[i];
    if ((a == "-MF" || a == "--dependency-output") && i + 1 < arguments.size())
      named = arguments[i + 1];
    if (a == "-o" && i + 1 < arguments.size())
      output = arguments[i + 1];
    wanted |= a == "-MD" || a == "-MMD" || a == "--generate-dependencies-with-compile" ||
              a == "--generate-nonsystem-dependencies-with-compile";
  }
  if (!named.empty() || !wanted)
    return named;
  llvm::SmallString<128> beside(output.empty() ? llvm::sys::path::filename(path).str() : output);
  llvm::sys::path::replace_extension(beside, "d");
  return beside.str().str();
}

/// To the first rule of a makefile, whose lines end in backslashes but for the last one.
static void addDependency(std::string &rules, const std::string &file) {
  size_t end = 0;
  do
    end = rules.find('\n', end ? end + 1 : 0);
  while (end != std::string::npos && end > 0 && rules[end - 1] == '\\');
  std::string escaped;
  for (char c : file)
    escaped += c == ' ' ? std::string("\\ ") : std::string(1, c);
  rules.insert(end == std::string::npos ? rules.size() : end, " \\\n    " + escaped);
}

llvm::Expected<int> optiml::compileReplaced(const Toolchain &toolchain, const std::vector<std::string> &arguments,
                                            const std::string &path, const std::string &text, std::string *output,
                                            const std::atomic<bool> *cancel, const std::string &dependsOn) {
  auto dir = TempDir::create("optiml-emit");
  if (!dir)
    return dir.takeError();
  std::string replacement = dir->file(llvm::sys::path::filename(path).str());
  if (llvm::Error e = writeFileAtomically(replacement, text))
    return std::move(e);
  std::vector<std::string> args;
  for (const std::string &argument : arguments)
    args.push_back(argument == path ? replacement : argument);
  const std::string folder = llvm::sys::path::parent_path(absolutePath(path)).str();
  args.insert(args.end(), {"-Xcompiler", "-iquote", "-Xcompiler", folder});
  auto code = runNvcc(toolchain, args, output, cancel);
  if (!code || *code != 0)
    return code;
  if (std::string file = dependencyFile(arguments, path); !file.empty() && llvm::sys::fs::exists(file)) {
    auto content = readFile(file);
    if (!content)
      return content.takeError();
    for (size_t at = 0; (at = content->find(replacement, at)) != std::string::npos; at += path.size())
      content->replace(at, replacement.size(), path);
    if (!dependsOn.empty())
      addDependency(*content, dependsOn);
    if (llvm::Error e = writeFileAtomically(file, *content))
      return std::move(e);
  }
  return code;
}
