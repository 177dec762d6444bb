//===- LineMarks.cpp - text of several files in one -----------------------===//
#include "optiml/Frontend/LineMarks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"
#include <cstdint>

using namespace optiml;
using llvm::StringRef;

static constexpr StringRef begin = "#line ", end = " // OptiML\n";

std::string optiml::lineMark(size_t line, StringRef file) {
  std::string quoted;
  for (char c : file)
    quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return (begin + std::to_string(line) + " \"" + quoted + "\"" + end).str();
}

namespace {
struct Mark {
  size_t line = 1;
  std::string file;
};
} // namespace

/// Of a line with its newline.
static std::optional<Mark> markIn(StringRef line) {
  Mark mark;
  if (!line.consume_front(begin) || !line.consume_back(end) || line.consumeInteger(10, mark.line) ||
      !line.consume_front(" \"") || !line.consume_back("\""))
    return std::nullopt;
  for (size_t i = 0; i < line.size(); ++i)
    mark.file += line[i] == '\\' && i + 1 < line.size() ? line[++i] : line[i];
  return mark;
}

/// Calls `visit(line, mark)` for each line, with its newline.
static void forEachLine(StringRef text, llvm::function_ref<void(StringRef, const std::optional<Mark> &)> visit) {
  while (!text.empty()) {
    StringRef line = text.take_front(text.find('\n') == StringRef::npos ? text.size() : text.find('\n') + 1);
    visit(line, markIn(line));
    text = text.drop_front(line.size());
  }
}

std::string optiml::lineMarkAt(StringRef text, size_t offset, StringRef file) {
  Mark place{1, file.str()};
  forEachLine(text.take_front(offset), [&](StringRef line, const std::optional<Mark> &mark) {
    if (mark)
      place = *mark;
    else
      place.line += line.ends_with("\n");
  });
  return lineMark(place.line, place.file);
}

StringRef optiml::lineAt(StringRef text, StringRef file, size_t number, StringRef function) {
  Mark place; // of the line to come; without a file: the text's own
  size_t sinceMention = text.size(), least = SIZE_MAX;
  StringRef found;
  forEachLine(text, [&](StringRef line, const std::optional<Mark> &mark) {
    if (mark) {
      place = *mark;
      return;
    }
    sinceMention = line.contains(function) ? 0 : sinceMention + 1;
    const bool isIts = place.line == number &&
                       (place.file.empty() || llvm::sys::path::filename(place.file) == llvm::sys::path::filename(file));
    if (isIts && sinceMention < least) {
      least = sinceMention;
      found = line.trim();
    }
    ++place.line;
  });
  return found;
}

std::string optiml::withoutLineMarks(StringRef text) {
  std::string result;
  forEachLine(text, [&](StringRef line, const std::optional<Mark> &mark) {
    if (!mark)
      result += line;
  });
  return result;
}

std::vector<std::string> optiml::filesBehind(StringRef text, StringRef file) {
  std::vector<std::string> files;
  forEachLine(text, [&](StringRef, const std::optional<Mark> &mark) {
    if (mark && mark->file != file && !llvm::is_contained(files, mark->file))
      files.push_back(mark->file);
  });
  return files;
}
