//===- RuntimeSettings.h - talking to an emulated program -------*- C++ -*-===//
//
// How the programs that start emulated CUDA programs (optiml-run, the search) set the CPU runtime: environment
// variables and the exit code of a program that the runtime stopped. Needs no LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_WORKLOAD_RUNTIMESETTINGS_H
#define OPTIML_WORKLOAD_RUNTIMESETTINGS_H

namespace optiml::emu {

/// Exit code of a program that the runtime stopped for a fault (out of bounds, race, divergent barrier, …).
constexpr int faultExitCode = 86;

/// Threads that run blocks; default: all cores. Modules in ModeVerify always run on one.
constexpr const char *envWorkers = "OPTIML_EMU_WORKERS";
/// Non-zero: blocks and warps run in an order permuted by this seed.
constexpr const char *envOrderSeed = "OPTIML_EMU_ORDER_SEED";
/// "stop" (default): a data race stops the program; "report": it is printed once and the program goes on.
constexpr const char *envRaces = "OPTIML_EMU_RACES";
/// Bytes of device memory of the emulated GPU; default: half of the host's memory.
constexpr const char *envMemory = "OPTIML_EMU_MEMORY";
/// A file to which faults are also appended, each as a line of JSON (an object as in ReplayResult::faults).
constexpr const char *envFaultFile = "OPTIML_EMU_FAULT_FILE";

/// Any value: work on streams is done as late as the program's own order allows (lib/Emulator/Runtime/Queue.h).
constexpr const char *envLate = "OPTIML_EMU_LATE";

/// A file that gets every copy from the device to the host (lib/Emulator/Runtime/CopyLog.cpp).
constexpr const char *envCopyLog = "OPTIML_EMU_COPY_LOG";
/// A file that gets what code of the program's kernels ran, where it was built for that (lib/Emulator/Runtime/
/// Coverage.cpp).
constexpr const char *envCoverage = "OPTIML_EMU_COVERAGE";
/// A seed: the first launch of each kernel and geometry is also run on other contents of its buffers
/// (optiml::refreshElements), whose results go to the copy log. envFreshIntegers is "random" (default), "shuffle" or
/// "keep".
/// With envFreshHost it is instead the program's own input that changes: floats that came from the host, before the
/// first kernel has them, and are chosen as the FloatRange of that name has it; envFreshIntegers, if set, says what
/// becomes of its integers.
constexpr const char *envFreshHost = "OPTIML_EMU_FRESH_HOST";
/// With envFreshHost: a file with lines such as "1f0c… float", the hash of what a buffer from the host holds and what
/// the original's kernels take that for (PointerDesc). Only these get other contents, whatever the kernels take them
/// for.
constexpr const char *envFreshTypes = "OPTIML_EMU_FRESH_TYPES";
constexpr const char *envFresh = "OPTIML_EMU_FRESH";
constexpr const char *envFreshIntegers = "OPTIML_EMU_FRESH_INTEGERS";
/// Mangled names with commas between them: the only kernels that envFresh without envFreshHost runs on other contents.
constexpr const char *envFreshKernels = "OPTIML_EMU_FRESH_KERNELS";
/// Bytes by which device allocations lie beside the alignment that cudaMalloc gives them: what a part of an array looks
/// like. "4@2": only the second.
constexpr const char *envShift = "OPTIML_EMU_SHIFT";

/// "up" or "down": how kernels round (to the nearest number where it is not set). What is no floating-point number and
/// changes by it depends on rounding.
constexpr const char *envRounding = "OPTIML_EMU_ROUNDING";
/// Any value: shared memory that nothing has written holds other bytes.
constexpr const char *envOtherFill = "OPTIML_EMU_OTHER_FILL";
/// The same for memory that the program allocates.
constexpr const char *envOtherMemory = "OPTIML_EMU_OTHER_MEMORY";
/// A file for the bytes of each allocation up to the last one that a kernel accessed, or that the device copied or set:
/// lines such as "3 4096", the third allocation's. Copies between host and device count for pinned memory only. Needs
/// ModeBounds.
constexpr const char *envTouched = "OPTIML_EMU_TOUCHED";

/// Kernels of this name (without parameters and template arguments) are not run, none at all where it is "*". Mutants,
/// which show whether a program's own check notices anything; and the host's course alone.
constexpr const char *envSkipKernel = "OPTIML_EMU_SKIP_KERNEL";
/// Of the bytes that copies bring to the host, counted from the start of the program, the element with this one is
/// altered:
constexpr const char *envAlterCopy = "OPTIML_EMU_ALTER_COPY";
/// ... to all ones, which is NaN, instead of to another number. Any value.
constexpr const char *envAlterToNaN = "OPTIML_EMU_ALTER_TO_NAN";

/// Folder that gets a workload (Workload.h) of the program's launches; a pattern for pathOfProcess (Recorder.h).
constexpr const char *envCapture = "OPTIML_CAPTURE";
/// Launches kept of each launch class; default 2. 0 keeps every launch.
constexpr const char *envCapturePerClass = "OPTIML_CAPTURE_PER_CLASS";
/// Bytes of blobs at most; launches beyond are listed in Workload::leftOut. Default 1 GiB.
constexpr const char *envCaptureMaxBytes = "OPTIML_CAPTURE_MAX_BYTES";
/// Launches kept in all; default 256.
constexpr const char *envCaptureMaxLaunches = "OPTIML_CAPTURE_MAX_LAUNCHES";
/// Of each kernel, so many launches are only counted before any is kept. Default 0.
constexpr const char *envCaptureSkip = "OPTIML_CAPTURE_SKIP";
/// A POSIX extended regular expression: only kernels whose mangled or demangled name it matches.
constexpr const char *envCaptureKernels = "OPTIML_CAPTURE_KERNELS";

} // namespace optiml::emu

#endif
