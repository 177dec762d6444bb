//===- LineMarks.h - text of several files in one ---------------*- C++ -*-===//
//
// A program's text may hold text of OptiML's and of headers. Lines such as `#line 7 "k.cuh" // OptiML` say where each
// part comes from, so that compilers' messages and __LINE__ name the user's lines.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_FRONTEND_LINEMARKS_H
#define OPTIML_FRONTEND_LINEMARKS_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace optiml {

/// The mark before the line of that number in `file`, with its newline.
std::string lineMark(size_t line, llvm::StringRef file);

/// The same for the line that begins at `offset` of a text, of which what stands before the first mark is `file`'s.
std::string lineMarkAt(llvm::StringRef text, size_t offset, llvm::StringRef file);

/// The line that compilers know by this file and number, without white space around it; empty: there is none. Text of
/// OptiML's goes on with the numbers of what stands before it, which the user's lines behind the next mark have too: of
/// several lines it is the one that follows a mention of `function` most closely.
llvm::StringRef lineAt(llvm::StringRef text, llvm::StringRef file, size_t number, llvm::StringRef function);

std::string withoutLineMarks(llvm::StringRef text);

/// Names of the files other than `file` that parts of the text come from, each once.
std::vector<std::string> filesBehind(llvm::StringRef text, llvm::StringRef file);

} // namespace optiml

#endif
