//===- FinalCompile.cpp - handing the result to nvcc ----------------------===//
#include "FinalCompile.h"
#include "optiml/Frontend/LineMarks.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Support/Words.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <set>

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
                                   NvccOutput *output, const std::atomic<bool> *cancel,
                                   const std::string &scratch = "") {
  std::vector<std::string> argv = {toolchain.nvcc};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  ProcessOptions options;
  options.cancel = cancel;
  if (!scratch.empty()) // what it leaves there when it is killed goes with the folder
    options.env["TMPDIR"] = scratch;
  options.inheritInput = options.inheritOutput = !output;
  auto result = runProcess(argv, options);
  if (!result)
    return result.takeError();
  if (result->cancelled)
    return makeError("nvcc was stopped for lack of time");
  if (output)
    *output = {std::move(result->out), std::move(result->err)};
  return result->signal ? 128 + result->signal : result->exitCode;
}

llvm::Expected<int> optiml::compileOriginal(const Toolchain &toolchain, const std::vector<std::string> &arguments,
                                            NvccOutput *output, const std::atomic<bool> *cancel) {
  return runNvcc(toolchain, arguments, output, cancel);
}

int optiml::compileAsGiven(const Toolchain &toolchain, const std::vector<std::string> &arguments) {
  auto code = compileOriginal(toolchain, arguments);
  if (code)
    return *code;
  llvm::errs() << "optiml-clang: error: " << llvm::toString(code.takeError()) << "\n";
  return 1;
}

/// The value of the last of these flags, given as "-flag value" or "-flag=value".
static std::string valueOfFlag(const std::vector<std::string> &arguments, llvm::StringRef names) {
  const std::set<llvm::StringRef> wanted = words(names);
  std::string value;
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto [name, given] = llvm::StringRef(arguments[i]).split('=');
    if (!wanted.count(name))
      continue;
    if (name.size() < arguments[i].size())
      value = given.str();
    else if (i + 1 < arguments.size())
      value = arguments[i + 1];
  }
  return value;
}

