//===- Diagnosis.h - what can be said before a search -----------*- C++ -*-===//
//
// The program's kernels, what limits them, what may be done to them, what one would expect and does not apply, and what
// a search would try first.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_DIAGNOSIS_H
#define OPTIML_LIB_DRIVER_DIAGNOSIS_H

#include "optiml/ActionSpace/KernelSpace.h"
#include <nlohmann/json.hpp>

namespace optiml {

/// Of each kernel, by what its text tells: name, line, `legal` (transform and how many sites), `missed`; and
/// `tryFirst`: actions that the expert policy proposes, with reasons. `baseline` may be null.
nlohmann::json diagnosisOf(KernelSpace &space, const Program &device, const Measurement *baseline);

/// The kernels of a program that need not have run: blocks are as large as launches in the text say.
llvm::Expected<std::unique_ptr<KernelSpace>> spaceFromText(const Program &device, const std::string &kernel);

/// The sites at which a search would begin, a line each.
std::string sitesText(KernelSpace &space, const Program &device);

/// For people, in lines of at most 80 columns where names allow it.
std::string diagnosisText(const nlohmann::json &diagnosis);

} // namespace optiml

#endif
