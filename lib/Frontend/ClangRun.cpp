//===- ClangRun.cpp - Clang in this process -------------------------------===//
#include "optiml/Frontend/ClangRun.h"
#include "PrecompiledIncludes.h"
#include "optiml/Support/Error.h"
#include "clang/Basic/DiagnosticIDs.h"
#include "clang/Driver/CreateInvocationFromArgs.h"
#include "clang/Frontend/FrontendAction.h"
#include "clang/Lex/PreprocessorOptions.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/VirtualFileSystem.h"

using namespace optiml;

namespace {

constexpr const char *declarationsFile = "/optiml/declarations.cuh";

/// Keeps the errors as text, and the few warnings that tell of a program that would be understood wrongly.
class ErrorCollector : public clang::DiagnosticConsumer {
public:
  explicit ErrorCollector(bool warningsMatter) : warningsMatter(warningsMatter) {}

  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic &info) override {
    DiagnosticConsumer::HandleDiagnostic(level, info);
    llvm::SmallString<256> message;
    info.FormatDiagnostic(message);
    bool managed = level == clang::DiagnosticsEngine::Warning && warningsMatter && ignoresManaged(message);
    if (managed)
      message = managedIsUnsupported;
    if (level < clang::DiagnosticsEngine::Error && !managed)
      return;
    if (message.str().starts_with("kernel launch from __device__ or __global__ function"))
      message = "dynamic parallelism (a kernel that launches a kernel) is not supported";
    if (++count > 8)
      return;
    if (!text.empty())
      text += '\n';
    if (info.hasSourceManager() && info.getLocation().isValid()) {
      clang::PresumedLoc place = info.getSourceManager().getPresumedLoc(info.getLocation());
      if (place.isValid())
        text += llvm::formatv("{0}:{1}:{2}: ", place.getFilename(), place.getLine(), place.getColumn());
    }
    text += message.str();
  }

  unsigned count = 0;
  std::string text;

private:
  bool warningsMatter;
};

} // namespace

llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> optiml::clangFileSystem() {
  auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  memory->addFile(declarationsFile, 0, llvm::MemoryBuffer::getMemBuffer(missingDeclarations));
  memory->addFile(libdeviceFile, 0, llvm::MemoryBuffer::getMemBuffer(libdeviceDefinitions));
  auto overlay = llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(llvm::vfs::getRealFileSystem());
  overlay->pushOverlay(memory);
  return overlay;
}

std::vector<std::string> optiml::clangCommand(const CompileOptions &options, const Toolchain &toolchain, View view) {
  std::vector<std::string> args = {toolchain.resourceDir + "/../../../bin/clang++"};
  llvm::append_range(args, options.clangArgs(toolchain, view));
  // Host code as lenient as the usual host compiler takes it, which does not optimize by default.
  if (view == View::Host)
    args.insert(args.end(), {"-O2", "-fwrapv", "-fno-strict-aliasing", "-fno-delete-null-pointer-checks", "-fPIC"});
  else
    args.push_back("-O1");
  args.insert(args.end(), {"-include", declarationsFile});
  return args;
}

llvm::Error optiml::runClang(const ClangRun &run, const CompileOptions &options, const Toolchain &toolchain,
                             clang::FrontendAction &action) {
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  if (run.text) {
    buffer = llvm::MemoryBuffer::getMemBufferCopy(*run.text, run.path);
  } else {
    auto read = llvm::MemoryBuffer::getFile(run.path);
    if (!read)
      return makeError("{0}: {1}", run.path, read.getError().message());
    buffer = std::move(*read);
  }

  std::vector<std::string> args = clangCommand(options, toolchain, run.view);
  llvm::append_range(args, run.languageArgs);
  const std::vector<std::string> flags = args;
  if (run.defineLibdevice)
    args.insert(args.end(), {"-include", libdeviceFile});
  llvm::append_range(args, run.codeGenArgs);
  args.push_back(run.path);
  std::string key = llvm::join(args, llvm::StringRef("\0", 1));
  auto argPointers = llvm::map_to_vector(args, [](const std::string &arg) { return arg.c_str(); });

  ErrorCollector collector(run.warningsMatter);
  clang::DiagnosticOptions diagnosticOptions;
  auto makeDiagnostics = [&](clang::DiagnosticOptions &diagOptions) {
    return llvm::makeIntrusiveRefCnt<clang::DiagnosticsEngine>(clang::DiagnosticIDs::create(), diagOptions, &collector,
                                                               /*ShouldOwnClient=*/false);
  };
  clang::CreateInvocationOptions createOptions;
  createOptions.Diags = makeDiagnostics(diagnosticOptions);
  llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> vfs = clangFileSystem();
  createOptions.VFS = vfs;
  std::shared_ptr<clang::CompilerInvocation> invocation = clang::createInvocation(argPointers, createOptions);
  if (!invocation || collector.count)
    return makeError("{0}: Clang does not accept the command line: {1}", run.path, collector.text);
  invocation->getFrontendOpts().DisableFree = false;
  invocation->getFrontendOpts().OutputFile = run.outputFile;
  invocation->getCodeGenOpts().DisableFree = false;

  precompileIncludes(*invocation, flags, buffer->getBuffer(), vfs);
  std::shared_ptr<clang::PrecompiledPreamble> preamble;
  if (run.mayPrecompile)
    preamble = findPreamble(key, *invocation, *buffer, vfs);
  if (preamble) {
    preamble->AddImplicitPreamble(*invocation, vfs, buffer.get());
  } else {
    invocation->getPreprocessorOpts().addRemappedFile(run.path, buffer.get());
  }
  invocation->getPreprocessorOpts().RetainRemappedFileBuffers = true; // `buffer` owns it

  clang::CompilerInstance instance(invocation);
  instance.setVirtualFileSystem(vfs);
  instance.setDiagnostics(makeDiagnostics(instance.getDiagnosticOpts()));
  clang::ProcessWarningOptions(instance.getDiagnostics(), instance.getDiagnosticOpts(), *vfs);
  instance.createFileManager();
  std::string verbose;
  llvm::raw_string_ostream verboseStream(verbose);
  instance.setVerboseOutputStream(verboseStream);
  bool done = instance.ExecuteAction(action);
  if (collector.count)
    return makeError(collector.text);
  if (!done)
    return makeError("{0}: Clang could not process the file", run.path);
  return llvm::Error::success();
}
