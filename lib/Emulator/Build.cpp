//===- Build.cpp - CUDA text to code that runs on this machine ------------===//
//
// The order of the steps from device IR to a shared object or a program.
//
//===----------------------------------------------------------------------===//
#include "optiml/Emulator/Build.h"
#include "Conditions.h"
#include "DeviceModule.h"
#include "Optimize.h"
#include "optiml/Frontend/CodeGen.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/StructuralHash.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/Path.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace optiml;
using namespace optiml::emu;

namespace {

llvm::Error runLinker(const std::vector<std::string> &argv, const std::string &what) {
  llvm::Expected<ProcessResult> result = runProcess(argv);
  if (!result)
    return result.takeError();
  if (result->ok())
    return llvm::Error::success();
  // The first missing symbol usually names a library that only exists for GPUs.
  llvm::StringRef text = result->err;
  size_t at = text.find("undefined reference to");
  if (at == llvm::StringRef::npos)
    at = text.find("undefined symbol");
  if (at != llvm::StringRef::npos) {
    llvm::StringRef line = text.substr(at).split('\n').first;
    return makeError("{0}: the emulator's CUDA runtime cannot link this program: {1}", what, line);
  }
  return makeError("{0}: {1} failed ({2}): {3}", what, argv[0], result->describe(), text.take_front(1000));
}

/// From Clang's device IR to an object file of this machine.
llvm::Error compileDevice(llvm::Module &module, const Toolchain &toolchain, uint32_t mode, bool registerAtStart,
                          const std::string &outObject) {
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = hostMachine();
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  if (llvm::NamedMDNode *flags = module.getModuleFlagsMetadata())
    flags->eraseFromParent(); // NVPTX's

  DeviceModule dm(module, mode, toolchain);
  if (mode & ModeCoverage)
    hashCode(dm);
  if (llvm::Error error = retargetModule(dm))
    return error;
  lowerAtomics(dm);
  ConditionMarks conditions(module);
  if (mode & ModeConditions)
    conditions.insert([&](const llvm::Instruction &inst) { return ownPlace(dm, inst); }, /*isHost=*/false);
  if (mode & ModeCoverage)
    markCode(dm);
  inlineDeviceFunctions(dm);
  if (mode & ModeCoverage)
    countCode(dm);
  if (mode & ModeConditions)
    conditions.emit(/*isHost=*/false);
  lowerIntrinsics(dm);
  if (mode & ModeCoverage)
    for (Kernel &kernel : dm.kernels)
      kernel.dataDecides = dataDecidesCourse(*kernel.body);
  layOutShared(dm);
  analyzeWaiting(dm);
  if (mode & ModeShadow)
    instrumentShadow(dm);
  lowerBrainFloats(module);
  if (mode & ModeTrace) {
    // What is still called is recursive. Its first parameter, the context, must be there for the instrumentation, also
    // where nothing uses it yet: nobody changes the signature of what others may see.
    for (llvm::Function &f : module)
      if (!f.isDeclaration() && f.hasLocalLinkage() && !f.use_empty()) {
        f.setLinkage(llvm::GlobalValue::ExternalLinkage);
        f.setVisibility(llvm::GlobalValue::HiddenVisibility);
      }
    optimize(module, **machine, Level::Device);
    instrumentTrace(dm);
  }
  if (mode & (ModeBounds | ModeVerify | ModeShadow))
    dropUnrollHints(module);
  if (mode & ModeVerify)
    findWrites(dm);
  if (mode & (ModeBounds | ModeVerify))
    instrumentAccesses(dm);
  emitTables(dm, registerAtStart);
  llvm::StripDebugInfo(module);
  std::string broken;
  llvm::raw_string_ostream stream(broken);
  if (llvm::verifyModule(module, &stream))
    return makeError("internal error: the emulator built invalid code: {0}", broken.substr(0, 500));
  optimize(module, **machine, mode & ModeTrace ? Level::Cleanup : mode & ModeShadow ? Level::HostScalar : Level::Host);
  findReachableCode(dm);
  conditions.describe();
  return writeObject(module, **machine, outObject);
}

/// From Clang's host IR to an object file that tells how near its conditions come to their outcomes.
llvm::Error compileHost(llvm::Module &module, const Toolchain &toolchain, const std::string &outObject) {
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = hostMachine(/*native=*/false);
  if (!machine)
    return machine.takeError();
  std::map<const llvm::Function *, uint64_t> hashes;
  for (llvm::Function &f : module)
    if (!f.isDeclaration())
      hashes[&f] = llvm::StructuralHash(f, /*DetailedHash=*/true);
  promoteLocals(module);
  const SystemFolders systemFolders(toolchain);
  ConditionMarks conditions(module);
  auto placeOf = [&](const llvm::Instruction &inst) -> std::optional<CodePlace> {
    const llvm::DILocation *place = inst.getDebugLoc();
    if (!place || !place->getLine() || systemFolders.hold(*place))
      return std::nullopt;
    const llvm::Function &f = *inst.getFunction();
    return CodePlace{functionName(place, f), filePath(*place), place->getLine(), hashes.at(&f)};
  };
  conditions.insert(placeOf, /*isHost=*/true);
  conditions.emit(/*isHost=*/true);
  llvm::StripDebugInfo(module);
  optimize(module, **machine, Level::Host);
  conditions.describe();
  return writeObject(module, **machine, outObject);
}

/// LLVM's remarks and warnings are about our own intermediate code and mean nothing to a user.
class Silence : public llvm::DiagnosticHandler {
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override { return info.getSeverity() != llvm::DS_Error; }
};

bool isCudaLibrary(llvm::StringRef flag) {
  static const llvm::StringSet<> names = {"cudart",    "cudart_static", "cuda",       "cudadevrt", "nvrtc",
                                          "culibos",   "cublas",        "cublasLt",   "cufft",     "curand",
                                          "cusolver",  "cusparse",      "nvToolsExt", "nvml",      "nvidia-ml",
                                          "nvJitLink", "npp",           "nppc",       "cudnn",     "cupti"};
  return flag.consume_front("-l") && names.contains(flag);
}

} // namespace

