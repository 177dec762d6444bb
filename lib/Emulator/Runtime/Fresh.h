//===- Fresh.h - other inputs for an unchanged program ----------*- C++ -*-===//
#ifndef OPTIML_RUNTIME_FRESH_H
#define OPTIML_RUNTIME_FRESH_H

#include "Scheduler.h"

namespace optiml::emu {

/// With OPTIML_EMU_FRESH set: replaces the contents of the launch's buffers that the host wrote since the last kernel.
/// What they become depends on their content, type and the seed only, so that two versions of a program see the same.
void freshBefore(const Launch &launch);

} // namespace optiml::emu

#endif
