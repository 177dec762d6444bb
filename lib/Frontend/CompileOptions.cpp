//===- CompileOptions.cpp - an nvcc command line, understood --------------===//
//
// Walks the command line by the table in NvccFlags.cpp. What the table does not know makes the command line "too hard":
// the real nvcc then handles it alone.
//
//===----------------------------------------------------------------------===//
#include "optiml/Frontend/CompileOptions.h"
#include "NvccFlags.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/StringSaver.h"
#include <cstdlib>
#include <deque>

using namespace optiml;
using Meaning = NvccFlag::Meaning;

namespace {

std::vector<std::string> splitWords(llvm::StringRef text) {
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver(allocator);
  llvm::SmallVector<const char *, 16> words;
  llvm::cl::TokenizeGNUCommandLine(text, saver, words);
  return {words.begin(), words.end()};
}

/// nvcc's list values: separated by commas that are neither escaped nor quoted.
std::vector<std::string> splitList(llvm::StringRef text) {
  std::vector<std::string> result(1);
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\\' && i + 1 < text.size() && text[i + 1] == ',') {
      result.back() += text[++i];
    } else if (c == ',' && !quote) {
      result.emplace_back();
    } else {
      if (c == quote)
        quote = 0;
      else if (!quote && (c == '"' || c == '\''))
        quote = c;
      result.back() += c;
    }
  }
  llvm::erase_if(result, [](const std::string &s) { return s.empty(); });
  return result;
}

/// Clang 22 knows these; a newer one is parsed as the nearest older one.
std::string architectureName(unsigned number, bool specific) {
  static const unsigned known[] = {75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121};
  unsigned nearest = known[0];
  for (unsigned k : known)
    if (k <= number)
      nearest = k;
  return llvm::formatv("sm_{0}{1}", nearest, nearest == number && specific && number >= 90 ? "a" : "");
}

class Parser {
public:
  Parser(CompileOptions &options, std::deque<std::string> args) : options(options), args(std::move(args)) {}

  void run() {
    while (!args.empty()) {
      std::string arg = std::move(args.front());
      args.pop_front();
      if (arg == "-" || arg.empty() || arg[0] != '-')
        input(arg);
      else
        flag(arg);
    }
    for (const std::string &unknown : unknownFlags)
      if (!forwardUnknown)
        tooHard("unknown flag " + unknown);
    if (!haveStandard)
      options.frontendFlags.push_back("-std=c++17");
    if (options.everyArch)
      options.leastArch = 0;
    if (options.inputs.empty())
      tooHard("no CUDA source among the inputs");
  }

private:
  CompileOptions &options;
  std::deque<std::string> args;
  std::string language;
  std::vector<std::string> unknownFlags;
  bool forwardUnknown = false, haveStandard = false;
  unsigned optionFiles = 0;

  void tooHard(const std::string &why) {
    if (options.tooHard.empty())
      options.tooHard = why;
  }

  void input(const std::string &file) {
    if (file == "-")
      return tooHard("the source comes from standard input");
    llvm::StringRef extension = llvm::sys::path::extension(file);
    if (language == "cu" || (language.empty() && extension == ".cu"))
      options.inputs.push_back(file);
    else if (!language.empty() || llvm::is_contained({".c", ".cc", ".cpp", ".cxx", ".C"}, extension))
      options.hostInputs.push_back(file);
    else
      options.linkInputs.push_back(file);
  }

