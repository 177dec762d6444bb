//===- LaunchingHeaders.cpp - headers that become part of the text --------===//
#include "DeviceLambdas.h"
#include "OpenClasses.h"
#include "optiml/Frontend/LineMarks.h"
#include "optiml/Frontend/Program.h"
#include "clang/AST/ASTContext.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
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
      if (!entry.isFile())
        continue;
      FileID id = sm.getFileID(SourceLocation::getFromRawEncoding(entry.getOffset()));
      if (SourceLocation from = sm.getIncludeLoc(id); from.isFileID())
        entered[sm.getFileID(from)][sm.getFileOffset(from)] = id;
      if (SrcMgr::isSystem(entry.getFile().getFileCharacteristic()))
        continue;
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

  /// The rest of a path in the folder; empty elsewhere.
  static StringRef within(StringRef folder, StringRef file) {
    return file.consume_front(folder) && file.consume_front("/") ? file : StringRef();
  }

  /// As a compiler would call the file: beside the main file, as the main file is called.
  std::string nameOf(FileID id) const {
    const StringRef file = sm.getFileEntryRefForID(id)->getName(), folder = path::parent_path(mainName);
    const StringRef rest = within(path::parent_path(mainPath), file);
    return rest.empty() ? file.str() : folder.empty() ? rest.str() : (folder + "/" + rest).str();
  }

  static std::string wholePath(StringRef file) {
    llvm::SmallString<256> whole(file);
    llvm::sys::fs::make_absolute(whole);
    path::remove_dots(whole, /*remove_dot_dot=*/true);
    return whole.str().str();
  }

  static bool isOnce(StringRef line) {
    line = line.ltrim();
    return line.consume_front("#") && (line = line.ltrim()).consume_front("pragma") &&
           (line = line.ltrim()).consume_front("once") && (line.empty() || !llvm::isAlnum(line[0]));
  }

  /// The macro that stands for `#pragma once` of a file that is in the text; empty: it is another file.
  std::string onceMacro(const std::string &file) const {
    auto at = once.find(file);
    return at == once.end() ? "" : at->second;
  }

  /// ... of a file that the line means, as it is not entered again; its folder is not known.
  std::string onceMacroNamed(StringRef file) {
    std::string macro;
    for (const auto &[own, ownMacro] : once)
      if (StringRef(own).ends_with(("/" + file).str())) {
        isPossible &= macro.empty();
        macro = ownMacro;
      }
    return macro;
  }

  struct Place {
    StringRef name, folder; ///< of the file that the line stands in
    bool isMain = false;    ///< which the line stands in
    FileID entered;         ///< by the line; invalid: none
    size_t number = 0;      ///< of the line
  };

  /// A line, as it has to be in the main file.
  std::string moved(StringRef line, const Place &place) {
    const StringRef newline = line.ends_with("\n") ? "\n" : "";
    if (!place.isMain && isOnce(line))
      return newline.str();
    StringRef rest = line.ltrim();
    if (!rest.consume_front("#") || !(rest = rest.ltrim()).consume_front("include"))
      return line.str();
    rest = rest.ltrim();
    const bool isQuoted = rest.starts_with("\"");
    if (!isQuoted && !rest.starts_with("<")) { // #include_next, or a macro
      isPossible &= place.isMain || place.entered.isInvalid();
      return line.str();
    }
    const StringRef file = rest.drop_front().split(isQuoted ? '"' : '>').first;
    // It is looked for beside the file that includes it first.
    auto whereIn = [&](StringRef folder) {
      llvm::SmallString<256> path(folder);
      path::append(path, file);
      std::string whole = isQuoted ? wholePath(path::is_absolute(file) ? file : StringRef(path)) : "";
      return !whole.empty() && llvm::sys::fs::exists(whole) ? whole : "";
    };
    const std::string beside = whereIn(place.folder), besideMain = whereIn(path::parent_path(mainPath));
    std::string whole = beside;
    if (place.entered.isValid())
      if (auto entry = sm.getFileEntryRefForID(place.entered))
        whole = wholePath(entry->getName());
    std::string directive = line.str();
    if (!place.isMain && isQuoted && !path::is_absolute(file) && whole != besideMain) {
      isPossible &= !whole.empty(); // skipped: it may be any file of that name
      if (whole == beside || !besideMain.empty()) {
        const StringRef relative = within(path::parent_path(mainPath), whole);
        directive = "#include \"" + (relative.empty() ? whole : relative.str()) + "\"" +
                    rest.drop_front().split('"').second.str();
      }
    }
    if (place.entered.isValid())
      return directive;
    const std::string macro = whole.empty() ? onceMacroNamed(file) : onceMacro(whole);
    if (macro.empty())
      return directive;
    return "#ifndef " + macro + "\n" + directive + (newline.empty() ? "\n" : "") + "#endif\n" +
           optiml::lineMark(place.number + 1, place.name);
  }

  std::string textOf(FileID id, StringRef name) {
    const StringRef text = sm.getBufferData(id);
    const bool isMain = id == sm.getMainFileID();
    const std::string whole = isMain ? mainPath.str() : wholePath(sm.getFileEntryRefForID(id)->getName());
    const std::string folder = path::parent_path(whole).str();
    const auto &inclusions = spliced[id];
    std::string result, end;
    bool guarded = false;
    for (StringRef rest = text; !isMain && !guarded && !rest.empty();) {
      auto [line, after] = rest.split('\n');
      guarded = isOnce(line);
      rest = after;
    }
    if (guarded) {
      const std::string &macro =
          once.try_emplace(whole, "OPTIML_ONCE_" + llvm::utohexstr(llvm::xxh3_64bits(text))).first->second;
      result = "#ifndef " + macro + "\n#define " + macro + "\n";
      end = "#endif\n";
    }
    if (!isMain)
      result += optiml::lineMark(1, name);
    size_t number = 1;
    for (size_t at = 0; at < text.size(); ++number) {
      const size_t next = std::min(text.find('\n', at), text.size() - 1) + 1;
      const StringRef line = text.slice(at, next);
      auto inclusion = inclusions.lower_bound(unsigned(at));
      if (inclusion == inclusions.end() || inclusion->first >= next) {
        auto target = entered[id].lower_bound(unsigned(at));
        const bool enters = target != entered[id].end() && target->first < next;
        result += moved(line, {name, folder, isMain, enters ? target->second : FileID(), number});
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
    if (!end.empty() && !StringRef(result).ends_with("\n"))
      result += "\n";
    return result + end;
  }

  SourceManager &sm;
  const StringRef mainPath, mainName;
  std::map<FileID, std::map<unsigned, FileID>> spliced; ///< what a file includes, by the place of the file's name
  std::map<FileID, std::map<unsigned, FileID>> entered; ///< as spliced, but all that is included
  std::map<std::string, std::string> once; ///< macros, by the paths of those with #pragma once that are in the text
  bool isPossible = true;
};

} // namespace

llvm::Expected<std::unique_ptr<optiml::Program>>
optiml::Program::parseWithLaunches(const std::string &path, StringRef name, const std::string &text,
                                   const CompileOptions &options, const Toolchain &toolchain, View view) {
  auto program = parse(path, text, options, toolchain, view);
  if (!program)
    return program;
  auto take = [&](const std::optional<std::string> &changed) {
    if (!changed)
      return false;
    auto again = parse(path, *changed, options, toolchain, view);
    if (!again) { // a header is included a second time, and no macro guards it, or the like
      llvm::consumeError(again.takeError());
      return false;
    }
    *program = std::move(*again);
    return true;
  };
  take(Splicer(**program, name).run());
  take(withOpenClasses(**program));
  if (take(withoutDeviceLambdas(**program, name)))
    (*program)->hasNamedLambdas = true;
  return program;
}
