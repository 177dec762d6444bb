//===- FuseLoops.cpp - loops over the same iterations become one ----------===//
//
// fuse-loops[kernel]: loops of a thread that follow one another, with the same iterations, become one loop. What both
// of them read is loaded once, their chains of sums run beside each other, and a tile that is staged for one serves the
// other.
//
// Example:
//   float ab = 0;                                  float ab = 0, aa = 0;
//   for (int i = 0; i < n; ++i) ab += a[i] * b[i];   for (int i = 0; i < n; ++i) {
//   float aa = 0;                                      ab += a[i] * b[i];
//   for (int i = 0; i < n; ++i) aa += a[i] * a[i];     aa += a[i] * a[i];
//                                                    }
//
// Legal: the loops have equal bounds and steps, which do not change, and none is left early. Neither uses a variable
// that the other changes. What one writes, the other accesses in the same iteration only, or not at all: other arrays
// do not overlap (proved, or a condition). Declarations between the loops move before or behind both.
//
// Refuses: loops with barriers or calls whose effects are not known; other statements between the loops.
//
//===----------------------------------------------------------------------===//
#include "Program/FuseKernels.h"
#include "Transforms.h"
#include "optiml/Analysis/Disjoint.h"

using namespace optiml;

namespace {
class FuseLoops : public Transform {
public:
  llvm::StringRef name() const override { return "fuse-loops"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override { return kernelSite(*this, state, {{}}); }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &) const override {
    KernelState result = state;
    auto kernel = state.tree->clone();
    const KernelModel model(*state.tree, state.pinnedBlock());
    const unsigned merged = mergeLoops(*kernel, {}, [&](const std::string &a, const std::string &b) {
      return !llvm::errorToBool(requireDisjoint(result, model, a, b)); // which records nothing where it fails
    });
    if (!merged)
      return notApplicable("no two loops with the same iterations follow one another and need nothing of each other");
    result.tree = kernel;
    return result;
  }
};
} // namespace

DEFINE_TRANSFORM(FuseLoops)
