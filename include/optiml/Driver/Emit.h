//===- Emit.h - the optimized program as CUDA source ------------*- C++ -*-===//
//
// The user's file with, beside each optimized kernel, its twin and a dispatcher that tests the recorded conditions and
// falls back to the original; launch sites call the dispatcher. Plain CUDA that needs nothing of OptiML.
//
// In the optimized program OPTIML_DISABLE=<kernel>|all restores the original kernels, and OPTIML_TRACE=1 counts at exit
// which path ran how often.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_DRIVER_EMIT_H
#define OPTIML_DRIVER_EMIT_H

#include "optiml/Core/Variant.h"
#include "optiml/Frontend/LaunchLoops.h"
#include "optiml/Frontend/LaunchRuns.h"
#include "optiml/Frontend/Program.h"
#include "optiml/Transforms/FuseKernels.h"
#include "optiml/Transforms/LaunchIdioms.h"

namespace optiml {

struct EmittedProgram {
  std::string text;                 ///< with #line directives, so that messages and __LINE__ name the user's lines
  unsigned dispatched = 0;          ///< launch sites that call a dispatcher
  std::vector<std::string> remarks; ///< "file:line: …": sites that keep the original, and why
};

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

/// `host` is a host view of the original text, `fileName` what the user calls it. `summaries` gives a comment line for each rewritten kernel.
llvm::Expected<EmittedProgram> emitProgram(const Variant &variant, const Program &host, const std::string &fileName,
                                           const std::map<std::string, std::string> &summaries,
                                           const std::vector<LoopRewrite> &loops = {});

/// The loops of launches in a program that can be replaced as a whole, and of the others why not.
struct FoundLoops {
  std::vector<LoopRewrite> rewrites;
  std::vector<std::string> notes; ///< "line 12: the loop of launches of step stays: …"
};
/// `device` and `host` are two views of one text. `strictFloat`: sums of floating-point numbers keep their order.
FoundLoops findLoopRewrites(const Program &device, const Program &host, bool strictFloat);

/// Launches that follow one another and become one launch of a new kernel.
struct Fusion {
  FusedKernel kernel;
  std::vector<KernelState> parts; ///< the originals before any rewrite, in the order of their launches
  std::vector<unsigned> launches;   ///< LaunchSite::begin, one for each part
};

struct FoundFusions {
  std::vector<Fusion> fusions;
  std::vector<std::string> notes; ///< "line 12: …": why launches that follow one another stay apart
};
/// `device` and `host` are two views of one text. `wanted` tells which kernels may be fused. `overRows`: also where a kernel
/// has to get fewer threads for it (fuseOverRows).
FoundFusions findFusions(const Program &device, const Program &host, bool strictFloat,
                         const std::function<bool(const std::string &kernel)> &wanted, bool overRows);

/// The user's file with the fused kernels, which are launched where their parts' launches are alike. It can be emitted
/// again with rewrites of the fused kernels.
llvm::Expected<EmittedProgram> emitFusions(const Program &host, const std::string &fileName, const std::vector<Fusion> &fusions);

/// The emitted text for people.
std::string withoutLineDirectives(const std::string &emitted);

} // namespace optiml

#endif
