//===- CodeGen.cpp - device IR and host objects from CUDA text ------------===//
#include "optiml/Frontend/CodeGen.h"
#include "optiml/Frontend/ClangRun.h"
#include "optiml/Support/Error.h"
#include "clang/CodeGen/CodeGenAction.h"
#include "llvm/Support/TargetSelect.h"
#include <mutex>

using namespace optiml;

static void initializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
  });
}

static llvm::Expected<std::unique_ptr<llvm::Module>>
emitModule(const ClangRun &run, const CompileOptions &options, const Toolchain &toolchain, llvm::LLVMContext &context) {
  initializeTargets();
  clang::EmitLLVMOnlyAction action(&context);
  if (llvm::Error error = runClang(run, options, toolchain, action))
    return std::move(error);
  std::unique_ptr<llvm::Module> module = action.takeModule();
  if (!module)
    return makeError("{0}: Clang emitted no code", run.path);
  return std::move(module);
}

llvm::Expected<std::unique_ptr<llvm::Module>>
optiml::emitDeviceModule(const std::string &path, const std::optional<std::string> &text, const CompileOptions &options,
                         const Toolchain &toolchain, llvm::LLVMContext &context) {
  ClangRun run;
  run.path = path;
  run.text = text;
  run.view = View::Device;
  run.defineLibdevice = true;
  // Unoptimized, but without the optnone attribute that -O0 brings, nor the ban on unrolling that -O1 does.
  run.extraArgs = {"-O1", "-funroll-loops", "-Xclang", "-disable-llvm-passes", "-gline-tables-only"};
  return emitModule(run, options, toolchain, context);
}

static ClangRun hostRun(const std::string &path, const std::optional<std::string> &text) {
  ClangRun run;
  run.path = path;
  run.text = text;
  run.view = View::Host;
  // Clang writes registration calls only when it has device code to embed; an empty file will do. Lenient where the
  // usual host compiler, which does not optimize by default, would be.
  run.extraArgs = {"-O2",      "-fwrapv", "-fno-strict-aliasing",     "-fno-delete-null-pointer-checks",
                   "-fPIC",    "-Xclang", "-fcuda-include-gpubinary", "-Xclang",
                   "/dev/null"};
  run.mayPrecompile = false; // a host is compiled once
  return run;
}

llvm::Expected<std::unique_ptr<llvm::Module>>
optiml::emitHostModule(const std::string &path, const std::optional<std::string> &text, const CompileOptions &options,
                       const Toolchain &toolchain, bool strict, llvm::LLVMContext &context) {
  ClangRun run = hostRun(path, text);
  if (strict)
    run.extraArgs.push_back("-fno-wrapv");
  for (const char *arg : {"-Xclang", "-disable-llvm-passes", "-gline-tables-only"})
    run.extraArgs.push_back(arg);
  return emitModule(run, options, toolchain, context);
}

llvm::Error optiml::emitHostObject(const std::string &path, const std::optional<std::string> &text,
                                   const CompileOptions &options, const Toolchain &toolchain,
                                   const std::string &outObject) {
  initializeTargets();
  ClangRun run = hostRun(path, text);
  run.outputFile = outObject;
  clang::EmitObjAction action;
  return runClang(run, options, toolchain, action);
}
