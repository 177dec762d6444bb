//===- PrecompiledIncludes.cpp - CUDA's headers, parsed once a machine ----===//
//
// Every CUDA file begins with the same 0.5 s: __clang_cuda_runtime_wrapper.h and what it includes. Preamble.cpp saves
// that for the second parse of one file in one process; this saves it for every process. A precompiled header is a pair
// of files named after the hash of the flags: the header, and a list of the files that went into it with their sizes
// and times. When one of these has changed, the header is made again. LLVM's cache pruning keeps the folder small.
//
//===----------------------------------------------------------------------===//
#include "PrecompiledIncludes.h"
#include "optiml/Support/TempDir.h"
#include "clang/Basic/DiagnosticIDs.h"
#include "clang/Basic/Version.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendActions.h"
#include "clang/Frontend/Utils.h"
#include "clang/Lex/PreprocessorOptions.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/SHA256.h"
#include <map>
#include <mutex>

using namespace optiml;

namespace {

/// A line that changes when the file does; empty when there is none (OptiML's own files, which exist only in memory).
std::string stateOf(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status))
    return "";
  return llvm::formatv("{0}\t{1}\t{2}\n", path, status.getSize(),
                       status.getLastModificationTime().time_since_epoch().count());
}

/// Whether every file listed in `list` is as it was.
bool upToDate(const std::string &list) {
  llvm::Expected<std::string> text = readFile(list);
  if (!text) {
    llvm::consumeError(text.takeError());
    return false;
  }
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(*text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  return !lines.empty() &&
         llvm::all_of(lines, [](llvm::StringRef line) { return stateOf(line.split('\t').first) == line.str() + "\n"; });
}

/// All files that are read, those of the system too.
class ReadFiles : public clang::DependencyCollector {
  bool needSystemDependencies() override { return true; }
};

/// The lines that include files with <> at the beginning of `text`; comments and empty lines may stand between them.
std::string leadingIncludes(llvm::StringRef text) {
  static const llvm::Regex include("^[ \t]*#[ \t]*include[ \t]*<[^<>]+>[ \t]*(//.*[^\\\\])?$");
  static const llvm::Regex comment("^[ \t]*(//(.*[^\\\\])?)?$");
  std::string lines;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    line.consume_back("\r");
    if (line.ltrim().starts_with("/*")) {
      text = text.ltrim();
      text = text.substr(std::min(text.find("*/", 2), text.size() - 2) + 2); // to where it ends
      if (!text.ltrim(" \t\r").starts_with("\n"))
        break;
      continue;
    }
    if (include.match(line)) {
      std::string plain = line.split("//").first.rtrim().str() + "\n";
      if (!llvm::StringRef(lines).contains(plain)) // a second time it adds nothing
        lines += plain;
    } else if (!comment.match(line))
      break;
    text = rest;
  }
  return lines;
}

/// Makes `header` from these lines, and `list`; true when both are there.
bool build(const clang::CompilerInvocation &invocation, const std::string &includes, const std::string &header,
           const std::string &list, llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> vfs) {
  llvm::SmallString<128> scratch;
  if (llvm::sys::fs::createUniqueFile(header + ".%%%%%%", scratch))
    return false;
  llvm::FileRemover remove(scratch);

  auto copy = std::make_shared<clang::CompilerInvocation>(invocation);
  llvm::erase(copy->getPreprocessorOpts().Includes, libdeviceFile);
  clang::FrontendOptions &frontend = copy->getFrontendOpts();
  clang::InputKind kind = frontend.Inputs.front().getKind();
  const char *source = "/optiml/includes.cu"; // exists in no file system
  frontend.Inputs.assign(1, clang::FrontendInputFile(source, kind));
  frontend.OutputFile = scratch.str();
  frontend.ProgramAction = clang::frontend::GeneratePCH;
  copy->getPreprocessorOpts().clearRemappedFiles(); // `invocation` owns their texts
  copy->getPreprocessorOpts().addRemappedFile(source, llvm::MemoryBuffer::getMemBufferCopy(includes + "\n").release());
  clang::CompilerInstance instance(copy);
  clang::IgnoringDiagConsumer ignore;
  instance.setVirtualFileSystem(vfs);
  instance.createDiagnostics(&ignore, /*ShouldOwnClient=*/false);
  instance.createFileManager();
  auto files = std::make_shared<ReadFiles>();
  instance.addDependencyCollector(files);
  clang::GeneratePCHAction action;
  if (!instance.ExecuteAction(action) || instance.getDiagnostics().hasErrorOccurred())
    return false;
  std::string lines;
  for (const std::string &file : files->getDependencies())
    lines += stateOf(file);
  if (llvm::sys::fs::rename(scratch, header))
    return false;
  remove.releaseFile();
  if (llvm::Error e = writeFileAtomically(list, lines)) {
    llvm::consumeError(std::move(e));
    return false;
  }
  return true;
}

