//===- Emit.h - the optimized program as CUDA source ------------*- C++ -*-===//
//
// The user's file with, beside each optimized kernel, its twin and a dispatcher that tests the recorded conditions and
// falls back to the original; launch sites call the dispatcher. Plain CUDA that needs nothing of OptiML.
//
// In the optimized program OPTIML_DISABLE=<kernel>|all restores the original kernels, and OPTIML_TRACE=1 counts at exit
// which path ran how often.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EMIT_EMIT_H
#define OPTIML_EMIT_EMIT_H

#include "optiml/Core/LaunchRewrites.h"
#include "optiml/Frontend/LaunchLoops.h"
#include <set>

namespace optiml {

/// Loops on the host whose launches of one kernel are put off and replaced as a whole.
struct LoopRewrite {
  KernelRewrite kernel; ///< the original, as it is described for a rewrite of itself; its plan is not used
  LaunchIdiom idiom;
  std::vector<LaunchLoop> loops;
  /// The kernel that copies a stencil's new cells back after each step, where the buffers do not change places.
  struct CopyBack {
    KernelRewrite kernel;
    std::shared_ptr<const TimeStep> step;
  };
  std::optional<CopyBack> copyBack;
};

/// Launches that follow one another and become one launch of a new kernel.
struct Fusion {
  FusedKernel kernel;
  std::vector<KernelRewrite> parts;   ///< the originals, in the order of their launches
  std::vector<unsigned> launches;     ///< LaunchSite::begin, one for each part
  std::vector<LaunchRun::Loop> loops; ///< that parts stand in; `first` is an index into `parts`
};

struct EmittedProgram {
  std::string text;                 ///< with #line directives, so that messages and __LINE__ name the user's lines
  unsigned dispatched = 0;          ///< launch sites that call a dispatcher
  unsigned entries = 0;             ///< kernels whose dispatcher other files can call
  std::vector<std::string> remarks; ///< "file:line: …": sites that keep the original, and why
};

/// What stands around a new kernel.
enum class EmitStyle {
  Guarded, ///< a dispatcher that the environment can switch off, and that counts
  Plain,   ///< a function that tests the conditions and launches
  Accepted ///< the conditions are taken for true; the new kernel takes the original's place where nothing else needs it
};

/// `host` is a host view of the original text, `fileName` what the user calls it. `summaries` gives a comment line for
/// each rewritten kernel. Other files launch the kernels with the symbols `launchedElsewhere`, and find their
/// dispatchers (emitFarLaunches).
llvm::Expected<EmittedProgram> emitProgram(const Variant &variant, const Program &host, const std::string &fileName,
                                           const std::map<std::string, std::string> &summaries,
                                           const std::vector<LoopRewrite> &loops = {},
                                           const std::set<std::string> &launchedElsewhere = {},
                                           EmitStyle style = EmitStyle::Guarded);

/// The user's file, in which launches of kernels with these symbols, which other files define, call what emitProgram
/// has put beside the kernel. Where that file was not compiled by OptiML, they launch the kernel.
llvm::Expected<EmittedProgram> emitFarLaunches(const Program &host, const std::string &fileName,
                                               const std::set<std::string> &symbols);

/// The user's file with the fused kernels, which are launched where their parts' launches are alike. It can be emitted
/// again with rewrites of the fused kernels.
llvm::Expected<EmittedProgram> emitFusions(const Program &host, const std::string &fileName,
                                           llvm::ArrayRef<Fusion> fusions);

} // namespace optiml

#endif
