//===- KernelSpace.h - the legal actions of a program -----------*- C++ -*-===//
//
// The ActionSpace of one program: the search (or a recipe on a command line) walks from the original to variants by
// actions on its kernels. Each step keeps the kernel's tree beside its text; read(print(tree)) == tree is a property
// test.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_ACTIONSPACE_KERNELSPACE_H
#define OPTIML_ACTIONSPACE_KERNELSPACE_H

#include "optiml/Core/KernelText.h"
#include "optiml/Frontend/Program.h"
#include "optiml/Transforms/Transform.h"
#include <functional>
#include <map>

namespace optiml {

/// A variant that remembers its kernels' trees.
struct TreeVariant : Variant {
  std::map<std::string, KernelState> kernels; ///< by original name; also those not rewritten yet
};

/// How new kernel text enters (KernelText.h).
struct KernelTextRules {
  std::shared_ptr<const KernelTexts> texts;
  /// Parses a whole program in the place of the user's file, device view.
  std::function<llvm::Expected<std::unique_ptr<Program>>(const std::string &text)> parse;
  bool allowAssembly = false;
};

class KernelSpace : public ActionSpace {
public:
  struct Skipped {
    std::string kernel, reason; ///< the reason names file and line
  };
  /// Reads the kernels of `program` (a device view) for which `wanted` holds. `hints` tells what is known of their
  /// launches. Kernels that cannot be read are listed in `skipped`.
  static llvm::Expected<std::unique_ptr<KernelSpace>>
  create(const Program &program, const std::function<bool(const KernelDecl &)> &wanted,
         const std::function<LaunchHints(const KernelDecl &)> &hints);
  /// Lets replace-body actions take text from a table. Without it there is no such action.
  void acceptTexts(KernelTextRules rules) { textRules = std::move(rules); }
  /// Leaves out actions after which `check` refuses the kernel's rewrite: because it would run for no launch, say.
  void check(std::function<llvm::Error(const KernelRewrite &)> check) { checkRewrite = std::move(check); }
  /// The launches that a kernel's variants are tested on, as a condition: where text from outside may run.
  void setExercised(const std::string &kernel, const std::string &condition);
  /// The state of a kernel before any rewrite, or null.
  const KernelState *kernel(const std::string &name) const;
  llvm::Expected<SearchState> root() override;
  llvm::Expected<SearchState> apply(const SearchState &state, const Action &action) override;
  /// Applies a whole recipe; the error names the first action that does not apply.
  llvm::Expected<SearchState> applyAll(const Recipe &recipe);
  const std::vector<Skipped> &skipped() const { return skippedKernels; }
  /// Why no transform applies to the kernel but those that only tune, not even once the block's shape is fixed: the
  /// main reasons. Empty where one does. It lists the kernel's sites anew.
  std::string obstacles(const std::string &kernel) const;
  bool empty() const { return kernels.empty(); }
  std::vector<std::string> kernelNames() const;

private:
  /// `before`: what was legal before the kernel `changed` became another one; null where all are new.
  SearchState makeState(std::shared_ptr<TreeVariant> variant, const LegalActions *before = nullptr,
                        const std::string &changed = "") const;
  static void finish(TreeVariant &variant);
  void requireRoom(KernelState &state) const;
  llvm::Expected<KernelState> replaceKernelBody(const KernelState &state, const Action &action) const;

  KernelTextRules textRules;
  std::function<llvm::Error(const KernelRewrite &)> checkRewrite;
  std::string path, text;
  bool setsAttributes = false; ///< the program may raise kernels' limits of shared memory
  std::map<std::string, KernelState> kernels;
  std::vector<Skipped> skippedKernels;
};

} // namespace optiml

#endif
