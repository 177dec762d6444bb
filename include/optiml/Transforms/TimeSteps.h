//===- TimeSteps.h - steps in time of a stencil -----------------*- C++ -*-===//
//
// A kernel that computes each cell of a grid anew from its neighbours, out of place, and that a loop on the host
// launches again and again with its buffers exchanged. A block can do several of these steps at once: it loads a tile
// with what the steps need around it, and keeps what lies between two steps in shared memory.
//
// What is here is the step itself: which cells are computed, how far away they look, and the text that computes one
// from a tile. What launches it, and in which order, is asked at run time (LaunchIdioms.h).
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_TRANSFORMS_TIMESTEPS_H
#define OPTIML_TRANSFORMS_TIMESTEPS_H

#include "optiml/Core/LaunchRewrites.h"
#include "optiml/Transforms/Transform.h"

namespace optiml {

/// The step that the kernel is. NotApplicable tells why it is none.
llvm::Expected<TimeStep> recognizeTimeStep(const KernelState &state);

/// The tiles worth trying, the best guess first; none where no tile is large enough for two steps.
std::vector<TimeTile> timeTiles(const TimeStep &step);

} // namespace optiml

#endif