llvm::Error optiml::emu::buildReplayModule(const std::string &path, const std::optional<std::string> &text,
                                           const CompileOptions &options, const Toolchain &toolchain, uint32_t mode,
                                           const std::string &outSharedObject) {
  return buildReplayModules(path, text, options, toolchain, {{mode, outSharedObject}});
}

llvm::Error optiml::emu::buildReplayModules(const std::string &path, const std::optional<std::string> &text,
                                            const CompileOptions &options, const Toolchain &toolchain,
                                            const std::vector<std::pair<uint32_t, std::string>> &outputs) {
  llvm::Expected<TempDir> scratch = TempDir::create("optiml-module");
  if (!scratch)
    return scratch.takeError();
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<Silence>());
  llvm::Expected<std::unique_ptr<llvm::Module>> module = emitDeviceModule(path, text, options, toolchain, context);
  if (!module)
    return module.takeError();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto &[mode, outSharedObject] = outputs[i];
    // Instrumentation rewrites the module: all but the last work on a copy.
    std::unique_ptr<llvm::Module> copy = i + 1 < outputs.size() ? llvm::CloneModule(**module) : std::move(*module);
    std::string object = scratch->file("device" + std::to_string(i) + ".o");
    if (llvm::Error error = compileDevice(*copy, toolchain, mode, /*registerAtStart=*/false, object))
      return error;
    if (llvm::Error error = runLinker({toolchain.hostCxx, "-shared", "-o", outSharedObject, object, "-lm"}, path))
      return error;
  }
  return llvm::Error::success();
}

std::optional<std::string> ProgramBuilder::textOf(const std::string &path) const {
  auto found = texts.find(path);
  return found == texts.end() ? std::nullopt : std::optional(found->second);
}

llvm::Expected<std::unique_ptr<llvm::Module>> ProgramBuilder::deviceCode(const std::string &path,
                                                                         llvm::LLVMContext &context) {
  std::string &bitcode = device[path];
  if (!bitcode.empty())
    return llvm::parseBitcodeFile(llvm::MemoryBufferRef(bitcode, path), context);
  auto module = emitDeviceModule(path, textOf(path), options, toolchain, context);
  if (module) {
    llvm::raw_string_ostream stream(bitcode);
    llvm::WriteBitcodeToFile(**module, stream);
  }
  return module;
}

