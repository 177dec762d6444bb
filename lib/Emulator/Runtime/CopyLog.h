//===- CopyLog.h - what a program reads back from the device ----*- C++ -*-===//
//
// With OPTIML_EMU_COPY_LOG set, every copy to the host is appended to that file, and, when the program ends or frees
// it, every managed, mapped or registered allocation that a kernel had as an argument. Two versions of a program are
// compared by their logs. The format is in include/optiml/Emulator/CopyRecord.h.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_RUNTIME_COPYLOG_H
#define OPTIML_RUNTIME_COPYLOG_H

#include "Scheduler.h"

namespace optiml::emu {

/// Remembers which kernel used which allocation.
void copyLogBefore(const Launch &launch);
void logCopy(const Allocation &from, const void *src, size_t pitch, size_t width, size_t height);
/// Logs what memory that the host sees without a copy holds when it goes.
void logLastContent(const Allocation &allocation);
/// What a kernel made of an argument (`name` in words, of type `pointerType`) on fresh inputs; `inputs` identifies them.
void logFreshResult(const Allocation &allocation, const char *kernel, const std::string &name,
                    const std::string &pointerType, uint64_t inputs);
/// A buffer from the host got other contents.
void logInput(uint64_t contents);
void finishCopyLog();

} // namespace optiml::emu

#endif
