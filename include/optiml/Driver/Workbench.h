//===- Workbench.h - one program, open for work -----------------*- C++ -*-===//
//
// What a search knows of a program, for somebody who decides each step: launches, legal actions, the original's times,
// and the same judge. The program has been observed once; variants are evaluated as in a search.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_DRIVER_WORKBENCH_H
#define OPTIML_DRIVER_WORKBENCH_H

#include "optiml/Core/KernelText.h"
#include "optiml/Driver/Flags.h"
#include "optiml/Evaluate/Verify/Verifier.h"
#include "optiml/Frontend/Toolchain.h"
#include "optiml/Search/Search.h"
#include <nlohmann/json.hpp>

namespace optiml {

struct WorkbenchRequest {
  std::string path;                   ///< of the source
  std::vector<std::string> nvccFlags; ///< the source is not among them
  std::string programArguments;       ///< as one shell-like text
  std::string kernel;                 ///< POSIX extended regular expression: only these kernels; empty: all
  BackendChoice backend = BackendChoice::Auto;
  double seconds = 120; ///< what observing it may take takes a share of this
};

class Workbench {
public:
  /// Observes the program and evaluates the original; takes seconds. `stage` is told what goes on.
  static llvm::Expected<std::unique_ptr<Workbench>> open(const WorkbenchRequest &request, const Toolchain &toolchain,
                                                         const std::atomic<bool> *cancel,
                                                         const std::function<void(const std::string &)> &stage);
  ~Workbench();
  static const char *version(); ///< of OptiML

  bool measures() const;
  const Measurement &baseline() const;
  /// The GPU, the rules of arithmetic, kernels with their sources and launches, kernels that are left as they are.
  nlohmann::json about() const;
  /// ... what may be done to each, what one would expect and does not apply, and what a search would try first.
  nlohmann::json diagnosis();
  /// The user's file.
  const std::string &source() const;

  /// The variant that a recipe leads to; the error names the first action that does not apply, and why.
  llvm::Expected<SearchState> apply(const Recipe &recipe);
  /// What nvcc makes of a variant: `kernels` with their resources, and in `text` the PTX ("ptx") or the machine code
  /// ("sass") of the whole file, which needs nvdisasm of the CUDA Toolkit.
  struct Code {
    nlohmann::json kernels;
    std::string text;
  };
  llvm::Expected<Code> compile(const Variant &variant, const std::string &kind);
  /// Compiles, verifies and times. From any thread.
  Measurement evaluate(const Variant &variant);
  /// The same, with everything that a search leaves until the variant leads: all checks, and all counters.
  Measurement examine(const Variant &variant);
  /// Kernels whose new text no launch that is timed has run: its conditions hold for none of them.
  std::vector<std::string> textsThatDidNotRun(const Variant &variant, const Measurement &measured) const;
  /// Lets replace-body actions use the text; returns its name.
  std::string addText(KernelText text);
  /// The texts that a recipe needs, by name.
  nlohmann::json textsOf(const Recipe &recipe) const;

  struct ProgramAnswer {
    VerifyReport report;
    double before = 0, after = 0; ///< predicted seconds of all kernels; 0: not known
  };
  /// A changed version of the whole program, host code included. It runs in the sandbox on the emulator, never on a
  /// GPU. The error says why it is not even tried.
  llvm::Expected<ProgramAnswer> compareProgram(const std::string &changed, double seconds,
                                               const std::atomic<bool> *cancel,
                                               const std::function<void(const std::string &)> &stage);

  struct TuneLimits {
    unsigned evaluations = 0;
    double seconds = 0;
    const std::atomic<bool> *cancel = nullptr;
  };
  /// Tree search that begins with this recipe.
  llvm::Expected<SearchResult> tune(const Recipe &from, const TuneLimits &limits, SearchObserver *observer);

  /// A variant that was evaluated, as a program.
  struct Outcome {
    std::string text;       ///< the whole program
    nlohmann::json summary; ///< as in a trajectory's result
  };
  /// Verifies all that a search verifies of its winner, and the whole program. The error says what speaks against it.
  llvm::Expected<Outcome> conclude(const Recipe &recipe);

private:
  Workbench();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace optiml

#endif
