//===- CodeGen.cpp - device IR and host objects from CUDA text ------------===//
#include "optiml/Frontend/CodeGen.h"
#include "PointerFields.h"
#include "optiml/Frontend/ClangRun.h"
#include "optiml/Support/Error.h"
#include "clang/AST/ASTContext.h"
#include "clang/CodeGen/CodeGenAction.h"
#include "clang/CodeGen/ModuleBuilder.h"
#include "clang/Frontend/MultiplexConsumer.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Module.h"
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

namespace {

/// When code has been made: notes at kernels what their pointers point to.
class NotePointers : public clang::ASTConsumer {
public:
  explicit NotePointers(const clang::CodeGenAction &action) : action(action) {}

  void HandleTranslationUnit(clang::ASTContext &) override {
    clang::CodeGenerator *generator = action.getCodeGenerator();
    if (!generator || !generator->GetModule())
      return;
    for (llvm::Function &f : *generator->GetModule())
      if (f.getCallingConv() == llvm::CallingConv::PTX_Kernel && !f.isDeclaration())
        if (auto *kernel = llvm::dyn_cast_or_null<clang::FunctionDecl>(generator->GetDeclForMangledName(f.getName())))
          f.setMetadata(pointersMetadata, noteOf(f.getContext(), pointerFieldsOf(*kernel)));
  }

private:
  const clang::CodeGenAction &action;

  static llvm::MDNode *noteOf(llvm::LLVMContext &context, const std::vector<PointerField> &pointers) {
    std::vector<llvm::Metadata *> all;
    auto number = [&](uint64_t n) {
      return llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), n));
    };
    for (const PointerField &p : pointers)
      all.push_back(
          llvm::MDNode::get(context, {number(p.parameter), number(p.offset), llvm::MDString::get(context, p.pointee)}));
    return llvm::MDNode::get(context, all);
  }
};

class EmitDeviceCode : public clang::EmitLLVMOnlyAction {
public:
  using EmitLLVMOnlyAction::EmitLLVMOnlyAction;

protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance &compiler,
                                                        llvm::StringRef file) override {
    std::vector<std::unique_ptr<clang::ASTConsumer>> both;
    both.push_back(EmitLLVMOnlyAction::CreateASTConsumer(compiler, file));
    if (!both.front())
      return nullptr;
    both.push_back(std::make_unique<NotePointers>(*this));
    return std::make_unique<clang::MultiplexConsumer>(std::move(both));
  }
};

} // namespace

static llvm::Expected<std::unique_ptr<llvm::Module>> emitModule(const ClangRun &run, const CompileOptions &options,
                                                                const Toolchain &toolchain,
                                                                clang::EmitLLVMOnlyAction &action) {
  initializeTargets();
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
  // NotePointers comes after the code, and needs the tree.
  run.codeGenArgs = {"-funroll-loops",     "-Xclang", "-disable-llvm-passes",
                     "-gline-tables-only", "-Xclang", "-no-clear-ast-before-backend"};
  EmitDeviceCode action(&context);
  return emitModule(run, options, toolchain, action);
}

static ClangRun hostRun(const std::string &path, const std::optional<std::string> &text) {
  ClangRun run;
  run.path = path;
  run.text = text;
  run.view = View::Host;
  // Clang writes registration calls only when it has device code to embed; an empty file will do.
  run.codeGenArgs = {"-Xclang", "-fcuda-include-gpubinary", "-Xclang", "/dev/null"};
  run.mayPrecompile = false; // a host is compiled once
  return run;
}

llvm::Expected<std::unique_ptr<llvm::Module>>
optiml::emitHostModule(const std::string &path, const std::optional<std::string> &text, const CompileOptions &options,
                       const Toolchain &toolchain, bool strict, llvm::LLVMContext &context) {
  ClangRun run = hostRun(path, text);
  if (strict)
    run.languageArgs = {"-fno-wrapv"};
  run.codeGenArgs.insert(run.codeGenArgs.end(), {"-Xclang", "-disable-llvm-passes", "-gline-tables-only"});
  clang::EmitLLVMOnlyAction action(&context);
  return emitModule(run, options, toolchain, action);
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
