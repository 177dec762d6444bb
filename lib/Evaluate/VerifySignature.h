//===- VerifySignature.h - parameter lists as text --------------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFYSIGNATURE_H
#define OPTIML_LIB_EVALUATE_VERIFYSIGNATURE_H

#include "optiml/Workload/Signature.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace optiml {

/// Names of the parameters in a C++ parameter list ("const float *a, int n[2]" gives a, n).
std::vector<std::string> namesOfParameters(llvm::StringRef list);
/// Whether the parameter of that text is of an unsigned integer type.
bool isUnsignedParameter(llvm::StringRef parameter);
bool isFloatParameter(llvm::StringRef parameter);

/// sizeof of a C++ type as text, for the types that scratch buffers have.
std::optional<uint64_t> sizeOfType(llvm::StringRef type);

} // namespace optiml

#endif