llvm::Expected<std::string> ProgramBuilder::hostObject(const std::string &path, uint32_t mode,
                                                       llvm::LLVMContext &context) {
  std::string &object = hosts[{path, mode & ModeCoverage ? mode & (ModeCoverage | ModeConditions) : 0}];
  if (!object.empty())
    return object;
  const std::string wanted = scratch->file("host" + std::to_string(number++) + ".o");
  if (mode & ModeCoverage) {
    auto module = emitHostModule(path, textOf(path), options, toolchain, mode & ModeConditions, context);
    if (!module)
      return module.takeError();
    if (llvm::Error error = compileHost(**module, toolchain, wanted))
      return std::move(error);
  } else if (llvm::Error error = emitHostObject(path, textOf(path), options, toolchain, wanted)) {
    return std::move(error);
  }
  return object = wanted;
}

llvm::Expected<std::string> ProgramBuilder::plainObject(const std::string &path) {
  std::string &object = hosts[{path, 0}];
  if (!object.empty())
    return object;
  const std::string wanted = scratch->file("extra" + std::to_string(number++) + ".o");
  std::vector<std::string> compile = {
      toolchain.hostCxx, "-c", "-O2", "-fPIC", "-I" + toolchain.cudaPath + "/include", "-o", wanted};
  bool isC = llvm::sys::path::extension(path) == ".c";
  for (const std::string &flag : options.frontendFlags)
    if (!isC || !llvm::StringRef(flag).starts_with("-std="))
      compile.push_back(flag);
  if (isC)
    compile.insert(compile.end(), {"-x", "c"});
  compile.push_back(path);
  llvm::Expected<ProcessResult> result = runProcess(compile);
  if (!result)
    return result.takeError();
  if (!result->ok())
    return makeError("{0}: {1} failed: {2}", path, toolchain.hostCxx, llvm::StringRef(result->err).take_front(2000));
  return object = wanted;
}

llvm::Error ProgramBuilder::build(uint32_t mode, const std::string &outExecutable) {
  if (!scratch) {
    llvm::Expected<TempDir> dir = TempDir::create("optiml-program");
    if (!dir)
      return dir.takeError();
    scratch = std::move(*dir);
  }
  std::string runtime = toolchain.libDir + "/liboptiml-cudart.a";
  if (!llvm::sys::fs::exists(runtime))
    return makeError("the emulator's CUDA runtime {0} is missing; build the target optiml-cudart", runtime);

  std::vector<std::string> link = {toolchain.hostCxx, "-o", outExecutable};
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<Silence>());
  auto add = [&](llvm::Expected<std::string> object) {
    if (object)
      link.push_back(*object);
    return object.takeError();
  };
  auto addDevice = [&](llvm::Module &module) {
    link.push_back(scratch->file("device" + std::to_string(number++) + ".o"));
    return compileDevice(module, toolchain, mode, /*registerAtStart=*/true, link.back());
  };
  std::unique_ptr<llvm::Module> whole; // with relocatable device code, one module for all sources
  for (const std::string &path : options.inputs) {
    if (llvm::Error error = add(hostObject(path, mode, context)))
      return error;
    llvm::Expected<std::unique_ptr<llvm::Module>> module = deviceCode(path, context);
    if (!module)
      return module.takeError();
    if (!options.relocatable) {
      if (llvm::Error error = addDevice(**module))
        return error;
    } else if (!whole) {
      whole = std::move(*module);
    } else if (llvm::Linker::linkModules(*whole, std::move(*module))) {
      return makeError("{0}: its device code cannot be linked with that of the other sources", path);
    }
  }
  if (whole)
    if (llvm::Error error = addDevice(*whole))
      return error;
  for (const std::string &path : options.hostInputs)
    if (llvm::Error error = add(plainObject(path)))
      return error;
  link.insert(link.end(), options.linkInputs.begin(), options.linkInputs.end());
  link.push_back(runtime);
  for (const std::string &flag : options.libraries)
    if (!isCudaLibrary(flag))
      link.push_back(flag);
  link.insert(link.end(), {"-lpthread", "-ldl", "-lm"});
  return runLinker(link, options.inputs.empty() ? outExecutable : options.inputs.front());
}

llvm::Error optiml::emu::buildProgram(const CompileOptions &options, const std::map<std::string, std::string> &texts,
                                      const Toolchain &toolchain, uint32_t mode, const std::string &outExecutable) {
  return ProgramBuilder(options, texts, toolchain).build(mode, outExecutable);
}
