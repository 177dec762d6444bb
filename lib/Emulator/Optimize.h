//===- Optimize.h - host machine, pipelines, object files -------*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_OPTIMIZE_H
#define OPTIML_LIB_EMULATOR_OPTIMIZE_H

#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>
#include <string>

namespace optiml::emu {

/// What LLVM's passes know of a module, as a PassBuilder makes it.
struct PassAnalyses {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  explicit PassAnalyses(llvm::PassBuilder &builder) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
  }
};

/// This machine, position-independent code. `native`: with all its features.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> hostMachine(bool native = true);

enum class Level {
  Cleanup,    ///< after instrumentation of already optimized code
  Device,     ///< like a GPU compiler: everything but vectorization, and eager unrolling
  Host,       ///< full, vectorized
  HostScalar, ///< full, without vectorization
};
void optimize(llvm::Module &module, llvm::TargetMachine &machine, Level level);

/// Makes values of local variables, and nothing else.
void promoteLocals(llvm::Module &module);

/// Forgets "#pragma unroll". Instrumented code is made of calls: unrolling it costs much compile time and gains
/// nothing.
void dropUnrollHints(llvm::Module &module);

llvm::Error writeObject(llvm::Module &module, llvm::TargetMachine &machine, const std::string &path);

} // namespace optiml::emu

#endif