/// The dependency file named by -MF, or by -MD/-MMD beside the output; empty when none is written.
static std::string dependencyFile(const std::vector<std::string> &arguments, const std::string &path) {
  static const std::set<llvm::StringRef> asking =
      words("-MD -MMD --generate-dependencies-with-compile --generate-nonsystem-dependencies-with-compile");
  const std::string named = valueOfFlag(arguments, "-MF --dependency-output");
  if (!named.empty() || llvm::none_of(arguments, [&](const std::string &a) { return asking.count(a) != 0; }))
    return named;
  const std::string output = valueOfFlag(arguments, "-o --output-file");
  llvm::SmallString<128> beside(output);
  if (output.empty()) {
    beside = valueOfFlag(arguments, "-odir --output-directory");
    llvm::sys::path::append(beside, llvm::sys::path::filename(path));
  }
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

/// After a compilation of `replacement` in place of `path`. It depends on `others`, too.
static llvm::Error nameTheUsersFile(const std::string &dependencies, const std::string &replacement,
                                    const std::string &path, const std::vector<std::string> &others) {
  auto content = readFile(dependencies);
  if (!content)
    return content.takeError();
  for (size_t at = 0; (at = content->find(replacement, at)) != std::string::npos; at += path.size())
    content->replace(at, replacement.size(), path);
  if (llvm::sys::path::parent_path(path).empty()) // compileReplaced calls the folder "."
    for (size_t at = 0; (at = content->find(" ./", at)) != std::string::npos; ++at)
      content->erase(at + 1, 2);
  for (const std::string &file : others)
    if (!llvm::StringRef(*content).contains(" " + file + " \\\n"))
      addDependency(*content, file);
  return writeFileAtomically(dependencies, *content);
}

/// As a whole or not at all.
static llvm::Error copyTo(const std::string &output, const std::string &file) {
  auto content = readFile(file);
  if (!content)
    return content.takeError();
  if (llvm::Error e = writeFileAtomically(output, *content))
    return e;
  if (auto permissions = llvm::sys::fs::getPermissions(file))
    if (std::error_code e = llvm::sys::fs::setPermissions(output, *permissions))
      return makeError("{0}: {1}", output, e.message());
  return llvm::Error::success();
}

namespace {

/// Where nvcc writes in place of the user's output, which gets it as a whole or not at all.
class OutputElsewhere {
public:
  /// Changes `args`, nvcc's, unless they name no file that can be replaced.
  OutputElsewhere(const std::string &folder, std::vector<std::string> &args);
  /// The output is complete.
  llvm::Error put() const { return output.empty() ? llvm::Error::success() : copyTo(output, elsewhere); }

private:
  std::string output, elsewhere;
};

} // namespace

bool optiml::canBeReplaced(const std::string &path) {
  llvm::sys::fs::file_status status;
  llvm::sys::fs::status(path, status, /*follow=*/false);
  return status.type() == llvm::sys::fs::file_type::regular_file ||
         status.type() == llvm::sys::fs::file_type::file_not_found;
}

/// Whether the host compiler writes other files beside the output, or keeps its path in it; or whether flags that
/// cannot be seen here may ask for dependency files there.
static bool needsItsPlace(const std::vector<std::string> &arguments) {
  static constexpr llvm::StringRef flags[] = {"coverage",   "fprofile", "gsplit-dwarf", "fstack-usage",
                                              "save-temps", "fdump-",   "-MD",          "-MMD"};
  const bool namesDependencies = !valueOfFlag(arguments, "-MF --dependency-output").empty();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const llvm::StringRef a = arguments[i];
    const bool isForHost = (i > 0 && arguments[i - 1] == "-Xcompiler") || a.starts_with("-Xcompiler=") ||
                           a.starts_with("--compiler-options=") || (i > 0 && arguments[i - 1] == "--compiler-options");
    if (isForHost && llvm::any_of(flags, [&](llvm::StringRef flag) { return a.contains(flag); }))
      return true;
    if ((a.starts_with("--options-file") || a.starts_with("-optf")) && !namesDependencies)
      return true;
  }
  return getenv("NVCC_APPEND_FLAGS") || getenv("NVCC_PREPEND_FLAGS");
}

/// Whether the output can be written elsewhere and put into its place. Of a folder that is missing nvcc says so.
static bool canBePut(const std::string &output, const std::vector<std::string> &arguments) {
  const llvm::StringRef into = llvm::sys::path::parent_path(output);
  return (into.empty() || llvm::sys::fs::is_directory(into)) && canBeReplaced(output) && !needsItsPlace(arguments);
}

OutputElsewhere::OutputElsewhere(const std::string &folder, std::vector<std::string> &args) {
  output = valueOfFlag(args, "-o --output-file");
  if (output.empty() || !canBePut(output, args)) {
    output.clear();
    return;
  }
  elsewhere = folder + "/" + llvm::sys::path::filename(output).str();
  // Dependency files name the output, and are named by it, unless that is said.
  const std::string dependencies = dependencyFile(args, output);
  if (!dependencies.empty() && valueOfFlag(args, "-MF --dependency-output").empty())
    args.insert(args.end(), {"-MF", dependencies});
  if (!dependencies.empty() && valueOfFlag(args, "-MT -MQ --dependency-target-name").empty())
    args.insert(args.end(), {"-MT", output});
  for (size_t i = 0; i < args.size(); ++i) {
    const llvm::StringRef a = args[i];
    if (a == "-o" || a == "--output-file")
      args[++i] = elsewhere;
    else if (a.starts_with("-o=") || a.starts_with("--output-file="))
      args[i] = a.split('=').first.str() + "=" + elsewhere;
  }
}

/// An argument for the host compiler, which nvcc divides at commas and hands to a shell as it is.
static std::string forHostCompiler(const std::string &argument) {
  if (llvm::all_of(argument, [](char c) { return llvm::isAlnum(c) || llvm::StringRef("_/.+=-").contains(c); }))
    return argument;
  const char mark = llvm::StringRef(argument).contains('\'') ? '"' : '\'';
  return mark + argument + mark;
}

