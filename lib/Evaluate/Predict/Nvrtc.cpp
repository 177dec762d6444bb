//===- Nvrtc.cpp - kernels alone, through NVRTC ---------------------------===//
#include "optiml/Evaluate/Predict/Nvrtc.h"
#include "optiml/Support/Error.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace optiml;
using llvm::StringRef;

// Of the same text NVRTC and nvcc make the same instructions, but for kernels in which one of them addresses shared
// memory by 32 and the other by 64 bits.
static constexpr double mostLonger = 1.05;

/// The toolkit's library: libnvrtc.so, or the first of libnvrtc.so.N.
static std::string libraryIn(const std::string &folder) {
  const std::string plain = folder + "/libnvrtc.so";
  if (llvm::sys::fs::exists(plain))
    return plain;
  std::string found;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(folder, code), end; it != end && !code; it.increment(code))
    if (StringRef(llvm::sys::path::filename(it->path())).starts_with("libnvrtc.so.") &&
        (found.empty() || it->path().size() < found.size()))
      found = it->path();
  return found;
}

std::optional<Nvrtc> Nvrtc::find(const Toolchain &toolchain) {
  Nvrtc nvrtc;
  nvrtc.worker = toolchain.libDir + "/../bin/optiml-worker";
  nvrtc.version = toolchain.cudaVersion();
  nvrtc.cudaPath = toolchain.cudaPath;
  for (const char *folder : {"/lib64", "/targets/x86_64-linux/lib", "/lib/x86_64-linux-gnu", "/lib"})
    if (nvrtc.library.empty())
      nvrtc.library = libraryIn(toolchain.cudaPath + folder);
  if (nvrtc.library.empty() || nvrtc.version.empty() || !llvm::sys::fs::can_execute(nvrtc.worker))
    return std::nullopt;
  return nvrtc;
}

namespace {
/// What a flag of nvcc is for NVRTC.
struct Counterpart {
  StringRef option; ///< empty: it has no use for it
  bool takesValue = false;
};
} // namespace

std::optional<std::vector<std::string>> optiml::nvrtcOptions(const std::vector<std::string> &flags) {
  static const std::map<StringRef, Counterpart> counterparts = {
      {"use_fast_math", {"--use_fast_math"}},
      {"restrict", {"--restrict"}},
      {"extra-device-vectorization", {"--extra-device-vectorization"}},
      {"G", {"--device-debug"}},
      {"device-debug", {"--device-debug"}},
      {"lineinfo", {"--generate-line-info"}},
      {"generate-line-info", {"--generate-line-info"}},
      {"D", {"-D", true}},
      {"define-macro", {"-D", true}},
      {"U", {"-U", true}},
      {"undefine-macro", {"-U", true}},
      {"I", {"-I", true}},
      {"include-path", {"-I", true}},
      {"isystem", {"-I", true}},
      {"system-include", {"-I", true}},
      {"std", {"--std=", true}},
      {"maxrregcount", {"--maxrregcount=", true}},
      {"ftz", {"--ftz=", true}},
      {"prec-div", {"--prec-div=", true}},
      {"prec-sqrt", {"--prec-sqrt=", true}},
      {"fmad", {"--fmad=", true}},
      {"Xptxas", {"--ptxas-options=", true}},
      {"ptxas-options", {"--ptxas-options=", true}},
      {"expt-relaxed-constexpr", {}},
      {"expt-extended-lambda", {}},
      {"extended-lambda", {}},
      {"w", {}},
      {"disable-warnings", {}},
      {"allow-unsupported-compiler", {}},
      {"no-exceptions", {}},
      {"ccbin", {"", true}},
      {"compiler-bindir", {"", true}},
      {"default-stream", {"", true}},
      {"Xcudafe", {"", true}},
      {"diag-suppress", {"", true}},
  };
  std::vector<std::string> options;
  for (size_t i = 0; i < flags.size(); ++i) {
    const StringRef flag = flags[i];
    auto [name, value] = flag.ltrim('-').split('=');
    auto known = counterparts.find(name);
    if (known == counterparts.end() && flag.size() > 2 && StringRef("DUI").contains(flag[1])) { // -DNAME, -Ipath
      options.push_back(flag.str());
      continue;
    }
    if (known == counterparts.end())
      return std::nullopt;
    const Counterpart &own = known->second;
    if (own.takesValue && !flag.contains('=')) {
      if (++i == flags.size())
        return std::nullopt;
      value = flags[i];
    }
    if (!own.option.empty())
      options.push_back((own.option + value).str());
  }
  return options;
}

llvm::Expected<CubinResult> Nvrtc::compile(const CubinRequest &request, const std::vector<std::string> &options,
                                           const std::vector<std::string> &kernels) const {
  std::vector<std::string> command = {worker,
                                      "--compile",
                                      library,
                                      version,
                                      request.source,
                                      request.cubin,
                                      "-arch=" + request.architecture,
                                      "-default-device",
                                      "--ptxas-options=-v"};
  command.insert(command.end(), options.begin(), options.end());
  for (const std::string &kernel : kernels)
    command.push_back("--instantiate=" + kernel);
  if (!request.includeDirectory.empty())
    command.push_back("-I" + request.includeDirectory);
  for (const char *folder : {"/include", "/include/cccl"})
    if (llvm::sys::fs::exists(cudaPath + folder))
      command.push_back("-I" + cudaPath + folder);
  return cubinOf(request, command);
}

/// The kernel's name. uint64_t is one type for nvcc and another for NVRTC.
static std::string nameOf(StringRef symbol) {
  std::string name = llvm::demangle(symbol);
  for (size_t at; (at = name.find("long long")) != std::string::npos;)
    name.erase(at, strlen("long "));
  return name;
}

/// Of each kernel by name: the size of the section .text.SYMBOL.
static std::map<std::string, uint64_t> codeIn(const std::string &cubin) {
  std::map<std::string, uint64_t> code;
  auto buffer = llvm::MemoryBuffer::getFile(cubin);
  if (!buffer)
    return code;
  auto fail = [&](llvm::Error e) {
    llvm::consumeError(std::move(e));
    return std::map<std::string, uint64_t>();
  };
  auto elf = llvm::object::ELF64LEFile::create((*buffer)->getBuffer());
  if (!elf)
    return fail(elf.takeError());
  auto sections = elf->sections();
  if (!sections)
    return fail(sections.takeError());
  for (const auto &section : *sections) {
    llvm::Expected<StringRef> name = elf->getSectionName(section);
    if (!name)
      return fail(name.takeError());
    StringRef symbol = *name;
    if (symbol.consume_front(".text."))
      code[nameOf(symbol)] = section.sh_size;
  }
  return code;
}

bool optiml::haveLikeCode(const std::string &cubin, const std::string &other) {
  const std::map<std::string, uint64_t> mine = codeIn(cubin), theirs = codeIn(other);
  bool any = false;
  for (const auto &[symbol, bytes] : mine)
    if (auto it = theirs.find(symbol); it != theirs.end()) {
      if (std::max(bytes, it->second) > mostLonger * std::min(bytes, it->second))
        return false;
      any = true;
    }
  return any;
}
