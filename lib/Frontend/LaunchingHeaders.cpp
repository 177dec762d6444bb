//===- LaunchingHeaders.cpp - headers that become part of the text --------===//
#include "optiml/Frontend/LineMarks.h"
#include "optiml/Frontend/Program.h"
#include "clang/AST/ASTContext.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace clang;
using llvm::StringRef;
namespace path = llvm::sys::path;

namespace {

/// Puts headers that launch kernels, and those that include these, into the text of the main file.
class Splicer {
public:
  Splicer(const optiml::Program &program, StringRef name)
      : sm(program.ast().getSourceManager()), mainPath(program.path()), mainName(name) {}

  /// Nothing where no header launches a kernel, or where an inclusion cannot be replaced.
  std::optional<std::string> run() {
    for (unsigned i = 0; i < sm.local_sloc_entry_size(); ++i) {
      const SrcMgr::SLocEntry &entry = sm.getLocalSLocEntry(i);
      if (!entry.isFile() || SrcMgr::isSystem(entry.getFile().getFileCharacteristic()))
        continue;
      FileID id = sm.getFileID(SourceLocation::getFromRawEncoding(entry.getOffset()));
      StringRef text = sm.getBufferData(id);
      if (id != sm.getMainFileID() && (text.contains("<<<") || text.contains("cudaLaunchKernel")))
        add(id);
    }
    if (spliced[sm.getMainFileID()].empty())
      return std::nullopt;
    std::string text = textOf(sm.getMainFileID(), mainName);
    return isPossible && text.size() <= most ? std::optional(text) : std::nullopt;
  }

private:
  /// A program with the headers of a large library in it is no text for people.
  static constexpr size_t most = 1 << 20;

  /// The file, and those between it and the main file. Where one of them is not included by the text of another, that
  /// leads nowhere.
  void add(FileID id) {
    while (id != sm.getMainFileID()) {
      SourceLocation from = sm.getIncludeLoc(id);
      OptionalFileEntryRef file = sm.getFileEntryRefForID(id);
      if (!file || from.isInvalid() || from.isMacroID() || SrcMgr::isSystem(sm.getFileCharacteristic(from)))
        return;
      FileID parent = sm.getFileID(from);
      if (parent != sm.getMainFileID() && !sm.getFileEntryRefForID(parent))
        return; // the command line includes it
      std::map<unsigned, FileID> &inclusions = spliced[parent];
      if (!inclusions.emplace(sm.getFileOffset(from), id).second)
        return;
      id = parent;
    }
  }

  /// As a compiler would call the file: beside the main file, as the main file is called.
  std::string nameOf(FileID id) const {
    llvm::SmallString<256> file(sm.getFileEntryRefForID(id)->getName());
    path::replace_path_prefix(file, path::parent_path(mainPath), path::parent_path(mainName));
    return StringRef(file).ltrim(path::is_absolute(mainName) ? "" : "/").str();
  }

  /// A line, as it has to be in the main file. `folder`: of the header that it comes from, or empty.
  std::string moved(StringRef line, StringRef folder) {
    const StringRef newline = line.ends_with("\n") ? "\n" : "";
    StringRef rest = line.ltrim();
    if (!rest.consume_front("#"))
      return line.str();
    rest = rest.ltrim();
    if (!folder.empty() && rest.starts_with("pragma") && rest.drop_front(6).trim() == "once")
      return newline.str();
    if (!rest.consume_front("include") || (rest = rest.ltrim()).empty())
      return line.str();
    const StringRef file = rest.drop_front().split(rest.starts_with("<") ? '>' : '"').first;
    if (llvm::any_of(once, [&](const std::string &own) { return StringRef(own).ends_with(("/" + file).str()); }))
      return newline.str(); // it is here already
    // It is looked for beside the header first.
    llvm::SmallString<256> beside(folder);
    path::append(beside, file);
    llvm::sys::fs::make_absolute(beside);
    if (folder.empty() || rest.starts_with("<") || path::is_absolute(file) || !llvm::sys::fs::exists(beside))
      return line.str();
    path::remove_dots(beside, /*remove_dot_dot=*/true);
    llvm::SmallString<256> relative(beside);
    if (path::replace_path_prefix(relative, path::parent_path(mainPath), ""))
      beside = StringRef(relative).ltrim('/');
    return "#include \"" + beside.str().str() + "\"" + rest.drop_front().split('"').second.str();
  }

  std::string textOf(FileID id, StringRef name) {
    const StringRef text = sm.getBufferData(id);
    const bool isMain = id == sm.getMainFileID();
    const std::string folder = isMain ? "" : path::parent_path(sm.getFileEntryRefForID(id)->getName()).str();
    const auto &inclusions = spliced[id];
    std::string result = isMain ? "" : optiml::lineMark(1, name);
    if (!isMain && text.contains("#pragma once")) {
      llvm::SmallString<256> own(sm.getFileEntryRefForID(id)->getName());
      llvm::sys::fs::make_absolute(own);
      path::remove_dots(own, /*remove_dot_dot=*/true);
      once.push_back(own.str().str());
    }
    size_t number = 1;
    for (size_t at = 0; at < text.size(); ++number) {
      const size_t next = std::min(text.find('\n', at), text.size() - 1) + 1;
      const StringRef line = text.slice(at, next);
      auto inclusion = inclusions.lower_bound(unsigned(at));
      if (inclusion == inclusions.end() || inclusion->first >= next) {
        result += moved(line, folder);
      } else {
        // More than the directive on the line, or a part of it: not worth the trouble.
        isPossible &= line.ltrim().starts_with("#") && !line.contains("/*") && !line.rtrim().ends_with("\\");
        result += textOf(inclusion->second, nameOf(inclusion->second));
        if (!StringRef(result).ends_with("\n"))
          result += "\n";
        result += optiml::lineMark(number + 1, name);
      }
      at = next;
    }
    return result;
  }

  SourceManager &sm;
  const StringRef mainPath, mainName;
  std::map<FileID, std::map<unsigned, FileID>> spliced; ///< what a file includes, by the place of the file's name
  std::vector<std::string> once;                        ///< paths of those that are included once and are in the text
  bool isPossible = true;
};

} // namespace

llvm::Expected<std::unique_ptr<optiml::Program>>
optiml::Program::parseWithLaunches(const std::string &path, StringRef name, const std::string &text,
                                   const CompileOptions &options, const Toolchain &toolchain, View view) {
  auto program = parse(path, text, options, toolchain, view);
  if (!program)
    return program;
  std::optional<std::string> whole = Splicer(**program, name).run();
  if (!whole)
    return program;
  auto again = parse(path, *whole, options, toolchain, view);
  if (again)
    return again;
  llvm::consumeError(again.takeError()); // a header is included a second time, and no macro guards it
  return program;
}
