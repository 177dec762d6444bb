//===- BuildCommands.cpp - how a project's sources are compiled -----------===//
#include "BuildCommands.h"
#include "optiml/Driver/CompileLog.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "clang/Tooling/JSONCompilationDatabase.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace optiml;

llvm::Expected<std::vector<clang::tooling::CompileCommand>> optiml::commandsOf(const std::string &folder) {
  const std::string whole = folder + "/compile_commands.json";
  std::vector<std::string> files;
  std::error_code listing;
  if (llvm::sys::fs::exists(whole))
    files.push_back(whole);
  else
    for (llvm::sys::fs::directory_iterator at(folder, listing), end; at != end && !listing; at.increment(listing))
      if (llvm::StringRef(at->path()).ends_with(compileLogEnd))
        files.push_back(at->path());
  if (files.empty())
    return makeError("{0}: there is no such file; CMake writes it with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON. For other "
                     "builds, let {1}=FOLDER name a folder while optiml-clang stands for nvcc, and give that",
                     whole, envCompileLog);
  llvm::sort(files);
  std::vector<clang::tooling::CompileCommand> commands;
  for (const std::string &file : files) {
    std::string error;
    auto database = clang::tooling::JSONCompilationDatabase::loadFromFile(
        file, error, clang::tooling::JSONCommandLineSyntax::AutoDetect);
    if (!database)
      return makeError("{0}: {1}", file, llvm::StringRef(error).trim());
    llvm::append_range(commands, database->getAllCompileCommands());
  }
  return commands;
}

/// The folders that quoted includes are looked for in, after the file's own.
static std::vector<std::string> includeFolders(const CompileOptions &compile) {
  std::vector<std::string> folders;
  for (size_t i = 0; i < compile.frontendFlags.size(); ++i) {
    llvm::StringRef flag = compile.frontendFlags[i];
    if (!flag.consume_front("-I") && !flag.consume_front("-iquote"))
      continue;
    if (flag.empty() && i + 1 < compile.frontendFlags.size())
      flag = compile.frontendFlags[i + 1];
    folders.push_back(flag.str());
  }
  return folders;
}

/// `given`: folders of the command line. `seen`: headers.
static bool mentions(const std::string &path, const std::string &text, const std::vector<std::string> &given,
                     const std::set<std::string> &names, std::set<std::string> &seen) {
  if (llvm::any_of(names, [&](const std::string &name) { return text.find(name) != std::string::npos; }))
    return true;
  std::vector<std::string> folders = {llvm::sys::path::parent_path(path).str()};
  llvm::append_range(folders, given);
  for (llvm::StringRef rest = text; !rest.empty();) {
    auto [line, after] = rest.split('\n');
    rest = after;
    line = line.ltrim();
    if (!line.consume_front("#") || !(line = line.ltrim()).consume_front("include"))
      continue;
    const std::string name = line.split('"').second.split('"').first.str();
    for (const std::string &folder : folders) {
      const std::string file = folder + "/" + name;
      if (name.empty() || !llvm::sys::fs::is_regular_file(file) || !seen.insert(file).second)
        continue;
      auto header = readFile(file);
      if (!header)
        llvm::consumeError(header.takeError());
      else if (mentions(file, *header, given, names, seen))
        return true;
      break;
    }
  }
  return false;
}

bool optiml::mentions(const std::string &path, const std::string &text, const CompileOptions &compile,
                      const std::set<std::string> &names) {
  std::set<std::string> seen;
  return ::mentions(path, text, includeFolders(compile), names, seen);
}
