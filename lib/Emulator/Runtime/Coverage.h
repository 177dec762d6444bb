//===- Coverage.h - which code ran ------------------------------*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_COVERAGE_H
#define OPTIML_LIB_EMULATOR_RUNTIME_COVERAGE_H

#include "optiml/Emulator/ABI.h"
#include "optiml/Workload/Replay.h"
#include <array>
#include <set>
#include <string>

namespace optiml::emu {
struct Launch;

/// Of these kernels, by symbol.
std::vector<MissedCode> missedCode(const ModuleDesc &module, const std::set<std::string> &kernels);

/// Writes the file that envCoverage names, once, at the program's end.
void writeCoverageAtExit();

/// Notes with which grid the kernel is launched, in the same file (ModeConditions).
void noteGrid(const ModuleDesc &module, const KernelDesc &kernel, const std::array<uint32_t, 3> &grid);
/// Notes that the kernel runs, and how it is launched, for the file that envCoverage names.
void noteRun(const Launch &launch);

} // namespace optiml::emu

#endif
