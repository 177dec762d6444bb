//===- VerifySignature.h - parameter lists as text --------------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFYSIGNATURE_H
#define OPTIML_LIB_EVALUATE_VERIFYSIGNATURE_H

#include "optiml/Workload/Workload.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace optiml {

/// Splits at commas outside brackets; trims.
std::vector<std::string> splitTopLevel(llvm::StringRef list);

/// Names of the parameters in a C++ parameter list ("const float *a, int n[2]" gives a, n).
std::vector<std::string> namesOfParameters(llvm::StringRef list);
/// Whether the parameter of that text is of an unsigned integer type.
bool isUnsignedParameter(llvm::StringRef parameter);
bool isFloatParameter(llvm::StringRef parameter);

/// Parameter types of a demangled function name; empty when it has none.
std::vector<std::string> demangledTypes(llvm::StringRef name);

enum class ElementKind { Unknown, Float, Double, Integer };
struct ElementType {
  ElementKind kind = ElementKind::Unknown;
  unsigned bytes = 4;
  bool isUnsigned = false;
};
/// What a pointer of that (demangled) type points to; vectors count as their elements.
ElementType pointeeType(llvm::StringRef pointerType);

/// Element type of each of a launch's buffers, from the kernel's demangled signature.
std::vector<ElementType> bufferTypes(const LaunchImage &launch);

/// sizeof of a C++ type as text, for the types that scratch buffers have.
std::optional<uint64_t> sizeOfType(llvm::StringRef type);

} // namespace optiml

#endif
