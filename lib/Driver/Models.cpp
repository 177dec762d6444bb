//===- Models.cpp - the language models that the flags name ---------------===//
#include "optiml/Driver/Models.h"
#include "MemoryUse.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <ctime>

using namespace optiml;

llvm::Expected<std::unique_ptr<ModelSession>> optiml::openModels(const OwnFlags &flags, const std::string &program,
                                                                 const std::string &source,
                                                                 const std::atomic<bool> *cancel) {
  ModelSession::Options about;
  about.source = source;
  about.say = [program](const std::string &line) { llvm::errs() << program << ": " << line << "\n"; };
  about.cancel = cancel;
  std::string stem = llvm::sys::path::stem(source).str();
  std::replace(stem.begin(), stem.end(), ' ', '-');
  if (flags.store != "none" && !flags.llm.models.empty())
    about.transcript = llvm::formatv("{0}/transcripts/{1}-{2}-{3}.jsonl", storeFolderOf(flags), stem,
                                     std::time(nullptr), llvm::sys::Process::getProcessId());
  return ModelSession::open(flags.llm, about);
}