  void flag(const std::string &arg) {
    llvm::StringRef body = llvm::StringRef(arg).drop_front(llvm::StringRef(arg).starts_with("--") ? 2 : 1);
    auto [name, value] = body.split('=');
    bool hasValue = name.size() != body.size();
    const NvccFlag *row = findNvccFlag(name);
    if (row && (row->shape != NvccFlag::Shape::Flag || !hasValue)) {
      if (row->shape == NvccFlag::Shape::Flag || hasValue)
        return apply(*row, value.str(), arg);
      if (args.empty())
        return tooHard(arg + " lacks its value");
      std::string next = std::move(args.front());
      args.pop_front();
      return apply(*row, next, arg);
    }
    row = findNvccFlag(body.take_front(1));
    if (row && row->shape == NvccFlag::Shape::Joined)
      return apply(*row, body.drop_front(1).str(), arg);
    unknownFlags.push_back(arg);
    if (llvm::StringRef(arg).starts_with("-fopenmp"))
      hostFlag(arg);
  }

  void frontend(const char *spelling, const std::string &values, bool joined) {
    for (const std::string &value : splitList(values)) {
      if (joined) {
        options.frontendFlags.push_back(spelling + value);
      } else {
        options.frontendFlags.push_back(spelling);
        options.frontendFlags.push_back(value);
      }
    }
  }

  void apply(const NvccFlag &row, const std::string &value, const std::string &arg) {
    switch (row.meaning) {
    case Meaning::Ignore: return;
    case Meaning::TooHard: return tooHard(arg + " asks for something other than an object or a program");
    case Meaning::Define: return frontend("-D", value, true);
    case Meaning::Undefine: return frontend("-U", value, true);
    case Meaning::Include: return frontend("-I", value, true);
    case Meaning::SystemInclude: return frontend("-isystem", value, false);
    case Meaning::PreInclude: return frontend("-include", value, false);
    case Meaning::Library:
      for (const std::string &library : splitList(value))
        options.libraries.push_back("-l" + library);
      return;
    case Meaning::LibraryPath:
      for (const std::string &folder : splitList(value))
        options.libraries.push_back("-L" + folder);
      return;
    case Meaning::Output: options.output = value; return;
    case Meaning::CompileOnly:
    case Meaning::MakesLibrary: options.compileOnly = true; return;
    case Meaning::DeviceDebug: options.deviceDebug = true; return;
    case Meaning::Relocatable: // -rdc=true, or -dc, which also only compiles
      options.relocatable = row.shape == NvccFlag::Shape::Flag || value == "true";
      options.compileOnly |= row.shape == NvccFlag::Shape::Flag;
      return;
    case Meaning::Language: language = value; return;
    case Meaning::Standard:
      haveStandard = true;
      options.frontendFlags.push_back("-std=" + value);
      return;
    case Meaning::TemplateDepth: options.frontendFlags.push_back("-ftemplate-depth=" + value); return;
    case Meaning::FastMath:
      options.fastMath = true;
      options.frontendFlags.push_back("-D__USE_FAST_MATH__=1");
      return;
    case Meaning::Fmad:
      if (value == "false")
        options.frontendFlags.push_back("-ffp-contract=off");
      return;
    case Meaning::ForwardUnknown: forwardUnknown = true; return;
    case Meaning::Arch: return arch(value);
    case Meaning::Gencode: // arch=compute_90,code=[compute_90,sm_90]
      for (const std::string &part : splitList(value))
        if (llvm::StringRef(part).starts_with("arch="))
          arch(part.substr(5));
      return;
    case Meaning::HostFlags:
      for (const std::string &part : splitList(value))
        for (const std::string &word : splitWords(part))
          hostFlag(word);
      return;
    case Meaning::OptionsFile: return optionsFile(value);
    }
  }

  /// Of the host compiler's flags only those that change what is parsed matter.
  void hostFlag(const std::string &word) {
    llvm::StringRef ref(word);
    if (ref.size() > 2 && (ref.starts_with("-D") || ref.starts_with("-U") || ref.starts_with("-I")))
      options.frontendFlags.push_back(word);
    else if (ref == "-fopenmp")
      options.libraries.push_back("-fopenmp");
  }

