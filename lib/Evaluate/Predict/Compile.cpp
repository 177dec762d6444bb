//===- Compile.cpp - variants through nvcc --------------------------------===//
#include "optiml/Evaluate/Predict/Compile.h"
#include "optiml/Core/Hash.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Support/Error.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace optiml;

// NVRTC is used where it takes at most this part of nvcc's time, and given up when it refuses more texts than it takes.
// Of the processors' time: it is loaded from a disk the first time.
static constexpr double worthNvrtc = 0.7;
static constexpr unsigned mostRefused = 4;
// In place of the head of a text.
static const std::string headLine = "#include \"head.cuh\"\n";

CompiledText::~CompiledText() { llvm::sys::fs::remove_directories(directory); }

/// The name without what nvcc puts around functions that only its own file sees: "_INTERNAL_609fdebc_4_x_cu_main::f".
static std::string nameBehind(const std::string &symbol) {
  std::string name = llvm::demangle(symbol);
  for (size_t at; (at = name.find("_INTERNAL_")) != std::string::npos;) {
    const size_t end = name.find("::", at);
    if (end == std::string::npos)
      break;
    name.erase(at, end + 2 - at);
  }
  return name;
}

std::string CompiledText::symbolOf(const std::string &kernel) const {
  if (ptxas.count(kernel))
    return kernel;
  // nvcc and Clang mangle differently what only its own file sees.
  if (llvm::StringRef(kernel).starts_with("_Z"))
    for (const std::string name = nameBehind(kernel); const auto &[symbol, resources] : ptxas)
      if (nameBehind(symbol) == name)
        return symbol;
  // By plain name: the part of the demangled name before the parameters, without its scope.
  for (const auto &[symbol, resources] : ptxas)
    if (unqualified(titleOf(llvm::demangle(symbol))) == kernel)
      return symbol;
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
  compiler->toolchain = toolchain;
  CubinRequest &request = compiler->request;
  request.nvcc = toolchain.nvcc;
  request.architecture = options.archName;
  request.includeDirectory = llvm::sys::path::parent_path(path).str();
  if (request.includeDirectory.find_first_of(",'\"") != std::string::npos) { // nvcc divides and unquotes them
    llvm::SmallString<128> folder(request.includeDirectory);
    request.includeDirectory = compiler->dir.file("source");
    if (std::error_code code = llvm::sys::fs::make_absolute(folder))
      return makeError("{0}: {1}", folder, code.message());
    if (std::error_code code = llvm::sys::fs::create_link(folder, request.includeDirectory))
      return makeError("{0}: {1}", request.includeDirectory, code.message());
  }
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

llvm::Expected<std::shared_ptr<CompiledText>> TextCompiler::begin(const std::string &text, CubinRequest &own) const {
  auto compiled = std::make_shared<CompiledText>();
  compiled->directory = dir.file("t" + std::to_string(counter++));
  if (std::error_code code = llvm::sys::fs::create_directory(compiled->directory))
    return makeError("cannot create '{0}': {1}", compiled->directory, code.message());
  own = request;
  if (const std::atomic<bool> *flag = stop)
    own.cancel = flag;
  own.givesWay = counter > 1; // the original is waited for, and what verifies a variant goes before the next one
  own.source = compiled->source = compiled->directory + "/" + fileName;
  own.cubin = compiled->cubin = compiled->directory + "/out.cubin";
  if (llvm::Error e = writeFileAtomically(own.source, text))
    return std::move(e);
  return compiled;
}

llvm::Expected<std::shared_ptr<const CompiledText>> TextCompiler::compileAnew(const std::string &text,
                                                                              Verdict &verdict) const {
  verdict = Verdict::CompileError;
  CubinRequest own;
  auto compiled = begin(text, own);
  if (!compiled)
    return compiled.takeError();
  auto result = compileCubin(own);
  if (!result)
    return result.takeError();
  if (result->timedOut) {
    verdict = Verdict::Timeout;
    return makeError("nvcc took longer than {0} s", request.limits.seconds);
  }
  if (!result->ok)
    return makeError("{0}", result->diagnostics);
  (*compiled)->ptxas = std::move(result->report);
  (*compiled)->processorSeconds = result->processorSeconds;
  return *compiled;
}

std::shared_ptr<const CompiledText> TextCompiler::compileAlone(const std::string &alone, const std::string &text,
                                                               const std::vector<std::string> &kernels) const {
  CubinRequest own;
  auto compiled = begin(text, own);
  if (compiled) {
    own.source = (*compiled)->directory + "/alone.cu";
    llvm::StringRef rest = alone;
    const bool hasHead = !head.empty() && rest.consume_front(head);
    if (llvm::Error e = writeFileAtomically(own.source, (hasHead ? headLine : "") + rest.str()))
      compiled = std::move(e);
    else if (auto result = nvrtc->compile(own, options, kernels); !result)
      compiled = result.takeError();
    else if (result->ok) {
      (*compiled)->ptxas = std::move(result->report);
      (*compiled)->processorSeconds = result->processorSeconds;
      return *compiled;
    }
  }
  if (!compiled)
    llvm::consumeError(compiled.takeError());
  return nullptr; // nvcc tells what is wrong
}

void TextCompiler::precompileHead() {
  const std::string text = device.head(), folder = dir.file("head");
  if (text.empty() || llvm::sys::fs::create_directory(folder))
    return;
  CubinRequest own = request;
  own.source = folder + "/alone.cu";
  own.cubin = folder + "/out.cubin";
  const std::string precompiled = folder + "/head.pch";
  std::vector<std::string> creating = options;
  creating.insert(creating.end(), {"-I" + folder, "--create-pch=" + precompiled});
  llvm::Error written = writeFileAtomically(folder + "/head.cuh", text);
  if (!written)
    written = writeFileAtomically(own.source, headLine);
  if (written)
    return llvm::consumeError(std::move(written));
  auto created = nvrtc->compile(own, creating, {});
  if (!created)
    return llvm::consumeError(created.takeError());
  if (!created->ok || !llvm::sys::fs::exists(precompiled))
    return; // an older NVRTC, or a text of which it makes none
  head = text;
  options.insert(options.end(), {"-I" + folder, "--use-pch=" + precompiled, "--pch-messages=false"});
}

void TextCompiler::useDeviceText(DeviceText text, std::shared_ptr<const CompiledText> original) {
  auto same = nvrtcOptions(request.flags);
  nvrtc = same && !text.empty() ? Nvrtc::find(toolchain) : std::nullopt;
  if (!nvrtc)
    return;
  options = std::move(*same);
  device = std::move(text);
  trusted = std::async(std::launch::async, [this, original = std::move(original)] {
              precompileHead();
              const std::string whole = device.whole();
              auto alone = compileAlone(whole, whole, device.instantiations());
              return alone && alone->processorSeconds < worthNvrtc * original->processorSeconds &&
                     haveLikeCode(alone->cubin, original->cubin);
            }).share();
}

bool TextCompiler::isNvrtcTrusted() const {
  return trusted.valid() && trusted.get() && (refused < mostRefused || refused < accepted);
}

llvm::Expected<std::shared_ptr<const CompiledText>> TextCompiler::compile(const Variant &variant,
                                                                          Verdict &verdict) const {
  if (variant.rewrites.empty() || !isNvrtcTrusted())
    return compile(variant.text, verdict);
  std::vector<DeviceText::Insertion> twins;
  for (const KernelRewrite &rewrite : variant.rewrites)
    twins.push_back({rewrite.insertAt, rewrite.placed(rewrite.twinText)});
  const std::string alone = device.with(twins, [](const std::string &) { return false; }), key = contentHash(alone);
  {
    std::lock_guard lock(mutex);
    if (auto known = done.find(key); known != done.end())
      return known->second;
  }
  if (auto compiled = compileAlone(alone, variant.text, {})) {
    ++accepted;
    std::lock_guard lock(mutex);
    return done.try_emplace(key, compiled).first->second;
  }
  auto compiled = compile(variant.text, verdict);
  if (compiled)
    ++refused;
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
