//===- Compile.cpp - variants through nvcc --------------------------------===//
#include "optiml/Evaluate/Predict/Compile.h"
#include "optiml/Core/Hash.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Support/Error.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace optiml;

CompiledText::~CompiledText() { llvm::sys::fs::remove_directories(directory); }

std::string CompiledText::symbolOf(const std::string &kernel) const {
  if (ptxas.count(kernel))
    return kernel;
  // nvcc and Clang mangle differently what only its own file sees.
  for (const auto &[symbol, resources] : ptxas)
    if (llvm::StringRef(kernel).starts_with("_Z") && llvm::demangle(symbol) == llvm::demangle(kernel))
      return symbol;
  // By plain name: the part of the demangled name before the parameters, without its scope.
  for (const auto &[symbol, resources] : ptxas) {
    std::string name = llvm::demangle(symbol);
    name = name.substr(0, name.find('('));
    if (unqualified(name) == kernel)
      return symbol;
  }
  return "";
}

const Resources *CompiledText::resourcesOf(const std::string &kernel) const {
  auto it = ptxas.find(symbolOf(kernel));
  return it == ptxas.end() ? nullptr : &it->second;
}

llvm::Expected<std::unique_ptr<TextCompiler>> TextCompiler::create(const Toolchain &toolchain, const std::string &path,
                                                                   const CompileOptions &options,
                                                                   const std::atomic<bool> *cancel) {
  auto dir = TempDir::create("optiml-compile");
  if (!dir)
    return dir.takeError();
  std::unique_ptr<TextCompiler> compiler(new TextCompiler(std::move(*dir)));
  CubinRequest &request = compiler->request;
  request.nvcc = toolchain.nvcc;
  request.architecture = options.archName;
  request.includeDirectory = llvm::sys::path::parent_path(path).str();
  request.flags = cubinFlags(options.nvccArgs);
  request.limits.seconds = 60;
  request.limits.memoryBytes = uint64_t(4) << 30;
  request.cancel = cancel;
  compiler->fileName = llvm::sys::path::filename(path).str();
  return compiler;
}

llvm::Expected<std::shared_ptr<const CompiledText>> TextCompiler::compile(const std::string &text,
                                                                          Verdict &verdict) const {
  const std::string key = contentHash(text);
  {
    std::lock_guard lock(mutex);
    if (auto known = done.find(key); known != done.end())
      return known->second;
  }
  auto compiled = compileAnew(text, verdict);
  if (compiled) {
    std::lock_guard lock(mutex);
    done.try_emplace(key, *compiled);
  }
  return compiled;
}

llvm::Expected<std::shared_ptr<const CompiledText>> TextCompiler::compileAnew(const std::string &text,
                                                                              Verdict &verdict) const {
  auto compiled = std::make_shared<CompiledText>();
  compiled->directory = dir.file("t" + std::to_string(counter++));
  verdict = Verdict::CompileError;
  if (std::error_code code = llvm::sys::fs::create_directory(compiled->directory))
    return makeError("cannot create '{0}': {1}", compiled->directory, code.message());
  CubinRequest own = request;
  if (const std::atomic<bool> *flag = stop)
    own.cancel = flag;
  own.givesWay = counter > 1; // the original is waited for, and what verifies a variant goes before the next one
  own.source = compiled->source = compiled->directory + "/" + fileName;
  own.cubin = compiled->cubin = compiled->directory + "/out.cubin";
  if (llvm::Error e = writeFileAtomically(own.source, text))
    return std::move(e);
  auto result = compileCubin(own);
  if (!result)
    return result.takeError();
  if (result->timedOut) {
    verdict = Verdict::Timeout;
    return makeError("nvcc took longer than {0} s", request.limits.seconds);
  }
  if (!result->ok)
    return makeError("{0}", result->diagnostics);
  compiled->ptxas = std::move(result->report);
  return compiled;
}

llvm::Expected<std::string> TextCompiler::ptx(const CompiledText &compiled) const {
  CubinRequest own = request;
  own.source = compiled.source;
  own.cubin = compiled.directory + "/out.ptx";
  own.onlyPtx = true;
  auto result = compileCubin(own);
  if (!result)
    return result.takeError();
  if (!result->ok)
    return makeError("{0}", result->diagnostics);
  return readFile(own.cubin);
}
