//===- VerifyInputs.h - fresh inputs for captured launches ------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFYINPUTS_H
#define OPTIML_LIB_EVALUATE_VERIFYINPUTS_H

#include "VerifySignature.h"
#include "llvm/Support/Error.h"
#include <map>

namespace optiml {

/// Writes new contents for a launch's buffers below `directory` and returns buffer index -> absolute file name.
/// Buffers of unknown element type and variables keep their content. Empty when nothing would change.
llvm::Expected<std::map<unsigned, std::string>> freshInputs(const Workload &workload, const LaunchImage &launch,
                                                            uint64_t seed, FreshIntegers integers,
                                                            const std::string &directory);

} // namespace optiml

#endif
