//===- TimeStepText.h - CUDA for several steps of a stencil -----*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_TIMESTEPTEXT_H
#define OPTIML_LIB_DRIVER_TIMESTEPTEXT_H

#include "LoopText.h"

namespace optiml {

/// The kernel that does up to `tile.steps` steps of a tile, under the name PREFIX_steps.
std::string timeStepKernel(const TimeStep &step, const TimeTile &tile, const std::string &prefix);
/// Members of the class that takes a loop's launches (LoopText.cpp): how launches follow one another, and what replaces
/// them.
std::string timeStepMembers(const TimeStep &step, const TimeTile &tile, const LoopTextNames &names,
                            const LoopCopyNames &copy);
/// Members for the launches that copy cells back, to be filled in.
extern const char addCopyText[], copyMembersText[];
/// Its member `used`.
std::string timeStepUsed(const TimeStep &step);

} // namespace optiml

#endif
