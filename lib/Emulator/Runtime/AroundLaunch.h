//===- AroundLaunch.h - what is done before and after launches --*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_AROUNDLAUNCH_H
#define OPTIML_LIB_EMULATOR_RUNTIME_AROUNDLAUNCH_H

#include "Scheduler.h"

namespace optiml::emu {

// With OPTIML_CAPTURE set, launches are classed by kernel, geometry, sizes of scalars and buffers; of each class the
// first is kept and, as the others come, those whose number is a power of two take the remaining places, so that the
// kept ones spread over the run whatever its length.

/// Around every launch of the program.
void captureBefore(const Launch &launch);
void captureAfter(const Launch &launch);
void captureFailed(); ///< in place of captureAfter
/// Writes workload.json with the final weights. Also called when the program exits.
void finishCapture();

// With OPTIML_EMU_COPY_LOG set, every copy to the host is appended to that file, and, when the program ends or frees
// it, every managed, mapped or registered allocation that a kernel had as an argument. Two versions of a program are
// compared by their logs. The format is in include/optiml/Emulator/CopyRecord.h.

/// Where there is to be one. Its end is written when the program ends.
void openCopyLog();
/// Remembers which kernel used which allocation.
void copyLogBefore(const Launch &launch);
void logCopy(const Allocation &from, const void *src, size_t pitch, size_t width, size_t height);
/// Logs what memory that the host sees without a copy holds when it goes.
void logLastContent(const Allocation &allocation);
/// What a kernel made of a buffer (`name` in words) of `element` (PointerDesc::pointee) on fresh inputs; `inputs`
/// identifies them.
void logFreshResult(const Allocation &allocation, const char *kernel, const std::string &name,
                    const std::string &element, uint64_t inputs);
/// A buffer from the host got `contents` (a hash). `line`: as envFreshTypes has it.
void logInput(uint64_t contents, const std::string &line);
void finishCopyLog();

/// With OPTIML_EMU_FRESH set, before the first launch of each kernel and geometry: runs it once on other contents of
/// its buffers, logs what comes out (logFreshResult), and puts everything back. The program itself notices nothing. The
/// contents depend on the kernel, the parameter and the seed, so that two versions of a program see the same. With
/// OPTIML_EMU_FRESH_HOST set, it is the program's own input that changes.
void freshBefore(const Launch &launch, unsigned workers);
/// The same for a buffer that is copied before a kernel has had it; where the types of buffers are known.
void freshBeforeCopy(Allocation &from);

/// What pointer arguments point into, what pointers in struct arguments and in those buffers reach (found by scanning
/// for values that look like pointers), and the module's variables; by address.
std::vector<Allocation *> reachableBuffers(const Launch &launch);

/// All pointers of a kernel, those to void too.
std::vector<PointerDesc> pointersOf(const KernelDesc &kernel);

/// A pointer in an argument. `offset`: in bytes, in an argument of class type.
uint64_t addressIn(const Launch &launch, uint32_t parameter, uint32_t offset);
/// The allocation that it belongs to (one past its end counts), or null.
Allocation *pointedTo(const Launch &launch, uint32_t parameter, uint32_t offset = 0);

} // namespace optiml::emu

#endif