/// The header with this name in the cache, made where it is missing or no longer true; empty where that fails. Looks at
/// the files behind it once a process: a search parses hundreds of variants.
std::string settle(llvm::SHA256 hash, const std::string &includes, const clang::CompilerInvocation &invocation,
                   llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> vfs) {
  static std::mutex mutex;
  static std::map<std::string, std::string> settled; // empty: it could not be made
  std::lock_guard<std::mutex> lock(mutex);
  hash.update(includes);
  std::string name = llvm::toHex(hash.final()).substr(0, 32);
  if (auto known = settled.find(name);
      known != settled.end() && (known->second.empty() || llvm::sys::fs::exists(known->second)))
    return known->second;
  std::string folder = userCacheFolder();
  if (folder.empty() || llvm::sys::fs::create_directories(folder += "/headers"))
    return "";
  // LLVM's pruning looks only at files whose names begin so.
  std::string header = folder + "/llvmcache-" + name + ".pch", list = header + ".files";
  // What one program includes pays from the second time on; until then there is only the list, and it is empty.
  if (!includes.empty() && !llvm::sys::fs::exists(list)) {
    llvm::consumeError(writeFileAtomically(list, ""));
    return "";
  }
  std::string &result = settled[name] = "";
  if (!llvm::sys::fs::exists(header) || !upToDate(list)) {
    if (!build(invocation, includes, header, list, vfs))
      return "";
    llvm::CachePruningPolicy policy;
    policy.Expiration = std::chrono::hours(14 * 24);
    policy.MaxSizeBytes = 1024ull << 20;
    llvm::pruneCache(folder, policy);
  }
  return result = header;
}

} // namespace

void optiml::precompileIncludes(clang::CompilerInvocation &invocation, llvm::ArrayRef<std::string> flags,
                                llvm::StringRef text, llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> vfs) {
  clang::PreprocessorOptions &options = invocation.getPreprocessorOpts();
  auto ours = [](llvm::StringRef file) {
    return file.starts_with("/optiml/") || file == "__clang_cuda_runtime_wrapper.h";
  };
  if (options.Includes.empty() || !llvm::all_of(options.Includes, ours) || !options.ImplicitPCHInclude.empty() ||
      invocation.getFrontendOpts().Inputs.empty())
    return;
  llvm::SHA256 hash;
  auto add = [&](llvm::StringRef text) {
    hash.update(text);
    hash.update(llvm::StringRef("\0", 1));
  };
  add(clang::getClangFullRepositoryVersion());
  add(missingDeclarations);
  for (const std::string &flag : flags)
    add(flag);
  bool relative = false, users = false;
  for (const auto &entry : invocation.getHeaderSearchOpts().UserEntries) { // from flags and from the environment
    add(entry.Path);
    relative |= llvm::sys::path::is_relative(entry.Path);
    users |= entry.Group == clang::frontend::Angled; // -I: a header with <> may hold the user's own code
  }
  llvm::SmallString<128> directory; // what relative folders mean
  if (relative && !llvm::sys::fs::current_path(directory))
    add(directory);
  std::string includes = users ? "" : leadingIncludes(text), header;
  if (!includes.empty())
    header = settle(hash, includes, invocation, vfs);
  if (header.empty() && (header = settle(hash, "", invocation, vfs)).empty())
    return;
  llvm::erase_if(options.Includes, [](const std::string &file) { return file != libdeviceFile; });
  options.ImplicitPCHInclude = header;
}
