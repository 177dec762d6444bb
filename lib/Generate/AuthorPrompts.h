//===- AuthorPrompts.h - what models are asked to write ---------*- C++ -*-===//
#ifndef OPTIML_LIB_GENERATE_AUTHORPROMPTS_H
#define OPTIML_LIB_GENERATE_AUTHORPROMPTS_H

#include "optiml/Generate/Author.h"

namespace optiml::gen {

/// What does the request mean, and which sizes has it? Asked once, where the library does not know it.
ChatRequest taskQuestion(const AuthorOptions &options);
/// How would it be written? The answer is text.
ChatRequest planQuestion(const ProgramTask &task, const AuthorOptions &options);
/// Write it. `example` and `plan` may be empty.
ChatRequest programQuestion(const ProgramTask &task, const AuthorOptions &options, llvm::StringRef example, llvm::StringRef plan);
/// The same question with the last answer and why it was refused.
ChatRequest repairQuestion(ChatRequest asked, llvm::StringRef answer, llvm::StringRef why);

} // namespace optiml::gen

#endif