  void optionsFile(const std::string &names) {
    std::vector<std::string> words;
    for (const std::string &name : splitList(names)) {
      llvm::Expected<std::string> text = readFile(name);
      if (!text)
        return tooHard(llvm::toString(text.takeError()));
      llvm::append_range(words, splitWords(*text));
    }
    if (++optionFiles > 64)
      return tooHard("options files that include each other");
    llvm::append_range(options.nvccArgs, words);
    args.insert(args.begin(), words.begin(), words.end());
  }

  /// The first architecture is the one that variants are made for.
  void arch(llvm::StringRef name) {
    if (name == "native") {
      options.nativeArch = true;
      return;
    }
    if (name == "all" || name == "all-major") {
      options.everyArch = true;
      return;
    }
    llvm::StringRef digits = name;
    if (!digits.consume_front("sm_") && !digits.consume_front("compute_") && !digits.consume_front("lto_"))
      return tooHard("unknown architecture " + name.str());
    unsigned number = 0;
    if (digits.consumeInteger(10, number) || number < 30)
      return tooHard("unknown architecture " + name.str());
    const bool isFirst = options.archs.empty();
    options.leastArch = isFirst ? number : std::min(options.leastArch, number);
    if (!llvm::is_contained(options.archs, number))
      options.archs.push_back(number);
    if (!isFirst)
      return;
    options.arch = number;
    options.archName = architectureName(number, digits == "a");
  }
};

} // namespace

CompileOptions CompileOptions::parse(const std::vector<std::string> &args) {
  CompileOptions options;
  options.nvccArgs = args;
  std::deque<std::string> all(args.begin(), args.end());
  // nvcc adds these itself; we need to see what it sees.
  auto wordsOf = [](const char *variable) {
    const char *value = getenv(variable);
    return splitWords(value ? value : "");
  };
  std::vector<std::string> before = wordsOf("NVCC_PREPEND_FLAGS"), after = wordsOf("NVCC_APPEND_FLAGS");
  all.insert(all.begin(), before.begin(), before.end());
  all.insert(all.end(), after.begin(), after.end());
  Parser(options, std::move(all)).run();
  return options;
}

void CompileOptions::runOn(unsigned capability) {
  if (nativeArch && !leastArch) // it is the only one
    leastArch = capability;
  if (arch / 10 == capability / 10 && arch <= capability)
    return;
  arch = capability;
  archName = architectureName(capability, false);
}

CompileOptions CompileOptions::only(unsigned capability) const {
  CompileOptions result = *this;
  if (arch != capability) {
    result.arch = capability;
    result.archName = architectureName(capability, false);
  }
  result.archs = {capability};
  result.leastArch = capability;
  return result;
}

std::vector<std::string> CompileOptions::clangArgs(const Toolchain &toolchain, View view) const {
  std::vector<std::string> args = {"-x", "cuda", view == View::Host ? "--cuda-host-only" : "--cuda-device-only",
                                   "--cuda-gpu-arch=" + archName, "--cuda-path=" + toolchain.cudaPath, "-resource-dir",
                                   toolchain.resourceDir,
                                   // Clang calls toolkits newer than 12.9 unsupported; they work.
                                   "-Wno-unknown-cuda-version",
                                   // Without a known version Clang expects the launch interface of before CUDA 9.2.
                                   "-Xclang", "-target-sdk-version=12.8"};
  if (view == View::Device)
    args.push_back("-nocudalib"); // __nv_* functions stay declarations; what we need of them, the emulator defines
  args.insert(args.end(), frontendFlags.begin(), frontendFlags.end());
  // nvcc takes these two for warnings at most.
  args.insert(args.end(), {"-Wno-register", "-Wno-c++11-narrowing"});
  // nvcc adds this folder of its own accord, Clang does not.
  args.insert(args.end(), {"-isystem", toolchain.cudaPath + "/include/cccl"});
  if (!toolchain.openmpHeaders.empty())
    args.insert(args.end(), {"-idirafter", toolchain.openmpHeaders});
  return args;
}
