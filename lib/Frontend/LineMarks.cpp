//===- LineMarks.cpp - text of several files in one -----------------------===//
#include "optiml/Frontend/LineMarks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Path.h"

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
  llvm::SmallVector<StringRef, 2> lines;
  forEachLine(text, [&](StringRef line, const std::optional<Mark> &mark) {
    if (mark) {
      place = *mark;
      return;
    }
    if (place.line == number &&
        (place.file.empty() || llvm::sys::path::filename(place.file) == llvm::sys::path::filename(file)))
      lines.push_back(line);
    ++place.line;
  });
  auto sinceMention = [&](StringRef line) {
    const StringRef before = text.take_front(size_t(line.end() - text.begin()));
    const size_t mention = before.rfind(function);
    return mention == StringRef::npos ? text.size() : before.drop_front(mention).drop_back().count('\n');
  };
  if (lines.size() <= 1) // verification asks this of each piece of code that has not run
    return lines.empty() ? StringRef() : lines.front().trim();
  return llvm::min_element(lines, [&](StringRef x, StringRef y) { return sinceMention(x) < sinceMention(y); })->trim();
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
