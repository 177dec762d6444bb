//===- Interrupt.h - Ctrl-C ends a program's work, not the program -*- C++ -*-===//
#ifndef OPTIML_SUPPORT_INTERRUPT_H
#define OPTIML_SUPPORT_INTERRUPT_H

#include <atomic>

namespace optiml {

/// From the first call on, SIGINT and SIGTERM raise this flag. A second one ends the program.
const std::atomic<bool> &interrupted();

} // namespace optiml

#endif