llvm::Expected<int> optiml::compileReplaced(const Toolchain &toolchain, const std::vector<std::string> &arguments,
                                            const std::vector<Replacement> &sources, NvccOutput *output,
                                            const std::atomic<bool> *cancel, const std::string &dependsOn) {
  auto dir = TempDir::create("optiml-emit");
  if (!dir)
    return dir.takeError();
  std::map<std::string, std::string> replacements; // by path
  for (const Replacement &source : sources) {
    std::string file = dir->file(llvm::sys::path::filename(source.path).str());
    if (llvm::Error e = writeFileAtomically(file, source.text))
      return std::move(e);
    replacements[source.path] = std::move(file);
  }
  std::vector<std::string> args;
  for (const std::string &argument : arguments) {
    auto found = replacements.find(argument);
    args.push_back(found == replacements.end() ? argument : found->second);
  }
  // As the user calls the folder: messages and dependency files name what lies there.
  const std::string folder = llvm::sys::path::parent_path(sources.front().path).str();
  args.insert(args.end(), {"-Xcompiler", "-iquote", "-Xcompiler", folder.empty() ? "." : forHostCompiler(folder)});
  if (std::error_code e = llvm::sys::fs::create_directory(dir->file("output")))
    return makeError("{0}: {1}", dir->file("output"), e.message());
  const OutputElsewhere elsewhere(dir->file("output"), args);
  auto code = runNvcc(toolchain, args, output, cancel, dir->path());
  if (!code || *code != 0)
    return code;
  if (llvm::Error e = elsewhere.put())
    return std::move(e);
  for (const auto &[path, text] : sources) {
    const std::string file = dependencyFile(arguments, path);
    if (file.empty() || !llvm::sys::fs::exists(file))
      continue;
    std::vector<std::string> others = filesBehind(text, path);
    llvm::erase_if(others, [&, &own = path](const std::string &other) { // a stored text may be of another folder
      return !llvm::sys::fs::exists(other) || llvm::sys::fs::equivalent(other, own);
    });
    if (!dependsOn.empty())
      others.push_back(dependsOn);
    if (llvm::Error e = nameTheUsersFile(file, replacements.at(path), path, others))
      return std::move(e);
  }
  return code;
}

std::string optiml::messagesOf(const std::string &executable) { return executable + ".messages"; }

/// Whether all that these arguments ask for is a program, in which no line of a source shows.
static bool askForProgram(const std::vector<std::string> &arguments) {
  static const std::set<llvm::StringRef> others = words(
      "-c --compile -dc --device-c -dw --device-w -dlink --device-link -link --link -lib --lib -shared --shared -ptx "
      "--ptx -cubin --cubin -fatbin --fatbin -optix-ir --optix-ir -ltoir --ltoir -cuda --cuda -E --preprocess -M "
      "--generate-dependencies -MM --generate-nonsystem-dependencies -run --run -keep --keep -keep-dir --keep-dir "
      "-save-temps --save-temps -dryrun --dryrun -n -v --verbose -time --time -clean --clean-targets "
      "-g --debug -G --device-debug -lineinfo --generate-line-info -src-in-ptx --source-in-ptx "
      "-optf --options-file");
  return llvm::none_of(arguments, [](llvm::StringRef a) { return others.count(a.split('=').first) != 0; });
}

llvm::Expected<bool> optiml::putProgram(const std::vector<std::string> &arguments, const std::string &executable) {
  std::string output = valueOfFlag(arguments, "-o --output-file");
  if (output.empty())
    output = "a.out";
  if (!askForProgram(arguments) || !canBePut(output, arguments) || !dependencyFile(arguments, output).empty() ||
      !valueOfFlag(arguments, "-odir --output-directory").empty() || !llvm::sys::fs::exists(executable))
    return false;
  if (llvm::Error e = copyTo(output, executable))
    return std::move(e);
  if (auto messages = readFile(messagesOf(executable)))
    llvm::errs() << *messages;
  else
    llvm::consumeError(messages.takeError()); // there were none
  return true;
}
